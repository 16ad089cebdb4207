"""Stores that move between a file and a server: equal row by row, through interruptions, and usable only when whole."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory.errors import StorageError, StoreInUse
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.recall import index
from memory.service import Service
from memory.store import moving
from memory.store.database import Transaction
from memory.store.moving import Mark, Place
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.tables import tables
from memory.transfer.move import Advance, Differs, Ends, MovedStore, NoStore, NotMoved, move
from tests.kit import postgres, stalls
from tests.kit.canaries import World
from tests.kit.fakes import DAY, Clock, runtime
from tests.kit.forgetting import forgotten
from tests.kit.leaks import PEOPLE, Scene, Tally, drawn
from tests.kit.patience import SECONDS
from tests.kit.stores import AGENTS, counting, migrated, on_postgres
from tests.kit.talk import facts, private, say

pytestmark = [pytest.mark.postgres, pytest.mark.skipif(on_postgres(), reason="needs stores of both kinds")]
ROOT = Path(__file__).parents[2]
PLACES: tuple[Place, ...] = ("postgres", "file")
#: Rows of tables that random people leave empty.
MORE = (
    "insert into access values ('telegram', 'person', '5', 'allowed', 'telegram:1', 3)",
    "insert into channel_state values ('telegram', 'offset', 'zoë\n😀')",
    "insert into embedding_cache values (x'00ff', 4, x'0000803f', 5)",
    "insert into pairing_tries values ('telegram', '5', 2, 9)",
    "insert into pairings (channel, salt, hash, created_at, expires_at) values ('telegram', x'00', x'01', 1, 2)",
    "insert into web_codes values (x'02', 'web', 'telegram', '5', 'assistant', 9)",
    "insert into web_sessions values (1, x'03', 'web', 'telegram', '5', 'assistant', 1, 2, 3, null)",
    "insert into api_keys values (1, 1, 'console', x'04', '', 'read', 1, null)",
    "insert into link_tries values (1, 2, 3)",
    "insert into imports (short_id, owner_id, format, state, started_at) values ('i_1', 1, 'notes', 'done', 1)",
    "insert into link_codes values (1, 1, 1, x'05', x'06', 1, 2, 0)",
    "insert into reminders values (1, 1, 'task', 1, 1, 1, 0, 'plants', 'en', 'UTC', '2026-11-24T08:00', '', '', null, 5, null, null, 0, 1)",
    "insert into effects values (1, 1, 1, 'remember', 'done', null, 1)",
    "insert into steps values (1, 1, '{}', 1)",
    "insert into entity_aliases select id, 'alias' from entities limit 1",
    "insert into comparisons select min(id), max(id), 'agree', '', 1, null, null from memories",
    "insert into refusals select 'compress', min(id), 2 from memories",
    "update memories set superseded_by = (select max(id) from memories) where id = (select min(id) from memories)",
    "update memories set superseded_by = (select min(id) from memories) where id = (select max(id) from memories)",
    "update outbox set file = zeroblob(70000) where id = (select max(id) from outbox)",
    "insert into judgements select t.id, i.id, 1, 7 from turns t, identities i limit 1",
)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in a file that random people used, with rows in every table."""
    path = tmp_path_factory.mktemp("lived") / "remora.db"

    async def live() -> None:
        world = await World.open(path, PEOPLE)
        scene = Scene(world, Tally())
        for op in drawn(random.Random(5), 60):
            assert await scene.play(op) == []
        await world.close()

    stalls.run(live())
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in MORE:
            connection.execute(statement)
    return path


@pytest.fixture
def store(lived: Path, tmp_path: Path) -> Ends:
    path = tmp_path / "remora.db"
    for file in lived.parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    return Ends(path=path, url=postgres.url(path), durability="process", now=7)


@contextmanager
def unseen(rows: int, label: str) -> Iterator[Advance]:
    yield lambda count, table: None


async def moved(ends: Ends, to: Place, *, anew: bool = False, show: Any = unseen) -> MovedStore:
    return await move(ends, to, anew=anew, show=show)


def put_away(path: Path) -> Path:
    """Moves a file away, as an operator does before a store moves back to it."""
    return path.rename(path.with_name("old.db"))


def without_list(ends: Ends) -> None:
    """Removes the list of what was erased, beside which no start takes an empty store on a server for the right one."""
    ends.path.with_name(f"{ends.path.name}.erased").unlink()


