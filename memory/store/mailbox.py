"""Inbox and outbox: what has come in and what must still go out, whatever happens to the process.

Invariants: an update is taken once per (platform, bot, key); an inbox row ends in done, failed or dead, in the
transaction that holds its answer; an outbox row is marked `sending` before its send and `sent` after it, so a row
found `sending` at start is one whose fate is unknown; a session's rows go out in the order of their ids. Rows keep no
words longer than they need them: history does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory.store import attachments
from memory.store.database import Reader, Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """An inbox row. `payload` is the channel's inbound message as JSON; a `held` one waits until it is released."""

    id: int
    session_key: str
    payload: str
    turn_id: int | None
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one outbox row shows. `markup` is in the channel's own words; `buttons` are (label, data).

    With a `file` the row is shown as a message of its own, whatever else its answer takes the place of.
    """

    text: str
    markup: str = ""
    buttons: tuple[tuple[str, str], ...] = ()
    file_name: str = ""
    file: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """An outbox row: one physical message to show, the `chunk`th of its answer. Times are milliseconds UTC.

    `ticket` is that of the inbox row it answers: a secret of its platform's; with `in_place` it takes the place of what
    that is for.
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
        """Whether an earlier try of this row may have shown it."""
        return self.error == "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A row that could not be delivered, or of which nobody knows whether it was."""

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
    """Take an update; None when it is already there. A `held` one waits until it is released."""
    row = tx.one(
        "insert into inbox (platform, bot_id, update_key, session_key, payload, state, received_at, held)"
        " values (?, ?, ?, ?, ?, 'pending', ?, ?) on conflict do nothing returning id",
        (platform, bot_id, update_key, session_key, payload, now, int(held)),
    )
    return None if row is None else int(row["id"])


def unanswered(reader: Reader) -> list[Letter]:
    """Rows that still need an answer, oldest first. Those of one broken-off turn share its id."""
    rows = reader.all(_LETTER + " where state in ('pending', 'claimed') and held = 0 order by id")
    return [_letter(row) for row in rows]


def hold(tx: Transaction, inbox_id: int) -> None:
    """Answer this message only when somebody asks for it."""
    tx.run("update inbox set held = 1 where id = ? and state = 'pending'", (inbox_id,))


def expire_held(tx: Transaction, *, before: int, now: int) -> None:
    """Nobody has asked for an answer to these since they were received, before a time in milliseconds UTC.

    Of those that failed before it the words go as well, and so do files that nobody wants to be shown again.
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


def release(tx: Transaction, session_key: str) -> list[Letter]:
    """The session's held messages, oldest first, to be answered now."""
    rows = tx.all(
        f"{_LETTER} where {_OPEN} and state = 'pending' and held = 1 and session_key = ? order by id",
        (session_key,),
    )
    for row in rows:
        tx.run("update inbox set held = 0 where id = ?", (row["id"],))
    return [_letter(row) for row in rows]


def waiting(reader: Reader, session_key: str) -> list[Letter]:
    """The session's messages of which no turn has begun."""
    rows = reader.all(f"{_LETTER} where {_OPEN} and state = 'pending' and session_key = ? order by id", (session_key,))
    return [_letter(row) for row in rows]


def kept(reader: Reader, session_key: str) -> list[Letter]:
    """The session's messages that failed before they reached history, and whose words are kept for a while."""
    rows = reader.all(
        f"{_LETTER} where state = 'failed' and payload <> '' and session_key = ? order by id", (session_key,)
    )
    return [_letter(row) for row in rows]


def blank(tx: Transaction, inbox_ids: Sequence[int]) -> None:
    """Drop the words that ended messages have left in the mailbox, with what came beside them."""
    for inbox_id in inbox_ids:
        tx.run("update inbox set payload = '' where id = ?", (inbox_id,))
        attachments.drop(tx, inbox_id)


def reword(tx: Transaction, inbox_id: int, payload: str) -> None:
    """Another payload for a message of which no turn has begun."""
    tx.run("update inbox set payload = ? where id = ? and state = 'pending'", (payload, inbox_id))


