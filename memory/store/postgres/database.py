"""The engine of PostgreSQL: one store in a schema of a database, with its lock, its single writer and its readers.

A transaction runs on its connection's own thread. Statements are those of every engine, said in PostgreSQL's words by
`dialect`.

Invariants: Transactions that write run one at a time, whichever process runs them, but for those that name different
keys. A process that the others have taken
for dead commits nothing (`replica`). Readers see one committed state. A lost connection is made again at the next use.
A transaction whose connection is lost is run again only if the server says that it was not committed, so a transaction
has no effect outside the database.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np
import psycopg
import structlog
from psycopg import sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper, Loader
from psycopg.types.string import StrDumper, TextLoader

from memory.errors import IndexDamaged, StorageError, StoreBusy, StoreInUse, StoreUnwritable
from memory.scope import Scope
from memory.store import sealing
from memory.store.database import (
    INDEX,
    Database,
    Durability,
    Keys,
    Parameter,
    Reader,
    Row,
    Transaction,
    in_transaction,
    rehearsed,
)
from memory.store.peers import Alone, Peers
from memory.store.postgres import ids, schema, standing, walls, watching
from memory.store.postgres.dialect import Translation, translated
from memory.store.postgres.replica import Replica, fence
from memory.store.sealing import Seal
from memory.store.server import ServerState
from memory.store.sqlite.health import DERIVED
from memory.store.sqlite.migrate import Migration, migrations

log = structlog.get_logger(__name__)

_READERS: Final = 2
#: The connections of a process to a store: the writer, the readers, and two for signals, one of which listens.
CONNECTIONS: Final = _READERS + 3
#: How long a read may take, in seconds.
READ_SECONDS: Final = 5.0
#: Seconds after which the server is given up for this transaction: it may be restarting.
_WAITED: Final = 10.0
_CONNECT_SECONDS: Final = 5
#: Seconds after which a transaction is ended in which nothing happens; whoever lives runs it again.
_STANDS_STILL: Final = 3
#: The constraints that are violated where something is given to a process that is not there any more.
_HOLDERS: Final = ("lanes_holder_fkey", "duties_holder_fkey")
#: Seconds after which another process still has the store open, and is not just ending.
_ENDING: Final = 2.0
#: Seconds between two attempts.
_PAUSE: Final = 0.1
_Lock: TypeAlias = Literal["shared", "exclusive"]
#: What is wrong with a role that no policy holds, and the remedy.
BYPASSED: Final = "the role in database_url is a superuser or has BYPASSRLS, so row-level security does not hold it"
ORDINARY_ROLE: Final = (
    "Make an ordinary role the owner of the database, its schema and tables, and name that in database_url."
)
T = TypeVar("T")


class PostgresRow(Row):
    """A row of a result: its values by name, by position, and in order."""

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


class PostgresReader(Reader):
    """A connection inside a read or write transaction."""

    def __init__(self, connection: psycopg.Connection[Row], seal: Seal | None) -> None:
        self._connection = connection
        self._seal = seal
        #: The wall that stands, and the one that the next statement needs: most are followed by another of its kind.
        self._wall = self._wanted = walls.OPEN

    @property
    def seal(self) -> Seal:
        """The seal of forgotten statements. Only there if the store was opened for use, not just looked at."""
        assert self._seal is not None
        return self._seal

    def all(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]:
        return self._execute(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Parameter] = ()) -> Row | None:
        return self._execute(sql, parameters).fetchone()

    def confine(self, scope: Scope, *, session_id: int | None = None) -> None:
        """Hides from the rest of this transaction what the scope may not see."""
        self._wanted = walls.settings(scope, session_id=session_id)

    @contextmanager
    def within(self, scope: Scope, *, elsewhere: bool = False) -> Iterator[None]:
        """Hides what the scope may not see until the end of the `with` block."""
        before = self._wanted
        if elsewhere or not walls.is_confined(before, scope):
            self._wanted = walls.settings(scope, elsewhere=elsewhere)
        try:
            yield
        finally:
            self._wanted = before

    def given_ids(self) -> dict[str, int]:
        """Returns the greatest id ever given, by table."""
        return ids.given(self)

    def _execute(self, statement: str, parameters: Sequence[Parameter]) -> psycopg.Cursor[Row]:
        self._raise_wall()
        said = translated(statement, schema.never_null())
        try:
            return self._connection.execute(said.text.encode(), _given(said, parameters))
        except psycopg.ProgrammingError as exc:
            exc.add_note(said.text)
            raise

    def _raise_wall(self) -> None:
        """Tells the server what the next statements may see, if it does not know yet."""
        if self._wanted != self._wall:
            self._connection.execute(walls.RAISE, self._wanted)
            self._wall = self._wanted


class PostgresTransaction(PostgresReader, Transaction):
    """The writer inside its transaction."""

    def __init__(self, connection: psycopg.Connection[Row], seal: Seal) -> None:
        super().__init__(connection, seal)
        self._changes = 0

    def run(self, sql: str, parameters: Sequence[Parameter] = ()) -> None:
        self._execute(sql, parameters)
        if sql.startswith("create table"):  # of an index that is made again
            for statement in walls.definitions(self._connection):
                self._connection.execute(statement.encode())

    def run_each(self, sql: str, rows: Sequence[Sequence[Parameter]]) -> None:
        """Runs a statement once for each row of parameters, without waiting for one before the next."""
        self._raise_wall()
        said = translated(sql, schema.never_null())
        cursor = self._connection.cursor()
        cursor.executemany(said.text.encode(), [_given(said, row) for row in rows])
        self._changes += max(cursor.rowcount, 0)

    def give_ids_behind(self, given: Mapping[str, int]) -> None:
        """Gives only ids that are greater than these and than all that are there."""
        ids.go_on(self, given)

    def watch(self) -> None:
        """Begins to note what is done to memories, links and names; see `job_watch`."""
        watching.watch(self)

    def unwatch(self) -> None:
        """Ends the watch and drops what it has noted."""
        watching.unwatch(self)

    @property
    def changes(self) -> int:
        """The number of rows written since the transaction began."""
        return self._changes

    @property
    def state(self) -> str:
        """The transactions that are over: whichever process writes, there is one more then."""
        return _state(self)

    def _execute(self, statement: str, parameters: Sequence[Parameter]) -> psycopg.Cursor[Row]:
        cursor = super()._execute(statement, parameters)
        if not statement.startswith(("select", "with", "savepoint", "rollback", "release")):
            self._changes += max(cursor.rowcount, 0)
        return cursor


class PostgresDatabase(Database):
    """An open store on a server. Use `await PostgresDatabase.open(...)`; close it with `await close()`."""

    damage: str | None = None
    without_vectors = ""
    twice = False
    driver = None

    def __init__(
        self, *, path: Path, seal: Seal, writer: _Connection, readers: list[_Connection], signals: _Connection
    ) -> None:
        self.path = path
        self.seal = seal
        self.peers: Peers = Alone()
        self.on_index_damage: Callable[[], None] = _nothing
        self._writer = writer
        self._readers = readers
        self._signals = signals
        self._store = schema.name_of(path)
        self._turn = _number(f"remora write {self._store}")
        self._replica: Replica | None = None
        self._bytes = 0

    @classmethod
    async def open(
        cls,
        url: str,
        path: Path,
        *,
        now: int,
        durability: Durability = "process",
        read_seconds: float = READ_SECONDS,
        keys: Path | None = None,
        alone: bool = False,
        known: Sequence[Migration] | None = None,
    ) -> PostgresDatabase:
        """Connects to the database at `url` and migrates the store's schema, which is made if it is missing.

        Other processes may have the store open, too, unless this one is to be `alone`. `known` are the migrations, by
        default those that are shipped.

        `path` is where the store would be if it were a file: its name is that of the schema, and beside it lie the
        keys, exports and the list of what was erased.

        Raises `StoreInUse`, `StoreUnwritable`, `SchemaTooNew` or `StorageError`, each saying what to do.
        """
        opened: list[_Connection] = []

        def begin(writer: psycopg.Connection[Row]) -> bool:
            with _by_itself(writer, f"remora schema {store}"):
                writer.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(store)))
                writer.commit()
                schema.prepare(writer, now=now, known=known, is_alone=alone or _is_alone(writer, store))
                writer.commit()
            _adapt(writer)  # now that the types are there
            return walls.is_bypassed(writer)

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            seal = Seal(keys or sealing.path_of(path))
            store = schema.name_of(path)
            lock: _Lock = "exclusive" if alone else "shared"
            writer = _Connection(url, store, lock=lock, synchronous=durability == "power-loss")
            opened.append(writer)
            if await _once_free(writer, begin):
                log.warning("store.no_second_wall", because=BYPASSED, fix=ORDINARY_ROLE)
            opened.append(signals := _Connection(url, store))
            opened += [_Connection(url, store, read_seconds=read_seconds) for _ in range(_READERS)]
        except BaseException as exc:
            for connection in opened:
                await connection.close()
            if isinstance(exc, psycopg.Error):
                raise _storage_error(exc) from exc
            raise
        database = cls(path=path, seal=seal, writer=writer, readers=opened[2:], signals=signals)
        try:
            if not alone:
                replica = Replica(database, url=url, store=store, send=database._tell)
                database.peers = database._replica = replica
                await replica.join()
            await database.check()
        except BaseException:
            await database.close()
            raise
        return database

    async def write(self, act: Callable[[Transaction], T], *, keys: Keys | None = None) -> T:
        """Runs `act` as one transaction. Any exception it raises rolls back the whole transaction."""
        act = rehearsed(act) if self.twice else act
        until = time.monotonic() + _WAITED
        while True:
            try:
                return await self._writer.call(self._transaction(act, self._locks(keys)))
            except _Doubtful as doubt:
                if await self._was_committed(doubt.transaction, until):
                    result: T = doubt.result
                    return result
            except StoreInUse:
                # The server may still hold the lock for the connection that was lost.
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(_PAUSE)
            except psycopg.ProgrammingError as exc:
                raise self._explained(exc) from exc
            except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected) as exc:
                if keys is None:
                    raise _storage_error(exc) from exc
                log.info("store.collided", keys=sorted(keys), error=str(exc).strip(), again="by itself")
                keys = None
            except psycopg.errors.ForeignKeyViolation as exc:
                # The process to which something was to be given was removed meanwhile: another one is found.
                if exc.diag.constraint_name not in _HOLDERS or time.monotonic() > until:
                    raise _storage_error(exc) from exc
            except psycopg.Error as exc:
                # Nothing of it was committed. The server may be restarting.
                if not self._writer.is_lost or time.monotonic() > until:
                    raise _storage_error(exc) from exc
                await asyncio.sleep(_PAUSE)

    def _locks(self, keys: Keys | None) -> bytes:
        """Returns the statement that takes the locks of a transaction, in an order that is the same for all."""
        if keys is None:
            return f"select pg_advisory_xact_lock({self._turn})".encode()
        numbers = sorted({_number(f"remora {self._store} {key}") for key in keys})
        taken = [f"pg_advisory_xact_lock_shared({self._turn})", *(f"pg_advisory_xact_lock({one})" for one in numbers)]
        if set(keys) == {INDEX}:  # what a crash of the server takes from the index is derived again
            taken.append("set_config('synchronous_commit', 'off', true)")
        return f"select {', '.join(taken)}".encode()

    def _transaction(self, act: Callable[[Transaction], T], locks: bytes) -> Callable[[psycopg.Connection[Row]], T]:
        """Returns what runs `act` on a connection. Raises `TakenForDead` if the others have removed this process."""
        replica = self._replica

        def run(connection: psycopg.Connection[Row]) -> T:
            member = replica.id if replica is not None and replica.is_there else None
            try:
                return _committed(connection, act, self.seal, locks, member)
            except _Removed:
                assert replica is not None
                raise replica.fail() from None
            except psycopg.errors.ForeignKeyViolation:
                if member is None or _is_there(connection, member):
                    raise
                assert replica is not None
                raise replica.fail() from None

        return run

    async def _tell(self, topic: str, said: str) -> None:
        """Sends a signal to all that listen to `topic`."""

        def send(connection: psycopg.Connection[Row]) -> None:
            connection.execute(b"select pg_notify(%s, %s)", (topic, said))
            connection.commit()

        try:
            await self._signals.call(send)
        except psycopg.Error as exc:
            raise _storage_error(exc) from exc

    async def _was_committed(self, transaction: str, until: float) -> bool:
        """Asks the server whether a transaction was committed whose end was not heard of."""

        def ask(connection: psycopg.Connection[Row]) -> str | None:
            row = connection.execute(b"select pg_xact_status(%s::text::xid8)", (transaction,)).fetchone()
            connection.rollback()
            return None if row is None else row[0]

        while True:
            try:
                status = await self._writer.call(ask)
            except psycopg.Error as exc:
                if time.monotonic() > until:
                    raise _storage_error(exc) from exc
                status = "unknown"
            if status in ("committed", "aborted"):
                return status == "committed"
            await asyncio.sleep(_PAUSE)

    async def read(self, act: Callable[[Reader], T]) -> T:
        """Runs `act` on one committed state. Raises `StoreBusy` if that takes too long."""
        until = time.monotonic() + _WAITED
        while True:
            # A long read must not hold up the others.
            reader = min(self._readers, key=lambda connection: connection.waiting)
            try:
                return await reader.call(lambda connection: _consistent(connection, act, self.seal))
            except psycopg.ProgrammingError as exc:
                raise self._explained(exc) from exc
            except psycopg.Error as exc:
                if not reader.is_lost or time.monotonic() > until:
                    raise _storage_error(exc) from exc
                await asyncio.sleep(_PAUSE)

    async def examine(self, act: Callable[[Reader], T]) -> T:
        """Runs `act` on one committed state, however long it takes; nobody but the caller waits for it."""
        connection = self._writer.another()
        try:
            return await connection.call(lambda one: _consistent(one, act, self.seal))
        except psycopg.ProgrammingError as exc:
            raise self._explained(exc) from exc
        except psycopg.Error as exc:
            raise _storage_error(exc) from exc
        finally:
            await connection.close()

    async def state(self) -> str:
        """Returns the `Transaction.state` of a transaction that began now."""
        return await self.read(_state)

    async def check(self) -> str | None:
        """Measures the store. Returns None: PostgreSQL checks its pages by their checksums whenever they are read."""
        self._bytes = await self.read(
            lambda reader: reader.number(
                "select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c"
                " where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace"
            )
        )
        return None

    async def damaged(self, tables: Collection[str]) -> list[str]:
        """Returns nothing: damage is met and reported by the server."""
        return []

    async def strike(self, tables: Collection[str]) -> None:
        """Empties derived tables."""

        def act(tx: Transaction) -> None:
            for table in set(tables) & set(schema.names()):
                tx.run(f"delete from {table}")

        await self.write(act)

    async def scrub(self, *, seconds: float = 5.0) -> bool:
        """Removes every byte of deleted or replaced rows from the tables. Returns False if it can't.

        The tables are rewritten, during which writers wait. Their words stay in the server's log until it is recycled.
        """

        def rewrite(connection: psycopg.Connection[Row]) -> None:
            connection.autocommit = True
            try:
                connection.execute(f"set lock_timeout = '{int(seconds * 1_000)}ms'".encode())
                for name in schema.names():
                    connection.execute(sql.SQL("vacuum full {}").format(sql.Identifier(name)))
            finally:
                connection.execute(b"set lock_timeout = 0")
                connection.autocommit = False

        try:
            await self._writer.call(rewrite)
        except psycopg.Error as exc:
            log.warning("store.not_vacuumed", error=str(exc), left="traces of what was erased")
            return False
        return True

    def _explained(self, exc: psycopg.ProgrammingError) -> Exception:
        """Returns our error for a statement that the server refuses: damage to an index, else the fault itself."""
        if not (isinstance(exc, psycopg.errors.UndefinedTable) and any(f'"{name}"' in str(exc) for name in DERIVED)):
            return exc
        self.on_index_damage()
        return IndexDamaged("A search index is missing. Nothing is lost: it is made again from the rows.")

    @property
    def engine(self) -> str:
        """The server's name and version, for status."""
        return f"PostgreSQL {self._writer.version}"

    def server(self, reader: Reader) -> ServerState | None:
        """Returns how the server stands."""
        return standing.server(reader)

    @property
    def file_bytes(self) -> int:
        """The size of the store's tables with their indexes, when it was checked last."""
        return self._bytes

    @property
    def wal_bytes(self) -> int:
        """0: the log is the server's."""
        return 0

    async def close(self) -> None:
        """Closes the store after what was requested before."""
        if self._replica is not None:
            await self._replica.close()
        for connection in [*self._readers, self._signals, self._writer]:
            await connection.close()


