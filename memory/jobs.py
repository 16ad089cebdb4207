"""The work of the night on one store: runs of jobs, what they would do, what they did, and taking it back.

Invariants: a run goes owner by owner, and one that fails holds up no other, nor does one answer that can't be read the
owner's other steps; a model is asked outside any transaction, and a step, its record and its cost are one; a run that
is broken off with its process can be taken up at once; a preview is the very work, rolled back; what somebody takes
back is not done again by the same job; only rows of the scope that asks are shown or taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

import structlog

from memory import keys, profile
from memory.desk import Context, anew
from memory.errors import MemoryFault, NotFound, StorageError
from memory.learn import budget
from memory.learn.answer import Unreadable
from memory.learn.ask import Mind, ModelFailed, Told
from memory.learn.learner import Learner
from memory.recall import index
from memory.scope import Scope
from memory.store import job_runs, memories, people, usage
from memory.store.database import Database, Reader, Transaction, look
from memory.store.job_runs import Item, Run
from memory.store.memories import Memory
from memory.upkeep import journal
from memory.upkeep.job import FIGURES, Job, Night, Step
from memory.upkeep.journal import Journal

__all__ = ["BudgetSpent", "Change", "Item", "Jobs", "NoUndo", "Progress", "Run", "Undone", "What"]

log = structlog.get_logger(__name__)

#: Seconds a model gets for one answer.
_SECONDS: Final = 90.0
#: So many owners in a row for whom no answer can be had, and the model is taken to be down.
_DOWN: Final = 3
#: What a job notes of a row for itself, and nobody sees.
_NOTED: Final = frozenset({"enriched_at"})
What: TypeAlias = Literal["new", "archived", "replaced", "compressed", "back", "told again", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became, or would become, of one memory; a new one names what it was made of."""

    what: What
    memory: Memory
    made_of: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: owners gone through of all that have work."""

    run: Run
    done: int
    of: int

    @property
    def given_up(self) -> bool:
        """Whether a failed run is not tried again by itself."""
        return self.run.state == "failed" and self.run.attempts > len(job_runs.WAITS_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What taking a run back has done: how many rows are as they were, and how many stay as they were changed since.

    Of these `back` are those that hold again or count as before, `stay` those that somebody has made theirs.
    """

    restored: int
    left: int
    back: tuple[Memory, ...] = ()
    stay: tuple[Memory, ...] = ()


class BudgetSpent(MemoryFault):
    """The agent's tokens of the day are used up; what is left is done on another day, from `until` on.

    That is in milliseconds UTC.
    """

    code = "budget_spent"

    def __init__(self, message: str, *, until: int) -> None:
        super().__init__(message)
        self.until = until


class NoUndo(MemoryFault):
    """There is nothing of this run here that could be taken back."""

    code = "no_undo"


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How a run ends; a skipped one goes on at `again`, in milliseconds UTC."""

    state: job_runs.State
    error: str | None
    again: int | None = None


async def latest_in(path: Path) -> list[Progress]:
    """The newest run of each job and agent of the store at `path`, which another process may have open.

    There are none where there is no store yet. Raises `StorageError`.
    """
    return await look(path, _latest) or []


def _latest(reader: Reader) -> list[Progress]:
    return [
        Progress(run=run, done=done, of=of)
        for run in job_runs.latest(reader)
        for done, of in [job_runs.progress(reader, run.id)]
    ]


class _RolledBack(Exception):
    """Carries what a preview has seen out of the transaction that is not to be."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes


