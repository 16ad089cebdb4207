"""Fading of memories: the rate at which a row fades, its remaining strength, the faded rows, and the strongest styles.

Invariants: The remaining strength is computed on reading and never written. Only facts and styles fade. A memory that a
person has pinned or confirmed does not fade, nor does one whose category is kept for good. A faded row is archived,
never removed. A style belongs to one owner and stays with its agent; styles beyond the limits are archived too.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from memory import keys
from memory.scope import Scope
from memory.store import memories
from memory.store.database import Reader, Transaction, walled
from memory.store.memories import Memory

#: The sweep archives memories weaker than this; archived memories can come back.
ARCHIVE_BELOW = 0.05
#: The half-life in days of a style that was told once; each further telling adds as much.
STYLE_HALF_LIFE = 14.0
#: The half-life in days of a fact that perhaps nobody stated, unless its category fades sooner.
UNSURE_HALF_LIFE = 30.0


def rate(half_life_days: float | None) -> float:
    """Returns the decay rate per day, ln 2 / half-life; 0 for `None` (no decay).

    Raises `ValueError` unless the half-life is a positive finite number of days.
    """
    if half_life_days is None:
        return 0.0
    if not (math.isfinite(half_life_days) and half_life_days > 0):
        raise ValueError(f"half-life must be a positive number of days, or None for no decay; got {half_life_days!r}")
    return math.log(2) / half_life_days


def strength(base: float, half_life_days: float | None, days: float) -> float:
    """Returns base · exp(-rate · days), for `days` since the memory was last reinforced.

    This is exponential forgetting as in Ebbinghaus's curve. A moment in the future (a clock that was set back) counts
    as now. However old the memory, the result is above 0, so that it can be a factor of a score. Raises `ValueError`
    for a base that is not positive and finite, a half-life that `rate` refuses, or days that are not a number.
    """
    if not (math.isfinite(base) and base > 0):
        raise ValueError(f"base strength must be a positive number; got {base!r}")
    if math.isnan(days):
        raise ValueError("days since the last reinforcement must be a number; got nan")
    decay = rate(half_life_days)
    if decay == 0:
        return base
    return max(base * math.exp(-decay * max(days, 0.0)), math.ulp(0.0))


def style_half_life(reinforced: int) -> float:
    """Returns the half-life in days of a style that was told `reinforced` times in all; 0 counts as 1.

    Raises `ValueError` for a negative number.
    """
    if reinforced < 0:
        raise ValueError(f"a style can't have been told {reinforced} times")
    return STYLE_HALF_LIFE * max(reinforced, 1)


_DAY_MS: Final = 86_400_000
#: The key of a style without a named subject.
ANY_KEY: Final = "style"
#: The limits on live styles: `_MOST` for one owner and agent, `_MOST_OF_KEY` for those that say something else under
#: the same key. A model that words a wish anew each day must not pile it up, and the last few of wishes that contradict
#: each other suffice.
_MOST: Final = 30
_MOST_OF_KEY: Final = 3


def half_life(memory: Memory) -> float | None:
    """Returns the days in which a memory loses half of its strength; None if it does not fade."""
    if memory.pinned or memory.confirmed or memory.kind not in ("fact", "style"):
        return None
    if memory.kind == "style":
        return style_half_life(1 + memory.reinforced_count)
    days = keys.CATEGORIES[memory.category]
    return min(days or UNSURE_HALF_LIFE, UNSURE_HALF_LIFE) if memory.unsure else days


def left(memory: Memory, *, now: int) -> float:
    """Returns the share of its base strength that a memory has left at `now`, in milliseconds UTC."""
    return strength(1.0, half_life(memory), (now - memory.last_reinforced_at) / _DAY_MS)


def has_faded(memory: Memory, *, now: int) -> bool:
    return half_life(memory) is not None and memory.strength * left(memory, now=now) < ARCHIVE_BELOW


@walled
def faded(reader: Reader, scope: Scope, *, now: int) -> list[Memory]:
    within = scope.predicate("m")
    ids = reader.ids(
        "select m.id from memories m where m.kind in ('fact', 'style') and m.pinned = 0 and m.confirmed = 0"
        " and m.superseded_by is null and m.archived_at is null and m.valid_until is null"
        # SQL computes the exact age only for rows that began at full strength; the others are checked one by one.
        f" and (m.strength <> 1 or m.last_reinforced_at <= ? - {_OLD_AGE}) and {within.sql} order by m.id",
        (now, *within.parameters),
    )
    candidates = memories.by_ids(reader, scope, ids)
    return [memory for memory in candidates if has_faded(memory, now=now)]


@walled
def fading(reader: Reader, scope: Scope, *, now: int) -> list[int]:
    """Returns the live rows of a scope that have less than half of their strength left at `now`, by id."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.strength = 1 as whole from memories m where m.kind in ('fact', 'style') and m.pinned = 0"
        " and m.confirmed = 0 and m.superseded_by is null and m.archived_at is null and m.valid_until is null"
        # A half-life after it was last heard, a row of full strength is half as strong.
        f" and (m.strength <> 1 or m.last_reinforced_at < ? - ({_OLD_AGE}) / ?) and {within.sql} order by m.id",
        (now, math.log2(1 / ARCHIVE_BELOW), *within.parameters),
    )
    candidates = memories.by_ids(reader, scope, [row["id"] for row in rows if not row["whole"]])
    weaker = [memory.id for memory in candidates if half_life(memory) is not None and _weight(memory, now) < 1 / 2]
    return [*weaker, *(row["id"] for row in rows if row["whole"])]


