"""One store on disk: its lock, its single writer, its readers.

A transaction is a plain function: it gets the connection, runs on that connection's own thread from `BEGIN` to
`COMMIT` in one go, and can't await anything. Invariants: at most one process writes a store; inside it transactions
run one at a time, in the order asked; a cancelled caller leaves none open, for the function runs to its end
regardless; readers see one committed state for the whole of a function and can't write; only the writer checkpoints
the log.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

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


class Reader:
    """A connection inside a read or write transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        row: Row | None = self._connection.execute(sql, parameters).fetchone()
        return row


class Transaction(Reader):
    """The writer inside its transaction."""

    def run(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        self._connection.execute(sql, parameters)

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run an insert and return the new row's id."""
        row_id = self._connection.execute(sql, parameters).lastrowid
        assert row_id is not None
        return row_id


class Database:
    """An open store. Use `await Database.open(...)`; close it with `await close()`."""

    def __init__(
        self,
        *,
        path: Path,
        driver: drivers.Driver,
        lock: FileLock,
        writer: _Connection,
        readers: list[_Connection],
    ) -> None:
        self.path = path
        self.driver = driver
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._next_reader = cycle(readers)

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
        opened: list[_Connection] = []

        def prepare_writer(connection: sqlite3.Connection) -> None:
            for pragma in _writer_pragmas(durability):
                connection.execute(pragma)
            migrate(connection, known or migrations(), now=now)

        try:
            with _translated(path, driver):
                for prepare in (prepare_writer, *[_prepare_reader] * _READERS):
                    connection = await _connect(path, driver)
                    opened.append(connection)
                    await connection.call(prepare)
        except BaseException:
            for connection in opened:
                await connection.close()
            _release(lock, path)
            raise
        return cls(path=path, driver=driver, lock=lock, writer=opened[0], readers=opened[1:])

    async def write(self, act: Callable[[Transaction], T]) -> T:
        """Run `act` as one transaction; whatever it raises rolls all of it back."""
        with _translated(self.path, self.driver):
            return await self._writer.call(lambda connection: _committed(connection, act))

    async def read(self, act: Callable[[Reader], T]) -> T:
        """Run `act` on one committed state."""
        with _translated(self.path, self.driver):
            return await next(self._next_reader).call(lambda connection: _consistent(connection, act))

    async def close(self) -> None:
        """Close the readers first: the writer is then the last connection and checkpoints the log."""
        for connection in [*self._readers, self._writer]:
            await connection.close()
        _release(self._lock, self.path)


class _Connection(aiosqlite.Connection):
    """aiosqlite's thread and queue, for whole functions: a hop a statement would cost more than the statement."""

    async def call(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Run `act` on the connection's thread, after all that was asked before."""
        result: T = await self._execute(act, self._conn)  # type: ignore[no-untyped-call]
        return result


def _committed(connection: sqlite3.Connection, act: Callable[[Transaction], T]) -> T:
    connection.execute("begin immediate")
    try:
        result = act(Transaction(connection))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return result


def _consistent(connection: sqlite3.Connection, act: Callable[[Reader], T]) -> T:
    connection.execute("begin")
    try:
        return act(Reader(connection))
    finally:
        connection.execute("rollback")


async def _connect(path: Path, driver: drivers.Driver) -> _Connection:
    def connector() -> Any:
        # Explicit transactions only: the driver must not open one of its own.
        connection = driver.module.connect(str(path), isolation_level=None, check_same_thread=False)
        connection.row_factory = driver.module.Row
        connection.execute(f"pragma busy_timeout = {_BUSY_MS}")
        return connection

    connection = _Connection(connector, iter_chunk_size=64)
    await connection
    return connection


def _prepare_reader(connection: sqlite3.Connection) -> None:
    connection.execute("pragma query_only = on")
    # 16 MB of pages: a search of one person among many reads a few hundred.
    connection.execute("pragma cache_size = -16000")


def _writer_pragmas(durability: Durability) -> list[str]:
    # NORMAL survives a killed process; FULL also a power cut, at some milliseconds per commit.
    synchronous = "full" if durability == "power-loss" else "normal"
    return [
        "pragma journal_mode = wal",
        "pragma foreign_keys = on",
        "pragma secure_delete = on",
        f"pragma synchronous = {synchronous}",
    ]


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
