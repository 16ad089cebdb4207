"""Agents, people, places and sessions, and the scope that follows from them.

Invariants: people are known by (platform, user id), never by name; a session belongs to one place and one agent;
every identity, chat and agent that is written has its owner row.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.scope import Scope
from memory.store import memories, questions
from memory.store.database import Reader, Row, Transaction

ChatKind: TypeAlias = Literal["private", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """The identity that speaks and what its person has set.

    `learning` tells whether anything is learned from what they say, `about` whether from what others say of them,
    `manner` whether a manner of talking to them is.
    """

    id: int
    person_id: int
    name: str
    language: str | None
    timezone: str | None
    learning: bool
    about: bool = True
    manner: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One identity as its person knows it, with the language they have set, or None."""

    id: int
    platform: str
    user_id: str
    name: str
    language: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The conversation in one place. `snapshot` names the memories in its prompt; None means none taken yet.

    `manner` tells whether a manner of talking in a group is learned; in private that is the person's to say.
    """

    id: int
    key: str
    chat_id: int
    thread: str | None
    agent_id: int
    private: bool
    learning: bool
    window_after: int
    sitting: int
    summary: str | None
    active_task: str | None
    snapshot: tuple[int, ...] | None
    snapshot_at: int | None
    last_message_at: int | None
    manner: bool = True


def agent(tx: Transaction, name: str, *, now: int) -> int:
    """The stable id of the agent called `name`."""
    row = tx.one("select id from agents where name = ?", (name,))
    if row is not None:
        return int(row["id"])
    agent_id = tx.insert("insert into agents (name, created_at) values (?, ?)", (name, now))
    tx.run("insert into owners (kind, agent_id) values ('agent', ?)", (agent_id,))
    return agent_id


def agent_since(reader: Reader, agent_id: int) -> int:
    """When an agent was first served by this store, in milliseconds UTC."""
    row = reader.one("select created_at from agents where id = ?", (agent_id,))
    assert row is not None, f"no agent {agent_id}"
    return int(row["created_at"])


def speaker(tx: Transaction, *, platform: str, user_id: str, name: str, now: int) -> Speaker:
    """The identity behind a platform's user id, made on first sight; its display name follows the platform."""
    row = tx.one(_SPEAKER + " where i.platform = ? and i.user_id = ?", (platform, user_id))
    if row is None:
        person_id = tx.insert("insert into people (created_at) values (?)", (now,))
        identity_id = tx.insert(
            "insert into identities (person_id, platform, user_id, name, first_seen_at, last_seen_at)"
            " values (?, ?, ?, ?, ?, ?)",
            (person_id, platform, user_id, name, now, now),
        )
        tx.run("insert into owners (kind, identity_id) values ('identity', ?)", (identity_id,))
        return Speaker(id=identity_id, person_id=person_id, name=name, language=None, timezone=None, learning=True)
    tx.run("update identities set name = ?, last_seen_at = ? where id = ?", (name, now, row["id"]))
    return _speaker(row, name)


def known_speaker(reader: Reader, *, platform: str, user_id: str) -> Speaker | None:
    """The identity behind a platform's user id; None when nobody has spoken under it."""
    row = reader.one(_SPEAKER + " where i.platform = ? and i.user_id = ?", (platform, user_id))
    return None if row is None else _speaker(row, row["name"])


def chat(tx: Transaction, *, platform: str, reference: str, kind: ChatKind, title: str, now: int) -> int:
    """The id of a chat, made on first sight."""
    row = tx.one("select chat_id from chat_aliases where platform = ? and reference = ?", (platform, reference))
    if row is not None:
        return int(row["chat_id"])
    chat_id = tx.insert(
        "insert into chats (platform, kind, title, created_at) values (?, ?, ?, ?)",
        (platform, kind, title, now),
    )
    tx.run("insert into chat_aliases values (?, ?, ?, ?)", (platform, reference, chat_id, now))
    tx.run("insert into owners (kind, chat_id) values ('chat', ?)", (chat_id,))
    return chat_id


