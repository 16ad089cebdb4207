"""Anthropic's provider over real HTTP: against a mock of its API, and against raw sockets for what that can't do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from llmock.pytest_plugin import LLMock

from agents.budget import count_tokens
from agents.llm import (
    ChatMessage,
    Completion,
    ContextOverflow,
    ModelAuth,
    ModelRateLimited,
    ModelUnavailable,
    Picture,
    Request,
    ToolCall,
    ToolSpec,
    Usage,
)
from agents.providers.adapters import connect
from agents.spec import ModelSpec
from tests.kit.patience import SECONDS
from tests.kit.wire import replies, wire

KEY = "sk-ant-0123456789abcdef"
HELLO = Request(messages=(ChatMessage(role="user", content="Say hello to Ada."),))
WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@asynccontextmanager
async def provider_at(base_url: str, **options: Any) -> AsyncIterator[Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        entry = {
            "provider": "anthropic", "model": "claude-sonnet-4-5", "base_url": base_url, "key": KEY, "timeout": SECONDS,
        }  # fmt: skip
        yield connect(client, ModelSpec.model_validate(entry | options), count_tokens=count_tokens)


@pytest.fixture
async def mocked(llmock: LLMock) -> AsyncIterator[Any]:
    async with provider_at(llmock.env()["ANTHROPIC_BASE_URL"].rstrip("/") + "/v1") as provider:
        yield provider


def stream(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


START = {
    "type": "message_start",
    "message": {
        "model": "claude-sonnet-4-5-20250929",
        "usage": {
            "input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1,
        },
    },
}  # fmt: skip
STOP = {"type": "message_stop"}


def text(words: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": words}}


def end(reason: str = "end_turn") -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}


WHOLE = stream(START, text("Hello "), text("Ada."), end(), STOP)


async def answer_of(body: bytes | dict[str, Any], request: Request = HELLO, **options: Any) -> Completion:
    async with wire(replies(body)) as served, provider_at(served.base_url, **options) as provider:
        completion: Completion = await provider.complete(request)
        return completion


async def test_a_plain_answer_comes_whole_with_its_usage(llmock: LLMock, mocked: Any) -> None:
    llmock.reply("Hello Ada.")
    shown: list[str] = []

    async def show(piece: str) -> None:
        shown.append(piece)

    completion = await mocked.complete(HELLO, show)
    assert completion.text == "".join(shown) == "Hello Ada."
    assert (completion.provider, completion.finish) == ("anthropic", "stop")
    assert not completion.usage.estimated and completion.usage.input_tokens > 0


async def test_a_tool_call_of_the_mock_is_understood(llmock: LLMock, mocked: Any) -> None:
    llmock.call_tool("weather", {"city": "Oslo"})
    completion = await mocked.complete(Request(messages=HELLO.messages, tools=(WEATHER,)))
    (call,) = completion.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})


async def test_the_mocks_limits_are_known(llmock: LLMock, mocked: Any) -> None:
    llmock.rate_limit(retry_after=3)
    with pytest.raises(ModelRateLimited) as caught:
        await mocked.complete(HELLO)
    assert caught.value.retry_after == 3


async def test_usage_counts_the_cache_in() -> None:
    """Anthropic names cached tokens apart from the others."""
    completion = await answer_of(WHOLE)
    assert completion.usage == Usage(input_tokens=105, output_tokens=7, cached_tokens=90)
    assert completion.model == "claude-sonnet-4-5-20250929"


async def test_a_conversation_is_written_as_the_api_wants_it() -> None:
    """Tool results are the person's, roles take turns, and what stays the same is marked for the cache."""
    asked = ToolCall(id="c1", name="weather", arguments='{"city":"Oslo"}')
    request = Request(
        messages=(
            ChatMessage(role="system", content="Be brief."),
            ChatMessage(role="user", content="Hi"),
            ChatMessage(role="user", content="Weather?", pictures=(Picture(media_type="image/png", data=b"x"),)),
            ChatMessage(role="assistant", content="", tool_calls=(asked,)),
            ChatMessage(role="tool", content="", tool_call_id="c1"),
        ),
        tools=(WEATHER,),
        temperature=1.5,
    )
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url, sees=True) as provider:
        await provider.complete(request)
    cached = {"cache_control": {"type": "ephemeral"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}
    assert served.requests[0] == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "stream": True,
        "temperature": 1.0,
        "system": [{"type": "text", "text": "Be brief.", **cached}],
        "tools": [
            {"name": "weather", "description": "The weather in a city", "input_schema": WEATHER.parameters, **cached}
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi\n\nWeather?"}, picture]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}, **cached}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "(empty)"}]},
        ],
    }
    head = served.heads[0].lower()
    assert served.heads[0].startswith("POST /v1/messages ")
    assert f"x-api-key: {KEY}" in head and "anthropic-version: 2023-06-01" in head and "authorization" not in head


