"""The loop of one turn: ask the model, run the tools it asks for, ask again, until it answers.

Invariants: each request is made to fit what the model can read. One that was refused for what it may hold is made with
less, at most three times, and never after a word was shown: so nothing in a conversation stops it for good. Each
completion is kept before its tools run. Stored completions are replayed instead of being paid for again. A turn makes
as many model calls as its spec allows; the last of them, and the one after its cost is spent, is offered no tools, so a
turn always ends with words. The traffic holds no call that a vendor would refuse to read back. What a tool that is
not ours returns is marked as data.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import structlog

from agents import tools
from agents.budget import Gauge, size
from agents.calls import arguments_in, tool_named
from agents.llm import (
    BadCompletion,
    ChatMessage,
    Completion,
    ContextOverflow,
    ModelError,
    OnText,
    Opaque,
    Provider,
    Request,
    Screen,
    ToolCall,
    ToolSpec,
)
from agents.prompt import outside, unmarked
from agents.providers.roles import without_tools
from agents.spec import TurnSpec
from agents.tools import Tool

log = structlog.get_logger(__name__)


#: The part that a request is made without: the "calls" of earlier turns, whose results are told in words, or all that
#: was said and remembered "before" this turn.
Spared: TypeAlias = Literal["", "calls", "before"]


class Prompted(Protocol):
    """Makes the request of a step: one that fits, with its answer, into so many tokens. `bare` leaves out the past."""

    def __call__(
        self, room: int, traffic: Sequence[ChatMessage], tools: Sequence[ToolSpec], *, bare: bool = False
    ) -> Request: ...


#: The call with the same arguments that is refused; from then on the model is offered no tools until it has answered.
_MOST_REPEATED = 3
_REPEATED = "You have asked for this before, so it is not done again. Answer the person now.\n"
#: Calls of one step that are run; a model that asks for more has lost its way.
_MOST_CALLS = 16
_TOO_MANY = f"Error: at most {_MOST_CALLS} calls at once. This one was not made."
#: The most times that a request is made with less after it was refused.
_LESS = 3
#: The factor by which the room of a conversation that was refused grows with each answer.
_WIDER = 1.05
#: Separates a model's text before its tool calls from its text after them.
_BREAK = "\n\n"
#: A NUL as JSON escapes it, after an even number of backslashes that escape each other.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
#: A text that only its server can read.
_SIGNATURE = re.compile(r"[A-Za-z0-9+/=_.-]{16,}")
#: The id of a memory or message, as our own tools name it.
_OWN_ID = re.compile(r"[a-z]_[a-z0-9]{1,18}")
#: The characters of a text that is masked at once; it takes half a millisecond, and a thread a fifth of one.
_SHORT = 400
#: Longest arguments of a call that history keeps, in characters: the window's tokens are counted without them.
_LONGEST_ARGUMENTS = 16_000
#: Deepest nesting of objects and lists in arguments; some servers' parsers stop at 128.
_DEEPEST_ARGUMENTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a turn: the answer, the tool traffic before it, and every completion paid for in this attempt.

    `shown` is everything the person reads: the model's text before its tool calls, and the answer. `cut` is true if the
    answer ended at a limit of tokens. `spared` is what the model had refused to read; if that is `passing`, it may read
    it the next time. `room` is the most tokens that this conversation's next request may have, if it was refused for
    something in it.
    """

    text: str
    shown: str
    traffic: tuple[ChatMessage, ...]
    completions: tuple[Completion, ...]
    cut: bool = False
    spared: Spared = ""
    passing: bool = False
    room: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSteps:
    """The past of a turn: the completions that an earlier attempt got, and the traffic before the first of them.

    `keep` keeps each new completion. `refused` is true if the model has refused the turn before this one, and `spared`
    is what it had to be spared in it. `room` is that of the last reply.
    """

    stored: Sequence[Completion]
    keep: Callable[[int, Completion], Awaitable[None]]
    traffic: Sequence[ChatMessage] = ()
    refused: bool = False
    spared: Spared = ""
    room: int | None = None