def held(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables that are copied, in the order of their keys, but for what making the index changes."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            table.name: [
                row
                for row in connection.execute(
                    f"select {', '.join(table.columns)} from {table.name} order by {', '.join(table.key)}"
                )
                if (table.name, row[0]) != ("store_settings", "words")
            ]
            for table in moving.carried()
            if table.name not in ("changes", "unembedded")
        }


async def asked(ends: Ends, place: Place, sql: str) -> list[tuple[Any, ...]]:
    database = await ends.open(place)
    try:
        return await database.read(lambda reader: [tuple(row) for row in reader.all(sql)])
    finally:
        await database.close()


async def ran(ends: Ends, place: Place, *statements: str) -> None:
    def act(tx: Transaction) -> None:
        for statement in statements:
            tx.run(statement)

    database = await ends.open(place)
    try:
        await database.write(act)
    finally:
        await database.close()


async def opened(ends: Ends, place: Place, clock: Clock) -> Service:
    return await Service.open(
        ends.path,
        agents=dict.fromkeys(AGENTS, AgentMemory()),
        runtime=runtime(clock, counting),
        triggers=Triggers(quiet_seconds=3_600),
        database_url=ends.url if place == "postgres" else "",
    )


class Interrupted(Exception):
    pass


def breaking(after: int) -> Callable[[int, str], Any]:
    """Shows progress, and raises once so many pages are written or compared."""
    left = after

    @contextmanager
    def show(rows: int, label: str) -> Iterator[Advance]:
        def advance(count: int, table: str) -> None:
            nonlocal left
            left -= bool(table)
            if left < 0:
                raise Interrupted

        yield advance

    return show


def test_every_table_is_copied_or_named_as_left(lived: Path) -> None:
    """A new table is copied as it is; here it needs a row, so that this is tried."""
    assert {table.name for table in tables()} == {table.name for table in moving.carried()} | moving.LEFT.keys()
    assert [name for name, rows in held(lived).items() if not rows] == []


async def test_a_store_on_a_server_and_back_is_the_same_row_by_row(store: Ends) -> None:
    before = held(store.path)
    there = await moved(store, "postgres")
    assert held(store.path) == before, "the original is only read"
    put_away(store.path)
    back = await moved(store, "file")
    assert held(store.path) == before
    assert (there.rows, there.people, there.messages) == (back.rows, back.people, back.messages)
    assert there.messages == len(before["messages"]) and there.is_new and there.nuls == 0


async def test_the_word_index_is_made_before_the_first_start(store: Ends) -> None:
    """All that the last turn taught, too, which the file's own index does not hold yet."""
    pending = {doc for (doc,) in await asked(store, "file", "select doc from changes")}
    learned = {doc for (doc,) in await asked(store, "file", "select 2 * id from memories order by id desc limit 3")}
    assert pending == learned
    await moved(store, "postgres")
    assert await asked(store, "postgres", "select count(*) from changes") == [(0,)]
    every = "select 2 * id from memories union select 2 * id + 1 from messages"
    docs = [doc for (doc,) in await asked(store, "file", every)]
    database = await store.open("file")
    found = await database.read(lambda reader: {doc for doc in docs if index.text_of(reader, doc) is not None})
    await database.close()
    assert {doc for (doc,) in await asked(store, "postgres", "select doc from indexed_documents")} == found


async def test_a_copy_goes_on_wherever_it_was_interrupted(store: Ends) -> None:
    """Three pages are written or compared before each interruption."""
    before = held(store.path)
    for to in PLACES:
        interruptions = 0
        while True:
            try:
                await moved(store, to, show=breaking(3 if interruptions < 15 else 200))
                break
            except Interrupted:
                interruptions += 1
        assert interruptions == 15
        put_away(store.path) if to == "postgres" else None
    assert held(store.path) == before


@pytest.mark.parametrize("pages", [0, 9, 33])
async def test_a_killed_copy_goes_on(store: Ends, pages: int) -> None:
    code = (
        "import asyncio, os, signal, sys\n"
        "from contextlib import contextmanager\n"
        "from pathlib import Path\n"
        "from memory.transfer.move import Ends, move\n"
        "left = int(sys.argv[3])\n"
        "def advance(count, table=''):\n"
        "    global left\n"
        "    left -= bool(table)\n"
        "    if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "@contextmanager\n"
        "def show(rows, label): yield advance\n"
        "ends = Ends(path=Path(sys.argv[1]), url=sys.argv[2], durability='process', now=7)\n"
        "asyncio.run(move(ends, 'postgres', anew=False, show=show))\n"
    )
    command = [sys.executable, "-c", code, str(store.path), store.url, str(pages)]
    done = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(StorageError, match="remora move --to postgres"):
        await opened(store, "postgres", Clock())
    before = held(store.path)
    await moved(store, "postgres")
    put_away(store.path)
    await moved(store, "file")
    assert held(store.path) == before


