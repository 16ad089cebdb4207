"""People's control over their own memory: the kept data, admins' looks at it, and opt-outs.

Invariants: Each method is one transaction. An answer comes from the asker's scope, or counts the asker's messages.
A look is recorded under the person or group it was aimed at, whatever its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.context import Context, anew, confined, in_read, in_write, reads, writes
from memory.mailbox import inbox
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing
from memory.people import linking
from memory.people.linking import Linking, Note
from memory.recall import index
from memory.reminders import reminding
from memory.scope import Scope
from memory.store import attachments, history, memories, people, scopes
from memory.store.database import Database, Reader, Transaction
from memory.store.people import Account, Speaker

#: The deed of an admin that is recorded.
Look: TypeAlias = Literal["list", "search", "show", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One look of an admin. `found` is the number of memories shown or removed; `looked_at` is in milliseconds UTC."""

    admin_id: int
    admin_name: str
    agent: str
    action: Look
    found: int
    looked_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCounts:
    """Counts of one person's messages: `here` within a scope, `elsewhere` outside it, in so many `groups`.

    `files` counts the attachments of all their messages in private, otherwise of those here. `since` is the time of the
    first message here, in milliseconds UTC.
    """

    here: int
    elsewhere: int
    groups: int
    files: int
    since: int | None


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


