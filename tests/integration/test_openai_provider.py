"""The OpenAI provider over real HTTP: against a mock of OpenAI's API, and against raw sockets for what it can't do."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from llmock.pytest_plugin import LLMock
from pydantic import SecretStr
from structlog.testing import capture_logs

from agents.budget import count_tokens
from agents.llm import (
    BadCompletion,
    ChatMessage,
    Completion,
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
    ModelUnpaid,
    Picture,
    Provider,
    Request,
    ToolCall,
    ToolSpec,
    Usage,
)
from agents.providers.openai import OpenAIProvider
from agents.providers.quirks import Learned
from agents.spec import ModelSpec
from tests.kit.patience import SECONDS, hang, leap, limit, settle
from tests.kit.wire import Wire, refuses_once, replies, wire

KEY = "sk-test-0123456789abcdef"
HELLO = Request(messages=(ChatMessage(role="user", content="Say hello to Ada."),))
WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@asynccontextmanager
async def provider_at(
    base_url: str,
    *,
    model: str = "gpt-4o",
    key: str | None = KEY,
    temperature: float | None = None,
    max_tokens: int | None = None,
    timeout: float = SECONDS,
    verify: ssl.SSLContext | bool = False,
    connections: int = 100,
    sees: bool = False,
    learned: Learned | None = None,
    **options: Any,
) -> AsyncIterator[OpenAIProvider]:
    limits = httpx.Limits(max_connections=connections)
    async with httpx.AsyncClient(trust_env=False, verify=verify, limits=limits, timeout=SECONDS) as client:
        # Not checked, for the provider must stand what the configuration refuses.
        spec = ModelSpec.model_construct(
            provider="openai",
            base_url=base_url,
            model=model,
            key=None if key is None else SecretStr(key),
            temperature=temperature,
            max_tokens=max_tokens,
            timeout=timeout,
            sees=sees,
            **options,
        )
        yield OpenAIProvider(client, spec, count_tokens=count_tokens, learned=learned)


@pytest.fixture
async def mocked(llmock: LLMock) -> AsyncIterator[OpenAIProvider]:
    async with provider_at(llmock.base_url()) as provider:
        yield provider


def sse(*chunks: dict[str, Any] | str, end: str = "\n\n") -> bytes:
    lines = (chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False) for chunk in chunks)
    return "".join(f"data: {line}{end}" for line in lines).encode()


def says(text: str | None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text, **delta}, "finish_reason": finish}]}


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return says(None, tool_calls=list(fragments))


WHOLE = sse(says("Hello "), says("Ada."), says(None, "stop"), "[DONE]")


async def answer_of(body: bytes | dict[str, Any], request: Request = HELLO) -> Completion:
    async with wire(replies(body)) as served, provider_at(served.base_url) as provider:
        return await provider.complete(request)


async def failure(
    provider: Provider, kind: type[ModelError] = ModelError, words: str = "", *, request: Request = HELLO
) -> ModelError:
    """The error of a call; every one must name the host and the model, and keep the key to itself."""
    with pytest.raises(kind) as caught:
        await provider.complete(request)
    text = str(caught.value)
    assert words in text and "gpt-4o" in text
    assert "127.0.0.1" in text or "localhost" in text or ".invalid" in text
    assert KEY not in text
    return caught.value


def screen() -> tuple[list[str], Callable[[str], Awaitable[None]]]:
    """The pieces shown on a screen, and the function that shows them."""
    seen: list[str] = []

    async def show(text: str) -> None:
        text.encode()
        seen.append(text)

    return seen, show


async def slowly(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Sends a piece; the time that passes then is no silence yet, but two of them are."""
    writer.write(piece)
    await writer.drain()
    await settle()
    leap(SECONDS * 0.6)


async def failure_of(
    body: bytes | str | dict[str, Any],
    kind: type[ModelError] = ModelError,
    words: str = "",
    *,
    status: str = "200 OK",
    headers: str = "",
    key: str | None = KEY,
) -> ModelError:
    async with (
        wire(replies(body, status=status, headers=headers)) as served,
        provider_at(served.base_url, key=key) as provider,
    ):
        return await failure(provider, kind, words)


# --- answers -----------------------------------------------------------------------------------------------------


async def test_a_plain_answer_comes_whole_with_its_usage(llmock: LLMock, mocked: OpenAIProvider) -> None:
    llmock.reply("Hello Ada, nice to see you.")
    completion = await mocked.complete(HELLO)
    assert completion.text == "Hello Ada, nice to see you."
    assert (completion.model, completion.provider, completion.finish) == ("gpt-4o", "openai", "stop")
    assert completion.usage.input_tokens > 0
    assert completion.usage.output_tokens > 0
    assert not completion.usage.estimated
    assert mocked.name == "openai/gpt-4o"


async def test_text_is_passed_on_as_it_arrives_in_order_and_once(llmock: LLMock, mocked: OpenAIProvider) -> None:
    """The text that a person sees growing must be the answer that is stored."""
    llmock.reply("one two three four")
    shown, show = screen()
    completion = await mocked.complete(HELLO, show)
    assert len(shown) == 4
    assert "".join(shown) == completion.text == "one two three four"


async def test_a_tool_call_is_put_together_from_its_fragments(llmock: LLMock, mocked: OpenAIProvider) -> None:
    """The mock cuts arguments every twelve characters, as vendors do."""
    llmock.call_tool("weather", {"city": "Llanfairpwllgwyngyll"}, text="Let me look.")
    completion = await mocked.complete(Request(messages=HELLO.messages, tools=(WEATHER,)))
    (call,) = completion.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Llanfairpwllgwyngyll"})
    assert call.id
    assert (completion.text, completion.finish) == ("Let me look.", "tool_calls")


async def test_json_mode_is_asked_for_and_gives_json(llmock: LLMock, mocked: OpenAIProvider) -> None:
    completion = await mocked.complete(Request(messages=HELLO.messages, json_mode=True))
    assert isinstance(json.loads(completion.text), dict)
    assert llmock.last_request.body is not None
    assert llmock.last_request.body["response_format"] == {"type": "json_object"}


async def test_a_schema_is_asked_for_and_what_is_refused_of_it_is_learned_apart() -> None:
    """Servers that know no schema may know JSON, and those that take no temperature of 0 may take another."""
    cold = Request(messages=HELLO.messages, json_mode=True, json_schema={"type": "object"}, temperature=0.0)
    refusals = (
        "Invalid schema for response_format 'answer'",
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
    )
    refuse = replies(*({"error": {"message": said}} for said in refusals), status="400 Bad Request")

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        await (refuse if len(served.requests) <= len(refusals) else replies(WHOLE))(served, writer)

    async with (
        wire(answer) as served,
        provider_at(served.base_url, temperature=0.7) as provider,
    ):
        await provider.complete(cold)
        await provider.complete(cold)
        await provider.complete(HELLO)
    first, second, third, fourth, last = served.requests
    schema = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    assert first["response_format"] == {"type": "json_schema", "json_schema": schema}
    assert second["response_format"] == {"type": "json_object"} and second["temperature"] == 0
    assert third == fourth and "temperature" not in third and last["temperature"] == 0.7


@pytest.mark.parametrize("strict", [True, False])
async def test_a_programs_schema_binds_as_it_asks_and_its_faults_teach_nothing(strict: bool) -> None:
    """A schema that no strict server takes costs another try, and Remora's own are asked for as before."""
    own = Request(messages=HELLO.messages, json_mode=True, json_schema={"type": "object"})
    refuse = replies({"error": {"message": "Invalid schema for response_format 'answer'"}}, status="400 Bad Request")

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        await (refuse if len(served.requests) == 1 else replies(WHOLE))(served, writer)

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        await provider.complete(replace(own, strict=strict))
        await provider.complete(own)
    first, second, third = (one["response_format"] for one in served.requests)
    assert first["json_schema"]["strict"] is strict and second == {"type": "json_object"}
    assert third["type"] == "json_schema" and third["json_schema"]["strict"] is True


