"""The nightly sweep: archives facts and styles that have faded, by arithmetic alone.

Invariants: strength is computed when it is needed and never written. Nothing is reworded or removed, and a row that is
told again, pinned, confirmed or corrected comes back by itself. A row that a person has put back is not archived again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from memory import keys, profile
from memory.jobs.asking import undone
from memory.jobs.base import Job, Night, Step
from memory.scope import Scope
from memory.store import fading, memories, scopes
from memory.store.database import Reader, Transaction
from memory.store.memories import Memory

_NAME: Final = "decay"
#: Rows that one transaction archives.
_AT_ONCE: Final = 500


def _owners(reader: Reader, night: Night) -> list[int]:
    return [
        owner_id
        for owner_id in scopes.owners_served(reader, night.agent_id, among=night.nightly)
        if _due(reader, scopes.scope_of_owner(reader, owner_id, agent_id=night.agent_id), night)
    ]


def _steps(reader: Reader, scope: Scope, night: Night) -> list[Step]:
    due = [memory.id for memory in _due(reader, scope, night)]
    return [
        Step(carry_out=partial(_set_aside, scope=scope, night=night, memory_ids=due[start : start + _AT_ONCE]))
        for start in range(0, len(due), _AT_ONCE)
    ]


JOB: Final = Job(name=_NAME, owners=_owners, steps=_steps)


def _due(reader: Reader, scope: Scope, night: Night) -> list[Memory]:
    """Returns the owner's rows that have faded, without those that a person has put back."""
    faded = fading.faded(reader, scope, now=night.now)
    if not faded:
        return []
    wanted = frozenset[int]().union(*(journal.changed for journal in undone(reader, _NAME, scope.writes_to)))
    return [memory for memory in faded if memory.id not in wanted]


def _set_aside(
    tx: Transaction, _answer: str, *, scope: Scope, night: Night, memory_ids: Sequence[int]
) -> Mapping[str, int]:
    """Archives rows that are still too weak: since the read a row may have been told again, replaced or forgotten."""
    weak = [
        memory
        for memory in memories.by_ids(tx, scope, memory_ids)
        if memory.live and fading.has_faded(memory, now=night.now)
    ]
    if not weak:
        return {}
    memories.archive(tx, [memory.id for memory in weak], now=night.now)
    if scope.private:
        fed = {keys.profile_slot(category=m.category, key=m.key) for m in weak if m.kind == "fact"}
        profile.refresh_all(tx, scope, scope.writes_to, fed, now=night.now, new_id=night.new_id)
    return {"archived": len(weak)}
