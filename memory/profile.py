"""The profile of a person: slots filled from their facts, in the transaction that writes the fact.

Invariants: A slot is made only from current facts and names them as its parents, so it is deleted when they are
forgotten and closed when they no longer hold. It is made the same way at every write and says nothing twice. A slot
that the person has set (confirmed) is never overwritten and comes first if room is short. All slots that are shown
together hold at most `LIMIT` characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from memory import keys
from memory.scope import Scope
from memory.store import memories, people
from memory.store.database import Reader, Transaction
from memory.store.memories import Draft, Memory
from memory.text.zones import zone_named

#: Characters of a whole profile (DESIGN 5.1), and the equal share of each slot.
LIMIT = 1_500
_SLOT_LIMIT = LIMIT // len(keys.PROFILE_SLOTS)
#: Keys whose slot explains the value; the other keys are shown before their values.
_PLAIN = frozenset({"name", "language", "timezone", "home", "occupation", "likes", "goal", "instruction"})


def refresh(
    tx: Transaction, scope: Scope, owner_id: int, slot: str | None, *, now: int, new_id: Callable[[], str]
) -> None:
    refresh_all(tx, scope, owner_id, [slot], now=now, new_id=new_id)


def refresh_all(
    tx: Transaction, scope: Scope, owner_id: int, slots: Iterable[str | None], *, now: int, new_id: Callable[[], str]
) -> None:
    feeding: dict[str, list[Memory]] = {slot: [] for slot in sorted({slot for slot in slots if slot is not None})}
    if not feeding:
        return
    for memory in memories.current_of_owner(tx, scope, owner_id, "fact"):
        fed = keys.profile_slot(category=memory.category, key=memory.key)
        # A profile tells without a doubt, and without a mark on what reads like an instruction.
        if fed in feeding and not (memory.unsure or memory.flags):
            feeding[fed].append(memory)
    filled = memories.current_of_owner(tx, scope, owner_id, "profile")
    for slot, facts in feeding.items():
        held = [memory for memory in filled if memory.key == slot]
        _fill(tx, owner_id, slot, facts, held, now=now, new_id=new_id)


def follow_timezone(tx: Transaction, scope: Scope, owner_id: int) -> None:
    """Sets a person's clock by the time zone that they told last, and to the agent's if they told none."""
    told = [one for one in memories.current_of_owner(tx, scope, owner_id, "fact") if one.key == "timezone"]
    latest = max(told, key=lambda one: (one.learned_at, one.id), default=None)
    zone = None if latest is None else zone_named(latest.value)
    if zone is not None or latest is None:
        people.set_timezone_of(tx, owner_id, zone)


def read(reader: Reader, scope: Scope) -> list[Memory]:
    """Returns the filled slots in the order of `keys.PROFILE_SLOTS`, then the directive.

    Linked accounts may have several directives: one that the person has set is preferred, then the one of this place.
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
    """Returns the slots in the given order, without those that `LIMIT` leaves no room for.

    There may be too many because linked accounts have two of each. A slot that the person has set gets room
    before slots made from facts, and is cut if it is longer than the room left.
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
    """Refills a slot, whose rows so far are `held`, from the facts that feed it."""
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
        # A new row, not a new value: the prompts of open windows keep the old one until their next snapshot.
        slot_id = memories.insert(tx, _draft(owner_id, slot, value, facts), new_id=new_id, now=now)
        for memory in held:
            memories.supersede(tx, memory.id, slot_id, at=now)
    memories.set_parents(tx, slot_id, [memory.id for memory in used])


def _summed(facts: Sequence[Memory]) -> tuple[str, list[Memory]]:
    """Returns the slot's text and its facts: as many as fit, the weightiest first, each said once."""
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
    """Returns whether a fact repeats another of its key or extends it ("hiking", "hiking in Sintra")."""
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
