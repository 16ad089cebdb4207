"""Marks the message that is being answered, on platforms that have reactions, until its turn is over.

Invariants: no answer waits for a mark or its removal. A turn that an earlier process began loses the mark that it may
have, however it ends. A removal that the platform puts off is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from channels.base import Channel, ChannelError, Place
from gateway.pipeline.course import Course

log = structlog.get_logger(__name__)

#: Seconds before a message is marked: quicker answers need none.
_MARKED_AFTER: Final = 0.3
#: Seconds for which a mark outlasts its turn, so that the request for the answer goes first.
_OUTLASTS: Final = 0.5
#: The tries to remove a mark, and the seconds between them if the platform names none.
_TRIES: Final = 3
_WAIT: Final = 5.0


class Marks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def shown(self, course: Course) -> Iterator[None]:
        channel, inbound = course.channel, course.heard[-1].inbound
        place = course.heard[0].inbound.place
        is_message = not (inbound.ticket or inbound.task is not None or inbound.pressed is not None)
        if channel is None or not (channel.capabilities.marks and is_message and channel.reachable(place)):
            yield
            return
        over = asyncio.Event()
        again = course.turn.attempts > 1
        task = asyncio.create_task(_mark(channel, place, inbound.message_id, over, again=again))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        try:
            yield
        except asyncio.CancelledError:  # the process that takes the turn up removes the mark
            task.cancel()
            raise
        finally:
            over.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("mark.broken", error=repr(error))


async def _mark(channel: Channel, place: Place, message_id: str, over: asyncio.Event, *, again: bool) -> None:
    try:
        await asyncio.wait_for(over.wait(), _MARKED_AFTER)
        may_be_there = again
    except TimeoutError:
        # Where the bot may not react, or the message is gone, the answer comes without a mark.
        error = await _put(channel, place, message_id, on=True)
        may_be_there = again or error is None or not error.certain
    if not may_be_there:
        return
    await over.wait()
    await asyncio.sleep(_OUTLASTS)
    for _ in range(_TRIES):
        error = await _put(channel, place, message_id, on=False)
        if error is None or not error.retryable:
            return
        await asyncio.sleep(_WAIT if error.retry_after is None else error.retry_after)


async def _put(channel: Channel, place: Place, message_id: str, *, on: bool) -> ChannelError | None:
    try:
        await channel.mark(place, message_id, on=on)
    except ChannelError as exc:
        return exc
    return None