async def test_a_conversation_with_tool_results_is_written_as_the_api_wants_it() -> None:
    """A tool result that does not follow its call is refused by every vendor."""
    asked = ToolCall(id="c1", name="weather", arguments='{"city":"Oslo"}')
    request = Request(
        messages=(
            ChatMessage(role="system", content="Be brief."),
            ChatMessage(role="user", content="Weather? \ud800"),
            ChatMessage(role="assistant", content="", tool_calls=(asked,)),
            ChatMessage(role="tool", content="rain", tool_call_id="c1"),
        ),
        tools=(WEATHER,),
        temperature=0.0,
        max_tokens=50,
    )
    async with (
        wire(replies(WHOLE)) as served,
        provider_at(served.base_url, temperature=0.9, max_tokens=900) as provider,
    ):
        await provider.complete(request)
        await provider.complete(HELLO)
    function = {"name": "weather", "arguments": '{"city":"Oslo"}'}
    assert served.requests[0] == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather? ?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "The weather in a city",
                    "parameters": WEATHER.parameters,
                },
            }
        ],
        "max_tokens": 50,
        "temperature": 0.0,
    }
    assert (served.requests[1]["temperature"], served.requests[1]["max_tokens"]) == (0.9, 900)
    assert f"authorization: bearer {KEY}" in served.heads[0].lower()
    assert served.heads[0].startswith("POST /v1/chat/completions ")


@pytest.mark.parametrize(
    ("query", "key", "line", "authorization"),
    [
        ("", None, "POST /v1/chat/completions ", ""),  # some local servers refuse an empty key
        ("/?api-version=1", KEY, "POST /v1/chat/completions?api-version=1 ", KEY),  # as Azure wants it
        ("", f"{KEY}\n", "POST /v1/chat/completions ", KEY),  # files that hold a key mostly end in one
    ],
)
async def test_key_and_address_are_sent_as_they_are_meant(
    query: str, key: str | None, line: str, authorization: str
) -> None:
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url + query, key=key) as provider:
        await provider.complete(HELLO)
    head = served.heads[0]
    assert head.startswith(line)
    assert (
        f"authorization: bearer {authorization}\r\n" in head.lower()
        if authorization
        else "authorization" not in head.lower()
    )


async def test_a_connection_is_used_again() -> None:
    """Each new TLS connection costs a person a tenth of a second and more."""
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url) as provider:
        for _ in range(3):
            await provider.complete(HELLO)
    assert (len(served.requests), served.connections) == (3, 1)


