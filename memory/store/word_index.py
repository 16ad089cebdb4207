"""The table of the word index: an FTS5 table of tokens by document, with the tokens of the owners who may find it.

Invariants: A transaction merges so few pages that nobody waits for long. When the index is one piece, it holds no word
of a removed row, wherever it came from.
"""

from __future__ import annotations

from typing import Final

from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction

#: Pages of the word index that one transaction merges, in at most 40 ms (docs/memory.md).
_PAGES: Final = 200
#: The row id, used by no document, of an index row that is there while the index is merged a second time.
_STIRRING: Final = -1


def create(tx: Transaction, *, secure_delete: bool) -> None:
    """Creates the table anew, empty. With `secure_delete`, removed words are overwritten at once."""
    tx.run("drop table if exists words")
    tx.run("create virtual table words using fts5(scope, tokens, tokenize = 'unicode61 remove_diacritics 0')")
    if secure_delete:
        tx.run("insert into words (words, rank) values ('secure-delete', 1)")


def put(tx: Transaction, doc: int, *, scope: str, tokens: str) -> None:
    tx.run("insert into words (rowid, scope, tokens) values (?, ?, ?)", (doc, scope, tokens))


def remove(tx: Transaction, doc: int) -> None:
    tx.run("delete from words where rowid = ?", (doc,))


def holds(reader: Reader, doc: int) -> bool:
    return reader.one("select 1 from words where rowid = ?", (doc,)) is not None


def matching(reader: Reader, scope: Scope, question: str, *, limit: int) -> list[Row]:
    """Returns the documents of the scope that match an FTS5 question, with their tokens, positions and times."""
    memories, messages = scope.predicate("m"), scope.owned("s")
    return reader.all(
        "select w.rowid as doc, w.tokens, s.session_id, s.sitting, s.nth, s.role,"
        " coalesce(s.author_id, m.subject_id) as about, coalesce(s.said_at, m.learned_at) as at,"
        " rtrim(substr(s.text, -3)) as ending from words w"
        " left join messages s on w.rowid % 2 = 1 and s.id = w.rowid / 2"
        " left join memories m on w.rowid % 2 = 0 and m.id = w.rowid / 2"
        f" where words match ? and ((s.recall = 1 and {messages.sql}) or {memories.sql}) limit ?",
        (question, *messages.parameters, *memories.parameters, limit),
    )


def count(reader: Reader, question: str) -> int:
    """Returns the number of rows that match an FTS5 question."""
    return reader.number("select count(*) from words where words match ?", (question,))


def check(tx: Transaction) -> None:
    """Runs FTS5's own check of the index against its content. Raises the driver's error if they differ."""
    tx.run("insert into words (words) values ('integrity-check')")


def merge(tx: Transaction, *, begin: bool) -> bool:
    """Brings the index a step nearer to one piece without traces of removed rows. Returns whether it is one piece.

    When a row is removed, the index keeps its words and a note that they are void, until both meet in a merge:
    https://sqlite.org/fts5.html#the_merge_command, where a negative number of pages merges all pieces.
    """
    if tx.one("select 1 from sqlite_schema where name = 'words'") is None:
        return True
    if begin:
        remove(tx, _STIRRING)
    before = tx.changes
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES if begin else _PAGES,))
    # The command itself counts as one change, and what it writes as further changes.
    if tx.changes - before >= 2:
        return False
    if holds(tx, _STIRRING):
        remove(tx, _STIRRING)
        return True
    # Pieces of one level are merged into the next. If the index ever had more levels, the notes are kept, since a
    # higher level might hold an older piece. Merging with a smaller piece of another level removes the notes and their
    # words.
    if _is_tiny(tx):
        tx.run("insert into words (words) values ('rebuild')")
        return True
    put(tx, _STIRRING, scope="", tokens="x")
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES,))
    return False


def merge_copy(tx: Transaction) -> None:
    """Merges the index of a copy in one go, without the rows that the change log names.

    A file without an index is left as it is. `merge` says why the index is merged twice; the command is described in
    https://sqlite.org/fts5.html#the_optimize_command.
    """
    tables = {row["name"] for row in tx.all("select name from sqlite_schema where type = 'table'")}
    if not tables >= {"words", "changes"}:
        return
    if any(row["name"] == "doc" for row in tx.all("pragma table_info(changes)")):
        tx.run("delete from words where rowid in (select doc from changes)")
    tx.run("insert into words (words) values ('optimize')")
    if _is_tiny(tx):
        tx.run("insert into words (words) values ('rebuild')")
    else:
        put(tx, _STIRRING, scope="", tokens="x")
        tx.run("insert into words (words) values ('optimize')")
        remove(tx, _STIRRING)


def _is_tiny(tx: Transaction) -> bool:
    """Returns whether the index is one page, the smallest size. The first ten rows are not of pieces."""
    return tx.number("select count(*) from words_data where id > 10") < 2
