"""The store on disk: what survives a kill, what a cancelled caller leaves behind, who may write."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from memory.errors import SchemaTooNew, StorageError, StoreInUse, StoreUnwritable
from memory.store import postings, vectors
from memory.store.database import Database, Reader, Transaction, one_moment
from memory.store.postings import Entry
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.migrate import Migration, migrations
from tests.kit.fakes import Clock

DRIVERS = [drivers.built_in(), *([bundled] if (bundled := drivers.bundled()) is not None else [])]


@pytest.fixture(params=DRIVERS, ids=[driver.name for driver in DRIVERS])
def driver(request: pytest.FixtureRequest) -> drivers.Driver:
    found: drivers.Driver = request.param
    return found


async def _opened(path: Path, driver: drivers.Driver | None = None) -> SqliteDatabase:
    return await SqliteDatabase.open(path, now=1, driver=driver)


@pytest.mark.campaign
async def test_rows_written_before_a_sigkill_in_mid_transaction_are_kept(tmp_path: Path) -> None:
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
    names = await _names(database)
    check = await database.read(lambda reader: reader.one("pragma integrity_check"))
    await database.close()
    assert names == ["committed 0", "committed 1", "committed 2"]
    assert check is not None and check[0] == "ok"


async def test_a_transaction_happens_at_one_moment_however_often_the_clock_is_asked(tmp_path: Path) -> None:
    """Rows that belong together are found together by their time; the next one is later, also after a failure."""
    clock = Clock()
    now = one_moment(clock)
    database = await _opened(tmp_path / "remora.db")

    def fails(tx: Transaction) -> None:
        seen.append((now(), now()))
        raise ValueError

    seen = [await database.write(lambda tx: (now(), now())), await database.read(lambda reader: (now(), now()))]
    with pytest.raises(ValueError):
        await database.write(fails)
    seen.append(await database.write(lambda tx: (now(), now())))
    await database.close()
    assert [later - first for first, later in seen] == [0, 0, 0, 0]
    assert sorted({first for first, _ in seen}) == [first for first, _ in seen]
    assert now() < now()


async def test_a_cancelled_writer_leaves_no_transaction_open(tmp_path: Path, driver: drivers.Driver) -> None:
    """The next writer must not wait for a lock: the function runs to its end, whoever still wants its result."""
    database = await _opened(tmp_path / "remora.db", driver)
    inside = threading.Event()
    go_on = threading.Event()

    def writes_and_waits(tx: Transaction) -> None:
        _add(tx, "first")
        inside.set()
        go_on.wait(10)
        _add(tx, "second")

    task = asyncio.create_task(database.write(writes_and_waits))
    await asyncio.to_thread(inside.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await database.write(lambda tx: _add(tx, "next"))
    assert await _names(database) == ["first", "second", "next"]
    await database.close()


async def test_cancelling_at_any_moment_leaves_all_or_nothing(tmp_path: Path) -> None:
    """Wherever the cancellation strikes, two rows of one transaction share their fate."""
    database = await _opened(tmp_path / "remora.db")

    def writes_two(tx: Transaction, n: int) -> None:
        _add(tx, f"first {n}")
        _add(tx, f"second {n}")

    for n in range(60):
        task = asyncio.create_task(database.write(lambda tx, n=n: writes_two(tx, n)))  # type: ignore[misc]
        for _ in range(n % 6):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    names = await _names(database)
    await database.close()
    assert {name.split()[1] for name in names if "first" in name} == {
        name.split()[1] for name in names if "second" in name
    }
    assert len(set(names)) == len(names) and len(names) % 2 == 0


async def test_transactions_run_one_after_the_other_in_the_order_asked(tmp_path: Path) -> None:
    """One writer behind one queue: nobody ever sees "database is locked"."""
    database = await _opened(tmp_path / "remora.db")
    await asyncio.gather(*(database.write(lambda tx, n=n: _add(tx, str(n))) for n in range(20)))  # type: ignore[misc]
    assert await _names(database) == [str(n) for n in range(20)]
    await database.close()


async def test_a_reader_sees_one_state_for_the_whole_of_its_function(tmp_path: Path) -> None:
    """A prompt must not be put together from before and after a change."""
    database = await _opened(tmp_path / "remora.db")
    counted = threading.Event()
    go_on = threading.Event()

    def counts_twice(reader: Reader) -> tuple[int, int]:
        before = len(reader.all("select 1 from agents"))
        counted.set()
        go_on.wait(10)
        return before, len(reader.all("select 1 from agents"))

    reading = asyncio.create_task(database.read(counts_twice))
    await asyncio.to_thread(counted.wait, 10)
    await database.write(lambda tx: _add(tx, "meanwhile"))
    go_on.set()
    assert await reading == (0, 0)
    await database.close()


async def test_readers_cannot_write(tmp_path: Path, driver: drivers.Driver) -> None:
    """A slip in a query must not change a row."""
    database = await _opened(tmp_path / "remora.db", driver)
    with pytest.raises(StoreUnwritable):
        await database.read(lambda reader: reader.all("insert into agents (name, created_at) values ('x', 1)"))
    await database.close()


async def test_whatever_a_transaction_raises_rolls_all_of_it_back(tmp_path: Path, driver: drivers.Driver) -> None:
    database = await _opened(tmp_path / "remora.db", driver)

    def violates(tx: Transaction) -> None:
        _add(tx, "x")
        _add(tx, "x")

    def stumbles(tx: Transaction) -> None:
        _add(tx, "y")
        raise LookupError("y")

    with pytest.raises(StorageError):
        await database.write(violates)
    with pytest.raises(LookupError):
        await database.write(stumbles)
    assert await _names(database) == []
    await database.close()


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
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnwritable, match="data_dir"):
        await _opened(tmp_path / "file" / "remora.db")


async def test_a_file_that_is_no_database_is_left_untouched(tmp_path: Path, driver: drivers.Driver) -> None:
    path = tmp_path / "remora.db"
    path.write_bytes(b"dear diary, " * 100)
    with pytest.raises(StorageError, match="damaged or not a Remora database"):
        await _opened(path, driver)
    assert path.read_bytes() == b"dear diary, " * 100


async def test_a_newer_database_is_refused_unchanged(tmp_path: Path) -> None:
    """An old program must not write into a schema it doesn't know."""
    path = tmp_path / "remora.db"
    future = Migration(version=9999, name="future", sql="create table future (x integer) strict;")
    await (await SqliteDatabase.open(path, now=1, known=[*migrations(), future])).close()
    with pytest.raises(SchemaTooNew, match="newer Remora"):
        await _opened(path)


