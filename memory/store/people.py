"""Agents, people, places and sessions, and the scopes that follow from them.

Invariants: People are identified by (platform, user id), never by name. A session belongs to one place and one agent.
Every identity, chat and agent that is written has its owner row.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.scope import Scope
from memory.store import erasure, memories, questions
from memory.store.database import Reader, Row, Transaction

ChatKind: TypeAlias = Literal["private", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """The identity that speaks and the settings of its person.

    `learning` says whether anything is learned from what they say, `about` whether anything about them is learned from
    what others say, and `manner` whether a manner of talking to them is learned.
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
    """An identity as its person knows it. `language` is what the person has set, or None."""

    id: int
    platform: str
    user_id: str
    name: str
    language: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The conversation in one place. `snapshot` names the memories in its prompt; None if none was taken yet.

    `manner` says whether a manner of talking is learned in a group; in private the person's own setting counts.
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
    """Returns the stable id of the agent called `name`, creating the agent if necessary."""
    row = tx.one("select id from agents where name = ?", (name,))
    if row is not None:
        return int(row["id"])
    agent_id = tx.insert("insert into agents (name, created_at) values (?, ?)", (name, now))
    tx.run("insert into owners (kind, agent_id) values ('agent', ?)", (agent_id,))
    return agent_id


def agents(reader: Reader) -> list[int]:
    """Returns all agents, those that are no longer configured included."""
    return reader.ids("select id from agents")


def agent_name(reader: Reader, agent_id: int) -> str:
    row = reader.one("select name from agents where id = ?", (agent_id,))
    return "" if row is None else str(row["name"])


def agent_owner(reader: Reader, agent_id: int) -> int:
    """Returns the owner of what an agent holds for everybody."""
    return reader.number("select id from owners where kind = 'agent' and agent_id = ?", (agent_id,))


def owner(reader: Reader, owner_id: int) -> Row:
    """Returns an owner as a row of kind, identity_id, chat_id, thread and agent_id."""
    row = reader.one("select kind, identity_id, chat_id, thread, agent_id from owners where id = ?", (owner_id,))
    assert row is not None, f"no owner {owner_id}"
    return row


def agent_since(reader: Reader, agent_id: int) -> int:
    """Returns when an agent was first served by this store, in milliseconds UTC."""
    row = reader.one("select created_at from agents where id = ?", (agent_id,))
    assert row is not None, f"no agent {agent_id}"
    return int(row["created_at"])


def speaker(tx: Transaction, *, platform: str, user_id: str, name: str, now: int) -> Speaker:
    """Returns the identity behind a platform's user id, created on first sight; its name follows the platform."""
    row = tx.one(_SPEAKER + " where i.platform = ? and i.user_id = ?", (platform, user_id))
    if row is None:
        person_id = tx.insert("insert into people (created_at) values (?)", (now,))
        identity_id = tx.insert(
            "insert into identities (person_id, platform, user_id, name, named_at, first_seen_at, last_seen_at)"
            " values (?, ?, ?, ?, ?, ?, ?)",
            (person_id, platform, user_id, name, now, now, now),
        )
        tx.run("insert into owners (kind, identity_id) values ('identity', ?)", (identity_id,))
        return Speaker(id=identity_id, person_id=person_id, name=name, language=None, timezone=None, learning=True)
    if row["name"].casefold().split() != name.casefold().split():
        tx.run("update identities set named_at = ? where id = ?", (now, row["id"]))
    tx.run("update identities set name = ?, last_seen_at = ? where id = ?", (name, now, row["id"]))
    return _speaker(row, name)


def known_speaker(reader: Reader, *, platform: str, user_id: str) -> Speaker | None:
    """Returns the identity behind a platform's user id; None if nobody has spoken under it."""
    row = reader.one(_SPEAKER + " where i.platform = ? and i.user_id = ?", (platform, user_id))
    return None if row is None else _speaker(row, row["name"])


