"""Rows of every kind of memory, with their sources, dates and successors.

Invariants: Every read and change is confined by a scope's predicate or by ids that such a read returned. Nothing is
overwritten: a replaced row keeps its dates and names its successor. Each write leaves a line in the change log, which
feeds the indexes.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from memory import keys
from memory.errors import NotFound
from memory.scope import Scope
from memory.store import documents, entities
from memory.store.database import Parameter, Reader, Row, Transaction, Value, walled
from memory.text.times import clock

Kind: TypeAlias = Literal["profile", "directive", "fact", "style", "reflection", "event"]
#: The tables that link a memory with its source messages, and with the rows it was made from.
Links: TypeAlias = Literal["memory_sources", "memory_parents"]
Origin: TypeAlias = Literal["extracted", "told", "admin", "imported", "derived"]
#: `unsure` of a source that was erased at a person's wish: it is a mark and tells nothing.
_ERASED: Final = 2


#: The rows with one word up to which it tells which rows a draft may touch.
_MOST_NEAR: Final = 64
#: The most uses that count when memories are put in order.
_MOST_USES: Final = 5
#: The confidence from which a memory counts as sure. Below it, it is shown as unsure and closes no other.
SURE: Final = 0.6
#: The condition for a row that holds now, on memories called m.
LIVE: Final = "m.superseded_by is null and m.archived_at is null and m.valid_until is null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory about to be written. `agent_id` is set if it stays with one agent."""

    kind: Kind
    owner_id: int
    category: str
    key: str
    value: str
    importance: int
    confidence: float
    origin: Origin
    learned_at: int
    local_date: str
    author_id: int | None = None
    subject_id: int | None = None
    subject: str = ""
    agent_id: int | None = None
    topic: str = ""
    tags: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    valid_from: int | None = None
    valid_until: int | None = None
    superseded_by: int | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Draft):
    """A memory. Times are milliseconds UTC; `local_date` is the person's date when it was said.

    `subject_name` is the platform's name of the person it is about; `flags` are the guard's findings in the value.
    """

    id: int
    short_id: str
    subject_name: str | None
    strength: float
    valid_from: int
    access_count: int
    reinforced_count: int
    last_reinforced_at: int
    pinned: bool
    archived_at: int | None

    @property
    def live(self) -> bool:
        return self.superseded_by is None and self.archived_at is None and self.valid_until is None

    def day(self, at: int, timezone: str = "UTC") -> str:
        """Returns the person's date at a time: as it was where they said it, or else in a time zone."""
        return self.local_date if at == self.learned_at else clock.local_date(at, timezone).isoformat()

    @property
    def unsure(self) -> bool:
        """True if the words may not mean this, and nobody has confirmed it."""
        return self.confidence < SURE and not self.confirmed

    @property
    def follows(self) -> bool:
        """True if the row is made anew whenever the memories it derives from change, so nobody edits it directly."""
        return self.kind in ("profile", "directive") and self.origin == "derived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The numbers of memories, except those made for every prompt: live ones by `kinds`, and `past` ones.

    `since` is the time at which the oldest live one was told, in milliseconds UTC.
    """

    kinds: dict[str, int]
    past: int
    since: int | None


def draft_of(memory: Memory, **changed: Any) -> Draft:
    kept = {field.name: getattr(memory, field.name) for field in fields(Draft)}
    return Draft(**{**kept, "confirmed": False, "valid_until": None, "superseded_by": None, **changed})


def insert(tx: Transaction, draft: Draft, *, new_id: Callable[[], str], now: int) -> int:
    short_id = next(
        candidate
        for candidate in iter(new_id, None)
        if not tx.has("select 1 from memories where short_id = ?", (candidate,))
    )
    columns: dict[str, Value] = {
        **{field.name: getattr(draft, field.name) for field in fields(Draft)},
        "short_id": short_id,
        "tags": tag_list(draft.tags),
        "flags": json.dumps(draft.flags),
        "created_at": now,
        "valid_from": draft.learned_at if draft.valid_from is None else draft.valid_from,
        "last_reinforced_at": draft.learned_at,
        "confirmed": int(draft.confirmed),
    }
    memory_id = tx.insert(
        f"insert into memories ({', '.join(columns)}) values ({', '.join('?' * len(columns))})", (*columns.values(),)
    )
    _changed(tx, memory_id)
    return memory_id


def tag_list(tags: Iterable[str]) -> str:
    return json.dumps(list(dict.fromkeys(tags))[: keys.TAGS_LIMIT], ensure_ascii=False)


def tags_seen(memory: Memory, scope: Scope) -> tuple[str, ...]:
    """Returns the tags that a speaker is shown: those of their own rows. Others in a group never see them."""
    return memory.tags if scope.is_own(memory.owner_id, memory.author_id) else ()


def add_sources(tx: Transaction, memory_id: int, message_ids: Iterable[int], *, unsure: bool = False) -> None:
    for message_id in message_ids:
        tx.run(
            "insert into memory_sources (memory_id, message_id, unsure) values (?, ?, ?)"
            " on conflict (memory_id, message_id) do update set"
            " unsure = case when memory_sources.unsure < excluded.unsure then memory_sources.unsure"
            " else excluded.unsure end",
            (memory_id, message_id, int(unsure)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MemoryTelling:
    """A message of a person, said `at` (milliseconds UTC), that tells a memory, or with `unsure` may mean it."""

    at: int
    message_id: int
    unsure: bool


def tellings(reader: Reader, memory_ids: Collection[int]) -> dict[int, list[MemoryTelling]]:
    rows = reader.all(
        "select s.memory_id, s.message_id, s.unsure, m.said_at from memory_sources s"
        " join messages m on m.id = s.message_id where m.role = 'user' and s.unsure < ?"
        " and s.memory_id in (select value from json_each(?)) order by m.said_at, m.id",
        (_ERASED, memory_ids),
    )
    told: dict[int, list[MemoryTelling]] = {memory_id: [] for memory_id in memory_ids}
    for row in rows:
        telling = MemoryTelling(at=row["said_at"], message_id=row["message_id"], unsure=bool(row["unsure"]))
        told[row["memory_id"]].append(telling)
    return told


def share_sources(tx: Transaction, memory_id: int, of: Collection[int]) -> None:
    """Gives a memory the sources of others. A message that tells one of them plainly tells it plainly."""
    tx.run(
        "insert into memory_sources (memory_id, message_id, unsure) select ?1, message_id, min(unsure)"
        " from memory_sources where memory_id in (select value from json_each(?2)) group by message_id",
        (memory_id, of),
    )


def move_sources(tx: Transaction, old_id: int, new_id: int, message_ids: Collection[int]) -> None:
    add_sources(tx, new_id, message_ids, unsure=True)
    unlink(tx, [(old_id, message_id) for message_id in message_ids], table="memory_sources")


def untell(tx: Transaction, message_ids: Collection[int], *, erased: bool = False) -> list[Memory]:
    """Counts messages no longer as tellings of the rows that others tell, and returns these rows.

    The messages say something else now and are no sources any more. If they are `erased`, a mark of each is left.
    """
    links = tx.all(
        "select memory_id, message_id, unsure from memory_sources s"
        " where unsure < ?1 and message_id in (select value from json_each(?2)) and exists"
        " (select 1 from memory_sources o where o.memory_id = s.memory_id and o.unsure < ?1"
        " and o.message_id not in (select value from json_each(?2)))",
        (_ERASED, message_ids),
    )
    for memory_id, message_id in ((link["memory_id"], link["message_id"]) for link in links if erased):
        tx.run(
            "update memory_sources set unsure = ? where memory_id = ? and message_id = ?",
            (_ERASED, memory_id, message_id),
        )
    if not erased:
        unlink(tx, [(link["memory_id"], link["message_id"]) for link in links], table="memory_sources")
    told = [link["memory_id"] for link in links if not link["unsure"]]
    tx.run(
        "update memories set reinforced_count = reinforced_count - 1 where reinforced_count > 0"
        " and id in (select value from json_each(?))",
        (told,),
    )
    return of_ids(tx, [link["memory_id"] for link in links])


def set_parents(tx: Transaction, memory_id: int, parent_ids: Iterable[int]) -> None:
    tx.run("delete from memory_parents where memory_id = ?", (memory_id,))
    for parent_id in parent_ids:
        tx.run("insert into memory_parents values (?, ?)", (memory_id, parent_id))


def supersede(tx: Transaction, old_id: int, new_id: int | None, *, at: int | None) -> None:
    set_values(tx, old_id, {"superseded_by": new_id, "valid_until": at})
    if new_id is not None:
        _take_tags_over(tx, old_id, new_id)


def _take_tags_over(tx: Transaction, old_id: int, new_id: int) -> None:
    """Gives a value the tags of the one that it replaces under the same key, unless somebody else told that."""
    rows = {row.id: row for row in of_ids(tx, [old_id, new_id])}
    old, new = rows.get(old_id), rows.get(new_id)
    if old is None or new is None or not old.tags or old.key != new.key:
        return
    if old.owner_id != new.owner_id or old.author_id == new.author_id:
        set_values(tx, new_id, {"tags": tag_list([*new.tags, *old.tags])})


def close(tx: Transaction, memory_id: int, *, at: int) -> None:
    set_values(tx, memory_id, {"valid_until": at})


def reopen(tx: Transaction, scope: Scope, *, at: int) -> list[Memory]:
    ended = _seen(tx, scope, "m.valid_until = ? and m.superseded_by is null", (at,))
    own = [memory.id for memory in ended if memory.owner_id in scope.own or memory.author_id in scope.speakers]
    for memory_id in own:
        set_values(tx, memory_id, {"valid_until": None})
        _join(tx, memory_id)
    return by_ids(tx, scope, own)


def reinforce(tx: Transaction, memory_id: int, *, at: int, confidence: float = 0.0) -> None:
    """Counts a repeated telling: the memory becomes fresh, as sure as this telling, and leaves the archive."""
    tx.run(
        "update memories set reinforced_count = reinforced_count + 1, confidence = case when confidence < ?1 then ?1"
        " else confidence end,"
        f" last_reinforced_at = {_LATER.format('?2')}, archived_at = null where id = ?3",
        (confidence, at, memory_id),
    )
    _changed(tx, memory_id)


def stand_for(tx: Transaction, memory_id: int, merged: Sequence[Memory]) -> None:
    set_parents(tx, memory_id, [memory.id for memory in merged])
    tx.run(
        "update memories set reinforced_count = ?, last_reinforced_at = ? where id = ?",
        (
            sum(1 + memory.reinforced_count for memory in merged) - 1,
            max(memory.last_reinforced_at for memory in merged),
            memory_id,
        ),
    )


def confirm(tx: Transaction, memory_id: int, *, at: int) -> None:
    """Marks a memory as confirmed by the person. One that was unsure is told plainly for the first time by that."""
    tx.run(
        "update memories set confirmed = 1, learned_at = case when confidence < ?3 and confirmed = 0 then ?1 else"
        f" learned_at end, confidence = 1.0, last_reinforced_at = {_LATER.format('?1')}, archived_at = null"
        " where id = ?2",
        (at, memory_id, SURE),
    )


def use(tx: Transaction, memory_id: int, *, at: int) -> None:
    tx.run(
        "update memories set access_count = access_count + 1, last_access_at = ?1,"
        f" last_reinforced_at = {_LATER.format('?1')} where id = ?2",
        (at, memory_id),
    )


def part(tx: Transaction, merged: Sequence[Memory]) -> None:
    for memory in merged:
        set_values(tx, memory.id, {"archived_at": None})


def outdate(tx: Transaction, memory: Memory, *, kinds: Collection[Kind], by: int | None, at: int) -> list[Memory]:
    """Ends the rows of `kinds` derived from a row, in turn, because that row was corrected or stands by itself again.

    `by` becomes their successor, if given. Rows that a person has pinned or confirmed stay. The other parents, which
    were archived when the ended rows were made, stand by themselves again; events among them are compressed anew.
    Returns all changed rows in their earlier state.
    """
    ended: dict[int, Memory] = {}
    line = [memory.id]
    while line:
        made = tx.ids(
            "select memory_id from memory_parents where parent_id in (select value from json_each(?))", (line,)
        )
        derived = [
            each
            for each in of_ids(tx, made)
            if each.kind in kinds and each.valid_until is None and not (each.pinned or each.confirmed)
        ]
        line = [each.id for each in derived if each.id not in ended]
        ended |= {each.id: each for each in derived}
    for memory_id in ended:
        if by is None:
            close(tx, memory_id, at=at)
        else:
            supersede(tx, memory_id, by, at=at)
    back: dict[int, Memory] = {}
    # No row is archived for a reflection.
    standing = [each.id for each in ended.values() if each.live and each.kind != "reflection"]
    while standing:
        rows = tx.all(
            "select parent_id from memory_parents where memory_id in (select value from json_each(?))", (standing,)
        )
        behind = of_ids(tx, [row["parent_id"] for row in rows if row["parent_id"] != memory.id])
        standing = [each.id for each in behind if each.id in ended]
        back |= {each.id: each for each in behind if each.id not in ended and each.valid_until is None}
    part(tx, list(back.values()))
    tx.run(
        "update memories set compressed_at = null where kind = 'event' and id in (select value from json_each(?))",
        (back,),
    )
    return [*ended.values(), *back.values()]


def pin(tx: Transaction, memory_id: int, *, pinned: bool) -> None:
    tx.run(
        "update memories set pinned = ?1, archived_at = case when ?1 = 0 then archived_at end where id = ?2",
        (int(pinned), memory_id),
    )
    _changed(tx, memory_id)


def archive(tx: Transaction, memory_ids: Sequence[int], *, now: int) -> None:
    for memory_id in memory_ids:
        set_values(tx, memory_id, {"archived_at": now})


@walled
def mark_compressed(tx: Transaction, scope: Scope, memory_ids: Collection[int], *, now: int) -> None:
    within = scope.predicate("m")
    tx.run(
        f"update memories as m set compressed_at = ? where m.id in (select value from json_each(?)) and {within.sql}",
        (now, memory_ids, *within.parameters),
    )


def mark_enriched(tx: Transaction, memory_ids: Sequence[int], *, now: int) -> None:
    tx.run("update memories set enriched_at = ? where id in (select value from json_each(?))", (now, memory_ids))


def mark_compared(tx: Transaction, memory_ids: Collection[int], *, now: int) -> None:
    tx.run("update memories set compared_at = ? where id in (select value from json_each(?))", (now, memory_ids))


def touch(tx: Transaction, memory_ids: Iterable[int], *, now: int) -> None:
    """Counts memories that entered a reply; this does not refresh them against decay.

    Turns of other sessions may count the same rows at the same time, so all do it in one order.
    """
    for memory_id in sorted(memory_ids):
        tx.run("update memories set access_count = access_count + 1, last_access_at = ? where id = ?", (now, memory_id))


def delete(tx: Transaction, memory_ids: Sequence[int]) -> list[int]:
    """Deletes rows and everything derived from them; returns the ids of all deleted rows.

    A row that a deleted one had replaced stays closed and takes over its successor, if any: a person whose new home is
    forgotten must not move back into the old one.
    """
    doomed = tx.ids(_GOING + " select id from going", (memory_ids,))
    entities.release(tx, doomed)
    for memory_id in doomed:
        relinked = tx.ids(
            "update memories set superseded_by = (select superseded_by from memories where id = ?1)"
            " where superseded_by = ?1 returning id",
            (memory_id,),
        )
        for relinked_id in relinked:
            _changed(tx, relinked_id)
        tx.run("delete from memories where id = ?", (memory_id,))
        _changed(tx, memory_id)
    return doomed


def take_apart(tx: Transaction, memory_ids: Sequence[int], *, forgotten: Collection[int] = ()) -> list[int]:
    """Deletes rows and everything derived from them, and brings other parents of derived rows back, to compress anew.

    No row is archived for a profile slot, directive or reflection, so nothing comes back for them. Nor do the events
    behind an event in `forgotten`: they would tell the same again. Returns the ids of all deleted rows.
    """
    others = _other_parents(tx, memory_ids, forgotten=forgotten)
    gone = delete(tx, memory_ids)
    for row in others:
        reopened = ", superseded_by = null, valid_until = null" if row["replaced"] else ""
        tx.run(
            f"update memories set archived_at = null, compressed_at = null{reopened} where id = ?", (row["parent_id"],)
        )
        _changed(tx, row["parent_id"])
    return gone


def made_of(reader: Reader, memory_ids: Sequence[int]) -> tuple[list[Memory], list[Memory]]:
    """Returns the derived rows that are deleted with forgotten rows, and their other parents, which come back."""
    derived = set(reader.ids(_GOING + " select id from going", (memory_ids,))).difference(memory_ids)
    others = _other_parents(reader, memory_ids, forgotten=memory_ids)
    return of_ids(reader, list(derived)), of_ids(reader, [row["parent_id"] for row in others])


def _other_parents(reader: Reader, memory_ids: Sequence[int], *, forgotten: Collection[int]) -> list[Row]:
    return reader.all(
        _GOING + " select distinct p.parent_id, m.superseded_by in (select id from going) as replaced"
        " from memory_parents p join memories d on d.id = p.memory_id join memories m on m.id = p.parent_id"
        " where p.memory_id in (select id from going) and d.kind not in ('profile', 'directive', 'reflection')"
        # A corrected or replaced row stood for its parents to the end.
        " and d.superseded_by is null and d.valid_until is null"
        " and p.parent_id not in (select id from going)"
        " and (m.kind <> 'event' or p.memory_id not in (select value from json_each(?)))",
        (memory_ids, forgotten),
    )


def retract(tx: Transaction, memory_ids: Sequence[int]) -> None:
    """Removes rows that should never have been written; the rows they replaced hold for as long as they would have.

    An unsure row would have been ended by no other value. A guess whose tellings one of the rows took over goes, too.
    """
    emptied = tx.ids(
        "select id from memories m where m.superseded_by in (select value from json_each(?)) and m.confidence < ?"
        " and m.origin = 'extracted' and m.confirmed = 0"
        " and not exists (select 1 from memory_sources s where s.memory_id = m.id)",
        (memory_ids, SURE),
    )
    memory_ids = [*memory_ids, *emptied]
    for memory_id in memory_ids:
        reopened = tx.ids(
            "update memories set (valid_until, superseded_by) = (select"
            " case when stands then null else g.valid_until end, case when stands then null else g.superseded_by end"
            " from (select x.*, memories.confidence < ?2 and memories.key = x.key as stands"
            "   from memories x where x.id = ?1) g) where superseded_by = ?1 returning id",
            (memory_id, SURE),
        )
        for reopened_id in reopened:
            _changed(tx, reopened_id)
            _join(tx, reopened_id)
    take_apart(tx, memory_ids)


def _join(tx: Transaction, memory_id: int) -> None:
    """Archives the parts of a row that is valid again: they had come back when the row was replaced."""
    joined = tx.ids(
        "update memories set archived_at = d.created_at from memories d where d.id = ?1 and memories.kind = d.kind"
        " and d.superseded_by is null and d.valid_until is null and memories.archived_at is null"
        " and memories.pinned = 0 and memories.confirmed = 0"
        " and memories.id in (select parent_id from memory_parents where memory_id = ?1) returning memories.id",
        (memory_id,),
    )
    for joined_id in joined:
        _changed(tx, joined_id)


def of_owner(reader: Reader, owner_id: int) -> list[int]:
    return reader.ids("select id from memories where owner_id = ?", (owner_id,))


def learned_until(reader: Reader, memory_ids: Sequence[int], at: int) -> list[int]:
    return reader.ids(
        "select id from memories where created_at <= ? and id in (select value from json_each(?))", (at, memory_ids)
    )


def count_all(reader: Reader) -> int:
    return reader.number("select count(*) from memories")


def some_imported(reader: Reader, import_id: int, *, limit: int) -> list[int]:
    return reader.ids("select id from memories where import_id = ? order by id desc limit ?", (import_id, limit))


def mark_imported(tx: Transaction, memory_id: int, import_id: int) -> None:
    tx.run("update memories set import_id = ? where id = ?", (import_id, memory_id))


def name_successor(tx: Transaction, memory_id: int, successor_id: int) -> None:
    """Names the successor of a row that has none yet; the dates of both stay."""
    tx.run("update memories set superseded_by = ? where id = ? and superseded_by is null", (successor_id, memory_id))


def set_values(tx: Transaction, memory_id: int, values: Mapping[str, Value]) -> None:
    """Sets columns of a row to values that were recorded elsewhere, by the column's name."""
    marks = ", ".join(f"{name} = ?" for name in values)
    tx.run(f"update memories set {marks} where id = ?", (*values.values(), memory_id))
    _changed(tx, memory_id)