def still_waiting(reader: Reader, inbox_ids: Sequence[int]) -> set[int]:
    """Those of these messages that nobody has ended and no turn has claimed."""
    rows = reader.all(
        "select id from inbox where state = 'pending' and id in (select value from json_each(?))",
        (json.dumps(list(inbox_ids)),),
    )
    return {row["id"] for row in rows}


def claim(tx: Transaction, inbox_ids: Sequence[int], turn_id: int) -> None:
    for inbox_id in inbox_ids:
        tx.run("update inbox set state = 'claimed', turn_id = ? where id = ?", (turn_id, inbox_id))


def answered(
    tx: Transaction, inbox_ids: Sequence[int], *, error: str | None, now: int, keep_words: bool = False
) -> None:
    """End open inbox rows; with an `error` code they count as failed, visibly to the person.

    Their words go, unless `keep_words` says that a row may have failed before they reached history.
    """
    for inbox_id in inbox_ids:
        tx.run(
            "update inbox set state = ?, error = ?, finished_at = ?,"
            " payload = case when ? and turn_id is null then payload else '' end"
            " where id = ? and state in ('pending', 'claimed')",
            ("done" if error is None else "failed", error, now, int(keep_words), inbox_id),
        )
        if not keep_words:
            attachments.drop(tx, inbox_id)


def bury(tx: Transaction, inbox_id: int, *, error: str, now: int) -> None:
    """Set a row aside that can't be read at all; its payload stays for the operator."""
    tx.run("update inbox set state = 'dead', error = ?, finished_at = ? where id = ?", (error, now, inbox_id))


def post(
    tx: Transaction,
    *,
    session_key: str,
    turn_id: int | None,
    inbox_id: int | None,
    kind: str,
    pieces: Sequence[Piece],
    reply_to: str | None,
    run: str,
    now: int,
    edits: str | None = None,
) -> None:
    """Queue a message, one row per physical piece; the first turns the shown message `edits` into itself.

    The ticket of the inbox row it answers comes with each, as long as that row is open.
    """
    row = tx.one(
        "select payload ->> '$.ticket' as ticket, payload ->> '$.pressed' as pressed from inbox"
        " where id = ? and payload <> ''",
        (inbox_id,),
    )
    ticket = row["ticket"] or "" if row is not None else ""
    # The answer to a command stands where the command was given, that to a press beside the button.
    in_place = bool(ticket) and row is not None and row["pressed"] is None
    for chunk, piece in enumerate(pieces):
        tx.run(
            "insert into outbox (session_key, turn_id, inbox_id, kind, chunk, text, markup, buttons, reply_to, edits,"
            " ticket, in_place, state, run, created_at, file_name, file)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?)",
            (
                session_key, turn_id, inbox_id, kind, chunk, piece.text, piece.markup,
                json.dumps(piece.buttons) if piece.buttons else "",
                reply_to if chunk == 0 else None, edits if chunk == 0 and piece.file is None else None, ticket,
                int(in_place and chunk == 0), run, now, piece.file_name, piece.file,
            ),
        )  # fmt: skip


def place_holder(
    tx: Transaction, *, session_key: str, turn_id: int, text: str, reply_to: str | None, run: str, now: int
) -> Parcel:
    """A row for the message that a turn's answer will replace, already marked `sending`: it is sent at once."""
    row = tx.one(
        "insert into outbox (session_key, turn_id, kind, chunk, text, reply_to, state, run, attempts, created_at)"
        f" values (?, ?, 'placeholder', 0, ?, ?, 'sending', ?, 1, ?) returning {_PARCEL}",
        (session_key, turn_id, text, reply_to, run, now),
    )
    assert row is not None
    return _parcel(row)


def shown_placeholder(reader: Reader, turn_id: int) -> str | None:
    """The platform's id of the placeholder that this turn has shown."""
    row = reader.one(
        "select platform_ref from outbox where turn_id = ? and kind = 'placeholder' and state = 'sent'"
        " order by id desc limit 1",
        (turn_id,),
    )
    return None if row is None else row["platform_ref"]


