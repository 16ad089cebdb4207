"""What people may know and say of their own memory: what is kept, who looked, what is learned, who is one person.

Invariants: each method is one transaction; what is told comes from the scope of the one who asks, or counts what they
have said themselves; two identities become one person only after both were asked: the one who gave a code, then the one
who made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.desk import Context, anew
from memory.mail import Mail
from memory.recall import index
from memory.store import holdings, links, looks, mailbox, memories, people, questions, wishes
from memory.store.database import Database, Reader, Transaction
from memory.store.holdings import Holdings
from memory.store.links import Given
from memory.store.looks import Look
from memory.store.mailbox import Piece
from memory.store.people import Account
from memory.store.questions import Question

__all__ = ["Account", "Given", "Holdings", "Kept", "Linking", "Look", "Note", "Party", "Privacy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept of a person, or in a group of that group, since a time in milliseconds UTC (None: nothing yet).

    `kinds` counts live memories, `said` what the asker has said. `looks` are some of `all_looks` of admins at what is
    this person's or this group's, newest first; `accounts` are all of this person's, none in a group.
    """

    kinds: dict[str, int]
    past: int
    said: Holdings
    since: int | None
    looks: tuple[Look, ...]
    all_looks: int
    accounts: tuple[Account, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """The other side of a link: an account, and the session in which it takes part; the bot may have left that."""

    account: Account
    session_id: int
    session_key: str
    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something to show: here, or in the session with the key `to`."""

    pieces: Sequence[Piece]
    to: str | None = None


class Privacy:
    """One store's answers about privacy. Reached from an open service."""

    def __init__(self, database: Database, mail: Mail, *, now: Callable[[], int]) -> None:
        self._database = database
        self._mail = mail
        self._now = now

    async def kept(self, context: Context, *, looks_shown: int, looks_before: int = 0) -> Kept:
        """What is kept of who speaks here; in a group: of this group, without anything that is theirs alone.

        `looks_before` newer looks are left out.
        """
        return await self._database.read(lambda reader: _kept(reader, context, looks_shown, looks_before))

    async def accounts(self, context: Context) -> list[Account]:
        """All identities of who speaks here, this one among them, in a lasting order."""
        return await self._database.read(lambda reader: people.accounts(reader, context.speaker.id))

    async def learn_from(self, context: Context, learning: bool) -> None:
        """Whether anything is learned from what this person says from now on, anywhere in this store."""
        await self._database.write(lambda tx: wishes.learn_from(tx, anew(tx, context).speaker.person_id, learning))

    async def learn_about(self, context: Context, about: bool) -> None:
        """Whether anything is learned of this person from what others say."""
        await self._database.write(lambda tx: wishes.learn_about(tx, anew(tx, context).speaker.person_id, about))

    async def maker(self, code: str) -> Party | None:
        """Who made a code that is open; to decide what may come of it, never to be told before it was taken."""

        def act(reader: Reader) -> Party | None:
            made = links.maker(reader, code)
            return None if made is None else _party(reader, *made)

        return await self._database.read(act)

    async def party(self, identity_id: int, session_id: int) -> Party:
        """The one whom a question about a link names."""
        return await self._database.read(lambda reader: _party(reader, identity_id, session_id))

    async def open_code(self, context: Context, code: str) -> int:
        """Have `code` link another account with who speaks here, in the place of an earlier one; returns until when."""
        speaker, session = context.speaker, context.session
        return await self._database.write(lambda tx: links.open_code(tx, speaker.id, session.id, code, now=self._now()))

    async def spoil(self, code: str) -> None:
        """A code was said where others read it: it is over."""
        await self._database.write(lambda tx: links.spoil(tx, code))

    async def act(
        self,
        context: Context,
        inbox_id: int,
        act: Callable[[Linking], Sequence[Note]],
        *,
        edits: str | None = None,
    ) -> None:
        """Do something about links and show what `act` returns, as one transaction that ends the inbox row.

        What is said here takes the place of the shown message `edits`.
        """

        def acted(tx: Transaction) -> None:
            for note in act(Linking(tx, context, now=self._now())):
                here = note.to is None
                self._mail.post(
                    tx,
                    session_key=context.session.key if note.to is None else note.to,
                    turn_id=None,
                    inbox_id=inbox_id if here else None,
                    kind="message",
                    pieces=note.pieces,
                    reply_to=None,
                    edits=edits if here else None,
                )
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(acted)
        # What was made of both sides must not linger in the index until somebody searches.
        await index.keep_up(self._database)


class Linking:
    """What `Privacy.act` hands to a request; never kept beyond it."""

    def __init__(self, tx: Transaction, context: Context, *, now: int) -> None:
        self._tx = tx
        self._context = context
        self._now = now

    def take_code(self, code: str) -> Given:
        """Who speaks here gives a code."""
        return links.take_code(self._tx, self._context.speaker.id, code, now=self._now)

    def ask(
        self,
        purpose: str,
        payload: dict[str, int],
        other: int,
        *,
        choices: Sequence[str],
        preset: str,
        of: Party | None = None,
    ) -> Question:
        """Ask who speaks here, or the other side `of`, whether they are one person with the identity `other`."""
        both = [*self.accounts(), *self.accounts(other)]
        return questions.ask(
            self._tx,
            session_id=self._context.session.id if of is None else of.session_id,
            asker_id=self._context.speaker.id if of is None else of.account.id,
            purpose=purpose,
            payload=json.dumps({**payload, "accounts": sorted(each.id for each in both)}),
            choices=choices,
            preset=preset,
            now=self._now,
        )

    def lapsed(self, *, asked: str, waiting: str) -> bool:
        """Whether a link that who speaks here began came to nothing lately, unanswered in its time; says so once.

        They were `asked` for one purpose themselves, or `waiting` for what the other side says to one of another.
        """
        me = self._context.speaker.id
        own = questions.lapse(self._tx, asked, asker_id=me, now=self._now)
        return questions.lapse(self._tx, waiting, account_id=me, now=self._now) or own

    def is_as_asked(self, question: Question, other: int) -> bool:
        """Whether a link with `other` would still make one person of just those accounts that a question has named."""
        both = [*self.accounts(), *self.accounts(other)]
        asked: list[int] = json.loads(question.payload).get("accounts", [])
        return sorted(each.id for each in both) == asked

    @property
    def until(self) -> int:
        """When a question that is put now is over, milliseconds UTC."""
        return self._now + questions.LIFETIME_MS

    def settle(self, question: Question, answer: str) -> bool:
        """Close a question with the choice taken; False when that was done already."""
        return questions.settle(self._tx, question.id, answer)

    def account(self) -> Account:
        """The identity that speaks here."""
        found = people.account(self._tx, self._context.speaker.id)
        assert found is not None
        return found

    def accounts(self, identity_id: int | None = None) -> list[Account]:
        """All identities of one person, in a lasting order; without an id of who speaks here."""
        return people.accounts(self._tx, self._context.speaker.id if identity_id is None else identity_id)

    def link(self, identity_id: int) -> None:
        """Who speaks here and the other are one person from now on; what this one has set holds."""
        people.link(self._tx, self._context.speaker.id, identity_id)

    def unlink(self, identity_id: int) -> None:
        """This identity of the person who speaks here stands alone from now on."""
        people.unlink(self._tx, identity_id)

    def private_place(self, identity_id: int) -> str | None:
        """The key of the session where somebody can be told something for their eyes alone; None without one."""
        session = people.private_session(self._tx, identity_id)
        return None if session is None else session.key


def _kept(reader: Reader, context: Context, looks_shown: int, looks_before: int) -> Kept:
    scope, session = anew(reader, context).scope, context.session
    live = memories.kinds(reader, scope)
    if session.private:
        accounts = people.accounts(reader, context.speaker.id)
        owners: Sequence[int] = scope.own
    else:
        accounts = []
        owners = people.owners_of_chat(reader, session.chat_id)
    said = holdings.of_speaker(reader, scope, context.speaker.id)
    times = [at for at in (memories.oldest(reader, scope), said.since) if at is not None]
    return Kept(
        kinds=live,
        past=memories.count(reader, scope, live_only=False) - sum(live.values()),
        said=said,
        since=min(times, default=None),
        looks=tuple(looks.of_owners(reader, owners, looks_shown, before=looks_before)),
        all_looks=looks.count(reader, owners),
        accounts=tuple(accounts),
    )


def _party(reader: Reader, identity_id: int, session_id: int) -> Party:
    account, session = people.account(reader, identity_id), people.session_by_id(reader, session_id)
    assert account is not None  # rows of identities and sessions never go
    return Party(
        account=account,
        session_id=session.id,
        session_key=session.key,
        present=people.is_present(reader, session),
    )