async def test_a_server_that_keeps_the_stream_open_after_its_end_does_not_hold_the_answer() -> None:
    """The end mark ends the answer, whatever the connection does."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + WHOLE)
        await writer.drain()
        await asyncio.Event().wait()

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        assert (await provider.complete(HELLO)).text == "Hello Ada."


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b": keep-alive\n\n\n" + WHOLE, id="comments and blank lines"),
        pytest.param(b"\xef\xbb\xbf" + WHOLE, id="byte order mark"),
        pytest.param(b"\xef\xbb\xbf\n\n: hi\n" + WHOLE, id="byte order mark on a line of its own"),
        pytest.param(
            b"\xef\xbb\xbf" + json.dumps({"choices": [{"message": {"content": "Hello Ada."}}]}).encode(),
            id="byte order mark before plain json",
        ),
        pytest.param(WHOLE.replace(b"\n", b"\r"), id="carriage returns alone"),
        pytest.param(WHOLE.replace(b', "', b',\ndata: "'), id="data of several lines"),
        pytest.param(WHOLE.replace(b', "', b',\r\ndata:"').replace(b"\n\n", b"\r\n\r\n"), id="the same with CRLF"),
        pytest.param(WHOLE.replace(b"data: ", b"data: \ndata: "), id="empty data before it"),
        pytest.param(WHOLE.replace(b"data: ", b"retry: 10\nid\ndata: "), id="fields without a value"),
        pytest.param(WHOLE.replace(b"\n\n", b"\n\n: OPENROUTER PROCESSING\n\n"), id="comments between"),
        pytest.param(WHOLE.replace(b"data: ", b"data:"), id="no space"),
        pytest.param(WHOLE.replace(b"\n", b"\r\n"), id="carriage returns"),
        pytest.param(WHOLE.replace(b"\n\n", b"\n"), id="no blank lines"),
        pytest.param(WHOLE.replace(b"data: [DONE]\n\n", b""), id="no end mark"),
        pytest.param(WHOLE.removesuffix(b"\n\n"), id="no last line end"),
        pytest.param(WHOLE.replace(b'"stop"', b"null"), id="no finish reason"),
        pytest.param(b"event: message\nid: 1\n" + WHOLE, id="other fields"),
        pytest.param(sse({"choices": [], "prompt_filter_results": []}) + WHOLE, id="chunk without choices"),
        pytest.param(sse(says("Hello "), says("Ada.", "stop", role="assistant")), id="finish beside text"),
        pytest.param(sse(says("Hello "), {**says("Ada.", "stop"), "error": None}), id="error null"),
        pytest.param(
            sse({"choices": [{"delta": {"content": [{"type": "text", "text": "Hello Ada."}]}}]}, "[DONE]"),
            id="list of parts",
        ),
        pytest.param(sse(says(None, "stop", refusal="Hello Ada.")), id="refusal field"),
        pytest.param(json.dumps({"choices": [{"message": {"content": "Hello Ada."}}]}).encode(), id="plain json"),
        pytest.param(
            json.dumps({"choices": [{"message": {"content": "Hello Ada."}}]}, indent=1).encode(), id="indented json"
        ),
    ],
)
async def test_the_answer_of_a_server_with_ways_of_its_own_is_read(body: bytes) -> None:
    """Ollama, vLLM, llama.cpp and the proxies before them differ in all of these."""
    completion = await answer_of(body)
    assert (completion.text, completion.finish) == ("Hello Ada.", "stop")


def whole(text: str, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, **more}, "finish_reason": finish}]
    }


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([says("Hello "), says("Ada."), whole("Hello Ada.")], id="message at the end"),
        pytest.param([says("Hello "), says("Ada.", "stop"), whole("Hello Ada.", None)], id="after the finish"),
        pytest.param([says("Hello "), whole("Hello Ada.")], id="message with the rest"),
        pytest.param([whole("Hello", None), whole("Hello Ada", None), whole("Hello Ada.")], id="growing messages"),
        pytest.param([whole("Hello ", None), whole("Ada.")], id="messages as pieces"),
        pytest.param([says("Hello "), says("Ada."), says("Hello Ada.", "stop")], id="all again in the last delta"),
        pytest.param([says("Hello "), says("Ada.", "stop"), says("Hello Ada.")], id="all again after the finish"),
        pytest.param([says(" Hello "), says("Ada. "), whole("Hello Ada.")], id="message without its blanks"),
        pytest.param(
            [says("<think>hm</think>"), says("Hello "), says("Ada."), whole("Hello Ada.")], id="message without a thought"
        ),
        pytest.param([says(None, reasoning_content="hm"), whole("Hello Ada.")], id="only thoughts before it"),
        pytest.param(
            [{"choices": [{"delta": says(t)["choices"][0]["delta"], **whole(w, f)["choices"][0]}]}
             for t, w, f in (("Hello ", "Hello ", None), ("Ada.", "Hello Ada.", "stop"))],
            id="delta and message in each",
        ),
    ],
)  # fmt: skip
async def test_an_answer_that_is_sent_again_as_a_whole_is_shown_once(chunks: list[dict[str, Any]]) -> None:
    """Gateways end a stream with all of it."""
    shown, show = screen()
    async with wire(replies(sse(*chunks, "[DONE]"))) as served, provider_at(served.base_url) as provider:
        completion = await provider.complete(HELLO, show)
    assert completion.text.strip() == "".join(shown).strip() == "Hello Ada."
    assert completion.finish == "stop"


async def test_an_answer_that_repeats_itself_is_left_alone() -> None:
    for pieces in (["ha", "ha"], ["1", "10", "100"], ["no, ", "no, ", "no, no!"], ["la\n"] * 9):
        chunks = [*map(says, pieces), says(None, "stop")]
        assert (await answer_of(sse(*chunks, "[DONE]"))).text.strip() == "".join(pieces).strip()


async def test_what_goes_back_with_a_call_is_not_doubled_by_the_whole() -> None:
    """A thought or a signature that comes back otherwise than it was is refused."""
    piece = {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}, "extra_content": {"s": "sig"}}
    bare = {key: value for key, value in piece.items() if key != "extra_content"}
    chunks = [says(None, reasoning_content="h"), says(None, reasoning_content="m"), calls(piece)]
    last = whole("", "tool_calls", reasoning_content="hm", tool_calls=[bare])
    completion = await answer_of(sse(*chunks, last, "[DONE]"))
    assert completion.opaque is not None
    assert completion.opaque.message == {"reasoning_content": "hm"}
    assert completion.opaque.calls == ({"extra_content": {"s": "sig"}},)


async def test_calls_that_are_sent_again_with_the_whole_are_made_once() -> None:
    """A reminder would be set twice."""
    piece = {"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    for last in (
        whole("", "tool_calls", tool_calls=[piece]),
        whole("", "tool_calls", tool_calls=[{**piece, "id": "y"}]),
        whole("", "tool_calls", tool_calls=[{key: value for key, value in piece.items() if key != "index"}]),
    ):
        for chunks in ([calls(piece), last], [last, last, last]):
            completion = await answer_of(sse(*chunks, "[DONE]"))
            assert [(call.name, call.arguments) for call in completion.tool_calls] == [("f", '{"a": 1}')]


async def test_a_unicode_line_separator_in_a_text_does_not_cut_the_stream() -> None:
    """Readers that split lines the Unicode way break JSON at U+2028, U+0085 and form feeds."""
    text = "one\u2028two\u0085three\u2029four"
    assert (await answer_of(sse(says(text, "stop")))).text == text


async def test_a_plain_answer_is_passed_to_the_screen_too() -> None:
    """A server that does not stream still has to show its answer."""
    shown, show = screen()
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    async with wire(replies(body)) as served, provider_at(served.base_url) as provider:
        await provider.complete(HELLO, show)
    assert shown == ["Hi"]


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_an_answer_is_the_same_however_the_network_cuts_it(size: int) -> None:
    """Packets end in the middle of characters, lines and escapes."""
    body = sse(says("文字 🐟 "), says('"quoted"\\n'), says("end", "stop"), "[DONE]")

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for start in range(0, len(body), size):
            part = body[start : start + size]
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        writer.write(b"0\r\n\r\n")

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        assert (await provider.complete(HELLO)).text == '文字 🐟 "quoted"\\nend'


# --- tool calls of servers with ways of their own ------------------------------------------------------------------


def bit(
    arguments: object = None, name: str | None = None, index: object = None, call_id: str | None = None
) -> dict[str, Any]:
    """A piece of a call; what is None is left out."""
    shape: dict[str, Any] = {"function": {"arguments": arguments, **({"name": name} if name else {})}}
    return shape | {key: value for key, value in {"index": index, "id": call_id}.items() if value is not None}


def row(name: str, expected: list[tuple[str, str, str]], *chunks: Any) -> Any:
    """A row of the table below: each chunk is a whole one, one piece of a call, or several."""
    told = [one if "choices" in one else calls(*(one if isinstance(one, tuple) else (one,))) for one in chunks]
    return pytest.param(told, expected, id=name)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        row("no id", [("call00001", "f", '{"a":1}')], bit('{"a":', "f", 0), bit("1}", None, 0)),
        row("no index", [("x", "f", '{"a":1}')], bit('{"a":', "f", None, "x"), bit("1}")),
        row("two without index", [("x", "f", "{}"), ("y", "g", "{}")],
            (bit("{}", "f", None, "x"), bit("{}", "g", None, "y"))),
        row("id and name repeated", [("x", "f", '{"a":1}')], bit('{"a":', "f", 0, "x"), bit("1}", "f", 0, "x"),
            bit("", "f", 0, "x")),
        row("two under one index", [("x", "f", "{}"), ("y", "g", "{}")],
            (bit("{}", "f", 0, "x"), bit("{}", "g", 0, "y"))),
        row("two under one index, the first malformed", [("x", "f", "oops"), ("y", "g", "{}")],
            (bit("oops", "f", 0, "x"), bit("{}", "g", 0, "y"))),
        row("two under one index without ids", [("call00001", "f", "{}"), ("call00002", "g", "{}")],
            (bit("{}", "f", 0, ""), bit("{}", "g", 0, ""))),
        row("one id for two", [("x", "f", "{}"), ("call00002", "f", "{}")],
            (bit("{}", "f", 0, "x"), bit("{}", "f", 1, "x"))),
        row("name under 0, arguments under 1", [("x", "f", '{"a":1}')], bit("", "f", 0, "x"), bit('{"a":', None, 1),
            bit("1}", None, 1)),
        row("id under 0, the rest under 1", [("x", "f", '{"a":1}')], bit(None, None, 0, "x"), bit('{"a":1}', "f", 1)),
        row("an index for each fragment", [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')], bit("", "f", 0, "x"),
            bit('{"a":1}', None, 1), bit("", "g", 2, "y"), bit('{"b":2}', None, 3)),
        row("second head under the first index", [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')],
            bit("", "f", 0, "x"), bit('{"a":1}', None, 0), bit("", "g", 0, "y"), bit('{"b":2}', None, 1)),
        row("counted from 1", [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')], bit('{"a":', "f", 1, "x"),
            bit('{"b":', "g", 2, "y"), bit("1}", None, 1), bit("2}", None, 2)),
        row("always -1", [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')], bit('{"a":', "f", -1, "x"),
            bit("1}", None, -1), bit('{"b":2}', "g", -1, "y")),
        row("index as text", [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')],
            {**bit('{"a":', "f", None, "x"), "index": "0"}, {**bit("1}"), "index": "0"},
            {**bit('{"b":2}', "g", None, "y"), "index": "1"}),
        row("index null", [("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')],
            {**bit('{"a":', "f", None, "x"), "index": None}, {**bit("1}"), "index": None},
            {**bit('{"b":2}', "g", None, "y"), "index": None}),
        row("name in each, id in the last", [("x", "f", '{"a":1}')], bit('{"a":', "f", 0), bit("1", "f", 0),
            bit("}", "f", 0), bit("", "f", 0, "x")),
        row("the same tool twice under one index", [("call00001", "f", '{"a":1}'), ("call00002", "f", '{"a":2}')],
            bit('{"a":1}', "f", 0), bit("", "f", 0), bit('{"a":2}', None, 0)),
        row("name that is short", [("call00001", "wea", '{"city": 1}')], bit('{"city"', "wea", 0),
            bit(": 1}", None, 0)),
        row("name in pieces", [("x", "weather", "{}")], bit("", "wea", 0, "x"), bit("", "ther", 0),
            bit("{}", None, 0)),
        row("name that grows", [("call00001", "weather", "{}")], bit("", "wea", 0), bit("", "weather", 0),
            bit("{}", None, 0)),
        row("empty and null fields", [("x", "f", '{"a":1}')],
            {"index": 0, "id": "x", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "id": "", "function": {"name": "", "arguments": '{"a":'}},
            {"index": 0, "id": None, "function": {"name": None, "arguments": "1}"}},
            {"index": 1, "id": None, "function": {"name": "", "arguments": ""}}, {"index": 2}),
        row("an id of nothing", [("y", "f", "{}")],
            {"index": 0, "id": "x", "function": {"name": None, "arguments": ""}}, bit("{}", "f", 1, "y")),
        row("object under another index", [("x", "f", '{"a": 1}')], bit("", "f", 0, "x"),
            bit({"a": 1}, None, 1, "x")),
        row("arguments that grow", [("x", "f", '{"a": 1}')], bit('{"a"', "f", 0, "x"), bit('{"a": 1', None, 0),
            bit('{"a": 1}', None, 0)),
        row("half a call and then the whole", [("x", "f", '{"a": 1}')], bit('{"a": ', "f", 0, "x"),
            {"choices": [{"message": {"tool_calls": [bit('{"a": 1}', "f", None, "x")]}}]}),
        row("messages as pieces", [("x", "f", '{"a": 1}')],
            {"choices": [{"message": {"tool_calls": [bit('{"a": ', "f", 0, "x")]}}]},
            {"choices": [{"message": {"tool_calls": [bit("1}", None, 0)]}}]}),
        row("one call that stands in no list", [("x", "f", '{"a": 1}')],
            says(None, tool_calls=bit('{"a": 1}', "f", 0, "x"))),
        row("object", [("call00001", "f", '{"a": 1}')], bit({"a": 1}, "f", 0)),
        row("null", [("call00001", "f", "{}")], bit(None, "f", 0)),
        row("empty", [("call00001", "f", "{}")], bit("", "f", 0)),
        row("no json", [("call00001", "f", "oops")], bit("oops", "f", 0)),
    ],
)  # fmt: skip
async def test_tool_calls_are_understood_in_every_shape_servers_give_them(
    chunks: list[dict[str, Any]], expected: list[tuple[str, str, str]]
) -> None:
    """Ollama, Gemini's and Mistral's interfaces leave out or repeat what OpenAI's never does."""
    completion = await answer_of(sse(*chunks, says(None, "tool_calls"), "[DONE]"), TOLD)
    assert [(call.id, call.name, call.arguments) for call in completion.tool_calls] == expected


