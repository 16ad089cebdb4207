"""Pairs of messages of one person: noticed if both can't hold, left alone if they can."""

from __future__ import annotations

from bench.pairs import Pair, figures, measured

PAIRS = [
    Pair(id="a", language="en", kind="conflict", first="I live in Ghent with two flatmates", expect="supersede",
         second="Unpacked the last box in Turin today, it feels like home already"),
    Pair(id="b", language="en", kind="conflict", first="My girlfriend is called Ines", expect="end",
         second="Since the breakup with Ines I sleep badly"),
    Pair(id="c", language="de", kind="conflict", first="Ich habe panische Angst vor Hunden", expect="ask",
         second="Unser Dackel schläft seit Jahren in meinem Bett"),
    Pair(id="d", language="en", kind="compatible", first="I play the oboe", expect="keep",
         second="Choir practice was great, I sing the alto part"),
]  # fmt: skip


async def test_what_comes_of_a_pair_is_told_apart() -> None:
    came = await measured(PAIRS, None)
    assert came["read"] == {"a": "superseded", "b": "ended", "c": "asked", "d": "kept"}
    assert came["patterns"] == {"a": "unread", "b": "ended", "c": "unread", "d": "unread"}


def test_a_conflict_of_which_nothing_comes_is_not_right() -> None:
    came = {"a": "kept", "b": "unread", "c": "asked", "d": "ended"}
    found = figures(PAIRS, came)
    assert found["right"] == 0.25 and found["conflict"]["right"] == 0.333 and found["compatible"]["right"] == 0
