"""Filters typed among words: `bicycle since:march topic:"new roof"` means words and two filters.

Invariants: pure. The words of a request and its filters are told apart in one way for every command and tool. A filter
that can't be read is refused, never ignored, because the request would find or forget more than was meant. "Key" and
"tag" are everyday words: they are filters only where a value that names a key or tag follows the colon at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, Literal, TypeAlias, get_args

from memory.errors import UnknownFilter, UnreadFilter
from memory.text.times.clock import day_of
from memory.text.times.spans import Span, spans

Name: TypeAlias = Literal["category", "topic", "key", "tag", "about", "place", "since", "until", "on"]
#: The filters that name a time.
TIMES: Final = ("since", "until", "on")
#: The filters whose names are everyday words, too.
LABELS: Final = ("key", "tag")
#: Spanish has no word for a key: "clave:" announces a password, and what follows it is masked before it is read.
NAMES: Final[Mapping[str, Name]] = {
    **{name: name for name in get_args(Name)},
    "类别": "category", "分类": "category", "主题": "topic", "话题": "topic", "关于": "about", "地点": "place",
    "键": "key", "标签": "tag", "自从": "since", "从": "since", "直到": "until", "到": "until", "日期": "on",
    "kategorie": "category", "thema": "topic", "über": "about", "ort": "place", "seit": "since", "ab": "since",
    "bis": "until", "am": "on", "datum": "on", "schlüssel": "key", "schlagwort": "tag",
    "categoría": "category", "categoria": "category", "tema": "topic", "sobre": "about", "lugar": "place",
    "desde": "since", "hasta": "until", "fecha": "on", "el": "on", "etiqueta": "tag",
    "catégorie": "category", "categorie": "category", "sujet": "topic", "thème": "topic", "sur": "about",
    "lieu": "place", "depuis": "since", "jusque": "until", "jusqu'à": "until", "date": "on", "le": "on",
    "clé": "key", "étiquette": "tag", "etiquette": "tag",
    "カテゴリー": "category", "カテゴリ": "category", "話題": "topic", "トピック": "topic", "人物": "about",
    "場所": "place", "以降": "since", "から": "since", "まで": "until", "日付": "on",
    "キー": "key", "タグ": "tag",
}  # fmt: skip

_KNOWN: Final = "|".join(sorted(NAMES, key=len, reverse=True))
#: A name is followed by its value at once or after a space. An unknown name may as well be a word with a colon, such as
#: an address, unless letters stand on both sides of the colon.
_HEAD: Final = re.compile(
    rf"(?<!\S)(?:(?P<name>{_KNOWN})[ \t]?[:：]\s{{0,3}}(?=\S)|(?P<unknown>[a-z]{{2,20}}):(?=[^\W\d_]))", re.IGNORECASE
)
_QUOTED: Final = re.compile(
    r'"([^"\n]{1,500})"|“([^”\n]{1,500})”|„([^“”\n]{1,500})[“”]|«([^»\n]{1,500})»|「([^」\n]{1,500})」|『([^』\n]{1,500})』'
)
#: A value may also stand between apostrophes.
_VALUE: Final = re.compile(rf"{_QUOTED.pattern}|'([^'\n]{{1,500}})'(?!\S)")
_SPAN: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\s{0,3}(?:\.{2,3}|…|~|～|至|到)\s{0,3}(\d{4}-\d{2}-\d{2})")
#: The most words that an unquoted value may have.
_MOST_WORDS: Final = 6
#: The most filters of a request: each is read as a time, and nobody types so many.
_MOST_FILTERS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The memories under one heading of a list: those of these kinds and, unless it is empty, of this category."""

    kinds: tuple[str, ...]
    category: str = ""


#: Returns the group that people call by a name, in any language.
GroupOf: TypeAlias = Callable[[str], Group | None]


