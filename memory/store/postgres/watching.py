"""Notes a job's changes to memories, links and names by triggers, and refuses changes that no job may make.

The triggers are part of the schema and act only in a transaction that sets `remora.watched`. Their notes are in
temporary tables, which go with the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memory.store.database import Transaction
from memory.store.job_watch import COLUMNS, triggers

_WATCHED: Final = "coalesce(current_setting('remora.watched', true), '') = 'on'"


def watch(tx: Transaction) -> None:
    for table, source, columns in (("rows", "memories", ", ".join(COLUMNS)), ("names", "entities", "type")):
        tx.run(
            f"create temp table journal_{table} on commit drop as"
            f" select id, cast(0 as bigint) as made, {columns} from {source} limit 0"
        )
        tx.run(f"alter table pg_temp.journal_{table} add primary key (id)")
    tx.run(
        "create temp table journal_links (n integer primary key, added integer not null, name text not null,"
        " memory_id integer, other_id integer) on commit drop"
    )
    tx.run("select set_config('remora.watched', 'on', true)")


def unwatch(tx: Transaction) -> None:
    tx.run("select set_config('remora.watched', 'off', true)")
    for table in ("rows", "links", "names"):
        tx.run(f"drop table pg_temp.journal_{table}")


def definitions() -> Iterator[str]:
    """Yields the statements that make the triggers, or make them anew."""
    for trigger in triggers(
        lambda message: f"raise exception '{message}' using errcode = 'integrity_constraint_violation'",
        lambda entity: (
            f"if not exists (select 1 from journal_names where made = 1 and id = {entity}) then return null; end if"
        ),
    ):
        yield from _trigger(*trigger)


def _trigger(name: str, event: str, table: str, does: str) -> Iterator[str]:
    result = "old" if "delete" in event else "new"
    yield (
        f"create or replace function journal_{name}() returns trigger language plpgsql as"
        f" $$ begin {does}; return {result}; end $$"
    )
    yield (
        f"create or replace trigger journal_{name} {event} on {table} for each row when ({_WATCHED})"
        f" execute function journal_{name}()"
    )
