"""The engine of SQLite: one store on disk with its lock, its single writer and its readers.

A transaction runs on its connection's own thread.

Invariants: At most one process writes a store. A read that takes too long is ended, because it keeps the log from being
emptied. Only the writer checkpoints the log. Once canonical pages are found damaged, nothing is written any more and
nothing is repaired; damage to an index alone stops nobody.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeVar

import aiosqlite
import structlog
from filelock import FileLock, Timeout

from memory.errors import (
    IndexDamaged,
    ReadTooLong,
    StorageError,
    StoreBusy,
    StoreDamaged,
    StoreInUse,
    StoreUnwritable,
)
from memory.store import sealing
from memory.store.database import (
    Database,
    Durability,
    Keys,
    Parameter,
    Reader,
    Row,
    Transaction,
    Value,
    in_transaction,
    rehearsed,
)
from memory.store.job_watch import COLUMNS, triggers
from memory.store.sealing import Seal
from memory.store.sqlite import driver as drivers
from memory.store.sqlite import health
from memory.store.sqlite.migrate import Migration, migrate, migrations

log = structlog.get_logger(__name__)

_PLAIN: Final = (str, int, float, bytes, NoneType)
_READERS: Final = 2
_BUSY_MS: Final = 5_000
#: The longest time for a read, in seconds. A search of one person among a million rows takes some hundredths.
READ_SECONDS: Final = 5.0
#: Steps of SQLite's virtual machine, some 50 ns each, between two looks at the clock during a read.
_STEPS_BETWEEN_LOOKS: Final = 20_000
#: A store up to this size is checked before it is used, in some 0.1 s; a larger store while it is already in use.
_CHECKED_AT_START: Final = 64 * 1024 * 1024
#: SQLite empties the log at 4 MB. If that fails because a reader uses the log, the writer tries from this size on,
_LONG_LOG: Final = 8 * 1024 * 1024
#: each time the log has grown by this step, and only for so long that the next writer hardly waits.
_LOG_STEP: Final = 1024 * 1024
_LOG_WAIT_MS: Final = 100
#: Seconds between two warnings that the log can't be emptied.
_WARNED: Final = 60.0
_FULL: Final = (
    "The disk holding {path} is full. Nothing of this was saved; what was saved before is intact. "
    "Free some space, and it goes on without a restart."
)
_BROKEN: Final = (
    "The disk holding {path} reports an error ({text}). Nothing of this was saved; what was saved before was "
    "not touched. Look at the disk and its free space; it goes on without a restart."
)
_RIGHTS: Final = "Can't write {path}: {text}. Check the rights of the file and its folder."
_LOCKED: Final = (
    "Another program has kept {path} locked for too long, such as an sqlite3 shell or a backup ({text}). "
    "Nothing was changed; close that program, or try again when it has ended."
)
_LONG: Final = "Reading {path} took too long and was ended, so that writers can go on. Try again."
_UNKNOWN: Final = (
    "{path} is damaged or not a Remora database ({text}). Nothing was changed. "
    "Move the file away to start empty, or put a backup in its place."
)
#: The meaning of the driver's messages, in the order in which they are looked for.
_MEANINGS: Final[tuple[tuple[str, type[StorageError], str], ...]] = (
    ("disk is full", StoreUnwritable, _FULL),
    ("I/O error", StoreUnwritable, _BROKEN),
    ("readonly", StoreUnwritable, _RIGHTS),
    ("unable to open", StoreUnwritable, _RIGHTS),
    ("locked", StoreBusy, _LOCKED),
    ("interrupted", ReadTooLong, _LONG),
    ("not a database", StoreDamaged, _UNKNOWN),
    ("malformed", StoreDamaged, _UNKNOWN),
)
#: The statements that a connection keeps prepared; a turn and the work it leaves ask some 120 different ones.
_PREPARED: Final = 250
_LIMIT: Final = re.compile(r"\blimit \?\d*")
T = TypeVar("T")


@lru_cache(maxsize=2_000)
def _prepared_once(sql: str) -> str:
    """Returns a statement that SQLite prepares once: since 3.49 one with a bound limit is prepared at every run."""
    return _LIMIT.sub(r"\g<0> + 0", sql)


def _bound(parameters: Sequence[Parameter]) -> list[Value]:
    # SQLite takes 32,766 parameters a statement, and older versions 999, so a collection becomes one parameter.
    return [one if isinstance(one, _PLAIN) else json.dumps(list(one)) for one in parameters]


class SqliteReader(Reader):
    def __init__(self, connection: sqlite3.Connection, seal: Seal | None = None) -> None:
        self._connection = connection
        self._seal = seal

    @property
    def seal(self) -> Seal:
        assert self._seal is not None
        return self._seal

    def all(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]:
        return self._connection.execute(_prepared_once(sql), _bound(parameters)).fetchall()

    def one(self, sql: str, parameters: Sequence[Parameter] = ()) -> Row | None:
        row: Row | None = self._connection.execute(_prepared_once(sql), _bound(parameters)).fetchone()
        return row

    def given_ids(self) -> dict[str, int]:
        return {row["name"]: row["seq"] for row in self.all("select name, seq from sqlite_sequence")}


class SqliteTransaction(SqliteReader, Transaction):
    def run(self, sql: str, parameters: Sequence[Parameter] = ()) -> None:
        self._connection.execute(_prepared_once(sql), _bound(parameters))

    def run_each(self, sql: str, rows: Sequence[Sequence[Parameter]]) -> None:
        self._connection.executemany(sql, [_bound(row) for row in rows])

    def give_ids_behind(self, given: Mapping[str, int]) -> None:
        # A table without a sequence gives the id after its greatest one.
        for row in self.all("select name from sqlite_schema where type = 'table' and sql like '%autoincrement%'"):
            name = row["name"]
            last = max(given.get(name, 0), self.number(f"select coalesce(max(id), 0) from {name}"))
            self.run("update sqlite_sequence set seq = ? where name = ? and seq < ?", (last, name, last))
            self.run(
                "insert into sqlite_sequence (name, seq) select ?, ?"
                " where not exists (select 1 from sqlite_sequence where name = ?)",
                (name, last, name),
            )

    def watch(self) -> None:
        self.run(
            f"create temp table journal_rows (id integer primary key, made integer not null, {', '.join(COLUMNS)})"
        )
        self.run(
            "create temp table journal_links (n integer primary key, added integer not null, name text not null,"
            " memory_id, other_id)"
        )
        self.run("create temp table journal_names (id integer primary key, made integer not null, type text)")
        for name, event, table, does in triggers(
            lambda message: f"select raise(abort, '{message}')",
            lambda entity: f"select raise(ignore) where {entity} not in (select id from journal_names where made)",
        ):
            self.run(f"create temp trigger journal_{name} {event} on main.{table} begin {does}; end")

    def unwatch(self) -> None:
        for row in self.all("select name from temp.sqlite_master where type = 'trigger' and name glob 'journal_*'"):
            self.run(f"drop trigger temp.{row['name']}")
        for table in ("rows", "links", "names"):
            self.run(f"drop table temp.journal_{table}")

    @property
    def changes(self) -> int:
        return self.number("select total_changes()")

    @property
    def state(self) -> str:
        return str(self.changes)


class SqliteDatabase(Database):
    """An open store on disk. Use `await SqliteDatabase.open(...)`; close it with `await close()`."""

    twice = False

    def __init__(
        self,
        *,
        path: Path,
        driver: drivers.Driver,
        lock: FileLock,
        writer: _Connection,
        readers: list[_Connection],
        seal: Seal,
        without_vectors: str,
    ) -> None:
        self.path = path
        self._log_path = path.with_name(f"{path.name}-wal")
        self.seal = seal
        self.driver = driver
        #: The damage and the remedy, for health and status; None as long as no damage is known.
        self.damage: str | None = None
        #: The reason why vectors can't be compared here, for health and status; empty if they can.
        self.without_vectors = without_vectors
        #: Called when damage turns out to be only in tables that can be derived again.
        self.on_index_damage: Callable[[], None] = lambda: None
        self._error: type[Exception] = driver.module.Error
        # Wrong parameters are a fault of the program, not a failure of the store: the same call never succeeds later.
        self._faults: tuple[type[Exception], ...] = (driver.module.ProgrammingError, driver.module.InterfaceError)
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._check: asyncio.Task[None] | None = None
        self._checked_from = float("-inf")
        self._closing = False
        self._log_tried_at = _LONG_LOG
        self._log_warned_at = float("-inf")

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        now: int,
        durability: Durability = "process",
        driver: drivers.Driver | None = None,
        known: list[Migration] | None = None,
        read_seconds: float = READ_SECONDS,
        checked_at_start: int = _CHECKED_AT_START,
        keys: Path | None = None,
    ) -> SqliteDatabase:
        """Locks, opens and migrates the store at `path`. Creates the store and its folder if missing.

        Forgotten statements are sealed with the keys in the file `keys`, by default the key file beside the store.

        A damaged store opens, too, with `damage` set, unless it can't be read at all or would have to be migrated.
        Files larger than `checked_at_start` bytes are checked in the background.

        Raises `StoreInUse`, `StoreUnwritable`, `StoreDamaged`, `SchemaTooNew` or `StorageError`, each saying what to
        do.
        """
        prepare = partial(
            _prepare_writer, path=path, known=known or migrations(), now=now, durability=durability,
            checked_at_start=checked_at_start,
        )  # fmt: skip
        opening = asyncio.create_task(
            cls._open(path, driver or drivers.best(), prepare, read_seconds, keys or sealing.path_of(path))
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread can't be stopped half-way: wait until it has opened the store, then close it.
            with suppress(StorageError):
                await (await opening).close()
            raise

    @classmethod
    async def _open(
        cls,
        path: Path,
        driver: drivers.Driver,
        prepare: Callable[..., tuple[bool, list[str]]],
        read_seconds: float,
        keys: Path,
    ) -> SqliteDatabase:
        lock = _locked(path)
        error: type[Exception] = driver.module.Error
        opened: list[_Connection] = []
        try:
            seal = Seal(keys)
            opened.append(await _connect(path, driver))
            checked, damaged = await opened[0].call(partial(prepare, error=error))
            for _ in range(_READERS):
                opened.append(await _connect(path, driver, read_seconds=read_seconds))
                await opened[-1].call(_prepare_reader)
            reasons = [await connection.call(driver.load_vectors) for connection in opened]
        except BaseException as exc:
            for connection in opened:
                await connection.close()
            _release(lock, path)
            if isinstance(exc, error):
                raise _storage_error(path, exc) from exc
            raise
        writer, *readers = opened
        database = cls(
            path=path, driver=driver, lock=lock, writer=writer, readers=readers, seal=seal, without_vectors=reasons[0]
        )
        if damaged:
            database._found(damaged)
        elif not checked:
            database._check = asyncio.create_task(database._look(free_pages=False))
        return database

    async def write(
        self,
        act: Callable[[Transaction], T],
        *,
        keys: Keys | None = None,
        durable: bool = True,
        single: bool = False,
    ) -> T:
        """Runs `act` as one transaction. Any exception it raises rolls back the whole transaction.

        Raises `StoreDamaged` without trying if the store is known to be damaged.
        """
        return await self._write(rehearsed(act) if self.twice else act, single=single)

    async def _write(self, act: Callable[[SqliteTransaction], T], *, single: bool = False) -> T:
        if self.damage is not None:
            raise StoreDamaged(self.damage)

        def run(connection: sqlite3.Connection) -> T:
            with _transaction(connection, begins=not single):
                result = act(SqliteTransaction(connection, self.seal))
            self._shorten_log(connection)
            return result

        met = time.monotonic()
        try:
            return await self._writer.call(run)
        except self._faults:
            raise
        except self._error as exc:
            raise await self._explained(exc, met) from exc

    async def read(self, act: Callable[[Reader], T], *, single: bool = False) -> T:
        met = time.monotonic()
        try:
            # A long read must not hold up the others.
            reader = min(self._readers, key=lambda connection: connection.waiting)
            return await reader.call(partial(_stated if single else _consistent, act=act, seal=self.seal))
        except self._faults:
            raise
        except self._error as exc:
            raise await self._explained(exc, met) from exc

    async def examine(self, act: Callable[[Reader], T]) -> T:
        met = time.monotonic()
        try:
            return await self._apart(lambda connection: _consistent(connection, act, self.seal))
        except self._error as exc:
            raise await self._explained(exc, met) from exc

    async def state(self) -> str:
        return await self._write(lambda tx: tx.state)

    async def check(self) -> str | None:
        await self._looked_since(time.monotonic())
        return self.damage

    async def damaged(self, tables: Collection[str]) -> list[str]:
        return await self._apart(lambda connection: health.damaged(connection, self._error, tables))

    async def strike(self, tables: Collection[str]) -> None:
        """Recreates damaged derived tables, empty, without touching their pages; see `health.strike`.

        The file is then rewritten from the remaining rows, which holds up writers for about a second per 100,000 rows.
        """
        assert set(tables) <= set(health.DERIVED)
        await self._write(lambda tx: health.strike(tx._connection, tables))

        def vacuum(connection: sqlite3.Connection) -> None:
            _vacuum(connection)
            # The whole file went through the log.
            self._shorten_log(connection)

        try:
            await self._writer.call(vacuum)
        except self._error as exc:
            log.warning("store.not_vacuumed", error=str(exc), left="pages nobody uses")

    async def scrub(self, *, seconds: float = 5.0) -> bool:
        """Removes every byte of deleted or replaced data from the files. Returns False if it can't.

        `secure_delete` alone is not enough: when SQLite shifts rows between pages, it leaves copies behind in space
        that is then free (measured in docs/design/memory.md). So the file is rewritten from the rows, at some 10 ms a
        MB, during which writers wait. The log is emptied before and after; each attempt lasts at most `seconds`, and
        fails if a read takes longer.
        """
        if self.damage is not None or not await self._log_emptied(seconds):
            return False
        try:
            await self._writer.call(_vacuum)
        except self._error as exc:
            log.warning("store.not_vacuumed", error=str(exc), left="traces of what was erased")
            return False
        return await self._log_emptied(seconds)

    @property
    def engine(self) -> str:
        return str(self.driver)

    @property
    def file_bytes(self) -> int:
        return self.path.stat().st_size

    async def close(self) -> None:
        """Closes the readers, then the writer, which as the last connection checkpoints the log."""
        await asyncio.shield(asyncio.create_task(self._close()))

    @property
    def wal_bytes(self) -> int:
        try:
            return self._log_path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def oldest_read_seconds(self) -> float:
        return max(connection.busy_seconds for connection in self._readers)

    async def _close(self) -> None:
        self._closing = True
        if self._check is not None:
            await self._check
        for connection in [*self._readers, self._writer]:
            await connection.close()
        _release(self._lock, self.path)

    async def _log_emptied(self, seconds: float) -> bool:
        """Empties the log as soon as it has no readers. Writers get their turn between the attempts."""

        until = time.monotonic() + seconds
        while True:
            try:
                if await self._writer.call(_log_truncated):
                    return True
            except self._error as exc:
                log.warning("store.log_held", path=str(self.path), reason=str(exc))
                return False
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(_LOG_WAIT_MS / 1000)

    async def _explained(self, exc: Exception, met: float) -> StorageError:
        """Returns our error for the driver's. Checks for damage first, as an error doesn't say whose pages it met."""
        if not (health.is_damage(exc) or health.is_undecodable(exc)):
            return _storage_error(self.path, exc)
        if not health.is_index_damage(exc):
            if health.is_undecodable(exc):
                # No check of SQLite finds this: the pages are whole.
                self._found(["a text"])
            else:
                await self._looked_since(met)
            if self.damage is not None:
                return StoreDamaged(self.damage)
        log.warning("store.index_damaged", path=str(self.path))
        self.on_index_damage()
        return IndexDamaged(
            f"A search index in {self.path} is damaged. Nothing is lost: it is made again from the rows."
        )

    async def _looked_since(self, moment: float) -> None:
        # A check that began before `moment` says nothing about damage met since.
        while self._checked_from < moment and self.damage is None and not self._closing:
            if self._check is None or self._check.done():
                self._check = asyncio.create_task(self._look(free_pages=True))
            await asyncio.shield(self._check)

    async def _look(self, *, free_pages: bool) -> None:
        began = time.monotonic()
        try:
            damaged = await self._apart(
                lambda connection: health.damaged_canonical(connection, self._error, free_pages=free_pages)
            )
        except self._error as exc:
            if not self._closing:
                log.warning("store.unchecked", path=str(self.path), error=str(exc))
            damaged = []
        self._checked_from = began
        if damaged:
            self._found(damaged)
        elif not self._closing:
            log.info("store.checked", path=str(self.path), seconds=round(time.monotonic() - began, 1))

    async def _apart(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `act` on a separate connection, which only closing the store interrupts."""
        connection = await _connect(self.path, self.driver)
        try:
            await connection.call(_prepare_reader)
            await connection.call(lambda c: c.set_progress_handler(lambda: self._closing, _STEPS_BETWEEN_LOOKS))
            return await connection.call(act)
        finally:
            await connection.close()

    def _found(self, damaged: Sequence[str]) -> None:
        if self.damage is None:
            self.damage = _damage(self.path, damaged)
            log.error("store.damaged", path=str(self.path), damaged=list(damaged), now="read only")

    def _shorten_log(self, connection: sqlite3.Connection) -> None:
        """Empties a log that has grown long, unless a reader still uses it. Never raises, as the commit is done."""
        size = self.wal_bytes
        if size < _LONG_LOG:
            self._log_tried_at = _LONG_LOG
        if size < self._log_tried_at:
            return
        try:
            held, reason = not _log_truncated(connection), "somebody reads"
        except self._error as exc:
            held, reason = True, str(exc)
        self._log_tried_at = size + _LOG_STEP if held else _LONG_LOG
        if held and time.monotonic() - self._log_warned_at >= _WARNED:
            self._log_warned_at = time.monotonic()
            seconds = self.oldest_read_seconds
            log.warning(
                "store.log_held",
                path=str(self.path),
                megabytes=round(size / 1e6, 1),
                reason=reason,
                by=f"a read of ours, for {seconds:.1f} s" if seconds else "another program that has the file open",
            )


