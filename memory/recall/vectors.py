"""The vector index: which document means most nearly the same, at a cost of what the scope holds.

Invariants: only the partitions asked for are read; what a search returns was compared with the stored vector in the
caller's own transaction, so what was removed or moved never comes out, whatever is held in memory; vectors of another
model than this object's are not there for it; a document's rows are removed in the transaction that finds it gone.

A small partition is read and compared row by row. Of a large one signs and rounded values are held in memory: 450 bytes
a vector of 384 dimensions, least recently used partitions first to go. They narrow all vectors down to the few that are
then read and compared exactly. Measured choices stand in docs/benchmarks.md.

Source of the estimate from signs: Gao & Long, "RaBitQ" (2024), here without the random rotation.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.errors import IndexDamaged
from memory.store.database import Reader, Row, Transaction, Value

#: What `text_of` gives: the partitions of a document and its text; None when it is not to be found (any more).
Found: TypeAlias = tuple[tuple[int, ...], str] | None

#: Memory for the large partitions of one store, in bytes.
MEMORY = 64 * 1024 * 1024
#: Up to so many vectors a partition is read whole: as quick as a search in memory and nothing to hold.
_READ_WHOLE = 1_000
#: Vectors kept by their signs, then by rounded values, then compared exactly.
_BY_SIGNS = 5_000
_BY_ROUNDED = 100
#: The same without rounded values, for which a partition can be too large.
_BY_SIGNS_ALONE = 1_000
#: If fewer of those to be compared still exist, the partition is read into memory anew.
_STILL_THERE = 0.9
#: Bits a value of the question is rounded to where it meets signs: more bring no better candidates.
_QUESTION_BITS = 3
#: Vectors whose signs are counted together: what is at work stays within a processor's own cache.
_TOGETHER = 8_192
#: Rows read into memory at once.
_BLOCK = 1_024
#: SQLite takes 32,766 parameters a statement, older ones 999.
_PARAMETERS = 900
CACHE_DAYS = 30
_DAY_MS = 86_400_000
#: Under these names the store keeps which models its vectors and token bits are of.
_VECTORS, _TOKEN_BITS = "vectors", "token_bits"

Vector: TypeAlias = NDArray[np.float32]
T = TypeVar("T", bound=np.generic)
V = TypeVar("V", int, bytes)


def enqueue(tx: Transaction, doc: int, found: Found) -> None:
    """Have `doc` embedded if its text or place has changed since it was; what no longer holds is removed at once.

    For the indexer of words, which calls it for every change with what `text_of` found, embedder or not.
    """
    if found is None or not found[1].strip():
        remove(tx, doc)
        return
    known = tx.one("select hash from embedded where doc = ?", (doc,))
    if known is not None:
        if known["hash"] == _fingerprint(found):
            return
        remove(tx, doc)
    tx.run("insert or ignore into unembedded values (?)", (doc,))


def remove(tx: Transaction, doc: int) -> None:
    """Nothing made of this document's text is left, neither in the index nor among what waits or is cached."""
    for table in ("vectors", "token_bits", "embedding_cache", "unembedded", "embedded"):
        tx.run(f"delete from {table} where doc = ?", (doc,))


def waiting(reader: Reader, *, limit: int) -> list[int]:
    """Documents to be embedded, the newest first."""
    return [row["doc"] for row in reader.all("select doc from unembedded order by doc desc limit ?", (limit,))]


def count_waiting(reader: Reader) -> int:
    row = reader.one("select count(*) as n from unembedded")
    assert row is not None
    return int(row["n"])


def count_embedded(reader: Reader) -> int:
    row = reader.one("select count(*) as n from embedded")
    assert row is not None
    return int(row["n"])


def lacks(reader: Reader, doc: int) -> tuple[bool, bool]:
    """Whether `doc` has no vectors, and whether it has no token bits."""
    has_vectors = reader.one("select 1 from vectors where doc = ? limit 1", (doc,))
    has_bits = reader.one("select 1 from token_bits where doc = ?", (doc,))
    return has_vectors is None, has_bits is None


def cache(tx: Transaction, doc: int, made: Mapping[bytes, Vector], *, now: int) -> None:
    """Keep what an embedder gave for pieces of `doc`, by hashes of model and piece.

    It is dropped when the document changes, and after `CACHE_DAYS`.
    """
    for hashed, vector in made.items():
        tx.run(
            "insert or replace into embedding_cache (hash, doc, vector, made_at) values (?, ?, ?, ?)",
            (hashed, doc, vector.astype("<f4").tobytes(), now),
        )