def session(tx: Transaction, *, key: str, chat_id: int, thread: str | None, agent_id: int, now: int) -> Session:
    """The session under `key`, made on first sight."""
    if (found := session_by_key(tx, key)) is not None:
        return found
    tx.run(
        "insert into sessions (key, chat_id, thread, agent_id, created_at) values (?, ?, ?, ?, ?)",
        (key, chat_id, thread, agent_id, now),
    )
    own_thread(tx, chat_id, thread)
    made = session_by_key(tx, key)
    assert made is not None
    return made


def own_thread(tx: Transaction, chat_id: int, thread: str | None) -> None:
    """Where threads keep their own memory, a thread without an owner would write to the whole chat's."""
    tx.run(
        "insert or ignore into owners (kind, chat_id, thread)"
        " select 'thread', id, ?1 from chats where id = ?2 and kind = 'group' and threads_own and ?1 is not null",
        (thread, chat_id),
    )


def present(tx: Transaction, *, platform: str, channel: str, reference: str, left_at: int | None) -> list[str]:
    """Note that a channel's bot is in a chat, or since when (milliseconds UTC) it is not; returns its sessions there.

    `channel` is named as in session keys: a chat is left when the last of its bots is gone. Platforms tell again and
    again that a bot is shut out: the first time counts.
    """
    keys = _session_keys(tx, platform=platform, reference=reference)
    own = [key for key in keys if key.startswith(f"{channel}:")]
    tx.run(
        "update sessions set left_at = iif(?1 is null, null, coalesce(left_at, ?1))"
        " where key in (select value from json_each(?2))",
        (left_at, json.dumps(own)),
    )
    tx.run(
        "update chats set left_at = (select iif(count(*) = count(s.left_at), max(s.left_at), null) from sessions s"
        " where s.chat_id = chats.id)"
        " where id = (select chat_id from chat_aliases where platform = ? and reference = ?)",
        (platform, reference),
    )
    return own


def heard_in(tx: Transaction, session: Session, speaker_id: int) -> None:
    """Somebody speaks in a session, so the bot is there, whatever was noted; a private chat is theirs."""
    tx.run("update chats set left_at = null where id = ? and left_at is not null", (session.chat_id,))
    tx.run(
        "update chats set identity_id = ?1 where id = ?2 and kind = 'private' and identity_id is not ?1",
        (speaker_id, session.chat_id),
    )
    tx.run("update sessions set left_at = null where id = ? and left_at is not null", (session.id,))


def is_present(reader: Reader, session: Session) -> bool:
    """Whether the bot is still where a session is held, as far as was noted."""
    return reader.one("select 1 from sessions where id = ? and left_at is null", (session.id,)) is not None


def move_chat(tx: Transaction, *, platform: str, reference: str, new_reference: str, now: int) -> list[str]:
    """The chat known as `reference` is now also `new_reference`; returns the session keys that name it the old way.

    Where people already spoke under the new name before this was known, both names mean the older chat from now on;
    what was said there in between keeps the newer chat's owner.
    """
    row = tx.one("select chat_id from chat_aliases where platform = ? and reference = ?", (platform, reference))
    if row is None:
        return []
    tx.run(
        "insert into chat_aliases values (?, ?, ?, ?) on conflict do update set chat_id = excluded.chat_id",
        (platform, new_reference, row["chat_id"], now),
    )
    return _session_keys(tx, platform=platform, reference=reference)


def rename_session(tx: Transaction, key: str, new_key: str) -> None:
    """Have a session go on under another key, unless one has begun there already."""
    tx.run("update or ignore sessions set key = ? where key = ?", (new_key, key))


def _session_keys(reader: Reader, *, platform: str, reference: str) -> list[str]:
    rows = reader.all(
        "select s.key from sessions s join chat_aliases a on a.chat_id = s.chat_id"
        " where a.platform = ? and a.reference = ?",
        (platform, reference),
    )
    return [row["key"] for row in rows]


def reassign(tx: Transaction, session: Session, agent_id: int) -> Session:
    """Have another agent serve a session: its snapshot held what the other one may see."""
    tx.run(
        "update sessions set agent_id = ?, snapshot = null, snapshot_at = null where id = ?",
        (agent_id, session.id),
    )
    return session_by_id(tx, session.id)