def count_closed_by(reader: Reader, memory_id: int) -> int:
    return reader.number("select count(*) from memories where superseded_by = ? and kind = 'fact'", (memory_id,))


@walled
def values(reader: Reader, scope: Scope) -> list[Row]:
    within = scope.predicate("m")
    return reader.all(f"select m.kind, m.key, m.subject, m.value from memories m where {within.sql}", within.parameters)


@walled
def with_key(reader: Reader, scope: Scope, draft: Draft) -> list[Row]:
    within = scope.predicate("m")
    return reader.all(
        "select m.id, m.value, m.import_id, m.valid_until, m.local_date from memories m"
        f" where m.kind = '{draft.kind}' and m.key = ? and m.subject = ? and {within.sql}",
        (draft.key, draft.subject, *within.parameters),
    )


def has_heir(reader: Reader, memory_id: int, *, besides: Collection[int]) -> bool:
    """Returns whether another live row, except `besides`, holds in the place of this one."""
    return reader.has(
        "select 1 from memories old join memories m on m.owner_id = old.owner_id and m.kind = old.kind"
        " and m.key = old.key and m.agent_id is not distinct from old.agent_id and m.subject = old.subject"
        " and m.subject_id is not distinct from old.subject_id where old.id = ? and m.valid_until is null and"
        " m.archived_at is null"
        " and m.id not in (select value from json_each(?))",
        (memory_id, [memory_id, *besides]),
    )


