"""What entered each reply, as ids and scores; the text is looked up when asked, and gone when it is forgotten."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.store.database import Reader, Transaction

Item: TypeAlias = Literal["memory", "message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One memory or message that bore on a turn. `score` is None for what stands in every prompt."""

    item: Item
    item_id: int
    placed: str
    score: float | None
    parts: dict[str, float]


def keep(tx: Transaction, turn_id: int, entries: Sequence[Entry]) -> None:
    for rank, entry in enumerate(entries):
        tx.run(
            "insert into recalls (turn_id, rank, item, item_id, placed, score, parts) values (?, ?, ?, ?, ?, ?, ?)",
            (turn_id, rank, entry.item, entry.item_id, entry.placed, entry.score, json.dumps(entry.parts)),
        )


def of_turn(reader: Reader, turn_id: int) -> list[Entry]:
    rows = reader.all(
        "select item, item_id, placed, score, parts from recalls where turn_id = ? order by rank", (turn_id,)
    )
    return [
        Entry(
            item=row["item"],
            item_id=row["item_id"],
            placed=row["placed"],
            score=row["score"],
            parts=json.loads(row["parts"]),
        )
        for row in rows
    ]


def turns_with(reader: Reader, memory_id: int) -> list[int]:
    """The turns whose prompt held a memory."""
    rows = reader.all("select distinct turn_id from recalls where item = 'memory' and item_id = ?", (memory_id,))
    return [int(row["turn_id"]) for row in rows]
