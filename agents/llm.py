"""What a language model looks like to an agent: a request, a completion, one protocol, one tree of errors.

Invariants: a `Completion` is complete: tool calls in it have names and argument text, usage is counted; text is
handed to `on_text` only in order and only once. Errors say whether another try can help and are translated from
the vendor's own in the file that speaks to the vendor.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
OnText: TypeAlias = Callable[[str], Awaitable[None]]
#: Whether anything is learned from what a person says: "off" where they talk, not from them ("out"), or by no means
#: ("never").
Learning: TypeAlias = Literal["on", "off", "out", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's request for one tool. `arguments` is the JSON text as the model wrote it, not yet checked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as it came, of a media type such as "image/png"."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of the conversation as sent to a model. `pictures` belong to a person's message, after its words."""

    role: Role
    content: str
    pictures: tuple[Picture, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as offered to a model; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory that bears on the last user message, best first.

    For providers that answer without a model. `when` is the date it was told, in words for a person; `said` is the
    sentence itself, `verbatim` a quotation and not a fact; `score` is comparable within one request only, and 0 for
    what is known but was not asked for.
    """

    said: str
    when: str
    score: float
    superseded: bool = False
    verbatim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a model.

    `said`, `remembered` and `noted` carry the person's bare words and memory as values, beside their rendering in
    `messages`: `noted` lists what this turn stores, `attached` what came beside the words and was not spoken, by label,
    `learning` tells whether anything could have been noted. Vendors' adapters ignore all five.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    json_mode: bool = False
    said: str = ""
    remembered: tuple[Remembered, ...] = ()
    noted: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    learning: Learning = "on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the vendor counted them; estimated where the vendor does not say.

    The `cached_tokens` are among the `input_tokens`. `cost` is None where no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's whole answer to one request."""

    text: str
    model: str
    provider: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Completion:
        fields = json.loads(text)
        calls = tuple(ToolCall(**call) for call in fields.pop("tool_calls"))
        return cls(**{**fields, "usage": Usage(**fields["usage"])}, tool_calls=calls)


class ModelError(Exception):
    """A model call failed. `str()` is written for the operator: what happened and what to do."""

    code = "model"
    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelAuth(ModelError):
    """The key is missing, wrong or has no right to this model."""

    code = "model_auth"


class ModelUnavailable(ModelError):
    """The vendor can't be reached, hangs, or fails on its side."""

    code = "model_unavailable"
    retryable = True


class ModelRateLimited(ModelError):
    """Too many requests or a spent quota; `retry_after` is the vendor's word in seconds."""

    code = "model_rate_limited"
    retryable = True


class ContextOverflow(ModelError):
    """The request is larger than the model's context."""

    code = "context_overflow"


class ModelRefused(ModelError):
    """The vendor refuses this request as it stands: unknown model, unsupported parameter."""

    code = "model_refused"


class BadCompletion(ModelError):
    """The answer can't be read: cut off, garbage, empty."""

    code = "bad_completion"
    retryable = True


class Provider(Protocol):
    """An adapter to one model of one vendor."""

    @property
    def name(self) -> str:
        """`provider/model`, as configured; for logs, usage and /status."""

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        """Run the request; `on_text` gets text as it arrives. Raises `ModelError` only."""

    async def aclose(self) -> None:
        """Give back connections."""
