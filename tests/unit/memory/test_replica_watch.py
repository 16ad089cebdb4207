"""Who is taken for dead, by the signs of life that were seen."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg")
from memory.store.postgres.replica import BEAT, GONE, LEASE, Watch


def looks(*seen: tuple[float, int, bool]) -> list[list[str]]:
    """Returns who was dead at each look, each given as a time, the other's beat and whether it was connected."""
    watch = Watch()
    return [watch.dead({"other": beat}, {"other"} if connected else set(), at) for at, beat, connected in seen]


def every_beat(seconds: float, *, beats: bool, connected: bool, start: float = 0.0) -> list[tuple[float, int, bool]]:
    return [(start + n * BEAT, n if beats else 0, connected) for n in range(int(seconds / BEAT) + 1)]


def test_who_beats_lives() -> None:
    assert not any(looks(*every_beat(60, beats=True, connected=True)))


def test_who_gives_no_sign_of_life_is_dead_after_the_lease() -> None:
    found = looks(*every_beat(LEASE, beats=False, connected=True))
    assert found == [*([[]] * int(LEASE / BEAT)), ["other"]]


def test_whose_connection_is_gone_is_dead_sooner() -> None:
    found = looks((-BEAT, 0, True), *every_beat(GONE - BEAT, beats=False, connected=False))
    assert found == [*([[]] * int(GONE / BEAT)), ["other"]]


def test_who_connects_again_in_time_lives() -> None:
    away = every_beat(GONE - BEAT, beats=False, connected=False)
    back = [(GONE, 1, True), *every_beat(GONE - 2 * BEAT, beats=True, connected=False, start=GONE + BEAT)]
    assert not any(looks(*away, *back))


def test_who_could_not_look_itself_takes_nobody_for_dead() -> None:
    # The server was away, or this process was frozen, for a minute.
    assert looks((0, 5, True), (BEAT, 5, True), (60, 5, False), (60 + BEAT, 5, False)) == [[], [], [], []]


def test_who_looks_late_notices_the_dead_later() -> None:
    # A busy machine, on which a look comes every five beats.
    found = looks(*((5 * BEAT * n, 7, True) for n in range(5)))
    assert found == [[], [], [], [], ["other"]]


def test_who_parted_is_forgotten() -> None:
    watch = Watch()
    watch.dead({"other": 0}, set(), 0)
    assert watch.dead({}, set(), BEAT) == []
    assert watch.dead({"other": 0}, set(), 2 * BEAT) == []
