"""Inbox and outbox: received messages and messages still to be sent, which survive the end of the process.

Invariants: An update is taken once per (platform, bot, key). An inbox row ends as done, failed or dead, in the
transaction that holds its answer. An outbox row is marked `sending` before its send and `sent` after it, so the fate of
a row found `sending` at start is unknown. A session's rows are sent in the order of their ids. Rows keep words no
longer than they need them; history keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from memory.store import attachments, erasure
from memory.store.database import Reader, Row, Transaction

#: Takes the place of the bot's id in the inbox rows of tasks, which no platform has delivered.
TASK: Final = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """An inbox row. `payload` is the channel's inbound message as JSON. A `held` row waits until it is released."""

    id: int
    session_key: str
    payload: str
    turn_id: int | None
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The content of one outbox row. `markup` is in the channel's own format; `buttons` are pairs (label, data).

    A row with a `file` is shown as a message of its own, even if its answer replaces another message. `reminder_id`
    names the reminder that the row is about, so that a reply to the row is known to mean that reminder.
    """

    text: str
    markup: str = ""
    buttons: tuple[tuple[str, str], ...] = ()
    file_name: str = ""
    file: bytes | None = None
    reminder_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to queue, with an outbox row per piece. The first row edits the shown message `edits`."""

    session_key: str
    pieces: Sequence[Part]
    kind: str = "message"
    turn_id: int | None = None
    inbox_id: int | None = None
    reply_to: str | None = None
    edits: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """An outbox row: one physical message to show, the `chunk`th of its answer. Times are in milliseconds UTC.

    `ticket` is the ticket of the inbox row it answers, a secret of the platform. With `in_place` the row replaces the
    message that the ticket is for.
    """

    id: int
    session_key: str
    turn_id: int | None
    kind: str
    text: str
    markup: str
    buttons: tuple[tuple[str, str], ...]
    reply_to: str | None
    edits: str | None
    run: str
    attempts: int
    created_at: int
    chunk: int
    ticket: str
    in_place: int
    error: str | None
    file_name: str = ""
    file: bytes | None = None

    @property
    def may_be_shown(self) -> bool:
        """True if an earlier attempt to send this row may have shown it."""
        return self.error == "unknown"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An outbox row that could not be delivered, or may not have been."""

    id: int
    session_key: str
    state: str
    error: str | None
    created_at: int


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
    row = tx.one(
        "insert into inbox (platform, bot_id, update_key, session_key, payload, state, received_at, held)"
        " values (?, ?, ?, ?, ?, 'pending', ?, ?) on conflict do nothing returning id",
        (platform, bot_id, update_key, session_key, payload, now, int(held)),
    )
    return None if row is None else int(row["id"])


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
    return {
        row["place"]: ToldBefore(
            update_key=row["update_key"],
            session_key=row["session_key"],
            received_at=row["received_at"],
            is_newest=bool(row["is_newest"]),
            is_last=bool(row["is_last"]),
        )
        for row in rows
    }


def answer_before(reader: Reader, platform: str, bot_id: str, update_key: str) -> str:
    """Returns the answer to an update as history holds it; "" if there is none."""
    row = reader.one(
        "select m.text from inbox i join messages m on m.turn_id = i.turn_id"
        " where i.platform = ? and i.bot_id = ? and i.update_key = ?"
        " and m.role = 'assistant' and m.text <> '' and m.erased_at is null order by m.id desc limit 1",
        (platform, bot_id, update_key),
    )
    return "" if row is None else str(row["text"])


def is_task(reader: Reader, inbox_id: int) -> bool:
    """Returns whether an inbox row is a task whose time has come, not a message."""
    return reader.one("select 1 from inbox where id = ? and bot_id = ?", (inbox_id, TASK)) is not None


def unanswered(reader: Reader, session_key: str | None = None) -> list[InboxRow]:
    """Returns the inbox rows that still need an answer, oldest first, of one session or of all.

    Rows of one broken-off turn share its id.
    """
    rows = reader.all(
        f"{_LETTER} where {_OPEN} and held = 0 and (? is null or session_key = ?) order by id",
        (session_key, session_key),
    )
    return [_letter(row) for row in rows]


def hold(tx: Transaction, inbox_id: int) -> None:
    """Holds a message, so that it is answered only on request."""
    tx.run("update inbox set held = 1 where id = ? and state = 'pending'", (inbox_id,))


def expire_held(tx: Transaction, *, before: int, now: int) -> None:
    """Ends held messages received before `before` (milliseconds UTC) whose answer nobody requested.

    Also drops the words of messages that failed before that time, and the older files of unknown fate that nobody
    asked to see again.
    """
    held = tx.all(
        f"select id from inbox where {_OPEN} and state = 'pending' and held = 1 and received_at < ?", (before,)
    )
    answered(tx, [row["id"] for row in held], error="stale", now=now)
    failed = tx.all(
        "select id from inbox where state = 'failed' and payload <> '' and coalesce(finished_at, 0) < ?", (before,)
    )
    blank(tx, [row["id"] for row in failed])
    tx.run(
        f"update outbox set state = 'dead', {_NO_FILE} where {_UNSENT} and state = 'unknown' and offered = 1"
        " and file is not null and created_at < ?",
        (before,),
    )


def release(tx: Transaction, session_key: str) -> list[InboxRow]:
    """Releases the session's held messages and returns them, oldest first."""
    rows = tx.all(
        f"{_LETTER} where {_OPEN} and state = 'pending' and held = 1 and session_key = ? order by id", (session_key,)
    )
    for row in rows:
        tx.run("update inbox set held = 0 where id = ?", (row["id"],))
    return [_letter(row) for row in rows]