def chat(tx: Transaction, *, platform: str, reference: str, kind: ChatKind, title: str, now: int) -> int:
    """Returns the id of a chat, created on first sight."""
    row = tx.one("select chat_id from chat_aliases where platform = ? and reference = ?", (platform, reference))
    if row is not None:
        return int(row["chat_id"])
    chat_id = tx.insert(
        "insert into chats (platform, kind, title, created_at) values (?, ?, ?, ?)", (platform, kind, title, now)
    )
    tx.run("insert into chat_aliases values (?, ?, ?, ?)", (platform, reference, chat_id, now))
    tx.run("insert into owners (kind, chat_id) values ('chat', ?)", (chat_id,))
    return chat_id


def session(tx: Transaction, *, key: str, chat_id: int, thread: str | None, agent_id: int, now: int) -> Session:
    """Returns the session under `key`, created on first sight."""
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
    """Creates the owner of a thread if threads of its chat keep their own memory.

    Without it the thread would write to the whole chat's memory.
    """
    tx.run(
        "insert or ignore into owners (kind, chat_id, thread)"
        " select 'thread', id, ?1 from chats where id = ?2 and kind = 'group' and threads_own and ?1 is not null",
        (thread, chat_id),
    )


def keep_threads(tx: Transaction, session: Session, *, own: bool) -> None:
    """Sets whether threads of a session's group keep their own memory; what they kept before stays where it is."""
    tx.run("update chats set threads_own = ?1 where id = ?2 and threads_own <> ?1", (int(own), session.chat_id))
    if own:
        own_thread(tx, session.chat_id, session.thread)


def present(tx: Transaction, *, platform: str, channel: str, reference: str, left_at: int | None) -> list[str]:
    """Notes that a channel's bot is in a chat, or since when (milliseconds UTC) it is not; returns its sessions there.

    `channel` is the name in session keys. A chat is left when the last of its bots is gone. Platforms report repeatedly
    that a bot is shut out: the first time counts.
    """
    keys = _session_keys(tx, platform=platform, reference=reference)
    own = [key for key in keys if key.startswith(f"{channel}:")]
    tx.run(
        "update sessions set left_at = iif(?1 is null, null, coalesce(left_at, ?1))"
        " where key in (select value from json_each(?2))",
        (left_at, own),
    )
    tx.run(
        "update chats set left_at = (select iif(count(*) = count(s.left_at), max(s.left_at), null) from sessions s"
        " where s.chat_id = chats.id)"
        " where id = (select chat_id from chat_aliases where platform = ? and reference = ?)",
        (platform, reference),
    )
    return own


def heard_in(tx: Transaction, session: Session, speaker_id: int) -> None:
    """Notes that somebody speaks in a session, so the bot is there, whatever was noted; a private chat is theirs."""
    tx.run("update chats set left_at = null where id = ? and left_at is not null", (session.chat_id,))
    tx.run(
        "update chats set identity_id = ?1 where id = ?2 and kind = 'private' and identity_id is not ?1",
        (speaker_id, session.chat_id),
    )
    tx.run("update sessions set left_at = null where id = ? and left_at is not null", (session.id,))


def is_present(reader: Reader, session: Session) -> bool:
    """Returns whether the bot is, as far as was noted, still in the place of a session."""
    return reader.one("select 1 from sessions where id = ? and left_at is null", (session.id,)) is not None


