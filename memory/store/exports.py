"""Everything a scope holds, as rows for an export, with the platforms' names of people.

Invariant: every row comes through the scope's own condition.
"""

from __future__ import annotations

from collections.abc import Collection

from memory.scope import Scope
from memory.store.database import Reader, Row, walled


@walled
def memories(reader: Reader, scope: Scope, *, shared: bool) -> list[Row]:
    """Returns the memories of a scope, by validity; with `shared` those that an agent holds for everybody instead."""
    within = scope.predicate("m")
    return reader.all(
        "select m.id, m.short_id, m.kind, m.category, m.key, m.value, m.subject, m.topic, m.tags, m.flags,"
        " m.importance, m.confidence, m.strength, m.origin, m.learned_at, m.local_date, m.valid_from, m.valid_until,"
        " m.archived_at, m.pinned, m.confirmed, m.access_count, m.reinforced_count, m.last_reinforced_at,"
        " m.author_id, m.subject_id, x.short_id as next, g.name as agent, o.kind as place,"
        " a.platform as author_platform, a.user_id as author_user, a.name as author_name,"
        " b.platform as about_platform, b.user_id as about_user, b.name as about_name,"
        " (select json_group_array(s.message_id) from memory_sources s where s.memory_id = m.id) as sources"
        " from memories m join owners o on o.id = m.owner_id left join memories x on x.id = m.superseded_by"
        " left join agents g on g.id = m.agent_id left join identities a on a.id = m.author_id"
        " left join identities b on b.id = m.subject_id"
        f" where case when o.kind = 'agent' then 1 else 0 end = ? and {within.sql} order by m.valid_from, m.id",
        (int(shared), *within.parameters),
    )


@walled
def messages(reader: Reader, scope: Scope, wanted: Collection[int], *, everything: bool) -> list[Row]:
    """Returns the messages with these ids, or all of the scope's owners; under other owners only the speaker's own."""
    within = scope.owned("m")
    selves = ", ".join("?" for _ in scope.selves)
    return reader.all(
        "select m.id, m.role, m.author_id, m.author_name, m.text, m.said_at, m.recall, s.thread, a.platform, a.user_id"
        " from messages m join sessions s on s.id = m.session_id left join identities a on a.id = m.author_id"
        " where m.role in ('user', 'assistant') and m.erased_at is null and m.text <> ''"
        " and (m.id in (select value from json_each(?)) or ? = 1)"
        f" and ({within.sql} or (m.author_id in ({selves}) and m.id in (select value from json_each(?))))"
        " order by m.said_at, m.id",
        (wanted, int(everything), *within.parameters, *scope.selves, wanted),
    )