def waiting(reader: Reader, session_key: str) -> list[InboxRow]:
    """Returns the session's messages whose turn has not begun."""
    rows = reader.all(f"{_LETTER} where {_OPEN} and state = 'pending' and session_key = ? order by id", (session_key,))
    return [_letter(row) for row in rows]


def kept(reader: Reader, session_key: str) -> list[InboxRow]:
    """Returns the session's messages that failed before they reached history, whose words are kept for a while."""
    rows = reader.all(
        f"{_LETTER} where state = 'failed' and payload <> '' and session_key = ? order by id", (session_key,)
    )
    return [_letter(row) for row in rows]


def blank(tx: Transaction, inbox_ids: Sequence[int]) -> None:
    """Drops the words that ended messages have left in the mailbox, and their attachments."""
    tx.run("update inbox set payload = '' where id in (select value from json_each(?))", (inbox_ids,))
    attachments.drop(tx, inbox_ids)


def reword(tx: Transaction, inbox_id: int, payload: str) -> None:
    """Replaces the payload of a message whose turn has not begun."""
    tx.run("update inbox set payload = ? where id = ? and state = 'pending'", (payload, inbox_id))


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


def answered(
    tx: Transaction, inbox_ids: Sequence[int], *, error: str | None, now: int, keep_words: bool = False
) -> None:
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


def dead_letter(tx: Transaction, now: int, inbox_id: int, *, error: str) -> None:
    """Sets aside a row that can't be read at all. Its payload stays for the operator."""
    tx.run("update inbox set state = 'dead', error = ?, finished_at = ? where id = ?", (error, now, inbox_id))


def post(tx: Transaction, message: Outgoing, *, run: str, now: int) -> None:
    """Queues a message. The first row of a turn's answer replaces the turn's placeholder.

    Each outbox row gets the ticket of the inbox row it answers, as long as that row is open. The answer to a command is
    shown where the command was given; the answer to a press is shown beside the button.
    """
    for chunk, piece in enumerate(message.pieces):
        leads = chunk == 0
        replaces = leads and piece.file is None
        tx.run(
            "insert into outbox (session_key, turn_id, inbox_id, kind, chunk, text, markup, buttons, reply_to, edits,"
            " ticket, in_place, state, run, created_at, file_name, file, reminder_id)"
            f" select ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(({_SHOWN}), ?), coalesce(i.payload ->> '$.ticket', ''),"
            " case when ? = 1 and i.payload ->> '$.ticket' <> '' and i.payload ->> '$.pressed' is null then 1 else 0"
            " end,"
            " 'pending', ?, ?, ?, ?, ? from (select 1) one left join inbox i on i.id = ? and i.payload <> ''",
            (
                message.session_key, message.turn_id, message.inbox_id, message.kind, chunk, piece.text, piece.markup,
                json.dumps(piece.buttons) if piece.buttons else "", message.reply_to if leads else None,
                message.turn_id if replaces else None, message.edits if replaces else None, int(leads),
                run, now, piece.file_name, piece.file, piece.reminder_id, message.inbox_id,
            ),
        )  # fmt: skip


