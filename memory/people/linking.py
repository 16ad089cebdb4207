"""Two identities become one person: the codes by which they find each other, and the links.

Invariants: A code is for one link, and is deleted once it was given. A code alone links nobody: first the identity that
gave it is asked, then the one that made it. Times are milliseconds UTC.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.context import Context
from memory.learn import keep
from memory.mailbox.outbox import Part
from memory.people.codes import LINKING, Wrong
from memory.store import chats, memories, people, questions
from memory.store.database import Reader, Transaction
from memory.store.people import Account
from memory.store.questions import Question

#: The platforms of accounts that stand for others.
_PROGRAMS: Final = "api"
_PAGE: Final = "web"
#: The result of giving a code. "expired" is a right code that came too late. "own" and "linked" are codes made by the
#: same identity or person; they stay open.
Outcome: TypeAlias = Literal["fits", "expired", "own", "linked"] | Wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The result of giving a code. A code that fits was made by `identity_id` in `session_id`."""

    outcome: Outcome
    identity_id: int = 0
    session_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """The other side of a link: an account and the session in which it takes part.

    `present` is False if the bot has left that session.
    """

    account: Account
    session_id: int
    session_key: str
    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A message to show in this session, or in the session with the key `to`."""

    pieces: Sequence[Part]
    to: str | None = None


def open_code(tx: Transaction, identity_id: int, session_id: int, code: str, *, now: int) -> int:
    """Opens `code` to link a person with an identity, in place of that identity's earlier one; returns its expiry."""
    LINKING.end_expired(tx, now=now)
    drop_codes_of(tx, [identity_id])
    return LINKING.open(tx, code, now=now, identity_id=identity_id, session_id=session_id)


def maker(reader: Reader, code: str) -> Party | None:
    """Returns the maker of an open code, or None; tell nobody before the code was taken."""
    row = LINKING.fitting(reader, code)
    return None if row is None else party(reader, row["identity_id"], row["session_id"])


def is_code(tx: Transaction, identity_id: int, code: str, *, now: int) -> bool:
    """Returns whether a text from an identity is an open code; if not, it counts as a wrong code.

    Always False for an identity without tries left: any other answer would reveal which code is right. While no code is
    open, nothing counts as a guess.
    """
    if LINKING.is_locked(tx, (identity_id,), now=now):
        return False
    if LINKING.fitting(tx, code) is not None:
        return True
    if tx.one("select 1 from link_codes where expires_at > ?", (now,)) is not None:
        LINKING.note_wrong(tx, (identity_id,), now=now)
    return False


def take_code(tx: Transaction, identity_id: int, code: str, *, now: int) -> Given:
    if LINKING.is_locked(tx, (identity_id,), now=now):
        return Given(outcome="no_tries_left")
    row = LINKING.fitting(tx, code)
    if row is None:
        return Given(outcome=LINKING.note_wrong(tx, (identity_id,), now=now))
    if row["expires_at"] <= now:
        LINKING.end_expired(tx, now=now)
        return Given(outcome="expired")
    if row["identity_id"] == identity_id:
        return Given(outcome="own")
    if identity_id in {each.id for each in people.accounts(tx, row["identity_id"])}:
        return Given(outcome="linked")
    # Wrong codes still count: with a second account anybody can give a right code in between.
    LINKING.end(tx, row)
    return Given(outcome="fits", identity_id=row["identity_id"], session_id=row["session_id"])


def spoil(tx: Transaction, code: str) -> None:
    row = LINKING.fitting(tx, code)
    if row is not None:
        LINKING.end(tx, row)


