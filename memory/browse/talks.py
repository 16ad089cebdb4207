"""Private conversations as their person reads them again: the list of them, their messages, and a search over all.

Invariant: only private sessions of the scope's own people are read. Erased messages are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memory.scope import Scope
from memory.store import attachments, postings
from memory.store.attachments import IS_QUOTED, Attached
from memory.store.database import Parameter, Reader, Row, walled


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation: the key of its branch used last, its title, "" if it has none, and the words it began with.

    `last_at` is in milliseconds UTC; `here` marks the one that is asked from.
    """

    session_key: str
    title: str
    pinned: bool
    opening: str
    last_at: int
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLine:
    """A line of a conversation, said by the person (`mine`) or by the bot. `turn_id` is None if it has no turn.

    `session_id` is not that of the conversation for what was said before it branched. `is_last` is True for the
    last line of its turn that the bot said.
    """

    id: int
    session_id: int
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
class BroughtFile:
    """A file as it came with a message, without its bytes; `is_kept` tells whether these are still there."""

    file: Attached
    is_kept: bool


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
    "m.id, m.session_id, m.turn_id, m.role, m.text, m.said_at, m.platform_ref, m.role = 'assistant' and not exists"
    " (select 1 from messages l where l.turn_id = m.turn_id and l.id > m.id and l.role = 'assistant'"
    " and l.nth is not null and l.erased_at is null) as is_last"
)
#: A session and those that it continues as a branch, each with the message from which on it is not continued.
_PATH = (
    "with recursive path(session_id, upto) as (select id, cast(9223372036854775807 as bigint) from sessions"
    " where key = ? union all select s.branch_of, s.branch_at from path p join sessions s on s.id = p.session_id"
    " where s.branch_of is not null)"
)
#: The condition that a path was not begun anew after a message; what is only summed up still belongs to it.
_UNBROKEN = (
    "not exists (select 1 from path q join sessions b on b.id = q.session_id where"
    " coalesce(b.summary_after, b.window_after) >= m.id and coalesce(b.summary_after, b.window_after) < q.upto)"
)
#: The most branches of a conversation that are shown.
_BRANCHES = 200
#: The condition for messages that people saw and that were not erased.
_SEEN = "m.role in ('user', 'assistant') and m.nth is not null and m.erased_at is null"
#: Greater than any id and any time.
END: Final = 2**62


@walled
def talks(reader: Reader, scope: Scope, *, platform: str, here: str = "", limit: int) -> list[Conversation]:
    """Returns conversations on a platform, pinned ones first, and of each kind those used last.

    The one that the session with the key `here` belongs to is marked.
    """
    within, opened = scope.owned("m"), scope.owned("f")
    rows = reader.all(
        "with used as (select coalesce(s.talk_id, s.id) as talk_id, s.key, max(m.said_at) as last_at,"
        " max(m.id) as last_id from sessions s join chats c on c.id = s.chat_id join messages m on m.session_id = s.id"
        f" where s.id in {_THEIRS} and c.platform = ? and m.nth is not null and m.erased_at is null and {within.sql}"
        " group by s.id, s.talk_id, s.key)"
        " select (select n.key from used n where n.talk_id = t.id order by n.last_id desc limit 1) as session_key,"
        " coalesce(t.title, '') as title, t.pinned_at is not null as pinned, u.last_at,"
        " t.id = (select coalesce(h.talk_id, h.id) from sessions h where h.key = ?) as here, coalesce((select text from"
        " messages f where f.session_id = t.id and f.role = 'user' and f.nth is not null and f.erased_at is null"
        f" and {opened.sql} order by f.id limit 1), '') as opening"
        " from (select talk_id, max(last_at) as last_at from used group by talk_id) u"
        " join sessions t on t.id = u.talk_id"
        " order by t.pinned_at is null, u.last_at desc limit ?",
        (scope.speakers, scope.agent_id, platform, *within.parameters, here, *opened.parameters, limit),
    )
    return [Conversation(**{**dict(row), "pinned": bool(row["pinned"]), "here": bool(row["here"])}) for row in rows]


def lines(
    reader: Reader, scope: Scope, session_key: str, *, limit: int, before: int = END, after: int | None = None
) -> list[ConversationLine]:
    """Returns the last lines of a conversation with ids below `before`, or the first ones above `after`, in order.

    They include those that it continues as a branch.
    """
    return _along(reader, scope, session_key, limit=limit, before=before, after=after)


def earlier(reader: Reader, scope: Scope, session_key: str, *, limit: int) -> list[ConversationLine]:
    """Returns the last messages that a conversation continues as a branch, up to where it was last begun anew."""
    return _along(reader, scope, session_key, f"p.upto < 9223372036854775807 and {_UNBROKEN}", limit=limit)


def said_as(reader: Reader, scope: Scope, session_key: str, platform_ref: str) -> ConversationLine | None:
    """Returns the person's message with this id in a conversation; None if there is none."""
    return next(
        iter(_along(reader, scope, session_key, "m.role = 'user' and m.platform_ref = ?", platform_ref, limit=1)), None
    )


