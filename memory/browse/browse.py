"""Browsing memory: lists, completions for commands, the profile with its sources, and names.

Invariants: nothing is changed here. Each method is one read, confined by the scope that the speaker has at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, TypeAlias

from memory import keys, profile
from memory.browse import talks as conversations
from memory.browse.talks import ConversationHit
from memory.browse.why import Shown, shown, why
from memory.context import Context, anew, confined, in_read, reads, sees
from memory.errors import NotFound
from memory.recall.rank import Weights
from memory.recall.search import Hit, Search
from memory.scope import Scope
from memory.store import entities, fading, filter_rows, lineage, memories
from memory.store.database import Database, Parameter, Reader, walled
from memory.store.entities import Entity
from memory.store.memories import LIVE, Kind, Memory
from memory.text.times import clock
from memory.text.words import query_terms
from memory.typed_filters import NO_FILTERS, Filters, GroupOf

#: Parts of the list that are neither a kind nor a name: written since the last visit, pinned, less than half as strong.
State: TypeAlias = Literal["new", "pinned", "fading"]
#: Later than any moment, in milliseconds.
_NEVER: Final = 2**62
#: The kinds of each tier, in the order in which they are listed.
TIERS: Final[Mapping[int, tuple[Kind, ...]]] = {
    1: ("profile", "directive"),
    2: ("fact", "style", "reflection"),
    3: ("event",),
}
#: The kinds that a list shows by default: the first tier is made from the others.
LISTED: Final = (*TIERS[2], *TIERS[3])


def _rank(column: str, order: Sequence[str]) -> str:
    return f"case {column} " + " ".join(f"when '{one}' then {n}" for n, one in enumerate(order)) + " else 99 end"


#: The rule of `Edits`: rows of the person's own, said by them or about them.
_THEIRS: Final = (
    "(? = 1 or m.owner_id in (select value from json_each(?)) or m.author_id in (select value from json_each(?))"
    " or m.subject_id in (select value from json_each(?)))"
)
#: The words by which a memory is known.
_SAYS: Final = (
    "(m.key || ' ' || m.value || ' ' || m.topic || ' ' || m.subject || ' ' ||"
    " coalesce((select name from identities where id = m.subject_id), ''))"
)
#: The first criteria for a row's place in a list: slots of a profile in their order, facts by category.
_PLACE: Final = ", ".join(
    (
        _rank("m.kind", [kind for kinds in TIERS.values() for kind in kinds]),
        f"case when m.kind = 'profile' then {_rank('m.key', list(keys.PROFILE_SLOTS))} else 0 end",
        f"case when m.kind = 'fact' then {_rank('m.category', list(keys.CATEGORIES))} else 0 end",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledSlot:
    memory: Memory
    made_of: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    entity: Entity
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One page of a list. `counts` are those of the whole list by kind and category; `first` counts from 0."""

    memories: tuple[Memory, ...]
    counts: Mapping[tuple[Kind, str], int]
    first: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of what is remembered: numbers by kind and category, names and tags, and ids by state."""

    counts: Mapping[tuple[Kind, str], int]
    people: Sequence[tuple[str, int]]
    places: Sequence[tuple[str, int]]
    tags: Sequence[tuple[str, int]]
    states: Mapping[State, frozenset[int]]


@walled
def _counts(
    reader: Reader, scope: Scope, kinds: Sequence[Kind], *, category: str = "", only: Collection[int] | None = None
) -> dict[tuple[Kind, str], int]:
    within = scope.predicate("m", by_id=only is not None)
    among = "? is null" if only is None else "m.id in (select value from json_each(?))"
    rows = reader.all(
        "select m.kind, m.category, count(*) as n from memories m where m.kind in (select value from json_each(?))"
        f" and ? in ('', m.category) and {among} and {LIVE} and {within.sql} group by m.kind, m.category",
        (kinds, category, only, *within.parameters),
    )
    return {(row["kind"], row["category"]): int(row["n"]) for row in rows}


@walled
def _shelf(
    reader: Reader,
    scope: Scope,
    kinds: Sequence[Kind],
    *,
    category: str,
    limit: int,
    page: int,
    only: Collection[int] | None = None,
) -> Shelf:
    """Returns the page with the number `page` from 1, or the last page, of the live rows of these kinds.

    They are grouped by kind and category, the ones that matter first in each; with a `category` only those, with `only`
    only those with these ids.
    """
    within = scope.predicate("m", by_id=only is not None)
    among = "? is null" if only is None else "m.id in (select value from json_each(?))"
    of_these: tuple[Parameter, ...] = (kinds, category, only, *within.parameters)
    counts = _counts(reader, scope, kinds, category=category, only=only)
    pages = max(1, -(-sum(counts.values()) // limit))
    first = (min(max(page, 1), pages) - 1) * limit
    found = reader.ids(
        "select m.id from memories m where m.kind in (select value from json_each(?)) and ? in ('', m.category)"
        f" and {among} and {LIVE} and {within.sql} order by {_PLACE}, m.pinned desc, m.importance desc,"
        " m.last_reinforced_at desc, m.id desc limit ? offset ?",
        (*of_these, limit, first),
    )
    return Shelf(memories=tuple(memories.by_ids(reader, scope, found)), counts=counts, first=first)


@walled
def _marked(reader: Reader, scope: Scope, *, since: int | None) -> dict[State, list[int]]:
    """Returns the live rows that are pinned, and those written after `since` (milliseconds UTC)."""
    within, after = scope.predicate("m"), _NEVER if since is None else since
    rows = reader.all(
        "select m.id, m.pinned, m.created_at from memories m where m.kind in (select value from json_each(?))"
        f" and (m.pinned = 1 or m.created_at > ?) and {LIVE} and {within.sql}",
        (LISTED, after, *within.parameters),
    )
    new = [row["id"] for row in rows if row["created_at"] > after]
    return {"new": new, "pinned": [row["id"] for row in rows if row["pinned"]]}


@walled
def _named(reader: Reader, scope: Scope, *, limit: int = 30) -> dict[str, list[tuple[str, int]]]:
    """Returns the people and places that memories name, with the number of memories of each, the most first."""
    within, owned = scope.predicate("m"), scope.owned("e")
    rows = reader.all(
        "select e.type, min(e.name) as name, count(*) as n from entities e"
        " join memory_entities l on l.entity_id = e.id join memories m on m.id = l.memory_id"
        f" where e.type in ('person', 'location') and {LIVE} and {within.sql} and {owned.sql}"
        " group by e.type, e.norm order by n desc, e.norm",
        (*within.parameters, *owned.parameters),
    )
    named: dict[str, list[tuple[str, int]]] = {"person": [], "location": []}
    for row in rows:
        named[row["type"]].append((row["name"], row["n"]))
    return {kind: names[:limit] for kind, names in named.items()}


@walled
def _held_at(reader: Reader, scope: Scope, at: int) -> list[int]:
    """Returns the ids of rows that were known at a moment (milliseconds UTC) and held then, newest first."""
    within = scope.predicate("m")
    return reader.ids(
        "select m.id from memories m where m.kind in (select value from json_each(?)) and m.learned_at <= ?"
        " and (m.valid_until is null or m.valid_until > ?) and (m.archived_at is null or m.archived_at > ?)"
        f" and {within.sql} order by m.learned_at desc, m.id desc",
        (LISTED, at, at, at, *within.parameters),
    )


@walled
def _dated(reader: Reader, scope: Scope) -> list[tuple[int, int]]:
    """Returns the live rows by id, each with the time since which it holds (milliseconds UTC), newest first."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.valid_from from memories m where m.kind in (select value from json_each(?))"
        f" and {LIVE} and {within.sql} order by m.valid_from desc, m.id desc",
        (LISTED, *within.parameters),
    )
    return [(row["id"], row["valid_from"]) for row in rows]


