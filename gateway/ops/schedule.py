"""The due times of night jobs, computed in the agent's own timezone. The module is pure.

Invariants: a job has one slot a local day (or week), named by the local date it falls on, also when clocks are put
forward or back. Only the latest of the missed slots is due, however late. Nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """A job with its place in the week. `weekday` counts from Monday as 0; None is every day."""

    name: str
    at: time
    weekday: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTime:
    """A job's only slot between two local dates, both included. `at` is in milliseconds UTC, `period` names the run."""

    period: date
    at: int
    since: date
    until: date


def due(job: ScheduledJob, zone: ZoneInfo, last: date | None, now: int, *, since: int = 0) -> DueTime | None:
    """Returns the slot that is to be worked off at `now`, if there is one.

    `last` is the newest slot that was worked off. If none was, only a slot at or after `since` is due: a newcomer has
    missed nothing. `now` and `since` are in milliseconds UTC. A `last` after the slot's `until` was made by a clock
    that had run ahead, or before the job was moved to another weekday. It says nothing about this slot, so the caller
    asks for the newest slot up to `until`.
    """
    slot = latest(job, zone, now)
    if last is None:
        # A `since` after `now` comes from a clock that had run ahead: the agent has been there long.
        return slot if slot.at >= since or since > now else None
    return None if slot.since <= last <= slot.until else slot


def latest(job: ScheduledJob, zone: ZoneInfo, now: int) -> DueTime:
    # One day ahead: a slot whose time the clock skips may fall on the day after its name.
    day = _local_day(zone, now) + timedelta(days=1)
    while (slot := _slot(job, zone, day)) is None or slot.at > now:
        day -= timedelta(days=1)
    return slot


def following(job: ScheduledJob, zone: ZoneInfo, now: int) -> DueTime:
    day = _local_day(zone, now) - timedelta(days=1)
    while (slot := _slot(job, zone, day)) is None or slot.at <= now:
        day += timedelta(days=1)
    return slot


def _slot(job: ScheduledJob, zone: ZoneInfo, day: date) -> DueTime | None:
    if job.weekday is not None and day.weekday() != job.weekday:
        return None
    # fold=0: the first of two equal readings of the clock. A time that the clock skips falls equally far after the gap.
    at = int(datetime.combine(day, job.at, zone).timestamp() * 1000)
    if job.weekday is None:
        return DueTime(period=day, at=at, since=day, until=day)
    # Weeks run from Monday to Sunday, so that a job moved to another weekday still runs once in that week.
    monday = day - timedelta(days=day.weekday())
    return DueTime(period=day, at=at, since=monday, until=monday + timedelta(days=6))


def _local_day(zone: ZoneInfo, now: int) -> date:
    return datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()
