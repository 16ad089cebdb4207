"""Chats and the sessions in them, and the scope that a speaker has in a session.

Invariant: a session belongs to one place and one agent.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.scope import Scope
from memory.store import scopes, word_columns
from memory.store.database import Reader, Row, Transaction, Value

ChatKind: TypeAlias = Literal["private", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The conversation in one place. `snapshot` names the memories in its prompt; None if none was taken yet.

    `manner` says whether a manner of talking is learned in a group; in private the person's own setting counts.
    `chosen_model` is the model that was chosen with /model. `identity_id` is the noted person of a private chat, and
    `left_at` the noted time at which the bot left it. At `muted_at` writing was last refused there, or tried again; 0
    if it may be allowed by now, but nothing was shown since.
    `agent` is the agent's name. `is_branch` is True if it goes on from another session.
    """

    id: int
    key: str
    chat_id: int
    thread: str | None
    agent_id: int
    private: bool
    learning: bool = True
    window_after: int = 0
    sitting: int = 0
    summary: str | None = None
    active_task: str | None = None
    snapshot: tuple[int, ...] | None = None
    snapshot_at: int | None = None
    last_message_at: int | None = None
    manner: bool = True
    chosen_model: str | None = None
    identity_id: int | None = None
    left_at: int | None = None
    muted_at: int | None = None
    agent: str = ""
    is_branch: bool = False


def chat(tx: Transaction, *, platform: str, reference: str, kind: ChatKind, title: str, now: int) -> int:
    """Returns the id of a chat, created on first sight."""
    known = _chat(tx, platform=platform, reference=reference)
    if known is not None:
        return known
    chat_id = tx.insert(
        "insert into chats (platform, kind, title, created_at) values (?, ?, ?, ?)", (platform, kind, title, now)
    )
    tx.run("insert into chat_aliases values (?, ?, ?, ?)", (platform, reference, chat_id, now))
    scopes.own(tx, "chat", chat_id)
    return chat_id


def session(tx: Transaction, *, key: str, chat_id: int, thread: str | None, agent_id: int, now: int) -> Session:
    """Returns the session under `key`, created on first sight."""
    if (known := session_by_key(tx, key)) is not None:
        return known
    tx.run(
        "insert into sessions (key, chat_id, thread, agent_id, created_at) values (?, ?, ?, ?, ?)",
        (key, chat_id, thread, agent_id, now),
    )
    scopes.own_thread(tx, chat_id, thread)
    made = session_by_key(tx, key)
    assert made is not None
    return made


def keep_threads(tx: Transaction, chat_id: int, thread: str | None, *, own: bool) -> None:
    """Sets whether threads of a group keep their own memory; earlier memories stay where they are."""
    tx.run("update chats set threads_own = ?1 where id = ?2 and threads_own <> ?1", (int(own), chat_id))
    if own:
        scopes.own_thread(tx, chat_id, thread)


def present(tx: Transaction, *, platform: str, channel: str, reference: str, left_at: int | None) -> list[str]:
    """Notes that a channel's bot is in a chat, or since when (milliseconds UTC) it is not; returns its sessions there.

    `channel` is the name in session keys. A chat is left when the last of its bots is gone. Platforms report repeatedly
    that a bot is shut out: the first time counts.
    """
    own = sessions_in(tx, platform=platform, channel=channel, reference=reference)
    tx.run(
        "update sessions set left_at = case when ?1 is not null then coalesce(left_at, ?1) end,"
        " muted_at = case when ?1 is null and left_at is null then muted_at end"
        " where key in (select value from json_each(?2))",
        (left_at, own),
    )
    tx.run(
        "update chats set left_at = (select case when count(*) = count(s.left_at) then max(s.left_at) end from"
        " sessions s"
        " where s.chat_id = chats.id)"
        " where id = (select chat_id from chat_aliases where platform = ? and reference = ?)",
        (platform, reference),
    )
    return own


def sessions_in(reader: Reader, *, platform: str, channel: str, reference: str) -> list[str]:
    """Returns the keys of a channel's sessions in a chat; `channel` is the name in session keys."""
    keys = _session_keys(reader, platform=platform, reference=reference)
    return [key for key in keys if key.startswith(f"{channel}:")]


