"""The clock of the night's work: one worker a store, woken at the agents' times, does what is due.

Invariants: APScheduler only wakes; what is due follows from the record of runs alone, so a wake too many, too late or
none at all changes nothing but when; the jobs of a store run one after the other in the order of the night, and one
that fails holds up no other; in the first seconds of a start people talk undisturbed; on a damaged store nothing runs;
stopped in the middle, a run goes on at the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from agents.spec import AgentSpec, JobsSpec
from gateway import schedule
from gateway.schedule import Slot
from memory.errors import StorageError
from memory.jobs import Run
from memory.service import Service

log = structlog.get_logger(__name__)

#: The job that is of a store and not of an agent: it runs for the first agent of the store, after all others.
TIDY: Final = "tidy"
#: Seconds after a start in which nothing is done: who starts it wants to talk.
_SETTLED: Final = 30.0
#: Minutes after which a worker looks by itself what is due: nobody wakes it after a sleep, or when the clock was put.
_LOOKS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """When one agent's jobs are to run: those that are on, in the order of the night, in the agent's timezone.

    `has` names those and the ones that are only off, which may be run by hand.
    """

    agent: str
    zone: ZoneInfo
    jobs: tuple[schedule.Job, ...]
    has: frozenset[str]

    def job(self, name: str) -> schedule.Job | None:
        """The job of this name, where it is on."""
        return next((job for job in self.jobs if job.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """When a job runs next for an agent, in milliseconds UTC; None where it is off."""

    agent: str
    job: str
    at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A run that is to be made: `period` names it in the record."""

    agent: str
    job: str
    period: str


def timetables(specs: Mapping[str, AgentSpec]) -> tuple[Timetable, ...]:
    """The timetables of the agents of one store, whose first also has what is the store's."""
    made = []
    for n, (name, spec) in enumerate(specs.items()):
        has = frozenset(
            job
            for job in JobsSpec.model_fields
            if (n == 0 if job == TIDY else spec.memory.enabled and (job != "manner" or spec.memory.manner))
        )
        jobs = tuple(
            schedule.Job(name=job, at=when.at, weekday=when.weekday)
            for job, when in spec.jobs.times.items()
            if job in has
        )
        made.append(Timetable(agent=name, zone=ZoneInfo(spec.timezone), jobs=jobs, has=has))
    return tuple(made)


