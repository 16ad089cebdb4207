"""Codes and sessions of the web page.

Invariants: neither a code nor a session's token is stored; only their hashes are stored and compared. Both are random
beyond guessing, so a plain hash serves. A code is for one session and ends when it is given or after `CODE_MS`. A
session ends after `IDLE_MS` without a visit, and in any case after `LIFETIME_MS`. Times are milliseconds UTC.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from memory.store.database import Reader, Transaction

CODE_MS: Final = 10 * 60_000
IDLE_MS: Final = 14 * 24 * 3_600_000
LIFETIME_MS: Final = 90 * 24 * 3_600_000
#: Milliseconds after which a visit is noted anew.
_NOTED_MS: Final = 5 * 60_000
#: The most open sessions of one account; one more ends the least recently used.
_MOST: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A session: the account that signed in, by its channel, and the agent whose page is open."""

    id: int
    channel: str
    platform: str
    user_id: str
    agent: str
    created_at: int
    seen_at: int


def open_code(tx: Transaction, now: int, code: str, *, channel: str, platform: str, user_id: str, agent: str) -> int:
    """Opens `code` for an account, in place of its earlier one; returns when the code expires."""
    tx.run("delete from web_codes where expires_at <= ? or (channel = ? and user_id = ?)", (now, channel, user_id))
    tx.run(
        "insert into web_codes (hash, channel, platform, user_id, agent, expires_at) values (?, ?, ?, ?, ?, ?)",
        (_hash(code), channel, platform, user_id, agent, now + CODE_MS),
    )
    return now + CODE_MS


def sign_in(tx: Transaction, now: int, code: str, token: str) -> SignedIn | None:
    """Spends a code on a session with this token and returns it; None if the code is not open."""
    row = tx.one(
        "delete from web_codes where hash = ? returning channel, platform, user_id, agent, expires_at", (_hash(code),)
    )
    if row is None or row["expires_at"] <= now:
        return None
    tx.run("delete from web_sessions where expires_at <= ? or seen_at <= ?", (now, now - IDLE_MS))
    tx.run(
        "delete from web_sessions where id in (select id from web_sessions where channel = ? and user_id = ?"
        " and id not in (select id from web_sessions where channel = ? and user_id = ? order by seen_at desc limit ?))",
        (row["channel"], row["user_id"], row["channel"], row["user_id"], _MOST - 1),
    )
    tx.run(
        "insert into web_sessions (hash, channel, platform, user_id, agent, created_at, seen_at, expires_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?)",
        (_hash(token), row["channel"], row["platform"], row["user_id"], row["agent"], now, now, now + LIFETIME_MS),
    )
    return session(tx, now, token)


def account_of(reader: Reader, now: int, code: str) -> tuple[str, str, str] | None:
    """Returns channel, platform and user id of the account that an open code is for."""
    row = reader.one(
        "select channel, platform, user_id from web_codes where hash = ? and expires_at > ?", (_hash(code), now)
    )
    return None if row is None else (row["channel"], row["platform"], row["user_id"])


def session(reader: Reader, now: int, token: str) -> SignedIn | None:
    """Returns the open session with this token."""
    row = reader.one(
        f"{_SESSION} where hash = ? and expires_at > ? and seen_at > ?", (_hash(token), now, now - IDLE_MS)
    )
    return None if row is None else SignedIn(**dict(row))


def of_account(reader: Reader, now: int, channel: str, user_id: str) -> list[SignedIn]:
    """Returns the open sessions of an account, the most recently used first."""
    rows = reader.all(
        f"{_SESSION} where channel = ? and user_id = ? and expires_at > ? and seen_at > ? order by seen_at desc, id",
        (channel, user_id, now, now - IDLE_MS),
    )
    return [SignedIn(**dict(row)) for row in rows]


def visited(tx: Transaction, now: int, session_id: int) -> None:
    """Notes a visit."""
    tx.run("update web_sessions set seen_at = ? where id = ?", (now, session_id))


def is_noted(now: int, session: SignedIn) -> bool:
    """Returns whether the session's noted visit is recent enough."""
    return now - session.seen_at < _NOTED_MS


def choose_agent(tx: Transaction, session_id: int, agent: str) -> None:
    """Switches a session to another agent's page."""
    tx.run("update web_sessions set agent = ? where id = ?", (agent, session_id))


def sign_out(tx: Transaction, session_id: int) -> None:
    """Ends one session."""
    tx.run("delete from web_sessions where id = ?", (session_id,))


def sign_out_everywhere(tx: Transaction, channel: str, user_id: str) -> int:
    """Ends all sessions of an account, and its code; returns the number of sessions."""
    tx.run("delete from web_codes where channel = ? and user_id = ?", (channel, user_id))
    gone = tx.all("delete from web_sessions where channel = ? and user_id = ? returning id", (channel, user_id))
    return len(gone)


def drop_all(tx: Transaction) -> None:
    """Ends all codes and sessions."""
    tx.run("delete from web_codes")
    tx.run("delete from web_sessions")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


_SESSION = "select id, channel, platform, user_id, agent, created_at, seen_at from web_sessions"
