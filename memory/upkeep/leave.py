"""Erase what was said and learned in chats that the bot left long enough ago.

Invariants: what is to go is listed by a read and erased in short transactions, each of which first looks whether the
bot is still out of that chat; stopped at any point, the next run finds what is left to do; messages and turns stay as
empty rows, for others may point at them; nothing of another chat or owner is touched, but what was derived from rows
that go.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

from memory.recall import index
from memory.store import documents, history, memories
from memory.store.database import Database, Reader, Row, Transaction

Rows: TypeAlias = Literal["messages", "turns", "entities", "memories", "names", "inbox", "outbox"]

#: Rows of each kind that go in one transaction, with all that hangs on them. What can be found goes in small portions:
#: the word index takes up to 1 ms to overwrite what it held of one.
_TOGETHER: Final[dict[Rows, int]] = {
    "messages": 100, "turns": 100, "entities": 300, "memories": 50, "names": 1, "inbox": 500, "outbox": 500,
}  # fmt: skip
#: What is stored as the error of a turn or message that will never be answered.
_LEFT: Final = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was erased: chats of which anything was left, their messages, and memories with what was derived of them."""

    chats: int = 0
    messages: int = 0
    memories: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A chat that the bot has left, at a time in milliseconds UTC."""

    chat_id: int
    left_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows of one kind to be erased together, by their ids.

    `speaker` is set for what a person alone owns: their identity, and when that was seen last.
    """

    chat: Left
    rows: Rows
    ids: tuple[int, ...]
    speaker: tuple[int, int] | None = None


async def erase_left(database: Database, *, before: int, now: int) -> Erased:
    """Erase the chats that were left before a time in milliseconds UTC, in the indexes, too.

    In a group goes all that was said and learned there; in private what was said and, unless that person speaks in
    another private chat, under this or a linked identity, what was learned of them. Raises `StorageError` and its kin;
    what is done stays done.
    """
    erased = Erased()
    for chat in await database.read(partial(left, before=before)):
        gone = dict.fromkeys(get_args(Rows), 0)
        for batch in await database.read(partial(contents, chat=chat, before=before)):
            gone[batch.rows] += await database.write(partial(erase, batch=batch, now=now))
            await index.keep_up(database)
        closed = await database.write(partial(_close, chat=chat))
        erased = Erased(
            chats=erased.chats + (closed or any(gone.values())),
            messages=erased.messages + gone["messages"],
            memories=erased.memories + gone["memories"],
        )
    for batch in await database.read(partial(mail, before=before)):
        await database.write(partial(erase, batch=batch, now=now))
    return erased


def left(reader: Reader, *, before: int) -> list[Left]:
    """The chats that were left before a time in milliseconds UTC and of which anything is still there but mail.

    A session of which all is erased has no last message.
    """
    rows = reader.all(
        "select c.id, c.left_at from chats c where c.left_at < ? and (c.title <> ''"
        " or c.id in (select chat_id from sessions where last_message_at is not null or summary is not null"
        "   or active_task is not null)"
        " or exists (select 1 from owners o join memories m on m.owner_id = o.id"
        "   where o.kind = 'chat' and o.chat_id = c.id)"
        " or exists (select 1 from owners o join memories m on m.owner_id = o.id"
        "   where o.kind = 'thread' and o.chat_id = c.id)"
        " or c.kind = 'private' and exists (select 1 from owners o join memories m on m.owner_id = o.id"
        "   where o.kind = 'identity' and o.identity_id = c.identity_id)) order by c.id",
        (before,),
    )
    return [Left(chat_id=row["id"], left_at=row["left_at"]) for row in rows]


