"""The mailbox API of the gateway: takes messages in, and moves outbox rows from state to state as they are sent.

Invariants: Each method is one transaction. A row of unknown fate is repeated only if the caller says that is safe.
Otherwise a notice with a button is queued in the transaction that marks the row offered, so the person is asked exactly
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory.context import asks, in_write, reads, reads_at, writes, writes_at
from memory.store import attachments, chats, history, mailbox, questions, replicas
from memory.store.database import Database, Reader, Transaction, of_lane
from memory.store.mailbox import InboxRow, OutboxRow, Outgoing, Part
from memory.store.peers import Peers


class Mailbox:
    """One store's inbox and outbox. `run_id` names this run of the process."""

    def __init__(self, database: Database, *, now: Callable[[], int], run_id: str) -> None:
        self._database = database
        self._now = now
        self.run_id = run_id
        self._noted: set[str] = set()

    @property
    def peers(self) -> Peers:
        """The processes that answer from this store."""
        return self._database.peers

    told_before = reads(mailbox.told_before)
    answer_before = reads(mailbox.answer_before)
    unanswered = asks(mailbox.unanswered)
    attach = writes_at(attachments.keep)
    attached = reads(attachments.of_inbox)
    dead_letter = writes_at(mailbox.dead_letter)
    sessions_with_mail = asks(mailbox.sessions_with_mail)
    in_doubt = asks(mailbox.in_doubt)
    due = reads_at(mailbox.due)
    say_anew = writes(mailbox.say_anew)
    shown_placeholder = reads(mailbox.shown_placeholder)
    lost_placeholder = reads(mailbox.lost_placeholder)
    dead = reads(mailbox.dead)
    give_up = writes(mailbox.give_up)
    oldest = reads_at(mailbox.oldest)

    # In ---------------------------------------------------------------------------------------------------------

    async def receive(
        self,
        *,
        platform: str,
        bot_id: str,
        update_key: str,
        session_key: str,
        payload: str,
        held: Part | None = None,
    ) -> int | None:
        """Commits an update and returns its inbox id, or None if it was already taken.

        With `held` the update is answered only after `release`. For the first held update of a session in this run of
        the process, the notice `held` is queued.
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

        inbox_id = await self._database.write(act, keys=[of_lane(session_key)])
        if inbox_id is not None and held is not None:
            self._noted.add(session_key)
        return inbox_id

    async def hold(self, row: InboxRow, notice: Part) -> None:
        """Holds a message left over from an earlier run until `release`. Queues `notice` once per session."""

        def act(tx: Transaction) -> None:
            mailbox.hold(tx, row.id)
            if row.session_key not in self._noted:
                self._notice(tx, row.session_key, row.id, notice)

        await self._database.write(act)
        self._noted.add(row.session_key)

    async def release(self, session_key: str, *, inbox_id: int, gone: Part) -> list[InboxRow]:
        """Releases the session's held messages and returns them. Ends the inbox row that asked for it.

        If there are none any more, the person gets `gone`.
        """

        def act(tx: Transaction) -> list[InboxRow]:
            rows = mailbox.release(tx, session_key)
            if not rows:
                self._notice(tx, session_key, inbox_id, gone)
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())
            return rows

        rows = await self._database.write(act)
        self._noted.discard(session_key)  # a message that comes too late from here on gets its own notice
        return rows

    @in_write
    def reword(self, tx: Transaction, session_key: str, change: Callable[[str], str | None]) -> InboxRow | None:
        """Changes the payload of one message that waits in the session, and returns the changed row.

        `change` returns the new payload for the right message and None for any other. Returns None if no message was
        the right one.
        """
        for row in mailbox.waiting(tx, session_key):
            if (payload := change(row.payload)) is not None:
                mailbox.reword(tx, row.id, payload)
                return replace(row, payload=payload)
        return None

    @in_write
    def refuse(
        self,
        tx: Transaction,
        inbox_ids: Sequence[int],
        session_key: str,
        notice: Part,
        *,
        error: str,
        keep_words: bool = False,
    ) -> None:
        """Ends open inbox rows without an answer, and tells the person why, once."""
        now = self._now()
        edits = None
        for turn_id in history.abandon_turns(tx, inbox_ids, error=error, now=now):
            questions.withdraw(tx, turn_id)
            edits = mailbox.shown_placeholder(tx, turn_id)
        self._notice(tx, session_key, inbox_ids[0], notice, edits=edits)
        mailbox.answered(tx, inbox_ids, error=error, now=now, keep_words=keep_words)

    async def withdraw(self, session_key: str, deleted: Callable[[str], bool]) -> list[int]:
        """Ends the waiting messages of the session whose payload was `deleted`. Returns the ids of their rows.

        Also drops the words of deleted messages that failed before and are still kept.
        """

        def found(reader: Reader) -> list[int]:
            rows = (*mailbox.waiting(reader, session_key), *mailbox.kept(reader, session_key))
            return [row.id for row in rows if deleted(row.payload)]

        def act(tx: Transaction) -> list[int]:
            gone = found(tx)
            mailbox.answered(tx, gone, error=None, now=self._now())
            mailbox.blank(tx, gone)
            return gone

        # Most deleted messages were never said to the bot, so they must not cost a write.
        return await self._database.write(act) if await self._database.read(found) else []

    async def dismiss(self, inbox_id: int) -> None:
        """Ends an inbox row that needs no answer."""
        await self._database.write(lambda tx: mailbox.answered(tx, [inbox_id], error=None, now=self._now()))

    # Out --------------------------------------------------------------------------------------------------------

    async def take(self, session_key: str) -> OutboxRow | None:
        """Marks the session's next row as being sent, and returns it; None if there is none now."""
        return await self._database.write(
            lambda tx: mailbox.take(tx, self._now(), session_key), keys=[of_lane(session_key)]
        )

    async def sent(self, row: OutboxRow, platform_ref: str) -> OutboxRow | None:
        """Records that a row was shown, and takes the session's next row."""

        def act(tx: Transaction) -> OutboxRow | None:
            goes_on = mailbox.sent(tx, self._now(), row.id, platform_ref)
            return mailbox.take(tx, self._now(), row.session_key) if goes_on else None

        return await self._database.write(act, keys=[of_lane(row.session_key)])

    async def was_sent(self, row: OutboxRow, platform_ref: str) -> None:
        """Records that a row was shown."""

        def act(tx: Transaction) -> None:
            mailbox.sent(tx, self._now(), row.id, platform_ref)

        await self._database.write(act, keys=[of_lane(row.session_key)])

    async def not_sent(self, row: OutboxRow, state: str, error: str, *, not_before: int = 0) -> None:
        """Sets the state of a row whose send failed, as `mailbox.not_sent` does."""

        def act(tx: Transaction) -> None:
            mailbox.not_sent(tx, row.id, state, error, not_before=not_before)

        await self._database.write(act, keys=[of_lane(row.session_key)])

    @in_write
    def set_aside(self, tx: Transaction, session_key: str, error: str) -> int | None:
        """Gives up the session's next row without reading it. Returns its id, or None without one."""
        first = mailbox.first(tx, session_key)
        if first is not None:
            mailbox.not_sent(tx, first, "dead", error)
        return first

    @in_write
    def fail_and_notify(self, tx: Transaction, row: OutboxRow, error: str, notice: Part) -> None:
        """Gives up a row and tells the person with `notice`.

        A row that is itself a notice brings no further notice, because that would never end.
        """
        mailbox.not_sent(tx, row.id, "dead", error)
        if row.kind == "message":
            self._notice(tx, row.session_key, None, notice, reply_to=mailbox.asked_by(tx, row))

    @in_write
    def offer(self, tx: Transaction, row: OutboxRow, notice: Part) -> None:
        """Asks the person with `notice` whether to show a row of unknown fate again.

        Nobody is asked about a placeholder, because its answer comes in any case.
        """
        if row.kind == "placeholder":
            mailbox.not_sent(tx, row.id, "dead", "orphan")
        else:
            mailbox.offered(tx, row.id)
            reply_to = row.reply_to or mailbox.asked_by(tx, row)
            self._notice(tx, row.session_key, None, notice, reply_to=reply_to)

    @in_write
    def show_again(self, tx: Transaction, session_key: str, outbox_id: int, *, inbox_id: int, gone: Part) -> None:
        """Queues a row of unknown fate again at a person's request. If its fate is settled, the person gets `gone`."""
        row = mailbox.by_id(tx, session_key, outbox_id)
        if row is None or not mailbox.repost(tx, outbox_id, now=self._now()):
            self._notice(tx, session_key, inbox_id, gone)
        mailbox.answered(tx, [inbox_id], error=None, now=self._now())

    async def place_holder(self, session_key: str, turn_id: int, text: str, reply_to: str | None) -> OutboxRow | None:
        """Adds a row for the message that the turn's answer will replace. The caller sends it at once.

        Returns None as long as an earlier message waits to be shown.
        """

        def act(tx: Transaction) -> OutboxRow | None:
            return mailbox.place_holder(
                tx,
                session_key=session_key,
                turn_id=turn_id,
                text=text,
                reply_to=reply_to,
                run=self.run_id,
                now=self._now(),
            )

        return await self._database.write(act, keys=[of_lane(session_key)])

    # Places -----------------------------------------------------------------------------------------------------

    @in_write
    def presence(self, tx: Transaction, platform: str, channel: str, chat: str, *, present: bool) -> None:
        """Records whether a channel's bot is in a chat. Rows still to be shown in a chat that it left become dead.

        `channel` is named as in session keys. Only this channel is affected, because another bot may still be there.
        """
        left_at = None if present else self._now()
        keys = chats.present(tx, platform=platform, channel=channel, reference=chat, left_at=left_at)
        for key in () if present else keys:
            mailbox.give_up(tx, key, "blocked")

    @in_write
    def move(
        self,
        tx: Transaction,
        platform: str,
        chat: str,
        new_chat: str,
        rename: Callable[[str], str],
        keys: Sequence[str] = (),
    ) -> dict[str, str]:
        """Moves the sessions of a chat, with everything open in them, to the chat's new id.

        Returns the new session keys by old key. `rename` returns the new session key for an old one. `keys` are further
        session keys known to be the chat's.
        """
        found = chats.move_chat(tx, platform=platform, reference=chat, new_reference=new_chat, now=self._now())
        for key in {*found, *keys}:
            chats.rename_session(tx, key, rename(key))
            replicas.drop(tx, key)
            mailbox.rename(tx, key, rename(key), chat=new_chat)
        return {key: rename(key) for key in {*found, *keys}}

    def post(self, tx: Transaction, message: Outgoing) -> None:
        """Queues a message inside the caller's transaction. A turn's answer replaces the turn's placeholder."""
        mailbox.post(tx, message, run=self.run_id, now=self._now())

    def _notice(
        self,
        tx: Transaction,
        session_key: str,
        inbox_id: int | None,
        piece: Part,
        *,
        edits: str | None = None,
        reply_to: str | None = None,
    ) -> None:
        notice = Outgoing(
            session_key=session_key, pieces=(piece,), kind="notice", inbox_id=inbox_id, reply_to=reply_to, edits=edits
        )
        mailbox.post(tx, notice, run=self.run_id, now=self._now())
