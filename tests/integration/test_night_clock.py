"""The clock of the night over a real store: what is due is done once, in order, whatever befalls the machine."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

from structlog.testing import capture_logs

from agents.spec import AgentSpec, JobsSpec, MemorySpec
from gateway import app
from gateway.cli.start import loaded
from gateway.ops import night_clock
from gateway.ops import night_clock as night
from gateway.ops.night_clock import TIDY, Timetable, Worker, ticking, timetables
from memory.jobs.runner import TABLE
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.service import Service
from tests.kit.fakes import DAY, MINUTE, Clock, runtime
from tests.kit.patience import SECONDS, limit, settle, until
from tests.kit.talk import private, remember

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Pacific/Apia", "Pacific/Chatham",
    "America/Santiago", "Africa/Casablanca", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Kiritimati",
    "Asia/Kathmandu",
)  # fmt: skip
HOUR = 60 * MINUTE


def named(zones: tuple[str, ...] = ("UTC",)) -> dict[str, AgentSpec]:
    return {f"a{n}": AgentSpec(name=f"a{n}", timezone=zone) for n, zone in enumerate(zones)}


@asynccontextmanager
async def opened(folder: Path, specs: Mapping[str, AgentSpec], clock: Clock) -> AsyncIterator[tuple[Service, Worker]]:
    service = await Service.open(
        folder / "remora.db",
        agents={name: AgentMemory(timezone=spec.timezone) for name, spec in specs.items()},
        triggers=Triggers(quiet_seconds=3_600),
        runtime=runtime(clock),
    )
    try:
        yield service, Worker(service, timetables(specs), now=clock)
    finally:
        await service.close(seconds=SECONDS)


async def record(service: Service) -> Counter[tuple[str, str, str, str]]:
    rows = [one.run for one in await service.jobs.newest(limit=100_000)]
    return Counter((run.agent, run.job, run.period, run.state) for run in rows)


def expected(agent: Timetable, job: night_clock.ScheduledJob, start: int, end: int) -> set[date]:
    found, at = set[date](), start
    while (slot := night_clock.following(job, agent.zone, at)).at <= end:
        found.add(slot.period)
        at = slot.at
    return found


async def test_a_month_in_twelve_timezones_with_sleep_and_restarts_misses_and_doubles_nothing(tmp_path: Path) -> None:
    """Each job runs once for each of its days or weeks, as the store's own record has it."""
    specs = named(ZONES)
    clock = Clock(int(datetime(2026, 10, 12, 9, tzinfo=UTC).timestamp() * 1000))
    start, end = clock.at, clock.at + 30 * DAY
    chance = random.Random(7)
    while clock.at < end:
        async with opened(tmp_path, specs, clock) as (_, worker):
            for _ in range(chance.randrange(1, 12)):
                # Never so long that a whole day is slept through: of what is missed only the last is made up for.
                clock.at = min(clock.at + chance.choice((10 * MINUTE, HOUR, 5 * HOUR, 9 * HOUR, 22 * HOUR)), end)
                await worker.work_off()
    async with opened(tmp_path, specs, clock) as (service, worker):
        assert await worker.work_off() == []
        done = await record(service)
    assert set(done.values()) == {1}
    wanted = {
        (agent.agent, job.name, period.isoformat(), "done")
        for agent in worker.agents
        for job in agent.jobs
        for period in expected(agent, job, start, end)
    }
    assert set(done) == wanted
    assert {name for _, name, _, _ in wanted} == {*(job.name for job in TABLE), TIDY}


async def test_what_is_due_runs_in_the_order_of_the_night_and_the_store_is_tidied_last(tmp_path: Path) -> None:
    """Each waits for its predecessor, also where several agents share the store."""
    clock = Clock()
    async with opened(tmp_path, named(("UTC", "Asia/Tokyo")), clock) as (_, worker):
        assert await worker.work_off() == []  # who has just arrived has missed nothing
        clock.move(days=8)
        ran = [(run.job, run.agent) for run in await worker.work_off()]
        order = [*(job.name for job in TABLE), TIDY]
        assert ran == [(job, agent) for job in order for agent in (("a0",) if job == TIDY else ("a0", "a1"))]
        assert await worker.work_off() == []