def session_by_key(reader: Reader, key: str) -> Session | None:
    row = reader.one(_SESSION + " where s.key = ?", (key,))
    return None if row is None else _session(row)


def session_elsewhere(reader: Reader, key: str, *, chat_id: int, thread: str | None) -> Session | None:
    """The session of this channel and place that goes on under another key, since the chat has got another id."""
    row = reader.one(
        _SESSION + " where s.chat_id = ? and s.thread is ? and substr(s.key, 1, instr(s.key, ':')) = ?",
        (chat_id, thread, key[: key.index(":") + 1]),
    )
    return None if row is None else _session(row)


def session_by_id(reader: Reader, session_id: int) -> Session:
    row = reader.one(_SESSION + " where s.id = ?", (session_id,))
    assert row is not None
    return _session(row)


def is_on(reader: Reader, session: Session, platform: str) -> bool:
    """Whether a session's chat is one of this platform's."""
    return reader.one("select 1 from chats where id = ? and platform = ?", (session.chat_id, platform)) is not None


def speaker_by_id(reader: Reader, identity_id: int) -> Speaker:
    row = reader.one(_SPEAKER + " where i.id = ?", (identity_id,))
    assert row is not None
    return _speaker(row, row["name"])


def last_speaker(reader: Reader, session_id: int) -> int | None:
    """The identity that spoke last in a session."""
    row = reader.one(
        "select author_id from messages where session_id = ? and author_id is not null order by id desc limit 1",
        (session_id,),
    )
    return None if row is None else int(row["author_id"])


def accounts(reader: Reader, identity_id: int) -> list[Account]:
    """Every identity of the person behind one, that one among them, in the order in which they were first seen."""
    rows = reader.all(
        _ACCOUNT + " where i.person_id = (select person_id from identities where id = ?) order by i.id", (identity_id,)
    )
    return [Account(**dict(row)) for row in rows]


def account(reader: Reader, identity_id: int) -> Account | None:
    row = reader.one(_ACCOUNT + " where i.id = ?", (identity_id,))
    return None if row is None else Account(**dict(row))


def private_session(reader: Reader, identity_id: int) -> Session | None:
    """Where somebody can be told something for their eyes alone: their private chat that was used last."""
    row = reader.one(
        _SESSION + " where c.identity_id = ? and c.kind = 'private' and s.left_at is null"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (identity_id,),
    )
    return None if row is None else _session(row)


def group_session(reader: Reader, *, platform: str, reference: str, thread: str | None) -> Session | None:
    """Where a group, or a thread of it, has talked last, by its platform's id."""
    row = reader.one(
        _SESSION + " join chat_aliases a on a.chat_id = c.id where a.platform = ? and a.reference = ?"
        " and c.kind = 'group' and (?3 is null or s.thread = ?3)"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (platform, reference, thread),
    )
    return None if row is None else _session(row)


def owners_of_chat(reader: Reader, chat_id: int) -> list[int]:
    """The owners of what is kept in a chat and its threads."""
    return [int(row["id"]) for row in reader.all("select id from owners where chat_id = ? order by id", (chat_id,))]


def names(reader: Reader, identity_ids: Collection[int]) -> dict[int, str]:
    """What the platforms call these identities."""
    marks = ", ".join("?" for _ in identity_ids)
    rows = reader.all(f"select id, name from identities where id in ({marks})", tuple(identity_ids))
    return {row["id"]: row["name"] for row in rows}


def link(tx: Transaction, identity_id: int, other_id: int) -> None:
    """Make one person of the people behind two identities, whatever else is linked to either.

    Rows keep their owners: only who may read them changes. What the first has set holds, then what the other has;
    whoever wanted nothing learned keeps that.
    """
    person_id, other_person_id = (speaker_by_id(tx, each).person_id for each in (identity_id, other_id))
    if person_id == other_person_id:
        return
    tx.run(
        "update people set language = coalesce(people.language, other.language),"
        " timezone = coalesce(people.timezone, other.timezone), learning = min(people.learning, other.learning),"
        " about = min(people.about, other.about), manner = min(people.manner, other.manner)"
        " from people as other where people.id = ? and other.id = ?",
        (person_id, other_person_id),
    )
    tx.run("update identities set person_id = ? where person_id = ?", (person_id, other_person_id))
    tx.run("delete from people where id = ?", (other_person_id,))
    drop_snapshots(tx)


