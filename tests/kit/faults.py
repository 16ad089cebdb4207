"""A SQLite that dies or fails at a chosen moment, given to `Service.open(driver=...)` or `SqliteDatabase.open(driver=...)`.

    faults = Faults(kill_before_commit=3)                      # SIGKILL to the own process: for child processes
    faults = Faults(kill_after_commit=1, holding="outbox")     # of the commits whose transaction named the outbox
    faults = Faults(fail_at_statement=40)                      # the 40th statement: "disk I/O error", then all is well
    faults = Faults()
    faults.break_down("database or disk is full")              # every statement from now on, until
    faults.mend()
    database = await SqliteDatabase.open(path, now=1, driver=faults.driver)

Invariants: nothing of the product knows of it, for it is a driver like any other, by way of `connect(factory=...)`;
statements and commits are counted over all connections in the order in which they reach SQLite, from 1 on; the script
of a migration is one statement and no commit, and a change outside of any transaction is a commit by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from types import ModuleType
from typing import Any

from memory.store.sqlite import driver as drivers
from memory.store.sqlite.driver import Driver

IO_ERROR = "disk I/O error"


class Faults:
    """The faults that the connections of `driver` are to have, and how far these have come.

    `kill_before_commit` and `kill_after_commit` count the commits of transactions in which a statement holds the text
    `holding`; without one, all. `fail_at_statement` counts the statements that hold it. `base` is the driver that does
    the work: the product's own choice when None.
    """

    def __init__(
        self,
        *,
        base: Driver | None = None,
        kill_before_commit: int | None = None,
        kill_after_commit: int | None = None,
        fail_at_statement: int | None = None,
        holding: str = "",
        error: str = IO_ERROR,
    ) -> None:
        self.statements = 0
        self.commits = 0
        #: Every connection that was opened through the driver, the writer first.
        self.connections: list[Any] = []
        self._kill_before_commit = kill_before_commit
        self._kill_after_commit = kill_after_commit
        self._fail_at_statement = fail_at_statement
        self._holding = holding
        self._error = error
        self._broken: str | None = None
        self._breaks_on = ""
        self._lock = threading.Lock()
        base = base or drivers.best()
        self._operational_error: type[Exception] = base.module.OperationalError
        self.driver = Driver(name=base.name, module=_module(base.module, self))

    def break_down(self, error: str = IO_ERROR, *, on: str = "") -> None:
        """From now on every statement that holds the text `on` fails with `error`."""
        self._broken, self._breaks_on = error, on

    def mend(self) -> None:
        self._broken = None

    def before(self, sql: str) -> None:
        """Raises what is to go wrong with `sql`, which a connection is about to run."""
        if self._broken is not None and self._breaks_on in sql:
            raise self._operational_error(self._broken)
        if self._holding in sql:
            with self._lock:
                self.statements += 1
                fails = self.statements == self._fail_at_statement
            if fails:
                raise self._operational_error(self._error)

    def committing(self) -> int:
        """A connection is about to commit what counts; returns which commit it is."""
        with self._lock:
            self.commits += 1
            nth = self.commits
        if nth == self._kill_before_commit:
            _die()
        return nth

    def committed(self, nth: int, done: Any) -> None:
        if nth == self._kill_after_commit:
            done.fetchall()  # a statement that returns rows is committed behind the last of them
            _die()

    def counts(self, sql: str) -> bool:
        """Whether a transaction with this statement is one of those that are counted."""
        return self._holding in sql


def _module(base: ModuleType, faults: Faults) -> ModuleType:
    """A DB-API module like `base` whose connections go through `faults`."""

    class Faulty(base.Connection):  # type: ignore[misc, name-defined]
        _counted = False

        def execute(self, sql: str, *parameters: Any) -> Any:
            faults.before(sql)
            word = sql.split(maxsplit=1)[0].lower()
            if word == "begin":
                self._counted = False
            alone = word in ("insert", "update", "delete") and not self.in_transaction
            if alone:
                counted = faults.counts(sql)
            else:
                self._counted = self._counted or faults.counts(sql)
                counted = word == "commit" and self._counted
            if not counted:
                return super().execute(sql, *parameters)
            nth = faults.committing()
            done = super().execute(sql, *parameters)
            faults.committed(nth, done)
            return done

        def executescript(self, script: str) -> Any:
            faults.before(script)
            return super().executescript(script)

    def connect(*args: Any, **options: Any) -> Any:
        connection = base.connect(*args, factory=Faulty, **options)
        faults.connections.append(connection)
        return connection

    module = ModuleType(base.__name__)
    module.__dict__.update(vars(base))
    module.__dict__.update(connect=connect, Connection=Faulty)
    return module


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
