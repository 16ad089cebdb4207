"""Fields of an answer that its server wants back with the next request.

A model that thinks before it calls a tool signs its thoughts or wants to read them again: DeepSeek and Kimi call the
field `reasoning_content`, Gemini `extra_content.google.thought_signature`, OpenRouter `reasoning_details`, Anthropic
blocks of the type "thinking". Nobody else can use them.

Invariants: a field goes back to the server and the model that it came from, as it came, and to no other. It is never
shown and never learned from. Only messages with tool calls keep any.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agents.llm import ChatMessage, Opaque
from agents.providers.quirks import Quirk
from agents.providers.roles import without_tools

#: The fields that hold Anthropic's blocks, in the order of the answer.
BLOCKS: Final = "thinking_blocks"
#: The field in which DeepSeek, Kimi, Qwen and most servers of one's own send thoughts.
_THOUGHTS: Final = "reasoning_content"
#: The names of such fields, of a message and of a call.
_NAMES: Final = re.compile(
    r"(?:reasoning|thinking)\w*|\w*(?:thought|signature|encrypted)\w*|extra_content|provider_specific_fields"
)
#: Fields within these that come in pieces. Of all others the last value counts.
_PIECES: Final = frozenset((_THOUGHTS, "reasoning", "reasoning_text", "text", "summary", "data", "thinking"))
#: The most characters of these fields in one answer; an answer with more keeps none.
_MOST: Final = 200_000
#: The words of refusals: about ids of calls; about such fields; that they are not wanted; that they are not valid.
_ABOUT_IDS: Final = re.compile(
    r"(?:tool|function)[ _]call[ _]?ids?\b.{0,80}(?:\b9\b|a-z|duplicate|invalid|format)|duplicate.{0,20} call id"
)
_ABOUT_FIELDS: Final = re.compile(
    r"reasoning_(?:content|details|text|opaque)|messages\b.{0,40}\breasoning\b|thought[ _-]?signature"
    r"|thinking[`'\"]* (?:blocks?|or)\b|encrypted[ _]content|extra_content"
)
_UNWANTED: Final = re.compile(
    r"unsupported|(?:not|n't) (?:permitted|supported|allowed|support|allow)|extra (?:inputs|fields)|unknown"
    r"|unrecogni[sz]ed|unexpected"
)
_STALE: Final = re.compile(
    r"invalid [`'\"]?(?:signature|thought|encrypted|reasoning)|(?:signature|content|blocks?)[`'\"]?.{0,40}"
    r"(?: invalid|not valid|be verified|be decrypted|corrupt|be modified)"
)
#: The ids of Mistral's calls.
_SHORT_ID: Final = re.compile(r"[A-Za-z0-9]{9}")


@dataclass(slots=True)
class Fields:
    values: dict[str, Any] = field(default_factory=dict)
    size: int = 0

    def add(self, piece: Mapping[str, Any]) -> None:
        for name, value in piece.items():
            if value is None or not _NAMES.fullmatch(name):
                continue
            self.size += len(value if isinstance(value, str) else json.dumps(value))
            if self.size <= _MOST:
                self.values[name] = _merged(name, self.values.get(name), value)

    def whole(self) -> dict[str, Any]:
        """Returns the fields, without thoughts that stand in two of them; none if they were too long."""
        if self.size > _MOST:
            return {}
        values: dict[str, Any] = _each_storable(self.values)
        if values.get("reasoning_details"):
            values.pop("reasoning", None)
            values.pop(_THOUGHTS, None)
        elif _THOUGHTS in values:
            values.pop("reasoning", None)
        return values


def _merged(name: str, before: Any, piece: Any) -> Any:
    if isinstance(before, str) and isinstance(piece, str) and name in _PIECES:
        return before + piece
    if isinstance(piece, dict):
        older = before if isinstance(before, dict) else {}
        return {**older, **{key: _merged(key, older.get(key), value) for key, value in piece.items()}}
    if isinstance(piece, list):
        items = list(before) if isinstance(before, list) else []
        for item in piece:
            place = _place(items, item)
            if place is None:
                items.append(item)
            else:
                items[place] = _merged("", items[place], item)
        return items
    return before if piece is None else piece


def _place(items: Sequence[Any], item: Any) -> int | None:
    """Returns the place of the item that `item` continues: the last one, if it has the same number and type."""
    last = items[-1] if items else None
    if not isinstance(last, dict) or not isinstance(item, dict) or last.get("type") != item.get("type"):
        return None
    same = last.get("index") == item.get("index") if "index" in item else "text" in item or "summary" in item
    return len(items) - 1 if same and not ("signature" in last and item.get("text")) else None


def storable(text: str) -> str:
    """Returns `text` so that UTF-8 and databases accept it: surrogates joined or replaced, NUL removed."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "")


