"""The schema of a store on PostgreSQL, made of the same migrations as that of SQLite.

A new store gets the tables that all migrations together make in SQLite, read from an empty store in memory and said in
PostgreSQL's types. Texts compare byte by byte, as in SQLite. A store that is there gets the migrations it lacks, one
transaction each. Each store has a schema of its own in the database.

Invariants: a migration later than 29 is written in the portable subset, so that both engines read it. A store of a
later version is left as it is.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from memory.errors import SchemaTooNew
from memory.store.postgres import walls, watching
from memory.store.postgres.dialect import translated
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.migrate import migrate as migrate_sqlite
from memory.store.sqlite.migrate import migrations


@cache
def tables() -> tuple[tuple[str, str], ...]:
    """Returns names and statements of all tables and indexes of a new store, tables first."""
    connection = _empty()
    try:
        rows = connection.execute(
            "select name, sql, type from sqlite_schema where sql is not null and name not like 'sqlite%'"
            " order by type desc, rowid"
        ).fetchall()
    finally:
        connection.close()
    found = [(row[0], translated(row[1]).text.replace("%%", "%")) for row in rows]
    return tuple(_by_reference(found))


def name_of(path: Path) -> str:
    """Returns the name of the schema of the store that would be the file `path`."""
    return re.sub(r"\W", "_", path.stem.casefold())


def names() -> list[str]:
    """Returns the names of the tables."""
    return [name for name, sql in tables() if sql.lower().startswith("create table")]


@cache
def never_null() -> frozenset[str]:
    """Returns the names of the columns that hold no null in any table that has one of that name."""
    connection = _empty()
    try:
        rows = connection.execute(
            'select c.name, c."notnull" or c.pk from sqlite_schema s join pragma_table_info(s.name) c'
            " where s.type = 'table'"
        ).fetchall()
    finally:
        connection.close()
    return frozenset({row[0] for row in rows} - {row[0] for row in rows if not row[1]})


def prepare(connection: Any, *, now: int) -> None:
    """Makes the tables of a new store, or brings those of an older one up to date. Raises `SchemaTooNew`.

    `connection` is one of psycopg whose search path begins with the store's schema.
    """
    known = migrations()
    newest = known[-1].version
    there = connection.execute("select to_regclass('migrations')").fetchone()[0] is not None
    current = connection.execute("select max(version) from migrations").fetchone()[0] if there else newest
    check_version(current)
    with connection.transaction():
        connection.execute(resources.files("memory.store.postgres").joinpath("functions.sql").read_text("utf-8"))
        for _, statement in tables() if not there else ():
            connection.execute(statement)
        for one in known if not there else ():
            connection.execute("insert into migrations values (%s, %s, %s)", (one.version, one.name, now))
        for statement in watching.definitions():
            connection.execute(statement)
    for one in known:
        if one.version > current:
            with connection.transaction():
                for statement in filter(str.strip, one.sql.split(";\n")):
                    connection.execute(translated(statement.strip()).text)
                connection.execute("insert into migrations values (%s, %s, %s)", (one.version, one.name, now))
    with connection.transaction():
        for statement in walls.definitions(connection):
            connection.execute(statement)


def check_version(current: int) -> None:
    """Raises `SchemaTooNew` if a later version of Remora wrote the store."""
    newest = migrations()[-1].version
    if current > newest:
        raise SchemaTooNew(
            f"This database was written by a newer Remora (schema {current}, this one knows {newest}). "
            "Nothing was changed. Install that version again, or restore a backup made by this one."
        )


def _empty() -> Any:
    connection = drivers.best().module.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection, migrations(), now=1)
    return connection


def _by_reference(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the tables in an order in which each comes after those that it refers to, then the indexes."""
    ordered: list[tuple[str, str]] = []
    waiting = list(found)
    names = {name for name, sql in found if sql.lower().startswith("create table")}
    while waiting:
        made = {name for name, _ in ordered}
        ready = [
            (name, sql)
            for name, sql in waiting
            if not (set(re.findall(r"references (\w+)", sql)) & names) - made - {name}
            and (name in names or not names - made)
        ]
        assert ready, "tables refer to each other in a circle"
        ordered += ready
        waiting = [one for one in waiting if one not in ready]
    return ordered