def unlink(tx: Transaction, pairs: Iterable[tuple[int, int]], *, table: Links) -> None:
    for pair in pairs:
        tx.run(f"delete from {table} where memory_id = ? and {_LINKED[table][0]} = ?", pair)


def relink(tx: Transaction, pairs: Iterable[tuple[int, int]], *, table: Links) -> None:
    # The only sources that a job takes away are those that may mean a memory; one may have been erased since.
    columns, values = f"memory_id, {_LINKED[table][0]}", "?, id"
    if table == "memory_sources":
        columns, values = f"{columns}, unsure", f"{values}, case when erased_at is null then 1 else {_ERASED} end"
    for pair in pairs:
        tx.run(
            f"insert into {table} ({columns}) select {values} from {_LINKED[table][1]} where id = ?"
            " on conflict do nothing",
            pair,
        )


def of_ids(reader: Reader, memory_ids: Sequence[int]) -> list[Memory]:
    """Returns these rows regardless of scope: for erasing, not for showing."""
    return reader.each(
        f"select {COLUMNS} from memories m where m.id in (select value from json_each(?)) order by m.id",
        (memory_ids,),
        from_row,
    )


def by_id(reader: Reader, scope: Scope, memory_id: int) -> Memory | None:
    return next(iter(_seen(reader, scope, "m.id = ?", (memory_id,), by_id=True)), None)


