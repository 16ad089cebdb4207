"""The word index: derived from memories and messages, fed from the change log, outside canonical transactions.

Invariants: a row carries the tokens of its owner, so a match reads only what the scope may see; losing or breaking
the index loses nothing: it is made again from the rows, in short transactions and with nobody waiting, and until it
is whole searches go by substring, for half an index would hide what it does not hold yet; whoever searches feeds it
first and so reads their own writes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from memory.errors import IndexDamaged, StorageError, StoreBusy, StoreDamaged, StoreUnwritable
from memory.recall import vectors, words
from memory.recall.cues import CUES_VERSION, category_cues, cues
from memory.recall.rank import Spot
from memory.scope import Scope, partitions_of
from memory.store import documents, health
from memory.store.database import Database, Reader, Row, Transaction

log = structlog.get_logger(__name__)

_BATCH: Final = 500
#: Documents of a batch that the index held before: `secure-delete` overwrites what a large one held of each, at the end
#: of the transaction and at some milliseconds a document. The rest is left to the next.
_REMOVED: Final = 50
#: Documents indexed at once while the index is made anew: some 20 ms, which is what a turn may have to wait.
_STRETCH: Final = 200
#: While a long index is made, this is told every so many documents.
_REPORTED: Final = 5_000
#: Seconds in which no suspicion is followed after one that was wrong or could not be helped.
_PAUSE: Final = 60.0
#: Candidates that are scored. At some 10 µs each this is the bound on a search by words, however much was ever said.
MOST_MATCHES: Final = 4_000
#: Raised with every change of `text_of`.
_TEXT_VERSION: Final = 2
#: Under this name the store keeps what its index is made of: the versions of the tokens, of the cues and of the texts;
#: and while it is being made, behind a colon, the last document it holds.
_VERSION: Final = "words"
_MADE_OF: Final = f"{words.TOKENS_VERSION}.{CUES_VERSION}.{_TEXT_VERSION}"
#: Stands for the last document of an index that holds all.
_ALL: Final = 2**62


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


class Mending:
    """Keeps the index of one store whole. `begin` before the first search, `close` before the database.

    An index that is missing, damaged or made by another version's tokens is made anew from the rows. What is done of
    that is committed with the rows themselves, so the next start goes on where this one ended. Vectors whose pages are
    damaged go, too, and every document is queued to be embedded again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        database.on_index_damage = self.suspect
        self._task: asyncio.Task[None] | None = None
        self._pause_until = 0.0

    async def begin(self) -> None:
        """Check the index and bring it up to date. A short one is made anew at once, a long one in the background.

        Where even that fails, searches go by substring; a start never does.
        """
        try:
            # What is met while searching is looked at then; this is read now anyway.
            if await self._database.damaged((*health.WORDS, health.CHANGES)):
                await self._database.write(_give_up)
                self._task = asyncio.create_task(self._mend())
            elif not await self._is_sound() and not await self._make(most=_STRETCH):
                self._task = asyncio.create_task(self._mend())
        except StorageError as exc:
            log.error("index.unusable", error=str(exc), instead="substring search")

    def suspect(self) -> None:
        """A search failed on the index, or it is not whole: have it checked, and mended where it must be."""
        if self._task is not None and not self._task.done():
            return
        if asyncio.get_running_loop().time() >= self._pause_until:
            self._task = asyncio.create_task(self._mend())

    async def done(self) -> None:
        """Wait until no mending is under way."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        """Stop at once; the next start goes on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _mend(self) -> None:
        try:
            struck = await self._strike()
            if not await self._is_sound():
                await self._make()
                return
            if struck:
                return
        except StorageError as exc:
            log.error("index.unusable", error=str(exc), instead="substring search", again_in_seconds=_PAUSE)
        self._pause_until = asyncio.get_running_loop().time() + _PAUSE

    async def _is_sound(self) -> bool:
        """Whether the index is whole and up to date. A damaged one is marked as such, for it must be begun again."""
        try:
            upto = await self._database.read(_upto)
            if upto is None:
                return False
            await self._database.write(_check)
            if upto < _ALL:
                return False
            await catch_up(self._database)
        except (StoreUnwritable, StoreDamaged, StoreBusy):
            raise
        except StorageError as exc:
            # The driver's own words: ours would have the whole file replaced.
            log.warning("index.damaged", error=str(exc.__cause__ or exc), now="making it anew from the rows")
            await self._database.write(_give_up)
            return False
        return True

    async def _make(self, *, most: int | None = None) -> bool:
        """Make the index from where it stands, `most` documents of it; whether it is whole now."""
        if await self._database.read(_upto) is None:
            await self._strike(health.WORDS)
            await self._database.write(self._start_over)
        made = told = 0
        while some := await self._database.write(_make_some):
            made += some
            if most is not None and made >= most:
                return False
            if made - told >= _REPORTED:
                told = made
                log.info("index.progress", made=made, percent=await self._database.read(_percent))
        await catch_up(self._database)
        await self._database.write(_end)
        if made:
            log.info("index.made", documents=made)
        return True

    async def _strike(self, looked_at: Collection[str] = health.DERIVED) -> bool:
        """Have those of the tables whose pages are damaged made anew, empty; whether there were any.

        They are not dropped: that walks their pages, and a page that points to another table's would take it along.
        """
        damaged = await self._database.damaged(looked_at)
        if not damaged:
            return False
        log.warning("index.damaged", tables=damaged, now="making them anew from the rows")
        struck = set(damaged)
        if struck & set(health.WORDS):
            struck |= set(health.WORDS)
        if health.CHANGES in struck:
            # What it named may be gone, and its words and vectors must not stay.
            struck |= set(health.DERIVED)
        if struck & set(health.WORDS):
            await self._database.write(_give_up)
        await self._database.strike(struck)
        if struck & set(health.MEANINGS):
            await self._database.write(_embed_all)
        return True

    def _start_over(self, tx: Transaction) -> None:
        tx.run("drop table if exists words")
        tx.run("create virtual table words using fts5(scope, tokens, tokenize = 'unicode61 remove_diacritics 0')")
        if self._database.driver.fts_secure_delete:
            tx.run("insert into words (words, rank) values ('secure-delete', 1)")
        _mark(tx, f"{_MADE_OF}:0")


