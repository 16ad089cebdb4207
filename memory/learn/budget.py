"""The tokens an agent's background work may take on one day of its own.

Invariant: what is counted is what was booked: all that an agent's models read and wrote for no answer to anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.learn.ask import Mind
from memory.store import extractions
from memory.store.database import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The day's tokens are used up: `tokens` of `per_day`; there are more at `until`, in milliseconds UTC."""

    tokens: int
    per_day: int
    until: int


def spent(reader: Reader, agent_id: int, mind: Mind, *, timezone: str, now: int) -> Spent | None:
    """Whether an agent has used up its tokens of the day; None while there are some left."""
    if mind.tokens_per_day is None:
        return None
    today, tomorrow = _day(now, timezone)
    tokens = extractions.spent_since(reader, agent_id, today)
    return None if tokens < mind.tokens_per_day else Spent(tokens=tokens, per_day=mind.tokens_per_day, until=tomorrow)


def _day(moment: int, timezone: str) -> tuple[int, int]:
    """The day of `moment` in a timezone, as its first millisecond and the next day's."""
    zone = ZoneInfo(timezone)
    date = datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone).date()
    midnights = (datetime.combine(day, time(), zone) for day in (date, date + timedelta(days=1)))
    first, after = (int(midnight.timestamp() * 1000) for midnight in midnights)
    return first, after
