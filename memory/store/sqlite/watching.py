"""Notes a job's changes to memories, links and names by temporary triggers, and refuses those that no job may make."""

from __future__ import annotations

from memory.store.database import Transaction
from memory.store.job_watch import COLUMNS, FIXED, LINKS


def watch(tx: Transaction) -> None:
    """Makes the database note each change to memories, links and names, and refuse changes that no job may make."""
    columns = ", ".join(COLUMNS)
    old = ", ".join(f"old.{name}" for name in COLUMNS)
    tx.run(f"create temp table journal_rows (id integer primary key, made integer not null, {columns})")
    tx.run(
        "create temp table journal_links (n integer primary key, added integer not null, name text not null,"
        " memory_id, other_id)"
    )
    tx.run("create temp table journal_names (id integer primary key, made integer not null, type text)")
    for name, event, does in (
        ("made", "after insert on main.memories", "insert into journal_rows (id, made) values (new.id, 1)"),
        (
            "changed", "before update on main.memories",
            f"insert or ignore into journal_rows (id, made, {columns}) values (old.id, 0, {old})",
        ),
        (
            "reworded", f"before update of {', '.join(FIXED)} on main.memories",
            "select raise(abort, 'a job rewords no memory')",
        ),
        ("deleted", "before delete on main.memories", "select raise(abort, 'a job deletes no memory')"),
        ("named", "after insert on main.entities", "insert into journal_names (id, made) values (new.id, 1)"),
        (
            "typed", "before update of type on main.entities",
            "insert or ignore into journal_names values (old.id, 0, old.type)",
        ),
        ("unnamed", "before delete on main.entities", "select raise(abort, 'a job deletes no name')"),
        # Spellings are words, which a journal may not hold. Existing names stay as people write them.
        ("respelled", "before update of name, norm on main.entities", _passed_over("old.id")),
        ("spelled", "before insert on main.entity_aliases", _passed_over("new.entity_id")),
        ("unspelled", "before delete on main.entity_aliases", _passed_over("old.entity_id")),
    ):  # fmt: skip
        tx.run(f"create temp trigger journal_{name} {event} begin {does}; end")
    for table, column in LINKS.items():
        for event, side, added in (("insert", "new", 1), ("delete", "old", 0)):
            tx.run(
                f"create temp trigger journal_{table}_{event} after {event} on main.{table} begin"
                f" insert into journal_links (added, name, memory_id, other_id)"
                f" values ({added}, '{table}', {side}.memory_id, {side}.{column}); end"
            )


def _passed_over(entity: str) -> str:
    """Returns a trigger statement that skips a change if the entity existed before."""
    return f"select raise(ignore) where {entity} not in (select id from journal_names where made)"


def unwatch(tx: Transaction) -> None:
    for row in tx.all("select name from temp.sqlite_master where type = 'trigger' and name glob 'journal_*'"):
        tx.run(f"drop trigger temp.{row['name']}")
    for table in ("rows", "links", "names"):
        tx.run(f"drop table temp.journal_{table}")