async def run(
    provider: Provider,
    prompted: Prompted,
    offered: tuple[Tool, ...],
    *,
    limits: TurnSpec,
    steps: TurnSteps,
    gauge: Gauge,
    redact: Callable[[str], str],
    on_text: OnText | None,
) -> Reply:
    """Runs the loop from the first request to an answer. Raises `ModelError` if there is none.

    `gauge` tells how much the model can read, and is told how much it has read. `redact` masks secrets in everything
    the model writes and the tools return, before anything is done with it. With a long text it runs in a thread.
    """
    traffic: list[ChatMessage] = list(steps.traffic)
    paid: list[Completion] = []
    spoken: list[str] = []
    spent = 0.0
    asking = _Asking(provider, gauge, refused=steps.refused, spared=steps.spared, room=steps.room)
    results = _Results()
    for n in range(limits.steps):
        # A model that goes round in circles, or has cost enough, is offered no tools until it has answered.
        over = results.exhausted or (limits.cost is not None and spent >= limits.cost)
        last = over or n == limits.steps - 1
        if n < len(steps.stored):
            completion = steps.stored[n]
        else:
            specs = () if last else tuple(tool.spec for tool in offered)
            step = partial(_prompted, prompted, tuple(traffic), specs)
            completion = await asking.completion(step, _continued(on_text) if spoken else on_text)
            completion = await _kept(completion, redact, [tool.name for tool in offered])
            paid.append(completion)
            await steps.keep(n, completion)
        spent += completion.usage.cost or 0.0
        if completion.text.strip():
            spoken.append(completion.text.lstrip() if spoken else completion.text)
        if not completion.tool_calls or (last and completion.text.strip()):
            reply = _reply(completion, spoken, traffic, paid)
            return replace(reply, spared=asking.spared, passing=asking.passing, room=asking.room)
        if last:
            break
        told = await _results_of(offered, completion.tool_calls, results, redact, n)
        traffic += exchange(completion.text, completion.tool_calls, told, completion.opaque)
    raise BadCompletion(f"{provider.name} asked for tools {n + 1} times without answering. Ask a narrower question.")


def _prompted(
    prompted: Prompted, traffic: Sequence[ChatMessage], tools: Sequence[ToolSpec], room: int, spared: Spared
) -> Request:
    request = prompted(room, traffic, tools, bare=spared == "before")
    if spared != "calls":
        return request
    earlier = without_tools(request.messages[: len(request.messages) - len(traffic)])
    return replace(request, messages=(*(replace(message, opaque=None) for message in earlier), *traffic))


def _reply(
    completion: Completion, spoken: Sequence[str], traffic: Sequence[ChatMessage], paid: Sequence[Completion]
) -> Reply:
    """Returns the reply that ends with this completion. Raises `BadCompletion` if it has no words."""
    if not completion.text.strip():
        raise BadCompletion(f"{completion.provider} gave an empty answer. Ask again, or try another model.")
    return Reply(
        text=completion.text,
        shown=_BREAK.join(spoken),
        traffic=tuple(traffic),
        completions=tuple(paid),
        cut=completion.finish == "length",
    )


def exchange(
    text: str, calls: Sequence[ToolCall], results: Sequence[str], opaque: Opaque | None = None
) -> list[ChatMessage]:
    """Returns tool calls and their results as they may stand in history."""
    sound = tuple(_sound(wanted) for wanted in calls)
    asked = ChatMessage(role="assistant", content=text, tool_calls=sound, opaque=opaque)
    return [
        asked,
        *(
            ChatMessage(role="tool", content=result, tool_call_id=wanted.id)
            for wanted, result in zip(calls, results, strict=True)
        ),
    ]


async def _results_of(
    offered: Sequence[Tool], calls: Sequence[ToolCall], results: _Results, redact: Callable[[str], str], n: int
) -> list[str]:
    """Returns the results of a step's calls. Those side by side that change nothing are run at the same time."""
    told: dict[int, str] = dict.fromkeys(range(_MOST_CALLS, len(calls)), _TOO_MANY)
    waiting: dict[int, ToolCall] = {}

    async def run_waiting() -> None:
        made = [answered(offered, wanted, redact, step=n, index=i) for i, wanted in waiting.items()]
        for (i, wanted), result in zip(waiting.items(), await tools.together(made), strict=True):
            told[i] = results.keep(wanted, result, changes=not _beside(offered, wanted))
        waiting.clear()

    for i, wanted in enumerate(calls[:_MOST_CALLS]):
        if not _beside(offered, wanted) or _identity(wanted) in map(_identity, waiting.values()):
            await run_waiting()
        known = results.known(wanted)
        if known is not None:
            told[i] = known
            continue
        waiting[i] = wanted
        if not _beside(offered, wanted):
            await run_waiting()
    await run_waiting()
    return [told[i] for i in range(len(calls))]


