"""The word index, damaged or outdated, made anew while turns go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import pytest

from memory.context import Context
from memory.recall import index
from memory.service import Service
from memory.store import postings, settings
from memory.store.database import Reader, Transaction
from memory.store.history import Utterance
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.driver import Driver
from memory.store.sqlite.migrate import migrations
from tests.kit import stores
from tests.kit.fakes import NOON, Clock
from tests.kit.forgetting import forgotten_alone
from tests.kit.talk import act, private, say, teach

#: Ways in which the tables of an index break, each found by another part of it.
DAMAGES = (
    "drop table postings", "drop table indexed_documents", "delete from postings", "delete from indexed_documents",
    "delete from postings where doc = (select max(doc) from postings)",
    "delete from indexed_documents where doc = (select max(doc) from postings)",
    "update postings set term = term || 's' where doc = (select max(doc) from postings)",
    "update postings set partition = partition + 100",
    "update indexed_documents set tokens = ' ' || upper(tokens)",
)  # fmt: skip
#: Messages that take many transactions to index.
MANY = 3_000


Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Service]]


@pytest.fixture
def opened(tmp_path: Path, clock: Clock, ids: Callable[[], str]) -> Opened:
    return lambda: stores.opened(tmp_path / "remora.db", clock, agents=["assistant"], new_id=ids)


async def chat_long(memory: Service) -> Context:
    said = [f"thing number {n} is ordinary" for n in range(MANY)]
    said[MANY // 2] = "we met at the lighthouse"
    where, who = private("ada")
    await memory.turns.record(
        where, who, [Utterance(role="user", text=text, tokens=5, said_at=NOON, learn=False) for text in said]
    )
    return await memory.identities.context(where, who)


async def answers(memory: Service, context: Context, query: str) -> list[str]:
    return [hit.text for hit in await memory.browse.search(context, query, limit=8)]


async def damage(memory: Service, sql: str) -> None:
    await memory.database.write(lambda tx: tx.run(sql))


async def is_whole(memory: Service) -> bool:
    return await memory.database.read(index.is_whole)


def indexed(reader: Reader) -> list[int]:
    postings.check(reader, thorough=True)
    return reader.ids("select doc from indexed_documents order by doc")


def marked(tx: Transaction) -> None:
    """Another word for the first document, which an index that is made anew does not have."""
    tx.run(
        "insert into postings (partition, term, doc)"
        " select partition, 'marked', doc from indexed_documents order by doc limit 1"
    )
    tx.run(
        "update indexed_documents set tokens = tokens || 'marked ', postings = postings + 1"
        " where doc = (select min(doc) from indexed_documents)"
    )


async def holding(memory: Service, term: str) -> int:
    return await memory.database.read(
        lambda reader: reader.number("select count(distinct doc) from postings where term = ?", (term,))
    )


def to_be_indexed(reader: Reader) -> list[int]:
    rows = reader.all(
        "select 2 * id as doc from memories where kind = 'fact'"
        " union all select 2 * id + 1 from messages where nth is not null order by doc"
    )
    return [row["doc"] for row in rows]


@pytest.mark.parametrize("sql", DAMAGES)
async def test_an_index_that_breaks_while_running_is_mended_behind_the_search(
    memory: Service, clock: Clock, sql: str
) -> None:
    """The search that meets the damage is answered by substring, later ones by the index again."""
    turn = await teach(memory, private("ada"), "I live in Lisbon", "I'm allergic to peanuts", clock=clock)
    await memory.indexed()
    await damage(memory, sql)
    memory.mending.suspect()  # not every damage meets every search
    assert "home Lisbon" in await answers(memory, turn.context, "Lisbon")
    await memory.indexed()
    assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed)
    assert "allergy peanuts" in await answers(memory, turn.context, "what am I allergic to?")


@pytest.mark.parametrize("sql", DAMAGES)
async def test_an_index_that_breaks_at_rest_is_found_and_mended_at_the_next_start(
    opened: Opened, clock: Clock, sql: str
) -> None:
    async with opened() as memory:
        turn = await teach(memory, private("ada"), "I live in Lisbon", clock=clock)
        await memory.indexed()
        await damage(memory, sql)
    async with opened() as memory:
        assert await is_whole(memory)
        assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed)
        assert "home Lisbon" in await answers(memory, turn.context, "Lisbon")


async def test_a_search_that_fails_has_the_index_mended(memory: Service, clock: Clock) -> None:
    turn = await teach(memory, private("ada"), "I live in Lisbon", clock=clock)
    await memory.indexed()
    await damage(memory, "drop table postings")
    assert "home Lisbon" in await answers(memory, turn.context, "Lisbon")
    await memory.indexed()
    assert await is_whole(memory)
    assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed)


async def test_turns_are_answered_while_a_long_index_is_made(memory: Service, clock: Clock) -> None:
    """Neither the search that met the damage nor what is said next waits for it."""
    context = await chat_long(memory)
    await memory.indexed()
    await damage(memory, "drop table indexed_documents")
    assert (await answers(memory, context, "lighthouse"))[0] == "we met at the lighthouse"
    while await is_whole(memory):
        await asyncio.sleep(0)
    turn = await say(memory, private("ada"), "I live in Lisbon", clock=clock)
    kept = await act(memory, context, lambda edits: edits.remember("the key is under the mat", key="key"))
    assert not await is_whole(memory)
    assert "we met at the lighthouse" in await answers(memory, context, "lighthouse")
    assert "key the key is under the mat" in await answers(memory, turn.context, "mat")
    await memory.indexed()
    assert await is_whole(memory)
    assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed)
    assert f"{kept[0].key} {kept[0].value}" in await answers(memory, context, "mat")


async def test_what_is_forgotten_while_an_index_is_made_is_not_in_it(memory: Service) -> None:
    """The change log is followed to its end before the index counts as whole."""
    context = await chat_long(memory)
    kept = await act(memory, context, lambda edits: edits.remember("the key is under the mat", key="key"))
    await memory.indexed()
    await damage(memory, "drop table postings")
    await answers(memory, context, "mat")
    while not await memory.database.read(begun):
        await asyncio.sleep(0)
    await forgotten_alone(memory, context, kept[0].id)
    await memory.indexed()
    assert await holding(memory, "mat") == 0 and await is_whole(memory)


def begun(reader: Reader) -> bool:
    upto = index._upto(reader)
    return upto is not None and 0 < upto < index._ALL


async def test_a_start_does_not_wait_for_a_long_index(opened: Opened) -> None:
    """Tokens of another version ask for a new index; the first turn is answered meanwhile, by substring."""
    async with opened() as memory:
        await chat_long(memory)
        await memory.indexed()
        await damage(memory, "update store_settings set value = '0.0' where name = 'words'")
    async with opened() as memory:
        context = await memory.identities.context(*private("ada"))
        assert not await is_whole(memory)
        assert "we met at the lighthouse" in await answers(memory, context, "lighthouse")
        await memory.indexed()
        assert await is_whole(memory)
        assert (await answers(memory, context, "lighthouse"))[0] == "we met at the lighthouse"
        assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed)


async def test_a_start_goes_on_with_the_index_that_was_begun(opened: Opened) -> None:
    async with opened() as memory:
        await chat_long(memory)
        await memory.indexed()
        await damage(memory, "drop table indexed_documents")
        memory.mending.suspect()
        while not await memory.database.read(begun):
            await asyncio.sleep(0)
        await memory.mending.close()
        assert not await is_whole(memory)
        await memory.database.write(marked)
    async with opened() as memory:
        await memory.indexed()
        assert await is_whole(memory)
        assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed)
        assert await holding(memory, "mark") == 0 and await holding(memory, "marked") == 1


async def test_a_suspicion_that_proves_wrong_changes_nothing(memory: Service, clock: Clock) -> None:
    """A healthy index is not thrown away, and not checked again with every search."""
    await teach(memory, private("ada"), "I live in Lisbon", clock=clock)
    await memory.indexed()
    await memory.database.write(marked)
    memory.mending.suspect()
    first = memory.mending._task
    await memory.indexed()
    memory.mending.suspect()
    assert memory.mending._task is first
    assert await holding(memory, "marked") == 1 and await is_whole(memory)


@pytest.mark.parametrize("driver", stores.DRIVERS, ids=lambda driver: driver.name.replace(" ", "-"))
@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "delete from words_config",
        "drop table words_data",
        "update words_config set v = 99 where k = 'version'",
    ],
)
async def test_an_index_of_an_earlier_version_is_replaced(
    tmp_path: Path, clock: Clock, driver: Driver, sql: str
) -> None:
    """Also where SQLite can't even drop it, being damaged or of a later SQLite; nothing of it stays in the file."""
    path = tmp_path / "remora.db"

    def earlier(tx: Transaction) -> None:
        tx.run("insert into agents (id, name, created_at) values (1, 'assistant', 1)")
        tx.run("insert into owners (id, kind, agent_id) values (1, 'agent', 1)")
        tx.run(
            "insert into memories (id, short_id, kind, owner_id, category, key, value, importance, confidence, origin,"
            " created_at, learned_at, local_date, valid_from, last_reinforced_at)"
            " values (7, 'm_1', 'fact', 1, 'work', 'job', 'baker', 5, 1, 'told', 1, 1, '2026-11-21', 1, 1)"
        )
        tx.run("create virtual table words using fts5(scope, tokens, tokenize = 'unicode61 remove_diacritics 0')")
        tx.run("insert into words (rowid, scope, tokens) values (14, 'o1', 'zqformer baker')")
        settings.put(tx, "words", index.MADE_OF)

    known = [one for one in migrations() if one.version < 25]
    database = await SqliteDatabase.open(path, now=1, driver=driver, known=known)
    await database.write(earlier)
    await database.write(lambda tx: tx.run(sql))
    await database.close()
    assert b"zqformer" in path.read_bytes()
    async with stores.opened(path, clock, driver=driver) as memory:
        assert await memory.database.read(indexed) == await memory.database.read(to_be_indexed) == [14]
        assert await holding(memory, "baker") == 1 and await holding(memory, "zqformer") == 0
        assert await stores.rows(memory, "select name from sqlite_schema where name like 'words%'") == []
        assert await stores.rows(memory, "pragma integrity_check") == [("ok",)]
    assert b"zqformer" not in path.read_bytes()
