"""The store when its disk, its pages or its neighbours fail: nothing is lost, nothing is repaired in silence."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memory.errors import IndexDamaged, StoreBusy, StoreDamaged, StoreUnwritable
from memory.recall import index
from memory.store.database import Database, Reader, Transaction
from memory.store.sqlite import driver as drivers
from memory.store.sqlite import health
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.migrate import migrations
from tests.kit.faults import Faults
from tests.kit.patience import SECONDS, until

DRIVERS = [drivers.built_in(), *([bundled] if (bundled := drivers.bundled()) is not None else [])]
PAGE = 4096
MB = 1024 * 1024
#: Bytes of a page that hold its structure; see https://sqlite.org/fileformat2.html#b_tree_pages.
HEADER = (0, 3, 5)
#: A million million steps: a read that would not come to an end.
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n limit 1000000000000) select count(*) from n"


@pytest.fixture(params=DRIVERS, ids=[driver.name for driver in DRIVERS])
def driver(request: pytest.FixtureRequest) -> drivers.Driver:
    found: drivers.Driver = request.param
    return found


# Cancelled callers ----------------------------------------------------------------------------------------------


async def test_many_cancelled_writes_leave_nothing_open_and_nothing_half_done(
    tmp_path: Path, driver: drivers.Driver
) -> None:
    """A caller that times out in the middle must not lock everybody else out."""
    path = tmp_path / "remora.db"
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    moments = random.Random(7)
    for n in range(150):
        task = asyncio.create_task(database.write(lambda tx, n=n: _add(tx, f"{n} a", f"{n} b", f"{n} c")))  # type: ignore[misc]
        if moments.random() < 0.5:
            await asyncio.sleep(moments.random() / 1000)
        else:
            for _ in range(moments.randrange(4)):
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await database.write(lambda tx: _add(tx, "next"))
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as outside:
        outside.execute("begin immediate")
        outside.execute("rollback")
    names = await _names(database)
    await database.close()
    whole = {name.split()[0] for name in names if name != "next"}
    assert names[-1] == "next"
    assert len(names) == 3 * len(whole) + 1


async def test_an_open_cancelled_at_any_moment_leaves_nothing_behind(tmp_path: Path, driver: drivers.Driver) -> None:
    """No thread, no lock and no connection is left of a start that was given up."""
    path = tmp_path / "remora.db"
    threads = threading.active_count()
    for steps in range(0, 60, 3):
        opening = asyncio.create_task(SqliteDatabase.open(path, now=1, driver=driver))
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await (await opening).close()
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    await database.write(lambda tx: _add(tx, "x"))
    await database.close()
    # A connection's thread ends a moment after it has said so.
    await until(lambda: threading.active_count() <= threads)
    assert sorted(file.name for file in tmp_path.iterdir() if not file.name.endswith(".lock")) == ["remora.db"]


async def test_a_cancelled_close_still_closes(tmp_path: Path) -> None:
    """A stop that runs out of time must not leave the store locked for the next start."""
    path = tmp_path / "remora.db"
    database = await SqliteDatabase.open(path, now=1)
    closing_ = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    closing_.cancel()
    await asyncio.gather(closing_, return_exceptions=True)
    await until(lambda: not (path.with_name("remora.db.pid").exists()))
    await (await SqliteDatabase.open(path, now=1)).close()


# A disk that is full or fails -----------------------------------------------------------------------------------


async def test_on_a_full_disk_writes_are_refused_and_reads_go_on(tmp_path: Path, driver: drivers.Driver) -> None:
    """Nothing is corrupted, and writing goes on by itself when there is space again."""
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1, driver=driver)
    await database.write(lambda tx: _add(tx, "before"))
    await database.write(lambda tx: _limit(tx, 0))
    with pytest.raises(StoreUnwritable, match="full") as refused:
        await database.write(lambda tx: _add(tx, "x" * MB))
    assert str(database.path) in str(refused.value)
    assert await _names(database) == ["before"]
    with pytest.raises(StoreUnwritable):
        await database.write(lambda tx: _add(tx, "y" * MB))
    await database.write(lambda tx: _limit(tx, 1_000_000))
    await database.write(lambda tx: _add(tx, "after"))
    assert await _names(database) == ["before", "after"]
    assert await database.check() is None
    await database.close()


async def test_a_volume_that_runs_full_loses_nothing_it_had_taken(tmp_path: Path, driver: drivers.Driver) -> None:
    """The same with a real file system, where the log itself finds no room; where none can be mounted, with a limit."""
    with _volume(tmp_path / "volume", megabytes=2) as mounted:
        path = tmp_path / "volume" / "remora.db"
        database = await SqliteDatabase.open(path, now=1, driver=driver)
        if not mounted:
            await database.write(lambda tx: _limit(tx, 300))
        taken = []
        ballast = tmp_path / "volume" / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        for n in range(400):
            try:
                await database.write(lambda tx, n=n: _add(tx, f"{n} {'x' * 20_000}"))  # type: ignore[misc]
                taken.append(str(n))
            except StoreUnwritable as exc:
                assert "full" in str(exc)  # noqa: PT017 - both ends of the try are expected, in this order
                break
        assert 0 < len(taken) < 400
        assert [name.split()[0] for name in await _names(database)] == taken
        ballast.unlink()
        if not mounted:
            await database.write(lambda tx: _limit(tx, 1_000_000))
        await database.write(lambda tx: _add(tx, "after"))
        assert await database.check() is None
        await database.close()
        database = await SqliteDatabase.open(path, now=1, driver=driver)
        assert [name.split()[0] for name in await _names(database)] == [*taken, "after"]
        await database.close()


async def test_a_failing_statement_anywhere_is_told_and_forgotten(tmp_path: Path, driver: drivers.Driver) -> None:
    """Whichever statement the disk fails at, all of its transaction is undone and the next one works."""
    for nth in range(1, 12):
        faults = Faults(base=driver, fail_at_statement=nth, holding="into agents")
        database = await SqliteDatabase.open(tmp_path / f"{nth}.db", now=1, driver=faults.driver)
        kept = []
        for n in range(4):
            try:
                await database.write(lambda tx, n=n: _add(tx, f"{n} a", f"{n} b", f"{n} c"))  # type: ignore[misc]
                kept.append(n)
            except StoreUnwritable as exc:
                assert "disk I/O error" in str(exc)  # noqa: PT017 - only one of the four fails
        assert len(kept) >= 3
        assert await _names(database) == [f"{n} {letter}" for n in kept for letter in "abc"]
        await database.close()


async def test_wrong_parameters_are_a_fault_of_the_program_and_no_failure_of_the_store(
    tmp_path: Path, driver: drivers.Driver
) -> None:
    """A retry would go on for ever, so none is made; nothing of the transaction stays."""
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1, driver=driver)

    def wrong(tx: Transaction) -> None:
        _add(tx, "before")
        tx.run("insert into agents (name, created_at) values (?, 1)", ("a", "b"))

    with pytest.raises(driver.module.ProgrammingError):
        await database.write(wrong)
    with pytest.raises(driver.module.ProgrammingError):
        await database.read(lambda reader: reader.all("select ?", (1, 2)))
    assert await _names(database) == []
    await database.close()


async def test_a_transaction_that_can_not_even_be_rolled_back_locks_nobody_out(
    tmp_path: Path, driver: drivers.Driver
) -> None:
    """When the disk is back, the writer ends what it left and goes on."""
    faults = Faults(base=driver)
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1, driver=faults.driver)

    def fails(tx: Transaction) -> None:
        _add(tx, "half")
        faults.break_down()
        _add(tx, "more")

    with pytest.raises(StoreUnwritable):
        await database.write(fails)
    with pytest.raises(StoreUnwritable):
        await database.write(lambda tx: _add(tx, "still broken"))
    faults.mend()
    await database.write(lambda tx: _add(tx, "whole"))
    assert await _names(database) == ["whole"]
    await database.close()


@pytest.mark.parametrize("single", ["", "single"])
@pytest.mark.parametrize(("moment", "rows"), [("before", 2), ("after", 3)])
def test_a_kill_on_either_side_of_a_commit_decides_what_is_kept(
    tmp_path: Path, moment: str, rows: int, single: str
) -> None:
    """The faults that crash tests are made of strike where they say, also at a change that is committed by itself."""
    child = subprocess.run(
        [sys.executable, "-c", _DIES_AT_A_COMMIT, str(tmp_path / "remora.db"), moment, single],
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert child.returncode == -9
    with closing(sqlite3.connect(tmp_path / "remora.db")) as connection:
        assert connection.execute("select count(*) from agents").fetchone() == (rows,)


# Damaged pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", HEADER)
@pytest.mark.parametrize("table", ["agents", "messages_session", "sqlite_autoindex_agents_1"])
async def test_damage_to_what_people_said_is_found_at_the_start(
    tmp_path: Path, driver: drivers.Driver, table: str, offset: int
) -> None:
    """The store then only reads, says so loudly, and is not touched: what is done next is for a human to decide."""
    path = await _filled(tmp_path)
    _flip(path, [_pages(path, table)[-1]], [offset])
    before = path.read_bytes()
    with capture_logs() as told:
        database = await SqliteDatabase.open(path, now=1, driver=driver)
    assert database.damage is not None and str(path) in database.damage and "backup" in database.damage
    assert [line["log_level"] for line in told if line["event"] == "store.damaged"] == ["error"]
    with pytest.raises(StoreDamaged, match="Nothing was changed"):
        await database.write(lambda tx: tx.run("insert into store_settings values ('x', 'y')"))
    assert await database.read(lambda reader: len(reader.all("select 1 from identities"))) == 1
    await database.close()
    assert path.read_bytes() == before


async def test_a_large_store_is_checked_while_it_is_in_use(tmp_path: Path) -> None:
    """A start must not wait for gigabytes to be read, and the damage is found all the same."""
    path = await _filled(tmp_path)
    _flip(path, [_pages(path, "agents")[-1]], HEADER)
    database = await SqliteDatabase.open(path, now=1, checked_at_start=0)
    found = await database.check()
    await database.close()
    assert found is not None and "agents" in found


async def test_a_check_under_way_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A store may be closed right after it was opened."""
    path = await _filled(tmp_path)
    database = await SqliteDatabase.open(path, now=1, checked_at_start=0)
    await database.close()
    assert database.damage is None


