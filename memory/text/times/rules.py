"""Times of repeated reminders: rules of repetition, as an RRULE, as several of them on a line each, or as a cron line
of five fields.

Invariants: a rule names times on the wall clock. A time that the clock skips falls equally far after the gap, and the
first of two equal readings counts, as for the night's jobs (`gateway/ops/night_clock.py`). "Every two hours" and "every
ten minutes" are lengths of time instead, which no change of clocks stretches. Nothing here reads a clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import islice, pairwise, takewhile
from typing import Final, NamedTuple

from dateutil.rrule import DAILY, rrule, rruleset, rrulestr

#: The greatest distance of a reminder from now, and the least distance between its times.
HORIZON: Final = timedelta(days=5 * 366)
CLOSEST: Final = timedelta(minutes=5)

RRULE: Final = "RRULE:"
CRON: Final = "CRON:"
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
#: The fields of a cron line: name, least and greatest number, names that stand for numbers.
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
)
#: Lengths of time, which have no part but their interval.
_LENGTHS = {"MINUTELY": timedelta(minutes=1), "HOURLY": timedelta(hours=1)}
_EVERYWHERE = {"FREQ", "INTERVAL", "COUNT", "UNTIL"}
#: The parts that each frequency may have. Others would equal a slower frequency, or take long to compute.
_PARTS = {
    "MINUTELY": _EVERYWHERE,
    "HOURLY": _EVERYWHERE,
    "DAILY": _EVERYWHERE | {"BYHOUR", "BYMINUTE"},
    "WEEKLY": _EVERYWHERE | {"BYHOUR", "BYMINUTE", "BYDAY"},
    "MONTHLY": _EVERYWHERE | {"BYHOUR", "BYMINUTE", "BYDAY", "BYMONTHDAY", "BYSETPOS"},
    "YEARLY": _EVERYWHERE | {"BYHOUR", "BYMINUTE", "BYDAY", "BYMONTHDAY", "BYSETPOS", "BYMONTH"},
}
_UNITS: Final = {
    "MINUTELY": "minute", "HOURLY": "hour", "DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year",
}  # fmt: skip
#: The day from which a typed rule is tried out: a Monday, and the first day of a leap year.
_TRIAL = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall clock's reading


def parse_rule(text: str) -> str:
    """Returns the rule for a typed cron line of five fields or RRULE.

    Raises a `ValueError` that names the fault.
    """
    line = " ".join(text.upper().split())
    if "FREQ=" in line:
        rule = RRULE + line.removeprefix(RRULE).strip().rstrip(";")
        _check_parts(_parts(rule))
        rule = re.sub(r"(UNTIL=\d{8})(?=;|$)", r"\1T235959", rule)  # the whole last day, as people mean it
    else:
        rule = CRON + line.removeprefix(CRON).strip()
        _cron_fields(rule)
    _try_out(rule)
    return rule


def following(rule: str, *, after: datetime, first: datetime) -> datetime | None:
    """Returns the next time after `after` at which `rule`, which begins at `first`, is due, in the zone of `first`.

    Returns None if the rule has ended, or isn't due again within five years. Both times are aware.
    """
    zone = first.tzinfo
    if zone is None:
        raise ValueError("the first time of a reminder has no zone")
    if "\n" in rule:
        times = [following(line, after=after, first=first) for line in rule.splitlines()]
        return min((due for due in times if due is not None), key=datetime.timestamp, default=None)
    moment, begin = after.astimezone(UTC), first.astimezone(UTC)
    if begin > moment:
        return first
    parts = _parts(rule) if rule.startswith(RRULE) else {}
    if parts.get("FREQ") in _LENGTHS:
        return _next_length(parts, moment, first)
    walls = _walls(rule, first.replace(tzinfo=None, second=0, microsecond=0), moment.astimezone(zone))
    return _earliest(walls, moment, zone)


class Recurrence(NamedTuple):
    """A repetition in parts that can be said: its unit and interval, and the days and minutes of the day in it.

    `weekdays` begin with Monday as 0; `nth` says which of them in the month. The last one and the last day of the
    month are -1.
    """

    unit: str
    interval: int = 1
    weekdays: tuple[int, ...] = ()
    nth: int = 0
    days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()


def recurrences(rule: str) -> list[Recurrence]:
    """Returns what a rule consists of; empty if its parts can't say all of it."""
    found: dict[Recurrence, set[int]] = {}
    try:
        for line in rule.splitlines():
            for one in _cron_parts(line) if line.startswith(CRON) else _rrule_parts(_parts(line)):
                found.setdefault(one._replace(minutes=()), set()).update(one.minutes)
    except (ValueError, KeyError):
        return []
    return [one._replace(minutes=tuple(sorted(minutes))) for one, minutes in found.items()]


