"""From outbox to platform: each session's rows in order, each shown once, or visibly in doubt.

Invariants: a row is marked `sending` before its send and `sent` after; what surely was not shown is tried again, at
the moment the platform asked for, until it is too old; a row whose fate is unknown is repeated only where that shows
nothing twice (an edit, a platform that knows its messages again) or is marked as earlier, and else the person is asked
with a button; rows for a place that this run can't reach wait; one session's trouble holds up no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from channels.base import (
    Blocked,
    Button,
    Channel,
    ChannelError,
    EditGone,
    File,
    Moved,
    Outbound,
    Place,
)
from gateway.phrases import Language
from gateway.texts import Texts, written_in
from memory.errors import StorageError
from memory.service import Mail, Parcel, Piece

log = structlog.get_logger(__name__)

#: Waits between tries of a row that surely was not shown, in seconds, where the platform names none; the last repeats.
_WAITS = (1.0, 5.0, 30.0, 120.0, 600.0)
#: So long a row that could not be shown is tried (DESIGN 8), in milliseconds.
_LIFETIME_MS = 6 * 3_600_000
#: What the button under an offer carries, before the row's id.
AGAIN = "again:"


def shows(channel: Channel | None, file: File) -> bool:
    """Whether `channel` can show people this file; `pieces` takes any, so ask first and say what can't be shown."""
    return channel is not None and 0 < len(file.data) <= channel.capabilities.file_bytes


def pieces(
    channel: Channel | None,
    text: str,
    *,
    markdown: bool = False,
    buttons: Sequence[Button] = (),
    files: Sequence[File] = (),
) -> tuple[Piece, ...]:
    """`text` as the rows it takes on `channel`, with `buttons` under the last where they can be pressed.

    Behind it comes a row for each of the `files`, without words of its own.
    """
    sent = tuple(Piece(text="", file_name=file.name, file=file.data) for file in files)
    if channel is None:
        return (Piece(text=text), *sent)
    chunks = channel.chunks(text, markdown=markdown)
    pressed = tuple((button.label, button.data) for button in buttons) if channel.capabilities.buttons else ()
    *first, last = chunks
    return (
        *(Piece(text=chunk.text, markup=chunk.markup) for chunk in first),
        Piece(text=last.text, markup=last.markup, buttons=pressed),
        *sent,
    )