class Worker:
    """Does the night's work of one store. `work` is its life; `wake` it when something may be due."""

    def __init__(
        self,
        memory: Service,
        agents: Sequence[Timetable],
        *,
        now: Callable[[], int],
    ) -> None:
        """`now` gives milliseconds UTC."""
        self.agents = tuple(agents)
        self._memory = memory
        self._now = now
        self._woken = asyncio.Event()
        self._asked: list[_Wanted] = []

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of all jobs there are, in the order of the night."""
        return (*self._memory.jobs.names, TIDY)

    async def wake(self) -> None:
        """Have the worker look what is due."""
        self._woken.set()

    def ask(self, agent: str, job: str) -> str:
        """Have a job run for an agent as soon as what is under way is done; returns the period that names the run.

        The agent `has` the job.
        """
        wanted = self._by_hand(agent, job)
        self._asked.append(wanted)
        self._woken.set()
        return wanted.period

    async def run(self, agent: str, job: str) -> Run | None:
        """Run a job that an agent `has` now; None while it is under way. Raises `StorageError` when the store fails."""
        return await self._run(self._by_hand(agent, job))

    def missing(self, agent: str, job: str) -> str | None:
        """The setting in an agent's file for which it has no such job at all; None where it has."""
        has = next(one.has for one in self.agents if one.agent == agent)
        if job == TIDY or job in has:
            return None
        return "memory.manner" if has - {TIDY} else "memory.enabled"

    def planned(self, agents: Collection[str]) -> list[Planned]:
        """When each job runs next for these agents, in the order of the night."""
        return [
            one for agent in self.agents if agent.agent in agents for one in planned(agent, self.jobs, now=self._now())
        ]

    async def work(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Do what is due whenever woken, and first, once the start has settled, what was missed. Never ends."""
        await sleep(_SETTLED)
        while True:
            await self.work_off()
            await self._woken_or(sleep(60.0 * _LOOKS))

    async def work_off(self) -> list[Run]:
        """Run what somebody asked for and all that is due by now, one after the other; returns the runs that ended."""
        ran: list[Run] = []
        try:
            damage = (await self._memory.figures.health(())).damage
            if damage is not None:
                log.error("jobs.put_off", reason=damage)
                return ran
        except StorageError as exc:
            log.error("jobs.put_off", error=str(exc), again_in_minutes=_LOOKS)
            return ran
        for job in self.jobs:
            for agent in self.agents:
                # Before each: somebody waits for it, and a night may take hours.
                ran += await self._run_asked()
                ran += await self._alone(self._run_due(agent, job), agent.agent, job)
        return ran + await self._run_asked()

    async def _run_asked(self) -> list[Run]:
        ran: list[Run] = []
        while self._asked:
            wanted = self._asked.pop(0)
            ran += await self._alone(self._run(wanted), wanted.agent, wanted.job)
        return ran

    async def _alone(self, act: Awaitable[Run | None], agent: str, job: str) -> list[Run]:
        """Have one job of an agent done, with whatever goes wrong told and no other held up."""
        try:
            run = await act
        except StorageError as exc:
            log.error("jobs.put_off", agent=agent, job=job, error=str(exc), again_in_minutes=_LOOKS)
        except Exception:  # one job's own fault must not end the nights of all
            log.exception("jobs.put_off", agent=agent, job=job, again_in_minutes=_LOOKS)
        else:
            return [] if run is None else [run]
        return []

    async def _run_due(self, agent: Timetable, job: str) -> Run | None:
        # Asked anew for each: those before it may have taken hours.
        wanted = await self._wanted(agent, job)
        return None if wanted is None else await self._run(wanted)

    async def _woken_or(self, late: Awaitable[None]) -> None:
        # By a clock that nobody can put: a scheduler that goes by the machine's time waits for days after that was put
        # back by days.
        waits: list[asyncio.Future[object]] = [asyncio.ensure_future(self._woken.wait()), asyncio.ensure_future(late)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._woken.clear()

    async def _wanted(self, agent: Timetable, name: str) -> _Wanted | None:
        """The run of a job that is due, that broke off or that may be begun again.

        Of one that is off by now only a run that somebody asked for goes on.
        """
        job = agent.job(name)
        if job is not None and (slot := await self._due(agent, job)) is not None:
            return _Wanted(agent=agent.agent, job=name, period=slot.period.isoformat())
        for run in await self._memory.jobs.unfinished(agent.agent) if name in agent.has else ():
            if run.job == name and (job is not None or run.is_by_hand):
                return _Wanted(agent=agent.agent, job=name, period=run.period)
        return None

    async def _due(self, agent: Timetable, job: schedule.Job) -> Slot | None:
        jobs = self._memory.jobs
        until = schedule.latest(job, agent.zone, self._now()).until
        last = await jobs.last(agent.agent, job.name, until=until.isoformat())
        return schedule.due(
            job,
            agent.zone,
            None if last is None else date.fromisoformat(last),
            self._now(),
            since=await jobs.since(agent.agent),
        )

    def _by_hand(self, agent: str, job: str) -> _Wanted:
        # The store is tidied as its first agent's, whoever asks.
        one = self.agents[0] if job == TIDY else next(one for one in self.agents if one.agent == agent)
        return _Wanted(agent=one.agent, job=job, period=by_hand(one.zone, self._now()))

    async def _run(self, wanted: _Wanted) -> Run | None:
        jobs = self._memory.jobs
        if wanted.job == TIDY:
            return await jobs.once(wanted.agent, TIDY, wanted.period, self._memory.tidying.tidy)
        return await jobs.run(wanted.agent, wanted.job, wanted.period)


def planned(agent: Timetable, names: Sequence[str], *, now: int) -> list[Planned]:
    """When each of these jobs runs next for an agent, as of `now`, milliseconds UTC."""
    return [
        Planned(agent=agent.agent, job=name, at=None if job is None else schedule.following(job, agent.zone, now).at)
        for name in names
        for job in [agent.job(name)]
    ]


def by_hand(zone: ZoneInfo, now: int) -> str:
    """The period of a run that somebody asks for at `now`, milliseconds UTC: the second, where the agent lives."""
    return datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")


@asynccontextmanager
async def ticking(
    workers: Sequence[Worker], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Inside, the workers work. On the way out they are stopped where they are; the next start goes on from there."""
    # Imported here: only what stays awake needs a clock.
    from apscheduler.schedulers.asyncio import AsyncIOScheduler
    from apscheduler.triggers.cron import CronTrigger

    # By its defaults it drops what is a second late; here it only wakes, so late is as good as in time.
    defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
    scheduler = AsyncIOScheduler(timezone=UTC, job_defaults=defaults)
    for worker in workers:
        for agent in worker.agents:
            for job in agent.jobs:
                at = CronTrigger(
                    day_of_week=job.weekday, hour=job.at.hour, minute=job.at.minute, second=0, timezone=agent.zone
                )
                scheduler.add_job(worker.wake, at)
    scheduler.start()
    tasks = [asyncio.create_task(worker.work(sleep)) for worker in workers]
    for task in tasks:
        task.add_done_callback(_log_end)
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _log_end(task: asyncio.Task[None]) -> None:
    """A worker ends only when it is stopped; else nothing is done at night any more, and that must be known."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("jobs.ended", exc_info=error)
