"""One proposed memory → rows: new, told again, or a replacement.

Invariants: only a key on the closed list of single values replaces anything; message time decides, so an older
message never closes a newer value; what differs in a number, a name, a date or a negation is never taken for the
same; every row names the messages it was learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory import keys, profile
from memory.learn.guard import injection_flags
from memory.recall.likeness import differs_in_substance, jaccard
from memory.scope import Scope
from memory.store import erasure, memories
from memory.store.database import Transaction
from memory.store.memories import Draft, Memory

#: Rows at least this much alike, word for word, say the same unless they differ in substance (DESIGN 5.3).
_ALIKE = 0.75


def keep(
    tx: Transaction,
    scope: Scope,
    draft: Draft,
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
) -> int | None:
    """Write `draft` in the open transaction, with what follows from it for the profile.

    Returns the id of the row that holds it, new or not; None when it was forgotten since it was said.
    """
    if draft.origin == "extracted" and erasure.was_forgotten(
        tx, draft.owner_id, draft.key, draft.value, said_at=draft.learned_at
    ):
        return None
    draft = replace(draft, flags=injection_flags(draft.value))
    present = memories.same_subject(tx, scope, draft)
    memory_id = _place(tx, draft, present, source_ids=source_ids, now=now, new_id=new_id)
    memories.add_sources(tx, memory_id, source_ids)
    if draft.owner_id in scope.own and draft.kind == "fact":
        slot = keys.profile_slot(category=draft.category, key=draft.key)
        profile.refresh(tx, scope, draft.owner_id, slot, now=now, new_id=new_id)
    return memory_id


def _place(
    tx: Transaction,
    draft: Draft,
    present: list[Memory],
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
) -> int:
    for memory in present:
        if memory.valid_until is None and _same(memory, draft):
            # A message that is read a second time says nothing a second time.
            if not memories.learned_from(tx, memory.id, source_ids):
                memories.reinforce(tx, memory.id, at=draft.learned_at)
            return memory.id
        if memory.valid_until is not None and _equal(memory, draft) and draft.learned_at <= memory.valid_until:
            return memory.id  # said before it was replaced, though read after
    rivals = [memory for memory in present if memory.key == draft.key] if keys.is_single_valued(draft.key) else []
    before = [memory for memory in rivals if memory.valid_from <= draft.learned_at]
    after = [memory for memory in rivals if memory.valid_from > draft.learned_at]
    if after:
        # Said earlier than what we know, though read later: it is history from the start.
        draft = replace(draft, valid_until=after[0].valid_from, superseded_by=after[0].id)
    memory_id = memories.insert(tx, draft, new_id=new_id, now=now)
    if before and (before[-1].valid_until is None or before[-1].valid_until > draft.learned_at):
        memories.supersede(tx, before[-1].id, memory_id, at=draft.learned_at)
    return memory_id


def _equal(memory: Memory, draft: Draft) -> bool:
    return memory.key == draft.key and keys.normalise_value(memory.value) == keys.normalise_value(draft.value)


def _same(memory: Memory, draft: Draft) -> bool:
    if _equal(memory, draft):
        return True
    if keys.is_single_valued(draft.key) or memory.key != draft.key:
        return False
    return jaccard(memory.value, draft.value) >= _ALIKE and not differs_in_substance(memory.value, draft.value)