class Privacy:
    def __init__(
        self, database: Database, mailbox: Mailbox, *, now: Callable[[], int], new_id: Callable[[], str]
    ) -> None:
        self._database = database
        self._mailbox = mailbox
        self._now = now
        self._new_id = new_id

    spoil = writes(linking.spoil)
    maker = reads(linking.maker)
    party = reads(linking.party)

    async def kept(self, context: Context, *, looks_shown: int, looks_before: int = 0) -> Kept:
        """Returns the data kept about the speaker.

        In a group, returns the data kept about the group, without anything that belongs to the speaker alone. The
        newest `looks_before` looks are left out.
        """
        return await self._database.read(lambda reader: _kept(reader, context, looks_shown, looks_before))

    async def accounts(self, context: Context) -> list[Account]:
        return await self._database.read(lambda reader: people.accounts(reader, context.speaker.id))

    @in_read
    def speakers(self, reader: Reader, platform: str, user_ids: Sequence[str]) -> dict[str, Speaker]:
        found = {one: people.known_speaker(reader, platform=platform, user_id=one) for one in user_ids}
        return {user_id: speaker for user_id, speaker in found.items() if speaker is not None}

    @in_write
    def learn_from(self, tx: Transaction, context: Context, learning: bool) -> None:
        """Sets whether anything is learned from the speaker's words from now on, anywhere in this store.

        If not, their earlier messages that are still unread are not learned from either.
        """
        person_id = anew(tx, context).speaker.person_id
        people.put(tx, person_id, learning=int(learning))
        if not learning:
            history.unlearn_unread(tx, person_id)

    @in_write
    def learn_about(self, tx: Transaction, context: Context, about: bool) -> None:
        people.put(tx, anew(tx, context).speaker.person_id, about=int(about))

    @in_write
    def follow_up(self, tx: Transaction, context: Context, hours: str) -> None:
        """Sets the hours between which the speaker wants to be asked how plans went, such as "10-20"; "" for never."""
        people.put(tx, anew(tx, context).speaker.person_id, follow_ups=hours)

    @in_write
    def is_code(self, tx: Transaction, context: Context, code: str) -> bool:
        """Returns whether the speaker's words are an open code. If not, they count as a wrong code."""
        return linking.is_code(tx, context.speaker.id, code, now=self._now())

    @in_write
    def open_code(self, tx: Transaction, context: Context, code: str) -> int:
        """Opens `code`, which links another account with the speaker, in place of the speaker's earlier code.

        Returns when the code expires.
        """
        return linking.open_code(tx, context.speaker.id, context.session.id, code, now=self._now())

    async def act(
        self, context: Context, inbox_id: int, act: Callable[[Linking], Sequence[Note]], *, edits: str | None = None
    ) -> None:
        """Runs `act` on links and shows the notes it returns, in one transaction that ends the inbox row.

        A note shown in this session replaces the shown message `edits`.
        """

        def acted(tx: Transaction) -> None:
            inbox.expect_open(tx, inbox_id)
            for note in act(Linking(tx, context, now=self._now(), new_id=self._new_id)):
                if note.to is None:
                    said = Outgoing(session_key=context.session.key, pieces=note.pieces, inbox_id=inbox_id, edits=edits)
                else:
                    said = Outgoing(session_key=note.to, pieces=note.pieces)
                self._mailbox.post(tx, said)
            inbox.end(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(acted)
        # Memories derived from both sides must not stay in the index until the next search.
        await index.keep_up(self._database)


def _kept(reader: Reader, context: Context, looks_shown: int, looks_before: int) -> Kept:
    scope, session = confined(reader, context).scope, context.session
    held = memories.held(reader, scope)
    if session.private:
        accounts = people.accounts(reader, context.speaker.id)
        owners: Sequence[int] = scope.own
    else:
        accounts = []
        owners = scopes.owners_of_chat(reader, session.chat_id)
    said = _said(reader, scope, context.speaker.id)
    times = [at for at in (held.since, said.since) if at is not None]
    return Kept(
        kinds=held.kinds,
        past=held.past,
        said=said,
        since=min(times, default=None),
        looks=tuple(looks(reader, owners, looks_shown, before=looks_before)),
        all_looks=reader.number(
            "select count(*) from looks where owner_id in (select value from json_each(?))", (owners,)
        ),
        accounts=tuple(accounts),
        reminders=len(reminding.of_reach(reader, reminding.reach(scope, session))),
    )


def _said(reader: Reader, scope: Scope, speaker_id: int) -> HeldCounts:
    owners, authors = scope.owners, scope.selves or (speaker_id,)
    here = "coalesce(m.owner_id in (select value from json_each(?1)), false)"
    # In private, their words in groups are counted as well.
    with reader.within(scope, elsewhere=True):
        said = reader.one(
            f"select count(*) filter (where {here}) as here, count(*) as everywhere,"
            f" count(distinct s.chat_id) filter (where not {here}) as groups,"
            f" min(m.said_at) filter (where {here}) as since"
            " from messages m join sessions s on s.id = m.session_id"
            " where m.author_id in (select value from json_each(?2)) and m.erased_at is null",
            (owners, authors),
        )
        files = reader.number(
            "select count(*) from attachments a join messages m on m.id = a.message_id"
            " where m.author_id in (select value from json_each(?2)) and m.erased_at is null"
            f" and not {attachments.IS_QUOTED} and (?3 = 1 or m.owner_id in (select value from json_each(?1)))",
            (owners, authors, int(scope.private)),
        )
    assert said is not None
    return HeldCounts(
        here=said["here"],
        elsewhere=said["everywhere"] - said["here"],
        groups=said["groups"],
        files=files,
        since=said["since"],
    )


def note_look(
    tx: Transaction, owner_id: int, *, admin_id: int, agent_id: int, action: Look, found: int, now: int
) -> None:
    tx.run(
        "insert into looks (owner_id, admin_id, agent_id, action, found, looked_at) values (?, ?, ?, ?, ?, ?)",
        (owner_id, admin_id, agent_id, action, found, now),
    )


def looks(reader: Reader, owner_ids: Sequence[int], limit: int, *, before: int = 0) -> list[AuditEntry]:
    """Returns the looks at the memory of these owners, newest first, without the `before` newest.

    Looks at a group are recorded under the chat, not under a thread.
    """
    rows = reader.all(
        "select l.admin_id, i.name as admin_name, a.name as agent, l.action, l.found, l.looked_at from looks l"
        " join identities i on i.id = l.admin_id join agents a on a.id = l.agent_id"
        " where l.owner_id in (select value from json_each(?)) order by l.looked_at desc, l.id desc limit ? offset ?",
        (list(owner_ids), limit, before),
    )
    return [AuditEntry(**dict(row)) for row in rows]


def drop_looks_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run(
        "delete from looks where owner_id in (select id from owners"
        " where identity_id in (select value from json_each(?)))",
        (identity_ids,),
    )
