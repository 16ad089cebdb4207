"""The unanswered rows of the inbox: which of them this process has in hand, and what becomes of those that fail.

Invariants: a row in hand is not begun a second time. Messages for different agents are never merged, because the agents
may have different stores, nor those of different interrupted turns. A command, a press or a code stands alone. A row
that can't be handled holds up neither those behind it nor the start of the bot: it is tried again with growing waits,
and in the end its person is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import structlog

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
T = TypeVar("T")

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

    async def _apart(self, store: Store, row: InboxRow, doing: str, handle: Callable[[], Awaitable[T]]) -> T | None:
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
