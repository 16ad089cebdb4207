"""Ends the making of an answer when its time is up or its person says stop.

Invariant: a stop reaches an answer wherever it is by then: at once, or where its next `deadline` begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Stops:
    """The answers under way, by session key. Each has `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines: dict[str, asyncio.Timeout] = {}
        self._under_way: set[str] = set()
        self._stopped: set[str] = set()

    @contextmanager
    def under_way(self, session_key: str) -> Iterator[None]:
        self._under_way.add(session_key)
        try:
            yield
        finally:
            self.over(session_key)

    def is_under_way(self, session_key: str) -> bool:
        return session_key in self._under_way

    def over(self, session_key: str) -> None:
        """Notes that an answer is complete and only being kept, which can't be stopped."""
        self._under_way.discard(session_key)
        self._stopped.discard(session_key)

    def stop(self, session_key: str) -> bool:
        """Ends the answer that is being made in a session. Returns False if there is none."""
        if session_key not in self._under_way:
            return False
        self._stopped.add(session_key)
        deadline = self._deadlines.get(session_key)
        if deadline is not None and not deadline.expired():
            deadline.reschedule(asyncio.get_running_loop().time())
        return True

    def was_stopped(self, session_key: str) -> bool:
        """Returns whether the person stopped the session's turn. Reports each stop only once."""
        stopped = session_key in self._stopped
        self._stopped.discard(session_key)
        return stopped

    @asynccontextmanager
    async def deadline(self, session_key: str) -> AsyncIterator[None]:
        """Raises `TimeoutError` when the turn's time is up, its person says stop, or has said so before."""
        if session_key in self._stopped:
            raise TimeoutError
        async with asyncio.timeout(self._seconds) as deadline:
            self._deadlines[session_key] = deadline
            try:
                yield
            finally:
                del self._deadlines[session_key]
