"""The store on disk: what survives a kill, what a cancelled caller leaves behind, who may write."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memory.errors import SchemaTooNew, StorageError, StoreInUse, StoreUnwritable
from memory.store import driver as drivers
from memory.store.database import Database
from memory.store.migrate import Migration, migrations

DRIVERS = [drivers.built_in(), *([bundled] if (bundled := drivers.bundled()) is not None else [])]


@pytest.fixture(params=DRIVERS, ids=[driver.name for driver in DRIVERS])
def driver(request: pytest.FixtureRequest) -> drivers.Driver:
    found: drivers.Driver = request.param
    return found


async def _opened(path: Path, driver: drivers.Driver | None = None) -> Database:
    return await Database.open(path, now=1, driver=driver)


async def test_rows_written_before_a_sigkill_in_mid_transaction_are_kept(tmp_path: Path) -> None:
    """A killed process loses its open transaction and nothing else."""
    path = tmp_path / "remora.db"
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITES_THEN_HANGS, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "in transaction"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()

    database = await _opened(path)
    names = [row["name"] for row in await database.all("select name from agents order by id")]
    check = await database.one("pragma integrity_check")
    await database.close()
    assert names == ["committed 0", "committed 1", "committed 2"]
    assert check is not None and check[0] == "ok"


async def test_a_cancelled_writer_leaves_no_transaction_open(tmp_path: Path, driver: drivers.Driver) -> None:
    """The next writer must neither wait for a lock nor commit what was given up."""
    database = await _opened(tmp_path / "remora.db", driver)
    inside = asyncio.Event()

    async def writes_and_waits() -> None:
        async with database.transaction() as tx:
            await tx.run("insert into agents (name, created_at) values ('given up', 1)")
            inside.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(writes_and_waits())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with database.transaction() as tx:
        await tx.run("insert into agents (name, created_at) values ('next', 1)")
    rows = await database.all("select name from agents")
    await database.close()
    assert [row["name"] for row in rows] == ["next"]


async def test_cancelling_at_any_statement_leaves_all_or_nothing(tmp_path: Path) -> None:
    """Wherever the cancellation strikes, two rows of one transaction share their fate."""
    database = await _opened(tmp_path / "remora.db")

    async def writes_two(n: int) -> None:
        async with database.transaction() as tx:
            await tx.run("insert into agents (name, created_at) values (?, 1)", (f"first {n}",))
            await tx.run("insert into agents (name, created_at) values (?, 1)", (f"second {n}",))

    for n in range(60):
        task = asyncio.create_task(writes_two(n))
        for _ in range(n % 30):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    rows = await database.all(
        "select substr(name, instr(name, ' ') + 1) as n, count(*) as rows from agents group by n having rows <> 2"
    )
    await database.close()
    assert [dict(row) for row in rows] == []


async def test_transactions_run_one_after_the_other_in_the_order_asked(tmp_path: Path) -> None:
    """One writer behind one queue: nobody ever sees "database is locked"."""
    database = await _opened(tmp_path / "remora.db")
    order: list[int] = []

    async def write(n: int) -> None:
        async with database.transaction() as tx:
            await tx.run("insert into agents (name, created_at) values (?, 1)", (str(n),))
            await asyncio.sleep(0)
            order.append(n)

    await asyncio.gather(*(write(n) for n in range(20)))
    await database.close()
    assert order == list(range(20))


async def test_readers_cannot_write(tmp_path: Path, driver: drivers.Driver) -> None:
    """A slip in a query must not change a row."""
    database = await _opened(tmp_path / "remora.db", driver)
    with pytest.raises(StoreUnwritable):
        await database.all("insert into agents (name, created_at) values ('x', 1)")
    await database.close()


async def test_a_failing_statement_rolls_the_whole_transaction_back(tmp_path: Path, driver: drivers.Driver) -> None:
    """Errors come as ours, whichever SQLite raised them."""
    database = await _opened(tmp_path / "remora.db", driver)
    with pytest.raises(StorageError):
        async with database.transaction() as tx:
            await tx.run("insert into agents (name, created_at) values ('x', 1)")
            await tx.run("insert into agents (name, created_at) values ('x', 1)")
    rows = await database.all("select 1 from agents")
    await database.close()
    assert rows == []


async def test_a_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    """Two writers on one file would answer everybody twice."""
    path = tmp_path / "remora.db"
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITES_THEN_HANGS, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    child.stdout.readline()
    with pytest.raises(StoreInUse, match=str(child.pid)):
        await _opened(path)
    child.kill()
    child.wait()
    child.stdout.close()
    await (await _opened(path)).close()


async def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    """The operator learns which setting to change."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnwritable, match="data_dir"):
        await _opened(tmp_path / "file" / "remora.db")


