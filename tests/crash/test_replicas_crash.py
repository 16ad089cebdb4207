"""kill -9 of the bot and of its PostgreSQL server at random: nothing is lost, nothing happens twice or out of order.

`make crash PLATFORM=replicas` does this many times over.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import postgres

pytestmark = [pytest.mark.postgres, pytest.mark.campaign]
if postgres.is_installed():
    from tests.crash.replicas_world import Chaos, ReplicasTally, Waits, world


async def test_killed_and_frozen_with_their_server_they_lose_double_and_disorder_nothing(tmp_path: Path) -> None:
    """People talk on while three replicas die, one stands still for longer than its lease, and the server dies."""
    chaos = Chaos(kills=4, freezes=1, server_kills=1, pause=2)
    tally = await world(tmp_path, effect="mixed", chaos=chaos, messages=30, model_ms=100)
    assert tally.broken() == []
    assert (tally.kills, tally.freezes, tally.server_kills) == (4, 1, 1)
    assert tally.messages >= 30 and tally.failed == 0


async def test_of_several_that_fetch_only_one_fetches_at_a_time(tmp_path: Path) -> None:
    """Each update comes from the platform once, whichever of them dies."""
    tally = await world(tmp_path, effect="arrival", chaos=Chaos(kills=2), replicas=2, polling=True, model_ms=100)
    assert tally.broken() == []
    assert tally.conflicts == 0 < tally.messages


def test_a_tally_names_what_replicas_broke() -> None:
    """A freeze may end one poll; order may never be broken."""
    assert ReplicasTally(freezes=1, conflicts=1).broken() == []
    assert len(ReplicasTally(lost=1, misordered=1, conflicts=1).broken()) == 3
    assert ReplicasTally(overpaid=1, repaid=1, server_kills=1).broken() == []
    assert len(ReplicasTally(overpaid=2, server_kills=1).broken()) == 1
    assert len(ReplicasTally(overpaid=1).broken()) == 1 and ReplicasTally(overpaid=1, ended=1).broken() == []


def test_a_takeover_is_counted_from_the_last_death_before_the_answer() -> None:
    """Whoever takes over and dies as well begins the wait anew; a session that is never answered has no end."""
    waits = Waits()
    for session, at in (("a", 1_000), ("b", 1_000), ("a", 4_000), ("never", 1_000)):
        waits.begin(session, at)
    assert sorted(waits.seconds({"a": [900, 6_500], "b": [3_000], "never": [500]})) == [2.0, 2.5]
