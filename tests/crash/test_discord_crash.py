"""kill -9 at every named point of a message's way through Discord: nothing is lost, nothing happens twice.

`make crash PLATFORM=discord` does this and many random kills, under both models of when a request takes effect.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.discord_world import POINTS, world

pytestmark = pytest.mark.campaign


async def test_killed_at_every_named_point_of_discord_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Messages are found again and answered once, and words for one person's eyes stay so, whatever ends."""
    tally = await world(tmp_path, effect="arrival", points=POINTS, model_ms=50)
    assert tally.broken() == []
    assert tally.kills == len(POINTS)
    assert tally.failed == tally.notices == 0
