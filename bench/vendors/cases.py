"""The cases: what goes on at which vendor, and what counts as right.

Invariants: a case holds for its vendor by the pages that `vendors.yaml` names, or by a report of a recorded answer.
Half of each kind is kept apart by the hash of the name, for those who mend the bot by the other half.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from bench.vendors import rules
from bench.vendors.play import Case, Scene, Spoil, Step, Turn, asks, fails, refuses, says, sends, tries
from bench.vendors.rules import Rule, Seat, size_of, text_of
from bench.vendors.table import HOSTED, LOCAL, NEWEST, VENDORS
from bench.vendors.wire import JSON, Refusal, event

ALL: Final = (*HOSTED, *LOCAL)
#: Servers that want something back with a call, and others beside them.
GIVING: Final = ("openai", "anthropic", "gemini", "openrouter", "mistral", "deepseek", "kimi", "ollama")
#: Anthropic's models think when they are told to.
THINKING: Final[Mapping[str, Any]] = {"thinking": 2000}
ONCE_MORE: Final = Turn(say="And what time is it now", steps=(asks("now"), says()))
PLAIN: Final = Turn(say="Say a word", steps=(says(),))
BICYCLE: Final = "What is my bicycle called? Look it up"
_ROWS: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text("utf-8"))
_LONG: Final = " ".join(f"Chapter {n} tells of a river, a mill and {n} geese that went away." for n in range(430))


def case(kind: str, vendor: str, *turns: Turn, name: str = "", options: Any = None, **more: Any) -> Case:
    given = {**(THINKING if vendor == "anthropic" else {}), **(options or {})}
    named = f"{kind}: {vendor}{name and f', {name}'}"
    return Case(kind=kind, name=named, vendors=(vendor,), turns=turns, options=given, **more)


def _now(*steps: Step, **more: Any) -> Turn:
    return Turn(steps=steps or (asks("now"), says()), **more)


def _told(step: Step, cause: str, **more: Any) -> Turn:
    return Turn(steps=(step,), want="told", cause=cause, **more)


def _cause(vendor: str, fault: str) -> str:
    """Returns what the log has to name: the longest run of plain words in the vendor's message."""
    given = VENDORS[vendor].faults[fault]
    text = str((given.get("metadata") or {}).get("raw") or given["message"])
    runs = re.findall(r"[A-Za-z][A-Za-z' ,]{3,}[A-Za-z]", re.sub(r"\{\w+\}", "·", text))
    longest: str = max(runs, key=len)
    return re.escape(longest[:24])


# Tools there and back -------------------------------------------------------------------------------------------------


def inits() -> Iterator[Case]:
    for vendor in ALL:
        yield case("remora init", vendor, Turn(steps=(tries(),)))
    for vendor, fault in (
        ("openai", "key"), ("anthropic", "key"), ("gemini", "key"), ("deepseek", "quota"), ("mistral", "model"),
        ("lmstudio", "model"), ("vllm", "model"), ("kimi", "quota"),
    ):  # fmt: skip
        turn = _told(refuses(fault), "", has="(?i)key" if fault == "key" else _cause(vendor, fault))
        yield case("remora init", vendor, turn, name=fault, right_key=fault != "key")

    # It has to say what the model can't do, as nobody would notice later why memory isn't used.
    for vendor, rule in (
        ("ollama", rules.refuses_fault("tools", lambda body: bool(body.get("tools")))),
        ("vllm", rules.refuses_fault("tools", lambda body: bool(body.get("tools")))),
        ("openai", lambda body, seat: seat.vendor.refuse(400, "Role 'tool' is not supported.")
         if any(one["role"] == "tool" for one in body["messages"]) else None),
    ):  # fmt: skip
        turn = Turn(steps=(tries(),), rules=(rule,), want="either", has="(?i)tool")
        yield case("remora init", vendor, turn, name="no tools")


