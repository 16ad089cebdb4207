"""Watches what a job does to memories, links and names, by triggers on temporary tables, inside its transaction.

Invariant: while it watches, the database itself refuses that a memory or a name is deleted or reworded.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from memory.store.database import Reader, Row, Transaction

#: Columns that a job may change in a row that was there before.
COLUMNS: Final = (
    "agent_id", "importance", "confidence", "strength", "valid_from", "valid_until", "superseded_by",
    "reinforced_count", "last_reinforced_at", "pinned", "confirmed", "compressed_at", "archived_at", "enriched_at",
)  # fmt: skip
#: Columns that are never changed; all others count a row's uses.
_FIXED: Final = (
    "short_id", "kind", "owner_id", "author_id", "subject_id", "subject", "category", "topic", "key", "value", "tags",
    "flags", "origin", "created_at", "learned_at", "local_date",
)  # fmt: skip
#: Link tables whose pairs begin with a memory: the column of the other side.
LINKS: Final = {"memory_sources": "message_id", "memory_parents": "parent_id", "memory_entities": "entity_id"}


def watch(tx: Transaction) -> None:
    """Makes the database note each change to memories, links and names, and refuse what no job may do."""
    columns = ", ".join(COLUMNS)
    old = ", ".join(f"old.{name}" for name in COLUMNS)
    tx.run(f"create temp table journal_rows (id integer primary key, made integer not null, {columns})")
    tx.run("create temp table journal_links (added integer not null, name text not null, memory_id, other_id)")
    tx.run("create temp table journal_names (id integer primary key, made integer not null, type text)")
    for name, event, does in (
        ("made", "after insert on main.memories", "insert into journal_rows (id, made) values (new.id, 1)"),
        (
            "changed", "before update on main.memories",
            f"insert or ignore into journal_rows (id, made, {columns}) values (old.id, 0, {old})",
        ),
        (
            "reworded", f"before update of {', '.join(_FIXED)} on main.memories",
            "select raise(abort, 'a job rewords no memory')",
        ),
        ("deleted", "before delete on main.memories", "select raise(abort, 'a job deletes no memory')"),
        ("named", "after insert on main.entities", "insert into journal_names (id, made) values (new.id, 1)"),
        (
            "typed", "before update of type on main.entities",
            "insert or ignore into journal_names values (old.id, 0, old.type)",
        ),
        ("unnamed", "before delete on main.entities", "select raise(abort, 'a job deletes no name')"),
        # Spellings are words, which a journal may not hold. Names that were there before stay as people write them.
        ("respelled", "before update of name, norm on main.entities", _passed_over("old.id")),
        ("spelled", "before insert on main.entity_aliases", _passed_over("new.entity_id")),
        ("unspelled", "before delete on main.entity_aliases", _passed_over("old.entity_id")),
    ):  # fmt: skip
        tx.run(f"create temp trigger journal_{name} {event} begin {does}; end")
    for table, column in LINKS.items():
        for event, side, added in (("insert", "new", 1), ("delete", "old", 0)):
            tx.run(
                f"create temp trigger journal_{table}_{event} after {event} on main.{table} begin"
                f" insert into journal_links values ({added}, '{table}', {side}.memory_id, {side}.{column}); end"
            )


def _passed_over(entity: str) -> str:
    """Returns a trigger statement that skips a change if the entity was there before."""
    return f"select raise(ignore) where {entity} not in (select id from journal_names where made)"


def unwatch(tx: Transaction) -> None:
    """Ends the watch and drops what it has noted."""
    for row in tx.all("select name from temp.sqlite_master where type = 'trigger' and name glob 'journal_*'"):
        tx.run(f"drop trigger temp.{row['name']}")
    for table in ("rows", "links", "names"):
        tx.run(f"drop table temp.journal_{table}")


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
        "select * from temp.journal_links where memory_id not in (select value from json_each(?)) order by rowid",
        (besides,),
    )


def names(tx: Transaction) -> list[Row]:
    """Returns the entities `made` or given another type so far: id, the type `before`, and the type now."""
    return tx.all(
        "select n.id, n.made, n.type as before, e.type from temp.journal_names n join entities e on e.id = n.id"
        " order by n.id"
    )