def by_short_id(reader: Reader, scope: Scope, short_id: str) -> Memory:
    """Returns the memory with this short id. Raises `NotFound` if it is unknown and, alike, if it is out of scope."""
    for row in _seen(reader, scope, "m.short_id = ?", (short_id,), by_id=True):
        return row
    raise NotFound(f"No memory {short_id} here.")


def by_short_ids(reader: Reader, scope: Scope, short_ids: Sequence[str]) -> list[Memory]:
    return _seen(reader, scope, "m.short_id in (select value from json_each(?))", (short_ids,), by_id=True)


def short_id(reader: Reader, memory_id: int) -> str | None:
    return reader.text("select short_id from memories where id = ?", (memory_id,))


def by_ids(reader: Reader, scope: Scope, memory_ids: Sequence[int]) -> list[Memory]:
    if not memory_ids:
        return []
    rows = _seen(reader, scope, "m.id in (select value from json_each(?))", (memory_ids,), by_id=True)
    seen = {memory.id: memory for memory in rows}
    return [seen[memory_id] for memory_id in memory_ids if memory_id in seen]


def current(reader: Reader, scope: Scope, kinds: Sequence[Kind], *, limit: int, offset: int = 0) -> list[Memory]:
    """Returns live rows, the ones that matter most first: pinned, then important, then used, then freshly told.

    Only a few uses count: a memory that is in every prompt anyway must not stay there for that reason.
    """
    marks = ", ".join("?" for _ in kinds)
    return _seen(
        reader,
        scope,
        f"m.kind in ({marks}) and {LIVE} order by {_WEIGHTIEST} limit ? offset ?",
        (*kinds, limit, offset),
    )