class _Connection:
    """A connection on a thread of its own, made at first use and again when it was lost."""

    def __init__(
        self,
        url: str,
        store: str,
        *,
        lock: _Lock | None = None,
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

    def another(self) -> _Connection:
        """Returns a further connection to the same store, without its lock."""
        return _Connection(self._url, self._store)

    @property
    def waiting(self) -> int:
        """The number of functions that wait or run."""
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
        """Runs `act` on the connection's thread, after all functions requested before, to its end."""

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
        """Closes the connection after what was requested before, also if the caller is cancelled meanwhile."""

        def end() -> None:
            if self._made is not None:
                self._made.close()

        ended = asyncio.get_running_loop().run_in_executor(self._thread, end)
        self._thread.shutdown(wait=False)
        await asyncio.shield(ended)

    def _connected(self) -> psycopg.Connection[Row]:
        made: psycopg.Connection[Row] = psycopg.connect(
            self._url, connect_timeout=_CONNECT_SECONDS, row_factory=_rows, application_name="remora"
        )
        try:
            _adapt(made)
            made.execute(sql.SQL("set search_path = {}, public").format(sql.Identifier(self._store)))
            if self._lock is not None:
                self._take_lock(made, self._lock)
                # A process that stands still in a transaction must not hold up the others.
                made.execute(f"set idle_in_transaction_session_timeout = '{_STANDS_STILL}s'".encode())
                if self._synchronous:  # else the server's own setting holds
                    made.execute(b"set synchronous_commit = on")
            if self._read_seconds is not None:
                made.execute(f"set statement_timeout = {int(self._read_seconds * 1_000)}".encode())
            made.commit()
        except BaseException:
            made.close()
            raise
        return made

    def _take_lock(self, made: psycopg.Connection[Row], lock: _Lock) -> None:
        """Takes the store's lock for this connection. Raises `StoreInUse` if another process holds it."""
        how = "select pg_try_advisory_lock(%s)" if lock == "exclusive" else "select pg_try_advisory_lock_shared(%s)"
        row = made.execute(how.encode(), (_number(f"remora {self._store}"),)).fetchone()
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


async def _once_free(writer: _Connection, act: Callable[[psycopg.Connection[Row]], T]) -> T:
    """Runs `act` on a connection with the store's lock, which the server may still hold for a process that ended."""
    until = time.monotonic() + _ENDING
    while True:
        try:
            return await writer.call(act)
        except StoreInUse:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_PAUSE)


