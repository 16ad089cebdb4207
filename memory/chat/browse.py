"""Browsing memory: lists, completions for commands, the profile with its sources, and names.

Invariants: nothing is changed here. Each method is one read, confined by the scope that the speaker has at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Literal

from memory import profile
from memory.chat.shown import Shown, shown
from memory.chat.why import why
from memory.context import Context, anew, confined, in_read, reads, sees
from memory.errors import NotFound
from memory.filters import NO_FILTERS, Filters, GroupOf
from memory.recall.rank import Weights
from memory.recall.search import Hit, Search
from memory.scope import Scope
from memory.store import browsing, entities, fading, filtered, lineage, memories
from memory.store import talks as talk
from memory.store.browsing import LISTED, Shelf
from memory.store.database import Database, Reader
from memory.store.entities import Entity
from memory.store.memories import Kind, Memory
from memory.text.times import clock


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


def _memories(reader: Reader, scope: Scope, *, limit: int) -> list[Memory]:
    """Returns live facts, styles, events and reflections, the most important first."""
    return memories.current(reader, scope, LISTED, limit=limit)


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
    """Returns the entity that this scope knows by `name`, with the newest memories that name it."""
    known = entities.entity(reader, scope, name)
    if known is None:
        return None
    return About(entity=known, memories=tuple(memories.by_ids(reader, scope, known.memory_ids[:limit])))


class Browse:
    """The operations of `Service.browse`."""

    def __init__(self, database: Database, search: Search, *, now: Callable[[], int]) -> None:
        self._database = database
        self._search = search
        self._now = now

    async def search(
        self,
        context: Context,
        query: str,
        *,
        limit: int,
        weights: Weights | None = None,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Returns the memories and passages that answer `query` best, with `filters` only those that meet them all.

        Pass `weights` other than the store's only for measurements.
        """
        context = await self._database.read(lambda reader: anew(reader, context))
        return await self._search.find(
            context.scope, query, timezone=context.timezone, limit=limit, weights=weights, filters=filters
        )

    async def filters(self, context: Context, text: str, *, group_of: GroupOf) -> Filters:
        """Returns the words and filters of a typed text. Raises `UnknownFilter` and `UnreadFilter`."""
        today = clock.local_date(self._now(), context.timezone)
        return await self._database.read(
            lambda reader: filtered.read(reader, confined(reader, context).scope, text, today, group_of=group_of)
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
        state: Literal["", "pinned", "fading"] = "",
        limit: int,
        page: int,
    ) -> Shelf:
        """Returns a page of the current memories of these kinds, by kind and category; see `browsing.shelf`.

        With `filters`, only those that meet all of them and hold all their words. With a `state`, only those that are
        pinned, or that have less than half of their strength left.
        """
        scope = confined(reader, context).scope
        only = None
        if filters.given:
            only = filtered.holding(reader, scope, filters, context.timezone)
        if state:
            is_fading = state == "fading"
            some = fading.fading(reader, scope, now=self._now()) if is_fading else browsing.pinned(reader, scope)
            only = frozenset(some) if only is None else only.intersection(some)
        return browsing.shelf(reader, scope, kinds, category=category, limit=limit, page=page, only=only)

    @in_read
    def shown(self, reader: Reader, context: Context, short_id: str) -> Shown:
        """Returns a memory in full. Raises `NotFound`."""
        return shown(reader, confined(reader, context).scope, short_id, now=self._now())

    @in_read
    def held_at(
        self, reader: Reader, context: Context, day: date, *, limit: int, page: int
    ) -> tuple[list[Memory], int]:
        """Returns the memories that held on a day in the person's timezone, as known then, and their number.

        They are those of the page with the number `page` from 1, newest first.
        """
        scope, end = confined(reader, context).scope, clock.end_of(day, context.timezone)
        held = browsing.held_at(reader, scope, end - 1)
        return memories.by_ids(reader, scope, held[(page - 1) * limit : page * limit]), len(held)

    why = reads(why)
    offered = sees(_offered)
    talks = sees(talk.talks)
    lines = sees(talk.lines)
    turn_lines = sees(talk.of_turn)
    entered = sees(talk.entered)
    dated = sees(browsing.dated)
    places = sees(browsing.places)
    entities = sees(entities.everybody)
    one = sees(_one)
    some = sees(memories.by_ids)
    memories = sees(_memories)
    profile = sees(_profile)
    entity = sees(_entity)
