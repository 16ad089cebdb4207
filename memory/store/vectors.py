"""The vectors of documents: the queue of documents to be embedded, and the search for the nearest documents.

Invariants: Nothing is held in memory: sqlite-vec compares the rows themselves, in the reader's own committed state.
Only the requested partitions are read. A `Vectors` object ignores vectors of any other model than its own. A document's
rows are removed in the transaction that finds it gone.

A vector is kept as 8-bit integers whose largest value is 127 or -127. A cosine does not depend on a vector's length, so
no scale has to be known; the cosine is off by .0003 (docs/design/benchmarks.md). In a partition with more than
`COMPARED` vectors the nearest by signs are found first, and only these are compared. Models place all texts in one
corner of the space, where most signs are equal. Signs relative to its middle, the model's centre, tell texts apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.errors import IndexDamaged
from memory.store import settings
from memory.store.database import Reader, Row, Transaction, Value

#: The result of `text_of`: the partitions of a document and its text, or None if it may not be found (any more).
Found: TypeAlias = tuple[tuple[int, ...], str] | None

#: The most vectors of a partition that are all compared, at some 1.5 µs each.
COMPARED: Final = 10_000
#: In a larger partition, the number of vectors nearest by their signs that are compared: at least the first number, or
#: the second number for each requested document.
_BY_SIGNS, _BY_SIGNS_EACH = 1_000, 10
#: SQLite takes 32,766 parameters a statement, older versions 999.
_PARAMETERS: Final = 900
CACHE_DAYS: Final = 30
_DAY_MS: Final = 86_400_000
#: The store settings that name the models of the vectors and the token bits.
_VECTORS, _TOKEN_BITS = "vectors", "token_bits"
#: All tables with data derived from a document's text.
_MADE: Final = ("vectors", "vector_signs", "token_bits", "embedding_cache", "unembedded", "embedded")

Vector: TypeAlias = NDArray[np.float32]
V = TypeVar("V", int, bytes)

#: The distance of a vector, and of a vector's signs, from the question's. In pgvector: `vector <=> ?1` and
#: `signs <~> ?4`.
_FAR: Final = "vec_distance_cosine(vec_int8(v.vector), vec_int8(?1))"
_SIGNS_FAR: Final = "vec_distance_hamming(vec_bit(signs), vec_bit(?4))"
#: Vectors of another length, which only damage leaves, are passed over.
_HERE: Final = "v.partition = ?2 and length(v.vector) = length(?1)"
#: An archived memory takes only a place that nothing else wants: of a year's memories four fifths are archived.
_BEST: Final = (
    f"select v.doc, 1 - min({_FAR}) as cosine, exists (select 1 from memories m"
    " where m.id = v.doc / 2 and v.doc % 2 = 0 and m.archived_at is not null) as is_archived"
)
_FIRST: Final = "group by v.doc order by is_archived, cosine desc nulls last, v.doc limit ?3"


def hashes(reader: Reader, docs: Collection[int]) -> dict[int, bytes]:
    return reader.pairs("select doc, hash from embedded where doc in (select value from json_each(?))", (docs,))


def enqueue(tx: Transaction, found: Mapping[int, Found], known: Mapping[int, bytes]) -> None:
    """Queues documents for embedding whose text or partitions have changed. Removes outdated vectors at once.

    The word index calls this for every change with the result of `text_of`, with or without an embedder. `known` are
    the `hashes` of the documents.
    """
    waiting = []
    for doc, one in found.items():
        if one is None or not one[1].strip():
            remove(tx, doc)
        elif known.get(doc) != _fingerprint(one):
            if doc in known:
                remove(tx, doc)
            waiting.append(doc)
    if waiting:
        tx.run("insert into unembedded select value from json_each(?) where true on conflict do nothing", (waiting,))


def remove(tx: Transaction, doc: int) -> None:
    """Removes everything derived from this document's text: from the index, the queue and the cache."""
    for table in _MADE:
        tx.run(f"delete from {table} where doc = ?", (doc,))


def embed_all(tx: Transaction) -> None:
    """Queues every document again for the embedder, which makes the missing vectors and token bits."""
    tx.run("delete from embedded")
    tx.run("insert into unembedded select 2 * id from memories where true on conflict do nothing")
    tx.run("insert into unembedded select 2 * id + 1 from messages where nth is not null on conflict do nothing")


def waiting(reader: Reader, *, limit: int) -> list[int]:
    return reader.ids("select doc from unembedded order by doc desc limit ?", (limit,))


def count_waiting(reader: Reader) -> int:
    return reader.number("select count(*) from unembedded")


def count_embedded(reader: Reader) -> int:
    return reader.number("select count(*) from embedded")


