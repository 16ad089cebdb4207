"""Every moment and every day has its place, whatever the clocks do."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import product
from zoneinfo import available_timezones

from hypothesis import given
from hypothesis import strategies as st

from memory.errors import UnreadFilter
from memory.text.times.calendar import month_at
from memory.text.times.clock import day_bounds, end_of, local_date, local_time, moments
from memory.text.times.spans import spans
from memory.typed_filters import read

EDGES = [date.min, date.min + timedelta(days=1), date(1, 12, 31), date(9999, 1, 1), date(9999, 12, 30), date.max]
ZONES = ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Shanghai", "America/New_York", "Africa/Monrovia"]


def test_the_first_and_last_days_of_the_calendar_end_in_every_timezone() -> None:
    """A date in an address is anybody's, so none may be an error."""
    for day, zone in product(EDGES[1:], sorted(available_timezones())):
        assert end_of(day - timedelta(days=1), zone) < end_of(day, zone), (day, zone)
    assert month_at(date.max, 0) == (date(9999, 12, 1), date.max, "month")


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(ZONES))
def test_every_stored_moment_has_a_date(moment: int, zone: str) -> None:
    """An import may hold any year; a list must not fail for it."""
    day = local_date(moment, zone)
    begins, ends = day_bounds(moment, zone)
    assert begins < ends and local_time(moment, zone).date() == day


@given(
    st.sampled_from(EDGES) | st.dates(),
    st.sampled_from(["{}", "since {}", "before {}", "after {}", "the week after {}", "around {}", "from {} to {}",
                     "two days before {}", "early {}", "seit {}", "{}以来", "{}之前"]),
    st.sampled_from(EDGES) | st.dates(),
    st.sampled_from(ZONES),
    st.sampled_from(["{:%Y-%m-%d}", "{:%Y-%m}", "{:%Y}", "{:%d %B %Y}", "{:%Y}年{:%m}月{:%d}日"]),
)  # fmt: skip
def test_no_date_in_words_is_an_error(day: date, form: str, today: date, zone: str, written: str) -> None:
    """Neither asked about, nor as a filter, on whatever day it is said."""
    said = form.format(*[written.format(day, day, day)] * 2)
    for span in spans(said, today, looks="back"):
        first, last = moments(span.first, span.last, zone)
        assert first < last
    for name in ("since", "until", "on"):
        try:
            filters = read(f"{name}:{said}", today)
        except UnreadFilter:
            continue
        for one in filters.given:
            assert one.period is not None
            moments(one.period.first, one.period.last, zone)