@contextmanager
def _by_itself(connection: psycopg.Connection[Row], name: str) -> Iterator[None]:
    """Keeps every other process out of what happens in the block, under this name."""
    connection.execute(b"select pg_advisory_lock(%s)", (_number(name),))
    connection.commit()
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.rollback()
            connection.execute(b"select pg_advisory_unlock(%s)", (_number(name),))
            connection.commit()


def _state(reader: Reader) -> str:
    row = reader.one("select pg_current_snapshot()::text")
    assert row is not None
    return str(row[0])


def _is_alone(connection: psycopg.Connection[Row], store: str) -> bool:
    """Returns whether no other process has the store open, which this one shares."""
    number = _number(f"remora {store}")
    row = connection.execute(b"select pg_try_advisory_lock(%s)", (number,)).fetchone()
    if row is not None and row[0]:
        connection.execute(b"select pg_advisory_unlock(%s)", (number,))
    connection.commit()
    return row is not None and bool(row[0])


def _number(name: str) -> int:
    """Returns the number of a lock."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _committed(
    connection: psycopg.Connection[Row], act: Callable[[Transaction], T], seal: Seal, locks: bytes, replica: str | None
) -> T:
    """Runs a transaction as soon as the statement `locks` has taken its locks.

    Raises `_Doubtful` if the connection was lost while it was committed, and `_Removed` if the process `replica` is not
    there any more.
    """
    try:
        connection.execute(locks)
        with in_transaction():
            result = act(PostgresTransaction(connection, seal))
        if replica is None:
            row = connection.execute(b"select pg_current_xact_id_if_assigned()::text, true").fetchone()
        else:
            row = connection.execute(*fence(replica)).fetchone()
        assert row is not None
        if not row[1]:
            raise _Removed
    except BaseException:
        with suppress(psycopg.Error):
            connection.rollback()
        raise
    try:
        connection.commit()
    except psycopg.Error as exc:
        with suppress(psycopg.Error):
            connection.rollback()
        if connection.broken and row[0] is not None:
            raise _Doubtful(row[0], result, exc) from exc
        raise
    return result


def _is_there(connection: psycopg.Connection[Row], replica: str) -> bool:
    """Returns whether the others have not removed a process."""
    row = connection.execute(*fence(replica)).fetchone()
    connection.rollback()
    return row is not None and bool(row[1])


def _consistent(connection: psycopg.Connection[Row], act: Callable[[Reader], T], seal: Seal | None) -> T:
    try:
        connection.rollback()
        # Said as the transaction begins, so that it costs no statement of its own.
        connection.isolation_level, connection.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        with in_transaction():
            return act(PostgresReader(connection, seal))
    finally:
        with suppress(psycopg.Error):
            connection.rollback()


class _Removed(Exception):
    """The others have removed this process."""


class _Doubtful(psycopg.OperationalError):
    """The connection was lost while a transaction was committed: the server knows whether it was."""

    def __init__(self, transaction: str, result: Any, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.transaction = transaction
        self.result = result


def _given(said: Translation, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Returns the parameters of a statement by their names."""
    given = {f"p{place}": _bound(parameters[place], listed=place in said.listed) for place in said.places}
    return given | {f"n{place}": None if parameters[place] is None else "" for place in said.nulls}


