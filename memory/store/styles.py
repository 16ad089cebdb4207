"""Styles of how somebody wants one agent to answer: the live ones by strength, and the limits on their number.

Invariants: A style belongs to one owner and stays with its agent. A style that is told again counts once more. Styles
beyond the limits are archived, never removed or reworded.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from memory.scope import Scope
from memory.store import fading, memories
from memory.store.database import Reader, Transaction
from memory.store.memories import Memory

#: The key of a style if nobody has said what it is about.
ANY_KEY: Final = "style"
#: The limits on live styles: `_MOST` for one owner and agent, `_MOST_OF_KEY` for those that say something else under
#: the same key. A model that words a wish anew each day must not pile it up, and of wishes that contradict each other
#: the last few suffice.
_MOST: Final = 30
_MOST_OF_KEY: Final = 3


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
    standing = [memory for memory in found if not fading.has_faded(memory, now=now)]
    return sorted(standing, key=lambda one: (_weight(one, now), one.last_reinforced_at, one.id), reverse=True)


def set_aside_rest(tx: Transaction, scope: Scope, told: int, *, now: int) -> None:
    """Archives the styles beyond the limits of the owner of `told`, the weakest first.

    The row `told` itself stays, and so do styles that somebody has pinned or confirmed.
    """
    style = memories.by_id(tx, scope, told)
    if style is None or style.kind != "style":
        return
    of_key: Counter[str] = Counter()
    rest: list[int] = []
    found = strongest(tx, scope, style.owner_id, now=now)
    for n, memory in enumerate(sorted(found, key=lambda one: one.id != told)):
        key = f"{memory.key} {memory.subject_id} {memory.subject}"
        of_key[key] += 1
        many = memory.key != ANY_KEY and of_key[key] > _MOST_OF_KEY
        if (many or n >= _MOST) and not (memory.pinned or memory.confirmed):
            rest.append(memory.id)
    memories.archive(tx, rest, now=now)


def _weight(memory: Memory, now: int) -> float:
    return memory.strength * fading.left(memory, now=now)