def contents(reader: Reader, chat: Left, *, before: int) -> list[Batch]:
    """All that is to be erased of a chat but its mail, in the order in which it goes.

    Entities go before the memories that name them: looked at one memory after the other they would cost too much.
    """
    batches: list[Batch] = []
    sessions = "select id from sessions where chat_id = ? and last_message_at is not null"
    said = reader.all(
        f"select id from messages where session_id in ({sessions}) and (erased_at is null or author_name <> '')",
        (chat.chat_id,),
    )
    turns = reader.all(f"select id from turns where session_id in ({sessions})", (chat.chat_id,))
    batches += _batches(chat, "messages", [row["id"] for row in said])
    batches += _batches(chat, "turns", [row["id"] for row in turns])
    owners = reader.all("select id from owners where chat_id = ?", (chat.chat_id,))
    for owner in owners:
        batches += _learned(reader, chat, owner["id"])
    for person in _alone_here(reader, chat, before=before):
        speaker = (person["identity_id"], person["last_seen_at"])
        batches += _learned(reader, chat, person["id"], speaker=speaker)
        if person["name"]:
            batches += _batches(chat, "names", [person["identity_id"]], speaker=speaker)
    return batches


def mail(reader: Reader, *, before: int) -> list[Batch]:
    """What lies in the mailbox of chats that were left before a time in milliseconds UTC: one look for all of them."""
    received = reader.all(
        "select i.id, c.id as chat_id, c.left_at from inbox i cross join sessions s on s.key = i.session_key"
        " join chats c on c.id = s.chat_id"
        " where (i.payload <> '' or i.state in ('pending', 'claimed')) and c.left_at < ?",
        (before,),
    )
    unsent = reader.all(
        "select p.id, c.id as chat_id, c.left_at from outbox p cross join sessions s on s.key = p.session_key"
        " join chats c on c.id = s.chat_id where (p.state <> 'sent' or p.text <> '') and c.left_at < ?",
        (before,),
    )
    return [*_by_chat("inbox", received), *_by_chat("outbox", unsent)]


def erase(tx: Transaction, batch: Batch, *, now: int) -> int:
    """Erase some rows; returns how many went. None do once the bot is back, or the person was seen."""
    if not _still_left(tx, batch.chat) or (batch.speaker is not None and not _still_away(tx, *batch.speaker)):
        return 0
    these = json.dumps(batch.ids)
    match batch.rows:
        case "messages":
            history.erase(tx, batch.ids, now=now)
            tx.run("update messages set author_name = '' where id in (select value from json_each(?))", (these,))
        case "turns":
            tx.run("delete from steps where turn_id in (select value from json_each(?))", (these,))
            tx.run("delete from effects where turn_id in (select value from json_each(?))", (these,))
            tx.run("delete from recalls where turn_id in (select value from json_each(?))", (these,))
            tx.run(
                "update turns set state = 'failed', error = ?, finished_at = ?"
                " where state = 'running' and id in (select value from json_each(?))",
                (_LEFT, now, these),
            )
        case "entities":
            tx.run("delete from entities where id in (select value from json_each(?))", (these,))
        case "memories":
            return len(memories.take_apart(tx, batch.ids))
        case "names":
            tx.run(
                "update identities set name = '' where id in (select value from json_each(?))"
                " and not exists (select 1 from messages m where m.author_id = identities.id and m.erased_at is null)",
                (these,),
            )
            documents.changed_names(tx, batch.ids)
        case "inbox":
            tx.run("delete from attachments where inbox_id in (select value from json_each(?))", (these,))
            tx.run(
                "update inbox set payload = '', error = iif(finished_at is null, ?1, error),"
                " finished_at = coalesce(finished_at, ?2),"
                " state = iif(state in ('pending', 'claimed'), 'failed', state)"
                " where id in (select value from json_each(?3))",
                (_LEFT, now, these),
            )
        case "outbox":
            tx.run("delete from outbox where id in (select value from json_each(?))", (these,))
    return len(batch.ids)


