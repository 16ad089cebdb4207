"""One proposed memory → rows: new, told again, or a replacement.

Invariants: only a key on the closed list of single values replaces anything; message time decides, so an older
message never closes a newer value; what differs in a number, a name, a date or a negation is never taken for the
same; every row names the messages it was learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from memory import keys, profile
from memory.recall.likeness import differs_in_substance, jaccard
from memory.scope import Scope
from memory.store import memories
from memory.store.database import Transaction
from memory.store.memories import Draft, Memory

Outcome: TypeAlias = Literal["new", "again", "replaced", "older"]

#: Rows at least this much alike, word for word, say the same unless they differ in substance (DESIGN 5.3).
_ALIKE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a draft. `replaced` is the row that no longer holds."""

    memory_id: int
    outcome: Outcome
    replaced: Memory | None = None


def keep(
    tx: Transaction,
    scope: Scope,
    draft: Draft,
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
) -> Kept:
    """Write `draft` in the open transaction, with what follows from it for the profile."""
    present = memories.same_subject(tx, scope, draft)
    kept = _place(tx, draft, present, now=now, new_id=new_id)
    memories.add_sources(tx, kept.memory_id, source_ids)
    if scope.private and draft.kind == "fact":
        profile.refresh(
            tx,
            scope,
            draft.owner_id,
            keys.profile_slot(category=draft.category, key=draft.key),
            now=now,
            new_id=new_id,
        )
    return kept


def _place(tx: Transaction, draft: Draft, present: list[Memory], *, now: int, new_id: Callable[[], str]) -> Kept:
    for memory in present:
        if _same(memory, draft):
            memories.reinforce(tx, memory.id, at=draft.learned_at)
            return Kept(memory_id=memory.id, outcome="again")
    rival = next((m for m in present if m.key == draft.key), None) if keys.is_single_valued(draft.key) else None
    if rival is not None and rival.valid_from > draft.learned_at:
        # Told earlier than what we know, though read later: it is history from the start.
        older = replace(draft, valid_until=rival.valid_from, superseded_by=rival.id)
        memory_id = memories.insert(tx, older, short_id=new_id(), now=now)
        return Kept(memory_id=memory_id, outcome="older")
    memory_id = memories.insert(tx, draft, short_id=new_id(), now=now)
    if rival is None:
        return Kept(memory_id=memory_id, outcome="new")
    memories.supersede(tx, rival.id, memory_id, at=draft.learned_at)
    return Kept(memory_id=memory_id, outcome="replaced", replaced=rival)


def _same(memory: Memory, draft: Draft) -> bool:
    if memory.key == draft.key and keys.normalise_value(memory.value) == keys.normalise_value(draft.value):
        return True
    if keys.is_single_valued(draft.key) or memory.key != draft.key:
        return False
    return jaccard(memory.value, draft.value) >= _ALIKE and not differs_in_substance(memory.value, draft.value)
