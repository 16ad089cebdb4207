"""Finds the coming days that a text names, in six languages: "what's on this weekend?", "Zahnarzt am Freitag".

Invariants: pure. Days are local to the zone of the moment at which the text was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias

from memory.dates import day_of, week_at
from memory.text.times.phrases import languages, piece_reader
from memory.text.times.pieces import Day
from memory.text.times.tables import fold, table

#: The first and the last day, both included.
Days: TypeAlias = tuple[date, date]
_SATURDAY: Final = 5
#: A date, or the first and the last, that was added behind a word when the text was stored; it takes precedence.
_ADDED: Final = re.compile(r"\((\d{4}-\d\d-\d\d)(?:/(\d{4}-\d\d-\d\d))?\)")


def days_named(text: str, *, language: str, now: datetime) -> Days | None:
    """Returns the days that a text names, from `now` (aware) on; None if it names none, or several separate ones."""
    found = set(_days(text, language, now))
    return found.pop() if len(found) == 1 else None


def _added_days(text: str) -> Iterator[Days]:
    """Yields the dates in brackets, except those of days that don't exist: people write such dates, too."""
    for first, last in _ADDED.findall(text):
        begin, end = day_of(first), day_of(last or first)
        if begin is not None and end is not None:
            yield begin, end


def _days(text: str, language: str, now: datetime) -> Iterator[Days]:
    if _ADDED.search(text):
        yield from _added_days(text)
        return
    today, folded = now.date(), fold(text)
    for code in languages(text, language):
        words = table(code)
        for weeks, name in enumerate(("this_week", "next_week")):
            if words.text(name).search(folded):
                monday, sunday, _ = week_at(today, weeks)
                yield max(monday, today), sunday
                return
        named = [one.value for one in piece_reader(words, now).pieces(folded) if isinstance(one.value, Day)]
        if named:
            yield from ((one.day, one.day + timedelta(days=_is_whole_weekend(one))) for one in named)
            return


def _is_whole_weekend(day: Day) -> bool:
    return day.kind == "weekend" and day.day.weekday() == _SATURDAY
