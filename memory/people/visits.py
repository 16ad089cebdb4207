"""The visitors of the web page: their sign-in codes and sessions, and the account that each of them has there.

Invariants: neither a code nor a session's token is stored; only their hashes are stored and compared. Both are random
beyond guessing, so a plain hash serves. A code is for one session and ends when it is given or after `CODE_MS`. A
session ends after `IDLE_MS` without a visit, and in any case after `LIFETIME_MS`. A visitor's account on the page is
one person with the account that signed in, made so when it is first used and never by its name. Times are milliseconds
UTC.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final

from memory.context import StorePart, reads, reads_at, writes, writes_at
from memory.store import people
from memory.store.database import Reader, Transaction

CODE_MS: Final = 10 * 60_000
IDLE_MS: Final = 14 * 24 * 3_600_000
LIFETIME_MS: Final = 90 * 24 * 3_600_000
#: Milliseconds after which a visit is noted anew.
_NOTED_MS: Final = 5 * 60_000
#: Milliseconds without a request after which the next one begins a new visit.
_APART_MS: Final = 30 * 60_000
#: The most open sessions of one account; one more ends the least recently used.
_MOST: Final = 20
_SESSION: Final = "select id, channel, platform, user_id, agent, created_at, seen_at, before_at from web_sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A session: the account that signed in, by its channel, and the agent whose page is open.

    `before_at` is the end of the account's visit before this one; None if this is its first.
    """

    id: int
    channel: str
    platform: str
    user_id: str
    agent: str
    created_at: int
    seen_at: int
    before_at: int | None


def open_code(tx: Transaction, now: int, code: str, *, channel: str, platform: str, user_id: str, agent: str) -> int:
    tx.run("delete from web_codes where expires_at <= ? or (channel = ? and user_id = ?)", (now, channel, user_id))
    tx.run(
        "insert into web_codes (hash, channel, platform, user_id, agent, expires_at) values (?, ?, ?, ?, ?, ?)",
        (_hash(code), channel, platform, user_id, agent, now + CODE_MS),
    )
    return now + CODE_MS


def sign_in(tx: Transaction, now: int, code: str, token: str) -> SignedIn | None:
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
        "insert into web_sessions (hash, channel, platform, user_id, agent, created_at, seen_at, expires_at, before_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, (select max(seen_at) from web_sessions where channel = ? and user_id = ?))",
        (
            *(_hash(token), row["channel"], row["platform"], row["user_id"], row["agent"], now, now, now + LIFETIME_MS),
            *(row["channel"], row["user_id"]),
        ),
    )
    return session(tx, now, token)


def account_of(reader: Reader, now: int, code: str) -> tuple[str, str, str] | None:
    row = reader.one(
        "select channel, platform, user_id from web_codes where hash = ? and expires_at > ?", (_hash(code), now)
    )
    return None if row is None else (row["channel"], row["platform"], row["user_id"])


def session(reader: Reader, now: int, token: str) -> SignedIn | None:
    row = reader.one(
        f"{_SESSION} where hash = ? and expires_at > ? and seen_at > ?", (_hash(token), now, now - IDLE_MS)
    )
    return None if row is None else SignedIn(**dict(row))


def of_account(reader: Reader, now: int, channel: str, user_id: str) -> list[SignedIn]:
    rows = reader.all(
        f"{_SESSION} where channel = ? and user_id = ? and expires_at > ? and seen_at > ? order by seen_at desc, id",
        (channel, user_id, now, now - IDLE_MS),
    )
    return [SignedIn(**dict(row)) for row in rows]


def visited(tx: Transaction, now: int, session: SignedIn) -> SignedIn:
    """Notes a request. After a pause it begins a new visit; the one before ended `_NOTED_MS` after its note at most."""
    before = session.seen_at + _NOTED_MS if now - session.seen_at >= _APART_MS else session.before_at
    tx.run("update web_sessions set seen_at = ?, before_at = ? where id = ?", (now, before, session.id))
    return replace(session, seen_at=now, before_at=before)


def choose_agent(tx: Transaction, session_id: int, agent: str) -> None:
    tx.run("update web_sessions set agent = ? where id = ?", (agent, session_id))


def sign_out(tx: Transaction, session_id: int) -> None:
    tx.run("delete from web_sessions where id = ?", (session_id,))


def sign_out_everywhere(tx: Transaction, channel: str, user_id: str) -> int:
    tx.run("delete from web_codes where channel = ? and user_id = ?", (channel, user_id))
    gone = tx.all("delete from web_sessions where channel = ? and user_id = ? returning id", (channel, user_id))
    return len(gone)


def drop_all(tx: Transaction) -> None:
    tx.run("delete from web_codes")
    tx.run("delete from web_sessions")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _join(tx: Transaction, now: int, *, platform: str, user_id: str, page: str, page_id: str) -> str:
    known = people.known_speaker(tx, platform=platform, user_id=user_id)
    name = user_id if known is None else known.name
    own = people.speaker(tx, platform=platform, user_id=user_id, name=name, now=now)
    visitor = people.speaker(tx, platform=page, user_id=page_id, name=name, now=now)
    people.keep_with(tx, own.id, visitor.id)
    return name


def _name(reader: Reader, _now: int, *, platform: str, user_id: str, page: str, page_id: str) -> str | None:
    """Returns the name of a visitor whose two accounts are one person; None if they are not, or not any more."""
    own = people.known_speaker(reader, platform=platform, user_id=user_id)
    visitor = people.known_speaker(reader, platform=page, user_id=page_id)
    if own is None or visitor is None or own.person_id != visitor.person_id:
        return None
    return own.name or user_id


def _called(reader: Reader, platform: str, user_id: str) -> str:
    known = people.known_speaker(reader, platform=platform, user_id=user_id)
    return user_id if known is None else known.name or user_id


class Visits(StorePart):
    open_code = writes_at(open_code)
    sign_in = writes_at(sign_in)
    account_of = reads_at(account_of)
    sessions = reads_at(of_account)
    session = reads_at(session)
    visited = writes_at(visited)
    choose_agent = writes(choose_agent)
    sign_out = writes(sign_out)
    sign_out_everywhere = writes(sign_out_everywhere)
    join = writes_at(_join)
    name = reads_at(_name)
    called = reads(_called)

    def is_noted(self, session: SignedIn) -> bool:
        return self._now() - session.seen_at < _NOTED_MS
