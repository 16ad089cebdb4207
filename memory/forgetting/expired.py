"""Erases what has expired: the messages and memories of chats that the bot left, and words said long ago.

Invariants: a read lists the rows to erase, and short transactions erase them; each notes that the files are to be
scrubbed, and first checks whether the bot is still out of that chat. If it is stopped at any point, the next run finds
the rest. Messages and turns stay as empty rows, because others may point at them. Rows of other chats or owners are
touched only if they were derived from rows that go. Memories learned from expired words stay and say "source erased";
night jobs still process them, but nothing more is learned from the words. A running turn keeps its words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

from memory.forgetting import blank_messages
from memory.jobs import runs
from memory.learn import extractions
from memory.mailbox import inbox, outbox
from memory.recall import index
from memory.reminders import reminding
from memory.store import chats, documents, entities, history, memories, people, recalls, scopes, word_columns
from memory.store.database import Database, Reader, Row, Transaction

Rows: TypeAlias = Literal["messages", "turns", "entities", "memories", "names", "reminders", "inbox", "outbox"]

#: Rows of each kind that go in one transaction, with everything that depends on them. Searchable rows go in small
#: portions: the word index takes up to 1 ms to overwrite its entries of one row.
_TOGETHER: Final[dict[Rows, int]] = {
    "messages": 100, "turns": 100, "entities": 300, "memories": 50, "names": 1, "reminders": 500, "inbox": 500,
    "outbox": 500,
}  # fmt: skip
#: Message ids that one read of old words looks through, in some 20 ms.
_LOOKED_AT: Final = 20_000
#: Stored as the error of a turn or message that will never be answered.
_LEFT: Final = "left"
#: The sessions of a chat that hold messages: one that was wholly erased has no last message.
_SESSIONS: Final = "select id from sessions where chat_id = ? and last_message_at is not null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Counts of erased rows: chats that had anything left, their messages, and memories with derived ones."""

    chats: int = 0
    messages: int = 0
    memories: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A chat that the bot has left at `left_at` (milliseconds UTC)."""

    chat_id: int
    left_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows of one kind to be erased together, by their ids.

    `speaker` is set for rows that one person alone owns: the person's identity, and when it was last seen (milliseconds
    UTC).
    """

    chat: Left
    rows: Rows
    ids: tuple[int, ...]
    speaker: tuple[int, int] | None = None


async def erase_left(database: Database, *, before: int, now: int) -> Erased:
    """Erases the chats that were left before a time (milliseconds UTC), in the indexes, too.

    In a group, everything said and learned there goes. In private, everything said goes; memories of the person go,
    too, unless they speak in another private chat, under this or a linked identity. Raises `StorageError` and its
    subclasses; committed parts stay erased.
    """
    erased = Erased()
    for chat in await database.read(partial(left, before=before)):
        gone = dict.fromkeys(get_args(Rows), 0)
        for batch in await database.read(partial(contents, chat=chat, before=before)):
            gone[batch.rows] += await database.write(partial(erase, batch=batch, now=now))
            await index.keep_up(database)
        closed = await database.write(partial(_close, chat=chat, now=now))
        erased = Erased(
            chats=erased.chats + (closed or any(gone.values())),
            messages=erased.messages + gone["messages"],
            memories=erased.memories + gone["memories"],
        )
    for batch in await database.read(partial(mail, before=before)):
        await database.write(partial(erase, batch=batch, now=now))
    return erased