def tools() -> Iterator[Case]:
    look_up = Turn(say=BICYCLE, steps=(asks("search_memory"), says()))
    at_last = Turn(say="How much do you know?", steps=(asks("memory_stats"), asks("now"), says()))
    for vendor in ALL:
        yield case("tool there and back", vendor, _now())
        # A relay that knows no streams sends the answer whole although a stream was asked for.
        yield case("tool unstreamed", vendor, _now(asks("now", whole=True), says(whole=True)), ONCE_MORE)
        yield case("parallel calls", vendor, _now(asks("now", "memory_stats"), says()), ONCE_MORE)
        yield case("three turns", vendor, _now(), look_up, at_last)
        yield case("words before a call", vendor, _now(asks("now", text="Let me see. "), says()), ONCE_MORE)
    withheld = _now(asks("now", thought=""), says())
    yield case("tool there and back", "anthropic", withheld, ONCE_MORE, name="thoughts withheld")
    for vendor in GIVING:
        yield case("restart between turns", vendor, _now(), _now(say="What time is it now, after all", restart=True))


def switches() -> Iterator[Case]:
    for first, second in (
        ("openai", "deepseek"), ("deepseek", "gemini"), ("gemini", "mistral"), ("mistral", "anthropic"),
        ("anthropic", "kimi"), ("kimi", "anthropic"), ("kimi", "groq"), ("openrouter", "openai"), ("ollama", "mistral"),
        ("groq", "openrouter"), ("llamacpp", "deepseek"), ("deepseek", "groq"), ("vllm", "kimi"),
        ("anthropic", "gemini"),
    ):  # fmt: skip
        both = _now(asks("now", "memory_stats"), says(), by=first)
        other = _now(say="What time is it, other one", chooses=second, by=second)
        again = _now(asks("memory_stats"), says(), say="How much do you know?", chooses=first, by=first)
        name = f"switch of models: {first} and {second}"
        yield Case(kind="switch of models", name=name, vendors=(first, second), turns=(both, other, again))
    # The first server falls out, and the next one takes over with the first one's calls in the history.
    for first, second in (("deepseek", "mistral"), ("gemini", "anthropic"), ("groq", "kimi"), ("openai", "openrouter")):
        turns = (_now(by=first), _now(rules=(_away(first),), most=12, by=second))
        yield Case(kind="failover", name=f"failover: {first} to {second}", vendors=(first, second), turns=turns)


def _away(vendor: str) -> Rule:
    """This vendor's server is out of order; the next one's is not."""
    return lambda body, seat: seat.vendor.fault("busy") if seat.vendor.name == vendor else None


# What is refused ------------------------------------------------------------------------------------------------------

_ALTERNATE: Final = "Conversation roles must alternate user/assistant/user/assistant/..."
_NAMED: Final[Mapping[str, Rule]] = {
    "effort_none": rules.effort_none,
    "no_empty_object": rules.no_empty_object,
    "alternating": rules.alternating(400, _ALTERNATE),
    "no_system": rules.alternating(500, f"Jinja Exception: {_ALTERNATE}", system=False),
}


def fields() -> Iterator[Case]:
    for row in _ROWS["fields"]:
        extra = (*map(rules.listed, [row["refuses"]] if "refuses" in row else []), *map(_NAMED.get, [row.get("rule")]))
        held = tuple(rule for rule in extra if rule is not None)
        steps = (says(),) if row.get("rule") == "no_system" else (asks("now"), says())
        again = Turn(say="And now", steps=steps, rules=held, most=4)
        yield case("field refused", row["vendor"], Turn(steps=steps, rules=held), again, name=row["name"],
                   options=row.get("options"), instead=NEWEST if row.get("newest") else ())  # fmt: skip


def abilities() -> Iterator[Case]:
    for vendor in ("ollama", "vllm", "llamacpp", "openrouter"):
        rule = rules.refuses_fault("tools", lambda body: bool(body.get("tools")))
        turns = (Turn(say="Say a word", steps=(says(),), rules=(rule,)), Turn(steps=(says(),), rules=(rule,), most=2))
        yield case("tools refused", vendor, *turns)
    for vendor in ("openrouter", "groq", "mistral", "deepseek", "ollama", "llamacpp", "vllm", "lmstudio"):
        rule = rules.refuses_fault("picture", rules.has_picture)
        seen = Turn(say="What is on this picture?", picture=True, steps=(says(),), rules=(rule,))
        unseen = Turn(say="And now without one", steps=(says(),), rules=(rule,))
        yield case("picture refused", vendor, seen, unseen, options={"sees": True})
    for row in _ROWS["json_mode"]:
        told = Turn(
            say=f"The zither in our attic went out of tune. {_LONG}", steps=(says("I note {secret}."),), learns="zither"
        )
        yield case("JSON mode refused", row["vendor"], told, rules=(rules.refuses_json(row["message"]),))


