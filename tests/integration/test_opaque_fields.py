"""Fields that a server wants back with its tool calls, over real HTTP and through a whole turn."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.budget import count_tokens
from agents.llm import ChatMessage, Completion, Request, ToolCall, ToolSpec
from agents.providers.adapters import connect
from agents.providers.quirks import Learned
from agents.spec import ModelSpec
from channels.base import Inbound
from gateway import app
from gateway.cli import offer
from gateway.config.loading import Config, load
from tests.kit.bench import Screen
from tests.kit.fakes import Clock
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.patience import SECONDS
from tests.kit.served import SELDOM
from tests.kit.wire import Wire, replies, wire

NOW = ToolSpec(name="now", description="The time", parameters={"type": "object", "properties": {}})
ASKED = Request(messages=(ChatMessage(role="user", content="What time is it?"),), tools=(NOW,))
DONE = {"choices": [{"message": {"role": "assistant", "content": "Noon."}, "finish_reason": "stop"}]}


async def ask(
    served: Wire, request: Request, *, model: str = "m", learned: Learned | None = None, **options: Any
) -> Completion:
    spec = {"provider": "openai", "model": model, "base_url": served.base_url, "timeout": SECONDS}
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        made = ModelSpec.model_validate(spec | options)
        return await connect(client, made, count_tokens=count_tokens, learned=learned).complete(request)


def answered(completion: Completion, request: Request = ASKED) -> Request:
    """Returns the request that gives a completion and the results of its calls back."""
    asked = ChatMessage(
        role="assistant", content=completion.text, tool_calls=completion.tool_calls, opaque=completion.opaque
    )
    results = [ChatMessage(role="tool", content="12:00", tool_call_id=call.id) for call in completion.tool_calls]
    return replace(request, messages=(*request.messages, asked, *results))


def sse(*chunks: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(call_id: str = "abc123DEF", index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"index": index, "id": call_id, "type": "function", "function": {"name": "now", "arguments": "{}"}, **fields}


SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
#: Streams of vendors, and the fields of the message and of its call that they want back.
STREAMS: dict[str, tuple[Sequence[dict[str, Any]], dict[str, Any], dict[str, Any]]] = {
    "thoughts in pieces (DeepSeek, Kimi, Qwen)": (
        [delta(role="assistant", content=None, reasoning_content="The clock "),
         delta(content=None, reasoning_content="knows."), delta(tool_calls=[call()]),
         delta("tool_calls", content="", reasoning_content=None)],
        {"reasoning_content": "The clock knows."}, {},
    ),
    "a thought that is empty": (
        [delta(reasoning_content="", content=""), delta("tool_calls", tool_calls=[call()])],
        {"reasoning_content": ""},
        {},
    ),
    "a signature with the call (Gemini)": (
        [delta("tool_calls", role="assistant", tool_calls=[call(extra_content=SIGNED)])],
        {},
        {"extra_content": SIGNED},
    ),
    "details in pieces beside the plain thought (OpenRouter)": (
        [
            delta(reasoning="The ", reasoning_details=[{"type": "reasoning.text", "text": "The ", "index": 0}]),
            delta(reasoning="clock", reasoning_details=[{"type": "reasoning.text", "text": "clock", "index": 0}]),
            delta(reasoning_details=[{"type": "reasoning.text", "signature": "s1", "index": 0}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x1", "index": 1}]),
            delta("tool_calls", tool_calls=[call()]),
        ],
        {
            "reasoning_details": [
                {"type": "reasoning.text", "text": "The clock", "index": 0, "signature": "s1"},
                {"type": "reasoning.encrypted", "data": "x1", "index": 1},
            ]
        },
        {},
    ),
    "an id that others would not take (Kimi)": (
        [delta("tool_calls", tool_calls=[call("functions.now:0")])],
        {},
        {"id": "functions.now:0"},
    ),
    "a signature inside the id (a relay)": (
        [delta("tool_calls", tool_calls=[call("call_1__thought__" + "QUJD" * 200)])],
        {},
        {"id": "call_1__thought__" + "QUJD" * 200},
    ),
    "a thought under another name (a relay)": (
        [delta(reasoning_opaque="b3BhcXVl", content=None), delta("tool_calls", tool_calls=[call()])],
        {"reasoning_opaque": "b3BhcXVl"},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
async def test_what_a_server_wants_back_goes_back_to_it_alone(name: str) -> None:
    """It is the key to a thought that the server keeps: nobody else can read it, and some refuse what they don't know."""
    chunks, message, fields = STREAMS[name]
    async with wire(replies(sse(*chunks), DONE)) as served:
        request = answered(await ask(served, ASKED))
        await ask(served, request)
        await ask(served, request, model="other")
    _, own, other = [asked["messages"] for asked in served.requests]
    assert {key: own[1].get(key) for key in message} == message
    assert {key: own[1]["tool_calls"][0].get(key) for key in fields} == fields
    assert own[2]["tool_call_id"] == own[1]["tool_calls"][0]["id"]
    assert set(other[1]) == {"role", "content", "tool_calls"}
    assert set(other[1]["tool_calls"][0]) == {"id", "type", "function"}
    assert other[2]["tool_call_id"] == other[1]["tool_calls"][0]["id"]
    assert len(other[1]["tool_calls"][0]["id"]) <= 40


