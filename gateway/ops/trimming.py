"""Returns freed memory to the system, which the C library otherwise keeps for as long as the process runs."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from typing import Final

#: Seconds between two times. Each takes some milliseconds.
_EVERY: Final = 600.0


async def trimming(sleep: Callable[[float], Awaitable[None]]) -> None:
    """Returns freed memory every ten minutes. Ends at once where the C library is not glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await sleep(_EVERY)
        await asyncio.to_thread(trim, 0)
