"""The vectors of a store: what is found by them, whose, and how they keep up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory.recall.embed import normalised, sign_bits
from memory.store import vectors as index
from memory.store.database import Database, Reader, Transaction
from memory.store.sqlite.database import SqliteDatabase
from memory.store.vectors import Vectors

DIMENSION = 64
Points = NDArray[np.float32]
T = TypeVar("T")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await SqliteDatabase.open(tmp_path / "remora.db", now=1)
    yield opened
    await opened.close()


@pytest.fixture
async def vectors(database: Database) -> Vectors:
    made = Vectors(model="one", centre=CENTRE, token_model="tokens", token_dimension=DIMENSION)
    await database.write(made.prepare)
    return made


def points(count: int, *, seed: int = 1) -> Points:
    """Seeded points around 10 centres in one corner of the space, as those of a sentence model lie."""
    corner = 2 * np.random.default_rng(0).standard_normal(DIMENSION)
    random = np.random.default_rng(seed)
    centres = corner + random.standard_normal((10, DIMENSION))
    made = centres[random.integers(0, 10, count)] + 0.5 * random.standard_normal((count, DIMENSION))
    return normalised(made.astype(np.float32))


CENTRE = points(12, seed=3).mean(axis=0)


def keep(
    vectors: Vectors, made: Points, *, first: int = 0, partitions: tuple[int, ...] = (1,)
) -> Callable[[Transaction], None]:
    """Store each point as a document of its own, numbered from `first` on."""

    def act(tx: Transaction) -> None:
        for doc, point in enumerate(made, first):
            vectors.store(tx, doc, (partitions, f"text {doc}"), point[None, :], None)

    return act


def exact(made: Points, question: Points, limit: int) -> set[int]:
    return set(np.argsort(-(made @ question))[:limit].tolist())


async def nearest(
    database: Database,
    vectors: Vectors,
    question: Points,
    *,
    partitions: tuple[int, ...] = (1,),
    limit: int = 10,
    compared: int = index.COMPARED,
) -> list[int]:
    found = await database.read(lambda reader: vectors.nearest(reader, partitions, question, limit, compared=compared))
    return [doc for doc, _ in found]


async def test_the_nearest_come_first_with_their_cosines(database: Database, vectors: Vectors) -> None:
    made = points(50)
    await database.write(keep(vectors, made))
    found = await database.read(lambda reader: vectors.nearest(reader, (1,), made[7], 5))
    assert found[0][0] == 7
    assert found[0][1] == pytest.approx(1, abs=1e-4)
    assert {doc for doc, _ in found} == exact(made, made[7], 5)
    assert [cosine for _, cosine in found] == sorted((cosine for _, cosine in found), reverse=True)


async def test_a_partition_that_is_not_asked_for_is_never_seen(database: Database, vectors: Vectors) -> None:
    made = points(30)
    await database.write(keep(vectors, made[:10], partitions=(1,)))
    await database.write(keep(vectors, made[10:20], first=10, partitions=(2,)))
    await database.write(keep(vectors, made[20:], first=20, partitions=(3, -7)))
    assert set(await nearest(database, vectors, made[15], limit=100)) == set(range(10))
    assert set(await nearest(database, vectors, made[15], partitions=(1, -7), limit=100)) == {
        *range(10),
        *range(20, 30),
    }
    assert await nearest(database, vectors, made[15], partitions=(4,)) == []
    assert await nearest(database, vectors, made[15], partitions=()) == []


async def test_a_document_of_several_chunks_counts_by_its_best(database: Database, vectors: Vectors) -> None:
    """One sentence of a long message may be the answer."""
    made = points(4)
    await database.write(lambda tx: vectors.store(tx, 8, ((1,), "long"), made[:3], None))
    await database.write(lambda tx: vectors.store(tx, 9, ((1,), "short"), made[3:], None))
    found = await database.read(lambda reader: vectors.nearest(reader, (1,), made[2], 10))
    assert [doc for doc, _ in found] == [8, 9]
    assert found[0][1] == pytest.approx(1, abs=1e-4)


async def test_a_large_partition_finds_what_an_exact_search_finds(database: Database, vectors: Vectors) -> None:
    """It is narrowed down by signs; the answer must hardly show it."""
    made, questions = np.split(points(12_030), [12_000])
    await database.write(keep(vectors, made))
    hits = 0
    for question in questions:
        # As many as the search asks for.
        found = await nearest(database, vectors, question, limit=400)
        hits += len(set(found[:10]) & exact(made, question, 10))
    # 64 signs tell less than the 384 of a model: docs/design/benchmarks.md.
    assert hits / (10 * len(questions)) >= 0.92


@pytest.mark.parametrize("compared", [1_000, 10_000])
async def test_what_was_added_removed_or_replaced_shows_at_once(
    database: Database, vectors: Vectors, compared: int
) -> None:
    """It holds whether all are compared or signs are looked at first."""
    near = partial(nearest, database, vectors, compared=compared)
    made = points(3_000)
    await database.write(keep(vectors, made[:2_000]))
    assert (await near(made[5]))[0] == 5
    # Added.
    await database.write(keep(vectors, made[2_000:], first=2_000))
    assert (await near(made[2_500]))[0] == 2_500
    # Removed.
    await database.write(lambda tx: index.remove(tx, 2_500))
    assert 2_500 not in await near(made[2_500])
    # Replaced: found by the new text, no more by the old.
    new = points(1, seed=9)
    await database.write(lambda tx: vectors.store(tx, 5, ((1,), "new"), new, None))
    assert (await near(new[0]))[0] == 5
    assert (await near(made[5]))[0] != 5
    # Moved to another owner.
    await database.write(lambda tx: vectors.store(tx, 6, ((2,), "text 6"), made[6:7], None))
    assert 6 not in await near(made[6])
    assert await near(made[6], partitions=(2,)) == [6]


async def test_vectors_of_another_model_are_dropped_and_never_compared(database: Database, vectors: Vectors) -> None:
    """Two models' vectors have nothing to do with each other."""
    made = points(5)
    await database.write(keep(vectors, made))
    await database.write(lambda tx: vectors.store(tx, 9, ((1,), "with bits"), made[:1], sign_bits(points(2))))
    other = Vectors(model="two", centre=CENTRE, token_model="tokens", token_dimension=DIMENSION)
    assert await nearest(database, other, made[0]) == []
    assert await database.write(other.prepare)
    assert await nearest(database, vectors, made[0]) == []
    assert await _count(database, "vectors") == await _count(database, "vector_signs") == 0
    # The tokens are of the same model still.
    assert await _count(database, "token_bits") == 1
    assert not await database.write(other.prepare)


