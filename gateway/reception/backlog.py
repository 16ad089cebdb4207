"""The unanswered rows of the inbox: those in hand wait in lanes, one per session, and those that fail are tried again.

Invariants: items of a lane are handled in the order they were put in. A burst of one author is handed over as one
batch, never across an item that stands alone: a command, a press or a code. Messages for different agents are never
merged, because the agents may have different stores, nor those of different interrupted turns. A lane holds at most
one of its group's slots and queues for the next behind every other lane, so nobody is starved, and a group whose work
hangs holds up no other. Items of people who have just spoken are served before items that have waited for long anyway,
but not every time. A row in hand is not begun a second time. A row that can't be handled holds up neither those behind
it nor the start of the bot: it is tried again with growing waits, and in the end its person is told.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

import structlog

from channels.base import Channel, ChannelError, Inbound, Outbound
from channels.slots import Slots
from gateway.commands import table
from gateway.pipeline.course import Heard
from gateway.pipeline.policy import code_in
from gateway.pipeline.store import Roster, Store
from gateway.wording.texts import Texts
from memory.errors import meets_everybody
from memory.loops import reason_of
from memory.mailbox.inbox import InboxRow
from memory.mailbox.outbox import Part

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


R = TypeVar("R")

#: The name under which unanswered rows that fail are reported, and the failures in a row after which one is refused.
_LOOP: Final = "inbox"
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message in its lane.

    `turn_id` is set if its turn was interrupted in an earlier run. `late` is true if other messages have waited less
    long for their answer.
    """

    heard: Heard
    agent: str
    store: Store
    burst_seconds: float
    late: bool
    turn_id: int | None = None

    @property
    def author(self) -> str:
        whose = self.heard.inbound.author_id if self.turn_id is None else f"turn {self.turn_id}"
        return f"{self.agent} {whose}"

    @property
    def group(self) -> str:
        return self.agent

    @property
    def alone(self) -> bool:
        inbound = self.heard.inbound
        if inbound.task is not None:
            return True
        return inbound.pressed is not None or table.given(inbound) is not None or code_in(inbound.text) is not None