def move_chat(tx: Transaction, *, platform: str, reference: str, new_reference: str, now: int) -> list[str]:
    """Adds `new_reference` to the chat known as `reference`; returns the session keys that name the old reference.

    If people spoke under the new reference before this was known, both mean the older chat from now on. What was said
    there in between stays with the newer chat's owner.
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
    """Moves a session to another key, unless a session exists there already."""
    tx.run("update or ignore sessions set key = ? where key = ?", (new_key, key))


def _session_keys(reader: Reader, *, platform: str, reference: str) -> list[str]:
    rows = reader.all(
        "select s.key from sessions s join chat_aliases a on a.chat_id = s.chat_id"
        " where a.platform = ? and a.reference = ?",
        (platform, reference),
    )
    return [row["key"] for row in rows]


def reassign(tx: Transaction, session: Session, agent_id: int) -> Session:
    """Makes another agent serve a session, without the snapshot: that held what the earlier agent may see."""
    tx.run("update sessions set agent_id = ?, snapshot = null, snapshot_at = null where id = ?", (agent_id, session.id))
    return session_by_id(tx, session.id)


def session_by_key(reader: Reader, key: str) -> Session | None:
    row = reader.one(_SESSION + " where s.key = ?", (key,))
    return None if row is None else _session(row)


def session_elsewhere(reader: Reader, key: str, *, chat_id: int, thread: str | None) -> Session | None:
    """Returns the session of this channel and place that continues under another key, because the chat's id changed."""
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
    """Returns whether a session's chat is on this platform."""
    return reader.one("select 1 from chats where id = ? and platform = ?", (session.chat_id, platform)) is not None


def speaker_by_id(reader: Reader, identity_id: int) -> Speaker:
    row = reader.one(_SPEAKER + " where i.id = ?", (identity_id,))
    assert row is not None
    return _speaker(row, row["name"])


def last_speaker(reader: Reader, session_id: int) -> int | None:
    """Returns the id of the identity that spoke last in a session."""
    row = reader.one(
        "select author_id from messages where session_id = ? and author_id is not null order by id desc limit 1",
        (session_id,),
    )
    return None if row is None else int(row["author_id"])


def accounts(reader: Reader, identity_id: int) -> list[Account]:
    """Returns all identities of the person behind one, itself included, in the order they were first seen."""
    rows = reader.all(
        _ACCOUNT + " where i.person_id = (select person_id from identities where id = ?) order by i.id", (identity_id,)
    )
    return [Account(**dict(row)) for row in rows]


def account(reader: Reader, identity_id: int) -> Account | None:
    row = reader.one(_ACCOUNT + " where i.id = ?", (identity_id,))
    return None if row is None else Account(**dict(row))


def private_session(reader: Reader, identity_id: int) -> Session | None:
    """Returns the session of the person's most recently used private chat, for what only they may read."""
    row = reader.one(
        _SESSION + " where c.identity_id = ? and c.kind = 'private' and s.left_at is null"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (identity_id,),
    )
    return None if row is None else _session(row)


def group_session(reader: Reader, *, platform: str, reference: str, thread: str | None) -> Session | None:
    """Returns the session in which a group, given by its platform's id, or a thread of it, talked last."""
    row = reader.one(
        _SESSION + " join chat_aliases a on a.chat_id = c.id where a.platform = ? and a.reference = ?"
        " and c.kind = 'group' and (?3 is null or s.thread = ?3)"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (platform, reference, thread),
    )
    return None if row is None else _session(row)


def owners_of_chat(reader: Reader, chat_id: int) -> list[int]:
    """Returns the owners of what is kept in a chat and its threads."""
    return reader.ids("select id from owners where chat_id = ? order by id", (chat_id,))


def group(reader: Reader, *, platform: str, reference: str) -> int | None:
    """Returns the chat of a group, given by its platform's id; None if it is unknown."""
    row = reader.one(
        "select c.id from chat_aliases a join chats c on c.id = a.chat_id"
        " where a.platform = ? and a.reference = ? and c.kind = 'group'",
        (platform, reference),
    )
    return None if row is None else int(row["id"])


def group_of(reader: Reader, owner_id: int) -> Row | None:
    """Returns the group that an owner is, or is a thread of, as a row of platform, name and chat, its platform's id."""
    return reader.one(
        "select c.platform, c.title as name, (select reference from chat_aliases where chat_id = c.id"
        " order by created_at desc limit 1) as chat from owners o join chats c on c.id = o.chat_id where o.id = ?",
        (owner_id,),
    )


def learns_in(reader: Reader, chat_id: int) -> bool:
    """Returns whether anything is learned from what is said in a chat."""
    return bool(reader.number("select learning from chats where id = ?", (chat_id,)))