# Too long -------------------------------------------------------------------------------------------------------------


def _most(refusal: Callable[[Seat, int, int], Refusal], share: float = 0.6) -> Rule:
    """The server takes this share of the first request's size."""
    first: dict[int, int] = {}

    def rule(body: JSON, seat: Seat) -> Refusal | None:
        asked = size_of(body)
        most = int(first.setdefault(id(seat), asked) * share)
        return refusal(seat, most, asked) if asked > most else None

    return rule


def _in_words(message: str) -> Callable[[Seat, int, int], Refusal]:
    return lambda seat, most, asked: seat.vendor.refuse(400, message.format(most=most, asked=asked))


def _silent(most: int) -> Step:
    """LM Studio answers what is too long with nothing."""
    well = says()

    async def step(scene: Scene) -> Any:
        if size_of(scene.body) <= most:
            return await well(scene)
        return await scene.send(scene.reply("", thinks=False))

    return step


def _wedged(body: JSON, seat: Seat) -> Refusal | None:
    """The conversation itself is what is refused, and the words don't say so."""
    old = any("Chapter 1 " in text_of(one.get("content")) for one in body["messages"])
    return seat.vendor.refuse(400, "Bad request.") if old and len(body["messages"]) > 3 else None


def _cuts(most: int) -> Step:
    """Ollama cuts a prompt without a word, and counts what is left."""

    async def step(scene: Scene) -> Any:
        return await scene.send(scene.reply(f"The answer is {scene.run.secret}.", read=min(most, size_of(scene.body))))

    return step


def overflows() -> Iterator[Case]:
    parts = [Turn(say=f"Keep this in mind, part {part}: {_LONG}", steps=(says("I note {secret}."),)) for part in (1, 2)]
    for vendor in ALL:
        if "overflow" in VENDORS[vendor].faults:
            rule = _most(lambda seat, most, asked: seat.vendor.fault("overflow", limit=most, asked=asked))
            yield case("too long", vendor, *parts, _now(rules=(rule,)), PLAIN)
    cut = [Turn(say=f"Part {part}: {_LONG}", steps=(_cuts(4096),)) for part in (1, 2, 3)]
    last = Turn(say="And what else", steps=(_cuts(4096),), logs=r"(?i)cut|truncat|overflow|context|4,?096")
    yield case("too long", "ollama", *cut, last, name="cut without a word")
    # A report of 2026: what is too long is answered with a stream without a word.
    silent = [
        Turn(say=f"Try {n}", steps=(_silent(9_000),), want="either", cause="(?i)empty|no .*answer") for n in (1, 2)
    ]
    last = Turn(say="Try 3", steps=(_silent(9_000),))
    yield case("too long", "lmstudio", *parts, *silent, last, name="a stream without a word")
    for row in _ROWS["too_long"]:
        rule = _most(_in_words(row["message"]))
        yield case("too long in other words", row["vendor"], *parts, _now(rules=(rule,)), PLAIN)
    for vendor in ("openai", "mistral", "lmstudio"):
        tried = [
            Turn(say=f"Try {n}", steps=(says(),), rules=(_wedged,), want="either", cause="Bad request") for n in (1, 2)
        ]
        yield case(
            "wedged conversation", vendor, parts[0], *tried, Turn(say="Try 3", steps=(says(),), rules=(_wedged,))
        )


# Failures that are told -----------------------------------------------------------------------------------------------

