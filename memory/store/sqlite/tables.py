"""Describes the tables that all migrations together make, read from an empty store in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from memory.store.sqlite import driver as drivers
from memory.store.sqlite.migrate import migrate, migrations

_TABLES: Final = "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTable:
    """A table, its columns, and those of its primary key in order.

    `within` are the columns that refer to rows of the same table.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    within: tuple[str, ...]


def empty() -> Any:
    connection = drivers.best().module.connect(":memory:", isolation_level=None)
    migrate(connection, migrations(), now=1)
    return connection


@cache
def tables() -> tuple[StoreTable, ...]:
    connection = empty()
    try:
        waiting = {row[0]: _described(connection, row[0]) for row in connection.execute(_TABLES).fetchall()}
    finally:
        connection.close()
    ordered: dict[str, StoreTable] = {}
    while waiting:
        ready = [name for name, (_, referred) in waiting.items() if referred <= ordered.keys()]
        assert ready, "tables refer to each other in a circle"
        ordered |= {name: waiting.pop(name)[0] for name in ready}
    return tuple(ordered.values())


def _described(connection: Any, name: str) -> tuple[StoreTable, set[str]]:
    columns = connection.execute(f"pragma table_info({name})").fetchall()
    references = [(row[3], row[2]) for row in connection.execute(f"pragma foreign_key_list({name})")]
    table = StoreTable(
        name=name,
        columns=tuple(column[1] for column in columns),
        key=tuple(column[1] for column in sorted(columns, key=lambda column: column[5]) if column[5]),
        within=tuple(column for column, other in references if other == name),
    )
    return table, {other for _, other in references if other != name}
