"""The outbox: messages still to be shown, which survive the end of the process.

Invariants: A row is marked `sending` before its send and `sent` after it, so the fate of a row found `sending` at start
is unknown. A session's rows are sent in the order of their ids. Rows keep words no longer than they need them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory.store import word_columns
from memory.store.database import Reader, Row, Transaction

#: The error of rows that wait for the right to write, and the most characters of them in one message.
MUTED: Final = "muted"
_LISTED: Final = 1_500
#: Exactly the condition of the index of open rows; with other wording SQLite does not use it.
UNSENT: Final = "state in ('pending', 'sending', 'unknown')"
#: The channel's part of a session key.
CHANNEL: Final = "substr(session_key, 1, instr(session_key, ':') - 1)"
#: A file may hold all memories about a person, so it stays here only as long as it may be shown.
NO_FILE = "file_name = '', file = null"
_EMPTY = word_columns.emptied("outbox")
_HOLDING = word_columns.holding("outbox")
GIVEN_UP = "(state = 'dead' and kind <> 'placeholder' or state = 'unknown')"
#: A row whose fate was unknown may have been shown, even if it fails now.
_NO_ERROR = "error = case when state = 'unknown' then 'unknown' end"
#: The platform's id of the placeholder that a turn has shown.
SHOWN = (
    "select platform_ref from outbox where turn_id = ? and kind = 'placeholder' and state = 'sent'"
    " order by id desc limit 1"
)
COLUMNS = (
    "id, session_key, turn_id, kind, text, markup, buttons, reply_to, edits, run, attempts, created_at, chunk, ticket,"
    " in_place, error, file_name, file"
)


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
    message that the ticket is for. `muted` says whether the last message to its place was refused. `beside` are the
    rows whose texts are shown with it; they wait until it is shown, so that each is kept, cancelled or forgotten alone.
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
    muted: bool = False
    beside: tuple[int, ...] = ()

    @property
    def may_be_shown(self) -> bool:
        return self.error == "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An outbox row that could not be delivered, or may not have been."""

    id: int
    session_key: str
    state: str
    error: str | None
    created_at: int


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
            f" select ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(({SHOWN}), ?), coalesce(i.payload ->> '$.ticket', ''),"
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


def sessions_with_mail(reader: Reader) -> list[str]:
    return reader.texts(f"select distinct session_key from outbox where {UNSENT} and offered = 0")


def in_doubt(reader: Reader, session_key: str) -> list[OutboxRow]:
    """Returns a session's rows of unknown fate about which the person was not asked yet."""
    return reader.each(
        f"select {COLUMNS} from outbox where {UNSENT} and session_key = ? and state = 'unknown'"
        " and offered = 0 order by id",
        (session_key,),
        row_of,
    )


def shown_placeholder(reader: Reader, turn_id: int) -> str | None:
    return reader.text(SHOWN, (turn_id,))


def purge(tx: Transaction, channel: str) -> int:
    """Drops a channel's rows that were given up, and returns their number. Rows that people can still ask for stay."""
    rows = tx.all(f"delete from outbox where state = 'dead' and {CHANNEL} = ? returning kind", (channel,))
    return sum(row["kind"] != "placeholder" for row in rows)


def revive(tx: Transaction, now: int, channel: str, outbox_id: int) -> str | None:
    """Queues a row that was given up, or whose fate is unknown, again. Returns its session's key.

    Returns None if the channel has no such row, or if the row is empty by now.
    """
    return tx.text(
        f"update outbox set state = 'pending', attempts = 0, offered = 0, not_before = 0, created_at = ?, {_NO_ERROR}"
        f" where id = ? and {CHANNEL} = ? and {GIVEN_UP} and text <> '' returning session_key",
        (now, outbox_id, channel),
    )


def drop_dead(tx: Transaction, channel: str, outbox_id: int) -> bool:
    """Drops a channel's row that was given up, or whose fate is unknown. Returns False if there is none."""
    return tx.has(
        f"delete from outbox where id = ? and {CHANNEL} = ? and {GIVEN_UP} returning id", (outbox_id, channel)
    )


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


def turn_shown(reader: Reader, session_keys: Sequence[str], platform_ref: str) -> int | None:
    return reader.id(
        "select turn_id from outbox where session_key in (select value from json_each(?)) and platform_ref = ?"
        " and turn_id is not null order by id desc limit 1",
        (session_keys, platform_ref),
    )


def reminder_shown(reader: Reader, session_key: str, platform_ref: str) -> int | None:
    return reader.id(
        "select reminder_id from outbox where session_key = ? and platform_ref = ? and reminder_id is not null"
        " order by id desc limit 1",
        (session_key, platform_ref),
    )


def last_reminder(reader: Reader, session_key: str) -> int | None:
    return reader.id("select reminder_id from outbox where session_key = ? order by id desc limit 1", (session_key,))