class Jobs:
    """`Service.jobs`. `table` has the jobs in the order in which one night runs them; `nightly` agents have nights.

    Without `nightly` all have.
    """

    def __init__(
        self,
        database: Database,
        *,
        table: Sequence[Job],
        learner: Learner,
        agents: Mapping[str, int],
        nightly: Collection[str] | None = None,
        timezone_of: Callable[[int], str],
        mind_of: Callable[[int], Mind | None],
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._table = {job.name: job for job in table}
        self._learner = learner
        self._agents = agents
        self._nightly = None if nightly is None else tuple(nightly)
        self._timezone_of = timezone_of
        self._mind_of = mind_of
        self._now = now
        self._new_id = new_id

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._table)

    async def begin(self) -> None:
        """At start: what was under way when the process ended may be taken up."""
        await self._database.write(lambda tx: job_runs.release(tx, now=self._now()))

    async def since(self, agent: str) -> int:
        """When the agent was first served by this store, in milliseconds UTC."""
        return await self._database.read(lambda reader: people.agent_since(reader, self._agents[agent]))

    async def last(self, agent: str, job: str, *, until: str | None = None) -> str | None:
        """The newest local date for which the clock has begun a job; with `until` of those up to that one."""
        agent_id = self._agents[agent]
        return await self._database.read(lambda reader: job_runs.last_period(reader, job, agent_id, until=until))

    async def unfinished(self, agent: str) -> list[Run]:
        """Runs that broke off, or failed and may be tried again by now, in the order in which they were begun."""
        return await self._database.read(
            lambda reader: job_runs.unfinished(reader, self._agents[agent], now=self._now())
        )

    async def run(self, agent: str, job: str, period: str) -> Run | None:
        """Run a job for a period, or go on with it; None where that is done, under way, or not to be tried again yet.

        `period` begins with the local date for which it works. Whatever goes wrong is the run's failure; raises
        `StorageError` when the record can't be kept.
        """
        agent_id, work = self._agents[agent], self._table[job]
        run = await self._database.write(lambda tx: job_runs.begin(tx, job, agent_id, period, now=self._now()))
        if run is None:
            return None
        log.info("job.begun", job=job, agent=agent, period=period, attempt=run.attempts)
        async with self._put_down(run):
            ended = await self._ended(run, work)
            await self._database.write(
                lambda tx: job_runs.finish(
                    tx, run.id, ended.state, error=ended.error, now=self._now(), again=ended.again
                )
            )
        done = await self._database.read(lambda reader: job_runs.of_id(reader, run.id))
        log.info("job.ended", job=job, agent=agent, period=period, state=ended.state, error=ended.error, **done.counts)
        return done

    async def once(
        self, agent: str, job: str, period: str, act: Callable[[], Awaitable[Mapping[str, int]]]
    ) -> Run | None:
        """Do something of the whole store as a run of a job; None as in `run`. `act` returns what it did, in figures.

        What it raises is the run's failure. Raises `StorageError` when the record can't be kept.
        """
        agent_id = self._agents[agent]
        run = await self._database.write(lambda tx: job_runs.begin(tx, job, agent_id, period, now=self._now()))
        if run is None:
            return None
        log.info("job.begun", job=job, agent=agent, period=period, attempt=run.attempts)
        figures: dict[str, int] = {}

        async def acted() -> None:
            figures.update(_known(await act()))

        async with self._put_down(run):
            error = next(map(_code, await _failure(acted(), job=job)), None)
            await self._database.write(
                lambda tx: job_runs.finish(
                    tx, run.id, "failed" if error else "done", error=error, now=self._now(), figures=figures
                )
            )
        log.info("job.ended", job=job, agent=agent, period=period, error=error, **figures)
        return await self._database.read(lambda reader: job_runs.of_id(reader, run.id))

    async def newest(self, *, limit: int) -> list[Progress]:
        """The newest runs of all agents of this store, newest first, in figures alone."""

        def act(reader: Reader) -> list[Progress]:
            return [
                Progress(run=run, done=done, of=of)
                for run in job_runs.newest(reader, limit=limit)
                for done, of in [job_runs.progress(reader, run.id)]
            ]

        return await self._database.read(act)

    async def latest(self) -> list[Progress]:
        """The newest run of each job and agent of this store, in figures alone."""
        return await self._database.read(_latest)

    async def mine(self, context: Context, *, limit: int) -> list[Item]:
        """The runs that changed something for who asks to see among their rows, newest first."""

        def act(reader: Reader) -> list[Item]:
            scope = anew(reader, context).scope
            found: list[Item] = []
            for offset in count(0, limit):
                page = job_runs.items_of(reader, _owned(scope), limit=limit, offset=offset)
                found += [item for item in page if _is_seen(reader, scope, item)]
                if len(page) < limit or len(found) >= limit:
                    break
            return found[:limit]

        return await self._database.read(act)

    async def item(self, context: Context, run_id: int) -> list[Item]:
        """What a run did to the rows of who asks, in figures: of several linked accounts each; [] for no such run."""

        def act(reader: Reader) -> list[Item]:
            try:
                return _items(reader, anew(reader, context).scope, run_id)
            except NotFound:
                return []

        return await self._database.read(act)

    async def did(self, context: Context, run_id: int) -> list[Change]:
        """What a run did to the rows of who asks, as far as these are still there. Raises `NotFound`."""

        def act(reader: Reader) -> list[Change]:
            scope = anew(reader, context).scope
            items = _items(reader, scope, run_id)
            return [change for item in items for change in _changes(reader, scope, Journal.from_json(item.undo or ""))]

        return await self._database.read(act)

    async def undo(self, context: Context, run_id: int) -> Undone:
        """Put the rows of who asks back as they were before a run; its job won't do the same with them again.

        Raises `NotFound` for a run that did nothing here, and `NoUndo` for one that was taken back before.
        """

        def act(tx: Transaction) -> Undone:
            scope = anew(tx, context).scope
            items = _items(tx, scope, run_id)
            open_items = [item for item in items if item.state != "undone"]
            if not open_items:
                raise NoUndo("That was taken back before.")
            back, stay, restored = list[int](), list[int](), 0
            for item in open_items:
                taken = journal.take_back(tx, Journal.from_json(item.undo or ""))
                job_runs.end_item(tx, run_id, item.owner_id, "undone", now=self._now())
                own = people.scope_of_owner(tx, item.owner_id, agent_id=scope.agent_id)
                if own.private:
                    slots = keys.PROFILE_SLOTS
                    profile.refresh_all(tx, own, item.owner_id, slots, now=self._now(), new_id=self._new_id)
                back += taken.back
                stay += taken.stay
                restored += taken.restored
            people.drop_snapshots_of(tx, _owned(scope), scope.selves)
            return Undone(
                restored=restored,
                left=len(stay),
                back=tuple(memories.by_ids(tx, scope, back)),
                stay=tuple(memories.by_ids(tx, scope, stay)),
            )

        undone = await self._database.write(act)
        # What was removed must not linger in the index until somebody searches.
        await index.keep_up(self._database)
        return undone

    async def preview(self, context: Context, job: str) -> list[Change]:
        """What a job would do by now with the rows of who asks; nothing of it is kept but what it cost.

        Raises `BudgetSpent`, `ModelFailed`, `TimeoutError`, `Unreadable`, and `NotFound` for a job that there is not.
        """
        if job not in self._table:
            raise NotFound(f"There is no job {job}.")
        asking = await self._database.read(lambda reader: anew(reader, context))
        night = self._night(asking.session.agent_id, _day_of(context, self._now()))
        changes: list[Change] = []
        for owner_id in _owned(asking.scope):
            scope, steps = await self._steps(self._table[job], night, owner_id)
            answers = [await self._asked(step, night, job) for step in steps]
            for told in answers:
                if told is not None:
                    await self._database.write(partial(self._book, night=night, job=job, told=told))
            changes += await self._rolled_back(scope, steps, answers)
        return changes

    @asynccontextmanager
    async def _put_down(self, run: Run) -> AsyncIterator[None]:
        """A run that is cancelled inside can be taken up at once, by this process or the next."""
        try:
            yield
        except asyncio.CancelledError:
            # Where that can't be noted the next start does it.
            with suppress(StorageError):
                await self._database.write(lambda tx: job_runs.put_down(tx, run.id))
            raise

    async def _ended(self, run: Run, work: Job) -> _End:
        """Do what is left of a run. Never raises but when it is cancelled."""
        failures: list[Exception] = []
        if work.flushes:
            # What can't be read now is read later.
            failures += await _failure(self._learner.flush_all(run.agent_id), job=run.job)
        failures += await _failure(self._go_through(run, work, failures), job=run.job)
        for one in failures:
            if isinstance(one, BudgetSpent):
                return _End(state="skipped", error=one.code, again=one.until)
        return _End(state="failed", error=_code(failures[0])) if failures else _End(state="done", error=None)

    async def _go_through(self, run: Run, work: Job, failures: list[Exception]) -> None:
        """Do what is left of a run, owner by owner; what goes wrong with them is added to `failures`."""
        night = self._night(run.agent_id, run.period[:10])
        owners = await self._database.read(lambda reader: work.owners(reader, night))
        await self._database.write(lambda tx: job_runs.add_items(tx, run.id, owners))
        down = 0
        for owner_id in await self._database.read(lambda reader: job_runs.open_items(reader, run.id)):
            await self._database.write(lambda tx: job_runs.renew(tx, run.id, now=self._now()))
            working = self._for_owner(run, work, replace(night, now=self._now()), owner_id)
            failed = await _failure(working, job=run.job, owner=owner_id)
            failures += failed
            if any(isinstance(one, BudgetSpent) for one in failed):
                return
            state: Literal["done", "failed"] = "failed" if failed else "done"
            await self._database.write(
                partial(job_runs.end_item, run_id=run.id, owner_id=owner_id, state=state, now=self._now())
            )
            down = down + 1 if any(isinstance(one, ModelFailed | TimeoutError) for one in failed) else 0
            if down == _DOWN:
                return

    async def _for_owner(self, run: Run, work: Job, night: Night, owner_id: int) -> None:
        """Do all that is left to do for an owner; raises the last `Unreadable` once the rest is done.

        Where there was nothing, as `owners` may name some too many, the run has no item of theirs.
        """
        _, steps = await self._steps(work, night, owner_id)
        if not steps:
            await self._database.write(partial(job_runs.drop_idle, run_id=run.id, owner_id=owner_id))
            return
        done = await self._database.read(lambda reader: _record(reader, run.id, owner_id))
        unread: Unreadable | None = None
        for step in steps:
            told = await self._asked(step, night, run.job)
            try:
                # Kept from step to step: to read it again for each would take longer the more was done.
                done = await self._database.write(
                    partial(self._carried_out, run=run, owner_id=owner_id, step=step, told=told, before=done)
                )
            except Unreadable as exc:
                # What it cost is booked all the same.
                if told is not None:
                    await self._database.write(partial(self._book, night=night, job=run.job, told=told))
                log.warning("job.unread", job=run.job, owner=owner_id, error=str(exc))
                unread = exc
        if unread is not None:
            raise unread

    async def _steps(self, work: Job, night: Night, owner_id: int) -> tuple[Scope, Sequence[Step]]:
        def act(reader: Reader) -> tuple[Scope, Sequence[Step]]:
            scope = people.scope_of_owner(reader, owner_id, agent_id=night.agent_id)
            return scope, work.steps(reader, scope, night)

        return await self._database.read(act)

    async def _asked(self, step: Step, night: Night, job: str) -> Told | None:
        """The model's answer for a step that asks for one."""
        mind = self._mind_of(night.agent_id)
        if step.ask is None or mind is None:
            return None
        timezone, now = night.timezone, self._now()
        spent = await self._database.read(
            lambda reader: budget.spent(reader, night.agent_id, mind, timezone=timezone, now=now)
        )
        if spent is not None:
            raise BudgetSpent(
                f"{spent.tokens} of {spent.per_day} tokens of the day are used up, so {job} waits for another day.",
                until=spent.until,
            )
        async with asyncio.timeout(_SECONDS):
            return await mind.complete(step.ask)

    def _carried_out(
        self, tx: Transaction, *, run: Run, owner_id: int, step: Step, told: Told | None, before: Journal
    ) -> Journal:
        """Do a step and put it down with all that was done for the owner `before` it; returns both.

        Where somebody has taken the run back meanwhile it is left undone.
        """
        if job_runs.is_undone(tx, run.id, owner_id):
            if told is not None:
                self._spend(tx, run.agent_id, run.job, told)
            return before
        with journal.kept(tx) as keeping:
            counts = _known(step.carry_out(tx, "" if told is None else told.text))
        nothing = keeping.journal.is_empty
        done = before if nothing else before.then(keeping.journal)
        undo = None if nothing or done.is_empty else done.to_json()
        job_runs.note(tx, run.id, owner_id, counts=counts, undo=undo)
        job_runs.renew(tx, run.id, now=self._now())
        if told is not None:
            self._spend(tx, run.agent_id, run.job, told)
        return done

    async def _rolled_back(self, scope: Scope, steps: Sequence[Step], answers: Sequence[Told | None]) -> list[Change]:
        def act(tx: Transaction) -> None:
            with journal.kept(tx) as keeping:
                for step, told in zip(steps, answers, strict=True):
                    step.carry_out(tx, "" if told is None else told.text)
            raise _RolledBack(_changes(tx, scope, keeping.journal))

        try:
            await self._database.write(act)
        except _RolledBack as seen:
            return seen.changes
        raise AssertionError("a preview is always rolled back")

    def _night(self, agent_id: int, day: str) -> Night:
        return Night(
            agent_id=agent_id,
            day=day,
            timezone=self._timezone_of(agent_id),
            now=self._now(),
            new_id=self._new_id,
            model=self._mind_of(agent_id) is not None,
            nightly=None if self._nightly is None else [self._agents[name] for name in self._nightly],
        )

    def _book(self, tx: Transaction, *, night: Night, job: str, told: Told) -> None:
        self._spend(tx, night.agent_id, job, told)

    def _spend(self, tx: Transaction, agent_id: int, job: str, told: Told) -> None:
        usage.add(tx, told.spent, turn_id=None, session_id=None, agent_id=agent_id, purpose=job, now=self._now())


