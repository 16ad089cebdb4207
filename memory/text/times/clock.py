"""Moments and the days that they fall on, by the local clock.

Invariants: pure; moments are milliseconds UTC. Every moment and every day of the calendar has an answer, in every zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

_WRITTEN_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_A_DAY: Final = timedelta(days=1)
_DAY_MS: Final = 86_400_000
#: The first and last moments, in milliseconds UTC, that are days of the calendar in every timezone.
_EARLIEST: Final = (datetime.min.replace(tzinfo=UTC) + 2 * _A_DAY - _EPOCH) // timedelta(milliseconds=1)
_LATEST: Final = (datetime.max.replace(tzinfo=UTC) - 2 * _A_DAY - _EPOCH) // timedelta(milliseconds=1)


def day_of(text: str) -> date | None:
    """Returns the day that `text` writes as `YYYY-MM-DD`; None for any other text and for a day that doesn't exist."""
    try:
        return date.fromisoformat(text) if _WRITTEN_DAY.fullmatch(text) else None
    except ValueError:
        return None


def local_time(moment: int, timezone: str) -> datetime:
    """Returns the time at `moment` in `timezone`.

    A moment outside the calendar, or within two days of its ends, counts as two days within it, so that it has a date
    everywhere.
    """
    inside = min(max(moment, _EARLIEST), _LATEST)
    return datetime.fromtimestamp(inside / 1000, UTC).astimezone(ZoneInfo(timezone))


def is_in_calendar(moment: int) -> bool:
    """Returns whether `moment` is a time in every zone, from 1970 on."""
    return 0 <= moment <= _LATEST


def local_date(moment: int, timezone: str) -> date:
    return local_time(moment, timezone).date()


def midnight(moment: int, timezone: str) -> int:
    return beginning_of(local_date(moment, timezone), timezone)


def moments(first: date, last: date, timezone: str) -> tuple[int, int]:
    return beginning_of(first, timezone), end_of(last, timezone)


def day_bounds(moment: int, timezone: str) -> tuple[int, int]:
    """Returns when the day of `moment` began in `timezone`, and when the next one begins."""
    day = local_date(moment, timezone)
    return moments(day, day, timezone)


def beginning_of(day: date, timezone: str) -> int:
    """Returns when `day` begins in `timezone`.

    A midnight that a clock change skips is the moment of the change. If a midnight comes twice, the first one counts.
    """
    return (datetime.combine(day, time(), ZoneInfo(timezone)) - _EPOCH) // timedelta(milliseconds=1)


def end_of(day: date, timezone: str) -> int:
    """Returns when `day` ends in `timezone`. The last day of the calendar ends like any other."""
    return beginning_of(day, timezone) + _DAY_MS if day == date.max else beginning_of(day + _A_DAY, timezone)