def unsent_in(reader: Reader, session_ids: Sequence[int]) -> list[Row]:
    """Returns outbox rows of these sessions that belong to no turn and were not sent: id, session_id, text and file."""
    return reader.all(
        "select o.id, s.id as session_id, o.text || ' ' || o.markup || ' ' || o.buttons || ' ' || o.file_name as text,"
        " o.file from outbox o join sessions s on s.key = o.session_key where o.turn_id is null and o.state <> 'sent'"
        " and s.id in (select value from json_each(?))",
        (session_ids,),
    )


def drop(tx: Transaction, outbox_ids: Sequence[int]) -> None:
    tx.run("delete from outbox where id in (select value from json_each(?))", (outbox_ids,))


def drop_of_turns(tx: Transaction, turn_ids: Sequence[int]) -> None:
    these = (turn_ids,)
    tx.run("delete from outbox where state <> 'sent' and turn_id in (select value from json_each(?))", these)
    tx.run(f"update outbox set {_EMPTY} where turn_id in (select value from json_each(?)) and {_HOLDING}", these)


def drop_undelivered(tx: Transaction, *, before: int) -> int:
    return len(
        tx.ids("delete from outbox where state in ('dead', 'unknown') and created_at < ? returning id", (before,))
    )


def empty_dead(tx: Transaction, *, before: int) -> None:
    tx.run(f"update outbox set {_EMPTY} where state = 'dead' and created_at < ?", (before,))


def open_rows(reader: Reader) -> list[Row]:
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
    tx.run(f"update outbox set state = 'dead', error = ?, {_EMPTY} where id = ?", (error, outbox_id))


def give_up(tx: Transaction, session_key: str, error: str, *, but: Sequence[int] = ()) -> None:
    """Marks the rows of a place dead, because nothing can be shown there any more."""
    tx.run(
        f"update outbox set state = 'dead', error = ?, ticket = '', {NO_FILE} where {UNSENT} and session_key = ?"
        " and state in ('pending', 'sending') and id not in (select value from json_each(?))",
        (error, session_key, but),
    )


def hold_reminders(tx: Transaction, session_key: str, error: str, *, made_after: int, until: int) -> list[int]:
    """Puts off a place's reminders that come only once, unless they are too old; returns their rows' ids."""
    return tx.ids(
        f"update outbox set state = 'pending', error = ?, not_before = ? where {UNSENT} and session_key = ?"
        " and state in ('pending', 'sending') and created_at > ?"
        " and reminder_id in (select id from reminders where rule = '') returning id",
        (error, until, session_key, made_after),
    )


def end_wait(tx: Transaction, session_key: str) -> None:
    tx.run(f"update outbox set not_before = 0 where {UNSENT} and session_key = ? and state = 'pending'", (session_key,))


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


def take(tx: Transaction, now: int, session_key: str) -> OutboxRow | None:
    """Marks the session's next row `sending` and returns it, or None if nothing is left or the next row has to wait.

    A row from the future does not have to wait: the clock was put back since. It counts as created now, so that its
    next wait is meaningful again. Reminders that were held where nothing might be written are
    shown as one message.
    """
    row = tx.first(
        "update outbox set state = 'sending', attempts = attempts + 1, created_at = case when created_at > ?1 then ?1"
        " else created_at end"
        " where (not_before <= ?1 or created_at > ?1)"
        f" and id = (select min(id) from outbox where {UNSENT} and session_key = ?2 and state = 'pending')"
        f" returning {COLUMNS}, exists (select 1 from sessions s where s.key = session_key and s.muted_at is not null)"
        " as muted",
        (now, session_key),
        row_of,
    )
    return row if row is None or row.error != MUTED else _listed(tx, row)


def _listed(reader: Reader, row: OutboxRow) -> OutboxRow:
    """Returns a row with the texts of the other reminders that wait in its place, as many as one message holds."""
    others = reader.all(
        f"select id, text from outbox where {UNSENT} and session_key = ? and state = 'pending'"
        " and reminder_id is not null order by id",
        (row.session_key,),
    )
    texts, ids = [row.text], []
    for other in others:
        if sum(map(len, texts)) + len(other["text"]) <= _LISTED:
            texts.append(other["text"])
            ids.append(other["id"])
    return replace(row, text="\n".join(texts), markup="", buttons=(), beside=tuple(ids)) if ids else row


def sent(tx: Transaction, now: int, shown: OutboxRow, platform_ref: str) -> bool:
    """Records that a row was shown. Returns whether its session has more to send, now or later."""
    if shown.beside:
        tx.run(
            f"update outbox set state = 'sent', sent_at = ?, {_EMPTY} where id in (select value from json_each(?))",
            (now, shown.beside),
        )
    row = tx.one(
        f"update outbox set state = 'sent', platform_ref = ?, sent_at = ?, {_EMPTY} where id = ? returning exists"
        f" (select 1 from outbox o where o.{UNSENT} and o.session_key = outbox.session_key and o.state = 'pending')",
        (platform_ref, now, shown.id),
    )
    return row is not None and bool(row[0])


def row_of(row: Row) -> OutboxRow:
    fields = dict(row)
    buttons = json.loads(fields.pop("buttons") or "[]")
    fields["muted"] = bool(fields.get("muted"))
    return OutboxRow(**fields, buttons=tuple((label, data) for label, data in buttons))