class Backlog:
    """The rows of all stores: `set_aside` takes out those not to be answered now, `queue` queues the others."""

    def __init__(
        self,
        roster: Roster,
        *,
        set_aside: Callable[[Store, InboxRow], Awaitable[bool]],
        queue: Callable[[Store, InboxRow], None],
        retry_seconds: float,
    ) -> None:
        self._roster = roster
        self._set_aside = set_aside
        self._queue = queue
        self._retry_seconds = retry_seconds
        self._retries: set[asyncio.Task[None]] = set()
        # By store and row; and those that ended while others were looked for.
        self._in_hand: set[tuple[int, int]] = set()
        self._ended: set[tuple[int, int]] = set()
        self._looking = asyncio.Lock()
        self._closing = False

    def take(self, store: Store, inbox_id: int) -> bool:
        """Takes a row in hand. Returns False if it is already."""
        row = (id(store), inbox_id)
        if row in self._in_hand:
            return False
        self._in_hand.add(row)
        return True

    def put_down(self, store: Store, inbox_ids: Iterable[int], *, ended: bool = True) -> None:
        """Notes that this process no longer handles these rows, as they have `ended` or are another's."""
        rows = {(id(store), inbox_id) for inbox_id in inbox_ids}
        self._in_hand -= rows
        if ended and self._looking.locked():
            self._ended |= rows

    async def look(self, store: Store, session_key: str | None = None) -> None:
        """Queues the unanswered rows of sessions that this process holds, unless in hand. Raises `StorageError`."""
        async with self._looking:
            self._ended.clear()
            rows: list[InboxRow] = []
            for row in await store.memory.mailbox.unanswered(session_key):
                if store.memory.share.holds(row.session_key):
                    looking = partial(self._set_aside, store, row)
                    if await self._apart(store, row, "looked at", looking) is False:
                        rows.append(row)
            # All rows are queued at once: the messages of an interrupted turn must stay together.
            for row in rows:
                if not self._closing and (id(store), row.id) not in self._ended:
                    await self._apart(store, row, "queued", partial(self._queued, store, row))

    async def _queued(self, store: Store, row: InboxRow) -> None:
        # Nothing is awaited here: see `look`.
        self._queue(store, row)

    async def _apart(self, store: Store, row: InboxRow, doing: str, handle: Callable[[], Awaitable[R]]) -> R | None:
        """Handles one row. Raises the `StorageError` of a store that fails for everybody."""
        loops, unit = store.memory.loops, f"row {row.id}, to be {doing}"
        if loops.wait(_LOOP, unit):
            return None  # somebody looks again already
        done = await loops.alone(_LOOP, unit, handle)
        if (wait := loops.wait(_LOOP, unit)) and loops.failures_of(_LOOP, unit) >= _TRIES:
            await self.give_up(store, row.session_key, [row.id])
        elif wait:
            self.look_later(store, wait)
        return done

    async def give_up(self, store: Store, key: str, inbox_ids: Sequence[int]) -> None:
        """Ends rows that can't be handled, with words to their person that need nothing of the rows themselves."""
        mailbox = store.memory.mailbox
        notice = Part(text=Texts(self._roster.agents[self._roster.default].spec.language)("error.internal"))

        async def refused() -> None:
            await mailbox.refuse(inbox_ids, key, notice, error="internal", keep_words=True)
            store.delivery.wake(key)

        async def set_aside() -> None:
            for inbox_id in inbox_ids:
                await mailbox.dead_letter(inbox_id, error="internal")

        for ended in (refused, set_aside):
            try:
                await ended()
            except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
                log.error("inbox.kept", session=key, rows=list(inbox_ids), error=reason_of(exc))
                if meets_everybody(exc):
                    break
            else:
                log.error("inbox.given_up", session=key, rows=list(inbox_ids), by=ended.__name__)
                return
        self.look_later(store)

    def look_later(self, store: Store, seconds: float | None = None) -> None:
        if self._closing:
            return
        task = asyncio.create_task(self._again(store, self._retry_seconds if seconds is None else seconds))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _again(self, store: Store, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            seconds = self._retry_seconds
            try:
                await self.look(store)
            # Nothing else takes up the messages that wait for this.
            except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
                log.error("store.failing", error=reason_of(exc), again_in=seconds)
            else:
                return

    async def close(self) -> None:
        self._closing = True
        for retry in self._retries:
            retry.cancel()
        await asyncio.gather(*self._retries, return_exceptions=True)


class Unstored:
    def __init__(self, channels: Mapping[str, Channel], now: Callable[[], int]) -> None:
        self._channels = channels
        self._now = now

    async def say(self, inbound: Inbound, text: str) -> None:
        channel = self._channels.get(inbound.channel)
        if channel is not None:
            await _shown(inbound, self._sent(channel, inbound, text))

    async def say_of(self, heard: Heard, text: str) -> None:
        """Tells of a message whose row stays open, where its person can be reached now."""
        inbound = heard.inbound
        channel = self._channels.get(inbound.channel)
        if channel is None or not channel.reachable(inbound.place):
            return
        if channel.capabilities.stream == "append":
            await _shown(inbound, channel.append(inbound.place, -heard.inbox_id, text + "\n"))
        else:
            await self.say(inbound, text)

    async def _sent(self, channel: Channel, inbound: Inbound, text: str) -> None:
        for n, chunk in enumerate(channel.chunks(text, markdown=False)):
            await channel.send(
                Outbound(
                    id=0,
                    place=inbound.place,
                    text=chunk.text,
                    markup=chunk.markup,
                    ticket=inbound.ticket,
                    chunk=n,
                    made_at=self._now(),
                )
            )


async def _shown(inbound: Inbound, showing: Awaitable[None]) -> None:
    try:
        await showing
    except ChannelError as exc:
        log.info("unstored.untold", channel=inbound.channel, code=exc.code)
    except Exception:  # the channel's boundary, as in the sending of outbox rows
        log.exception("unstored.broken", channel=inbound.channel)
