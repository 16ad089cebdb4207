"""One store on disk: its lock, its single writer, its readers.

A transaction is a plain function: it gets the connection, runs on that connection's own thread from `BEGIN` to
`COMMIT` in one go, and can't await anything. Invariants: at most one process writes a store; inside it transactions
run one at a time, in the order asked; a cancelled caller leaves none open, for the function runs to its end
regardless; readers see one committed state for the whole of a function and can't write; a read that takes too long is
ended, for it keeps the log from being emptied; only the writer checkpoints the log. Once canonical pages are found
damaged nothing is written any more, and nothing is repaired; damage to an index alone stops nobody.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

import aiosqlite
import structlog
from filelock import FileLock, Timeout

from memory.errors import IndexDamaged, StorageError, StoreBusy, StoreDamaged, StoreInUse, StoreUnwritable
from memory.store import driver as drivers
from memory.store import health
from memory.store.migrate import Migration, migrate, migrations

Durability: TypeAlias = Literal["process", "power-loss"]
Row: TypeAlias = sqlite3.Row
Value: TypeAlias = str | int | float | bytes | None

log = structlog.get_logger(__name__)

_READERS: Final = 2
_BUSY_MS: Final = 5_000
#: How long a read may take, in seconds. A search of one person among a million rows takes some hundredths.
READ_SECONDS: Final = 5.0
#: SQLite looks at the clock so often while it reads: steps of its machine, some 50 ns each.
_STEPS_BETWEEN_LOOKS: Final = 20_000
#: A store up to this size is checked before it is used, at some 0.1 s; a larger one while it already is.
_CHECKED_AT_START: Final = 64 * 1024 * 1024
#: SQLite empties the log at 4 MB. Where that fails, for somebody reads it, it is tried harder from here on,
_LONG_LOG: Final = 8 * 1024 * 1024
#: each time it has grown by so much, and for so long that the next writer hardly waits.
_LOG_STEP: Final = 1024 * 1024
_LOG_WAIT_MS: Final = 100
#: Seconds between two warnings that the log can't be emptied.
_WARNED: Final = 60.0
#: What the driver's words mean, in the order in which they are looked for.
_MEANINGS: Final[tuple[tuple[str, type[StorageError], str], ...]] = (
    (
        "disk is full",
        StoreUnwritable,
        (
            "The disk holding {path} is full. Nothing of this was saved; what was saved before is intact. "
            "Free some space, and it goes on without a restart."
        ),
    ),
    (
        "I/O error",
        StoreUnwritable,
        (
            "The disk holding {path} reports an error ({text}). Nothing of this was saved; what was saved before was "
            "not touched. Look at the disk and its free space; it goes on without a restart."
        ),
    ),
    ("readonly", StoreUnwritable, "Can't write {path}: {text}. Check the rights of the file and its folder."),
    ("unable to open", StoreUnwritable, "Can't write {path}: {text}. Check the rights of the file and its folder."),
    (
        "locked",
        StoreBusy,
        (
            "Another program has kept {path} locked for too long, such as an sqlite3 shell or a backup ({text}). "
            "Nothing was changed; close that program, or try again when it has ended."
        ),
    ),
    ("interrupted", StoreBusy, "Reading {path} took too long and was ended, so that writers can go on. Try again."),
    (
        "not a database",
        StoreDamaged,
        (
            "{path} is damaged or no Remora database ({text}). Nothing was changed. "
            "Move the file away to start empty, or put a backup in its place."
        ),
    ),
    (
        "malformed",
        StoreDamaged,
        (
            "{path} is damaged or no Remora database ({text}). Nothing was changed. "
            "Move the file away to start empty, or put a backup in its place."
        ),
    ),
)
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
        #: What is damaged and what to do, for health and status; None while all is well as far as is known.
        self.damage: str | None = None
        #: Called when damage turns out to be in what can be made again, and in nothing else.
        self.on_index_damage: Callable[[], None] = _nothing
        self._error: type[Exception] = driver.module.Error
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
    ) -> Database:
        """Lock, open and migrate the store at `path`, creating it and its folder when missing.

        A store that is found damaged opens too, with `damage` set, unless it can't be read at all or would have to be
        migrated. Files larger than `checked_at_start` bytes are checked in the background.

        Raises `StoreInUse`, `StoreUnwritable`, `StoreDamaged`, `SchemaTooNew` or `StorageError`, each saying what to
        do.
        """
        opening = asyncio.create_task(
            cls._open(
                path,
                now=now,
                durability=durability,
                driver=driver or drivers.best(),
                known=known or migrations(),
                read_seconds=read_seconds,
                checked_at_start=checked_at_start,
            )
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread can't be stopped half-way: let it come to its end, then undo it.
            with suppress(StorageError):
                await (await opening).close()
            raise

    @classmethod
    async def _open(
        cls,
        path: Path,
        *,
        now: int,
        durability: Durability,
        driver: drivers.Driver,
        known: list[Migration],
        read_seconds: float,
        checked_at_start: int,
    ) -> Database:
        lock = _locked(path)
        error: type[Exception] = driver.module.Error
        opened: list[_Connection] = []

        def prepare_writer(connection: sqlite3.Connection) -> tuple[bool, list[str]]:
            """Returns whether the file was checked, and what of it is damaged."""
            for pragma in _writer_pragmas(durability):
                connection.execute(pragma)
            # What is to be migrated must be whole, however long it takes to look.
            current = _is_current(connection, known)
            checked = not current or path.stat().st_size <= checked_at_start
            damaged = health.damaged_canonical(connection, error, free_pages=True) if checked else []
            if damaged and not current:
                raise StoreDamaged(_damage(path, damaged))
            migrate(connection, known, now=now)
            return checked, damaged

        try:
            opened.append(await _connect(path, driver))
            checked, damaged = await opened[0].call(prepare_writer)
            for _ in range(_READERS):
                opened.append(await _connect(path, driver, read_seconds=read_seconds))
                await opened[-1].call(_prepare_reader)
        except BaseException as exc:
            for connection in opened:
                await connection.close()
            _release(lock, path)
            if isinstance(exc, error):
                raise _storage_error(path, exc) from exc
            raise
        database = cls(path=path, driver=driver, lock=lock, writer=opened[0], readers=opened[1:])
        if damaged:
            database._found(damaged)
        elif not checked:
            database._check = asyncio.create_task(database._look(free_pages=False))
        return database

    async def write(self, act: Callable[[Transaction], T]) -> T:
        """Run `act` as one transaction; whatever it raises rolls all of it back.

        Raises `StoreDamaged` without having tried, once the store is known to be.
        """
        if self.damage is not None:
            raise StoreDamaged(self.damage)

        def run(connection: sqlite3.Connection) -> T:
            result = _committed(connection, act)
            self._shorten_log(connection)
            return result

        met = time.monotonic()
        try:
            return await self._writer.call(run)
        except self._error as exc:
            raise await self._explained(exc, met) from exc

    async def read(self, act: Callable[[Reader], T]) -> T:
        """Run `act` on one committed state. Raises `StoreBusy` when that takes too long."""
        met = time.monotonic()
        try:
            # Whoever reads for long must not hold up the others.
            reader = min(self._readers, key=lambda connection: connection.waiting)
            return await reader.call(lambda connection: _consistent(connection, act))
        except self._error as exc:
            raise await self._explained(exc, met) from exc

    async def check(self) -> str | None:
        """Look through all canonical tables now; returns `damage`. Nothing waits for it but the caller."""
        await self._looked_since(time.monotonic())
        return self.damage

    async def damaged(self, tables: Collection[str]) -> list[str]:
        """Which of `tables` don't hold together, by their pages."""
        return await self._apart(lambda connection: health.damaged(connection, self._error, tables))

    async def strike(self, tables: Collection[str]) -> None:
        """Have damaged derived tables made anew, empty, without touching their pages; see `health.strike`.

        The file is written anew from what is left, which holds up writers for a second per 100,000 rows or so.
        """
        assert set(tables) <= set(health.DERIVED)
        await self.write(lambda tx: health.strike(tx._connection, tables))

        def vacuum(connection: sqlite3.Connection) -> None:
            connection.execute("vacuum")
            # All of the file went through the log.
            self._shorten_log(connection)

        try:
            await self._writer.call(vacuum)
        except self._error as exc:
            log.warning("store.not_vacuumed", error=str(exc), left="pages nobody uses")

    async def scrub(self, *, seconds: float = 5.0) -> bool:
        """Leave no byte in the files of what was deleted or replaced; False when somebody reads for longer.

        `secure_delete` alone does not: when SQLite shifts rows between pages, it leaves copies behind in what then is
        free space (measured in docs/memory.md). So the file is written anew from the rows, some 10 ms a megabyte in
        which writers wait, and the log is emptied before and after, each tried for so many seconds.
        """
        if self.damage is not None or not await self._log_emptied(seconds):
            return False
        try:
            await self._writer.call(lambda connection: connection.execute("vacuum") and None)
        except self._error as exc:
            log.warning("store.not_vacuumed", error=str(exc), left="traces of what was erased")
            return False
        return await self._log_emptied(seconds)

    @property
    def file_bytes(self) -> int:
        """The size of the file without its log."""
        return self.path.stat().st_size

    async def close(self) -> None:
        """Close the readers first: the writer is then the last connection and checkpoints the log."""
        await asyncio.shield(asyncio.create_task(self._close()))

    @property
    def wal_bytes(self) -> int:
        """The size of the write-ahead log, which lies beside the file until it is emptied."""
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def oldest_read_seconds(self) -> float:
        """For how long the read that began first has been under way; 0 without one."""
        return max(connection.busy_seconds for connection in self._readers)

    async def _close(self) -> None:
        self._closing = True
        if self._check is not None:
            await self._check
        for connection in [*self._readers, self._writer]:
            await connection.close()
        _release(self._lock, self.path)

    async def _log_emptied(self, seconds: float) -> bool:
        """Empty the log as soon as nobody reads; writers get their turn between the tries."""

        def attempt(connection: sqlite3.Connection) -> bool:
            connection.execute(f"pragma busy_timeout = {_LOG_WAIT_MS}")
            try:
                return not connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
            finally:
                connection.execute(f"pragma busy_timeout = {_BUSY_MS}")

        until = time.monotonic() + seconds
        while True:
            try:
                if await self._writer.call(attempt):
                    return True
            except self._error as exc:
                log.warning("store.log_held", path=str(self.path), reason=str(exc))
                return False
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(_LOG_WAIT_MS / 1000)

    async def _explained(self, exc: Exception, met: float) -> StorageError:
        """What the driver's error means. Damage is looked for first: an error doesn't say whose pages it met."""
        if not (health.is_damage(exc) or health.is_undecodable(exc)):
            return _storage_error(self.path, exc)
        if not health.is_index_damage(exc):
            if health.is_undecodable(exc):
                # No check of SQLite's sees this: the pages are whole.
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
        # A look that began before says nothing of what was met since.
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
        """Run `act` on a connection of its own that only the end of the store cuts short."""
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
        """Empty a log that has grown long, unless somebody still reads it. Never raises: the commit is done."""
        size = self.wal_bytes
        if size < _LONG_LOG:
            self._log_tried_at = _LONG_LOG
        if size < self._log_tried_at:
            return
        try:
            connection.execute(f"pragma busy_timeout = {_LOG_WAIT_MS}")
            held = bool(connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0])
            connection.execute(f"pragma busy_timeout = {_BUSY_MS}")
            reason = "somebody reads"
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
    """Run `act` on one committed state of a store that another process may have open; None where there is none.

    Nothing is written. Raises `StorageError` and its kin, and for a store of another version.
    """
    driver = driver or drivers.best()

    def read(connection: sqlite3.Connection) -> T:
        _prepare_reader(connection)
        known = migrations()
        row = connection.execute("select max(version) from migrations").fetchone()
        if row[0] != known[-1].version:
            raise StorageError(
                f"{path} is of another version of Remora; the next start brings it up to date where that can be done."
            )
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
    """Keep every other process from the store at `path`, open or not. Raises `StoreInUse` and `StoreUnwritable`."""
    lock = _locked(path)
    try:
        yield
    finally:
        _release(lock, path)


