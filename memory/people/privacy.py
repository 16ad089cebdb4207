"""People's control over their own memory: the kept data, admins' looks, opt-outs, and linked identities.

Invariants: Each method is one transaction. An answer comes from the asker's scope, or counts the asker's messages.
Two identities become one person only after both were asked: first the identity that gave the code, then the one that
made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.context import Context, anew, confined, in_read, writes
from memory.mailbox import inbox
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.recall import index
from memory.reminders import reminding
from memory.store import audit, chats, held_counts, links, memories, opt_outs, people, questions, scopes
from memory.store.audit import AuditEntry
from memory.store.database import Database, Reader, Transaction
from memory.store.held_counts import HeldCounts
from memory.store.links import Given
from memory.store.people import Account, Speaker
from memory.store.questions import Question

#: The platforms of accounts that stand for others.
_PROGRAMS: Final = "api"
_PAGE: Final = "web"
__all__ = ["Account", "AuditEntry", "Given", "HeldCounts", "Kept", "Linking", "Note", "Party", "Privacy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The data kept about a person or, when asked in a group, about that group.

    `since` is the time of the oldest item, in milliseconds UTC (None: nothing yet). `kinds` counts live memories,
    `past` counts those no longer live, `said` the asker's messages, and `reminders` the asker's reminders. `all_looks`
    counts the admins' looks at the memory of this person or group; `looks` holds some of these, newest first.
    `accounts` holds all accounts of the person; it is empty in a group.
    """

    kinds: dict[str, int]
    past: int
    said: HeldCounts
    since: int | None
    looks: tuple[AuditEntry, ...]
    all_looks: int
    accounts: tuple[Account, ...]
    reminders: int


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