def remember(tx: Transaction) -> int:
    tx.run("insert into agents (id, name, created_at) values (1, 'assistant', 1)")
    tx.run("insert into owners (id, kind, agent_id) values (1, 'agent', 1)")
    return tx.insert(
        "insert into memories (short_id, kind, owner_id, category, key, value, importance, confidence, origin,"
        " created_at, learned_at, local_date, valid_from, last_reinforced_at)"
        " values ('m_1', 'fact', 1, 'work', 'job', 'baker', 5, 1, 'told', 1, 1, '2026-11-21', 1, 1)"
    )


async def test_an_archived_memory_takes_no_place_of_another(database: Database, vectors: Vectors) -> None:
    """Most of what was kept for a year is archived."""
    made = points(3)
    archived = 2 * await database.write(remember)
    await database.write(keep(vectors, made[:1], first=archived))
    await database.write(keep(vectors, made[1:], first=100, partitions=(1, 2)))
    near = partial(vectors.nearest, partitions=(1, 2), question=made[0])
    assert (await database.read(partial(near, limit=3)))[0][0] == archived
    await database.write(lambda tx: tx.run("update memories set archived_at = 2"))
    found = await database.read(partial(near, limit=3))
    assert found[2][0] == archived and found[2][1] > found[0][1] > found[1][1]
    assert archived not in dict(await database.read(partial(near, limit=2)))


async def test_a_new_model_has_every_memory_embedded(database: Database) -> None:
    """Also those of a store that never had an embedder before."""
    memory_id = await database.write(remember)
    assert await database.write(Vectors(model="one", centre=CENTRE).prepare)
    assert await database.read(lambda reader: index.waiting(reader, limit=5)) == [2 * memory_id]


async def test_token_bits_come_back_for_their_own_partitions_only(database: Database, vectors: Vectors) -> None:
    bits = sign_bits(points(3))

    def act(tx: Transaction) -> None:
        vectors.store(tx, 2, ((1,), "one"), points(1), bits)
        vectors.store(tx, 4, ((2, -5), "two"), points(1), bits[:1])

    await database.write(act)
    mine = await database.read(lambda reader: vectors.bits(reader, (1,), [2, 4, 6]))
    assert set(mine) == {2}
    assert mine[2].tolist() == bits.tolist()
    assert set(await database.read(lambda reader: vectors.bits(reader, (-5,), [2, 4]))) == {4}
    assert set(await database.read(lambda reader: vectors.bits(reader, (2, 1), [2, 4]))) == {2, 4}


