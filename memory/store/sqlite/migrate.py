"""Brings a database to the newest schema: numbered SQL files, forward only.

Invariants: each file runs in one transaction together with the row that records it, so a kill leaves either the
old schema or the new one; a file is never edited after release; a database with a migration this Remora does not
know is refused untouched.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from importlib import resources

from memory.errors import SchemaTooNew

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered step; `sql` may hold many statements but no transaction of its own."""

    version: int
    name: str
    sql: str

    @property
    def expands(self) -> bool:
        """True if, by its first line, processes of the previous version go on working after it."""
        return self.sql.startswith("-- Expands:")


def migrations() -> list[Migration]:
    found = [
        Migration(version=int(match[1]), name=match[2], sql=file.read_text("utf-8"))
        for file in resources.files("memory.store").joinpath("migrations").iterdir()
        if (match := _FILE_NAME.fullmatch(file.name))
    ]
    return sorted(found, key=lambda migration: migration.version)


def migrate(connection: sqlite3.Connection, known: list[Migration], *, now: int) -> None:
    """Applies the missing migrations. Raises `SchemaTooNew` if the database is ahead of `known`."""
    connection.execute(
        "create table if not exists migrations"
        " (version integer primary key, name text not null, applied_at integer not null) strict"
    )
    current: int = connection.execute("select coalesce(max(version), 0) from migrations").fetchone()[0]
    newest = known[-1].version
    if current > newest:
        raise SchemaTooNew(
            f"This database was written by a newer Remora (schema {current}, this one knows {newest}). "
            "Nothing was changed. Install that version again, or restore a backup made by this one."
        )
    for migration in known:
        if migration.version > current:
            _apply(connection, migration, now)


def _apply(connection: sqlite3.Connection, migration: Migration, now: int) -> None:
    record = f"insert into migrations values ({migration.version}, '{migration.name}', {now});"
    try:
        connection.executescript(f"begin immediate;\n{migration.sql}\n{record}\ncommit;")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
