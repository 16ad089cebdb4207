"""Recalls: the ids and scores of the memories and messages that entered each reply.

Their text is looked up on demand, and is gone once it was forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.score import ScorePart, known_parts
from memory.store.database import Reader, Transaction

Item: TypeAlias = Literal["memory", "message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledEntry:
    """A memory or message that bore on a turn. `score` is None for one that is in every prompt.

    `tokens` is its part of the prompt; None if no model was asked, or if it was not in there.
    """

    item: Item
    item_id: int
    placed: str
    score: float | None
    parts: dict[ScorePart, float]
    tokens: int | None = None


def keep(tx: Transaction, turn_id: int, entries: Sequence[RecalledEntry]) -> None:
    rows = [
        (rank, entry.item, entry.item_id, entry.placed, entry.score, json.dumps(entry.parts), entry.tokens)
        for rank, entry in enumerate(entries)
    ]
    if not rows:
        return
    tx.run(
        "insert into recalls (turn_id, rank, item, item_id, placed, score, parts, tokens) select ?,"
        " cast(value ->> 0 as bigint), value ->> 1, cast(value ->> 2 as bigint), value ->> 3,"
        " cast(value ->> 4 as double precision), value ->> 5, cast(value ->> 6 as bigint) from json_each(?)",
        (turn_id, json.dumps(rows)),
    )


def of_turn(reader: Reader, turn_id: int) -> list[RecalledEntry]:
    rows = reader.all(
        "select item, item_id, placed, score, parts, tokens from recalls where turn_id = ? order by rank", (turn_id,)
    )
    return [RecalledEntry(**{**dict(row), "parts": known_parts(json.loads(row["parts"]))}) for row in rows]


def turns_with(reader: Reader, memory_id: int) -> list[int]:
    return reader.ids("select distinct turn_id from recalls where item = 'memory' and item_id = ?", (memory_id,))


def drop(tx: Transaction, turn_ids: Sequence[int]) -> None:
    tx.run("delete from recalls where turn_id in (select value from json_each(?))", (turn_ids,))


def drop_of_sessions(tx: Transaction, session_ids: Sequence[int]) -> None:
    tx.run(
        "delete from recalls where turn_id in (select id from turns where session_id in"
        " (select value from json_each(?)))",
        (session_ids,),
    )
