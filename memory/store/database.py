"""A store as everything but its engine sees it: transactions, reads, and its damage.

The engine is in a package of its own (`memory/store/sqlite/`); the code that opens a store names it. A transaction is a
plain function: it gets a `Transaction`, runs from the beginning to the commit in one go, and can't await anything.

Invariants: Inside a process transactions run one at a time, in the order requested. A cancelled caller leaves no
transaction open, because the function runs to its end regardless. Readers see one committed state for the whole of a
function and can't write. A transaction happens at one moment, however often the clock is read in it: see `one_moment`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, Final, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from memory.scope import Scope
from memory.store.sealing import Seal
from memory.store.server import Deployment
from memory.store.share import OwnShare
from memory.store.sqlite.driver import Driver

Durability: TypeAlias = Literal["process", "power-loss"]
Value: TypeAlias = str | int | float | bytes | None
#: A parameter of a statement. A collection is passed as JSON: `id in (select value from json_each(?))`.
Parameter: TypeAlias = Value | Collection[int] | Collection[str]
#: The names of the things that a transaction touches, such as `of_lane`.
Keys: TypeAlias = Collection[str]
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R", bound="Reader")


def of_lane(session_key: str) -> str:
    """Returns the name of a session: its messages, turns, inbox and outbox rows."""
    return f"lane {session_key}"


def of_person(platform: str, user_id: str) -> str:
    """Returns the name of an account: its row, and that of its person."""
    return f"person {platform} {user_id}"


def of_chat(platform: str, chat: str) -> str:
    """Returns the name of a chat: its row, its threads and its owner."""
    return f"chat {platform} {chat}"


def of_owner(owner_id: int) -> str:
    """Returns the name of an owner: its memories, names and links, and the clock of the account's person."""
    return f"owner {owner_id}"


#: The name of the word index and of the queue of the embedder.
INDEX: Final = "index"