class _Connection(aiosqlite.Connection):
    """aiosqlite's thread and queue, for whole functions: a hop a statement would cost more than the statement."""

    _asked = 0  # written by the loop's thread alone,
    _done = 0  # and these by the connection's
    _began: float | None = None

    async def call(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Run `act` on the connection's thread, after all that was asked before."""

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
        """Functions that wait or run, also those whose caller has gone."""
        return self._asked - self._done

    @property
    def busy_seconds(self) -> float:
        """For how long the function that runs now has been running; 0 without one."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began


def _committed(connection: sqlite3.Connection, act: Callable[[Transaction], T]) -> T:
    if connection.in_transaction:
        # One that could not even be rolled back, for the disk failed.
        connection.execute("rollback")
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
    if connection.in_transaction:
        connection.execute("rollback")
    connection.execute("begin")
    try:
        return act(Reader(connection))
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


async def _connect(path: Path, driver: drivers.Driver, *, read_seconds: float | None = None) -> _Connection:
    """Open a connection; with `read_seconds` SQLite ends whatever runs on it for longer."""

    def connector() -> Any:
        # Explicit transactions only: the driver must not open one of its own.
        made = driver.module.connect(str(path), isolation_level=None, check_same_thread=False)
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
        # A log that grew while it was held is cut to this once it begins anew.
        f"pragma journal_size_limit = {_LONG_LOG // 2}",
    ]


def _is_current(connection: sqlite3.Connection, known: list[Migration]) -> bool:
    """Whether there is nothing to migrate: every migration is there, or nothing is yet."""
    if connection.execute("select 1 from sqlite_schema where name = 'migrations'").fetchone() is None:
        return True
    newest: int = connection.execute("select coalesce(max(version), 0) from migrations").fetchone()[0]
    return newest >= known[-1].version


def _storage_error(path: Path, error: Exception) -> StorageError:
    """Our error for the driver's; the two SQLite modules share no exception classes."""
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


def _nothing() -> None:
    """Nobody has asked to be told."""


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