async def look(path: Path, act: Callable[[Reader], T], *, driver: drivers.Driver | None = None) -> T | None:
    """Runs `act` on one committed state of a store that another process may have open. Returns None without a store.

    Nothing is written. Raises `StorageError` or a subclass, also if the store is of another version.
    """
    driver = driver or drivers.best()

    def read(connection: sqlite3.Connection) -> T:
        _prepare_reader(connection)
        known = migrations()
        row = connection.execute("select max(version) from migrations").fetchone()
        if row[0] != known[-1].version:
            raise StorageError(f"{path} belongs to another version of Remora. The next start updates it if it can.")
        return _consistent(connection, act)

    if not _is_there(path):
        return None
    try:
        connection = await _connect(path, driver, read_seconds=READ_SECONDS)
        try:
            return await connection.call(read)
        finally:
            await connection.close()
    except driver.module.Error as exc:
        raise _storage_error(path, exc) from exc


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keeps every other process from the store at `path`, open or not. Raises `StoreInUse` and `StoreUnwritable`."""
    lock = _locked(path)
    try:
        yield
    finally:
        _release(lock, path)


class _Connection(aiosqlite.Connection):
    """aiosqlite's thread and queue, used for whole functions.

    A hop between threads for each statement would cost more than the statement.
    """

    _asked = 0  # written only by the loop's thread
    _done = 0  # this and `_began` are written only by the connection's thread
    _began: float | None = None

    async def call(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `act` on the connection's thread, after all functions requested before."""

        def run(connection: sqlite3.Connection) -> T:
            self._began = time.monotonic()
            try:
                return act(connection)
            finally:
                self._began = None
                self._done += 1

        self._asked += 1
        result: T = await self._execute(run, self._conn)  # type: ignore[no-untyped-call]
        return result

    @property
    def waiting(self) -> int:
        """The number of functions that wait or run, including those whose caller was cancelled."""
        return self._asked - self._done

    @property
    def busy_seconds(self) -> float:
        began = self._began
        return 0.0 if began is None else time.monotonic() - began