async def tidied(service: Service, day: str) -> bool:
    return any(run[1:] == (TIDY, day, "done") for run in await record(service))


async def test_a_laptop_shut_for_a_month_works_one_night(tmp_path: Path) -> None:
    """However late, once; and the next night is the next night's."""
    clock = Clock()
    async with opened(tmp_path, named(), clock) as (service, worker):
        clock.move(days=1)
        await worker.work_off()
    clock.move(days=30)
    async with opened(tmp_path, named(), clock) as (service, worker):
        ran = {run.job: run.period for run in await worker.work_off()}
        assert ran[TIDY] == ran["compress"] == "2026-12-22"
        assert len(ran) == len(TABLE) + 1
        assert await worker.work_off() == []
        clock.move(days=1)
        daily = {job.name for job in worker.agents[0].jobs if job.weekday is None}
        assert {run.job for run in await worker.work_off()} == daily
        assert max((await record(service)).values()) == 1


async def test_a_clock_that_ran_ahead_and_was_put_back_costs_no_night(tmp_path: Path) -> None:
    """Work that it did ahead is done; the nights up to there are not left out for it."""
    clock = Clock()
    async with opened(tmp_path, named(), clock) as (service, worker):
        for days in (1, 3, -3, 0, 1, 1, 1, 1):
            clock.move(days=days)
            await worker.work_off()
        periods = [period for _, job, period, _ in await record(service) if job == TIDY]
        assert sorted(periods) == [f"2026-11-{day}" for day in range(22, 27)]


async def test_a_night_waits_until_the_start_has_settled_and_comes_when_woken(tmp_path: Path) -> None:
    """Who starts it wants to talk; later a wake, or ten minutes without one, has it look."""
    clock, waits, goes = Clock(), list[float](), asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if seconds > 30:
            await asyncio.Event().wait()
        await goes.wait()

    async with opened(tmp_path, named(), clock) as (service, worker):
        clock.move(days=1)
        working = asyncio.create_task(worker.work(sleep))
        try:
            async with limit():
                await until(lambda: waits)
                await settle()
                assert waits == [30]
                assert await record(service) == Counter()
                goes.set()
                await until(partial(tidied, service, "2026-11-22"))
                clock.move(days=1)
                await worker.wake()
                await until(partial(tidied, service, "2026-11-23"))
                assert waits[:2] == [30, 600]
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def test_the_clock_is_stopped_with_all_that_it_began(tmp_path: Path) -> None:
    """Who leaves does not wait for the night, and nothing of it is left behind in the loop."""
    async with opened(tmp_path, named(ZONES), Clock()) as (_, worker):
        before = asyncio.all_tasks()
        async with ticking([worker]):
            await until(lambda: len(asyncio.all_tasks()) > len(before))
        await until(lambda: asyncio.all_tasks() == before)


async def test_what_somebody_asks_for_runs_at_once_and_takes_no_night_away(tmp_path: Path) -> None:
    """By hand is by hand: the period has the second, and the clock's own run still comes."""
    clock = Clock()
    async with opened(tmp_path, named(("Europe/Berlin",)), clock) as (_, worker):
        assert worker.ask("a0", "compress") == "2026-11-21T13:00:00"
        (ran,) = await worker.work_off()
        assert (ran.job, ran.period, ran.state) == ("compress", "2026-11-21T13:00:00", "done")
        assert (await worker.run("a0", TIDY)) is not None
        clock.move(days=1)
        again = [run.job for run in await worker.work_off()]
        assert "compress" in again
        assert TIDY in again


async def test_nothing_runs_on_a_damaged_store(tmp_path: Path) -> None:
    """The rest of the store is for its people to read and to rescue; the worker lives on, for they may mend it."""
    clock = Clock()
    async with opened(tmp_path, named(), clock):
        pass
    path = tmp_path / "remora.db"
    async with opened(tmp_path, named(), clock) as (service, worker):
        clock.move(days=8)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as looking:
            (page,) = looking.execute("select rootpage from sqlite_schema where name = 'job_runs'").fetchone()
            (size,) = looking.execute("pragma page_size").fetchone()
        with path.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\x5a" * 100)
        assert await service.database.check() is not None
        with capture_logs() as told:
            assert await worker.work_off() == []
        assert [(line["event"], "damaged" in line["reason"]) for line in told] == [("jobs.put_off", True)]