async def test_thoughts_are_paid_for_and_not_shown() -> None:
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}
    body = stream(START, thought, text("Yes.", 1), end(), STOP)
    async with wire(replies(body)) as served, provider_at(served.base_url, thinking=2000, temperature=0.5) as provider:
        assert (await provider.complete(HELLO)).text == "Yes."
    assert served.requests[0]["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert served.requests[0]["max_tokens"] == 6096 and "temperature" not in served.requests[0]


async def test_an_answer_that_is_sent_again_as_a_whole_is_shown_once() -> None:
    """Servers that imitate the API end a stream with all of it."""
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}}
    message = {"type": "message", "stop_reason": "tool_use", "content": [{"type": "text", "text": "I look."}, use]}
    begin = {"type": "content_block_start", "index": 1, "content_block": {**use, "input": {}}}
    json_delta = {"type": "input_json_delta", "partial_json": '{"city": "Oslo"}'}
    piece = {"type": "content_block_delta", "index": 1, "delta": json_delta}
    request = Request(messages=HELLO.messages, tools=(WEATHER,))
    streamed = [START, text("I "), text("look."), begin, piece]
    for events in ([*streamed, end("tool_use"), message, STOP], [*streamed, message], [START, message, STOP]):
        completion = await answer_of(stream(*events), request)
        assert completion.text == "I look."
        assert completion.tool_calls == (ToolCall(id="t1", name="weather", arguments='{"city": "Oslo"}'),)


async def test_arguments_that_come_with_the_beginning_of_a_call_are_taken_if_none_follow() -> None:
    """Servers that imitate the API have them at once."""
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}}
    begin = {"type": "content_block_start", "index": 0, "content_block": use}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"city": "Rome"}'}}
    request = Request(messages=HELLO.messages, tools=(WEATHER,))
    for events, city in (([begin], "Oslo"), ([begin, delta], "Rome")):
        completion = await answer_of(stream(START, *events, end("tool_use"), STOP), request)
        assert json.loads(completion.tool_calls[0].arguments) == {"city": city}


async def test_an_answer_at_its_longest_length_is_known_as_cut() -> None:
    assert (await answer_of(stream(START, text("And"), end("max_tokens"), STOP))).finish == "length"


async def test_an_answer_that_is_not_streamed_is_read() -> None:
    body = {
        "type": "message", "model": "claude", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "I look."},
         {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}}],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }  # fmt: skip
    completion = await answer_of(body, Request(messages=HELLO.messages, tools=(WEATHER,)))
    assert (completion.text, completion.finish) == ("I look.", "tool_calls")
    assert completion.tool_calls == (ToolCall(id="t1", name="weather", arguments='{"city": "Oslo"}'),)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (
            "400 Bad Request",
            {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
            ContextOverflow,
        ),
        (
            "400 Bad Request",
            {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            },
            ContextOverflow,
        ),
        ("401 Unauthorized", {"type": "authentication_error", "message": "invalid x-api-key"}, ModelAuth),
        ("529 Overloaded", {"type": "overloaded_error", "message": "Overloaded"}, ModelUnavailable),
    ],
)
async def test_refusals_are_understood(status: str, error: dict[str, Any], kind: type[Exception]) -> None:
    body = json.dumps({"type": "error", "error": error})
    async with wire(replies(body, status=status)) as served, provider_at(served.base_url) as provider:
        with pytest.raises(kind) as caught:
            await provider.complete(HELLO)
    assert KEY not in str(caught.value)


async def test_an_overload_in_the_middle_of_a_stream_is_an_error() -> None:
    """The status line was sent long before."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ModelUnavailable):
        await answer_of(stream(START, text("Hel"), error))


async def test_calls_in_the_conversation_are_told_where_no_tool_is_offered() -> None:
    """The API refuses them without their tools; the last step of a turn offers none."""
    asked = ToolCall(id="c1", name="weather", arguments="{}")
    request = Request(
        messages=(
            *HELLO.messages,
            ChatMessage(role="assistant", content="", tool_calls=(asked,)),
            ChatMessage(role="tool", content="rain", tool_call_id="c1"),
        ),
        tools=(),
    )
    async with wire(replies(WHOLE)) as served, provider_at(served.base_url) as provider:
        await provider.complete(request)
    (message,) = served.requests[0]["messages"]
    assert message["content"][0]["text"] == "Say hello to Ada.\n\n(Result of weather: rain)"
