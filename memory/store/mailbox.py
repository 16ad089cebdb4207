"""Inbox and outbox: what has come in and what must still go out, whatever happens to the process.

Invariants: an update is taken once per (platform, bot, key); an inbox row ends in done, failed or dead, in the
transaction that holds its answer; an outbox row is marked `sending` before its send and `sent` after it, so a row
found `sending` at start is one whose fate is unknown. Rows keep no words longer than they need them: history does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.store.database import Reader, Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """An inbox row. `payload` is the channel's inbound message as JSON."""

    id: int
    session_key: str
    payload: str
    turn_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """An outbox row: one physical message to show."""

    id: int
    session_key: str
    turn_id: int | None
    kind: str
    text: str
    reply_to: str | None
    run: str
    attempts: int


def receive(
    tx: Transaction, *, platform: str, bot_id: str, update_key: str, session_key: str, payload: str, now: int
) -> int | None:
    """Take an update; None when it is already there."""
    row = tx.one(
        "insert into inbox (platform, bot_id, update_key, session_key, payload, state, received_at)"
        " values (?, ?, ?, ?, ?, 'pending', ?) on conflict do nothing returning id",
        (platform, bot_id, update_key, session_key, payload, now),
    )
    return None if row is None else int(row["id"])


def unanswered(reader: Reader) -> list[Letter]:
    """Rows that still need an answer, oldest first. Those of one broken-off turn share its id."""
    rows = reader.all(
        "select id, session_key, payload, turn_id from inbox where state in ('pending', 'claimed') order by id"
    )
    return [Letter(**dict(row)) for row in rows]


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
    chunks: Sequence[str],
    reply_to: str | None,
    run: str,
    now: int,
) -> None:
    """Queue a message, one row per physical chunk."""
    for chunk, text in enumerate(chunks):
        tx.run(
            "insert into outbox (session_key, turn_id, inbox_id, kind, chunk, text, reply_to, state, run, created_at)"
            " values (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
            (session_key, turn_id, inbox_id, kind, chunk, text, reply_to, run, now),
        )


def sessions_with_mail(reader: Reader) -> list[str]:
    rows = reader.all("select distinct session_key from outbox where state in ('pending', 'sending', 'unknown')")
    return [row["session_key"] for row in rows]


def doubt(tx: Transaction) -> None:
    """At start: what was being sent when the last process ended may or may not have been seen."""
    tx.run("update outbox set state = 'unknown' where state = 'sending'")


def repost_unknown(tx: Transaction, session_key: str) -> None:
    """Have rows of unknown fate shown again, where the channel marks them as earlier."""
    tx.run("update outbox set state = 'pending' where session_key = ? and state = 'unknown'", (session_key,))


def take(tx: Transaction, session_key: str) -> Parcel | None:
    """The next row to send, now marked `sending`; None when nothing is left."""
    row = tx.one(
        "update outbox set state = 'sending', attempts = attempts + 1 where id ="
        " (select min(id) from outbox where session_key = ? and state = 'pending')"
        " returning id, session_key, turn_id, kind, text, reply_to, run, attempts",
        (session_key,),
    )
    return None if row is None else _parcel(row)


def sent(tx: Transaction, outbox_id: int, platform_ref: str, *, now: int) -> None:
    tx.run(
        "update outbox set state = 'sent', platform_ref = ?, sent_at = ?, text = '' where id = ?",
        (platform_ref, now, outbox_id),
    )


def not_sent(tx: Transaction, outbox_id: int, state: str, error: str) -> None:
    """Keep a row whose send failed: `pending` to try again, `unknown`, or `dead`."""
    tx.run("update outbox set state = ?, error = ? where id = ?", (state, error, outbox_id))


def backlog(reader: Reader) -> tuple[int, int]:
    """How many inbox rows wait for an answer and how many outbox rows wait to be shown."""
    row = reader.one(
        "select (select count(*) from inbox where state in ('pending', 'claimed')) as inbound,"
        " (select count(*) from outbox where state in ('pending', 'sending', 'unknown')) as outbound"
    )
    assert row is not None
    return int(row["inbound"]), int(row["outbound"])


def _parcel(row: Row) -> Parcel:
    return Parcel(**dict(row))
