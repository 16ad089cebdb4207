"""Failures and nonsense of the model's server: the person gets a word, the message is kept, the lane is free."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.faults import FAULTS, Listener, Suffered, configured, say, suffer
from gateway import app
from gateway.reception.router import Router
from gateway.wording.texts import Texts
from tests.kit import faultserver
from tests.kit.faultserver import WELL, FaultServer, delta, says, sse
from tests.kit.patience import limit
from tests.kit.tables import each_row

#: Seconds of a turn here: many times what an answer takes beside all the others, and the wait for those that hang.
DEADLINE = 15.0
TEXTS = Texts("en")


@pytest.fixture(scope="module")
def suffered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Suffered | BaseException]:
    """Every fault once, all at the same time, since most of it is waiting."""

    async def one(name: str) -> Suffered:
        async with limit():
            return await suffer(tmp_path_factory.mktemp(name), name, deadline=DEADLINE)

    async def together(*names: str) -> dict[str, Suffered | BaseException]:
        results = await asyncio.gather(*(one(name) for name in names), return_exceptions=True)
        return dict(zip(names, results, strict=True))

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NO_PROXY", "*")
        results = asyncio.run(together(*(name for name in FAULTS if not name.startswith(("tls_hang", "huge")))))
        # These are work for both sides, and would hold up the others.
        results |= asyncio.run(together(*(name for name in FAULTS if name.startswith("huge"))))
        with warnings.catch_warnings():
            # httpcore leaves the socket of a cancelled TLS handshake to the garbage collector, which warns.
            warnings.simplefilter("ignore", ResourceWarning)
            results |= asyncio.run(together("tls_hang"))
            gc.collect()
    return results


def of(suffered: dict[str, Suffered | BaseException], name: str) -> Suffered:
    result = suffered[name]
    if isinstance(result, BaseException):
        raise result
    return result


def notices(name: str) -> list[str]:
    """Returns what may be said of a fault: its reason, or the time where no new try ended before the deadline."""
    reasons = [TEXTS(f"error.{code}") for code in FAULTS[name].codes]
    return [*reasons, TEXTS("error.deadline", seconds=f"{DEADLINE:g}")]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_once_and_clearly(suffered: dict[str, Suffered | BaseException], name: str) -> None:
    """Silence is the worst answer, and two notices for one message the second worst."""
    result = of(suffered, name)
    assert len(result.told) == 1
    assert result.told[0].endswith(tuple(notices(name)))  # what came of the answer stands before it


@pytest.mark.parametrize("name", FAULTS)
def test_the_message_is_kept_and_the_lane_is_free_after_a_fault(
    suffered: dict[str, Suffered | BaseException], name: str
) -> None:
    """The next message is answered as soon as the server is well, by a model that sees what went unanswered."""
    result = of(suffered, name)
    assert result.again == (WELL,)
    assert result.kept


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.shown])
def test_words_once_shown_are_not_begun_anew(suffered: dict[str, Suffered | BaseException], name: str) -> None:
    """After a stream has broken off the person reads its beginning and why it ended, never a second beginning."""
    result = of(suffered, name)
    assert result.streamed.startswith(FAULTS[name].shown)
    assert result.streamed.count(faultserver.BEGUN) <= 1
    assert result.asked == 1


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if not fault.shown])
def test_nothing_is_shown_of_an_answer_without_words(suffered: dict[str, Suffered | BaseException], name: str) -> None:
    """Garbage, keepalives and error pages are not the model's words."""
    assert of(suffered, name).streamed.removesuffix(WELL) == ""


@pytest.mark.parametrize("name", [name for name in FAULTS if name.startswith("huge")])
def test_a_huge_body_is_not_read_to_its_end(suffered: dict[str, Suffered | BaseException], name: str) -> None:
    """A hundred megabytes an attempt would fill the memory of a small machine."""
    result = of(suffered, name)
    assert result.read_mb < 100 * result.asked


# --- answers that are HTTP, and nonsense -----------------------------------------------------------------------------


def asks(*fragments: object, finish: str | None = "tool_calls") -> bytes:
    """A streamed answer that calls tools with these fragments."""
    return sse(delta(tool_calls=list(fragments)), delta(finish), "[DONE]")