def all_identities(reader: Reader) -> list[Row]:
    """Returns all identities, the last seen first, as rows of platform, user_id, name and person_id."""
    return reader.all("select platform, user_id, name, person_id from identities order by last_seen_at desc")


def all_groups(reader: Reader) -> list[Row]:
    """Returns all groups under each of their platform's ids, newest first, as rows of platform, reference and title."""
    return reader.all(
        "select a.platform, a.reference, c.title from chats c join chat_aliases a on a.chat_id = c.id"
        " where c.kind = 'group' order by c.id desc"
    )


def linked_identities(reader: Reader) -> list[Row]:
    """Returns the identities of people who have several, as rows of id, person_id, platform and user_id."""
    return reader.all(
        "select id, person_id, platform, user_id from identities where person_id in"
        " (select person_id from identities group by person_id having count(*) > 1) order by id"
    )


def last_private_session(reader: Reader, identity_id: int) -> int | None:
    """Returns the private session in which an identity spoke last."""
    row = reader.one(
        "select m.session_id from messages m join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id"
        " where m.author_id = ? and c.kind = 'private' order by m.id desc limit 1",
        (identity_id,),
    )
    return None if row is None else int(row["session_id"])


def names(reader: Reader, identity_ids: Collection[int]) -> dict[int, str]:
    """Returns the names that the platforms have for these identities, by identity."""
    marks = ", ".join("?" for _ in identity_ids)
    rows = reader.all(f"select id, name from identities where id in ({marks})", tuple(identity_ids))
    return {row["id"]: row["name"] for row in rows}


def members(reader: Reader, session_id: int) -> dict[int, str]:
    """Returns the names of those who spoke among the last 5,000 messages of a session, by identity."""
    rows = reader.all(
        "select id, name from identities where name <> '' and id in"
        " (select author_id from (select author_id from messages where session_id = ? order by id desc limit 5000))",
        (session_id,),
    )
    return {row["id"]: row["name"] for row in rows}


def link(tx: Transaction, identity_id: int, other_id: int) -> None:
    """Makes one person of the people behind two identities, including everything else linked to either.

    Rows keep their owners: only who may read them changes. The first person's settings take precedence over the
    other's. Each opt-out of either is kept.
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
    """Separates an identity from its person into a person of its own, with the same settings.

    Memories derived from rows of both sides are deleted, and the rows they were derived from come back, to be
    compressed anew. Facts are merged per owner, so no profile slot depends on what is deleted. Returns the ids of the
    deleted memories.
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
    """Separates all identities of an erased person and resets their language and time zone.

    Opt-outs stay, or the next message would be learned from again.
    """
    for each in accounts(tx, identity_id):
        unlink(tx, each.id)
        tx.run(
            "update people set language = null, timezone = null where id ="
            " (select person_id from identities where id = ?)",
            (each.id,),
        )


def _of_both_sides(tx: Transaction, leaves: Mapping[int, bool]) -> list[int]:
    """Returns memories that hold something of both sides: through their own owner or the owners of their parents."""
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
    """Returns the scope of `speaker_id` in `session`: what they may read and add to.

    In private: every identity linked to the person, and the agent. In a group: the chat, its thread if threads keep
    their own memory, and the agent; never anything of a single person.
    """
    readable = [agent_owner(reader, session.agent_id)]
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
        # A thread with its own memory sorts last, and what is said in it is kept there.
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
    """Returns the scope of an agent's job for one owner: the owner's own rows and nobody else's."""
    row = owner(reader, owner_id)
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
    """Returns the owners whose night job an agent runs: those who talked with it last, if it is still in their chat.

    So if agents share people, exactly one agent goes through the rows of each. With `among`, only these agents have
    night jobs: an owner who talks only with other agents, or with one that is gone, belongs to the first of `among`.
    """
    talked = "s.agent_id, coalesce(s.last_message_at, s.created_at) as at, s.id, c.left_at"
    talked += ", ?2 is not null and s.agent_id not in (select value from json_each(?2)) as sleeps"
    return reader.ids(
        "select owner_id from"
        " (select *, row_number() over (partition by owner_id order by sleeps, at desc, id desc) as n from ("
        f" select o.id as owner_id, {talked} from chats c join sessions s on s.chat_id = c.id"
        " join owners o on o.kind = 'identity' and o.identity_id = c.identity_id where c.kind = 'private'"
        f" union all select o.id, {talked} from chats c join sessions s on s.chat_id = c.id"
        " join owners o on o.kind = 'chat' and o.chat_id = c.id where c.kind = 'group'"
        f" union all select o.id, {talked} from chats c join sessions s on s.chat_id = c.id"
        " join owners o on o.kind = 'thread' and o.chat_id = c.id and o.thread = s.thread))"
        " where n = 1 and ?1 = iif(sleeps, ?2 ->> 0, agent_id) and left_at is null order by owner_id",
        (agent_id, among),
    )


