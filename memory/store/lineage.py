"""Reads the sources and parents of memories, the rows made from them, and their successors.

Invariant: every read is confined by a scope, or by ids that such a read returned. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory.scope import Scope
from memory.store import memories
from memory.store.database import Reader, Row, walled
from memory.store.memories import COLUMNS, LIVE, Kind, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A message that a memory was learned from, with its session and its id on the platform if that still holds.

    `text` is None once the words are erased.
    """

    message_id: int
    said_at: int
    author_id: int | None
    author_name: str
    text: str | None
    session_key: str
    platform_ref: str | None


def learned_from(reader: Reader, memory_id: int, message_ids: Sequence[int]) -> bool:
    return reader.has(
        "select 1 from memory_sources where memory_id = ? and message_id in (select value from json_each(?)) limit 1",
        (memory_id, message_ids),
    )


def parents(reader: Reader, scope: Scope, memory_id: int) -> list[Memory]:
    rows = reader.all("select parent_id from memory_parents where memory_id = ? order by parent_id", (memory_id,))
    return memories.by_ids(reader, scope, [row["parent_id"] for row in rows])


def merged(reader: Reader, scope: Scope, memory: Memory) -> list[Memory]:
    return [parent for parent in parents(reader, scope, memory.id) if parent.kind == memory.kind]


def parts_of(reader: Reader, memory_ids: Sequence[int]) -> dict[int, set[int]]:
    """Returns the ids of the parts that each row was merged from, directly or by way of others: they say the same."""
    rows = reader.all(
        "with recursive parts(whole, id, kind) as ("
        "   select id, id, kind from memories where id in (select value from json_each(?))"
        " union select w.whole, m.id, m.kind from memory_parents p join parts w on p.memory_id = w.id"
        " join memories m on m.id = p.parent_id and m.kind = w.kind)"
        " select whole, id from parts where id <> whole",
        (memory_ids,),
    )
    found: dict[int, set[int]] = {}
    for row in rows:
        found.setdefault(row["whole"], set()).add(row["id"])
    return found


def merged_into(reader: Reader, scope: Scope, memory: Memory) -> Memory:
    """Returns the row that an archived row was merged into and that still holds; else the row itself."""
    if memory.archived_at is None:
        return memory
    row = reader.one(
        "with recursive whole(id) as (select ?1 union select p.memory_id from memory_parents p"
        "   join whole w on p.parent_id = w.id join memories d on d.id = p.memory_id where d.kind = ?2)"
        " select max(w.id) as id from whole w join memories d on d.id = w.id"
        " where d.superseded_by is null and d.valid_until is null",
        (memory.id, memory.kind),
    )
    return memory if row is None or row["id"] is None else memories.by_id(reader, scope, row["id"]) or memory


@walled
def made_into(reader: Reader, scope: Scope, memory_id: int) -> list[Memory]:
    """Returns the live facts, styles and events that a row was made part of, directly or by way of archived ones.

    Reflections and rows made for prompts replace nothing, so they are left out.
    """
    within = scope.predicate("m", by_id=True)
    return reader.each(
        "with recursive line(id) as (select memory_id from memory_parents where parent_id = ?"
        " union select p.memory_id from memory_parents p join line l on p.parent_id = l.id)"
        f" select {COLUMNS} from memories m join line l on l.id = m.id"
        f" where m.kind in ('fact', 'style', 'event') and {LIVE} and {within.sql} order by m.id",
        (memory_id, *within.parameters),
        memories.from_row,
    )


def holding_now(reader: Reader, scope: Scope, replaced: Sequence[Memory]) -> dict[int, Memory]:
    """Returns the current successor of each replaced row, by the row's id, if there is one in this scope.

    Each row names only the next one, which may have been replaced in turn.
    """
    known = {memory.id: memory for memory in replaced}
    nexts = {memory.superseded_by for memory in replaced}
    while some := memories.by_ids(reader, scope, sorted(one for one in nexts if one is not None and one not in known)):
        known |= {memory.id: memory for memory in some}
        nexts = {memory.superseded_by for memory in some}
    found: dict[int, Memory] = {}
    for memory in replaced:
        last = memory
        for _ in known:
            last = known.get(last.superseded_by or 0, last)
        if last.valid_until is None:
            found[memory.id] = last
    return found


@walled
def taught_by(reader: Reader, scope: Scope, message_ids: Collection[int]) -> list[Memory]:
    within = scope.predicate("m", by_id=True)
    return reader.each(
        # The messages come first: they have taught only a few of an owner's many memories.
        f"select {COLUMNS} from (select distinct memory_id from memory_sources"
        " where message_id in (select value from json_each(?))) s cross join memories m on m.id = s.memory_id"
        f" where {within.sql} order by m.id",
        (message_ids, *within.parameters),
        memories.from_row,
    )


def offspring(reader: Reader, memory_ids: Collection[int]) -> list[Row]:
    """Returns all rows made from these rows, in turn.

    They are rows of id, child, kind and whether a person has `held` on to the child.
    """
    return reader.all(
        "with recursive line(id, child) as ("
        " select p.parent_id, p.memory_id from memory_parents p"
        " where p.parent_id in (select value from json_each(?))"
        " union select l.id, p.memory_id from memory_parents p join line l on p.parent_id = l.child)"
        " select l.id, l.child, m.kind, m.pinned = 1 or m.confirmed = 1 or m.last_reinforced_at > m.created_at as held"
        " from line l join memories m on m.id = l.child",
        (memory_ids,),
    )


