"""Opens what a store stands on: its file or its database on a server, and the search over it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memory.errors import StorageError
from memory.loops import Loops
from memory.recall import index, rank
from memory.recall.embedding import Embedders, Embedding
from memory.recall.rank import Weights
from memory.recall.rerank import Reranker
from memory.recall.search import Search
from memory.store.database import Database, Durability
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.driver import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSetup:
    """The settings of the search. Without `embedders` memory is searched by words alone."""

    weights: Weights = rank.HYBRID
    embedders: Embedders | None = None
    reranker: Reranker | None = None

    def over(
        self, database: Database, *, loops: Loops, now: Callable[[], int]
    ) -> tuple[Search, Embedding | None, index.Mending]:
        """Returns the search of an open store, what keeps its vectors, and what mends its index."""
        embedding, mending = None, index.Mending(database)
        if self.embedders is not None:
            embedding = Embedding(database, embedders=self.embedders, text_of=index.text_of, now=now, loops=loops)
        search = Search(
            database,
            now=now,
            weights=self.weights,
            embedding=embedding,
            reranker=self.reranker,
            suspect=mending.suspect,
        )
        return search, embedding, mending


async def open_database(path: Path, url: str, *, durability: Durability, driver: Driver | None, now: int) -> Database:
    """Opens the store of `path`: the file there or, with a `url`, a database on that PostgreSQL server.

    Raises `memory.errors.StorageError` or a subclass; each message says what to do.
    """
    if not url:
        return await SqliteDatabase.open(path, now=now, durability=durability, driver=driver)
    from memory.store.postgres.database import PostgresDatabase, is_made  # an extra, which few need

    if await asyncio.to_thread(path.exists) and not await is_made(url, path):
        raise StorageError(
            f"There is {path}, but no store of that name on the server of database_url, so nothing would be "
            "remembered. Carry it over with `remora move --to postgres`, or move the file away to begin anew."
        )
    return await PostgresDatabase.open(url, path, now=now, durability=durability)
