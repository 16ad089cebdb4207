"""When the work of the night is due, over every timezone there is and clocks that are put, stopped and moved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ops.night_clock import ScheduledJob, due, following, latest
from tests.kit.tables import each_row

#: With "every" each timezone is gone through for seven years by quarters of an hour, some minutes; else one of each
#: kind for a year by half hours.
EVERY = os.environ.get("REMORA_ZONES") == "every"
STEP = timedelta(minutes=15 if EVERY else 30)
FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2031 if EVERY else 2025, 1, 1, tzinfo=UTC)
HALF_HOUR = 30 * 60_000
NIGHT = tuple(
    ScheduledJob(name=f"{at} {weekday}", at=at, weekday=weekday)
    for at, weekday in (
        (time(0, 0), None), (time(0, 30), None), (time(1, 30), None), (time(2, 30), None), (time(3, 0), None),
        (time(23, 30), None), (time(2, 30), 6), (time(0, 15), 0),
    )
)  # fmt: skip


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def transitions(zone: ZoneInfo) -> tuple[tuple[datetime, timedelta | None], ...]:
    """Each change of the offset in these years, to the minute, with the offset from then on."""
    found = []
    at, offset = FIRST, FIRST.astimezone(zone).utcoffset()
    while at < LAST:
        later = at + timedelta(hours=12)
        if later.astimezone(zone).utcoffset() != offset:
            while at.astimezone(zone).utcoffset() == offset:
                at += timedelta(minutes=15)
            offset = at.astimezone(zone).utcoffset()
            found.append((at, offset))
        at = later
    return tuple(found)


@cache
def kinds() -> tuple[ZoneInfo, ...]:
    """One timezone of each kind: those of a kind have the same offset at any time."""
    different: dict[object, ZoneInfo] = {}
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        table = (FIRST.astimezone(zone).utcoffset(), transitions(zone))
        different.setdefault(name if EVERY else table, zone)
    return tuple(different.values())


def slots(job: ScheduledJob, walls: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[date, datetime]]:
    """Local dates with the first moment at which the clock on the wall has come to the job's time; found by looking."""
    wall = walls[0][1]
    for at, local in walls[1:]:
        for day in {wall.date(), local.date()}:
            # A clock that was put back comes to the same time again, which is not the first.
            if wall < datetime.combine(day, job.at) <= local and job.weekday in (None, day.weekday()):
                yield day, at
        wall = max(wall, local)


def test_every_timezone_has_one_run_a_slot_around_every_change_of_its_clocks() -> None:
    """Nobody's night is left out or worked twice when clocks are put forward or back."""
    assert len(kinds()) > 60
    for zone in kinds():
        for change in [at for at, _ in transitions(zone)] or [datetime(2026, 3, 1, tzinfo=UTC)]:
            start, end = change - timedelta(days=2), change + timedelta(days=2)
            times = [start + n * STEP for n in range(int((end - start) / STEP))]
            walls = [(at, at.astimezone(zone).replace(tzinfo=None)) for at in times]
            for job in NIGHT:
                runs: dict[date, datetime] = {}
                last: date | None = latest(job, zone, ms(start)).period
                for at in times:
                    slot = due(job, zone, last, ms(at))
                    if slot is not None:
                        assert slot.period not in runs, (zone, job, slot)
                        runs[slot.period] = at
                        last = slot.period
                looked = dict(slots(job, walls))
                # A time that the clock leaps over stands as far behind the leap: at Troll that is two hours.
                late = {day: runs[day] - looked[day] for day in looked if day in runs}
                assert all(timedelta(0) <= by <= timedelta(hours=2) + STEP for by in late.values()), (zone, job, late)
                missing = [day for day, first in looked.items() if day not in runs and first < end - timedelta(hours=3)]
                assert missing == [], (zone, job)
                assert set(runs) <= set(looked), (zone, job)


@each_row(
    ("zone", "job", "before", "day", "utc"),
    [
        # Put back at 03:00 to 02:00: half past two comes twice, and counts once, the first time.
        ("Europe/Berlin", ScheduledJob(name="j", at=time(2, 30)), "2026-10-24T12:00", "2026-10-25", "2026-10-25T00:30"),
        # Put forward at 02:00 to 03:00: there is no half past two, so at half past three.
        ("Europe/Berlin", ScheduledJob(name="j", at=time(2, 30)), "2026-03-28T12:00", "2026-03-29", "2026-03-29T01:30"),
        (
            "Australia/Lord_Howe",
            ScheduledJob(name="j", at=time(2, 15)),
            "2026-10-03T00:00",
            "2026-10-04",
            "2026-10-03T15:45",
        ),
        ("Asia/Kathmandu", ScheduledJob(name="j", at=time(3, 0)), "2026-05-01T00:00", "2026-05-02", "2026-05-01T21:15"),
        (
            "Pacific/Kiritimati",
            ScheduledJob(name="j", at=time(0, 0)),
            "2026-05-01T11:00",
            "2026-05-03",
            "2026-05-02T10:00",
        ),
        # A leap day, and a week over the end of a year.
        ("UTC", ScheduledJob(name="j", at=time(3, 0)), "2028-02-28T12:00", "2028-02-29", "2028-02-29T03:00"),
        (
            "UTC",
            ScheduledJob(name="j", at=time(3, 30), weekday=6),
            "2026-12-28T00:00",
            "2027-01-03",
            "2027-01-03T03:30",
        ),
        # Midnight itself is leapt over.
        ("Africa/Cairo", ScheduledJob(name="j", at=time(0, 30)), "2026-04-23T12:00", "2026-04-24", "2026-04-23T22:30"),
    ],
)
def test_the_next_slot_is_where_a_calendar_has_it(
    zone: str, job: ScheduledJob, before: str, day: str, utc: str
) -> None:
    """Days on which a program easily goes wrong, worked out by hand."""
    slot = following(job, ZoneInfo(zone), ms(datetime.fromisoformat(before).replace(tzinfo=UTC)))
    assert slot.period.isoformat() == day
    assert slot.at == ms(datetime.fromisoformat(utc).replace(tzinfo=UTC))
    assert latest(job, ZoneInfo(zone), slot.at) == slot
    assert latest(job, ZoneInfo(zone), slot.at - 1).period < slot.period


