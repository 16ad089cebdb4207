"""Endless work that goes on beside a block, and its end. `memory.loops` keeps such work going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from memory.child import trim
from memory.loops import Loops, reason_of

log = structlog.get_logger(__name__)


@asynccontextmanager
async def beside(works: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs endless work while the block runs, and then stops it wherever it is."""
    tasks = [asyncio.create_task(work) for work in works]
    for task in tasks:
        task.add_done_callback(_log_death)
    try:
        yield
    finally:
        await cancelled(tasks)


def _log_death(task: asyncio.Task[None]) -> None:
    """Logs the error of work that `memory.loops` does not keep going, with its place and without people's words."""
    if not task.cancelled() and isinstance(error := task.exception(), Exception):
        log.error("background.died", task=getattr(task.get_coro(), "__qualname__", ""), error=reason_of(error))


async def cancelled(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


#: Seconds between two times.
_EVERY: Final = 600.0


async def trimming(loops: Loops, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Returns freed memory every ten minutes. Never ends."""
    effect = "The process keeps memory that it doesn't need."
    await loops.run("trimming", _trimmed, effect=effect, sleep=sleep)


async def _trimmed() -> float:
    await asyncio.to_thread(trim)
    return _EVERY
