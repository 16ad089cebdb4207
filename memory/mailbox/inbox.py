"""The inbox: messages that were received and, once their turn is over, emptied.

Invariants: An update is taken once per (platform, bot, key). A row ends as done, failed or dead, in the transaction
that holds its answer. Rows keep words no longer than they need them; history keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from memory.errors import Withdrawn
from memory.store import attachments
from memory.store.database import Reader, Row, Transaction

#: Takes the place of the bot's id in the inbox rows of tasks, which no platform has delivered.
TASK: Final = "task"
_ROW: Final = "select id, session_key, payload, turn_id, held from inbox"
#: Exactly the condition of the index of open rows; with other wording SQLite does not use it.
OPEN: Final = "state in ('pending', 'claimed')"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """An inbox row. `payload` is the channel's inbound message as JSON. A `held` row waits until it is released."""

    id: int
    session_key: str
    payload: str
    turn_id: int | None
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldBefore:
    """A message that was taken before.

    `is_newest` is True if its bot has taken no later message in its session, `is_last` if its turn is the last there.
    """

    update_key: str
    session_key: str
    received_at: int
    is_newest: bool
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An inbox row that was claimed for a turn. A task is a reminder whose time has come, not a message."""

    is_task: bool
    has_attachments: bool


def receive(
    tx: Transaction,
    *,
    platform: str,
    bot_id: str,
    update_key: str,
    session_key: str,
    payload: str,
    now: int,
    held: bool = False,
) -> int | None:
    """Takes an update and returns its inbox id, or None if it was already taken.

    A `held` update waits until it is released.
    """
    return tx.id(
        "insert into inbox (platform, bot_id, update_key, session_key, payload, state, received_at, held)"
        " values (?, ?, ?, ?, ?, 'pending', ?, ?) on conflict do nothing returning id",
        (platform, bot_id, update_key, session_key, payload, now, int(held)),
    )


def has_taken(reader: Reader, platform: str, bot_id: str, update_key: str) -> bool:
    return reader.has(
        "select 1 from inbox where platform = ? and bot_id = ? and update_key = ?", (platform, bot_id, update_key)
    )


def was_taken(reader: Reader, platform: str, bot_id: str, session_key: str, message_id: str) -> bool:
    """Returns whether a message was ever taken, also when its row is over and empty: update keys hold the ids."""
    keys = reader.texts(
        "select update_key from inbox where platform = ? and bot_id = ? and session_key = ? and update_key like ?",
        (platform, bot_id, session_key, f"%{message_id}%"),
    )
    whole = re.compile(rf"(?<!\d){re.escape(message_id)}(?!\d)")
    return any(whole.search(key) for key in keys)


def has_request_between(reader: Reader, turn_id: int, later_id: int) -> bool:
    """Returns whether something that got no turn, as a command, was taken in the session between two turns there."""
    return reader.has(
        "select 1 from inbox b join inbox a on a.turn_id = ?2 join inbox x on x.id > b.id and x.id < a.id"
        " and x.session_key = b.session_key and x.turn_id is null where b.turn_id = ?1 limit 1",
        (turn_id, later_id),
    )


def is_task(reader: Reader, inbox_id: int) -> bool:
    return reader.has("select 1 from inbox where id = ? and bot_id = ?", (inbox_id, TASK))


def claim(tx: Transaction, inbox_ids: Sequence[int], turn_id: int) -> dict[int, Claimed]:
    """Claims messages for a turn. Returns the open ones, by inbox id, that no turn has claimed before."""
    rows = tx.all(
        "update inbox set state = 'claimed', turn_id = ? where state = 'pending'"
        " and id in (select value from json_each(?)) returning id, bot_id,"
        " exists (select 1 from attachments a where a.inbox_id = inbox.id) as has_attachments",
        (turn_id, inbox_ids),
    )
    return {
        row["id"]: Claimed(is_task=row["bot_id"] == TASK, has_attachments=bool(row["has_attachments"])) for row in rows
    }


def expect_open(tx: Transaction, inbox_id: int) -> None:
    """Raises `Withdrawn` if a row has ended meanwhile, so that nothing is done about it a second time."""
    if tx.one(f"select 1 from inbox where id = ? and {OPEN}", (inbox_id,)) is None:
        raise Withdrawn("it was answered, refused or withdrawn meanwhile")


def end(tx: Transaction, inbox_ids: Sequence[int], *, error: str | None, now: int, keep_words: bool = False) -> None:
    """Ends open inbox rows. With an `error` code they count as failed, visibly to the person.

    Their words are dropped, unless `keep_words` says that a row may have failed before its words reached history.
    """
    ended = tx.all(
        "update inbox set state = ?, error = ?, finished_at = ?,"
        " payload = case when ? = 1 and turn_id is null then payload else '' end"
        " where id in (select value from json_each(?)) and state in ('pending', 'claimed') returning id,"
        " exists (select 1 from attachments a where a.inbox_id = inbox.id and a.message_id is null) as leaves_files",
        ("done" if error is None else "failed", error, now, int(keep_words), inbox_ids),
    )
    if not keep_words and (left := [row["id"] for row in ended if row["leaves_files"]]):
        attachments.drop(tx, left)


def blank(tx: Transaction, inbox_ids: Sequence[int]) -> None:
    """Drops the words that ended messages have left in the mailbox, and their attachments."""
    tx.run("update inbox set payload = '' where id in (select value from json_each(?))", (inbox_ids,))
    attachments.drop(tx, inbox_ids)


def failed(reader: Reader, *, before: int) -> list[int]:
    return reader.ids(
        "select id from inbox where state in ('failed', 'dead') and payload <> '' and received_at < ?", (before,)
    )


def unanswered_in(reader: Reader, session_ids: Collection[int], identity_ids: Sequence[int]) -> list[Row]:
    """Returns inbox rows of these sessions without a turn, with files and whether one of the identities sent them."""
    return reader.all(
        "select i.id, s.id as session_id, s.chat_id, c.kind = 'private' as private,"
        " coalesce(case when json_valid(i.payload) then i.payload ->> '$.text' else i.payload end, '') as text,"
        " coalesce((select group_concat(a.name || ' ' || a.text, ' ') from attachments a where a.inbox_id = i.id"
        "   and a.message_id is null), '') as files,"
        " exists (select 1 from identities p where p.platform = i.platform and p.id in"
        "   (select value from json_each(?2)) and p.user_id ="
        "   case when json_valid(i.payload) then i.payload ->> '$.author_id' else '' end) as own"
        " from inbox i join sessions s on s.key = i.session_key join chats c on c.id = s.chat_id"
        " where s.id in (select value from json_each(?1)) and i.payload <> ''"
        " and (i.state in ('failed', 'dead') or (i.state = 'pending' and i.held = 1))",
        (session_ids, identity_ids),
    )


def unname(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Blanks the names of these identities in open inbox rows, such as the request that is being carried out."""
    tx.run(
        "update inbox set payload = json_set(payload, '$.author_name', '') where state <> 'done'"
        " and json_valid(payload) and payload ->> '$.author_id' in (select user_id from identities p"
        "   where p.platform = inbox.platform"
        "   and p.id in (select value from json_each(?)))",
        (identity_ids,),
    )


