"""The days of weeks, months, seasons and holidays, and sums of days.

Invariants: pure. Weeks start on Monday. Seasons are those of the northern hemisphere, by whole months. Days out
of the calendar are a `ValueError` or an `OverflowError`, except for `shifted`, which ends at its ends.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from dateutil.easter import easter

Grain: TypeAlias = Literal["day", "days", "week", "month", "year"]


class Days(NamedTuple):
    """The days `first` to `last`, both included, and the unit they make up."""

    first: date
    last: date
    grain: Grain


#: The days that recur every year, in a year.
InYear: TypeAlias = Callable[[int], Days]

#: The days of a unit, roughly.
_LENGTHS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_MONTHS: Final = {"month": 1, "year": 12}
_FIXED_HOLIDAYS: Final = {
    "christmas_eve": (12, 24), "christmas": (12, 25), "boxing": (12, 26), "new_year": (1, 1), "new_years_eve": (12, 31),
    "valentine": (2, 14), "halloween": (10, 31), "epiphany": (1, 6), "labour": (5, 1), "all_saints": (11, 1),
    "nikolaus": (12, 6), "bastille": (7, 14), "national_cn": (10, 1), "unity_de": (10, 3), "children_cn": (6, 1),
    "singles": (11, 11), "teachers_cn": (9, 10), "womens": (3, 8), "constitution_es": (12, 6), "hispanidad": (10, 12),
    "labour_cn": (5, 1),
}  # fmt: skip
_EASTER: Final = {"easter": 0, "good_friday": -2, "easter_monday": 1, "ascension": 39, "pentecost": 49}
#: The days before and after a holiday that people mean with it when they look back.
_AROUND: Final = {"christmas": (1, 1), "national_cn": (0, 6), "labour_cn": (0, 4), "easter": (0, 1)}


def a_day(day: date) -> Days:
    return Days(day, day, "day")


def week_at(today: date, weeks: int) -> Days:
    """Returns the calendar week, Monday to Sunday, that is `weeks` after the week of `today`."""
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)
    return Days(monday, monday + timedelta(days=6), "week")


def weekend_at(today: date, weeks: int) -> Days:
    monday = week_at(today, weeks).first
    return Days(monday + timedelta(days=5), monday + timedelta(days=6), "days")


def month_at(today: date, months: int, *, length: int = 1) -> Days:
    """Returns the calendar month `months` after the month of `today`, or `length` months from it on."""
    year, before = divmod(today.year * 12 + today.month - 1 + months, 12)
    first = date(year, before + 1, 1)
    if length > 1:
        return Days(first, month_at(first, length - 1).last, "month")
    return Days(first, first.replace(day=monthrange(year, before + 1)[1]), "month")


def year_at(year: int) -> Days:
    return Days(date(year, 1, 1), date(year, 12, 31), "year")


def whole(today: date, steps: int, unit: str) -> Days:
    """Returns the week, weekend, month, quarter or year that is `steps` after the one of `today`."""
    match unit:
        case "week":
            return week_at(today, steps)
        case "weekend":
            return weekend_at(today, steps)
        case "month":
            return month_at(today, steps)
        case "quarter":
            return month_at(today, 3 * steps - (today.month - 1) % 3, length=3)
        case "year":
            return year_at(today.year + steps)
        case _:
            raise ValueError(f"no whole {unit}")


def season(begin: int, year: int) -> Days:
    return month_at(date(year, begin, 1), 0, length=3)


def holiday(name: str, year: int) -> date:
    if name in _EASTER:
        return easter(year) + timedelta(days=_EASTER[name])
    if name == "thanksgiving":
        november = date(year, 11, 1)
        return november + timedelta(days=(3 - november.weekday()) % 7 + 21)
    if name == "advent":
        return date(year, 12, 24) - timedelta(days=(date(year, 12, 24).weekday() + 1) % 7 + 21)
    return date(year, *_FIXED_HOLIDAYS[name])


def around_holiday(name: str, year: int) -> Days:
    """Returns the days that people mean with a holiday that is over."""
    day = holiday(name, year)
    before, after = _AROUND.get(name, (0, 0))
    return Days(day - timedelta(days=before), day + timedelta(days=after), "days" if before + after else "day")


def latest_weekday(today: date, weekday: int) -> date:
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def coming_weekday(today: date, weekday: int) -> date:
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def yearly(today: date, steps: int, in_year: InYear) -> Days:
    """Returns a yearly span: the latest that is over (-1), the current or else this year's (0), the next (1)."""
    spans = [in_year(year) for year in range(max(1, today.year - 3), min(9998, today.year + 3) + 1)]
    if steps < 0:
        return sorted(span for span in spans if span.last < today)[steps]
    if steps > 0:
        return sorted(span for span in spans if span.first > today)[steps - 1]
    now = [span for span in spans if span.first <= today <= span.last]
    return now[0] if now else in_year(today.year)


def nearest_year(today: date, in_year: InYear, *, ahead: bool) -> Days:
    """Returns a yearly span: the latest that has begun or, `ahead`, the first that is not over.

    It may be missing in some years: a February 29 is at most 8 years away.
    """
    for steps in range(9):
        try:
            days = in_year(today.year + (steps if ahead else -steps))
        except ValueError:
            continue
        if days.last >= today if ahead else days.first <= today:
            return days
    raise ValueError("in no year near")


def shifted(day: date, days: float) -> date:
    return date.fromordinal(min(max(day.toordinal() + round(days), date.min.toordinal()), date.max.toordinal()))


def later(today: date, amount: float, unit: str) -> date:
    """Returns the day `amount` units after today; before today if negative."""
    if unit not in _MONTHS or amount != int(amount):
        return today + timedelta(days=round(amount * _LENGTHS[unit]))
    there = month_at(today, int(amount) * _MONTHS[unit])
    return there.first.replace(day=min(today.day, there.last.day))


def counted(today: date, amount: float, unit: str) -> Days:
    """Returns the day that lies `amount` units after today; months and years are meant more loosely, as whole ones."""
    if unit in ("month", "year") and amount == int(amount):
        return whole(today, int(amount), unit)
    return a_day(later(today, amount, unit))


def slack(amount: float, unit: str) -> int:
    if unit == "day":
        return int(amount // 5)
    if unit == "week":
        return int(2 + amount // 2)
    if unit == "month":
        return int(7 + 3 * min(amount, 12))
    return int(min(90 * amount, 183))


def number_zh(text: str) -> int:
    """Reads digits or Chinese numerals up to 99 (二十八); raises `ValueError` for anything else."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten and len(text) == 1 and text in _DIGITS_ZH:
        return _DIGITS_ZH[text]
    if not ten or any(part and part not in _DIGITS_ZH for part in (tens, ones)):
        raise ValueError(f"not a number up to 99: {text!r}")
    return _DIGITS_ZH.get(tens, 1) * 10 + _DIGITS_ZH.get(ones, 0)


_DIGITS_ZH: Final = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "兩": 2, "〇": 0}
