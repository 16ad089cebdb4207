"""A limited number of slots, handed to waiting tasks in an order that the slots' owner decides.

Invariants: a slot comes free however its holder ends, even one that is cancelled at the moment it is served. Tasks that
wait under one key are served in the order of coming.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Slots(Generic[K]):
    """A semaphore of `count` slots with priorities.

    `choose` gets the keys that wait, the one served longest ago first, and returns the next; None keeps the slot free
    because none of them may have it now.
    """

    def __init__(self, count: int, choose: Callable[[Collection[K]], K | None]) -> None:
        #: The number of slots that each key holds.
        self.held: Counter[K] = Counter()
        self._free = count
        self._choose = choose
        self._waiting: dict[K, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, key: K) -> AsyncIterator[None]:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(key, turn)
            else:
                self._give_back(key)
            raise
        try:
            yield
        finally:
            self._give_back(key)

    def _leave(self, key: K, turn: asyncio.Future[None]) -> None:
        self._waiting[key].remove(turn)
        if not self._waiting[key]:
            del self._waiting[key]

    def _give_back(self, key: K) -> None:
        self._free += 1
        self.held -= Counter([key])
        if key in self._waiting:
            self._waiting[key] = self._waiting.pop(key)
        self._serve()

    def _serve(self) -> None:
        while self._free and self._waiting and (key := self._choose(self._waiting)) is not None:
            queue = self._waiting.pop(key)
            queue.popleft().set_result(None)
            if queue:
                self._waiting[key] = queue
            self.held[key] += 1
            self._free -= 1
