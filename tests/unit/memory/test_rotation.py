"""When a conversation begins anew by itself."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest

from memory.learn.agents import Rotation
from tests.kit.tables import each_row

_HOUR = 3_600_000


def at(day: int, hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 3, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


def test_a_conversation_goes_on_unless_the_agents_file_says_otherwise() -> None:
    """Nobody is to lose the thread over a long weekend."""
    assert not Rotation().is_due(at(1, 10), at(28, 10), "UTC")


@pytest.mark.parametrize(("hours", "due"), [(5, False), (6, True), (100, True)])
def test_it_begins_anew_after_so_long_a_silence(hours: int, due: bool) -> None:
    assert Rotation(idle_ms=6 * _HOUR).is_due(at(1, 10), at(1, 10) + hours * _HOUR, "UTC") is due


@each_row(("last", "now", "due"), [
        (at(1, 23), at(2, 1), False), (at(1, 23), at(2, 4), True), (at(2, 3, 59), at(2, 4, 1), True),
        (at(2, 4, 1), at(2, 23), False), (at(2, 5), at(3, 3), False), (at(2, 5), at(4, 3), True),
    ])  # fmt: skip
def test_it_begins_anew_with_the_first_words_after_an_hour_of_the_day(last: int, now: int, due: bool) -> None:
    """A talk past midnight goes on; the next morning's is another one."""
    assert Rotation(at=time(4)).is_due(last, now, "UTC") is due


def test_the_hour_is_that_of_the_person() -> None:
    """Four o'clock in Tokyo is seven in the evening in London."""
    rotation = Rotation(at=time(4))
    assert rotation.is_due(at(1, 18), at(1, 20), "Asia/Tokyo")
    assert not rotation.is_due(at(1, 18), at(1, 20), "UTC")


def test_a_first_message_begins_nothing_anew() -> None:
    assert not Rotation(idle_ms=1, at=time(4)).is_due(None, at(1, 10), "UTC")
