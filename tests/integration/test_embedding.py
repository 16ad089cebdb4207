"""The background worker: what changed gets its vectors, whatever fails on the way."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from structlog.testing import capture_logs

from memory.recall.embed import EmbedderUnavailable, EmbeddingFailed, TextRefused, Tokens, chunks, normalised
from memory.recall.embedding import ORDINARY, Embedders, Embedding
from memory.store import vectors
from memory.store.database import Database, Reader, Transaction
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.database import SqliteDatabase
from memory.store.vectors import Found
from tests.kit.fakes import Clock
from tests.kit.patience import until

DIMENSION = 64
NOW = 1_000


class Letters:
    """An embedder of this test: texts with the same words get like vectors. `fails` are raised first, one a call."""

    def __init__(self, *fails: Exception, name: str = "letters", refuses: str = "") -> None:
        self.name = name
        self.dimension = DIMENSION
        self.embedded: list[str] = []
        self.read: list[str] = []
        self.fails = list(fails)
        self.refuses = refuses
        self.closed = False
        self.gate: asyncio.Event | None = None
        self.at_gate = asyncio.Event()

    def suits(self, text: str) -> bool:
        return text.isascii()

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [chunks(text) for text in texts]

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        if texts == ORDINARY:
            return normalised(np.stack([self._of(text.split()) for text in texts]))
        if self.fails:
            raise self.fails.pop(0)
        if self.refuses and any(self.refuses in text for text in texts):
            raise TextRefused("too strange")
        if self.gate is not None and not query:
            self.at_gate.set()
            await self.gate.wait()
        if not query:
            self.embedded += texts
        return normalised(np.stack([self._of(text.lower().split()) for text in texts]))

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        self.read += texts
        return [
            Tokens(
                words=tuple(text.lower().split()),
                vectors=normalised(np.stack([self._of([word]) for word in text.lower().split()])),
                stop=tuple(word == "the" for word in text.lower().split()),
            )
            for text in texts
        ]

    async def aclose(self) -> None:
        self.closed = True

    def _of(self, words: Sequence[str]) -> NDArray[np.float32]:
        return sum(
            (
                np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSION).astype(np.float32)
                for word in words
            ),
            np.zeros(DIMENSION, dtype=np.float32),
        )


class Texts:
    """The documents of this test: partition and text by number, kept in a table like any canonical row."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, doc: int, text: str | None, *, partition: int = 1) -> None:
        """Write, change or remove a document, as a turn and the indexer of words do."""

        def act(tx: Transaction) -> None:
            tx.run("create table if not exists texts (doc integer primary key, partition integer, text text)")
            tx.run("delete from texts where doc = ?", (doc,))
            if text is not None:
                tx.run("insert into texts values (?, ?, ?)", (doc, partition, text))
            vectors.enqueue(tx, {doc: self.of(tx, doc)}, vectors.hashes(tx, [doc]))

        await self._database.write(act)

    def of(self, reader: Reader, doc: int) -> Found:
        row = reader.one("select partition, text from texts where doc = ?", (doc,))
        return None if row is None else ((row["partition"],), row["text"])


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await SqliteDatabase.open(tmp_path / "remora.db", now=1)
    yield opened
    await opened.close()


@pytest.fixture
async def texts(database: Database) -> Texts:
    made = Texts(database)
    await made.put(2, "Ana lives in Porto")
    await made.put(4, "the cat is asleep")
    return made


def given(embedder: Letters) -> Callable[[], Awaitable[Letters]]:
    async def opened() -> Letters:
        return embedder

    return opened


def working(
    database: Database,
    texts: Texts,
    embedder: Letters,
    *,
    tokens: Letters | None = None,
    cached: bool = False,
    now: int = NOW,
    waits: list[float] | None = None,
) -> Embedding:
    """A worker under way; the waits it asks for are noted and take no time."""

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)
        await asyncio.sleep(0)

    made = Embedding(
        database,
        embedders=Embedders(vectors=given(embedder), tokens=None if tokens is None else given(tokens), paid=cached),
        text_of=texts.of,
        now=Clock(now),
        sleep=sleep,
    )
    made.start()
    return made