def unlink(tx: Transaction, identity_id: int) -> list[int]:
    """Have an identity stand for a person alone again, with the settings it had last.

    What was derived from rows of both sides goes, and what it was derived from comes back, to be compressed anew.
    Facts are merged per owner, so no profile slot hangs on what goes. Returns the ids of the memories that went.
    """
    person_id = speaker_by_id(tx, identity_id).person_id
    questions.withdraw_naming(tx, [each.id for each in accounts(tx, identity_id)])
    together = tx.all(
        "select o.id, o.identity_id from owners o join identities i on i.id = o.identity_id where i.person_id = ?",
        (person_id,),
    )
    if len(together) < 2:
        return []
    alone_id = tx.insert(
        "insert into people (language, timezone, learning, about, manner, created_at)"
        " select language, timezone, learning, about, manner, created_at from people where id = ?",
        (person_id,),
    )
    tx.run("update identities set person_id = ? where id = ?", (alone_id, identity_id))
    drop_snapshots(tx)
    leaves = {int(row["id"]): row["identity_id"] == identity_id for row in together}
    return memories.take_apart(tx, _of_both_sides(tx, leaves))


def begin_anew(tx: Transaction, identity_id: int) -> None:
    """All of a person is erased: each of their identities stands alone from now on, with nothing set.

    What they wanted not to be learned stays so, or the next message would be learned from again.
    """
    for each in accounts(tx, identity_id):
        unlink(tx, each.id)
        tx.run(
            "update people set language = null, timezone = null where id ="
            " (select person_id from identities where id = ?)",
            (each.id,),
        )


def _of_both_sides(tx: Transaction, leaves: Mapping[int, bool]) -> list[int]:
    """Memories that hold something of owners who leave and of owners who stay: as their parents' or as their own."""
    marks = ", ".join("?" for _ in leaves)
    rows = tx.all(
        "select p.memory_id, d.owner_id as own, m.owner_id as made_of from memories m"
        " join memory_parents p on p.parent_id = m.id join memories d on d.id = p.memory_id"
        f" where m.owner_id in ({marks})",
        tuple(leaves),
    )
    sides: defaultdict[int, set[bool]] = defaultdict(set)
    for row in rows:
        sides[row["memory_id"]] |= {leaves[owner] for owner in (row["own"], row["made_of"]) if owner in leaves}
    return [memory_id for memory_id, found in sides.items() if len(found) == 2]


def scope_of(reader: Reader, session: Session, speaker_id: int | None) -> Scope:
    """What `speaker_id` may see and add to in `session`.

    Private: every identity linked to the person, and the agent. Group: the chat, its thread where threads keep
    their own memory, and the agent; never anything of a single person.
    """
    owners = reader.all("select id from owners where kind = 'agent' and agent_id = ?", (session.agent_id,))
    readable = [int(row["id"]) for row in owners]
    own: tuple[int, ...] = ()
    selves: tuple[int, ...] = ()
    if session.private:
        rows = reader.all(
            "select o.id, o.identity_id from owners o join identities i on i.id = o.identity_id"
            " where o.kind = 'identity' and i.person_id = (select person_id from identities where id = ?)",
            (speaker_id,),
        )
        selves = tuple(int(row["identity_id"]) for row in rows)
        writes_to = next(int(row["id"]) for row in rows if row["identity_id"] == speaker_id)
        own = tuple(int(row["id"]) for row in rows)
        readable += own
    else:
        rows = reader.all(
            "select o.id, o.kind from owners o join chats c on c.id = o.chat_id where o.chat_id = ?"
            " and (o.kind = 'chat' or (c.threads_own and o.thread = ?)) order by o.kind",
            (session.chat_id, session.thread),
        )
        # A thread with its own memory sorts last and is where its talk is kept.
        writes_to = int(rows[-1]["id"])
        readable += [int(row["id"]) for row in rows]
    return Scope(
        agent_id=session.agent_id,
        owners=tuple(readable),
        own=own,
        writes_to=writes_to,
        speaker_id=speaker_id,
        selves=selves,
        private=session.private,
    )