async def test_a_row_that_differs_is_found_and_the_copy_stays_locked(store: Ends, clock: Clock) -> None:
    import psycopg

    @contextmanager
    def tampering(rows: int, label: str) -> Iterator[Advance]:
        if label.startswith("Checking"):
            with psycopg.connect(store.url) as connection:
                connection.execute("update remora.messages set text = 'other' where id in (3, 4)")
        yield lambda count, table: None

    with pytest.raises(Differs, match=r"messages has \d+ rows there and \d+ here, .* at id = 3\."):
        await moved(store, "postgres", show=tampering)
    with pytest.raises(Differs):
        await moved(store, "postgres")
    with pytest.raises(StorageError, match="unfinished copy"):
        await opened(store, "postgres", clock)
    assert (await moved(store, "postgres", anew=True)).is_new
    await (await opened(store, "postgres", clock)).close(seconds=SECONDS)


async def test_a_row_too_few_or_too_many_is_found(store: Ends) -> None:
    import psycopg

    await moved(store, "postgres")
    for statement, first in (
        ("delete from remora.recalls where turn_id = (select max(turn_id) from remora.recalls)", "recalls"),
        ("insert into remora.channel_state values ('a', 'b', 'c')", "channel_state"),
    ):
        with psycopg.connect(store.url) as connection:
            connection.execute(statement)
        with pytest.raises(NotMoved, match="holds another store") as raised:
            await moved(store, "postgres")
        assert first in str(raised.value.__cause__)


async def test_a_store_that_somebody_used_is_not_overwritten(store: Ends) -> None:
    await moved(store, "postgres")
    assert not (await moved(store, "postgres")).is_new, "equal: it was moved before"
    await ran(store, "postgres", "update people set created_at = created_at + 1")
    for to, hint in zip(PLACES, ('drop schema "remora" cascade', "remora.db.key and remora.db.erased"), strict=True):
        with pytest.raises(NotMoved, match=r"holds another store \(\d+ people") as raised:
            await moved(store, to)
        assert hint in str(raised.value)


async def test_a_store_that_was_only_begun_is_replaced(store: Ends, clock: Clock) -> None:
    """Somebody sets database_url, starts the bot in an empty folder, and then remembers to move."""
    without_list(store)
    hidden = store.path.rename(store.path.with_name("hidden"))
    await (await opened(store, "postgres", clock)).close(seconds=SECONDS)
    hidden.rename(store.path)
    assert (await moved(store, "postgres")).is_new


async def test_an_unfinished_copy_of_another_store_is_kept_unless_begun_anew(store: Ends) -> None:
    await ran(store, "postgres", f"insert into store_settings values ('move', '{mark_of('another')}')")
    with pytest.raises(NotMoved, match=r"another store.*--anew"):
        await moved(store, "postgres")
    put_away(store.path)
    with pytest.raises(NotMoved, match="itself an unfinished copy"):
        await moved(store, "file")
    assert not store.path.exists()


def mark_of(origin: str) -> str:
    return repr({"origin": origin, "to": "postgres"}).replace("'", "''")


async def test_no_store_is_made_where_there_is_nothing_to_move(tmp_path: Path) -> None:
    ends = Ends(path=tmp_path / "none.db", url=postgres.url(tmp_path), durability="process", now=7)
    for to in PLACES:
        with pytest.raises(NoStore, match="nothing to move"):
            await moved(ends, to)
    assert not ends.path.exists()


async def test_a_store_that_a_newer_version_extended_is_not_moved(store: Ends) -> None:
    """This version works with it, but would leave behind what it does not know."""
    await moved(store, "postgres")
    later = "insert into migrations select max(version) + 1, 'later (expands)', 1 from migrations"
    await ran(store, "postgres", later)
    put_away(store.path)
    with pytest.raises(NotMoved, match="newer Remora"):
        await moved(store, "file")
    assert not store.path.exists()