def _log_truncated(connection: sqlite3.Connection) -> bool:
    connection.execute(f"pragma busy_timeout = {_LOG_WAIT_MS}")
    try:
        return not connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
    finally:
        connection.execute(f"pragma busy_timeout = {_BUSY_MS}")


def _vacuum(connection: sqlite3.Connection) -> None:
    connection.execute("vacuum")


@contextmanager
def _transaction(connection: sqlite3.Connection, *, begins: bool = True) -> Iterator[None]:
    """Makes a transaction of the block; without `begins` each of its statements is one of its own."""
    if connection.in_transaction:
        # A transaction that could not even be rolled back, because the disk failed.
        connection.execute("rollback")
    if begins:
        connection.execute("begin immediate")
    try:
        with in_transaction():
            yield
        if begins:
            connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _consistent(connection: sqlite3.Connection, act: Callable[[Reader], T], seal: Seal | None = None) -> T:
    if connection.in_transaction:
        connection.execute("rollback")
    connection.execute("begin")
    try:
        with in_transaction():
            return act(SqliteReader(connection, seal))
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def _stated(connection: sqlite3.Connection, act: Callable[[Reader], T], seal: Seal) -> T:
    """Runs `act`, which asks one statement and so sees one state without a transaction."""
    with in_transaction():
        return act(SqliteReader(connection, seal))


