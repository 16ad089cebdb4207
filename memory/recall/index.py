"""The word index: derived from memories, fed from the change log, never part of a canonical transaction.

Invariants: a row carries the tokens of its owner, so a match reads only what the scope may see; losing or breaking
the index loses nothing: it is made again from the rows; whoever searches feeds it first and so reads their own
writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memory.errors import StorageError
from memory.recall import words
from memory.recall.cues import cues
from memory.scope import Scope
from memory.store.database import Database, Row, Transaction

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A memory that holds at least one of the terms, with all its tokens counted."""

    memory_id: int
    counts: Counter[str]
    length: int


async def prepare(database: Database) -> None:
    """Make sure the index exists and reads; else build it anew from the rows."""
    try:
        made = await database.one("select 1 from sqlite_master where name = 'words'")
        if made is not None:
            await database.all("select rowid from words where words match ? limit 1", ('"o0"',))
            return
    except StorageError:
        pass  # damaged, or written by a newer SQLite: rebuilt below, it holds nothing of its own
    await rebuild(database)


async def rebuild(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.run("drop table if exists words")
        await tx.run(
            "create virtual table words using fts5(scope, tokens, tokenize = 'unicode61 remove_diacritics 0')"
        )
        if database.driver.fts_secure_delete:
            await tx.run("insert into words (words, rank) values ('secure-delete', 1)")
        await tx.run("delete from changes")
        await tx.run("insert into changes (memory_id) select id from memories order by id")
    await catch_up(database)


async def catch_up(database: Database) -> None:
    """Bring the index up to the last committed change, in short transactions."""
    while True:
        behind = await database.all(
            "select memory_id, max(id) as change from changes where id <="
            " (select max(id) from (select id from changes order by id limit ?)) group by memory_id",
            (_BATCH,),
        )
        if not behind:
            return
        async with database.transaction() as tx:
            for row in behind:
                await _index(tx, row["memory_id"])
            await tx.run("delete from changes where id <= ?", (max(row["change"] for row in behind),))


async def match(database: Database, scope: Scope, terms: Sequence[str]) -> list[Match]:
    """Every memory of the scope that holds one of the terms. Costs by what the scope sees, not by the table."""
    within = scope.predicate("m")
    owners = " OR ".join(f'"{token}"' for token in _readable(scope))
    held = " OR ".join(f'"{term}"' for term in terms)
    rows = await database.all(
        "select m.id, w.tokens from words w join memories m on m.id = w.rowid"
        f" where words match ? and {within.sql}",
        (f"scope : ({owners}) AND tokens : ({held})", *within.parameters),
    )
    return [_match(row) for row in rows]


async def _index(tx: Transaction, memory_id: int) -> None:
    await tx.run("delete from words where rowid = ?", (memory_id,))
    row = await tx.one(
        "select owner_id, author_id, subject_id, subject, topic, key, value, tags from memories"
        " where id = ? and kind in ('fact', 'style', 'event', 'reflection')",
        (memory_id,),
    )
    if row is None:
        return
    scope = f"o{row['owner_id']}"
    if row["author_id"] is not None and row["author_id"] == row["subject_id"]:
        scope += f" s{row['author_id']}"
    text = " ".join((row["key"], row["value"], row["subject"], row["topic"], cues(row["key"])))
    await tx.run(
        "insert into words (rowid, scope, tokens) values (?, ?, ?)", (memory_id, scope, " ".join(words.tokens(text)))
    )


def _readable(scope: Scope) -> list[str]:
    return [f"o{owner}" for owner in scope.owners] + [f"s{identity}" for identity in scope.selves]


def _match(row: Row) -> Match:
    tokens = row["tokens"].split()
    return Match(memory_id=row["id"], counts=Counter(tokens), length=len(tokens))