def current_of_owner(reader: Reader, scope: Scope, owner_id: int, kind: Kind) -> list[Memory]:
    """Returns the live rows of one kind and owner that describe the owner, the ones that matter most first."""
    chosen = f"m.owner_id = ? and m.kind = '{kind}' and m.subject = '' and {LIVE} order by {_STEADY}"
    return _seen(reader, scope, chosen, (owner_id,))


@walled
def count(reader: Reader, scope: Scope) -> int:
    within = scope.predicate("m")
    return reader.number(
        "select count(*) as n from memories m where m.kind in ('fact', 'style', 'event', 'reflection')"
        f" and {within.sql}",
        within.parameters,
    )


@walled
def held(reader: Reader, scope: Scope) -> Held:
    within = scope.predicate("m")
    rows = reader.all(
        f"select m.kind, {LIVE} as live, count(*) as n, min(m.learned_at) as at from memories m where {within.sql}"
        " group by m.kind, live order by n desc, m.kind",
        within.parameters,
    )
    listed = [row for row in rows if row["kind"] not in ("profile", "directive")]
    return Held(
        kinds={row["kind"]: int(row["n"]) for row in listed if row["live"]},
        past=sum(int(row["n"]) for row in listed if not row["live"]),
        since=min((int(row["at"]) for row in rows if row["live"]), default=None),
    )