def _close(tx: Transaction, chat: Left) -> bool:
    """Nothing of the chat is left but its empty rows: its sessions begin anew, should it come back."""
    if not _still_left(tx, chat):
        return False
    closed = tx.all(
        "update sessions set summary = null, active_task = null, snapshot = null, snapshot_at = null,"
        " last_message_at = null, sitting = sitting + 1, window_after = coalesce(newest.id, window_after),"
        " extracted_to = coalesce(newest.id, extracted_to)"
        " from (select s.id as session_id, (select max(m.id) from messages m where m.session_id = s.id) as id"
        "   from sessions s where s.chat_id = ?) as newest"
        " where sessions.id = newest.session_id"
        " and (last_message_at is not null or summary is not null or active_task is not null)"
        # What the bot itself said there since is the next run's.
        " and not exists (select 1 from messages m where m.id = newest.id and m.erased_at is null)"
        " returning sessions.id",
        (chat.chat_id,),
    )
    of_sessions = json.dumps([row["id"] for row in closed])
    tx.run("delete from extractions where session_id in (select value from json_each(?))", (of_sessions,))
    tx.run("delete from job_items where owner_id in (select id from owners where chat_id = ?)", (chat.chat_id,))
    titled = tx.all("update chats set title = '' where id = ? and title <> '' returning id", (chat.chat_id,))
    return bool(closed or titled)


def _still_left(reader: Reader, chat: Left) -> bool:
    return reader.one("select 1 from chats where id = ? and left_at = ?", (chat.chat_id, chat.left_at)) is not None


def _still_away(reader: Reader, identity_id: int, last_seen_at: int) -> bool:
    row = reader.one(
        "select 1 from identities i where i.id = ? and i.last_seen_at = ?"
        # Somebody may have been linked since.
        " and not exists (select 1 from identities n join chats c on c.identity_id = n.id"
        "   where n.person_id = i.person_id and n.id <> i.id and c.kind = 'private' and c.left_at is null)",
        (identity_id, last_seen_at),
    )
    return row is not None


def _alone_here(reader: Reader, chat: Left, *, before: int) -> list[Row]:
    """The owners of those whose private chat this is and who speak in no other, with identity, name and last sight.

    Whoever speaks in another private chat under a linked identity is still there: what was learned under this one is
    read and wanted there.
    """
    return reader.all(
        "select o.id, i.id as identity_id, i.name, i.last_seen_at from identities i"
        " join owners o on o.kind = 'identity' and o.identity_id = i.id"
        " where exists (select 1 from chats where id = ?1 and kind = 'private') and i.id in ("
        "   select m.author_id from messages m join sessions s on s.id = m.session_id"
        "   where s.chat_id = ?1 and s.last_message_at is not null"
        "   union select q.asker_id from questions q join sessions s on s.id = q.session_id where s.chat_id = ?1"
        "   union select identity_id from chats where id = ?1)"
        " and not exists (select 1 from identities n join messages m on m.author_id = n.id"
        "   cross join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id"
        "   where n.person_id = i.person_id and c.id <> ?1 and c.kind = 'private' and ifnull(c.left_at, ?2) >= ?2)"
        " and not exists (select 1 from identities n join chats c on c.identity_id = n.id"
        "   where n.person_id = i.person_id and c.id <> ?1 and c.kind = 'private' and ifnull(c.left_at, ?2) >= ?2)",
        (chat.chat_id, before),
    )


def _learned(reader: Reader, chat: Left, owner_id: int, *, speaker: tuple[int, int] | None = None) -> list[Batch]:
    named = reader.all("select id from entities where owner_id = ?", (owner_id,))
    learned = reader.all("select id from memories where owner_id = ?", (owner_id,))
    return [
        *_batches(chat, "entities", [row["id"] for row in named], speaker=speaker),
        *_batches(chat, "memories", [row["id"] for row in learned], speaker=speaker),
    ]


def _by_chat(rows: Rows, found: Sequence[Row]) -> Iterator[Batch]:
    ids: defaultdict[Left, list[int]] = defaultdict(list)
    for row in found:
        ids[Left(chat_id=row["chat_id"], left_at=row["left_at"])].append(row["id"])
    for chat, some in ids.items():
        yield from _batches(chat, rows, some)


def _batches(chat: Left, rows: Rows, ids: Sequence[int], *, speaker: tuple[int, int] | None = None) -> Iterator[Batch]:
    size = _TOGETHER[rows]
    for start in range(0, len(ids), size):
        yield Batch(chat=chat, rows=rows, ids=tuple(ids[start : start + size]), speaker=speaker)