def place_holder(
    tx: Transaction, *, session_key: str, turn_id: int, text: str, reply_to: str | None, run: str, now: int
) -> OutboxRow | None:
    """Adds a row for the message that a turn's answer will replace, already marked `sending`: it is sent at once.

    Returns None as long as a message of the session waits to be shown: the answer would stand above it.
    """
    row = tx.one(
        "insert into outbox (session_key, turn_id, kind, chunk, text, reply_to, state, run, attempts, created_at)"
        " select ?, ?, 'placeholder', 0, ?, ?, 'sending', ?, 1, ? where not exists (select 1 from outbox"
        f" where {_UNSENT} and session_key = ? and state <> 'unknown' and kind <> 'placeholder' and edits is null)"
        f" returning {_OUTBOX}",
        (session_key, turn_id, text, reply_to, run, now, session_key),
    )
    return None if row is None else _outbox_row(row)


def shown_placeholder(reader: Reader, turn_id: int) -> str | None:
    """Returns the platform's id of the placeholder that this turn has shown, or None."""
    row = reader.one(_SHOWN, (turn_id,))
    return None if row is None else row["platform_ref"]


def lost_placeholder(reader: Reader, turn_id: int) -> OutboxRow | None:
    """Returns the turn's placeholder if it is unknown whether it was shown, otherwise None."""
    row = reader.one(
        f"select {_OUTBOX} from outbox where turn_id = ? and kind = 'placeholder'"
        " and (state = 'unknown' or error = 'orphan') order by id desc limit 1",
        (turn_id,),
    )
    return None if row is None else _outbox_row(row)


def sessions_with_mail(reader: Reader) -> list[str]:
    """Returns the sessions that have rows to send, or rows of unknown fate about which nobody was asked."""
    rows = reader.all(
        "select distinct session_key from outbox where state in ('pending', 'sending', 'unknown') and offered = 0"
    )
    return [row["session_key"] for row in rows]


def doubt(tx: Transaction, session_key: str | None = None) -> None:
    """Marks as `unknown` the rows that a process was sending when it ended, in one session or in all."""
    tx.run(
        f"update outbox set state = 'unknown' where {_UNSENT} and state = 'sending' and (? is null or session_key = ?)",
        (session_key, session_key),
    )


def in_doubt(reader: Reader, session_key: str) -> list[OutboxRow]:
    """Returns a session's rows of unknown fate about which the person was not asked yet."""
    rows = reader.all(
        f"select {_OUTBOX} from outbox where {_UNSENT} and session_key = ? and state = 'unknown' and offered = 0"
        " order by id",
        (session_key,),
    )
    return [_outbox_row(row) for row in rows]


def repost(tx: Transaction, outbox_id: int, *, now: int) -> bool:
    """Queues a row of unknown fate again, as if it were new. Returns False if its fate is not unknown."""
    row = tx.one(
        # No longer offered: if its fate becomes unknown once more, the person is asked anew.
        "update outbox set state = 'pending', offered = 0, not_before = 0, created_at = ?"
        " where id = ? and state = 'unknown' returning id",
        (now, outbox_id),
    )
    return row is not None


def offered(tx: Transaction, outbox_id: int) -> None:
    """Records that the person is asked whether to show this row again."""
    tx.run("update outbox set state = 'unknown', offered = 1 where id = ?", (outbox_id,))


def by_id(reader: Reader, session_key: str, outbox_id: int) -> OutboxRow | None:
    row = reader.one(f"select {_OUTBOX} from outbox where id = ? and session_key = ?", (outbox_id, session_key))
    return None if row is None else _outbox_row(row)


def asked_by(reader: Reader, outbox_row: OutboxRow) -> str | None:
    """Returns the platform's id of the message that a row answers, or None."""
    row = reader.one(
        "select platform_ref from messages where turn_id = ? and role = 'user' order by id limit 1",
        (outbox_row.turn_id,),
    )
    return None if row is None else row["platform_ref"]


def take(tx: Transaction, now: int, session_key: str) -> OutboxRow | None:
    """Marks the session's next row `sending` and returns it, or None if nothing is left or the next row has to wait.

    A row from the future does not have to wait: the clock was put back since. It counts as created now, so that its
    next wait is meaningful again.
    """
    row = tx.one(
        "update outbox set state = 'sending', attempts = attempts + 1, created_at = case when created_at > ?1 then ?1"
        " else created_at end"
        " where (not_before <= ?1 or created_at > ?1)"
        f" and id = (select min(id) from outbox where {_UNSENT} and session_key = ?2 and state = 'pending')"
        f" returning {_OUTBOX}",
        (now, session_key),
    )
    return None if row is None else _outbox_row(row)