async def _connect(path: Path, driver: drivers.Driver, *, read_seconds: float | None = None) -> _Connection:
    """Opens a connection. With `read_seconds` SQLite ends any function that runs on it for longer."""

    def connector() -> Any:
        # Explicit transactions only: the driver must not open one of its own.
        made = driver.module.connect(
            str(path), isolation_level=None, check_same_thread=False, cached_statements=_PREPARED
        )
        made.row_factory = driver.module.Row
        made.execute(f"pragma busy_timeout = {_BUSY_MS}")
        if read_seconds is not None:
            made.set_progress_handler(lambda: connection.busy_seconds > read_seconds, _STEPS_BETWEEN_LOOKS)
        return made

    connection = _Connection(connector, iter_chunk_size=64)
    await connection
    return connection


def _is_there(path: Path) -> bool:
    return path.exists()


def _prepare_writer(
    connection: sqlite3.Connection,
    *,
    path: Path,
    known: list[Migration],
    error: type[Exception],
    now: int,
    durability: Durability,
    checked_at_start: int,
) -> tuple[bool, list[str]]:
    """Brings the file up to date. Returns whether it was checked, and its damaged tables."""
    for pragma in _writer_pragmas(durability):
        connection.execute(pragma)
    # A store to be migrated must be whole, however long the check takes.
    current = _is_current(connection, known)
    checked = not current or path.stat().st_size <= checked_at_start
    damaged = health.damaged_canonical(connection, error, free_pages=True) if checked else []
    if damaged and not current:
        raise StoreDamaged(_damage(path, damaged))
    # A migration must not meet damage in tables that can be derived again.
    struck = [] if current else health.before_migration(connection, error)
    if struck:
        log.warning("index.damaged", tables=struck, now="making them anew from the rows")
        with _transaction(connection):
            health.strike(connection, struck)
    migrate(connection, known, now=now)
    if struck:
        connection.execute("vacuum")
    return checked, damaged


