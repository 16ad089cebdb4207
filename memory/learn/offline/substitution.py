"""Puts a corrected word in the place of the word it resembles most.

Invariants: pure. A number replaces only a number, a day only a day, a name only a name; another word only one that is
spelled much like it. If nothing fits there is no result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

#: The least likeness in spelling of two words, by kind: numbers and days need none.
_ALIKE: Final = {"name": 0.3, "word": 0.6}
#: Shortest words that are taken for each other: "with" is no slip of "which".
_SHORTEST: Final = 5
#: The least likeness of names that may replace each other if nothing else connects correction and fact.
_ALIKE_ALONE: Final = 0.5
_WORD: Final = re.compile(r"[^\s,;!?()\"“”]+")
#: A word of a script without blanks is told from its neighbours only if it is a figure, a date or of a known kind.
_UNSPACED: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")
_FIGURE: Final = re.compile(
    r"(?:(?:\d+|[一二三四五六七八九十元]+)[年月]){0,2}(?:\d+|[一二三四五六七八九十]+)[日号](?!室|线|楼)"
    r"|\d+(?:[:.]\d+)*|[一二三四五六七八九十百千万两]{2,}"
)
_NAME: Final = re.compile(r"[A-ZÀ-Þ][\w'&.-]*")
_NUMBER: Final = re.compile(r"[£$€]?\d[\d:.,/-]*\w{0,2}")
_EDGES: Final = ".'*"
_OWNERS: Final = re.compile(r"'s?$")
#: A number that is a time of day, and one that is a place in an order: neither corrects the other.
_CLOCK: Final = re.compile(r"\d{1,2}(?:[:.]\d\d)?(?:am|pm|h|uhr)|\d{1,2}:\d\d", re.IGNORECASE)
_ORDINAL: Final = re.compile(r"\d+(?:st|nd|rd|th|º|ª|er|ème|\.)", re.IGNORECASE)
#: Longest name in a script without blanks, with the title that marks it: 渡边老师.
_LONGEST_NAME: Final = 6
#: Longest abbreviated title before a name, as in "Dr. Lomas".
_TITLE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A word, or several that make up one name, with its place in the text."""

    text: str
    kind: str
    start: int
    end: int


def put_right(
    value: str, said: str, kinds: Mapping[str, re.Pattern[str]], *, near: bool, slips: bool = True
) -> str | None:
    """Returns `value` with its words replaced by those of the same kind in `said`; None if none fits.

    `kinds` are patterns for words of a kind beside digits. With `near` the correction is known to be about the value.
    Without `slips` only numbers, days and names are put right, and no other words.
    """
    new = [part for part in _parts(said, kinds) if part.text.casefold() not in value.casefold()]
    result, shift = value, 0
    replaced = False
    for old in _parts(value, kinds):
        chosen = _most_alike(old, new, near=near) if slips or old.kind != "word" else None
        if chosen is None:
            continue
        result = f"{result[: old.start + shift]}{chosen.text}{result[old.end + shift :]}"
        shift += len(chosen.text) - len(old.text)
        new.remove(chosen)
        replaced = True
    return result if replaced else _likest_run(value, said)


def _likest_run(value: str, said: str) -> str | None:
    """Returns `value` with the run of characters that shares most with `said` replaced by it: 刘建国 by 刘建帼.

    Only in a script without blanks; None if no run of that length shares half of its characters, place by place.
    """
    if not said or not all(map(_UNSPACED.match, said)) or len(said) > _LONGEST_NAME or said in value:
        return None
    runs = [value[start : start + len(said)] for start in range(len(value) - len(said) + 1)]
    likest = max(runs, key=lambda run: sum(map(str.__eq__, run, said)), default="")
    if 2 * sum(map(str.__eq__, likest, said)) < len(said):
        return None
    return value.replace(likest, said, 1)


def _most_alike(old: _Part, new: list[_Part], *, near: bool) -> _Part | None:
    rivals = [
        (_alike(old.text, one.text), one)
        for one in new
        if one.kind == old.kind
        and not _unlike(old.text, one.text)
        and (old.kind != "word" or min(len(old.text), len(one.text)) >= _SHORTEST)
    ]
    best, chosen = max(rivals, key=lambda rival: rival[0], default=(0.0, None))
    enough = _ALIKE.get(old.kind, 0.0)
    if old.kind in _ALIKE and not near:
        enough = max(enough, _ALIKE_ALONE)
    return chosen if chosen is not None and best >= enough else None


def _unlike(one: str, other: str) -> bool:
    """Returns whether one of two words is a time of day and the other a place in an order."""
    return any(
        _CLOCK.fullmatch(a) is not None and _ORDINAL.fullmatch(b) is not None for a, b in ((one, other), (other, one))
    )


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def _parts(text: str, kinds: Mapping[str, re.Pattern[str]]) -> list[_Part]:
    """Returns the words of a text by kind; names that follow one another are one."""
    found: list[_Part] = []
    if _UNSPACED.search(text):
        figures = [("number", match) for match in _FIGURE.finditer(text)]
        days = [("day", match) for match in kinds["day"].finditer(text)] if "day" in kinds else []
        found = [
            _Part(text=match.group(), kind=kind, start=match.start(), end=match.end())
            for kind, match in (*figures, *days)
        ]
        return sorted(found, key=lambda part: part.start)
    for match in _WORD.finditer(text):
        word = _OWNERS.sub("", match.group().strip(_EDGES))
        if not word:
            continue
        start = match.start() + match.group().index(word)
        part = _Part(text=word, kind=_kind(word, kinds), start=start, end=start + len(word))
        last = found[-1] if found else None
        if (
            last is not None
            and part.kind == last.kind == "name"
            and (
                text[last.end : part.start] == " " or (text[last.end : part.start] == ". " and len(last.text) <= _TITLE)
            )
        ):
            found[-1] = _Part(text=text[last.start : part.end], kind="name", start=last.start, end=part.end)
        else:
            found.append(part)
    return found


def _kind(word: str, kinds: Mapping[str, re.Pattern[str]]) -> str:
    if _NUMBER.fullmatch(word):
        return "number"
    named = next((kind for kind, pattern in kinds.items() if pattern.fullmatch(word)), "")
    return named or ("name" if _NAME.fullmatch(word) and word != "I" else "word")