def scope_of_owner(reader: Reader, owner_id: int, *, agent_id: int) -> Scope:
    """What a job of an agent may see and change of one owner: their own rows, and of others nothing."""
    row = reader.one("select kind, identity_id from owners where id = ?", (owner_id,))
    assert row is not None, f"no owner {owner_id}"
    personal = row["kind"] == "identity"
    return Scope(
        agent_id=agent_id,
        owners=(owner_id,),
        own=(owner_id,) if personal else (),
        writes_to=owner_id,
        speaker_id=row["identity_id"],
        selves=(),
        private=personal,
    )


def owners_served(reader: Reader, agent_id: int, *, among: Sequence[int] | None = None) -> list[int]:
    """The owners whose night is an agent's to work: those who have talked with it last, where it still is.

    So where agents share people each of these has one agent that goes through their rows. With `among` only these
    agents have nights: who talks with others alone, or with one that is gone, is the first one's of these.
    """
    talked = "s.agent_id, coalesce(s.last_message_at, s.created_at) as at, s.id, c.left_at"
    talked += ", ?2 is not null and s.agent_id not in (select value from json_each(?2)) as sleeps"
    rows = reader.all(
        "select owner_id from"
        " (select *, row_number() over (partition by owner_id order by sleeps, at desc, id desc) as n from ("
        f" select o.id as owner_id, {talked} from chats c join sessions s on s.chat_id = c.id"
        " join owners o on o.kind = 'identity' and o.identity_id = c.identity_id where c.kind = 'private'"
        f" union all select o.id, {talked} from chats c join sessions s on s.chat_id = c.id"
        " join owners o on o.kind = 'chat' and o.chat_id = c.id where c.kind = 'group'"
        f" union all select o.id, {talked} from chats c join sessions s on s.chat_id = c.id"
        " join owners o on o.kind = 'thread' and o.chat_id = c.id and o.thread = s.thread))"
        " where n = 1 and ?1 = iif(sleeps, ?2 ->> 0, agent_id) and left_at is null order by owner_id",
        (agent_id, None if among is None else json.dumps(list(among))),
    )
    return [int(row["owner_id"]) for row in rows]


def start_window(tx: Transaction, session_id: int, *, after: int) -> None:
    """Let the window begin after message `after`; task, summary and snapshot go with the old one."""
    tx.run(
        "update sessions set window_after = ?, sitting = sitting + 1, summary = null, active_task = null,"
        " snapshot = null, snapshot_at = null where id = ?",
        (after, session_id),
    )


def set_task(tx: Transaction, session_id: int, task: str | None) -> None:
    """What is being worked on in a session; None: nothing."""
    tx.run("update sessions set active_task = ? where id = ?", (task, session_id))


def trim_window(tx: Transaction, session_id: int, *, after: int) -> None:
    """Let older messages leave the window without ending the conversation."""
    tx.run("update sessions set window_after = ? where id = ?", (after, session_id))


def keep_snapshot(tx: Transaction, session_id: int, memory_ids: tuple[int, ...], *, now: int) -> None:
    tx.run(
        "update sessions set snapshot = ?, snapshot_at = ? where id = ?",
        (json.dumps(memory_ids), now, session_id),
    )


def set_learning(tx: Transaction, session: Session, on: bool) -> None:
    """Whether anything is learned from what is said in a session's chat from now on."""
    tx.run("update chats set learning = ? where id = ?", (int(on), session.chat_id))


def set_language(tx: Transaction, speaker: Speaker, language: str | None) -> None:
    """The language a person wants to be spoken to in; None leaves it to what they write."""
    tx.run("update people set language = ? where id = ?", (language, speaker.person_id))


def set_timezone(tx: Transaction, speaker: Speaker, timezone: str | None) -> None:
    """Where a person lives in time, by its name in the IANA list; None leaves it to the agent's."""
    tx.run("update people set timezone = ? where id = ?", (timezone, speaker.person_id))


