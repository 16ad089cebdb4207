"""kill -9 at every named point of a reminder's way: none is lost, none comes twice.

`make crash PLATFORM=reminders` does this and many random kills, under both models of when a request takes effect.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.reminders_world import POINTS, world

pytestmark = pytest.mark.campaign


async def test_killed_at_every_named_point_each_reminder_comes_once(tmp_path: Path) -> None:
    """From the word that it is set to the moment it is shown, wherever the process ends."""
    tally = await world(tmp_path, effect="arrival", points=POINTS, kills=len(POINTS) + 3, messages=60, rate=5)
    assert tally.broken() == []
    assert tally.kills == len(POINTS) + 3
    assert tally.messages - tally.unheard > len(POINTS)
