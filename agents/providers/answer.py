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
from agents.providers.opaque import Fields, storable

#: The most tokens of one call. A vendor that reports more has miscounted.
_MOST_TOKENS = 1_000_000_000
#: Tool call ids that the strictest vendors accept back: OpenAI at most 40 characters, Anthropic only these characters.
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
#: An id of a server's own that is given back to it, although others would not take it. Relays keep a signature in it.
_OWN_ID = re.compile(r"[!-~]{1,10000}")
#: Finish reasons that say the answer was cut off at a limit of tokens; all are called "length" here.
_CUT = frozenset(("length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"))


#: Characters of a text from which on a piece that repeats all before it is no part of the answer, even if the answer
#: does not end with it: a line of a song may come twice, two pieces and then both at once do not.
_REPEATED = 40


#: The looks at the arguments of one call, and the calls among which one with a known id is looked for.
_MOST_LOOKS = 256
_MOST_RECENT = 64
#: Finish reasons that say the model failed: OpenRouter's and Mistral's, Zhipu's, DeepSeek's, vLLM's.
_FAILED = frozenset(("error", "network_error", "insufficient_system_resource", "abort"))


@dataclass(slots=True)
class CallParts:
    """A tool call, assembled from its fragments.

    `given` are the arguments that came with the call's beginning; they count if none follow.
    """

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    given: str = ""
    fields: Fields = field(default_factory=Fields)
    #: True if its name came again after its arguments were complete: the call is repeated, or another one begins.
    again: bool = False
    _looks: int = 0

    @property
    def written(self) -> str:
        """The arguments. A last fragment that begins with the first and is whole in itself repeats those before it."""
        text = "".join(self.arguments) or self.given
        if len(self.arguments) > 1 and self.arguments[-1].startswith(self.arguments[0]):
            last = self.arguments[-1]
            return last if json_object(text) is None and json_object(last) is not None else text
        return text

    @property
    def complete(self) -> bool:
        """True if the arguments are an object. After many looks they count as unfinished: each look reads them all."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}") or self._looks == _MOST_LOOKS:
            return False
        self._looks += 1
        return json_object("".join(self.arguments)) is not None


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
    #: The fields that the server wants back with the message.
    fields: Fields = field(default_factory=Fields)
    by_index: dict[str, CallParts] = field(default_factory=dict)
    #: The pieces of text as they came, and their length in characters.
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    usage: Usage | None = None
    model: str = ""
    finish: str | None = None
    #: True once a piece came as what it is, a piece: a message that follows holds nothing new.
    streamed: bool = False
    #: True once the server has sent its end mark.
    ended: bool = False
    #: True once anything of the answer has come.
    begun: bool = False

    @property
    def complete(self) -> bool:
        """True if the answer is known to be complete: servers send a finish reason, an end mark, or both."""
        return self.ended or self.finish is not None

    def add_text(self, text: str, *, last: bool = False) -> str:
        """Adds a piece of text. Returns the text that can be shown now.

        A piece that repeats all before it, as some servers send with the finish reason, is `last` or long, and left
        out.
        """
        if (
            len(self.pieces) > 1
            and len(text) == self.length
            and (last or self.length >= _REPEATED)
            and text == "".join(self.pieces)
        ):
            return ""
        if text:
            self.pieces.append(text)
            self.length += len(text)
        text = self.half + text
        self.half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = storable(text.removesuffix(self.half))
        self.size += len(text)
        return self.output.feed(text)

    def add_whole(self, text: str) -> str:
        """Adds the text of a message that may repeat what came before it. Returns the text that can be shown now.

        If pieces were `streamed`, a message that does not begin with them is another form of the same answer.
        """
        if len(text) >= self.length and text.startswith("".join(self.pieces)):
            return self.add_text(text[self.length :])
        return "" if self.streamed else self.add_text(text)

    def end(self) -> str:
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
        given: object = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a fragment of a tool call.

        `given` are arguments that count only if no others come; `fields` may hold some that the server wants back.
        """
        place = str(index) if isinstance(index, int | str) and not isinstance(index, bool) else None
        call_id = call_id if isinstance(call_id, str) else ""
        name = storable(name[:200]) if isinstance(name, str) else ""
        arguments, given = _text_of(arguments), _text_of(given)
        call = self._call(place, call_id, name, arguments)
        if call is None:
            if not (call_id or name or arguments or given):
                return
            before = self.by_index.get(place or "")
            call = CallParts(name=before.name if before is not None and before.again and not name else "")
            self.calls.append(call)
        elif name and name == call.name and not arguments and call.arguments:
            call.again = call.complete
        if place is not None:
            self.by_index[place] = call
        call.id = call_id or call.id
        call.name = self._name(call.name, name)
        call.given = given or call.given
        if arguments:
            call.arguments.append(arguments)
        self.size += len(arguments) + len(given)
        call.fields.add(fields or {})

    def wants_calls(self) -> bool:
        """Returns whether the calls of a message are to be added that may repeat those so far.

        Complete ones stay, with what the server wants back with them. Streamed ones that are not are taken back.
        """
        if self.calls and all(call.complete for call in self.calls):
            return False
        if self.streamed:
            self.calls, self.by_index = [], {}
        return True

    def _call(self, place: str | None, call_id: str, name: str, arguments: str) -> CallParts | None:
        """Returns the call that a fragment belongs to, or None if it begins a new one.

        An id that is known says more than the index, which servers leave out, count wrongly or give to several calls.
        A fragment under a new index that brings only what the last call still lacks belongs to that.
        """
        last = self.calls[-1] if self.calls else None
        recent = reversed(self.calls[-_MOST_RECENT:])
        if call_id and (same := next((call for call in recent if call.id == call_id), None)):
            elsewhere = place is not None and self.by_index.get(place) is not same
            return None if elsewhere and name and arguments and same.complete else same
        call = last if place is None else self.by_index.get(place)
        if call is not None:
            return None if self._starts_anew(call, call_id, name, arguments) else call
        lacks = last is not None and not (call_id and last.id) and not (name and last.name)
        return last if lacks else None

    def _starts_anew(self, call: CallParts, call_id: str, name: str, arguments: str) -> bool:
        """Returns whether a fragment under the index of `call` begins a new call: several may share one index."""
        if call_id and call.id:
            return True  # a known one was found by its id
        if call.again and arguments:
            return True
        if not name or not call.name or (name == call.name and not arguments):
            return False
        if name == call.name:
            return call.complete
        grows = name.startswith(call.name) or self._name(call.name, name) != name
        return bool(call.arguments) or not grows

    def _name(self, known: str, more: str) -> str:
        """Returns the name of a call after a fragment that holds `more` of it: all of it again, or its next letters."""
        joined = known + more
        return joined if known and any(tool.startswith(joined) for tool in self.output.offered) else more or known

    @property
    def _called(self) -> list[CallParts]:
        """The calls, without those of which nothing came but an id or an index."""
        return [call for call in self.calls if call.name or call.arguments]

    def tool_calls(self, taken: Collection[str]) -> tuple[ToolCall, ...]:
        """Returns the calls, or else those written in the text, with ids that are not in `taken`."""
        written = [CallParts(name=name, arguments=[arguments]) for name, arguments in self.output.calls]
        return tuple(_with_ids(self._called or written, taken=taken))

    def opaque(self, origin: str, calls: Sequence[ToolCall]) -> Opaque | None:
        """Returns the fields that the server `origin` wants back with these calls; None if there are none."""
        own = [
            call.fields.whole() | ({"id": call.id} if call.id != made.id and _OWN_ID.fullmatch(call.id) else {})
            for call, made in zip(self._called, calls, strict=False)
        ]
        message = self.fields.whole()
        # Calls in the text bring none, but the server must know them for its own.
        kept = bool(message or any(own) or not self._called)
        return Opaque(origin=origin, message=message, calls=tuple(own)) if calls and kept else None


def json_object(text: str | bytes | bytearray) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def part_in(text: bytes | bytearray) -> dict[str, Any] | None:
    """Returns the object of a body or an event, which Gemini wraps in a list; None if it is no JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def failure_in(chunk: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the error that a part of an answer tells, as an object with its words; None if it tells none."""
    if chunk.get("error"):
        return dict(chunk)
    if "error" in (chunk.get("object"), chunk.get("type")):  # vLLM, and others in the middle of a stream
        return {"error": dict(chunk)}
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None
    if choice.get("error"):
        return {"error": choice["error"]}
    reason = choice.get("finish_reason")
    if not isinstance(reason, str) or reason not in _FAILED:
        return None
    native = choice.get("native_finish_reason")
    more = f" ({native[:200]})" if isinstance(native, str) and native != reason else ""
    return {"error": {"message": f"The answer ended with the finish reason {reason}{more}."}}


def _text_of(arguments: object) -> str:
    """Returns arguments as JSON: some servers send the object itself instead of its text."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


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
        yield ToolCall(id=call_id, name=call.name, arguments=storable(call.written) or "{}")


def token_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