def first(reader: Reader, session_key: str) -> int | None:
    """Returns the id of the session's next row, or of the row that is being sent."""
    row = reader.one(
        f"select min(id) as id from outbox where {_UNSENT} and session_key = ? and state in ('pending', 'sending')",
        (session_key,),
    )
    return None if row is None else row["id"]


def due(reader: Reader, now: int, session_key: str) -> int | None:
    """Returns the time from which the session's next row may be sent, in milliseconds UTC, or None without one."""
    row = reader.one(
        "select case when created_at > ?1 then 0 else not_before end as not_before from outbox"
        f" where {_UNSENT} and session_key = ?2 and state = 'pending' order by id limit 1",
        (now, session_key),
    )
    return None if row is None else int(row["not_before"])


def sent(tx: Transaction, now: int, outbox_id: int, platform_ref: str) -> bool:
    """Records that a row was shown. Returns whether its session has more to send, now or later."""
    row = tx.one(
        f"update outbox set state = 'sent', platform_ref = ?, sent_at = ?, {_EMPTY} where id = ? returning exists"
        f" (select 1 from outbox o where o.{_UNSENT} and o.session_key = outbox.session_key and o.state = 'pending')",
        (platform_ref, now, outbox_id),
    )
    return row is not None and bool(row[0])


def not_sent(tx: Transaction, outbox_id: int, state: str, error: str, *, not_before: int = 0) -> None:
    """Sets the state of a row whose send failed.

    The state is "pending" to try again at `not_before` (milliseconds UTC), "unknown" to leave the row to the next
    start, or "dead" to stop trying. A row that is "pending" with the error "unknown" may be shown twice.
    """
    tx.run(
        # Once its fate was unknown, the row may have been shown, whatever the result of a later attempt.
        "update outbox set state = ?1, error = case when ?1 = 'pending' and error = 'unknown' then error else ?2 end,"
        " not_before = ?3, ticket = case when ?1 = 'dead' then '' else ticket end,"
        " file_name = case when ?1 = 'dead' then '' else file_name end,"
        " file = case when ?1 <> 'dead' then file end where id = ?4",
        (state, error, not_before, outbox_id),
    )


def say_anew(tx: Transaction, outbox_id: int) -> None:
    """Queues a row as a message of its own, because the message it was to replace is gone."""
    tx.run("update outbox set state = 'pending', edits = null, not_before = 0 where id = ?", (outbox_id,))


def give_up(tx: Transaction, session_key: str, error: str) -> None:
    """Marks the rows of a place dead, because nothing can be shown there any more."""
    tx.run(
        f"update outbox set state = 'dead', error = ?, ticket = '', {_NO_FILE} where {_UNSENT} and session_key = ?"
        " and state in ('pending', 'sending')",
        (error, session_key),
    )


def rename(tx: Transaction, session_key: str, new_key: str, *, chat: str) -> None:
    """Moves the open rows of a place to its new session key."""
    tx.run(
        "update outbox set session_key = ? where session_key = ? and state in ('pending', 'sending', 'unknown')",
        (new_key, session_key),
    )
    tx.run(
        "update inbox set session_key = ?, payload = json_set(payload, '$.chat', ?)"
        " where session_key = ? and state in ('pending', 'claimed')",
        (new_key, chat, session_key),
    )


def dead(reader: Reader, channel: str, *, limit: int) -> list[DeadLetter]:
    """Returns a channel's outbox rows that were given up or whose fate is unknown, newest first.

    `channel` is named as in session keys.
    """
    rows = reader.all(
        "select id, session_key, state, error, created_at from outbox"
        f" where {_GIVEN_UP} and {_CHANNEL} = ? order by id desc limit ?",
        (channel, limit),
    )
    return [DeadLetter(**dict(row)) for row in rows]


def purge(tx: Transaction, channel: str) -> int:
    """Drops a channel's rows that were given up, and returns their number. Rows that people can still ask for stay."""
    rows = tx.all(f"delete from outbox where state = 'dead' and {_CHANNEL} = ? returning kind", (channel,))
    return sum(row["kind"] != "placeholder" for row in rows)