def open_rows(reader: Reader) -> list[Row]:
    return reader.all("select id, platform, bot_id, update_key, state from inbox where state in ('pending', 'claimed')")


def told_before(reader: Reader, platform: str, bot_id: str, prefixes: Sequence[str]) -> dict[int, ToldBefore]:
    """Returns for each prefix, by its place, the last update of this bot whose key begins with it, if there is one.

    The updates are in the order of the prefixes.
    """
    rows = reader.all(
        "select p.key as place, i.update_key, i.session_key, i.received_at,"
        " not exists (select 1 from inbox l where l.id > i.id and l.session_key = i.session_key"
        "  and l.platform = i.platform and l.bot_id = i.bot_id) as is_newest,"
        " i.turn_id is not distinct from (select m.turn_id from messages m join sessions s on s.id = m.session_id"
        "  where s.key = i.session_key order by m.id desc limit 1) as is_last"
        " from json_each(?) p join inbox i on i.id = (select max(j.id) from inbox j"
        "  where j.platform = ? and j.bot_id = ? and j.update_key >= p.value and j.update_key < p.value || '~')"
        " order by p.key",
        (prefixes, platform, bot_id),
    )
    flags = ("is_newest", "is_last")
    told = [dict(row) | {name: bool(row[name]) for name in flags} for row in rows]
    return {row.pop("place"): ToldBefore(**row) for row in told}


def unanswered(reader: Reader, session_key: str | None = None) -> list[InboxRow]:
    """Returns the inbox rows that still need an answer, oldest first, of one session or of all.

    Rows of one broken-off turn share its id.
    """
    return reader.each(
        f"{_ROW} where {OPEN} and held = 0 and (? is null or session_key = ?) order by id",
        (session_key, session_key),
        _row_of,
    )


def waiting(reader: Reader, session_key: str) -> list[InboxRow]:
    return reader.each(
        f"{_ROW} where {OPEN} and state = 'pending' and session_key = ? order by id", (session_key,), _row_of
    )


def kept(reader: Reader, session_key: str) -> list[InboxRow]:
    """Returns the session's messages that failed before they reached history, whose words are kept for a while."""
    return reader.each(
        f"{_ROW} where state = 'failed' and payload <> '' and session_key = ? order by id", (session_key,), _row_of
    )


def _row_of(row: Row) -> InboxRow:
    return InboxRow(**{**dict(row), "held": bool(row["held"])})