#: A model that is not there, in any words.
_UNKNOWN: Final = r'(?i)model[^\\"]*(not|n.t|unknown|invalid|exist)|(not|n.t|unknown|invalid|no)[^\\"]*model'
_HTML: Final = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


def failures() -> Iterator[Case]:
    for vendor in HOSTED:
        after = VENDORS[vendor].faults["limit"].get("headers", {}).get("retry-after")
        yield case("rate limit", vendor, _now(asks("now"), refuses("limit"), says()), name="between steps")
        yield case("rate limit", vendor, _now(refuses("limit"), asks("now"), says(), waits=0.9 if after else 0.0))
        yield case("wrong key", vendor, _told(says(), _cause(vendor, "key"), has="(?i)key", most=2), right_key=False)
        if "quota" in VENDORS[vendor].faults:
            yield case("quota used up", vendor, _told(refuses("quota"), _cause(vendor, "quota"), most=2), PLAIN)
    for vendor in (*HOSTED, "ollama", "vllm", "lmstudio"):
        yield case("unknown model", vendor, _told(refuses("model"), _UNKNOWN, most=3), PLAIN)
    for vendor in (*HOSTED, "ollama", "llamacpp", "koboldcpp", "sglang"):
        yield case("busy for a moment", vendor, _now(refuses("busy"), asks("now"), refuses("busy"), says(), most=6))
    for vendor in ("openai", "anthropic", "deepseek", "vllm"):
        yield case("a proxy's page", vendor, _told(fails(502, _HTML), "502", lacks="<html"), PLAIN)
    yield case("out of memory", "ollama", _told(refuses("memory"), "requires more system memory"), PLAIN)
    for row in _ROWS["long_limits"]:
        limited = _told(fails(429, row["body"], {"retry-after": row["after"]}), "(?i)rate limit", most=2)
        yield case("limit for long", row["vendor"], limited, PLAIN)
    for row in _ROWS["bodies"]:
        yield case("error in a body with 200", row["vendor"], _told(fails(200, row["body"]), row["cause"]), PLAIN)
    for row in _ROWS["relays"]:
        yield case("a relay wraps the cause", row["vendor"], _told(fails(400, row["body"]), "flavour"), PLAIN)


# Streams that go wrong ------------------------------------------------------------------------------------------------


def _cut(after: int) -> Spoil:
    return lambda events: [*events[:after], None]


def _chunk(delta: JSON, finish: str | None = None) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _start(vendor: str, text: str = "") -> bytes:
    """Returns the beginning of a stream."""
    if vendor != "anthropic":
        return _chunk({"role": "assistant", "content": text})
    message: JSON = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1},
    }  # fmt: skip
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    sent: list[JSON] = [{"type": "message_start", "message": message}, *([block, delta] if text else [])]
    return b"".join(event(one, str(one["type"])) for one in sent)


def _end(vendor: str, finish: str) -> bytes:
    if vendor != "anthropic":
        return _chunk({}, finish) + event("[DONE]")
    delta = {"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": 2}}
    return event(delta, "message_delta") + event({"type": "message_stop"}, "message_stop")


def streams() -> Iterator[Case]:
    for vendor in ("openai", "anthropic", "gemini", "deepseek", "ollama", "vllm"):
        late = _now(asks("now"), says(spoil=_cut(6)), says(), want="either", cause="(?i)stream|broke|cut|closed|end")
        yield case("stream broken off", vendor, late, PLAIN)
        early = _now(asks("now", spoil=_cut(1)), asks("now"), says())
        yield case("stream broken off", vendor, early, PLAIN, name="before a word")
    for row in _ROWS["errors"]:
        vendor, failing = row["vendor"], event(row["event"], row.get("named", ""))
        half = _told(sends(_start(vendor, "Half a sentence that "), failing), row["cause"])
        yield case("error in a stream", vendor, half, PLAIN)
        first = _now(sends(_start(vendor), failing), asks("now"), says(), want="either", cause=row["cause"])
        yield case("error in a stream", vendor, first, PLAIN, name="at its beginning")
    for vendor in ("openai", "gemini", "deepseek", "lmstudio", "groq", "anthropic"):
        nothing = sends(_start(vendor), _end(vendor, "end_turn" if vendor == "anthropic" else "stop"))
        yield case("empty answer", vendor, _told(nothing, "(?i)empty|no answer|nothing|blank"), PLAIN)
        once = _now(asks("now"), nothing, says(), want="either", cause="(?i)empty")
        yield case("empty answer", vendor, once, PLAIN, name="once")
    for vendor in ("deepseek", "ollama"):
        only = _told(says("", thought="Pondering without a result"), "(?i)empty|thought|no answer", lacks="Pondering")
        yield case("only thoughts", vendor, only, PLAIN)


