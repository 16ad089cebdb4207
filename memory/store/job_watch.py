"""Watches a job's changes to memories, links and names inside its transaction, by triggers of the engine.

Invariant: while it watches, the database itself refuses that a memory or a name is deleted or reworded.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from memory.store.database import Reader, Row, Transaction

#: Columns that a job may change in an existing row.
COLUMNS: Final = (
    "agent_id", "importance", "confidence", "strength", "valid_from", "valid_until", "superseded_by",
    "reinforced_count", "last_reinforced_at", "pinned", "confirmed", "compressed_at", "archived_at", "enriched_at",
)  # fmt: skip
#: Columns that are never changed; all others count a row's uses.
FIXED: Final = (
    "short_id", "kind", "owner_id", "author_id", "subject_id", "subject", "category", "topic", "key", "value", "tags",
    "flags", "origin", "created_at", "learned_at", "local_date",
)  # fmt: skip
#: Link tables whose pairs begin with a memory: the column of the other side.
LINKS: Final = {"memory_sources": "message_id", "memory_parents": "parent_id", "memory_entities": "entity_id"}


def watch(tx: Transaction) -> None:
    """Makes the database note each change to memories, links and names, and refuse changes that no job may make."""
    tx.watch()


def unwatch(tx: Transaction) -> None:
    tx.unwatch()


def rows(reader: Reader, row_ids: Collection[int]) -> list[Row]:
    """Returns these memories as rows of id, kind, key and `COLUMNS`."""
    columns = ", ".join(("id", "kind", "key", *COLUMNS))
    return reader.all(
        f"select {columns} from memories where id in (select value from json_each(?)) order by id", (row_ids,)
    )


def touched(tx: Transaction) -> list[Row]:
    """Returns the memories made or changed so far: id, `made`, and the values of `COLUMNS` before the change."""
    return tx.all("select * from temp.journal_rows order by id")


def links(tx: Transaction, *, besides: Collection[int]) -> list[Row]:
    """Returns the links `added` or removed so far: name of the table, memory_id and other_id."""
    return tx.all(
        "select * from temp.journal_links where memory_id not in (select value from json_each(?)) order by n",
        (besides,),
    )


def names(tx: Transaction) -> list[Row]:
    """Returns the entities `made` or given another type so far: id, the type `before`, and the type now."""
    return tx.all(
        "select n.id, n.made, n.type as before, e.type from temp.journal_names n join entities e on e.id = n.id"
        " order by n.id"
    )
