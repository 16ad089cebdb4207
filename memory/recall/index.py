"""The word index, derived from memories and messages and fed from the change log, outside canonical transactions.

Invariants: The index is clustered by owner, so a search reads only what the scope may see. Losing or breaking the
index loses nothing: it is rebuilt from the rows, in short transactions, with nobody waiting. Until it is whole,
searches go by substring, because half an index would hide what it does not hold yet. A search feeds the index first if
changes of its scope are left, so it reads its caller's own writes.
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
from memory.loops import reason_of
from memory.recall.cues import CUES_VERSION, category_cues, cues
from memory.recall.rank import Candidate, MessageSpot
from memory.scope import Scope, partitions_of
from memory.store import documents, postings, settings, vectors
from memory.store.database import INDEX, Database, Reader, Row, Transaction
from memory.store.postings import Entry
from memory.store.sqlite import health
from memory.text import words

log = structlog.get_logger(__name__)

#: Documents indexed in one transaction: some 20 ms, for which a turn may have to wait.
_STRETCH: Final = 200
#: While a large index is rebuilt, progress is logged every so many documents.
_REPORTED: Final = 5_000
#: The size of a store from which a start only compares the sums of its index.
_LARGE_BYTES: Final = 64 * 1024 * 1024
#: Seconds for which suspicions are ignored after one that was wrong or could not be mended.
_PAUSE: Final = 60.0
#: Most candidates that are scored. At some 10 µs each, this bounds a search by words, however much was ever said.
MOST_MATCHES: Final = 4_000
#: The version of `text_of`, raised with every change of it.
_TEXT_VERSION: Final = 2
#: The store setting with the versions of the tokens, the cues and the texts that the index is made of. While the index
#: is being made, the last document it holds follows after a colon.
VERSION: Final = "words"
MADE_OF: Final = f"{words.TOKENS_VERSION}.{CUES_VERSION}.{_TEXT_VERSION}"
#: The number of the last document for an index that holds everything.
_ALL: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The documents that hold a term, and for each term the number of documents of the scope in which it occurs."""

    found: list[Candidate]
    frequencies: dict[str, int]


NONE = Matches(found=[], frequencies={})


