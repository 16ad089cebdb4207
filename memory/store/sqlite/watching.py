"""Notes a job's changes to memories, links and names by temporary triggers, and refuses those that no job may make."""

from __future__ import annotations

from memory.store.database import Transaction
from memory.store.job_watch import COLUMNS, triggers


def watch(tx: Transaction) -> None:
    tx.run(f"create temp table journal_rows (id integer primary key, made integer not null, {', '.join(COLUMNS)})")
    tx.run(
        "create temp table journal_links (n integer primary key, added integer not null, name text not null,"
        " memory_id, other_id)"
    )
    tx.run("create temp table journal_names (id integer primary key, made integer not null, type text)")
    for name, event, table, does in triggers(
        lambda message: f"select raise(abort, '{message}')",
        lambda entity: f"select raise(ignore) where {entity} not in (select id from journal_names where made)",
    ):
        tx.run(f"create temp trigger journal_{name} {event} on main.{table} begin {does}; end")


def unwatch(tx: Transaction) -> None:
    for row in tx.all("select name from temp.sqlite_master where type = 'trigger' and name glob 'journal_*'"):
        tx.run(f"drop trigger temp.{row['name']}")
    for table in ("rows", "links", "names"):
        tx.run(f"drop table temp.journal_{table}")