async def test_a_failing_migration_leaves_the_schema_before_it(tmp_path: Path, driver: drivers.Driver) -> None:
    """A migration and its record are one transaction."""
    path = tmp_path / "remora.db"
    broken = [
        *migrations(),
        Migration(
            version=2000, name="broken", sql="create table half (x integer) strict;\ninsert into nowhere values (1);"
        ),
    ]
    with pytest.raises(StorageError):
        await SqliteDatabase.open(path, now=1, driver=driver, known=broken)
    database = await _opened(path, driver)
    tables = await database.read(lambda reader: reader.all("select 1 from sqlite_master where name = 'half'"))
    await database.close()
    assert tables == []


async def test_every_connection_compares_vectors_or_the_reason_is_told(tmp_path: Path, driver: drivers.Driver) -> None:
    """Nothing else is loaded into SQLite, whoever asks it to."""
    database = await _opened(tmp_path / "remora.db", driver)

    def compare(reader: Reader) -> float:
        row = reader.one("select vec_distance_hamming(vec_bit(x'0f'), vec_bit(x'ff')) as distance")
        assert row is not None
        return float(row["distance"])

    if database.without_vectors:
        assert not driver.loads_extensions and "sqlite-vec" in database.without_vectors
    else:
        assert await asyncio.gather(*(database.read(compare) for _ in range(4)), database.write(compare)) == [4.0] * 5
        with pytest.raises(StorageError, match="not authorized"):
            await database.read(lambda reader: reader.one("select load_extension('vec0')"))
    await database.close()


