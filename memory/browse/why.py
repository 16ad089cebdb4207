"""The material of a reply: which memories and messages entered it, where each came from, and what it took."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory.browse import talks
from memory.context import Context, confined
from memory.jobs import runs
from memory.jobs.runs import Run
from memory.scope import Scope
from memory.store import chats, judgements, lineage, memories, passages, recalls, usage
from memory.store.chats import Session
from memory.store.database import Reader, Row
from memory.store.fading import half_life, left
from memory.store.history import Message
from memory.store.lineage import Source
from memory.store.memories import Memory
from memory.store.recalls import RecalledEntry
from memory.store.usage import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The memories and messages that entered a reply, and the model usage it took (`spent`).

    `entries` pairs each entry with the memory or message it names (None once forgotten). With an `error` code there was
    a notice instead of an answer. `sources` is keyed by memory id. `places` maps session ids to the keys of the
    sessions in which the named messages were said. `replaced_by` maps the id of each memory that no longer holds to the
    memory that holds instead. For derived memories, `made_of` holds the memories they were made of and `made_by` the
    run of the night job that made them, both by memory id. `judged` counts those who liked and disliked the reply.
    `portions` are the tokens of each part of the request; empty if no model was asked. `answered_at` is in milliseconds
    UTC.
    """

    turn_id: int
    answered_at: int
    error: str | None
    entries: tuple[tuple[RecalledEntry, Memory | Message | None], ...]
    sources: Mapping[int, Sequence[Source]]
    places: Mapping[int, str]
    replaced_by: Mapping[int, Memory]
    made_of: Mapping[int, Sequence[Memory]]
    made_by: Mapping[int, Run]
    spent: tuple[Spent, ...]
    judged: tuple[int, int]
    portions: Mapping[str, int]


#: The turns that are over. With an error, a code, such a turn brought a notice instead of an answer.
_OVER: Final = (
    "select t.id as turn_id, t.error, t.portions, coalesce(t.finished_at, t.started_at) as finished_at from turns t"
    " where t.state in ('done', 'failed')"
)


def why(reader: Reader, context: Context, *, message: str | None = None, turn_id: int | None = None) -> Why | None:
    """Returns the material of the last reply in this session, or of the reply that the platform's `message` belongs
    to.

    `message` may be the reply itself or the message it answers. With `turn_id` it is the reply of that turn, in any
    private conversation of the person. Returns None if there is no such reply.
    """
    session = context.session
    if turn_id is not None:
        there = talks.session_of_turn(reader, confined(reader, context).scope, turn_id)
        if there is None:
            return None
        session = chats.session_by_id(reader, there)
    turn = _answered(reader, session, message, turn_id)
    if turn is None:
        return None
    entries = recalls.of_turn(reader, turn["turn_id"])
    named = {item: [e.item_id for e in entries if e.item == item] for item in ("memory", "message")}
    scope = confined(reader, context).scope
    known = memories.by_ids(reader, scope, named["memory"])
    messages = passages.by_ids(reader, scope, named["message"])
    moved = lineage.moved_at(reader, {message.session_id for message in messages})
    messages = [
        replace(message, platform_ref=None) if message.said_at < moved.get(message.session_id, 0) else message
        for message in messages
    ]
    rows: dict[tuple[str, int], Memory | Message] = {("memory", memory.id): memory for memory in known}
    rows |= {("message", message.id): message for message in messages}
    derived = [row for row in known if row.origin == "derived" and row.kind not in ("profile", "directive")]
    makers = {row.id: runs.made_by(reader, scope, row) for row in derived}
    return Why(
        turn_id=turn["turn_id"],
        answered_at=turn["finished_at"],
        error=turn["error"],
        entries=tuple((entry, rows.get((entry.item, entry.item_id))) for entry in entries),
        sources=lineage.sources(reader, scope, [memory.id for memory in known]),
        places={message.session_id: chats.session_by_id(reader, message.session_id).key for message in messages},
        replaced_by=lineage.holding_now(reader, scope, [m for m in known if m.valid_until is not None]),
        made_of={row.id: lineage.parents(reader, scope, row.id) for row in derived},
        made_by={memory_id: run for memory_id, run in makers.items() if run is not None},
        spent=tuple(usage.of_turn(reader, turn["turn_id"])),
        judged=judgements.of_turn(reader, turn["turn_id"]),
        portions=json.loads(turn["portions"] or "{}"),
    )


def _answered(reader: Reader, session: Session, platform_ref: str | None, turn_id: int | None) -> Row | None:
    """Returns the turn whose answer, or one of whose messages, has this id on the platform; without an id the newest.

    With `turn_id` it is that turn. Returns None if this session has no such turn.
    """
    if turn_id is not None:
        return reader.one(_OVER + " and t.session_id = ? and t.id = ?", (session.id, turn_id))
    if platform_ref is None:
        return reader.one(_OVER + " and t.session_id = ? order by t.id desc limit 1", (session.id,))
    return reader.one(
        _OVER + " and t.session_id = ?1 and t.id = coalesce((select max(o.turn_id) from outbox o"
        " where o.session_key = ?2 and o.platform_ref = ?3 and o.turn_id is not null),"
        " (select max(m.turn_id) from messages m where m.session_id = ?1 and m.platform_ref = ?3))",
        (session.id, session.key, platform_ref),
    )


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