@pytest.mark.parametrize("name", STREAMS)
async def test_an_answer_that_is_not_streamed_keeps_the_same_fields(name: str) -> None:
    chunks, message, fields = STREAMS[name]
    whole = {"role": "assistant", "content": None, **message, "tool_calls": [{**call(), **fields}]}
    answer = {"choices": [{"message": whole, "finish_reason": "tool_calls"}]}
    async with wire(replies(answer)) as plain, wire(replies(sse(*chunks))) as streamed:
        first, second = await ask(plain, ASKED), await ask(streamed, ASKED)
    assert first.tool_calls == second.tool_calls
    assert (first.opaque is None) == (second.opaque is None)
    if first.opaque is not None and second.opaque is not None:
        assert (first.opaque.message, first.opaque.calls) == (second.opaque.message, second.opaque.calls)


async def test_a_whole_completion_survives_its_storage() -> None:
    """After a crash the stored steps are sent back as they came."""
    for chunks, _, _ in STREAMS.values():
        async with wire(replies(sse(*chunks))) as served:
            completion = await ask(served, ASKED)
        assert Completion.from_json(completion.to_json()) == completion


FOREIGN = answered(
    Completion(text="", model="x", provider="y", tool_calls=(ToolCall(id="toolu_01A", name="now", arguments="{}"),))
)
#: Refusals of calls that another model made: the words, and what is sent after them.
REFUSALS = {
    "The reasoning_content in the thinking mode must be passed back to the API.": "told",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1": "told",
    "Function call is missing a thought_signature in functionCall parts.": "told",
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.": "told",
    "Tool call id was toolu_01A but must be a-z, A-Z, 0-9, with a length of 9.": "short",
}


@pytest.mark.parametrize("words", REFUSALS)
async def test_a_call_of_another_model_is_refused_once_and_then_never_again(words: str) -> None:
    """A conversation goes on when its model is changed."""

    async def strict(served: Wire, writer: asyncio.StreamWriter) -> None:
        ids = [one["id"] for message in served.requests[-1]["messages"] for one in message.get("tool_calls", ())]
        if any(not re.fullmatch("[A-Za-z0-9]{9}", one) or REFUSALS[words] == "told" for one in ids):
            refusal = {"error": {"message": words, "code": "invalid_request_error"}}
            await replies(refusal, status="400 Bad Request")(served, writer)
        else:
            await replies(DONE)(served, writer)

    learned: Learned = {}
    async with wire(strict) as served:
        for _ in range(2):
            assert (await ask(served, FOREIGN, learned=learned)).text == "Noon."
    assert len(served.requests) == 3
    last = served.requests[-1]["messages"]
    if REFUSALS[words] == "short":
        assert last[2]["tool_call_id"] == last[1]["tool_calls"][0]["id"]
    else:
        assert "tool_calls" not in json.dumps(last) and "Result of now: 12:00" in last[-1]["content"]