def cached(reader: Reader, hashes: Sequence[bytes]) -> dict[bytes, Vector]:
    """What is kept of these, by hash."""
    found: dict[bytes, Vector] = {}
    for some in _portions(hashes):
        rows = reader.all(f"select hash, vector from embedding_cache where hash in ({_marks(some)})", some)
        found |= {row["hash"]: np.frombuffer(row["vector"], dtype="<f4").astype(np.float32) for row in rows}
    return found


def evict(tx: Transaction, *, now: int) -> None:
    """Drop what was cached too long ago. For a daily job; also done at each start."""
    tx.run("delete from embedding_cache where made_at < ?", (now - CACHE_DAYS * _DAY_MS,))


class Vectors:
    """The vectors of one store as made by one embedder and, where there is one, one token embedder.

    `model` and `token_model` are their names; `memory` is in bytes. May be used from several threads.
    """

    def __init__(
        self,
        *,
        model: str,
        dimension: int,
        token_model: str | None = None,
        token_dimension: int = 0,
        memory: int = MEMORY,
    ) -> None:
        self.dimension = dimension
        self._model = f"{model} {dimension}"
        self._token_model = "" if token_model is None else f"{token_model} {token_dimension}"
        self._token_bytes = token_dimension // 8
        self._held = _Held(dimension, memory)

    @property
    def held(self) -> int:
        """Bytes of memory in use for large partitions."""
        return self._held.size

    def prepare(self, tx: Transaction) -> bool:
        """Drop what another model made and have every document embedded again; whether that was so."""
        stale = [
            table
            for table, model in ((_VECTORS, self._model), (_TOKEN_BITS, self._token_model))
            if not _made_by(tx, table, model)
        ]
        if not stale:
            return False
        for table in stale:
            tx.run(f"delete from {table}")
        tx.run("delete from embedded")
        tx.run("insert or ignore into unembedded select 2 * id from memories")
        tx.run("insert or ignore into unembedded select 2 * id + 1 from messages where nth is not null")
        tx.run("insert or replace into store_settings values (?, ?)", (_VECTORS, self._model))
        tx.run("insert or replace into store_settings values (?, ?)", (_TOKEN_BITS, self._token_model))
        return True

    def store(
        self,
        tx: Transaction,
        doc: int,
        found: tuple[tuple[int, ...], str],
        vectors: Vector | None,
        bits: NDArray[np.uint8] | None,
    ) -> None:
        """Keep what was made of `found`, and that `doc` is done with it. None leaves what is there.

        `vectors` has a row for each chunk, of unit length; `bits` one for each token, as `sign_bits` gives them.
        """
        partitions, _ = found
        tx.run("delete from embedded where doc = ?", (doc,))
        number = tx.insert("insert into embedded (doc, hash) values (?, ?)", (doc, _fingerprint(found)))
        tx.run("delete from unembedded where doc = ?", (doc,))
        if vectors is None:
            # A number stands for these very rows, so they come with the new one.
            tx.run("update vectors set number = ? where doc = ?", (number, doc))
        else:
            assert vectors.shape[1:] == (self.dimension,)
            tx.run("delete from vectors where doc = ?", (doc,))
            for partition in partitions:
                for chunk, vector in enumerate(vectors):
                    tx.run(
                        "insert into vectors (partition, number, chunk, doc, vector) values (?, ?, ?, ?, ?)",
                        (partition, number, chunk, doc, stored(vector)),
                    )
        if bits is not None:
            assert 1 <= len(partitions) <= 2
            tx.run(
                "insert or replace into token_bits (doc, partition, other_partition, bits) values (?, ?, ?, ?)",
                (doc, partitions[0], partitions[1] if len(partitions) > 1 else None, bits.tobytes()),
            )

    def nearest(
        self, reader: Reader, partitions: Sequence[int], question: Vector, limit: int
    ) -> list[tuple[int, float]]:
        """The `limit` documents nearest to `question` and their cosines, best first. `question` is (dimension,)."""
        if limit < 1 or not _made_by(reader, _VECTORS, self._model):
            return []
        best: dict[int, float] = {}
        for partition in dict.fromkeys(partitions):
            for doc, cosine in self._compared(reader, partition, question, limit):
                best[doc] = max(cosine, best.get(doc, -1.0))
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:limit]

    def bits(self, reader: Reader, partitions: Sequence[int], docs: Sequence[int]) -> dict[int, NDArray[np.uint8]]:
        """The token bits, (tokens, token dimension / 8), of those among `docs` that stand in `partitions`."""
        if not self._token_model or not _made_by(reader, _TOKEN_BITS, self._token_model):
            return {}
        found: dict[int, NDArray[np.uint8]] = {}
        places = _marks(partitions)
        for some in _portions(list(dict.fromkeys(docs))):
            rows = reader.all(
                f"select doc, bits from token_bits where doc in ({_marks(some)})"
                f" and (partition in ({places}) or other_partition in ({places}))",
                (*some, *partitions, *partitions),
            )
            for row in rows:
                if not isinstance(row["bits"], bytes) or len(row["bits"]) % self._token_bytes:
                    raise IndexDamaged("Token bits are damaged. Nothing is lost: they are made again.")
                found[row["doc"]] = np.frombuffer(row["bits"], dtype=np.uint8).reshape(-1, self._token_bytes)
        return found

    def _compared(self, reader: Reader, partition: int, question: Vector, limit: int) -> Iterator[tuple[int, float]]:
        """(document, cosine) of the best chunks of a partition, at least `limit` documents where it has them."""
        if not self._held.holds(partition):
            rows = reader.all(
                "select doc, vector from vectors where partition = ? limit ?", (partition, _READ_WHOLE + 1)
            )
            if len(rows) <= _READ_WHOLE:
                yield from _exact(rows, self.dimension, question)
                return
        for fresh in (False, True):
            numbers = self._held.candidates(reader, partition, question, limit, afresh=fresh)
            rows = [
                row
                for some in _portions(numbers)
                for row in reader.all(
                    f"select number, doc, vector from vectors where partition = ? and number in ({_marks(some)})",
                    (partition, *some),
                )
            ]
            there = len({row["number"] for row in rows})
            if there >= _STILL_THERE * len(numbers):
                break
        yield from _exact(rows, self.dimension, question)


