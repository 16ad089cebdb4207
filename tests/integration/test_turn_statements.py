"""The number of statements that an ordinary turn asks: to an engine elsewhere, each is a way there and back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from gateway.pipeline.policy import Rules
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.driver import Driver
from tests.kit.pipeline import pipeline
from tests.kit.stores import Counted

pytestmark = pytest.mark.sqlite("counts its statements")

#: What a turn may ask, with the beginning and end of each of its transactions.
MOST = 60


async def test_an_ordinary_turn_asks_few_statements(tmp_path: Path) -> None:
    """A question in a private chat, with a search in what is remembered, until its answer is delivered."""
    counted = Counted(drivers.best().module)
    driver = Driver(name="counted", module=counted)
    turns: list[list[str]] = []
    async with pipeline(tmp_path, rules={"telegram": Rules(admins=frozenset({"7"}))}, driver=driver) as world:
        await world.say("I live in Lisbon and my sister is called Ana", author="7")
        await world.say("/remember the spare key is under the blue pot", author="7")
        for thing in ("weather", "food", "music"):
            counted.asked.clear()
            assert await world.say(f"tell me something about the {thing} in Lisbon, please", author="7") != []
            turns.append([sql for sql in counted.asked if not sql.startswith("--")])
        # A session's row is held from before an id is given until the commit, so that ids follow the commits.
        for asked in turns:
            first = [
                sql.split()[:2] for sql in asked if sql.startswith(("begin", "update sessions", "insert into messages"))
            ]
            assert all(before == ["update", "sessions"] for before, sql in pairwise(first) if sql[0] == "insert")
    # What runs beside a turn may be counted with the next.
    fewest = min(turns, key=len)
    assert 20 < len(fewest) <= MOST, "\n".join(fewest)
