"""Carries over to a copy of a store the ids that were given before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memory.store.database import Reader, Transaction

_SEQUENCES: Final = (
    "select name, sequence, pg_sequence_last_value(sequence) as last from (select c.relname::text as name,"
    " pg_get_serial_sequence(quote_ident(c.relname), 'id')::regclass as sequence from pg_class c"
    " join pg_attribute a on a.attrelid = c.oid and a.attname = 'id' and a.attidentity <> ''"
    " where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace) s"
)


def given(reader: Reader) -> dict[str, int]:
    return {row["name"]: row["last"] for row in reader.all(_SEQUENCES) if row["last"] is not None}


def go_on(tx: Transaction, given: Mapping[str, int]) -> None:
    for row in tx.all(_SEQUENCES):
        last = max(given.get(row["name"], 0), tx.number(f"select coalesce(max(id), 0) from {row['name']}"))
        if last > (row["last"] or 0):
            tx.all("select setval(?::regclass, ?)", (row["sequence"], last))