class _Held:
    """The large partitions in memory: brought up to date by each reader that uses one, the least used dropped."""

    def __init__(self, dimension: int, memory: int) -> None:
        self._dimension = dimension
        self._memory = memory
        self._lock = threading.Lock()
        self._partitions: OrderedDict[int, _Partition] = OrderedDict()

    @property
    def size(self) -> int:
        return sum(held.size for held in list(self._partitions.values()))

    def holds(self, partition: int) -> bool:
        return partition in self._partitions

    def candidates(self, reader: Reader, partition: int, question: Vector, limit: int, *, afresh: bool) -> list[int]:
        """The numbers of the rows to be compared exactly, in ascending order."""
        with self._lock:
            held = None if afresh else self._partitions.get(partition)
            if held is None:
                held = self._partitions[partition] = _Partition(self._dimension, room=_count(reader, partition))
            self._partitions.move_to_end(partition)
            self._keep_within_memory()
            for block in _rows_after(reader, partition, held.newest, self._dimension):
                held.add(block)
                self._keep_within_memory()
            view = held.view()
        return view.candidates(question, limit)

    def _keep_within_memory(self) -> None:
        """Drop other partitions, then the rounded values of the one in use. Its signs are held however many."""
        while self.size > self._memory:
            if len(self._partitions) > 1:
                self._partitions.popitem(last=False)
            else:
                next(iter(self._partitions.values())).drop_rounded()
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Some rows of a partition in ascending order: their numbers, (n,), and vectors, (n, dimension)."""

    numbers: NDArray[np.int64]
    vectors: Vector


class _Partition:
    """Signs and rounded values of a partition's vectors, taken from its centre.

    Models place all texts in one corner of the space, where most signs would be equal; seen from the middle of that
    corner they tell texts apart. The first block's mean serves as the middle for good.
    """

    def __init__(self, dimension: int, *, room: int) -> None:
        self._count = 0
        self._centre: Vector = np.zeros(dimension, dtype=np.float32)
        self._scale = 1.0
        room = _with_spare(room)
        self._numbers = np.empty(room, dtype=np.int64)
        self._ones = np.empty(room, dtype=np.uint16)
        self._gains = np.empty(room, dtype=np.float32)
        self._halves = np.empty(room, dtype=np.float32)
        # One row a word: counting bits then runs along memory.
        self._signs = np.empty((-(-dimension // 64), room), dtype=np.uint64)
        self._rounded: NDArray[np.int8] | None = np.empty((room, dimension), dtype=np.int8)

    @property
    def newest(self) -> int:
        """The highest number held."""
        return int(self._numbers[self._count - 1]) if self._count else 0

    @property
    def size(self) -> int:
        """Bytes in use."""
        rounded = 0 if self._rounded is None else self._rounded.nbytes
        rest = (self._numbers, self._ones, self._gains, self._halves, self._signs)
        return sum(values.nbytes for values in rest) + rounded

    def drop_rounded(self) -> None:
        self._rounded = None

    def add(self, block: _Block) -> None:
        if not self._count:
            self._centre = block.vectors.mean(axis=0)
            # What lies beyond four deviations is cut off: there is little, and it would cost the rest its precision.
            self._scale = 127 / max(4 * float((block.vectors - self._centre).std()), 1e-6)
        self._make_room(len(block.numbers))
        here = slice(self._count, self._count + len(block.numbers))
        centred = block.vectors - self._centre
        signs = _words(centred > 0)
        self._numbers[here] = block.numbers
        self._signs[:, here] = signs.T
        self._ones[here] = np.bitwise_count(signs).sum(axis=1)
        squares = np.einsum("ij,ij->i", centred, centred)
        self._gains[here] = squares / np.maximum(np.abs(centred).sum(axis=1), 1e-9)
        self._halves[here] = squares / 2
        if self._rounded is not None:
            self._rounded[here] = np.clip(np.round(centred * self._scale), -127, 127)
        self._count += len(block.numbers)

    def view(self) -> _View:
        """What is held now; rows added later do not show in it."""
        return _View(
            numbers=self._numbers[: self._count],
            ones=self._ones[: self._count],
            gains=self._gains[: self._count],
            halves=self._halves[: self._count],
            signs=self._signs[:, : self._count],
            rounded=None if self._rounded is None else self._rounded[: self._count],
            centre=self._centre,
            scale=self._scale,
        )

    def _make_room(self, more: int) -> None:
        needed = self._count + more
        if needed <= len(self._numbers):
            return
        room = _with_spare(needed)
        self._numbers = _grown(self._numbers, room)
        self._ones = _grown(self._ones, room)
        self._gains = _grown(self._gains, room)
        self._halves = _grown(self._halves, room)
        self._signs = np.ascontiguousarray(_grown(self._signs.T, room).T)
        if self._rounded is not None:
            self._rounded = _grown(self._rounded, room)


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """A partition as one search sees it.

    With all vectors of unit length, the nearest to the question is the one whose product with it, both seen from the
    centre, less half its own square is highest: `halves`. `gains` turn a product with signs into an estimate of that
    with the vector: its square over the sum of its absolute values. `ones` counts the signs that are set.
    """

    numbers: NDArray[np.int64]
    ones: NDArray[np.uint16]
    gains: Vector
    halves: Vector
    signs: NDArray[np.uint64]
    rounded: NDArray[np.int8] | None
    centre: Vector
    scale: float

    def candidates(self, question: Vector, limit: int) -> list[int]:
        question = question - self.centre
        if self.rounded is None:
            best = _top(self._by_signs(question), max(_BY_SIGNS_ALONE, 5 * limit))
        else:
            best = np.sort(_top(self._by_signs(question), max(_BY_SIGNS, 10 * limit)))
            # einsum stays on this thread; a BLAS product would wait for a second one that a busy machine may not give.
            alike = np.einsum("ij,j->i", self.rounded[best].astype(np.float32), question)
            best = best[_top(alike / np.float32(self.scale) - self.halves[best], max(_BY_ROUNDED, 2 * limit))]
        numbers: list[int] = np.unique(self.numbers[best]).tolist()
        return numbers

    def _by_signs(self, question: Vector) -> Vector:
        """For each vector how near it seems to be by its signs, up to a constant.

        The question is rounded to a few levels and cut into planes of one bit, so that sums become counts of bits.
        """
        low, high = float(question.min()), float(question.max())
        step = max(high - low, 1e-9) / (2**_QUESTION_BITS - 1)
        levels = np.round((question - low) / step).astype(np.uint8)
        planes = [_words(((levels >> bit) & 1)[None, :] > 0)[0] for bit in range(_QUESTION_BITS)]
        estimate = np.empty(len(self.numbers), dtype=np.float32)
        for start in range(0, len(estimate), _TOGETHER):
            here = slice(start, start + _TOGETHER)
            total = np.zeros(len(estimate[here]), dtype=np.uint16)
            for bit, plane in enumerate(planes):
                # At most the dimension, times seven for all planes: 16 bits hold it up to 9,362 dimensions.
                common = np.zeros(len(total), dtype=np.uint16)
                for column, word in zip(self.signs[:, here], plane, strict=True):
                    common += np.bitwise_count(column & word)
                total += common << bit
            product = 2 * (total * np.float32(step) + self.ones[here] * np.float32(low)) - question.sum()
            estimate[here] = product * self.gains[here] - self.halves[here]
        return estimate


def _count(reader: Reader, partition: int) -> int:
    row = reader.one("select count(*) as n from vectors where partition = ?", (partition,))
    assert row is not None
    return int(row["n"])


def _rows_after(reader: Reader, partition: int, number: int, dimension: int) -> Iterator[_Block]:
    """The partition's rows with higher numbers, block by block; chunks of one document are never parted."""
    while True:
        rows = reader.all(
            "select number, vector from vectors where partition = ? and number > ? order by number, chunk limit ?",
            (partition, number, _BLOCK),
        )
        full = len(rows) == _BLOCK
        if full:
            # The last document may go on: it comes whole with the next block.
            last = rows[-1]["number"]
            rows = [row for row in rows if row["number"] != last]
        if rows:
            number = rows[-1]["number"]
            yield _Block(
                numbers=np.array([row["number"] for row in rows], dtype=np.int64),
                vectors=matrix([row["vector"] for row in rows], dimension),
            )
        if not full:
            return