async def test_a_job_that_can_not_even_be_begun_holds_up_no_other(tmp_path: Path) -> None:
    """Not those behind it in the night, not the same job of the next agent, and not the nights to come."""
    clock = Clock()
    async with opened(tmp_path, named(("UTC", "Asia/Tokyo")), clock) as (service, worker):
        await service.database.write(
            lambda tx: tx.run(
                "insert into job_runs (job, agent_id, period, state, started_at)"
                " select 'compress', id, '1 is no date', 'done', ? from agents where name = 'a0'",
                (clock(),),
            )
        )
        for _ in range(2):
            clock.move(days=1)
            with capture_logs() as told:
                ran = [(run.job, run.agent) for run in await worker.work_off()]
            assert ("compress", "a0") not in ran
            assert {("compress", "a1"), ("enrich", "a0"), ("decay", "a0"), (TIDY, "a0")} <= set(ran)
            assert [one["unit"] for one in told if one["event"] == "loop.put_off"] == ["compress of a0"]
        await service.database.write(lambda tx: tx.run("delete from job_runs where period = '1 is no date'"))
        # It is put off still, but not for a person who asks for it.
        worker.ask("a0", "compress")
        assert ("compress", "a0") in [(run.job, run.agent) for run in await worker.work_off()]


def test_jobs_that_are_off_and_agents_without_memory_have_no_times() -> None:
    """Only the store's first agent tidies it; one that remembers nothing has nothing to work on at night."""
    specs = {
        "a": AgentSpec(name="a", jobs=JobsSpec(night="21:40", week="tuesday")),
        "b": AgentSpec(name="b", memory=MemorySpec(enabled=False)),
        "c": AgentSpec(name="c", jobs=JobsSpec(week="off")),
        "d": AgentSpec(name="d", jobs=JobsSpec(night="off")),
    }
    first, forgetful, daily, idle = timetables(specs)
    assert [job.name for job in first.jobs] == [*JobsSpec.minutes]
    reflect = first.job("reflect")
    assert reflect is not None
    assert (reflect.weekday, reflect.at.hour, reflect.at.minute) == (1, 23, 10)
    assert [job.name for job in daily.jobs] == ["enrich", "compress", "compare", "decay", "manner"]
    assert forgetful.jobs == idle.jobs == ()
    assert night.by_hand(ZoneInfo("Asia/Tokyo"), 0) == "1970-01-01T09:00:00"


def test_every_job_of_the_table_has_its_time() -> None:
    """A job without an option would never run by itself."""
    assert [*(job.name for job in TABLE), TIDY] == [
        name for name in JobsSpec.minutes if name in {*(job.name for job in TABLE), TIDY}
    ]
    assert {job.name for job in TABLE} <= set(JobsSpec().times)


async def test_a_weekly_job_that_is_moved_to_a_later_weekday_runs_once_in_each_week(tmp_path: Path) -> None:
    """The week that it stands in next has had its run by the earlier weekday."""
    clock = Clock(int(datetime(2026, 11, 16, 3, 30, tzinfo=UTC).timestamp() * 1000))
    for weekday, days in (("monday", 8), ("sunday", 13)):
        specs = {"a": AgentSpec(name="a", jobs=JobsSpec.model_validate({"week": weekday}))}
        async with opened(tmp_path, specs, clock) as (service, worker):
            for _ in range(days * 4):
                clock.at += 6 * HOUR
                await worker.work_off()
            done = sorted(period for _, job, period, _ in await record(service) if job == "merge")
    assert done == ["2026-11-16", "2026-11-23", "2026-12-06"]


