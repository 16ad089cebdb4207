"""Notes a job's changes to memories, links and names by triggers, and refuses changes that no job may make.

The triggers are part of the schema and act only in a transaction that sets `remora.watched`. Their notes are in
temporary tables, which go with the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memory.store.database import Transaction
from memory.store.job_watch import COLUMNS, FIXED, LINKS

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
    columns = ", ".join(COLUMNS)
    old = ", ".join(f"old.{name}" for name in COLUMNS)
    for name, event, table, does in (
        ("made", "after insert", "memories", "insert into journal_rows (id, made) values (new.id, 1)"),
        (
            "changed", "before update", "memories",
            f"insert into journal_rows (id, made, {columns}) values (old.id, 0, {old}) on conflict do nothing",
        ),
        (
            "reworded", f"before update of {', '.join(FIXED)}", "memories",
            "raise exception 'a job rewords no memory' using errcode = 'integrity_constraint_violation'",
        ),
        (
            "deleted", "before delete", "memories",
            "raise exception 'a job deletes no memory' using errcode = 'integrity_constraint_violation'",
        ),
        ("named", "after insert", "entities", "insert into journal_names (id, made) values (new.id, 1)"),
        (
            "typed", "before update of type", "entities",
            "insert into journal_names values (old.id, 0, old.type) on conflict do nothing",
        ),
        (
            "unnamed", "before delete", "entities",
            "raise exception 'a job deletes no name' using errcode = 'integrity_constraint_violation'",
        ),
        # Spellings are words, which a journal may not hold. Existing names stay as people write them.
        ("respelled", "before update of name, norm", "entities", _passed_over("old.id")),
        ("spelled", "before insert", "entity_aliases", _passed_over("new.entity_id")),
        ("unspelled", "before delete", "entity_aliases", _passed_over("old.entity_id")),
    ):  # fmt: skip
        yield from _trigger(name, event, table, does)
    for table, column in LINKS.items():
        for event, side, added in (("insert", "new", 1), ("delete", "old", 0)):
            yield from _trigger(
                f"{table}_{event}", f"after {event}", table,
                f"insert into journal_links (added, name, memory_id, other_id)"
                f" values ({added}, '{table}', {side}.memory_id, {side}.{column})",
            )  # fmt: skip


def _passed_over(entity: str) -> str:
    """Returns a statement that skips a change if the entity existed before."""
    return f"if not exists (select 1 from journal_names where made = 1 and id = {entity}) then return null; end if"


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