class Row(Protocol):
    """A row of a statement's result: its values by name, by position, and in order."""

    def keys(self) -> list[str]: ...
    def __getitem__(self, key: int | str, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Reader(Protocol):
    @property
    def seal(self) -> Seal:
        """The seal of forgotten statements. It exists only if the store was opened for use, not only to be read."""
        ...

    def all(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]: ...

    def one(self, sql: str, parameters: Sequence[Parameter] = ()) -> Row | None: ...

    def ids(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[int]:
        return [int(row[0]) for row in self.all(sql, parameters)]

    def id(self, sql: str, parameters: Sequence[Parameter] = ()) -> int | None:
        """Returns the first column of the first row, a whole number; None if it is null or there is no row."""
        row = self.one(sql, parameters)
        return None if row is None or row[0] is None else int(row[0])

    def text(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """Returns the first column of the first row; None if it is null or there is no row."""
        row = self.one(sql, parameters)
        return None if row is None or row[0] is None else str(row[0])

    def has(self, sql: str, parameters: Sequence[Parameter] = ()) -> bool:
        return self.one(sql, parameters) is not None

    def first(self, sql: str, parameters: Sequence[Parameter], make: Callable[[Row], T]) -> T | None:
        row = self.one(sql, parameters)
        return None if row is None else make(row)

    def each(self, sql: str, parameters: Sequence[Parameter], make: Callable[[Row], T]) -> list[T]:
        return [make(row) for row in self.all(sql, parameters)]

    def texts(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[str]:
        return [str(row[0]) for row in self.all(sql, parameters)]

    def pairs(self, sql: str, parameters: Sequence[Parameter] = ()) -> dict[Any, Any]:
        """Returns the second column of all rows by the first."""
        return {row[0]: row[1] for row in self.all(sql, parameters)}

    def number(self, sql: str, parameters: Sequence[Parameter] = ()) -> int:
        """Returns the number that a statement with exactly one row returns, such as a count."""
        row = self.one(sql, parameters)
        assert row is not None
        return int(row[0])

    def confine(self, scope: Scope, *, session_id: int | None = None) -> None:
        """Hides rows that the scope may not see from the rest of this transaction, if the engine can.

        This is a second wall: every statement names its scope all the same. With `session_id` the messages of that
        session stay visible.
        """
        return

    def within(self, scope: Scope, *, elsewhere: bool = False) -> AbstractContextManager[None]:
        """Hides rows that the scope may not see until the end of the `with` block, if the engine can.

        With `elsewhere`, its people's messages in other places stay visible: memories of them come from there.
        """
        return nullcontext()

    def of_everybody(self) -> AbstractContextManager[None]:
        """Hides nothing until the end of the `with` block: for work that is shared out among all people at night."""
        return nullcontext()

    def given_ids(self) -> dict[str, int]:
        """Returns the greatest id ever given, by table, at least for tables that never give one again."""
        ...


class Transaction(Reader, Protocol):
    def run(self, sql: str, parameters: Sequence[Parameter] = ()) -> None: ...

    def run_each(self, sql: str, rows: Sequence[Sequence[Parameter]]) -> None: ...

    def insert(self, sql: str, parameters: Sequence[Parameter] = ()) -> int:
        return self.number(f"{sql} returning id", parameters)

    def attempt(self, act: Callable[[], T], *, keep: Callable[[T], bool]) -> T:
        """Runs `act` inside the transaction and returns its result. Takes its changes back unless `keep` accepts it."""
        self.run("savepoint attempt")
        result = act()
        if not keep(result):
            self.run("rollback to attempt")
        self.run("release attempt")
        return result

    def give_ids_behind(self, given: Mapping[str, int]) -> None:
        """Makes new ids greater than these and than all existing ones, as a copy of a store needs."""
        ...

    def watch(self) -> None:
        """Begins to note changes to memories, links and names; see `job_watch`."""
        ...

    def unwatch(self) -> None: ...

    @property
    def changes(self) -> int:
        """A number that grows with the rows that this transaction writes."""
        ...

    @property
    def state(self) -> str:
        """A text that is the same at the beginning of two transactions only if nothing was written between them."""
        ...


class Database(Protocol):
    """An open store.

    `damage` names the damage and the remedy, for health and status; it is None as long as no damage is known.
    `without_vectors` says why vectors can't be compared here; it is empty if they can. `on_index_damage` is called when
    damage turns out to be only in tables that can be derived again. `share` is this process's part of the store's work.
    `driver` is the SQLite library of a store that is a file; a store on a server has none, and is copied by the
    server's own means. `twice` runs each transaction's function twice, the first time taken back: a test sees by it
    that none has an effect outside the database.
    """

    path: Path
    driver: Driver | None
    seal: Seal
    damage: str | None
    without_vectors: str
    twice: bool
    on_index_damage: Callable[[], None]

    @cached_property
    def share(self) -> OwnShare:
        """The share of the store's work that falls to this process: all of it, unless the engine says otherwise."""
        return OwnShare()

    async def write(
        self,
        act: Callable[[Transaction], T],
        *,
        keys: Keys | None = None,
        durable: bool = True,
        single: bool = False,
    ) -> T:
        """Runs `act` as one transaction. Any exception it raises rolls back the whole transaction.

        With `keys` it may run beside the transactions of other processes that name none of them, so it reads and
        writes only rows that belong to its keys or that nobody changes. Without `keys` nothing runs beside it. `act`
        may be run again, so it has no effect outside the transaction.

        A write that is not `durable` may be lost in a crash of the database's server, unless a durable one followed it.
        This is for data that is made again then and gives no ids, since the server may give the same once more. A file
        waits for its disk as it is configured.

        With `single`, `act` asks one statement, which stays done even if `act` fails after it.

        Raises `StoreDamaged` without trying if the store is known to be damaged.
        """
        ...

    async def read(self, act: Callable[[Reader], T], *, single: bool = False) -> T:
        """Runs `act` on one committed state. Raises `StoreBusy` if that takes too long.

        With `single`, `act` asks one statement, which needs no transaction to see one state.
        """
        ...

    async def examine(self, act: Callable[[Reader], T]) -> T:
        """Runs `act` on one committed state, however long it takes; only the caller waits for it."""
        ...

    async def state(self) -> str:
        """Returns the `Transaction.state` of a transaction that began now."""
        ...

    async def check(self) -> str | None:
        """Checks all canonical tables now and returns `damage`. Only the caller waits for it."""
        ...

    async def damaged(self, tables: Collection[str]) -> list[str]:
        """Returns the tables among `tables` whose pages are damaged."""
        ...

    async def strike(self, tables: Collection[str]) -> None: ...

    async def scrub(self, *, seconds: float = 5.0) -> bool:
        """Removes every byte of deleted or replaced data from the files. Returns False if it can't."""
        ...

    @property
    def engine(self) -> str: ...

    def deployment(self, reader: Reader) -> Deployment:
        return Deployment(engine=self.engine)

    @property
    def file_bytes(self) -> int:
        """The size of the store without its log."""
        ...

    @property
    def wal_bytes(self) -> int:
        """The size of the log of data that is not yet in the store's own file."""
        ...

    async def close(self) -> None: ...


def walled(act: Callable[Concatenate[R, Scope, P], T]) -> Callable[Concatenate[R, Scope, P], T]:
    """Returns `act`, which is confined by a scope, as a function that runs within it: see `Reader.within`."""

    @wraps(act)
    def confined(reader: R, scope: Scope, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with reader.within(scope):
            return act(reader, scope, *args, **kwargs)

    return confined


def rehearsed(act: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """Returns `act` as a function that runs it twice, and takes back its writes of the first time."""

    def run(tx: Transaction) -> T:
        tx.run("savepoint rehearsal")
        act(tx)
        tx.run("rollback to rehearsal")
        tx.run("release rehearsal")
        return act(tx)

    return run


class _Running(threading.local):
    """The state of a thread: whether a transaction runs on it, and the transaction's moment once the clock was read."""

    is_in = False
    moment: int | None = None


_running = _Running()


def one_moment(clock: Callable[[], int]) -> Callable[[], int]:
    """Returns `clock` as a clock that stands still inside a transaction.

    Rows that are written together can be found together by their time, and a decision that depends on the time is the
    same for the whole transaction.
    """

    def now() -> int:
        if not _running.is_in:
            return clock()
        if _running.moment is None:
            _running.moment = clock()
        return _running.moment

    return now


@contextmanager
def in_transaction() -> Iterator[None]:
    _running.is_in = True
    try:
        yield
    finally:
        _running.is_in, _running.moment = False, None
