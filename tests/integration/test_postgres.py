"""The engine of PostgreSQL against a server of the tests' own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from memory.errors import SchemaTooNew, StorageError, StoreBusy, StoreInUse, StoreUnwritable
from memory.store.database import Reader, Transaction
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.migrate import Migration, migrations
from tests.kit import postgres
from tests.kit.fakes import Clock
from tests.kit.forgetting import traces
from tests.kit.patience import SECONDS, settle, until
from tests.kit.stores import opened

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    import psycopg

    from memory.store.postgres.database import PostgresDatabase, look


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresDatabase]:
    path = tmp_path / "remora.db"
    opened = await PostgresDatabase.open(postgres.url(path), path, now=1, read_seconds=SECONDS)
    yield opened
    await opened.close()


@pytest.fixture
async def impatient(tmp_path: Path) -> AsyncIterator[PostgresDatabase]:
    """A store whose reads are given up after a second."""
    path = tmp_path / "remora.db"
    opened = await PostgresDatabase.open(postgres.url(path), path, now=1, read_seconds=1)
    yield opened
    await opened.close()


class Cutter:
    """Stands between a client and the server, and cuts one connection at its next COMMIT: `armed` says when."""

    def __init__(self) -> None:
        self.armed: Literal["before", "after"] | None = None
        self.cuts = 0

    @asynccontextmanager
    async def between(self, url: str) -> AsyncIterator[str]:
        """Yields the address by which clients reach the server's database `url` through this."""
        folder = url.partition("host=")[2].partition(" ")[0]

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server_reader, server_writer = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
            answering = asyncio.create_task(self._pass_on(server_reader, writer))
            while data := await reader.read(65_536):
                when = self.armed if b"commit\x00" in data.lower() else None
                if when is not None:
                    self.armed = None
                    self.cuts += 1
                    answering.cancel()
                    await asyncio.wait([answering])
                    if when == "after":
                        server_writer.write(data)
                        assert b"COMMIT" in await server_reader.read(65_536)
                    break
                server_writer.write(data)
            answering.cancel()
            server_writer.close()
            writer.close()

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            yield url.replace(f"host={folder}", f"host=127.0.0.1 port={port} sslmode=disable gssencmode=disable")

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()


def enter(tx: Transaction) -> int:
    return tx.insert("insert into people (created_at) values (?)", (7,))


def count(reader: Reader) -> int:
    return reader.number("select count(*) from people")


async def test_what_is_written_is_read_by_name_and_by_place(store: PostgresDatabase) -> None:
    person = await store.write(enter)
    row = await store.read(lambda reader: reader.one("select id, created_at as at from people where id = ?", (person,)))
    assert row is not None
    assert (dict(row), tuple(row), row["at"], row[1], len(row)) == ({"id": person, "at": 7}, (person, 7), 7, 7, 2)


async def test_what_fails_leaves_nothing(store: PostgresDatabase) -> None:
    def failing(tx: Transaction) -> None:
        enter(tx)
        raise KeyError

    with pytest.raises(KeyError):
        await store.write(failing)
    assert await store.read(count) == 0


async def test_an_attempt_is_taken_back_alone(store: PostgresDatabase) -> None:
    def act(tx: Transaction) -> None:
        enter(tx)
        tx.attempt(lambda: enter(tx), keep=lambda _: False)

    await store.write(act)
    assert await store.read(count) == 1


async def test_readers_cannot_write(store: PostgresDatabase) -> None:
    with pytest.raises(Exception, match="read-only"):
        await store.read(lambda reader: reader.all("delete from people"))


async def test_whoever_wants_the_store_alone_is_refused_while_others_use_it(store: PostgresDatabase) -> None:
    with pytest.raises(StoreInUse, match="Stop all that use it first"):
        await PostgresDatabase.open(postgres.url(store.path), store.path, now=1, alone=True)


