"""One store on disk: its lock, its single writer, its readers.

Invariants: at most one process writes a store; inside it all writes go through one connection, one transaction at
a time, in the order asked; a cancelled or failing caller never leaves a transaction open; readers can't write;
only the writer checkpoints the log. No network is ever awaited inside a transaction.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import aiosqlite
from filelock import FileLock, Timeout

from memory.errors import StorageError, StoreInUse, StoreUnwritable
from memory.store import driver as drivers
from memory.store.migrate import Migration, migrate, migrations

Durability: TypeAlias = Literal["process", "power-loss"]
Row: TypeAlias = sqlite3.Row
Value: TypeAlias = str | int | float | bytes | None

_READERS = 2
_BUSY_MS = 5_000
T = TypeVar("T")


class Reader(Protocol):
    """What reads rows: a transaction, or the database itself."""

    async def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]: ...

    async def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None: ...


class Transaction:
    """The writer, inside one transaction. Statements that return nothing give an empty list."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        return list(await self._connection.execute_fetchall(sql, parameters))

    async def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def run(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        await self._connection.execute_fetchall(sql, parameters)

    async def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run an insert and return the new row's id."""
        row = await self._connection.execute_insert(sql, parameters)
        if row is None:
            raise StorageError("SQLite returned no row id for an insert")
        return int(row[0])


class Database:
    """An open store. Use `await Database.open(...)`; close it with `await close()`."""

    def __init__(
        self,
        *,
        path: Path,
        driver: drivers.Driver,
        lock: FileLock,
        writer: aiosqlite.Connection,
        readers: list[aiosqlite.Connection],
    ) -> None:
        self.path = path
        self.driver = driver
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._next_reader = cycle(readers)
        self._turn = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        now: int,
        durability: Durability = "process",
        driver: drivers.Driver | None = None,
        known: list[Migration] | None = None,
    ) -> Database:
        """Lock, open and migrate the store at `path`, creating it and its folder when missing.

        Raises `StoreInUse`, `StoreUnwritable`, `SchemaTooNew` or `StorageError`, each saying what to do.
        """
        driver = driver or drivers.best()
        lock = _locked(path)
        opened: list[aiosqlite.Connection] = []
        try:
            with _translated(path, driver):
                writer = await _connect(path, driver)
                opened.append(writer)
                for pragma in _writer_pragmas(durability):
                    await writer.execute_fetchall(pragma)
                await migrate(writer, known or migrations(), now=now)
                for _ in range(_READERS):
                    reader = await _connect(path, driver)
                    opened.append(reader)
                    await reader.execute_fetchall("pragma query_only = on")
        except BaseException:
            for connection in opened:
                await connection.close()
            _release(lock, path)
            raise
        return cls(path=path, driver=driver, lock=lock, writer=opened[0], readers=opened[1:])

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One `BEGIN IMMEDIATE` … `COMMIT`; rolled back on any exception, cancellation included."""
        async with self._turn:
            with _translated(self.path, self.driver):
                try:
                    await self._writer.execute_fetchall("begin immediate")
                    yield Transaction(self._writer)
                    await _to_the_end(self._writer.commit())
                except BaseException:
                    # Queued behind whatever statement was cut off, so it always finds the final state.
                    await _to_the_end(self._writer.rollback())
                    raise

    async def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Read committed rows."""
        with _translated(self.path, self.driver):
            return list(await next(self._next_reader).execute_fetchall(sql, parameters))

    async def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def close(self) -> None:
        """Close the readers first: the writer is then the last connection and checkpoints the log."""
        for connection in [*self._readers, self._writer]:
            await connection.close()
        _release(self._lock, self.path)


async def _connect(path: Path, driver: drivers.Driver) -> aiosqlite.Connection:
    def connector() -> Any:
        # Explicit transactions only: the driver must not open one of its own.
        return driver.module.connect(str(path), isolation_level=None, check_same_thread=False)

    connection = await aiosqlite.Connection(connector, iter_chunk_size=64)
    connection.row_factory = driver.module.Row
    await connection.execute_fetchall(f"pragma busy_timeout = {_BUSY_MS}")
    return connection


def _writer_pragmas(durability: Durability) -> list[str]:
    # NORMAL survives a killed process; FULL also a power cut, at some milliseconds per commit.
    synchronous = "full" if durability == "power-loss" else "normal"
    return [
        "pragma journal_mode = wal",
        "pragma foreign_keys = on",
        "pragma secure_delete = on",
        f"pragma synchronous = {synchronous}",
    ]


async def _to_the_end(awaitable: Awaitable[T]) -> T:
    """Await something that must not be cut in the middle, then let a cancellation through."""
    task = asyncio.ensure_future(awaitable)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as exc:
            if task.cancelled():
                raise
            cancelled = exc
    if cancelled is not None:
        raise cancelled
    return task.result()


class _translated:  # noqa: N801 - reads as a clause: `with _translated(...)`
    """Turn the driver's errors into ours; the two SQLite modules share no exception classes."""

    def __init__(self, path: Path, driver: drivers.Driver) -> None:
        self._path = path
        self._error: type[Exception] = driver.module.Error

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._error):
            raise _storage_error(self._path, error) from error


def _storage_error(path: Path, error: Exception) -> StorageError:
    text = str(error)
    if "disk is full" in text:
        return StoreUnwritable(f"The disk holding {path} is full. Free some space; what was saved is intact.")
    if "readonly" in text or "unable to open" in text:
        return StoreUnwritable(f"Can't write {path}: {text}. Check the rights of the file and its folder.")
    if "not a database" in text or "malformed" in text:
        return StorageError(
            f"{path} is damaged or no Remora database ({text}). Nothing was changed. "
            "Move the file away to start empty, or put a backup in its place."
        )
    return StorageError(f"{path}: {text}")


def _locked(path: Path) -> FileLock:
    lock = FileLock(f"{path}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
        _pid_file(path).write_text(str(os.getpid()))
    except Timeout:
        raise StoreInUse(
            f"{path} is in use by another Remora{_holder(path)}. Stop that one first, "
            "or give this one another data_dir."
        ) from None
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't write in {path.parent}: {exc.strerror}. Fix the rights of that folder, "
            "or name another one as data_dir in config.yaml."
        ) from exc
    return lock


def _holder(path: Path) -> str:
    with suppress(OSError):
        return f" (process {_pid_file(path).read_text().strip()})"
    return ""


def _release(lock: FileLock, path: Path) -> None:
    _pid_file(path).unlink(missing_ok=True)
    lock.release()


def _pid_file(path: Path) -> Path:
    # Beside the lock, not in it: opening a lock file may truncate it.
    return path.with_name(path.name + ".pid")