@walled
def strongest(reader: Reader, scope: Scope, owner_id: int, *, now: int) -> list[Memory]:
    """Returns an owner's live styles for the scope's agent, the strongest at `now` first, then the newest.

    Faded styles are left out, even if they have not been archived yet.
    """
    within = scope.predicate("m")
    ids = reader.ids(
        "select m.id from memories m where m.owner_id = ? and m.kind = 'style' and m.agent_id = ?"
        f" and m.superseded_by is null and m.archived_at is null and m.valid_until is null and {within.sql}",
        (owner_id, scope.agent_id, *within.parameters),
    )
    found = memories.by_ids(reader, scope, ids)
    standing = [memory for memory in found if not has_faded(memory, now=now)]
    return sorted(standing, key=lambda one: (_weight(one, now), one.last_reinforced_at, one.id), reverse=True)


def set_aside_rest(tx: Transaction, scope: Scope, told: int, *, now: int) -> None:
    """Archives the styles beyond the limits of the owner of `told`, the weakest first.

    The row `told` itself stays, and so do styles that a person has pinned or confirmed.
    """
    style = memories.by_id(tx, scope, told)
    if style is None or style.kind != "style":
        return
    of_key: Counter[str] = Counter()
    rest: list[int] = []
    styles = strongest(tx, scope, style.owner_id, now=now)
    for n, memory in enumerate(sorted(styles, key=lambda row: row.id != told)):
        key = f"{memory.key} {memory.subject_id} {memory.subject}"
        of_key[key] += 1
        many = memory.key != ANY_KEY and of_key[key] > _MOST_OF_KEY
        if (many or n >= _MOST) and not (memory.pinned or memory.confirmed):
            rest.append(memory.id)
    memories.archive(tx, rest, now=now)


def _weight(memory: Memory, now: int) -> float:
    return memory.strength * left(memory, now=now)


def _fades_in(half_life_days: float) -> int:
    return math.floor(half_life_days * math.log2(1 / ARCHIVE_BELOW) * _DAY_MS)


#: An SQL expression for the milliseconds in which a row of full strength fades; null if it never does.
_OLD_AGE: Final = (
    f"case when m.kind = 'style' then {_fades_in(STYLE_HALF_LIFE)} * (1 + m.reinforced_count)"
    f" when m.confidence < {memories.SURE} then case m.category "
    + " ".join(
        f"when '{name}' then {_fades_in(days)}"
        for name, days in keys.CATEGORIES.items()
        if days is not None and days < UNSURE_HALF_LIFE
    )
    + f" else {_fades_in(UNSURE_HALF_LIFE)} end else case m.category "
    + " ".join(f"when '{name}' then {_fades_in(days)}" for name, days in keys.CATEGORIES.items() if days is not None)
    + " end end"
)
