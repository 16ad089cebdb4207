"""A connection to PostgreSQL on a thread of its own, and the conversion of the values sent and received on it.

Invariants: A lost connection is made again at its next use. It begins no transaction by itself: callers begin one
together with their first statement, since each statement is a way to the server and back.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np
import psycopg
from psycopg import sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import StrDumper, TextLoader

from memory.errors import ReadTooLong, StorageError, StoreBusy, StoreInUse, StoreUnwritable
from memory.store.database import Row

#: Seconds between two attempts.
PAUSE: Final = 0.1
#: What holds for a connection unless its address names it. A connection is made, and a lost one noticed, sooner than
#: others take the process for dead: a server whose machine vanished sends no word of it.
_NETWORK: Final[dict[str, str | int]] = {
    "connect_timeout": 2,
    "tcp_user_timeout": 5_000,
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}
#: Seconds after which the server ends an idle transaction; a process that is still alive runs it again.
_STANDS_STILL: Final = 3
#: Seconds after which a held lock means that another process has the store open, and is not just ending.
_ENDING: Final = 2.0
#: The most statements whose plans the server keeps for a connection: more than a process runs in ordinary use.
_PLANS: Final = 400
#: What to do if the server refuses a connection, by words of its reason.
_ADVICE: Final = (
    (("too many", "connection slots"), "Raise max_connections: each process needs five for each store."),
    (("password",), "Look at the password in database_url."),
)
Lock: TypeAlias = Literal["shared", "exclusive"]
T = TypeVar("T")


class PostgresRow(Row):
    __slots__ = ("_names", "_values")

    def __init__(self, names: dict[str, int], values: Sequence[Any]) -> None:
        self._names = names
        self._values = tuple(values)

    def keys(self) -> list[str]:
        return list(self._names)

    def __getitem__(self, key: int | str, /) -> Any:
        return self._values[self._names[key] if isinstance(key, str) else key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PostgresRow) and (self.keys(), self._values) == (other.keys(), other._values)

    def __hash__(self) -> int:
        return hash((tuple(self._names), self._values))


class ServerConnection:
    """A connection on a thread of its own, made at first use and again after it was lost."""

    def __init__(
        self,
        url: str,
        store: str,
        *,
        lock: Lock | None = None,
        synchronous: bool = False,
        read_seconds: float | None = None,
    ) -> None:
        self._url = url
        self._store = store
        self._lock = lock
        self._synchronous = synchronous
        self._read_seconds = read_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="remora-postgres")
        self._made: psycopg.Connection[Row] | None = None
        self._asked = self._done = 0

    def another(self) -> ServerConnection:
        return ServerConnection(self._url, self._store)

    @property
    def waiting(self) -> int:
        return self._asked - self._done

    @property
    def is_lost(self) -> bool:
        """True if the connection that was used last is gone, or could not be made."""
        return self._made is None or self._made.closed

    @property
    def version(self) -> str:
        number = 0 if self._made is None else self._made.info.server_version
        return f"{number // 10_000}.{number % 10_000}"

    async def call(self, act: Callable[[psycopg.Connection[Row]], T]) -> T:
        """Runs `act` to its end on the connection's thread, after all functions requested before."""

        def run() -> T:
            try:
                if self._made is None or self._made.closed:
                    self._made = None
                    self._made = self._connected()
                return act(self._made)
            finally:
                self._done += 1

        self._asked += 1
        done = asyncio.get_running_loop().run_in_executor(self._thread, run)
        # Nobody asks for the error of a caller that was cancelled meanwhile.
        done.add_done_callback(lambda one: one.cancelled() or one.exception())
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Closes the connection after all functions requested before, even if the caller is cancelled meanwhile."""

        def end() -> None:
            if self._made is not None:
                self._made.close()

        ended = asyncio.get_running_loop().run_in_executor(self._thread, end)
        self._thread.shutdown(wait=False)
        await asyncio.shield(ended)

    def _connected(self) -> psycopg.Connection[Row]:
        made: psycopg.Connection[Row] = psycopg.connect(
            reached(self._url), autocommit=True, row_factory=_rows, application_name="remora"
        )
        try:
            made.prepared_max = _PLANS
            adapt(made)
            made.execute(sql.SQL("set search_path = {}, public").format(sql.Identifier(self._store)))
            if self._lock is not None:
                self._take_lock(made, self._lock)
                # A process that stops in a transaction must not hold up the others.
                made.execute(f"set idle_in_transaction_session_timeout = '{_STANDS_STILL}s'".encode())
                if self._synchronous:  # else the server's own setting holds
                    made.execute(b"set synchronous_commit = on")
            if self._read_seconds is not None:
                made.execute(f"set statement_timeout = {int(self._read_seconds * 1_000)}".encode())
        except BaseException:
            made.close()
            raise
        return made

    def _take_lock(self, made: psycopg.Connection[Row], lock: Lock) -> None:
        """Takes the store's lock for this connection. Raises `StoreInUse` if another process holds it."""
        how = "select pg_try_advisory_lock(%s)" if lock == "exclusive" else "select pg_try_advisory_lock_shared(%s)"
        row = made.execute(how.encode(), (number_of(f"remora {self._store}"),)).fetchone()
        if row is not None and row[0]:
            return
        if lock == "exclusive":
            raise StoreInUse(
                f"The store {self._store} is in use by another Remora on this database. Stop all that use it first."
            )
        raise StoreInUse(
            f"A command that needs the store {self._store} for itself is at work on this database, such as a move. "
            "Start again once it has ended."
        )