def lost_placeholder(reader: Reader, turn_id: int) -> Parcel | None:
    """The placeholder of which nobody knows whether it was shown."""
    row = reader.one(
        f"select {_PARCEL} from outbox where turn_id = ? and kind = 'placeholder'"
        " and (state = 'unknown' or error = 'orphan') order by id desc limit 1",
        (turn_id,),
    )
    return None if row is None else _parcel(row)


def sessions_with_mail(reader: Reader) -> list[str]:
    """Sessions with rows to send, or of whose fate nobody was told."""
    rows = reader.all(
        "select distinct session_key from outbox where state in ('pending', 'sending', 'unknown') and offered = 0"
    )
    return [row["session_key"] for row in rows]


def doubt(tx: Transaction) -> None:
    """At start: what was being sent when the last process ended may or may not have been seen."""
    tx.run("update outbox set state = 'unknown' where state = 'sending'")


def in_doubt(reader: Reader, session_key: str) -> list[Parcel]:
    """A session's rows of unknown fate about which the person was not asked yet."""
    rows = reader.all(
        f"select {_PARCEL} from outbox where {_UNSENT} and session_key = ? and state = 'unknown' and offered = 0"
        " order by id",
        (session_key,),
    )
    return [_parcel(row) for row in rows]


def repost(tx: Transaction, outbox_id: int, *, now: int) -> bool:
    """Have a row of unknown fate sent once more, as if it were new; False when it is none."""
    row = tx.one(
        # Not offered any more: should its fate be unknown once more, then that is a new question.
        "update outbox set state = 'pending', offered = 0, not_before = 0, created_at = ?"
        " where id = ? and state = 'unknown' returning id",
        (now, outbox_id),
    )
    return row is not None


def offered(tx: Transaction, outbox_id: int) -> None:
    """The person is asked whether to show this row again."""
    tx.run("update outbox set state = 'unknown', offered = 1 where id = ?", (outbox_id,))


def by_id(reader: Reader, session_key: str, outbox_id: int) -> Parcel | None:
    row = reader.one(f"select {_PARCEL} from outbox where id = ? and session_key = ?", (outbox_id, session_key))
    return None if row is None else _parcel(row)


def asked_by(reader: Reader, parcel: Parcel) -> str | None:
    """The platform's id of the message that a row answers."""
    row = reader.one(
        "select platform_ref from messages where turn_id = ? and role = 'user' order by id limit 1", (parcel.turn_id,)
    )
    return None if row is None else row["platform_ref"]


def take(tx: Transaction, session_key: str, *, now: int) -> Parcel | None:
    """The next row to send, now marked `sending`; None when nothing is left or the next one has to wait.

    A row from the future has not to wait: the clock was put back since. It counts as made now, so that its next wait
    means something again.
    """
    row = tx.one(
        "update outbox set state = 'sending', attempts = attempts + 1, created_at = min(created_at, ?1)"
        " where (not_before <= ?1 or created_at > ?1)"
        f" and id = (select min(id) from outbox where {_UNSENT} and session_key = ?2 and state = 'pending')"
        f" returning {_PARCEL}",
        (now, session_key),
    )
    return None if row is None else _parcel(row)


def due(reader: Reader, session_key: str, *, now: int) -> int | None:
    """When the session's next row may be sent, milliseconds UTC; None without one."""
    row = reader.one(
        "select iif(created_at > ?1, 0, not_before) as not_before from outbox"
        f" where {_UNSENT} and session_key = ?2 and state = 'pending' order by id limit 1",
        (now, session_key),
    )
    return None if row is None else int(row["not_before"])


def sent(tx: Transaction, outbox_id: int, platform_ref: str, *, now: int) -> None:
    tx.run(
        "update outbox set state = 'sent', platform_ref = ?, sent_at = ?, text = '', markup = '', buttons = '',"
        f" ticket = '', {_NO_FILE} where id = ?",
        (platform_ref, now, outbox_id),
    )


def not_sent(tx: Transaction, outbox_id: int, state: str, error: str, *, not_before: int = 0) -> None:
    """Keep a row whose send failed: `pending` to try again, `unknown`, or `dead`."""
    tx.run(
        # Once its fate was unknown, it may have been shown, whatever becomes of a later try.
        "update outbox set state = ?1, error = iif(?1 = 'pending' and error = 'unknown', error, ?2), not_before = ?3,"
        " ticket = iif(?1 = 'dead', '', ticket), file_name = iif(?1 = 'dead', '', file_name),"
        " file = iif(?1 = 'dead', null, file) where id = ?4",
        (state, error, not_before, outbox_id),
    )