def count_refused(reader: Reader) -> int:
    return reader.number("select count(*) from embedded where refused = 1")


def lacks(reader: Reader, doc: int) -> tuple[bool, bool]:
    has_vectors = reader.has(
        "select 1 from vectors v join vector_signs s using (partition, doc, chunk) where v.doc = ? limit 1", (doc,)
    )
    return not has_vectors, not reader.has("select 1 from token_bits where doc = ?", (doc,))


def cache(tx: Transaction, doc: int, made: Mapping[bytes, Vector], *, now: int) -> None:
    """Caches the vectors of pieces of `doc`, by hashes of model and piece.

    They are dropped when the document changes, and after `CACHE_DAYS`.
    """
    for hashed, vector in made.items():
        tx.run(
            "insert into embedding_cache (hash, doc, vector, made_at) values (?, ?, ?, ?) on conflict (hash)"
            " do update set doc = excluded.doc, vector = excluded.vector, made_at = excluded.made_at",
            (hashed, doc, vector.astype("<f4").tobytes(), now),
        )


def cached(reader: Reader, hashes: Sequence[bytes]) -> dict[bytes, Vector]:
    found: dict[bytes, Vector] = {}
    for some in _portions(hashes):
        rows = reader.all(f"select hash, vector from embedding_cache where hash in ({_marks(some)})", some)
        found |= {row["hash"]: np.frombuffer(row["vector"], dtype="<f4").astype(np.float32) for row in rows}
    return found


def neighbours(reader: Reader, partition: int, docs: Sequence[int], *, each: int) -> dict[int, list[int]]:
    """Returns for each of these documents of a partition the `each` others that are nearest to it, nearest first.

    The distances are computed here, not by sqlite-vec, so that a night job needs no extension. Documents without a
    vector are left out, and so are later chunks of long documents.
    """
    rows = reader.all(
        "select doc, vector from vectors where partition = ? and chunk = 0"
        " and doc in (select value from json_each(?)) order by doc",
        (partition, docs),
    )
    lengths = [len(row["vector"]) for row in rows if isinstance(row["vector"], bytes)]
    length = max(lengths, key=lengths.count, default=0)
    rows = [row for row in rows if isinstance(row["vector"], bytes) and len(row["vector"]) == length]
    if len(rows) < 2:
        return {}
    matrix = np.stack([np.frombuffer(row["vector"], dtype=np.int8) for row in rows]).astype(np.float32)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    cosines = matrix @ matrix.T
    np.fill_diagonal(cosines, -2.0)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(each, len(rows) - 1)]
    return {row["doc"]: [rows[n]["doc"] for n in near] for row, near in zip(rows, nearest, strict=True)}


def evict(tx: Transaction, *, now: int) -> None:
    """Drops cached vectors older than `CACHE_DAYS`. Called by a daily job and at each start."""
    tx.run("delete from embedding_cache where made_at < ?", (now - CACHE_DAYS * _DAY_MS,))


