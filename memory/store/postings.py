"""The tables of the word index: the documents that hold a term, by partition, and the tokens of a document.

Invariants: A document's postings are written and removed together with its row of `indexed_documents`, which lists
them. A search reads only the postings of the scope's partitions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.errors import IndexDamaged
from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction, walled
from memory.store.sqlite.migrate import migrations

#: The number of the migration that creates the tables.
_MIGRATION: Final = 25
_DAMAGED: Final = "The word index is damaged. Nothing is lost: it is rebuilt from the rows."


def create(tx: Transaction) -> None:
    """Creates missing tables, by the very statements of the migration, and empties the others."""
    (migration,) = (one for one in migrations() if one.version == _MIGRATION)
    for definition in migration.sql.split("create table if not exists ")[1:]:
        tx.run(f"create table if not exists {definition.partition(';')[0]}")
    tx.run("delete from postings")
    tx.run("delete from indexed_documents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A document with its one or two partitions and its tokens in reading order."""

    doc: int
    partitions: tuple[int, ...]
    tokens: Sequence[str]


def put(tx: Transaction, entries: Sequence[Entry]) -> None:
    rows: list[tuple[int, int, int | None, int, str]] = []
    places: list[tuple[int, str, int]] = []
    for entry in entries:
        first, other = entry.partitions[0], entry.partitions[1] if len(entry.partitions) > 1 else None
        held = [(partition, term, entry.doc) for partition in entry.partitions for term in set(entry.tokens)]
        rows.append((entry.doc, first, other, len(held), f" {' '.join(entry.tokens)} "))
        places += held
    if not rows:
        return
    tx.run(
        "insert into indexed_documents (doc, partition, other_partition, postings, tokens) select"
        " cast(value ->> 0 as bigint), cast(value ->> 1 as bigint), cast(value ->> 2 as bigint),"
        " cast(value ->> 3 as bigint), value ->> 4 from json_each(?)",
        (json.dumps(rows),),
    )
    tx.run(
        "insert into postings (partition, term, doc) select cast(value ->> 0 as bigint), value ->> 1,"
        " cast(value ->> 2 as bigint) from json_each(?)",
        (json.dumps(sorted(places)),),
    )


def remove(tx: Transaction, rows: Sequence[Row]) -> None:
    for row in rows:
        tx.run(
            "delete from postings where partition in (?, ?) and term in (select value from json_each(?)) and doc = ?",
            (row["partition"], row["other_partition"], set(tokens_of(row)), row["doc"]),
        )
    if rows:
        tx.run(
            "delete from indexed_documents where doc in (select value from json_each(?))", ([r["doc"] for r in rows],)
        )


def remove_changed(tx: Transaction) -> None:
    """Removes the documents that the change log names. Leaves a file without these tables as it is."""
    tables = {row["name"] for row in tx.all("select name from sqlite_schema where type = 'table'")}
    if tables >= {"postings", "indexed_documents", "changes"}:
        tx.run("delete from postings where doc in (select doc from changes)")
        tx.run("delete from indexed_documents where doc in (select doc from changes)")


@walled
def matching(reader: Reader, scope: Scope, terms: Sequence[str], *, limit: int) -> list[Row]:
    """Returns the documents of the scope that hold one of the terms, with their tokens, positions and times.

    They come in no order. If there are more than `limit`, any of them are returned.
    """
    memories, messages = scope.predicate("m"), scope.owned("s")
    return reader.all(
        # Divided inside: PostgreSQL uses no division to find a row before its policy has looked at the row, so it would
        # look at every message.
        "select d.doc, d.tokens, s.session_id, s.sitting, s.nth, s.role,"
        " coalesce(s.author_id, m.subject_id) as about, coalesce(s.said_at, m.learned_at) as at,"
        " (select name from identities i where i.id = coalesce(s.author_id, m.subject_id)) as name,"
        " rtrim(substr(s.text, -3)) as ending from"
        f" (select distinct doc, doc % 2 as odd, doc / 2 as row_id from postings where {_HELD}) p"
        " join indexed_documents d on d.doc = p.doc"
        " left join messages s on p.odd = 1 and s.id = p.row_id"
        " left join memories m on p.odd = 0 and m.id = p.row_id"
        f" where (s.recall = 1 and {messages.sql}) or ({memories.sql}) limit ?",
        (scope.partitions, terms, *messages.parameters, *memories.parameters, limit),
    )


@walled
def frequencies(reader: Reader, scope: Scope, terms: Sequence[str]) -> dict[str, int]:
    rows = reader.all(
        f"select term, count(distinct doc) as documents from postings where {_HELD} group by term",
        (scope.partitions, terms),
    )
    return dict.fromkeys(terms, 0) | {row["term"]: row["documents"] for row in rows}


def tokens_of(row: Row) -> list[str]:
    """Returns the tokens of a document's row. Raises `IndexDamaged` if they are no text because of damage."""
    if not isinstance(row["tokens"], str):
        raise IndexDamaged(_DAMAGED)
    return row["tokens"].split()


def check(reader: Reader, *, thorough: bool) -> None:
    """Raises `IndexDamaged` if the tables contradict each other.

    Compares sums, in some 0.1 s per 100,000 documents. If `thorough`, also compares each posting with its document,
    which takes about a second.
    """
    is_sound = reader.number(
        "select (select count(*) from postings) = (select coalesce(sum(postings), 0) from indexed_documents)"
        " and (select sum(doc) from postings) is not distinct from (select sum(doc * postings) from indexed_documents"
        " where postings > 0)"
        " and (? = 0 or not exists (select 1 from postings p where not exists (select 1 from indexed_documents d"
        "   where d.doc = p.doc and (d.partition = p.partition or d.other_partition = p.partition)"
        "   and instr(d.tokens, ' ' || p.term || ' ') > 0)))",
        (int(thorough),),
    )
    if not is_sound:
        raise IndexDamaged(_DAMAGED)


_HELD: Final = "partition in (select value from json_each(?)) and term in (select value from json_each(?))"
#: The condition for messages m that hold each of some terms. Its parameters: partitions, distinct terms, their number.
HOLDING_ALL: Final = (
    f"m.id in (select doc / 2 from postings where {_HELD} and doc % 2 = 1 group by doc having count(distinct term) = ?)"
)
