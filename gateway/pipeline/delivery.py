"""Delivery from outbox to platform: each session's rows in order, each shown once or visibly in doubt.

Invariants: an outbox row is marked `sending` before its send and `sent` after. A row that surely was not shown is
tried again, at the moment the platform asked for, until it is too old. A row whose fate is unknown is repeated only
where that shows nothing twice (an edit, a platform that recognises its messages) or where the repeat is marked as
earlier; otherwise the person is asked with a button. A row that can't even be read or recorded is given up. Rows for a
place that this run can't reach wait. Trouble in one session holds up no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial

import structlog

from agents.spans import WorkTally, span
from channels.base import Blocked, Button, Channel, ChannelError, EditGone, File, Moved, Muted, Outbound, Place
from gateway.wording.texts import Texts, written_in
from languages import Language
from memory.errors import meets_everybody
from memory.loops import reason_of
from memory.mailbox.outbox import OutboxRow, Part
from memory.service import Service

log = structlog.get_logger(__name__)

#: Seconds between tries of a row that surely was not shown, if the platform names no wait; the last value repeats.
_WAITS = (1.0, 5.0, 30.0, 120.0, 600.0)
#: Faults in a row, each after a wait twice as long, after which the row that a session meets them at is given up.
_FAULTS = 5
#: Milliseconds for which a row that could not be shown is tried.
_LIFETIME_MS = 6 * 3_600_000
#: Seconds after which a session that another process holds is asked for again.
_YIELD_SECONDS = 0.1
#: Prefix of the data of the button under an offer, before the row's id.
AGAIN = "again:"
#: Prefix of the data of a button that runs a command, as if the person who presses it had typed that command.
RUN = "run:"


def shows(channel: Channel | None, file: File) -> bool:
    """Returns whether `channel` can show people this file; `pieces` takes any, so ask this first."""
    return channel is not None and 0 < len(file.data) <= channel.capabilities.file_bytes


def pieces(
    channel: Channel | None,
    text: str,
    *,
    markdown: bool = False,
    buttons: Sequence[Button] = (),
    files: Sequence[File] = (),
) -> tuple[Part, ...]:
    """Returns `text` as the rows it takes, with `buttons` under the last; a row without words follows for each file."""
    sent = tuple(Part(text="", file_name=file.name, file=file.data) for file in files)
    if channel is None:
        return (Part(text=text), *sent)
    chunks = channel.chunks(text, markdown=markdown)
    pressed = tuple((button.label, button.data) for button in buttons) if channel.capabilities.buttons else ()
    *first, last = chunks
    return (
        *(Part(text=chunk.text, markup=chunk.markup) for chunk in first),
        Part(text=last.text, markup=last.markup, buttons=pressed),
        *sent,
    )


class Delivery:
    """Sends one store's outbox. Call `wake` after each commit that posted something."""

    def __init__(
        self,
        memory: Service,
        channels: Mapping[str, Channel],
        *,
        language: Language,
        now: Callable[[], int],
        admins: Callable[[str], Sequence[str]] = lambda _channel: (),
        retry_seconds: float = 30.0,
    ) -> None:
        """`language` is the language of notices if the row itself tells none; `now` gives milliseconds UTC.

        `admins` returns the user ids of a channel's admins. `retry_seconds` is the wait after the store has failed.
        """
        self._mailbox, self._share = memory.mailbox, memory.share
        self._channels = channels
        self._language = language
        self._now = now
        self._admins = admins
        self._retry_seconds = retry_seconds
        self.tally = WorkTally()
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._woken: set[str] = set()
        self._alarms: dict[str, asyncio.TimerHandle] = {}
        # The outcomes of rows, to be recorded once the store can be written again.
        self._unrecorded: dict[str, Callable[[], Awaitable[object]]] = {}
        # Faults in a row at the rows of a session, which are no trouble of the whole store.
        self._faults: dict[str, int] = {}
        self._moved: dict[str, str] = {}
        self._settling = asyncio.Lock()
        self._closing = False

    async def take_up(self, session_keys: Collection[str] | None = None) -> None:
        """Sends rows that an earlier run or another process left, and handles those that may not have arrived."""
        for session_key in await self._mailbox.sessions_with_mail():
            if session_key in session_keys if session_keys is not None else self._share.holds(session_key):
                await self._settle_doubts(session_key)
                self.wake(session_key)

    def wake(self, session_key: str) -> None:
        session_key = self._moved.get(session_key, session_key)
        if self._closing:
            return
        self._woken.add(session_key)
        if session_key not in self._senders:
            self._senders[session_key] = asyncio.create_task(self._send_all(session_key))

    def is_sending(self, session_key: str) -> bool:
        return session_key in self._senders

    def let_go(self, session_key: str) -> None:
        """Leaves the rows of this session that wait for their next try to another process."""
        alarm = self._alarms.pop(session_key, None)
        if alarm is not None:
            alarm.cancel()

    async def settled(self, session_key: str) -> None:
        """Waits until the session's rows are sent, or put off to a later try."""
        while (sender := self._senders.get(session_key)) is not None:
            await asyncio.shield(sender)

    async def drain(self, *, seconds: float) -> None:
        """Gives the sends under way `seconds` to arrive; all other rows wait in the outbox."""
        self._closing = True
        for alarm in self._alarms.values():
            alarm.cancel()
        senders = list(self._senders.values())
        if senders:
            _, late = await asyncio.wait(senders, timeout=seconds)
            for sender in late:
                sender.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def move(self, channel: Channel, chat: str, new_chat: str, *places: Place) -> None:
        """Moves open rows of a chat of `channel`, and of `places` in it, to the chat's new id."""

        def rename(key: str) -> str:
            place = Place.from_session_key(key)
            if place.channel != channel.id or place.chat != chat:
                return key
            return Place(channel=place.channel, chat=new_chat, thread=place.thread).session_key

        keys = [place.session_key for place in places]
        for old, new in (await self._mailbox.move(channel.platform, chat, new_chat, rename, keys)).items():
            if new != old:
                self._moved[old] = new
            self.wake(new)

    async def rights(
        self, channel: Channel, chat: str, *, write: bool, threads: Collection[str | None] | None = None
    ) -> None:
        """Goes by what the bot may do in a chat, or only in `threads` of it, from now on."""
        named = Place(channel=channel.id, chat=chat).session_key.partition(":")[0]
        if write:
            places = map(Place.from_session_key, await self._mailbox.muted())
            keys = [
                place.session_key
                for place in places
                if (place.channel, place.chat) == (channel.id, chat) and (threads is None or place.thread in threads)
            ]
            if keys:
                await self._mailbox.try_again(keys)
            for key in keys:
                self.wake(key)
        elif keys := await self._mailbox.sessions_in(channel.platform, named, chat):
            await self._mute(channel, keys, Muted.code, Place(channel=channel.id, chat=chat))

    async def _mute(self, channel: Channel, keys: Sequence[str], code: str, place: Place) -> None:
        """Notes that nothing may be written in these sessions, which an admin is told once."""
        log.warning("send.muted", session=keys[0], again_in=600)
        texts = Texts(self._language)
        server, thread = channel.names(place)
        thread = thread or ("" if place.thread is None else texts("muted.thread"))

        def notice(chat: str) -> Part:
            return pieces(channel, texts("muted.told", chat=" › ".join(filter(None, (server, chat, thread)))))[0]

        told = await self._mailbox.mute(
            keys,
            code,
            platform=channel.platform,
            admins=self._admins(channel.id),
            notice=notice,
        )
        if told is not None:
            self.wake(told)

    def _channel(self, place: Place) -> Channel | None:
        channel = self._channels.get(place.channel)
        return channel if channel is not None and channel.reachable(place) else None

    async def _send_all(self, session_key: str) -> None:
        at_rows = False
        try:
            place = Place.from_session_key(session_key)
            channel = self._channel(place)
            if channel is None:
                await self._share.tell("show", session_key)
            elif not await self._held(session_key, channel):
                return
            at_rows = True
            while channel is not None and session_key in self._woken:
                if (record := self._unrecorded.get(session_key)) is not None:
                    await record()
                    del self._unrecorded[session_key]
                self._woken.discard(session_key)
                row = await self._mailbox.take(session_key)
                all_sent, muted = row is not None, row is not None and row.muted
                while row is not None:
                    row, shown = await self._send(channel, place, row)
                    all_sent = all_sent and shown
                self._faults.pop(session_key, None)
                if all_sent and muted:
                    await self._mailbox.unmute([session_key])
                if not all_sent:
                    await self._wait_for_due(session_key)
        # A fault about one session's rows must not leave them unsent until the next start.
        except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
            wait = await self._wait_after(session_key, of_row=at_rows and not meets_everybody(exc))
            log.error("send.unsaved", session=session_key, error=reason_of(exc), again_in=wait)
            self._set_alarm(session_key, wait)
        finally:
            self._woken.discard(session_key)
            del self._senders[session_key]

    async def _wait_after(self, session_key: str, *, of_row: bool) -> float:
        """Returns the seconds to wait after a failure. After several that are a row's own fault, gives that row up."""
        if not of_row:
            return self._retry_seconds
        faults = self._faults[session_key] = self._faults.get(session_key, 0) + 1
        if faults >= _FAULTS:
            try:
                given_up = await self._mailbox.set_aside(session_key, "broken")
            except Exception as exc:  # noqa: BLE001 - as in the caller
                log.error("send.kept", session=session_key, error=reason_of(exc))
            else:
                log.error("send.dead", row=given_up, session=session_key, code="broken", kept="see /dead")
                self._unrecorded.pop(session_key, None)
                del self._faults[session_key]
                return 0.0
        return self._retry_seconds * 2.0 ** (min(faults, _FAULTS) - 1)

    async def _held(self, session_key: str, channel: Channel) -> bool:
        """Holds the session, so that no other process shows its rows, too. Returns False if another holds it."""
        asks = channel.capabilities.comes_and_goes
        held = await self._share.hold(session_key, asks=asks)
        if held == "elsewhere" and asks:
            self._set_alarm(session_key, _YIELD_SECONDS)
        if held == "taken":
            await self._settle_doubts(session_key)
        return held != "elsewhere"

    async def _settle_doubts(self, session_key: str) -> None:
        channel = self._channel(Place.from_session_key(session_key))
        if channel is None:
            return
        # Two that find the same row would both ask about it.
        async with self._settling:
            for row in await self._mailbox.in_doubt(session_key):
                if channel.capabilities.resend == "mark":
                    await self._mailbox.not_sent(row, "pending", "unknown")
                else:
                    await self._in_doubt(channel, row)

    async def _wait_for_due(self, session_key: str) -> None:
        due = await self._mailbox.due(session_key)
        if due is not None:
            self._set_alarm(session_key, max(0.0, (due - self._now()) / 1000))

    def _set_alarm(self, session_key: str, seconds: float) -> None:
        if self._closing:
            return
        old = self._alarms.pop(session_key, None)
        if old is not None:
            old.cancel()

        def ring() -> None:
            del self._alarms[session_key]
            self.wake(session_key)

        self._alarms[session_key] = asyncio.get_running_loop().call_later(seconds, ring)

    async def _send(self, channel: Channel, place: Place, row: OutboxRow) -> tuple[OutboxRow | None, bool]:
        """Sends one row; returns the session's next row to send now, and whether this row was shown."""
        outbound = Outbound(
            id=row.id,
            place=place,
            text=row.text,
            markup=row.markup,
            buttons=tuple(Button(label=label, data=data) for label, data in row.buttons),
            turn=row.turn_id,
            reply_to=row.reply_to,
            edits=row.edits,
            earlier_run=row.run != self._mailbox.run_id,
            ticket=row.ticket,
            chunk=row.chunk,
            made_at=row.created_at,
            retried=row.may_be_shown,
            file=None if row.file is None else File(name=row.file_name, data=row.file),
        )
        try:
            with span("delivery", channel=channel.id):
                reference = await channel.send(outbound)
        except ChannelError as exc:
            log.warning("send.failed", row=row.id, code=exc.code, error=str(exc), attempts=row.attempts)
            self.tally.counts[channel.id, exc.code] += 1
            await self._recorded(row, partial(self._not_sent, channel, place, row, exc))
        except Exception:  # the channel's boundary: a fault in an adapter ends one row, not the others
            log.exception("send.broken", row=row.id)
            self.tally.counts[channel.id, "broken"] += 1
            await self._recorded(row, partial(self._in_doubt, channel, row))
        else:
            self.tally.counts[channel.id, "sent"] += 1
            try:
                return await self._mailbox.sent(row, reference), True
            except Exception:  # whatever it is, the row was shown
                self._unrecorded[row.session_key] = partial(self._mailbox.was_sent, row, reference)
                raise
        return await self._mailbox.take(row.session_key), False

    async def _recorded(self, row: OutboxRow, record: Callable[[], Awaitable[object]]) -> None:
        """Records the outcome of a row; if that fails, before anything else is sent in this session."""
        try:
            await record()
        except Exception:
            self._unrecorded[row.session_key] = record
            raise

    async def _not_sent(self, channel: Channel, place: Place, row: OutboxRow, error: ChannelError) -> None:
        """Decides about a row whose send failed. Rows behind a row that is tried again wait with it."""
        match error:
            case EditGone() if row.edits is not None:
                await self._mailbox.say_anew(row.id)
            case Moved() if error.chat != place.chat:
                await self._mailbox.not_sent(row, "pending", error.code)
                await self.move(channel, place.chat, error.chat, place)
            case Blocked():
                whose = row.session_key.partition(":")[0]
                await self._mailbox.presence(channel.platform, whose, place.chat, present=False)
                await self._mailbox.give_up(row.session_key, error.code)
            case Muted():
                await self._mute(channel, [row.session_key], error.code, place)
            case _ if not error.certain:
                await self._in_doubt(channel, row)
            case _ if error.retryable and self._now() - row.created_at < _LIFETIME_MS:
                await self._mailbox.not_sent(row, "pending", error.code, not_before=self._next_try(row, error))
            case _:
                self.tally.counts[channel.id, "given_up"] += 1
                log.error("send.dead", row=row.id, session=row.session_key, code=error.code, kept="see /dead")
                await self._mailbox.fail_and_notify(row, error.code, self._said("dead.told", row))

    def _next_try(self, row: OutboxRow, error: ChannelError | None) -> int:
        wait = error.retry_after if error is not None else None
        if wait is None:
            wait = _WAITS[min(row.attempts, len(_WAITS)) - 1]
        return self._now() + int(wait * 1000)

    async def _in_doubt(self, channel: Channel, row: OutboxRow) -> None:
        """Handles a row that may have been shown: repeats it if that does no harm, else asks the person."""
        asks = row.kind == "notice" and bool(row.buttons)
        young = self._now() - row.created_at < _LIFETIME_MS
        if young and (asks or _changes_nothing(row) or _is_known_again(channel, row)):
            # Not at once: the cause of the failure may need a moment to pass. A notice that asks may be read twice.
            await self._mailbox.not_sent(row, "pending", "unknown", not_before=self._next_try(row, None))
        elif asks:
            await self._mailbox.not_sent(row, "dead", "unknown")
        elif channel.capabilities.resend == "mark":
            await self._mailbox.not_sent(row, "unknown", "unknown")  # the next start shows it, marked
        else:
            button = Button(label=self._texts(row)("again.button"), data=f"{AGAIN}{row.id}")
            await self._mailbox.offer(row, self._said("again.ask", row, button))

    def _said(self, key: str, row: OutboxRow, *buttons: Button) -> Part:
        return Part(text=self._texts(row)(key), buttons=tuple((button.label, button.data) for button in buttons))

    def _texts(self, row: OutboxRow) -> Texts:
        return Texts(written_in(row.text, self._language))


def _changes_nothing(row: OutboxRow) -> bool:
    """Returns whether showing this row once more has no effect: it puts the same words into the same message."""
    return row.edits is not None or bool(row.in_place)


def _is_known_again(channel: Channel, row: OutboxRow) -> bool:
    """Returns whether the channel would find a message that this row has already become.

    This is False for a placeholder, whose turn may by then have shown another, and for any message after the first
    under a ticket, because platforms have no ids for that.
    """
    return channel.capabilities.resend == "same" and row.kind != "placeholder" and not row.ticket