def start_window(tx: Transaction, session_id: int, *, after: int) -> None:
    """Starts the window after message `after`; task, summary and snapshot end with the old window."""
    tx.run(
        "update sessions set window_after = ?, sitting = sitting + 1, summary = null, active_task = null,"
        " snapshot = null, snapshot_at = null where id = ?",
        (after, session_id),
    )


def set_task(tx: Transaction, session_id: int, task: str | None) -> None:
    """Sets the task that is being worked on in a session; None for no task."""
    tx.run("update sessions set active_task = ? where id = ?", (task, session_id))


def choose_agent(tx: Transaction, session_id: int, name: str | None) -> None:
    """Notes which agent a person chose for a session; None leaves it to routing."""
    tx.run(
        "update sessions set chosen_agent_id = (select id from agents where name = ?) where id = ?", (name, session_id)
    )


def chosen_agents(reader: Reader) -> dict[str, str]:
    """Returns the names of the chosen agents, by session key."""
    rows = reader.all("select s.key, a.name from sessions s join agents a on a.id = s.chosen_agent_id")
    return {row["key"]: row["name"] for row in rows}


def trim_window(tx: Transaction, session_id: int, *, after: int) -> None:
    """Drops older messages from the window without ending the conversation."""
    tx.run("update sessions set window_after = ? where id = ?", (after, session_id))


def keep_snapshot(tx: Transaction, session_id: int, memory_ids: tuple[int, ...], *, now: int) -> None:
    tx.run("update sessions set snapshot = ?, snapshot_at = ? where id = ?", (json.dumps(memory_ids), now, session_id))


def set_learning(tx: Transaction, session: Session, on: bool) -> None:
    """Sets whether anything is learned from what is said in a session's chat from now on."""
    tx.run("update chats set learning = ? where id = ?", (int(on), session.chat_id))


def learn_from(tx: Transaction, person_id: int, learning: bool) -> None:
    """Sets whether anything is learned from what a person says; see `opt_outs.learn_from`."""
    tx.run("update people set learning = ? where id = ?", (int(learning), person_id))


def learn_about(tx: Transaction, person_id: int, about: bool) -> None:
    """Sets whether anything is learned about a person from what others say."""
    tx.run("update people set about = ? where id = ?", (int(about), person_id))


def set_language(tx: Transaction, speaker: Speaker, language: str | None) -> None:
    """Sets the language a person wants to be addressed in; None leaves it to what they write."""
    tx.run("update people set language = ? where id = ?", (language, speaker.person_id))


def set_timezone(tx: Transaction, speaker: Speaker, timezone: str | None) -> None:
    """Sets a person's time zone, by its IANA name; None leaves it to the agent's."""
    tx.run("update people set timezone = ? where id = ?", (timezone, speaker.person_id))


def set_manner(tx: Transaction, session: Session, speaker: Speaker, on: bool) -> None:
    """Sets whether a manner of talking is learned from now on: for this person or, in a group, for the group."""
    if session.private:
        tx.run("update people set manner = ? where id = ?", (int(on), speaker.person_id))
    else:
        tx.run("update chats set manner = ? where id = ?", (int(on), session.chat_id))