@walled
def older_reflections(reader: Reader, scope: Scope) -> list[int]:
    """Returns the ids of all reflections of a scope except the latest current one: only that describes the present."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.superseded_by is null and m.archived_at is null and m.valid_until is null as live"
        f" from memories m where m.kind = 'reflection' and {within.sql}"
        " order by live desc, m.learned_at desc, m.id desc",
        within.parameters,
    )
    return [int(row["id"]) for n, row in enumerate(rows) if n or not row["live"]]


@walled
def last_reflection(reader: Reader, scope: Scope) -> int | None:
    """Returns the time (milliseconds UTC) at which a job made the newest reflection that still exists in a scope."""
    within = scope.predicate("m")
    return reader.id(
        "select max(m.learned_at) as at from memories m where m.kind = 'reflection' and m.origin = 'derived'"
        f" and {within.sql}",
        within.parameters,
    )


def newer_than(reader: Reader, scope: Scope, *, since: int, limit: int) -> list[Memory]:
    chosen = f"m.kind in ('fact', 'style') and m.created_at >= ? and {LIVE} order by m.id desc limit ?"
    return _seen(reader, scope, chosen, (since, limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whom or what rows are about: in words, or an identity, among those of some owners.

    `selves` are identities whose rows about themselves count as well, and `names` those by which one of them was named.
    """

    kind: Kind
    owner_ids: tuple[int, ...]
    subject: str
    subject_id: int | None
    selves: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def condition(self) -> tuple[str, tuple[Parameter, ...]]:
        sql = (
            f"m.owner_id in (select value from json_each(?)) and m.kind = '{self.kind}' and ((m.subject = ?"
            " and m.subject_id is not distinct from ?) or (m.subject = '' and m.subject_id in"
            " (select value from json_each(?))) or (m.subject_id is null and m.author_id in"
            " (select value from json_each(?)) and m.subject in (select value from json_each(?))))"
        )
        return sql, (self.owner_ids, self.subject, self.subject_id, self.selves, self.selves, self.names)