def mute(tx: Transaction, keys: Sequence[str], *, now: int) -> str | None:
    """Notes that nothing may be written in these sessions. Returns a name of the chat if that is new, else None."""
    listed = json.dumps(keys)
    name = tx.text(
        "select coalesce(nullif(c.title, ''), s.key) as name from sessions s join chats c on c.id = s.chat_id"
        " where s.muted_at is null and s.key in (select value from json_each(?)) order by s.id limit 1",
        (listed,),
    )
    tx.run("update sessions set muted_at = ? where key in (select value from json_each(?))", (now, listed))
    return name


def unmute(tx: Transaction, keys: Sequence[str]) -> None:
    tx.run("update sessions set muted_at = null where key in (select value from json_each(?))", (json.dumps(keys),))


def try_again(tx: Transaction, keys: Sequence[str]) -> None:
    tx.run(
        "update sessions set muted_at = 0 where muted_at is not null and key in (select value from json_each(?))",
        (json.dumps(keys),),
    )


def muted(reader: Reader) -> dict[str, str]:
    """Returns the sessions in which nothing may be written, by key, with the names of their chats."""
    return reader.pairs(
        "select s.key, coalesce(nullif(c.title, ''), s.key) as name from sessions s join chats c on c.id = s.chat_id"
        " where s.muted_at > 0 and s.left_at is null"
    )


def private_key(reader: Reader, *, platform: str, channel: str, users: Sequence[str]) -> str | None:
    """Returns the private session that one of these people used last on a channel."""
    return reader.text(
        "select s.key from sessions s join chats c on c.id = s.chat_id join identities i on i.id = c.identity_id"
        " where c.kind = 'private' and s.left_at is null and coalesce(s.muted_at, 0) = 0 and i.platform = ?"
        " and i.user_id in (select value from json_each(?)) and substr(s.key, 1, instr(s.key, ':') - 1) = ?"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (platform, json.dumps(users), channel),
    )


def heard_in(tx: Transaction, session: Session, speaker_id: int) -> None:
    """Notes that a person speaks in a session, so the bot is there, whatever was noted; a private chat is theirs."""
    if session.left_at is None and (not session.private or session.identity_id == speaker_id):
        return
    tx.run(
        "update chats set left_at = null, identity_id = case when kind = 'private' then ? else identity_id end"
        " where id = ?",
        (speaker_id, session.chat_id),
    )
    put(tx, session.id, left_at=None)


def is_present(reader: Reader, session: Session) -> bool:
    """Returns whether the bot is still in the place of a session, as far as noted."""
    return reader.has("select 1 from sessions where id = ? and left_at is null", (session.id,))


def move_chat(tx: Transaction, *, platform: str, reference: str, new_reference: str, now: int) -> list[str]:
    """Adds `new_reference` to the chat known as `reference`; returns the session keys that name the old reference.

    If people spoke under the new reference before this was known, both mean the older chat from now on. Messages from
    the time between stay with the newer chat's owner.
    """
    chat_id = _chat(tx, platform=platform, reference=reference)
    if chat_id is None:
        return []
    tx.run(
        "insert into chat_aliases values (?, ?, ?, ?) on conflict (platform, reference) do update set chat_id ="
        " excluded.chat_id",
        (platform, new_reference, chat_id, now),
    )
    return _session_keys(tx, platform=platform, reference=reference)


def rename_session(tx: Transaction, key: str, new_key: str) -> None:
    """Moves a session to another key, unless a session exists there already."""
    tx.run(
        "update sessions set key = ?1 where key = ?2 and not exists (select 1 from sessions there where there.key ="
        " ?1)",
        (new_key, key),
    )


def _chat(reader: Reader, *, platform: str, reference: str) -> int | None:
    return reader.id("select chat_id from chat_aliases where platform = ? and reference = ?", (platform, reference))


def _session_keys(reader: Reader, *, platform: str, reference: str) -> list[str]:
    return reader.texts(
        "select s.key from sessions s join chat_aliases a on a.chat_id = s.chat_id"
        " where a.platform = ? and a.reference = ?",
        (platform, reference),
    )


def reassign(tx: Transaction, session: Session, agent_id: int) -> Session:
    """Makes another agent serve a session, without the snapshot: that held rows that the earlier agent may see."""
    put(tx, session.id, agent_id=agent_id, snapshot=None, snapshot_at=None)
    return session_by_id(tx, session.id)


def session_by_key(reader: Reader, key: str) -> Session | None:
    return reader.first(_SESSION + " where s.key = ?", (key,), _session)


def session_of_turn(reader: Reader, turn_id: int) -> Session:
    session = reader.first(_SESSION + " where s.id = (select session_id from turns where id = ?)", (turn_id,), _session)
    assert session is not None
    return session