async def test_a_file_that_is_no_database_is_left_untouched(tmp_path: Path, driver: drivers.Driver) -> None:
    """Somebody's other file must not be overwritten."""
    path = tmp_path / "remora.db"
    path.write_bytes(b"dear diary, " * 100)
    with pytest.raises(StorageError, match="damaged or no Remora database"):
        await _opened(path, driver)
    assert path.read_bytes() == b"dear diary, " * 100


async def test_a_newer_database_is_refused_unchanged(tmp_path: Path) -> None:
    """An old program must not write into a schema it doesn't know."""
    path = tmp_path / "remora.db"
    future = Migration(version=9999, name="future", sql="create table future (x integer) strict;")
    await (await Database.open(path, now=1, known=[*migrations(), future])).close()
    with pytest.raises(SchemaTooNew, match="newer Remora"):
        await _opened(path)


async def test_a_failing_migration_leaves_the_schema_before_it(tmp_path: Path, driver: drivers.Driver) -> None:
    """A migration and its record are one transaction."""
    path = tmp_path / "remora.db"
    broken = [
        *migrations(),
        Migration(version=2000, name="broken", sql="create table half (x integer) strict;\ninsert into nowhere values (1);"),
    ]
    with pytest.raises(StorageError):
        await Database.open(path, now=1, driver=driver, known=broken)
    database = await _opened(path, driver)
    tables = await database.all("select name from sqlite_master where name = 'half'")
    await database.close()
    assert tables == []


async def test_the_log_is_checkpointed_and_the_lock_freed_at_close(tmp_path: Path, driver: drivers.Driver) -> None:
    """After a clean stop the one file is complete and may be copied."""
    path = tmp_path / "remora.db"
    database = await _opened(path, driver)
    async with database.transaction() as tx:
        await tx.run("insert into agents (name, created_at) values ('x', 1)")
    await database.close()
    assert not path.with_name("remora.db-wal").exists()
    await (await _opened(path, driver)).close()


async def test_a_python_whose_sqlite_loads_no_extensions_is_served(tmp_path: Path) -> None:
    """Many Python builds lack enable_load_extension; the store must open there with all that words need."""
    database = await _opened(tmp_path / "remora.db", drivers.built_in())
    async with database.transaction() as tx:
        await tx.run("create virtual table probe using fts5(text)")
        await tx.run("insert into probe values ('found')")
    rows = await database.all("select text from probe where probe match 'found'")
    await database.close()
    assert [row["text"] for row in rows] == ["found"]
    best = drivers.best()
    assert best.loads_extensions or drivers.bundled() is None


_WRITES_THEN_HANGS = """
import asyncio, sys
from pathlib import Path
from memory.store.database import Database

async def main():
    database = await Database.open(Path(sys.argv[1]), now=1)
    for n in range(3):
        async with database.transaction() as tx:
            await tx.run("insert into agents (name, created_at) values (?, 1)", (f"committed {n}",))
    async with database.transaction() as tx:
        await tx.run("insert into agents (name, created_at) values ('never committed', 1)")
        print("in transaction", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""