def _rrule_parts(parts: dict[str, str]) -> list[Recurrence]:
    """Returns the parts of an RRULE for each place of its days in the month. Raises `ValueError` if it has others."""
    parts = dict(parts)
    unit, interval = _UNITS[parts.pop("FREQ")], int(parts.pop("INTERVAL", 1))
    days, months, hours, minutes = (
        _numbers(parts.pop(name, "")) for name in ("BYMONTHDAY", "BYMONTH", "BYHOUR", "BYMINUTE")
    )
    named = re.findall(r"([+-]?\d*)([A-Z]{2})", parts.pop("BYDAY", ""))
    if days[1:] == tuple(range(29, days[-1] + 1 if days else 0)) and parts.get("BYSETPOS") == "-1":
        del parts["BYSETPOS"]
        days = (-1,) if days[-1] == 31 else days[-1:]
    places = list(dict.fromkeys(int(number or 0) for number, _ in named)) or [0]
    unsaid = min((*days, 1)) < (1 if unit == "year" else -1) or (unit == "year" and bool(days) != bool(months))
    if parts or unsaid or (named and ((places != [0]) if unit == "week" else (0 in places))):
        raise ValueError("a rule with parts of its own")
    times = tuple(hour * 60 + minute for hour in hours for minute in minutes or (0,))
    weekdays = {place: tuple(DAYS.index(day) for number, day in named if int(number or 0) == place) for place in places}
    return [Recurrence(unit, interval, weekdays[place], place, days, months, times) for place in places]


def _cron_parts(rule: str) -> list[Recurrence]:
    minutes, hours, days, months, weekdays = _cron_fields(rule)
    times = tuple(hour * 60 + minute for hour in sorted(hours) for minute in sorted(minutes))
    of_week = tuple(sorted({(day - 1) % 7 for day in weekdays}))
    of_month, of_year = tuple(sorted(days)), tuple(sorted(months)) if len(months) < 12 else ()
    named = [
        *([Recurrence("month", days=of_month, months=of_year, minutes=times)] if len(of_month) < 31 else []),
        *([Recurrence("week", weekdays=of_week, months=of_year, minutes=times)] if len(of_week) < 7 else []),
    ]
    if len(named) > 1 and any(field.startswith("*") for field in rule.removeprefix(CRON).split()[2::2]):
        raise ValueError("days of the week that are days of the month, too")
    return named or [Recurrence("day", months=of_year, minutes=times)]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)


def _next_length(parts: dict[str, str], moment: datetime, first: datetime) -> datetime | None:
    step = _LENGTHS[parts["FREQ"]] * int(parts.get("INTERVAL", 1))
    begin = first.astimezone(UTC)
    steps = (moment - begin) // step + 1
    due = (begin + steps * step).astimezone(first.tzinfo)
    over = steps >= int(parts["COUNT"]) if "COUNT" in parts else False
    return None if over or f"{due:%Y%m%d}" > parts.get("UNTIL", "99991231")[:8] else due


def _earliest(walls: Iterator[datetime], moment: datetime, zone: tzinfo) -> datetime | None:
    """Returns the earliest time after `moment`: if the clock skips, a later reading can come before an earlier one."""
    best: datetime | None = None
    for wall in walls:
        if best is not None and wall >= best.replace(tzinfo=None):
            break
        due = wall.replace(tzinfo=zone).astimezone(UTC)
        if due > moment and (best is None or due < best.astimezone(UTC)):
            best = due.astimezone(zone)
    return best


def _walls(rule: str, start: datetime, after: datetime) -> Iterator[datetime]:
    """Yields the readings of the wall clock that `rule` names, from before `after` on (clocks can skip a day)."""
    local = after.replace(tzinfo=None)
    since = local - timedelta(days=2)
    times = _times(rule, start if rule.startswith(RRULE) else max(start, since.replace(second=0, microsecond=0)))
    return takewhile(lambda wall: wall <= local + HORIZON, times.xafter(since, inc=True))


def _times(rule: str, start: datetime) -> rrule | rruleset:
    if rule.startswith(CRON):
        return _cron_times(rule, start)
    found = rrulestr(rule.removeprefix(RRULE), dtstart=start)
    assert isinstance(found, rrule)
    return found