def _with_spare(rows: int) -> int:
    """Room for an eighth more: a message more must not copy all the others, and memory is what is short here."""
    return rows + rows // 8


def _grown(values: NDArray[T], room: int) -> NDArray[T]:
    """A copy of `values` with `room` rows, the new ones unset."""
    grown = np.empty((room, *values.shape[1:]), dtype=values.dtype)
    grown[: len(values)] = values
    return grown


def _exact(rows: Sequence[Row], dimension: int, question: Vector) -> Iterator[tuple[int, float]]:
    cosines = np.einsum("ij,j->i", matrix([row["vector"] for row in rows], dimension), question)
    return zip((row["doc"] for row in rows), cosines.tolist(), strict=True)


def stored(vector: Vector) -> bytes:
    """A vector as the table keeps it: a scale, then each value as a 16-bit share of the largest.

    Half the size of float32, and some five times nearer to it than float16, which confuses close neighbours.
    """
    scale = max(float(np.abs(vector).max()), 1e-9) / 32_767
    return struct.pack("<f", scale) + np.round(vector / scale).astype("<i2").tobytes()


def matrix(blobs: Sequence[bytes], dimension: int) -> Vector:
    """The vectors of rows as `stored` made them, (n, dimension). Raises `IndexDamaged` for anything else."""
    if any(not isinstance(blob, bytes) or len(blob) != 4 + 2 * dimension for blob in blobs):
        raise IndexDamaged("A vector is damaged. Nothing is lost: it is made again.")
    rows = np.frombuffer(b"".join(blobs), dtype=[("scale", "<f4"), ("shares", "<i2", (dimension,))])
    matrix: Vector = rows["shares"].astype(np.float32)
    matrix *= rows["scale"][:, None]
    return matrix


def _words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(n, dimension) truths as 64-bit words, (n, dimension / 64 rounded up), the last filled up with zeros."""
    packed = np.packbits(bits, axis=1)
    filled = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    filled[:, : packed.shape[1]] = packed
    return filled.view(np.uint64)


def _top(values: Vector, count: int) -> NDArray[np.intp]:
    """Where the `count` highest values stand, in any order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]


def _fingerprint(found: tuple[tuple[int, ...], str]) -> bytes:
    partitions, text = found
    return hashlib.sha256(f"{partitions}{text}".encode(errors="surrogatepass")).digest()


def _made_by(reader: Reader, setting: str, model: str) -> bool:
    row = reader.one("select value from store_settings where name = ?", (setting,))
    return row is not None and bool(row["value"] == model)


def _marks(values: Sequence[Value]) -> str:
    return ", ".join("?" for _ in values)


def _portions(values: Sequence[V]) -> Iterator[Sequence[V]]:
    return (values[start : start + _PARAMETERS] for start in range(0, len(values), _PARAMETERS))