def fragment(
    arguments: object = '{"query": "tea"}', name: object = "search_memory", **fields: object
) -> dict[str, Any]:
    return {"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments}, **fields}


def raw(arguments: str) -> bytes:
    """A call whose arguments are JSON itself, such as only some writers make."""
    return asks("@").replace(
        b'"@"', b'{"index":0,"id":"c1","function":{"name":"now","arguments":%s}}' % arguments.encode()
    )


ARGUMENTS = {
    "empty": "", "open": "{", "closed": "}", "list": "[]", "list of one": "[1]", "null": "null", "true": "true",
    "number": "5", "text": '"tea"', "half a key": '{"query"', "no value": '{"query": }', "cut": '{"query": "te',
    "single quotes": "{'query': 'tea'}", "comma": '{"query": "tea",}', "comment": '{"query": "tea" // hot\n}',
    "nan": '{"query": NaN}', "infinite": '{"query": 1e999}', "minus infinity": '{"query": -Infinity}',
    "half a character": '{"query": "\\ud83d"}', "nul": '{"query": "\\u0000"}', "raw nul": "\x00",
    "raw newline": '{"query": "a\nb"}', "twice": '{"query": "a"}{"query": "b"}',
    "fenced": '```json\n{"query": "tea"}\n```',
    "encoded twice": json.dumps('{"query": "tea"}'),
    "deep": '{"a":' * 300 + "1" + "}" * 300, "very deep": "[" * 100_000, "long": json.dumps({"query": "x" * 50_000}),
    "long number": '{"query": ' + "9" * 5_000 + "}",
    "mark": '\ufeff{"query": "tea"}',
    "wrong types": '{"query": {"a": [1]}, "limit": "many"}',
    "unknown field": '{"query": "tea", "colour": "green"}',
    "missing field": "{}", "words": "search for tea, please",
}  # fmt: skip
#: Those whose JSON is in order; only the tool refuses them.
FIT = {"wrong types", "unknown field", "missing field"}
NAMES: dict[str, object] = {
    "none": None, "empty name": "", "blank name": " ", "number for a name": 5, "spaces": "search memory",
    "dots": "functions.search_memory", "chinese": "搜索", "endless": "x" * 5_000, "line end": "search_memory\n",
    "nul in it": "search\x00memory", "half a character in it": "search\ud800",
    "arguments in it": 'search_memory({"query": "tea"})',
}  # fmt: skip
IDS: dict[str, object] = {
    "null": None, "blank": " ", "number": 7, "long": "x" * 300, "odd": "call 1; drop", "half": "\ud800",
}  # fmt: skip
SHAPES: dict[str, bytes] = {
    **{f"arguments: {name}": asks(fragment(text)) for name, text in ARGUMENTS.items()},
    **{f"name: {name}": asks(fragment(name=value)) for name, value in NAMES.items()},
    **{f"id: {name}": asks(fragment(id=value)) for name, value in IDS.items()},
    "id: one for two": asks(fragment(index=0), fragment(index=1)),
    "id: missing": asks({"index": 0, "function": {"name": "now", "arguments": "{}"}}),
    "arguments: an object": raw('{"query": "tea"}'),
    "arguments: a list": raw('["tea"]'),
    "arguments: a number": raw("5"),
    "arguments: nan bare": raw('{"query": NaN}'),
    "arguments: missing": asks({"index": 0, "id": "c1", "function": {"name": "now"}}),
    "function: null": asks({"index": 0, "id": "c1", "function": None}),
    "function: a text": asks({"index": 0, "id": "c1", "function": "now"}),
    "function: missing": asks({"index": 0, "id": "c1"}),
    "index: a text": asks(fragment(index="0")),
    "index: negative": asks(fragment(index=-1)),
    "index: enormous": asks(fragment(index=10**30)),
    "index: a list": asks(fragment(index=[0])),
    "calls: an object": sse(delta(tool_calls={"index": 0}), delta("tool_calls"), "[DONE]"),
    "calls: a text": sse(delta(tool_calls="now()"), delta("tool_calls"), "[DONE]"),
    "calls: no objects": asks(None, 5, "now", []),
    "calls: promised only": sse(delta("tool_calls"), "[DONE]"),
    "calls: two hundred": asks(*(fragment("{}", "now", index=n, id=f"c{n}") for n in range(200))),
    "calls: of old": sse(delta(function_call={"name": "now", "arguments": "{}"}), delta("function_call"), "[DONE]"),
    "calls: cut off": sse(delta(tool_calls=[fragment('{"query": "te')])),
    "calls: cut off by length": asks(fragment('{"query": "te'), finish="length"),
    "calls: arguments first": asks(fragment('{"query":', None), fragment('"tea"}')),
    "calls: under other indexes": asks(
        fragment("", index=0), {"index": 1, "function": {"arguments": '{"query": "tea"}'}}
    ),
    "calls: of other spellings": asks(
        fragment("{}", "default_api:now"), fragment("{}", "now<|channel|>commentary", id="c2")
    ),
    "calls: again as a whole": sse(
        delta(tool_calls=[fragment()]), {"choices": [{"message": {"tool_calls": [fragment()]}}]}, "[DONE]"
    ),
    "content: again as a whole": sse(
        delta(content="Tea"), {"choices": [{"message": {"content": "Tea."}, "finish_reason": "stop"}]}, "[DONE]"
    ),
    "content: a call in marks": says(
        '<｜DSML｜function_calls><｜DSML｜invoke name="now"></｜DSML｜invoke></｜DSML｜function_calls>'
    ),
    "content: a call without marks": says("commentary to=functions.now json{}"),
    "choices: null": sse({"choices": None}, "[DONE]"),
    "choices: an object": sse({"choices": {}}, "[DONE]"),
    "choices: no objects": sse({"choices": [None]}, "[DONE]"),
    "delta: null": sse({"choices": [{"delta": None}]}, "[DONE]"),
    "delta: a list": sse({"choices": [{"delta": ["hi"]}]}, "[DONE]"),
    "content: a number": sse(delta(content=5), delta("stop"), "[DONE]"),
    "content: an object": sse(delta(content={"text": "hi"}), delta("stop"), "[DONE]"),
    "content: half a character": says("Tea \ud83d for you"),
    "content: nul": says("Tea\x00 for you"),
    "content: only nul": says("\x00"),
    "chunk: null": sse("null", "[DONE]"),
    "chunk: a list": sse("[1]", "[DONE]"),
    "chunk: a text": sse('"hi"', "[DONE]"),
    "chunk: very deep": sse("[" * 100_000, "[DONE]"),
    "chunk: no utf-8": sse(b'{"choices": [{"delta": {"content": "caf\xe9"}}]}', "[DONE]"),
    "usage: enormous": sse(delta("stop", content="Tea."), {"usage": {"prompt_tokens": 10**30, "completion_tokens": 1}}),
    "usage: text": sse(delta("stop", content="Tea."), {"usage": {"prompt_tokens": "9", "completion_tokens": "1"}}),
    "model: half a character": sse({**delta("stop", content="Tea."), "model": "gpt\ud800\x00"}),
    "model: endless": sse({**delta("stop", content="Tea."), "model": "x" * 100_000}),
    "finish: a number": sse({"choices": [{"delta": {"content": "Tea."}, "finish_reason": 1}]}, "[DONE]"),
    "finish: half a character": sse(delta("\ud800", content="Tea."), "[DONE]"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """The outcome of a shape: what was told in its turn and in the next one."""

    told: list[str]
    again: list[str]


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Met | str]:
    """Every shape once, each said to a person of its own, all in one process; and every request that was sent."""

    async def one(router: Router, listener: Listener, n: int) -> Met:
        person = f"person-{n}-"
        await say(router, person, f"{person} asks for tea", 2 * n)
        told = list(listener.sent[person])
        await say(router, person, f"and again {n}", 2 * n + 1)
        return Met(told=told, again=listener.sent[person][len(told) :])

    async def everything() -> dict[str, Met | str]:
        listener = Listener()
        async with talking(tmp_path_factory.mktemp("shapes"), listener) as (server, router), limit():
            server.bodies = {f"person-{n}-": body for n, body in enumerate(SHAPES.values())}
            results = await asyncio.gather(*(one(router, listener, n) for n in range(len(SHAPES))))
            assert not server.bodies, "every shape was sent"
            refused = [refusal for request in server.requests if (refusal := refusal_of(request)) is not None]
        return {**dict(zip(SHAPES, results, strict=True)), "refused": "\n".join(refused)}

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NO_PROXY", "*")
        return asyncio.run(everything())


@asynccontextmanager
async def talking(folder: Path, listener: Listener) -> AsyncIterator[tuple[FaultServer, Router]]:
    async with (
        faultserver.serving() as server,
        app.running(configured(folder, server.base_url, 30), {listener.id: listener}) as router,
    ):
        yield server, router


def refusal_of(request: Any) -> str | None:
    """Why the strictest vendor would refuse this request; None when it would not.

    The rules of OpenAI's API reference and of the errors its API and Anthropic's give.
    """
    waiting: list[str] = []
    used: set[str] = set()
    try:
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        return f"not writable: {error}"
    for message in request["messages"]:
        if "\x00" in (message["content"] or ""):
            return "NUL in a text"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"a result of no call: {message['tool_call_id']}"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"calls without a result: {waiting}"
        if not message["content"] and not message.get("tool_calls"):
            return "an empty message"
        for call in message.get("tool_calls", ()):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            # An odd id goes back to the server that gave it, and to no other.
            if not re.fullmatch(r"[!-~]+", call["id"]) or call["id"] in used:
                return f"a bad or repeated id: {call['id'][:60]}"
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
                return f"a bad name: {name[:60]}"
            try:
                if not isinstance(strict(arguments), dict):
                    return f"arguments that are no object: {arguments[:60]}"
            except (ValueError, RecursionError):
                return f"arguments that are no JSON: {arguments[:60]}"
            if len(arguments) > 20_000:
                return f"{len(arguments)} characters of arguments"
            used.add(call["id"])
            waiting.append(call["id"])
    return f"calls without a result: {waiting}" if waiting else None


def strict(text: str) -> object:
    """JSON as other languages' parsers read it: no NaN, no infinity, at most 100 levels, whole characters."""
    depth = deepest = 0
    for letter in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += (letter in "{[") - (letter in "}]")
        deepest = max(deepest, depth)
    if deepest > 100:
        raise ValueError("too deep")
    parsed: object = json.loads(text)
    if re.search(r"(?<!\\)(\\\\)*\\u0000", text):
        raise ValueError("a NUL")
    json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    return parsed


def of_shape(met: dict[str, Met | str], name: str) -> Met:
    result = met[name]
    assert isinstance(result, Met)
    return result


@pytest.mark.parametrize("name", SHAPES)
def test_a_malformed_answer_ends_in_words(met: dict[str, Met | str], name: str) -> None:
    """Told to the model, tried again, or told to the person: never an internal error, never silence."""
    (told,) = of_shape(met, name).told
    assert WELL in told or "Tea" in told or told == TEXTS("error.bad_completion")
    assert "\x00" not in told
    told.encode()


@pytest.mark.parametrize("name", SHAPES)
def test_the_next_turn_works_after_a_malformed_answer(met: dict[str, Met | str], name: str) -> None:
    """One bad call stored in history makes every later request fail in bots that keep it as it came."""
    assert of_shape(met, name).again == [WELL]


def test_no_request_holds_what_a_vendor_refuses(met: dict[str, Met | str]) -> None:
    """The rules of the strictest vendors, checked on everything that was sent in all those turns."""
    assert met["refused"] == ""


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "x"}, "no call"),
        ({"role": "assistant", "content": None}, "empty"),
        ({"role": "assistant", "content": "\ud800"}, "not writable"),
        ({"role": "assistant", "content": "\x00"}, "NUL"),
    ],
)
def test_the_strict_vendor_of_these_tests_refuses_what_it_should(message: dict[str, Any], words: str) -> None:
    """A check that lets everything pass would prove nothing."""
    assert words in str(refusal_of({"messages": [message]}))


@each_row("name", [name for name in ARGUMENTS if name not in FIT])
def test_the_strict_vendor_refuses_malformed_arguments_as_they_came(name: str) -> None:
    call = {"id": "c1", "function": {"name": "now", "arguments": ARGUMENTS[name]}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    assert refusal_of({"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}, result]}) is not None
