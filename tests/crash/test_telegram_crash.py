"""kill -9 at every named point of a message's way through Telegram: nothing is lost, nothing happens twice.

`make crash PLATFORM=telegram` does this and many random kills, under both models of when a request takes effect.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.telegram_world import POINTS, world
from tests.crash.world import Tally

pytestmark = pytest.mark.campaign


async def test_killed_at_every_named_point_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """A delivered message is answered once or offered, and learned once, wherever the process ends."""
    tally = await world(tmp_path, effect="arrival", points=POINTS, model_ms=100)
    assert tally.broken() == []
    assert tally.kills == len(POINTS)
    assert tally.failed == 0


def test_a_tally_names_what_was_broken() -> None:
    """A count that nobody looks at would let everything pass."""
    fine = Tally(messages=9, kills=3, orphans=1, notices=2, sends_unanswered=3, repaid=1, models_unanswered=1)
    assert fine.broken() == []
    for bad in (
        Tally(lost=1), Tally(doubled=1), Tally(misplaced=1), Tally(memory_lost=1), Tally(memory_doubled=1), Tally(overpaid=1),
        Tally(orphans=1, notices=1, sends_unanswered=1), Tally(repaid=2, models_unanswered=1), Tally(integrity="torn"),
    ):  # fmt: skip
        assert len((fine + bad).broken()) == 1 or bad.orphans or bad.repaid
        assert bad.broken() != []
