"""Work that goes on in the background while the bot runs: its waits and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog

log = structlog.get_logger(__name__)


async def woken_or(event: asyncio.Event, late: Awaitable[None]) -> None:
    """Waits until an event is set, or `late` has ended."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(late)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


@asynccontextmanager
async def beside(works: Iterable[Coroutine[Any, Any, None]], event: str) -> AsyncIterator[None]:
    """Runs endless work while the block runs, and then stops it wherever it is.

    Work that ends by an error is logged as `event`: it is not done any more, and the operator must know.
    """
    tasks = [asyncio.create_task(work) for work in works]
    for task in tasks:
        task.add_done_callback(partial(_log_end, event))
    try:
        yield
    finally:
        await cancelled(tasks)


async def cancelled(tasks: Collection[asyncio.Task[None]]) -> None:
    """Stops tasks and waits for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _log_end(event: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical(event, exc_info=error)