def of_subject(reader: Reader, scope: Scope, about: Subject, *, key: str | None = None) -> list[Memory]:
    sql, parameters = about.condition
    keyed = "" if key is None else " and m.key = ?"
    return _seen(
        reader, scope, f"{sql}{keyed} order by m.valid_from, m.id", (*parameters, *(() if key is None else (key,)))
    )


def single_valued(reader: Reader, scope: Scope) -> list[Memory]:
    return _seen(
        reader,
        scope,
        "m.kind = 'fact' and m.owner_id in (select value from json_each(?))"
        " and (m.key like 'favourite-%' or m.key in (select value from json_each(?))) order by m.id",
        (scope.own, keys.SINGLE_VALUED),
    )


def near(reader: Reader, scope: Scope, about: Subject, draft: Draft, terms: Sequence[str]) -> list[Memory]:
    """Returns rows about a subject that a draft may repeat or deny, closed ones too, by validity.

    Those are rows with one of `terms`, by the word index, rows that it has not read yet, and rows of the draft's key
    with its value or, if the key has one value at a time, with any.
    """
    sql, parameters = about.condition
    held: set[int] = set()
    for term in terms:
        ids = reader.ids(
            "select doc / 2 as id from postings where partition in (select value from json_each(?))"
            f" and term = ? and doc % 2 = 0 limit {_MOST_NEAR + 1}",
            (about.owner_ids, term),
        )
        if len(ids) <= _MOST_NEAR:
            held.update(ids)
    held.update(reader.ids("select distinct doc / 2 as id from changes where doc % 2 = 0"))
    found = _seen(reader, scope, f"m.id in (select value from json_each(?)) and {sql}", (held, *parameters), by_id=True)
    keyed = _seen(
        reader,
        scope,
        f"{sql} and m.key = ? and (? = 1 or m.value = ?)",
        (*parameters, draft.key, int(keys.is_single_valued(draft.key)), draft.value),
    )
    rows = {row.id: row for row in (*found, *keyed)}
    return sorted(rows.values(), key=lambda row: (row.valid_from, row.id))


