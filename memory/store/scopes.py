"""Agents, the owners of memories, and the scope of a night job.

Invariant: every stored identity, chat and agent has its owner row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction

#: The finder of names in an agent's memories: patterns alone, or also its models, or spaCy at night, or all that are
#: available ("auto"), or none.
NameFinder: TypeAlias = Literal["auto", "spacy", "model", "patterns", "none"]


def agent(tx: Transaction, name: str, *, now: int) -> int:
    row = tx.one("select id from agents where name = ?", (name,))
    if row is not None:
        return int(row["id"])
    agent_id = tx.insert("insert into agents (name, created_at) values (?, ?)", (name, now))
    own(tx, "agent", agent_id)
    return agent_id


def own(tx: Transaction, kind: Literal["agent", "identity", "chat"], own_id: int) -> None:
    tx.run(f"insert into owners (kind, {kind}_id) values (?, ?)", (kind, own_id))


def find_names(tx: Transaction, agent_id: int, by: NameFinder) -> None:
    tx.run("update agents set entities = ?1 where id = ?2 and entities <> ?1", (by, agent_id))


def name_finder(reader: Reader, agent_id: int) -> NameFinder:
    row = reader.one("select entities from agents where id = ?", (agent_id,))
    assert row is not None, f"no agent {agent_id}"
    found: NameFinder = row["entities"]
    return found


def agents(reader: Reader) -> list[int]:
    return reader.ids("select id from agents")


def agent_name(reader: Reader, agent_id: int) -> str:
    return reader.text("select name from agents where id = ?", (agent_id,)) or ""


def agent_owner(reader: Reader, agent_id: int) -> int:
    return reader.number("select id from owners where kind = 'agent' and agent_id = ?", (agent_id,))


def owner(reader: Reader, owner_id: int) -> Row:
    """Returns an owner as a row of kind, identity_id, chat_id, thread and agent_id."""
    row = reader.one("select kind, identity_id, chat_id, thread, agent_id from owners where id = ?", (owner_id,))
    assert row is not None, f"no owner {owner_id}"
    return row


def agent_since(reader: Reader, agent_id: int) -> int:
    row = reader.one("select created_at from agents where id = ?", (agent_id,))
    assert row is not None, f"no agent {agent_id}"
    return int(row["created_at"])


def own_thread(tx: Transaction, chat_id: int, thread: str | None) -> None:
    """Creates the owner of a thread if threads of its chat keep their own memory.

    Without it the thread would write to the whole chat's memory.
    """
    if thread is not None:
        tx.run(
            "insert into owners (kind, chat_id, thread) select 'thread', id, ? from chats"
            " where id = ? and kind = 'group' and threads_own = 1 on conflict do nothing",
            (thread, chat_id),
        )


def owners_of_chat(reader: Reader, chat_id: int) -> list[int]:
    return reader.ids("select id from owners where chat_id = ? order by id", (chat_id,))


def scope_of_owner(reader: Reader, owner_id: int, *, agent_id: int) -> Scope:
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
        " join owners o on o.kind = 'thread' and o.chat_id = c.id and o.thread = s.thread) talks) ranked"
        " where n = 1 and ?1 = case when sleeps then ?3 else agent_id end and left_at is null"
        " order by owner_id",
        (agent_id, among, among[0] if among else None),
    )


def learns_manner(reader: Reader, owner_id: int) -> bool:
    """Returns whether a manner of talking is learned for an owner: a person or group that has not switched it off."""
    row = reader.one(
        "select coalesce(p.manner, c.manner, 0) as manner from owners o left join identities i on i.id = o.identity_id"
        " left join people p on p.id = i.person_id left join chats c on c.id = o.chat_id where o.id = ?",
        (owner_id,),
    )
    return row is not None and bool(row["manner"])


def learned_of(reader: Reader, owner_ids: Collection[int]) -> list[int]:
    """Returns the owners among these about which memories are learned: people and groups with learning on.

    A person counts if they have not opted out and have learning on in a private chat of theirs. While nothing is
    learned about an owner, nothing is concluded from existing rows either.
    """
    return reader.ids(
        "select o.id from json_each(?) asked join owners o on o.id = asked.value"
        " left join identities i on i.id = o.identity_id left join people p on p.id = i.person_id"
        " where coalesce(p.learning, 1) = 1 and coalesce((select c.learning from chats c where c.id = o.chat_id),"
        " (select max(c.learning) from chats c where c.identity_id = o.identity_id and c.kind = 'private'), 1) = 1",
        (owner_ids,),
    )


def places(reader: Reader, owner_ids: Sequence[int]) -> list[int]:
    return reader.ids(
        "select id from owners where kind in ('chat', 'thread') and id in (select value from json_each(?))",
        (owner_ids,),
    )
