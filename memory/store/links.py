"""Link codes, by which two identities become one person, and the limits on guessing them.

Invariants: A code is for one link. It is deleted once it was given, or after too many wrong codes from anybody. The
code itself is not stored. A person who guesses is locked out before guessing can succeed, in whatever way the codes are
given. A code alone links nobody: its maker is asked. Times are milliseconds UTC.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.store import people
from memory.store.database import Reader, Row, Transaction

#: The result of giving a code. "expired" is a right code that came too late. "own" and "linked" are codes made by the
#: same identity or person; they stay open. "no_tries_left" is also the result of the last wrong code.
Outcome: TypeAlias = Literal["fits", "wrong", "expired", "own", "linked", "no_tries_left"]

#: The lifetime of a code.
LIFETIME_MS: Final = 10 * 60 * 1000
#: After `TRIES` wrong codes of an identity, its codes are ignored until `LOCKED_MS` after the last one.
TRIES: Final = 3
LOCKED_MS: Final = 60 * 60 * 1000
#: The number of wrong codes, from all people together, that ends an open code: 100 guesses of 10^11 hit nothing.
GUESSES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The result of giving a code. A code that fits was made by `identity_id` in `session_id`."""

    outcome: Outcome
    identity_id: int = 0
    session_id: int = 0


def open_code(tx: Transaction, identity_id: int, session_id: int, code: str, *, now: int) -> int:
    """Opens `code` to link a person with an identity, in place of that identity's earlier one; returns its expiry."""
    tx.run("delete from link_codes where expires_at <= ? or identity_id = ?", (now, identity_id))
    salt = secrets.token_bytes(16)
    tx.run(
        "insert into link_codes (identity_id, session_id, salt, hash, created_at, expires_at)"
        " values (?, ?, ?, ?, ?, ?)",
        (identity_id, session_id, salt, _hash(salt, code), now, now + LIFETIME_MS),
    )
    return now + LIFETIME_MS


def maker(reader: Reader, code: str) -> tuple[int, int] | None:
    """Returns the identity that made a code, and in which session; tell nobody before the code is taken."""
    row = _fitting(reader, code)
    return None if row is None else (row["identity_id"], row["session_id"])


def is_code(tx: Transaction, identity_id: int, code: str, *, now: int) -> bool:
    """Returns whether a text from an identity is an open code; if not, it counts as a wrong code.

    Always False for an identity without tries left: any other answer would reveal which code is right. While no code is
    open, nothing counts as a guess.
    """
    if _is_shut_off(tx, identity_id, now=now):
        return False
    if _fitting(tx, code) is not None:
        return True
    if tx.one("select 1 from link_codes where expires_at > ?", (now,)) is not None:
        _wrong(tx, identity_id, now=now)
    return False


def take_code(tx: Transaction, identity_id: int, code: str, *, now: int) -> Given:
    """Takes a code from an identity, in exactly the form it was opened with; a code that fits is used up."""
    if _is_shut_off(tx, identity_id, now=now):
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
    # Wrong codes still count: with a second account anybody can give a right code in between.
    tx.run("delete from link_codes where id = ?", (row["id"],))
    return Given(outcome="fits", identity_id=row["identity_id"], session_id=row["session_id"])


def spoil(tx: Transaction, code: str) -> None:
    """Ends a code that was said where others can read it."""
    row = _fitting(tx, code)
    if row is not None:
        tx.run("delete from link_codes where id = ?", (row["id"],))


def drop_codes(tx: Transaction) -> None:
    """Ends all codes."""
    tx.run("delete from link_codes")


def drop_codes_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Ends the codes of these identities. Wrong codes stay counted: else the call would buy another three guesses."""
    tx.run("delete from link_codes where identity_id in (select value from json_each(?))", (identity_ids,))


def _fitting(reader: Reader, code: str) -> Row | None:
    """Returns the row that `code` fits. Compares all codes, each in constant time, so the time reveals nothing."""
    fits = None
    for row in reader.all("select id, identity_id, session_id, salt, hash, expires_at from link_codes"):
        if hmac.compare_digest(_hash(row["salt"], code), row["hash"]):
            fits = row
    return fits


def _is_shut_off(tx: Transaction, identity_id: int, *, now: int) -> bool:
    tx.run("delete from link_tries where expires_at <= ?", (now,))
    tried = tx.one("select count from link_tries where identity_id = ?", (identity_id,))
    return tried is not None and bool(tried["count"] >= TRIES)


def _wrong(tx: Transaction, identity_id: int, *, now: int) -> Outcome:
    tx.run("update link_codes set tries = tries + 1")
    tx.run("delete from link_codes where tries >= ?", (GUESSES,))
    row = tx.one(
        "insert into link_tries (identity_id, count, expires_at) values (?, 1, ?)"
        " on conflict (identity_id) do update set count = link_tries.count + 1,"
        " expires_at = excluded.expires_at returning count",
        (identity_id, now + LOCKED_MS),
    )
    assert row is not None
    return "no_tries_left" if row["count"] >= TRIES else "wrong"


def _hash(salt: bytes, code: str) -> bytes:
    # A slow hash would add nothing: a person who can read this file during a code's ten minutes can read everything.
    return hmac.digest(salt, code.encode(), "sha256")
