"""Open stores, and what stands in them row by row."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from memory.context import Context
from memory.learn.agents import AgentMemory, Agents
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel
from memory.people.linking import Linking
from memory.recall import index
from memory.service import Service
from memory.store import memories
from memory.store.database import Transaction
from memory.store.memories import Draft, Memory
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.database import SqliteDatabase, SqliteTransaction
from tests.kit import postgres
from tests.kit.fakes import Clock, counting_ids, runtime
from tests.kit.patience import SECONDS

AGENTS = ("assistant", "other")
#: Every SQLite that may be under a store here.
DRIVERS = [drivers.built_in(), *([bundled] if (bundled := drivers.bundled()) is not None else [])]
#: Ids that no two stores of a process share.
counting = counting_ids()
#: The file of an empty store once one was made; migrating takes longer than most tests.
_EMPTY: list[bytes] = []
_MEMORIES = ("memories", "memory_sources", "memory_parents", "memory_entities", "entities", "entity_aliases")


def on_postgres() -> bool:
    """Returns whether the tests of this run keep their stores on PostgreSQL (`pytest --postgres`)."""
    return bool(os.environ.get("REMORA_TESTS_ON_POSTGRES"))


def address(path: Path) -> str:
    """Returns the `database_url` of the store at `path`, empty if it is a file."""
    return postgres.url(path) if on_postgres() else ""


async def migrated(path: Path) -> Path:
    """Puts an empty store at `path` unless one is there, and returns `path`."""
    if not path.exists() and not on_postgres():
        if not _EMPTY:
            with TemporaryDirectory() as folder:
                made = Path(folder) / "remora.db"
                await (await SqliteDatabase.open(made, now=1)).close()
                _EMPTY.append(made.read_bytes())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_EMPTY[0])
    return path


@asynccontextmanager
async def opened(
    path: Path,
    clock: Clock,
    *,
    agents: Sequence[str] | Mapping[str, AgentMemory] = AGENTS,
    model: BackgroundModel | None = None,
    new_id: Callable[[], str] = counting,
    **options: Any,
) -> AsyncIterator[Service]:
    """A store that reads, by patterns or with a model, only when told to; `options` are those of `Service.open`."""
    if not isinstance(agents, Mapping):
        agents = dict.fromkeys(agents, AgentMemory(model=model))
    plain: dict[str, Any] = {"triggers": Triggers(quiet_seconds=3_600), "runtime": runtime(clock, new_id)}
    if not options.keys() & {"driver", "database_url"}:
        await migrated(path)
        plain["database_url"] = address(path)
    memory = await Service.open(path, agents=agents, **(plain | options))
    try:
        yield memory
    finally:
        await memory.close(seconds=SECONDS)


def remembering(memory: Service, **of: Any) -> Agents:
    """The store's agents, each of whom remembers as `of` says."""
    return Agents(memory.agents.ids, dict.fromkeys(memory.agents.by_id, AgentMemory(**of)))


async def profile_of(memory: Service, context: Context) -> list[Memory]:
    return [slot.memory for slot in await memory.browse.profile(context)]


async def rows(memory: Service, sql: str, *parameters: str | int) -> list[tuple[Any, ...]]:
    return await memory.database.read(lambda reader: [tuple(row) for row in reader.all(sql, parameters)])


async def remembered(memory: Service) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of memories and entities, byte for byte."""
    return {table: await rows(memory, f"select * from {table} order by 1, 2") for table in _MEMORIES}


async def link(memory: Service, one: Context, other: Context) -> None:
    """Make the two speakers one person, as an accepted code does."""
    await memory.database.write(
        lambda tx: Linking(tx, one, now=memory.now(), new_id=memory.new_id).link(other.speaker.id)
    )


async def unlink(memory: Service, context: Context) -> None:
    """Make the speaker a person of its own again, as /link remove does."""
    await memory.database.write(
        lambda tx: Linking(tx, context, now=memory.now(), new_id=memory.new_id).unlink(context.speaker.id)
    )
    await index.keep_up(memory.database)


async def wrote(memory: Service, act: Callable[[Transaction], object]) -> None:
    await memory.database.write(lambda tx: (act(tx), None)[1])


def connection_of(tx: Transaction) -> sqlite3.Connection:
    """The connection behind a transaction, to watch what it does."""
    assert isinstance(tx, SqliteTransaction)
    return tx._connection


def draft(context: Context, value: str, now: Callable[[], int], **of: object) -> Draft:
    """A note of who speaks here, unless `of` says otherwise."""
    fields: dict[str, object] = {
        "kind": "fact", "owner_id": context.scope.writes_to, "author_id": context.speaker.id,
        "subject_id": context.speaker.id, "category": "conversation", "key": "note", "value": value,
        "importance": 5, "confidence": 0.9, "origin": "extracted", "learned_at": now(), "local_date": "2026-11-21",
    }  # fmt: skip
    return Draft(**{**fields, **of})  # type: ignore[arg-type]


async def planted(memory: Service, context: Context, value: str, *, sources: Sequence[int] = (), **of: Any) -> int:
    """The id of a memory written as a job or a model would, just now, with its sources."""
    made = draft(context, value, memory.now, **of)

    def act(tx: Transaction) -> int:
        memory_id = memories.insert(tx, made, new_id=memory.new_id, now=memory.now())
        memories.add_sources(tx, memory_id, sources)
        return memory_id

    return await memory.database.write(act)


#: The methods of a transaction that ask a statement, their first argument.
ASKING = {"all", "one", "ids", "number", "run", "insert", "id", "text", "has", "first", "each", "texts", "pairs"}


class Watched:
    """A reader or transaction that keeps what it is asked, with its parameters."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.asked: list[tuple[str, Sequence[Any]]] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name not in ASKING - {"run", "insert"}:
            return real

        def asked(sql: str, parameters: Sequence[Any] = (), *make: Any) -> Any:
            self.asked.append((sql, parameters))
            return real(sql, parameters, *make)

        return asked


class Counted(ModuleType):
    """An SQLite module that keeps every statement its connections run, in `asked`; in `prepared`, those made for it."""

    def __init__(self, real: ModuleType) -> None:
        super().__init__(real.__name__)
        self._real = real
        self.asked: list[str] = []
        self.prepared: list[str] = []

    def connect(self, *args: Any, **kwargs: Any) -> Any:
        connection = self._real.connect(*args, **kwargs)
        is_new = False

        def authorize(*_: object) -> int:  # called only while a statement is prepared
            nonlocal is_new
            is_new = True
            return 0

        def trace(sql: str) -> None:
            nonlocal is_new
            self.asked.append(sql)
            if is_new:
                self.prepared.append(sql)
            is_new = False

        connection.set_authorizer(authorize)
        connection.set_trace_callback(trace)
        return connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