def _bound(value: Parameter, *, listed: bool) -> Any:
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    # An empty list has no type, which the functions that go through one are chosen by.
    return list(value) or (_NoNumbers() if listed else [])


def _rows(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Row]:
    names = {column.name: place for place, column in enumerate(cursor.description or ())}
    return lambda values: PostgresRow(names, values)


class _WholeNumber(Dumper):
    """Every whole number is a bigint, and a boolean is one, too."""

    oid = psycopg.adapters.types["int8"].oid

    def dump(self, obj: int) -> bytes:
        return str(int(obj)).encode()


class _NoNumbers:
    """An empty list of whole numbers."""


class _NoNumbersDumper(Dumper):
    oid = psycopg.adapters.types["int8"].array_oid

    def dump(self, obj: _NoNumbers) -> bytes:
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


def _adapt(connection: AdaptContext) -> None:
    assert isinstance(connection, psycopg.Connection)
    adapters = connection.adapters
    adapters.register_dumper(int, _WholeNumber)
    adapters.register_dumper(bool, _WholeNumber)
    adapters.register_dumper(str, _Text)
    adapters.register_dumper(_NoNumbers, _NoNumbersDumper)
    adapters.register_loader("numeric", _Number)
    adapters.register_loader("bool", _Truth)
    adapters.register_loader("jsonb", TextLoader)
    kind = connection.execute("select to_regtype('public.halfvec')::oid").fetchone()
    if kind is not None and kind[0]:
        adapters.register_loader(int(kind[0]), _Vector)