def revive(tx: Transaction, now: int, channel: str, outbox_id: int) -> str | None:
    """Queues a row that was given up, or whose fate is unknown, again. Returns its session's key.

    Returns None if the channel has no such row, or if the row is empty by now.
    """
    row = tx.one(
        f"update outbox set state = 'pending', attempts = 0, offered = 0, not_before = 0, created_at = ?, {_NO_ERROR}"
        f" where id = ? and {_CHANNEL} = ? and {_GIVEN_UP} and text <> '' returning session_key",
        (now, outbox_id, channel),
    )
    return None if row is None else str(row["session_key"])


def drop_dead(tx: Transaction, channel: str, outbox_id: int) -> bool:
    """Drops a channel's row that was given up, or whose fate is unknown. Returns False if there is none."""
    row = tx.one(
        f"delete from outbox where id = ? and {_CHANNEL} = ? and {_GIVEN_UP} returning id", (outbox_id, channel)
    )
    return row is not None


def backlog(reader: Reader, session_key: str) -> tuple[int, int]:
    """Returns the numbers of a session's inbox rows that wait for an answer and outbox rows that wait to be shown."""
    row = reader.one(
        "select (select count(*) from inbox where state in ('pending', 'claimed') and session_key = ?1) as inbound,"
        " (select count(*) from outbox where state in ('pending', 'sending', 'unknown') and offered = 0"
        " and session_key = ?1) as outbound",
        (session_key,),
    )
    assert row is not None
    return int(row["inbound"]), int(row["outbound"])


def oldest(reader: Reader, now: int, channels: Collection[str]) -> tuple[int | None, int | None]:
    """Returns the times (milliseconds UTC) since which these channels' oldest open inbox row and row to send wait.

    Held and offered rows wait for a person and don't count. Neither do places where the platform demands a pause.
    Channels are named as in session keys.
    """
    marks = ", ".join("?" for _ in channels)
    theirs = f"{_CHANNEL} in ({marks})"
    inbound = reader.one(
        f"select min(received_at) as at from inbox where state in ('pending', 'claimed') and held = 0 and {theirs}",
        tuple(channels),
    )
    outbound = reader.one(
        "select min(created_at) as at from outbox where state in ('pending', 'sending', 'unknown') and offered = 0"
        " and not exists (select 1 from outbox first where first.session_key = outbox.session_key"
        " and first.state = 'pending' and first.not_before > ?)"
        f" and {theirs}",
        (now, *channels),
    )
    assert inbound is not None
    assert outbound is not None
    return inbound["at"], outbound["at"]


def failed(reader: Reader, *, before: int) -> list[int]:
    """Returns the inbox rows received before `before` (milliseconds UTC) that failed and still hold words."""
    return reader.ids(
        "select id from inbox where state in ('failed', 'dead') and payload <> '' and received_at < ?", (before,)
    )


def turns_of(reader: Reader, inbox_ids: Sequence[int]) -> list[int]:
    """Returns the turns of these inbox rows."""
    return reader.ids(
        "select turn_id from inbox where turn_id is not null and id in (select value from json_each(?))", (inbox_ids,)
    )


def turn_shown(reader: Reader, session_key: str, platform_ref: str) -> int | None:
    """Returns the turn whose answer has this id on the platform; None if it is no answer."""
    row = reader.one(
        "select turn_id from outbox where session_key = ? and platform_ref = ? and turn_id is not null"
        " order by id desc limit 1",
        (session_key, platform_ref),
    )
    return None if row is None else int(row["turn_id"])


def reminder_shown(reader: Reader, session_key: str, platform_ref: str) -> int | None:
    """Returns the reminder that a shown message is about; None if it is about none."""
    row = reader.one(
        "select reminder_id from outbox where session_key = ? and platform_ref = ? and reminder_id is not null"
        " order by id desc limit 1",
        (session_key, platform_ref),
    )
    return None if row is None else int(row["reminder_id"])


def last_reminder(reader: Reader, session_key: str) -> int | None:
    """Returns the reminder that the last message for a session is about; None if it is about none."""
    row = reader.one("select reminder_id from outbox where session_key = ? order by id desc limit 1", (session_key,))
    return None if row is None or row["reminder_id"] is None else int(row["reminder_id"])


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


