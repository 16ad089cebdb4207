"""Memories that a model refuses to read at night, counted by job: in the end they are set aside and hold up no others.

Invariant: a refusal is counted only for the smallest question that is refused, so it is this memory that is meant.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from memory.store.database import Reader, Transaction

#: The number of refusals after which a memory is set aside.
SET_ASIDE_AFTER: Final = 3


def note(tx: Transaction, job: str, memory_ids: Collection[int], *, counted: bool) -> int:
    """Notes that a question about these memories was refused. Returns how many of them are set aside by it.

    It is `counted` against them if it was about nothing else.
    """
    rows = tx.all(
        "insert into refusals (job, memory_id, tries) select ?1, m.id, ?2 from memories m"
        " where m.id in (select value from json_each(?3))"
        " on conflict (job, memory_id) do update set tries = refusals.tries + ?2 returning tries",
        (job, int(counted), memory_ids),
    )
    return sum(row["tries"] == SET_ASIDE_AFTER for row in rows) if counted else 0


def forgive(tx: Transaction, job: str, memory_ids: Collection[int]) -> None:
    tx.run(
        "delete from refusals where job = ? and memory_id in (select value from json_each(?))",
        (job, memory_ids),
    )


def noted(reader: Reader, job: str) -> set[int]:
    """Returns the memories that a refused question was about, alone or among others."""
    return set(reader.ids("select memory_id from refusals where job = ?", (job,)))


def suspected(reader: Reader, job: str) -> set[int]:
    """Returns the memories that were refused alone: they are asked about alone again."""
    return set(reader.ids("select memory_id from refusals where job = ? and tries > 0", (job,)))


def set_aside(reader: Reader, job: str) -> set[int]:
    return set(reader.ids("select memory_id from refusals where job = ? and tries >= ?", (job, SET_ASIDE_AFTER)))


def count_set_aside(reader: Reader) -> int:
    return reader.number("select count(*) as n from refusals where tries >= ?", (SET_ASIDE_AFTER,))


def retry(tx: Transaction) -> None:
    """Gives what is set aside one more try: the model may be another now."""
    tx.run("update refusals set tries = ? where tries >= ?", (SET_ASIDE_AFTER - 1, SET_ASIDE_AFTER))