async def test_a_name_in_every_fragment_takes_no_longer_than_the_answer() -> None:
    """Whether arguments are complete is asked at each of them."""
    body = sse(calls(bit("}", "f", 0))) * 5_000 + sse(says(None, "tool_calls"), "[DONE]")
    began = time.thread_time()
    assert len((await answer_of(body)).tool_calls) == 1
    assert time.thread_time() - began < 10


@pytest.mark.parametrize("given", [None, "call_0"])
async def test_an_id_is_not_one_of_an_earlier_call(given: str | None) -> None:
    """A result would answer the wrong call; some servers begin with call_0 in each answer."""
    earlier = ChatMessage(role="assistant", content="", tool_calls=(ToolCall(id="call_0", name="f", arguments="{}"),))
    request = Request(messages=(*HELLO.messages, earlier))
    completion = await answer_of(sse(calls(bit("{}", "f", 0, given)), "[DONE]"), request)
    assert completion.tool_calls[0].id == "call00002"


async def test_a_call_of_no_tool_is_an_error() -> None:
    """Nothing can be run or answered without a name."""
    await failure_of(sse(calls(bit("{}", index=0)), says(None, "tool_calls")), BadCompletion, "without naming it")


# --- failures in the middle ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunk", "kind", "words"),
    [
        ({"choices": [{"delta": {}, "finish_reason": "error"}]}, ModelUnavailable, "finish reason error"),
        (
            {"choices": [{"delta": {}, "finish_reason": "error", "native_finish_reason": "overloaded"}]},
            ModelUnavailable,
            "overloaded",
        ),
        (
            {"choices": [{"delta": {"content": ""}, "error": {"code": 502, "message": "Provider lost"}}]},
            ModelUnavailable,
            "Provider lost",
        ),
        (
            {"choices": [{"message": {"content": "He"}, "finish_reason": "error", "error": {"code": 429, "message": "slow"}}]},
            ModelRateLimited,
            "slow",
        ),
        (
            {"error": {"code": "server_error", "message": "gone"}, "choices": [{"delta": {}, "finish_reason": "error"}]},
            ModelUnavailable,
            "gone",
        ),
        ({"choices": [{"delta": {}, "finish_reason": "insufficient_system_resource"}]}, ModelUnavailable, "resource"),
        ({"choices": [{"delta": {}, "finish_reason": "network_error"}]}, ModelUnavailable, "network_error"),
        ([{"error": {"code": 503, "message": "overloaded"}}], ModelUnavailable, "overloaded"),
        ({"object": "error", "message": "engine died", "code": 500}, ModelUnavailable, "engine died"),
        ({"object": "error", "message": "maximum context length is 8", "code": 400}, ContextOverflow, "longer than"),
        ({"error": {"message": "Provider left", "code": 502}, **says("", "error")}, ModelUnavailable, "Provider left"),
        ({"error": {"message": "Slow down", "code": "429"}, **says("", "error")}, ModelRateLimited, "Slow down"),
        ({"error": {"message": "Too long", "code": "context_length_exceeded"}}, ContextOverflow, "Too long"),
        ({"error": {"message": "bad tool", "code": 400}}, ModelRefused, "bad tool"),
        ({"error": "out of memory"}, ModelUnavailable, "out of memory"),
    ],
)  # fmt: skip
async def test_a_failure_told_in_the_middle_is_one_with_its_words(
    chunk: Any, kind: type[ModelError], words: str
) -> None:
    """It passed for an answer, or for an empty one."""
    for body in (sse(chunk, "[DONE]"), sse(says("Hel"), chunk, "[DONE]"), json.dumps(chunk)):
        error = await failure_of(body)
        assert type(error) is kind and words in str(error)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (b'event: error\ndata: {"message": "out of memory"}\n\n', "out of memory"),
        (b'event: error\ndata: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
        (b"event: error\ndata: out of memory\n\n", "out of memory"),
        (b"event:error\r\ndata:out of\r\ndata:memory\r\n\r\n", "out of memory"),
        (b"event: error\n\n" + WHOLE, ""),
    ],
)
async def test_an_event_of_an_error_is_one(event: bytes, words: str) -> None:
    if words:
        error = await failure_of(sse(says("Hel")) + event)
        assert isinstance(error, ModelUnavailable) and words in str(error)
    else:  # one without data tells nothing
        assert (await answer_of(event)).text == "Hello Ada."


