"""The clock of the night jobs: one worker per store, woken at the agents' times, runs the jobs that are due.

Invariants: APScheduler only wakes. Only the record of runs decides what is due, so a wake too many, too late or
missing changes only when a job runs. The jobs of a store run one after the other in the order of the night, and a job
that fails holds up no other. In the first seconds after a start people talk undisturbed. On a damaged store nothing
runs. A run that is stopped in the middle goes on at the next start.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from agents.spec import AgentSpec, JobsSpec
from gateway.ops.background import beside
from memory.errors import StorageError
from memory.jobs.runs import Run
from memory.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """A job with its place in the week. `weekday` counts from Monday as 0; None is every day."""

    name: str
    at: time
    weekday: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTime:
    """A job's only slot between two local dates, both included. `at` is in milliseconds UTC, `period` names the run."""

    period: date
    at: int
    since: date
    until: date


def due(job: ScheduledJob, zone: ZoneInfo, last: date | None, now: int, *, since: int = 0) -> DueTime | None:
    """Returns the slot that is to be worked off at `now`, if there is one.

    `last` is the newest slot that was worked off. If none was, only a slot at or after `since` is due: a newcomer has
    missed nothing. `now` and `since` are in milliseconds UTC. A `last` after the slot's `until` was made by a clock
    that had run ahead, or before the job was moved to another weekday. It says nothing about this slot, so the caller
    asks for the newest slot up to `until`.
    """
    slot = latest(job, zone, now)
    if last is None:
        # A `since` after `now` comes from a clock that had run ahead: the agent has been there long.
        return slot if slot.at >= since or since > now else None
    return None if slot.since <= last <= slot.until else slot


def latest(job: ScheduledJob, zone: ZoneInfo, now: int) -> DueTime:
    # One day ahead: a slot whose time the clock skips may fall on the day after its name.
    day = _local_day(zone, now) + timedelta(days=1)
    while (slot := _slot(job, zone, day)) is None or slot.at > now:
        day -= timedelta(days=1)
    return slot


def following(job: ScheduledJob, zone: ZoneInfo, now: int) -> DueTime:
    day = _local_day(zone, now) - timedelta(days=1)
    while (slot := _slot(job, zone, day)) is None or slot.at <= now:
        day += timedelta(days=1)
    return slot


def _slot(job: ScheduledJob, zone: ZoneInfo, day: date) -> DueTime | None:
    if job.weekday is not None and day.weekday() != job.weekday:
        return None
    # fold=0: the first of two equal readings of the clock. A time that the clock skips falls equally far after the gap.
    at = int(datetime.combine(day, job.at, zone).timestamp() * 1000)
    if job.weekday is None:
        return DueTime(period=day, at=at, since=day, until=day)
    # Weeks run from Monday to Sunday, so that a job moved to another weekday still runs once in that week.
    monday = day - timedelta(days=day.weekday())
    return DueTime(period=day, at=at, since=monday, until=monday + timedelta(days=6))


def _local_day(zone: ZoneInfo, now: int) -> date:
    return datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()


log = structlog.get_logger(__name__)

