"""Finds the memories that speak of an occasion on a day: a plan that one may ask about, or a birthday.

Invariants: pure. A plan has exactly one day, which was still to come when it was told. A plan is not asked about if it
is not sure to happen, only ends or is due on its day, repeats, or touches illness, death, separation or the law.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from languages import LANGUAGES
from memory.store.memories import Memory
from memory.text.language import language_of
from memory.text.occasion_words import shows
from memory.text.times.clock import day_of
from memory.text.times.phrases import read_time
from memory.text.times.readings import Reading
from memory.text.words import query_terms

#: The categories of facts that may be plans, the one in which only a visit may be one, and that of notes.
_PLANS: Final = frozenset({"plan", "happening"})
_HEALTH: Final = "health"
_NOTES: Final = "decision"
#: The date that was added behind a day, and one that stands by itself.
_ADDED: Final = re.compile(r"\s?\((?:\d{4}-\d\d-\d\d/)?(\d{4}-\d\d-\d\d)\)")
_ADDED_LONGER: Final = re.compile(r"\(\d{4}(?:-\d\d)?\)")
_SPOKEN_YEAR: Final = re.compile(r"[,\s]*(?:\bdel?\s+)?(?<!\d)(?:19|20)\d\d(?:年|(?!\d))")
_ISO_DAY: Final = re.compile(r"(?:\d{4}-|--)(\d\d)-(\d\d)")
#: A day whose month is unclear: 4/9.
_AMBIGUOUS: Final = re.compile(r"\d{1,2}[/.-]\d{1,2}(?:[/.-]\d{2,4})?")


#: Words of plans that do not tell plans apart.
_COMMON: Final = frozenset(
    query_terms("going having with the and for to have meet go see appointment plan Termin cita")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """An occasion on a `day`. `what` names a plan in the person's own words, without its time; a birthday has none."""

    day: date
    what: str = ""


def plan_of(memory: Memory) -> Occasion | None:
    spoken = _ADDED_LONGER.sub("", _ADDED.sub("", memory.value))
    usual = memory.kind == "event" or memory.category in _PLANS or memory.key == "plan"
    visit = memory.category in (_HEALTH, _NOTES) and shows(spoken, "visit")
    noted = memory.category == _NOTES and shows(spoken, "event")
    if memory.kind not in ("fact", "event") or memory.key == "goal" or not (usual or visit or noted):
        return None
    if memory.unsure or memory.flags or memory.subject or shows(spoken, "others", "no_occasion", "tender"):
        return None
    told = day_of(memory.local_date)
    read = None if told is None else _read(spoken, told)
    added = {day for written in _ADDED.findall(memory.value) if (day := day_of(written)) is not None}
    if told is None or read is None or not read.what or len(added) > 1 or len(query_terms(read.what)) == 0:
        return None
    # The date that was added when the plan was told counts more than another reading of its words.
    day = next(iter(added), read.first.date())
    return Occasion(day=day, what=read.what) if day > told else None


def birthday_of(memory: Memory, year: int) -> date | None:
    """Returns the day of the person's own birthday in a year; None if the memory doesn't tell it surely."""
    if memory.kind != "fact" or memory.key != "birthday" or memory.subject or memory.unsure:
        return None
    value = memory.value.strip()
    if (numbers := _ISO_DAY.fullmatch(value)) is not None:
        return _day(year, int(numbers[1]), int(numbers[2]))
    spoken = _SPOKEN_YEAR.sub("", value)
    if _AMBIGUOUS.fullmatch(spoken.strip(" .")):
        return None
    # In a leap year every day can be read.
    read = _read(spoken, date(2023, 12, 31))
    return None if read is None else _day(year, read.first.month, read.first.day)


def is_conditional(said: str) -> bool:
    return shows(said, "condition")


def is_settled(plan: Occasion, said: str, *, later: bool) -> bool:
    """Returns whether a message takes a plan back or, if it was said when the plan was over, already speaks of it."""
    shared = set(query_terms(plan.what)) - _COMMON or set(query_terms(plan.what))
    return bool(shared & set(query_terms(said))) and (later or shows(said, "called_off"))


def language(plan: Occasion) -> str | None:
    return language_of(plan.what)


def _read(text: str, told: date) -> Reading | None:
    now = datetime.combine(told, time(0, 0, 1), UTC)
    known = language_of(text)
    for code in [known] if known in LANGUAGES else LANGUAGES:
        read = read_time(text, language=code, now=now)
        if isinstance(read, Reading):
            return read if read.rule is None and read.first.date() > told else None
    return None


def _day(year: int, month: int, day: int) -> date | None:
    if (month, day) == (2, 29) and not calendar.isleap(year):
        return date(year, 2, 28)
    try:
        return date(year, month, day)
    except ValueError:
        return None