def session_elsewhere(reader: Reader, key: str, *, chat_id: int, thread: str | None) -> Session | None:
    """Returns the session of this channel and place that continues under another key, because the chat's id changed."""
    return reader.first(
        _SESSION
        + " where s.chat_id = ? and s.thread is not distinct from ? and substr(s.key, 1, instr(s.key, ':')) = ?",
        (chat_id, thread, key[: key.index(":") + 1]),
        _session,
    )


def session_by_id(reader: Reader, session_id: int) -> Session:
    session = reader.first(_SESSION + " where s.id = ?", (session_id,), _session)
    assert session is not None
    return session


def is_on(reader: Reader, session: Session, platform: str) -> bool:
    return reader.has("select 1 from chats where id = ? and platform = ?", (session.chat_id, platform))


def last_speaker(reader: Reader, session_id: int) -> int | None:
    return reader.id(
        "select author_id from messages where session_id = ? and author_id is not null order by id desc limit 1",
        (session_id,),
    )


def private_session(reader: Reader, identity_id: int) -> Session | None:
    """Returns the session of the person's most recently used private chat, for texts that only they may read."""
    return reader.first(
        _SESSION + " where c.identity_id = ? and c.kind = 'private' and s.left_at is null"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (identity_id,),
        _session,
    )


def group_session(reader: Reader, *, platform: str, reference: str, thread: str | None) -> Session | None:
    """Returns the session in which a group, given by its platform's id, or a thread of it, talked last."""
    return reader.first(
        _SESSION + " join chat_aliases a on a.chat_id = c.id where a.platform = ? and a.reference = ?"
        " and c.kind = 'group' and (?3 is null or s.thread = ?3)"
        " order by coalesce(s.last_message_at, s.created_at) desc, s.id desc limit 1",
        (platform, reference, thread),
        _session,
    )


def group(reader: Reader, *, platform: str, reference: str) -> int | None:
    """Returns the chat of a group, given by its platform's id; None if it is unknown."""
    return reader.id(
        "select c.id from chat_aliases a join chats c on c.id = a.chat_id"
        " where a.platform = ? and a.reference = ? and c.kind = 'group'",
        (platform, reference),
    )


def group_of(reader: Reader, owner_id: int) -> Row | None:
    """Returns the group that an owner is, or is a thread of, as a row of platform, name and chat, its platform's id."""
    return reader.one(
        "select c.platform, c.title as name, (select reference from chat_aliases where chat_id = c.id"
        " order by created_at desc limit 1) as chat from owners o join chats c on c.id = o.chat_id where o.id = ?",
        (owner_id,),
    )


def learns_in(reader: Reader, chat_id: int) -> bool:
    return bool(reader.number("select learning from chats where id = ?", (chat_id,)))


def all_groups(reader: Reader) -> list[Row]:
    """Returns all groups under each of their platform's ids, newest first, as rows of platform, reference and title."""
    return reader.all(
        "select a.platform, a.reference, c.title from chats c join chat_aliases a on a.chat_id = c.id"
        " where c.kind = 'group' order by c.id desc"
    )


def last_private_session(reader: Reader, identity_id: int) -> int | None:
    return reader.id(
        "select m.session_id from messages m join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id"
        " where m.author_id = ? and c.kind = 'private' order by m.id desc limit 1",
        (identity_id,),
    )


def members(reader: Reader, session_id: int) -> dict[int, str]:
    return reader.pairs(
        "select id, name from identities where name <> '' and id in"
        " (select author_id from (select author_id from messages where session_id = ? order by id desc limit 5000)"
        " latest)",
        (session_id,),
    )