def _parts(rule: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in rule.removeprefix(RRULE).split(";"):
        name, _, value = part.strip().partition("=")
        if not value or name in parts:
            raise ValueError(f"“{part}” in an RRULE; it is written like FREQ=WEEKLY;BYDAY=MO,FR")
        parts[name] = value
    return parts


def _check_parts(parts: dict[str, str]) -> None:
    frequency = parts.get("FREQ", "")
    if frequency not in _PARTS:
        raise ValueError(f"FREQ={frequency}; it is one of {', '.join(_PARTS)}")
    if strange := sorted(set(parts) - _PARTS[frequency]):
        raise ValueError(f"{strange[0]} can't be combined with FREQ={frequency}")
    for name in ("INTERVAL", "COUNT"):
        if not re.fullmatch(r"[1-9]\d{0,3}", parts.get(name, "1")):
            raise ValueError(f"{name}={parts[name]}; it is a number from 1 to 9999")
    if not re.fullmatch(r"\d{8}(?:T\d{6})?", parts.get("UNTIL", "20260101")):
        raise ValueError(f"UNTIL={parts['UNTIL']}; it is a date like 20261231 on your own clock")
    if frequency in _LENGTHS and _LENGTHS[frequency] * int(parts.get("INTERVAL", 1)) < CLOSEST:
        raise ValueError("a reminder may come every 5 minutes at most")


def _try_out(rule: str) -> None:
    """Raises `ValueError` if a rule is never due, can't be computed, or is due too often."""
    if rule.startswith(RRULE) and _parts(rule)["FREQ"] in _LENGTHS:
        return
    try:
        # UNTIL may lie before the trial; it says nothing about how often the rule is due.
        times = list(islice(_times(re.sub(r";UNTIL=\w+|UNTIL=\w+;", "", rule), _TRIAL), 200))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"“{rule.partition(':')[2]}” is not a rule: {error}") from None
    if not times:
        raise ValueError(f"“{rule.partition(':')[2]}” never comes")
    if any(later - earlier < CLOSEST for earlier, later in pairwise(times)):
        raise ValueError("a reminder may come every 5 minutes at most")


def _cron_times(rule: str, start: datetime) -> rruleset:
    """Returns the times of a cron line. If it names days of the month and of the week, either is enough."""
    minutes, hours, days, months, weekdays = _cron_fields(rule)
    daily = partial(
        rrule, DAILY, dtstart=start, byminute=sorted(minutes), byhour=sorted(hours), bysecond=0, bymonth=sorted(months)
    )
    day_field, weekday_field = rule.removeprefix(CRON).split()[2::2]
    of_week = sorted({(day - 1) % 7 for day in weekdays})
    either = not day_field.startswith("*") and not weekday_field.startswith("*")
    found = rruleset()
    if either:
        found.rrule(daily(bymonthday=sorted(days)))
        found.rrule(daily(byweekday=of_week))
    else:
        found.rrule(daily(bymonthday=sorted(days), byweekday=of_week))
    return found


def _cron_fields(rule: str) -> list[set[int]]:
    fields = rule.removeprefix(CRON).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(
            f"{len(fields)} fields; a cron line has 5, minute, hour, day, month and day of the week: 0 9 * * 1-5"
        )
    found = [_cron_field(text, *field) for text, field in zip(fields, _FIELDS, strict=True)]
    longest = {2: 29} | dict.fromkeys((4, 6, 9, 11), 30)
    if fields[4].startswith("*") and min(found[2]) > max(longest.get(month, 31) for month in found[3]):
        raise ValueError(f"“{' '.join(fields)}” never comes: no such day in that month")
    return found


def _cron_field(text: str, name: str, least: int, most: int, names: tuple[str, ...]) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?", part)
        if match is None:
            raise ValueError(f"“{part}” as {name}; it is written like *, 5, 1-5 or */10")
        first, last, step = match.groups()
        low = least if first is None else _cron_number(first, name, least, most, names)
        high = low if first is not None and step is None else most
        high = high if last is None else _cron_number(last, name, least, most, names)
        if high < low or step == "0":
            raise ValueError(f"“{part}” as {name} names nothing")
        found |= set(range(low, high + 1, int(step or 1)))
    return found


def _cron_number(text: str, name: str, least: int, most: int, names: tuple[str, ...]) -> int:
    if text[:3] in names:
        return names.index(text[:3]) + least
    if not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"“{text}” as {name}; it is from {least} to {most}")
    return int(text)
