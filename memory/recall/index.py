"""The word index: derived from memories, fed from the change log, never part of a canonical transaction.

Invariants: a row carries the tokens of its owner, so a match reads only what the scope may see; losing or breaking
the index loses nothing: it is made again from the rows; whoever searches feeds it first and so reads their own
writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from memory.errors import StorageError
from memory.recall import words
from memory.recall.cues import CUES_VERSION, cues
from memory.scope import Scope
from memory.store.database import Database, Reader, Row, Transaction

log = structlog.get_logger(__name__)

_BATCH = 500
#: Under this name the store keeps what its index is made of: the version of the tokens and that of the cues.
_VERSION = "words"
_MADE_OF = f"{words.TOKENS_VERSION}.{CUES_VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A memory that holds at least one of the terms, with all its tokens counted."""

    memory_id: int
    counts: Counter[str]
    length: int


async def prepare(database: Database) -> None:
    """Make sure the index is there, whole, up to date and made by this version's tokens; else build it anew.

    Where even that fails, searches go by substring; a start never does.
    """
    try:
        if await database.read(_current) and await database.write(_whole):
            await catch_up(database)
            return
    except StorageError as exc:
        log.warning("index.damaged", error=str(exc), now="rebuilding it from the rows")
    try:
        await rebuild(database)
    except StorageError as exc:
        log.error("index.unusable", error=str(exc), instead="substring search")


async def rebuild(database: Database) -> None:
    """Empty the index and have every memory indexed again."""

    def act(tx: Transaction) -> None:
        tx.run("drop table if exists words")
        tx.run("create virtual table words using fts5(scope, tokens, tokenize = 'unicode61 remove_diacritics 0')")
        if database.driver.fts_secure_delete:
            tx.run("insert into words (words, rank) values ('secure-delete', 1)")
        tx.run("insert or replace into store_settings values (?, ?)", (_VERSION, _MADE_OF))
        tx.run("delete from changes")
        tx.run("insert into changes (memory_id) select id from memories order by id")

    await database.write(act)
    await catch_up(database)


async def catch_up(database: Database) -> None:
    """Bring the index up to the last committed change, in short transactions."""
    while await database.read(is_behind):
        await database.write(catch_up_some)


def is_behind(reader: Reader) -> bool:
    """Whether something was committed that the index does not hold yet."""
    return reader.one("select 1 from changes limit 1") is not None


def catch_up_some(tx: Transaction) -> None:
    """Index the oldest changes, as many as make a short transaction."""
    last = tx.one("select max(id) as id from (select id from changes order by id limit ?)", (_BATCH,))
    assert last is not None
    for row in tx.all("select distinct memory_id from changes where id <= ?", (last["id"],)):
        _index(tx, row["memory_id"])
    tx.run("delete from changes where id <= ?", (last["id"],))


async def keep_up(database: Database) -> None:
    """Bring the index up to date after a change, where it can be; searches notice when it can't."""
    try:
        await catch_up(database)
    except StorageError as exc:
        log.warning("index.behind", error=str(exc))


def match(reader: Reader, scope: Scope, terms: Sequence[str]) -> list[Match]:
    """Every memory of the scope that holds one of the terms. Costs by what the scope sees, not by the table."""
    within = scope.predicate("m")
    owners = " OR ".join(f'"{token}"' for token in _readable(scope))
    held = " OR ".join(f'"{term}"' for term in terms)
    rows = reader.all(
        f"select m.id, w.tokens from words w join memories m on m.id = w.rowid where words match ? and {within.sql}",
        (f"scope : ({owners}) AND tokens : ({held})", *within.parameters),
    )
    return [_match(row) for row in rows]


def _current(reader: Reader) -> bool:
    version = reader.one("select value from store_settings where name = ?", (_VERSION,))
    made = reader.one("select 1 from sqlite_master where name = 'words'")
    return made is not None and version is not None and version["value"] == _MADE_OF


def _whole(tx: Transaction) -> bool:
    """FTS5's own check of the index against its content; raises when they differ."""
    tx.run("insert into words (words) values ('integrity-check')")
    return True


def _index(tx: Transaction, memory_id: int) -> None:
    tx.run("delete from words where rowid = ?", (memory_id,))
    row = tx.one(
        "select owner_id, author_id, subject_id, subject, topic, key, value from memories"
        " where id = ? and kind in ('fact', 'style', 'event', 'reflection')",
        (memory_id,),
    )
    if row is None:
        return
    scope = f"o{row['owner_id']}"
    if row["author_id"] is not None and row["author_id"] == row["subject_id"]:
        scope += f" s{row['author_id']}"
    text = " ".join((row["key"], row["value"], row["subject"], row["topic"], cues(row["key"])))
    tokens = " ".join(words.tokens(text))
    tx.run("insert into words (rowid, scope, tokens) values (?, ?, ?)", (memory_id, scope, tokens))


def _readable(scope: Scope) -> list[str]:
    return [f"o{owner}" for owner in scope.owners] + [f"s{identity}" for identity in scope.selves]


def _match(row: Row) -> Match:
    tokens = row["tokens"].split()
    return Match(memory_id=row["id"], counts=Counter(tokens), length=len(tokens))