def learns_manner(reader: Reader, owner_id: int) -> bool:
    """Returns whether a manner of talking is learned for an owner: a person or group that has not switched it off."""
    row = reader.one(
        "select coalesce(p.manner, c.manner, 0) as manner from owners o left join identities i on i.id = o.identity_id"
        " left join people p on p.id = i.person_id left join chats c on c.id = o.chat_id where o.id = ?",
        (owner_id,),
    )
    return row is not None and bool(row["manner"])


def learned_of(reader: Reader, owner_ids: Collection[int]) -> list[int]:
    """Returns the owners that anything is learned about: people and groups with learning on.

    A person counts if they have not opted out and have learning on in a private chat of theirs. While nothing is
    learned about an owner, nothing is concluded from existing rows either.
    """
    return reader.ids(
        "select o.id from json_each(?) asked join owners o on o.id = asked.value"
        " left join identities i on i.id = o.identity_id left join people p on p.id = i.person_id"
        " where coalesce(p.learning, 1) and coalesce((select c.learning from chats c where c.id = o.chat_id),"
        " (select max(c.learning) from chats c where c.identity_id = o.identity_id and c.kind = 'private'), 1)",
        (owner_ids,),
    )


def drop_snapshots(tx: Transaction) -> None:
    """Drops all snapshots because access has changed; every session takes a new one at its next turn."""
    tx.run("update sessions set snapshot = null, snapshot_at = null where snapshot is not null")


def drop_snapshots_of(tx: Transaction, owner_ids: Collection[int], author_ids: Collection[int]) -> None:
    """Drops snapshots that may hold rows of these owners or what these identities said of themselves in a group."""
    tx.run(
        "update sessions set snapshot = null, snapshot_at = null where snapshot is not null and ("
        " chat_id in (select chat_id from owners where id in (select value from json_each(?1)))"
        " or agent_id in (select agent_id from owners where id in (select value from json_each(?1)))"
        " or chat_id in (select c.id from chats c join identities mine on mine.id = c.identity_id"
        "   join identities i on i.person_id = mine.person_id where i.id in (select value from json_each(?2))"
        "   or i.id in (select identity_id from owners where id in (select value from json_each(?1)))))",
        (owner_ids, author_ids),
    )


def note_end(tx: Transaction, session_id: int, *, sitting: int, last_message_at: int | None) -> None:
    """Notes where a session's history ends now."""
    tx.run("update sessions set sitting = ?, last_message_at = ? where id = ?", (sitting, last_message_at, session_id))


def end_import(tx: Transaction, session_id: int, last_message_at: int | None) -> None:
    """Ends the sitting of imported messages; the newest of all messages counts as the session's last."""
    tx.run(
        "update sessions set sitting = sitting + 1, last_message_at = max(last_message_at, coalesce(?, 0))"
        " where id = ?",
        (last_message_at, session_id),
    )


def mark_read(tx: Transaction, session_id: int, message_id: int) -> None:
    """Marks everything up to `message_id` as read or queued to be read."""
    tx.run("update sessions set extracted_to = max(extracted_to, ?) where id = ?", (message_id, session_id))


def sessions_of_chat(reader: Reader, chat_id: int) -> list[int]:
    return reader.ids("select id from sessions where chat_id = ?", (chat_id,))


def all_sessions(reader: Reader) -> list[int]:
    return reader.ids("select id from sessions")


def summaries(reader: Reader, session_ids: Sequence[int]) -> list[Row]:
    """Returns these sessions' summaries and tasks, as rows of id and text."""
    return reader.all(
        "select id, ifnull(summary, '') || ' ' || ifnull(active_task, '') as text from sessions"
        f" where {_HOLDING} and id in (select value from json_each(?))",
        (session_ids,),
    )


