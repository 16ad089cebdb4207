"""Returns freed memory to the system from time to time, so that a process that runs for months stays small."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from memory.child import trim
from memory.loops import Loops

#: Seconds between two times.
_EVERY: Final = 600.0


async def trimming(loops: Loops, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Returns freed memory every ten minutes. Never ends."""
    effect = "The process keeps memory that it doesn't need."
    await loops.run("trimming", _trimmed, effect=effect, sleep=sleep)


async def _trimmed() -> float:
    await asyncio.to_thread(trim)
    return _EVERY
