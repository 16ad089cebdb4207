"""Reads a model's answer into items, tolerantly, and checks them one by one.

Invariants: pure. Time grows linearly with the text, of which `LONGEST_ANSWER` characters are read. An unusable item is
dropped alone. An answer that was cut off keeps the items that are whole, and says that it was. An answer without any
JSON is an error, so that it is asked again and not taken for "nothing to remember".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memory.errors import MemoryFault

#: Characters of an answer that are read; an honest one has a tenth of this.
LONGEST_ANSWER: Final = 200_000
#: Items of one kind that are taken from one answer; a model that gives more has lost its way.
MOST_ITEMS: Final = 60
_DEPTH = 16
#: Places where JSON is tried to begin, for answers that talk around it.
_TRIES = 100


class Unreadable(MemoryFault):
    """The answer holds no JSON that could be an answer."""

    code = "unreadable_answer"


def _text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, list):
        return ", ".join(str(_text(one)) for one in value)
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(one)}" for key, one in value.items())
    return value.strip() if isinstance(value, str) else value


def _within(low: float, high: float, default: float) -> BeforeValidator:
    def number(value: Any) -> float:
        try:
            found = float(value)
        except (TypeError, ValueError):
            return default
        return min(max(found, low), high) if math.isfinite(found) else default

    return BeforeValidator(number)


def _numbers(value: Any) -> Any:
    """Reads message numbers: 3, "3", "#3", [1, 2], "1 and 2", {"n": 3}."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return tuple(dict.fromkeys(n for one in value for n in _numbers(one)))
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) else 0
    return tuple(dict.fromkeys(int(found) for found in _DIGITS.findall(str(value)[:200])))


Words: TypeAlias = Annotated[str, BeforeValidator(_text)]
Numbers: TypeAlias = Annotated[tuple[int, ...], BeforeValidator(_numbers)]
Importance: TypeAlias = Annotated[
    int, BeforeValidator(lambda value: round(value) if isinstance(value, float) else value), _within(1, 10, 5)
]
Confidence: TypeAlias = Annotated[float, _within(0, 1, 0.7)]


class Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    value: Words = Field(min_length=1)
    topic: Words = ""
    importance: Importance = 5
    # Jobs show events instead of messages.
    messages: Numbers = Field(default=(), validation_alias=AliasChoices("messages", "events"))


class FactItem(Item):
    """A fact as a model gives it. `replaces` is the short id of a known fact, `quote` a piece of a message."""

    about: Words = "self"
    category: Words = ""
    key: Words = Field(min_length=1)
    confidence: Confidence = 0.7
    quote: Words = ""
    replaces: Words = ""


class StyleItem(Item):
    """A person's wish for the manner of answers. `quote` is a piece of a message."""

    key: Words = "style"
    quote: Words = ""


