"""Checks the pages of a store for damage, and recreates damaged tables that can be derived again.

Two kinds of tables are distinguished by name: canonical tables hold data that can't be derived again, and derived
tables are indexes of these.

Invariants: Nothing here repairs a canonical table or drops a damaged one, because walking a corrupt tree frees pages
that belong to others. A damaged derived table is removed from the schema and recreated empty; its old pages remain for
a `vacuum`.

The checks are SQLite's `quick_check`, table by table: the order of a tree and of its indexes, types and constraints,
but no checksums, so a letter changed within a text is not detected. Measured for 1 M messages and memories in
docs/design/benchmarks.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Final

#: The word index; both tables can only be filled together.
WORDS: Final = ("postings", "indexed_documents")
#: The vectors and token bits of documents, and the documents still to be embedded.
MEANINGS: Final = ("vectors", "vector_signs", "token_bits", "embedded", "unembedded", "embedding_cache")
#: The log that feeds both. Without it, the documents for which either of them is out of date are unknown.
CHANGES: Final = "changes"
#: The word index of earlier versions: an FTS5 table, and the tables in which FTS5 keeps it.
_FORMER_WORDS: Final = ("words", "words_data", "words_idx", "words_content", "words_docsize", "words_config")
DERIVED: Final = (*WORDS, *MEANINGS, CHANGES, *_FORMER_WORDS)

#: Primary result codes, https://sqlite.org/rescode.html: SQLITE_CORRUPT and SQLITE_NOTADB.
_CORRUPT, _NOT_A_DATABASE = 11, 26
#: How SQLite reports a page that is used twice, and a corrupt list of free pages.
_SHARED: Final = ("2nd reference", "reelist")
#: Columns of derived tables that hold text. Any other column that can't be decoded is canonical.
_DERIVED_TEXT: Final = ("tokens", "term")


def is_damage(error: BaseException) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (_CORRUPT, _NOT_A_DATABASE) or "malformed" in str(error)


def is_index_damage(error: BaseException) -> bool:
    """Returns whether the error names the word index itself. Other errors may come from any table of the statement."""
    return is_undecodable(error) and _undecoded(error) in _DERIVED_TEXT


def is_undecodable(error: BaseException) -> bool:
    """Returns whether the error reports text that is not UTF-8.

    The driver's error quotes that text, so it must not be shown or logged.
    """
    return str(error).startswith("Could not decode to UTF-8")


def damaged_canonical(connection: sqlite3.Connection, error: type[Exception], *, free_pages: bool) -> list[str]:
    """Returns the damaged canonical tables. With `free_pages`, also checks the list of free pages.

    `error` is the driver's base class of errors; it is raised for anything but damage. Costs some 60 ms per 100,000
    rows if the pages are in memory, otherwise the time to read them. `free_pages` reads the whole file.
    """
    rows = connection.execute(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
    ).fetchall()
    found = damaged(connection, error, [row[0] for row in rows if row[0] not in DERIVED])
    if free_pages and not found and not damaged(connection, error, DERIVED):
        # All trees are sound, so a page used twice is either listed as free or belongs to two trees.
        whole = _complaints(connection, error, None)
        found = ["free pages"] if any(sign in line for line in whole for sign in _SHARED) else []
    return found


def damaged(connection: sqlite3.Connection, error: type[Exception], tables: Collection[str]) -> list[str]:
    """Returns the tables among `tables` that are damaged or have a damaged index. A missing table is not damaged."""
    return [table for table in tables if _exists(connection, table) and _complaints(connection, error, table)]


def before_migration(connection: sqlite3.Connection, error: type[Exception]) -> list[str]:
    """Returns the derived tables that no migration may meet, because SQLite can't drop them.

    They are damaged, or a former word index was written by a later SQLite.
    """
    former = [table for table in _FORMER_WORDS if damaged(connection, error, [table])]
    connection.execute("begin immediate")
    try:
        connection.execute("select 1" if former else "drop table if exists words")
    except error:
        former = list(_FORMER_WORDS)
    finally:
        connection.execute("rollback")
    return [*damaged(connection, error, MEANINGS), *(_FORMER_WORDS if former else ())]


def strike(connection: sqlite3.Connection, tables: Collection[str]) -> None:
    """Removes `tables` with their indexes from the schema and recreates them empty, except a former word index.

    Runs inside the caller's transaction. The file needs a `vacuum` afterwards. Numbers once given by `autoincrement`
    are not given again. Raises the driver's error if this SQLite does not allow writing its schema.
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
        # The version number tells other connections that the schema changed. This one reads it again at the reset.
        connection.execute(f"pragma schema_version = {version + 1}")
    finally:
        connection.execute("pragma writable_schema = reset")
    for table, sql in made_anew:
        if table not in _FORMER_WORDS:
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
        # SQLite does not report a former word index without its settings as damage: "invalid fts5 file format".
        if not (is_damage(exc) or "fts5" in str(exc)):
            raise
        return [str(exc)]
    return [] if lines == ["ok"] else lines


def _undecoded(error: BaseException) -> str:
    """Returns the column's name from "Could not decode to UTF-8 column 'name' with text '…'"."""
    parts = str(error).split("'", 2)
    return parts[1] if len(parts) == 3 else ""
