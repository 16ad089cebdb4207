"""One ordered lane per session: what is said in one place is handled one after the other, places run side by side.

Invariants: items of a lane are handled in the order they were put in; a burst of one author is handed over as one
batch, never across an item that stands alone; a lane holds at most one of its group's slots and queues for the next
behind every other lane, so nobody is starved, and a group whose work hangs holds up no other; who has just spoken is
served before what has waited for long anyway, but never every time; a lane that is done is gone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Item(Protocol):
    """What a lane needs to know of what it carries."""

    @property
    def author(self) -> str:
        """Items of one author in a row may be merged."""

    @property
    def group(self) -> str:
        """What may use so many slots at a time."""

    @property
    def alone(self) -> bool:
        """Whether this one is never merged with others."""

    @property
    def late(self) -> bool:
        """Whether this one has waited long before it came here, so that others may go first."""

    @property
    def burst_seconds(self) -> float:
        """How long after this one to wait for more of the same author."""


T = TypeVar("T", bound=Item)


class LaneFull(Exception):
    """Too much waits in this session already."""


@dataclass(slots=True)
class _Lane(Generic[T]):
    items: deque[T] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Lanes(Generic[T]):
    """`handle` gets each batch; it must not raise. Of each group `concurrent` lanes work at a time."""

    def __init__(self, handle: Callable[[str, list[T]], Awaitable[None]], *, concurrent: int, limit: int) -> None:
        self._handle = handle
        self._concurrent = concurrent
        self._slots: dict[str, _Slots] = {}
        self._limit = limit
        self._lanes: dict[str, _Lane[T]] = {}

    def put(self, key: str, item: T, *, limited: bool = True) -> None:
        """Queue `item` in the lane `key`. Raises `LaneFull`, unless the item may not be refused any more."""
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
        """Put another item in the place of the first waiting one for which `change` gives one; False without such."""
        lane = self._lanes.get(key)
        for n, item in enumerate(lane.items if lane is not None else ()):
            changed = change(item)
            if changed is not None:
                assert lane is not None
                lane.items[n] = changed
                return True
        return False

    def take_out(self, key: str, which: Callable[[T], bool]) -> list[T]:
        """Remove those that wait in a lane and are meant; they are not handled any more."""
        lane = self._lanes.get(key)
        if lane is None:
            return []
        taken = [item for item in lane.items if which(item)]
        kept = [item for item in lane.items if not which(item)]
        lane.items.clear()
        lane.items.extend(kept)
        lane.arrived.set()
        return taken

    async def idle(self, key: str) -> None:
        """Wait until everything put into the lane so far, and since, is handled."""
        while (lane := self._lanes.get(key)) is not None:
            await lane.idle.wait()

    async def drain(self, *, seconds: float) -> bool:
        """Wait for all lanes, at most `seconds`, then end what is left; False when something was cut off."""
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
                slots = self._slots.setdefault(first.group, _Slots(self._concurrent))
                await slots.take(late=first.late)
                try:
                    if lane.items:  # they may have been taken out meanwhile
                        await self._handle(key, _next_batch(lane.items))
                finally:
                    slots.give()
        finally:
            if self._lanes.get(key) is lane:
                del self._lanes[key]
            lane.idle.set()

    async def _quiet(self, lane: _Lane[T]) -> None:
        """Wait until the author of the first item has stopped typing, or somebody else speaks."""
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


class _Slots:
    """So many may work at the same time; who waits is served in the order of coming, of two queues.

    Of every four slots that come free while both queues wait, one goes to those that are late: a backlog is worked
    off beside people who talk right now, without holding them up.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._queues: dict[bool, deque[asyncio.Future[None]]] = {False: deque(), True: deque()}
        self._given = 0

    async def take(self, *, late: bool) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queues[late].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()
            else:
                self._queues[late].remove(turn)
            raise

    def give(self) -> None:
        prompt, late = self._queues[False], self._queues[True]
        self._given += 1
        queue = late if late and (not prompt or self._given % 4 == 0) else prompt
        if queue:
            queue.popleft().set_result(None)
        else:
            self._free += 1
