"""How memories fade: how fast a row does, how much of it is left, and the rows of which too little is left.

Invariants: what is left is worked out when it is asked for and never written; facts and styles alone fade, and neither
what somebody has pinned or confirmed nor what its category keeps for good; a row is set aside, never removed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from memory import keys
from memory.scope import Scope
from memory.store import documents, memories
from memory.store.database import Reader, Transaction
from memory.store.memories import Memory
from memory.strength import ARCHIVE_BELOW, STYLE_HALF_LIFE, strength, style_half_life

_DAY_MS: Final = 86_400_000


def half_life(memory: Memory) -> float | None:
    """In how many days a memory loses half of its strength; None where it does not fade."""
    if memory.pinned or memory.confirmed or memory.kind not in ("fact", "style"):
        return None
    return style_half_life(1 + memory.reinforced_count) if memory.kind == "style" else keys.CATEGORIES[memory.category]


def left(memory: Memory, *, now: int) -> float:
    """The share of its base strength that a memory has left at `now`, milliseconds UTC."""
    return strength(1.0, half_life(memory), (now - memory.last_reinforced_at) / _DAY_MS)


def has_faded(memory: Memory, *, now: int) -> bool:
    """Whether a memory is too weak to stand among the current ones."""
    return half_life(memory) is not None and memory.strength * left(memory, now=now) < ARCHIVE_BELOW


def faded(reader: Reader, scope: Scope, *, now: int) -> list[Memory]:
    """The live rows of a scope that have faded by `now`, in milliseconds UTC."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id from memories m where m.kind in ('fact', 'style') and m.pinned = 0 and m.confirmed = 0"
        " and m.superseded_by is null and m.archived_at is null and m.valid_until is null"
        # Exactly so old only where a row began at full strength; the others are looked at one by one.
        f" and (m.strength <> 1 or m.last_reinforced_at <= ? - {_OLD_AGE}) and {within.sql} order by m.id",
        (now, *within.parameters),
    )
    found = memories.by_ids(reader, scope, [row["id"] for row in rows])
    return [memory for memory in found if has_faded(memory, now=now)]


def archive(tx: Transaction, memory_ids: Sequence[int], *, now: int) -> None:
    """Set rows aside: they answer when nothing current does, and come back when told again."""
    for memory_id in memory_ids:
        tx.run("update memories set archived_at = ? where id = ?", (now, memory_id))
        documents.changed(tx, documents.of_memory(memory_id))


def _fades_in(half_life_days: float) -> int:
    """The milliseconds in which a memory of full strength fades."""
    return math.floor(half_life_days * math.log2(1 / ARCHIVE_BELOW) * _DAY_MS)


#: An SQL expression for the milliseconds in which a row of full strength fades; null where it never does.
_OLD_AGE: Final = (
    f"case m.kind when 'style' then {_fades_in(STYLE_HALF_LIFE)} * (1 + m.reinforced_count) else case m.category "
    + " ".join(f"when '{name}' then {_fades_in(days)}" for name, days in keys.CATEGORIES.items() if days is not None)
    + " end end"
)
