"""Sends texts of which nothing is stored: to people who may not speak, and where the store has failed.

Invariant: a failure to send ends here; such a text may get lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import structlog

from channels.base import Channel, ChannelError, Inbound, Outbound
from gateway.pipeline.course import Heard

log = structlog.get_logger(__name__)


class Unstored:
    """`now` returns milliseconds UTC."""

    def __init__(self, channels: Mapping[str, Channel], now: Callable[[], int]) -> None:
        self._channels = channels
        self._now = now

    async def say(self, inbound: Inbound, text: str) -> None:
        channel = self._channels.get(inbound.channel)
        if channel is not None:
            await _shown(inbound, self._sent(channel, inbound, text))

    async def say_of(self, heard: Heard, text: str) -> None:
        """Tells of a message whose row stays open, where its person can be reached now."""
        inbound = heard.inbound
        channel = self._channels.get(inbound.channel)
        if channel is None or not channel.reachable(inbound.place):
            return
        if channel.capabilities.stream == "append":
            await _shown(inbound, channel.append(inbound.place, -heard.inbox_id, text + "\n"))
        else:
            await self.say(inbound, text)

    async def _sent(self, channel: Channel, inbound: Inbound, text: str) -> None:
        for n, chunk in enumerate(channel.chunks(text, markdown=False)):
            await channel.send(
                Outbound(
                    id=0,
                    place=inbound.place,
                    text=chunk.text,
                    markup=chunk.markup,
                    ticket=inbound.ticket,
                    chunk=n,
                    made_at=self._now(),
                )
            )


async def _shown(inbound: Inbound, showing: Awaitable[None]) -> None:
    try:
        await showing
    except ChannelError as exc:
        log.info("unstored.untold", channel=inbound.channel, code=exc.code)
    except Exception:  # the channel's boundary, as in the sending of outbox rows
        log.exception("unstored.broken", channel=inbound.channel)
