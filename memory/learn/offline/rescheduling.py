"""Puts a plan on another day or at another hour: "no, on the 15th", "it's been moved to 4pm".

Invariants: pure. The only new day or hour of a text takes the place of the plan's only one, among the words that belong
to it: the 15th stays in the plan's month, "Wednesday" in its next week. In doubt there is no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

from languages import LANGUAGES
from memory.text.language import language_of
from memory.text.times.pieces import Clock, Day, PartOfDay, Piece, PieceReader
from memory.text.times.tables import fold, table

#: The day of a month, with the sign or ending by which it is one.
_NUMBER: Final = re.compile(r"(?<!\d)(\d{1,2})(st|nd|rd|th|er|\.|号|號|日)?(?![\d月])")
_LEAD: Final = re.compile(r"(?:at|um|ab|a las?|à) ", re.IGNORECASE)
#: "Moved to 4", which elsewhere is "until 4", and to a day, which the plan is on.
_MOVED_TO: Final = re.compile(r"(?<=[改挪调移])到|\b(?:auf|al) (?=\w)", re.IGNORECASE)
#: The words before a weekday that leave open which week is meant.
_ON: Final = re.compile(r"(?:on|am|el|le) |", re.IGNORECASE)
#: Particles that a piece of Japanese ends with.
_PARTICLES: Final = "にのはへ"
#: The most days until a plan's old day for a bare weekday to mean its next one, and the most minutes between an hour
#: of a part of the day ("in the afternoon at 3") and one without.
_NEAR: Final = 7
_ALIKE: Final = 4 * 60


class _Words(NamedTuple):
    text: str
    value: Day | Clock
    start: int
    end: int
    part: str = ""


class Rescheduled(NamedTuple):
    """A plan whose words for its day are true on `asked`."""

    plan: str
    asked: date


def rescheduled(plan: str, said: str, *, told: date, today: date) -> Rescheduled | None:
    """Returns a plan of the day `told`, given without its date, at the time that `said` names `today`.

    None if `said` names no time, or none with a clear place in the plan.
    """
    values = (_rescheduled(plan, said, code, told, today) for code in _codes(f"{plan} {said}"))
    return next((value for value in values if value is not None), None)


def without_times(text: str) -> str:
    for code in _codes(text):
        for piece in reversed(_pieces(text, code, date(2000, 1, 1))):
            text = f"{text[: piece.start]} {text[piece.end :]}"
    return text


def names_time(text: str) -> bool:
    return without_times(text) != text


def _codes(text: str) -> Iterable[str]:
    code = language_of(text)
    return (code,) if code in LANGUAGES else LANGUAGES


def _pieces(text: str, code: str, today: date) -> list[Piece]:
    return PieceReader(table(code), today, month_first=code == "en").pieces(fold(text))


def _rescheduled(plan: str, said: str, code: str, told: date, today: date) -> Rescheduled | None:
    days, hours = _times(plan, code, told)
    new_days, new_hours = (
        # "It's Wednesday, not Tuesday" of a plan for Tuesday.
        [words for words in times if words.text.casefold() not in plan.casefold()]
        for times in _times(_MOVED_TO.sub(" ", said), code, today)
    )
    if max(len(new_days), len(new_hours)) != 1:
        return None
    places: list[tuple[_Words, str | None]] = []
    asked = told
    if new_days:
        if len(days) != 1:
            return None
        text, asked = _day(days[0], new_days[0], code, told=told, today=today)
        places.append((days[0], text))
    if new_hours:
        if len(hours) != 1:
            return None
        places.append((hours[0], _hour(hours[0], new_hours[0])))
    value = plan
    for old, new in sorted(places, key=lambda place: -place[0].start):
        if new is None:
            return None
        value = f"{value[: old.start]}{new}{value[old.end :]}"
    held, _ = _times(value, code, asked)
    return Rescheduled(value, asked) if len(held) == 1 and _date(held[0]) >= today else None


def _times(text: str, code: str, today: date) -> tuple[list[_Words], list[_Words]]:
    """Returns the days and the hours of a text; an hour has the part of the day before it."""
    days: list[_Words] = []
    hours: list[_Words] = []
    last: Piece | None = None
    for piece in _pieces(text, code, today):
        words = text[piece.start : piece.end]
        end = piece.end - len(words) + len(words.rstrip(_PARTICLES))
        if isinstance(piece.value, Day):
            days.append(_Words(text[piece.start : end], piece.value, piece.start, end))
        elif isinstance(piece.value, Clock):
            of_part = (
                last is not None and isinstance(last.value, PartOfDay) and not text[last.end : piece.start].strip()
            )
            start = last.start if last is not None and of_part else piece.start
            hours.append(_Words(text[start:end], piece.value, start, end, text[start : piece.start]))
        last = piece
    return days, hours


def _date(words: _Words) -> date:
    assert isinstance(words.value, Day)
    return words.value.day


def _day(old: _Words, new: _Words, code: str, *, told: date, today: date) -> tuple[str | None, date]:
    """Returns the words that stand for the old day, and the day on which they are true; None if it is not sure."""
    assert isinstance(old.value, Day)
    assert isinstance(new.value, Day)
    if new.value.kind == "month_day":
        return _in_month(old.text, new.text, told=told, today=today)
    if new.value.kind == "weekday":
        was, now = _weekday(old.text, code, told), _weekday(new.text, code, today)
        if was and now and _ON.fullmatch(new.text[: -len(now)]):
            lead = old.text[: -len(was)]
            if _ON.fullmatch(lead):
                return f"{new.text[: -len(now)] or lead}{now}", today
            return f"{lead}{now}", told
        if not 0 <= (old.value.day - today).days <= _NEAR:
            return None, today
    return new.text, today


def _in_month(old: str, new: str, *, told: date, today: date) -> tuple[str | None, date]:
    """Returns the words for the old day with its number replaced, or the new ones if it has none; see `_day`."""
    numbers, number = list(_NUMBER.finditer(old)), _NUMBER.search(new)
    if not numbers:
        return new, today
    if len(numbers) > 1 or number is None:
        return None, today
    kept = numbers[0][2] or ""
    ending = (number[2] or "") if kept.isascii() and kept.isalpha() else kept
    return f"{old[: numbers[0].start()]}{number[1]}{ending}{old[numbers[0].end() :]}", told


def _weekday(text: str, code: str, today: date) -> str:
    """Returns the weekday that ends a text, without the words before it; empty if none does."""
    for start in range(len(text) - 1, -1, -1):
        if start and text[start - 1].isascii() and text[start - 1] != " ":
            continue
        pieces = _pieces(text[start:], code, today)
        if [(piece.start, piece.end) for piece in pieces] == [(0, len(text) - start)]:
            return text[start:] if isinstance(pieces[0].value, Day) and pieces[0].value.kind == "weekday" else ""
    return ""


def _hour(old: _Words, new: _Words) -> str | None:
    assert isinstance(old.value, Clock)
    assert isinstance(new.value, Clock)
    if old.part and not new.part and new.value.bare:
        if abs(old.value.minutes - new.value.minutes) > _ALIKE:
            return None
        return f"{old.part}{new.text}"
    lead = _LEAD.match(old.text)
    return f"{lead[0]}{new.text}" if lead and new.text[:1].isdigit() else new.text