async def nearest(embedding: Embedding, database: Database, question: str) -> list[int]:
    asked = await embedding.question(question)
    found = embedding.vectors
    assert asked is not None and found is not None
    return [doc for doc, _ in await database.read(lambda reader: found.nearest(reader, (1,), asked.vector, 5))]


async def test_what_waits_is_embedded_and_found(database: Database, texts: Texts) -> None:
    embedding = working(database, texts, Letters())
    await embedding.idle()
    assert (await nearest(embedding, database, "Porto"))[0] == 2
    await texts.put(6, "the dog sleeps in Porto")
    await embedding.idle()
    assert (await nearest(embedding, database, "the dog sleeps"))[0] == 6
    progress = await embedding.progress()
    assert (progress.model, progress.done, progress.total) == ("letters", 3, 3)
    await embedding.close()


async def test_a_changed_text_is_found_by_its_new_words_and_a_removed_one_not_at_all(
    database: Database, texts: Texts
) -> None:
    embedding = working(database, texts, Letters())
    await embedding.idle()
    await texts.put(2, "Ana lives in Lisbon")
    await texts.put(4, None)
    await embedding.idle()
    assert await nearest(embedding, database, "Lisbon") == [2]
    await embedding.close()


async def test_vectors_of_a_text_that_changed_meanwhile_are_not_kept(database: Database, texts: Texts) -> None:
    """Else a forgotten text would come back through its vector."""
    embedder = Letters()
    embedder.gate = asyncio.Event()
    embedding = working(database, texts, embedder)
    assert await embedding.opened()
    await embedder.at_gate.wait()
    await texts.put(2, "Ana lives in Lisbon")
    await texts.put(4, None)
    embedder.gate.set()
    await embedding.idle()
    assert await nearest(embedding, database, "Lisbon") == [2]
    assert Counter(embedder.embedded)["Ana lives in Lisbon"] == 1
    await embedding.close()


async def test_equal_texts_are_embedded_once(database: Database, texts: Texts) -> None:
    for doc in range(10, 40, 2):
        await texts.put(doc, "ok then")
    embedder = Letters()
    embedding = working(database, texts, embedder)
    await embedding.idle()
    assert Counter(embedder.embedded)["ok then"] <= 2  # two batches
    await embedding.close()


async def test_a_failing_embedder_is_tried_again_after_growing_waits(database: Database, texts: Texts) -> None:
    """A server that is down for an hour must not end the worker, nor be hammered."""
    waits: list[float] = []
    embedder = Letters(
        EmbeddingFailed("down"),
        EmbeddingFailed("down"),
        EmbeddingFailed("busy", retry_after=90),
        EmbeddingFailed("down"),
    )
    embedding = working(database, texts, embedder, waits=waits)
    await embedding.idle()
    assert waits == [1, 2, 90, 8]
    assert (await nearest(embedding, database, "Porto"))[0] == 2
    await embedding.close()


async def test_a_text_the_embedder_refuses_holds_up_no_other(database: Database, texts: Texts) -> None:
    await texts.put(6, "poison")
    embedding = working(database, texts, Letters(refuses="poison"))
    await embedding.idle()
    assert set(await nearest(embedding, database, "Ana asleep")) == {2, 4}
    assert (await embedding.progress()).total == 3
    await embedding.close()


async def test_without_an_embedder_nothing_waits_for_one(database: Database, texts: Texts) -> None:
    async def unavailable() -> Letters:
        raise EmbedderUnavailable("not installed")

    embedding = Embedding(database, embedders=Embedders(vectors=unavailable), text_of=texts.of, now=Clock(NOW))
    embedding.start()
    assert not await embedding.opened()
    await embedding.idle()
    assert embedding.vectors is None
    assert await embedding.question("Porto") is None
    await embedding.close()