async def test_a_server_that_wants_a_thought_with_each_answer_gets_an_empty_one() -> None:
    async def strict(served: Wire, writer: asyncio.StreamWriter) -> None:
        bare = [one for one in served.requests[-1]["messages"] if one["role"] == "assistant" and len(one) == 2]
        refusal = {"error": {"message": "Missing `reasoning_content` field in the assistant message at index 1"}}
        await replies(refusal if bare else DONE, status="400 Bad Request" if bare else "200 OK")(served, writer)

    said = (*ASKED.messages, ChatMessage(role="assistant", content="Noon."), ChatMessage(role="user", content="Sure?"))
    async with wire(strict) as served:
        assert (await ask(served, Request(messages=said))).text == "Noon."
    assert not served.requests[-1]["messages"][1]["reasoning_content"].strip()


@pytest.mark.parametrize(
    ("words", "lasts"),
    [
        ("property 'reasoning_content' is unsupported", True),
        ("messages.1.reasoning_content: Extra inputs are not permitted", True),
        ("Invalid `signature` in `thinking` block", False),
        ("The encrypted content gAAA could not be verified", False),
    ],
)
async def test_a_server_that_refuses_its_own_fields_gets_none(words: str, lasts: bool) -> None:
    """Signatures grow stale when a vendor changes its keys; the next ones are good again."""
    chunks = [delta(reasoning_content="Hm"), delta("tool_calls", tool_calls=[call()])]

    async def strict(served: Wire, writer: asyncio.StreamWriter) -> None:
        messages = served.requests[-1]["messages"]
        if len(messages) == 1:
            await replies(sse(*chunks))(served, writer)
        elif "reasoning_content" in messages[1]:
            await replies({"error": {"message": words}}, status="400 Bad Request")(served, writer)
        else:
            await replies(DONE)(served, writer)

    learned: Learned = {}
    async with wire(strict) as served:
        request = answered(await ask(served, ASKED, learned=learned))
        assert (await ask(served, request, learned=learned)).text == "Noon."
    assert any("opaque" in quirks for quirks in learned.values()) == lasts


