"""The agent's view of a language model: a request, a completion, one protocol, one tree of errors.

Invariants: a `Completion` is complete: its tool calls have names and argument text, its usage is counted. Text is
handed to `on_text` only in order and only once. Errors say whether another try can help; the module that speaks to a
vendor translates the vendor's own errors into them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
OnText: TypeAlias = Callable[[str], Awaitable[None]]
#: The first and the last day, both included.
Days: TypeAlias = tuple[date, date]
#: Whether anything is learned from a person's words: "on", "off" in this session, "out" if the person has opted out,
#: "never" if the agent has no memory.
Learning: TypeAlias = Literal["on", "off", "out", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's request for one tool. `arguments` is the JSON text as the model wrote it, not yet checked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as it came. `media_type` is its type, such as "image/png"."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """Fields of an answer with tool calls that its server wants back, and that mean nothing to anybody else.

    `origin` names the server and the model. `message` holds fields of the message, `calls` those of each call in its
    place; a call's "id" is the server's own, if others would not take it.
    """

    origin: str
    message: Mapping[str, Any] = field(default_factory=dict, repr=False)
    calls: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        return json.dumps([self.message, *self.calls], ensure_ascii=False)

    @classmethod
    def read(cls, fields: Mapping[str, Any] | None) -> Opaque | None:
        """Returns the value from the mapping that `dataclasses.asdict` made of it."""
        return None if fields is None else cls(**{**fields, "calls": tuple(fields["calls"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message of the conversation as sent to a model. `pictures` belong to a person's message, after its words."""

    role: Role
    content: str
    pictures: tuple[Picture, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    opaque: Opaque | None = None


#: The longest opaque fields that history keeps, in characters.
_LONGEST_OPAQUE = 16_000


def calls_to_json(message: ChatMessage) -> str | None:
    """Returns the tool calls of a message as history keeps them; None if there are none."""
    if not message.tool_calls:
        return None
    calls: Any = [asdict(call) for call in message.tool_calls]
    if message.opaque is not None and len(message.opaque.text) <= _LONGEST_OPAQUE:
        calls = {"calls": calls, "opaque": asdict(message.opaque)}
    return json.dumps(calls)


def calls_from_json(text: str | None) -> tuple[tuple[ToolCall, ...], Opaque | None]:
    kept = json.loads(text or "[]")
    calls, opaque = (kept["calls"], kept["opaque"]) if isinstance(kept, dict) else (kept, None)
    return tuple(ToolCall(**call) for call in calls), Opaque.read(opaque)


# Without slots, so that `text` can be cached.
@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    name: str
    description: str
    parameters: dict[str, Any]

    @cached_property
    def text(self) -> str:
        """The text that a model reads of the tool, for estimates. It is needed several times a turn."""
        return json.dumps([self.name, self.description, self.parameters], ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory that bears on the last user message. A request lists the best first.

    It serves providers that answer without a model. `said` is the fact as said to the person, or with `verbatim` the
    message itself. `when` is the day it was told, in words for a person, and `at` the moment in milliseconds UTC. A
    fact has its `key` and `value`; `relation` is true for keys that name a relative or friend, and `about` names the
    person it is about if that is not the asker. A fact that is `superseded` held until the day `until`; one that is
    `unsure` may not hold. `by` names the author of a message if that is not the asker. `cues` are words by which people
    ask for a fact of this key. `nearness` tells how near in meaning it is to the message: above 0 nearer than ordinary
    sentences are, 0 where that is not known. `days` are the first and the last day to come that it names, if the
    message asks for such days.
    """

    said: str
    when: str
    at: int = 0
    superseded: bool = False
    unsure: bool = False
    until: str = ""
    verbatim: bool = False
    key: str = ""
    value: str = ""
    relation: bool = False
    about: str = ""
    by: str = ""
    cues: str = ""
    nearness: float = 0.0
    days: Days | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminded:
    """A reminder to come: the words of its text, it `said` to the person with its time, and the day it comes next."""

    text: str
    said: str
    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A single call of a model.

    In `json_mode` the answer is JSON, of the `json_schema` where a server can hold to one. `strict` is None for schemas
    of Remora's own, which servers hold to strictly; for a program's schema it tells whether the program wants that.

    The fields from `said` on carry the person's bare words and memory as values, beside their rendering in `messages`,
    for a provider without a model; vendors' adapters ignore them. `noted` lists what this turn stores, `ended` what it
    ends and `doubted` what it makes unsure; `unplaced` tells that it asks to move a plan that is not clear. `reminders`
    lists the reminders to come, the next first. `attached` lists the labels of what came beside the words and was not
    spoken. `learning` tells whether anything could have been noted. `language` is the code of the language to answer
    in, `days` the days to come that the last message names and `days_said` what they are called, `asked_since` and
    `asked_until` the beginning and end (excluded, milliseconds UTC) of the past days that it names, `moment` the
    present time in the person's zone, and `agent` the name to go by. `model` names the one to ask first, if any.
    `on_aborted` is told what a call without an answer has cost.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    json_mode: bool = False
    json_schema: Mapping[str, Any] | None = None
    strict: bool | None = None
    said: str = ""
    remembered: tuple[Remembered, ...] = ()
    reminders: tuple[Reminded, ...] = ()
    noted: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    unplaced: bool = False
    attached: tuple[str, ...] = ()
    learning: Learning = "on"
    language: str = "en"
    days: Days | None = None
    days_said: str = ""
    asked_since: int = 0
    asked_until: int | None = None
    moment: datetime | None = None
    agent: str = ""
    model: str = ""
    on_aborted: Callable[[Completion], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call (`input_tokens` include `cached_tokens`), or `estimated`; `cost` is None without a price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's whole answer to one request.

    A provider without a model names its `grounds`: the places in `Request.remembered` of the memories that it used.
    `place` is that of the model in its chain: two may have one name, at different servers.
    """

    text: str
    model: str
    provider: str
    place: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"
    grounds: tuple[int, ...] = ()
    opaque: Opaque | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Completion:
        fields = json.loads(text)
        calls = tuple(ToolCall(**call) for call in fields.pop("tool_calls"))
        grounds = tuple(fields.pop("grounds", ()))
        opaque = Opaque.read(fields.pop("opaque", None))
        return cls(**{**fields, "usage": Usage(**fields["usage"])}, tool_calls=calls, grounds=grounds, opaque=opaque)


class Screen:
    """Passes text on and remembers whether a person has seen any; white space alone does not count."""

    def __init__(self, on_text: OnText | None) -> None:
        self.used = False
        self.listener = None if on_text is None else self._watched(on_text)

    def _watched(self, on_text: OnText) -> OnText:
        async def show(text: str) -> None:
            # Set before the call: if it fails half-way, the text may have been shown.
            self.used = self.used or bool(text.strip())
            await on_text(text)

        return show


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A model as it was met since the start: seconds since its last answer and its last failure, with that one's code.

    Each is None, or empty, if there was none. It fails if the failure is the later one.
    """

    answered_ago: int | None = None
    failed_ago: int | None = None
    error: str = ""

    @property
    def is_failing(self) -> bool:
        return self.failed_ago is not None and (self.answered_ago is None or self.failed_ago < self.answered_ago)


class ModelError(Exception):
    """Raised when a model call failed. `str()` is written for the operator: what happened and what to do.

    `retry_after` is the wait in seconds that a vendor asks for. `of_request` is true if it may be due to what the
    request holds, so that one with less may be answered.
    """

    code = "model"
    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None, of_request: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.of_request = of_request


class ModelAuth(ModelError):
    """The key is missing, wrong or has no right to this model."""

    code = "model_auth"


class ModelUnavailable(ModelError):
    """The vendor can't be reached, hangs, or fails on its side."""

    code = "model_unavailable"
    retryable = True


class ModelRateLimited(ModelError):
    """Too many requests, or more than a quota allows for now."""

    code = "model_rate_limited"
    retryable = True


class ModelUnpaid(ModelRateLimited):
    """The account's credit or quota is used up: it takes somebody who pays, not a wait."""

    code = "model_unpaid"
    retryable = False


class ContextOverflow(ModelError):
    """The request is larger than the model's context."""

    code = "context_overflow"


class ModelRefused(ModelError):
    """The vendor refuses this request as it is: unknown model, unsupported parameter."""

    code = "model_refused"


class BadCompletion(ModelError):
    """The answer can't be read: cut off, garbage, empty."""

    code = "bad_completion"
    retryable = True


class Provider(Protocol):
    @property
    def name(self) -> str:
        """`provider/model`, as configured; used in logs, usage and /status."""

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        """Runs the request; `on_text` gets text as it arrives. Raises `ModelError` only."""

    async def aclose(self) -> None:
        """Closes the connections."""
