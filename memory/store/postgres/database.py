"""The engine of PostgreSQL: one store in a schema of a database, with its lock, its single writer and its readers.

Invariants: Transactions that write run one at a time across all processes, except those that name different keys.
Readers see one committed state. A transaction whose connection is lost is run again only if the server says that it was
not committed, so a transaction has no effect outside the database.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

import psycopg
import structlog
from psycopg import sql

from memory.errors import IndexDamaged, StorageError, StoreInUse, StoreUnwritable
from memory.store import sealing
from memory.store.database import Database, Durability, Keys, Reader, Row, Transaction, rehearsed
from memory.store.postgres import lanes, schema, walls
from memory.store.postgres.connection import (
    PAUSE,
    Lock,
    ServerConnection,
    adapt,
    by_itself,
    is_alone,
    is_going_on,
    number_of,
    once_free,
    storage_error,
)
from memory.store.postgres.replica import Replica
from memory.store.postgres.transaction import (
    Commit,
    Doubtful,
    Removed,
    asked_once,
    committed,
    consistent,
    is_there,
    outcome,
    state_of,
)
from memory.store.sealing import Seal
from memory.store.server import Deployment, ServerState, Standby
from memory.store.share import OwnShare
from memory.store.sqlite.health import DERIVED
from memory.store.sqlite.migrate import Migration, migrations

log = structlog.get_logger(__name__)

_READERS: Final = 2
#: The connections of a process to a store: the writer, the readers, and two for signals, one of which listens.
CONNECTIONS: Final = _READERS + 3
#: The longest time for a read, in seconds.
READ_SECONDS: Final = 5.0
#: Seconds after which the server is given up for this transaction: it may be restarting.
_WAITED: Final = 10.0
#: The constraints that are violated when a session or duty is given to a process that was removed.
_HOLDERS: Final = ("lanes_holder_fkey", "duties_holder_fkey")
#: The description of a role that no policy holds, and the remedy.
BYPASSED: Final = "the role in database_url is a superuser or has BYPASSRLS, so row-level security does not hold it"
ORDINARY_ROLE: Final = (
    "Make an ordinary role the owner of the database, its schema and tables, and name that in database_url."
)
T = TypeVar("T")


class PostgresDatabase(Database):
    """An open store on a server. Use `await PostgresDatabase.open(...)`; close it with `await close()`."""

    damage: str | None = None
    without_vectors = ""
    twice = False
    driver = None

    def __init__(
        self,
        *,
        path: Path,
        seal: Seal,
        writer: ServerConnection,
        readers: list[ServerConnection],
        signals: ServerConnection,
    ) -> None:
        self.path = path
        self.seal = seal
        self.share = OwnShare()
        self.on_index_damage: Callable[[], None] = lambda: None
        self._writer = writer
        self._readers = readers
        self._signals = signals
        self._store = schema.name_of(path)
        self._turn = number_of(f"remora write {self._store}")
        self._rewriting = f"remora rewrite {self._store}"
        self._replica: Replica | None = None
        #: The name under which commits are noted before and without a process among others.
        self._alone = secrets.token_hex(6)
        self._numbers = count(1)
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

        `path` is the path that the store would have as a file: its name is that of the schema, and beside it lie the
        keys, the exports and the list of erasures.

        Raises `StoreInUse`, `StoreUnwritable`, `SchemaTooNew` or `StorageError`, each saying what to do.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        store = schema.name_of(path)
        lock: Lock = "exclusive" if alone else "shared"
        # None of these connects before it is used.
        database = cls(
            path=path,
            seal=Seal(keys or sealing.path_of(path)),
            writer=ServerConnection(url, store, lock=lock, synchronous=durability == "power-loss"),
            readers=[ServerConnection(url, store, read_seconds=read_seconds) for _ in range(_READERS)],
            signals=ServerConnection(url, store),
        )
        try:
            if await once_free(database._writer, lambda writer: _begin(writer, store, known, alone=alone, now=now)):
                log.warning("store.no_second_wall", because=BYPASSED, fix=ORDINARY_ROLE)
            if not alone:
                replica = Replica(database, url=url, store=store, send=database._tell)
                database.share = database._replica = replica
                await replica.join()
            await database.check()
        except BaseException as exc:
            await database.close()
            if isinstance(exc, psycopg.Error):
                raise storage_error(exc) from exc
            raise
        return database

    async def write(
        self,
        act: Callable[[Transaction], T],
        *,
        keys: Keys | None = None,
        durable: bool = True,
        single: bool = False,
    ) -> T:
        act = rehearsed(act) if self.twice else act
        until = time.monotonic() + _WAITED
        while True:
            try:
                return await self._writer.call(self._transaction(act, self._locks(keys, durable=durable)))
            except Doubtful as doubt:
                if await self._was_committed(doubt, until):
                    result: T = doubt.result
                    return result
            except StoreInUse:
                # The server may still hold the lock for the connection that was lost.
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(PAUSE)
            except psycopg.ProgrammingError as exc:
                raise self._explained(exc) from exc
            except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected) as exc:
                # Nothing stands in the way of a transaction that is alone, except a start, which makes triggers.
                is_unique = isinstance(exc, psycopg.errors.UniqueViolation)
                if keys is None and (is_unique or time.monotonic() > until):
                    raise storage_error(exc) from exc
                log.info("store.collided", keys=sorted(keys or ()), error=str(exc).strip(), again="by itself")
                keys = None
            except psycopg.errors.ForeignKeyViolation as exc:
                # The process that was to get a session or duty was removed meanwhile: another one is found.
                if exc.diag.constraint_name not in _HOLDERS or time.monotonic() > until:
                    raise storage_error(exc) from exc
            except psycopg.Error as exc:
                # Nothing was committed. The server may be restarting.
                if not self._writer.is_lost or time.monotonic() > until:
                    raise storage_error(exc) from exc
                await asyncio.sleep(PAUSE)

    def _locks(self, keys: Keys | None, *, durable: bool) -> bytes:
        """Returns the statement that takes a transaction's locks, in the same order for all transactions."""
        numbers = sorted({number_of(f"remora {self._store} {key}") for key in keys or ()})
        whole = "pg_advisory_xact_lock" if keys is None else "pg_advisory_xact_lock_shared"
        taken = [f"{whole}({self._turn})", *(f"pg_advisory_xact_lock({one})" for one in numbers)]
        sooner = "" if durable else "set local synchronous_commit = off; "
        return f"{sooner}select {', '.join(taken)}".encode()

    def _transaction(self, act: Callable[[Transaction], T], locks: bytes) -> Callable[[psycopg.Connection[Row]], T]:
        """Returns a function that runs `act` on a connection.

        It raises `TakenForDead` if the others have removed this process.
        """
        replica = self._replica

        def run(connection: psycopg.Connection[Row]) -> T:
            member = replica.id if replica is not None and replica.is_there else None
            writer = self._alone if replica is None else replica.id
            commit = Commit(writer, next(self._numbers), has_joined=member is not None)
            try:
                return committed(connection, act, self.seal, locks, commit)
            except Removed:
                assert replica is not None
                raise replica.fail() from None
            except psycopg.errors.ForeignKeyViolation:
                if member is None or is_there(connection, member):
                    raise
                assert replica is not None
                raise replica.fail() from None

        return run

    async def _tell(self, topic: str, said: str) -> None:
        def send(connection: psycopg.Connection[Row]) -> None:
            connection.execute(b"select pg_notify(%s, %s)", (topic, said))

        try:
            await self._signals.call(send)
        except psycopg.Error as exc:
            raise storage_error(exc) from exc

    async def _was_committed(self, doubt: Doubtful, until: float) -> bool:
        """Asks the server whether a transaction with an unknown end was committed."""
        while True:
            try:
                became = await self._writer.call(lambda connection: outcome(connection, doubt))
            except psycopg.Error as exc:
                if time.monotonic() > until:
                    raise storage_error(exc) from exc
                became = "in progress"
            if became != "in progress":
                return became == "committed"
            if time.monotonic() > until:
                raise StoreUnwritable(
                    f"The PostgreSQL server has not ended a commit within {_WAITED:g} s; it may wait for a standby "
                    "(synchronous_standby_names). Whether this was saved is not known."
                )
            await asyncio.sleep(PAUSE)

    async def read(self, act: Callable[[Reader], T], *, single: bool = False) -> T:
        run = asked_once if single else consistent
        until = time.monotonic() + _WAITED
        while True:
            # A long read must not hold up the others.
            reader = min(self._readers, key=lambda connection: connection.waiting)
            try:
                return await reader.call(lambda connection: run(connection, act, self.seal))
            except psycopg.ProgrammingError as exc:
                raise self._explained(exc) from exc
            except psycopg.errors.QueryCanceled as exc:
                # A table that is being rewritten is locked all the while.
                if not await self._is_being_rewritten(reader):
                    raise storage_error(exc) from exc
            except psycopg.Error as exc:
                if not reader.is_lost or time.monotonic() > until:
                    raise storage_error(exc) from exc
                await asyncio.sleep(PAUSE)

    async def _is_being_rewritten(self, reader: ServerConnection) -> bool:
        try:
            return await reader.call(lambda connection: is_going_on(connection, self._rewriting))
        except psycopg.Error:
            return False

    async def examine(self, act: Callable[[Reader], T]) -> T:
        connection = self._writer.another()
        try:
            return await connection.call(lambda one: consistent(one, act, self.seal))
        except psycopg.ProgrammingError as exc:
            raise self._explained(exc) from exc
        except psycopg.Error as exc:
            raise storage_error(exc) from exc
        finally:
            await connection.close()

    async def state(self) -> str:
        return await self.read(state_of)

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
        def act(tx: Transaction) -> None:
            for table in set(tables) & set(schema.names()):
                tx.run(f"delete from {table}")

        await self.write(act)

    async def scrub(self, *, seconds: float = 5.0) -> bool:
        """Removes every byte of deleted or replaced rows from the tables. Returns False if it can't.

        The tables are rewritten, and whoever reads or writes one waits until that is done. Their words stay in the
        server's log until it is recycled.
        """

        def rewrite(connection: psycopg.Connection[Row]) -> None:
            connection.execute(f"set lock_timeout = '{int(seconds * 1_000)}ms'".encode())
            try:
                with by_itself(connection, self._rewriting):
                    for name in schema.names():
                        connection.execute(sql.SQL("vacuum full {}").format(sql.Identifier(name)))
            finally:
                connection.execute(b"set lock_timeout = 0")

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
        return f"PostgreSQL {self._writer.version}"

    def deployment(self, reader: Reader) -> Deployment:
        state = deployment(reader)
        return state if self._replica is None else self._replica.within(state)

    @property
    def file_bytes(self) -> int:
        return self._bytes

    @property
    def wal_bytes(self) -> int:
        """0, because the log is the server's."""
        return 0

    async def close(self) -> None:
        if self._replica is not None:
            await self._replica.close()
        for connection in [*self._readers, self._signals, self._writer]:
            await connection.close()