def drop_summaries(tx: Transaction, message_ids: Collection[int], *, sessions: Collection[int] = ()) -> None:
    """Drops summaries and tasks of the messages' sessions and of `sessions`: they were made from words that go."""
    tx.run(
        f"update sessions set {_EMPTY} where {_HOLDING}"
        " and (id in (select session_id from messages where id in (select value from json_each(?1)))"
        " or id in (select value from json_each(?2)))",
        (message_ids, sessions),
    )


def drop_old_summaries(tx: Transaction, *, until: int) -> None:
    """Drops summaries and tasks of all sessions begun by `until` (milliseconds UTC)."""
    tx.run(f"update sessions set {_EMPTY} where created_at <= ?", (until,))


def drop_spent_summaries(tx: Transaction, *, before: int) -> int:
    """Drops summaries and tasks of sessions silent since `before` (milliseconds UTC) of which no words are left.

    Returns how many sessions that were.
    """
    return len(
        tx.ids(
            f"update sessions set {_EMPTY} where {_HOLDING} and ifnull(last_message_at, created_at) < ? and not exists"
            " (select 1 from messages m where m.session_id = sessions.id and m.erased_at is null) returning id",
            (before,),
        )
    )


def empty_private(tx: Transaction, session_ids: Sequence[int]) -> None:
    """Drops the summaries, tasks and snapshots of these sessions, and the titles of their private chats."""
    these = (session_ids,)
    tx.run(
        f"update sessions set {_EMPTY}, snapshot = null, snapshot_at = null"
        " where id in (select value from json_each(?))",
        these,
    )
    tx.run(
        f"update chats set {_UNTITLED} where kind = 'private' and id in"
        " (select chat_id from sessions where id in (select value from json_each(?)))",
        these,
    )


def close_sessions(tx: Transaction, chat_id: int) -> list[int]:
    """Begins the sessions of a chat anew of which only empty rows are left; returns their ids.

    Sessions in which the bot has said something since are left as they are.
    """
    return tx.ids(
        f"update sessions set {_EMPTY}, snapshot = null, snapshot_at = null,"
        " last_message_at = null, sitting = sitting + 1, window_after = coalesce(newest.id, window_after),"
        " extracted_to = coalesce(newest.id, extracted_to)"
        " from (select s.id as session_id, (select max(m.id) from messages m where m.session_id = s.id) as id"
        "   from sessions s where s.chat_id = ?) as newest"
        " where sessions.id = newest.session_id"
        f" and (last_message_at is not null or {_HOLDING})"
        " and not exists (select 1 from messages m where m.id = newest.id and m.erased_at is null)"
        " returning sessions.id",
        (chat_id,),
    )


def untitle(tx: Transaction, chat_id: int) -> bool:
    """Blanks the title of a chat. Returns whether it had one."""
    return bool(tx.ids(f"update chats set {_UNTITLED} where id = ? and title <> '' returning id", (chat_id,)))