def _each_storable(value: Any) -> Any:
    """Returns a value of JSON with every text in it as `storable` returns it: a piece may end within a character."""
    match value:
        case str():
            return storable(value)
        case list():
            return [_each_storable(inner) for inner in value]
        case dict():
            return {storable(key): _each_storable(inner) for key, inner in value.items()}
    return value


def given_back(messages: Sequence[ChatMessage], origin: str, quirks: Set[Quirk]) -> list[ChatMessage]:
    """Returns the messages as the server and model `origin` take them.

    Calls that other models made are told in words if the server refuses calls without its own fields.
    """
    own = [
        message
        if message.opaque is None or (message.opaque.origin == origin and "opaque" not in quirks)
        else replace(message, opaque=None)
        for message in messages
    ]
    if "calls" in quirks:
        own = without_tools(own, where=lambda message: message.opaque is None)
    if "thoughts" in quirks:
        own = [_with_thoughts(message, origin) for message in own]
    return _with_ids(own, short=_short if "call_ids" in quirks else str)


def refusal(status: int, said: str, messages: Sequence[ChatMessage], quirks: Set[Quirk]) -> Quirk | None:
    """Returns the quirk by which a server refuses the calls in `messages`; None if it is about something else.

    `said` is the refusal in lower case, `messages` are as `given_back` made them with these `quirks`.
    """
    calling = [message for message in messages if message.tool_calls]
    if status not in (400, 422):
        return None
    if calling and "call_ids" not in quirks and _ABOUT_IDS.search(said):
        return "call_ids"
    if not _ABOUT_FIELDS.search(said):
        return None
    if _UNWANTED.search(said) or is_stale("opaque", said):
        return "opaque" if "opaque" not in quirks and any(message.opaque for message in messages) else None
    if "calls" not in quirks and any(message.opaque is None for message in calling):
        return "calls"
    return "thoughts" if "thoughts" not in quirks and _THOUGHTS in said else None


def is_stale(quirk: Quirk, said: str) -> bool:
    """Returns whether a server refuses its own fields as they are, so that the next ones may be good again."""
    return quirk == "opaque" and _STALE.search(said) is not None


def _with_thoughts(message: ChatMessage, origin: str) -> ChatMessage:
    opaque = message.opaque or Opaque(origin=origin)
    if message.role != "assistant" or opaque.message.get(_THOUGHTS):
        return message
    # A blank: some servers take an empty text for a missing one.
    return replace(message, opaque=replace(opaque, message={**opaque.message, _THOUGHTS: " "}))


def _with_ids(messages: Sequence[ChatMessage], *, short: Callable[[str], str]) -> list[ChatMessage]:
    """Returns the messages with the ids of calls as the server gave them, or made `short`."""
    ids: dict[str, str] = {}
    used: set[str] = set()
    wired = []
    for message in messages:
        native = message.opaque.calls if message.opaque is not None else ()
        for n, call in enumerate(message.tool_calls):
            given = native[n].get("id") if n < len(native) else None
            # Some servers give one id to several calls, and refuse it when it comes back.
            names = (given, short(call.id), _nine(f"{call.id} {len(used)}"))
            ids[call.id] = next(name for name in names if isinstance(name, str) and name not in used)
            used.add(ids[call.id])
        calls = tuple(replace(call, id=ids[call.id]) for call in message.tool_calls)
        answered = message.tool_call_id
        wired.append(
            replace(
                message, tool_calls=calls, tool_call_id=None if answered is None else ids.get(answered, short(answered))
            )
        )
    return wired


def _short(call_id: str) -> str:
    """Returns an id of nine letters and digits, always the same for the same id."""
    return call_id if _SHORT_ID.fullmatch(call_id) else _nine(call_id)


def _nine(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:9]