class Vectors:
    """The vectors of one store, made by one embedder and at most one token embedder. Holds no state of the store.

    `model` and `token_model` are the embedders' names. `centre` is the middle of the corner of the space in which the
    model places texts. For one model it must stay nearly the same, because stored signs are not made again.
    """

    def __init__(self, *, model: str, centre: Vector, token_model: str | None = None, token_dimension: int = 0) -> None:
        self._centre = centre
        self._model = f"{model} {len(centre)}"
        self._token_model = "" if token_model is None else f"{token_model} {token_dimension}"
        self._token_bytes = token_dimension // 8

    def prepare(self, tx: Transaction) -> bool:
        """Drops rows made by other models and then queues every document again. Returns whether that was needed."""
        anew = False
        for name, model, tables in (
            (_VECTORS, self._model, ("vectors", "vector_signs")),
            (_TOKEN_BITS, self._token_model, ("token_bits",)),
        ):
            if not _made_by(tx, name, model):
                for table in tables:
                    tx.run(f"delete from {table}")
                settings.put(tx, name, model)
                anew = True
        if anew:
            embed_all(tx)
        return anew

    def store(
        self,
        tx: Transaction,
        doc: int,
        found: tuple[tuple[int, ...], str],
        vectors: Vector | None,
        bits: NDArray[np.uint8] | None,
        *,
        refused: bool = False,
    ) -> None:
        """Stores the vectors and token bits made of `found`, and marks `doc` as embedded.

        `vectors` has a row of unit length for each chunk. `bits` has a row for each token, as returned by `sign_bits`.
        None leaves the stored rows as they are. `refused` marks a document that the embedder can't read.
        """
        partitions, _ = found
        tx.run(
            "insert into embedded (doc, hash, refused) values (?, ?, ?)"
            " on conflict (doc) do update set hash = excluded.hash, refused = excluded.refused",
            (doc, _fingerprint(found), int(refused)),
        )
        tx.run("delete from unembedded where doc = ?", (doc,))
        if vectors is not None:
            tx.run("delete from vectors where doc = ?", (doc,))
            tx.run("delete from vector_signs where doc = ?", (doc,))
            for chunk, vector in enumerate(vectors):
                stored, signs = rounded(vector), self.signs(vector)
                for partition in partitions:
                    place = (partition, doc, chunk)
                    tx.run("insert into vectors values (?, ?, ?, ?)", (*place, stored))
                    tx.run("insert into vector_signs values (?, ?, ?, ?)", (*place, signs))
        if bits is not None:
            assert 1 <= len(partitions) <= 2
            tx.run(
                "insert into token_bits (doc, partition, other_partition, bits) values (?, ?, ?, ?) on conflict (doc)"
                " do"
                " update set partition = excluded.partition, other_partition = excluded.other_partition,"
                " bits = excluded.bits",
                (doc, partitions[0], partitions[1] if len(partitions) > 1 else None, bits.tobytes()),
            )

    def nearest(
        self, reader: Reader, partitions: Sequence[int], question: Vector, limit: int, *, compared: int = COMPARED
    ) -> list[tuple[int, float]]:
        """Returns the `limit` documents nearest to `question`, with their cosines, archived memories behind all others.

        `question` has the shape (dimension,). A partition with more than `compared` vectors is narrowed down by signs.
        """
        if limit < 1 or not _made_by(reader, _VECTORS, self._model):
            return []
        best: dict[int, float] = {}
        archived: set[int] = set()
        for partition in dict.fromkeys(partitions):
            for row in self._near(reader, partition, question, limit, compared):
                # A vector of zeros has no cosine; it counts as similar to nothing.
                best[row["doc"]] = max(row["cosine"] or 0.0, best.get(row["doc"], -1.0))
                archived.update([row["doc"]] if row["is_archived"] else ())
        return sorted(best.items(), key=lambda item: (item[0] in archived, -item[1], item[0]))[:limit]

    def bits(self, reader: Reader, partitions: Sequence[int], docs: Sequence[int]) -> dict[int, NDArray[np.uint8]]:
        """Returns the token bits, of shape (tokens, token dimension / 8), of the `docs` that are in `partitions`."""
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
                    raise IndexDamaged("Token bits are damaged. Nothing is lost: they are rebuilt.")
                found[row["doc"]] = np.frombuffer(row["bits"], dtype=np.uint8).reshape(-1, self._token_bytes)
        return found

    def _near(self, reader: Reader, partition: int, question: Vector, limit: int, compared: int) -> list[Row]:
        """Returns the nearest documents of a partition.

        Compares all vectors or, in a large partition, only those that are nearest by signs.
        """
        asked = (rounded(question), partition, limit)
        held = reader.number(
            "select count(*) from (select 1 from vector_signs where partition = ? limit ?) held",
            (partition, compared + 1),
        )
        if held <= compared:
            return reader.all(f"{_BEST} from vectors v where {_HERE} {_FIRST}", asked)
        return reader.all(
            "with near as (select doc, chunk from vector_signs where partition = ?2 and length(signs) = length(?4)"
            f" order by {_SIGNS_FAR} limit ?5)"
            f" {_BEST} from near n cross join vectors v on v.doc = n.doc and v.chunk = n.chunk where {_HERE} {_FIRST}",
            (*asked, self.signs(question), max(_BY_SIGNS, _BY_SIGNS_EACH * limit)),
        )

    def signs(self, vector: Vector) -> bytes:
        """Returns the signs of a vector relative to the centre, one bit each."""
        return np.packbits(vector > self._centre).tobytes()


def rounded(vector: Vector) -> bytes:
    """Returns a vector of the same direction as 8-bit integers: the largest value becomes 127 or -127."""
    return np.round(vector * (127 / max(float(np.abs(vector).max()), 1e-9))).astype(np.int8).tobytes()


def _fingerprint(found: tuple[tuple[int, ...], str]) -> bytes:
    partitions, text = found
    return hashlib.sha256(f"{partitions}{text}".encode(errors="surrogatepass")).digest()


def _made_by(reader: Reader, setting: str, model: str) -> bool:
    return settings.value(reader, setting) == model


def _marks(values: Sequence[Value]) -> str:
    return ", ".join("?" for _ in values)


def _portions(values: Sequence[V]) -> Iterator[Sequence[V]]:
    return (values[start : start + _PARAMETERS] for start in range(0, len(values), _PARAMETERS))