async def test_damage_met_later_stops_all_writing(tmp_path: Path, driver: drivers.Driver) -> None:
    """From the read that meets it on nothing is written, and what is whole is still read."""
    path = await _filled(tmp_path)
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    _flip(path, _pages(path, "agents"), HEADER)
    with pytest.raises(StoreDamaged, match="agents"):
        await _names(database)
    assert database.damage is not None
    with pytest.raises(StoreDamaged):
        await database.write(lambda tx: tx.run("insert into store_settings values ('x', 'y')"))
    assert await database.read(lambda reader: len(reader.all("select 1 from identities"))) == 1
    await database.close()


async def test_a_text_that_is_no_text_any_more_is_damage_and_is_not_quoted(
    tmp_path: Path, driver: drivers.Driver
) -> None:
    """The pages are whole, so SQLite sees nothing; the driver's error would put somebody's words into the log."""
    path = await _filled(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"agent 17 ", b"agent \xff7 "))
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    assert database.damage is None
    with pytest.raises(StoreDamaged) as met:
        await _names(database)
    await database.close()
    assert "agent" not in str(met.value).replace(str(path), "")


async def test_a_damaged_list_of_free_pages_is_no_damage_to_an_index(tmp_path: Path) -> None:
    """A page that is in use would be given away as free, and overwritten."""
    path = await _filled(tmp_path)
    with closing(drivers.best().module.connect(str(path))) as connection:
        connection.execute("create table passing as select * from agents")
        connection.commit()
        connection.execute("drop table passing")
        connection.commit()
        connection.execute("pragma wal_checkpoint(truncate)")
    content = bytearray(path.read_bytes())
    trunk = int.from_bytes(content[32:36], "big")
    content[(trunk - 1) * PAGE + 8 : (trunk - 1) * PAGE + 12] = (2).to_bytes(4, "big")
    path.write_bytes(content)
    database = await SqliteDatabase.open(path, now=1)
    await database.close()
    assert database.damage is not None and "free pages" in database.damage


