"""A primary is lost, and its synchronous standby takes its place: what was confirmed is there, and the work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.errors import StorageError
from memory.store.database import Transaction
from tests.kit import postgres
from tests.kit.patience import limit, until

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    import psycopg

    from memory.store.postgres.database import PostgresDatabase


@pytest.fixture
def pair() -> Iterator[tuple[postgres.Server, postgres.Server]]:
    """A primary that confirms nothing before its standby has it, and that standby."""
    settings = {"shared_buffers": "16MB"}
    with postgres.running(settings) as primary, postgres.running(settings, of=primary) as standby:
        with psycopg.connect(f"{postgres.superuser(primary.address)} dbname=postgres", autocommit=True) as connection:
            connection.execute(b"alter system set synchronous_standby_names = '*'")
            connection.execute(b"select pg_reload_conf()")
        primary.database("remora")
        yield primary, standby


@pytest.mark.stands("it starts servers itself")
async def test_a_number_that_is_given_again_is_no_proof_of_a_commit(tmp_path: Path) -> None:
    """A standby has not heard of the transaction, and gives its number to others before anybody asks for it."""
    settings, tries = {"shared_buffers": "16MB"}, list[int]()
    with postgres.running(settings) as primary, postgres.running(settings, of=primary) as standby:
        primary.database("remora")
        url = f"host={primary.folder},{standby.folder} user={postgres.ROLE} dbname=remora"
        store = await PostgresDatabase.open(f"{url} target_session_attrs=read-write", tmp_path / "remora.db", now=1)
        with psycopg.connect(f"{standby.address} dbname=remora", autocommit=True) as connection:
            await until(lambda: connection.execute(b"select to_regclass('remora.people')").fetchone() != (None,))

        def act(tx: Transaction) -> None:
            tries.append(1)
            if len(tries) > 1:
                tx.insert("insert into people (created_at) values (7)")
                return
            primary.kill()
            standby.promote()
            with psycopg.connect(f"{standby.address} dbname=remora", autocommit=True) as connection:
                for _ in range(200):
                    connection.execute(b"select pg_current_xact_id()")

        await store.write(act)
        assert (len(tries), await store.read(lambda reader: reader.number("select count(*) from people"))) == (2, 1)
        await store.close()


async def test_nothing_confirmed_is_lost_with_the_primary(
    tmp_path: Path, pair: tuple[postgres.Server, postgres.Server]
) -> None:
    primary, standby = pair
    hosts = f"host={primary.folder},{standby.folder}"
    url = f"{hosts} user={postgres.ROLE} dbname=remora target_session_attrs=read-write"
    one = await PostgresDatabase.open(url, tmp_path / "remora.db", now=1)
    other = await PostgresDatabase.open(url, tmp_path / "remora.db", now=1)
    assert await one.share.hold("p:1:-") == "taken"
    confirmed, failed = list[int](), set[int]()

    async def enter(database: PostgresDatabase, at: int) -> None:
        """Writes a row, and tries again while the server is away, as the pipeline does."""

        async def entered() -> bool:
            try:
                await database.write(lambda tx: tx.insert("insert into people (created_at) values (?)", (at,)))
            except StorageError:
                failed.add(at)
                return False
            return True

        await until(entered)
        confirmed.append(at)

    for at in range(20):
        await enter(one, at)
    primary.kill()
    writing = [asyncio.create_task(enter(database, at)) for at, database in ((20, one), (21, other))]
    await until(lambda: failed == {20, 21})
    standby.promote()
    # The new primary has no standby yet.
    with psycopg.connect(f"{postgres.superuser(standby.address)} dbname=postgres", autocommit=True) as connection:
        connection.execute(b"alter system set synchronous_standby_names = ''")
        connection.execute(b"select pg_reload_conf()")
    async with limit():
        await asyncio.gather(*writing)
    rows = await other.read(lambda reader: [row[0] for row in reader.all("select created_at from people order by 1")])
    assert rows == sorted(confirmed)
    # Neither was taken for dead, and what was held still is.
    assert (one.share.holds("p:1:-"), await other.share.hold("p:1:-")) == (True, "elsewhere")
    for database in (one, other):
        await database.close()
