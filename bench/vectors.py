"""Nearest vectors of one owner among many: time, recall against exact search, size on disk.

Run `python -m bench.vectors [--owners N] [--each N] [--clusters N] [--spread X] [--searches N]`. A real store in a
temporary folder; the vectors are seeded points around centres that are themselves off the origin, as those of sentence
models are. Each search is followed by the same one by brute force in numpy (one float32 product over that owner's
vectors in memory), so both share the machine's mood; recall@10 is the share of the exact ten that come back.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import normalised
from memory.store.database import Database, Reader, Transaction
from memory.store.sqlite.database import SqliteDatabase
from memory.store.vectors import Vectors

DIMENSION = 384
#: As many as the search asks for.
NEAREST = 400
Points = NDArray[np.float32]
_TOGETHER = 1_000


class Clusters:
    """Points of unit length around `clusters` centres; `spread` is their distance from it as a share of its length."""

    def __init__(self, *, clusters: int, spread: float, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        scale = 1 / np.sqrt(DIMENSION)
        corner = 2 * scale * self._random.standard_normal(DIMENSION)
        self._centres = corner + scale * self._random.standard_normal((clusters, DIMENSION))
        self._spread = spread * scale
        #: As a model's is found: by a few of all the texts there are.
        self.centre: Points = self.points(14).mean(axis=0)

    def points(self, count: int) -> Points:
        """The next `count` points, (count, dimension)."""
        centres = self._centres[self._random.integers(0, len(self._centres), count)]
        points = centres + self._spread * self._random.standard_normal((count, DIMENSION))
        return normalised(points.astype(np.float32))


async def fill(database: Database, vectors: Vectors, clusters: Clusters, *, owners: int, each: int) -> Points:
    """Store `each` points for every owner from 1 on, one document a point; returns those of owner 1."""
    await database.write(vectors.prepare)
    first = []
    for start in range(0, owners * each, _TOGETHER):
        docs = range(start, min(start + _TOGETHER, owners * each))
        points = clusters.points(len(docs))

        def act(tx: Transaction, docs: range = docs, points: Points = points) -> None:
            for doc, point in zip(docs, points, strict=True):
                vectors.store(tx, doc, ((doc % owners + 1,), ""), point[None, :], None)

        await database.write(act)
        first.append(points[[doc % owners == 0 for doc in docs]])
    return np.concatenate(first)


async def run(*, owners: int, each: int, clusters: int, spread: float, searches: int) -> dict[str, float]:
    """Fill a store, search it, and give the figures; times in milliseconds, sizes in megabytes."""
    made = Clusters(clusters=clusters, spread=spread, seed=1)
    vectors = Vectors(model="bench", centre=made.centre)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "remora.db")
        database = await SqliteDatabase.open(path, now=0)
        try:
            begun = time.perf_counter()
            exact = await fill(database, vectors, made, owners=owners, each=each)
            filled = time.perf_counter() - begun
            questions = made.points(searches)

            def search(reader: Reader, question: Points) -> tuple[float, set[int]]:
                start = time.perf_counter()
                found = vectors.nearest(reader, (1,), question, NEAREST)
                return time.perf_counter() - start, {doc // owners for doc, _ in found[:10]}

            ours, brute, hits = [], [], 0
            for question in questions:
                taken, found = await database.read(lambda reader, q=question: search(reader, q))  # type: ignore[misc]
                ours.append(1_000 * taken)
                start = time.perf_counter()
                alike = exact @ question
                brute.append(1_000 * (time.perf_counter() - start))
                hits += len(found & set(np.argsort(-alike)[:10].tolist()))
        finally:
            await database.close()
        size = _size(path)
    return {
        "owners": owners,
        "each": each,
        "clusters": clusters,
        "spread": spread,
        "p50": round(statistics.median(ours), 2),
        "p95": round(float(np.percentile(ours, 95)), 2),
        "numpy_p50": round(statistics.median(brute), 2),
        "ratio": round(statistics.median(ours) / statistics.median(brute), 2),
        "recall@10": round(hits / (len(questions) * min(10, each)), 4),
        "disk": round(size / 1e6, 1),
        "fill_seconds": round(filled, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--owners", type=int, default=1)
    parser.add_argument("--each", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=1_000)
    parser.add_argument("--spread", type=float, default=0.5)
    parser.add_argument("--searches", type=int, default=100)
    print(json.dumps(asyncio.run(run(**vars(parser.parse_args())))))


def _size(path: Path) -> int:
    return path.stat().st_size


if __name__ == "__main__":
    main()