@pytest.mark.parametrize(
    "table", ["vectors", "vectors_doc", "vector_signs", "vector_signs_doc", "token_bits", "embedded"]
)
async def test_damage_to_an_index_is_not_taken_for_damage_to_what_people_said(
    tmp_path: Path, driver: drivers.Driver, table: str
) -> None:
    """It is told apart by looking at each table, made anew empty, and everything is queued to be embedded again."""
    path = await _filled(tmp_path)
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    mending = index.Mending(database)
    _flip(path, _pages(path, table), HEADER)
    with pytest.raises(IndexDamaged):
        await database.read(_all_meanings)
    assert database.damage is None
    await mending.done()
    assert await database.damaged(health.DERIVED) == []
    assert await database.read(_checked) == ["ok"]
    queued = await database.read(
        lambda reader: [row["doc"] for row in reader.all("select doc from unembedded order by doc")]
    )
    assert queued == [2 * n + 1 for n in range(1, 201)]
    await mending.close()
    await database.close()


async def test_an_older_store_whose_vectors_are_damaged_opens_with_new_ones(
    tmp_path: Path, driver: drivers.Driver
) -> None:
    """The migration that makes their table anew must not walk its pages; no start fails for an index."""
    path = tmp_path / "remora.db"
    database = await SqliteDatabase.open(
        path, now=1, driver=driver, known=[one for one in migrations() if one.version < 11]
    )

    def fill(tx: Transaction) -> None:
        for n in range(200):
            tx.run("insert into embedded (number, doc, hash) values (?, ?, zeroblob(32))", (n + 1, 2 * n))
            tx.run("insert into vectors values (1, ?, 0, ?, zeroblob(772))", (n + 1, 2 * n))

    await database.write(fill)
    await database.close()
    _flip(path, _pages(path, "vectors"), HEADER)
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    assert database.damage is None
    assert await database.read(_checked) == ["ok"]
    assert (
        await database.read(lambda reader: reader.all("select doc from vectors union select doc from embedded")) == []
    )
    await database.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table", ["postings", "indexed_documents", "changes"])
