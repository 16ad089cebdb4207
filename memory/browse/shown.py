"""A memory in full: with its sources, versions, state, and the memories that it was made of or into."""

from __future__ import annotations

from dataclasses import dataclass

from memory.jobs import runs
from memory.jobs.runs import Run
from memory.scope import Scope
from memory.store import lineage, memories
from memory.store.database import Reader
from memory.store.fading import half_life, left
from memory.store.lineage import Source
from memory.store.memories import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory as a person sees it: with its sources, the memories it is made from and all its versions.

    `made_by` is the run of the night job that made it. For an archived memory, `made_into` are the memories that were
    made from it and hold now, and `set_aside_by` is the run that archived it. `left` is the remaining share of its
    strength (0 to 1); it never changes unless the memory `fades`.
    """

    memory: Memory
    sources: tuple[Source, ...]
    versions: tuple[Memory, ...]
    made_of: tuple[Memory, ...] = ()
    made_by: Run | None = None
    made_into: tuple[Memory, ...] = ()
    set_aside_by: Run | None = None
    left: float = 1.0
    fades: bool = False


def shown(reader: Reader, scope: Scope, short_id: str, *, now: int) -> Shown:
    memory = memories.by_short_id(reader, scope, short_id)
    found = lineage.sources(reader, scope, [memory.id])
    archived = memory.archived_at is not None
    return Shown(
        memory=memory,
        sources=tuple(found[memory.id]),
        versions=tuple(lineage.versions(reader, scope, memory)),
        made_of=tuple(lineage.parents(reader, scope, memory.id)),
        made_by=runs.made_by(reader, scope, memory) if memory.origin == "derived" else None,
        made_into=tuple(lineage.made_into(reader, scope, memory.id)) if archived else (),
        set_aside_by=runs.set_aside_by(reader, scope, memory) if archived else None,
        left=left(memory, now=now),
        fades=half_life(memory) is not None,
    )
