"""From outbox to platform: each session's rows in order, each shown once, or visibly in doubt.

Invariants: a row is marked `sending` before its send and `sent` after; a row whose fate is unknown is repeated only
where the channel marks it as earlier; rows for a place that this run can't reach wait; one session's trouble holds
up no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from channels.base import Channel, ChannelError, Outbound, Place
from memory.errors import StorageError
from memory.service import Parcel, Service

log = structlog.get_logger(__name__)

#: Waits between tries of a row that surely was not shown, in seconds; after the last it is dead.
_WAITS = (1.0, 5.0, 30.0, 120.0, 600.0)


class Delivery:
    """Sends one store's outbox. Call `wake` after each commit that posted something."""

    def __init__(
        self,
        memory: Service,
        channels: Mapping[str, Channel],
    ) -> None:
        self._memory = memory
        self._channels = channels
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._woken: set[str] = set()

    async def take_up(self) -> None:
        """At start: send what an earlier run left, and what may not have arrived."""
        for session_key in await self._memory.sessions_with_mail():
            channel = self._channel(Place.from_session_key(session_key))
            if channel is not None and channel.capabilities.resend == "mark":
                await self._memory.repost_unknown(session_key)
            self.wake(session_key)

    def wake(self, session_key: str) -> None:
        """There may be rows to send for this session."""
        self._woken.add(session_key)
        if session_key not in self._senders:
            self._senders[session_key] = asyncio.create_task(self._send_all(session_key))

    async def settled(self, session_key: str) -> None:
        """Wait until the session's rows are sent, or put off to a later try."""
        while (sender := self._senders.get(session_key)) is not None:
            await asyncio.shield(sender)

    async def drain(self, *, seconds: float) -> None:
        """Give what is being sent `seconds` to arrive; the rest waits in the outbox."""
        senders = list(self._senders.values())
        if senders:
            _, late = await asyncio.wait(senders, timeout=seconds)
            for sender in late:
                sender.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _channel(self, place: Place) -> Channel | None:
        channel = self._channels.get(place.channel)
        return channel if channel is not None and channel.reachable(place) else None

    async def _send_all(self, session_key: str) -> None:
        place = Place.from_session_key(session_key)
        channel = self._channel(place)
        try:
            while channel is not None and session_key in self._woken:
                self._woken.discard(session_key)
                parcel = await self._memory.take_parcel(session_key)
                while parcel is not None:
                    parcel = await self._send(channel, place, parcel)
        except StorageError as exc:
            log.error("send.unsaved", session=session_key, error=str(exc), kept="for the next start")
        finally:
            self._woken.discard(session_key)
            del self._senders[session_key]

    async def _send(self, channel: Channel, place: Place, parcel: Parcel) -> Parcel | None:
        """Send one row; returns the session's next one to send now."""
        outbound = Outbound(
            id=parcel.id,
            place=place,
            text=parcel.text,
            turn=parcel.turn_id,
            reply_to=parcel.reply_to,
            earlier_run=self._memory.of_earlier_run(parcel),
        )
        try:
            reference = await channel.send(outbound)
        except ChannelError as exc:
            log.warning("send.failed", row=parcel.id, code=exc.code, error=str(exc), attempts=parcel.attempts)
            return await self._not_sent(parcel, exc)
        except Exception:  # the channel's boundary: a fault in an adapter ends one row, not the others
            log.exception("send.broken", row=parcel.id)
            await self._memory.parcel_not_sent(parcel, "unknown", "internal")
            return await self._memory.take_parcel(parcel.session_key)
        return await self._memory.parcel_sent(parcel, reference)

    async def _not_sent(self, parcel: Parcel, error: ChannelError) -> Parcel | None:
        if error.certain and error.retryable and parcel.attempts <= len(_WAITS):
            # The rows behind this one wait with it, so that order is kept.
            await self._memory.parcel_not_sent(parcel, "pending", error.code)
            delay = error.retry_after or _WAITS[parcel.attempts - 1]
            asyncio.get_running_loop().call_later(delay, self.wake, parcel.session_key)
            return None
        await self._memory.parcel_not_sent(parcel, "dead" if error.certain else "unknown", error.code)
        return await self._memory.take_parcel(parcel.session_key)
