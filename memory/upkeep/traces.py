"""Traces that the word index keeps of removed rows, and whether anything was written that could have left some.

Invariants: a transaction merges so few pages that nobody waits for long; when the index is one piece, no word of a
removed row is in it, whatever it had come from.
"""

from __future__ import annotations

from typing import Final

from memory.store.database import Transaction

#: Pages of the word index that are merged in one transaction: at most 40 ms (docs/memory.md).
_PAGES: Final = 200
#: A row of the word index that no document has, there while it is merged a second time.
_STIRRING: Final = -1


def merge_words(tx: Transaction, *, begin: bool) -> bool:
    """Bring the word index a step nearer to one piece, in which nothing of removed rows is left; whether it is one.

    An index of which a row is removed keeps its words, and a note that they are void, until both meet in a merge:
    https://sqlite.org/fts5.html#the_merge_command, where a negative number of pages has all pieces merged.
    """
    if tx.one("select 1 from sqlite_schema where name = 'words'") is None:
        return True
    if begin:
        tx.run("delete from words where rowid = ?", (_STIRRING,))
    before = changes(tx)
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES if begin else _PAGES,))
    # The command counts as one change, and what it writes as others.
    if changes(tx) - before >= 2:
        return False
    if tx.one("select 1 from words where rowid = ?", (_STIRRING,)) is not None:
        tx.run("delete from words where rowid = ?", (_STIRRING,))
        return True
    # Pieces of one level are merged into the next, and if an index had more levels once, the notes are kept: a piece
    # older than these might be there. Merged with a smaller one of another level they go, and the words in them, too.
    if _is_tiny(tx):
        tx.run("insert into words (words) values ('rebuild')")
        return True
    tx.run("insert into words (rowid, scope, tokens) values (?, '', 'x')", (_STIRRING,))
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES,))
    return False


def changes(tx: Transaction) -> int:
    """How many rows were written since the store was opened."""
    row = tx.one("select total_changes() as n")
    assert row is not None
    return int(row["n"])


def _is_tiny(tx: Transaction) -> bool:
    """Whether the word index is a page, than which none is smaller. The first ten rows are not of pieces."""
    row = tx.one("select count(*) as n from words_data where id > 10")
    assert row is not None
    return int(row["n"]) < 2
