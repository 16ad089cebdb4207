"""The schema of a store on PostgreSQL, made of the same migrations as that of SQLite.

A new store gets the tables that all migrations together make in SQLite, read from an empty store in memory and
translated to PostgreSQL's types. Texts compare byte by byte, as in SQLite. An existing store gets the migrations it
lacks, one transaction each. Each store has a schema of its own in the database.

Invariants: a migration later than 29 is written in the portable subset, so that both engines read it. The first line of
one later than 30 says whether processes of the version before go on working after it ("Expands") or not ("Replaces"). A
store of a later version is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from memory.errors import SchemaTooNew, StoreInUse
from memory.store import word_columns
from memory.store.postgres import walls, watching
from memory.store.postgres.dialect import translated
from memory.store.sqlite.migrate import Migration, migrations
from memory.store.sqlite.tables import empty

#: The end of a recorded migration's name if processes of the previous version go on working after it.
_EXPANDS: Final = " (expands)"


#: Columns of the word index that hold words.
_TERMS: Final = (("postings", "term"), ("indexed_documents", "tokens"))


@cache
def tables() -> tuple[tuple[str, str], ...]:
    connection = empty()
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
    return path.stem.casefold()


def names() -> list[str]:
    return [name for name, sql in tables() if sql.lower().startswith("create table")]


@cache
def never_null() -> frozenset[str]:
    connection = empty()
    try:
        rows = connection.execute(
            'select c.name, c."notnull" or c.pk from sqlite_schema s join pragma_table_info(s.name) c'
            " where s.type = 'table'"
        ).fetchall()
    finally:
        connection.close()
    return frozenset({row[0] for row in rows} - {row[0] for row in rows if not row[1]})


def prepare(connection: Any, *, now: int, known: Sequence[Migration] | None = None, is_alone: bool = True) -> None:
    """Makes the tables of a new store, or brings those of an older one up to date.

    `connection` is one of psycopg whose search path begins with the store's schema. A store of a later version is left
    as it is, if this version can work on it. Raises `SchemaTooNew`, and `StoreInUse` if the update would break other
    processes and this one is not alone.
    """
    known = migrations() if known is None else known
    there = is_there(connection, connection.execute("select current_schema()").fetchone()[0])
    current = connection.execute("select max(version) from migrations").fetchone()[0] if there else known[-1].version
    if current > known[-1].version:
        check_version(connection, known)
        return
    missing = [one for one in known if one.version > current]
    if not is_alone and not all(one.expands for one in missing):
        raise StoreInUse(
            f"The update of the store to schema {known[-1].version} removes something that the running version "
            "needs. Stop all processes that use the store, then start this one."
        )
    with connection.transaction():
        connection.execute(resources.files("memory.store.postgres").joinpath("functions.sql").read_text("utf-8"))
        for _, statement in tables() if not there else ():
            connection.execute(statement)
        for one in known if not there else ():
            _record(connection, one, now)
        for statement in watching.definitions():
            connection.execute(statement)
    for one in missing:
        with connection.transaction():
            for statement in _statements(one.sql):
                connection.execute(translated(statement).text)
            _record(connection, one, now)
    with connection.transaction():
        for statement in walls.definitions(connection):
            connection.execute(statement)
        for statement in _without_samples(connection):
            connection.execute(statement)


def is_there(connection: Any, store: str) -> bool:
    """Returns whether a schema holds a store. Other programs have a table called migrations in their schemas, too."""
    row = connection.execute("select to_regclass(quote_ident(%s) || '.migrations') is not null", (store,)).fetchone()
    return bool(row[0])


def check_version(connection: Any, known: Sequence[Migration] | None = None) -> None:
    """Raises `SchemaTooNew` if this version can't work on the store because a later one wrote it."""
    newest = (migrations() if known is None else known)[-1].version
    later = connection.execute(
        "select version, name from migrations where version > %s order by version", (newest,)
    ).fetchall()
    if not all(row[1].endswith(_EXPANDS) for row in later):
        raise SchemaTooNew(
            f"This database was written by a newer Remora (schema {later[-1][0]}, this one knows {newest}). "
            "Nothing was changed. Install that version again, or restore a backup made by this one."
        )


def _without_samples(connection: Any) -> Iterator[str]:
    """Yields the statements that keep people's words out of the planner's samples, which no erasing reaches.

    No search uses the words themselves, and terms are looked up within a partition, so no plan needs samples.
    """
    rows = connection.execute(
        "select c.relname, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid"
        " where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and a.attnum > 0"
        " and not a.attisdropped and a.attstattarget is distinct from 0"
    ).fetchall()
    sampled = {(row[0], row[1]) for row in rows}
    words = {(table, column) for table, columns in word_columns.WORDS.items() for column in columns}
    for table, column in sorted(sampled & (words | set(_TERMS))):
        yield f"alter table {table} alter column {column} set statistics 0"


def _statements(sql: str) -> list[str]:
    """Returns the statements of a migration, without the comments before each."""
    parts = (re.sub(r"\A(?:\s*--[^\n]*\n)+", "", part).strip() for part in sql.split(";\n"))
    return [part for part in parts if part]


def _record(connection: Any, one: Migration, now: int) -> None:
    name = f"{one.name}{_EXPANDS if one.expands else ''}"
    connection.execute("insert into migrations values (%s, %s, %s)", (one.version, name, now))


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