class WithoutExtensions(drivers.Driver):
    """A SQLite of the many that were built without the loading of extensions."""

    @property
    def loads_extensions(self) -> bool:
        return False


async def test_where_vectors_can_not_be_compared_words_go_on_alone_and_it_is_said_once(tmp_path: Path) -> None:
    """Neither a model is loaded for nothing nor does anybody wonder why."""
    best = drivers.best()
    driver = WithoutExtensions(name=best.name, module=best.module)
    database = await SqliteDatabase.open(tmp_path / "other.db", now=1, driver=driver)
    texts = Texts(database)
    await texts.put(2, "Ana lives in Porto")
    embedder = Letters()
    with capture_logs() as logs:
        embedding = working(database, texts, embedder)
        assert not await embedding.opened()
        assert await embedding.question("Porto") is None
        await embedding.idle()
    assert [line["reason"] for line in logs] == [database.without_vectors] == [embedding.trouble]
    assert "sqlite-vec" in embedding.trouble
    assert embedding.vectors is None and embedder.embedded == []
    await embedding.close()
    await database.close()


async def test_a_question_that_fails_leaves_words_alone(database: Database, texts: Texts) -> None:
    embedder = Letters()
    embedding = working(database, texts, embedder)
    await embedding.idle()
    embedder.fails = [EmbeddingFailed("down")]
    assert await embedding.question("Porto") is None
    assert await embedding.question("Porto") is not None
    await embedding.close()


async def test_a_turn_that_asks_twice_embeds_once(database: Database, texts: Texts) -> None:
    """A question costs twenty milliseconds, and up to three parts of a turn want to know what it means."""
    embedder = Letters()
    embedding = working(database, texts, embedder)
    await embedding.idle()
    first = await embedding.question("Porto")
    embedder.fails = [EmbeddingFailed("down")]
    assert first is not None and await embedding.question("Porto") is first
    assert await embedding.question("Lisbon") is None
    await embedding.close()


async def test_another_model_embeds_everything_anew(database: Database, texts: Texts) -> None:
    """Its vectors can't be compared with those of the old one."""
    first = working(database, texts, Letters())
    await first.idle()
    await first.close()
    again = Letters()
    same = working(database, texts, again)
    await same.idle()
    await same.close()
    assert again.embedded == []
    other = Letters(name="other")

    embedding = working(database, texts, other)
    await embedding.opened()
    await _anew(texts)
    await embedding.idle()
    assert sorted(other.embedded) == ["Ana lives in Porto", "the cat is asleep"]
    await embedding.close()


async def test_tokens_are_kept_as_bits_without_stop_tokens(database: Database, texts: Texts) -> None:
    """Late interaction reads them; stop tokens would only cost room."""
    await texts.put(6, "我住在里斯本")
    embedding = working(database, texts, Letters(), tokens=Letters(name="tokens"))
    await embedding.idle()
    found = embedding.vectors
    assert found is not None
    bits = await database.read(lambda reader: found.bits(reader, (1,), [2, 4, 6]))
    assert {doc: rows.shape for doc, rows in bits.items()} == {2: (4, 8), 4: (3, 8)}
    asked = await embedding.question("cat")
    assert asked is not None and asked.tokens is not None and asked.tokens.words == ("cat",)
    chinese = await embedding.question("里斯本")
    assert chinese is not None and chinese.tokens is None
    await embedding.close()


async def test_a_text_the_embedder_can_not_read_is_set_aside_marked_and_not_tried_again(
    database: Database, texts: Texts
) -> None:
    """Words find it; the operator sees that there is one."""
    embedding = working(database, texts, Letters(refuses="cat"))
    await embedding.idle()
    progress = await embedding.progress()
    assert (progress.done, progress.total, progress.refused, progress.trouble) == (2, 2, 1, "")
    await embedding.close()
    again = working(database, texts, Letters())
    await again.idle()
    assert (await again.progress()).refused == 1
    await texts.put(4, "the dog is asleep")
    again.wake()
    await again.idle()
    assert (await again.progress()).refused == 0
    await again.close()


