"""Recalls: the ids and scores of the memories and messages that entered each reply.

Their text is looked up on demand, and is gone once it was forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.score import ScorePart, known_parts
from memory.store.database import Reader, Transaction

Item: TypeAlias = Literal["memory", "message"]
#: The rows of one statement, which takes 999 parameters in older versions of SQLite.
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledEntry:
    """A memory or message that bore on a turn. `score` is None for one that is in every prompt."""

    item: Item
    item_id: int
    placed: str
    score: float | None
    parts: dict[ScorePart, float]


def keep(tx: Transaction, turn_id: int, entries: Sequence[RecalledEntry]) -> None:
    rows = [
        (turn_id, rank, entry.item, entry.item_id, entry.placed, entry.score, json.dumps(entry.parts))
        for rank, entry in enumerate(entries)
    ]
    for some in (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)):
        tx.run(
            "insert into recalls (turn_id, rank, item, item_id, placed, score, parts)"
            f" values {', '.join(['(?, ?, ?, ?, ?, ?, ?)'] * len(some))}",
            [value for row in some for value in row],
        )


def of_turn(reader: Reader, turn_id: int) -> list[RecalledEntry]:
    rows = reader.all(
        "select item, item_id, placed, score, parts from recalls where turn_id = ? order by rank", (turn_id,)
    )
    return [RecalledEntry(**{**dict(row), "parts": known_parts(json.loads(row["parts"]))}) for row in rows]


def turns_with(reader: Reader, memory_id: int) -> list[int]:
    """Returns the turns whose prompt held a memory."""
    rows = reader.all("select distinct turn_id from recalls where item = 'memory' and item_id = ?", (memory_id,))
    return [int(row["turn_id"]) for row in rows]


def drop(tx: Transaction, turn_ids: Sequence[int]) -> None:
    """Deletes the recalls of these turns."""
    tx.run("delete from recalls where turn_id in (select value from json_each(?))", (turn_ids,))


def drop_of_sessions(tx: Transaction, session_ids: Sequence[int]) -> None:
    """Deletes the recalls of all turns of these sessions."""
    tx.run(
        "delete from recalls where turn_id in (select id from turns where session_id in"
        " (select value from json_each(?)))",
        (session_ids,),
    )