def is_whole(reader: Reader) -> bool:
    """Whether the index holds everything up to the change log, as far as is known."""
    return _upto(reader) == _ALL


async def catch_up(database: Database) -> None:
    """Bring the index up to the last committed change, in short transactions."""
    while await database.read(is_behind):
        await database.write(catch_up_some)


def is_behind(reader: Reader) -> bool:
    """Whether something was committed that the index does not hold yet."""
    return reader.one("select 1 from changes limit 1") is not None


def catch_up_some(tx: Transaction) -> None:
    """Index the oldest changes, as many as make a short transaction."""
    done: set[int] = set()
    last = removed = 0
    for row in tx.all("select id, doc from changes order by id limit ?", (_BATCH,)):
        if not isinstance(row["doc"], int):
            raise IndexDamaged("The log of changes is damaged. Nothing is lost: the index is made again from the rows.")
        if row["doc"] not in done:
            removed += tx.one("select 1 from words where rowid = ?", (row["doc"],)) is not None
            _index(tx, row["doc"])
        done.add(row["doc"])
        last = row["id"]
        if removed >= _REMOVED:
            break
    tx.run("delete from changes where id <= ?", (last,))


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


def text_of(reader: Reader, doc: int) -> tuple[tuple[int, ...], str] | None:
    """The partitions a document stands in and the words it is found by; None when it is not to be found.

    Where several people talk, a message stands under its speaker's name, as a reader sees it: a question that names
    somebody then finds what they said before what was said to them. So does a memory, and under that of the person it
    is about.
    """
    if documents.is_message(doc):
        row = reader.one(
            "select m.owner_id, m.text, m.author_name, o.kind from messages m join owners o on o.id = m.owner_id"
            " where m.id = ? and m.recall = 1 and m.erased_at is null and m.nth is not null",
            (documents.row_id(doc),),
        )
        if row is None:
            return None
        named = row["kind"] != "identity" and row["author_name"]
        return (row["owner_id"],), f"{row['author_name']}: {row['text']}" if named else row["text"]
    row = reader.one(
        "select m.owner_id, m.author_id, m.subject_id, m.subject, m.topic, m.key, m.value, o.kind, a.name as author,"
        " s.name as person from memories m join owners o on o.id = m.owner_id"
        " left join identities a on a.id = m.author_id left join identities s on s.id = m.subject_id"
        " where m.id = ? and m.kind in ('fact', 'style', 'event', 'reflection')",
        (documents.row_id(doc),),
    )
    if row is None:
        return None
    partitions = partitions_of(owner_id=row["owner_id"], author_id=row["author_id"], subject_id=row["subject_id"])
    names = () if row["kind"] == "identity" else dict.fromkeys((row["author"], row["person"]))
    return partitions, " ".join(filter(None, (*names, row["key"], row["value"], row["subject"], row["topic"])))


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