def files(reader: Reader, scope: Scope, line: ConversationLine) -> tuple[Attached, ...]:
    """Returns what came with a message that the scope's people have said."""
    is_theirs = session_of_turn(reader, scope, line.turn_id or 0) == line.session_id
    return attachments.of_messages(reader, [line.id]).get(line.id, ()) if is_theirs else ()


@walled
def _along(
    reader: Reader,
    scope: Scope,
    session_key: str,
    only: str = "1 = 1",
    *given: str,
    limit: int,
    before: int = END,
    after: int | None = None,
) -> list[ConversationLine]:
    within = scope.owned("m")
    side, order = ("<", "desc") if after is None else (">", "asc")
    rows = reader.all(
        f"{_PATH} select {_LINE} from path p join messages m on m.session_id = p.session_id and m.id < p.upto"
        f" where {only} and m.session_id in {_THEIRS} and m.id {side} ? and {_SEEN} and {within.sql}"
        f" order by m.id {order} limit ?",
        (
            session_key, *given, scope.speakers, scope.agent_id, before if after is None else after,
            *within.parameters, limit,
        ),
    )  # fmt: skip
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
def versions(reader: Reader, scope: Scope, session_key: str) -> dict[int, list[tuple[str, int]]]:
    """Returns the versions of the messages where a conversation branches, by the id of each of them.

    Each is the key of its session and its id, oldest first.
    """
    within, first = scope.owned("m"), scope.owned("f")
    rows = reader.all(
        "select b.branch_of, b.branch_at, o.key as of_key, m.id as stays, b.key, (select min(f.id) from messages f"
        f" where f.session_id = b.id and f.role = 'user' and f.erased_at is null and {first.sql}) as began"
        " from sessions s join sessions b on b.talk_id = coalesce(s.talk_id, s.id)"
        " join sessions o on o.id = b.branch_of"
        f" left join messages m on m.id = b.branch_at and m.erased_at is null and {within.sql}"
        f" where s.key = ? and s.id in {_THEIRS} order by b.id limit ?",
        (*first.parameters, *within.parameters, session_key, scope.speakers, scope.agent_id, _BRANCHES),
    )
    forks: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for row in rows:
        own = [] if row["stays"] is None else [(row["of_key"], row["stays"])]
        fork = forks.setdefault((row["branch_of"], row["branch_at"]), own)
        fork += [] if row["began"] is None else [(row["key"], row["began"])]
    return {message_id: fork for fork in forks.values() if len(fork) > 1 for _, message_id in fork}


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


@walled
def sent(reader: Reader, scope: Scope, message_ids: Sequence[int]) -> dict[int, list[BroughtFile]]:
    """Returns what came with the person's own messages among these ids, in order."""
    within, files = scope.owned("m"), defaultdict(list)
    for row in reader.all(
        # Labels need no more of a text than its beginning.
        "select a.message_id, a.kind, a.name, a.media_type, a.size, a.state, a.why, substr(a.text, 1, 100) as text,"
        " a.data is not null as is_kept from messages m join attachments a on a.message_id = m.id"
        f" where m.id in (select value from json_each(?)) and m.role = 'user' and m.session_id in {_THEIRS}"
        f" and {within.sql} and not a.{IS_QUOTED} order by a.id",
        (message_ids, scope.speakers, scope.agent_id, *within.parameters),
    ):
        fields = dict(row)
        message_id, is_kept = fields.pop("message_id"), bool(fields.pop("is_kept"))
        files[message_id].append(BroughtFile(file=Attached(**fields), is_kept=is_kept))
    return files


@walled
def sent_one(reader: Reader, scope: Scope, session_key: str, platform_ref: str, *, nth: int) -> Attached | None:
    """Returns a file with its bytes or its text, by the message it came with and its place there from 0."""
    within = scope.owned("m")
    return reader.first(
        f"{_PATH} select a.kind, a.name, a.media_type, a.size, a.state, a.why, a.text, a.data from path p"
        " join messages m on m.session_id = p.session_id and m.id < p.upto join attachments a on a.message_id = m.id"
        f" where m.platform_ref = ? and m.role = 'user' and m.session_id in {_THEIRS} and {_SEEN}"
        f" and {within.sql} and not a.{IS_QUOTED} order by a.id limit 1 offset ?",
        (session_key, platform_ref, scope.speakers, scope.agent_id, *within.parameters, nth),
        lambda row: Attached(**dict(row)),
    )


@walled
def waiting(reader: Reader, scope: Scope, *, platform: str) -> int:
    """Returns how many messages wait in these people's private chats on a platform until one is opened."""
    return reader.number(
        "select count(*) from sessions s join chats c on c.id = s.chat_id join outbox o on o.session_key = s.key"
        f" where s.id in {_THEIRS} and c.platform = ? and o.state in ('pending', 'sending', 'unknown')"
        " and o.kind = 'message'",
        (scope.speakers, scope.agent_id, platform),
    )


def _line(row: Row) -> ConversationLine:
    return ConversationLine(mine=row["role"] == "user", **(_but_role(row) | {"is_last": bool(row["is_last"])}))


def _but_role(row: Row) -> dict[str, Any]:
    fields = dict(row)
    del fields["role"]
    return fields