# --- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}},
            Usage(input_tokens=90, output_tokens=7, cached_tokens=64),
            id="openai",
        ),
        pytest.param(
            {"prompt_tokens": 90, "completion_tokens": 7, "prompt_cache_hit_tokens": 32},
            Usage(input_tokens=90, output_tokens=7, cached_tokens=32),
            id="deepseek",
        ),
        pytest.param(
            {"prompt_tokens": 90, "completion_tokens": 7, "cached_tokens": 64},
            Usage(input_tokens=90, output_tokens=7, cached_tokens=64),
            id="kimi",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 7, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 9},
            Usage(input_tokens=73, output_tokens=7, cached_tokens=64),
            id="only those missed",
        ),
        pytest.param(
            {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 161, "cache_read_input_tokens": 64},
            Usage(input_tokens=154, output_tokens=7, cached_tokens=64),
            id="cached apart, by the sum",
        ),
        pytest.param(
            {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97, "cache_read_input_tokens": 64},
            Usage(input_tokens=90, output_tokens=7, cached_tokens=64),
            id="cached within, by the sum",
        ),
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}},
            Usage(input_tokens=73, output_tokens=7, cached_tokens=64),
            id="more cached than read",
        ),
        pytest.param(
            {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": None},
            Usage(input_tokens=90, output_tokens=7),
            id="no details",
        ),
    ],
)
async def test_usage_is_what_the_server_counted(told: dict[str, Any], expected: Usage) -> None:
    """Budgets and costs are reckoned from it, and cached tokens cost a fraction."""
    body = sse(says("Hi"), says(None, "stop"), {"choices": [], "usage": told}, "[DONE]")
    assert (await answer_of(body)).usage == expected
    body = sse(says("Hi", "stop"), {"choices": [], "x_groq": {"usage": told}}, "[DONE]")
    assert (await answer_of(body)).usage == expected


@pytest.mark.parametrize(
    "told", [None, {}, {"prompt_tokens": "many", "completion_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1}]
)
async def test_usage_is_estimated_and_says_so_where_the_server_is_silent(told: dict[str, Any] | None) -> None:
    request = Request(messages=HELLO.messages, tools=(WEATHER,))
    completion = await answer_of(sse({**says("Hello " * 40, "stop"), "usage": told}), request)
    assert completion.usage.estimated
    assert 30 <= completion.usage.output_tokens <= 80
    assert completion.usage.input_tokens > count_tokens(HELLO.messages[0].content + WEATHER.description)


# --- what a server does not take -----------------------------------------------------------------------------------


TOLD = Request(messages=(ChatMessage(role="system", content="Be brief."), *HELLO.messages), tools=(WEATHER,))


async def test_a_stream_that_holds_nothing_is_asked_for_plainly() -> None:
    """llama-cpp-python has sent status 200 by the time it finds the request too long, and then says nothing."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        if served.requests[-1]["stream"]:
            await replies(b"", headers="content-type: text/event-stream\r\n")(served, writer)
        else:
            refusal = {"error": {"message": "Requested tokens (5012) exceed context window of 2048"}}
            await replies(refusal, status="400 Bad Request")(served, writer)

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        assert isinstance(await failure(provider), ContextOverflow)


async def test_a_call_written_in_the_text_is_a_call_and_thoughts_are_not_shown() -> None:
    shown, show = screen()
    body = sse(
        says("<thi"), says("nk>hm</think>I look."), says('<tool_call>{"name": "weather", "argum'),
        says('ents": {"city": "Oslo"}}</tool_call>'), says("<|im_end|>", "stop"), "[DONE]",
    )  # fmt: skip
    async with wire(replies(body)) as served, provider_at(served.base_url) as provider:
        completion = await provider.complete(TOLD, show)
    assert completion.text == "".join(shown) == "I look."
    assert [(call.name, json.loads(call.arguments)) for call in completion.tool_calls] == [
        ("weather", {"city": "Oslo"})
    ]


async def test_a_call_in_the_text_goes_back_to_its_server_as_its_own() -> None:
    """A server that wants a thought with each call gets an empty one, and the call stays a call."""
    body = sse(says('<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>', "stop"), "[DONE]")
    refusal = {"error": {"message": "The reasoning_content in the thinking mode must be passed back to the API."}}

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        messages = served.requests[-1]["messages"]
        called = [one for one in messages if one.get("tool_calls")]
        if any("reasoning_content" not in one for one in called):
            await replies(refusal, status="400 Bad Request")(served, writer)
        else:
            await replies(WHOLE if called else body)(served, writer)

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        first = await provider.complete(TOLD)
        asked = ChatMessage(role="assistant", content="", tool_calls=first.tool_calls, opaque=first.opaque)
        result = ChatMessage(role="tool", content="rain", tool_call_id=first.tool_calls[0].id)
        last = await provider.complete(replace(TOLD, messages=(*TOLD.messages, asked, result)))
    assert last.text == "Hello Ada."
    assert [one["role"] for one in served.requests[-1]["messages"][-2:]] == ["assistant", "tool"]


async def test_a_thought_without_its_opening_is_shown_once_at_most() -> None:
    """The template keeps the opening mark to itself; after one answer the model is known for it."""
    shown, show = screen()
    body = sse(says("hm, let me see"), says("</think>Yes."), says(None, "stop"), "[DONE]")
    async with wire(replies(body)) as served, provider_at(served.base_url) as provider:
        assert (await provider.complete(HELLO)).text == "Yes."
        assert (await provider.complete(HELLO, show)).text == "Yes."
    assert shown == ["Yes."]


@pytest.mark.parametrize(
    "written",
    ["Say </think> before yes", "Say < / THINKING > first", "[/think]", "<｜end▁of▁thought｜>", "write slash think"],
)
async def test_a_mark_that_a_person_wrote_teaches_nothing_of_the_server(written: str) -> None:
    """One person's words must not hold back the answers of everybody."""
    shown, show = screen()
    asked = replace(HELLO, messages=(*HELLO.messages, ChatMessage(role="user", content=written)))
    answers = [
        sse(*map(says, texts), says(None, "stop"), "[DONE]") for texts in (("</think>", "Yes."), ("One, ", "two."))
    ]
    async with wire(replies(*answers)) as served, provider_at(served.base_url) as provider:
        assert (await provider.complete(asked)).text == "Yes."
        await provider.complete(HELLO, show)
    assert shown == ["One,", " two."]


async def test_what_a_call_cost_that_was_broken_off_is_told() -> None:
    aborted: list[Completion] = []
    begun = asyncio.Event()

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + sse(says("Once upon a time ")))
        await writer.drain()
        await asyncio.Event().wait()

    async def show(text: str) -> None:
        begun.set()

    request = replace(HELLO, on_aborted=aborted.append)
    async with wire(answer) as served, provider_at(served.base_url) as provider:
        task = asyncio.ensure_future(provider.complete(request, show))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    (one,) = aborted
    assert one.usage.estimated and one.usage.input_tokens > 0 and one.usage.output_tokens > 0
    assert (one.provider, one.model) == ("openai", "gpt-4o")


async def test_headers_and_fields_of_ones_own_are_sent() -> None:
    """Proxies and servers want things that Remora knows nothing of."""
    async with (
        wire(replies(WHOLE)) as served,
        provider_at(served.base_url, headers={"x-title": "Remora"}, extra_body={"top_k": 20}, top_p=0.9) as provider,
    ):
        await provider.complete(HELLO)
    assert "x-title: remora" in served.heads[0].lower()
    assert (served.requests[0]["top_k"], served.requests[0]["top_p"]) == (20, 0.9)


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (400, ModelRefused, "refused the request"), (401, ModelAuth, "its key was not accepted"),
        (402, ModelUnpaid, "credit"), (403, ModelAuth, "may use this model"), (404, ModelRefused, "model's name"),
        (408, ModelUnavailable, "failed on its side"), (413, ContextOverflow, "longer than"),
        (418, ModelRefused, "refused the request"), (429, ModelRateLimited, "no more requests"),
        (500, ModelUnavailable, "failed on its side"), (503, ModelUnavailable, "failed on its side"),
        (529, ModelUnavailable, "failed on its side"),
    ],
)  # fmt: skip
async def test_each_status_has_its_error_and_a_remedy(
    llmock: LLMock, mocked: OpenAIProvider, status: int, kind: type[ModelError], words: str
) -> None:
    """The operator must read what to do, and the chain must know what to try again."""
    llmock.fail(status, message="Something the vendor says.")
    error = await failure(mocked)
    assert type(error) is kind
    assert "Something the vendor says." in str(error)
    assert any(word in str(error) for word in words.split("|"))


