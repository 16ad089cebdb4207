"""Private conversations as their person reads them again: the list of them, their messages, and a search over all.

Invariant: only private sessions of the scope's own people are read. Erased messages are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from memory.scope import Scope
from memory.store import postings
from memory.store.database import Parameter, Reader, Row, walled


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation: its session's key and the words it began with. `last_at` is in milliseconds UTC."""

    session_key: str
    opening: str
    last_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLine:
    """A line of a conversation, said by the person (`mine`) or by the bot. `turn_id` is None if it has no turn.

    `is_last` is True for the last line of its turn that the bot said.
    """

    id: int
    turn_id: int | None
    mine: bool
    text: str
    said_at: int
    platform_ref: str | None
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationHit:
    """A message that holds what was sought, with its session's key and the words that its conversation began with."""

    id: int
    mine: bool
    text: str
    said_at: int
    platform_ref: str | None
    session_key: str
    opening: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """An answer that a memory entered: its turn, its time, and the message it answered (None if erased)."""

    turn_id: int
    answered_at: int
    asked: str | None


#: The private sessions of the people of a scope with its agent.
_THEIRS = (
    "(select s.id from sessions s join chats c on c.id = s.chat_id where c.kind = 'private'"
    " and c.identity_id in (select value from json_each(?)) and s.agent_id = ?)"
)

_LINE = (
    "m.id, m.turn_id, m.role, m.text, m.said_at, m.platform_ref, m.role = 'assistant' and not exists (select 1 from"
    " messages l where l.turn_id = m.turn_id and l.id > m.id and l.role = 'assistant' and l.nth is not null"
    " and l.erased_at is null) as is_last"
)
#: The condition for messages that people saw and that were not erased.
_SEEN = "m.role in ('user', 'assistant') and m.nth is not null and m.erased_at is null"
#: Greater than any id and any time.
END: Final = 2**62


@walled
def talks(reader: Reader, scope: Scope, *, platform: str, limit: int, skip: int = 0) -> list[Conversation]:
    within, opened = scope.owned("m"), scope.owned("f")
    rows = reader.all(
        "select s.key as session_key, max(m.said_at) as last_at, coalesce((select text from messages f"
        " where f.session_id = s.id and f.role = 'user' and f.nth is not null and f.erased_at is null"
        f" and {opened.sql} order by f.id limit 1), '') as opening"
        " from sessions s join chats c on c.id = s.chat_id join messages m on m.session_id = s.id"
        f" where s.id in {_THEIRS} and c.platform = ? and m.nth is not null and m.erased_at is null and {within.sql}"
        " group by s.id order by last_at desc, s.id desc limit ? offset ?",
        (*opened.parameters, scope.speakers, scope.agent_id, platform, *within.parameters, limit, skip),
    )
    return [Conversation(**dict(row)) for row in rows]


@walled
def lines(
    reader: Reader, scope: Scope, session_key: str, *, limit: int, before: int = END, after: int | None = None
) -> list[ConversationLine]:
    """Returns the last lines of a conversation with ids below `before`, or the first ones above `after`, in order."""
    within = scope.owned("m")
    side, order = ("<", "desc") if after is None else (">", "asc")
    rows = reader.all(
        f"select {_LINE} from messages m join sessions k on k.id = m.session_id where k.key = ? and k.id in {_THEIRS}"
        f" and m.id {side} ? and {_SEEN} and {within.sql} order by m.id {order} limit ?",
        (session_key, scope.speakers, scope.agent_id, before if after is None else after, *within.parameters, limit),
    )
    return [_line(row) for row in (reversed(rows) if after is None else rows)]


