"""A transaction on a connection to PostgreSQL: its statements, its walls, and its end.

Invariants: Statements are those of every engine, translated by `dialect`. A process that the others have taken for dead
commits nothing: a transaction ends with a look at the process's row, which stays locked until the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import psycopg

from memory.scope import Scope
from memory.store.database import Parameter, Reader, Row, Transaction, in_transaction
from memory.store.postgres import schema, walls, watching
from memory.store.postgres.connection import NoNumbers
from memory.store.postgres.dialect import Translation, translated
from memory.store.sealing import Seal

#: The state that the server gives to the error of a process that is not among the others; see functions.sql.
_REMOVED: Final = "RM001"
T = TypeVar("T")


class PostgresReader(Reader):
    def __init__(self, connection: psycopg.Connection[Row], seal: Seal | None, *, begins: bytes = b"") -> None:
        """Wraps a connection. A transaction that has not begun yet `begins` with this statement and the first wall."""
        self._connection = connection
        self._seal = seal
        self._begins = begins
        #: The current wall, and the one that the next statement needs: mostly the same, so the server is rarely told.
        self._wall = self._wanted = walls.OPEN

    @property
    def seal(self) -> Seal:
        assert self._seal is not None
        return self._seal

    def all(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]:
        return self._execute(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Parameter] = ()) -> Row | None:
        return self._execute(sql, parameters).fetchone()

    def confine(self, scope: Scope, *, session_id: int | None = None) -> None:
        self._wanted = walls.settings(scope, session_id=session_id)

    def within(self, scope: Scope, *, elsewhere: bool = False) -> AbstractContextManager[None]:
        stays = not elsewhere and walls.is_confined(self._wanted, scope)
        return self._behind(self._wanted if stays else walls.settings(scope, elsewhere=elsewhere))

    def of_everybody(self) -> AbstractContextManager[None]:
        return self._behind(walls.OPEN)

    @contextmanager
    def _behind(self, wall: tuple[str, ...]) -> Iterator[None]:
        before, self._wanted = self._wanted, wall
        try:
            yield
        finally:
            self._wanted = before

    def given_ids(self) -> dict[str, int]:
        return {row["name"]: row["last"] for row in self.all(_SEQUENCES) if row["last"] is not None}

    def _execute(self, statement: str, parameters: Sequence[Parameter]) -> psycopg.Cursor[Row]:
        self._raise_wall()
        said = translated(statement, schema.never_null())
        try:
            return self._connection.execute(said.text.encode(), _given(said, parameters))
        except psycopg.ProgrammingError as exc:
            exc.add_note(said.text)
            raise

    def _raise_wall(self) -> None:
        """Tells the server the wall of the next statements, if it does not know yet."""
        if self._begins or self._wanted != self._wall:
            told = walls.told(self._wanted) if self._wanted != self._wall else b""
            self._connection.execute(self._begins + told, prepare=False)
            self._begins, self._wall = b"", self._wanted


class PostgresTransaction(PostgresReader, Transaction):
    def __init__(self, connection: psycopg.Connection[Row], seal: Seal) -> None:
        super().__init__(connection, seal)
        self._changes = 0

    def run(self, sql: str, parameters: Sequence[Parameter] = ()) -> None:
        self._execute(sql, parameters)
        if sql.startswith("create table"):  # a table of an index that is made again
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
        for row in self.all(_SEQUENCES):
            last = max(given.get(row["name"], 0), self.number(f"select coalesce(max(id), 0) from {row['name']}"))
            if last > (row["last"] or 0):
                self.all("select setval(?::regclass, ?)", (row["sequence"], last))

    def watch(self) -> None:
        watching.watch(self)

    def unwatch(self) -> None:
        watching.unwatch(self)

    @property
    def changes(self) -> int:
        return self._changes

    @property
    def state(self) -> str:
        """The finished transactions and those under way; every write, by any process, changes this text."""
        return state_of(self)

    def _execute(self, statement: str, parameters: Sequence[Parameter]) -> psycopg.Cursor[Row]:
        cursor = super()._execute(statement, parameters)
        if not statement.startswith(("select", "with", "savepoint", "rollback", "release")):
            self._changes += max(cursor.rowcount, 0)
        return cursor


def state_of(reader: Reader) -> str:
    row = reader.one("select pg_current_snapshot()::text")
    assert row is not None
    return str(row[0])


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of the `nth` transaction of a writer, which is a process among others if it `has_joined` them."""

    writer: str
    nth: int
    has_joined: bool

    @property
    def statement(self) -> bytes:
        """The end of the transaction. A commit alone would pass over an error that its function has suppressed."""
        still_here = f"select still_here('{self.writer}'); " if self.has_joined else ""
        return f"{still_here}select note_commit('{self.writer}', {self.nth}); commit".encode()

    def is_noted(self, connection: psycopg.Connection[Row]) -> bool:
        noted = connection.execute(
            b"select 1 from commits where writer = %s and number = %s", (self.writer, self.nth)
        ).fetchone()
        return noted is not None


