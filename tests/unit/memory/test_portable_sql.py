"""The statements keep to SQL that other engines read as SQLite does, or that a dialect can translate word by word.

Invariant: all texts of `memory/` are read, not only those that a test runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.kit.tables import each_row

MEMORY = Path(__file__).parents[3] / "memory"
#: The forms that only SQLite understands, and what is said instead.
INSTEAD = {
    r"\binsert or \w+": "on conflict … do nothing, or do update",
    r"\bupdate or \w+": "where not exists",
    r"\breplace into\b": "on conflict … do update",
    r"\bon conflict do update": "on conflict (columns) do update",
    r"\biif\(": "case when … then … else … end",
    r"\bifnull\(": "coalesce",
    r"\b(?:min|max)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*,": "case when … then … else … end",
    r"\bglob '": "like",
    r"\bis (?:not )?(?:\?|[a-z]+\.\w+|\(select)": "is (not) distinct from",
    r"\bnot indexed\b|\bindexed by\b": "a plus sign before the column",
    r"\blimit -1\b": "a condition",
    r"\browid\b|\blast_insert_rowid\b": "the primary key; returning id",
    r"\bsum\((?!case\b)[^()]*(?: = | <> | in | is )": "count(*) filter (where …)",
    r"(?<!between \?)(?<!between \?\d) \b(?:and|or|not|when|where) \?\d*(?= (?:and|or|then)\b|\))|\(\?\d*(?= (?:and|or) )": "? = 1",
    r"\bsqlite_\w+": "a method of the engine",
    r"\b(?:strftime|unixepoch|julianday|printf|group_concat|typeof|total)\(": "Python",
}
#: The engine itself, and what is done only to files of SQLite: their pages, indexes and copies.
SQLITE_ALONE = {
    "store/sqlite/database.py": "the engine", "store/sqlite/health.py": "the engine",
    "store/sqlite/migrate.py": "the engine", "store/sqlite/tables.py": "the engine",
    "store/postgres/schema.py": "reads the schema of an empty store of SQLite",
    "store/files.py": "copies of files",
    "store/postings.py:remove_changed": "a copy of a file",
    "mailbox/inbox.py:unanswered_in": "the names of files in one text",
}  # fmt: skip


def texts() -> Iterator[tuple[str, str]]:
    """Every text in the source, without docstrings, and where it stands: file and function."""
    for path in sorted(MEMORY.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for outer in ast.iter_child_nodes(tree):
            place = f"{path.relative_to(MEMORY)}:{getattr(outer, 'name', '')}"
            for node in ast.walk(outer):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    yield place, node.value


def is_sql(text: str) -> bool:
    return (
        re.search(r"\b(?:select|insert|update|delete|where|values|order by|case when)\b|\bis (?:not )?\?", text)
        is not None
    )


def wrong(text: str) -> list[str]:
    """Returns what to say instead of the forms that only SQLite understands."""
    return [instead for form, instead in INSTEAD.items() if re.search(form, text)]


def test_no_statement_needs_sqlite() -> None:
    found = {place: wrong(text) for place, text in texts() if is_sql(text) and wrong(text)}
    allowed = {place for place in found if place in SQLITE_ALONE or place.partition(":")[0] in SQLITE_ALONE}
    assert {place: found[place] for place in found.keys() - allowed} == {}
    assert {place for place in SQLITE_ALONE if ":" in place} <= found.keys(), "no longer there"


@each_row(
    ("sql", "is_portable"),
    [
        ("insert or ignore into t values (?)", False),
        ("insert into t values (?) on conflict do nothing", True),
        ("insert into t values (?) on conflict do update set n = 1", False),
        ("update t set at = max(at, ?) where id = ?", False),
        ("update t set at = max((select max(at) from u), ?) where id = ?", False),
        ("select max(at) from t where id in (?, ?)", True),
        ("select iif(a, b, c) from t", False),
        ("select 1 from t where a is ?", False),
        ("select 1 from t where a is not b.c", False),
        ("select 1 from t where a is not null and b is null", True),
        ("select sum(state = 'done') from t", False),
        ("select sum(tokens) from t", True),
        ("select 1 from t where (? or a = 1)", False),
        ("select case when ? then 1 end from t", False),
        ("select 1 from t where (? = 1 or a = ?)", True),
        ("select 1 from t where (? is null or a = ?)", True),
    ],
)
def test_what_counts_as_portable(sql: str, is_portable: bool) -> None:
    assert (wrong(sql) == []) is is_portable
