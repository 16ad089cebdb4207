"""Database files that are no open store: opened, copied, rewritten, counted and checked.

Invariant: nothing here changes the rows of the file it reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from memory.store import postings
from memory.store.sqlite import health
from memory.store.sqlite.database import SqliteTransaction
from memory.store.sqlite.driver import Driver

#: Called with the bytes copied so far and their total. An exception raised in it ends the copy.
Progress: TypeAlias = Callable[[int, int], None]

#: Pages copied in one step, in some 10 ms.
_STEP_PAGES: Final = 1_000
#: The tables by which a file is recognised as a Remora database.
_TABLES: Final = frozenset({"migrations", "store_settings", "people", "messages", "memories"})
_NAMES: Final = "select name from sqlite_schema where type = 'table'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a file: its schema version, and the number of rows in each table that is not an index."""

    schema: int
    rows: Mapping[str, int]


@contextmanager
def connected(file: Path, driver: Driver, *, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    connection = driver.module.connect(
        f"{file.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("pragma busy_timeout = 5000")
        yield connection
    finally:
        connection.close()


@contextmanager
def opened(file: Path, driver: Driver) -> Iterator[sqlite3.Connection]:
    """Opens a database for reading while others may use it, and shows one committed state for as long as it is open."""
    with connected(file, driver) as connection:
        connection.execute("pragma query_only = on")
        connection.execute("begin")
        yield connection


def empty_log(store: Path, driver: Driver) -> None:
    """Moves the log of a store that nobody uses into the store's file. If that fails, the log stays."""
    with suppress(driver.module.Error), connected(store, driver) as connection:
        connection.execute("pragma busy_timeout = 500")
        connection.execute("pragma wal_checkpoint(truncate)").fetchone()


def copy_pages(source: sqlite3.Connection, target: Path, driver: Driver, progress: Progress) -> None:
    page = int(source.execute("pragma page_size").fetchone()[0])
    with connected(target, driver, mode="rwc") as copy:
        source.backup(
            copy,
            pages=_STEP_PAGES,
            progress=lambda status, left, pages: progress((pages - left) * page, pages * page),
            sleep=0.01,
        )
        copy.execute("pragma journal_mode = delete")


def write_anew(file: Path, target: Path, driver: Driver) -> None:
    """Writes a database to a new file from its rows, without the word index's remains of removed rows."""
    with connected(file, driver) as copy:
        copy.row_factory = driver.module.Row
        postings.remove_changed(SqliteTransaction(copy))
        copy.execute("vacuum into ?", (str(target),))


def is_store(connection: sqlite3.Connection) -> bool:
    return {row[0] for row in connection.execute(_NAMES)} >= _TABLES


def contents(connection: sqlite3.Connection) -> Contents:
    tables = connection.execute(f"{_NAMES} and name not like 'sqlite\\_%' escape '\\' order by name").fetchall()
    schema = connection.execute("select coalesce(max(version), 0) from migrations").fetchone()[0]
    rows = {
        name: int(connection.execute(f"select count(*) from {name}").fetchone()[0])
        for (name,) in tables
        if name not in health.DERIVED
    }
    return Contents(schema=int(schema), rows=rows)


def damaged(connection: sqlite3.Connection, driver: Driver) -> list[str]:
    if _is_sound(connection, driver):
        return []
    error: type[Exception] = driver.module.Error
    found = health.damaged_canonical(connection, error, free_pages=True)
    if not found:
        tables = connection.execute(f"{_NAMES} and rootpage > 0").fetchall()
        found = [
            name for (name,) in tables if name not in health.DERIVED and not _is_sound(connection, driver, f"({name})")
        ]
    return found


def _is_sound(connection: sqlite3.Connection, driver: Driver, what: str = "") -> bool:
    try:
        return [row[0] for row in connection.execute(f"pragma integrity_check{what}")] == ["ok"]
    except driver.module.Error as exc:
        if not health.is_damage(exc):
            raise
        return False