def committed(
    connection: psycopg.Connection[Row], act: Callable[[Transaction], T], seal: Seal, locks: bytes, commit: Commit
) -> T:
    """Runs a transaction as soon as the statement `locks` has taken its locks.

    Raises `Doubtful` if the connection was lost during the commit, and `Removed` if the process was removed.
    """
    try:
        begun = connection.execute(b"begin; " + locks + b", pg_current_xact_id()::text as transaction", prepare=False)
        begun.set_result(-1)
        with in_transaction():
            result = act(PostgresTransaction(connection, seal))
    except BaseException:
        with suppress(psycopg.Error):
            connection.rollback()
        raise
    try:
        connection.execute(commit.statement, prepare=False)
    except psycopg.Error as exc:
        with suppress(psycopg.Error):
            connection.rollback()
        if exc.sqlstate == _REMOVED:
            raise Removed from exc
        if connection.broken and (row := begun.fetchone()) is not None:
            raise Doubtful(row["transaction"], commit, result, exc) from exc
        raise
    return result


def is_there(connection: psycopg.Connection[Row], replica: str) -> bool:
    return connection.execute(b"select 1 from replicas where id = %s", (replica,)).fetchone() is not None


def consistent(connection: psycopg.Connection[Row], act: Callable[[Reader], T], seal: Seal | None) -> T:
    try:
        with in_transaction():
            return act(PostgresReader(connection, seal, begins=b"begin isolation level repeatable read read only; "))
    finally:
        with suppress(psycopg.Error):
            connection.commit()  # a rollback would have the driver prepare every statement again


def asked_once(connection: psycopg.Connection[Row], act: Callable[[Reader], T], seal: Seal | None) -> T:
    """Runs a function that makes a single query, without a scope."""
    with in_transaction():
        return act(_SingleReader(connection, seal))


class _SingleReader(PostgresReader):
    def _raise_wall(self) -> None:
        assert self._wanted == self._wall, "a second statement or a wall needs a transaction"
        self._wall = ()  # never equal to a wanted wall


class Removed(Exception):
    """The others have removed the process."""


class Doubtful(psycopg.OperationalError):
    """The connection was lost while a transaction was committed; only the server knows the result."""

    def __init__(self, transaction: str, commit: Commit, result: Any, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.transaction = transaction
        self.commit = commit
        self.result = result


def outcome(connection: psycopg.Connection[Row], doubt: Doubtful) -> Literal["committed", "aborted", "in progress"]:
    """Returns what became of a transaction whose end is unknown.

    The server's number of the transaction tells only whether it is still under way. A server that recovered from a
    crash, or a standby that took its place, may not have seen that number and gives it to another one.
    """
    with suppress(psycopg.errors.InvalidParameterValue):  # the number is still to be given
        row = connection.execute(b"select pg_xact_status(%s::text::xid8)", (doubt.transaction,)).fetchone()
        if row is not None and row[0] == "in progress":
            return "in progress"
    return "committed" if doubt.commit.is_noted(connection) else "aborted"


def _given(said: Translation, parameters: Sequence[Parameter]) -> dict[str, Any]:
    given = {f"p{place}": _bound(parameters[place], listed=place in said.listed) for place in said.places}
    return given | {f"n{place}": None if parameters[place] is None else "" for place in said.nulls}


def _bound(value: Parameter, *, listed: bool) -> Any:
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    # An empty list has no type, but the functions that go through a list are chosen by its type.
    return list(value) or (NoNumbers() if listed else [])


_SEQUENCES: Final = (
    "select name, sequence, pg_sequence_last_value(sequence) as last from (select c.relname::text as name,"
    " pg_get_serial_sequence(quote_ident(c.relname), 'id')::regclass as sequence from pg_class c"
    " join pg_attribute a on a.attrelid = c.oid and a.attname = 'id' and a.attidentity <> ''"
    " where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace) s"
)