def set_manner(tx: Transaction, session: Session, speaker: Speaker, on: bool) -> None:
    """Whether a manner of talking is learned from now on: to this person, or in a group's session to that group."""
    if session.private:
        tx.run("update people set manner = ? where id = ?", (int(on), speaker.person_id))
    else:
        tx.run("update chats set manner = ? where id = ?", (int(on), session.chat_id))


def learns_manner(reader: Reader, owner_id: int) -> bool:
    """Whether a manner of talking is learned to an owner: a person or group that has not switched it off."""
    row = reader.one(
        "select coalesce(p.manner, c.manner, 0) as manner from owners o left join identities i on i.id = o.identity_id"
        " left join people p on p.id = i.person_id left join chats c on c.id = o.chat_id where o.id = ?",
        (owner_id,),
    )
    return row is not None and bool(row["manner"])


def learned_of(reader: Reader, owner_ids: Collection[int]) -> list[int]:
    """Those owners of whom anything is learned: who wants that, and has it on in a chat of their own, or their group.

    While nothing is, nothing is concluded from what is there either.
    """
    rows = reader.all(
        "select o.id from json_each(?) asked join owners o on o.id = asked.value"
        " left join identities i on i.id = o.identity_id left join people p on p.id = i.person_id"
        " where coalesce(p.learning, 1) and coalesce((select c.learning from chats c where c.id = o.chat_id),"
        " (select max(c.learning) from chats c where c.identity_id = o.identity_id and c.kind = 'private'), 1)",
        (json.dumps(list(owner_ids)),),
    )
    return [int(row["id"]) for row in rows]


def drop_snapshots(tx: Transaction) -> None:
    """Have every session take a new snapshot at its next turn: who may read what has changed."""
    tx.run("update sessions set snapshot = null, snapshot_at = null where snapshot is not null")


def drop_snapshots_of(tx: Transaction, owner_ids: Collection[int], author_ids: Collection[int]) -> None:
    """The same for those who see rows of these owners, or what these identities said of themselves in a group."""
    tx.run(
        "update sessions set snapshot = null, snapshot_at = null where snapshot is not null and ("
        " chat_id in (select chat_id from owners where id in (select value from json_each(?1)))"
        " or agent_id in (select agent_id from owners where id in (select value from json_each(?1)))"
        " or chat_id in (select c.id from chats c join identities mine on mine.id = c.identity_id"
        "   join identities i on i.person_id = mine.person_id where i.id in (select value from json_each(?2))"
        "   or i.id in (select identity_id from owners where id in (select value from json_each(?1)))))",
        (json.dumps(sorted(owner_ids)), json.dumps(sorted(author_ids))),
    )


_SPEAKER = (
    "select i.id, i.person_id, i.name, p.language, p.timezone, p.learning, p.about, p.manner"
    " from identities i join people p on p.id = i.person_id"
)

_ACCOUNT = (
    "select i.id, i.platform, i.user_id, i.name, p.language from identities i join people p on p.id = i.person_id"
)

_SESSION = (
    "select s.id, s.key, s.chat_id, s.thread, s.agent_id, s.window_after, s.sitting, s.summary,"
    " s.active_task, s.snapshot, s.snapshot_at, s.last_message_at, c.kind = 'private' as private, c.learning, c.manner"
    " from sessions s join chats c on c.id = s.chat_id"
)


def _speaker(row: Row, name: str) -> Speaker:
    return Speaker(
        id=row["id"],
        person_id=row["person_id"],
        name=name,
        language=row["language"],
        timezone=row["timezone"],
        learning=bool(row["learning"]),
        about=bool(row["about"]),
        manner=bool(row["manner"]),
    )


def _session(row: Row) -> Session:
    snapshot = row["snapshot"]
    return Session(
        id=row["id"],
        key=row["key"],
        chat_id=row["chat_id"],
        thread=row["thread"],
        agent_id=row["agent_id"],
        private=bool(row["private"]),
        learning=bool(row["learning"]),
        window_after=row["window_after"],
        sitting=row["sitting"],
        summary=row["summary"],
        active_task=row["active_task"],
        snapshot=None if snapshot is None else tuple(json.loads(snapshot)),
        snapshot_at=row["snapshot_at"],
        last_message_at=row["last_message_at"],
        manner=bool(row["manner"]),
    )