async def test_nobody_comes_in_while_one_has_the_store_alone(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    alone = await PostgresDatabase.open(postgres.url(path), path, now=1, alone=True)
    with pytest.raises(StoreInUse, match="Start again once it has ended"):
        await PostgresDatabase.open(postgres.url(path), path, now=1)
    await alone.close()


async def test_a_single_read_asks_one_statement(store: PostgresDatabase) -> None:
    """A second one would see another state."""
    assert await store.read(count, single=True) == 0
    with pytest.raises(AssertionError, match="a second statement"):
        await store.read(lambda reader: (count(reader), count(reader)), single=True)


async def test_only_what_need_not_last_is_committed_without_waiting_for_the_disk(store: PostgresDatabase) -> None:
    def waits(tx: Transaction) -> str:
        row = tx.one("select current_setting('synchronous_commit') as waits")
        assert row is not None
        return str(row["waits"])

    assert await store.write(waits, durable=False) == "off"
    assert await store.write(waits) == "on"


async def test_readers_keep_their_plans(store: PostgresDatabase) -> None:
    """The driver forgets them at a rollback, after which each search would be planned anew."""

    def plans(reader: Reader) -> int:
        return reader.number("select count(*) from pg_prepared_statements")

    async def asked() -> None:
        # Both readers come up for it.
        await asyncio.gather(*(store.read(count) for _ in range(20)))

    await asked()
    with pytest.raises(ZeroDivisionError):
        await store.read(lambda reader: 1 // count(reader))
    assert await store.read(plans) > 0


async def test_a_read_that_takes_too_long_is_ended(impatient: PostgresDatabase) -> None:
    with pytest.raises(StoreBusy, match="too long"):
        await impatient.read(lambda reader: reader.all("select pg_sleep(3600)"))


async def test_a_lost_connection_is_made_again_and_nothing_happens_twice(store: PostgresDatabase) -> None:
    await store.write(enter)
    tries = 0

    def act(tx: Transaction) -> None:
        nonlocal tries
        tries += 1
        enter(tx)
        if tries == 1:
            tx.all("select pg_terminate_backend(pg_backend_pid())")

    await store.write(act)
    assert (tries, await store.read(count)) == (2, 2)


@pytest.mark.parametrize(("when", "tried"), [("before", 2), ("after", 1)])
async def test_a_commit_whose_answer_is_lost_is_repeated_only_if_it_was_none(
    tmp_path: Path, when: Literal["before", "after"], tried: int
) -> None:
    path, cutter, tries = tmp_path / "remora.db", Cutter(), list[int]()

    def act(tx: Transaction) -> int:
        tries.append(enter(tx))
        cutter.armed = when if len(tries) == 1 else None
        return tries[-1]

    async with cutter.between(postgres.url(path)) as url:
        store = await PostgresDatabase.open(url, path, now=1, alone=True)
        person = await store.write(act)
        assert (cutter.cuts, len(tries)) == (1, tried)
        assert await store.read(lambda reader: reader.ids("select id from people")) == [person]
        await store.write(enter)  # the connection that was made again serves on
        assert await store.read(count) == 2
        await store.close()


async def test_a_commit_in_doubt_is_known_though_others_of_the_process_came_after_it(tmp_path: Path) -> None:
    """They wait in line for the same connection, and some go before the question."""
    path, cutter, tries = tmp_path / "remora.db", Cutter(), list[int]()

    def act(tx: Transaction) -> None:
        tries.append(enter(tx))
        cutter.armed = "after" if len(tries) == 1 else None

    async with cutter.between(postgres.url(path)) as url:
        store = await PostgresDatabase.open(url, path, now=1, alone=True)
        await asyncio.gather(store.write(act), *(store.write(enter) for _ in range(20)))
        assert (cutter.cuts, len(tries), await store.read(count)) == (1, 1, 21)
        await store.close()


async def test_commits_of_long_ago_and_of_processes_that_are_gone_are_not_kept(store: PostgresDatabase) -> None:
    await store.write(enter)
    with psycopg.connect(postgres.url(store.path)) as connection:
        connection.execute(b"set search_path = remora")
        for nth in (1, 9_999, 20_000):
            connection.execute(b"select note_commit('gone', %s)", (nth,))
        rows = connection.execute(b"select number from commits where writer = 'gone' order by number").fetchall()
    assert rows == [(20_000,)]
    other = await PostgresDatabase.open(postgres.url(store.path), store.path, now=1)
    writers = {row[0] for row in await other.read(lambda reader: reader.all("select writer from commits"))}
    await other.close()
    assert writers == {store.share.id, other.share.id}


async def test_a_connection_that_is_refused_is_told_with_its_reason(tmp_path: Path) -> None:
    url = postgres.url(tmp_path / "remora.db")
    narrow = url.replace(f"user={postgres.ROLE}", "user=narrow")
    with psycopg.connect(postgres.superuser(url), autocommit=True) as connection:
        connection.execute(b"create role narrow login connection limit 1")
        with psycopg.connect(narrow), pytest.raises(StoreUnwritable, match="Raise max_connections"):
            await look(narrow, tmp_path / "remora.db", count)


async def test_run_twice_a_function_writes_once_and_what_it_does_outside_shows(store: PostgresDatabase) -> None:
    store.twice = True
    outside: list[int] = []
    await store.write(lambda tx: outside.append(enter(tx)))
    assert (len(outside), await store.read(count)) == (2, 1)


async def test_a_connection_is_closed_though_its_caller_goes_away_twice(store: PostgresDatabase) -> None:
    connected = (
        "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'remora'"
    )
    before = await store.read(lambda reader: reader.number(connected))
    with psycopg.connect(postgres.url(store.path), autocommit=True) as beside:
        beside.execute("select pg_advisory_lock(7)")
        looking = asyncio.create_task(store.examine(lambda reader: reader.all("select pg_advisory_lock(7)")))
        await postgres.tried(store.path, "select pg_advisory_lock")
        for _ in range(2):
            looking.cancel()
            await settle()
    with pytest.raises(asyncio.CancelledError):
        await looking

    async def as_before() -> bool:
        return await store.read(lambda reader: reader.number(connected)) == before

    await until(as_before)


async def test_a_server_that_is_away_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match="can't be reached"):
        await PostgresDatabase.open(f"host={tmp_path} dbname=none", tmp_path / "remora.db", now=1)


async def test_whoever_only_looks_needs_no_lock(store: PostgresDatabase) -> None:
    await store.write(enter)
    assert await look(postgres.url(store.path), store.path, count) == 1
    assert await look(postgres.url(store.path), store.path.with_name("other.db"), count) is None


async def test_texts_keep_what_postgresql_can_hold(store: PostgresDatabase) -> None:
    text = "Zoë 😀 line\nbreak \\ % ' nul:\x00"
    await store.write(lambda tx: tx.run("insert into store_settings values (?, ?)", ("x", text)))
    kept = await store.read(lambda reader: reader.one("select value from store_settings where name = 'x'"))
    assert kept is not None
    assert kept["value"] == text.replace("\x00", "\ufffd")


async def test_whoever_has_looked_ahead_sees_whether_anything_was_written_since(store: PostgresDatabase) -> None:
    for _ in range(3):
        before = await store.state()
        await store.write(enter)
        assert await store.write(lambda tx: tx.state) != before
    # The process itself reports that it lives, from time to time.
    unchanged = [await store.state() == await store.write(lambda tx: tx.state) for _ in range(5)]
    assert any(unchanged)


async def test_writers_come_one_after_the_other(store: PostgresDatabase) -> None:
    ids = await asyncio.gather(*(store.write(enter) for _ in range(20)))
    assert ids == sorted(ids)


async def test_erased_words_leave_the_tables(store: PostgresDatabase) -> None:
    await store.write(lambda tx: tx.run("insert into store_settings values ('x', 'quaxolia')"))
    assert traces(store.path, ["quaxolia"])
    await store.write(lambda tx: tx.run("delete from store_settings where name = 'x'"))
    assert await store.scrub()
    assert traces(store.path, ["quaxolia"]) == {}


async def test_the_planner_keeps_no_samples_of_words(store: PostgresDatabase) -> None:
    """They would be in the server's catalogue, where no erasing reaches them."""

    def receive(tx: Transaction) -> None:
        for n in range(100):
            tx.run(
                "insert into inbox (platform, bot_id, update_key, session_key, payload, state, received_at, held)"
                " values ('telegram', 'b', ?, 'telegram:1:-', ?, 'done', 1, 0)",
                (str(n), f"quaxolia {n % 3}"),
            )
            tx.run("insert into postings (partition, term, doc) values (1, 'quaxolia', ?)", (n,))

    await store.write(receive)
    await store.write(lambda tx: tx.run("analyze inbox"))
    await store.write(lambda tx: tx.run("analyze postings"))
    sampled = await store.read(
        lambda reader: {
            row["attname"]: str(row["most_common_vals"])
            for row in reader.all("select attname, most_common_vals::text from pg_stats where schemaname = 'remora'")
        }
    )
    assert "telegram" in sampled["platform"]
    assert not any("quaxolia" in values for values in sampled.values())


async def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    opened = await PostgresDatabase.open(postgres.url(path), path, now=1)
    await opened.write(lambda tx: tx.run("insert into migrations select max(version) + 1, 'later', 1 from migrations"))
    await opened.close()
    with pytest.raises(SchemaTooNew, match="newer Remora"):
        await PostgresDatabase.open(postgres.url(path), path, now=1)
    with pytest.raises(SchemaTooNew, match="newer Remora"):
        await look(postgres.url(path), path, count)


def later(first_line: str) -> list[Migration]:
    """Returns the migrations of a later version, whose last one begins so."""
    known = migrations()
    sql = f"-- {first_line}: a column.\nalter table store_settings add column more text;\n"
    return [*known, Migration(version=known[-1].version + 1, name="later", sql=sql)]


async def test_an_update_that_only_adds_runs_beside_the_version_before(store: PostgresDatabase) -> None:
    url = postgres.url(store.path)
    after = await PostgresDatabase.open(url, store.path, now=2, known=later("Expands"))
    await after.write(lambda tx: tx.run("insert into store_settings values ('x', 'y', 'z')"))
    # The version before goes on, and can be started again.
    await store.write(enter)
    again = await PostgresDatabase.open(url, store.path, now=3)
    assert await again.read(count) == 1
    assert await look(url, store.path, count) == 1
    for database in (again, after):
        await database.close()


async def test_an_update_that_takes_something_away_waits_until_nobody_uses_the_store(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    url, known = postgres.url(path), later("Replaces")
    before = await PostgresDatabase.open(url, path, now=1)
    with pytest.raises(StoreInUse, match="Stop all processes that use the store, then start this one"):
        await PostgresDatabase.open(url, path, now=2, known=known)
    await before.close()
    await (await PostgresDatabase.open(url, path, now=2, known=known)).close()
    with pytest.raises(SchemaTooNew, match="newer Remora"):
        await PostgresDatabase.open(url, path, now=3)


async def test_a_store_from_before_there_were_several_processes_is_updated(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    url = postgres.url(path)
    await (await PostgresDatabase.open(url, path, now=1)).close()
    with psycopg.connect(url) as connection:
        connection.execute(b"set search_path = remora")
        for table in ("lanes", "duties", "replicas", "commits", "refusals", "judgements"):
            connection.execute(f"drop table {table}".encode())
        connection.execute(b"drop index extractions_parked")
        connection.execute(b"drop index messages_replies")
        connection.execute(b"alter table sessions drop column muted_at")
        connection.execute(b"alter table web_sessions drop column before_at")
        connection.execute(b"alter table turns drop column portions")
        connection.execute(b"alter table recalls drop column tokens")
        connection.execute(b"alter table memory_sources drop column unsure")
        connection.execute(b"delete from migrations where version >= 30")
    after = await PostgresDatabase.open(url, path, now=2)
    assert await after.share.hold("p:1:-") == "taken"
    await after.close()


def test_every_migration_says_whether_processes_of_the_version_before_can_go_on() -> None:
    said = ("-- Expands:", "-- Replaces:")
    assert [one.name for one in migrations() if one.version > 30 and not one.sql.startswith(said)] == []


async def test_tables_of_other_programs_in_the_database_are_not_taken_for_a_store(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    with psycopg.connect(postgres.url(path), autocommit=True) as connection:
        connection.execute("create table public.migrations (batch text)")
    assert await look(postgres.url(path), path, count) is None
    opened = await PostgresDatabase.open(postgres.url(path), path, now=1)
    try:
        await opened.write(enter)
        assert await look(postgres.url(path), path, count) == 1
    finally:
        await opened.close()


async def test_a_read_waits_for_a_table_that_is_being_rewritten(impatient: PostgresDatabase) -> None:
    store = impatient
    await store.write(enter)
    with psycopg.connect(postgres.url(store.path)) as beside:
        beside.execute("lock table remora.people in access exclusive mode")
        with pytest.raises(StoreBusy):
            await store.read(count)
        scrubbing = asyncio.create_task(store.scrub(seconds=SECONDS))
        await postgres.tried(store.path, "vacuum full")
        reading = asyncio.create_task(store.read(count))
        await postgres.tried(store.path, "select count(*) from people", times=2)
        assert not reading.done()
    assert (await reading, await scrubbing) == (1, True)


async def test_a_file_that_was_not_moved_is_not_passed_over(tmp_path: Path, clock: Clock) -> None:
    """Somebody sets database_url for a bot that has a memory, and forgets to move it."""
    path = tmp_path / "remora.db"
    await (await SqliteDatabase.open(path, now=1)).close()
    url = postgres.url(path)
    with psycopg.connect(url) as connection:
        connection.execute("drop schema remora cascade")
    with pytest.raises(StorageError, match="remora move --to postgres"):
        async with opened(path, clock, database_url=url):
            pass
    path.rename(tmp_path / "away")
    async with opened(path, clock, database_url=url):
        pass
    (tmp_path / "away").rename(path)
    async with opened(path, clock, database_url=url):
        pass


async def test_stores_with_similar_names_are_two(tmp_path: Path) -> None:
    url, names = postgres.url(tmp_path / "server"), ("a-b.db", "a_b.db", f"{'n' * 61}.db")
    stores = [await PostgresDatabase.open(url, tmp_path / name, now=1) for name in names]
    for number, each in enumerate(stores):
        assert await each.read(count) == 0
        for _ in range(number + 1):
            await each.write(enter)
        await each.share.tell("work", "somebody")
    assert [await each.read(count) for each in stores] == [1, 2, 3]
    for each in stores:
        await each.close()


def test_without_the_extra_every_use_says_so() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import memory.store.postgres.database"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "StorageError: database_url names a PostgreSQL database, which needs the extra" in done.stderr