def test_of_many_missed_slots_the_last_is_due() -> None:
    """A laptop that was shut for a month works one night, not thirty."""
    job = ScheduledJob(name="j", at=time(3, 0))
    now = ms(datetime(2026, 11, 21, 14, tzinfo=UTC))
    slot = due(job, ZoneInfo("UTC"), date(2026, 10, 20), now)
    assert slot is not None
    assert slot.period == date(2026, 11, 21)
    assert due(job, ZoneInfo("UTC"), slot.period, now) is None


def test_who_has_just_arrived_has_missed_nothing() -> None:
    """On the first day there is nothing of a night before it; the first night counts, however late one looks."""
    job, zone = ScheduledJob(name="j", at=time(3, 0)), ZoneInfo("UTC")
    arrived = ms(datetime(2026, 11, 21, 14, tzinfo=UTC))
    assert due(job, zone, None, arrived, since=arrived) is None
    first = due(job, zone, None, arrived + 20 * 3_600_000, since=arrived)
    assert first is not None
    assert first.period == date(2026, 11, 22)
    # By a clock that had run ahead, and was put right.
    assert due(job, zone, None, arrived, since=arrived + 400 * 86_400_000) is not None


def test_a_weekly_job_moved_to_another_weekday_runs_once_in_that_week() -> None:
    """A change of the configuration is no second week."""
    zone, sunday = ZoneInfo("UTC"), date(2026, 11, 22)
    late = ms(datetime(2026, 11, 22, 23, tzinfo=UTC))
    for weekday in range(7):
        assert due(ScheduledJob(name="j", at=time(3, 0), weekday=weekday), zone, sunday, late) is None
        assert (
            due(ScheduledJob(name="j", at=time(3, 0), weekday=weekday), zone, sunday - timedelta(days=7), late)
            is not None
        )


ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Pacific/Chatham", "America/Santiago",
         "Africa/Casablanca", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu")  # fmt: skip
#: The events in a machine's life: it runs on for some half hours, sleeps for some, its clock is set, it moves.
HAPPENING = st.one_of(
    st.tuples(st.just("on"), st.integers(1, 100)),
    st.tuples(st.just("sleep"), st.integers(2, 600)),
    st.tuples(st.just("back"), st.just(2)),
    st.tuples(st.just("ahead and back"), st.just(144)),
    st.tuples(st.just("moved"), st.integers(0, len(ZONES) - 1)),
    st.tuples(st.just("restarted"), st.just(0)),
)


@settings(max_examples=2_000 if EVERY else 150)
@given(
    happenings=st.lists(HAPPENING, max_size=25),
    job=st.sampled_from(NIGHT),
    zone=st.sampled_from(ZONES),
    start=st.integers(ms(FIRST), ms(LAST)),
)
def test_whatever_befalls_a_machine_each_slot_is_worked_once(
    happenings: list[tuple[str, int]], job: ScheduledJob, zone: str, start: int
) -> None:
    """After every look the newest slot has been worked off; none is worked twice, and none while it was not yet due."""
    now, here = start, ZoneInfo(zone)
    record: dict[date, int] = {}
    put = False

    def look() -> None:
        slot = due(job, here, max(record, default=None), now)
        if slot is not None:
            # A record that lies ahead holds nothing up, so the record itself refuses what it has: only then.
            assert slot.period not in record or put, (job, here, slot)
            record.setdefault(slot.period, now)
            assert slot.at <= now
        newest = latest(job, here, now)
        assert any(newest.since <= period <= newest.until for period in record), (job, here, newest)

    look()
    for what, how_far in happenings:
        if what in ("on", "restarted"):  # nothing is kept but the record
            for _ in range(how_far):
                now += HALF_HOUR
                look()
        elif what == "sleep":
            now += how_far * HALF_HOUR
        elif what == "back":
            now, put = now - how_far * HALF_HOUR, True
        elif what == "ahead and back":
            put = True
            now += how_far * HALF_HOUR
            look()
            now -= how_far * HALF_HOUR
        else:
            here, put = ZoneInfo(ZONES[how_far]), True
        look()