async def _failure(act: Awaitable[None], **where: object) -> list[Exception]:
    """The job wrapper's boundary: whatever goes wrong in `act`, which the log is told of with where that was."""
    try:
        await act
    except BudgetSpent as exc:
        log.warning("job.skipped", **where, reason=str(exc))
        return [exc]
    except (MemoryFault, TimeoutError) as exc:
        log.warning("job.failed", **where, code=_code(exc), error=str(exc))
        return [exc]
    except Exception as exc:
        log.exception("job.failed", **where)
        return [exc]
    return []


def _code(exc: Exception) -> str:
    return str(getattr(exc, "code", type(exc).__name__))


def _known(figures: Mapping[str, int]) -> Mapping[str, int]:
    """These figures, of which each has a name that people are told."""
    assert figures.keys() <= FIGURES, f"nobody can be told what these are: {sorted(figures.keys() - FIGURES)}"
    return figures


def _record(reader: Reader, run_id: int, owner_id: int) -> Journal:
    """What a run has done so far to an owner's rows."""
    item = job_runs.item(reader, run_id, owner_id)
    return Journal() if item is None or item.undo is None else Journal.from_json(item.undo)


def _owned(scope: Scope) -> tuple[int, ...]:
    """Whose rows somebody may have gone through, or taken back: their own, or in a group the group's."""
    return scope.own if scope.private else (scope.writes_to,)