async def test_a_bot_that_runs_is_in_the_way(store: Ends, clock: Clock) -> None:
    without_list(store)
    for place in PLACES:
        bot = await opened(store, place, clock)
        try:
            with pytest.raises(StoreInUse, match="is in use by another Remora"):
                await moved(store, "postgres")
        finally:
            await bot.close(seconds=SECONDS)


async def test_many_rows_with_keys_of_words_are_all_there(store: Ends) -> None:
    """Pages end within a channel; a NUL changes the order of the copy."""
    rows = [("tele\x00gram" if n % 7 == 0 else "telegram", f"{n % 50}\x00{n}", "a\x00b") for n in range(2_500)]
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.executemany("insert into channel_state values (?, ?, ?)", rows)
    with pytest.raises(Interrupted):
        await moved(store, "postgres", show=breaking(6))
    done = await moved(store, "postgres")
    assert done.nuls == sum(value.count("\x00") for row in rows for value in row)
    there = await asked(store, "postgres", "select channel, name, value from channel_state")
    assert sorted(there) == sorted(
        [tuple(v.replace("\x00", "\ufffd") for v in row) for row in rows] + [("telegram", "offset", "zoë\n😀")]
    )
    put_away(store.path)
    await moved(store, "file")
    assert sorted(held(store.path)["channel_state"]) == sorted(there)


async def test_ids_that_were_given_are_not_given_again(store: Ends) -> None:
    """People name memories by them, and buttons hold them."""
    insert = "insert into reminders (number, kind, identity_id, agent_id, session_id, text, language, zone, first,"
    insert += (
        " created_at) select 2, kind, identity_id, agent_id, session_id, text, language, zone, first, 1 from reminders"
    )
    await ran(store, "file", insert, "delete from reminders where number = 2")
    await moved(store, "postgres")
    await ran(store, "postgres", insert)
    assert await asked(store, "postgres", "select id from reminders order by id") == [(1,), (3,)]
    await ran(store, "postgres", "delete from reminders where id = 3")
    put_away(store.path)
    await moved(store, "file")
    await ran(store, "file", insert)
    assert await asked(store, "file", "select id from reminders order by id") == [(1,), (4,)]


@pytest.mark.parametrize("back", [False, True])
async def test_a_moved_store_remembers_recalls_and_forgets(tmp_path: Path, clock: Clock, back: bool) -> None:
    ends = Ends(path=tmp_path / "remora.db", url=postgres.url(tmp_path / "remora.db"), durability="process", now=7)
    await migrated(ends.path)
    memory = await opened(ends, "file", clock)
    turn = await say(memory, private("ada"), "I live in Lisbon and I like jazz.", clock=clock)
    await memory.learner.flush(turn.context.session.id, "test")
    await forgotten(memory, turn.context, "jazz")
    await memory.close(seconds=SECONDS)
    await moved(ends, "postgres")
    if back:
        put_away(ends.path)
        await moved(ends, "file")
    memory = await opened(ends, "file" if back else "postgres", clock)
    try:
        ada = await memory.identities.context(*private("ada"))
        assert await facts(memory, ada) == [("home", "Lisbon")]
        hits = await memory.browse.search(ada, "Lisbon", limit=9)
        assert any("Lisbon" in hit.memory.value for hit in hits if hit.memory is not None)
        turn = await say(memory, private("ada"), "I like tea.", clock=clock)
        await memory.learner.flush(turn.context.session.id, "test")
        assert ("likes", "tea") in await facts(memory, ada)
        await forgotten(memory, ada, "Lisbon")
        assert await facts(memory, ada) == [("likes", "tea")]
        now, clock.at = clock.at, clock.at - DAY
        turn = await say(memory, private("ada"), "I like jazz.", ref="old", clock=clock)
        clock.at = now
        await memory.learner.flush(turn.context.session.id, "test")
        assert ("likes", "jazz") not in await facts(memory, ada), "what was forgotten is known by its key"
    finally:
        await memory.close(seconds=SECONDS)


async def test_a_mark_is_read_as_it_was_written(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "remora.db", now=1)
    made = Mark(origin="o'1", to="file", step=3, after=(b"\x00\xff", "zoë", 5), rows=9, nuls=1)
    await database.write(lambda tx: moving.mark(tx, made))
    assert await database.read(moving.marked) == made
    await database.close()
