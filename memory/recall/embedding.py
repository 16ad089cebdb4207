"""Embeds what changed, in the background, and questions when they come.

Invariants: no model runs inside a transaction; vectors are committed only while the text they were made of still
stands; a failing embedder or store holds up nobody: what waits is tried again later, and words go on alone; after
`close` no task, thread or request is left.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from memory.errors import StorageError
from memory.recall import vectors
from memory.recall.embed import (
    Embedder,
    EmbedderUnavailable,
    EmbeddingFailed,
    TextRefused,
    TokenEmbedder,
    Tokens,
    sign_bits,
)
from memory.recall.vectors import Found, Vectors
from memory.store.database import Database, Reader, Transaction

log = structlog.get_logger(__name__)

#: Documents embedded and committed at once: less than half a second of work.
_BATCH = 16
_BATCH_CHARS = 16_000
#: Seconds before the next try after a failure, doubled each time.
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 600.0
#: A backlog longer than this is reported as it is worked off, every so many documents.
_REPORTED = 500
#: Token bits kept of one document: 24 kB at 384 dimensions.
_MOST_TOKENS = 512
#: Pieces of a text that hold so many.
_MOST_PIECES = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as the embedders see it. `tokens` is None where there is no token embedder that suits it."""

    vector: NDArray[np.float32]
    tokens: Tokens | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Documents that are embedded, and all that are to be. `model` is empty until the embedder serves."""

    model: str
    done: int
    total: int


class Embedding:
    """The embedders of one store. `start` it after the word index is prepared; `close` it before the database.

    `embedder` and `token_embedder` open one each; `text_of` gives a document's partitions and text. With `cached` what
    documents cost is kept for 30 days, for embedders that are paid for. Loading begins after `delay` seconds, so that
    what is asked right at the start is not slowed down by it. `now` is milliseconds UTC; `sleep` waits for seconds.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedder: Callable[[], Awaitable[Embedder]],
        token_embedder: Callable[[], Awaitable[TokenEmbedder]] | None,
        text_of: Callable[[Reader, int], Found],
        now: Callable[[], int],
        cached: bool = False,
        delay: float = 0.0,
        memory: int = vectors.MEMORY,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._database = database
        self._open = embedder
        self._open_tokens = token_embedder
        self._text_of = text_of
        self._now = now
        self._cached = cached
        self._delay = delay
        self._memory = memory
        self._sleep = sleep
        self._embedder: Embedder | None = None
        self._tokens: TokenEmbedder | None = None
        self._vectors: Vectors | None = None
        self._awake = asyncio.Event()
        self._opened = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def vectors(self) -> Vectors | None:
        """Where to search; None until the embedder serves, and where it can't."""
        return self._vectors

    def start(self) -> None:
        """Open the embedders and work off what waits, in the background."""
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Something may wait: the word index has just taken in changes."""
        self._awake.set()

    async def opened(self) -> bool:
        """Wait until the embedder serves or has turned out not to; whether it does."""
        await self._until(self._opened)
        return self._vectors is not None

    async def idle(self) -> None:
        """Wait until nothing waits to be embedded, or the embedder has turned out not to serve."""
        self._idle.clear()
        self.wake()
        await self._until(self._idle)

    async def question(self, text: str) -> Question | None:
        """`text` for a search; None where there is no embedder (yet) or it fails. The caller bounds the time."""
        if self._embedder is None or not text.strip():
            return None
        suited = self._tokens if self._tokens is not None and self._tokens.suits(text) else None
        try:
            vectors_made, tokens_made = await asyncio.gather(
                self._embedder.embed([text], query=True),
                suited.tokens([text], query=True) if suited is not None else _nothing(),
            )
        except EmbeddingFailed as exc:
            log.warning("embedding.question_failed", error=str(exc), instead="words only")
            return None
        return Question(vector=vectors_made[0], tokens=tokens_made[0] if tokens_made else None)

    async def progress(self) -> Progress:
        def act(reader: Reader) -> tuple[int, int]:
            return vectors.count_embedded(reader), vectors.count_waiting(reader)

        done, left = await self._database.read(act)
        return Progress(model="" if self._embedder is None else self._embedder.name, done=done, total=done + left)

    async def close(self) -> None:
        """Stop at once; what is under way stays in the queue."""
        try:
            if self._task is not None:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task
        finally:
            open_ones = [one for one in (self._embedder, self._tokens) if one is not None]
            self._vectors = self._embedder = self._tokens = None
            for one in open_ones:
                await one.aclose()

    async def _until(self, event: asyncio.Event) -> None:
        """Wait for the event or for the end of the worker, which then will never set it."""
        if self._task is None:
            return
        waiting = asyncio.create_task(event.wait())
        try:
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    async def _run(self) -> None:
        if self._delay:
            await self._sleep(self._delay)
        try:
            await self._patiently(self._begin)
        except EmbedderUnavailable as exc:
            log.warning("embedding.unavailable", reason=str(exc))
            return
        self._opened.set()
        reported = 0
        while True:
            # Cleared before the queue is looked at: what comes later wakes again.
            self._awake.clear()
            done = await self._patiently(self._work_off_some)
            reported = await self._report(reported + done) if done else 0
            if not done:
                if not self._awake.is_set():
                    self._idle.set()
                await self._awake.wait()

    async def _patiently(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do `act` until it works, waiting longer and longer between tries."""
        wait = _FIRST_WAIT
        while True:
            try:
                return await act()
            except (EmbeddingFailed, StorageError) as exc:
                asked = exc.retry_after if isinstance(exc, EmbeddingFailed) else None
                pause = max(wait, asked or 0.0)
                log.warning("embedding.failed", error=str(exc), again_in_seconds=pause, instead="words only")
                await self._sleep(pause)
                wait = min(2 * wait, _LONGEST_WAIT)

    async def _begin(self) -> None:
        self._embedder = self._embedder or await self._open()
        self._tokens = self._tokens or await self._opened_tokens()
        made = Vectors(
            model=self._embedder.name,
            dimension=self._embedder.dimension,
            token_model=None if self._tokens is None else self._tokens.name,
            token_dimension=0 if self._tokens is None else self._tokens.dimension,
            memory=self._memory,
        )

        def act(tx: Transaction) -> tuple[bool, int]:
            vectors.evict(tx, now=self._now())
            return made.prepare(tx), vectors.count_waiting(tx)

        anew, left = await self._database.write(act)
        log.info("embedding.ready", model=self._embedder.name, waiting=left, anew=anew)
        self._vectors = made

    async def _opened_tokens(self) -> TokenEmbedder | None:
        if self._open_tokens is None:
            return None
        try:
            return await self._open_tokens()
        except EmbedderUnavailable as exc:
            log.warning("embedding.no_tokens", reason=str(exc))
            return None

    async def _report(self, done: int) -> int:
        """Tell how a long backlog goes; returns what is done since the last time it was told."""
        if done < _REPORTED:
            return done
        progress = await self._patiently(self.progress)
        log.info("embedding.progress", done=progress.done, total=progress.total)
        return 0

    async def _work_off_some(self) -> int:
        """Embed the newest documents that wait; returns how many were looked at."""
        looked_at, jobs = await self._database.read(self._look)
        without_text = looked_at - {job.doc for job in jobs}
        if without_text:
            await self._database.write(lambda tx: self._look_again(tx, without_text))
        if jobs:
            await self._embed(jobs)
        return len(looked_at)

    def _look(self, reader: Reader) -> tuple[set[int], list[_Job]]:
        """The newest documents that wait, and what is to be done for those that have a text."""
        looked_at: set[int] = set()
        jobs: list[_Job] = []
        room = _BATCH_CHARS
        for doc in vectors.waiting(reader, limit=_BATCH):
            found = self._text_of(reader, doc)
            if found is not None and found[1].strip():
                room -= len(found[1])
                if room < 0 and jobs:
                    break
                lacks_vectors, lacks_bits = vectors.lacks(reader, doc)
                jobs.append(_Job(doc=doc, found=found, lacks_vectors=lacks_vectors, lacks_bits=lacks_bits))
            looked_at.add(doc)
        return looked_at, jobs

    def _look_again(self, tx: Transaction, docs: Iterable[int]) -> None:
        for doc in docs:
            vectors.enqueue(tx, doc, self._text_of(tx, doc))

    async def _embed(self, jobs: Sequence[_Job]) -> None:
        """Embed and keep. Where a text among many is refused, each goes on its own; alone it is left to words."""
        try:
            made = list(zip(await self._vectors_of(jobs), await self._bits_of(jobs), strict=True))
        except TextRefused as exc:
            if len(jobs) > 1:
                for job in jobs:
                    await self._embed([job])
                return
            log.warning("embedding.refused", doc=jobs[0].doc, error=str(exc), instead="words only")
            made = [(_Rows(), None)]

        def act(tx: Transaction) -> None:
            assert self._vectors is not None
            for job, (rows, bits) in zip(jobs, made, strict=True):
                # What has changed or is gone meanwhile stays in the queue and is looked at again.
                if self._text_of(tx, job.doc) == job.found:
                    self._vectors.store(tx, job.doc, job.found, rows.vectors, bits)
                    vectors.cache(tx, job.doc, rows.paid, now=self._now())

        await self._database.write(act)

    async def _vectors_of(self, jobs: Sequence[_Job]) -> list[_Rows]:
        """A row for each piece of each text, equal pieces embedded once."""
        assert self._embedder is not None
        split = self._embedder.split
        pieces = [await asyncio.to_thread(split, job.found[1]) if job.lacks_vectors else [] for job in jobs]
        hashes = {piece: _hash(self._embedder.name, piece) for some in pieces for piece in some}
        known: dict[bytes, NDArray[np.float32]] = {}
        if self._cached:
            known = await self._database.read(lambda reader: vectors.cached(reader, list(hashes.values())))
        missing = [piece for piece, hashed in hashes.items() if hashed not in known]
        paid: dict[bytes, NDArray[np.float32]] = {}
        if missing:
            rows = await self._embedder.embed(missing, query=False)
            paid = {hashes[piece]: row for piece, row in zip(missing, rows, strict=True)}
        rows_of = known | paid
        return [
            _Rows(
                vectors=np.stack([rows_of[hashes[piece]] for piece in some]) if some else None,
                paid={hashes[piece]: paid[hashes[piece]] for piece in some if self._cached and hashes[piece] in paid},
            )
            for some in pieces
        ]

    async def _bits_of(self, jobs: Sequence[_Job]) -> list[NDArray[np.uint8] | None]:
        """The sign bits of each text's tokens, stop tokens left out; None where they are there or it does not suit."""
        if self._tokens is None:
            return [None] * len(jobs)
        tokens = self._tokens
        pieces = [
            (await asyncio.to_thread(tokens.split, job.found[1]))[:_MOST_PIECES]
            if job.lacks_bits and tokens.suits(job.found[1])
            else []
            for job in jobs
        ]
        distinct = list(dict.fromkeys(piece for some in pieces for piece in some))
        made = dict(zip(distinct, await tokens.tokens(distinct, query=False) if distinct else [], strict=True))
        return [
            np.concatenate([_meaningful(made[piece]) for piece in some])[:_MOST_TOKENS] if some else None
            for some in pieces
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A document to be embedded: what was found of it, and what of it is missing."""

    doc: int
    found: tuple[tuple[int, ...], str]
    lacks_vectors: bool
    lacks_bits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The vectors of one document, None where nothing is to change, and those to be cached, by hash."""

    vectors: NDArray[np.float32] | None = None
    paid: Mapping[bytes, NDArray[np.float32]] = field(default_factory=dict)


async def _nothing() -> list[Tokens]:
    return []


def _meaningful(tokens: Tokens) -> NDArray[np.uint8]:
    return sign_bits(tokens.vectors[~np.array(tokens.stop, dtype=bool)])


def _hash(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode(errors="surrogatepass")).digest()
