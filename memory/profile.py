"""The profile of a person: slots filled from their facts, in the transaction that writes the fact.

Invariants: a slot is made of current facts only and names them as its parents, so it goes when they go; it is made
the same way at every write; a slot a person has set themselves (confirmed) is never overwritten; all slots together
hold at most `LIMIT` characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory import keys
from memory.scope import Scope
from memory.store import memories
from memory.store.database import Reader, Transaction
from memory.store.memories import Draft, Memory

#: Characters of a whole profile (DESIGN 5.1), and so what one of its slots may take.
LIMIT = 1_500
_SLOT_LIMIT = LIMIT // len(keys.PROFILE_SLOTS)
#: Keys whose slot says what the value is; all others stand before their value.
_PLAIN = frozenset({"name", "language", "timezone", "home", "occupation", "likes", "goal", "instruction"})


def refresh(
    tx: Transaction, scope: Scope, owner_id: int, slot: str | None, *, now: int, new_id: Callable[[], str]
) -> None:
    """Fill `slot` of the owner anew from their current facts; None is no slot and changes nothing."""
    if slot is None:
        return
    facts = [
        memory
        for memory in memories.current_of_owner(tx, scope, owner_id, "fact")
        if keys.profile_slot(category=memory.category, key=memory.key) == slot
    ]
    held = [m for m in memories.current_of_owner(tx, scope, owner_id, "profile") if m.key == slot]
    if held and held[0].confirmed:
        return
    if not facts:
        memories.delete(tx, [memory.id for memory in held])
        return
    value, used = _summed(slot, facts)
    if held and held[0].value == value:
        slot_id = held[0].id
    else:
        # A new row and not a new value: the prompts of open windows hold the old one until their next snapshot.
        slot_id = memories.insert(tx, _draft(owner_id, slot, value, facts), new_id=new_id, now=now)
        for memory in held:
            memories.supersede(tx, memory.id, slot_id, at=now)
    memories.set_parents(tx, slot_id, [memory.id for memory in used])


def read(reader: Reader, scope: Scope) -> list[Memory]:
    """The filled slots in the order of `keys.PROFILE_SLOTS`, then the directive."""
    order = {slot: n for n, slot in enumerate(keys.PROFILE_SLOTS)}
    held = memories.current(reader, scope, ("profile", "directive"), limit=2 * len(order))
    return sorted(held, key=lambda memory: (order.get(memory.key, len(order)), memory.id))


def _summed(slot: str, facts: Sequence[Memory]) -> tuple[str, list[Memory]]:
    """The slot's text and the facts in it: as many as there is room for, the weightiest first."""
    parts: list[str] = []
    used: list[Memory] = []
    for memory in facts:
        part = memory.value if memory.key in _PLAIN else f"{memory.key} {memory.value}"
        if len("; ".join([*parts, part])) > _SLOT_LIMIT and parts:
            break
        parts.append(part[:_SLOT_LIMIT])
        used.append(memory)
    return "; ".join(parts), used


def _draft(owner_id: int, slot: str, value: str, facts: Sequence[Memory]) -> Draft:
    newest = max(facts, key=lambda memory: memory.learned_at)
    return Draft(
        kind="profile",
        owner_id=owner_id,
        author_id=newest.author_id,
        subject_id=newest.subject_id,
        category="identity",
        key=slot,
        value=value,
        importance=10,
        confidence=1.0,
        origin="derived",
        learned_at=newest.learned_at,
        local_date=newest.local_date,
    )