async def answered(
    offered: Sequence[Tool], wanted: ToolCall, redact: Callable[[str], str], *, step: int, index: int
) -> str:
    """Returns the result of one call as the model reads it: without secrets and marks, and marked if it is not ours."""
    result = await tools.call(offered, wanted, step=step, index=index)
    result = await asyncio.to_thread(lambda: unmarked(redact(result)))
    tool = tools.named(offered, wanted.name)
    return outside(tool.origin, result) if tool is not None and tool.origin else result


def _beside(offered: Sequence[Tool], wanted: ToolCall) -> bool:
    tool = tools.named(offered, wanted.name)
    return tool is not None and tool.beside


class _Results:
    """The results of a turn's tool calls, so that a model that asks the same again and again gets the same answer.

    A new call that may change something clears the results of earlier ones, but not their number: the second call with
    the same arguments may then be made, a third one never is.
    """

    def __init__(self) -> None:
        self.exhausted = False
        self._results: dict[tuple[str, str], str] = {}
        self._times: dict[tuple[str, str], int] = {}

    def known(self, wanted: ToolCall) -> str | None:
        """Returns the result of the same call made before, or a refusal; None if the call has to be made."""
        key = _identity(wanted)
        self._times[key] = self._times.get(key, 0) + 1
        if self._times[key] >= _MOST_REPEATED:
            self.exhausted = True
            return _REPEATED + self._results.get(key, "")
        return self._results.get(key)

    def keep(self, wanted: ToolCall, result: str, *, changes: bool) -> str:
        key = _identity(wanted)
        if changes and self._times[key] == 1:
            self._results.clear()
        self._results[key] = result
        return result