async def test_an_index_with_flipped_bytes_is_made_anew_from_the_rows(tmp_path: Path, table: str, seed: int) -> None:
    """Whatever of it breaks, at a start or later, what people said is untouched and found again."""
    path = await _filled(tmp_path)
    chance = random.Random(seed)
    flips = [0, *(chance.randrange(PAGE) for _ in range(20))]
    if seed % 2:
        _flip(path, _pages(path, table), flips)
        database = await SqliteDatabase.open(path, now=1)
        mending = index.Mending(database)
        await mending.begin()
    else:
        database = await SqliteDatabase.open(path, now=1)
        mending = index.Mending(database)
        _flip(path, _pages(path, table), flips)
        mending.suspect()
    await mending.done()
    found = await database.read(lambda reader: reader.all("select doc from postings where term = 'sea' order by doc"))
    said = await database.read(lambda reader: reader.all("select text from messages order by id"))
    assert await database.read(_checked) == ["ok"]
    assert database.damage is None
    await mending.close()
    await database.close()
    assert [row["doc"] for row in found] == [2 * n + 1 for n in range(1, 201)]
    assert [row["text"] for row in said] == [_message(n) for n in range(200)]


async def test_mending_an_index_never_touches_a_store_that_is_damaged_itself(tmp_path: Path) -> None:
    """An index error in a store with real damage must not hide it, nor write to it."""
    path = await _filled(tmp_path)
    database = await SqliteDatabase.open(path, now=1)
    mending = index.Mending(database)
    _flip(path, _pages(path, "postings") + _pages(path, "agents"), HEADER)
    with pytest.raises(StoreDamaged, match="agents"):
        await _names(database)
    before = path.read_bytes()
    mending.suspect()
    await mending.done()
    await mending.close()
    await database.close()
    assert path.read_bytes() == before


# Readers, the log, other programs -------------------------------------------------------------------------------


async def test_the_log_stays_short_beside_a_read_that_does_not_end(tmp_path: Path, driver: drivers.Driver) -> None:
    """The read is ended after its time, it is told that it held the log, and the log is emptied."""
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1, driver=driver, read_seconds=1.0)
    holds, goes_on = threading.Event(), threading.Event()

    def endless(reader: Reader) -> None:
        reader.all("select 1 from agents")
        holds.set()
        goes_on.wait(SECONDS)
        reader.all(ENDLESS)

    reading = asyncio.create_task(database.read(endless))
    await asyncio.to_thread(holds.wait, SECONDS)
    longest = 0
    with capture_logs() as told:
        while database.wal_bytes < 10 * MB:
            await database.write(lambda tx: _set(tx, "x" * 200_000))
        assert database.oldest_read_seconds > 0
        goes_on.set()
        with pytest.raises(StoreBusy, match="too long"):
            await reading
        for _ in range(100):
            await database.write(lambda tx: _set(tx, "y" * 200_000))
            longest = max(longest, database.wal_bytes)
    assert [line["by"].split(",")[0] for line in told if line["event"] == "store.log_held"] == ["a read of ours"]
    assert longest <= 16 * MB
    assert database.wal_bytes <= 8 * MB + 200_000
    await database.close()