class Mending:
    """The repair of one store's index. Call `begin` before the first search, and `close` before closing the database.

    An index that is missing, damaged or made with another version's tokens is rebuilt from the rows. The progress is
    committed with the index rows themselves, so the next start resumes where this one ended. Vectors whose pages are
    damaged are dropped, too, and every document is queued to be embedded again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        database.on_index_damage = self.suspect
        self._task: asyncio.Task[None] | None = None
        self._pause_until = 0.0
        #: Held so that no task gives the index up while another rebuilds it.
        self._mending = asyncio.Lock()

    async def begin(self) -> None:
        """Checks the index and brings it up to date. Rebuilds a small index at once, a large one in the background.

        If even that fails, searches go by substring. The start itself never fails because of the index.
        """
        try:
            async with self._mending:
                # Other damage is checked when a search meets it. These tables are read now anyway.
                if await self._database.damaged((*health.WORDS, health.CHANGES)):
                    await self._database.write(_give_up)
                elif await self._is_sound(at_start=True) or await self._make(most=_STRETCH):
                    return
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._mend())
        except StorageError as exc:
            log.error("index.unusable", error=str(exc), instead="substring search")

    def suspect(self) -> None:
        """Starts a check of the index, and its repair if needed, after a search failed on it or found it incomplete."""
        if self._task is not None and not self._task.done():
            return
        if asyncio.get_running_loop().time() >= self._pause_until:
            self._task = asyncio.create_task(self._mend())

    async def done(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _mend(self) -> None:
        try:
            async with self._mending:
                struck = await self._strike()
                if not await self._is_sound():
                    await self._make()
                    return
            if struck:
                return
        # Nobody waits for this task, and the next search that meets the index begins another.
        except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
            log.error("index.unusable", error=reason_of(exc), instead="substring search", again_in_seconds=_PAUSE)
        self._pause_until = asyncio.get_running_loop().time() + _PAUSE

    async def _is_sound(self, *, at_start: bool = False) -> bool:
        """Returns whether the index is whole and up to date. Gives up a damaged index, so that it is begun again."""
        thorough = not at_start or self._database.file_bytes <= _LARGE_BYTES
        try:
            upto = await self._database.read(_upto)
            if upto is None:
                return False
            await self._database.examine(lambda reader: postings.check(reader, thorough=thorough))
            if upto < _ALL:
                return False
            await catch_up(self._database)
        except (StoreUnwritable, StoreDamaged, StoreBusy):
            raise
        except StorageError as exc:
            # Logs the driver's own words: our message would advise replacing the whole file.
            log.warning("index.damaged", error=str(exc.__cause__ or exc), now="making it anew from the rows")
            await self._database.write(_give_up)
            return False
        return True

    async def _make(self, *, most: int | None = None) -> bool:
        """Continues building the index, by `most` documents if given. Returns whether it is whole now."""
        if await self._database.read(_upto) is None:
            await self._strike(health.WORDS)
            await self._database.write(_start_over)
        made = told = 0
        while some := await self._database.write(_make_some):
            made += some
            if most is not None and made >= most:
                return False
            if made - told >= _REPORTED:
                told = made
                log.info("index.progress", made=made, percent=await self._database.read(_percent))
        await catch_up(self._database)
        await self._database.write(lambda tx: settings.put(tx, VERSION, MADE_OF))
        if made:
            log.info("index.made", documents=made)
        return True

    async def _strike(self, looked_at: Collection[str] = health.DERIVED) -> bool:
        """Recreates, empty, the tables whose pages are damaged. Returns whether there were any.

        The tables are not dropped: a drop walks their pages, and a page that points into another table would take that
        table's page along.
        """
        damaged = await self._database.damaged(looked_at)
        if not damaged:
            return False
        log.warning("index.damaged", tables=damaged, now="making them anew from the rows")
        struck = set(damaged)
        if struck & set(health.WORDS):
            struck |= set(health.WORDS)
        if health.CHANGES in struck:
            # The documents it named may be gone, and their words and vectors must not stay.
            struck |= set(health.DERIVED)
        if struck & set(health.WORDS):
            await self._database.write(_give_up)
        await self._database.strike(struck)
        if struck & set(health.MEANINGS):
            await self._database.write(vectors.embed_all)
        return True


def is_whole(reader: Reader) -> bool:
    return _upto(reader) == _ALL


async def catch_up(database: Database) -> None:
    """Brings the index up to the last committed change, in short transactions."""
    while await database.read(documents.has_changes):
        await database.write(catch_up_some, keys=[INDEX], durable=False)


def catch_up_some(tx: Transaction) -> None:
    changes = documents.take_changes(tx, limit=_STRETCH)
    if not all(isinstance(row["doc"], int) for row in changes):
        raise IndexDamaged("The log of changes is damaged. Nothing is lost: the index is rebuilt.")
    if changes:
        _index(tx, {row["doc"] for row in changes})


async def keep_up(database: Database) -> None:
    """Brings the index up to date after a change, if possible. If not, the next search notices."""
    try:
        await catch_up(database)
    except StorageError as exc:
        log.warning("index.behind", error=str(exc))


def match(reader: Reader, scope: Scope, terms: Sequence[str]) -> Matches:
    """Returns the documents of the scope that hold one of the terms.

    The cost grows with the documents of the scope, not with the table. If more than `MOST_MATCHES` documents match,
    terms are taken from the rarest on until enough documents hold one of them.
    """
    found = _holding(reader, scope, terms, limit=MOST_MATCHES + 1)
    if len(found) <= MOST_MATCHES:
        return Matches(found=found, frequencies={term: sum(term in one.counts for one in found) for term in terms})
    frequencies = postings.frequencies(reader, scope, terms)
    rare: list[str] = []
    reached = 0
    for term in sorted(terms, key=lambda term: frequencies[term]):
        if rare and reached + frequencies[term] > MOST_MATCHES:
            break
        rare.append(term)
        reached += frequencies[term]
    return Matches(found=_holding(reader, scope, rare, limit=MOST_MATCHES), frequencies=frequencies)


def text_of(reader: Reader, doc: int) -> tuple[tuple[int, ...], str] | None:
    """Returns the partitions of a document and the words by which it is found, or None if it must not be found."""
    for row in documents.standing(reader, [doc]):
        found = _found(row)
        return None if found is None else (found.partitions, found.text)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A document to be found: its partitions, its words, and the words with which people ask for its key."""

    partitions: tuple[int, ...]
    text: str
    cues: str = ""


