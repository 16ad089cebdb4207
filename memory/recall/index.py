"""The word index: derived from memories and messages, fed from the change log, outside canonical transactions.

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
from memory.recall import vectors, words
from memory.recall.cues import CUES_VERSION, cues
from memory.recall.rank import Spot
from memory.scope import Scope, partitions_of
from memory.store import documents
from memory.store.database import Database, Reader, Row, Transaction

log = structlog.get_logger(__name__)

_BATCH = 500
#: Candidates that are scored. At some 10 µs each this is the bound on a search by words, however much was ever said.
MOST_MATCHES = 4_000
#: Under this name the store keeps what its index is made of: the version of the tokens and that of the cues.
_VERSION = "words"
_MADE_OF = f"{words.TOKENS_VERSION}.{CUES_VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A document that holds at least one of the terms, with all its tokens counted.

    `message` says where a message stands; None for a memory. `about` is the identity that said a message or that a
    memory is about, `at` when it was said.
    """

    doc: int
    counts: Counter[str]
    length: int
    message: Spot | None
    about: int | None
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What matched, and in how many documents of the scope each term occurs."""

    found: list[Match]
    frequencies: dict[str, int]


NONE = Matches(found=[], frequencies={})


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
    """Empty the index and have every document indexed again."""

    def act(tx: Transaction) -> None:
        tx.run("drop table if exists words")
        tx.run("create virtual table words using fts5(scope, tokens, tokenize = 'unicode61 remove_diacritics 0')")
        if database.driver.fts_secure_delete:
            tx.run("insert into words (words, rank) values ('secure-delete', 1)")
        tx.run("insert or replace into store_settings values (?, ?)", (_VERSION, _MADE_OF))
        tx.run("delete from changes")
        tx.run("insert into changes (doc) select 2 * id from memories order by id")
        tx.run("insert into changes (doc) select 2 * id + 1 from messages where nth is not null order by id")

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
    for row in tx.all("select distinct doc from changes where id <= ?", (last["id"],)):
        _index(tx, row["doc"])
    tx.run("delete from changes where id <= ?", (last["id"],))


async def keep_up(database: Database) -> None:
    """Bring the index up to date after a change, where it can be; searches notice when it can't."""
    try:
        await catch_up(database)
    except StorageError as exc:
        log.warning("index.behind", error=str(exc))


def match(reader: Reader, scope: Scope, terms: Sequence[str]) -> Matches:
    """The documents of the scope that hold one of the terms. Costs by what the scope sees, not by the table.

    Where more than `MOST_MATCHES` do, terms are taken from the rarest on until enough documents hold one of them.
    """
    found = _holding(reader, scope, terms, limit=MOST_MATCHES + 1)
    if len(found) <= MOST_MATCHES:
        held = Counter(term for match in found for term in match.counts)
        return Matches(found=found, frequencies={term: held[term] for term in terms})
    frequencies = {term: _count(reader, scope, term) for term in terms}
    rare: list[str] = []
    reached = 0
    for term in sorted(terms, key=lambda term: frequencies[term]):
        if rare and reached + frequencies[term] > MOST_MATCHES:
            break
        rare.append(term)
        reached += frequencies[term]
    return Matches(found=_holding(reader, scope, rare, limit=MOST_MATCHES), frequencies=frequencies)


def texts(reader: Reader, docs: Sequence[int]) -> dict[int, Counter[str]]:
    """The tokens of documents that a scope's own read has named before."""
    marks = ", ".join("?" for _ in docs)
    rows = reader.all(f"select rowid as doc, tokens from words where rowid in ({marks})", docs)
    return {row["doc"]: Counter(row["tokens"].split()) for row in rows}


def text_of(reader: Reader, doc: int) -> tuple[tuple[int, ...], str] | None:
    """The partitions a document stands in and the words it is found by; None when it is not to be found."""
    if documents.is_message(doc):
        row = reader.one(
            "select owner_id, text from messages where id = ? and recall = 1 and erased_at is null and nth is not null",
            (documents.row_id(doc),),
        )
        return None if row is None else ((row["owner_id"],), row["text"])
    row = reader.one(
        "select owner_id, author_id, subject_id, subject, topic, key, value from memories"
        " where id = ? and kind in ('fact', 'style', 'event', 'reflection')",
        (documents.row_id(doc),),
    )
    if row is None:
        return None
    partitions = partitions_of(owner_id=row["owner_id"], author_id=row["author_id"], subject_id=row["subject_id"])
    return partitions, " ".join(filter(None, (row["key"], row["value"], row["subject"], row["topic"])))


def _holding(reader: Reader, scope: Scope, terms: Sequence[str], *, limit: int) -> list[Match]:
    memories, messages = scope.predicate("m"), scope.owned("s")
    rows = reader.all(
        "select w.rowid as doc, w.tokens, s.session_id, s.sitting, s.nth, s.role,"
        " coalesce(s.author_id, m.subject_id) as about, coalesce(s.said_at, m.learned_at) as at,"
        " rtrim(substr(s.text, -3)) as ending from words w"
        " left join messages s on w.rowid % 2 = 1 and s.id = w.rowid / 2"
        " left join memories m on w.rowid % 2 = 0 and m.id = w.rowid / 2"
        f" where words match ? and ((s.recall = 1 and {messages.sql}) or {memories.sql}) limit ?",
        (_question(scope, terms), *messages.parameters, *memories.parameters, limit),
    )
    return [_match(row) for row in rows]


def _count(reader: Reader, scope: Scope, term: str) -> int:
    row = reader.one("select count(*) as n from words where words match ?", (_question(scope, [term]),))
    assert row is not None
    return int(row["n"])


def _question(scope: Scope, terms: Sequence[str]) -> str:
    readable = " OR ".join(f'"{_partition_token(partition)}"' for partition in scope.partitions)
    held = " OR ".join(f'"{term}"' for term in terms)
    return f"scope : ({readable}) AND tokens : ({held})"


def _current(reader: Reader) -> bool:
    version = reader.one("select value from store_settings where name = ?", (_VERSION,))
    made = reader.one("select 1 from sqlite_master where name = 'words'")
    return made is not None and version is not None and version["value"] == _MADE_OF


def _whole(tx: Transaction) -> bool:
    """FTS5's own check of the index against its content; raises when they differ."""
    tx.run("insert into words (words) values ('integrity-check')")
    return True


def _index(tx: Transaction, doc: int) -> None:
    tx.run("delete from words where rowid = ?", (doc,))
    found = text_of(tx, doc)
    vectors.enqueue(tx, doc, found)
    if found is None:
        return
    partitions, text = found
    if not documents.is_message(doc):
        row = tx.one("select key from memories where id = ?", (documents.row_id(doc),))
        assert row is not None
        text = f"{text} {cues(row['key'])}"
    tokens = " ".join(words.tokens(text))
    scope = " ".join(map(_partition_token, partitions))
    tx.run("insert into words (rowid, scope, tokens) values (?, ?, ?)", (doc, scope, tokens))


def _partition_token(partition: int) -> str:
    return f"o{partition}" if partition > 0 else f"s{-partition}"


def _match(row: Row) -> Match:
    tokens = row["tokens"].split()
    return Match(
        doc=row["doc"],
        counts=Counter(tokens),
        length=len(tokens),
        about=row["about"],
        at=row["at"],
        message=None
        if row["session_id"] is None
        else Spot(
            session_id=row["session_id"],
            sitting=row["sitting"],
            nth=row["nth"],
            by_agent=row["role"] == "assistant",
            asks=row["ending"].endswith(("?", "？")),
        ),
    )