def scope_of(reader: Reader, session: Session, speaker_id: int | None) -> Scope:
    """Returns the scope of `speaker_id` in `session`: the rows that they may read and add to.

    In private: every identity linked to the person, and the agent. In a group: the chat, its thread if threads keep
    their own memory, and the agent; never anything of a single person.
    """
    own: tuple[int, ...] = ()
    selves: tuple[int, ...] = ()
    if session.private:
        agent, *rows = reader.all(
            f"{_AGENTS} union all select o.id, o.identity_id, 1 from owners o join identities i on i.id = o.identity_id"
            " where o.kind = 'identity' and i.person_id = (select person_id from identities where id = ?)"
            " order by place, id",
            (session.agent_id, speaker_id),
        )
        selves = tuple(int(row["identity_id"]) for row in rows)
        writes_to = next(int(row["id"]) for row in rows if row["identity_id"] == speaker_id)
        own = tuple(int(row["id"]) for row in rows)
        readable = [int(agent["id"]), *own]
    else:
        agent, *rows = reader.all(
            f"{_AGENTS} union all select o.id, null, case o.kind when 'chat' then 1 else 2 end from owners o"
            " join chats c on c.id = o.chat_id where o.chat_id = ?"
            " and (o.kind = 'chat' or (c.threads_own = 1 and o.thread = ?)) order by place, id",
            (session.agent_id, session.chat_id, session.thread),
        )
        # A thread with its own memory sorts last, and memories from it are kept there.
        writes_to = int(rows[-1]["id"])
        readable = [int(agent["id"]), *(int(row["id"]) for row in rows)]
    return Scope(
        agent_id=session.agent_id,
        owners=tuple(readable),
        own=own,
        writes_to=writes_to,
        speaker_id=speaker_id,
        selves=selves,
        private=session.private,
    )


#: The owner of the rows that an agent holds for everybody, before others.
_AGENTS: Final = "select id, null as identity_id, 0 as place from owners where kind = 'agent' and agent_id = ?"


def start_window(tx: Transaction, session_id: int, *, after: int) -> None:
    """Starts the window after message `after`; task, summary and snapshot end with the old window."""
    tx.run(
        "update sessions set window_after = ?, sitting = sitting + 1, summary = null, active_task = null,"
        " summary_after = null, task_found = 0, snapshot = null, snapshot_at = null where id = ?",
        (after, session_id),
    )


def compact(tx: Transaction, session_id: int, *, after: int, summary: str | None, task: str | None) -> None:
    """Starts the window after message `after`, and keeps the `summary` of all that was in it before.

    `task` is the work under way by the summary, "" for none and None if it does not say; a task that a person has set
    stays. The snapshot is taken anew, because the beginning of the prompt changes anyway.
    """
    tx.run(
        "update sessions set summary_after = coalesce(summary_after, window_after), window_after = ?1, summary = ?2,"
        f" active_task = case when {_TASK_STAYS} then active_task else nullif(?3, '') end,"
        f" task_found = case when {_TASK_STAYS} then task_found else 1 end,"
        " snapshot = null, snapshot_at = null where id = ?4",
        (after, summary, task, session_id),
    )


#: The condition that a summary says nothing about a task, or a person has set the task.
_TASK_STAYS: Final = "?3 is null or (active_task is not null and task_found = 0)"


def put(tx: Transaction, session_id: int, **values: Value) -> None:
    marks = ", ".join(f"{name} = ?" for name in values)
    tx.run(f"update sessions set {marks} where id = ?", (*values.values(), session_id))


def put_chat(tx: Transaction, chat_id: int, **values: Value) -> None:
    marks = ", ".join(f"{name} = ?" for name in values)
    tx.run(f"update chats set {marks} where id = ?", (*values.values(), chat_id))


def choose_agent(tx: Transaction, session_id: int, name: str | None) -> None:
    tx.run(
        "update sessions set chosen_agent_id = (select id from agents where name = ?) where id = ?", (name, session_id)
    )


def chosen_agents(reader: Reader) -> dict[str, str]:
    return reader.pairs("select s.key, a.name from sessions s join agents a on a.id = s.chosen_agent_id")


def trim_window(tx: Transaction, session_id: int, *, after: int) -> None:
    """Drops older messages from the window without ending the conversation.

    A summary of the messages before them goes, too: it would tell of the talk as if they had never been said.
    """
    put(tx, session_id, window_after=after, summary=None, summary_after=None)


def drop_snapshots(tx: Transaction) -> None:
    """Drops all snapshots because access has changed; every session takes a new one at its next turn."""
    tx.run("update sessions set snapshot = null, snapshot_at = null where snapshot is not null")


def drop_snapshots_of(tx: Transaction, owner_ids: Collection[int], author_ids: Collection[int]) -> None:
    """Drops snapshots that may hold rows of these owners, or these identities' facts about themselves from a group."""
    tx.run(
        "update sessions set snapshot = null, snapshot_at = null where snapshot is not null and ("
        " chat_id in (select chat_id from owners where id in (select value from json_each(?1)))"
        " or agent_id in (select agent_id from owners where id in (select value from json_each(?1)))"
        " or chat_id in (select c.id from chats c join identities mine on mine.id = c.identity_id"
        "   join identities i on i.person_id = mine.person_id where i.id in (select value from json_each(?2))"
        "   or i.id in (select identity_id from owners where id in (select value from json_each(?1)))))",
        (owner_ids, author_ids),
    )


