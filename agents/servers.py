"""The model servers of the process: which of them fail at the moment, and which calls give way.

Invariants: a person's call never waits for a place, so a call that hangs holds up no other. A background call begins
only if a place is free, gives way as soon as a person's call needs it, and begins anew afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Place:
    live: int = 0
    background: list[asyncio.Task[Any]] = field(default_factory=list)
    evicted: set[asyncio.Task[Any]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def taken(self) -> int:
        return self.live + len(self.background)

    def announce(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Servers:
    """The servers by address. `now` gives seconds on a clock that never goes back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._places: dict[str, _Place] = {}
        self._failing_until: dict[str, float] = {}

    def failed(self, key: str, seconds: float) -> None:
        self._failing_until[key] = max(self._now() + seconds, self._failing_until.get(key, 0.0))

    def answered(self, *keys: str) -> None:
        for key in keys:
            self._failing_until.pop(key, None)

    def failing(self, *keys: str) -> bool:
        now = self._now()
        return any(self._failing_until.get(key, now) > now for key in keys)

    @asynccontextmanager
    async def live(self, address: str, slots: int | None) -> AsyncIterator[None]:
        """Holds a place for a person's call; a background call gives way to it if the server has too few places."""
        place = self._places.setdefault(address, _Place())
        place.live += 1
        while slots is not None and place.taken > slots and place.background:
            task = place.background.pop()
            place.evicted.add(task)
            task.cancel()
        try:
            yield
        finally:
            place.live -= 1
            place.announce()

    async def in_background(self, address: str, slots: int | None, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of `call`, made when the server has a free place, and again if it had to give way."""
        place = self._places.setdefault(address, _Place())
        while True:
            while slots is not None and place.taken >= slots:
                await place.changed.wait()
            task = asyncio.ensure_future(call())
            place.background.append(task)
            try:
                return await task
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if task not in place.evicted or (current is not None and current.cancelling()):
                    raise
            finally:
                if task in place.background:
                    place.background.remove(task)
                place.evicted.discard(task)
                place.announce()
