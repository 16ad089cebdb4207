"""Browsing memory: lists, completions for commands, the profile with its sources, and names.

Invariants: nothing is changed here. Each method is one read, confined by the scope that the speaker has at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from memory import profile
from memory.context import sees
from memory.errors import NotFound
from memory.scope import Scope
from memory.store import browsing, entities, lineage, memories
from memory.store.database import Database, Reader
from memory.store.entities import Entity
from memory.store.memories import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledSlot:
    """One slot of a profile with the memories it is made from."""

    memory: Memory
    made_of: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """An entity found by name, with the memories that name it."""

    entity: Entity
    memories: tuple[Memory, ...]


def _offered(
    reader: Reader, scope: Scope, typed: str, words: Sequence[str], *, changeable: bool, limit: int
) -> list[Memory]:
    """Returns current memories that `typed` may mean: by the beginning of the id, then those with any of `words`.

    With `changeable`, only memories that the speaker may change. Without `words`, all are offered, the newest first.
    """
    begun = [
        browsing.beginning(reader, scope, prefix, changeable=changeable, limit=limit)
        for prefix in (typed, f"m_{typed}")
        if typed.isascii() and typed
    ]
    found = browsing.offered(reader, scope, words, changeable=changeable, limit=limit)
    return list({memory.id: memory for memory in chain(*begun, found)}.values())[:limit]


def _one(reader: Reader, scope: Scope, short_id: str) -> Memory | None:
    """Returns the memory with this id, current or not; None both for an unknown id and for another owner's."""
    try:
        return memories.by_short_id(reader, scope, short_id)
    except NotFound:
        return None


def _profile(reader: Reader, scope: Scope) -> list[FilledSlot]:
    """Returns the filled slots of the profile in their order, then how the agent talks to this person."""
    return [
        FilledSlot(memory=memory, made_of=tuple(lineage.parents(reader, scope, memory.id)))
        for memory in profile.read(reader, scope)
    ]


def _entity(reader: Reader, scope: Scope, name: str, *, limit: int = 20) -> About | None:
    """Returns what this scope knows by `name`, with the newest memories that name it."""
    known = entities.entity(reader, scope, name)
    if known is None:
        return None
    return About(entity=known, memories=tuple(memories.by_ids(reader, scope, known.memory_ids[:limit])))


class Browse:
    """The operations of `Service.browse`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    shelf = sees(browsing.shelf)
    offered = sees(_offered)
    one = sees(_one)
    profile = sees(_profile)
    entity = sees(_entity)