def unname(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Blanks the names of these identities."""
    tx.run(f"update identities set {_UNNAMED} where id in (select value from json_each(?))", (identity_ids,))


def unname_silent(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Blanks the names of those of the identities of whose words nothing is left."""
    tx.run(
        f"update identities set {_UNNAMED} where id in (select value from json_each(?))"
        " and not exists (select 1 from messages m where m.author_id = identities.id and m.erased_at is null)",
        (identity_ids,),
    )


def linked(reader: Reader, identity_ids: Sequence[int]) -> list[int]:
    """Returns all identities of the people behind these, on any platform."""
    return reader.ids(
        "select id from identities where person_id in"
        " (select person_id from identities where id in (select value from json_each(?)))",
        (identity_ids,),
    )


def seen_until(reader: Reader, identity_ids: Sequence[int], at: int) -> list[int]:
    """Returns those of the identities that were first seen by `at` (milliseconds UTC)."""
    return reader.ids(
        "select id from identities where first_seen_at <= ? and id in (select value from json_each(?))",
        (at, identity_ids),
    )


def places(reader: Reader, owner_ids: Sequence[int]) -> list[int]:
    """Returns those of the owners that are groups or threads."""
    return reader.ids(
        "select id from owners where kind in ('chat', 'thread') and id in (select value from json_each(?))",
        (owner_ids,),
    )


def opted_out(reader: Reader) -> list[Row]:
    """Returns the opt-outs of all people, for `take_over_opt_outs`."""
    return [
        *reader.all(
            "select i.platform, i.user_id, p.learning, 1 as about from identities i"
            " join people p on p.id = i.person_id where p.learning = 0"
        ),
        *reader.all(
            "select i.platform, i.user_id, 1 as learning, p.about from identities i"
            " join people p on p.id = i.person_id where p.about = 0"
        ),
    ]


def take_over_opt_outs(tx: Transaction, rows: Iterable[Row]) -> None:
    """Adds the opt-outs of another copy of the store to those here."""
    for row in rows:
        tx.run(
            "update people set learning = min(learning, ?), about = min(about, ?)"
            " where id = (select person_id from identities where platform = ? and user_id = ?)",
            (row["learning"], row["about"], row["platform"], row["user_id"]),
        )


def silent_chats(reader: Reader) -> list[Row]:
    """Returns the chats that the bot has left or in which nothing is learned, for `take_over_silence`."""
    return reader.all(
        "select a.platform, a.reference, c.learning, c.left_at from chats c join chat_aliases a"
        " on a.chat_id = c.id where c.learning = 0 or c.left_at is not null"
    )


def take_over_silence(tx: Transaction, rows: Iterable[Row]) -> None:
    """Applies what another copy of the store knows of left and silent chats."""
    for row in rows:
        tx.run(
            "update chats set learning = min(learning, ?), left_at = coalesce(left_at, ?)"
            " where id = (select chat_id from chat_aliases where platform = ? and reference = ?)",
            (row["learning"], row["left_at"], row["platform"], row["reference"]),
        )


def unname_imported(tx: Transaction, import_id: int, identity_id: int | None, *, first: int, last: int) -> None:
    """Blanks the names of those whom nothing but an import has brought, that of `identity_id` among them.

    They were seen once, from `first` to `last` (milliseconds UTC), or said something in the import. People keep their
    names if they said something else, are known of, have a private chat or are linked with another identity.
    """
    tx.run(
        f"update identities set {_UNNAMED} where name <> '' and last_seen_at = first_seen_at"
        " and (id = ?1 or first_seen_at between ?3 and ?4"
        "   or id in (select author_id from messages where import_id = ?2))"
        " and not exists (select 1 from messages m where m.author_id = identities.id"
        "   and (m.import_id is null or m.erased_at is null))"
        " and id not in (select author_id from memories where author_id is not null"
        "   union all select subject_id from memories where subject_id is not null"
        "   union all select identity_id from chats where identity_id is not null)"
        " and not exists (select 1 from identities other"
        "   where other.person_id = identities.person_id and other.id <> identities.id)",
        (identity_id, import_id, first, last),
    )


def untitle_imported(tx: Transaction, import_id: int, chat_id: int | None) -> None:
    """Blanks the title of a group that nothing but an import has brought."""
    tx.run(
        f"update chats set {_UNTITLED} where id = ?1 and not exists (select 1 from sessions s"
        "   left join messages m on m.session_id = s.id and (m.import_id is null or m.erased_at is null)"
        "   left join inbox i on i.session_key = s.key"
        "   where s.chat_id = chats.id and coalesce(m.id, i.id) is not null)"
        " and not exists (select 1 from owners o left join memories held on held.owner_id = o.id"
        "   left join imports other on other.owner_id = o.id and other.id <> ?2 and other.state <> 'undone'"
        "   where o.chat_id = chats.id and coalesce(held.id, other.id) is not null)",
        (chat_id, import_id),
    )


_EMPTY, _HOLDING = erasure.emptied("sessions"), erasure.holding("sessions")
_UNTITLED, _UNNAMED = erasure.emptied("chats"), erasure.emptied("identities")

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
