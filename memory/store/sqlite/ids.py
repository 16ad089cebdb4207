"""Carries over to a copy of a store the ids that were given before, in the tables that never give one again."""

from __future__ import annotations

from collections.abc import Mapping

from memory.store.database import Reader, Transaction


def given(reader: Reader) -> dict[str, int]:
    return {row["name"]: row["seq"] for row in reader.all("select name, seq from sqlite_sequence")}


def go_on(tx: Transaction, given: Mapping[str, int]) -> None:
    """Makes all new ids greater than these from now on. Other tables give the id after their greatest one."""
    for row in tx.all("select name from sqlite_schema where type = 'table' and sql like '%autoincrement%'"):
        name = row["name"]
        last = max(given.get(name, 0), tx.number(f"select coalesce(max(id), 0) from {name}"))
        tx.run("update sqlite_sequence set seq = ? where name = ? and seq < ?", (last, name, last))
        tx.run(
            "insert into sqlite_sequence (name, seq) select ?, ?"
            " where not exists (select 1 from sqlite_sequence where name = ?)",
            (name, last, name),
        )
