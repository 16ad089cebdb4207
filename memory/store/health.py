"""Whether the pages of a store hold together, and which of them can be made again.

Two kinds of tables are told apart by name: canonical ones hold what nobody could tell again, derived ones are indexes
of those. Invariants: nothing here repairs a canonical table or drops a damaged one, for walking a tree that has gone
wrong frees pages that belong to others; a damaged derived table is struck from the schema and made anew, empty, its
old pages left behind for a `vacuum`.

Checks are SQLite's `quick_check`, table by table: the order of a tree and of its indexes, types and constraints, but no
checksums, so a letter changed within a text is not seen. Measured for 1 M messages and memories in docs/reliability.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Final

#: The word index with the tables FTS5 keeps it in: they live and fall together.
WORDS: Final = ("words", "words_data", "words_idx", "words_content", "words_docsize", "words_config")
#: What is known of documents by meaning, and what waits to be.
MEANINGS: Final = ("vectors", "token_bits", "embedded", "unembedded", "embedding_cache")
#: The log that feeds both. Without it nobody knows which documents either of them is wrong about.
CHANGES: Final = "changes"
DERIVED: Final = (*WORDS, *MEANINGS, CHANGES)

#: Primary result codes, https://sqlite.org/rescode.html: SQLITE_CORRUPT and SQLITE_NOTADB.
_CORRUPT, _NOT_A_DATABASE = 11, 26
#: SQLITE_CORRUPT_VTAB: FTS5 says that its own tables are.
_CORRUPT_INDEX_TABLE = 267
#: How SQLite tells of a page in two places, and of a list of free pages that does not hold together.
_SHARED: Final = ("2nd reference", "reelist")
#: Columns of derived tables that hold text; any other that can't be decoded is canonical.
_DERIVED_TEXT: Final = ("tokens", "scope")


def is_damage(error: BaseException) -> bool:
    """Whether the driver's error tells of pages that don't hold together."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (_CORRUPT, _NOT_A_DATABASE) or "malformed" in str(error)


def is_index_damage(error: BaseException) -> bool:
    """Whether the error names the word index itself; others may come from any table of their statement."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code == _CORRUPT_INDEX_TABLE or (is_undecodable(error) and _undecoded(error) in _DERIVED_TEXT)


def is_undecodable(error: BaseException) -> bool:
    """Whether a text is no UTF-8. The driver's error quotes that text, so it must not be shown or logged."""
    return str(error).startswith("Could not decode to UTF-8")


def damaged_canonical(connection: sqlite3.Connection, error: type[Exception], *, free_pages: bool) -> list[str]:
    """Which canonical tables are damaged; with `free_pages`, also whether the list of free pages is.

    `error` is the driver's base class. Raises it for anything but damage. Costs some 60 ms per 100,000 rows when the
    pages are in memory, as long as reading them takes when not; `free_pages` reads the whole file.
    """
    rows = connection.execute(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
    ).fetchall()
    found = damaged(connection, error, [row[0] for row in rows if row[0] not in DERIVED])
    if free_pages and not found and not damaged(connection, error, DERIVED):
        # All trees hold together, so a page used twice is one that is listed as free, or given to two of them.
        whole = _complaints(connection, error, None)
        found = ["free pages"] if any(sign in line for line in whole for sign in _SHARED) else []
    return found


def damaged(connection: sqlite3.Connection, error: type[Exception], tables: Collection[str]) -> list[str]:
    """Which of `tables` are damaged, or an index of theirs. Missing ones are not."""
    return [table for table in tables if _exists(connection, table) and _complaints(connection, error, table)]


def strike(connection: sqlite3.Connection, tables: Collection[str]) -> None:
    """Take `tables` with their indexes out of the schema, and make those anew, empty, that are no part of `WORDS`.

    Runs inside the caller's transaction; the file needs a `vacuum` afterwards. Numbers once given by `autoincrement`
    are not given again. Raises the driver's error where this SQLite keeps its schema from being written.
    """
    names = list(tables)
    marks = ", ".join("?" for _ in names)
    made_anew = connection.execute(
        f"select tbl_name, sql from sqlite_schema where tbl_name in ({marks}) and sql is not null order by type desc",
        names,
    ).fetchall()
    version = connection.execute("pragma schema_version").fetchone()[0]
    connection.execute("pragma writable_schema = on")
    try:
        connection.execute(f"delete from sqlite_schema where tbl_name in ({marks})", names)
        # Other connections see by the number that the schema is another; this one reads it again at the reset.
        connection.execute(f"pragma schema_version = {version + 1}")
    finally:
        connection.execute("pragma writable_schema = reset")
    for table, sql in made_anew:
        if table not in WORDS:
            connection.execute(sql)


def _exists(connection: sqlite3.Connection, table: str) -> bool:
    row = connection.execute(
        "select rootpage from sqlite_schema where name = ? and type = 'table'", (table,)
    ).fetchone()
    # A virtual table has no pages of its own.
    return row is not None and row[0] > 0


def _complaints(connection: sqlite3.Connection, error: type[Exception], table: str | None) -> list[str]:
    about = "" if table is None else f"('{table}')"
    try:
        lines = [str(row[0]) for row in connection.execute(f"pragma quick_check{about}")]
    except error as exc:
        # A word index without its settings is not called damage: "invalid fts5 file format".
        if not (is_damage(exc) or "fts5" in str(exc)):
            raise
        return [str(exc)]
    return [] if lines == ["ok"] else lines


def _undecoded(error: BaseException) -> str:
    """The column's name out of "Could not decode to UTF-8 column 'name' with text '…'"."""
    parts = str(error).split("'", 2)
    return parts[1] if len(parts) == 3 else ""
