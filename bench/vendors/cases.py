"""The cases: what goes on at which vendor, and what counts as right.

Invariants: a case holds for its vendor by the pages that `vendors.yaml` names, or by a report of a recorded answer.
Half of each kind is kept apart by the hash of the name, for those who mend the bot by the other half.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml
from aiohttp import web

from bench.vendors import rules
from bench.vendors.play import Case, Scene, Spoil, Step, Turn, asks, fails, refuses, says, tries
from bench.vendors.rules import Rule, Seat, size_of, text_of
from bench.vendors.table import HOSTED, LOCAL, NEWEST, VENDORS
from bench.vendors.wire import JSON, Refusal, event

ALL: Final = (*HOSTED, *LOCAL)
#: Servers that want something back with a call, and others beside them.
GIVING: Final = "openai anthropic gemini openrouter mistral deepseek kimi ollama"
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


def _each(kind: str, vendors: str, *turns: Turn, **more: Any) -> Iterator[Case]:
    yield from (case(kind, vendor, *turns, **more) for vendor in vendors.split())


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


def inits() -> Iterator[Case]:
    yield from _each("remora init", " ".join(ALL), Turn(steps=(tries,)))
    for vendor, fault in _ROWS["inits"]:
        turn = _told(refuses(fault), "", has="(?i)key" if fault == "key" else _cause(vendor, fault))
        yield case("remora init", vendor, turn, name=fault, right_key=fault != "key")
    # It has to say what the model can't do, as nobody would notice later why memory isn't used.
    for vendor, rule in (("ollama", rules.no_tools), ("vllm", rules.no_tools), ("openai", rules.no_tool_role)):
        turn = Turn(steps=(tries,), rules=(rule,), want="either", has="(?i)tool")
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
    yield from _each("restart between turns", GIVING, _now(), _now(say="What time is it now, after all", restart=True))


def switches() -> Iterator[Case]:
    for first, second in _ROWS["switches"]:
        both = _now(asks("now", "memory_stats"), says(), by=first)
        other = _now(say="What time is it, other one", chooses=second, by=second)
        again = _now(asks("memory_stats"), says(), say="How much do you know?", chooses=first, by=first)
        name = f"switch of models: {first} and {second}"
        yield Case(kind="switch of models", name=name, vendors=(first, second), turns=(both, other, again))
    # The first server falls out, and the next one takes over with the first one's calls in the history.
    for first, second in _ROWS["failovers"]:
        turns = (_now(by=first), _now(rules=(_away(first),), most=12, by=second))
        yield Case(kind="failover", name=f"failover: {first} to {second}", vendors=(first, second), turns=turns)


def _away(vendor: str) -> Rule:
    """This vendor's server is out of order; the next one's is not."""
    return lambda body, seat: [seat.vendor.fault("busy")] if seat.vendor.name == vendor else []


_ALTERNATE: Final = "Conversation roles must alternate user/assistant/user/assistant/..."
_NAMED: Final[Mapping[str, Rule]] = {
    "effort_none": rules.effort_none,
    "no_empty_object": rules.no_empty_object,
    "alternating": partial(rules.alternating, status=400, message=_ALTERNATE),
    "no_system": partial(rules.alternating, status=500, message=f"Jinja Exception: {_ALTERNATE}", system=False),
}


def fields() -> Iterator[Case]:
    for row in _ROWS["fields"]:
        extra = (
            *(partial(rules.listed, row=row[name]) for name in ["refuses"] if name in row),
            *map(_NAMED.get, [row.get("rule")]),
        )
        held = tuple(rule for rule in extra if rule is not None)
        steps = (says(),) if row.get("rule") == "no_system" else (asks("now"), says())
        again = Turn(say="And now", steps=steps, rules=held, most=4)
        yield case("field refused", row["vendor"], Turn(steps=steps, rules=held), again, name=row["name"],
                   options=row.get("options"), instead=NEWEST if row.get("newest") else ())  # fmt: skip


def abilities() -> Iterator[Case]:
    turns = (
        Turn(say="Say a word", steps=(says(),), rules=(rules.no_tools,)),
        _now(says(), rules=(rules.no_tools,), most=2),
    )
    yield from _each("tools refused", "ollama vllm llamacpp openrouter", *turns)
    seen = _now(says(), say="What is on this picture?", picture=True, rules=(rules.no_pictures,))
    unseen = _now(says(), say="And now without one", rules=(rules.no_pictures,))
    blind = "openrouter groq mistral deepseek ollama llamacpp vllm lmstudio"
    yield from _each("picture refused", blind, seen, unseen, options={"sees": True})
    for row in _ROWS["json_mode"]:
        told = _now(says("I note {secret}."), say=f"The zither in our attic went out of tune. {_LONG}", learns="zither")
        yield case("JSON mode refused", row["vendor"], told, rules=(partial(rules.no_json, message=row["message"]),))


def _most(refusal: Callable[[Seat, int, int], Refusal], share: float = 0.6) -> Rule:
    """The server takes this share of the first request's size."""
    first: dict[int, int] = {}

    def rule(body: JSON, seat: Seat) -> Iterator[Refusal]:
        asked = size_of(body)
        most = int(first.setdefault(id(seat), asked) * share)
        if asked > most:
            yield refusal(seat, most, asked)

    return rule


