"""Returns freed memory to the system from time to time, so that a process that runs for months stays small."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from memory.child import trim

#: Seconds between two times.
_EVERY: Final = 600.0


async def trimming(sleep: Callable[[float], Awaitable[None]]) -> NoReturn:
    """Returns freed memory every ten minutes, for ever."""
    while True:
        await sleep(_EVERY)
        await asyncio.to_thread(trim)
