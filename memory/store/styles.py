"""How somebody likes to be answered by one agent: their live styles by strength, and how many of them there may be.

Invariants: a style belongs to one owner and stays with its agent; what is told again counts once more, and what is too
much is set aside, never removed or reworded.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from memory.scope import Scope
from memory.store import fading, memories
from memory.store.database import Reader, Transaction
from memory.store.memories import Memory

#: The key of a style of which nobody has said what it is about.
ANY_KEY: Final = "style"
#: Styles of one owner and agent that stand at a time, and how many of them say something else under the same key: a
#: model that words a wish anew each day must not pile it up, and of what contradicts itself the last few words suffice.
_MOST: Final = 30
_MOST_OF_KEY: Final = 3


def strongest(reader: Reader, scope: Scope, owner_id: int, *, now: int) -> list[Memory]:
    """The live styles of one owner that stay with the scope's agent, the strongest at `now` first, then the newest.

    Those too weak to stand are left out, swept or not.
    """
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id from memories m where m.owner_id = ? and m.kind = 'style' and m.agent_id = ?"
        f" and m.superseded_by is null and m.archived_at is null and m.valid_until is null and {within.sql}",
        (owner_id, scope.agent_id, *within.parameters),
    )
    found = memories.by_ids(reader, scope, [row["id"] for row in rows])
    standing = [memory for memory in found if not fading.has_faded(memory, now=now)]
    return sorted(standing, key=lambda one: (_weight(one, now), one.last_reinforced_at, one.id), reverse=True)


def set_aside_rest(tx: Transaction, scope: Scope, told: int, *, now: int) -> None:
    """Archive what is too much of the styles of the owner of `told`, the weakest first; neither that row itself

    nor what somebody has pinned or confirmed.
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
    fading.archive(tx, rest, now=now)


def _weight(memory: Memory, now: int) -> float:
    return memory.strength * fading.left(memory, now=now)
