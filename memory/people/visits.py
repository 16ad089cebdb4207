"""The visitors of the web page: their sign-in codes and sessions, and the account that each of them has there.

Invariants: each method is one transaction. A visitor's account on the page is one person with the account that signed
in, made so when it is first used and never by its name. Times are milliseconds UTC.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.context import reads, reads_at, writes, writes_at
from memory.store import people, web_sessions
from memory.store.database import Database, Reader, Transaction
from memory.store.web_sessions import SignedIn

__all__ = ["SignedIn", "Visits"]


def _join(tx: Transaction, now: int, *, platform: str, user_id: str, page: str, page_id: str) -> str:
    """Makes a visitor's account on the page one person with their account elsewhere. Returns the person's name."""
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
    """Returns the name of an account; its id if it is not known yet."""
    known = people.known_speaker(reader, platform=platform, user_id=user_id)
    return user_id if known is None else known.name or user_id


class Visits:
    """The visits of one store's page (`Service.visits`)."""

    def __init__(self, database: Database, *, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now

    open_code = writes_at(web_sessions.open_code)
    sign_in = writes_at(web_sessions.sign_in)
    account_of = reads_at(web_sessions.account_of)
    session = reads_at(web_sessions.session)
    sessions = reads_at(web_sessions.of_account)
    visited = writes_at(web_sessions.visited)
    choose_agent = writes(web_sessions.choose_agent)
    sign_out = writes(web_sessions.sign_out)
    sign_out_everywhere = writes(web_sessions.sign_out_everywhere)
    join = writes_at(_join)
    name = reads_at(_name)
    called = reads(_called)

    def is_noted(self, session: SignedIn) -> bool:
        """Returns whether the noted time of a session's last visit is recent enough."""
        return web_sessions.is_noted(self._now(), session)
