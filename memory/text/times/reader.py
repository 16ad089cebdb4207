"""Reads the days that words mean by the patterns of one language, as said on a day.

A text that looks back means the latest of the days that recur (Fridays, the 3rd of May, summers), and is unsure how
long ago a time was. A text that looks ahead means the next one, and counts exactly.

Invariants: pure. A day that doesn't exist raises a `ValueError` or an `OverflowError`, words that only look like a time
raise `NotATime`.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final, Literal, TypeAlias

from memory.text.times import calendar
from memory.text.times.calendar import Days, a_day
from memory.text.times.tables import Table

Looks: TypeAlias = Literal["back", "ahead"]
#: Days that are counted from the day on which they are named, that recur, or that are written in full.
Rule: TypeAlias = Literal["counted", "recurring", "written"]

#: The days after which days of a meaning recur, unless their week, month or year is given.
CYCLES: Final = {
    "weekday": 7, "weekend": 7, "month_day": 28, "date": 365, "month": 365, "season": 365, "quarter": 365,
    "holiday": 365, "bare_part": 365,
}  # fmt: skip
#: Words that reach back so many days or more, such as "recently", name no time at all.
VAGUE_DAYS: Final = 4
_SHORT: Final = ("minute", "hour")


class NotATime(Exception):
    """The words only look like a time."""


class DayReader:
    """Reads the days of one language for a day."""

    def __init__(self, table: Table, today: date, *, looks: Looks, month_first: bool = False) -> None:
        self._table = table
        self._today = today
        self._ahead = looks == "ahead"
        self._month_first = month_first

    def read(self, meaning: str, key: str, match: re.Match[str]) -> Days:
        days: Days = getattr(self, f"_read_{meaning}")(key, match)
        return days

    # Days near today.

    def _read_near(self, _key: str, match: re.Match[str]) -> Days:
        return a_day(self._today + timedelta(days=self._table.value("near", match["near"])))

    def _read_about(self, key: str, _match: re.Match[str]) -> Days:
        first, last = (self._today + timedelta(days=int(days)) for days in key.split()[:2])
        if self._ahead and (last - first).days == 1:  # a night belongs to the day on which it begins
            last = first
        return Days(first, last, "day" if first == last else "days")

    def _read_step(self, key: str, match: re.Match[str]) -> Days:
        """Reads "last week", "this Friday", "next May", "the summer before last"; the key counts the steps."""
        count, _, how = key.partition(" ")
        steps, groups = int(count), match.groupdict()
        if groups.get("weekday"):
            return self._weekday_step(steps, how, self._table.value("weekday", groups["weekday"]))
        if groups.get("period"):
            unit = self._table.value("period", groups["period"])
            if how == "rolling" and unit in ("week", "month", "year"):
                return Days(calendar.later(self._today, steps, unit), self._today, "days")
            days = calendar.whole(self._today, steps if how != "coming" or unit != "weekend" else 0, unit)
        else:
            days = calendar.yearly(self._today, steps, lambda year: self._in_year(groups, year))
        if how == "until":
            return days._replace(last=max(days.first, min(days.last, self._today)), grain="days")
        return days._replace(first=min(days.last, max(days.first, self._today))) if how == "from" else days

    def _read_whole(self, key: str, _match: re.Match[str]) -> Days:
        """Reads words that hold their unit and their steps, which are the key: 去年, 来週."""
        unit, steps = key.split()
        return calendar.whole(self._today, int(steps), unit)

    def _weekday_step(self, steps: int, how: str, weekday: int) -> Days:
        if how == "coming":
            return a_day(calendar.coming_weekday(self._today, weekday))
        if steps < 0:
            return a_day(calendar.latest_weekday(self._today, weekday) + timedelta(weeks=steps + 1))
        return a_day(calendar.week_at(self._today, steps).first + timedelta(days=weekday))

    # Lengths of time from today.

    def _read_ago(self, key: str, match: re.Match[str]) -> Days:
        least, most, unit = self._amount(match)
        if unit in _SHORT:
            return self._hours(most, unit, -1)
        if self._ahead:
            if key == "back":  # "two days earlier" than something else
                raise NotATime
            return self._counted(least, most, unit, -1)
        first = calendar.later(self._today, -most, unit) - timedelta(days=calendar.slack(most, unit))
        last = calendar.later(self._today, -least, unit) + timedelta(days=calendar.slack(least, unit))
        return Days(first, max(first, min(last, self._today - timedelta(days=1))), "days")

    def _read_hence(self, _key: str, match: re.Match[str]) -> Days:
        least, most, unit = self._amount(match)
        if unit in _SHORT:
            return self._hours(most, unit, 1)
        if self._ahead:
            return self._counted(least, most, unit, 1)
        first = calendar.later(self._today, least, unit) - timedelta(days=calendar.slack(least, unit))
        last = calendar.later(self._today, most, unit) + timedelta(days=calendar.slack(most, unit))
        return Days(max(first, self._today + timedelta(days=1)), last, "days")

    def _counted(self, least: float, most: float, unit: str, direction: int) -> Days:
        if least != most:  # "a few weeks ago" is no day
            raise NotATime
        return calendar.counted(self._today, direction * most, unit)

    def _hours(self, most: float, unit: str, direction: int) -> Days:
        """Returns today and the days that hours and minutes may reach; they are too short to be dated."""
        if self._ahead:
            raise NotATime
        days = int((most if unit == "hour" else most / 60) // 24) + 1
        ends = sorted((self._today, self._today + timedelta(days=direction * days)))
        return Days(ends[0], ends[1], "days")

    def _read_rolling(self, key: str, match: re.Match[str]) -> Days:
        """Reads the last N days as reaching N days back: people who say it in the evening do not mean midnights."""
        _, most, unit = self._amount(match)
        if unit in _SHORT:
            most, unit = -(-most // 24) if unit == "hour" else 1, "day"
        ends = sorted((self._today, calendar.later(self._today, int(key) * most, unit)))
        return Days(ends[0], ends[1], "days")

    def _amount(self, match: re.Match[str]) -> tuple[float, float, str]:
        """Returns the least and the most that a number, or "a few", may mean, and its unit."""
        groups = match.groupdict()
        unit = str(self._table.value("unit", groups["unit"]))
        if groups.get("some"):
            least, most = map(float, self._table.value("some", groups["some"]).split())
        elif not (number := groups.get("n")):
            least, most = 2, 5
        elif len(number) == 2 and not self._table.spaced and not set(number) & set("十0123456789"):  # 两三
            least, most = self._number(number[0]), self._number(number[1])
        else:
            least = most = self._number(number)
            if unit == "year" and most >= 1_000:
                raise NotATime  # a year, not a number of years
        if unit in ("fortnight", "decade", "quarter"):
            unit, times = {"fortnight": ("week", 2), "decade": ("year", 10), "quarter": ("month", 3)}[unit]
            return least * times, most * times, unit
        return least, most, unit

    # Days of weeks, months and years.

    def _read_weekday(self, key: str, match: re.Match[str]) -> Days:
        nearest = calendar.coming_weekday if self._ahead or key == "coming" else calendar.latest_weekday
        return a_day(nearest(self._today, self._table.value("weekday", match["weekday"])))

    def _read_week_day(self, key: str, match: re.Match[str]) -> Days:
        monday = calendar.week_at(self._today, int(key)).first
        return a_day(monday + timedelta(days=self._table.value("weekday", match["weekday"])))

    def _read_weekend(self, key: str, _match: re.Match[str]) -> Days:
        last = not self._ahead and not key and self._today.weekday() < 5
        return calendar.weekend_at(self._today, -1 if last else int(key or 0))

    def _read_date(self, key: str, match: re.Match[str]) -> Days:
        groups = match.groupdict()
        if groups.get("a"):
            month, day = self._written(int(groups["a"]), int(groups["b"]), key)
            if not groups.get("y") and not (1 <= month <= 12 and 1 <= day <= 31):
                raise NotATime
        else:
            month, day = self._month(groups), self._number(groups["d"])
        other = self._number(groups["d2"]) if groups.get("d2") else day
        if groups.get("d2") and (match.start("d2") > match.start("d")) != (other >= day):
            raise NotATime

        def in_year(year: int) -> Days:
            if other == day:
                return a_day(date(year, month, day))
            return Days(date(year, month, min(day, other)), date(year, month, max(day, other)), "days")

        return self._dated(groups, in_year)

    def _read_month(self, _key: str, match: re.Match[str]) -> Days:
        groups = match.groupdict()
        return self._dated(groups, lambda year: self._in_year(groups, year))

    _read_season = _read_quarter = _read_month

    def _read_holiday(self, _key: str, match: re.Match[str]) -> Days:
        groups = match.groupdict()
        if self._ahead:
            name = self._table.value("holiday", groups["holiday"])
            return self._dated(groups, lambda year: a_day(calendar.holiday(name, year)))
        return self._dated(groups, lambda year: self._in_year(groups, year))

    def _in_year(self, groups: dict[str, str], year: int) -> Days:
        """Returns the month, season, quarter or holiday that a match names, in a year."""
        if groups.get("season"):
            return calendar.season(self._table.value("season", groups["season"]), year)
        if groups.get("holiday"):
            return calendar.around_holiday(self._table.value("holiday", groups["holiday"]), year)
        if groups.get("q"):
            return calendar.month_at(date(year, 3 * self._table.ordinal(groups["q"]) - 2, 1), 0, length=3)
        return calendar.month_at(date(year, self._month(groups), 1), 0)

    def _dated(self, groups: dict[str, str], in_year: calendar.InYear) -> Days:
        """Returns a yearly span in the year that is given, or else the nearest one."""
        if groups.get("era"):
            return in_year(2018 + self._number(groups["era"]))
        if groups.get("y"):
            return in_year(self._table.year(groups["y"]))
        if groups.get("years"):
            return in_year(self._today.year + self._table.value("years", groups["years"]))
        return calendar.nearest_year(self._today, in_year, ahead=self._ahead)

    def _read_year(self, _key: str, match: re.Match[str]) -> Days:
        return calendar.year_at(self._table.year(match["y"]))

    def _read_decade(self, _key: str, match: re.Match[str]) -> Days:
        number = int(match["decade"])
        first = number if number > 99 else 1900 + number
        return Days(date(first, 1, 1), date(first + 9, 12, 31), "year")

    def _read_month_day(self, _key: str, match: re.Match[str]) -> Days:
        day = self._number(match["d"])
        if not 1 <= day <= 31:
            raise ValueError("no such day")
        for steps in range(4):
            month = calendar.month_at(self._today, steps if self._ahead else -steps)
            if day <= month.last.day:
                nearest = month.first.replace(day=day)
                if nearest >= self._today if self._ahead else nearest <= self._today:
                    return a_day(nearest)
        raise ValueError("no such day")

    def _read_month_step_day(self, key: str, match: re.Match[str]) -> Days:
        month = calendar.month_at(self._today, int(key or 1)).first
        return a_day(month.replace(day=self._number(match["d"])))

    def _read_month_end(self, key: str, match: re.Match[str]) -> Days:
        if key.startswith("year"):
            return a_day(date(self._today.year + int(key.removeprefix("year") or 0), 12, 31))
        if key == "named":
            month = self._month(match.groupdict())
            year = self._today.year + (month < self._today.month)
            return a_day(calendar.month_at(date(year, month, 1), 0).last)
        if key.startswith("first"):
            return a_day(calendar.month_at(self._today, int(key.split()[1])).first)
        return a_day(calendar.month_at(self._today, int(key)).last)

    def _read_day_ahead(self, key: str, match: re.Match[str]) -> Days:
        days = timedelta(days=int(key or 7))
        if match.groupdict().get("near"):
            return a_day(self._read_near("", match).first + days)
        return a_day(calendar.coming_weekday(self._today, self._table.value("weekday", match["weekday"])) + days)

    def _read_bare_part(self, key: str, _match: re.Match[str]) -> Days:
        """Reads "the end of the month" without a month as the nearest one: 月底, 年初."""
        unit, part = key.split()
        steps = range(3) if self._ahead else range(0, -3, -1)
        spans = [part_of(part, calendar.whole(self._today, step, unit)) for step in steps]
        return next(days for days in spans if (days.last >= self._today if self._ahead else days.first <= self._today))

    # The parts of dates.

    def _number(self, text: str) -> int:
        return self._table.number(text)

    def _month(self, groups: dict[str, str]) -> int:
        return int(self._table.value("month", groups["month"])) if groups.get("month") else self._number(groups["mo"])

    def _written(self, first: int, second: int, key: str) -> tuple[int, int]:
        month_first = self._month_first if not key else key == "month"
        if first > 12 or second > 12:
            month_first = second > 12
        return (first, second) if month_first else (second, first)


def rule_of(meaning: str, key: str, match: re.Match[str]) -> Rule:
    groups = match.groupdict()
    if groups.get("y") or groups.get("era") or groups.get("decade"):
        return "written"
    # "This summer" is the nearest one, too.
    nearest = meaning == "step" and key.startswith("0") and not (groups.get("period") or groups.get("weekday"))
    return "recurring" if nearest or (meaning in CYCLES and not groups.get("years")) else "counted"


def part_of(part: str, days: Days) -> Days:
    """Returns a third of a span for "early", "mid" and "late", half of it, or a week or weekend by its number."""
    first, last, _ = days
    which, _, unit = part.partition("_")
    if unit == "half":
        middle = calendar.shifted(first, (last - first).days // 2 + 1)
        middle = middle.replace(day=1)
        return Days(first, calendar.shifted(middle, -1), "days") if which == "first" else Days(middle, last, "days")
    if unit:
        number = int(which)
        if unit == "week":
            begin = calendar.shifted(first, 7 * number) if number >= 0 else max(first, calendar.shifted(last, -6))
            return Days(begin, calendar.shifted(begin, 6), "days")
        saturday = calendar.shifted(first, (5 - first.weekday()) % 7 + 7 * number)
        if number < 0:
            saturday = calendar.shifted(last, -((last.weekday() - 5) % 7))
        return Days(saturday, calendar.shifted(saturday, 1), "days")
    third = (last - first).days // 3
    if part == "early":
        return Days(first, calendar.shifted(first, third), "days")
    begin = calendar.shifted(last, -third) if part == "late" else calendar.shifted(first, third)
    return Days(begin, last if part == "late" else calendar.shifted(last, -third), "days")