async def once_free(writer: ServerConnection, act: Callable[[psycopg.Connection[Row]], T]) -> T:
    """Runs `act` on a connection with the store's lock, which the server may still hold for a process that ended."""
    until = time.monotonic() + _ENDING
    while True:
        try:
            return await writer.call(act)
        except StoreInUse:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(PAUSE)


def reached(url: str) -> str:
    """Returns an address with the defaults of the network added. Raises `psycopg.ProgrammingError` for no address."""
    return make_conninfo("", **{**_NETWORK, **conninfo_to_dict(url)})


@contextmanager
def by_itself(connection: psycopg.Connection[Row], name: str) -> Iterator[None]:
    """Keeps every other process out of the blocks of this name while the block runs."""
    connection.execute(b"select pg_advisory_lock(%s)", (number_of(name),))
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.execute(b"select pg_advisory_unlock(%s)", (number_of(name),))


def is_going_on(connection: psycopg.Connection[Row], name: str) -> bool:
    row = connection.execute(
        b"select 1 from pg_locks where locktype = 'advisory' and objsubid = 1 and granted"
        b" and database = (select oid from pg_database where datname = current_database())"
        b" and (classid::bigint << 32 | objid::bigint) = %s",
        (number_of(name),),
    ).fetchone()
    return row is not None


def is_alone(connection: psycopg.Connection[Row], store: str) -> bool:
    """Returns whether no other process shares the open store with this one."""
    number = number_of(f"remora {store}")
    row = connection.execute(b"select pg_try_advisory_lock(%s)", (number,)).fetchone()
    if row is not None and row[0]:
        connection.execute(b"select pg_advisory_unlock(%s)", (number,))
    return row is not None and bool(row[0])


def number_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _rows(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Row]:
    names = {column.name: place for place, column in enumerate(cursor.description or ())}
    return lambda values: PostgresRow(names, values)


class _WholeNumber(Dumper):
    """Sends every whole number, and every boolean, as a bigint."""

    oid = psycopg.adapters.types["int8"].oid

    def dump(self, obj: int) -> bytes:
        return str(int(obj)).encode()


class NoNumbers:
    """An empty list of whole numbers."""


class _NoNumbersDumper(Dumper):
    oid = psycopg.adapters.types["int8"].array_oid

    def dump(self, obj: NoNumbers) -> bytes:
        return b"{}"


class _Text(StrDumper):
    """A text without NUL, which PostgreSQL can't hold."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\x00", "\ufffd") if "\x00" in obj else obj)


class _Number(Loader):
    """A sum or an average: whole if it has no fraction."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text or "N" in text else int(text)


class _Truth(Loader):
    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


class _Vector(Loader):
    """A vector as 8-bit integers."""

    def load(self, data: Any) -> bytes:
        return np.array(json.loads(bytes(data)), dtype=np.float32).round().astype(np.int8).tobytes()


def adapt(connection: AdaptContext) -> None:
    assert isinstance(connection, psycopg.Connection)
    adapters = connection.adapters
    adapters.register_dumper(int, _WholeNumber)
    adapters.register_dumper(bool, _WholeNumber)
    adapters.register_dumper(str, _Text)
    adapters.register_dumper(NoNumbers, _NoNumbersDumper)
    adapters.register_loader("numeric", _Number)
    adapters.register_loader("bool", _Truth)
    adapters.register_loader("jsonb", TextLoader)
    kind = connection.execute("select to_regtype('public.halfvec')::oid").fetchone()
    if kind is not None and kind[0]:
        adapters.register_loader(int(kind[0]), _Vector)


def storage_error(error: psycopg.Error) -> StorageError:
    text = str(error).strip()
    if isinstance(error, psycopg.errors.QueryCanceled):
        return ReadTooLong("Reading the store took too long and was ended, so that others can go on. Try again.")
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreUnwritable(
            "The disk of the PostgreSQL server is full. Nothing of this was saved; what was saved before is intact. "
            "Free some space, and it goes on without a restart."
        )
    if isinstance(error, (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable)):
        return StoreBusy(f"Another process or program has locked what was needed ({text}). Try again.")
    if isinstance(error, psycopg.OperationalError):
        found = (advice for reasons, advice in _ADVICE if any(reason in text for reason in reasons))
        advice = next(found, "Look at the server and at database_url.")
        return StoreUnwritable(
            f"The PostgreSQL server can't be reached ({text}). Nothing of this was saved. {advice} A bot that runs "
            "goes on without a restart."
        )
    return StorageError(f"PostgreSQL: {text}")
