"""Updates manners in the background, soon after their styles have changed.

Invariants: The rows tell whether there is anything to do, so an update may be requested at any time and any number of
times. A model is asked outside any transaction. A manner and its cost are one transaction. If the model gives no
answer, the styles are used as they are. Nobody waits for an update, and an interrupted update is done at night.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from memory.errors import StorageError
from memory.jobs import style
from memory.jobs.base import Step, night_of
from memory.learn.agents import Agents
from memory.learn.model import BackgroundModel, BudgetSpent, ModelAnswer, ModelFailed
from memory.loops import Loops
from memory.store import scopes, usage
from memory.store.database import Database, Reader, Transaction

log = structlog.get_logger(__name__)

#: Seconds after which an update is tried again if the store has failed.
_AGAIN = 60.0
#: Most attempts to write a manner if styles change while a model writes it.
_TRIES = 3


class StyleUpdates:
    """The background updates of manners, for the agents that learn a manner."""

    def __init__(
        self,
        database: Database,
        *,
        agents: Agents,
        now: Callable[[], int],
        new_id: Callable[[], str],
        loops: Loops,
    ) -> None:
        self._database = database
        self._agents = agents
        self._now = now
        self._new_id = new_id
        self._loops = loops
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[tuple[int, int], asyncio.TimerHandle] = {}
        self._locks: defaultdict[tuple[int, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    def soon(self, agent_id: int, owner_ids: Sequence[int]) -> None:
        """Starts updating these owners' manners in the background, after styles may have been told or changed."""
        if not self._agents.by_id[agent_id].learns_style:
            return
        task = asyncio.create_task(self._see_to(agent_id, tuple(owner_ids)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Cancels the updates under way. The night job does them."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _see_to(self, agent_id: int, owner_ids: Sequence[int]) -> None:
        for owner_id in owner_ids:
            unit = f"owner {owner_id} of agent {agent_id}"
            try:
                await self._loops.alone("manner", unit, partial(self._refresh, agent_id, owner_id))
                wait = self._loops.wait("manner", unit)
            except StorageError as exc:
                log.error("manner.unsaved", owner=owner_id, error=str(exc), again_in=_AGAIN)
                wait = _AGAIN
            if wait:
                self._later(agent_id, owner_id, wait)

    def _later(self, agent_id: int, owner_id: int, seconds: float) -> None:
        """Requests an update once more after a failure, when the wait of its owner is over."""
        key = agent_id, owner_id
        if key not in self._timers:

            def ring() -> None:
                del self._timers[key]
                self.soon(agent_id, (owner_id,))

            self._timers[key] = asyncio.get_running_loop().call_later(seconds, ring)

    async def _refresh(self, agent_id: int, owner_id: int) -> None:
        async with self._locks[agent_id, owner_id]:
            await self._refresh_held(agent_id, owner_id)

    async def _refresh_held(self, agent_id: int, owner_id: int) -> None:
        for _ in range(_TRIES):
            model = self._agents.model(agent_id)
            steps = await self._database.read(partial(self._steps, agent_id=agent_id, owner_id=owner_id))
            if not steps:
                return
            for step in steps:
                answer = await self._asked(agent_id, step, model)
                done = await self._database.write(partial(self._carry_out, agent_id=agent_id, step=step, answer=answer))
                if done:
                    log.info("manner.done", owner=owner_id, by="model" if answer is not None else "rule")
                    return

    def _steps(self, reader: Reader, *, agent_id: int, owner_id: int) -> Sequence[Step]:
        night = night_of(self._agents, agent_id, now=self._now(), new_id=self._new_id)
        scope = scopes.scope_of_owner(reader, owner_id, agent_id=agent_id)
        reader.confine(scope)
        return style.steps(reader, scope, night)

    async def _asked(self, agent_id: int, step: Step, model: BackgroundModel | None) -> ModelAnswer | None:
        """Returns the model's answer, or None if no model is asked, it gives none, or the day's tokens are used up."""
        if step.request is None or model is None:
            return None
        timezone, now = self._agents.timezone(agent_id), self._now()
        try:
            return await model.ask(step.request, self._database, agent_id=agent_id, timezone=timezone, now=now)
        except BudgetSpent as exc:
            log.info("manner.budget_spent", reason=str(exc), instead="the styles as they are")
            return None
        except (ModelFailed, TimeoutError) as exc:
            log.warning("manner.model_down", error=str(exc), instead="the styles as they are")
            return None

    def _carry_out(self, tx: Transaction, *, agent_id: int, step: Step, answer: ModelAnswer | None) -> bool:
        counts = step.carry_out(tx, "" if answer is None else answer.text)
        if answer is not None:
            usage.add(tx, answer.spent, agent_id=agent_id, purpose=style.NAME, now=self._now())
        return bool(counts)