def _in_words(message: str) -> Rule:
    return _most(lambda seat, most, asked: seat.no(message.format(most=most, asked=asked)))


_OVERFLOW: Final = _most(lambda seat, most, asked: seat.vendor.fault("overflow", limit=most, asked=asked))


def _silent(scene: Scene) -> Awaitable[web.StreamResponse]:
    """LM Studio answers what is too long with nothing."""
    return says()(scene) if size_of(scene.body) <= 9_000 else scene.send(scene.reply("", thinks=False))


def _wedged(body: JSON, seat: Seat) -> Iterator[Refusal]:
    """The conversation itself is what is refused, and the words don't say so."""
    if len(body["messages"]) > 3 and any("Chapter 1 " in text_of(each.get("content")) for each in body["messages"]):
        yield seat.no("Bad request.")


def _cuts(scene: Scene) -> Awaitable[web.StreamResponse]:
    """Ollama cuts a prompt without a word, and counts what is left."""
    return scene.send(scene.reply(f"The answer is {scene.run.secret}.", read=min(4096, size_of(scene.body))))


def overflows() -> Iterator[Case]:
    parts = [_now(says("I note {secret}."), say=f"Keep this in mind, part {part}: {_LONG}") for part in (1, 2)]
    telling = " ".join(vendor for vendor in ALL if "overflow" in VENDORS[vendor].faults)
    yield from _each("too long", telling, *parts, _now(rules=(_OVERFLOW,)), PLAIN)
    cut = [_now(_cuts, say=f"Part {part}: {_LONG}") for part in (1, 2, 3)]
    last = _now(_cuts, say="And what else", logs=r"(?i)cut|truncat|overflow|context|4,?096")
    yield case("too long", "ollama", *cut, last, name="cut without a word")
    # A report of 2026: what is too long is answered with a stream without a word.
    silent = [_now(_silent, say=f"Try {n}", want="either", cause="(?i)empty|no .*answer") for n in (1, 2)]
    yield case("too long", "lmstudio", *parts, *silent, _now(_silent, say="Try 3"), name="a stream without a word")
    for row in _ROWS["too_long"]:
        turns = (*parts, _now(rules=(_in_words(row["message"]),)), PLAIN)
        yield case("too long in other words", row["vendor"], *turns)
    wedged: dict[str, Any] = {"rules": (_wedged,), "cause": "Bad request"}
    tried = [_now(says(), say=f"Try {n}", want="answer" if n == 3 else "either", **wedged) for n in (1, 2, 3)]
    yield from _each("wedged conversation", "openai mistral lmstudio", parts[0], *tried)


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
    hosted, busy = " ".join(HOSTED), _now(refuses("busy"), asks("now"), refuses("busy"), says(), most=6)
    unknown = _told(refuses("model"), _UNKNOWN, most=3)
    yield from _each("unknown model", f"{hosted} ollama vllm lmstudio", unknown, PLAIN)
    yield from _each("busy for a moment", f"{hosted} ollama llamacpp koboldcpp sglang", busy)
    page = _told(fails(502, _HTML), "502", lacks="<html")
    yield from _each("a proxy's page", "openai anthropic deepseek vllm", page, PLAIN)
    yield case("out of memory", "ollama", _told(refuses("memory"), "requires more system memory"), PLAIN)
    for row in _ROWS["long_limits"]:
        limited = _told(fails(429, row["body"], {"retry-after": row["after"]}), "(?i)rate limit", most=2)
        yield case("limit for long", row["vendor"], limited, PLAIN)
    for kind, status in (("error in a body with 200", 200), ("a relay wraps the cause", 400)):
        for row in _ROWS[kind]:
            told = _told(fails(status, row["body"]), row.get("cause", "flavour"))
            yield case(kind, row["vendor"], told, PLAIN)


def _cut(after: int) -> Spoil:
    return lambda events: [*events[:after], None]


def _failing(failure: bytes) -> Spoil:
    """A failure stands where the answer would end."""
    end = re.compile(rb'"finish_reason": "|"content_block_stop"|"message_delta"')

    def spoil(events: list[bytes]) -> list[bytes]:
        return [*events[: next(at for at, each in enumerate(events) if end.search(each))], failure]

    return spoil