def block(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    return {"type": f"content_block_{kind}", "index": index, **fields}


async def test_anthropics_thoughts_go_back_before_the_call_and_thinking_stays_on() -> None:
    events = [
        {"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 9, "output_tokens": 1}}},
        block("start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        block("delta", 0, delta={"type": "thinking_delta", "thinking": "The "}),
        block("delta", 0, delta={"type": "thinking_delta", "thinking": "clock."}),
        block("delta", 0, delta={"type": "signature_delta", "signature": "c2ln"}),
        block("start", 1, content_block={"type": "redacted_thinking", "data": "cmVk"}),
        block("start", 2, content_block={"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}),
        block("delta", 2, delta={"type": "input_json_delta", "partial_json": "{}"}),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    done = {"type": "message", "content": [{"type": "text", "text": "Noon."}], "stop_reason": "end_turn"}
    options: dict[str, Any] = {"provider": "anthropic", "thinking": 2000, "key": "k"}
    async with wire(replies(stream, done)) as served:
        request = answered(await ask(served, ASKED, **options))
        assert (await ask(served, request, **options)).text == "Noon."
        await ask(served, request, **options | {"model": "older"})
    _, own, other = served.requests
    assert own["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "The clock.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "cmVk"},
        {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}, "cache_control": {"type": "ephemeral"}},
    ]
    assert own["thinking"]["type"] == "enabled"
    assert [part["type"] for part in other["messages"][1]["content"]] == ["tool_use"] and "thinking" not in other


class Thinking:
    """A model that thinks before each call, and refuses a request without all thoughts that belong to its calls."""

    def __init__(self) -> None:
        self.refused = 0
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, asked: Asked) -> Answer:
        messages = asked.body["messages"]
        self.requests.append(asked.body)
        bare = [one for one in messages if one.get("tool_calls") and not one.get("reasoning_content")]
        if bare and asked.body["model"] == "thinker":
            self.refused += 1
            error = {"message": "The reasoning_content in the thinking mode must be passed back to the API."}
            return Answer(status=400, body={"error": {**error, "code": "invalid_request_error"}})
        if messages[-1]["role"] == "tool":
            message: dict[str, Any] = {"role": "assistant", "content": f"Look: {messages[-1]['content']}"}
        else:
            made = {"id": f"functions.search_memory:{len(messages)}", "type": "function"}
            made["function"] = {"name": "search_memory", "arguments": '{"query": "boat"}'}  # type: ignore[assignment]
            message = {"role": "assistant", "content": "", "tool_calls": [made]}
            if asked.body["model"] == "thinker":
                message["reasoning_content"] = "I had better look it up."
        return Answer(body={"choices": [{"message": message, "finish_reason": "stop"}]})


async def test_a_trial_of_a_model_makes_a_call_there_and_back() -> None:
    """`remora init` finds out what would fail with the first memory that is searched."""

    async def forgetful(asked: Asked) -> Answer:
        if asked.body["messages"][-1]["role"] == "tool":
            return Answer(status=400, body={"error": {"message": "No results of calls here."}})
        return await Thinking()(asked)

    outcomes = []
    for server in (Thinking(), forgetful):
        async with serving(server) as address:
            model = {"provider": "openai", "model": "thinker", "base_url": f"{address}/v1"}
            outcomes.append(await offer.tried(ModelSpec.model_validate(model)))
    assert outcomes[0] == offer.Trial(calls=True)
    assert "No results of calls here." in outcomes[1].trouble


def configured(folder: Path, address: str, model: str) -> Config:
    (folder / "agents").mkdir(exist_ok=True)
    (folder / "agents" / "assistant.yaml").write_text(
        f"name: assistant\nmodels: [{{provider: openai, model: {model}, base_url: '{address}/v1'}}]\n"
        "tools: [search_memory]\nmemory: {enabled: false}\n"
    )
    (folder / "config.yaml").write_text("data_dir: data\nembedding: {provider: none}\n")
    return load(folder / "config.yaml", {}, folder, pace=SELDOM)


async def told(config: Config, clock: Clock, *numbers: int) -> list[str]:
    """Returns the answers to questions in a run of its own."""
    screen = Screen()
    async with app.running(config, {screen.id: screen}, now=clock) as router:
        for number in numbers:
            said = Inbound(
                channel=screen.id, platform="console", bot_id="local", update_key=str(number), chat="ada",
                chat_kind="private", author_id="ada", author_name="Ada", message_id=str(number),
                text=f"Question {number}: where is my boat?", sent_at=clock(),
            )  # fmt: skip
            await router.on_inbound(said)
            await router.settled(said.place)
    return screen.texts


async def test_a_thinking_model_uses_tools_over_turns_restarts_and_changes_of_model(
    tmp_path: Path, clock: Clock
) -> None:
    """Calls of the other model are told in words, its own go back whole, and no thought is ever shown."""
    server = Thinking()
    async with serving(server) as address:
        texts = await told(configured(tmp_path, address, "thinker"), clock, 1, 2)
        texts += await told(configured(tmp_path, address, "thinker"), clock, 3)
        assert server.refused == 0
        texts += await told(configured(tmp_path, address, "plain"), clock, 4, 5)
        assert "reasoning_content" not in json.dumps(server.requests[-1])
        texts += await told(configured(tmp_path, address, "thinker"), clock, 6, 7)
    assert server.refused == 1
    assert len(texts) == 7 and all(text.startswith("Look:") for text in texts), texts
    assert "look it up" not in "".join(texts)
    own = [one for one in server.requests[-1]["messages"] if one.get("tool_calls")]
    assert {one["reasoning_content"] for one in own} == {"I had better look it up."}
    assert all(one["tool_calls"][0]["id"].startswith("functions.") for one in own)