async def test_the_log_stays_short_beside_many_readers(tmp_path: Path) -> None:
    """Readers that come and go all the time never keep it from being emptied."""
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1)
    longest = 0
    over = False

    async def read_on() -> None:
        while not over:
            await database.read(lambda reader: reader.all("select value from store_settings"))

    readers = [asyncio.create_task(read_on()) for _ in range(4)]
    for _ in range(300):
        await database.write(lambda tx: _set(tx, "x" * 200_000))
        longest = max(longest, database.wal_bytes)
    over = True
    await asyncio.gather(*readers)
    await database.close()
    assert longest <= 16 * MB


async def test_a_slow_read_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """Others take the reader that is free, not the next in turn."""
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1)
    inside = threading.Event()
    go_on = threading.Event()

    def waits(reader: Reader) -> None:
        inside.set()
        go_on.wait(30)

    slow = asyncio.create_task(database.read(waits))
    await asyncio.to_thread(inside.wait, 10)
    for _ in range(6):
        assert await asyncio.wait_for(_names(database), SECONDS) == []
    go_on.set()
    await slow
    await database.close()


async def test_another_program_that_reads_stops_no_writer(tmp_path: Path, driver: drivers.Driver) -> None:
    """An sqlite3 shell left open, or a backup, only keeps the log from being emptied; that is told once."""
    path = tmp_path / "remora.db"
    database = await SqliteDatabase.open(path, now=1, driver=driver)
    await database.write(lambda tx: _add(tx, "x"))
    with closing(driver.module.connect(str(path), isolation_level=None)) as outside:
        outside.execute("begin")
        outside.execute("select * from agents").fetchall()
        with capture_logs() as told:
            while database.wal_bytes < 12 * MB:
                await database.write(lambda tx: _set(tx, "x" * 200_000))
        outside.execute("rollback")
    assert [line["by"].split()[0] for line in told if line["event"] == "store.log_held"] == ["another"]
    for _ in range(20):
        await database.write(lambda tx: _set(tx, "y" * 200_000))
    assert database.wal_bytes <= 8 * MB + 200_000
    await database.close()


async def test_another_program_that_writes_is_waited_for(tmp_path: Path, driver: drivers.Driver) -> None:
    """A short lock from outside shows as nothing but a moment's delay."""
    path, faults = tmp_path / "remora.db", Faults(base=driver, holding="begin immediate")
    database = await SqliteDatabase.open(path, now=1, driver=faults.driver)
    with closing(driver.module.connect(str(path), isolation_level=None)) as outside:
        outside.execute("begin immediate")
        before = faults.statements
        writing = asyncio.create_task(database.write(lambda tx: _add(tx, "waited")))
        await until(lambda: faults.statements > before)
        assert not writing.done()
        outside.execute("commit")
        await writing
    assert await _names(database) == ["waited"]
    await database.close()


async def test_a_lock_that_does_not_go_away_is_told_in_plain_words(tmp_path: Path) -> None:
    """Nobody should have to know what "database is locked" means."""
    faults = Faults()
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1, driver=faults.driver)
    faults.break_down("database is locked", on="begin immediate")
    with pytest.raises(StoreBusy, match="Another program"):
        await database.write(lambda tx: _add(tx, "x"))
    faults.mend()
    await database.write(lambda tx: _add(tx, "x"))
    await database.close()


# Parts ----------------------------------------------------------------------------------------------------------


def _add(tx: Transaction, *names: str) -> None:
    for name in names:
        tx.run("insert into agents (name, created_at) values (?, 1)", (name,))


def _set(tx: Transaction, value: str) -> None:
    tx.run("insert or replace into store_settings values ('test', ?)", (value,))


def _limit(tx: Transaction, pages: int) -> None:
    """Let the file grow to so many pages and no further; to what it has at least."""
    tx.all(f"pragma max_page_count = {max(pages, 1)}")


async def _names(database: Database) -> list[str]:
    rows = await database.read(lambda reader: reader.all("select name from agents order by id"))
    return [row["name"] for row in rows]


