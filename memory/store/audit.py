"""The audit: the view an admin has of one person or group, and the record of every look.

Invariants: A view holds rows of one identity, or of one chat with its threads, never of accounts linked with them. It
exists only if that person or group has a session on the admin's own channel. It is made from committed rows. A look is
recorded under the person or group it was aimed at, whatever its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.scope import Scope
from memory.store.database import Reader, Transaction, walled

Action: TypeAlias = Literal["list", "search", "show", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One look of an admin. `found` is the number of memories shown or removed; `looked_at` is in milliseconds UTC."""

    admin_id: int
    admin_name: str
    agent: str
    action: Action
    found: int
    looked_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminView:
    """An admin's view of one person or group: a scope for each agent that serves them on the admin's channel.

    `scopes` is empty if they have nothing to do with the channel. Looks are recorded under `owner_id`.
    """

    owner_id: int
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPerson:
    """A person who talks to the bot on a channel: their id there, and the number and last time of private messages."""

    user_id: str
    name: str
    messages: int
    last_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMemory:
    """A live memory by its id, with its kind and `order`, the tuple it is ranked by."""

    id: int
    kind: str
    order: tuple[int, ...]


def view_of(reader: Reader, channel: str, reference: str) -> AdminView | None:
    """Returns the view of a person (by user id) or group (by chat id) for an admin of `channel`, as in session keys.

    Returns None if neither is known on the platform of that channel at all.
    """
    channel = f"{channel}:"
    platform = _platform(reader, channel)
    person = reader.one(
        "select i.id, o.id as owner_id from identities i join owners o on o.kind = 'identity' and o.identity_id = i.id"
        " where i.platform = ? and i.user_id = ?",
        (platform, reference),
    )
    if person is not None:
        agents = _serving_person(reader, person["id"], reference, channel)
        return _view(agents, (person["owner_id"],), identity_id=person["id"])
    chat = reader.one(
        "select c.id from chats c join chat_aliases a on a.chat_id = c.id where c.kind = 'group'"
        " and a.platform = ? and a.reference = ?",
        (platform, reference),
    )
    if chat is None:
        return None
    # The chat's own row sorts before the rows of its threads.
    owners = reader.all("select id from owners where chat_id = ? order by kind, id", (chat["id"],))
    serving = reader.all(
        "select distinct agent_id from sessions where chat_id = ?1 and substr(key, 1, length(?2)) = ?2"
        " order by agent_id",
        (chat["id"], channel),
    )
    return _view([row["agent_id"] for row in serving], tuple(row["id"] for row in owners), identity_id=None)


@walled
def standing(reader: Reader, scope: Scope) -> list[RankedMemory]:
    """Returns the live facts, styles, events and reflections of a view's scope, in no particular order."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.kind, m.pinned, m.importance, m.last_reinforced_at from memories m"
        " where m.kind in ('fact', 'style', 'event', 'reflection')"
        f" and m.superseded_by is null and m.archived_at is null and m.valid_until is null and {within.sql}",
        within.parameters,
    )
    return [
        RankedMemory(
            id=row["id"],
            kind=row["kind"],
            order=(row["pinned"], row["importance"], row["last_reinforced_at"], row["id"]),
        )
        for row in rows
    ]


def people_of(reader: Reader, channel: str, *, limit: int) -> list[ChannelPerson]:
    """Returns the people who have said something in private on a channel, as in session keys, the latest first."""
    rows = reader.all(
        "select i.user_id, i.name, count(*) as messages, max(m.said_at) as last_at from messages m"
        " join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id"
        " join identities i on i.id = m.author_id"
        " where c.kind = 'private' and substr(s.key, 1, length(?1)) = ?1 and m.role = 'user'"
        " group by i.id order by last_at desc limit ?2",
        (f"{channel}:", limit),
    )
    return [ChannelPerson(**dict(row)) for row in rows]


def note(tx: Transaction, owner_id: int, *, admin_id: int, agent_id: int, action: Action, found: int, now: int) -> None:
    """Records a look; `now` is in milliseconds UTC."""
    tx.run(
        "insert into looks (owner_id, admin_id, agent_id, action, found, looked_at) values (?, ?, ?, ?, ?, ?)",
        (owner_id, admin_id, agent_id, action, found, now),
    )


def count(reader: Reader, owner_ids: Sequence[int]) -> int:
    """Returns the number of looks at the memory of these owners."""
    marks = ", ".join("?" for _ in owner_ids)
    row = reader.one(f"select count(*) as n from looks where owner_id in ({marks})", tuple(owner_ids))
    assert row is not None
    return int(row["n"])


def of_owners(reader: Reader, owner_ids: Sequence[int], limit: int, *, before: int = 0) -> list[AuditEntry]:
    """Returns the looks at the memory of these owners, newest first, without the `before` newest.

    Looks at a group are recorded under the chat, not under a thread.
    """
    marks = ", ".join("?" for _ in owner_ids)
    rows = reader.all(
        "select l.admin_id, i.name as admin_name, a.name as agent, l.action, l.found, l.looked_at from looks l"
        f" join identities i on i.id = l.admin_id join agents a on a.id = l.agent_id where l.owner_id in ({marks})"
        " order by l.looked_at desc, l.id desc limit ? offset ?",
        (*owner_ids, limit, before),
    )
    return [AuditEntry(**dict(row)) for row in rows]


def drop_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Deletes the looks at the memory of these identities."""
    tx.run(
        "delete from looks where owner_id in (select id from owners"
        " where identity_id in (select value from json_each(?)))",
        (identity_ids,),
    )


def _platform(reader: Reader, channel: str) -> str | None:
    """Returns the platform of a channel (with its colon); None if nobody has ever spoken there."""
    row = reader.one(
        "select c.platform from sessions s join chats c on c.id = s.chat_id"
        " where substr(s.key, 1, length(?1)) = ?1 limit 1",
        (channel,),
    )
    return None if row is None else str(row["platform"])


def _serving_person(reader: Reader, identity_id: int, reference: str, channel: str) -> list[int]:
    """Returns the agents that serve a person in private on a channel.

    The person is recognised by their messages or questions there, or by a chat id equal to their user id, on the
    platforms that number private chats that way.
    """
    return reader.ids(
        "select distinct s.agent_id from sessions s join chats c on c.id = s.chat_id"
        " where c.kind = 'private' and substr(s.key, 1, length(?3)) = ?3 and s.id in ("
        "   select m.session_id from messages m where m.author_id = ?1"
        "   union select q.session_id from questions q where q.asker_id = ?1"
        "   union select h.id from chat_aliases a join sessions h on h.chat_id = a.chat_id"
        "     where a.reference = ?2 and a.platform = (select platform from identities where id = ?1))"
        " order by s.agent_id",
        (identity_id, reference, channel),
    )


def _view(agent_ids: Sequence[int], owner_ids: tuple[int, ...], *, identity_id: int | None) -> AdminView:
    scopes = [
        Scope(
            agent_id=agent_id,
            owners=owner_ids,
            own=owner_ids if identity_id is not None else (),
            writes_to=owner_ids[0],
            speaker_id=identity_id,
            # A person's fact about themselves from a group belongs to that group.
            selves=(),
            private=identity_id is not None,
        )
        for agent_id in agent_ids
    ]
    return AdminView(owner_id=owner_ids[0], scopes=tuple(scopes))