@asynccontextmanager
async def failed_by_hand(folder: Path, jobs: JobsSpec, *, days: int) -> AsyncIterator[Worker]:
    """A worker, ten minutes after a run of tidy by hand could not write; the clock had run `days` ahead before."""
    clock = Clock(int(datetime(2026, 11, 16, 9, tzinfo=UTC).timestamp() * 1000))
    async with opened(folder, {"a": AgentSpec(name="a", jobs=jobs)}, clock) as (_, worker):
        clock.move(days=days)
        await worker.work_off()
        clock.move(days=1 - days)
        await worker.work_off()
        shutil.rmtree(folder / "backups", ignore_errors=True)
        (folder / "backups").write_text("in the way")
        failed = await worker.run("a", TIDY)
        assert failed is not None and failed.state == "failed"
        (folder / "backups").unlink()
        clock.at += 11 * MINUTE
        yield worker


async def test_a_run_by_hand_that_failed_is_tried_again_after_the_clock_ran_ahead(tmp_path: Path) -> None:
    async with failed_by_hand(tmp_path, JobsSpec(), days=400) as worker:
        assert [(run.job, run.state) for run in await worker.work_off()] == [(TIDY, "done")]


async def test_a_run_by_hand_that_failed_is_tried_again_where_its_job_is_off(tmp_path: Path) -> None:
    async with failed_by_hand(tmp_path, JobsSpec(night="off"), days=1) as worker:
        assert [(run.job, run.state) for run in await worker.work_off()] == [(TIDY, "done")]


async def test_the_store_is_tidied_as_its_first_agents_whoever_asks(tmp_path: Path) -> None:
    async with opened(tmp_path, named(("UTC", "Asia/Tokyo")), Clock()) as (_, worker):
        worker.ask("a1", TIDY)
        assert [(run.agent, run.period) for run in await worker.work_off()] == [("a0", "2026-11-21T12:00:00")]


async def test_what_somebody_asks_for_in_a_long_night_waits_for_one_job_and_not_for_all(tmp_path: Path) -> None:
    """It is next, once what is under way is done."""
    clock, asks = Clock(), list[Worker]()

    def now() -> int:
        if asks:
            asks.pop().ask("a0", "decay")
        return clock()

    async with opened(tmp_path, named(), clock) as (service, _):
        worker = Worker(service, timetables(named()), now=now)
        clock.move(days=1)
        asks.append(worker)
        ran = [(run.job, "T" in run.period) for run in await worker.work_off()]
        assert ran.index(("decay", True)) < ran.index(("decay", False))
        assert worker._asked == []


def test_what_an_agent_has_may_be_run_by_hand_also_where_it_is_off() -> None:
    """An agent that remembers nothing has only what is the store's."""
    specs = {
        "a": AgentSpec(name="a", memory=MemorySpec(enabled=False)),
        "b": AgentSpec(name="b", jobs=JobsSpec(week="off"), memory=MemorySpec(manner=False)),
    }
    first, second = timetables(specs)
    assert first.has == {TIDY}
    assert second.has == {"enrich", "compress", "reflect", "merge", "compare", "decay"}


async def test_an_agent_without_nights_takes_nobodys_night_away(tmp_path: Path) -> None:
    """Who talks with it is gone through by the one that remembers, as the gateway opens the store."""
    clock, config = Clock(), tmp_path / "config.yaml"
    config.write_text("data_dir: data\nembedding: {provider: none}\n")
    (tmp_path / "agents").mkdir()
    for name, said in (("assistant", ""), ("mute", "memory: {enabled: false}\n")):
        (tmp_path / "agents" / f"{name}.yaml").write_text(f"name: {name}\n{said}")
    async with app.opened(loaded(config), {}, now=clock) as parts:
        memory = parts.roster.stores["assistant"].memory
        await remember(memory, await memory.identities.context(*private("ada")), "I like tea")
        clock.at += MINUTE
        await memory.identities.context(*private("ada", agent="mute"))
        await memory.database.write(lambda tx: tx.run("update memories set strength = 0, origin = 'extracted'"))
        run = await memory.jobs.run("assistant", "decay", "2026-11-22")
        assert run is not None and run.counts == {"archived": 1}
