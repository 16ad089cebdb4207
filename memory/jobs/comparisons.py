"""Pairs of facts that were compared: each once, by the ids of both, with the verdict and the answer to a doubt.

Invariants: the rows hold ids and codes, no words, and go with either fact. A doubt waits until its person is asked, in
the transaction that queues the question, so that it survives a crash before that and is asked once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction, walled
from memory.store.memories import LIVE

Verdict: TypeAlias = Literal["agree", "replaces", "doubt"]
#: The reason why a newer fact replaces an older one, which has changed, is over, was wrong or was less exact.
Why: TypeAlias = Literal["changed", "ended", "corrected", "exact"]
DoubtAnswer: TypeAlias = Literal["older", "newer", "both"]

#: The time for which an owner's next doubt waits after a question: one short question a day is enough.
_APART_MS: Final = 20 * 3_600_000
#: The condition for a doubt, c, that waits, as long as both facts, o and m, hold.
_WAITING: Final = f"c.verdict = 'doubt' and c.asked_at is null and {LIVE} and {LIVE.replace('m.', 'o.')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPair:
    """The ids of two facts, the one that holds for longer first."""

    older: int
    newer: int


def keep(tx: Transaction, pair: FactPair, verdict: Verdict, *, why: Why | None = None, now: int) -> None:
    tx.run(
        "insert into comparisons (older_id, newer_id, verdict, why, compared_at) values (?, ?, ?, ?, ?)"
        " on conflict do nothing",
        (pair.older, pair.newer, verdict, why or "", now),
    )


def known(reader: Reader, memory_ids: Collection[int]) -> set[frozenset[int]]:
    rows = reader.all(
        "select older_id, newer_id from comparisons where older_id in (select value from json_each(?1))"
        " and newer_id in (select value from json_each(?1))",
        (memory_ids,),
    )
    return {frozenset((row["older_id"], row["newer_id"])) for row in rows}


def replaced(reader: Reader, memory_ids: Collection[int]) -> dict[int, tuple[int, Why]]:
    rows = reader.all(
        "select older_id, newer_id, why from comparisons where verdict = 'replaces'"
        " and older_id in (select value from json_each(?))",
        (memory_ids,),
    )
    return {row["older_id"]: (row["newer_id"], row["why"]) for row in rows}


@walled
def waiting(reader: Reader, scope: Scope, owner_ids: Sequence[int], *, now: int) -> list[FactPair]:
    """Returns the doubts about facts of these owners that may be asked about now, oldest first."""
    within = scope.predicate("m")
    rows: list[Row] = reader.all(
        "select c.older_id, c.newer_id from comparisons c join memories o on o.id = c.older_id"
        f" join memories m on m.id = c.newer_id where {_WAITING} and {within.sql}"
        " and m.owner_id in (select value from json_each(?)) and not exists (select 1 from comparisons asked"
        " join memories a on a.id = asked.newer_id where a.owner_id = m.owner_id and asked.asked_at > ?)"
        " order by c.compared_at, c.newer_id, c.older_id",
        (*within.parameters, owner_ids, now - _APART_MS),
    )
    return [FactPair(older=row["older_id"], newer=row["newer_id"]) for row in rows]


def asked(tx: Transaction, pair: FactPair, *, now: int) -> None:
    tx.run("update comparisons set asked_at = ? where older_id = ? and newer_id = ?", (now, pair.older, pair.newer))


def answered(tx: Transaction, pair: FactPair, answer: DoubtAnswer) -> None:
    tx.run("update comparisons set answer = ? where older_id = ? and newer_id = ?", (answer, pair.older, pair.newer))
