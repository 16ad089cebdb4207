"""An answer of a model server, assembled from its pieces in any format.

Invariants: text that is shown went through `agents.output.Output`. Text and arguments can be stored as UTF-8.
Tool calls have ids that every vendor accepts back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from agents.llm import Opaque, ToolCall, Usage
from agents.output import Output
from agents.providers.opaque import Fields

#: The most tokens of one call. A vendor that reports more has miscounted.
_MOST_TOKENS = 1_000_000_000
#: Tool call ids that the strictest vendors accept back: OpenAI at most 40 characters, Anthropic only these characters.
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
#: The longest id of a server's own that is given back. Relays keep a signature in it.
_LONGEST_ID = 10_000
#: Finish reasons that say the answer was cut off at a limit of tokens; all are called "length" here.
_CUT = frozenset(("length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"))


@dataclass(slots=True)
class CallParts:
    """A tool call, assembled from its fragments."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    fields: Fields = field(default_factory=Fields)


@dataclass(slots=True)
class Assembled:
    """An answer, assembled from its pieces.

    `patience` is the time, on the loop's clock, when it counts as stalled. `asked` are the texts that it answers.
    """

    output: Output
    patience: float
    asked: Sequence[str] = ()
    #: The first half of a character that the server split between two pieces.
    half: str = ""
    #: The characters of text and arguments so far.
    size: int = 0
    calls: list[CallParts] = field(default_factory=list)
    #: What the server wants back with the message.
    fields: Fields = field(default_factory=Fields)
    by_index: dict[int, CallParts] = field(default_factory=dict)
    usage: Usage | None = None
    model: str = ""
    finish: str | None = None
    #: True once the server has sent its end mark.
    ended: bool = False
    #: True once anything of the answer has come.
    begun: bool = False

    @property
    def complete(self) -> bool:
        """True if the answer is known to be complete: servers send a finish reason, an end mark, or both."""
        return self.ended or self.finish is not None

    def add_text(self, text: str) -> str:
        """Adds a piece of text. Returns the text that can be shown now."""
        text = self.half + text
        self.half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = storable(text.removesuffix(self.half))
        self.size += len(text)
        return self.output.feed(text)

    def end(self) -> str:
        """Ends the text. Returns the last text that can be shown."""
        return self.output.finish()

    def finished(self, reason: object) -> None:
        if isinstance(reason, str) and reason:
            self.finish = "length" if reason in _CUT else storable(reason[:200])

    def named(self, model: object) -> None:
        if isinstance(model, str):
            self.model = storable(model[:200])

    def add_call(
        self,
        *,
        index: object,
        call_id: object = None,
        name: object = None,
        arguments: object = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a fragment of a tool call. One without an index belongs to the call before it.

        `fields` may hold some that the server wants back.
        """
        last = self.calls[-1] if self.calls else None
        call = self.by_index.get(index) if isinstance(index, int) else last
        if call is None or _starts_anew(call, call_id, name):
            call = CallParts()
            self.calls.append(call)
            if isinstance(index, int):
                self.by_index[index] = call
        if isinstance(call_id, str) and call_id:
            call.id = call_id
        if isinstance(name, str) and name:
            call.name = storable(name[:200])
        if arguments is not None and not isinstance(arguments, str):
            # Some servers send the object itself instead of its JSON text.
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            call.arguments.append(arguments)
            self.size += len(arguments)
        call.fields.add(fields or {})

    def tool_calls(self, taken: Collection[str]) -> tuple[ToolCall, ...]:
        """Returns the calls, those written in the text included, with ids that are not in `taken`."""
        written = [CallParts(name=name, arguments=[arguments]) for name, arguments in self.output.calls]
        return tuple(_with_ids([*self.calls, *(() if self.calls else written)], taken=taken))

    def opaque(self, origin: str, calls: Sequence[ToolCall]) -> Opaque | None:
        """Returns the fields that the server `origin` wants back with these calls; None if there are none."""
        own = [
            call.fields.whole() | ({} if call.id == made.id or not call.id else {"id": storable(call.id[:_LONGEST_ID])})
            for call, made in zip(self.calls, calls, strict=False)
        ]
        message = self.fields.whole()
        return Opaque(origin=origin, message=message, calls=tuple(own)) if calls and (message or any(own)) else None


def _starts_anew(call: CallParts, call_id: object, name: object) -> bool:
    """Returns whether a fragment with this id and name begins a new call instead of continuing `call`.

    Fragments of one call may repeat its id and name. Some servers send several complete calls under one index, and some
    of these servers send no ids.
    """
    if call_id and call.id:
        return call_id != call.id
    return bool(name and call.name) and json_object("".join(call.arguments)) is not None


def json_object(text: str | bytes | bytearray) -> dict[str, Any] | None:
    """Returns `text` parsed as a JSON object, or None if it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _with_ids(calls: list[CallParts], *, taken: Collection[str]) -> Iterator[ToolCall]:
    """Yields the calls, each with a unique id that is not in `taken`.

    A missing, repeated or malformed id is replaced by one made from the call's number in the conversation, because
    another vendor in the chain of models would refuse it in history. Mistral takes nine letters and digits alone.
    """
    used = set(taken)
    for number, call in enumerate(calls, len(taken) + 1):
        call_id = call.id
        if call_id in used or not _CALL_ID.fullmatch(call_id):
            call_id = next(made for n in count(number) if (made := f"call{n:05}") not in used)
        used.add(call_id)
        # Some models send an empty text to call a tool without arguments.
        yield ToolCall(id=call_id, name=call.name, arguments=storable("".join(call.arguments)) or "{}")


def storable(text: str) -> str:
    """Returns `text` so that UTF-8 and databases accept it: surrogates joined or replaced, NUL removed."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "")


def token_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
