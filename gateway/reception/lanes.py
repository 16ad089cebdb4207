"""Ordered lanes, one per session: messages of one place are handled one after the other, places run side by side.

Invariants: items of a lane are handled in the order they were put in. A burst of one author is handed over as one
batch, never across an item that stands alone. A lane holds at most one of its group's slots and queues for the next
behind every other lane, so nobody is starved, and a group whose work hangs holds up no other. Items of people who
have just spoken are served before items that have waited for long anyway, but not every time. A lane with no more
items is removed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import structlog

from channels.slots import Slots

log = structlog.get_logger(__name__)


class LaneItem(Protocol):
    @property
    def author(self) -> str:
        """The author: consecutive items of one author may be merged."""

    @property
    def group(self) -> str:
        """The group: it has a limited number of slots at a time."""

    @property
    def alone(self) -> bool:
        """True if this item is never merged with others."""

    @property
    def late(self) -> bool:
        """True if this item has waited long before it came here, so that others may go first."""

    @property
    def burst_seconds(self) -> float:
        """Seconds to wait after this item for more of the same author."""


T = TypeVar("T", bound=LaneItem)


class LaneFull(Exception):
    """Raised when too many items wait in this session already."""


@dataclass(slots=True)
class _Lane(Generic[T]):
    items: deque[T] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Lanes(Generic[T]):
    """The lanes. `handle` gets each batch and must not raise. At most `concurrent` lanes of a group work at a time."""

    def __init__(self, handle: Callable[[str, list[T]], Awaitable[None]], *, concurrent: int, limit: int) -> None:
        self._handle = handle
        self._concurrent = concurrent
        self._slots: dict[str, Slots[bool]] = {}
        self._limit = limit
        self._lanes: dict[str, _Lane[T]] = {}

    def put(self, key: str, item: T, *, limited: bool = True) -> None:
        """Queues `item` in the lane `key`. Raises `LaneFull`, unless the item may no longer be refused."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        if limited and len(lane.items) >= self._limit:
            raise LaneFull(key)
        lane.items.append(item)
        lane.arrived.set()
        if lane.task is None:
            lane.task = asyncio.create_task(self._run(key, lane))

    def replace(self, key: str, change: Callable[[T], T | None]) -> bool:
        """Replaces the first waiting item for which `change` returns another item; False if there is none."""
        lane = self._lanes.get(key)
        for n, item in enumerate(lane.items if lane is not None else ()):
            changed = change(item)
            if changed is not None:
                assert lane is not None
                lane.items[n] = changed
                return True
        return False

    def take_out(self, key: str, which: Callable[[T], bool]) -> list[T]:
        """Removes the waiting items of a lane for which `which` is true, unhandled, and returns them."""
        lane = self._lanes.get(key)
        if lane is None:
            return []
        taken = [item for item in lane.items if which(item)]
        kept = [item for item in lane.items if not which(item)]
        lane.items.clear()
        lane.items.extend(kept)
        lane.arrived.set()
        return taken

    def is_busy(self, key: str) -> bool:
        return key in self._lanes

    async def idle(self, key: str) -> None:
        """Waits until everything put into the lane so far, and since, is handled."""
        while (lane := self._lanes.get(key)) is not None:
            await lane.idle.wait()

    async def drain(self, *, seconds: float) -> bool:
        """Waits for all lanes, at most `seconds`, then cancels the rest; False when something was cut off."""
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if not tasks:
            return True
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return not late

    async def _run(self, key: str, lane: _Lane[T]) -> None:
        try:
            while lane.items:
                await self._quiet(lane)
                if not lane.items:
                    break
                first = lane.items[0]
                slots = self._slots.setdefault(first.group, Slots(self._concurrent, _OneInFour()))
                async with slots.slot(first.late):
                    if lane.items:  # the items may have been taken out meanwhile
                        await self._handled(key, _next_batch(lane.items))
        finally:
            if self._lanes.get(key) is lane:
                del self._lanes[key]
            lane.idle.set()

    async def _handled(self, key: str, batch: list[T]) -> None:
        try:
            await self._handle(key, batch)
        # A batch that fails even so must not end the lane: the messages behind it wait there.
        except Exception:
            log.exception("lane.broken", session=key)

    async def _quiet(self, lane: _Lane[T]) -> None:
        """Waits until the author of the first item has stopped typing, or another person speaks."""
        while lane.items and not lane.items[0].alone:
            last = lane.items[-1]
            if last.author != lane.items[0].author or last.alone:
                return
            lane.arrived.clear()
            try:
                await asyncio.wait_for(lane.arrived.wait(), last.burst_seconds)
            except TimeoutError:
                return


def _next_batch(items: deque[T]) -> list[T]:
    batch = [items.popleft()]
    while items and not batch[0].alone and not items[0].alone and items[0].author == batch[0].author:
        batch.append(items.popleft())
    return batch


class _OneInFour:
    """Chooses between lanes with prompt items (False) and with late ones (True).

    While both wait, one in four slots goes to the late. A backlog is thus worked off beside people who talk right now,
    without holding them up.
    """

    def __init__(self) -> None:
        self._contested = 0

    def __call__(self, waiting: Collection[bool]) -> bool:
        if len(waiting) == 1:
            return True in waiting
        self._contested += 1
        return self._contested % 4 == 0
