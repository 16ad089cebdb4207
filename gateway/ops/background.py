"""Endless work that goes on beside a block, and its end. `memory.loops` keeps such work going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(works: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs endless work while the block runs, and then stops it wherever it is."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        await cancelled(tasks)


async def cancelled(tasks: Collection[asyncio.Task[None]]) -> None:
    """Stops tasks and waits for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
