"""Measures recall as a store grows: time, vectors' recall, size on disk, from 1k to ten million rows.

Invariants: seeded; every table that a search reads holds what the product would have written (of ten rows one is a
fact, nine are messages of one sitting, and people take turns sitting by sitting); all sizes stand open side by side and
are searched in turn, so that they share the machine's mood; a search is the shipped one, `Search.find`, with the
question's vectors looked up instead of computed.

    python -m bench.scale                               all sizes; some 4 GB in a temporary folder and several minutes
    python -m bench.scale --engine both                 each size in a file and in PostgreSQL
    python -m bench.scale --sizes 1000x10,10000x100x8   rows x people, and words of a message
    python -m bench.scale --made 250000                 rows of a store that are made one by one
    python -m bench.scale --folder DIR                  keep the files there and use them again

Words follow Zipf's law over English function words and invented ones; vectors are points around seeded centres, as in
`bench.vectors`. A question is up to eight neighbouring words of a message of the one who asks. `recall_*` is a whole
search for 16 results, by the clock and of this process's processor time, `vector_*` its part that finds the 400
nearest, `numpy_*` the same by brute force over the asker's own vectors held in memory as float32, `vector_recall10` the
share of numpy's first ten among the first ten. `bytes` is the whole database.

Of more rows than `--made` only a part is made so. It is doubled as often as needed, each time under other people: a
search reads its own person's rows alone. The server of PostgreSQL has its own default settings in what a search needs,
and is filled anew in each run, with the indexes of its largest tables made at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import structlog
from numpy.typing import NDArray

from bench.vectors import DIMENSION, NEAREST, Clusters, Points
from memory.recall import index
from memory.recall.cues import cues
from memory.recall.embed import Tokens, normalised
from memory.recall.embedding import ORDINARY, Embedders, Embedding
from memory.recall.search import Search
from memory.scope import Scope, partitions_of
from memory.store import chats, documents, people, scopes
from memory.store.database import Database, Reader, Transaction
from memory.store.sqlite import driver, health
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.tables import tables
from memory.store.vectors import Vectors, rounded
from memory.text import words
from tests.kit.postgres import Server, running, superuser

AGENT: Final = "assistant"
#: Rows of one sitting: the first is a fact learned from the second, a message.
SITTING: Final = 10
VOCABULARY: Final = 30_000
WORDS: Final = 16.44
#: As many as a turn asks for.
RESULTS: Final = 16
#: Settings that make it faster to fill a server, and none that a search notices.
FILLED: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
START: Final = 1_700_000_000_000
DAY: Final = 86_400_000
FUNCTION_WORDS: Final = [
    word
    for line in (
        "the of and to in a is that it was for on are with as i his they be at one have this from or had by but what",
        "all were we when your can said there use an each which she do how their if will up other about out many",
        "then them",
    )
    for word in line.split()
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """So many rows, messages and facts, that belong to so many people in equal shares.

    `words` is the median of the words of a message.
    """

    rows: int
    people: int
    words: float = WORDS

    def part(self, most: int) -> Size:
        """Returns a half, a quarter and so on that has not more than so many rows, if people can be so divided."""
        if self.rows <= most or self.people % 2:
            return self
        return replace(self, rows=self.rows // 2, people=self.people // 2).part(most)

    def __str__(self) -> str:
        return f"{self.rows}x{self.people}" + (f"x{self.words:g}" if self.words != WORDS else "")


SIZES: Final = (
    Size(rows=1_000, people=10),
    Size(rows=10_000, people=100),
    Size(rows=100_000, people=1_000),
    Size(rows=1_000_000, people=10_000),
    Size(rows=100_000, people=1),
)


class Language:
    """Words with their index tokens and the sign bits that stand for a token's vector; `draw` follows Zipf's law."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        syllables = [c + v for c in "bdfghjklmnprstvz" for v in "aeiou"]
        invented = (a + b + c for a in syllables for b in syllables for c in syllables)
        self.words = [*FUNCTION_WORDS, *(next(invented) for _ in range(VOCABULARY - len(FUNCTION_WORDS)))]
        # Neighbours in the list would share their beginnings; rank must not follow spelling.
        tail = self.words[len(FUNCTION_WORDS) :]
        self.words[len(FUNCTION_WORDS) :] = [tail[i] for i in random.permutation(len(tail))]
        self.tokens = [" ".join(words.tokens(word)) for word in self.words]
        self.bits = random.integers(0, 256, (VOCABULARY, DIMENSION // 8), dtype=np.uint8)
        self.place = {word: i for i, word in enumerate(self.words)}
        share = 1 / (np.arange(VOCABULARY) + 2.7)
        self._reached = np.cumsum(share / share.sum())

    def draw(self, random: np.random.Generator, lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """A text for each length, as places of words."""
        drawn = np.searchsorted(self._reached, random.random(int(lengths.sum())), side="right")
        return np.split(np.minimum(drawn, VOCABULARY - 1), np.cumsum(lengths)[:-1])

    def text(self, places: NDArray[np.int64]) -> str:
        return " ".join([self.words[i] for i in places])

    def indexed(self, places: NDArray[np.int64]) -> str:
        return " ".join([self.tokens[i] for i in places])

    def token_bits(self, places: NDArray[np.int64]) -> bytes:
        """Returns the bits of every word that means something, as the product keeps them."""
        return self.bits[places[places >= len(FUNCTION_WORDS)]].tobytes()

    def asked(self, text: str) -> Tokens:
        """A question's tokens: the vectors their bits were made of, somewhat off."""
        said = text.split()
        places = [self.place[word] for word in said]
        vectors = np.unpackbits(self.bits[places], axis=1).astype(np.float32) - 0.5
        noise = np.random.default_rng(places).standard_normal(vectors.shape)
        return Tokens(
            words=tuple(said),
            vectors=normalised((vectors + 0.3 * noise).astype(np.float32)),
            stop=tuple(place < len(FUNCTION_WORDS) for place in places),
        )


class LookedUp:
    """An embedder that knows its few texts by heart: what it costs must not show in the figures."""

    name = "bench"
    dimension = DIMENSION

    def __init__(self, known: Mapping[str, Points]) -> None:
        self._known = known

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    async def embed(self, texts: Sequence[str], *, query: bool) -> Points:
        return np.stack([self._known[text] for text in texts])

    async def aclose(self) -> None:
        return None


class LookedUpTokens:
    """The same for the vectors of each word."""

    name = "bench tokens"
    dimension = DIMENSION

    def __init__(self, known: Mapping[str, Tokens]) -> None:
        self._known = known

    def suits(self, text: str) -> bool:
        return True

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        return [self._known[text] for text in texts]

    async def aclose(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of one person."""

    scope: Scope
    text: str
    vector: Points
    tokens: Tokens


@dataclass(slots=True, kw_only=True)
class Store:
    """A store of one size, open, with its questions and what was measured of it, in milliseconds."""

    engine: str
    size: Size
    database: Database
    embedding: Embedding
    search: Search
    questions: Sequence[Asked]
    recall: list[float] = field(default_factory=list)
    recall_processor: list[float] = field(default_factory=list)
    vector: list[float] = field(default_factory=list)
    brute: list[float] = field(default_factory=list)
    met: list[float] = field(default_factory=list)
    held: dict[tuple[int, ...], tuple[Points, list[int]]] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "rows": self.size.rows,
            "people": self.size.people,
            "words": self.size.words,
            "recall_p50_ms": round(statistics.median(self.recall), 2),
            "recall_processor_p50_ms": round(statistics.median(self.recall_processor), 2),
            "recall_p95_ms": round(float(np.percentile(self.recall, 95)), 2),
            "vector_p50_ms": round(statistics.median(self.vector), 3),
            "numpy_p50_ms": round(statistics.median(self.brute), 3),
            "vector_recall10": round(statistics.mean(self.met), 4),
            "bytes": self.database.file_bytes,
        }


#: Opens the store of one engine and size.
Open: TypeAlias = Callable[[], Awaitable[Database]]


async def run(
    sizes: Sequence[Size],
    folder: Path,
    *,
    searches: int,
    made: int,
    database: Server | None,
    files: bool,
    say: Any = print,
) -> list[dict[str, Any]]:
    """Fills what is not in `folder` yet, then searches all stores in turn. Returns figures for each of them.

    At most so many rows of a store are `made` one by one. There is a store of each size in a file, if there are to be
    `files`, and on the server `database`, if there is one.
    """
    language = Language(seed=1)
    makes: list[tuple[str, Size, Open]] = []
    for size in sizes:
        began = time.monotonic()
        if files:
            path = folder / f"{size}.db"
            if not path.exists():
                making = path.with_suffix(".making")
                making.unlink(missing_ok=True)
                into = partial(_File, making)
                await fill(partial(SqliteDatabase.open, making, now=START), size.part(made), size, language, into)
                making.rename(path)
            makes.append(("sqlite", size, partial(SqliteDatabase.open, path, now=START)))
        if database is not None:
            from memory.store.postgres.database import PostgresDatabase  # an extra

            url = database.database(f"rows_{size}")
            opening = partial(PostgresDatabase.open, url, folder / f"{size}" / "remora.db", now=START)
            await fill(opening, size.part(made), size, language, partial(_Tables, superuser(url)))
            makes.append(("postgres", size, opening))
        say(f"{size}: filled in {time.monotonic() - began:.0f} s")
    return await measured(
        [await opened(engine, await make(), size, language, searches) for engine, size, make in makes]
    )


async def measured(stores: Sequence[Store]) -> list[dict[str, Any]]:
    """Searches all stores in turn, as often as there are questions, and closes them."""
    try:
        for store in stores:
            await search(store, store.questions[0])
            await brute(store, store.questions[0])
        for i in range(1, len(stores[0].questions) // 2):
            for store in stores:
                one, other = store.questions[2 * i], store.questions[2 * i + 1]
                taken, of_processor = await search(store, one)
                store.recall.append(taken)
                store.recall_processor.append(of_processor)
                taken, found = await nearest(store, other)
                store.vector.append(taken)
                taken, exact = await brute(store, other)
                store.brute.append(taken)
                store.met.append(len(set(found[:10]) & set(exact[:10])) / min(10, len(exact)))
        return [store.figures() for store in stores]
    finally:
        for store in stores:
            await store.embedding.close()
            await store.database.close()


async def search(store: Store, asked: Asked) -> tuple[float, float]:
    """Milliseconds of one whole search, by the clock and of this process's processor time."""
    start, spent = time.perf_counter(), time.process_time()
    hits = await store.search.find(asked.scope, asked.text, timezone="UTC", limit=RESULTS)
    taken, of_processor = time.perf_counter() - start, time.process_time() - spent
    assert hits, "a question made of the asker's own words finds something"
    return 1_000 * taken, 1_000 * of_processor


async def nearest(store: Store, asked: Asked) -> tuple[float, list[int]]:
    """Milliseconds of the search by vectors alone, and the documents, best first."""
    vectors = store.embedding.vectors
    assert vectors is not None

    def act(reader: Reader) -> tuple[float, list[int]]:
        start = time.perf_counter()
        found = vectors.nearest(reader, asked.scope.partitions, asked.vector, NEAREST)
        return 1_000 * (time.perf_counter() - start), [doc for doc, _ in found]

    return await store.database.read(act)


async def brute(store: Store, asked: Asked) -> tuple[float, list[int]]:
    """The same with numpy, over vectors that are in memory before the clock starts."""
    partitions = asked.scope.partitions
    if partitions not in store.held:
        store.held.clear()
        store.held[partitions] = await store.database.read(lambda reader: _all(reader, partitions))
    held, docs = store.held[partitions]
    start = time.perf_counter()
    alike = held @ asked.vector
    some = min(NEAREST, len(alike))
    best = np.argpartition(alike, len(alike) - some)[len(alike) - some :]
    best = best[np.argsort(-alike[best], kind="stable")]
    taken = time.perf_counter() - start
    return 1_000 * taken, [docs[i] for i in best]


async def opened(engine: str, database: Database, size: Size, language: Language, searches: int) -> Store:
    """The store as the product opens it, with its questions."""
    random = np.random.default_rng(size.rows + size.people)
    made = Clusters(clusters=1_000, spread=0.5, seed=1)
    questions = await database.read(lambda reader: _questions(reader, size, language, made, random, 2 * searches + 2))
    # The rows were made so that their mean is this centre.
    ordinary = dict.fromkeys(ORDINARY, made.centre)
    embedder = LookedUp({asked.text: asked.vector for asked in questions} | ordinary)
    tokens = LookedUpTokens({asked.text: asked.tokens for asked in questions})

    async def open_embedder() -> LookedUp:
        return embedder

    async def open_tokens() -> LookedUpTokens:
        return tokens

    embedding = Embedding(
        database,
        embedders=Embedders(vectors=open_embedder, tokens=open_tokens),
        text_of=index.text_of,
        now=lambda: START,
    )
    embedding.start()
    assert await embedding.opened()
    search = Search(database, now=lambda: START + size.rows // size.people * DAY, embedding=embedding)
    return Store(engine=engine, size=size, database=database, embedding=embedding, search=search, questions=questions)


async def fill(opening: Open, made: Size, size: Size, language: Language, into: Callable[[], _File | _Tables]) -> None:
    """Makes a store of this size, of copies of a part that is `made`.

    People, chats and sessions are made by the product's own functions, the rows in bulk.
    """
    database = await opening()
    try:
        await index.Mending(database).begin()
        await database.write(_vectors(Clusters(clusters=1_000, spread=0.5, seed=1).centre).prepare)
        persons = await database.write(lambda tx: [_person(tx, n) for n in range(made.people)])
    finally:
        await database.close()
    rows = _Rows(language, np.random.default_rng(size.rows), size.words)
    sittings = [(n, person) for n in range(made.rows // made.people // SITTING) for person in persons]
    with closing(into()) as filled:
        for start in range(0, len(sittings), 1_000):
            filled.insert(rows.of(sittings[start : start + 1_000]))
        filled.run(f"update sessions set sitting = {sittings[-1][0] + 1}, last_message_at = {START}")
        while made.rows < size.rows:
            for statement in _doubling(made):
                filled.run(statement)
            made = replace(made, rows=2 * made.rows, people=2 * made.people)


def _doubling(size: Size) -> Iterator[str]:
    """Yields the statements that copy all rows of a store of this size for as many other people.

    No id is greater than the number of rows.
    """
    shifted = {column: f"{column} + {size.rows}" for column in _IDS} | {
        "doc": f"doc + {2 * size.rows}",
        "short_id": f"'m_' || (id + {size.rows})",
        "user_id": f"'' || (cast(user_id as integer) + {size.people})",
        "reference": f"'' || (cast(reference as integer) + {size.people})",
        "key": f"'console:' || (cast(replace(substr(key, 9), ':-', '') as integer) + {size.people}) || ':-'",
    }
    for column in ("partition", "other_partition"):
        shifted[column] = f"{column} + case when {column} > 0 then {size.rows} else -{size.rows} end"
    persons = ("people", "identities", "chats", "chat_aliases", "owners", "sessions")
    for table, columns in ({one.name: one.columns for one in tables() if one.name in persons} | _COLUMNS).items():
        own = {"key": "key"} if table == "memories" else {}
        values = ", ".join((shifted | own).get(column, column) for column in columns)
        whose = " where kind <> 'agent'" if table == "owners" else ""
        yield f"insert into {table} ({', '.join(columns)}) select {values} from {table}{whose}"


class _File:
    """Fills the tables of a store that is a file."""

    def __init__(self, path: Path) -> None:
        self._connection = driver.best().module.connect(str(path), isolation_level=None)
        for pragma in ("journal_mode = off", "synchronous = off", "cache_size = -1000000", "foreign_keys = off"):
            self.run(f"pragma {pragma}")

    def run(self, sql: str) -> None:
        self._connection.execute(sql)

    def insert(self, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        self.run("begin")
        for table, columns in _COLUMNS.items():
            marks = ", ".join("?" for _ in columns)
            self._connection.executemany(f"insert into {table} ({', '.join(columns)}) values ({marks})", rows[table])
        self.run("commit")

    def close(self) -> None:
        self._connection.close()


class _Tables:
    """Fills the tables of a store on a server, as its superuser, whom no policy and no reference holds up."""

    #: Those whose rows come in another order than that of their keys.
    _LARGE: Final = ("postings", "vectors", "vector_signs")

    def __init__(self, url: str) -> None:
        import psycopg  # an extra

        self._connection = psycopg.connect(url, autocommit=True)
        for setting in ("search_path = remora, public", "session_replication_role = replica",
                        "maintenance_work_mem = '1GB'"):  # fmt: skip
            self.run(f"set {setting}")
        self._keys = self._connection.execute(
            "select conrelid::regclass, conname, pg_get_constraintdef(oid) from pg_constraint"
            " where contype = 'p' and conrelid = any(%s::regclass[])",
            (list(self._LARGE),),
        ).fetchall()
        for table, name, _ in self._keys:
            self.run(f"alter table {table} drop constraint {name}")
        for table in (*health.WORDS, *health.MEANINGS):  # to which none refers
            self.run(f"alter table {table} set unlogged")
        self._types = {table: self._types_of(table, columns) for table, columns in _COLUMNS.items()}

    def run(self, sql: str) -> None:
        self._connection.execute(sql.encode())

    def insert(self, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        for table, columns in _COLUMNS.items():
            copying = f"copy {table} ({', '.join(columns)}) from stdin (format binary)".encode()
            with self._connection.cursor() as cursor, cursor.copy(copying) as copy:
                copy.set_types(self._types[table])
                for row in rows[table]:
                    copy.write_row(row if table != "vectors" else (*row[:-1], _halves(row[-1])))

    def close(self) -> None:
        for table, name, key in self._keys:
            self.run(f"alter table {table} add constraint {name} {key}")
        self.run("vacuum analyze")
        self._connection.close()

    def _types_of(self, table: str, columns: Sequence[str]) -> list[str]:
        """Returns the types of these columns for the driver, which takes a vector as bytes."""
        types: dict[str, str] = dict(
            self._connection.execute(
                "select a.attname, replace(t.typname, 'halfvec', 'bytea') from pg_attribute a"
                " join pg_type t on t.oid = a.atttypid where a.attrelid = %s::regclass",
                (table,),
            ).fetchall()
        )
        return [types[column] for column in columns]


def _halves(vector: bytes) -> bytes:
    """Returns a vector of 8-bit integers in the binary format of a halfvec."""
    values = np.frombuffer(vector, dtype=np.int8)
    return len(values).to_bytes(2) + bytes(2) + values.astype(">f2").tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Person:
    """The ids of one person's rows."""

    identity: int
    owner: int
    session: int


def _person(tx: Transaction, n: int) -> _Person:
    agent = scopes.agent(tx, AGENT, now=START)
    speaker = people.speaker(tx, platform="console", user_id=str(n), name=f"person{n}", now=START)
    chat = chats.chat(tx, platform="console", reference=str(n), kind="private", title="", now=START)
    session = chats.session(tx, key=f"console:{n}:-", chat_id=chat, thread=None, agent_id=agent, now=START)
    owner = chats.scope_of(tx, session, speaker.id).writes_to
    return _Person(identity=speaker.id, owner=owner, session=session.id)


class _Rows:
    """Makes rows for one table after the other, sitting by sitting."""

    def __init__(self, language: Language, random: np.random.Generator, said: float) -> None:
        self._language = language
        self._said = np.log(said)
        self._random = random
        self._made = Clusters(clusters=1_000, spread=0.5, seed=1)
        self._vectors = _vectors(self._made.centre)
        self._messages, self._memories = count(1), count(1)
        self._entities: dict[tuple[int, str], int] = {}
        self._cues = " ".join(words.tokens(f"likes {cues('likes')}"))

    def of(self, sittings: Sequence[tuple[int, _Person]]) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of each table."""
        lengths = np.clip(self._random.lognormal(self._said, 0.6, len(sittings) * SITTING), 3, 120).astype(np.int64)
        lengths[::SITTING] = 4
        texts = iter(self._language.draw(self._random, lengths))
        points = iter(self._made.points(len(lengths)))
        rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _COLUMNS}
        for sitting, person in sittings:
            for i in range(SITTING):
                places, point = next(texts), next(points)
                if i == 0:
                    self._fact(rows, person, sitting, places, point)
                else:
                    self._message(rows, person, sitting, i, places, point)
        return rows

    def _fact(
        self,
        rows: Mapping[str, list[tuple[Any, ...]]],
        person: _Person,
        sitting: int,
        places: NDArray[np.int64],
        point: Points,
    ) -> None:
        memory_id, at = next(self._memories), START + sitting * DAY
        text = self._language.text(places)
        rows["memories"].append(
            (
                memory_id, f"m_{memory_id}", "fact", person.owner, person.identity, person.identity, "preference",
                "likes", text, 5, 0.8, "extracted", at, at, "2023-11-14", at, at,
            )
        )  # fmt: skip
        name = text.rsplit(" ", 1)[-1]
        entity = self._entities.get((person.owner, name))
        if entity is None:
            entity = self._entities[person.owner, name] = len(self._entities) + 1
            rows["entities"].append((entity, person.owner, "person", name.title(), name, 1, at))
        rows["memory_entities"].append((memory_id, entity))
        partitions = partitions_of(owner_id=person.owner, author_id=person.identity, subject_id=person.identity)
        tokens = f"{self._cues} {self._language.indexed(places)}"
        self._derived(rows, documents.of_memory(memory_id), partitions, tokens, places, point)

    def _message(
        self,
        rows: Mapping[str, list[tuple[Any, ...]]],
        person: _Person,
        sitting: int,
        place: int,
        places: NDArray[np.int64],
        point: Points,
    ) -> None:
        message_id, by_agent = next(self._messages), place % 2 == 0
        nth = sitting * (SITTING - 1) + place
        rows["messages"].append(
            (
                message_id, person.session, "assistant" if by_agent else "user", None if by_agent else person.identity,
                "" if by_agent else "person", str(message_id), self._language.text(places), len(places), 1 - by_agent,
                person.owner, nth, sitting + 1, START + sitting * DAY + place * 60_000, START,
            )
        )  # fmt: skip
        tokens = self._language.indexed(places)
        self._derived(rows, documents.of_message(message_id), (person.owner,), tokens, places, point)

    def _derived(
        self,
        rows: Mapping[str, list[tuple[Any, ...]]],
        doc: int,
        partitions: tuple[int, ...],
        tokens: str,
        places: NDArray[np.int64],
        point: Points,
    ) -> None:
        other = partitions[1] if len(partitions) > 1 else None
        terms = dict.fromkeys(tokens.split())
        rows["indexed_documents"].append((doc, partitions[0], other, len(partitions) * len(terms), f" {tokens} "))
        rows["postings"] += [(partition, term, doc) for partition in partitions for term in terms]
        rows["embedded"].append((doc, hashlib.sha256(tokens.encode()).digest()))
        rows["vectors"] += [(partition, doc, 0, rounded(point)) for partition in partitions]
        rows["vector_signs"] += [(partition, doc, 0, self._vectors.signs(point)) for partition in partitions]
        bits = self._language.token_bits(places)
        rows["token_bits"].append((doc, partitions[0], other, bits))


#: The columns that hold ids.
_IDS: Final = (
    *("id", "person_id", "identity_id", "chat_id", "owner_id", "session_id", "author_id", "subject_id"),
    *("memory_id", "entity_id"),
)
#: The tables that are filled, in an order in which they can be, and the columns that are given.
_COLUMNS: Final = {
    table: tuple(columns.split())
    for table, columns in {
        "messages": "id session_id role author_id author_name platform_ref text tokens learn owner_id nth sitting"
        " said_at recorded_at",
        "memories": "id short_id kind owner_id author_id subject_id category key value importance confidence origin"
        " created_at learned_at local_date valid_from last_reinforced_at",
        "entities": "id owner_id type name norm mention_count created_at",
        "memory_entities": "memory_id entity_id",
        "indexed_documents": "doc partition other_partition postings tokens",
        "postings": "partition term doc",
        "embedded": "doc hash",
        "vectors": "partition doc chunk vector",
        "vector_signs": "partition doc chunk signs",
        "token_bits": "doc partition other_partition bits",
    }.items()
}


def _vectors(centre: Points) -> Vectors:
    """Returns the vectors as the search will open them."""
    return Vectors(
        model=LookedUp.name,
        centre=centre,
        token_model=LookedUpTokens.name,
        token_dimension=LookedUpTokens.dimension,
    )


def _questions(
    reader: Reader, size: Size, language: Language, made: Clusters, random: np.random.Generator, many: int
) -> list[Asked]:
    """Different questions of people drawn by chance."""
    found: dict[str, Asked] = {}
    points = iter(made.points(4 * many))
    while len(found) < many:
        session = chats.session_by_key(reader, f"console:{random.integers(size.people)}:-")
        assert session is not None
        speaker = chats.last_speaker(reader, session.id)
        most = size.rows // size.people // SITTING * (SITTING - 1)
        row = reader.one(
            "select text from messages where session_id = ? and nth = ?",
            (session.id, int(random.integers(1, most + 1))),
        )
        assert row is not None
        said = row["text"].split()
        start = int(random.integers(max(len(said) - 8, 0) + 1))
        text = " ".join(said[start : start + 8])
        # A question of function words alone asks for nothing.
        if sum(language.place[word] >= len(FUNCTION_WORDS) for word in said[start : start + 8]) >= 2:
            scope = chats.scope_of(reader, session, speaker)
            found[text] = Asked(scope=scope, text=text, vector=next(points), tokens=language.asked(text))
    return list(found.values())


def _all(reader: Reader, partitions: Sequence[int]) -> tuple[Points, list[int]]:
    """All vectors of these partitions, each document once, and their documents."""
    found: list[Points] = []
    docs: list[int] = []
    seen: set[int] = set()
    for rows in _blocks(reader, partitions):
        fresh = [row for row in rows if row["doc"] not in seen]
        seen.update(row["doc"] for row in fresh)
        docs += [row["doc"] for row in fresh]
        found.append(normalised(_read([row["vector"] for row in fresh])))
    return np.concatenate(found), docs


def _blocks(reader: Reader, partitions: Sequence[int]) -> Iterator[Sequence[Any]]:
    for partition in partitions:
        doc = 0
        while rows := reader.all(
            "select doc, vector from vectors where partition = ? and doc > ? order by doc limit 10000",
            (partition, doc),
        ):
            yield rows
            doc = rows[-1]["doc"]


def _read(blobs: Sequence[bytes]) -> Points:
    return np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(-1, DIMENSION).astype(np.float32)


def _size(text: str) -> Size:
    rows, persons, said, *_ = [*text.split("x"), "", ""]
    size = Size(rows=int(rows), people=int(persons or 1), words=float(said or WORDS))
    if size.rows % (size.people * SITTING):
        raise argparse.ArgumentTypeError(f"{text}: each person has a multiple of {SITTING} rows")
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["sqlite", "postgres", "both"], default="sqlite")
    parser.add_argument("--sizes", type=lambda text: tuple(map(_size, text.split(","))), default=SIZES)
    parser.add_argument("--searches", type=int, default=200, help="of each kind and size")
    parser.add_argument("--made", type=int, default=1_000_000, help="rows made one by one; more are copies of these")
    parser.add_argument("--folder", type=Path, help="where files are kept; a temporary one without")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON object a size")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

    def say(text: str) -> None:
        if not options.json:
            print(text, flush=True)

    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="remora-scale-"))
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        database = stack.enter_context(running(FILLED)) if options.engine != "sqlite" else None
        files = options.engine != "postgres"
        going = run(
            options.sizes,
            folder,
            searches=options.searches,
            made=options.made,
            database=database,
            files=files,
            say=say,
        )
        figures = asyncio.run(going)
    for one in figures:
        print(json.dumps(one))
    for line in () if options.json else ratios(figures):
        print(line)


def ratios(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields how the median of the largest store of each kind compares with the smaller ones."""

    def kind(one: Mapping[str, Any]) -> tuple[str, float, float]:
        return one["engine"], one["words"], one["rows"] / one["people"]

    for some in dict.fromkeys(map(kind, figures)):
        *smaller, largest = sorted((one for one in figures if kind(one) == some), key=lambda one: one["rows"])
        for one in smaller:
            ratio = largest["recall_p50_ms"] / one["recall_p50_ms"]
            yield f"{some[0]}: recall_p50 of {largest['rows']:,} to {one['rows']:,} rows: {ratio:.2f}"


if __name__ == "__main__":
    main()