@walled
def said(
    reader: Reader, scope: Scope, terms: Collection[str], *, indexed: bool, limit: int, before: tuple[int, int]
) -> list[ConversationHit]:
    """Returns messages of all the person's conversations that hold each of the terms, the newest first.

    They were said before the time of `before`, or at that time with a lower id than its second. Without the index, they
    are those whose text has each term in it.
    """
    within, opened = scope.owned("m"), scope.owned("f")
    held = postings.HOLDING_ALL
    wanted: tuple[Parameter, ...] = (scope.partitions, list(terms), len(terms))
    if not indexed:
        held = "not exists (select 1 from json_each(?) w where instr(lower(m.text), cast(w.value as text)) = 0)"
        wanted = (list(terms),)
    rows = reader.all(
        "select m.id, m.role, m.text, m.said_at, m.platform_ref, k.key as session_key, coalesce((select text from"
        " messages f where f.session_id = k.id and f.role = 'user' and f.nth is not null and f.erased_at is null"
        f" and {opened.sql} order by f.id limit 1), '') as opening from messages m join sessions k"
        f" on k.id = m.session_id where {held} and k.id in {_THEIRS} and m.recall = 1 and {_SEEN} and {within.sql}"
        " and (m.said_at < ? or m.said_at = ? and m.id < ?) order by m.said_at desc, m.id desc limit ?",
        (
            *opened.parameters, *wanted, scope.speakers, scope.agent_id, *within.parameters,
            before[0], *before, limit,
        ),
    )  # fmt: skip
    return [ConversationHit(mine=row["role"] == "user", **_but_role(row)) for row in rows]


@walled
def keys_of(reader: Reader, scope: Scope, message_ids: Collection[int]) -> dict[int, str]:
    """Returns the key of the session of each message that its person can read again."""
    within = scope.owned("m")
    rows = reader.all(
        "select m.id, k.key from messages m join sessions k on k.id = m.session_id where m.id in"
        f" (select value from json_each(?)) and k.id in {_THEIRS} and {_SEEN} and {within.sql}",
        (list(message_ids), scope.speakers, scope.agent_id, *within.parameters),
    )
    return {row["id"]: row["key"] for row in rows}


@walled
def entered(reader: Reader, scope: Scope, memory_id: int, *, limit: int) -> list[Entered]:
    within = scope.owned("m")
    rows = reader.all(
        "select t.id as turn_id, coalesce(t.finished_at, t.started_at) as answered_at, (select text from messages m"
        f" where m.turn_id = t.id and m.role = 'user' and m.erased_at is null and m.nth is not null and {within.sql}"
        f" order by m.id desc limit 1) as asked from turns t where t.state = 'done' and t.session_id in {_THEIRS}"
        " and t.id in (select turn_id from recalls where item = 'memory' and item_id = ?) order by t.id desc limit ?",
        (*within.parameters, scope.speakers, scope.agent_id, memory_id, limit),
    )
    return [Entered(**dict(row)) for row in rows]


def used(reader: Reader, scope: Scope, memory_id: int) -> dict[tuple[int, str], int]:
    """Counts the answers whose prompt held a memory, by the day since 1970 (UTC) and how it came there; the latest."""
    rows = reader.all(
        "select coalesce(t.finished_at, t.started_at) / 86400000 as day, r.placed, count(*) as count"
        " from recalls r join turns t on t.id = r.turn_id where r.item = 'memory' and r.item_id = ?"
        f" and r.placed <> 'unused' and t.state = 'done' and t.session_id in {_THEIRS}"
        " group by 1, 2 order by 1 desc limit 400",
        (memory_id, scope.speakers, scope.agent_id),
    )
    return {(row["day"], row["placed"]): row["count"] for row in rows}


def session_of_turn(reader: Reader, scope: Scope, turn_id: int) -> int | None:
    """Returns the private session of the scope's people that holds a turn; None if another session does."""
    return reader.id(
        f"select session_id from turns where id = ? and session_id in {_THEIRS}",
        (turn_id, scope.speakers, scope.agent_id),
    )


@walled
def of_turn(reader: Reader, scope: Scope, turn_id: int) -> list[ConversationLine]:
    within = scope.owned("m")
    return reader.each(
        f"select {_LINE} from messages m where m.turn_id = ? and m.session_id in {_THEIRS} and {_SEEN}"
        f" and {within.sql} order by m.id",
        (turn_id, scope.speakers, scope.agent_id, *within.parameters),
        _line,
    )


def _line(row: Row) -> ConversationLine:
    return ConversationLine(mine=row["role"] == "user", **(_but_role(row) | {"is_last": bool(row["is_last"])}))


def _but_role(row: Row) -> dict[str, Any]:
    fields = dict(row)
    del fields["role"]
    return fields
