"""The pieces that make up a time in a text: an hour, a day, a length, a repetition, an end.

Invariants: pure. Among overlapping pieces, those that explain the most of the text with the fewest pieces are kept. A
piece that names a time that doesn't exist (31 February, 25:00) says so instead of being left out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Final, TypeAlias

from dateutil.relativedelta import relativedelta

from memory.text.times.calendar import whole
from memory.text.times.reader import DayReader, NotATime
from memory.text.times.rules import DAYS
from memory.text.times.tables import DATES, Table
from memory.text.zones import zone_named

Part: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day in minutes, up to 24:00, or past it in a `part` of the day; a `bare` one is of either half.

    It `ends` a repetition if words say so: "bis 13 Uhr", which alone is when something has to be done.
    """

    minutes: int
    bare: bool = False
    part: Part | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Clocks:
    """Several times of the same day: "at 8, 14 and 20"."""

    times: tuple[Clock, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The minutes of the day, both included, between which a short length repeats: "between 9 and 17".

    Without a first one, it repeats from now on: "until 17".
    """

    first: int | None
    last: int


@dataclass(frozen=True, slots=True)
class Except:
    """The days of the week on which a repetition is left out."""

    days: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Zone:
    """The zone by whose clock a time is told; that of the person if it is empty."""

    name: str


@dataclass(frozen=True, slots=True)
class PartOfDay:
    """A part of the day: dawn, morning, noon, afternoon, evening or night."""

    name: Part


@dataclass(frozen=True, slots=True)
class Day:
    """A day, and the kind of words that named it; it `begins` a repetition if they say so ("from Monday")."""

    day: date
    kind: str
    part: Part | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time; a `short` one has hours and minutes only and is exact."""

    steps: relativedelta
    short: bool


@dataclass(frozen=True, slots=True)
class Ahead:
    """A time that lies a length ahead of now."""

    length: Length


@dataclass(frozen=True, slots=True)
class Before:
    """How long before what other pieces name: "the evening before the flight on 10 December".

    They stand after it, or before it in languages that put it `behind`.
    """

    length: Length
    part: Part | None = None
    behind: bool = False


@dataclass(frozen=True, slots=True)
class Every:
    """A repetition: its frequency, its interval, the days within it, a part of the day, and how many hours it has."""

    frequency: str
    interval: int = 1
    by: tuple[tuple[str, str], ...] = ()
    part: Part | None = None
    hours: int = 0


@dataclass(frozen=True, slots=True)
class Until:
    """The last day of a repetition."""

    day: date


@dataclass(frozen=True, slots=True)
class For:
    """The length of time for which a repetition goes on."""

    length: Length


@dataclass(frozen=True, slots=True)
class Word:
    """A word that names no time that can be set, with the reason: `past`, `vague` or `impossible`.

    A word for some future time (`soon`) means nothing beside a time, one for a week or a month (`period`) nothing
    beside a day.
    """

    reason: str


Value: TypeAlias = (
    Clock | Clocks | Window | Except | Zone | PartOfDay | Day | Ahead | Before | Every | Until | For | Word
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece at `text[start:end]`."""

    start: int
    end: int
    value: Value = field(compare=False)


_FREQUENCIES: Final = {
    "minute": ("MINUTELY", 1), "hour": ("HOURLY", 1), "day": ("DAILY", 1), "week": ("WEEKLY", 1),
    "fortnight": ("WEEKLY", 2), "month": ("MONTHLY", 1), "quarter": ("MONTHLY", 3), "year": ("YEARLY", 1),
}  # fmt: skip
_EVERY_DAYS: Final = {"every_workday": (0, 1, 2, 3, 4), "every_weekend": (5, 6)}
_MINUTES: Final = {"half": 30, "quarter": 15, "three_quarters": 45}


class PieceReader:
    """Reads the pieces of one language for a day."""

    def __init__(self, table: Table, today: date, *, month_first: bool) -> None:
        self._table = table
        self._today = today
        self._days = DayReader(table, today, looks="ahead", month_first=month_first)

    def pieces(self, text: str) -> list[Piece]:
        found: list[Piece] = []
        for meaning, key, match in self._table.find(text):
            if meaning == "length" or match.end() == match.start():
                continue
            value = self._value(meaning, key, match)
            if value is not None:
                found.append(Piece(match.start(), match.end(), value))
        return _best(found)

    def _value(self, meaning: str, key: str, match: re.Match[str]) -> Value | None:
        if meaning in ("past", "soon", "period", "vague"):
            return Word(meaning)
        if meaning in _EVERY_DAYS:
            return self._weekly(_EVERY_DAYS[meaning])
        try:
            value: Value | None = (
                self._read_day(meaning, key, match)
                if meaning in DATES
                else getattr(self, f"_read_{meaning}")(key, match)
            )
        except NotATime:
            return None
        except (ValueError, OverflowError):
            return Word("impossible")
        if isinstance(value, Day) and self._is_other_weekday(match, value.day):
            value = Word("vague")  # Monday 4 December, if it is a Friday
        elif isinstance(value, Day) and self._table.text("begins").search(match.group()):
            value = replace(value, begins=True)
        elif isinstance(value, Clock) and self._table.text("ends").search(match.group()):
            value = replace(value, ends=True)
        return value

    def _is_other_weekday(self, match: re.Match[str], day: date) -> bool:
        groups = match.groupdict()
        if written := groups.get("dow"):
            return "月火水木金土日".index(written) != day.weekday()
        named = groups.get("weekday")
        return named is not None and self._table.value("weekday", named) != day.weekday()

    # Times of day.

    def _read_clock(self, key: str, match: re.Match[str]) -> Clock | None:
        groups = match.groupdict()
        hour, minute = self._number(groups["h"]), self._number(groups.get("mm") or groups.get("m") or "0")
        shift = re.fullmatch(r"(-?\d+)([+-]m)?", key)
        assert shift is not None, f"a clock's key is like -30+m, not {key}"
        if shift[2] and minute > 29:
            raise NotATime
        total = hour * 60 + int(shift[1]) + {"-m": -minute, "+m": minute, None: minute}[shift[2]]
        half = self._table.value("ampm", groups["ampm"]) if groups.get("ampm") else None
        written = match.group()
        if hour > 24 or (hour == 24 and total > 24 * 60) or minute > 59 or (half and hour > 12):
            raise ValueError("no such time of day")
        if half:
            return Clock((total % 720 + (720 if half == "pm" else 0)) % 1440)
        sure = re.search(r"\b0\d", written) or hour > 12 or not hour or groups.get("sure") is not None
        return Clock(total % 1440 if total != 1440 else total, bare=not sure)

    def _read_fixed(self, key: str, match: re.Match[str]) -> Clock:
        hour, minute = key.split(":")
        return Clock(int(hour) * 60 + int(minute))

    def _read_clocks(self, key: str, match: re.Match[str]) -> Clocks | Word:
        times, marked = self._clocks(match)
        if len(times) < 2:
            raise NotATime
        if 0 < marked < len(times):
            return Word("vague")  # at 7 and 9 pm
        if any(clock.minutes > 12 * 60 for clock in times) and not marked:
            times = [replace(clock, bare=False) for clock in times]
        return Clocks(tuple(times))

    def _read_between(self, key: str, match: re.Match[str]) -> Window | Word:
        times, marked = self._clocks(match)
        if key:
            return Window(None, in_part(times[0].minutes, times[0].part) if times[0].part else times[0].minutes)
        if len(times) < 2:
            raise NotATime
        first, last = (in_part(clock.minutes, clock.part) if clock.part else clock.minutes for clock in times[:2])
        if times[1].bare and last <= first < 12 * 60:
            last += 12 * 60
        # Of which half of the day are "between 1 and 5" and "between 8 and 10 pm"?
        if first >= last or (times[0].bare and (marked == 1 or (self._table.twelve and first < 6 * 60))):
            return Word("vague")
        return Window(first, last)

    def _clocks(self, match: re.Match[str]) -> tuple[list[Clock], int]:
        """Returns the times that a match lists, and how many of them say their half of the day."""
        times: list[Clock] = []
        marked = 0
        for token in self._table.text("time").finditer(match.group()):
            text = self._table.alone(token.group()) or token.group()
            values = [piece.value for piece in self.pieces(text)]
            clocks = [value for value in values if isinstance(value, Clock)]
            parts = [value.name for value in values if isinstance(value, PartOfDay)]
            if len(clocks) != 1 or len(values) != len(clocks) + len(parts[:1]):
                raise NotATime
            times.append(replace(clocks[0], part=parts[0] if parts else None))
            said = any(found[2].groupdict().get("ampm") for found in self._table.whole(text, ("clock",)))
            marked += bool(said or parts)
        return times, marked

    def _read_except(self, key: str, match: re.Match[str]) -> Except:
        days = _EVERY_DAYS.get(f"every_{key}") or self._table.values("weekday", match.group())
        return Except(tuple(_days_from(days[0], days[-1]) if key == "range" else days))

    def _read_zone(self, key: str, match: re.Match[str]) -> Zone:
        name = match.groupdict().get("zone")
        if not name:
            return Zone("")
        with suppress(ValueError):
            return Zone(self._table.value("zone", name))
        if (zone := zone_named(name)) is None:
            raise NotATime
        return Zone(zone)

    def _read_part(self, key: str, match: re.Match[str]) -> PartOfDay:
        return PartOfDay(key or self._table.value("part", match["part"]))

    # Days.

    def _read_day(self, meaning: str, key: str, match: re.Match[str]) -> Day:
        first = self._days.read(meaning, key, match).first
        groups = match.groupdict()
        if meaning in ("date", "holiday") and any(groups.get(name) for name in ("y", "years", "era")):
            return Day(first, "year")
        kind = meaning if meaning in ("near", "weekday", "month_day", "weekend") else "date"
        return Day(max(first, self._today) if kind == "weekend" else first, kind)

    def _read_near_part(self, key: str, match: re.Match[str]) -> Day:
        days, part = key.split()
        return Day(self._today + timedelta(days=int(days)), "near", part)

    def _read_begin(self, key: str, match: re.Match[str]) -> Day:
        steps, unit = key.split()
        return Day(whole(self._today, int(steps), unit).first, "date", begins=True)

    def _read_day_part(self, key: str, match: re.Match[str]) -> Day:
        part = key or self._table.value("part", match["part"])
        return replace(self._read_day("weekday" if match.groupdict().get("weekday") else "near", "", match), part=part)

    # Lengths, repetitions and ends.

    def _read_in(self, key: str, match: re.Match[str]) -> Ahead:
        return Ahead(self._length(match["length"]))

    def _read_before(self, key: str, match: re.Match[str]) -> Before:
        days, _, part = key.removeprefix("behind").strip().partition(" ")
        length = _length(int(days), "day") if days else self._length(match["length"])
        return Before(length, None if part in ("", "day") else part, behind=key.startswith("behind"))

    def _read_every(self, key: str, match: re.Match[str]) -> Every:
        count = self._number(match["n"]) if match.groupdict().get("n") else 1
        return self._every(self._table.value("unit", match["unit"]), count + int(key or 0))

    def _read_every_length(self, key: str, match: re.Match[str]) -> Every:
        steps = self._length(match["length"]).steps
        minutes = steps.hours * 60 + steps.minutes
        if not minutes or steps.days or steps.months or steps.years:
            raise NotATime
        return self._every("minute", minutes)

    def _read_every_other(self, key: str, match: re.Match[str]) -> Every:
        return self._every(self._table.value("unit", match["unit"]), int(key or 2))

    def _read_every_fixed(self, key: str, match: re.Match[str]) -> Every:
        unit, count = key.split()
        return self._every(unit, int(count))

    def _read_times_a_day(self, key: str, match: re.Match[str]) -> Every:
        return Every("DAILY", hours=int(key or 0) or self._number(match["n"]))

    def _read_every_part(self, key: str, match: re.Match[str]) -> Every:
        return Every("DAILY", part=key or self._table.value("part", match["part"]))

    def _read_every_weekday(self, key: str, match: re.Match[str]) -> Every:
        return self._weekly(self._table.values("weekday", match.groupdict().get("days") or match.group()), int(key))

    def _read_every_weekday_part(self, key: str, match: re.Match[str]) -> Every:
        days = self._table.values("weekday", match["weekday"])
        return self._weekly(days, 1, key or self._table.value("part", match["part"]))

    def _read_every_range(self, key: str, match: re.Match[str]) -> Every:
        first, last = (self._table.value("weekday", match[name]) for name in ("weekday", "weekday2"))
        return self._weekly(_days_from(first, last))

    def _read_every_month_day(self, key: str, match: re.Match[str]) -> Every | Word:
        groups = match.groupdict()
        days = [self._number(text) for name, text in groups.items() if text and name in ("d", "d2", "d3")]
        if not all(1 <= day <= 31 for day in days):
            raise ValueError("no such day")
        if not days[1:] and not groups.get("last"):
            return Every("MONTHLY", int(key or 1), month_day(days[0]))
        if max(days) > 28:
            return Word("vague")  # in a month without it
        days = [*sorted(days), *([-1] if groups.get("last") else [])]
        return Every("MONTHLY", int(key or 1), (("BYMONTHDAY", ",".join(map(str, days))),))

    def _read_every_month_end(self, key: str, match: re.Match[str]) -> Every:
        return Every("MONTHLY", 1, (("BYMONTHDAY", "-1"),))

    def _read_every_nth(self, key: str, match: re.Match[str]) -> Every:
        day = DAYS[self._table.value("weekday", match["weekday"])]
        places = [text for name, text in match.groupdict().items() if text and name.startswith("nth")]
        return Every("MONTHLY", 1, (("BYDAY", ",".join(f"{self._table.ordinal(text):+d}{day}" for text in places)),))

    def _read_every_date(self, key: str, match: re.Match[str]) -> Every:
        return yearly(self._date(match["date"]))

    def _read_until(self, key: str, match: re.Match[str]) -> Until:
        return Until(self._date(match["date"]))

    def _read_for(self, key: str, match: re.Match[str]) -> For:
        if match.groupdict().get("length"):
            return For(self._length(match["length"]))
        return For(_length(self._number(match["n"]), self._table.value("unit", match["unit"])))

    # The parts of pieces.

    def _every(self, unit: str, count: int) -> Every:
        frequency, units = _FREQUENCIES[unit]
        return Every(frequency, units * count)

    def _weekly(self, days: Any, interval: int = 1, part: Part | None = None) -> Every:
        return Every("WEEKLY", interval, (("BYDAY", ",".join(DAYS[day] for day in sorted(set(days)))),), part)

    def _number(self, text: str) -> int:
        return self._table.number(text)

    def _date(self, text: str) -> date:
        for meaning, key, match in self._table.whole(text, DATES):
            day = self._read_day(meaning, key, match).day
            if self._is_other_weekday(match, day):
                raise ValueError("another day of the week")
            return day
        raise NotATime

    def _length(self, text: str) -> Length:
        best: Length | None = None
        for _, key, match in self._table.whole(text, ("length",)):
            best = self._one_length(key, match)
        if best is None:
            raise NotATime
        return best

    def _one_length(self, key: str, match: re.Match[str]) -> Length:
        groups = match.groupdict()
        if key == "hours and minutes":
            return _length(self._number(groups["n"]) * 60 + self._number(groups["n2"]), "minute")
        key, _, unit = key.partition(" ")
        unit = unit or self._table.value("unit", groups["unit"])
        count = self._number(groups.get("n") or ("0" if key in _MINUTES else "1"))
        if key in _MINUTES or key == ".5":
            return _broken(count, _MINUTES.get(key, 30), unit)
        return _length(count, unit)


def _days_from(first: int, last: int) -> list[int]:
    return [(first + step) % 7 for step in range((last - first) % 7 + 1)]


def in_part(minutes: int, part: str) -> int:
    """Returns a time of day without "am" or "pm" in a part of the day; past 24:00 it is in the night's second half."""
    half = 720
    hour = minutes // 60
    if hour > 12:
        return minutes
    if part in ("dawn", "morning"):
        return minutes % half if hour == 12 and part == "dawn" else minutes
    if part == "noon":
        return minutes if hour >= 10 else minutes + half
    if part == "night" and (hour == 12 or hour <= 4):
        return minutes % half + 2 * half
    return minutes if hour == 12 else minutes + half


def month_day(day: int) -> tuple[tuple[str, str], ...]:
    if day <= 28:
        return (("BYMONTHDAY", str(day)),)
    return (("BYMONTHDAY", ",".join(map(str, range(28, day + 1)))), ("BYSETPOS", "-1"))


def yearly(day: date) -> Every:
    return Every(
        "YEARLY",
        1,
        (("BYMONTH", str(day.month)), *(month_day(day.day) if day.month == 2 else (("BYMONTHDAY", str(day.day)),))),
    )


def _length(count: int, unit: str) -> Length:
    name, factor = {"fortnight": ("week", 2), "quarter": ("month", 3)}.get(unit, (unit, 1))
    amounts: dict[str, Any] = {f"{name}s": count * factor}
    return Length(relativedelta(**amounts), name in {"minute", "hour"})


def _broken(whole: int, sixtieths: int, unit: str) -> Length:
    """Returns the length of some units and a fraction of one; raises `NotATime` for a half week."""
    name, count = {"hour": ("minute", 60), "day": ("hour", 24), "month": ("day", 30), "year": ("month", 12)}.get(
        unit, ("", 0)
    )
    if not count:
        raise NotATime
    return _length(whole * count + count * sixtieths // 60, name)


def _best(found: list[Piece]) -> list[Piece]:
    """Returns the pieces without overlap that cover the most characters; if several choices do, the fewest pieces."""
    ordered = sorted(found, key=lambda piece: piece.end)
    best: list[tuple[int, int, list[Piece]]] = [(0, 0, [])]
    ends = [0]
    for piece in ordered:
        before = max(index for index, end in enumerate(ends) if end <= piece.start)
        covered, fewer, pieces = best[before]
        # An hour says more than a part of the day in the same words ("at noon"), and anything than no time.
        cost = 3 if isinstance(piece.value, PartOfDay | Word) else 2
        taken = (covered + piece.end - piece.start, fewer - cost, [*pieces, piece])
        best.append(max(taken, best[-1], key=lambda choice: choice[:2]))
        ends.append(piece.end)
    return best[-1][2]