def derived_beside(reader: Reader, scope: Scope, memory: Memory) -> list[Memory]:
    return _seen(
        reader,
        scope,
        "m.owner_id = ? and m.kind = 'fact' and m.key = ? and m.category = ? and m.origin = 'derived' and m.id <> ?"
        f" and {LIVE} order by m.id",
        (memory.owner_id, memory.key, memory.category, memory.id),
    )


def between(
    reader: Reader, scope: Scope, first: int, last: int, *, limit: int, besides: Collection[int] = ()
) -> list[Memory]:
    """Returns live facts, events and reflections told from `first` up to, not including, `last`, the weightiest first.

    Rows with an id in `besides` are left out.
    """
    return _seen(
        reader,
        scope,
        f"m.kind in ('fact', 'event', 'reflection') and m.learned_at >= ? and m.learned_at < ? and {LIVE}"
        " and m.id not in (select value from json_each(?)) order by m.importance desc, m.id limit ?",
        (first, last, besides, limit),
    )


def containing(
    reader: Reader, scope: Scope, words: Sequence[str], *, limit: int, besides: Collection[int] = ()
) -> list[Memory]:
    """Returns rows with any of `words` as a substring of value, key, subject or topic; this search needs no index.

    With a `limit` of -1 returns all of them. Rows with an id in `besides` are left out.
    """
    # The lower-case spelling of a word finds the others, and a word finds the longer ones that contain it.
    folded = {word.translate(_ASCII_LOWER) for word in words}
    least = [word for word in folded if not any(other in word for other in folded - {word})]
    if not least:
        return []
    said = "lower(m.key || ' ' || m.value || ' ' || m.subject || ' ' || m.topic)"
    held = " or ".join(f"instr({said}, ?) > 0" for _ in least)
    return _seen(
        reader,
        scope,
        f"m.kind in ('fact', 'style', 'event', 'reflection') and ({held})"
        " and m.id not in (select value from json_each(?)) order by m.importance desc, m.id desc limit ?",
        (*least, besides, limit),
    )


@walled
def _seen(
    reader: Reader, scope: Scope, chosen: str, parameters: Sequence[Parameter], *, by_id: bool = False
) -> list[Memory]:
    """Returns the rows that a scope sees and `chosen`, a condition on m with an optional order, selects.

    A kind stands in the text of `chosen`: SQLite compares it with the conditions of the indexes, and a statement with
    a bound one is prepared at every run.
    """
    within = scope.predicate("m", by_id=by_id)
    return reader.each(
        f"select {COLUMNS} from memories m where {within.sql} and {chosen}", (*within.parameters, *parameters), from_row
    )


def _changed(tx: Transaction, memory_id: int) -> None:
    documents.changed(tx, documents.of_memory(memory_id))


#: Folds letters as the lower() of SQL does.
_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
#: The later of two times: that of a row's last telling, and another.
_LATER: Final = "case when last_reinforced_at < {0} then {0} else last_reinforced_at end"
#: The order of a profile's facts, which uses don't change: using a fact must not make the profile anew.
_STEADY: Final = "m.pinned desc, m.importance desc, m.last_reinforced_at desc, m.id desc"
_WEIGHTIEST: Final = (
    "m.pinned desc, m.importance desc, case when m.access_count + m.reinforced_count"
    f" < {_MOST_USES} then m.access_count + m.reinforced_count else {_MOST_USES} end desc,"
    " m.last_reinforced_at desc, m.id desc"
)
#: The other side of each link: its column and its table.
_LINKED: Final[dict[Links, tuple[str, str]]] = {
    "memory_sources": ("message_id", "messages"),
    "memory_parents": ("parent_id", "memories"),
}
#: The columns of `from_row`, of memories called m.
COLUMNS: Final = ", ".join(f"m.{field.name}" for field in fields(Memory) if field.name != "subject_name") + (
    ", (select name from identities where id = m.subject_id) as subject_name"
)
#: The ids of existing rows, given as a JSON list, and of everything derived from them, in turn.
_GOING = (
    "with recursive going(id) as (select id from memories where id in (select value from json_each(?))"
    " union select p.memory_id from memory_parents p join going g on p.parent_id = g.id)"
)


def from_row(row: Row) -> Memory:
    # Not dict(row), which looks for each name among all.
    values = dict(zip(row.keys(), row, strict=True))
    values["pinned"], values["confirmed"] = bool(values["pinned"]), bool(values["confirmed"])
    for name in ("tags", "flags"):
        values[name] = () if values[name] == "[]" else tuple(json.loads(values[name]))
    return Memory(**values)