def end_import(tx: Transaction, session_id: int, last_message_at: int | None) -> None:
    tx.run(
        "update sessions set sitting = sitting + 1,"
        " last_message_at = case when ?1 > last_message_at then ?1 else last_message_at end where id = ?2",
        (last_message_at, session_id),
    )


def mark_read(tx: Transaction, session_id: int, message_id: int) -> None:
    """Marks everything up to `message_id` as read or queued to be read."""
    tx.run("update sessions set extracted_to = ?1 where id = ?2 and extracted_to < ?1", (message_id, session_id))


def sessions_of_chat(reader: Reader, chat_id: int) -> list[int]:
    return reader.ids("select id from sessions where chat_id = ?", (chat_id,))


def all_sessions(reader: Reader) -> list[int]:
    return reader.ids("select id from sessions")


def summaries(reader: Reader, session_ids: Sequence[int]) -> list[Row]:
    return reader.all(
        "select id, coalesce(summary, '') || ' ' || coalesce(active_task, '') || ' ' || coalesce(title, '') as text"
        " from sessions"
        f" where {_HOLDING} and id in (select value from json_each(?))",
        (session_ids,),
    )


def drop_summaries(tx: Transaction, message_ids: Collection[int], *, sessions: Collection[int] = ()) -> None:
    """Drops summaries, tasks and titles of the messages' sessions and of `sessions`: they were made from words that go.

    A title that a person gave goes with `sessions`, or when no words are left there.

    The messages that a summary covered are in the window again, without those words, so that they are summed up anew.
    """
    tx.run(
        f"update sessions set {_UNNAMED} where title is not null and (id in (select value from json_each(?2)) or"
        " id in (select session_id from messages where id in (select value from json_each(?1))) and (title_found > 0 or"
        " not exists (select 1 from messages m where m.session_id = sessions.id and m.erased_at is null)))",
        (message_ids, sessions),
    )
    tx.run(
        f"update sessions set {_UNSUMMED} where {_HOLDING}"
        " and (id in (select session_id from messages where id in (select value from json_each(?1)))"
        " or id in (select value from json_each(?2)))",
        (message_ids, sessions),
    )


def drop_summaries_of(tx: Transaction, message_ids: Collection[int]) -> None:
    """Drops, as `drop_summaries` does, the summaries that cover any of these messages."""
    tx.run(
        f"update sessions set {_UNSUMMED} where id in"
        " (select s.id from messages m join sessions s on s.id = m.session_id"
        " where m.id in (select value from json_each(?)) and m.id > s.summary_after and m.id <= s.window_after)",
        (message_ids,),
    )


def drop_old_summaries(tx: Transaction, *, until: int) -> None:
    tx.run(f"update sessions set {_UNSUMMED} where created_at <= ?", (until,))


def drop_spent_summaries(tx: Transaction, *, before: int) -> int:
    """Drops summaries and tasks of sessions silent since `before` (milliseconds UTC) that have no words left.

    Returns the number of these sessions.
    """
    return len(
        tx.ids(
            f"update sessions set {_EMPTY} where {_HOLDING} and coalesce(last_message_at, created_at) < ? and not"
            " exists"
            " (select 1 from messages m where m.session_id = sessions.id and m.erased_at is null) returning id",
            (before,),
        )
    )


def empty_private(tx: Transaction, session_ids: Sequence[int]) -> None:
    """Drops the summaries, tasks and snapshots of these sessions, and the titles of their private chats."""
    tx.run(
        f"update sessions set {_EMPTY}, summary_after = null, snapshot = null, snapshot_at = null"
        " where id in (select value from json_each(?))",
        (session_ids,),
    )
    tx.run(
        f"update chats set {_UNTITLED} where kind = 'private' and id in"
        " (select chat_id from sessions where id in (select value from json_each(?)))",
        (session_ids,),
    )