def left(reader: Reader, *, before: int) -> list[Left]:
    """Returns the chats that were left before a time (milliseconds UTC) and still hold anything but mail."""
    rows = reader.all(
        "select c.id, c.left_at from chats c where c.left_at < ? and (c.title <> ''"
        " or c.id in (select chat_id from sessions where last_message_at is not null or summary is not null"
        "   or active_task is not null)"
        " or c.id in (select s.chat_id from reminders r join sessions s on s.id = r.session_id)"
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
    """Returns everything to be erased of a chat except its mail, in the order in which it goes.

    Entities go before the memories that name them: checking them memory by memory would cost too much.
    """
    batches: list[Batch] = []
    with_words = reader.ids(
        f"select id from messages where session_id in ({_SESSIONS}) and (erased_at is null or author_name <> '')",
        (chat.chat_id,),
    )
    batches += _batches(chat, "messages", with_words)
    turns = reader.ids(f"select id from turns where session_id in ({_SESSIONS})", (chat.chat_id,))
    batches += _batches(chat, "turns", turns)
    batches += _batches(chat, "reminders", [reminder.id for reminder in reminding.of_chat(reader, chat.chat_id)])
    for owner_id in scopes.owners_of_chat(reader, chat.chat_id):
        batches += _learned(reader, chat, owner_id)
    for person in _alone_here(reader, chat.chat_id, before=before):
        speaker = (person["identity_id"], person["last_seen_at"])
        batches += _learned(reader, chat, person["id"], speaker=speaker)
        if person["name"]:
            batches += _batches(chat, "names", [person["identity_id"]], speaker=speaker)
    return batches


def mail(reader: Reader, *, before: int) -> list[Batch]:
    """Returns the mail, with words or without an end, of all chats that were left before a time (milliseconds UTC)."""
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
    """Erases a batch and returns the number of rows. Erases none if the bot is back or the person was seen since."""
    if not _still_left(tx, batch.chat):
        return 0
    if batch.speaker is not None and not _is_away(tx, batch.speaker[0], last_seen_at=batch.speaker[1]):
        return 0
    word_columns.note_reworded(tx, now=now)
    match batch.rows:
        case "messages":
            history.erase(tx, batch.ids, now=now)
            history.unname(tx, batch.ids)
        case "turns":
            history.drop_steps(tx, batch.ids)
            recalls.drop(tx, batch.ids)
            history.drop_portions(tx, turn_ids=batch.ids)
            history.fail_turns(tx, batch.ids, error=_LEFT, now=now)
        case "entities":
            entities.drop(tx, batch.ids)
        case "memories":
            return len(memories.take_apart(tx, batch.ids))
        case "names":
            people.unname_silent(tx, batch.ids)
            documents.changed_names(tx, batch.ids)
        case "reminders":
            reminding.drop(tx, batch.ids)
        case "inbox":
            inbox.end(tx, batch.ids, error=_LEFT, now=now)
            inbox.blank(tx, batch.ids)
        case "outbox":
            outbox.drop(tx, batch.ids)
    return len(batch.ids)


def _close(tx: Transaction, chat: Left, *, now: int) -> bool:
    """Closes a chat that has only empty rows left: its sessions begin anew, should the bot come back."""
    if not _still_left(tx, chat):
        return False
    closed = chats.close_sessions(tx, chat.chat_id)
    extractions.drop(tx, closed)
    runs.drop_items_of_chat(tx, chat.chat_id)
    untitled = chats.untitle(tx, chat.chat_id)
    if untitled:
        word_columns.note_reworded(tx, now=now)
    return untitled or bool(closed)


def _still_left(reader: Reader, chat: Left) -> bool:
    return reader.one("select 1 from chats where id = ? and left_at = ?", (chat.chat_id, chat.left_at)) is not None


def _learned(reader: Reader, chat: Left, owner_id: int, *, speaker: tuple[int, int] | None = None) -> list[Batch]:
    return [
        *_batches(chat, "entities", entities.of_owner(reader, owner_id), speaker=speaker),
        *_batches(chat, "memories", memories.of_owner(reader, owner_id), speaker=speaker),
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


def _alone_here(reader: Reader, chat_id: int, *, before: int) -> list[Row]:
    """Returns the owners who speak in this private chat and in no other, with identity, name and time last seen.

    People who speak in another private chat under a linked identity are not among them: memories learned under this
    identity are read and wanted there.
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
        "   where n.person_id = i.person_id and c.id <> ?1 and c.kind = 'private' and coalesce(c.left_at, ?2) >= ?2)"
        " and not exists (select 1 from identities n join chats c on c.identity_id = n.id"
        "   where n.person_id = i.person_id and c.id <> ?1 and c.kind = 'private' and coalesce(c.left_at, ?2) >= ?2)",
        (chat_id, before),
    )


def _is_away(reader: Reader, identity_id: int, *, last_seen_at: int) -> bool:
    """Returns whether an identity was not seen again, and was linked with none that is in a private chat."""
    row = reader.one(
        "select 1 from identities i where i.id = ? and i.last_seen_at = ?"
        " and not exists (select 1 from identities n join chats c on c.identity_id = n.id"
        "   where n.person_id = i.person_id and n.id <> i.id and c.kind = 'private' and c.left_at is null)",
        (identity_id, last_seen_at),
    )
    return row is not None


# Words said long ago --------------------------------------------------------------------------------------------------


async def erase_words(database: Database, *, before: int, now: int) -> int:
    """Blanks messages of people and the bot said before a time (milliseconds UTC), in the indexes, too.

    Returns the number of these messages. Raises `StorageError` and its subclasses; committed parts stay erased.
    """
    gone = 0
    # A message committed meanwhile under a lower id is found the next time, which begins from the first id again.
    newest = await database.read(history.newest_id)
    for start in range(0, newest, _LOOKED_AT):
        old = await database.read(partial(said_before, before=before, after=start))
        for first in range(0, len(old), _TOGETHER["messages"]):
            some = old[first : first + _TOGETHER["messages"]]
            await database.write(partial(_blank_old, message_ids=some, now=now))
            await index.keep_up(database)
            gone += len(some)
    await database.write(partial(_clear_beside, before=before, now=now))
    return gone


def said_before(reader: Reader, *, before: int, after: int) -> list[int]:
    """Returns the next messages after the id `after` that have expired. Messages of running turns are left out."""
    return reader.ids(
        "select m.id from messages m where m.id > ? and m.id <= ? and m.said_at < ? and m.erased_at is null"
        " and not exists (select 1 from turns t where t.id = m.turn_id and t.state = 'running') order by m.id",
        (after, after + _LOOKED_AT, before),
    )


def _blank_old(tx: Transaction, *, message_ids: Sequence[int], now: int) -> None:
    blank_messages.blank(tx, message_ids, now=now, by_age=True)
    word_columns.note_reworded(tx, now=now)


def _clear_beside(tx: Transaction, *, before: int, now: int) -> None:
    """Erases mail that never became part of history, and summaries of sessions whose words are all gone."""
    failed = inbox.failed(tx, before=before)
    inbox.blank(tx, failed)
    unsent = outbox.drop_undelivered(tx, before=before)
    summed_up = chats.drop_spent_summaries(tx, before=before)
    if failed or unsent or summed_up:
        word_columns.note_reworded(tx, now=now)