async def test_trouble_is_told_while_it_lasts(database: Database, texts: Texts) -> None:
    """Whoever wonders why nothing is found by meaning asks for the status."""
    embedder = Letters()
    embedding = working(database, texts, embedder)
    await embedding.idle()
    assert embedding.trouble == ""
    embedder.fails = [EmbeddingFailed("the server is down")]
    assert await embedding.question("cat") is None
    assert embedding.trouble == "the server is down"
    assert await embedding.question("cat") is not None
    assert embedding.trouble == ""
    await embedding.close()


async def test_what_a_paid_embedder_gave_is_not_paid_for_twice(database: Database, texts: Texts) -> None:
    """Going back to the old model within a month costs nothing."""
    for name in ("letters", "other"):
        embedding = working(database, texts, Letters(name=name), cached=True)
        await embedding.opened()
        await _anew(texts)
        await embedding.idle()
        await embedding.close()
    back = Letters()
    embedding = working(database, texts, back, cached=True)
    await embedding.opened()
    await _anew(texts)
    await embedding.idle()
    assert back.embedded == []
    assert (await nearest(embedding, database, "Porto"))[0] == 2
    await embedding.close()


async def test_closing_in_the_middle_leaves_the_rest_for_the_next_start(database: Database, texts: Texts) -> None:
    embedder = Letters()
    embedder.gate = asyncio.Event()
    embedding = working(database, texts, embedder)
    await embedding.opened()
    before = asyncio.all_tasks()
    await embedding.close()
    assert embedder.closed
    assert len(asyncio.all_tasks()) < len(before)
    next_start = working(database, texts, Letters())
    await next_start.idle()
    assert (await nearest(next_start, database, "Porto"))[0] == 2
    await next_start.close()


async def _anew(texts: Texts) -> None:
    """As `prepare` does with the rows of memories and messages, which these documents have none of."""
    await texts.put(2, "Ana lives in Porto")
    await texts.put(4, "the cat is asleep")


async def test_a_document_at_which_the_embedder_breaks_holds_up_no_other(database: Database, texts: Texts) -> None:
    """It looks like an embedder that is away, until the others are embedded one by one."""

    class Breaking(Letters):
        async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
            if any("poison" in text for text in texts):
                raise EmbeddingFailed("the process ended")
            return await super().embed(texts, query=query)

    await texts.put(6, "poison")
    waits: list[float] = []
    embedding = working(database, texts, Breaking(), waits=waits)
    assert await embedding.opened()

    async def both() -> bool:
        return set(await nearest(embedding, database, "Ana asleep")) == {2, 4}

    await until(both)
    await until(lambda: embedding.trouble == "")
    assert waits[:4] == [1, 2, 4, 8]
    await embedding.close()


async def test_a_message_that_was_asked_has_the_tokens_of_the_question(database: Database, texts: Texts) -> None:
    """A turn searches with its message, and indexes it soon after."""
    tokens = Letters(name="tokens")
    embedding = working(database, texts, Letters(), tokens=tokens)
    await embedding.idle()
    asked = await embedding.question("the dog is awake")
    assert asked is not None and asked.tokens is not None
    tokens.read.clear()
    await texts.put(6, "the dog is awake")
    await texts.put(8, "it barks")
    await embedding.idle()
    assert tokens.read == ["it barks"]
    served = embedding.vectors
    assert served is not None
    bits = await database.read(lambda reader: served.bits(reader, (1,), [6]))
    assert np.array_equal(bits[6], np.packbits(asked.tokens.vectors[~np.array(asked.tokens.stop)] > 0, axis=1))
    await embedding.close()