def _prepare_reader(connection: sqlite3.Connection) -> None:
    connection.execute("pragma query_only = on")
    # 4 MB of pages: a search of one person among many reads a few hundred, and the system keeps the rest.
    connection.execute("pragma cache_size = -4000")


def _writer_pragmas(durability: Durability) -> list[str]:
    # NORMAL survives a killed process; FULL also a power cut, at some milliseconds per commit.
    synchronous = "full" if durability == "power-loss" else "normal"
    return [
        "pragma journal_mode = wal",
        "pragma foreign_keys = on",
        "pragma secure_delete = on",
        f"pragma synchronous = {synchronous}",
        # A log that grew while it was held is truncated to this size once it is restarted.
        f"pragma journal_size_limit = {_LONG_LOG // 2}",
    ]


def _is_current(connection: sqlite3.Connection, known: list[Migration]) -> bool:
    """Returns whether there is nothing to migrate: every migration is applied, or the file is still empty."""
    if connection.execute("select 1 from sqlite_schema where name = 'migrations'").fetchone() is None:
        return True
    newest: int = connection.execute("select coalesce(max(version), 0) from migrations").fetchone()[0]
    return newest >= known[-1].version


def _storage_error(path: Path, error: Exception) -> StorageError:
    """Returns our error for the driver's. The two SQLite modules share no exception classes."""
    text = str(error)
    for words, kind, meaning in _MEANINGS:
        if words in text:
            return kind(meaning.format(path=path, text=text))
    return StorageError(f"{path}: {text}")


def _damage(path: Path, damaged: Sequence[str]) -> str:
    return (
        f"{path} is damaged ({', '.join(damaged)}). Nothing was changed and nothing more is written to it; what can "
        "still be read is. Stop Remora, keep a copy of the file with its -wal beside it, and put a backup in its "
        "place; without a backup, move it away to start empty."
    )


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
            f"Can't write in {path.parent}: {exc.strerror}. Fix the permissions of that folder, "
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