def _storage_error(error: psycopg.Error) -> StorageError:
    """Returns our error for the driver's."""
    text = str(error).strip()
    if isinstance(error, psycopg.errors.QueryCanceled):
        return StoreBusy("Reading the store took too long and was ended, so that others can go on. Try again.")
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreUnwritable(
            "The disk of the PostgreSQL server is full. Nothing of this was saved; what was saved before is intact. "
            "Free some space, and it goes on without a restart."
        )
    if isinstance(error, psycopg.OperationalError):
        return StoreUnwritable(
            f"The PostgreSQL server can't be reached ({text}). Nothing of this was saved. Look at the server and at "
            "database_url; it goes on without a restart."
        )
    return StorageError(f"PostgreSQL: {text}")


async def is_walled(url: str, path: Path) -> bool:
    """Returns whether row-level security holds the role that `url` names. Raises `StorageError`."""
    connection = _Connection(url, schema.name_of(path), read_seconds=READ_SECONDS)
    try:
        return not await connection.call(walls.is_bypassed)
    except psycopg.Error as exc:
        raise _storage_error(exc) from exc
    finally:
        await connection.close()


async def look(url: str, path: Path, act: Callable[[Reader], T]) -> T | None:
    """Runs `act` on one committed state of a store that another process may have open. Returns None without a store.

    Nothing is written. Raises `StorageError` or a subclass, also if the store is of another version.
    """

    def read(connection: psycopg.Connection[Row]) -> T | None:
        if not schema.is_there(connection, schema.name_of(path)):
            return None
        row = connection.execute(b"select max(version) from migrations").fetchone()
        current = 0 if row is None or row[0] is None else int(row[0])
        schema.check_version(connection)
        if current < migrations()[-1].version:
            raise StorageError(
                f"The store {schema.name_of(path)} belongs to another version of Remora. The next start updates it if "
                "it can."
            )
        return _consistent(connection, act, None)

    connection = _Connection(url, schema.name_of(path), read_seconds=READ_SECONDS)
    try:
        return await connection.call(read)
    except psycopg.Error as exc:
        raise _storage_error(exc) from exc
    finally:
        await connection.close()


def _nothing() -> None:
    """Does nothing: the default of `Database.on_index_damage`."""
