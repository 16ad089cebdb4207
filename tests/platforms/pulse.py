"""Waiting for anything to change on a platform."""

from __future__ import annotations

import asyncio


class Pulse:
    """Wakes those who wait for anything to change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