class Privacy:
    """The privacy requests of one store. Reached from an open service."""

    def __init__(self, database: Database, mailbox: Mailbox, *, now: Callable[[], int]) -> None:
        self._database = database
        self._mailbox = mailbox
        self._now = now

    spoil = writes(links.spoil)

    async def kept(self, context: Context, *, looks_shown: int, looks_before: int = 0) -> Kept:
        """Returns the data kept about the speaker.

        In a group, returns the data kept about the group, without anything that belongs to the speaker alone. The
        newest `looks_before` looks are left out.
        """
        return await self._database.read(lambda reader: _kept(reader, context, looks_shown, looks_before))

    async def accounts(self, context: Context) -> list[Account]:
        """Returns all identities of the speaker, the current one included, in a stable order."""
        return await self._database.read(lambda reader: people.accounts(reader, context.speaker.id))

    @in_read
    def speakers(self, reader: Reader, platform: str, user_ids: Sequence[str]) -> dict[str, Speaker]:
        """Returns the known people among some users of a platform, by their id there."""
        found = {one: people.known_speaker(reader, platform=platform, user_id=one) for one in user_ids}
        return {user_id: speaker for user_id, speaker in found.items() if speaker is not None}

    async def learn_from(self, context: Context, learning: bool) -> None:
        """Sets whether anything is learned from the speaker's words from now on, anywhere in this store."""
        await self._database.write(lambda tx: opt_outs.learn_from(tx, anew(tx, context).speaker.person_id, learning))

    async def learn_about(self, context: Context, about: bool) -> None:
        """Sets whether anything is learned about the speaker from others' words."""
        await self._database.write(lambda tx: people.learn_about(tx, anew(tx, context).speaker.person_id, about))

    async def follow_up(self, context: Context, hours: str) -> None:
        """Sets the hours between which the speaker wants to be asked how plans went, such as "10-20"; "" for never."""
        await self._database.write(lambda tx: people.set_follow_ups(tx, anew(tx, context).speaker.person_id, hours))

    @in_read
    def maker(self, reader: Reader, code: str) -> Party | None:
        """Returns the maker of an open code, or None.

        Use it to decide how to proceed with the code. Never reveal the maker before the code was taken.
        """
        made = links.maker(reader, code)
        return None if made is None else _party(reader, *made)

    async def is_code(self, context: Context, code: str) -> bool:
        """Returns whether the speaker's words are an open code. If not, they count as a wrong code."""
        return await self._database.write(lambda tx: links.is_code(tx, context.speaker.id, code, now=self._now()))

    async def party(self, identity_id: int, session_id: int) -> Party:
        """Returns the party that a question about a link names."""
        return await self._database.read(lambda reader: _party(reader, identity_id, session_id))

    async def open_code(self, context: Context, code: str) -> int:
        """Opens `code`, which links another account with the speaker. Replaces the speaker's earlier code.

        Returns when the code expires.
        """
        speaker, session = context.speaker, context.session
        return await self._database.write(lambda tx: links.open_code(tx, speaker.id, session.id, code, now=self._now()))

    async def act(
        self,
        context: Context,
        inbox_id: int,
        act: Callable[[Linking], Sequence[Note]],
        *,
        edits: str | None = None,
    ) -> None:
        """Runs `act` on links and shows the notes it returns, in one transaction that ends the inbox row.

        A note shown in this session replaces the shown message `edits`.
        """

        def acted(tx: Transaction) -> None:
            for note in act(Linking(tx, context, now=self._now())):
                if note.to is None:
                    said = Outgoing(session_key=context.session.key, pieces=note.pieces, inbox_id=inbox_id, edits=edits)
                else:
                    said = Outgoing(session_key=note.to, pieces=note.pieces)
                self._mailbox.post(tx, said)
            inbox.end(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(acted)
        # Memories derived from both sides must not stay in the index until the next search.
        await index.keep_up(self._database)


class Linking:
    """The operations that `Privacy.act` hands to a request. Not to be kept beyond that request."""

    def __init__(self, tx: Transaction, context: Context, *, now: int) -> None:
        self._tx = tx
        self._context = context
        self._now = now

    def take_code(self, code: str) -> Given:
        """Takes a code that the speaker gives."""
        return links.take_code(self._tx, self._context.speaker.id, code, now=self._now)

    def ask(
        self,
        purpose: str,
        payload: dict[str, int],
        other: int,
        *,
        choices: Sequence[str],
        of: Party | None = None,
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
        """Returns whether a link with `other` would still join exactly the accounts that `question` named."""
        both = [*self.accounts(), *self.accounts(other)]
        asked: list[int] = json.loads(question.payload).get("accounts", [])
        return sorted(each.id for each in both) == asked

    @property
    def until(self) -> int:
        """Returns when a question asked now expires, in milliseconds UTC."""
        return self._now + questions.LIFETIME_MS

    def settle(self, question: Question, answer: str) -> bool:
        """Closes a question with the choice taken. Returns False if it was closed already."""
        return questions.settle(self._tx, question.id, answer)

    def account(self) -> Account:
        """Returns the speaker's identity."""
        found = people.account(self._tx, self._context.speaker.id)
        assert found is not None
        return found

    def accounts(self, identity_id: int | None = None) -> list[Account]:
        """Returns all identities of one person in a stable order. Without `identity_id` the person is the speaker."""
        return people.accounts(self._tx, self._context.speaker.id if identity_id is None else identity_id)

    def link(self, identity_id: int) -> None:
        """Makes the speaker and the other identity one person from now on. The speaker's settings take precedence."""
        people.link(self._tx, self._context.speaker.id, identity_id)

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

    def private_place(self, identity_id: int) -> str | None:
        """Returns the key of the session that only this identity reads, or None without one."""
        session = chats.private_session(self._tx, identity_id)
        return None if session is None else session.key


def _kept(reader: Reader, context: Context, looks_shown: int, looks_before: int) -> Kept:
    scope, session = confined(reader, context).scope, context.session
    held = memories.held(reader, scope)
    if session.private:
        accounts = people.accounts(reader, context.speaker.id)
        owners: Sequence[int] = scope.own
    else:
        accounts = []
        owners = scopes.owners_of_chat(reader, session.chat_id)
    said = held_counts.of_speaker(reader, scope, context.speaker.id)
    times = [at for at in (held.since, said.since) if at is not None]
    return Kept(
        kinds=held.kinds,
        past=held.past,
        said=said,
        since=min(times, default=None),
        looks=tuple(audit.of_owners(reader, owners, looks_shown, before=looks_before)),
        all_looks=audit.count(reader, owners),
        accounts=tuple(accounts),
        reminders=len(reminding.of_reach(reader, reminding.reach(scope, session))),
    )


def _party(reader: Reader, identity_id: int, session_id: int) -> Party:
    account, session = people.account(reader, identity_id), chats.session_by_id(reader, session_id)
    assert account is not None  # rows of identities and sessions are never deleted
    return Party(
        account=account,
        session_id=session.id,
        session_key=session.key,
        present=chats.is_present(reader, session),
    )
