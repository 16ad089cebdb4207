"""Everything a scope holds, as the rows that go out to whom it belongs.

Invariants: every row comes through the scope's own condition; what all share with an agent goes out only with that
agent; erased words are not in it; of what somebody said of themselves in a group only their own words stand beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from memory.scope import Scope
from memory.store.database import Reader, Row
from memory.upkeep.formats import remora
from memory.upkeep.formats.material import Person

Fields: TypeAlias = dict[str, Any]

#: SQLite takes 32,766 parameters a statement, older ones 999; ids are given as one JSON list.
_KINDS: Final = ("profile", "directive", "fact", "style", "reflection", "event")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export: for another Remora, and for people. `memories` and `messages` count what is in it."""

    data: bytes
    page: str
    memories: int
    messages: int


def export(reader: Reader, scope: Scope, *, shared: bool, transcript: bool, now: int) -> Exported:
    """All that the scope holds, with the messages it was learned from, or with `transcript` all that was said.

    With `shared` it is what an agent holds for everybody, which else stays out.
    """
    memories = _memories(reader, scope, shared=shared)
    wanted = {message_id for one in memories for message_id in one["sources"]}
    messages = _messages(reader, scope, wanted, everything=transcript and not shared)
    numbers = {row["id"]: n for n, row in enumerate(messages, 1)}
    for one in memories:
        one["sources"] = [numbers[message_id] for message_id in one["sources"] if message_id in numbers]
    said = [_message(row, numbers[row["id"]], scope) for row in messages]
    of = _of(reader, scope, shared=shared)
    return Exported(
        data=remora.write(of=of, exported_at=now, memories=memories, messages=said),
        page=remora.page(of=of, exported_at=now, memories=memories, messages=said),
        memories=sum(one["kind"] not in ("profile", "directive") for one in memories),
        messages=len(said),
    )


def _memories(reader: Reader, scope: Scope, *, shared: bool) -> list[Fields]:
    within = scope.predicate("m")
    rows = reader.all(
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
        f" where (o.kind = 'agent') = ? and {within.sql} order by m.valid_from, m.id",
        (int(shared), *within.parameters),
    )
    return [_memory(row, scope) for row in rows if row["kind"] in _KINDS]


def _memory(row: Row, scope: Scope) -> Fields:
    return {
        "id": row["short_id"],
        "kind": row["kind"],
        "category": row["category"],
        "key": row["key"],
        "value": row["value"],
        "subject": row["subject"],
        "by": _whom(scope, row["author_id"], row["author_platform"], row["author_user"], row["author_name"]),
        "about": _whom(scope, row["subject_id"], row["about_platform"], row["about_user"], row["about_name"]),
        "topic": row["topic"],
        "tags": json.loads(row["tags"]),
        "flags": json.loads(row["flags"]),
        "said_in": "private" if row["place"] == "identity" else row["place"],
        "agent": row["agent"],
        "importance": row["importance"],
        "confidence": row["confidence"],
        "strength": row["strength"],
        "origin": row["origin"],
        "learned_at": remora.iso(row["learned_at"]),
        "local_date": row["local_date"],
        "valid_from": remora.iso(row["valid_from"]),
        "valid_until": _iso(row["valid_until"]),
        "superseded_by": row["next"],
        "archived_at": _iso(row["archived_at"]),
        "pinned": bool(row["pinned"]),
        "confirmed": bool(row["confirmed"]),
        "access_count": row["access_count"],
        "reinforced_count": row["reinforced_count"],
        "last_reinforced_at": remora.iso(row["last_reinforced_at"]),
        "sources": json.loads(row["sources"]),
    }


def _messages(reader: Reader, scope: Scope, wanted: set[int], *, everything: bool) -> Sequence[Row]:
    """The messages with these ids, or all the scope's owners hold; those of others' owners only if one's own."""
    within = scope.owned("m")
    selves = ", ".join("?" for _ in scope.selves)
    return reader.all(
        "select m.id, m.role, m.author_id, m.author_name, m.text, m.said_at, m.recall, s.thread, a.platform, a.user_id"
        " from messages m join sessions s on s.id = m.session_id left join identities a on a.id = m.author_id"
        " where m.role in ('user', 'assistant') and m.erased_at is null and m.text <> ''"
        " and (m.id in (select value from json_each(?)) or ?)"
        f" and ({within.sql} or (m.author_id in ({selves}) and m.id in (select value from json_each(?))))"
        " order by m.said_at, m.id",
        (json.dumps(sorted(wanted)), int(everything), *within.parameters, *scope.selves, json.dumps(sorted(wanted))),
    )


def _message(row: Row, number: int, scope: Scope) -> Fields:
    return {
        "n": number,
        "time": remora.iso(row["said_at"]),
        "role": row["role"],
        "author": _whom(scope, row["author_id"], row["platform"], row["user_id"], row["author_name"]),
        "name": row["author_name"],
        "text": row["text"],
        "thread": row["thread"],
        "recall": bool(row["recall"]),
    }


def _of(reader: Reader, scope: Scope, *, shared: bool) -> Fields:
    """Whose the export is."""
    if shared:
        row = reader.one("select name from agents where id = ?", (scope.agent_id,))
        return {"kind": "agent", "name": "" if row is None else row["name"]}
    if scope.private:
        row = reader.one("select platform, user_id, name from identities where id = ?", (scope.speaker_id,))
        return {"kind": "person"} | ({} if row is None else dict(row))
    row = reader.one(
        "select c.platform, c.title as name, (select reference from chat_aliases where chat_id = c.id"
        " order by created_at desc limit 1) as chat from owners o join chats c on c.id = o.chat_id where o.id = ?",
        (scope.writes_to,),
    )
    return {"kind": "group"} | ({} if row is None else dict(row))


def _whom(scope: Scope, identity_id: int | None, platform: str | None, user_id: str | None, name: str | None) -> object:
    if identity_id is None or platform is None or user_id is None:
        return None
    if identity_id in scope.selves:
        return remora.person(remora.OWNER)
    return remora.person(Person(platform=platform, user_id=user_id, name=name or ""))


def _iso(moment: int | None) -> str | None:
    return None if moment is None else remora.iso(moment)