def _upto(reader: Reader) -> int | None:
    """The last document of those that are indexed one after the other, `_ALL` for a whole index.

    None where it is to be begun: never made, known to be damaged, or made of other tokens.
    """
    row = reader.one("select value from store_settings where name = ?", (_VERSION,))
    made_of, _, last = ("", "", "") if row is None else row["value"].partition(":")
    if made_of != _MADE_OF:
        return None
    return int(last) if last else _ALL


def _mark(tx: Transaction, made: str) -> None:
    tx.run("insert or replace into store_settings values (?, ?)", (_VERSION, made))


def _check(tx: Transaction) -> None:
    """FTS5's own check of the index against its content; raises when they differ."""
    tx.run("insert into words (words) values ('integrity-check')")


def _embed_all(tx: Transaction) -> None:
    """Have every document looked at again by the embedder, which makes what it lacks."""
    tx.run("delete from embedded")
    tx.run("insert or ignore into unembedded select 2 * id from memories")
    tx.run("insert or ignore into unembedded select 2 * id + 1 from messages where nth is not null")


def _give_up(tx: Transaction) -> None:
    tx.run("delete from store_settings where name = ?", (_VERSION,))


def _make_some(tx: Transaction) -> int:
    """Index the next documents in their order; returns how many there were.

    The change log is left alone: it also names documents that are gone, of which the vectors are to be removed.
    """
    upto = _upto(tx)
    assert upto is not None
    rows = tx.all(
        "select doc from (select 2 * id as doc from memories where id > ? order by id limit ?)"
        " union all select doc from ("
        "   select 2 * id + 1 as doc from messages where id >= ? and nth is not null order by id limit ?)"
        " order by doc limit ?",
        (upto // 2, _STRETCH, (upto + 1) // 2, _STRETCH, _STRETCH),
    )
    for row in rows:
        _index(tx, row["doc"])
    _mark(tx, f"{_MADE_OF}:{rows[-1]['doc'] if rows else upto}")
    return len(rows)


def _percent(reader: Reader) -> int:
    """How far the making of the index has come, by the numbers of documents."""
    row = reader.one("select 2 * max((select ifnull(max(id), 0) from memories), ifnull(max(id), 0)) from messages")
    highest: int = 0 if row is None else row[0]
    return min(100, 100 * (_upto(reader) or 0) // max(highest, 1))


def _end(tx: Transaction) -> None:
    _mark(tx, _MADE_OF)


def _index(tx: Transaction, doc: int) -> None:
    tx.run("delete from words where rowid = ?", (doc,))
    found = text_of(tx, doc)
    vectors.enqueue(tx, doc, found)
    if found is None:
        return
    partitions, text = found
    if not documents.is_message(doc):
        row = tx.one("select kind, key, category from memories where id = ?", (documents.row_id(doc),))
        assert row is not None
        text = f"{text} {cues(row['key'])} {category_cues(row['category']) if row['kind'] == 'fact' else ''}"
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
