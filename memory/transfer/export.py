"""Exports everything a scope holds, as the rows that go out to its owner.

Invariants: every row comes through the scope's own condition. Memories that an agent shares with everybody go out only
with that agent. Erased words are left out. With memories of a person's statements about themselves in a group, only
their own words go out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from memory.browse.talks import ConversationLine
from memory.reminders import reminding
from memory.reminders.reminding import Reminder
from memory.scope import Scope
from memory.store import chats, people, scopes
from memory.store.database import Reader, Row, walled
from memory.transfer.formats import remora
from memory.transfer.formats.material import Person

Fields: TypeAlias = dict[str, Any]

_KINDS: Final = ("profile", "directive", "fact", "style", "reflection", "event")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export: `data` for another Remora and `page` for people. `memories` and `messages` count its content."""

    data: bytes
    page: str
    memories: int
    messages: int


def export(reader: Reader, scope: Scope, *, shared: bool, transcript: bool, now: int) -> Exported:
    """Returns all memories of the scope, with their source messages or, with `transcript`, all messages.

    In private, the person's reminders are included.

    With `shared`, returns the memories that an agent shares with everybody, which are left out otherwise.
    """
    memories = _memories(reader, scope, shared=shared)
    wanted = {message_id for memory in memories for message_id in memory["sources"]}
    messages = _messages(reader, scope, wanted, everything=transcript and not shared)
    numbers = {row["id"]: n for n, row in enumerate(messages, 1)}
    for one in memories:
        one["sources"] = [numbers[message_id] for message_id in one["sources"] if message_id in numbers]
    said = [_message(row, numbers[row["id"]], scope) for row in messages]
    of = _of(reader, scope, shared=shared)
    # A group's reminders belong to the people who asked for them.
    held = (
        reminding.of_reach(reader, reminding.ReminderReach(scope.speakers, None))
        if scope.private and not shared
        else []
    )
    due = [_reminder(reminder) for reminder in held if reminder.first]
    return Exported(
        data=remora.write(of=of, exported_at=now, memories=memories, messages=said, reminders=due),
        page=remora.page(of=of, exported_at=now, memories=memories, messages=said, reminders=due),
        memories=sum(memory["kind"] not in ("profile", "directive") for memory in memories),
        messages=len(said),
    )


def talk(reader: Reader, scope: Scope, lines: Sequence[ConversationLine], *, now: int) -> Exported:
    """Returns the messages of one conversation, without memories."""
    of = _of(reader, scope, shared=False)
    name = str(of.get("name") or "person")
    said: list[Fields] = [
        {
            "n": n, "time": remora.iso(line.said_at), "role": "user" if line.mine else "assistant",
            "author": remora.person(remora.OWNER) if line.mine else None, "name": name if line.mine else "",
            "text": line.text, "thread": None, "recall": True,
        }
        for n, line in enumerate(lines, 1)
    ]  # fmt: skip
    agent = scopes.agent_name(reader, scope.agent_id) or ""
    page = [f"**{name if line.mine else agent}**, {remora.iso(line.said_at)[:16]}\n\n{line.text}" for line in lines]
    return Exported(
        data=remora.write(of=of, exported_at=now, memories=[], messages=said),
        page="\n\n---\n\n".join(page) + "\n",
        memories=0,
        messages=len(said),
    )


@walled
def _memories(reader: Reader, scope: Scope, *, shared: bool) -> list[Fields]:
    """Returns the memories of a scope, by validity; with `shared` those that an agent holds for everybody instead."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.short_id, m.kind, m.category, m.key, m.value, m.subject, m.topic, m.tags, m.flags,"
        " m.importance, m.confidence, m.strength, m.origin, m.learned_at, m.local_date, m.valid_from, m.valid_until,"
        " m.archived_at, m.pinned, m.confirmed, m.access_count, m.reinforced_count, m.last_reinforced_at,"
        " m.author_id, m.subject_id, x.short_id as next, g.name as agent, o.kind as place,"
        " m.owner_id, a.platform as author_platform, a.user_id as author_user, a.name as author_name,"
        " b.platform as about_platform, b.user_id as about_user, b.name as about_name,"
        " (select json_group_array(s.message_id) from memory_sources s where s.memory_id = m.id) as sources"
        " from memories m join owners o on o.id = m.owner_id left join memories x on x.id = m.superseded_by"
        " left join agents g on g.id = m.agent_id left join identities a on a.id = m.author_id"
        " left join identities b on b.id = m.subject_id"
        f" where case when o.kind = 'agent' then 1 else 0 end = ? and {within.sql} order by m.valid_from, m.id",
        (int(shared), *within.parameters),
    )
    return [_memory(row, scope) for row in rows if row["kind"] in _KINDS]


@walled
def _messages(reader: Reader, scope: Scope, wanted: Collection[int], *, everything: bool) -> list[Row]:
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


#: Fields of a memory that go out as they are stored.
_AS_STORED: Final = (
    "kind", "category", "key", "value", "subject", "topic", "agent", "importance", "confidence", "strength", "origin",
    "local_date", "access_count", "reinforced_count",
)  # fmt: skip
_FLAGS: Final = ("pinned", "confirmed")
_LISTS: Final = ("tags", "flags", "sources")
_TIMES: Final = ("learned_at", "valid_from", "valid_until", "archived_at", "last_reinforced_at")


def _memory(row: Row, scope: Scope) -> Fields:
    return {
        "id": row["short_id"],
        **{name: row[name] for name in _AS_STORED},
        **{name: bool(row[name]) for name in _FLAGS},
        **{name: json.loads(row[name]) for name in _LISTS},
        **({} if scope.is_own(row["owner_id"], row["author_id"]) else {"tags": []}),
        **{name: _iso(row[name]) for name in _TIMES},
        "by": _whom(scope, row["author_id"], row["author_platform"], row["author_user"], row["author_name"]),
        "about": _whom(scope, row["subject_id"], row["about_platform"], row["about_user"], row["about_name"]),
        "said_in": "private" if row["place"] == "identity" else row["place"],
        "superseded_by": row["next"],
    }


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


def _reminder(one: Reminder) -> Fields:
    return {
        "text": one.text,
        "kind": one.kind,
        "first": one.first,
        "timezone": one.zone,
        "rule": one.rule,
        "until": one.until,
        "next": _iso(one.next_at),
        "asked_at": remora.iso(one.created_at),
    }


def _of(reader: Reader, scope: Scope, *, shared: bool) -> Fields:
    if shared:
        return {"kind": "agent", "name": scopes.agent_name(reader, scope.agent_id)}
    if scope.private:
        assert scope.speaker_id is not None
        who = people.account(reader, scope.speaker_id)
        return {"kind": "person"} | (
            {} if who is None else {"platform": who.platform, "user_id": who.user_id, "name": who.name}
        )
    group = chats.group_of(reader, scope.writes_to)
    return {"kind": "group"} | ({} if group is None else dict(group))


def _whom(scope: Scope, identity_id: int | None, platform: str | None, user_id: str | None, name: str | None) -> object:
    if identity_id is None or platform is None or user_id is None:
        return None
    if identity_id in scope.selves:
        return remora.person(remora.OWNER)
    return remora.person(Person(platform=platform, user_id=user_id, name=name or ""))


def _iso(moment: int | None) -> str | None:
    return None if moment is None else remora.iso(moment)
