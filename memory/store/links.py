"""Codes by which two identities become one person, and who may still try one.

Invariants: a code is for one link and is gone once it was given; the code itself is not kept; who guesses is shut off
before guessing can pay; a code alone links nobody: the one who made it is asked. Times are milliseconds UTC.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.store import people
from memory.store.database import Reader, Row, Transaction

#: What became of a code: "expired" is a right one that came too late, "own" and "linked" one that was made by the same
#: identity or person and is left open; "no_tries_left" also follows the last wrong one.
Outcome: TypeAlias = Literal["fits", "wrong", "expired", "own", "linked", "no_tries_left"]

#: How long a code can be given.
LIFETIME_MS: Final = 10 * 60 * 1000
#: Wrong codes somebody may give before no more are looked at, until this long after the last.
TRIES: Final = 3
LOCKED_MS: Final = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What became of a code that was given; one that fits was made by that identity in that session."""

    outcome: Outcome
    identity_id: int = 0
    session_id: int = 0


def open_code(tx: Transaction, identity_id: int, session_id: int, code: str, *, now: int) -> int:
    """Have `code` link somebody with an identity, in the place of an earlier one of theirs; returns until when."""
    tx.run("delete from link_codes where expires_at <= ? or identity_id = ?", (now, identity_id))
    salt = secrets.token_bytes(16)
    tx.run(
        "insert into link_codes (identity_id, session_id, salt, hash, created_at, expires_at)"
        " values (?, ?, ?, ?, ?, ?)",
        (identity_id, session_id, salt, _hash(salt, code), now, now + LIFETIME_MS),
    )
    return now + LIFETIME_MS


def maker(reader: Reader, code: str) -> tuple[int, int] | None:
    """The identity that made a code, and the session in which it did; to be told to nobody before the code is taken."""
    row = _fitting(reader, code)
    return None if row is None else (row["identity_id"], row["session_id"])


def take_code(tx: Transaction, identity_id: int, code: str, *, now: int) -> Given:
    """An identity gives a code, in the very form it was opened with; one that fits is used up."""
    tx.run("delete from link_tries where expires_at <= ?", (now,))
    tried = tx.one("select count from link_tries where identity_id = ?", (identity_id,))
    if tried is not None and tried["count"] >= TRIES:
        return Given(outcome="no_tries_left")
    row = _fitting(tx, code)
    if row is None:
        return Given(outcome=_wrong(tx, identity_id, now=now))
    if row["expires_at"] <= now:
        tx.run("delete from link_codes where expires_at <= ?", (now,))
        return Given(outcome="expired")
    if row["identity_id"] == identity_id:
        return Given(outcome="own")
    if identity_id in {each.id for each in people.accounts(tx, row["identity_id"])}:
        return Given(outcome="linked")
    # Wrong ones still count: with a second account anybody can have a right code in between.
    tx.run("delete from link_codes where id = ?", (row["id"],))
    return Given(outcome="fits", identity_id=row["identity_id"], session_id=row["session_id"])


def spoil(tx: Transaction, code: str) -> None:
    """A code was said where others read it: it is over."""
    row = _fitting(tx, code)
    if row is not None:
        tx.run("delete from link_codes where id = ?", (row["id"],))


def _fitting(reader: Reader, code: str) -> Row | None:
    """All open codes are compared, each in constant time, so that the time taken tells nothing about them."""
    fits = None
    for row in reader.all("select id, identity_id, session_id, salt, hash, expires_at from link_codes"):
        if hmac.compare_digest(_hash(row["salt"], code), row["hash"]):
            fits = row
    return fits


def _wrong(tx: Transaction, identity_id: int, *, now: int) -> Outcome:
    row = tx.one(
        "insert into link_tries (identity_id, count, expires_at) values (?, 1, ?)"
        " on conflict do update set count = count + 1, expires_at = excluded.expires_at returning count",
        (identity_id, now + LOCKED_MS),
    )
    assert row is not None
    return "no_tries_left" if row["count"] >= TRIES else "wrong"


def _hash(salt: bytes, code: str) -> bytes:
    # No slow hash: whoever can read this file during a code's ten minutes can read everything.
    return hmac.digest(salt, code.encode(), "sha256")
