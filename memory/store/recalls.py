"""What entered each reply, as ids and scores; the text is looked up when asked, and gone when it is forgotten."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory.store.database import Reader, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One memory that bore on a turn. `score` is None for what stands in every prompt."""

    memory_id: int
    placed: str
    score: float | None
    parts: dict[str, float]


def keep(tx: Transaction, turn_id: int, entries: Sequence[Entry]) -> None:
    for rank, entry in enumerate(entries):
        tx.run(
            "insert into recalls (turn_id, rank, item, item_id, placed, score, parts)"
            " values (?, ?, 'memory', ?, ?, ?, ?)",
            (turn_id, rank, entry.memory_id, entry.placed, entry.score, json.dumps(entry.parts)),
        )


def of_turn(reader: Reader, turn_id: int) -> list[Entry]:
    rows = reader.all(
        "select item_id, placed, score, parts from recalls where turn_id = ? and item = 'memory' order by rank",
        (turn_id,),
    )
    return [
        Entry(memory_id=row["item_id"], placed=row["placed"], score=row["score"], parts=json.loads(row["parts"]))
        for row in rows
    ]
