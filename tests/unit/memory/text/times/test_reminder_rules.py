"""When a repeated reminder is due, also in the nights in which clocks are changed."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ops.night_clock import ScheduledJob
from gateway.ops.night_clock import following as next_job
from memory.text.times.rules import Recurrence, following, parse_rule, recurrences
from tests.kit.tables import each_row

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = sorted(available_timezones() - {"localtime", "Factory"})


def times(rule: str, first: datetime, count: int) -> list[str]:
    found, due = [], first
    for _ in range(count):
        later = following(rule, after=due, first=first)
        if later is None:
            break
        found.append(later.strftime("%Y-%m-%d %H:%M"))
        due = later
    return found


@each_row(("typed", "rule"), [
        ("0 9 * * 1-5", "CRON:0 9 * * 1-5"), (" */15  8-18 * * mon-fri ", "CRON:*/15 8-18 * * MON-FRI"),
        ("FREQ=WEEKLY;BYDAY=MO", "RRULE:FREQ=WEEKLY;BYDAY=MO"), ("rrule:freq=daily", "RRULE:FREQ=DAILY"),
        ("0 0 29 2 *", "CRON:0 0 29 2 *"), ("FREQ=HOURLY;INTERVAL=2", "RRULE:FREQ=HOURLY;INTERVAL=2"),
    ])  # fmt: skip
def test_a_typed_rule_is_taken(typed: str, rule: str) -> None:
    assert parse_rule(typed) == rule


@each_row(("typed", "says"), [
        ("0 9 * *", "4 fields"), ("61 9 * * *", "from 0 to 59"), ("x 9 * * *", "“X” as minute"), ("*/0 * * * *", "names nothing"),
        ("* * * * *", "every 5 minutes"), ("0,2 9 * * *", "every 5 minutes"), ("0 0 31 2 *", "never comes"),
        ("FREQ=SECONDLY", "FREQ=SECONDLY"), ("FREQ=MINUTELY;INTERVAL=4", "every 5 minutes"),
        ("FREQ=DAILY;BYDAY=MO", "BYDAY can't be combined"), ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never comes"),
        ("FREQ=WEEKLY;BYDAY=XX", "is not a rule"), ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0"), ("FREQ=DAILY;UNTIL=soon", "UNTIL=SOON"),
        ("FREQ=DAILY;FREQ=DAILY", "in an RRULE"), ("tomorrow", "1 fields"),
    ])  # fmt: skip
def test_a_rule_that_is_wrong_is_refused_with_the_reason(typed: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_rule(typed)


def test_a_cron_line_counts_sunday_as_zero_and_as_seven() -> None:
    monday = datetime(2026, 6, 8, tzinfo=BERLIN)
    assert (
        times("CRON:0 9 * * 0", monday, 2)
        == times("CRON:0 9 * * 7", monday, 2)
        == ["2026-06-14 09:00", "2026-06-21 09:00"]
    )


def test_days_of_the_month_and_of_the_week_in_a_cron_line_are_both_meant() -> None:
    assert times("CRON:0 9 13 * 5", datetime(2026, 6, 8, tzinfo=BERLIN), 3) == [
        "2026-06-12 09:00",
        "2026-06-13 09:00",
        "2026-06-19 09:00",
    ]


def test_nothing_comes_before_the_first_time() -> None:
    first = datetime(2026, 7, 1, 9, tzinfo=BERLIN)
    assert (
        following("RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0", after=datetime(2026, 6, 1, tzinfo=UTC), first=first) == first
    )


def test_a_rule_ends_with_its_count_or_its_last_day() -> None:
    first = datetime(2026, 6, 8, 9, tzinfo=BERLIN)
    assert times("RRULE:FREQ=DAILY;COUNT=3", first, 9) == ["2026-06-09 09:00", "2026-06-10 09:00"]
    assert times(parse_rule("FREQ=DAILY;UNTIL=20260610"), first, 9) == ["2026-06-09 09:00", "2026-06-10 09:00"]
    assert times("RRULE:FREQ=HOURLY;COUNT=3", first, 9) == ["2026-06-08 10:00", "2026-06-08 11:00"]
    assert times("RRULE:FREQ=HOURLY;INTERVAL=9;UNTIL=20260608", first, 9) == ["2026-06-08 18:00"]


def test_hours_are_not_stretched_by_the_clock() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=BERLIN)
    assert times("RRULE:FREQ=HOURLY;INTERVAL=2", first, 2) == ["2026-10-25 02:30", "2026-10-25 03:30"]


def test_a_later_reading_may_come_before_one_that_the_clock_skips() -> None:
    first = datetime(2026, 3, 29, 0, 0, tzinfo=BERLIN)
    assert times("CRON:45 2 * * *", first, 1) == ["2026-03-29 03:45"]
    assert times("CRON:10,45 2,3 * * *", first, 2) == ["2026-03-29 03:10", "2026-03-29 03:45"]


@given(
    st.sampled_from(ZONES),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.dates(date(1990, 1, 1), date(2035, 1, 1)),
    st.sampled_from(("RRULE:FREQ=DAILY;BYHOUR={hour};BYMINUTE={minute}", "CRON:{minute} {hour} * * *")),
)
def test_a_daily_reminder_is_due_when_a_job_of_the_night_is(zone: str, at: time, day: date, rule: str) -> None:
    first = datetime.combine(day - timedelta(days=3), time(12), ZoneInfo(zone))
    after = datetime.combine(day, time(12), UTC)
    due = following(rule.format(hour=at.hour, minute=at.minute), after=after, first=first)
    job = next_job(ScheduledJob(name="job", at=at), ZoneInfo(zone), int(after.timestamp() * 1000))
    assert due is not None
    assert int(due.timestamp() * 1000) == job.at


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1995, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001 - the zone is put in below
    st.sampled_from(
        (
            "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=2;BYMINUTE=30", "RRULE:FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=2;BYMINUTE=30",
            "RRULE:FREQ=HOURLY;INTERVAL=2", "CRON:0,30 0-4 * * *", "RRULE:FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=29;BYHOUR=1;BYMINUTE=0",
        )
    ),
)  # fmt: skip
def test_times_follow_each_other_whatever_the_clocks_do(zone: str, moment: datetime, rule: str) -> None:
    first = datetime.fromtimestamp(int(moment.replace(tzinfo=UTC).timestamp()), ZoneInfo(zone))
    due = first
    for _ in range(5):
        later = following(rule, after=due, first=first)
        assert later is not None
        assert later.timestamp() > due.timestamp()
        due = later


def test_hours_with_minutes_of_their_own_come_in_turn_through_a_change_of_clocks() -> None:
    rule = "RRULE:FREQ=DAILY;BYHOUR=8;BYMINUTE=0\nRRULE:FREQ=DAILY;BYHOUR=20;BYMINUTE=30"
    first = datetime(2026, 3, 28, 8, tzinfo=BERLIN)
    assert times(rule, first, 3) == ["2026-03-28 20:30", "2026-03-29 08:00", "2026-03-29 20:30"]


@st.composite
def lines_of_cron(draw: st.DrawFn) -> str:
    def some(most: int, least: int = 0) -> str:
        return ",".join(map(str, sorted(draw(st.sets(st.integers(least, most), min_size=1, max_size=3)))))

    days, weekdays = draw(st.sampled_from([("*", "*"), (some(28, 1), "*"), ("*", some(6)), (some(28, 1), some(6))]))
    minutes, months = draw(st.sampled_from(["0", "30", "0,30"])), draw(st.sampled_from(["*", "1,7"]))
    return f"CRON:{minutes} {some(23)} {days} {months} {weekdays}"


@settings(max_examples=20)
@given(lines_of_cron())
def test_what_a_rule_is_said_to_be_is_what_it_does(rule: str) -> None:
    """The parts that a person is told name the very times of the rule."""
    parts, first = recurrences(rule), datetime(2026, 1, 1, tzinfo=UTC)
    due, told = first, []
    for _ in range(12):
        later = following(rule, after=due, first=first)
        assert later is not None
        while due < later - timedelta(minutes=30):
            due += timedelta(minutes=30)
            told += [due] if any(_is_of(part, due) for part in parts) else []
        due = later
        assert any(_is_of(part, due) for part in parts)
    assert not told


def _is_of(part: Recurrence, at: datetime) -> bool:
    return (
        at.hour * 60 + at.minute in part.minutes
        and (not part.weekdays or at.weekday() in part.weekdays)
        and (not part.days or at.day in part.days)
        and (not part.months or at.month in part.months)
    )