async def test_a_missing_key_is_told_from_a_wrong_one() -> None:
    """Someone who set no key must not go looking for a typing error in it."""
    await failure_of(
        {"error": {"message": "no key"}}, ModelAuth, "none is configured", status="401 Unauthorized", key=None
    )


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}.", "code": KEY}}),
        f"<html><title>{KEY}</title>",
        f"{'x' * 290} {KEY}",
    ],
)
async def test_a_key_the_server_repeats_is_not_shown(body: str) -> None:
    error = await failure_of(body, status="401 Unauthorized")
    assert KEY[:8] not in str(error)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("retry-after: 7\r\n", 7.0), ("retry-after: 0.5\r\n", 0.5),
        ("retry-after: 1\r\nretry-after-ms: 250\r\n", 0.25),
        ("retry-after: -3\r\n", 0.0), ("retry-after: soon\r\n", None), ("retry-after: nan\r\n", None),
        ("date: Wed, 21 Oct 2026 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 2026 07:29:30 GMT\r\n", 90.0),
        ("date: Wed, 21 Oct 2026 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 2026 07:27:00 GMT\r\n", 0.0),
        ("retry-after: Wed, 21 Oct 2026 07:29:30 GMT\r\n", None),
        ("date: Wed, 21 Oct 2026 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 99999999999999 07:29:30 GMT\r\n", None),
        ("", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_the_wait_a_server_asks_for_is_read(status: str, headers: str, expected: float | None) -> None:
    """Seconds, milliseconds and dates are all in use, and nonsense must not become a wait."""
    assert (await failure_of("{}", status=status, headers=headers)).retry_after == expected


async def test_a_web_page_is_named_by_its_title_and_not_pasted() -> None:
    """A page of a proxy is a screenful of markup with nothing in it."""
    page = "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>secret body</body></html>"
    error = await failure_of(
        page,
        ModelUnavailable,
        "a web page titled 502 Bad Gateway",
        status="502 Bad Gateway",
        headers="content-type: text/html\r\n",
    )
    assert "secret body" not in str(error)
    assert "<" not in str(error)


async def test_a_long_refusal_is_shortened() -> None:
    error = await failure_of({"error": {"message": "word " * 10_000}}, status="400 Bad Request")
    assert len(str(error)) < 700


async def test_a_redirect_is_not_followed() -> None:
    """The key and the conversation go where the operator sent them and nowhere else."""
    async with wire(replies(WHOLE)) as elsewhere:
        location = f"location: {elsewhere.base_url}/chat/completions\r\n"
        await failure_of("", ModelRefused, "redirect", status="307 Temporary Redirect", headers=location)
    assert elsewhere.requests == []


# --- failures of the network ---------------------------------------------------------------------------------------


async def test_a_closed_port_is_told_as_nothing_listening() -> None:
    """The commonest error of all: the local model server was not started."""
    async with wire(replies(WHOLE)) as served:
        pass
    async with provider_at(served.base_url) as provider:
        await failure(provider, ModelUnavailable, "nothing listens there")


async def test_a_name_that_does_not_resolve_is_told_as_such() -> None:
    """A typing error in base_url looks like an outage otherwise."""
    async with provider_at("http://models.invalid/v1") as provider:
        error = await failure(provider, ModelUnavailable, "can't be resolved")
    assert "models.invalid" in str(error)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate nobody trusts, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    trustme.CA().issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    return path


async def test_a_certificate_that_is_not_trusted_is_told_as_such(certificate: Path) -> None:
    """The operator must learn that it is the certificate, and why it fails."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with (
        wire(replies(WHOLE), tls=context) as served,
        provider_at(served.base_url, verify=ssl.create_default_context()) as provider,
    ):
        error = await failure(provider, ModelUnavailable, "No trusted TLS connection")
    assert "local issuer certificate" in str(error)


async def test_https_towards_an_http_server_is_told_as_such() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, provider_at(f"https://localhost:{port}/v1", verify=ssl.create_default_context()) as provider:
        await failure(provider, ModelUnavailable, "perhaps only http")


OK = b"HTTP/1.1 200 OK\r\n\r\n"
NOT_STARTED = f"did not start to answer within {2 * SECONDS:g} s|closed the connection"


@pytest.mark.parametrize(
    ("head", "drip", "kind", "words"),
    [
        pytest.param(b"", None, ModelUnavailable, f"sent nothing for {SECONDS:g} s", id="silence"),
        pytest.param(b"", b"", ModelUnavailable, "without an answer", id="closed without an answer"),
        pytest.param(b"", b"H", ModelUnavailable, NOT_STARTED, id="a head that drips in"),
        pytest.param(OK + sse(says("Hel")), None, ModelUnavailable, "stalled", id="a stream that stalls"),
        *(
            pytest.param(OK + sse(says("Hel")), idle, ModelUnavailable, "stalled", id=f"keepalives {idle!r}")
            for idle in (b": ping\n\n", b"\n", b"event: ping\n\n", b"data:\n\n", b"x")
        ),
        pytest.param(b"HTTP/1.1 503 Gone\r\n\r\n", b"x", ModelUnavailable, r"\(503\)", id="a refusal that drips in"),
        pytest.param(b"HTTP/1.1 401 No\r\ncontent-length: 50\r\n\r\n{", None, ModelAuth, "", id="half a refusal"),
    ],
)
async def test_a_server_that_falls_silent_is_left(
    head: bytes, drip: bytes | None, kind: type[ModelError], words: str
) -> None:
    """A turn must not hang on one that is stuck, whether it says nothing or (`drip`) nothing new, for ever."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        if drip == b"":
            writer.close()
            return
        while drip is not None:
            await slowly(writer, drip)
        await hang()

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        assert re.search(words, str(await failure(provider, kind)))


async def test_a_slow_stream_that_never_falls_silent_is_heard_to_its_end() -> None:
    """The limit is on each silence: a long answer of a slow model is no failure."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for piece in ("one ", "two ", "three ", "four ", "five"):
            await slowly(writer, sse(says(piece)))
        writer.write(sse("[DONE]"))

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        assert (await provider.complete(HELLO)).text == "one two three four five"


async def test_a_slow_screen_is_not_the_models_silence() -> None:
    """A platform that is slow to show a piece must not end the answer."""

    async def slow(text: str) -> None:
        leap(2 * SECONDS)
        await settle()

    answer = replies(sse(says("Hel"), says("lo", "stop"), "[DONE]"))
    async with wire(answer) as served, provider_at(served.base_url) as provider:
        assert (await provider.complete(HELLO, slow)).text == "Hello"


@pytest.mark.parametrize("cut", [r"\ud83d|\ude00", r"a\ud83d|\ude00b", r"\ud83d||\ude00"])
async def test_a_character_cut_in_two_becomes_one(cut: str) -> None:
    """Some servers cut between the two halves of an emoji; no channel and no database takes half of one."""
    shown, show = screen()
    pieces = [f'{{"choices": [{{"delta": {{"content": "{piece}"}}}}]}}' for piece in cut.split("|")]
    answer = replies(sse(*pieces, says(None, "stop"), "[DONE]"))
    async with wire(answer) as served, provider_at(served.base_url) as provider:
        text = (await provider.complete(HELLO, show)).text
    assert text == "".join(shown) == cut.replace("|", "").replace(r"\ud83d\ude00", "😀")


async def test_half_a_character_and_a_nul_do_not_leave_the_provider() -> None:
    completion = await answer_of(
        sse(r'{"model": "m\ud800", "choices": [{"delta": {"content": "a\ude00b\u0000c"}}]}', "[DONE]")
    )
    assert (completion.text, completion.model) == ("a\ufffdbc", "m\ufffd")


async def test_tokens_that_a_choice_counts_are_counted() -> None:
    """Kimi's streams hold the usage inside their last choice."""
    last = says("Tea.", "stop")
    last["choices"][0]["usage"] = {"prompt_tokens": 12, "completion_tokens": 3}
    usage = (await answer_of(sse(last, "[DONE]"))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (12, 3, False)


async def test_a_count_of_tokens_that_no_database_takes_is_not_believed() -> None:
    """SQLite's numbers end at 2^63."""
    usage = {"usage": {"prompt_tokens": 10**30, "completion_tokens": 1}}
    assert (await answer_of(sse({**says("Tea.", "stop"), **usage}))).usage.estimated


@pytest.mark.parametrize("call_id", ["x" * 41, "a b", "搜"])
async def test_an_id_another_vendor_would_refuse_is_made_anew(call_id: str) -> None:
    """The next model of the chain reads the same history."""
    completion = await answer_of(sse(calls(bit("{}", name="f", index=0, call_id=call_id)), "[DONE]"))
    assert completion.tool_calls[0].id == "call00001"


async def test_a_filter_that_quotes_words_about_length_is_a_filter() -> None:
    """Else one person's sentence would shorten everybody's conversations."""
    words = "Rejected by policy: 'the prompt is too long, it exceeds the context length'"
    for code in ("content_filter", "data_inspection_failed", "content_policy_violation"):
        error = await failure_of(
            json.dumps({"error": {"code": code, "message": words}}).encode(), status="400 Bad Request"
        )
        assert isinstance(error, ModelRefused) and error.of_request and "content filter" in str(error)


async def test_too_many_calls_at_once_are_refused() -> None:
    """Each of them would run."""
    many = [bit("{}", name="f", index=n, call_id=f"c{n}") for n in range(33)]
    await failure_of(sse(calls(*many), "[DONE]"), BadCompletion, "33 tools at once")


async def test_an_answer_that_breaks_after_its_finish_reason_is_kept() -> None:
    """Only the usage is missing then, and it can be estimated."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + sse(says("Hello Ada.", "stop")))
        writer.close()

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        completion = await provider.complete(HELLO)
    assert (completion.text, completion.usage.estimated) == ("Hello Ada.", True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "nothing at all"),
        ("<html><title>My router</title></html>", "a web page titled My router"),
        ("Ollama is running", "something else"),
        ('{"status": "ok"}', "something else"),
        ("[" * 20_000, "something else"),
        ("\xff\xfe", "something else"),
    ],
)
async def test_a_body_that_is_no_answer_is_told_as_a_wrong_address(body: str, words: str) -> None:
    """Mostly base_url lacks its /v1 and some page answered."""
    error = await failure_of(body.encode("latin-1"))
    assert isinstance(error, BadCompletion)
    assert words in str(error)
    assert "/v1" in str(error)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (sse(says(None, "stop"), "[DONE]"), BadCompletion, "empty answer"),
        (sse(says("  \n", "stop"), "[DONE]"), BadCompletion, "empty answer"),
        (sse("[DONE]"), BadCompletion, "empty answer"),
        (b'{"choices": []}', BadCompletion, "empty answer"),
        (sse(says("", "length")), BadCompletion, "max_tokens"),
        (sse(says("", "content_filter")), ModelRefused, "content filter"),
    ],
)
async def test_an_empty_answer_is_an_error_that_tells_why(body: bytes, kind: type[ModelError], words: str) -> None:
    """An empty message can't be sent to a chat, and the reason decides what helps."""
    error = await failure_of(body)
    assert type(error) is kind
    assert words in str(error)


@pytest.mark.parametrize(
    ("head", "piece", "most"),
    [
        pytest.param(b"data: ", b"x", 60, id="one line"),
        pytest.param(b"", b"x" * 1023 + b"\n", 120, id="lines that are no stream"),
        pytest.param(b"", b": " + b"p" * 1021 + b"\n", 120, id="comments"),
        pytest.param(b"", b'data: {"choices": [{"delta": {"content": "' + b"x" * 4096 + b'"}}]}\n\n', 60, id="text"),
        pytest.param(
            b"",
            b'data: {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "'
            + b"x" * 4096
            + b'"}}]}}]}\n\n',
            60,
            id="arguments",
        ),
    ],
)
async def test_an_answer_without_end_is_given_up(head: bytes, piece: bytes, most: int) -> None:
    """A server that sends for ever must not fill the memory of the bot."""
    sent: list[int] = []

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + head)
        while True:
            writer.write(piece * ((1 << 20) // len(piece)))
            await writer.drain()
            sent.append(1)

    async with wire(answer) as served, provider_at(served.base_url) as provider:
        await failure(provider, BadCompletion, "more for one answer than any answer has")
    assert len(sent) < most, "megabytes, some of them in the buffers of the sockets"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("heap", ["[]", "1", '""', '{"a": 1}'])
async def test_an_answer_of_a_heap_of_values_is_not_parsed(heap: str, streamed: bool) -> None:
    """Two million values in one line would stand everybody's answers for half a second."""
    body = json.dumps({"choices": [{"delta": {"content": "a"}, "logprobs": []}]})
    body = body.replace("[]", f"[{','.join([heap] * 700_000)}]")
    error = await failure_of(f"data: {body}\n\n" if streamed else body)
    assert "more for one answer than any answer has" in str(error)


async def test_an_answer_compressed_wrongly_is_an_error() -> None:
    """Seen behind proxies that name an encoding they did not apply."""
    await failure_of(WHOLE, BadCompletion, "compressed", headers="content-encoding: gzip\r\n")


# --- pictures ------------------------------------------------------------------------------------------------------

CAT = Picture(media_type="image/png", data=b"\x89PNG\r\n\x1a\n")
CAT_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
LOOK = Request(messages=(ChatMessage(role="user", content="Who is this?", pictures=(CAT, CAT)),))
UNSEEN = "[A picture was sent here that this model cannot see.]"
NAMED = f"Who is this?\n{UNSEEN}\n{UNSEEN}"


def shown(served: Wire) -> list[Any]:
    """The content of the last message of each request."""
    return [request["messages"][-1]["content"] for request in served.requests]


async def test_a_model_that_sees_is_shown_the_pictures() -> None:
    """After the words, as the API wants it; other messages stay plain text."""
    wordless = replace(LOOK.messages[0], content="")
    said = ChatMessage(role="assistant", content="Yes?")
    request = Request(messages=(*HELLO.messages, said, wordless, said, LOOK.messages[0]))
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url, sees=True) as provider:
        await provider.complete(request)
    assert [message["content"] for message in served.requests[0]["messages"]] == [
        "Say hello to Ada.", "Yes?", [CAT_PART, CAT_PART], "Yes?",
        [{"type": "text", "text": "Who is this?"}, CAT_PART, CAT_PART],
    ]  # fmt: skip


async def test_a_model_that_does_not_see_is_told_of_pictures() -> None:
    """It would else answer as if there were none."""
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url) as provider:
        await provider.complete(LOOK)
        await provider.complete(Request(messages=(replace(LOOK.messages[0], content="", pictures=(CAT,)),)))
    assert shown(served) == [NAMED, UNSEEN]


async def test_only_a_persons_message_shows_pictures() -> None:
    """Vendors take them nowhere else."""
    message = ChatMessage(role="assistant", content="Look:", pictures=(CAT,))
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url, sees=True) as provider:
        await provider.complete(Request(messages=(message,)))
    assert shown(served) == [f"Look:\n{UNSEEN}"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("400 Bad Request", "Invalid content type. image_url is only supported by certain models."),
        ("400 Bad Request", "this model does not support image input"),
        ("400 Bad Request", "Model does not support images. Please use a model that does."),
        ("400 Bad Request", "Image inputs are not supported by this model."),
        ("400 Bad Request", "messages[0].content must be a string"),
        ("400 Bad Request", "'messages.0' : for 'role:user' ('messages.0.content' : value must be a string)"),
        ("400 Bad Request", "facebook/opt-125m is not a multimodal model None"),
        ("400 Bad Request", "At most 0 image(s) may be provided in one request."),
        ("400 Bad Request", "this model is missing data required for image input"),
        (
            "400 Bad Request",
            "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`",
        ),
        ("404 Not Found", "No endpoints found that support image input"),
        ("415 Unsupported Media Type", "vision is not enabled"),
        ("422 Unprocessable Entity", "image_url: Input should be a valid string"),
        ("500 Internal Server Error", "image input is not supported - hint: you may need to provide the mmproj"),
        ("500 Internal Server Error", 'Unsupported content part type: "image_url"; [{"url": "data:image/png;base64,iV'),
    ],
)
async def test_a_server_that_takes_no_pictures_is_asked_without_them(status: str, message: str) -> None:
    """`sees` was set for a model that does not; the answer still comes, the next call knows, and the log says so."""
    async with (
        wire(refuses_once({"error": {"message": message}}, WHOLE, status)) as served,
        provider_at(served.base_url, sees=True) as provider,
    ):
        with capture_logs() as lines:
            assert (await provider.complete(LOOK)).text == "Hello Ada."
            await provider.complete(LOOK)
    assert shown(served)[1:] == [NAMED, NAMED]
    assert [(line["event"], line["model"]) for line in lines] == [("model.takes_no_pictures", "openai/gpt-4o")]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("400 Bad Request", "You uploaded an unsupported image. Please make sure your image is valid."),
        (
            "400 Bad Request",
            "Your image has to be of one of the following formats, others are not supported: png, jpeg",
        ),
        ("400 Bad Request", "Invalid base64 image_url."),
        ("400 Bad Request", "At most 1 image(s) may be provided in one request."),
        ("400 Bad Request", "Your input image may contain content that is not allowed by our safety system."),
        ("400 Bad Request", "The image was flagged by moderation. If this is wrong, only support can help."),
        ("400 Bad Request", "messages.5.content.1.image.source.base64: image exceeds 5 MB maximum"),
        ("400 Bad Request", "At least one of the image dimensions exceed max allowed size: 8000 pixels"),
        ("400 Bad Request", "Provided image is not valid."),
        ("400 Bad Request", "Unable to process input image. Please retry."),
        ("400 Bad Request", "cannot identify image file <_io.BytesIO object>"),
        ("400 Bad Request", "Failed to download multimodal content"),
        ("400 Bad Request", "Could not fetch the image"),
        ("400 Bad Request", "The content type of the image is unsupported: image/heic"),
        ("400 Bad Request", "Something about an image that nobody has heard before"),
        ("413 Payload Too Large", "Request body too large"),
        ("500 Internal Server Error", "Unsupported image format: failed to decode"),
    ],
)
async def test_one_bad_picture_does_not_blind_the_model(status: str, message: str) -> None:
    async with (
        wire(refuses_once({"error": {"message": message}}, WHOLE, status)) as served,
        provider_at(served.base_url, sees=True) as provider,
    ):
        with capture_logs() as lines:
            assert (await provider.complete(LOOK)).text == "Hello Ada."
            await provider.complete(LOOK)
    assert lines == []
    seen = [{"type": "text", "text": "Who is this?"}, CAT_PART, CAT_PART]
    assert shown(served) == [seen, NAMED, seen]


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        ("404 Not Found", "model gpt-4o not found", ModelRefused),
        ("400 Bad Request", "maximum context length is 8192 tokens, images included", ContextOverflow),
        ("500 Internal Server Error", "image worker crashed", ModelUnavailable),
    ],
)
async def test_a_refusal_that_is_not_about_pictures_stays_one(
    status: str, message: str, kind: type[ModelError]
) -> None:
    """Without the pictures it would be refused just the same, or answered blindly."""
    async with (
        wire(replies({"error": {"message": message}}, status=status)) as served,
        provider_at(served.base_url, sees=True) as provider,
    ):
        assert type(await failure(provider, request=LOOK)) is kind
    assert len(served.requests) == 1


