"""From a question to ranked memories, without a model.

Invariants: nothing outside the scope is looked at; importance and age only ever bend a score within fixed bounds,
they never hide a row; a replaced memory stands below what replaced it; without a working index the scope is
searched by substring, and the caller never notices but by quality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import structlog

from memory.errors import StorageError
from memory.recall import index, words
from memory.scope import Scope
from memory.store import memories
from memory.store.database import Database, Reader
from memory.store.memories import Memory

log = structlog.get_logger(__name__)

#: Terms of a query that are looked up. Chinese questions need more than the usual 64: on MADial-zh (development
#: part, n = 80, words alone, measured by hand) 64 terms find any@5 .76 and 128 find .81.
_TERMS = 128
#: How far importance may lift or lower a score: a tenth either way over its range of 1 to 10.
_IMPORTANCE_REACH = 0.1
#: What is left of an archived memory's score: it comes up when little else matches.
_ARCHIVED = 0.25


#: Candidates fetched for each place in the result, so that there is room for what is put behind or dropped.
_OVER_FETCH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that answers the query; `parts` says how its score came about, numbers only."""

    memory: Memory
    score: float
    parts: dict[str, float] = field(default_factory=dict)


#: A way to find: (reader, scope, terms, limit) → hits in any order.
Find: TypeAlias = Callable[[Reader, Scope, list[str], int], list[Hit]]
T = TypeVar("T")


def search(reader: Reader, scope: Scope, query: str, *, find: Find, limit: int) -> list[Hit]:
    """The best `limit` memories of the scope for `query`, best first."""
    terms = words.query_terms(query, limit=_TERMS)
    if not terms:
        return []
    hits = find(reader, scope, terms, limit * _OVER_FETCH)
    hits.sort(key=lambda hit: (-hit.score, hit.memory.id))
    return _successors_first(hits)[:limit]


async def searching(database: Database, act: Callable[[Reader, Find], T]) -> T:
    """Run `act` on one committed state with the best way to find that there is: the index brought up to date, or

    the rows themselves where the index is broken.
    """

    def by_index(reader: Reader) -> T:
        if index.is_behind(reader):
            raise _Behind
        return act(reader, _by_words)

    try:
        while True:
            try:
                return await database.read(by_index)
            except _Behind:
                await database.write(index.catch_up_some)
    except StorageError as exc:
        log.warning("index.failed", error=str(exc), instead="substring search")
        return await database.read(lambda reader: act(reader, _by_substring))


class _Behind(Exception):
    """Something was committed that the index does not hold yet."""


def _by_words(reader: Reader, scope: Scope, terms: list[str], limit: int) -> list[Hit]:
    matches = index.match(reader, scope, terms)
    if not matches:
        return []
    total = memories.count(reader, scope, live_only=False)
    scores = words.bm25(
        terms,
        [match.counts for match in matches],
        [match.length for match in matches],
        total_docs=max(total, len(matches)),
        average_length=sum(match.length for match in matches) / len(matches),
    )
    score_of = {match.memory_id: score for match, score in zip(matches, scores, strict=True)}
    front = sorted(score_of, key=lambda memory_id: -score_of[memory_id])[:limit]
    return [_hit(memory, score_of[memory.id]) for memory in memories.by_ids(reader, scope, front)]


def _by_substring(reader: Reader, scope: Scope, terms: list[str], limit: int) -> list[Hit]:
    found = memories.containing(reader, scope, terms, limit=limit)
    return [_hit(memory, float(sum(term in memory.value.casefold() for term in terms))) for memory in found]


def _hit(memory: Memory, matched: float) -> Hit:
    importance = 1 + _IMPORTANCE_REACH * (memory.importance - 5.5) / 4.5
    archived = _ARCHIVED if memory.archived_at is not None else 1.0
    return Hit(
        memory=memory,
        score=matched * importance * archived,
        parts={"words": round(matched, 3), "importance": round(importance, 3), "archived": archived},
    )


def _successors_first(hits: list[Hit]) -> list[Hit]:
    """Put each replaced memory directly behind the one that replaced it, where both were found."""
    placed: list[Hit] = []
    waiting: dict[int, list[Hit]] = {}
    found = {hit.memory.id for hit in hits}
    for hit in hits:
        if hit.memory.superseded_by in found:
            waiting.setdefault(hit.memory.superseded_by or 0, []).append(hit)
        else:
            placed.append(hit)
    ordered: list[Hit] = []
    while placed:
        hit = placed.pop(0)
        ordered.append(hit)
        placed[:0] = waiting.pop(hit.memory.id, [])
    return ordered