def _items(reader: Reader, scope: Scope, run_id: int) -> list[Item]:
    """What a run changed among the rows of a scope. Raises `NotFound` alike for a run elsewhere and for none."""
    found = [job_runs.item(reader, run_id, owner_id) for owner_id in _owned(scope)]
    items = [item for item in found if item is not None and item.undo is not None and _is_seen(reader, scope, item)]
    if not items:
        raise NotFound(f"No run {run_id} has changed anything here.")
    return items


def _is_seen(reader: Reader, scope: Scope, item: Item) -> bool:
    """Whether there was anything to see in what a run did to somebody's rows, or what there was is gone by now."""
    done = Journal.from_json(item.undo or "{}")
    touched = [*done.made, *_seen(done)]
    there = memories.by_ids(reader, scope, touched)
    # What is made anew for every prompt follows from what is there; a manner is of its own.
    return bool(touched) and (not there or any(memory.kind != "profile" for memory in there))


def _seen(done: Journal) -> Mapping[int, Mapping[str, tuple[object, object]]]:
    """What changed of which rows, without those of which a job has only noted something for itself."""
    named = {row for links in (done.linked, done.unlinked) for row, _ in links.get("memory_entities", ())}
    return {row: of for row, of in done.changed.items() if row in named or of.keys() - _NOTED}


def _changes(reader: Reader, scope: Scope, done: Journal) -> list[Change]:
    """A journal in words, for who may see the rows; what is derived for every prompt is left out."""
    changed = _seen(done)
    there = {memory.id: memory for memory in memories.by_ids(reader, scope, [*done.made, *changed])}
    shown = {row: memory for row, memory in there.items() if memory.kind not in ("profile", "directive")}
    changes = [
        Change(what="new", memory=shown[row], made_of=tuple(memories.parents(reader, scope, row)))
        for row in done.made
        if row in shown
    ]
    return changes + [Change(what=_what(of), memory=shown[row]) for row, of in changed.items() if row in shown]


def _what(changed: Mapping[str, tuple[object, object]]) -> What:
    """The most telling of what changed in a row."""
    if "archived_at" in changed:
        return "back" if changed["archived_at"][1] is None else "archived"
    if changed.get("superseded_by", (None, None))[1] is not None:
        return "replaced"
    if "compressed_at" in changed:
        return "compressed"
    return "told again" if "reinforced_count" in changed else "changed"


def _day_of(context: Context, now: int) -> str:
    return datetime.fromtimestamp(now / 1000, UTC).astimezone(ZoneInfo(context.timezone)).date().isoformat()
