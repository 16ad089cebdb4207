"""The second wall: policies of PostgreSQL that hold although every statement has forgotten its scope."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit import postgres
from tests.kit.canaries import PLACES, Spot, World
from tests.kit.leaks import Tally, search, told
from tests.kit.stores import AGENTS
from tests.kit.ways import PROGRAMS, WAYS, faults

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    import psycopg

    from memory.store.postgres.database import PostgresDatabase, is_walled
    from tests.kit.walls import WithoutFirstWall, WithoutWalls

STEPS = int(os.environ.get("REMORA_LEAK_STEPS", "0"))
SEED = random.randrange(2**31) if STEPS else 1
SPOTS = [
    Spot(person=person, place=place, agent=agent)
    for person in ("ada", "bob")
    for place in PLACES
    if place != "club/talk"
    for agent in AGENTS
]


async def told_everywhere(world: World) -> None:
    for spot in SPOTS:
        await world.tell(spot, ("sel", "fri", "sty", "eve") if spot.place == "private" else ("sel", "fri", "sty"))
        await world.have_kept(spot)
    for agent in AGENTS:
        await world.say_for_agent(agent)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Two people have told something of every kind in every place, to statements without their condition."""
    made = await World.open(tmp_path / "remora.db", ("ada", "bob"), engine=WithoutFirstWall.at)
    await told_everywhere(made)
    yield made
    await made.close()


async def test_statements_without_their_condition_read_nothing_that_is_not_theirs(world: World) -> None:
    """By every way to read there is, with the first wall taken out. Searching without the index comes last."""
    for name in sorted(set(WAYS) - set(PROGRAMS), key=lambda name: (name == "substring", name)):
        assert [fault for spot in SPOTS for fault in await faults(world, name, spot)] == [], name


async def test_whatever_people_do_the_second_wall_holds_alone() -> None:
    leak = await search(STEPS or 100, SEED, Tally(), engine=WithoutFirstWall.at)
    assert leak is None, f"seed {SEED}\n{told(leak)}"


async def test_without_both_walls_leaks_are_found() -> None:
    """Else the tests above could not fail."""
    assert await search(100, 1, Tally(), engine=WithoutWalls.at) is not None


async def test_a_store_that_was_made_before_the_policies_has_them_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    await (await PostgresDatabase.open(postgres.url(path), path, now=1)).close()
    with psycopg.connect(postgres.url(path), autocommit=True) as connection:
        connection.execute(b"set search_path = remora, public")
        named = connection.execute(b"select policyname, tablename from pg_policies order by 2").fetchall()
        assert len(named) == len({table for _, table in named}) == 10
        for policy, table in named:
            connection.execute(f"drop policy {policy} on {table}".encode())
        connection.execute(b"create policy remora_older on memories using (true)")
        await (await PostgresDatabase.open(postgres.url(path), path, now=1)).close()
        assert connection.execute(b"select policyname, tablename from pg_policies order by 2").fetchall() == named


async def test_a_role_that_no_policy_holds_is_known(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    assert await is_walled(postgres.url(path), path)
    assert not await is_walled(f"{postgres.superuser(postgres.server())} dbname=postgres", path)
