"""The profile of a person: slots filled from their facts, in the transaction that writes the fact.

Invariants: a slot is made of current facts only and names them as its parents, so it goes when they are forgotten and
is closed when they hold no more; it is made the same way at every write and says nothing twice; a slot a person has set
themselves (confirmed) is never overwritten and comes first where room is short; all slots that are shown together hold
at most `LIMIT` characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

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
    refresh_all(tx, scope, owner_id, [slot], now=now, new_id=new_id)


def refresh_all(
    tx: Transaction,
    scope: Scope,
    owner_id: int,
    slots: Iterable[str | None],
    *,
    now: int,
    new_id: Callable[[], str],
) -> None:
    """The same for several slots, for which the owner's facts are read once."""
    feeding: dict[str, list[Memory]] = {slot: [] for slot in sorted({slot for slot in slots if slot is not None})}
    if not feeding:
        return
    for memory in memories.current_of_owner(tx, scope, owner_id, "fact"):
        fed = keys.profile_slot(category=memory.category, key=memory.key)
        if fed in feeding:
            feeding[fed].append(memory)
    filled = memories.current_of_owner(tx, scope, owner_id, "profile")
    for slot, facts in feeding.items():
        held = [memory for memory in filled if memory.key == slot]
        _fill(tx, owner_id, slot, facts, held, now=now, new_id=new_id)


def read(reader: Reader, scope: Scope) -> list[Memory]:
    """The filled slots in the order of `keys.PROFILE_SLOTS`, then the directive.

    Of several, where accounts are linked, that is the one somebody has set, else the one of this very place.
    """
    order = {slot: n for n, slot in enumerate(keys.PROFILE_SLOTS)}
    held = memories.current(reader, scope, ("profile", "directive"), limit=2 * len(order))
    directives = sorted(
        (memory for memory in held if memory.kind == "directive"),
        key=lambda one: (one.confirmed, one.owner_id == scope.writes_to, one.learned_at, one.id),
    )
    slots = [memory for memory in held if memory.kind == "profile"]
    slots.sort(key=lambda memory: (order.get(memory.key, len(order)), memory.id))
    return [*fitting(slots), *directives[-1:]]


def fitting(slots: Sequence[Memory]) -> list[Memory]:
    """Slots in the given order, without those for which `LIMIT` leaves no room: linked accounts have two of each.

    What a person has set has room before what was made of facts, and is cut off where it is longer than all there is.
    """
    room = LIMIT
    shown: dict[int, Memory] = {}
    for memory in sorted(slots, key=lambda memory: not memory.confirmed):
        if room and (memory.confirmed or len(memory.value) <= room):
            shown[memory.id] = replace(memory, value=memory.value[:room])
            room -= len(shown[memory.id].value)
    return [shown[memory.id] for memory in slots if memory.id in shown]


def _fill(
    tx: Transaction,
    owner_id: int,
    slot: str,
    facts: Sequence[Memory],
    held: Sequence[Memory],
    *,
    now: int,
    new_id: Callable[[], str],
) -> None:
    """Fill a slot, which so far has the rows `held`, from the facts that feed it."""
    if held and held[0].confirmed:
        return
    if not facts:
        for memory in held:
            memories.close(tx, memory.id, at=now)
        return
    value, used = _summed(facts)
    if held and held[0].value == value:
        slot_id = held[0].id
    else:
        # A new row and not a new value: the prompts of open windows hold the old one until their next snapshot.
        slot_id = memories.insert(tx, _draft(owner_id, slot, value, facts), new_id=new_id, now=now)
        for memory in held:
            memories.supersede(tx, memory.id, slot_id, at=now)
    memories.set_parents(tx, slot_id, [memory.id for memory in used])


def _summed(facts: Sequence[Memory]) -> tuple[str, list[Memory]]:
    """The slot's text and the facts in it: as many as there is room for, the weightiest first, each said once."""
    used: list[Memory] = []
    for memory in facts:
        if any(_says(other, memory) for other in used):
            continue
        fuller = [memory if _says(memory, other) else other for other in used]
        longer = list({one.id: one for one in (fuller if memory in fuller else [*used, memory])}.values())
        if used and len("; ".join(map(_part, longer))) > _SLOT_LIMIT:
            break
        used = longer
    return "; ".join(_part(memory)[:_SLOT_LIMIT] for memory in used), used


def _part(memory: Memory) -> str:
    return memory.value if memory.key in _PLAIN else f"{memory.key} {memory.value}"


def _says(memory: Memory, other: Memory) -> bool:
    """Whether a fact says what another of its key does, and goes on from there ("hiking", "hiking in Sintra")."""
    whole, start = (keys.normalise_value(one.value) for one in (memory, other))
    return memory.key == other.key and (whole == start or whole.startswith((f"{start} ", f"{start}, ")))


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
