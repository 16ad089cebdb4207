"""Puts the pieces of a time together: a reminder's first time, and its rule of repetition.

Invariants: pure. Each piece is used or the answer is a reason to ask; nothing is guessed if two pieces contradict each
other. A day without an hour means nine o'clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate, pairwise
from typing import Final, TypeVar

from memory.text.times.pieces import (
    Ahead,
    Clock,
    Clocks,
    Day,
    Every,
    Except,
    For,
    PartOfDay,
    Until,
    Value,
    Window,
    Word,
    in_part,
    month_day,
    yearly,
)
from memory.text.times.readings import Reading, Reason
from memory.text.times.rules import CLOSEST, DAYS, HORIZON, RRULE, following

_HOURS: Final = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 19, "night": 21}
#: The hours between which a part of the day can lie; those after 24 belong to the next day.
_SPANS: Final = {
    "dawn": (0, 9), "morning": (0, 12), "noon": (10, 15), "afternoon": (12, 20), "evening": (15, 24), "night": (15, 30),
}  # fmt: skip
_NINE: Final = 9 * 60
_DAY: Final = 24 * 60
_SHORT: Final = {"MINUTELY": timedelta(minutes=1), "HOURLY": timedelta(hours=1)}
#: A length that nobody means to repeat at night too, if they name the hour at which it begins.
_ALL_NIGHT: Final = timedelta(hours=2)
_Kind = TypeVar("_Kind", Clock, Window, Except, PartOfDay, Day, Ahead, Every, Until, For, Word)


class Doubt(Exception):
    """The pieces make no sure time."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def together(values: Sequence[Value], now: datetime, *, twelve: bool) -> Reading | Reason:
    """Returns the time that the pieces make up at `now`, or the reason why there is none."""
    listed = [time for value in values for time in (value.times if isinstance(value, Clocks) else (value,))]
    try:
        found = _one_after_the_other([_Pieces(group, now, twelve=twelve).time() for group in _groups(listed)])
    except Doubt as doubt:
        return doubt.reason
    except (ValueError, OverflowError):
        return "impossible"
    if found.first - now > HORIZON:
        return "impossible"
    if found.until is not None and found.until < found.first.date():
        return "past" if found.until < now.date() else "impossible"
    return found