#: The job that belongs to a store and not to an agent: it runs for the first agent of the store, after all others.
TIDY: Final = "tidy"
#: The name of this loop, and of its units of work.
_LOOP: Final = "nights"
#: Seconds after a start in which no job runs: the person who starts the bot wants to talk.
_SETTLED: Final = 30.0
#: Seconds after which a run is handed on again if the store has failed.
_AGAIN: Final = 5.0
#: Minutes after which a worker checks by itself what is due: nothing wakes it after the machine slept or its clock was
#: changed.
_LOOKS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The times of one agent's jobs: those that are switched on, in the order of the night, in the agent's timezone.

    `has` names these jobs and also the ones that are only switched off, which may be run by hand.
    """

    agent: str
    zone: ZoneInfo
    jobs: tuple[ScheduledJob, ...]
    has: frozenset[str]

    def job(self, name: str) -> ScheduledJob | None:
        return next((job for job in self.jobs if job.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The next run of a job for an agent, in milliseconds UTC; None if the job is switched off."""

    agent: str
    job: str
    at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A run that is to be made. `period` names it in the record."""

    agent: str
    job: str
    period: str


def timetables(specs: Mapping[str, AgentSpec]) -> tuple[Timetable, ...]:
    made = []
    for n, (name, spec) in enumerate(specs.items()):
        has = frozenset(
            job
            for job in JobsSpec.minutes
            if (n == 0 if job == TIDY else spec.memory.enabled and (job != "manner" or spec.memory.manner))
        )
        jobs = tuple(
            ScheduledJob(name=job, at=when.at, weekday=when.weekday)
            for job, when in spec.jobs.times.items()
            if job in has
        )
        made.append(Timetable(agent=name, zone=ZoneInfo(spec.timezone), jobs=jobs, has=has))
    return tuple(made)


class Worker:
    """Runs the night jobs of one store. `work` is its main loop; call `wake` when something may be due."""

    def __init__(self, memory: Service, agents: Sequence[Timetable], *, now: Callable[[], int]) -> None:
        self.agents = tuple(agents)
        self._memory = memory
        self._now = now
        self._woken = asyncio.Event()
        self._asked: list[_Wanted] = []
        self._on_duty = False

    @property
    def jobs(self) -> tuple[str, ...]:
        return (*self._memory.jobs.names, TIDY)

    def renew(self, agents: Sequence[Timetable]) -> None:
        self.agents = tuple(agents)
        self._woken.set()

    async def wake(self) -> None:
        self._woken.set()

    def ask(self, agent: str, job: str) -> str:
        """Queues a job that the agent `has` after the job under way. Returns the period that names the run."""
        wanted = self._by_hand(agent, job)
        self._asked.append(wanted)
        self._woken.set()
        return wanted.period

    async def run(self, agent: str, job: str) -> Run | None:
        """Runs a job that the agent `has` now; None while it is under way. Raises `StorageError`."""
        return await self._run(self._by_hand(agent, job))

    def missing(self, agent: str, job: str) -> str | None:
        """Returns the setting in an agent's file that keeps it from having this job; None if it has the job."""
        has = next(one.has for one in self.agents if one.agent == agent)
        if job == TIDY or job in has:
            return None
        return "memory.manner" if has - {TIDY} else "memory.enabled"

    def planned(self, agents: Collection[str]) -> list[Planned]:
        now = self._now()
        return [one for agent in self.agents if agent.agent in agents for one in planned(agent, self.jobs, now=now)]

    async def work(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Runs due jobs whenever woken, the missed ones once the start has settled. One process does this at a time."""
        await sleep(_SETTLED)
        self._memory.share.on("job", self._asked_elsewhere)
        await self._memory.loops.run(
            _LOOP,
            self._look,
            effect="Nothing is compressed, merged, reflected on or backed up at night.",
            woken=self._woken,
            around=self._duty,
            sleep=sleep,
        )

    @asynccontextmanager
    async def _duty(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            async with beside([self._hand_on()]):
                await stack.enter_async_context(self._memory.loops.by_one("night"))
            # Runs that were under way when this ended before, here or in another process.
            await self._memory.jobs.begin()
            self._on_duty = True
            try:
                yield
            finally:
                self._on_duty = False

    async def _hand_on(self) -> None:
        tell = self._memory.share.tell
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._asked:
                wanted = self._asked[0]
                told = partial(tell, "job", json.dumps(asdict(wanted)))
                try:
                    await self._memory.loops.alone(
                        _LOOP, f"{wanted.job} of {wanted.agent}, asked for", told, anyway=True
                    )
                except StorageError as exc:
                    log.error("jobs.not_handed_on", job=wanted.job, error=str(exc), again_in=_AGAIN)
                    await asyncio.sleep(_AGAIN)
                else:
                    self._asked.pop(0)

    async def _look(self) -> float:
        self._woken.clear()
        await self.work_off()
        # A monotonic clock, which nobody can set: a scheduler that goes by the machine's time would wait for days after
        # that was put back by days.
        return 60.0 * _LOOKS

    def _asked_elsewhere(self, told: str) -> None:
        wanted = json.loads(told)
        if self._on_duty and any(one.agent == wanted["agent"] for one in self.agents):
            self._asked.append(_Wanted(agent=wanted["agent"], job=wanted["job"], period=wanted["period"]))
            self._woken.set()

    async def work_off(self) -> list[Run]:
        """Runs all jobs asked for and all that are due by now, one after the other; returns the runs that ended."""
        ran: list[Run] = []
        damage = (await self._memory.stats.health(())).damage
        if damage is not None:
            log.error("jobs.put_off", reason=damage)
            return ran
        for job in self.jobs:
            for agent in self.agents:
                # Before each job: a person waits for the run they asked for, and a night may take hours.
                ran += await self._run_asked()
                ran += await self._alone(partial(self._run_due, agent, job), agent.agent, job)
        return ran + await self._run_asked()

    async def _run_asked(self) -> list[Run]:
        ran: list[Run] = []
        while self._asked:
            # Dropped once it was run: if the store fails, the next round meets it again.
            wanted = self._asked[0]
            ran += await self._alone(partial(self._run, wanted), wanted.agent, wanted.job, anyway=True)
            self._asked.pop(0)
        return ran

    async def _alone(
        self, act: Callable[[], Awaitable[Run | None]], agent: str, job: str, *, anyway: bool = False
    ) -> list[Run]:
        """Runs one job; an error is logged and holds up no other. `anyway`: also if it failed a moment ago."""
        run = await self._memory.loops.alone(_LOOP, f"{job} of {agent}", act, anyway=anyway)
        return [] if run is None else [run]

    async def _run_due(self, agent: Timetable, job: str) -> Run | None:
        # Asked anew for each job: the jobs before it may have taken hours.
        wanted = await self._wanted(agent, job)
        return None if wanted is None else await self._run(wanted)

    async def _wanted(self, agent: Timetable, name: str) -> _Wanted | None:
        """Returns the run of a job that is due, broke off or may begin again; of one that is off only a run by hand."""
        job = agent.job(name)
        if job is not None and (slot := await self._due(agent, job)) is not None:
            return _Wanted(agent=agent.agent, job=name, period=slot.period.isoformat())
        for run in await self._memory.jobs.unfinished(agent.agent) if name in agent.has else ():
            if run.job == name and (job is not None or run.is_by_hand):
                return _Wanted(agent=agent.agent, job=name, period=run.period)
        return None

    async def _due(self, agent: Timetable, job: ScheduledJob) -> DueTime | None:
        jobs, now = self._memory.jobs, self._now()
        until = latest(job, agent.zone, now).until
        last = await jobs.last(agent.agent, job.name, until=until.isoformat())
        return due(
            job,
            agent.zone,
            None if last is None else date.fromisoformat(last),
            now,
            since=await jobs.since(agent.agent),
        )

    def _by_hand(self, agent: str, job: str) -> _Wanted:
        # A store is tidied for its first agent, whichever agent is asked.
        one = self.agents[0] if job == TIDY else next(one for one in self.agents if one.agent == agent)
        return _Wanted(agent=one.agent, job=job, period=by_hand(one.zone, self._now()))

    async def _run(self, wanted: _Wanted) -> Run | None:
        jobs = self._memory.jobs
        if wanted.job == TIDY:
            return await jobs.once(wanted.agent, TIDY, wanted.period, self._memory.housekeeping.tidy)
        return await jobs.run(wanted.agent, wanted.job, wanted.period)


def planned(agent: Timetable, names: Sequence[str], *, now: int) -> list[Planned]:
    return [
        Planned(agent=agent.agent, job=name, at=None if job is None else following(job, agent.zone, now).at)
        for name in names
        for job in [agent.job(name)]
    ]


def by_hand(zone: ZoneInfo, now: int) -> str:
    """Returns the period of a run asked for at `now` (milliseconds UTC): that second in the agent's timezone."""
    return datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")


@asynccontextmanager
async def ticking(
    workers: Sequence[Worker], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[Callable[[], None]]:
    """Runs the workers while the block runs, and gives a function to call when their timetables have changed."""
    # Imported here: only a long-running process needs a scheduler.
    from apscheduler.schedulers.asyncio import AsyncIOScheduler
    from apscheduler.triggers.cron import CronTrigger

    # By default APScheduler drops a job that is a second late; here it only wakes, so late is as good as in time.
    defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
    scheduler = AsyncIOScheduler(timezone=UTC, job_defaults=defaults)

    def plan() -> None:
        scheduler.remove_all_jobs()
        for worker in workers:
            for agent in worker.agents:
                for job in agent.jobs:
                    at = CronTrigger(
                        day_of_week=job.weekday, hour=job.at.hour, minute=job.at.minute, second=0, timezone=agent.zone
                    )
                    scheduler.add_job(worker.wake, at)

    plan()
    scheduler.start()
    async with beside([worker.work(sleep) for worker in workers]):
        try:
            yield plan
        finally:
            scheduler.shutdown(wait=False)