def streams() -> Iterator[Case]:
    broken = "openai anthropic gemini deepseek ollama vllm"
    late = _now(asks("now"), says(spoil=_cut(6)), says(), want="either", cause="(?i)stream|broke|cut|closed|end")
    yield from _each("stream broken off", broken, late, PLAIN)
    early = _now(asks("now", spoil=_cut(1)), asks("now"), says())
    yield from _each("stream broken off", broken, early, PLAIN, name="before a word")
    for row in _ROWS["errors"]:
        spoil: Any = {"thinks": False, "spoil": _failing(event(row["event"], row.get("named", "")))}
        half = _told(says("Half a sentence that ", **spoil), row["cause"])
        yield case("error in a stream", row["vendor"], half, PLAIN)
        first = _now(says("", **spoil), asks("now"), says(), want="either", cause=row["cause"])
        yield case("error in a stream", row["vendor"], first, PLAIN, name="at its beginning")
    silent, nothing = "openai gemini deepseek lmstudio groq anthropic", says("", thinks=False)
    yield from _each("empty answer", silent, _told(nothing, "(?i)empty|no answer|nothing|blank"), PLAIN)
    once = _now(asks("now"), nothing, says(), want="either", cause="(?i)empty")
    yield from _each("empty answer", silent, once, PLAIN, name="once")
    only = _told(says("", thought="Pondering without a result"), "(?i)empty|thought|no answer", lacks="Pondering")
    yield from _each("only thoughts", "deepseek ollama", only, PLAIN)


def _repeats(events: list[bytes]) -> list[bytes]:
    """The last chunk repeats the whole message beside its delta, as some relays do."""
    choices = [json.loads(one[6:])["choices"] for one in events if one.startswith(b"data: {")]
    text = "".join(str(choice[0]["delta"].get("content") or "") for choice in choices if choice)
    at = max(n for n, one in enumerate(events) if b'"finish_reason": "' in one)
    chunk = json.loads(events[at][6:])
    chunk["choices"][0]["message"] = {"role": "assistant", "content": text}
    return [*events[:at], event(chunk), *events[at + 1 :]]


def _with(before: str, after: str) -> Callable[[list[bytes]], list[bytes]]:
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


def shapes() -> Iterator[Case]:
    for vendor, name, spoil in _SPOILS:
        calling = asks("now", spoil=None if spoil is _repeats else spoil)
        yield case("shape of a stream", vendor, _now(calling, says(spoil=spoil)), ONCE_MORE, name=name)
    thinking = " ".join(name for name in ALL if VENDORS[name].shape.thought or name == "anthropic")
    whole = _now(says(whole=True), say="And what do you say whole?")
    yield from _each("thoughts apart", thinking, _now(says()), whole)
    for row in _ROWS["arguments"]:
        turn = Turn(say=BICYCLE, steps=(asks(row["tool"], arguments=row["arguments"]), says()))
        yield case("arguments as they come", row["vendor"], turn, ONCE_MORE, name=row["name"])
    for row in _ROWS["calls"]:
        turn = _now(asks("now", spoil=_with(row["before"], row["after"])), says())
        yield case("calls as they come", row["vendor"], turn, ONCE_MORE, name=row["name"])
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
    cut = says("The answer is {secret}, and furthermore it has to be said that", finish="length")
    turn = _now(cut, has="(?i)cut|length|go on|continue")
    yield from _each("cut by length", "openai anthropic gemini mistral deepseek kimi ollama vllm", turn, PLAIN)
    for vendor in ("openai", "openrouter", "deepseek", "kimi", "qwen"):
        yield case("content filter", vendor, _told(refuses("filter"), _cause(vendor, "filter"), most=3), PLAIN)
    stopped = _told(says("", finish="content_filter", thinks=False), "(?i)filter|refus")
    yield from _each("content filter", "openai gemini deepseek anthropic", stopped, PLAIN, name="in the answer")
    refusing = says("I can't help.", thinks=False, spoil=_with('"content"', '"refusal"'))
    apart = _told(refusing, "", has="can't help|declin|refus")
    yield case("content filter", "openai", apart, PLAIN, name="a refusal apart")
    counted = "openai anthropic gemini groq mistral deepseek kimi ollama"
    yield from _each("tokens used", counted, _now(usage=True))


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


#: To which half of its kind each case belongs, by the hash of its name.
SPLIT: Final[Mapping[str, str]] = {
    name: "tune" if at % 2 else "kept"
    for kind in {each.kind for each in CASES}
    for at, name in enumerate(sorted((each.name for each in CASES if each.kind == kind), key=_hash))
}