class Delivery:
    """Sends one store's outbox. Call `wake` after each commit that posted something."""

    def __init__(
        self,
        mail: Mail,
        channels: Mapping[str, Channel],
        *,
        language: Language,
        now: Callable[[], int],
        retry_seconds: float = 30.0,
    ) -> None:
        """`language` is that of notices where the row itself tells none; `now` gives milliseconds UTC.

        `retry_seconds` is the wait after the store has failed.
        """
        self._mail = mail
        self._channels = channels
        self._language = language
        self._now = now
        self._retry_seconds = retry_seconds
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._woken: set[str] = set()
        self._alarms: dict[str, asyncio.TimerHandle] = {}
        # What became of a row while the store could not be written.
        self._unrecorded: dict[str, Callable[[], Awaitable[None]]] = {}
        self._moved: dict[str, str] = {}
        self._closing = False

    async def take_up(self) -> None:
        """At start: send what an earlier run left, and see to what may not have arrived."""
        for session_key in await self._mail.sessions_with_mail():
            channel = self._channel(Place.from_session_key(session_key))
            if channel is not None:
                for parcel in await self._mail.in_doubt(session_key):
                    if channel.capabilities.resend == "mark":
                        await self._mail.repeat(parcel)
                    else:
                        await self._in_doubt(channel, parcel)
            self.wake(session_key)

    def wake(self, session_key: str) -> None:
        """There may be rows to send for this session."""
        session_key = self._moved.get(session_key, session_key)
        if self._closing:
            return
        self._woken.add(session_key)
        if session_key not in self._senders:
            self._senders[session_key] = asyncio.create_task(self._send_all(session_key))

    async def settled(self, session_key: str) -> None:
        """Wait until the session's rows are sent, or put off to a later try."""
        while (sender := self._senders.get(session_key)) is not None:
            await asyncio.shield(sender)

    async def drain(self, *, seconds: float) -> None:
        """Give what is being sent `seconds` to arrive; the rest waits in the outbox."""
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
        """A chat of `channel` has another id: what is open there, and in `places` of it, goes on under the new one."""

        def rename(key: str) -> str:
            place = Place.from_session_key(key)
            if place.channel != channel.id or place.chat != chat:
                return key
            return Place(channel=place.channel, chat=new_chat, thread=place.thread).session_key

        keys = [place.session_key for place in places]
        for old, new in (await self._mail.move(channel.platform, chat, new_chat, rename, keys)).items():
            if new != old:
                self._moved[old] = new
            self.wake(new)

    def _channel(self, place: Place) -> Channel | None:
        channel = self._channels.get(place.channel)
        return channel if channel is not None and channel.reachable(place) else None

    async def _send_all(self, session_key: str) -> None:
        try:
            place = Place.from_session_key(session_key)
            channel = self._channel(place)
            while channel is not None and session_key in self._woken:
                if (record := self._unrecorded.get(session_key)) is not None:
                    await record()
                    del self._unrecorded[session_key]
                self._woken.discard(session_key)
                parcel = await self._mail.take(session_key)
                all_sent = parcel is not None
                while parcel is not None:
                    parcel, shown = await self._send(channel, place, parcel)
                    all_sent = all_sent and shown
                if not all_sent:
                    await self._wait_for_due(session_key)
        except StorageError as exc:
            log.error("send.unsaved", session=session_key, error=str(exc), again_in=self._retry_seconds)
            self._set_alarm(session_key, self._retry_seconds)
        finally:
            self._woken.discard(session_key)
            del self._senders[session_key]

    async def _wait_for_due(self, session_key: str) -> None:
        """Go on when the row that has to wait is due."""
        due = await self._mail.due(session_key)
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

    async def _send(self, channel: Channel, place: Place, parcel: Parcel) -> tuple[Parcel | None, bool]:
        """Send one row; returns the session's next one to send now, and whether this one was shown."""
        outbound = Outbound(
            id=parcel.id,
            place=place,
            text=parcel.text,
            markup=parcel.markup,
            buttons=tuple(Button(label=label, data=data) for label, data in parcel.buttons),
            turn=parcel.turn_id,
            reply_to=parcel.reply_to,
            edits=parcel.edits,
            earlier_run=parcel.run != self._mail.run_id,
            ticket=parcel.ticket,
            chunk=parcel.chunk,
            made_at=parcel.created_at,
            retried=parcel.may_be_shown,
            file=None if parcel.file is None else File(name=parcel.file_name, data=parcel.file),
        )
        try:
            reference = await channel.send(outbound)
        except ChannelError as exc:
            log.warning("send.failed", row=parcel.id, code=exc.code, error=str(exc), attempts=parcel.attempts)
            await self._recorded(parcel, partial(self._not_sent, channel, place, parcel, exc))
        except Exception:  # the channel's boundary: a fault in an adapter ends one row, not the others
            log.exception("send.broken", row=parcel.id)
            await self._recorded(parcel, partial(self._in_doubt, channel, parcel))
        else:
            try:
                return await self._mail.sent(parcel, reference), True
            except StorageError:
                self._unrecorded[parcel.session_key] = partial(self._mail.was_sent, parcel, reference)
                raise
        return await self._mail.take(parcel.session_key), False

    async def _recorded(self, parcel: Parcel, record: Callable[[], Awaitable[None]]) -> None:
        """Write down what became of a row; when the store can't be written, before anything else is sent here."""
        try:
            await record()
        except StorageError:
            self._unrecorded[parcel.session_key] = record
            raise

    async def _not_sent(self, channel: Channel, place: Place, parcel: Parcel, error: ChannelError) -> None:
        """Decide about a row whose send failed. Rows behind one that is tried again wait with it."""
        match error:
            case EditGone() if parcel.edits is not None:
                await self._mail.say_anew(parcel)
            case Moved() if error.chat != place.chat:
                await self._mail.not_sent(parcel, "pending", error.code)
                await self.move(channel, place.chat, error.chat, place)
            case Blocked():
                whose = parcel.session_key.partition(":")[0]
                await self._mail.presence(channel.platform, whose, place.chat, present=False)
                await self._mail.give_up(parcel.session_key, error.code)
            case _ if not error.certain:
                await self._in_doubt(channel, parcel)
            case _ if error.retryable and self._now() - parcel.created_at < _LIFETIME_MS:
                await self._mail.not_sent(parcel, "pending", error.code, not_before=self._next_try(parcel, error))
            case _:
                log.error("send.dead", row=parcel.id, session=parcel.session_key, code=error.code, kept="see /dead")
                await self._mail.lament(parcel, error.code, self._said("dead.told", parcel))

    def _next_try(self, parcel: Parcel, error: ChannelError | None) -> int:
        wait = error.retry_after if error is not None else None
        if wait is None:
            wait = _WAITS[min(parcel.attempts, len(_WAITS)) - 1]
        return self._now() + int(wait * 1000)

    async def _in_doubt(self, channel: Channel, parcel: Parcel) -> None:
        """A row may have been shown: repeat what does no harm, else ask the person."""
        asks = parcel.kind == "notice" and bool(parcel.buttons)
        young = self._now() - parcel.created_at < _LIFETIME_MS
        if young and (asks or _changes_nothing(parcel) or _is_known_again(channel, parcel)):
            # Not at once: what broke the first try may need a moment. A note that asks may well be read twice.
            await self._mail.repeat(parcel, not_before=self._next_try(parcel, None))
        elif asks:
            await self._mail.not_sent(parcel, "dead", "unknown")
        elif channel.capabilities.resend == "mark":
            await self._mail.not_sent(parcel, "unknown", "unknown")  # the next start shows it, marked
        else:
            button = Button(label=self._texts(parcel)("again.button"), data=f"{AGAIN}{parcel.id}")
            await self._mail.offer(parcel, self._said("again.ask", parcel, button))

    def _said(self, key: str, parcel: Parcel, *buttons: Button) -> Piece:
        return Piece(text=self._texts(parcel)(key), buttons=tuple((button.label, button.data) for button in buttons))

    def _texts(self, parcel: Parcel) -> Texts:
        return Texts(written_in(parcel.text, self._language))


def _changes_nothing(parcel: Parcel) -> bool:
    """Whether showing this row once more has no effect: it puts the same words into the same message."""
    return parcel.edits is not None or bool(parcel.in_place)


def _is_known_again(channel: Channel, parcel: Parcel) -> bool:
    """Whether the channel would find a message that this row has already become.

    Not of a placeholder, whose turn may by then have shown another one; nor of what follows the first message under a
    ticket, for platforms know no ids for that.
    """
    return channel.capabilities.resend == "same" and parcel.kind != "placeholder" and not parcel.ticket
