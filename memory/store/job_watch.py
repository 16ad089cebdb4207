"""Watches a job's changes to memories, links and names inside its transaction, by triggers of the engine.

Invariant: while it watches, the database itself refuses that a memory or a name is deleted or reworded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
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
    tx.watch()


def unwatch(tx: Transaction) -> None:
    tx.unwatch()


def triggers(refused: Callable[[str], str], passed_over: Callable[[str], str]) -> Iterator[tuple[str, str, str, str]]:
    """Yields the name, event, table and statement of each trigger by which an engine watches.

    `refused` makes the statement that fails with a message, `passed_over` the one that skips a change if the entity
    existed before.
    """
    columns, old = ", ".join(COLUMNS), ", ".join(f"old.{name}" for name in COLUMNS)
    changed = f"insert into journal_rows (id, made, {columns}) values (old.id, 0, {old}) on conflict do nothing"
    yield "made", "after insert", "memories", "insert into journal_rows (id, made) values (new.id, 1)"
    yield "changed", "before update", "memories", changed
    yield "reworded", f"before update of {', '.join(FIXED)}", "memories", refused("a job rewords no memory")
    yield "deleted", "before delete", "memories", refused("a job deletes no memory")
    yield "named", "after insert", "entities", "insert into journal_names (id, made) values (new.id, 1)"
    typed = "insert into journal_names values (old.id, 0, old.type) on conflict do nothing"
    yield "typed", "before update of type", "entities", typed
    yield "unnamed", "before delete", "entities", refused("a job deletes no name")
    # Spellings are words, which a journal may not hold. Existing names stay as people write them.
    yield "respelled", "before update of name, norm", "entities", passed_over("old.id")
    yield "spelled", "before insert", "entity_aliases", passed_over("new.entity_id")
    yield "unspelled", "before delete", "entity_aliases", passed_over("old.entity_id")
    for table, column in LINKS.items():
        for event, side, added in (("insert", "new", 1), ("delete", "old", 0)):
            noted = (
                "insert into journal_links (added, name, memory_id, other_id)"
                f" values ({added}, '{table}', {side}.memory_id, {side}.{column})"
            )
            yield f"{table}_{event}", f"after {event}", table, noted


def rows(reader: Reader, row_ids: Collection[int]) -> list[Row]:
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