async def test_only_what_changed_is_embedded_again(database: Database, vectors: Vectors) -> None:
    """Building the word index anew must not cost hours of embedding."""
    made = points(1)

    def waiting(reader: Reader) -> list[int]:
        return index.waiting(reader, limit=10)

    await database.write(lambda tx: vectors.store(tx, 2, ((1,), "same"), made, sign_bits(made)))
    await database.write(lambda tx: index.enqueue(tx, {2: ((1,), "same")}, index.hashes(tx, [2])))
    assert await database.read(waiting) == []
    # A new owner is a change, too; the old rows are gone before the new ones are made.
    await database.write(lambda tx: index.enqueue(tx, {2: ((3,), "same")}, index.hashes(tx, [2])))
    assert await database.read(waiting) == [2]
    assert await nearest(database, vectors, made[0], partitions=(1, 3)) == []
    # Nothing to find any more: nothing waits.
    await database.write(lambda tx: index.enqueue(tx, {2: None}, index.hashes(tx, [2])))
    assert await database.read(waiting) == []


async def test_removing_a_document_leaves_nothing_made_of_its_text(database: Database, vectors: Vectors) -> None:
    """A vector tells much of the text it was made of: forgetting reaches it, in the file, too."""
    made = points(2)
    await database.write(lambda tx: vectors.store(tx, 2, ((1, -4), "secret"), made, sign_bits(made)))
    await database.write(lambda tx: index.cache(tx, 2, {b"hash": made[0]}, now=1))
    row = await database.read(
        lambda reader: reader.one(
            "select vector, signs, hash from vectors join vector_signs using (partition, doc, chunk)"
            " join embedded using (doc) where chunk = 0"
        )
    )
    assert row is not None
    await database.write(lambda tx: index.remove(tx, 2))
    for table in ("vectors", "vector_signs", "token_bits", "embedding_cache", "unembedded", "embedded"):
        assert await _count(database, table) == 0
    await database.close()
    content = database.path.read_bytes()
    for trace in (row["vector"][:48], row["signs"], row["hash"], sign_bits(made).tobytes(), made[0].tobytes()[:48]):
        assert trace not in content


async def test_what_was_cached_long_ago_is_evicted(database: Database, vectors: Vectors) -> None:
    day = 86_400_000
    made = points(2)
    await database.write(lambda tx: index.cache(tx, 2, {b"old": made[0]}, now=0))
    await database.write(lambda tx: index.cache(tx, 4, {b"new": made[1]}, now=2 * day))
    await database.write(lambda tx: index.evict(tx, now=31 * day))
    kept = await database.read(lambda reader: index.cached(reader, [b"old", b"new", b"never"]))
    assert set(kept) == {b"new"}
    assert np.array_equal(kept[b"new"], made[1])


@given(st.integers(1, 200), st.integers(0, 10_000))
def test_a_rounded_vector_points_where_the_vector_does(dimension: int, seed: int) -> None:
    """The cosine of what is kept with what was made must not confuse near neighbours; no scale has to be known."""
    made = normalised(np.random.default_rng(seed).standard_normal((1, dimension)).astype(np.float32))[0]
    read = np.frombuffer(index.rounded(made), dtype=np.int8).astype(np.float32)
    assert np.abs(read).max() == 127
    assert made @ read / np.linalg.norm(read) >= 0.9995
    assert index.rounded(4 * made) == index.rounded(made)


async def test_what_has_no_direction_or_another_length_is_like_nothing(database: Database, vectors: Vectors) -> None:
    """Neither an odd model nor a damaged row may keep the others from being found."""
    made = points(3)
    made[1] = 0
    await database.write(keep(vectors, made))
    await database.write(lambda tx: tx.run("update vectors set vector = x'0102' where doc = 2"))
    found = await database.read(lambda reader: vectors.nearest(reader, (1,), made[0], 5))
    assert found == [(0, pytest.approx(1)), (1, 0)]
    assert len(await nearest(database, vectors, made[1])) == 2


async def _count(database: Database, table: str) -> int:
    row = await database.read(lambda reader: reader.one(f"select count(*) as n from {table}"))
    assert row is not None
    return int(row["n"])