def _begin(
    writer: psycopg.Connection[Row], store: str, known: Sequence[Migration] | None, *, alone: bool, now: int
) -> bool:
    """Makes the store's schema or brings it up to date. Returns whether row-level security does not hold the role."""
    with by_itself(writer, f"remora schema {store}"):
        writer.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(store)))
        schema.prepare(writer, now=now, known=known, is_alone=alone or is_alone(writer, store))
    adapt(writer)  # now that the types are there
    return walls.is_bypassed(writer)


async def is_made(url: str, path: Path) -> bool:
    return await _asked(url, path, lambda connection: schema.is_there(connection, schema.name_of(path)))


async def is_walled(url: str, path: Path) -> bool:
    return not await _asked(url, path, walls.is_bypassed)


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
        return consistent(connection, act, None)

    return await _asked(url, path, read)


async def _asked(url: str, path: Path, act: Callable[[psycopg.Connection[Row]], T]) -> T:
    connection = ServerConnection(url, schema.name_of(path), read_seconds=READ_SECONDS)
    try:
        return await connection.call(act)
    except psycopg.Error as exc:
        raise storage_error(exc) from exc
    finally:
        await connection.close()


def deployment(reader: Reader) -> Deployment:
    version = reader.one("select current_setting('server_version') as version")
    assert version is not None
    engine = f"PostgreSQL {str(version['version']).split()[0]}"
    return Deployment(engine=engine, server=_server(reader), peers=tuple(lanes.peers(reader)))


def _server(reader: Reader) -> ServerState:
    row = reader.one(_SERVER)
    assert row is not None
    return ServerState(
        vectors=row["vectors"],
        fsync=row["fsync"] == "on",
        synchronous_commit=row["synchronous_commit"] != "off",
        most_connections=row["most_connections"],
        standbys=tuple(
            Standby(name=one["name"], state=one["state"], lag_bytes=one["lag_bytes"], lag_seconds=one["lag_seconds"])
            for one in reader.all(_STANDBYS)
        ),
    )


# Some of the server's connections are reserved for superusers; a database and a role may have limits of their own.
_SERVER = (
    "select (select extversion from pg_extension where extname = 'vector') as vectors,"
    " current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,"
    " least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    " - current_setting('reserved_connections')::int,"
    " (select nullif(datconnlimit, -1) from pg_database where datname = current_database()),"
    " (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user)) as most_connections"
)
# Without the role pg_monitor only the names are shown.
_STANDBYS = (
    "select application_name as name, state, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint as lag_bytes,"
    " extract(epoch from replay_lag)::float as lag_seconds from pg_stat_replication order by application_name, pid"
)