async def test_a_models_name_says_nothing_of_pictures() -> None:
    """A model that is not there yet may be there tomorrow, and see."""
    name = "llama-3.2-vision"
    gone = {"error": {"message": f"model '{name}' not found, try pulling it first"}}
    async with (
        wire(replies(gone, status="404 Not Found")) as served,
        provider_at(served.base_url, model=name, sees=True) as provider,
    ):
        with pytest.raises(ModelRefused, match="does not know this model"):
            await provider.complete(LOOK)
    assert len(served.requests) == 1


async def test_pictures_count_where_the_server_does_not_tell() -> None:
    async with wire(replies(WHOLE)) as served:
        async with provider_at(served.base_url, sees=True) as provider:
            seen = (await provider.complete(LOOK)).usage.input_tokens
        async with provider_at(served.base_url) as provider:
            named = (await provider.complete(LOOK)).usage.input_tokens
    assert seen - named == 1_600


# --- ends from our own side ----------------------------------------------------------------------------------------


async def test_the_callers_deadline_ends_a_call_and_frees_its_connection() -> None:
    """The total time of a turn is bounded outside; nothing of the call may live on."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        if len(served.requests) == 1:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + sse(says("Hel")))
            await hang()
        await replies(WHOLE)(served, writer)

    async with wire(answer) as served, provider_at(served.base_url, connections=1, timeout=2 * SECONDS) as provider:
        with pytest.raises(TimeoutError):
            async with limit():
                await provider.complete(HELLO)
        assert (await provider.complete(HELLO)).text == "Hello Ada."


async def test_a_screen_that_fails_is_not_taken_for_a_failing_model(llmock: LLMock) -> None:
    """The screen may be an HTTP client too; its errors are not the vendor's, and the connection is given back."""
    llmock.reply("one two three").reply("free again")

    async def broken(text: str) -> None:
        raise httpx.ReadTimeout("the chat platform is slow")

    async with provider_at(llmock.base_url(), connections=1) as provider:
        with pytest.raises(httpx.ReadTimeout, match="platform"):
            await provider.complete(HELLO, broken)
        assert (await provider.complete(HELLO)).text == "free again"


async def test_closing_a_provider_leaves_the_shared_client_open(llmock: LLMock) -> None:
    """Several models share one client; whoever made it closes it."""
    llmock.reply("still here")
    async with provider_at(llmock.base_url()) as provider:
        await provider.aclose()
        assert (await provider.complete(HELLO)).text == "still here"


@pytest.mark.parametrize("base_url", ["", "api.openai.com/v1", "ftp://host/v1", "http://", "http://[::1/v1"])
async def test_a_base_url_that_is_no_web_address_is_refused_at_once(base_url: str) -> None:
    """Better at the start than in the first reply."""
    with pytest.raises(ValueError, match="gpt-4o"):
        async with provider_at(base_url):
            pass


@pytest.mark.parametrize("key", ["sk-“quoted”", "sk-one\nsk-two"])
async def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    """Pasted keys bring typographic quotes and line ends; the HTTP library's own error would show them."""
    with pytest.raises(ValueError, match="copy it again") as caught:
        async with provider_at("http://localhost/v1", key=key):
            pass
    assert "sk-" not in str(caught.value)