# Shapes ---------------------------------------------------------------------------------------------------------------


def _repeats(events: list[bytes]) -> list[bytes]:
    """The last chunk repeats the whole message beside its delta, as some relays do."""
    choices = [json.loads(one[6:])["choices"] for one in events if one.startswith(b"data: {")]
    text = "".join(str(choice[0]["delta"].get("content") or "") for choice in choices if choice)
    at = max(n for n, one in enumerate(events) if b'"finish_reason": "' in one)
    chunk = json.loads(events[at][6:])
    chunk["choices"][0]["message"] = {"role": "assistant", "content": text}
    return [*events[:at], event(chunk), *events[at + 1 :]]


def _with(before: str, after: str) -> Callable[[list[bytes]], list[bytes]]:
    """Every event with a pattern replaced."""
    return lambda events: [re.sub(before.encode(), after.encode(), one) for one in events]


def _shredded(events: list[bytes]) -> list[bytes]:
    """Packets end in the middle of lines and characters."""
    whole = b"".join(events)
    return [whole[start : start + 11] for start in range(0, len(whole), 11)]


_SPOILS: Final[Sequence[tuple[str, str, Callable[[list[bytes]], list[bytes]]]]] = (
    ("openai", "the last chunk repeats the message", _repeats),
    ("qwen", "the last chunk repeats the message", _repeats),
    ("groq", "a mark before the first line", lambda events: [b"\xef\xbb\xbf" + events[0], *events[1:]]),
    ("mistral", "lines end in CRLF", lambda events: [one.replace(b"\n", b"\r\n") for one in events]),
    ("deepseek", "comments between the chunks", lambda events: [one + b": keep-alive\n\n" for one in events]),
    ("vllm", "no space behind data:", _with("^data: ", "data:")),
    ("anthropic", "packets end anywhere", _shredded),
    ("gemini", "packets end anywhere", _shredded),
    ("openrouter", "the role in every chunk", _with('"delta": {"content"', '"delta": {"role": "assistant", "content"')),
    ("llamacpp", "no closing event", lambda events: events[:-1]),
    ("sglang", "usage null in every chunk", _with('"created"', '"usage": null, "created"')),
    ("kimi", "no choices in a chunk", lambda events: [event({"id": "1", "choices": []}), *events]),
    ("anthropic", "events that nobody knows", lambda events: [events[0], event({"type": "new"}, "new"), *events[1:]]),
)
_CALLS: Final[Sequence[tuple[str, str, str, str]]] = (
    ("openai", "id under index 0, arguments under 1", r'"index": 0, "function": {"a', '"index": 1, "function": {"a'),
    ("groq", "functions. before the name", '"now"', '"functions.now"'),
    ("gemini", "default_api: before the name", '"now"', '"default_api:now"'),
    ("openrouter", "a channel behind the name", '"now"', '"now<|channel|>commentary"'),
    ("vllm", "finished with stop", '"finish_reason": "tool_calls"', '"finish_reason": "stop"'),
    ("qwen", "the id empty in later pieces", '{"index": 0, "function"', '{"index": 0, "id": "", "function"'),
    ("koboldcpp", "no id", '"id": "call_[^"]*"', '"id": ""'),
    ("llamacpp", "no id", '"id": "[0-9a-f]{32}", "type": "f', '"type": "f'),
    ("sglang", "the name null in later pieces", '"function": {"arguments"', '"function": {"name": null, "arguments"'),
)