def _identity(wanted: ToolCall) -> tuple[str, str]:
    """Returns the identity of a call: the tool, and the arguments regardless of order and spacing."""
    try:
        return wanted.name, json.dumps(json.loads(wanted.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return wanted.name, wanted.arguments


class _Asking:
    """Asks for the completions of a turn, again with less after a refusal that may be due to what a request holds.

    `spared` is what its requests are made without, and `room` the most tokens of one if this conversation was refused
    for something in it: other conversations may fill the model's context. With `refused`, the model has refused the
    turn before as well.
    """

    def __init__(
        self, provider: Provider, gauge: Gauge, *, refused: bool, spared: Spared, room: int | None = None
    ) -> None:
        self.spared: Spared = spared
        self.room = room
        #: True if what was spared was refused by a failure that may pass.
        self.passing = False
        self._provider = provider
        self._gauge = gauge
        self._refused = refused

    async def completion(self, step: Callable[[int, Spared], Request], on_text: OnText | None) -> Completion:
        screen = Screen(on_text)
        room, spared = self._room(), self.spared
        request = step(room, spared)
        first, refusal, tries = request, None, 0
        while True:
            try:
                completion = await self._provider.complete(request, screen.listener)
                break
            except ModelError as error:
                if screen.used or not self._may_help(error, first):
                    raise
                log.warning("model.refused_request", model=self._provider.name, tokens=room, error=str(error))
                refusal, refused = error, request
                if isinstance(error, ContextOverflow):
                    self._gauge.overflowed(request, room, str(error))
                while _is_same(request, refused):
                    if tries == _LESS:
                        raise
                    tries += 1
                    room, spared = self._less(error, first, tries)
                    request = step(room, spared)
        if refusal is not None:
            self._answered_with_less(refusal, room, spared)
        elif self.room is not None:
            wider = int(self.room * _WIDER)
            self.room = wider if wider < self._gauge.room() else None
        self._gauge.counted(request, completion)
        return completion

    def _room(self) -> int:
        whole = self._gauge.room()
        return whole if self.room is None else min(whole, self.room)

    def _is_long(self, request: Request) -> bool:
        return size(request, self._gauge.count) > self._room() // 2

    def _may_help(self, error: ModelError, request: Request) -> bool:
        """Returns whether less may help. An unexplained refusal has to come twice, or be of a long request."""
        if isinstance(error, ContextOverflow) or not error.of_request:
            return isinstance(error, ContextOverflow)
        return self._refused or (not error.retryable and self._is_long(request))

    def _less(self, error: ModelError, first: Request, tries: int) -> tuple[int, Spared]:
        """Returns the room of the next request and what it is made without, after so many tries."""
        if tries == _LESS or error.retryable:  # the chain has asked such a server four times already
            return self._room(), "before"
        if isinstance(error, ContextOverflow):
            return self._gauge.room(refused=True), self.spared
        if tries == 1 and self._is_long(first):
            return size(first, self._gauge.count) // 2, self.spared
        return self._room(), self.spared or "calls"

    def _answered_with_less(self, refusal: ModelError, room: int, spared: Spared) -> None:
        if isinstance(refusal, ContextOverflow) and spared == self.spared:
            return
        if spared == self.spared:
            self.room = room
        log.warning(
            "model.answered_with_less",
            model=self._provider.name,
            without=spared or "a part of the conversation",
            error=str(refusal),
            fix="Set the model's context to its true size if that is smaller; else the refusal says what the server "
            "does not take of this conversation.",
        )
        self.spared, self.passing = spared, refusal.retryable


def _is_same(request: Request, other: Request) -> bool:
    return (request.messages, request.tools, request.max_tokens) == (other.messages, other.tools, other.max_tokens)


async def _kept(completion: Completion, redact: Callable[[str], str], offered: Collection[str]) -> Completion:
    if len(completion.text) <= _SHORT and not completion.tool_calls and completion.opaque is None:
        return _masked(completion, redact, offered)
    return await asyncio.to_thread(_masked, completion, redact, offered)


def _masked(completion: Completion, redact: Callable[[str], str], offered: Collection[str]) -> Completion:
    """Returns the completion fit to be stored: without secrets and NUL, its calls under names of offered tools."""
    return replace(
        completion,
        text=redact(completion.text),
        tool_calls=tuple(
            ToolCall(
                id=wanted.id,
                name=tools.vendor_name(tool_named(wanted.name, offered) or wanted.name) or "_",
                arguments=_NUL.sub(r"\1", _masked_arguments(arguments_in(wanted.arguments), redact)),
            )
            for wanted in completion.tool_calls
        ),
        opaque=None if completion.opaque is None else _masked_opaque(completion.opaque, redact),
    )


def _masked_opaque(opaque: Opaque, redact: Callable[[str], str]) -> Opaque:
    """Masks thoughts in plain words. A signature is no secret, and what is signed can't be changed."""

    def masked(text: str) -> str:
        return text if _SIGNATURE.fullmatch(text) else redact(text)

    kept = {}
    for name, value in opaque.message.items():
        readable = _each_text(value, masked)
        if isinstance(value, str) or readable == value:
            kept[name] = readable
    return replace(opaque, message=kept)


def _masked_arguments(arguments: str, redact: Callable[[str], str]) -> str:
    """Masks the values, then the text as a whole, where a field may announce the next. Ids of our own are no secrets.

    JSON may write the letters of a value as escapes.
    """
    try:
        parsed = json.loads(arguments)
        given = parsed.get("id") if isinstance(parsed, dict) else None
        own = {"id": parsed.pop("id")} if isinstance(given, str) and _OWN_ID.fullmatch(given) else {}
        masked = _each_text(parsed, redact)
    except (ValueError, RecursionError):
        return redact(arguments)
    whole = json.dumps(masked, ensure_ascii=False) if own or masked != parsed else arguments
    redacted = redact(whole)
    try:
        return json.dumps(own | json.loads(redacted), ensure_ascii=False) if own else redacted
    except ValueError:
        return redacted


def _each_text(parsed: Any, act: Callable[[str], str]) -> Any:
    match parsed:
        case str():
            return act(parsed)
        case list():
            return [_each_text(inner, act) for inner in parsed]
        case dict():
            return {act(key): _each_text(inner, act) for key, inner in parsed.items()}
    return parsed


def _sound(wanted: ToolCall) -> ToolCall:
    """Returns the call fit for history: arguments that are no JSON object would break every later request."""
    if len(wanted.arguments) <= _LONGEST_ARGUMENTS:
        try:
            parsed = json.loads(wanted.arguments)
            if isinstance(parsed, dict) and _shallow(parsed):
                # Refuses values that Python reads and others don't: NaN, numbers beyond any float, lone surrogates.
                json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
                return wanted
        except (ValueError, RecursionError):
            pass
    return replace(wanted, arguments="{}")


def _shallow(parsed: object) -> bool:
    level = [parsed]
    for _ in range(_DEEPEST_ARGUMENTS):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return True
    return False


def _continued(on_text: OnText | None) -> OnText | None:
    """Returns a callback that shows a further step's text after a break, once the step has any text."""
    if on_text is None:
        return None
    begun = False

    async def show(text: str) -> None:
        nonlocal begun
        if not begun:
            text = _BREAK + text.lstrip()
            begun = text != _BREAK
            if not begun:
                return
        await on_text(text)

    return show