class EntityItem(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Words = Field(min_length=1, max_length=200)
    type: Words = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The usable items of an answer; `dropped` counts the others. `cut` is True if it ended before it was complete."""

    facts: tuple[FactItem, ...] = ()
    styles: tuple[StyleItem, ...] = ()
    events: tuple[Item, ...] = ()
    entities: tuple[EntityItem, ...] = ()
    dropped: int = 0
    cut: bool = False


def read_answer(text: str) -> Answer:
    found, cut = _answer(text[:LONGEST_ANSWER])
    if found is None:
        raise Unreadable(
            "The model's answer holds no JSON in the form that was asked for, so nothing was learned from it. "
            "It is asked again; if that goes on, name another model under background in the agent's file."
        )
    facts, no_facts = items(FactItem, found.get("facts"))
    styles, no_styles = items(StyleItem, found.get("styles"))
    events, no_events = items(Item, found.get("event") or found.get("events"))
    entities, _ = items(EntityItem, found.get("entities"))
    dropped = no_facts + no_styles + no_events
    return Answer(facts=facts, styles=styles, events=events, entities=entities, dropped=dropped, cut=cut)


def read_object(text: str, *members: str) -> dict[str, Any]:
    """Returns the first object in a model's answer with any of these members; if cut off, the members that are whole.

    Raises `Unreadable` if there is none.
    """
    text = _said_last(text[:LONGEST_ANSWER])
    for start in islice(_beginnings(text), _TRIES):
        try:
            value = _Scan(text).value(start)
        except _NoJson:
            continue
        if isinstance(value, dict) and not value.keys().isdisjoint(members):
            return value
    raise Unreadable(
        "The model's answer holds no JSON in the form that was asked for, so nothing came of it. "
        "It is asked again another time; if that goes on, name another model under background in the agent's file."
    )


def read_entities(value: Any) -> tuple[EntityItem, ...]:
    return items(EntityItem, value)[0]


_Model = TypeVar("_Model", bound=BaseModel)


def items(model: type[_Model], value: Any) -> tuple[tuple[_Model, ...], int]:
    if isinstance(value, dict):
        # Models also put items under names of their own: {"1": {...}, "2": {...}}.
        nested = value and all(isinstance(one, dict) for one in value.values())
        value = list(value.values()) if nested else [value]
    if isinstance(value, str) and value.strip() and model in (Item, EntityItem):
        value = [value]
    kept: list[_Model] = []
    dropped = 0
    for one in value[:MOST_ITEMS] if isinstance(value, list) else []:
        given = one
        if isinstance(one, str) and model is EntityItem:
            given = {"name": one}
        elif isinstance(one, str) and model in (Item, StyleItem):
            given = {"value": one}
        elif isinstance(one, dict) and "value" not in one:
            given = {**one, "value": one.get("text", one.get("content", one.get("summary")))}
        try:
            kept.append(model.model_validate(given))
        except ValidationError:
            dropped += bool(one)
    return tuple(kept), dropped


def _answer(text: str) -> tuple[dict[str, Any] | None, bool]:
    text = _said_last(text)
    scattered: list[dict[str, Any]] = []
    cut = False
    for start in islice(_beginnings(text), _TRIES):
        scan = _Scan(text)
        try:
            value = scan.value(start)
        except _NoJson:
            continue
        answer = _formed(value)
        # If it was cut before the first whole item, nothing can be told from it.
        if answer is None or (scan.cut and (_is_fact(value) or not any(answer.values()))):
            cut = cut or scan.cut
            continue
        if not _is_fact(value):
            return answer, scan.cut
        scattered += answer["facts"]
    return ({"facts": scattered} if scattered else None), cut


def _said_last(text: str) -> str:
    return text[max(text.rfind(end) + len(end) if end in text else 0 for end in _THOUGHT_ENDS) :]


def _beginnings(text: str) -> Iterator[int]:
    yield from (match.start() for match in _OPENS_OBJECT.finditer(text))
    yield from (match.start() for match in _OPENS_LIST.finditer(text))


def _formed(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        if not value or _SECTIONS & value.keys():
            return value
        if _is_fact(value):
            return {"facts": [value]}
        inner = [one for one in value.values() if isinstance(one, dict) and _SECTIONS & one.keys()]
        return inner[0] if len(value) == 1 and inner else None
    if isinstance(value, list):
        if not value:
            return {}
        facts = [one for one in value if _is_fact(one)]
        return {"facts": facts} if facts else None
    return None


def _is_fact(value: Any) -> bool:
    return isinstance(value, dict) and {"key", "value"} <= value.keys()


class _NoJson(Exception):
    """There is no JSON at this place."""


class _Cut(Exception):
    """The text ended inside a value that is of no use in part."""


class _Scan:
    """Reads one JSON value as models write it: trailing commas, missing ends, single quotes, Python's words."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.cut = False

    def value(self, start: int) -> Any:
        self._at = start
        try:
            return self._value(0)
        except _Cut:
            self.cut = True
            return None

    def _value(self, depth: int) -> Any:
        self._skip()
        if depth > _DEPTH:
            raise _NoJson
        char = self._peek()
        if char == _END:
            raise _Cut
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._list(depth)
        return self._string() if char in _QUOTES else self._word()

    def _object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        found: dict[str, Any] = {}
        while not self._take("}"):
            try:
                key = self._string() if self._peek() in _QUOTES else self._bare_key()
                self._skip()
                if not self._take(":"):
                    raise _Cut if self._peek() == _END else _NoJson
                found[key] = self._value(depth + 1)
            except _Cut:
                self.cut = True
            if self.cut:
                if depth > 0:
                    raise _Cut
                break
        return found

    def _list(self, depth: int) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        while not self._take("]"):
            try:
                item = self._value(depth + 1)
            except _Cut:
                self.cut = True
            if self.cut:
                break
            found.append(item)
        return found

    def _string(self) -> str:
        quote = "”" if self._text[self._at] == "“" else self._text[self._at]
        match = _STRINGS[quote].match(self._text, self._at)
        if match is None:
            raise _Cut
        self._at = match.end()
        inner = match.group()[1:-1]
        try:
            found = json.loads(f'"{inner}"', strict=False)
        except ValueError:
            found = _ESCAPED.sub(lambda m: {"n": "\n", "t": "\t", "r": "\n"}.get(m[1], m[1]), inner)
        return str(found)

    def _bare_key(self) -> str:
        match = _BARE_KEY.match(self._text, self._at)
        if match is None:
            raise _Cut if self._peek() == _END else _NoJson
        self._at = match.end()
        return match.group()

    def _word(self) -> Any:
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise _NoJson
        if match.end() == len(self._text):
            raise _Cut
        self._at = match.end()
        word = match.group()
        if word.lower() in _NAMED:
            return _NAMED[word.lower()]
        try:
            return float(word) if any(sign in word for sign in ".eE") else int(word)
        except ValueError:
            raise _NoJson from None

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else _END

    def _take(self, char: str) -> bool:
        """Reads `char` if it comes next; returns whether it did. There may be too many or too few commas before it."""
        self._skip(",")
        if self._peek() != char:
            return False
        self._at += 1
        return True

    def _skip(self, also: str = "") -> None:
        while (char := self._peek()) != _END:
            if char.isspace() or char in also:
                self._at += 1
            elif self._text.startswith("//", self._at):
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return


#: `_peek` returns this after the last character.
_END = ""
_QUOTES = ('"', "'", "“")
_THOUGHT_ENDS = ("</think>", "</thinking>", "</reasoning>")
_SECTIONS = frozenset({"facts", "styles", "event", "events", "entities"})
_NAMED: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None, "nan": None}
_DIGITS = re.compile(r"\d{1,6}", re.ASCII)
_OPENS_OBJECT = re.compile(r"\{(?=\s{0,200}[\"'“}A-Za-z])")
_OPENS_LIST = re.compile(r"\[(?=\s{0,200}[\[{\]])")
_STRINGS = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.DOTALL),
    "”": re.compile(r"“[^”]*+”"),
}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BARE_KEY = re.compile(r"[A-Za-z_]\w{0,40}", re.ASCII)
_WORD = re.compile(r"[-+]?[\w.]{1,40}(?:[-+]\d{1,4})?", re.ASCII)
