"""The number of statements that an ordinary turn asks: to an engine elsewhere, each is a way there and back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from bench import server
from gateway.pipeline.policy import Rules
from memory.store import passages
from memory.store.database import Reader
from memory.store.history import Utterance
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.database import SqliteReader
from memory.store.sqlite.driver import Driver
from tests.kit import postgres
from tests.kit.fakes import NOON, Clock
from tests.kit.pipeline import World, pipeline
from tests.kit.stores import Counted, opened
from tests.kit.talk import private

#: The most statements of a turn until its answer is delivered, with the beginning and end of each of its transactions. On
#: PostgreSQL a write of one statement begins and ends as well, and two more take locks and look whether the process is
#: still there. The index reads the turn's messages afterwards.
MOST, MOST_ON_POSTGRES = 42, 48
RULES = {"telegram": Rules(admins=frozenset({"7"}))}


async def told(world: World) -> None:
    await world.say("I live in Lisbon and my sister is called Ana", author="7")
    await world.say("/remember the spare key is under the blue pot", author="7")


async def asked(world: World, thing: str) -> None:
    """A question in a private chat, with a search in what is remembered, until its answer is delivered."""
    assert await world.say(f"tell me something about the {thing} in Lisbon, please", author="7") != []


@pytest.mark.sqlite("counts its statements")
async def test_an_ordinary_turn_asks_few_statements(tmp_path: Path) -> None:
    counted = Counted(drivers.best().module)
    turns: list[list[str]] = []
    async with pipeline(tmp_path, rules=RULES, driver=Driver(name="counted", module=counted)) as world:
        await told(world)
        for thing in ("weather", "food", "music", "theatre", "trams"):
            await world.memory.indexed()
            counted.asked.clear()
            await asked(world, thing)
            turns.append([sql for sql in counted.asked if not sql.startswith("--")])
        # A session's row is held from before an id is given until the commit, so that ids follow the commits.
        for some in turns:
            first = [
                sql.split()[:2] for sql in some if sql.startswith(("begin", "update sessions", "insert into messages"))
            ]
            assert all(before == ["update", "sessions"] for before, sql in pairwise(first) if sql[0] == "insert")
    # Work beside a turn may be counted with the next.
    fewest = min(turns, key=len)
    assert 20 < len(fewest) <= MOST, "\n".join(fewest)


@pytest.mark.sqlite("looks at what SQLite prepares")
async def test_a_turn_prepares_no_statement_again(tmp_path: Path) -> None:
    """Preparing takes longer than running, so people wait for a statement that is prepared at every turn."""
    counted = Counted(drivers.best().module)
    again = []
    async with pipeline(tmp_path, rules=RULES, driver=Driver(name="counted", module=counted)) as world:
        await told(world)
        for thing in ("weather", "food", "music", "theatre", "trams"):
            counted.prepared.clear()
            await asked(world, thing)
            again.append([sql for sql in counted.prepared if not sql.startswith("--")])
    # A statement with as many marks as rows is new now and then.
    assert min(again, key=len) == []


@pytest.mark.sqlite("counts its steps")
async def test_a_speakers_latest_messages_cost_the_same_however_many_came_before(tmp_path: Path) -> None:
    """Every turn reads them, so a long conversation must not grow slower with them."""
    async with opened(tmp_path / "remora.db", Clock()) as memory:
        context = await memory.identities.context(*private("ada"))

        async def steps() -> int:
            """SQLite's steps, in tens, for the latest messages."""

            def act(reader: Reader) -> int:
                assert isinstance(reader, SqliteReader)
                taken: list[int] = []
                reader._connection.set_progress_handler(lambda: taken.append(1), 10)
                assert len(passages.said_last(reader, context.scope, limit=20)) == 20
                reader._connection.set_progress_handler(None, 0)
                return len(taken)

            return await memory.database.read(act)

        before = []
        for more in (40, 2_000):
            words = [Utterance(role="user", text="hm", tokens=1, said_at=NOON, learn=False) for _ in range(more)]
            await memory.turns.record(*private("ada"), words)
            before.append(await steps())
        assert before[1] <= before[0] + 10


@pytest.mark.postgres
async def test_an_ordinary_turn_holds_up_no_other_session_on_postgres(tmp_path: Path) -> None:
    """No transaction of it has the store for itself, so turns of other processes run beside it."""
    with postgres.running({**server.LOGGED, "fsync": "off"}) as one:
        turns: list[list[server.Logged]] = []
        async with pipeline(tmp_path, rules=RULES, shared=one.database("turns")) as world:
            await told(world)
            for thing in ("weather", "food", "music", "theatre", "trams"):
                await world.memory.indexed()
                before = one.log.stat().st_size
                await asked(world, thing)
                turns.append(server.transactions(one.log.read_bytes()[before:].decode()))
    fewest = min(turns, key=lambda turn: sum(transaction.statements for transaction in turn))
    kinds = [transaction.kind for transaction in fewest]
    assert set(kinds) == {"keyed", "read"}, fewest
    assert kinds.count("keyed") >= 5
    assert 20 < sum(transaction.statements for transaction in fewest) <= MOST_ON_POSTGRES
