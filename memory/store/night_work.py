"""Selects the owners and rows that each night job still has to go through.

Invariants: One short read finds a job's owners, whatever the size of the store; the rows of each are a read of their
own, confined by that owner's scope. The results are ids, times and figures, except the values that are searched for
names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memory import keys
from memory.scope import Scope
from memory.store.database import Reader, Row, walled
from memory.store.memories import LIVE

_UNCOMPRESSED: Final = f"m.kind = 'event' and m.compressed_at is null and m.local_date < ? and {LIVE}"
_FREE: Final = f"m.pinned = 0 and m.confirmed = 0 and {LIVE}"
_MERGEABLE: Final = f"m.kind = 'fact' and m.flags = '[]' and {_FREE}"
_UNCOMPARED: Final = f"m.kind = 'fact' and m.compared_at is null and m.flags = '[]' and {LIVE}"
_SPENT: Final = f"m.kind = 'event' and {_FREE} and m.compressed_at"
_MERGED: Final = (
    "m.origin = 'derived' and exists (select 1 from memory_parents p join memories f on f.id = p.parent_id"
    " where p.memory_id = m.id and f.kind = 'fact')"
)


def events(reader: Reader, *, before: str) -> list[Row]:
    """Returns all live events of days before a date that are not compressed: owner_id, id and created_at."""
    return reader.all(f"select m.owner_id, m.id, m.created_at from memories m where {_UNCOMPRESSED}", (before,))


@walled
def events_of(reader: Reader, scope: Scope, *, before: str) -> list[int]:
    """Returns the owner's live events of days before a date that are not compressed, oldest first."""
    within = scope.predicate("m")
    return reader.ids(
        f"select m.id from memories m where {_UNCOMPRESSED} and m.owner_id = ? and {within.sql}"
        " order by m.local_date, m.learned_at, m.id",
        (before, scope.writes_to, *within.parameters),
    )


def unlearned(reader: Reader, memory_ids: Sequence[int]) -> set[int]:
    """Returns the rows with a source message that was forgotten or must not be learned from: they may still tell it."""
    rows = reader.ids(
        "select distinct s.memory_id from memory_sources s join messages said on said.id = s.message_id"
        " where s.memory_id in (select value from json_each(?)) and said.role = 'user' and said.learn = 0",
        (memory_ids,),
    )
    return set(rows)


def unread(
    reader: Reader, owner_ids: Sequence[int], *, agent_id: int, below: int, most_names: int, limit: int
) -> list[Row]:
    """Returns the newest rows with ids below `below` and few names that were not read for names yet.

    They are rows of id, owner_id and value. A row committed meanwhile under a higher id is read the next night.
    """
    # Rows are read in the order of their ids: `+` keeps the index of waiting rows, which is ordered by owner, unused.
    return reader.all(
        "select m.id, m.owner_id, m.value from memories m where m.id < ?1 and +m.enriched_at is null"
        f" and m.kind in ('fact', 'event', 'reflection') and {LIVE} and (m.agent_id is null or m.agent_id = ?2)"
        " and +m.owner_id in (select value from json_each(?3))"
        " and (select count(*) from memory_entities l where l.memory_id = m.id) <= ?4"
        " order by m.id desc limit ?5",
        (below, agent_id, owner_ids, most_names, limit),
    )