def _all_meanings(reader: Reader) -> None:
    """Read every page of vectors and token bits."""
    reader.all("select * from vectors")
    reader.all("select doc from vectors where doc > 0 order by doc")
    reader.all("select * from vector_signs")
    reader.all("select doc from vector_signs where doc > 0 order by doc")
    reader.all("select * from token_bits")
    reader.all("select * from embedded")


def _checked(reader: Reader) -> list[str]:
    return [row[0] for row in reader.all("pragma quick_check")]


def _message(n: int) -> str:
    return f"message {n} about a lighthouse and the sea around it, which was rough that day"


async def _filled(folder: Path) -> Path:
    """A closed store with 200 messages in all indexes, some pages to each table."""
    path = folder / "remora.db"
    database = await SqliteDatabase.open(path, now=1)
    mending = index.Mending(database)
    await mending.begin()

    def fill(tx: Transaction) -> None:
        for n in range(200):
            _add(tx, f"agent {n} {'x' * 60}")
        tx.run("insert into people (id, created_at) values (1, 1)")
        tx.run(
            "insert into identities (id, person_id, platform, user_id, first_seen_at, last_seen_at)"
            " values (1, 1, 'console', 'ada', 1, 1)"
        )
        tx.run("insert into chats (id, platform, kind, created_at) values (1, 'console', 'private', 1)")
        tx.run("insert into owners (id, kind, identity_id) values (1, 'identity', 1)")
        tx.run("insert into sessions (id, key, chat_id, agent_id, created_at) values (1, 'console:ada:-', 1, 1, 1)")
        for n in range(1, 201):
            tx.run(
                "insert into messages (id, session_id, role, author_id, text, tokens, learn, sitting, said_at,"
                " recorded_at, owner_id, nth) values (?, 1, 'user', 1, ?, 9, 0, 1, 1, 1, 1, ?)",
                (n, _message(n - 1), n),
            )
            tx.run("insert into changes (doc) values (?)", (2 * n + 1,))

    def embed(tx: Transaction) -> None:
        tx.run("delete from unembedded")
        for n in range(1, 201):
            tx.run("insert into embedded (doc, hash) values (?, zeroblob(32))", (2 * n + 1,))
            tx.run("insert into vectors values (1, ?, 0, zeroblob(384))", (2 * n + 1,))
            tx.run("insert into vector_signs values (1, ?, 0, zeroblob(48))", (2 * n + 1,))
            tx.run("insert into token_bits values (?, 1, null, zeroblob(480))", (2 * n + 1,))

    await database.write(fill)
    await index.catch_up(database)
    await database.write(embed)
    # A change that is not indexed yet, so that the log has something to lose.
    await database.write(lambda tx: tx.run("insert into changes (doc) values (3)"))
    await mending.close()
    await database.close()
    return path


def _pages(path: Path, name: str) -> list[int]:
    """The pages of a table or an index, without those that hold nothing but the rest of a long row."""
    with closing(drivers.best().module.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "select pageno from dbstat where name = ? and pagetype <> 'overflow' order by pageno", (name,)
        ).fetchall()
    assert rows
    return [row[0] for row in rows]


def _flip(path: Path, pages: Sequence[int], offsets: Sequence[int]) -> None:
    with path.open("r+b") as file:
        for page in pages:
            for offset in offsets:
                place = (page - 1) * PAGE + offset
                file.seek(place)
                (was,) = file.read(1)
                file.seek(place)
                file.write(bytes([was ^ 0x5A]))


@contextmanager
def _volume(folder: Path, *, megabytes: int) -> Iterator[bool]:
    """A small file system at `folder`; False where this user may mount none and it is an ordinary folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


_DIES_AT_A_COMMIT = """
import asyncio, sys
from pathlib import Path
from memory.store.sqlite.database import SqliteDatabase
from tests.kit.faults import Faults

async def main():
    faults = Faults(**{f"kill_{sys.argv[2]}_commit": 3}, holding="into agents")
    database = await SqliteDatabase.open(Path(sys.argv[1]), now=1, driver=faults.driver)
    insert = "insert into agents (name, created_at) values (?, 1) returning id"
    for n in range(5):
        await database.write(lambda tx: tx.all(insert, (str(n),)), single=bool(sys.argv[3]))

asyncio.run(main())
"""
