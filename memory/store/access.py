"""Who may speak beside those whom the configuration names: people and groups let in or shut out, and pairing codes.

Invariants: a person or group is known by its exact platform id on one configured channel; a code lets one person in,
once, within its time; the code itself is not kept; a person who guesses is shut off before guessing can pay; nobody
who is blocked gets in by a code. Times are milliseconds UTC.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.store.database import Reader, Transaction

State: TypeAlias = Literal["allowed", "blocked"]
Subject: TypeAlias = Literal["person", "group"]
#: What became of a code: "expired" is a right code that came too late; "no_tries_left" also follows the last wrong one.
Taken: TypeAlias = Literal["allowed", "wrong", "expired", "no_tries_left"]

#: How long a code lets somebody in.
LIFETIME_MS: Final = 10 * 60 * 1000
#: Codes of one channel that may be open at a time: every open one makes guessing easier.
PENDING: Final = 3
#: Wrong codes a person may give before no more are looked at, until this long after the last: the code that was
#: guessed at is over by then.
TRIES: Final = 3
LOCKED_MS: Final = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person or group that was let in or shut out. `granted_by` is an admin's user id, "code" or "config"."""

    subject: Subject
    reference: str
    state: State
    granted_by: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Whether a code was opened. `until` is when it ends, or, where too many are open, when the first of those does."""

    opened: bool
    until: int


def state(reader: Reader, channel: str, subject: Subject, reference: str) -> State | None:
    """What was decided about a person (by user id) or a group (by chat id) of a channel; None: nothing."""
    row = reader.one(
        "select state from access where channel = ? and subject = ? and reference = ?", (channel, subject, reference)
    )
    return None if row is None else row["state"]


def grants(reader: Reader, channel: str) -> list[Grant]:
    """All that was decided on a channel, oldest first."""
    rows = reader.all(
        "select subject, reference, state, granted_by, created_at from access where channel = ?"
        " order by created_at, subject, reference",
        (channel,),
    )
    return [Grant(**dict(row)) for row in rows]


def allow(tx: Transaction, channel: str, subject: Subject, reference: str, *, by: str, now: int) -> bool:
    """Let in; False when that was so already. Ends a block, and a person's wait after wrong codes."""
    if subject == "person":
        _forgive(tx, channel, reference)
    return _decide(tx, channel, subject, reference, "allowed", by=by, now=now)


def block(tx: Transaction, channel: str, subject: Subject, reference: str, *, by: str, now: int) -> bool:
    """Shut out, whoever let them in; False when that was so already."""
    return _decide(tx, channel, subject, reference, "blocked", by=by, now=now)


def move_group(tx: Transaction, channel: str, chat: str, new_chat: str, *, configured: bool, now: int) -> None:
    """Have what was decided about a group hold for the id it goes on under; a block on either id stays.

    `configured` says that the configuration lists the old id: without this the bot would fall silent there.
    """
    old = tx.one(
        "delete from access where channel = ? and subject = 'group' and reference = ? returning state, granted_by",
        (channel, chat),
    )
    if old is not None and old["state"] == "blocked":
        block(tx, channel, "group", new_chat, by=old["granted_by"], now=now)
    elif (old is not None or configured) and state(tx, channel, "group", new_chat) is None:
        allow(tx, channel, "group", new_chat, by="config" if old is None else old["granted_by"], now=now)


def open_pairing(tx: Transaction, channel: str, code: str, *, now: int) -> Pairing:
    """Have `code` let one person in for `LIFETIME_MS`, unless `PENDING` others are open.

    It is refused then rather than put in the place of the oldest: the admin who asks is told and can wait, while the
    person with a code that had silently died could not know why.
    """
    tx.run("delete from pairings where expires_at <= ?", (now,))
    row = tx.one("select count(*) as pending, min(expires_at) as first from pairings where channel = ?", (channel,))
    assert row is not None
    if row["pending"] >= PENDING:
        return Pairing(opened=False, until=row["first"])
    salt = secrets.token_bytes(16)
    tx.run(
        "insert into pairings (channel, salt, hash, created_at, expires_at) values (?, ?, ?, ?, ?)",
        (channel, salt, _hash(salt, code), now, now + LIFETIME_MS),
    )
    return Pairing(opened=True, until=now + LIFETIME_MS)


def take_pairing(tx: Transaction, channel: str, user_id: str, code: str, *, now: int) -> Taken:
    """Let a person in by a code, in the very form it was opened with; a code that fits is used up.

    All codes of the channel are compared, each in constant time, so that the time taken tells nothing about them.
    """
    tx.run("delete from pairing_tries where expires_at <= ?", (now,))
    tried = tx.one("select count from pairing_tries where channel = ? and user_id = ?", (channel, user_id))
    if tried is not None and tried["count"] >= TRIES:
        return "no_tries_left"
    if state(tx, channel, "person", user_id) == "blocked":
        return "wrong"
    fits = None
    for row in tx.all("select id, salt, hash, expires_at from pairings where channel = ?", (channel,)):
        if hmac.compare_digest(_hash(row["salt"], code), row["hash"]):
            fits = row
    tx.run("delete from pairings where expires_at <= ?", (now,))
    if fits is None:
        return _wrong(tx, channel, user_id, now=now)
    if fits["expires_at"] <= now:
        return "expired"
    tx.run("delete from pairings where id = ?", (fits["id"],))
    allow(tx, channel, "person", user_id, by="code", now=now)
    return "allowed"


def _decide(
    tx: Transaction, channel: str, subject: Subject, reference: str, decided: State, *, by: str, now: int
) -> bool:
    if state(tx, channel, subject, reference) == decided:
        return False
    tx.run(
        "insert or replace into access (channel, subject, reference, state, granted_by, created_at)"
        " values (?, ?, ?, ?, ?, ?)",
        (channel, subject, reference, decided, by, now),
    )
    return True


def _wrong(tx: Transaction, channel: str, user_id: str, *, now: int) -> Taken:
    row = tx.one(
        "insert into pairing_tries (channel, user_id, count, expires_at) values (?, ?, 1, ?)"
        " on conflict do update set count = count + 1, expires_at = excluded.expires_at returning count",
        (channel, user_id, now + LOCKED_MS),
    )
    assert row is not None
    return "no_tries_left" if row["count"] >= TRIES else "wrong"


def _forgive(tx: Transaction, channel: str, user_id: str) -> None:
    tx.run("delete from pairing_tries where channel = ? and user_id = ?", (channel, user_id))


def _hash(salt: bytes, code: str) -> bytes:
    # No slow hash: whoever can read this file during a code's ten minutes can read everything.
    return hmac.digest(salt, code.encode(), "sha256")