def close_sessions(tx: Transaction, chat_id: int) -> list[int]:
    """Begins anew the sessions of a chat that have only empty rows left; returns their ids.

    Sessions in which the bot has said something since are left as they are.
    """
    return tx.ids(
        f"update sessions set {_EMPTY}, summary_after = null, snapshot = null, snapshot_at = null,"
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


def drop_titles(tx: Transaction, message_ids: Collection[int], *, by_age: bool = False) -> None:
    """Drops titles that were found in conversations with any of these messages of people: they may tell of them.

    With `by_age` those stay that were found after the last of these messages, in later ones: `title_found` is the id of
    the first message that a title was made of.
    """
    tx.run(
        f"update sessions set {_UNNAMED} from (select coalesce(s.talk_id, s.id) as talk_id, max(m.id) as last_id from"
        " messages m join sessions s on s.id = m.session_id where m.id in (select value from json_each(?1))"
        " and (?2 = 1 or m.role = 'user') group by coalesce(s.talk_id, s.id)) gone"
        " where sessions.id = gone.talk_id and title_found > 0 and (?2 = 0 or gone.last_id >= title_found)",
        (message_ids, int(by_age)),
    )


def family(reader: Reader, session_id: int) -> list[int]:
    """Returns the sessions of the conversation that a session belongs to: the one it began in, and its branches."""
    return reader.ids(
        "select f.id from sessions s join sessions f on coalesce(s.talk_id, s.id) in (f.id, f.talk_id) where s.id = ?",
        (session_id,),
    )


def is_titled(reader: Reader, session_id: int) -> bool:
    return reader.has("select 1 from sessions where id = ? and title_found is not null", (session_id,))


def branch(tx: Transaction, session_id: int, *, of: int, at: int) -> None:
    """Makes an empty session continue another one, from before the message `at` there.

    If that message is the first of a branch itself, this becomes one more branch beside it.
    """
    tx.run(
        "update sessions set branch_of = f.branch_of, branch_at = f.branch_at, talk_id = f.talk_id from"
        " (select case when s.branch_of is null or earlier.id is not null then s.id else s.branch_of end as branch_of,"
        " case when s.branch_of is null or earlier.id is not null then ?2 else s.branch_at end as branch_at,"
        " coalesce(s.talk_id, s.id) as talk_id from sessions s left join messages earlier on earlier.id ="
        " (select min(id) from messages where session_id = ?1 and id < ?2 and role = 'user') where s.id = ?1) f"
        " where sessions.id = ?3 and sessions.branch_of is null"
        " and not exists (select 1 from messages m where m.session_id = ?3)",
        (of, at, session_id),
    )


def untitle(tx: Transaction, chat_id: int) -> bool:
    return bool(tx.ids(f"update chats set {_UNTITLED} where id = ? and title <> '' returning id", (chat_id,)))


def silent_chats(reader: Reader) -> list[Row]:
    """Returns the chats that the bot has left, and those in which nothing is learned, for `take_over_silence`."""
    return reader.all(
        "select a.platform, a.reference, c.learning, c.left_at from chats c join chat_aliases a"
        " on a.chat_id = c.id where c.learning = 0 or c.left_at is not null"
    )


def take_over_silence(tx: Transaction, rows: Iterable[Row]) -> None:
    for row in rows:
        tx.run(
            "update chats set learning = learning * ?, left_at = coalesce(left_at, ?)"
            " where id = (select chat_id from chat_aliases where platform = ? and reference = ?)",
            (row["learning"], row["left_at"], row["platform"], row["reference"]),
        )


def untitle_imported(tx: Transaction, import_id: int, chat_id: int | None) -> None:
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


_EMPTY = f"{word_columns.emptied('sessions')}, title_found = null"
_HOLDING = word_columns.holding("sessions")
#: The assignments that drop a summary and take the messages that it covered back into the window.
_UNSUMMED = (
    f"{word_columns.emptied('sessions', besides=('title',))}, window_after = coalesce(summary_after, window_after),"
    " summary_after = null, task_found = 0"
)
_UNNAMED: Final = "title = null, title_found = null"

_UNTITLED = word_columns.emptied("chats")

_SESSION = (
    "select s.id, s.key, s.chat_id, s.thread, s.agent_id, s.window_after, s.sitting, s.summary,"
    " s.active_task, s.chosen_model, s.snapshot, s.snapshot_at, s.last_message_at, c.kind = 'private' as private,"
    " s.branch_of is not null as is_branch, c.learning, c.manner, c.identity_id,"
    " coalesce(s.left_at, c.left_at) as left_at, s.muted_at,"
    " (select name from agents where id = s.agent_id) as agent"
    " from sessions s join chats c on c.id = s.chat_id"
)


def _session(row: Row) -> Session:
    on = {setting: bool(row[setting]) for setting in ("private", "learning", "manner", "is_branch")}
    snapshot = None if row["snapshot"] is None else tuple(json.loads(row["snapshot"]))
    return Session(**{**dict(row), **on, "snapshot": snapshot})