@walled
def _learned(reader: Reader, scope: Scope) -> dict[tuple[str, int], int]:
    """Counts the live rows by their kind and the day since 1970 (UTC) on which they were learned."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.kind, m.learned_at / 86400000 as day, count(*) as count from memories m"
        f" where m.kind in (select value from json_each(?)) and {LIVE} and {within.sql} group by 1, 2",
        (LISTED, *within.parameters),
    )
    return {(row["kind"], row["day"]): row["count"] for row in rows}


@walled
def _offered(
    reader: Reader, scope: Scope, typed: str, words: Sequence[str], *, changeable: bool, limit: int
) -> list[Memory]:
    """Returns current memories that `typed` may mean: by the beginning of the id, then those with any of `words`.

    Those with the most of the words come first, then the newest. A word stands in the text as it is, or in lower case.
    With `changeable`, only memories that the speaker may change. Without `words`, all are offered.
    """
    within = scope.predicate("m")
    theirs: tuple[Parameter, ...] = (int(not changeable), scope.own, scope.speakers, scope.speakers, *within.parameters)
    meant: list[int] = []
    for prefix in (typed, f"m_{typed}") if typed.isascii() and typed else ():
        meant += reader.ids(
            # Ids consist of letters, digits and _, all of which come before ~.
            "select m.id from memories m where m.short_id >= ? and m.short_id < ? || '~'"
            f" and m.kind in (select value from json_each(?)) and {_THEIRS} and {LIVE} and {within.sql}"
            " order by m.learned_at desc, m.id desc limit ?",
            (prefix, prefix, LISTED, *theirs, limit),
        )
    meant += reader.ids(
        "select id from (select m.id, m.learned_at, (select count(*) from json_each(?) word"
        f" where instr({_SAYS}, cast(word.value as text)) > 0"
        f" or instr(lower({_SAYS}), cast(word.value as text)) > 0) as fits"
        " from memories m where m.kind in (select value from json_each(?))"
        f" and {_THEIRS} and {LIVE} and {within.sql}) found"
        " where fits > 0 or ? = 0 order by fits desc, learned_at desc, id desc limit ?",
        (list(words), LISTED, *theirs, len(words), limit),
    )
    return memories.by_ids(reader, scope, list(dict.fromkeys(meant))[:limit])


def _memories(reader: Reader, scope: Scope, *, limit: int) -> list[Memory]:
    return memories.current(reader, scope, LISTED, limit=limit)


def _one(reader: Reader, scope: Scope, short_id: str) -> Memory | None:
    """Returns the memory with this id, current or not; None both for an unknown id and for another owner's."""
    try:
        return memories.by_short_id(reader, scope, short_id)
    except NotFound:
        return None