def behind(reader: Reader, memory_ids: Collection[int]) -> frozenset[int]:
    rows = reader.ids(
        "select parent_id from memory_parents where memory_id in (select value from json_each(?))", (memory_ids,)
    )
    return frozenset(rows)


def made_from(reader: Reader, memory_ids: Collection[int], *, besides: Collection[Kind]) -> list[int]:
    return reader.ids(
        "select distinct p.memory_id from memory_parents p join memories m on m.id = p.memory_id"
        " where p.parent_id in (select value from json_each(?1))"
        " and p.memory_id not in (select value from json_each(?1)) and m.kind not in (select value from json_each(?2))",
        (memory_ids, besides),
    )


def resting_on(reader: Reader, message_ids: Sequence[int]) -> list[Memory]:
    """Returns the memories, in any scope, that were learned from these messages and from no other words of people.

    The bot's own words don't count: they teach nothing about a person without that person's assent.
    """
    return reader.each(
        f"select {COLUMNS} from memories m where m.id in (select memory_id from memory_sources"
        " where message_id in (select value from json_each(?1))) and not exists"
        " (select 1 from memory_sources o join messages said on said.id = o.message_id where o.memory_id = m.id"
        " and said.role = 'user' and said.erased_at is null"
        " and said.id not in (select value from json_each(?1))) order by m.id",
        (message_ids,),
        memories.from_row,
    )


@walled
def versions(reader: Reader, scope: Scope, memory: Memory) -> list[Memory]:
    """Returns the rows of its kind linked to `memory` by replacement, in either direction, oldest first.

    A row derived from a corrected row ends with it, but is no earlier version of anything.
    """
    within = scope.predicate("m", by_id=True)
    return reader.each(
        "with recursive newer(id, next) as ("
        "   select id, superseded_by from memories where id = ?"
        "   union select m.id, m.superseded_by from memories m join newer n on m.id = n.next),"
        " linked(id) as ("
        "   select id from newer"
        "   union select m.id from memories m join linked l on m.superseded_by = l.id)"
        f" select {COLUMNS} from memories m join linked l on l.id = m.id where m.kind = ? and {within.sql}"
        " order by m.valid_from, m.id",
        (memory.id, memory.kind, *within.parameters),
        memories.from_row,
    )


def sources(reader: Reader, scope: Scope, memory_ids: Sequence[int]) -> dict[int, list[Source]]:
    """Returns the sources of each memory, oldest first: held by the scope's owners, or said elsewhere by its people.

    A person's words about themselves in a group are found in private, but without the words of others around them.
    """
    within = scope.owned("m")
    with reader.within(scope, elsewhere=True):
        rows = reader.all(
            "select s.memory_id, m.id as message_id, m.said_at, m.author_id, m.author_name, m.text, m.erased_at,"
            " m.platform_ref, t.key as session_key, t.id as session_id"
            " from memory_sources s join messages m on m.id = s.message_id join sessions t on t.id = m.session_id"
            " where s.memory_id in (select value from json_each(?))"
            f" and ({within.sql} or m.author_id in (select value from json_each(?))) order by m.id",
            (memory_ids, *within.parameters, scope.selves),
        )
    by_memory: dict[int, list[Source]] = {memory_id: [] for memory_id in memory_ids}
    moved = moved_at(reader, {row["session_id"] for row in rows})
    for row in rows:
        is_here = row["said_at"] >= moved.get(row["session_id"], 0)
        source = {name: row[name] for name in ("message_id", "said_at", "author_id", "author_name", "session_key")}
        by_memory[row["memory_id"]].append(
            Source(
                **source,
                text=row["text"] if row["erased_at"] is None else None,
                platform_ref=row["platform_ref"] if is_here else None,
            )
        )
    return by_memory


def moved_at(reader: Reader, session_ids: Collection[int]) -> dict[int, int]:
    """Returns when the chats of these sessions last got another id, in milliseconds UTC.

    This happens to a group that grows. A platform id of an earlier message belongs to the old chat; in the new one it
    is another message's or unused.
    """
    return reader.pairs(
        "select s.id, max(a.created_at) as moved_at from sessions s join chat_aliases a on a.chat_id = s.chat_id"
        " where s.id in (select value from json_each(?)) group by s.id having count(*) > 1",
        (session_ids,),
    )


def source_ids(reader: Reader, memory_ids: Sequence[int]) -> dict[int, frozenset[int]]:
    rows = reader.all(
        "select memory_id, message_id from memory_sources where memory_id in (select value from json_each(?))",
        (memory_ids,),
    )
    by_memory: dict[int, set[int]] = {memory_id: set() for memory_id in memory_ids}
    for row in rows:
        by_memory[row["memory_id"]].add(row["message_id"])
    return {memory_id: frozenset(ids) for memory_id, ids in by_memory.items()}
