"""What of memory goes into one turn: the snapshot every prompt carries, and what is found for this message.

Invariants: a search may be skipped, the profile and the known facts never; what stands in the prompt already is
not put in again; the budget in items and tokens holds; nothing here changes a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from memory import profile
from memory.recall.gate import should_search
from memory.recall.likeness import differs_in_substance, jaccard
from memory.recall.search import Find, Hit, search
from memory.scope import Scope
from memory.store import memories
from memory.store.database import Reader
from memory.store.memories import Memory

#: "recalled": put into the prompt for this turn; "known": stood there already; "unused": found, not needed.
Placed: TypeAlias = Literal["recalled", "known", "unused"]

_STYLES_IN_SNAPSHOT = 10
_ALIKE = 0.75
#: Tokens a rendered memory costs beyond its key and value: id, date, punctuation.
_RENDERING = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much memory may enter a prompt."""

    items: int = 8
    tokens: int = 1_500
    known: int = 50
    known_tokens: int = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Memory that stands in every prompt of a window, and what was learned since it was taken."""

    profile: tuple[Memory, ...] = ()
    known: tuple[Memory, ...] = ()
    newer: tuple[Memory, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(memory.id for memory in (*self.profile, *self.known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A memory found for this message and where it stands in the prompt."""

    memory: Memory
    score: float
    placed: Placed
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """All memory that bears on one turn. `items` are ranked, best first."""

    snapshot: Snapshot
    items: tuple[Recalled, ...] = ()


def take_snapshot(reader: Reader, scope: Scope, budget: Budget, count_tokens: Callable[[str], int]) -> Snapshot:
    """Profile, directive and the known facts, as many as the budget takes."""
    slots = profile.read(reader, scope)
    candidates = memories.current(reader, scope, ("fact", "style"), limit=budget.known * 2)
    known: list[Memory] = []
    styles = 0
    room = budget.known_tokens
    for memory in candidates:
        cost = _cost(memory, count_tokens)
        if len(known) == budget.known or cost > room or (memory.kind == "style" and styles == _STYLES_IN_SNAPSHOT):
            continue
        known.append(memory)
        styles += memory.kind == "style"
        room -= cost
    return Snapshot(profile=tuple(slots), known=tuple(known))


def stored_snapshot(
    reader: Reader, scope: Scope, memory_ids: Sequence[int], *, taken_at: int, budget: Budget
) -> Snapshot:
    """The snapshot a window began with, made again from its ids, and what is newer than it.

    What was replaced since stands as it stood then, so that the prompt's beginning stays the same; its successor is
    among the newer.
    """
    held = [_as_of(memory, taken_at) for memory in memories.by_ids(reader, scope, memory_ids)]
    newer = memories.newer_than(reader, scope, since=taken_at, limit=budget.known)
    return Snapshot(
        profile=tuple(memory for memory in held if memory.kind in ("profile", "directive")),
        known=tuple(memory for memory in held if memory.kind in ("fact", "style")),
        newer=tuple(memory for memory in newer if memory.id not in memory_ids),
    )


def recall(
    reader: Reader,
    scope: Scope,
    query: str,
    *,
    find: Find,
    snapshot: Snapshot,
    in_window: frozenset[int],
    budget: Budget,
    count_tokens: Callable[[str], int],
) -> Recall:
    """Find what bears on `query`. `in_window` names messages the model sees anyway."""
    if not should_search(query):
        return Recall(snapshot=snapshot)
    hits = search(reader, scope, query, find=find, limit=budget.items * 2)
    present = {memory.id for memory in (*snapshot.known, *snapshot.newer)}
    sources = memories.sources(reader, [hit.memory.id for hit in hits]) if hits else {}
    items: list[Recalled] = []
    taken: list[Memory] = []
    room = budget.tokens
    for hit in hits:
        said_in = {source.message_id for source in sources[hit.memory.id]}
        if hit.memory.id in present or (said_in and said_in <= in_window):
            items.append(_recalled(hit, "known"))
            continue
        cost = _cost(hit.memory, count_tokens)
        if len(taken) == budget.items or cost > room or any(_repeats(hit.memory, other) for other in taken):
            items.append(_recalled(hit, "unused"))
            continue
        taken.append(hit.memory)
        room -= cost
        items.append(_recalled(hit, "recalled"))
    return Recall(snapshot=snapshot, items=tuple(items))


def _as_of(memory: Memory, moment: int) -> Memory:
    closed_since = memory.valid_until is not None and memory.valid_until >= moment
    return replace(memory, valid_until=None, superseded_by=None) if closed_since else memory


def _recalled(hit: Hit, placed: Placed) -> Recalled:
    return Recalled(memory=hit.memory, score=hit.score, placed=placed, parts=hit.parts)


def _repeats(memory: Memory, other: Memory) -> bool:
    if memory.key != other.key or memory.subject_id != other.subject_id:
        return False
    return jaccard(memory.value, other.value) >= _ALIKE and not differs_in_substance(memory.value, other.value)


def _cost(memory: Memory, count_tokens: Callable[[str], int]) -> int:
    return count_tokens(memory.key) + count_tokens(memory.value) + _RENDERING