def shapes() -> Iterator[Case]:
    for vendor, name, spoil in _SPOILS:
        calling = asks("now", spoil=None if spoil is _repeats else spoil)
        yield case("shape of a stream", vendor, _now(calling, says(spoil=spoil)), ONCE_MORE, name=name)
    for vendor in (name for name in ALL if VENDORS[name].shape.thought or name == "anthropic"):
        whole = Turn(say="And what do you say whole?", steps=(says(whole=True),))
        yield case("thoughts apart", vendor, Turn(steps=(says(),)), whole)
    for row in _ROWS["arguments"]:
        turn = Turn(say=BICYCLE, steps=(asks(row["tool"], arguments=row["arguments"]), says()))
        yield case("arguments as they come", row["vendor"], turn, ONCE_MORE, name=row["name"])
    for vendor, name, before, after in _CALLS:
        turn = _now(asks("now", spoil=_with(before, after)), says())
        yield case("calls as they come", vendor, turn, ONCE_MORE, name=name)
    yield case("calls as they come", "groq", _now(refuses("calls"), asks("now"), says()), name="failed_generation")
    for_good = _told(refuses("calls"), "tool_use_failed|call a function")
    yield case("calls as they come", "groq", for_good, PLAIN, name="failed_generation for good")
    for row in _ROWS["calls_in_text"]:
        yield case("calls in the text", row["vendor"], _now(_writes(row["text"]), says()), PLAIN)
    for row in _ROWS["thoughts_in_text"]:
        turn = Turn(steps=(says(row["text"], thinks=False),), lacks="ponder")
        yield case("thoughts in the text", row["vendor"], turn)


def _writes(text: str) -> Step:
    """The model writes a call of `now` into its text."""

    async def step(scene: Scene) -> Any:
        scene.run.awaiting.append(("now", r"20\d\d"))
        return await scene.send(scene.reply(text, thinks=False))

    return step


def endings() -> Iterator[Case]:
    for vendor in ("openai", "anthropic", "gemini", "mistral", "deepseek", "kimi", "ollama", "vllm"):
        cut = says("The answer is {secret}, and furthermore it has to be said that", finish="length")
        yield case("cut by length", vendor, Turn(steps=(cut,), has="(?i)cut|length|go on|continue"), PLAIN)
    for vendor in ("openai", "openrouter", "deepseek", "kimi", "qwen"):
        yield case("content filter", vendor, _told(refuses("filter"), _cause(vendor, "filter"), most=3), PLAIN)
    for vendor, finish in (("openai", "content_filter"), ("gemini", "content_filter"), ("deepseek", "content_filter"),
                           ("anthropic", "refusal")):  # fmt: skip
        stopped = _told(sends(_start(vendor), _end(vendor, finish)), "(?i)filter|refus")
        yield case("content filter", vendor, stopped, PLAIN, name="in the answer")
    refusing = sends(_chunk({"role": "assistant", "content": "", "refusal": ""}), _chunk({"refusal": "I can't help."}),
                     _end("openai", "stop"))  # fmt: skip
    yield case(
        "content filter", "openai", _told(refusing, "", has="can't help|declin|refus"), PLAIN, name="a refusal apart"
    )
    for vendor in ("openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "kimi", "ollama"):
        yield case("tokens used", vendor, _now(usage=True))


def _everything() -> list[Case]:
    parts = (inits, tools, switches, fields, abilities, overflows, failures, streams, shapes, endings)
    made = [one for part in parts for one in part()]
    names = [one.name for one in made]
    if doubled := sorted(name for name in set(names) if names.count(name) > 1):
        raise ValueError(f"two cases have the name {doubled[0]!r}")
    return made


CASES: Final = _everything()


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _halves() -> dict[str, Literal["tune", "kept"]]:
    halves: dict[str, Literal["tune", "kept"]] = {}
    for kind in {one.kind for one in CASES}:
        names = sorted((one.name for one in CASES if one.kind == kind), key=_hash)
        halves |= {name: "tune" if at % 2 else "kept" for at, name in enumerate(names)}
    return halves


#: To which half of its kind each case belongs, by the hash of its name.
SPLIT: Final = _halves()