def no_group(_name: str) -> None:
    """Returns None: no groups are known by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One filter with its value as typed. `period` is set for a time; `group` if the value names a group."""

    name: Name
    value: str
    period: Span | None = None
    group: Group | None = None

    @property
    def written(self) -> str:
        return f'{self.name}:"{self.value}"' if " " in self.value else f"{self.name}:{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """A request: its words, and the filters that every hit has to meet."""

    words: str = ""
    given: tuple[Filter, ...] = ()

    @property
    def written(self) -> str:
        return " ".join([*([self.words] if self.words else []), *(one.written for one in self.given)])

    def without(self, one: Filter) -> Filters:
        return replace(self, given=tuple(other for other in self.given if other != one))


NO_FILTERS: Final = Filters()


def read(
    text: str, today: date, *, group_of: GroupOf = no_group, is_known: Callable[[Name, str], bool] = lambda *_: False
) -> Filters:
    """Returns the words and filters of `text`, said on `today`.

    A value is quoted, or it is one word, or as many words as name something: a time, or a name that `is_known` under
    this filter. A key or tag that is not known belongs to the words, or is refused if there are no other words. Raises
    `UnknownFilter` and `UnreadFilter`.
    """
    unquoted = _QUOTED.sub(lambda quotation: "\0" * len(quotation.group()), text)
    heads = [head for head in _HEAD.finditer(unquoted) if not _is_word(head)]
    words, given, done = "", list[Filter](), 0
    unknown: dict[str, UnreadFilter] = {}
    for nth, head in enumerate(heads):
        if head["name"] is None:
            raise UnknownFilter(f"There is no filter {head['unknown']!r}.", name=head["unknown"].lower())
        if nth == _MOST_FILTERS:
            raise UnreadFilter(f"More than {_MOST_FILTERS} filters.", name=NAMES[head["name"].lower()], value="…")
        words += " " + text[done : head.start()]
        stop = heads[nth + 1].start() if nth + 1 < len(heads) else len(text)
        name = NAMES[head["name"].lower()]
        if (quoted := _VALUE.match(text, head.end())) is not None:
            value, done = _inside(quoted), quoted.end()
        else:
            value = _unquoted(name, text[head.end() : stop], today, group_of, is_known)
            done = head.end() + len(value)
        if name in LABELS and not is_known(name, value):
            message = f"No memory has {name}:{value}."
            unknown[text[head.start() : done]] = UnreadFilter(message, name=name, value=value, typed=head["name"])
            done = head.start()
            continue
        given.append(meant(name, value, today, group_of=group_of))
    words = " ".join(f"{words} {text[done:]}".split())
    if unknown and words == " ".join(" ".join(unknown).split()):
        raise next(iter(unknown.values()))
    if (quoted := _QUOTED.fullmatch(words)) is not None:
        words = _inside(quoted)
    return Filters(words=words, given=tuple(given))


def meant(name: Name, value: str, today: date, *, group_of: GroupOf = no_group) -> Filter:
    """Returns the filter `name` with this value. Raises `UnreadFilter` for a time or category that does not exist."""
    value = " ".join(value.split())
    group = group_of(value) if name in ("category", "topic") else None
    period = _period(name, value, today) if name in TIMES else None
    if not value or (name in TIMES and period is None) or (name == "category" and group is None):
        raise UnreadFilter(f"{name}:{value} can't be read.", name=name, value=value)
    return Filter(name=name, value=value, period=period, group=group)


def span(text: str) -> Span | None:
    """Returns the days of `2026-05-01..2026-05-07`; None for anything else."""
    found = _SPAN.fullmatch(text)
    days = [day for written in found.groups() if (day := day_of(written))] if found else []
    return Span(first=min(days), last=max(days), start=0, end=len(text)) if len(days) == 2 else None


def _is_word(head: re.Match[str]) -> bool:
    """Returns whether the name of a label stands before a space, as it does in a sentence: "the key: it hangs"."""
    return head["name"] is not None and NAMES[head["name"].lower()] in LABELS and head[0][-1].isspace()


def _inside(quoted: re.Match[str]) -> str:
    return str(next(filter(None, quoted.groups())))


def _unquoted(name: Name, text: str, today: date, group_of: GroupOf, is_known: Callable[[Name, str], bool]) -> str:
    """Returns the beginning of `text` that is the value: the most words that name something, else the first word."""
    ends = [word.end() for word in re.finditer(r"\S+", text)][:_MOST_WORDS]
    for end in reversed(ends[1:]):
        value = text[:end]
        if name in TIMES:
            is_meant = _period(name, value, today) is not None
        else:
            is_meant = (name in ("category", "topic") and group_of(value) is not None) or is_known(name, value)
        if is_meant:
            return value
    return text[: ends[0]]


def _period(name: Name, value: str, today: date) -> Span | None:
    """Returns the days that a whole value surely names, as far as the filter bounds them."""
    found = span(value)
    if found is None:
        named = spans(value, today, looks="back", known=True)
        if len(named) != 1 or named[0].vague or (named[0].start, named[0].end) != (0, len(value)):
            return None
        found = named[0]
    first = date.min if name == "until" else found.first
    last = date.max if name == "since" else found.last
    is_bounded = (name == "until" or first > date.min) and (name == "since" or last < date.max)
    return Span(first=first, last=last, start=0, end=len(value)) if is_bounded or name == "on" else None
