"""Embeds changed documents in the background, and questions as they come.

Invariants: No model runs inside a transaction. Vectors are committed only if the text they were made of is unchanged. A
failing embedder or store holds up nobody: waiting documents are retried later, and searches go on by words alone. After
`close` no task, thread or request is left.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from memory.errors import meets_everybody
from memory.loops import Loops, reason_of
from memory.recall.embed import (
    Embedder,
    EmbedderUnavailable,
    EmbeddingFailed,
    TextRefused,
    TokenEmbedder,
    Tokens,
    sign_bits,
)
from memory.store import vectors
from memory.store.database import INDEX, Database, Reader, Transaction
from memory.store.vectors import Found, Vectors

log = structlog.get_logger(__name__)

#: Documents embedded and committed at once: less than half a second of work.
_BATCH = 16
_BATCH_CHARS = 16_000
#: Seconds for which a question stays embedded: one turn needs its vector more than once.
_QUESTION_SECONDS = 10.0
#: Seconds before the next attempt after a failure, doubled each time up to the longest wait.
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 600.0
#: Progress on a longer backlog than this is logged every so many documents.
_REPORTED = 500
#: Seconds between two looks for documents that other processes on the store have queued.
_LOOKS: Final = 5.0
#: The name under which failing documents are reported.
_LOOP: Final = "embedding"
#: Tries after which documents that fail together are tried one by one: until then the embedder may be away.
_TOGETHER: Final = 5
#: Most tokens of a document whose bits are kept: 24 kB at 384 dimensions.
_MOST_TOKENS = 512
#: The number of pieces of a text that hold so many tokens.
_MOST_PIECES = 4
#: The mean of a model's vectors for these lines serves as the centre of all its vectors. For 5,195 messages the ten
#: nearest are among the hundred nearest by signs in .89 of cases, without the centre in .46
#: (docs/design/benchmarks.md). A changed line makes it necessary to make everybody's vectors again (by a migration that
#: drops the setting "vectors").
ORDINARY: Final = (
    "I went to the market this morning and bought some apples.",
    "The meeting has been moved to Thursday at three.",
    "Thanks, that helps a lot!",
    "What do you think about the new plan?",
    "Can you remind me to call the bank tomorrow?",
    "The build fails with an error in the second test.",
    "likes coffee",
    "Our dog is afraid of thunder.",
    "小王：我今天早上去了市场，买了一些苹果。",
    "会议改到星期四下午三点。",
    "你觉得这个新计划怎么样？",
    "他在学弹吉他。",
    "Gestern waren wir im Park, es hat geregnet.",
    "Mi hermano vive en Madrid y trabaja en un banco.",
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedders:
    """The functions that open the embedders of texts and tokens.

    The vectors of `paid` embedders are cached for 30 days. Loading begins after `delay` seconds, so that it does not
    slow down requests right after the start.
    """

    vectors: Callable[[], Awaitable[Embedder]]
    tokens: Callable[[], Awaitable[TokenEmbedder]] | None = None
    paid: bool = False
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedQuestion:
    """An embedded question. `tokens` is None if there is no token embedder that suits the question.

    `usual` is its highest cosine with one of the `ORDINARY` lines: nearer than that is nearer than by chance.
    """

    vector: NDArray[np.float32]
    tokens: Tokens | None
    usual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingProgress:
    """The progress of embedding: documents `done`, out of a `total`. `model` is empty until the embedder serves.

    `refused` counts the done documents that the model can't read; these were never embedded, and words alone find them.
    `trouble` says why memory is searched by words alone at the moment; it is empty otherwise.
    """

    model: str
    done: int
    total: int
    refused: int = 0
    trouble: str = ""


class Embedding:
    """The embedders of one store. Call `start` after the word index is prepared, and `close` before the database.

    `text_of` returns a document's partitions and text. `now` returns milliseconds UTC. `sleep` takes seconds.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedders: Embedders,
        text_of: Callable[[Reader, int], Found],
        now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        loops: Loops | None = None,
    ) -> None:
        self._database = database
        self._loops = loops or Loops(now=now)
        self._turned = 0
        self._embedders = embedders
        self._text_of = text_of
        self._now = now
        self._sleep = sleep
        self._embedder: Embedder | None = None
        self._tokens: TokenEmbedder | None = None
        self._vectors: Vectors | None = None
        self._ordinary = np.zeros((1, 1), dtype=np.float32)
        self._trouble = ""
        self._questions: dict[int, EmbeddedQuestion] = {}
        # The tokens of the same questions by their words. A message is indexed soon after it was asked.
        self._tokens_of: dict[int, Tokens] = {}
        self._awake = asyncio.Event()
        self._opened = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._on_duty = False

    @property
    def vectors(self) -> Vectors | None:
        return self._vectors

    @property
    def model(self) -> str:
        """The name of the embedder that serves; empty until one does."""
        return "" if self._embedder is None or self._vectors is None else self._embedder.name

    @property
    def trouble(self) -> str:
        """The reason why memory is searched by words alone at the moment, for the operator; empty otherwise."""
        return self._trouble

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Wakes the worker: the word index has just taken in changes, so documents may wait."""
        self._awake.set()

    async def opened(self) -> bool:
        await self._until(self._opened)
        return self._vectors is not None

    async def idle(self) -> None:
        """Waits until no document is left to be embedded, or the embedder has failed to open."""
        while self._opened.is_set() and not self._on_duty:  # another process does the work
            if not await self._database.read(vectors.count_waiting):
                return
            await self._sleep(_LOOKS)
        self._idle.clear()
        self.wake()
        await self._until(self._idle)

    async def question(self, text: str) -> EmbeddedQuestion | None:
        """Returns `text` embedded for a search, or None if there is no embedder (yet) or it fails.

        The caller limits the time.
        """
        if self._embedder is None or self._vectors is None or not text.strip():
            return None
        suited = self._tokens if self._tokens is not None and self._tokens.suits(text) else None
        key = hash((text, suited is None))
        if (known := self._questions.get(key)) is not None:
            return known
        try:
            vectors_made, tokens_made = await asyncio.gather(
                self._embedder.embed([text], query=True),
                suited.tokens([text], query=True) if suited is not None else asyncio.sleep(0, []),
            )
        except TextRefused as exc:
            log.warning("embedding.question_refused", error=str(exc), instead="words only")
            return None
        except EmbeddingFailed as exc:
            if not self._trouble:
                log.warning("embedding.question_failed", error=str(exc), instead="words only")
            self._trouble = str(exc)
            return None
        self._trouble = ""
        vector = vectors_made[0]
        made = EmbeddedQuestion(
            vector=vector, tokens=tokens_made[0] if tokens_made else None, usual=float((self._ordinary @ vector).max())
        )
        self._questions[key] = made
        later = asyncio.get_running_loop().call_later
        later(_QUESTION_SECONDS, self._questions.pop, key, None)
        if made.tokens is not None:
            self._tokens_of[hash(text.strip())] = made.tokens
            later(_QUESTION_SECONDS, self._tokens_of.pop, hash(text.strip()), None)
        return made

    async def progress(self) -> EmbeddingProgress:
        def act(reader: Reader) -> tuple[int, int, int]:
            return vectors.count_embedded(reader), vectors.count_waiting(reader), vectors.count_refused(reader)

        done, left, refused = await self._database.read(act)
        return EmbeddingProgress(
            model="" if self._embedder is None else self._embedder.name,
            done=done,
            total=done + left,
            refused=refused,
            trouble=self._trouble,
        )

    async def close(self) -> None:
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
        if self._task is None:
            return
        waiting = asyncio.create_task(event.wait())
        try:
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    async def _run(self) -> None:
        if self._embedders.delay:
            await self._sleep(self._embedders.delay)
        try:
            await self._patiently(self._begin)
        except EmbedderUnavailable as exc:
            log.warning("embedding.unavailable", reason=str(exc))
            self._trouble = str(exc)
            return
        self._opened.set()
        async with self._loops.by_one(_LOOP):
            self._on_duty = True
            await self._work_off()

    async def _work_off(self) -> None:
        reported = 0
        while True:
            # Cleared before the queue is read: documents that come later set it again.
            self._awake.clear()
            done = await self._patiently(self._work_off_some)
            reported = await self._report(reported + done) if done else 0
            if not done:
                if not self._awake.is_set():
                    self._idle.set()
                with suppress(TimeoutError):
                    # Documents that other processes have queued wake nobody here.
                    seconds = _LOOKS if self._loops.is_shared or self._loops.put_off(_LOOP) else None
                    await asyncio.wait_for(self._awake.wait(), seconds)

    async def _patiently(self, act: Callable[[], Awaitable[T]]) -> T:
        """Retries `act` until it succeeds, waiting longer and longer between attempts."""
        wait = _FIRST_WAIT
        while True:
            try:
                done = await act()
                self._trouble = ""
                return done
            except EmbedderUnavailable:
                raise
            # The worker must outlive any fault: nothing else begins it again.
            except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
                asked = exc.retry_after if isinstance(exc, EmbeddingFailed) else None
                pause = max(wait, asked or 0.0)
                self._trouble = str(exc) if isinstance(exc, EmbeddingFailed) else reason_of(exc)
                log.warning("embedding.failed", error=self._trouble, again_in_seconds=pause, instead="words only")
                await self._sleep(pause)
                wait = min(2 * wait, _LONGEST_WAIT)

    async def _begin(self) -> None:
        if self._database.without_vectors:
            raise EmbedderUnavailable(self._database.without_vectors)
        self._embedder = self._embedder or await self._embedders.vectors()
        self._tokens = self._tokens or await self._opened_tokens()
        self._ordinary = ordinary = await self._embedder.embed(ORDINARY, query=False)
        made = Vectors(
            model=self._embedder.name,
            centre=ordinary.mean(axis=0),
            token_model=None if self._tokens is None else self._tokens.name,
            token_dimension=0 if self._tokens is None else self._tokens.dimension,
        )

        def act(tx: Transaction) -> tuple[bool, int]:
            vectors.evict(tx, now=self._now())
            return made.prepare(tx), vectors.count_waiting(tx)

        anew, left = await self._database.write(act)
        log.info("embedding.ready", model=self._embedder.name, waiting=left, anew=anew)
        self._vectors = made

    async def _opened_tokens(self) -> TokenEmbedder | None:
        if self._embedders.tokens is None:
            return None
        try:
            return await self._embedders.tokens()
        except EmbedderUnavailable as exc:
            log.warning("embedding.no_tokens", reason=str(exc))
            return None

    async def _report(self, done: int) -> int:
        """Logs the progress of a long backlog. Returns the number of documents done since the last report."""
        if done < _REPORTED:
            return done
        progress = await self._patiently(self.progress)
        log.info("embedding.progress", done=progress.done, total=progress.total)
        return 0

    async def _work_off_some(self) -> int:
        looked_at, jobs = await self._database.read(self._look)
        without_text = looked_at - {job.doc for job in jobs}
        if without_text:
            await self._database.write(lambda tx: self._look_again(tx, without_text))
        if jobs:
            await self._embed_apart(jobs)
        return len(looked_at)

    async def _embed_apart(self, jobs: Sequence[_Job]) -> None:
        """Embeds documents. If they can't be embedded together for long, those that fail alone are put off.

        If the first two fail, the embedder is taken to be away, and the error is raised. The next try begins with
        others.
        """
        try:
            await self._embed(jobs)
        except Exception as exc:
            self._turned += 1
            if self._turned < _TOGETHER or meets_everybody(exc):
                raise
            if len(jobs) == 1:
                unit = _unit(jobs[0].doc)
                if not any(one.unit == unit for one in self._loops.put_off(_LOOP)):
                    raise
                self._loops.fail(_LOOP, unit, exc)
                return
        else:
            self._turned = 0
            self._loops.worked(_LOOP)
            return
        start = self._turned % len(jobs)
        done, failed = 0, list[tuple[int, Exception]]()
        for job in (*jobs[start:], *jobs[:start]):
            try:
                await self._embed([job])
                self._loops.worked(_LOOP)
                done += 1
            except Exception as exc:
                failed.append((job.doc, exc))
                if meets_everybody(exc) or (not done and len(failed) == 2):
                    raise
        for doc, error in failed:
            self._loops.fail(_LOOP, _unit(doc), error)

    def _look(self, reader: Reader) -> tuple[set[int], list[_Job]]:
        looked_at: set[int] = set()
        jobs: list[_Job] = []
        room = _BATCH_CHARS
        waiting = vectors.waiting(reader, limit=_BATCH + len(self._loops.put_off(_LOOP)))
        for doc in [one for one in waiting if not self._loops.wait(_LOOP, _unit(one))][:_BATCH]:
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
        found = {doc: self._text_of(tx, doc) for doc in docs}
        vectors.enqueue(tx, found, vectors.hashes(tx, found))

    async def _embed(self, jobs: Sequence[_Job]) -> None:
        """Embeds documents and stores the results.

        If a text among several is refused, each document is embedded separately. A document that is refused alone is
        left to the word index.
        """
        try:
            made = list(zip(await self._vectors_of(jobs), await self._bits_of(jobs), strict=True))
        except TextRefused as exc:
            if len(jobs) > 1:
                for job in jobs:
                    await self._embed([job])
                return
            log.warning("embedding.refused", doc=jobs[0].doc, error=str(exc), instead="words only")
            made = [(_Rows(refused=True), None)]

        served = self._vectors  # closing sets it to None, perhaps before the transaction runs
        assert served is not None

        def act(tx: Transaction) -> None:
            for job, (rows, bits) in zip(jobs, made, strict=True):
                # A document that has changed or is gone meanwhile stays in the queue and is looked at again.
                if self._text_of(tx, job.doc) == job.found:
                    served.store(tx, job.doc, job.found, rows.vectors, bits, refused=rows.refused)
                    vectors.cache(tx, job.doc, rows.paid, now=self._now())

        await self._database.write(act, keys=[INDEX], durable=False)

    async def _vectors_of(self, jobs: Sequence[_Job]) -> list[_Rows]:
        """Returns the vectors of each text, one for each piece. Equal pieces are embedded once."""
        assert self._embedder is not None
        pieces = await _split(self._embedder, [job.found[1] if job.lacks_vectors else "" for job in jobs])
        hashes = {piece: _hash(self._embedder.name, piece) for some in pieces for piece in some}
        known: dict[bytes, NDArray[np.float32]] = {}
        if self._embedders.paid:
            known = await self._database.read(lambda reader: vectors.cached(reader, list(hashes.values())))
        missing = [piece for piece, hashed in hashes.items() if hashed not in known]
        paid: dict[bytes, NDArray[np.float32]] = {}
        if missing:
            rows = await self._embedder.embed(missing, query=False)
            paid = {hashes[piece]: row for piece, row in zip(missing, rows, strict=True)}
        rows_of = known | paid
        kept = paid if self._embedders.paid else {}
        return [
            _Rows(
                vectors=np.stack([rows_of[hashes[piece]] for piece in some]) if some else None,
                paid={hashes[piece]: kept[hashes[piece]] for piece in some if hashes[piece] in kept},
            )
            for some in pieces
        ]

    async def _bits_of(self, jobs: Sequence[_Job]) -> list[NDArray[np.uint8] | None]:
        """Returns the sign bits of each text's tokens, without stop tokens.

        An item is None if the document has its bits already, or if the text does not suit the token embedder.
        """
        if self._tokens is None:
            return [None] * len(jobs)
        tokens = self._tokens
        suited = [job.found[1] if job.lacks_bits and tokens.suits(job.found[1]) else "" for job in jobs]
        pieces = [some[:_MOST_PIECES] for some in await _split(tokens, suited)]
        distinct = dict.fromkeys(piece for some in pieces for piece in some)
        # A text has the same tokens as a question and as a document.
        made = {piece: known for piece in distinct if (known := self._tokens_of.get(hash(piece))) is not None}
        missing = [piece for piece in distinct if piece not in made]
        made |= zip(missing, await tokens.tokens(missing, query=False) if missing else [], strict=True)
        bits = {piece: sign_bits(one.vectors[~np.array(one.stop, dtype=bool)]) for piece, one in made.items()}
        return [np.concatenate([bits[piece] for piece in some])[:_MOST_TOKENS] if some else None for some in pieces]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A document to be embedded: its partitions and text, and whether it lacks vectors or token bits."""

    doc: int
    found: tuple[tuple[int, ...], str]
    lacks_vectors: bool
    lacks_bits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The vectors of one document (None if nothing is to change), and the `paid` vectors to be cached, by hash.

    `refused` is True if the model can't read the document's text.
    """

    vectors: NDArray[np.float32] | None = None
    refused: bool = False
    paid: Mapping[bytes, NDArray[np.float32]] = field(default_factory=dict)


async def _split(model: Embedder | TokenEmbedder, texts: Sequence[str]) -> list[list[str]]:
    asked = iter(await model.split([text for text in texts if text]))
    return [next(asked) if text else [] for text in texts]


def _hash(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode(errors="surrogatepass")).digest()


def _unit(doc: int) -> str:
    return f"document {doc}"
