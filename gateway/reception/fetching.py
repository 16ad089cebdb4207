"""The attachments of messages, which are fetched while these wait in their lanes.

Invariants: attachments are fetched at once and beside the lane, because platforms keep them for a while only: never
twice at a time, nor again once they are kept. A turn waits for the attachments of its messages. A fetch that a stop
cuts off is made anew at the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from channels.base import Channel
from gateway.reading.attachments import Attachments
from gateway.reception.backlog import Waiting

log = structlog.get_logger(__name__)


class Fetching:
    def __init__(self, channels: Mapping[str, Channel], attachments: Attachments) -> None:
        self._channels = channels
        self._attachments = attachments
        self._looking: dict[int, asyncio.Task[None]] = {}

    def begin(self, waiting: Waiting) -> None:
        """Begins to fetch the attachments of a message, unless that is under way."""
        heard, mailbox = waiting.heard, waiting.store.memory.mailbox
        channel = self._channels.get(heard.inbound.channel)
        if channel is None or heard.inbox_id in self._looking or waiting.alone:
            return  # a command has no use for attachments

        async def look() -> None:
            if not await mailbox.attached(heard.inbox_id):
                understood = await self._attachments.understand(channel, heard.inbound)
                await mailbox.attach(heard.inbox_id, understood)

        def looked(task: asyncio.Task[None]) -> None:
            del self._looking[heard.inbox_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                # The turn that waits for it reports the error; the message may have been taken back meanwhile.
                log.info("attachment.not_looked_at", row=heard.inbox_id, error=type(error).__name__)

        task = self._looking[heard.inbox_id] = asyncio.create_task(look())
        task.add_done_callback(looked)

    async def done(self, batch: Sequence[Waiting]) -> None:
        """Waits until the attachments of these messages are understood. Raises `StorageError` if they can't be kept."""
        for waiting in batch:
            if waiting.heard.inbound.attachments:
                self.begin(waiting)  # once more if the store failed before
        looking = [task for waiting in batch if (task := self._looking.get(waiting.heard.inbox_id)) is not None]
        if not looking:
            return
        channel = self._channels.get(batch[0].heard.inbound.channel)
        if channel is not None:
            await channel.typing(batch[0].heard.inbound.place)
        await asyncio.gather(*(asyncio.shield(task) for task in looking))

    async def drain(self) -> None:
        """Stops fetching: nothing more is begun, and the next start fetches again."""
        for looking in self._looking.values():
            looking.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)
