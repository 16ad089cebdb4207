"""Bringing the manner of talking to somebody up to date in the background, soon after what it is made of has changed.

Invariants: whether there is anything to do is read from the rows, so it may be asked for at any time and as often as
one likes; a model is asked outside any transaction, and a directive and what it cost are one; where no answer can be
had the styles stand as they are; nobody waits for it, and what is cut off is done at night.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from memory import dates
from memory.errors import StorageError
from memory.learn import budget
from memory.learn.ask import Mind, ModelFailed, Told
from memory.store import people, usage
from memory.store.database import Database, Reader, Transaction
from memory.upkeep import manner
from memory.upkeep.job import Night, Step

log = structlog.get_logger(__name__)

#: Seconds a model gets for one answer.
_SECONDS = 90.0
#: How often it is tried where styles have changed while a model wrote.
_TRIES = 3


class Manners:
    """The background work on directives. `learns` says of an agent, by its id, whether it learns any manner."""

    def __init__(
        self,
        database: Database,
        *,
        learns: Callable[[int], bool],
        timezone_of: Callable[[int], str],
        mind_of: Callable[[int], Mind | None],
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._learns = learns
        self._timezone_of = timezone_of
        self._mind_of = mind_of
        self._now = now
        self._new_id = new_id
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: defaultdict[tuple[int, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    def soon(self, agent_id: int, owner_ids: Sequence[int]) -> None:
        """Something was told to an agent, or changed, for these owners: see to it with nobody waiting."""
        if not self._learns(agent_id):
            return
        task = asyncio.create_task(self._see_to(agent_id, tuple(owner_ids)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until all that was asked for is done."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """End what is under way; the night does it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _see_to(self, agent_id: int, owner_ids: Sequence[int]) -> None:
        for owner_id in owner_ids:
            try:
                async with self._locks[agent_id, owner_id]:
                    await self._refresh(agent_id, owner_id)
            except StorageError as exc:
                log.error("manner.unsaved", owner=owner_id, error=str(exc))

    async def _refresh(self, agent_id: int, owner_id: int) -> None:
        """Bring the directive of one owner and agent up to date. Raises `StorageError`."""
        for _ in range(_TRIES):
            mind = self._mind_of(agent_id)
            steps = await self._database.read(partial(self._steps, agent_id=agent_id, owner_id=owner_id, mind=mind))
            if not steps:
                return
            for step in steps:
                told = await self._asked(agent_id, step, mind)
                done = await self._database.write(partial(self._carry_out, agent_id=agent_id, step=step, told=told))
                if done:
                    log.info("manner.done", owner=owner_id, by="model" if told is not None else "rule")
                    return

    def _steps(self, reader: Reader, *, agent_id: int, owner_id: int, mind: Mind | None) -> Sequence[Step]:
        timezone, now = self._timezone_of(agent_id), self._now()
        night = Night(
            agent_id=agent_id,
            day=dates.local_date(now, timezone).isoformat(),
            timezone=timezone,
            now=now,
            new_id=self._new_id,
            model=mind is not None,
        )
        return manner.steps(reader, people.scope_of_owner(reader, owner_id, agent_id=agent_id), night)

    async def _asked(self, agent_id: int, step: Step, mind: Mind | None) -> Told | None:
        """The model's answer; None where none is asked, or can be had today."""
        if step.ask is None or mind is None:
            return None
        timezone, now = self._timezone_of(agent_id), self._now()
        spent = await self._database.read(
            lambda reader: budget.spent(reader, agent_id, mind, timezone=timezone, now=now)
        )
        if spent is not None:
            log.info("manner.budget_spent", spent=spent.tokens, per_day=spent.per_day, instead="the styles as they are")
            return None
        try:
            async with asyncio.timeout(_SECONDS):
                return await mind.complete(step.ask)
        except (ModelFailed, TimeoutError) as exc:
            log.warning("manner.model_down", error=str(exc), instead="the styles as they are")
            return None

    def _carry_out(self, tx: Transaction, *, agent_id: int, step: Step, told: Told | None) -> bool:
        """Carry a step out and book what it cost; whether it has changed anything."""
        counts = step.carry_out(tx, "" if told is None else told.text)
        if told is not None:
            usage.add(
                tx, told.spent, turn_id=None, session_id=None, agent_id=agent_id, purpose=manner.NAME, now=self._now()
            )
        return bool(counts)