def drop_codes_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Ends the codes of these identities. Wrong codes stay counted: else the call would buy another three guesses."""
    tx.run("delete from link_codes where identity_id in (select value from json_each(?))", (identity_ids,))


class Linking:
    """The operations that `Privacy.act` hands to a request. Not to be kept beyond that request."""

    def __init__(self, tx: Transaction, context: Context, *, now: int, new_id: Callable[[], str]) -> None:
        self._tx = tx
        self._context = context
        self._now = now
        self._new_id = new_id

    def take_code(self, code: str) -> Given:
        return take_code(self._tx, self._context.speaker.id, code, now=self._now)

    def ask(
        self, purpose: str, payload: dict[str, int], other: int, *, choices: Sequence[str], of: Party | None = None
    ) -> Question:
        """Asks the speaker, or the other side `of`, whether they are the same person as the identity `other`."""
        both = [*self.accounts(), *self.accounts(other)]
        session = self._context.session.id if of is None else of.session_id
        asker = self._context.speaker.id if of is None else of.account.id
        named = {**payload, "accounts": sorted(each.id for each in both)}
        return questions.ask(self._tx, self._now, session, asker, purpose, named, choices=choices, preset="no")

    def lapsed(self, *, asked: str, waiting: str) -> bool:
        """Returns whether a link that the speaker began expired lately, unanswered. A second call returns False.

        `asked` is the purpose of the question put to the speaker. `waiting` is the purpose of the question that the
        other side was to answer.
        """
        me = self._context.speaker.id
        own = questions.lapse(self._tx, asked, asker_id=me, now=self._now)
        return questions.lapse(self._tx, waiting, account_id=me, now=self._now) or own

    def is_as_asked(self, question: Question, other: int) -> bool:
        both = [*self.accounts(), *self.accounts(other)]
        asked: list[int] = json.loads(question.payload).get("accounts", [])
        return sorted(each.id for each in both) == asked

    @property
    def until(self) -> int:
        return self._now + questions.LIFETIME_MS

    def settle(self, question: Question, answer: str) -> bool:
        return questions.settle(self._tx, question.id, answer)

    def account(self) -> Account:
        found = people.account(self._tx, self._context.speaker.id)
        assert found is not None
        return found

    def accounts(self, identity_id: int | None = None) -> list[Account]:
        """Returns all identities of one person in a stable order. Without `identity_id` the person is the speaker."""
        return people.accounts(self._tx, self._context.speaker.id if identity_id is None else identity_id)

    def link(self, identity_id: int) -> None:
        people.link(self._tx, self._context.speaker.id, identity_id)
        self._settle(self.accounts())

    def unlink(self, identity_id: int) -> None:
        """Separates this identity of the speaker, which stands for a person of its own from now on.

        The accounts that stand for it leave with it: that of its programs, and its own on the page.
        """
        together = self.accounts(identity_id)
        leaving = next(each for each in together if each.id == identity_id)
        theirs = [
            each.id
            for each in together
            if (each.platform, each.user_id) == (_PROGRAMS, str(leaving.id))
            or (each.platform == _PAGE and each.user_id.partition(".")[2] == leaving.user_id)
        ]
        people.unlink(self._tx, identity_id)
        for each in theirs:
            people.keep_with(self._tx, identity_id, each)
        self._settle(together)

    def _settle(self, accounts: Sequence[Account]) -> None:
        """Lets the last told of each single value hold: of all accounts of a person, and of those alone."""
        for each in accounts:
            session = chats.private_session(self._tx, each.id)
            if session is not None:
                scope = chats.scope_of(self._tx, session, each.id)
                rows = memories.single_valued(self._tx, scope)
                keep.settle(self._tx, scope, rows, now=self._now, new_id=self._new_id)

    def private_place(self, identity_id: int) -> str | None:
        session = chats.private_session(self._tx, identity_id)
        return None if session is None else session.key


def party(reader: Reader, identity_id: int, session_id: int) -> Party:
    account, session = people.account(reader, identity_id), chats.session_by_id(reader, session_id)
    assert account is not None  # rows of identities and sessions are never deleted
    return Party(
        account=account, session_id=session.id, session_key=session.key, present=chats.is_present(reader, session)
    )