def owners_to_merge(reader: Reader, owner_ids: Sequence[int], *, agent_id: int, job: str, spent_by: int) -> list[int]:
    """Returns the owners among these with spent events or with groups of facts that have a new member."""
    return reader.ids(
        "with done(owner_id, at) as (select i.owner_id, max(r.started_at) from job_items i"
        " join job_runs r on r.id = i.run_id where r.job = ?3 and i.state in ('done', 'undone') group by i.owner_id),"
        " anew(owner_id) as (select d.owner_id from done d where exists"
        " (select 1 from forgotten f where f.owner_id = d.owner_id and f.created_at >= d.at))"
        " select m.owner_id from memories m left join done d on d.owner_id = m.owner_id"
        " left join anew a on a.owner_id = m.owner_id"
        f" where m.owner_id in (select value from json_each(?1)) and {_MERGEABLE}"
        " and (m.agent_id is null or m.agent_id = ?2)"
        " and m.key not in (select value from json_each(?5)) and m.key not like 'favourite-%'"
        " group by m.owner_id, m.subject_id, m.subject, m.author_id, m.agent_id, a.owner_id, d.at"
        f" having count(*) > 1 and max(case when not ({_MERGED}) then m.created_at end)"
        " > case when a.owner_id is null then coalesce(d.at, -1) else -1 end"
        " union select m.owner_id from memories m where m.owner_id in (select value from json_each(?1))"
        f" and {_SPENT} <= ?4 and (m.agent_id is null or m.agent_id = ?2) order by 1",
        (owner_ids, agent_id, job, spent_by, keys.SINGLE_VALUED),
    )


@walled
def mergeable(reader: Reader, scope: Scope) -> list[Row]:
    """Returns the owner's facts that may be merged, as rows of id, created_at and whether they are `merged` already."""
    within = scope.predicate("m")
    return reader.all(
        f"select m.id, m.created_at, {_MERGED} as merged from memories m"
        f" where m.owner_id = ? and {_MERGEABLE} and {within.sql}",
        (scope.writes_to, *within.parameters),
    )


def owners_to_compare(reader: Reader, owner_ids: Sequence[int], *, agent_id: int) -> list[int]:
    """Returns the owners among these with a fact that waits to be compared."""
    return reader.ids(
        "select o.value from json_each(?) o where exists (select 1 from memories m where m.owner_id = o.value"
        f" and {_UNCOMPARED} and (m.agent_id is null or m.agent_id = ?)) order by 1",
        (owner_ids, agent_id),
    )


@walled
def uncompared(reader: Reader, scope: Scope) -> list[int]:
    """Returns the owner's facts that wait to be compared."""
    within = scope.predicate("m")
    return reader.ids(
        f"select m.id from memories m where m.owner_id = ? and {_UNCOMPARED} and {within.sql} order by m.id",
        (scope.writes_to, *within.parameters),
    )


@walled
def spent_events(reader: Reader, scope: Scope, *, by: int) -> list[int]:
    """Returns the owner's events that were compressed by `by` (milliseconds UTC)."""
    within = scope.predicate("m")
    return reader.ids(
        f"select m.id from memories m where {_SPENT} <= ? and m.owner_id = ? and {within.sql} order by m.id",
        (by, scope.writes_to, *within.parameters),
    )


def owners_to_reflect_on(
    reader: Reader, owner_ids: Sequence[int], *, agent_id: int, learned: tuple[int, int], facts: int, last_before: int
) -> list[int]:
    """Returns the owners among these with so many `facts` learned in a time and no reflection after `last_before`."""
    return reader.ids(
        "select m.owner_id from memories m where m.owner_id in (select value from json_each(?1)) and m.kind = 'fact'"
        f" and m.learned_at >= ?3 and m.learned_at <= ?4 and {LIVE} and (m.agent_id is null or m.agent_id = ?2)"
        " group by m.owner_id having count(*) >= ?5 and not exists (select 1 from memories r"
        " where r.owner_id = m.owner_id and r.kind = 'reflection' and r.origin = 'derived' and r.learned_at > ?6"
        " and (r.agent_id is null or r.agent_id = ?2)) order by m.owner_id",
        (owner_ids, agent_id, *learned, facts, last_before),
    )


def owners_with_style(reader: Reader, agent_id: int) -> list[int]:
    """Returns the people and groups who have told an agent how to talk to them and whose chat the bot has not left."""
    return reader.ids(
        "select o.id from owners o where o.kind <> 'agent' and exists (select 1 from memories m"
        f" where m.owner_id = o.id and m.kind in ('style', 'directive') and m.agent_id = ? and {LIVE})"
        " and exists (select 1 from chats c where (c.id = o.chat_id or c.identity_id = o.identity_id)"
        " and c.left_at is null) order by o.id",
        (agent_id,),
    )
