"""Copies rows from one store to another: pages of rows in the order of their keys, and the progress of a copy.

Invariants: A copy under way bears a mark, which is written with the rows that it counts, so that rows marked as copied
exist. A store with a mark is refused for use: it is not whole yet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from memory.errors import StorageError
from memory.store import settings, word_columns
from memory.store.database import Reader, Transaction, Value
from memory.store.sqlite import health
from memory.store.sqlite.migrate import migrations
from memory.store.sqlite.tables import StoreTable, tables

#: The place of a store.
Place: TypeAlias = Literal["file", "postgres"]
Values: TypeAlias = tuple[Value, ...]

#: The tables that are not copied, and why.
LEFT: Final = {
    "migrations": "say when a store's own schema was made",
    **dict.fromkeys(health.WORDS, "are made again at the end"),
    **dict.fromkeys(("replicas", "lanes", "duties", "commits"), "tell of processes that are at work"),
}
#: Tables whose rows show that a store was used. A start alone makes rows in others.
USED: Final = ("people", "chats", "memories", "access", "pairings")
#: The setting that holds the mark.
MARK: Final = "move"
#: The rows of a page, and of a page from a table with bytes that people sent, which may be some megabytes each.
_ROWS, _ROWS_WITH_BYTES = 1_000, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The progress of a copy: the step, the last key copied in it, and the rows of all steps so far.

    `origin` identifies the store that it is a copy of. `nuls` counts the NUL characters that were replaced.
    """

    origin: str
    to: Place
    step: int = 0
    after: Values | None = None
    rows: int = 0
    nuls: int = 0


def carried() -> tuple[StoreTable, ...]:
    """Returns the tables to copy, each after those that it refers to."""
    return tuple(table for table in tables() if table.name not in LEFT)


def page(reader: Reader, table: StoreTable, *, after: Values | None) -> list[Values]:
    names, key = ", ".join(table.columns), ", ".join(table.key)
    # A key holds no null, and so this order is that of the index on every engine.
    order = ", ".join(f"{column} nulls last" for column in table.key)
    behind = "" if after is None else f" where ({key}) > ({_marks(after)})"
    limit = _ROWS_WITH_BYTES if table.name in word_columns.BYTES else _ROWS
    rows = reader.all(f"select {names} from {table.name}{behind} order by {order} limit ?", (*(after or ()), limit))
    return [tuple(row) for row in rows]


def put(tx: Transaction, table: StoreTable, rows: Sequence[Values]) -> None:
    """Inserts rows, without their references to rows of the same table, which may be missing yet."""
    own = {table.columns.index(column) for column in table.within}
    if own:
        rows = [tuple(None if n in own else value for n, value in enumerate(row)) for row in rows]
    tx.run_each(f"insert into {table.name} ({', '.join(table.columns)}) values ({_marks(table.columns)})", rows)


def connect(tx: Transaction, table: StoreTable, rows: Iterable[Values]) -> None:
    """Sets the references of existing rows to rows of the same table."""
    own, key = ([table.columns.index(column) for column in columns] for columns in (table.within, table.key))
    statement = (
        f"update {table.name} set {', '.join(f'{column} = ?' for column in table.within)}"
        f" where {' and '.join(f'{column} = ?' for column in table.key)}"
    )
    referring = [row for row in rows if any(row[n] is not None for n in own)]
    tx.run_each(statement, [[row[n] for n in (*own, *key)] for row in referring])


def count(reader: Reader, table: StoreTable) -> int:
    return reader.number(f"select count(*) from {table.name}")


def used(reader: Reader) -> dict[str, int]:
    counts = {name: reader.number(f"select count(*) from {name}") for name in USED}
    return {name: counted for name, counted in counts.items() if counted}


def origin(reader: Reader) -> str:
    """Returns the identity of a store: the times at which its migrations were applied, in milliseconds."""
    return repr([tuple(row) for row in reader.all("select version, applied_at from migrations order by version")])


def is_current(reader: Reader) -> bool:
    return reader.number("select max(version) from migrations") == migrations()[-1].version


def clear(tx: Transaction) -> None:
    for table in reversed(tables()):
        if table.name != "migrations":
            tx.run(f"delete from {table.name}")


def marked(reader: Reader) -> Mark | None:
    value = settings.value(reader, MARK)
    return None if value is None else Mark(**ast.literal_eval(value))


def mark(tx: Transaction, made: Mark) -> None:
    settings.put(tx, MARK, repr(asdict(made)))


def unmark(tx: Transaction) -> None:
    settings.drop(tx, MARK)


def refuse_unfinished(reader: Reader, path: Path) -> None:
    """Raises `StorageError` if the store is the unfinished copy of another one."""
    found = marked(reader)
    if found is not None:
        raise StorageError(
            f"{path.name} is an unfinished copy: `remora move` was interrupted, or has found a difference. Run "
            f"`remora move --to {found.to}` again, which goes on where it stopped."
        )


def _marks(values: Sequence[Value]) -> str:
    return ", ".join("?" for _ in values)