def _profile(reader: Reader, scope: Scope) -> list[FilledSlot]:
    return [
        FilledSlot(memory=memory, made_of=tuple(lineage.parents(reader, scope, memory.id)))
        for memory in profile.read(reader, scope)
    ]


def _entity(reader: Reader, scope: Scope, name: str, *, limit: int = 20) -> About | None:
    known = entities.entity(reader, scope, name)
    if known is None:
        return None
    return About(entity=known, memories=tuple(memories.by_ids(reader, scope, known.memory_ids[:limit])))


def _tags(reader: Reader, scope: Scope, *, limit: int = 12) -> list[tuple[str, int]]:
    return sorted(filter_rows.known_tags(reader, scope).items(), key=lambda tag: -tag[1])[:limit]


class Browse:
    def __init__(self, database: Database, search: Search, *, now: Callable[[], int]) -> None:
        self._database = database
        self._search = search
        self._now = now

    async def search(
        self, context: Context, query: str, *, limit: int, weights: Weights | None = None, filters: Filters = NO_FILTERS
    ) -> list[Hit]:
        """Returns the memories and passages that answer `query` best, with `filters` only those that meet them all.

        Pass `weights` other than the store's only for measurements.
        """
        context = await self._database.read(lambda reader: anew(reader, context))
        return await self._search.find(
            context.scope, query, timezone=context.timezone, limit=limit, weights=weights, filters=filters
        )

    async def said(
        self,
        context: Context,
        words: str,
        *,
        limit: int,
        before: tuple[int, int] = (conversations.END, conversations.END),
    ) -> list[ConversationHit]:
        """Returns messages of all conversations of the person that hold all of `words`; see `conversations.said`."""
        scope = (await self._database.read(lambda reader: anew(reader, context))).scope
        terms = query_terms(words)
        return await self._search.read(
            scope,
            lambda reader, indexed: conversations.said(
                reader, scope, terms, indexed=indexed, limit=limit, before=before
            ),
        )

    async def filters(self, context: Context, text: str, *, group_of: GroupOf) -> Filters:
        """Returns the words and filters of a typed text. Raises `UnknownFilter` and `UnreadFilter`."""
        today = clock.local_date(self._now(), context.timezone)
        return await self._database.read(
            lambda reader: filter_rows.read(reader, confined(reader, context).scope, text, today, group_of=group_of)
        )

    @in_read
    def shelf(
        self,
        reader: Reader,
        context: Context,
        kinds: Sequence[Kind],
        *,
        category: str = "",
        filters: Filters = NO_FILTERS,
        among: Collection[int] | None = None,
        limit: int,
        page: int,
    ) -> Shelf:
        """Returns a page of the current memories of these kinds, by kind and category; see `_shelf`.

        With `filters`, only those that meet all of them and hold all their words; with `among`, only those of these
        ids.
        """
        scope = confined(reader, context).scope
        only = among
        if filters.given:
            held = filter_rows.holding(reader, scope, filters, context.timezone)
            only = held if among is None else held.intersection(among)
        return _shelf(reader, scope, kinds, category=category, limit=limit, page=page, only=only)

    @in_read
    def parts(self, reader: Reader, context: Context, *, since: int | None) -> Parts:
        """Returns the parts of what holds now; what is new is what was written after `since` (milliseconds UTC)."""
        scope = confined(reader, context).scope
        named, states = _named(reader, scope), _marked(reader, scope, since=since)
        states["fading"] = fading.fading(reader, scope, now=self._now())
        return Parts(
            counts=_counts(reader, scope, LISTED),
            people=named["person"],
            places=named["location"],
            tags=_tags(reader, scope),
            states={name: frozenset(ids) for name, ids in states.items()},
        )

    @in_read
    def shown(self, reader: Reader, context: Context, short_id: str) -> Shown:
        return shown(reader, confined(reader, context).scope, short_id, now=self._now())

    @in_read
    def held_at(
        self, reader: Reader, context: Context, day: date, *, limit: int, page: int
    ) -> tuple[list[Memory], int]:
        """Returns the memories that held on a day in the person's timezone, as known then, and their number.

        They are those of the page with the number `page` from 1, newest first.
        """
        scope, end = confined(reader, context).scope, clock.end_of(day, context.timezone)
        held = _held_at(reader, scope, end - 1)
        return memories.by_ids(reader, scope, held[(page - 1) * limit : page * limit]), len(held)

    why = reads(why)
    offered = sees(_offered)
    talks = sees(conversations.talks)
    lines = sees(conversations.lines)
    said_as = sees(conversations.said_as)
    files = sees(conversations.files)
    versions = sees(conversations.versions)
    turn_lines = sees(conversations.of_turn)
    sent = sees(conversations.sent)
    sent_one = sees(conversations.sent_one)
    waiting = sees(conversations.waiting)
    keys_of = sees(conversations.keys_of)
    entered = sees(conversations.entered)
    used = sees(conversations.used)
    dated = sees(_dated)
    learned = sees(_learned)
    entities = sees(entities.everybody)
    one = sees(_one)
    some = sees(memories.by_ids)
    memories = sees(_memories)
    profile = sees(_profile)
    entity = sees(_entity)
