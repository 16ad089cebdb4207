"""The token bucket of a person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.limits import Buckets

ADA = ("telegram", "1")
BEN = ("telegram", "2")


class Seconds:
    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def buckets(clock: Seconds, *, per_minute: float = 30, burst: int = 10, people: int = 10_000) -> Buckets:
    return Buckets(per_minute=per_minute, burst=burst, monotonic=clock, people=people)


def test_a_burst_gets_through_and_the_next_one_waits_for_the_rate() -> None:
    """People paste a few lines at once; what matters is how many there are in a minute."""
    clock = Seconds(1_000)
    limit = buckets(clock)
    assert [limit.take(ADA) for _ in range(10)] == ["ok"] * 10
    assert limit.take(ADA) == "tell"
    clock.at += 2
    assert [limit.take(ADA) for _ in range(2)] == ["ok", "tell"]
    clock.at += 3_600
    assert [limit.take(ADA) for _ in range(11)] == ["ok"] * 10 + ["tell"]


def test_a_person_is_told_once_until_a_message_gets_through() -> None:
    """An answer to every refused message would make two floods of one."""
    clock = Seconds()
    limit = buckets(clock, burst=1)
    assert [limit.take(ADA) for _ in range(4)] == ["ok", "tell", "silent", "silent"]
    clock.at += 2
    assert [limit.take(ADA) for _ in range(3)] == ["ok", "tell", "silent"]


def test_what_was_said_slowly_gets_through_however_late_it_is_heard() -> None:
    """After an hour without a network an hour's messages arrive at once; a real flood in them is still one."""
    limit = buckets(Seconds(1_000), burst=2)
    assert [limit.take(ADA, at=n * 2.0) for n in range(100)] == ["ok"] * 100
    assert [limit.take(BEN, at=50.0) for _ in range(4)] == ["ok", "ok", "tell", "silent"]


def test_one_persons_flood_leaves_the_others_alone() -> None:
    """Nor does the same id on another channel count: it is somebody else."""
    limit = buckets(Seconds(), burst=1)
    for _ in range(100):
        limit.take(ADA)
    assert limit.take(BEN) == "ok"
    assert limit.take(("discord", "1")) == "ok"


def test_only_so_many_people_are_remembered_and_the_flooder_is_among_them() -> None:
    """Memory is bounded, and a crowd passing by does not refill the bucket of who keeps talking."""
    limit = buckets(Seconds(), burst=1, people=10)
    limit.take(ADA)
    for n in range(1_000):
        assert limit.take(("telegram", f"guest {n}")) == "ok"
        assert limit.take(ADA) != "ok"
        assert len(limit) <= 10


def test_whoever_is_forgotten_starts_with_a_full_bucket() -> None:
    limit = buckets(Seconds(), burst=1, people=1)
    assert [limit.take(ADA), limit.take(ADA), limit.take(BEN), limit.take(ADA)] == ["ok", "tell", "ok", "ok"]


@pytest.mark.parametrize(("per_minute", "burst", "people"), [(0, 1, 1), (-1, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_limits_that_would_let_nothing_through_are_refused(per_minute: float, burst: int, people: int) -> None:
    """A bot that answers nobody must not look like one that works."""
    with pytest.raises(ValueError, match="nobody could say anything"):
        buckets(Seconds(), per_minute=per_minute, burst=burst, people=people)


RATES = st.floats(0.01, 1_000)
BURSTS = st.integers(1, 30)
PAUSES = st.lists(st.floats(0, 120), min_size=1, max_size=80)


@given(RATES, BURSTS, PAUSES)
def test_no_span_of_time_holds_more_than_the_burst_and_the_rate(
    per_minute: float, burst: int, pauses: list[float]
) -> None:
    """The bound holds for every two messages that got through, whatever lies between them."""
    clock = Seconds()
    limit = buckets(clock, per_minute=per_minute, burst=burst)
    passed = []
    for pause in pauses:
        clock.at += pause
        if limit.take(ADA) == "ok":
            passed.append(clock.at)
    for first, start in enumerate(passed):
        for last, end in enumerate(passed[first:], first):
            assert last - first + 1 <= burst + (end - start) * per_minute / 60 + 1e-6


@given(RATES, BURSTS, st.integers(1, 60))
def test_whoever_keeps_to_the_rate_is_never_refused(per_minute: float, burst: int, count: int) -> None:
    """A limit that bites below its own figure would be a lie in the configuration."""
    clock = Seconds()
    limit = buckets(clock, per_minute=per_minute, burst=burst)
    for _ in range(count):
        assert limit.take(ADA) == "ok"
        clock.at += 60 / per_minute * (1 + 1e-9)


@given(RATES, BURSTS, PAUSES)
def test_every_run_of_refusals_is_told_exactly_once(per_minute: float, burst: int, pauses: list[float]) -> None:
    clock = Seconds()
    limit = buckets(clock, per_minute=per_minute, burst=burst)
    before = "ok"
    for pause in pauses:
        clock.at += pause
        now = limit.take(ADA)
        assert now == "ok" or now == ("tell" if before == "ok" else "silent")
        before = now


def test_a_message_that_was_not_taken_does_not_count() -> None:
    """The platform gives it again, and it is still one message."""
    buckets = Buckets(per_minute=1, burst=2, monotonic=lambda: 0.0)
    for _ in range(50):
        assert buckets.take(("telegram", "5")) == "ok"
        buckets.give_back(("telegram", "5"))
    buckets.give_back(("telegram", "nobody"))
    assert [buckets.take(("telegram", "5")) for _ in range(3)] == ["ok", "ok", "tell"]


def test_messages_that_overtook_each_other_are_not_said_too_fast() -> None:
    """Several places of one person are heard at a time, each in its own order."""
    buckets = Buckets(per_minute=30, burst=3, monotonic=lambda: 0.0)
    assert [buckets.take(ADA, at=at) for at in (100.0, 91.0, 95.0)] == ["ok", "ok", "ok"]
    assert buckets.take(ADA, at=99.0) == "tell"
    # A clock that was put back by more than that shuts nobody out for longer than a full bucket does.
    assert [buckets.take(ADA, at=at) for at in (50.0, 56.0)] == ["silent", "ok"]