async def test_a_store_of_the_version_before_has_its_vectors_made_anew(tmp_path: Path, driver: drivers.Driver) -> None:
    """They can't be compared with the new ones; no byte of them is left."""
    path = tmp_path / "remora.db"
    database = await SqliteDatabase.open(
        path, now=1, driver=driver, known=[one for one in migrations() if one.version < 11]
    )
    trace = bytes(range(100, 200))

    def fill(tx: Transaction) -> None:
        _add(tx, "x")
        tx.run("insert into owners (id, kind, agent_id) values (1, 'agent', 1)")
        tx.run(
            "insert into memories (id, short_id, kind, owner_id, category, key, value, importance, confidence, origin,"
            " created_at, learned_at, local_date, valid_from, last_reinforced_at)"
            " values (7, 'm_1', 'fact', 1, 'work', 'job', 'baker', 5, 1, 'told', 1, 1, '2026-11-21', 1, 1)"
        )
        tx.run("insert into store_settings values ('vectors', 'letters 4')")
        tx.run("insert into embedded (number, doc, hash) values (1, 14, x'00')")
        tx.run("insert into vectors values (1, 1, 0, 14, ?)", (trace,))

    await database.write(fill)
    await database.close()
    assert trace in path.read_bytes()
    database = await _opened(path, driver)
    made = vectors.Vectors(model="letters", centre=np.zeros(4, dtype=np.float32))
    assert await database.write(made.prepare)
    assert await database.read(lambda reader: vectors.waiting(reader, limit=9)) == [14]
    await database.close()
    assert trace not in path.read_bytes()


async def test_the_log_is_checkpointed_and_the_lock_freed_at_close(tmp_path: Path, driver: drivers.Driver) -> None:
    """After a clean stop the one file is complete and may be copied."""
    path = tmp_path / "remora.db"
    database = await _opened(path, driver)
    await database.write(lambda tx: _add(tx, "x"))
    await database.close()
    assert not path.with_name("remora.db-wal").exists()
    await (await _opened(path, driver)).close()


async def test_a_python_whose_sqlite_loads_no_extensions_is_served(tmp_path: Path) -> None:
    """Many Python builds lack enable_load_extension; the store must open there with all that words need."""
    database = await _opened(tmp_path / "remora.db", drivers.built_in())

    await database.write(lambda tx: postings.put(tx, [Entry(doc=2, partitions=(1,), tokens=["found"])]))
    rows = await database.read(lambda reader: reader.all("select doc from postings where term = 'found'"))
    await database.close()
    assert [row["doc"] for row in rows] == [2]
    best = drivers.best()
    assert best.loads_extensions or drivers.bundled() is None


def _add(tx: Transaction, name: str) -> None:
    tx.run("insert into agents (name, created_at) values (?, 1)", (name,))


async def _names(database: Database) -> list[str]:
    rows = await database.read(lambda reader: reader.all("select name from agents order by id"))
    return [row["name"] for row in rows]


_WRITES_THEN_HANGS = """
import asyncio, sys, time
from pathlib import Path
from memory.store.sqlite.database import SqliteDatabase

def add(tx, name):
    tx.run("insert into agents (name, created_at) values (?, 1)", (name,))

def hang(tx):
    add(tx, "never committed")
    print("in transaction", flush=True)
    time.sleep(60)

async def main():
    database = await SqliteDatabase.open(Path(sys.argv[1]), now=1)
    for n in range(3):
        await database.write(lambda tx: add(tx, f"committed {n}"))
    await database.write(hang)

asyncio.run(main())
"""