class _Pieces:
    """The pieces of one time by their kinds."""

    def __init__(self, values: Sequence[Value], now: datetime, *, twelve: bool) -> None:
        self._now = now.replace(microsecond=0)
        self._twelve = twelve
        self._values = values
        self._clocks = list(dict.fromkeys(self._all(Clock)))
        self._days = self._all(Day)
        self._parts = self._named_parts()
        self._repeats, self._only_on = self._repeated_in_window(self._all(Every))
        if any(every.hours not in (0, len(self._clocks)) for every in self._all(Every)):
            raise Doubt("vague")  # three times a day, but when?

    def time(self) -> Reading:
        words, aheads = self._all(Word), self._all(Ahead)
        if words:
            raise Doubt(_gravest(words))
        if len(aheads) > 1 or (aheads and (self._days or self._repeats)):
            raise Doubt("vague")
        if self._repeats:
            return self._repeated(self._repeats)
        if any(isinstance(value, Until | For | Except) for value in self._values):
            raise Doubt("vague")
        if len(self._clocks) > 1 or len(self._parts) > 1:
            raise Doubt("vague")
        if aheads:
            return self._ahead(aheads[0])
        if not self._clocks and not self._days and self._part is None:
            raise Doubt("none")
        return self._once()

    def _all(self, kind: type[_Kind]) -> list[_Kind]:
        return [value for value in self._values if isinstance(value, kind)]

    @property
    def _part(self) -> str | None:
        """The part of the day that all hours are in."""
        if len(self._parts) > 1 and self._clocks:
            raise Doubt("vague")
        return self._parts[0] if self._parts else None

    def _is_bare(self) -> bool:
        return self._part is None and any(clock.bare and clock.minutes <= _DAY // 2 for clock in self._clocks)

    def _named_parts(self) -> list[str]:
        named = [value.name for value in self._all(PartOfDay)]
        named += [day.part for day in self._days if day.part]
        named += [every.part for every in self._all(Every) if every.part]
        parts = sorted(set(named), key=list(_SPANS).index)
        return ["evening"] if parts == ["evening", "night"] else parts

    def _repeated_in_window(self, everies: list[Every]) -> tuple[Every | None, date | None]:
        """Returns the repetition, and its only day if it has one.

        A length that repeats between two hours is the same as those hours of every day.
        """
        short = [every for every in everies if every.frequency in _SHORT]
        windows = self._all(Window) + [Window(None, clock.minutes) for clock in self._clocks if clock.ends and everies]
        self._clocks = [clock for clock in self._clocks if not (clock.ends and everies)]
        if not windows:
            return _merged(everies, self._all(Except)), None
        if len(windows) > 1 or len(short) != 1 or self._clocks or self._parts:
            raise Doubt("vague")
        step = _SHORT[short[0].frequency] * short[0].interval
        if step < CLOSEST:
            raise Doubt("impossible")
        longer = [every for every in everies if every not in short]
        only = self._one_day().day if self._days and not longer and not self._days[0].begins else None
        first, today, minutes = windows[0].first, self._now.date(), int(step.total_seconds()) // 60
        if first is None:
            only, first = only or today, self._now.hour * 60 + self._now.minute + minutes
            if longer or only != today or first > windows[0].last:
                raise Doubt("vague")
        self._clocks = [Clock(time) for time in range(first, windows[0].last + 1, minutes)]
        return _merged(longer or [Every("DAILY")], self._all(Except)), only

    # Times that come once.

    def _ahead(self, ahead: Ahead) -> Reading:
        length = ahead.length
        if length.short:
            if self._clocks or self._part:
                raise Doubt("vague")
            due = (self._now.astimezone(UTC) + length.steps).astimezone(self._now.tzinfo)
            if due <= self._now:
                raise Doubt("vague")
            return Reading(first=due, hour_given=True)
        if length.steps.hours or length.steps.minutes:
            wall = self._now.replace(tzinfo=None) + length.steps
            return Reading(first=self._local(wall.date(), wall.hour * 60 + wall.minute), hour_given=True)
        day = (self._now.replace(tzinfo=None) + length.steps).date()
        return self._on(day)

    def _once(self) -> Reading:
        if self._days:
            return self._on_a_day()
        today = self._now.date()
        for day in (today, today + timedelta(days=1), today + timedelta(days=2)):
            for minutes in self._minutes(spoken_day=False):
                due = self._local(day, minutes)
                if due.astimezone(UTC) > self._now.astimezone(UTC):
                    given = bool(self._clocks or self._part)
                    return Reading(first=due, hour_given=given, day_given=False, bare=self._is_bare())
        raise Doubt("past")

    def _on_a_day(self) -> Reading:
        day = self._one_day()
        if day.day < self._now.date():
            raise Doubt("past")
        if self._clocks and self._clocks[0].minutes == _DAY and day.kind != "near":
            raise Doubt("vague")  # the midnight before that day, or after it
        found = replace(self._on(day.day), month_given=day.kind != "month_day")
        if found.first.astimezone(UTC) > self._now.astimezone(UTC):
            return found
        if day.kind in ("date", "weekend"):
            return self._on(day.day.replace(year=day.day.year + 1))
        raise Doubt("past" if self._clocks or self._part else "vague")

    def _one_day(self) -> Day:
        weekdays = [day for day in self._days if day.kind == "weekday"]
        exact = {day.day for day in self._days if day.kind != "weekday"}
        if len(exact) > 1 or (len({day.day for day in weekdays}) > 1):
            raise Doubt("vague")
        if exact and any(day.day.weekday() != next(iter(exact)).weekday() for day in weekdays):
            raise Doubt("vague")
        return next((day for day in self._days if day.kind != "weekday"), self._days[0])

    def _on(self, day: date) -> Reading:
        """Returns the named hour on a day: the first possible one that is still ahead."""
        times = [self._local(day, minutes) for minutes in self._minutes(spoken_day=day == self._now.date())]
        ahead = [due for due in times if due.astimezone(UTC) > self._now.astimezone(UTC)]
        given = bool(self._clocks or self._part)
        return Reading(first=(ahead or times)[0], hour_given=given, bare=self._is_bare())

    def _minutes(self, *, spoken_day: bool) -> list[int]:
        """Returns the possible times of day, in minutes, in the order in which they are tried."""
        if not self._clocks:
            if self._part == "dawn":
                raise Doubt("vague")
            return [_HOURS[self._part] * 60 if self._part else _NINE]
        return self._clock_minutes(self._clocks[0], spoken_day=spoken_day)

    def _clock_minutes(self, clock: Clock, *, spoken_day: bool) -> list[int]:
        minutes = clock.minutes
        if clock.part and self._parts and clock.part not in self._parts:
            raise Doubt("vague")  # tomorrow morning, tickets for 8 in the evening
        if part := clock.part or self._part:
            meant = in_part(minutes, part) if clock.bare or minutes == 0 else minutes
            first, last = _SPANS[part]
            if not first * 60 <= meant <= last * 60:
                raise Doubt("vague")
            return [meant]
        if clock.bare and self._twelve and 60 <= minutes < 8 * 60:
            return [time for time in (minutes, minutes + 720) if 7 * 60 <= time <= 22 * 60]
        if clock.bare and spoken_day and minutes < 720:
            return [minutes, minutes + 720]
        return [minutes]

    def _local(self, day: date, minutes: int) -> datetime:
        """Returns a time of a day on the wall clock; one that the clock skips falls equally far after the gap."""
        wall = datetime.combine(day, time(), self._now.tzinfo) + timedelta(minutes=minutes)
        return wall.astimezone(UTC).astimezone(self._now.tzinfo)

    # Repeated times.

    def _repeated(self, every: Every) -> Reading:
        found = self._by_length(every) if every.frequency in _SHORT else self._by_days(every)
        return Reading(
            first=found.first, rule=found.rule, until=self._last_day(found.first), hour_given=found.hour_given
        )

    def _by_length(self, every: Every) -> Reading:
        step = _SHORT[every.frequency] * every.interval
        if step < CLOSEST:
            raise Doubt("impossible")
        if self._part or len(self._clocks) > 1 or not all(day.begins for day in self._days):
            raise Doubt("vague")
        rule = f"{RRULE}FREQ={every.frequency};INTERVAL={every.interval}"
        if self._clocks and step <= _ALL_NIGHT:
            raise Doubt("vague")  # every hour from 8 on, but until when?
        if self._clocks or self._days:
            return Reading(first=self._once().first, rule=rule, hour_given=True)
        first = (self._now.astimezone(UTC) + step).astimezone(self._now.tzinfo)
        return Reading(first=first, rule=rule, hour_given=True)

    def _by_days(self, every: Every) -> Reading:
        every, start = self._with_day(every)
        minutes = sorted({self._clock_minutes(clock, spoken_day=False)[0] % _DAY for clock in self._clocks})
        if not minutes:
            known = self._parts[1:] and "dawn" not in self._parts
            minutes = [_HOURS[part] * 60 for part in self._parts] if known else self._minutes(spoken_day=False)
        begin = max(self._now, self._local(start, 0) - timedelta(seconds=1)) if start else self._now
        first = following(_lines(replace(every, interval=1), minutes), after=begin, first=begin)
        if first is None:
            raise Doubt("impossible")
        if start and not self._days[0].begins and first.date() != start:
            raise Doubt("vague")
        return Reading(first=first, rule=_lines(every, minutes), hour_given=bool(self._clocks))

    def _with_day(self, every: Every) -> tuple[Every, date | None]:
        """Returns the repetition with its days, and the day on which it begins, if one was named."""
        day = self._one_day() if self._days else None
        if day is not None and day.day < self._now.date():
            raise Doubt("past")
        if every.frequency == "DAILY" and day is not None and day.kind == "weekday" and not day.begins:
            raise Doubt("vague")  # every day at 8, on Sunday at 10
        if every.by or every.frequency == "DAILY":
            return every, day.day if day else None
        if day is None:
            raise Doubt("vague")  # every month, but on which day?
        if every.frequency == "WEEKLY":
            return Every("WEEKLY", every.interval, (("BYDAY", DAYS[day.day.weekday()]),)), day.day
        if day.kind == "weekday":
            raise Doubt("vague")  # every month on a Monday, but on which?
        if every.frequency == "MONTHLY":
            return Every("MONTHLY", every.interval, month_day(day.day.day)), day.day
        return Every("YEARLY", every.interval, yearly(day.day).by), day.day

    def _last_day(self, first: datetime) -> date | None:
        ends, lengths = self._all(Until), self._all(For)
        if len(ends) + len(lengths) > (0 if self._only_on else 1):
            raise Doubt("vague")
        if ends:
            return ends[0].day
        if lengths:
            return (first.replace(tzinfo=None) + lengths[0].length.steps).date() - timedelta(days=1)
        return self._only_on


def _gravest(words: list[Word]) -> Reason:
    reasons = {word.reason for word in words}
    return "impossible" if "impossible" in reasons else "past" if "past" in reasons else "vague"


def _merged(everies: list[Every], exceptions: list[Except]) -> Every | None:
    if not everies:
        return None
    found = replace(everies[0], part=None, hours=0)
    for other in everies[1:]:
        found = _both(found, other)
    for left_out in exceptions:
        found = _without(found, {DAYS[day] for day in left_out.days})
    return found


def _without(every: Every, left_out: set[str]) -> Every:
    """Returns a repetition on days of the week without some of them."""
    named = every.by[0][1].split(",") if every.frequency == "WEEKLY" and every.by else ()
    days = DAYS if every == Every("DAILY") else named
    kept = [day for day in days if day not in left_out]
    if not kept:
        raise Doubt("vague")
    return Every("WEEKLY", every.interval, (("BYDAY", ",".join(kept)),))


def _both(this: Every, other: Every) -> Every:
    if this.frequency == "DAILY" and this.interval == 1 and other.by:
        this = Every(other.frequency)
    if other.frequency == "DAILY" and other.interval == 1 and this.by:
        other = Every(this.frequency)
    if this.frequency != other.frequency or (
        this.interval > 1 and other.interval > 1 and this.interval != other.interval
    ):
        raise Doubt("vague")
    interval = max(this.interval, other.interval)
    if not (this.by and other.by) or this.by == other.by:
        return Every(this.frequency, interval, this.by or other.by)
    # Every Monday and every second Thursday are two repetitions.
    if this.frequency != "WEEKLY" or this.interval != other.interval or this.part or other.part:
        raise Doubt("vague")
    days = {day for ((_, value),) in (this.by, other.by) for day in value.split(",")}
    return Every("WEEKLY", interval, (("BYDAY", ",".join(sorted(days, key=DAYS.index))),))


def _lines(every: Every, minutes: Sequence[int]) -> str:
    """Returns the rule of a repetition at some minutes of the day: one line for all hours that have the same minute."""
    names = [name for name, _ in every.by]
    by_line: dict[int, list[int]] = {}
    for minute in minutes:
        # Of several hours, a position in a month would take one.
        by_line.setdefault(minute if "BYSETPOS" in names else minute % 60, []).append(minute // 60)
    interval = f";INTERVAL={every.interval}" if every.interval > 1 else ""
    by = "".join(f";{name}={value}" for name, value in every.by)
    return "\n".join(
        f"{RRULE}FREQ={every.frequency}{interval}{by};BYHOUR={','.join(map(str, hours))};BYMINUTE={minute % 60}"
        for minute, hours in by_line.items()
    )


def _groups(values: Sequence[Value]) -> list[list[Value]]:
    """Returns the pieces of each repetition if each has hours of its own: "mondays at 9 and fridays at 17"."""
    if sum(isinstance(value, Clock) for value in values) < 2 or not any(
        isinstance(value, Every) and value.frequency == "WEEKLY" for value in values
    ):
        return [list(values)]
    own: list[Value] = []
    shared: list[Value] = []
    for value in values:
        if isinstance(value, Day) and value.kind == "weekday" and not value.begins:
            own.append(Every("WEEKLY", 1, (("BYDAY", DAYS[value.day.weekday()]),), value.part))
        else:
            (own if isinstance(value, Clock) or (isinstance(value, Every) and value.by) else shared).append(value)
    kinds = "".join("c" if isinstance(value, Clock) else "e" for value in own)
    if re.fullmatch("c+e*|e+c+", kinds):
        return [list(values)]
    if not (groups := re.fullmatch("(?:ec+)+|(?:c+e)+", kinds) and re.findall("ec+|c+e", kinds)):
        raise Doubt("vague")
    ends = list(accumulate(map(len, groups), initial=0))
    return [[*own[start:end], *shared] for start, end in pairwise(ends)]


def _one_after_the_other(readings: Sequence[Reading]) -> Reading:
    """Returns the reminder that is due whenever one of these is."""
    first = min(readings, key=lambda reading: reading.first.timestamp())
    if not readings[1:]:
        return first
    rule = "\n".join(reading.rule or "" for reading in readings)
    if "INTERVAL" in rule:
        raise Doubt("vague")  # the weeks of both would count from the first
    return replace(first, rule=rule)
