"""The mailbox as the gateway sees it: taking messages in, and sending rows out one state after the other.

Invariants: each method is one transaction; a row of unknown fate is repeated only where the caller says that is safe,
and else a notice with a button is queued in the transaction that marks it offered, so nobody is asked twice or not at
all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from memory.store import attachments, history, mailbox, people, questions
from memory.store.attachments import Attached
from memory.store.database import Database, Reader, Transaction
from memory.store.mailbox import Dead, Letter, Parcel, Piece


class Mail:
    """One store's inbox and outbox. `run_id` names this run of the process."""

    def __init__(self, database: Database, *, now: Callable[[], int], run_id: str) -> None:
        self._database = database
        self._now = now
        self.run_id = run_id
        self._noted: set[str] = set()

    # In ---------------------------------------------------------------------------------------------------------

    async def receive(
        self,
        *,
        platform: str,
        bot_id: str,
        update_key: str,
        session_key: str,
        payload: str,
        held: Piece | None = None,
    ) -> int | None:
        """Commit an update; None when it was already taken.

        With `held` it is answered only after `release`; the first such one of a session in this run has that notice
        queued.
        """

        def act(tx: Transaction) -> int | None:
            inbox_id = mailbox.receive(
                tx,
                platform=platform,
                bot_id=bot_id,
                update_key=update_key,
                session_key=session_key,
                payload=payload,
                now=self._now(),
                held=held is not None,
            )
            if inbox_id is not None and held is not None and session_key not in self._noted:
                self._notice(tx, session_key, inbox_id, held)
            return inbox_id

        inbox_id = await self._database.write(act)
        if inbox_id is not None and held is not None:
            self._noted.add(session_key)
        return inbox_id

    async def unanswered(self) -> list[Letter]:
        return await self._database.read(mailbox.unanswered)

    async def hold(self, letter: Letter, notice: Piece) -> None:
        """Have a message that was left from an earlier run answered only after `release`; says so once a session."""

        def act(tx: Transaction) -> None:
            mailbox.hold(tx, letter.id)
            if letter.session_key not in self._noted:
                self._notice(tx, letter.session_key, letter.id, notice)

        await self._database.write(act)
        self._noted.add(letter.session_key)

    async def release(self, session_key: str, *, inbox_id: int, gone: Piece) -> list[Letter]:
        """The session's held messages, from now on to be answered; ends the inbox row that asked for it.

        When there are none any more the person gets `gone`.
        """

        def act(tx: Transaction) -> list[Letter]:
            letters = mailbox.release(tx, session_key)
            if not letters:
                self._notice(tx, session_key, inbox_id, gone)
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())
            return letters

        letters = await self._database.write(act)
        self._noted.discard(session_key)  # what comes too late from here on wants a note of its own
        return letters

    async def reword(self, session_key: str, change: Callable[[str], str | None]) -> Letter | None:
        """Change the payload of a message that waits in the session; returns it as it is now.

        `change` gives the new payload of the right one and None for others; None when none was right.
        """

        def act(tx: Transaction) -> Letter | None:
            for letter in mailbox.waiting(tx, session_key):
                if (payload := change(letter.payload)) is not None:
                    mailbox.reword(tx, letter.id, payload)
                    return replace(letter, payload=payload)
            return None

        return await self._database.write(act)

    async def refuse(
        self, inbox_ids: Sequence[int], session_key: str, notice: Piece, *, error: str, keep_words: bool = False
    ) -> None:
        """End inbox rows that are still open without an answer, telling the person why, once."""

        def act(tx: Transaction) -> None:
            now = self._now()
            edits = None
            for turn_id in history.abandon_turns(tx, inbox_ids, error=error, now=now):
                questions.withdraw(tx, turn_id)
                edits = mailbox.shown_placeholder(tx, turn_id)
            self._notice(tx, session_key, inbox_ids[0], notice, edits=edits)
            mailbox.answered(tx, inbox_ids, error=error, now=now, keep_words=keep_words)

        await self._database.write(act)

    async def attach(self, inbox_id: int, attached: Sequence[Attached]) -> None:
        """Keep what came beside the words of a message, as it was understood."""
        await self._database.write(lambda tx: attachments.keep(tx, inbox_id, attached, now=self._now()))

    async def attached(self, inbox_id: int) -> tuple[Attached, ...]:
        """What came beside the words of a message; nothing as long as it is not understood."""
        return await self._database.read(lambda reader: attachments.of_inbox(reader, inbox_id))

    async def withdraw(self, session_key: str, deleted: Callable[[str], bool]) -> list[int]:
        """End the messages that wait in the session and whose payload was `deleted`; returns their rows.

        Of those that failed before and are still kept the words go.
        """

        def found(reader: Reader) -> list[int]:
            letters = (*mailbox.waiting(reader, session_key), *mailbox.kept(reader, session_key))
            return [letter.id for letter in letters if deleted(letter.payload)]

        def act(tx: Transaction) -> list[int]:
            gone = found(tx)
            mailbox.answered(tx, gone, error=None, now=self._now())
            mailbox.blank(tx, gone)
            return gone

        # Most of what is deleted was never said to us: that must not cost a write.
        return await self._database.write(act) if await self._database.read(found) else []

    async def dismiss(self, inbox_id: int) -> None:
        """End an inbox row that needs no answer."""
        await self._database.write(lambda tx: mailbox.answered(tx, [inbox_id], error=None, now=self._now()))

    async def bury(self, inbox_id: int, *, error: str) -> None:
        """Set a row aside that can't be read; it is kept for the operator to look at."""
        await self._database.write(lambda tx: mailbox.bury(tx, inbox_id, error=error, now=self._now()))

    # Out --------------------------------------------------------------------------------------------------------

    async def sessions_with_mail(self) -> list[str]:
        return await self._database.read(mailbox.sessions_with_mail)

    async def in_doubt(self, session_key: str) -> list[Parcel]:
        """Rows of which nobody knows whether they were shown, and about which nobody was asked."""
        return await self._database.read(lambda reader: mailbox.in_doubt(reader, session_key))

    async def take(self, session_key: str) -> Parcel | None:
        """The session's next row, now to be sent."""
        return await self._database.write(lambda tx: mailbox.take(tx, session_key, now=self._now()))

    async def due(self, session_key: str) -> int | None:
        """When the session's next row may be sent, milliseconds UTC; None when there is none."""
        return await self._database.read(lambda reader: mailbox.due(reader, session_key, now=self._now()))

    async def sent(self, parcel: Parcel, platform_ref: str) -> Parcel | None:
        """Record that a row was shown, and take the session's next one."""

        def act(tx: Transaction) -> Parcel | None:
            mailbox.sent(tx, parcel.id, platform_ref, now=self._now())
            return mailbox.take(tx, parcel.session_key, now=self._now())

        return await self._database.write(act)

    async def was_sent(self, parcel: Parcel, platform_ref: str) -> None:
        """Record that a row was shown."""
        await self._database.write(lambda tx: mailbox.sent(tx, parcel.id, platform_ref, now=self._now()))

    async def not_sent(self, parcel: Parcel, state: str, error: str, *, not_before: int = 0) -> None:
        """Keep a row whose send failed.

        As "pending" to try again at `not_before` (milliseconds UTC), "unknown" to leave it to the next start, "dead" to
        try it no more.
        """
        await self._database.write(lambda tx: mailbox.not_sent(tx, parcel.id, state, error, not_before=not_before))

    async def repeat(self, parcel: Parcel, *, not_before: int = 0) -> None:
        """Nobody knows whether a row was shown, and showing it again does no harm."""
        await self._database.write(
            lambda tx: mailbox.not_sent(tx, parcel.id, "pending", "unknown", not_before=not_before)
        )

    async def lament(self, parcel: Parcel, error: str, notice: Piece) -> None:
        """A row is given up, and the person is told with `notice`; not of a notice, which would never end."""

        def act(tx: Transaction) -> None:
            mailbox.not_sent(tx, parcel.id, "dead", error)
            if parcel.kind == "message":
                self._notice(tx, parcel.session_key, None, notice, reply_to=mailbox.asked_by(tx, parcel))

        await self._database.write(act)

    async def say_anew(self, parcel: Parcel) -> None:
        """What a row was to replace is gone: it becomes a message of its own."""
        await self._database.write(lambda tx: mailbox.say_anew(tx, parcel.id))

    async def offer(self, parcel: Parcel, notice: Piece) -> None:
        """Nobody knows whether a row was shown: ask the person with `notice` whether to show it again.

        Nobody is asked about a placeholder: its answer comes in any case.
        """

        def act(tx: Transaction) -> None:
            if parcel.kind == "placeholder":
                mailbox.not_sent(tx, parcel.id, "dead", "orphan")
            else:
                mailbox.offered(tx, parcel.id)
                reply_to = parcel.reply_to or mailbox.asked_by(tx, parcel)
                self._notice(tx, parcel.session_key, None, notice, reply_to=reply_to)

        await self._database.write(act)

    async def show_again(self, session_key: str, outbox_id: int, *, inbox_id: int, gone: Piece) -> None:
        """A person wants to see a row of unknown fate (again). When it is none any more they get `gone`."""

        def act(tx: Transaction) -> None:
            parcel = mailbox.by_id(tx, session_key, outbox_id)
            if parcel is None or not mailbox.repost(tx, outbox_id, now=self._now()):
                self._notice(tx, session_key, inbox_id, gone)
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(act)

    async def place_holder(self, session_key: str, turn_id: int, text: str, reply_to: str | None) -> Parcel:
        """A row for the message that the turn's answer will replace; to be sent at once."""
        return await self._database.write(
            lambda tx: mailbox.place_holder(
                tx,
                session_key=session_key,
                turn_id=turn_id,
                text=text,
                reply_to=reply_to,
                run=self.run_id,
                now=self._now(),
            )
        )

    async def shown_placeholder(self, turn_id: int) -> str | None:
        """The platform's id of the placeholder that an earlier run of this turn has shown."""
        return await self._database.read(lambda reader: mailbox.shown_placeholder(reader, turn_id))

    async def lost_placeholder(self, turn_id: int) -> Parcel | None:
        """The placeholder of which nobody knows whether an earlier run of this turn has shown it."""
        return await self._database.read(lambda reader: mailbox.lost_placeholder(reader, turn_id))

    async def dead(self, channel: str, *, limit: int) -> list[Dead]:
        """Rows of a channel (as in session keys) that could not be delivered, newest first."""
        return await self._database.read(lambda reader: mailbox.dead(reader, channel, limit=limit))

    # Places -----------------------------------------------------------------------------------------------------

    async def give_up(self, session_key: str, error: str) -> None:
        """Nothing can be shown in this place any more."""
        await self._database.write(lambda tx: mailbox.give_up(tx, session_key, error))

    async def presence(self, platform: str, channel: str, chat: str, *, present: bool) -> None:
        """Whether a channel's bot is in a chat; what it has still to show in one that it left is dead.

        `channel` is named as in session keys: another bot may still be there.
        """

        def act(tx: Transaction) -> None:
            left_at = None if present else self._now()
            keys = people.present(tx, platform=platform, channel=channel, reference=chat, left_at=left_at)
            for key in () if present else keys:
                mailbox.give_up(tx, key, "blocked")

        await self._database.write(act)

    async def move(
        self, platform: str, chat: str, new_chat: str, rename: Callable[[str], str], keys: Sequence[str] = ()
    ) -> dict[str, str]:
        """A chat has another id: its sessions, with all that is open in them, go on under it; old and new keys.

        `rename` gives the new session key of an old one; `keys` are some that are known to be the chat's.
        """

        def act(tx: Transaction) -> dict[str, str]:
            found = people.move_chat(tx, platform=platform, reference=chat, new_reference=new_chat, now=self._now())
            for key in {*found, *keys}:
                people.rename_session(tx, key, rename(key))
                mailbox.rename(tx, key, rename(key), chat=new_chat)
            return {key: rename(key) for key in {*found, *keys}}

        return await self._database.write(act)

    async def oldest(self, channels: Collection[str]) -> tuple[int | None, int | None]:
        """Since when the oldest message waits for its answer and the oldest row for its send, milliseconds UTC.

        `channels` are named as in session keys.
        """
        return await self._database.read(lambda reader: mailbox.oldest(reader, tuple(channels), now=self._now()))

    def post(
        self,
        tx: Transaction,
        *,
        session_key: str,
        turn_id: int | None,
        inbox_id: int | None,
        kind: str,
        pieces: Sequence[Piece],
        reply_to: str | None,
        edits: str | None = None,
    ) -> None:
        """Queue an answer inside the transaction that makes it; it takes the place of the shown message `edits`, or of

        the turn's placeholder.
        """
        mailbox.post(
            tx,
            session_key=session_key,
            turn_id=turn_id,
            inbox_id=inbox_id,
            kind=kind,
            pieces=pieces,
            reply_to=reply_to,
            run=self.run_id,
            now=self._now(),
            edits=edits if turn_id is None else mailbox.shown_placeholder(tx, turn_id),
        )

    def _notice(
        self,
        tx: Transaction,
        session_key: str,
        inbox_id: int | None,
        piece: Piece,
        *,
        edits: str | None = None,
        reply_to: str | None = None,
    ) -> None:
        mailbox.post(
            tx,
            session_key=session_key,
            turn_id=None,
            inbox_id=inbox_id,
            kind="notice",
            pieces=(piece,),
            reply_to=reply_to,
            run=self.run_id,
            now=self._now(),
            edits=edits,
        )