def unsent_in(reader: Reader, session_ids: Sequence[int]) -> list[Row]:
    """Returns outbox rows of these sessions that belong to no turn and were not sent: id, session_id, text and file."""
    return reader.all(
        "select o.id, s.id as session_id, o.text || ' ' || o.markup || ' ' || o.buttons || ' ' || o.file_name as text,"
        " o.file from outbox o join sessions s on s.key = o.session_key where o.turn_id is null and o.state <> 'sent'"
        " and s.id in (select value from json_each(?))",
        (session_ids,),
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


def drop(tx: Transaction, outbox_ids: Sequence[int]) -> None:
    """Deletes outbox rows."""
    tx.run("delete from outbox where id in (select value from json_each(?))", (outbox_ids,))


def drop_of_turns(tx: Transaction, turn_ids: Sequence[int]) -> None:
    """Deletes the rows that these turns have yet to show, and empties those that they have shown."""
    these = (turn_ids,)
    tx.run("delete from outbox where state <> 'sent' and turn_id in (select value from json_each(?))", these)
    tx.run(f"update outbox set {_EMPTY} where turn_id in (select value from json_each(?)) and {_HOLDING}", these)


def drop_undelivered(tx: Transaction, *, before: int) -> int:
    """Deletes rows created before `before` (milliseconds UTC) that can't be delivered or may not have been."""
    return len(
        tx.ids("delete from outbox where state in ('dead', 'unknown') and created_at < ? returning id", (before,))
    )


def empty_dead(tx: Transaction, *, before: int) -> None:
    """Empties rows created before `before` (milliseconds UTC) that could not be delivered."""
    tx.run(f"update outbox set {_EMPTY} where state = 'dead' and created_at < ?", (before,))


def open_inbox(reader: Reader) -> list[Row]:
    """Returns the inbox rows without an answer, as rows of id, platform, bot_id, update_key and state."""
    return reader.all("select id, platform, bot_id, update_key, state from inbox where state in ('pending', 'claimed')")


def open_outbox(reader: Reader) -> list[Row]:
    """Returns the outbox rows that were not sent, with their states."""
    return reader.all(
        "select id, created_at, state, offered, attempts, not_before, error from outbox"
        " where state in ('pending', 'sending', 'unknown')"
    )


def put_back(tx: Transaction, row: Row) -> None:
    """Gives an outbox row the state that `open_outbox` has read in another copy of the store."""
    tx.run(
        "update outbox set state = ?, offered = ?, attempts = ?, not_before = ?, error = ? where id = ?",
        tuple(row[name] for name in ("state", "offered", "attempts", "not_before", "error", "id")),
    )


def mark_dead(tx: Transaction, outbox_id: int, error: str) -> None:
    """Marks an outbox row dead and empties it."""
    tx.run(f"update outbox set state = 'dead', error = ?, {_EMPTY} where id = ?", (error, outbox_id))


#: Exactly the conditions of the indexes of open rows; with other wording SQLite does not use these indexes.
_OPEN = "state in ('pending', 'claimed')"
_UNSENT = "state in ('pending', 'sending', 'unknown')"
#: A file may hold all memories about a person, so it stays here only as long as it may be shown.
_NO_FILE = "file_name = '', file = null"
_EMPTY = erasure.emptied("outbox")
_HOLDING = erasure.holding("outbox")
_GIVEN_UP = "(state = 'dead' and kind <> 'placeholder' or state = 'unknown')"
#: A row whose fate was unknown may have been shown, even if it fails now.
_NO_ERROR = "error = case when state = 'unknown' then 'unknown' end"
#: The platform's id of the placeholder that a turn has shown.
_SHOWN = (
    "select platform_ref from outbox where turn_id = ? and kind = 'placeholder' and state = 'sent'"
    " order by id desc limit 1"
)
#: The channel's part of a session key.
_CHANNEL = "substr(session_key, 1, instr(session_key, ':') - 1)"
_LETTER = "select id, session_key, payload, turn_id, held from inbox"
_OUTBOX = (
    "id, session_key, turn_id, kind, text, markup, buttons, reply_to, edits, run, attempts, created_at, chunk, ticket,"
    " in_place, error, file_name, file"
)


def _letter(row: Row) -> InboxRow:
    return InboxRow(**{**dict(row), "held": bool(row["held"])})


def _outbox_row(row: Row) -> OutboxRow:
    fields = dict(row)
    buttons = json.loads(fields.pop("buttons") or "[]")
    return OutboxRow(**fields, buttons=tuple((label, data) for label, data in buttons))