def _found(row: Row) -> _Found | None:
    """Returns a document of `documents.standing`, if it is to be found.

    If several people talk, a message is indexed with its speaker's name, as a reader sees it. A question that names a
    person then finds messages by them before messages to them. A memory is indexed with the name of its author and the
    name of the person it is about.
    """
    if row["owner_id"] is None:
        return None
    if documents.is_message(row["doc"]):
        named = row["kind"] != "identity" and row["author_name"]
        text = f"{row['author_name']}: {row['text']}" if named else row["text"]
        return _Found(partitions=(row["owner_id"],), text=text)
    names = () if row["kind"] == "identity" else dict.fromkeys((row["author"], row["person"]))
    return _Found(
        partitions=partitions_of(owner_id=row["owner_id"], author_id=row["author_id"], subject_id=row["subject_id"]),
        text=" ".join(filter(None, (*names, row["key"], row["value"], row["subject"], row["topic"]))),
        cues=f" {cues(row['key'])} {category_cues(row['category']) if row['tier'] == 'fact' else ''}",
    )


def _holding(reader: Reader, scope: Scope, terms: Sequence[str], *, limit: int) -> list[Candidate]:
    found = [_matched(row) for row in postings.matching(reader, scope, terms, limit=limit)]
    return sorted(found, key=lambda one: one.doc)


def _upto(reader: Reader) -> int | None:
    """Returns the last document that the build of the index has reached, or `_ALL` for a whole index.

    Returns None if the index is to be begun: never made, known to be damaged, or made of other tokens.
    """
    made_of, _, last = (settings.value(reader, VERSION) or "").partition(":")
    if made_of != MADE_OF:
        return None
    return int(last) if last else _ALL


def _give_up(tx: Transaction) -> None:
    settings.drop(tx, VERSION)


def _start_over(tx: Transaction) -> None:
    postings.create(tx)
    settings.put(tx, VERSION, f"{MADE_OF}:0")


def _make_some(tx: Transaction) -> int:
    """Indexes the next documents in their order. Returns their number.

    The change log is left alone: it also names deleted documents, whose vectors are still to be removed.
    """
    upto = _upto(tx)
    assert upto is not None
    docs = documents.after(tx, upto, limit=_STRETCH)
    _index(tx, docs)
    settings.put(tx, VERSION, f"{MADE_OF}:{docs[-1] if docs else upto}")
    return len(docs)


def _percent(reader: Reader) -> int:
    return min(100, 100 * (_upto(reader) or 0) // max(documents.highest(reader), 1))


def _index(tx: Transaction, docs: Collection[int]) -> None:
    rows = documents.standing(tx, docs)
    postings.remove(tx, [row for row in rows if row["has_words"]])
    found = {row["doc"]: one for row in rows if (one := _found(row)) is not None}
    vectors.enqueue(
        tx,
        {doc: (found[doc].partitions, found[doc].text) if doc in found else None for doc in sorted(docs)},
        {row["doc"]: row["hash"] for row in rows if row["hash"] is not None},
    )
    postings.put(
        tx,
        [
            Entry(doc=doc, partitions=one.partitions, tokens=words.tokens(f"{one.text}{one.cues}"))
            for doc, one in sorted(found.items())
        ],
    )


def _matched(row: Row) -> Candidate:
    tokens = postings.tokens_of(row)
    return Candidate(
        doc=row["doc"],
        counts=Counter(tokens),
        length=float(len(tokens)),
        spot=None if row["session_id"] is None else _spot(row),
        about=row["about"],
        name=row["name"],
        at=row["at"],
    )


def said(row: Row) -> Candidate:
    """Converts a row of `passages.standing` to a candidate that shares no word with the question."""
    return Candidate(
        doc=documents.of_message(row["id"]),
        counts={},
        length=float(row["tokens"]),
        spot=_spot(row),
        about=row["author_id"],
        name=row["name"],
        at=row["said_at"],
    )


def _spot(row: Row) -> MessageSpot:
    asks = row["ending"].endswith(("?", "？"))
    return MessageSpot(row["session_id"], row["sitting"], row["nth"], row["role"] == "assistant", asks)
