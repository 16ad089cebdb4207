"""Selects the rows that remain of chats the bot has left: ids for the eraser.

Invariant: Nothing is changed here. A wholly erased session has no last message.
"""

from __future__ import annotations

from memory.store.database import Reader, Row


def left(reader: Reader, *, before: int) -> list[Row]:
    """Returns the chats left before a time (milliseconds UTC) that hold anything but mail: rows of id and left_at."""
    return reader.all(
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


def is_left(reader: Reader, chat_id: int, *, left_at: int) -> bool:
    """Returns whether the bot has not been back since it left a chat."""
    return reader.one("select 1 from chats where id = ? and left_at = ?", (chat_id, left_at)) is not None


def messages(reader: Reader, chat_id: int) -> list[int]:
    """Returns the messages of a chat with words or an author's name."""
    return reader.ids(
        f"select id from messages where session_id in ({_SESSIONS}) and (erased_at is null or author_name <> '')",
        (chat_id,),
    )


def turns(reader: Reader, chat_id: int) -> list[int]:
    return reader.ids(f"select id from turns where session_id in ({_SESSIONS})", (chat_id,))


def inbox(reader: Reader, *, before: int) -> list[Row]:
    """Returns the inbox rows of all chats left before a time, with words or without an end: id, chat_id and left_at."""
    return reader.all(
        "select i.id, c.id as chat_id, c.left_at from inbox i cross join sessions s on s.key = i.session_key"
        " join chats c on c.id = s.chat_id"
        " where (i.payload <> '' or i.state in ('pending', 'claimed')) and c.left_at < ?",
        (before,),
    )


def outbox(reader: Reader, *, before: int) -> list[Row]:
    """Returns the outbox rows of all chats left before a time, with words or unsent: id, chat_id and left_at."""
    return reader.all(
        "select p.id, c.id as chat_id, c.left_at from outbox p cross join sessions s on s.key = p.session_key"
        " join chats c on c.id = s.chat_id where (p.state <> 'sent' or p.text <> '') and c.left_at < ?",
        (before,),
    )


def alone_here(reader: Reader, chat_id: int, *, before: int) -> list[Row]:
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


def is_away(reader: Reader, identity_id: int, *, last_seen_at: int) -> bool:
    """Returns whether an identity was not seen again, and was linked with none that is in a private chat."""
    row = reader.one(
        "select 1 from identities i where i.id = ? and i.last_seen_at = ?"
        " and not exists (select 1 from identities n join chats c on c.identity_id = n.id"
        "   where n.person_id = i.person_id and n.id <> i.id and c.kind = 'private' and c.left_at is null)",
        (identity_id, last_seen_at),
    )
    return row is not None


_SESSIONS = "select id from sessions where chat_id = ? and last_message_at is not null"
