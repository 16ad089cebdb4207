"""When the work of the night is due: pure, in the agent's own time.

Invariants: a job has one slot a local day (or week), named by the local date it stands on, also where clocks are put
forward or back; of the slots that were missed only the latest is due, however late; nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A piece of work with its place in the week. `weekday` counts from Monday as 0; None is every day."""

    name: str
    at: time
    weekday: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One time a job is to run: `period`, its local date, names the run; `at` is in milliseconds UTC.

    It is the only one from the local date `since` to the local date `until`, both included.
    """

    period: date
    at: int
    since: date
    until: date


def due(job: Job, zone: ZoneInfo, last: date | None, now: int, *, since: int = 0) -> Slot | None:
    """The slot that is to be worked off at `now`, if there is one; `last` is the newest that was worked off.

    Where there was none yet, only what came after `since` is due: who has just arrived has missed nothing. Both are in
    milliseconds UTC. A `last` behind the slot's `until` was made by a clock that had run ahead, or before the job was
    moved to another weekday: it says nothing of this slot, so who calls asks for the newest up to there.
    """
    slot = latest(job, zone, now)
    if last is None:
        # Who arrived by a clock that had run ahead has been there long.
        return slot if slot.at >= since or since > now else None
    return None if slot.since <= last <= slot.until else slot


def latest(job: Job, zone: ZoneInfo, now: int) -> Slot:
    """The newest slot that is not after `now`."""
    # A day ahead: a slot that the clock leaps over may stand on the day after its name.
    day = _local_day(zone, now) + timedelta(days=1)
    while (slot := _slot(job, zone, day)) is None or slot.at > now:
        day -= timedelta(days=1)
    return slot


def following(job: Job, zone: ZoneInfo, now: int) -> Slot:
    """The first slot after `now`."""
    day = _local_day(zone, now) - timedelta(days=1)
    while (slot := _slot(job, zone, day)) is None or slot.at <= now:
        day += timedelta(days=1)
    return slot


def _slot(job: Job, zone: ZoneInfo, day: date) -> Slot | None:
    if job.weekday is not None and day.weekday() != job.weekday:
        return None
    # fold=0: the first of two equal readings of the clock; one that the clock leaps over stands as far behind the leap.
    at = int(datetime.combine(day, job.at, zone).timestamp() * 1000)
    if job.weekday is None:
        return Slot(period=day, at=at, since=day, until=day)
    # By weeks from Monday to Sunday, so that a job that is moved to another weekday runs once in that week, too.
    monday = day - timedelta(days=day.weekday())
    return Slot(period=day, at=at, since=monday, until=monday + timedelta(days=6))


def _local_day(zone: ZoneInfo, now: int) -> date:
    return datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()
