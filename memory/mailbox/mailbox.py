"""The mailbox API of the gateway: takes messages in, and moves outbox rows from state to state as they are sent.

Invariants: Each method is one transaction. A row of unknown fate is repeated only if the caller says that is safe.
Otherwise a notice with a button is queued in the transaction that marks the row offered, so the person is asked exactly
once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from memory.context import asks, in_read, in_write, reads, writes, writes_at
from memory.mailbox import inbox, outbox
from memory.mailbox.inbox import InboxRow
from memory.mailbox.outbox import CHANNEL, UNSENT, DeadLetter, OutboxRow, Outgoing, Part
from memory.store import attachments, chats, history, questions, word_columns
from memory.store.database import Database, Reader, Transaction, of_lane

#: Milliseconds for which a message that came too late waits for a person to ask for its answer.
_HELD_MS: Final = 7 * 24 * 3_600_000
#: Milliseconds after which an answer is tried again where writing was refused.
_MUTED_MS: Final = 600_000

P = ParamSpec("P")
T = TypeVar("T")
Place = TypeVar("Place", bound=str | OutboxRow)


def begin(tx: Transaction, *, alone: bool, now: int) -> None:
    """Settles what an earlier run left half done: what it was sending if nobody else is there, and what nobody wants.

    Held messages whose answer nobody requested in time end. The words of messages that failed before that time are
    dropped, and the files of unknown fate that nobody asked to see again.
    """
    if alone:
        tx.run(f"update outbox set state = 'unknown' where {UNSENT} and state = 'sending'")
    before = now - _HELD_MS
    held = tx.ids(
        f"select id from inbox where {inbox.OPEN} and state = 'pending' and held = 1 and received_at < ?", (before,)
    )
    inbox.end(tx, held, error="stale", now=now)
    failed = tx.ids(
        "select id from inbox where state = 'failed' and payload <> '' and coalesce(finished_at, 0) < ?", (before,)
    )
    inbox.blank(tx, failed)
    tx.run(
        f"update outbox set state = 'dead', {outbox.NO_FILE} where {UNSENT} and state = 'unknown' and offered = 1"
        " and file is not null and created_at < ?",
        (before,),
    )


def _in_lane(
    act: Callable[Concatenate[Mailbox, Transaction, Place, P], T],
) -> Callable[Concatenate[Mailbox, Place, P], Coroutine[Any, Any, T]]:
    """Returns a method that is one write within a session: that of its key, or of an outbox row."""

    @wraps(act)
    async def method(self: Mailbox, place: Place, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = of_lane(place if isinstance(place, str) else place.session_key)
        return await self._database.write(lambda tx: act(self, tx, place, *args, **kwargs), keys=[key])

    return method


class Mailbox:
    """One store's inbox and outbox. `run_id` names this run of the process."""

    def __init__(self, database: Database, *, now: Callable[[], int], run_id: str) -> None:
        self._database = database
        self._now = now
        self.run_id = run_id
        self._noted: set[str] = set()

    told_before = reads(inbox.told_before)
    has_taken = reads(inbox.has_taken)
    unanswered = asks(inbox.unanswered)
    sessions_with_mail = asks(outbox.sessions_with_mail)
    in_doubt = asks(outbox.in_doubt)
    attach = writes_at(attachments.keep)
    attach_late = writes_at(attachments.keep_late)
    attached = reads(attachments.of_inbox)
    shown_placeholder = reads(outbox.shown_placeholder)
    muted = asks(chats.muted)
    give_up = writes(outbox.give_up)

    # In ---------------------------------------------------------------------------------------------------------

    async def receive(
        self, *, platform: str, bot_id: str, update_key: str, session_key: str, payload: str, held: Part | None = None
    ) -> int | None:
        """Commits an update and returns its inbox id, or None if it was already taken.

        With `held` the update is answered only after `release`. For the first held update of a session in this run of
        the process, the notice `held` is queued.
        """

        def act(tx: Transaction) -> int | None:
            inbox_id = inbox.receive(
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

        inbox_id = await self._database.write(act, keys=[of_lane(session_key)], single=held is None)
        if inbox_id is not None and held is not None:
            self._noted.add(session_key)
        return inbox_id

    async def hold(self, row: InboxRow, notice: Part) -> None:
        """Holds a message left over from an earlier run until `release`. Queues `notice` once per session."""

        def act(tx: Transaction) -> None:
            tx.run("update inbox set held = 1 where id = ? and state = 'pending'", (row.id,))
            if row.session_key not in self._noted:
                self._notice(tx, row.session_key, row.id, notice)

        await self._database.write(act)
        self._noted.add(row.session_key)

    async def release(self, session_key: str, *, inbox_id: int, gone: Part) -> list[InboxRow]:
        """Releases the session's held messages and returns them. Ends the inbox row that asked for it.

        If there are none any more, the person gets `gone`.
        """

        def act(tx: Transaction) -> list[InboxRow]:
            inbox.expect_open(tx, inbox_id)
            rows = [row for row in inbox.waiting(tx, session_key) if row.held]
            for row in rows:
                tx.run("update inbox set held = 0 where id = ?", (row.id,))
            if not rows:
                self._notice(tx, session_key, inbox_id, gone)
            inbox.end(tx, [inbox_id], error=None, now=self._now())
            return [replace(row, held=False) for row in rows]

        rows = await self._database.write(act)
        self._noted.discard(session_key)  # a message that comes too late from here on gets its own notice
        return rows

    @in_write
    def reword(
        self, tx: Transaction, session_key: str, change: Callable[[str], str | None], *, drops: bool = True
    ) -> InboxRow | None:
        """Changes the payload of one message that waits in the session, and returns the changed row.

        `drops` says whether words go from it, of which no trace may stay.

        `change` returns the new payload for the right message and None for any other. Returns None if no message was
        the right one.
        """
        for row in inbox.waiting(tx, session_key):
            if (payload := change(row.payload)) is not None:
                tx.run("update inbox set payload = ? where id = ? and state = 'pending'", (payload, row.id))
                if drops:
                    word_columns.note_reworded(tx, now=self._now())
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
            edits = outbox.shown_placeholder(tx, turn_id)
        self._notice(tx, session_key, inbox_ids[0], notice, edits=edits)
        inbox.end(tx, inbox_ids, error=error, now=now, keep_words=keep_words)

    async def withdraw(self, session_key: str, deleted: Callable[[str], bool]) -> list[int]:
        """Ends the waiting messages of the session whose payload was `deleted`. Returns the ids of their rows.

        Also drops the words of deleted messages that failed before they reached history and are still kept.
        """

        def meant(reader: Reader) -> list[int]:
            rows = (*inbox.waiting(reader, session_key), *inbox.kept(reader, session_key))
            return [row.id for row in rows if deleted(row.payload)]

        def act(tx: Transaction) -> list[int]:
            gone = meant(tx)
            inbox.end(tx, gone, error=None, now=self._now())
            inbox.blank(tx, gone)
            return gone

        # Most deleted messages were never said to the bot, so they must not cost a write.
        return await self._database.write(act) if await self._database.read(meant) else []

    @in_write
    def dismiss(self, tx: Transaction, inbox_id: int) -> None:
        inbox.end(tx, [inbox_id], error=None, now=self._now())

    @in_write
    def dead_letter(self, tx: Transaction, inbox_id: int, *, error: str) -> None:
        """Sets aside a row that can't be read at all. Its payload stays for the operator."""
        tx.run(
            "update inbox set state = 'dead', error = ?, finished_at = ? where id = ?", (error, self._now(), inbox_id)
        )

    @in_read
    def answer_before(self, reader: Reader, platform: str, bot_id: str, update_key: str) -> str:
        """Returns the answer to an update as history holds it; "" if there is none."""
        return (
            reader.text(
                "select m.text from inbox i join messages m on m.turn_id = i.turn_id"
                " where i.platform = ? and i.bot_id = ? and i.update_key = ?"
                " and m.role = 'assistant' and m.text <> '' and m.erased_at is null order by m.id desc limit 1",
                (platform, bot_id, update_key),
            )
            or ""
        )

    # Out --------------------------------------------------------------------------------------------------------

    @_in_lane
    def take(self, tx: Transaction, session_key: str) -> OutboxRow | None:
        return outbox.take(tx, self._now(), session_key)

    async def sent(self, row: OutboxRow, platform_ref: str) -> OutboxRow | None:
        """Records that a row was shown, and takes the session's next one, if there is one now."""
        return await self.take(row.session_key) if await self.was_sent(row, platform_ref) else None

    async def was_sent(self, row: OutboxRow, platform_ref: str) -> bool:
        return await self._database.write(
            lambda tx: outbox.sent(tx, self._now(), row, platform_ref),
            keys=[of_lane(row.session_key)],
            single=not row.beside,
        )

    @_in_lane
    def not_sent(self, tx: Transaction, row: OutboxRow, state: str, error: str, *, not_before: int = 0) -> None:
        outbox.not_sent(tx, row.id, state, error, not_before=not_before)

    @in_write
    def say_anew(self, tx: Transaction, outbox_id: int) -> None:
        """Queues a row as a message of its own, because the message it was to replace is gone."""
        tx.run("update outbox set state = 'pending', edits = null, not_before = 0 where id = ?", (outbox_id,))

    @in_write
    def set_aside(self, tx: Transaction, session_key: str, error: str) -> int | None:
        """Gives up the session's next row, or the one being sent, without reading it. Returns its id, or None."""
        row_id = tx.id(
            f"select min(id) from outbox where {UNSENT} and session_key = ? and state in ('pending', 'sending')",
            (session_key,),
        )
        if row_id is not None:
            outbox.not_sent(tx, row_id, "dead", error)
        return row_id

    @in_write
    def fail_and_notify(self, tx: Transaction, row: OutboxRow, error: str, notice: Part) -> None:
        """Gives up a row and tells the person with `notice`.

        A row that is itself a notice brings no further notice, because that would never end.
        """
        outbox.not_sent(tx, row.id, "dead", error)
        if row.kind == "message":
            self._notice(tx, row.session_key, None, notice, reply_to=_asked_by(tx, row))

    @in_write
    def offer(self, tx: Transaction, row: OutboxRow, notice: Part) -> None:
        """Asks the person with `notice` whether to show a row of unknown fate again.

        Nobody is asked about a placeholder, because its answer comes in any case.
        """
        if row.kind == "placeholder":
            outbox.not_sent(tx, row.id, "dead", "orphan")
        else:
            tx.run("update outbox set state = 'unknown', offered = 1 where id = ?", (row.id,))
            self._notice(tx, row.session_key, None, notice, reply_to=row.reply_to or _asked_by(tx, row))

    @in_write
    def show_again(self, tx: Transaction, session_key: str, outbox_id: int, *, inbox_id: int, gone: Part) -> None:
        """Queues a row of unknown fate again at a person's request. If its fate is settled, the person gets `gone`."""
        inbox.expect_open(tx, inbox_id)
        is_open = tx.has(
            # No longer offered: if its fate becomes unknown once more, the person is asked anew.
            "update outbox set state = 'pending', offered = 0, not_before = 0, created_at = ?"
            " where id = ? and session_key = ? and state = 'unknown' returning id",
            (self._now(), outbox_id, session_key),
        )
        if not is_open:
            self._notice(tx, session_key, inbox_id, gone)
        inbox.end(tx, [inbox_id], error=None, now=self._now())

    @_in_lane
    def place_holder(
        self, tx: Transaction, session_key: str, turn_id: int, text: str, reply_to: str | None
    ) -> OutboxRow | None:
        """Adds a row for the message that the turn's answer will replace, marked as being sent: the caller does it now.

        Returns None as long as an earlier message waits to be shown: the answer would stand above it.
        """
        return tx.first(
            "insert into outbox (session_key, turn_id, kind, chunk, text, reply_to, state, run, attempts, created_at)"
            " select ?, ?, 'placeholder', 0, ?, ?, 'sending', ?, 1, ? where not exists (select 1 from outbox"
            f" where {UNSENT} and session_key = ? and state <> 'unknown' and kind <> 'placeholder' and edits is null)"
            f" returning {outbox.COLUMNS}",
            (session_key, turn_id, text, reply_to, self.run_id, self._now(), session_key),
            outbox.row_of,
        )

    @in_read
    def lost_placeholder(self, reader: Reader, turn_id: int) -> OutboxRow | None:
        """Returns the turn's placeholder if it is unknown whether it was shown, otherwise None."""
        return reader.first(
            f"select {outbox.COLUMNS} from outbox where turn_id = ? and kind = 'placeholder'"
            " and (state = 'unknown' or error = 'orphan') order by id desc limit 1",
            (turn_id,),
            outbox.row_of,
        )

    @in_read
    def due(self, reader: Reader, session_key: str) -> int | None:
        """Returns the time from which the session's next row may be sent, in milliseconds UTC, or None without one."""
        return reader.id(
            "select case when created_at > ?1 then 0 else not_before end as not_before from outbox"
            f" where {UNSENT} and session_key = ?2 and state = 'pending' order by id limit 1",
            (self._now(), session_key),
        )

    @in_read
    def dead(self, reader: Reader, channel: str, *, limit: int) -> list[DeadLetter]:
        """Returns a channel's outbox rows that were given up or whose fate is unknown, newest first.

        `channel` is named as in session keys.
        """
        rows = reader.all(
            "select id, session_key, state, error, created_at from outbox"
            f" where {outbox.GIVEN_UP} and {CHANNEL} = ? order by id desc limit ?",
            (channel, limit),
        )
        return [DeadLetter(**dict(row)) for row in rows]

    @in_read
    def oldest(self, reader: Reader, channels: Collection[str]) -> tuple[int | None, int | None]:
        """Returns the times (milliseconds UTC) since which these channels' oldest open inbox and outbox rows wait.

        Held and offered rows wait for a person and don't count. Neither do places where the platform demands a pause.
        Channels are named as in session keys.
        """
        theirs = f"{CHANNEL} in ({', '.join('?' for _ in channels)})"
        inbound = reader.id(
            f"select min(received_at) from inbox where {inbox.OPEN} and held = 0 and {theirs}", tuple(channels)
        )
        outbound = reader.id(
            f"select min(created_at) from outbox where {UNSENT} and offered = 0"
            " and not exists (select 1 from outbox first where first.session_key = outbox.session_key"
            " and first.state = 'pending' and first.not_before > ?)"
            f" and {theirs}",
            (self._now(), *channels),
        )
        return inbound, outbound

    # Places -----------------------------------------------------------------------------------------------------

    @in_write
    def presence(self, tx: Transaction, platform: str, channel: str, chat: str, *, present: bool) -> None:
        """Records whether a channel's bot is in a chat. Rows still to be shown in a chat that it left become dead.

        `channel` is named as in session keys. Only this channel is affected, because another bot may still be there.
        """
        left_at = None if present else self._now()
        keys = chats.present(tx, platform=platform, channel=channel, reference=chat, left_at=left_at)
        for key in () if present else keys:
            outbox.give_up(tx, key, "blocked")

    async def may_write(self, session: chats.Session) -> bool:
        """Returns whether to answer in a session. Where writing was refused, that is tried once in ten minutes."""
        now = self._now()
        if session.muted_at is None:
            return True
        if 0 <= now - session.muted_at < _MUTED_MS:
            return False
        await self._database.write(lambda tx: chats.mute(tx, [session.key], now=now))
        return True

    async def mute(
        self, keys: Sequence[str], error: str, *, platform: str, admins: Sequence[str], notice: Callable[[str], Part]
    ) -> str | None:
        """Notes that nothing may be written in sessions of one channel, and drops the rows that wait there.

        Reminders that come only once are tried again with the next answer that is.

        If that is new, queues `notice`, made of the chat's name, for the admin who was here last. Returns its session.
        """

        def act(tx: Transaction) -> str | None:
            now = self._now()
            for key in keys:
                held = outbox.hold_reminders(tx, key, error, made_after=now - _HELD_MS, until=now + _MUTED_MS)
                outbox.give_up(tx, key, error, but=held)
            name = chats.mute(tx, keys, now=now)
            channel = keys[0].partition(":")[0] if keys else ""
            told = chats.private_key(tx, platform=platform, channel=channel, users=admins)
            if name is None or told is None:
                return None
            self._notice(tx, told, None, notice(name))
            return told

        return await self._database.write(act)

    async def unmute(self, keys: Collection[str]) -> None:
        """Notes that something was shown in these sessions."""
        await self._database.write(lambda tx: chats.unmute(tx, list(keys)))

    async def try_again(self, keys: Collection[str]) -> None:
        """Notes that writing may be allowed in muted sessions. They are muted anew without a notice if it is not."""

        def act(tx: Transaction) -> None:
            chats.try_again(tx, list(keys))
            for key in keys:
                outbox.end_wait(tx, key)

        await self._database.write(act)

    @in_read
    def sessions_in(self, reader: Reader, platform: str, channel: str, chat: str) -> list[str]:
        return chats.sessions_in(reader, platform=platform, channel=channel, reference=chat)

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
        known = chats.move_chat(tx, platform=platform, reference=chat, new_reference=new_chat, now=self._now())
        renamed = {key: rename(key) for key in {*known, *keys}}
        for key, new_key in renamed.items():
            chats.rename_session(tx, key, new_key)
            tx.run(f"update outbox set session_key = ? where session_key = ? and {UNSENT}", (new_key, key))
            tx.run(
                "update inbox set session_key = ?, payload = json_set(payload, '$.chat', ?)"
                f" where session_key = ? and {inbox.OPEN}",
                (new_key, new_chat, key),
            )
        return renamed

    def post(self, tx: Transaction, message: Outgoing) -> None:
        outbox.post(tx, message, run=self.run_id, now=self._now())

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
        self.post(
            tx,
            Outgoing(
                session_key=session_key, pieces=(piece,), kind="notice", inbox_id=inbox_id, reply_to=reply_to,
                edits=edits,
            ),
        )  # fmt: skip


def _asked_by(reader: Reader, row: OutboxRow) -> str | None:
    return reader.text(
        "select platform_ref from messages where turn_id = ? and role = 'user' order by id limit 1", (row.turn_id,)
    )