def say_anew(tx: Transaction, outbox_id: int) -> None:
    """The message that this row was to replace is gone: send it as one of its own."""
    tx.run("update outbox set state = 'pending', edits = null, not_before = 0 where id = ?", (outbox_id,))


def give_up(tx: Transaction, session_key: str, error: str) -> None:
    """Nothing can be shown in this place: its rows are dead."""
    tx.run(
        f"update outbox set state = 'dead', error = ?, ticket = '', {_NO_FILE} where {_UNSENT} and session_key = ?"
        " and state in ('pending', 'sending')",
        (error, session_key),
    )


def rename(tx: Transaction, session_key: str, new_key: str, *, chat: str) -> None:
    """A place has another key: what is open there goes on under it."""
    tx.run(
        "update outbox set session_key = ? where session_key = ? and state in ('pending', 'sending', 'unknown')",
        (new_key, session_key),
    )
    tx.run(
        "update inbox set session_key = ?, payload = json_set(payload, '$.chat', ?)"
        " where session_key = ? and state in ('pending', 'claimed')",
        (new_key, chat, session_key),
    )


def dead(reader: Reader, channel: str, *, limit: int) -> list[Dead]:
    """Rows of a channel that were given up, and those about which people were asked, newest first."""
    rows = reader.all(
        "select id, session_key, state, error, created_at from outbox"
        " where (state = 'dead' and kind <> 'placeholder' or state = 'unknown')"
        f" and {_CHANNEL} = ? order by id desc limit ?",
        (channel, limit),
    )
    return [Dead(**dict(row)) for row in rows]


def purge(tx: Transaction, channel: str) -> int:
    """Drop a channel's rows that were given up; returns how many. What people can still ask for stays."""
    rows = tx.all(f"delete from outbox where state = 'dead' and {_CHANNEL} = ? returning kind", (channel,))
    return sum(row["kind"] != "placeholder" for row in rows)


def backlog(reader: Reader, session_key: str) -> tuple[int, int]:
    """How many inbox rows of a session wait for an answer and how many outbox rows wait to be shown."""
    row = reader.one(
        "select (select count(*) from inbox where state in ('pending', 'claimed') and session_key = ?1) as inbound,"
        " (select count(*) from outbox where state in ('pending', 'sending', 'unknown') and offered = 0"
        " and session_key = ?1) as outbound",
        (session_key,),
    )
    assert row is not None
    return int(row["inbound"]), int(row["outbound"])


def oldest(reader: Reader, channels: Sequence[str], *, now: int) -> tuple[int | None, int | None]:
    """Since when the oldest open inbox row and the oldest row to send of these channels wait, milliseconds UTC.

    What is held, or was offered, waits for a person and does not count, nor do places where the platform has asked to
    wait. Channels are named as in session keys.
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


#: In the very words of the indexes of open rows, without which SQLite does not use them.
_OPEN = "state in ('pending', 'claimed')"
_UNSENT = "state in ('pending', 'sending', 'unknown')"
#: What may hold all that is remembered of somebody lies here no longer than it may be shown.
_NO_FILE = "file_name = '', file = null"
#: The channel's part of a session key.
_CHANNEL = "substr(session_key, 1, instr(session_key, ':') - 1)"
_LETTER = "select id, session_key, payload, turn_id, held from inbox"
_PARCEL = (
    "id, session_key, turn_id, kind, text, markup, buttons, reply_to, edits, run, attempts, created_at, chunk, ticket,"
    " in_place, error, file_name, file"
)


def _letter(row: Row) -> Letter:
    return Letter(**{**dict(row), "held": bool(row["held"])})


def _parcel(row: Row) -> Parcel:
    fields = dict(row)
    buttons = json.loads(fields.pop("buttons") or "[]")
    return Parcel(**fields, buttons=tuple((label, data) for label, data in buttons))
