"""The soak in short: a few hours of the bot's time, with the troubles that take least, and the gates it is held to."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from bench import soak
from bench.soaked import MovedTime
from tests.kit.patience import SECONDS, limit
from tests.kit.tables import each_row

WELL: dict[str, Any] = {
    "lost": [], "health": "green", "mb_per_10000_turns": 0.5, "threads_left": 0, "sockets": 40,
    **{f"{name}_{when}": 5 for name in ("files", "tasks", "threads") for when in ("before", "after")},
}  # fmt: skip


@pytest.mark.campaign(long=True)
def test_some_hours_with_troubles_lose_no_message() -> None:
    """Messages said before the clock is put back, while nothing can be written, and while answers get lost.

    The clock is put back first: what waits for the same hour to come again counts as held until then.
    """
    found = soak.run(hours=3, chats=3, minutes=30, troubles=("clock back", "disk full", "cut after"))
    assert soak.missed(found, short=True) == []
    assert int(str(found["messages"])) == 18 == sum(int(str(found[name])) for name in ("answered", "command", "told"))
    assert int(str(found["answered"])) >= 6


@each_row(
    "figures",
    [
        {"lost": ["t1x1000: hello"]}, {"health": "red the wire is cut"}, {"mb_per_10000_turns": 1.0},
        {"files_after": 9}, {"sockets": 61}, {"tasks_after": 9}, {"threads_after": 9}, {"threads_left": 1},
    ],
)  # fmt: skip
def test_a_gate_can_be_missed(figures: dict[str, Any]) -> None:
    assert soak.missed(WELL) == []
    assert len(soak.missed({**WELL, **figures})) == 1


async def test_moved_time_ends_waits_and_never_runs_back_for_them() -> None:
    """Else the jobs of the night would not run in a soak, or wait for hours that the clock was put back."""
    clock = MovedTime()
    waiting = asyncio.create_task(clock.sleep(3_600))
    await asyncio.sleep(0)
    before = clock.monotonic()
    clock.move(-7_200)
    assert clock.monotonic() >= before and abs(clock.now() / 1000 - time.time() + 7_200) < SECONDS
    assert not waiting.done()
    clock.move(3_600)
    async with limit():
        await waiting
