"""Memories as people look through them: by tier and category, by words, by the beginning of an id; and pinned.

Invariants: every read is confined by the scope's predicate and looks at all the scope sees, however much that is; only
current rows are listed or offered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory import keys
from memory.scope import Scope
from memory.store import memories
from memory.store.database import Parameter, Reader, walled
from memory.store.memories import LIVE, Kind, Memory

#: The kinds of each tier (DESIGN 5.1), in the order in which they are listed.
TIERS: Final[Mapping[int, tuple[Kind, ...]]] = {
    1: ("profile", "directive"),
    2: ("fact", "style", "reflection"),
    3: ("event",),
}
#: The kinds that a list shows by default: the first tier is made from the others.
LISTED: Final = (*TIERS[2], *TIERS[3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One page of a list. `counts` are those of the whole list by kind and category; `first` counts from 0."""

    memories: tuple[Memory, ...]
    counts: Mapping[tuple[Kind, str], int]
    first: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@walled
def shelf(
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
    rows = reader.all(
        "select m.kind, m.category, count(*) as n from memories m where m.kind in (select value from json_each(?))"
        f" and ? in ('', m.category) and {among} and {LIVE} and {within.sql} group by m.kind, m.category",
        of_these,
    )
    counts = {(row["kind"], row["category"]): int(row["n"]) for row in rows}
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
def pinned(reader: Reader, scope: Scope) -> list[int]:
    """Returns the current rows that a person has pinned, by id."""
    within = scope.predicate("m")
    return reader.ids(f"select m.id from memories m where m.pinned = 1 and {LIVE} and {within.sql}", within.parameters)


@walled
def places(reader: Reader, scope: Scope, *, limit: int) -> list[str]:
    """Returns the names of the places that most current memories mention, the most frequent first."""
    within, owned = scope.predicate("m"), scope.owned("e")
    rows = reader.all(
        "select min(e.name) as name from entities e join memory_entities l on l.entity_id = e.id"
        f" join memories m on m.id = l.memory_id where e.type = 'location' and {LIVE} and {within.sql} and {owned.sql}"
        " group by e.norm order by count(*) desc, e.norm limit ?",
        (*within.parameters, *owned.parameters, limit),
    )
    return [row["name"] for row in rows]


@walled
def held_at(reader: Reader, scope: Scope, at: int) -> list[int]:
    """Returns the ids of rows that were known at a moment (milliseconds UTC) and held then, newest first."""
    within = scope.predicate("m")
    return reader.ids(
        "select m.id from memories m where m.kind in (select value from json_each(?)) and m.learned_at <= ?"
        " and (m.valid_until is null or m.valid_until > ?) and (m.archived_at is null or m.archived_at > ?)"
        f" and {within.sql} order by m.learned_at desc, m.id desc",
        (LISTED, at, at, at, *within.parameters),
    )


@walled
def dated(reader: Reader, scope: Scope) -> list[tuple[int, int]]:
    """Returns the live rows by id, each with the time since which it holds (milliseconds UTC), newest first."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.valid_from from memories m where m.kind in (select value from json_each(?))"
        f" and {LIVE} and {within.sql} order by m.valid_from desc, m.id desc",
        (LISTED, *within.parameters),
    )
    return [(row["id"], row["valid_from"]) for row in rows]


@walled
def offered(reader: Reader, scope: Scope, words: Sequence[str], *, changeable: bool, limit: int) -> list[Memory]:
    """Returns live rows that hold any of `words`, those with the most of them and then the newest first.

    Without `words` it returns any rows. A word stands in the text as it is, or in lower case. With `changeable` only
    rows that the speaker may change are returned.
    """
    within = scope.predicate("m")
    found = reader.ids(
        "select id from (select m.id, m.learned_at, (select count(*) from json_each(?) word"
        f" where instr({_SAYS}, cast(word.value as text)) > 0"
        f" or instr(lower({_SAYS}), cast(word.value as text)) > 0) as fits"
        " from memories m where m.kind in (select value from json_each(?))"
        f" and {_THEIRS} and {LIVE} and {within.sql}) found"
        " where fits > 0 or ? = 0 order by fits desc, learned_at desc, id desc limit ?",
        (list(words), LISTED, *_theirs(scope, changeable), *within.parameters, len(words), limit),
    )
    return memories.by_ids(reader, scope, found)


@walled
def beginning(reader: Reader, scope: Scope, prefix: str, *, changeable: bool, limit: int) -> list[Memory]:
    """Returns live rows whose short id begins with `prefix`, the newest first; `changeable` is as in `offered`."""
    within = scope.predicate("m")
    found = reader.ids(
        # Ids consist of letters, digits and _, all of which come before ~.
        "select m.id from memories m where m.short_id >= ? and m.short_id < ? || '~'"
        f" and m.kind in (select value from json_each(?)) and {_THEIRS} and {LIVE} and {within.sql}"
        " order by m.learned_at desc, m.id desc limit ?",
        (prefix, prefix, LISTED, *_theirs(scope, changeable), *within.parameters, limit),
    )
    return memories.by_ids(reader, scope, found)


def _theirs(scope: Scope, changeable: bool) -> tuple[Parameter, ...]:
    """Returns the parameters of `_THEIRS`."""
    return int(not changeable), scope.own, scope.speakers, scope.speakers


def _rank(column: str, order: Sequence[str]) -> str:
    """Returns an SQL expression for the place of a column's value in `order`."""
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
