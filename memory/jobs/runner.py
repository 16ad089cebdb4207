"""Runs the night jobs of one store, previews them, shows their changes, and undoes them.

Invariants: A run goes owner by owner. An owner that fails holds up no other owner, and a question that a model refuses
holds up none of the owner's other steps: it is asked again in halves, and the memory that can't be read is set aside
after a few nights. A model is asked outside any transaction. A step, its record and its cost are
committed in one transaction. A run that breaks off with its process can be resumed at once. A preview is the real work,
rolled back. The same job does not repeat changes that a person has undone. Only rows of the asker's scope are shown or
undone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias

import structlog

from memory import keys, profile
from memory.context import Context, anew, confined, in_read
from memory.errors import MemoryFault, NotFound, StorageError
from memory.jobs import asking, compare, compress, decay, enrich, journal, merge, reflect, runs, style
from memory.jobs.base import FIGURES, Job, Night, Step, night_of
from memory.jobs.compare import Why
from memory.jobs.journal import Journal
from memory.jobs.runs import OwnerResult, Run, RunEnd
from memory.learn.agents import Agents
from memory.learn.answer import Unreadable
from memory.learn.learner import Learner
from memory.learn.model import BudgetSpent, ModelAnswer, ModelFailed, RequestRefused
from memory.loops import reason_of
from memory.recall import index
from memory.scope import Scope
from memory.store import chats, lineage, memories, moving, scopes, usage
from memory.store.database import Database, Reader, Transaction
from memory.store.memories import Memory
from memory.store.sqlite.database import look
from memory.text.times import clock

log = structlog.get_logger(__name__)

#: After this many owners in a row without an answer, the model is taken to be down.
_DOWN: Final = 3
#: Smaller questions that are asked for one owner in the place of refused ones: enough to find three memories among 40.
_SMALLER: Final = 40
#: The same as long as the model has read nothing of the owner: it may be the model that fails, not what it is shown.
_SMALLER_UNREAD: Final = 16
#: Questions in a row that a model leaves unanswered before it is taken to be down, although it read others before.
_SILENT: Final = 6
#: Columns in which a job keeps its own notes about a row; they are never shown.
_NOTED: Final = frozenset({"enriched_at"})
What: TypeAlias = Literal["new", "archived", "replaced", "compressed", "back", "told again", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that a run made, or would make, to one memory.

    For a new memory, `made_of` holds the memories it was made of. For one that a comparison has ended, `why` says why.
    """

    what: What
    memory: Memory
    made_of: tuple[Memory, ...] = ()
    why: Why | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The progress of a run: owners `done`, out of all owners that have work."""

    run: Run
    done: int
    of: int

    @property
    def given_up(self) -> bool:
        """True if the run failed and is not retried automatically."""
        return self.run.state == "failed" and self.run.attempts > len(runs.WAITS_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneRun:
    """The result of undoing a run.

    `restored` counts the rows that are as they were before the run. `left` counts the rows that stay as they are,
    because they were changed since. `back` holds the memories that hold again or count as before; `stay` holds those
    that a person has made their own.
    """

    restored: int
    left: int
    back: tuple[Memory, ...] = ()
    stay: tuple[Memory, ...] = ()


class NoUndo(MemoryFault):
    """A run has nothing that can be undone in this scope."""

    code = "no_undo"


@dataclass(slots=True, kw_only=True)
class _Work:
    """A run's work for one owner: `noted` are the rows of questions refused before, `done` is the journal so far.

    `smaller` counts the questions in the place of refused ones, `silent` those in a row without any answer. `refused`
    are the smallest steps that failed, with their errors.
    """

    run: Run
    night: Night
    owner_id: int
    noted: set[int]
    done: Journal
    is_reading: bool = False
    smaller: int = 0
    silent: int = 0
    refused: list[tuple[Step, Exception]] = field(default_factory=list)

    def has_failed_before(self, step: Step) -> bool:
        return not self.noted.isdisjoint(step.about)

    def instead_of(self, step: Step, error: Exception) -> Sequence[Step]:
        """Returns smaller steps in the place of one that failed; if there are none, it counts as refused."""
        # An answer that was no answer may be one the next time; what else failed fails again.
        again = not isinstance(error, Unreadable) or self.run.attempts > 1 or self.has_failed_before(step)
        most = _SMALLER if self.is_reading else _SMALLER_UNREAD
        instead = step.instead() if again and self.smaller < most else ()
        self.smaller += len(instead)
        if not instead:
            self.refused.append((step, error))
        return instead


async def latest_in(path: Path, database_url: str = "") -> list[RunProgress]:
    """Returns the newest run of each job and agent of the store at `path`, which another process may have open.

    With `database_url` the store is in that PostgreSQL database. The list is empty if there is no store yet. Raises
    `StorageError`.
    """

    def act(reader: Reader) -> list[RunProgress]:
        moving.refuse_unfinished(reader, path)
        return _latest(reader)

    if database_url:
        from memory.store.postgres.database import look as look_on_server  # an extra, which few need

        return await look_on_server(database_url, path, act) or []
    return await look(path, act) or []


def _latest(reader: Reader) -> list[RunProgress]:
    return _progress(reader, runs.latest(reader))


def _progress(reader: Reader, found: Sequence[Run]) -> list[RunProgress]:
    return [RunProgress(run=run, done=done, of=of) for run in found for done, of in [runs.progress(reader, run.id)]]


class _RolledBack(Exception):
    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes


#: The jobs of the night in the order in which they run.
TABLE: Final[tuple[Job, ...]] = (enrich.JOB, compress.JOB, reflect.JOB, merge.JOB, compare.JOB, decay.JOB, style.JOB)


class Jobs:
    def __init__(
        self,
        database: Database,
        *,
        table: Sequence[Job],
        learner: Learner,
        agents: Agents,
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._table = {job.name: job for job in table}
        self._learner = learner
        self._agents = agents
        self._now = now
        self._new_id = new_id

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._table)

    async def begin(self) -> None:
        """Releases the runs that were under way when their process ended, so that they can be resumed."""
        await self._database.write(lambda tx: runs.release(tx, now=self._now()))

    async def since(self, agent: str) -> int:
        """Returns when this store first served the agent, in milliseconds UTC."""
        return await self._database.read(lambda reader: scopes.agent_since(reader, self._agents.ids[agent]))

    async def last(self, agent: str, job: str, *, until: str | None = None) -> str | None:
        """Returns the newest local date for which the clock has begun a job, or None.

        With `until`, later dates are ignored.
        """
        agent_id = self._agents.ids[agent]
        return await self._database.read(lambda reader: runs.last_period(reader, job, agent_id, until=until))

    @in_read
    def unfinished(self, reader: Reader, agent: str) -> list[Run]:
        """Returns runs that broke off, or that failed and may be retried by now, in the order they were begun."""
        return runs.unfinished(reader, self._agents.ids[agent], now=self._now())

    async def run(self, agent: str, job: str, period: str) -> Run | None:
        """Runs a job for a period, or resumes its run.

        Returns None if that run is done, under way, or not to be retried yet. `period` begins with the local date for
        which the job works. Any error is recorded as the run's failure. Raises `StorageError` if the record can't be
        kept.
        """
        work = self._table[job]
        return await self._recorded(agent, job, period, lambda run: self._ended(run, work))

    async def once(
        self, agent: str, job: str, period: str, act: Callable[[], Awaitable[Mapping[str, int]]]
    ) -> Run | None:
        """Runs `act`, which works on the whole store, as a run of a job. Returns None in the same cases as `run`.

        `act` returns its work in figures. An error in it is recorded as the run's failure. Raises `StorageError` if the
        record can't be kept.
        """

        async def ended(_run: Run) -> RunEnd:
            figures: dict[str, int] = {}

            async def acted() -> None:
                figures.update(_known(await act()))

            failures = await _failure(acted(), job=job)
            return RunEnd("failed", _code(failures[0])) if failures else RunEnd("done", figures=figures)

        return await self._recorded(agent, job, period, ended)

    async def _recorded(
        self, agent: str, job: str, period: str, work: Callable[[Run], Awaitable[RunEnd]]
    ) -> Run | None:
        """Records the run of a job, which `work` does. Returns None if it is not to be run now."""
        agent_id, now = self._agents.ids[agent], self._now()
        run = await self._database.write(lambda tx: runs.begin(tx, job, agent_id, period, now=now))
        if run is None:
            return None
        log.info("job.begun", job=job, agent=agent, period=period, attempt=run.attempts)
        async with self._put_down(run):
            end = await work(run)
            await self._database.write(lambda tx: runs.finish(tx, run.id, end, now=self._now()))
        done = await self._database.read(lambda reader: runs.of_id(reader, run.id))
        log.info("job.ended", job=job, agent=agent, period=period, state=end.state, error=end.error, **done.counts)
        return done

    @in_read
    def newest(self, reader: Reader, *, limit: int) -> list[RunProgress]:
        return _progress(reader, runs.newest(reader, limit=limit))

    async def latest(self) -> list[RunProgress]:
        return await self._database.read(_latest)

    @in_read
    def mine(self, reader: Reader, context: Context, *, limit: int) -> list[OwnerResult]:
        scope = confined(reader, context).scope
        found: list[OwnerResult] = []
        for offset in count(0, limit):
            page = runs.items_of(reader, _owned(scope), limit=limit, offset=offset)
            found += [item for item in page if _is_seen(reader, scope, item)]
            if len(page) < limit or len(found) >= limit:
                break
        return found[:limit]

    @in_read
    def item(self, reader: Reader, context: Context, run_id: int) -> list[OwnerResult]:
        """Returns the figures of a run's changes to the asker's rows: an item for each of several linked accounts.

        Returns [] if there is no such run.
        """
        try:
            return _items(reader, confined(reader, context).scope, run_id)
        except NotFound:
            return []

    @in_read
    def did(self, reader: Reader, context: Context, run_id: int) -> list[Change]:
        """Returns a run's changes to the asker's rows, as far as these still exist. Raises `NotFound`."""
        scope = confined(reader, context).scope
        items = _items(reader, scope, run_id)
        return [change for item in items for change in _changes(reader, scope, Journal.from_json(item.undo or ""))]

    async def undo(self, context: Context, run_id: int) -> UndoneRun:
        """Restores the asker's rows to their state before a run. The run's job won't do the same to them again.

        Raises `NotFound` if the run did nothing in this scope, and `NoUndo` if it was undone before.
        """

        def act(tx: Transaction) -> UndoneRun:
            scope = anew(tx, context).scope
            items = _items(tx, scope, run_id)
            open_items = [item for item in items if item.state != "undone"]
            if not open_items:
                raise NoUndo("That run has already been undone.")
            back, stay, restored = list[int](), list[int](), 0
            for item in open_items:
                taken = journal.take_back(tx, Journal.from_json(item.undo or ""))
                runs.end_item(tx, run_id, item.owner_id, "undone", now=self._now())
                own = scopes.scope_of_owner(tx, item.owner_id, agent_id=scope.agent_id)
                if own.private:
                    slots = keys.PROFILE_SLOTS
                    profile.refresh_all(tx, own, item.owner_id, slots, now=self._now(), new_id=self._new_id)
                back += taken.back
                stay += taken.stay
                restored += taken.restored
            chats.drop_snapshots_of(tx, _owned(scope), scope.selves)
            return UndoneRun(
                restored=restored,
                left=len(stay),
                back=tuple(memories.by_ids(tx, scope, back)),
                stay=tuple(memories.by_ids(tx, scope, stay)),
            )

        undone = await self._database.write(act)
        # Removed memories must not stay in the index until the next search.
        await index.keep_up(self._database)
        return undone

    async def preview(self, context: Context, job: str) -> list[Change]:
        """Returns the changes that a job would make now to the asker's rows. Only the cost of model calls is kept.

        Raises `BudgetSpent`, `ModelFailed`, `TimeoutError`, `Unreadable`, and `NotFound` if there is no such job.
        """
        if job not in self._table:
            raise NotFound(f"There is no job {job}.")
        asking = await self._database.read(lambda reader: anew(reader, context))
        now = self._now()
        day = clock.local_date(now, context.timezone).isoformat()
        night = replace(self._night(asking.session.agent_id, day), now=now)
        changes: list[Change] = []
        for owner_id in _owned(asking.scope):
            scope, steps = await self._steps(self._table[job], night, owner_id)
            answers = [await self._asked(step, night) for step in steps]
            for answer in answers:
                if answer is not None:
                    await self._database.write(partial(self._book, answer=answer, agent_id=night.agent_id, job=job))
            changes += await self._rolled_back(scope, steps, answers)
        return changes

    @asynccontextmanager
    async def _put_down(self, run: Run) -> AsyncIterator[None]:
        """Releases the run if the body is cancelled, so that this process or the next can resume it at once."""
        try:
            yield
        except asyncio.CancelledError:
            # If this can't be recorded, the next start releases the run.
            with suppress(StorageError):
                await self._database.write(lambda tx: runs.put_down(tx, run.id))
            raise

    async def _ended(self, run: Run, work: Job) -> RunEnd:
        """Does the rest of a run. Raises nothing except when it is cancelled."""
        failures: list[Exception] = []
        if work.flushes:
            # Messages that can't be read now are read later.
            failures += await _failure(self._learner.flush_all(run.agent_id), job=run.job)
        failures += await _failure(self._go_through(run, work, failures), job=run.job)
        for one in failures:
            if isinstance(one, BudgetSpent):
                return RunEnd("skipped", one.code, one.until)
        return RunEnd("failed", _code(failures[0])) if failures else RunEnd("done")

    async def _go_through(self, run: Run, work: Job, failures: list[Exception]) -> None:
        night = self._night(run.agent_id, run.period[:10])
        owners = await self._database.read(lambda reader: work.owners(reader, night))
        await self._database.write(lambda tx: runs.add_items(tx, run.id, owners))
        down = 0
        for owner_id in await self._database.read(lambda reader: runs.open_items(reader, run.id)):
            await self._database.write(lambda tx: runs.renew(tx, run.id, now=self._now()))
            before = len(failures)
            working = self._for_owner(run, work, replace(night, now=self._now()), owner_id, failures)
            failed = await _failure(working, job=run.job, owner=owner_id)
            failures += failed
            if any(isinstance(one, BudgetSpent) for one in failed):
                return
            state: Literal["done", "failed"] = "failed" if len(failures) > before else "done"
            await self._database.write(
                partial(runs.end_item, run_id=run.id, owner_id=owner_id, state=state, now=self._now())
            )
            down = down + 1 if any(isinstance(one, ModelFailed | TimeoutError) for one in failed) else 0
            if down == _DOWN:
                return

    async def _for_owner(self, run: Run, work: Job, night: Night, owner_id: int, failures: list[Exception]) -> None:
        """Does all remaining work for an owner. Adds the last error to `failures` if the model has read the rest.

        Raises it if the model has read nothing, or gives no answers any more. If there was nothing to do, the owner's
        item is dropped from the run, because `owners` may name owners without work.
        """
        _, steps = await self._steps(work, night, owner_id)
        if not steps:
            await self._database.write(partial(runs.drop_idle, run_id=run.id, owner_id=owner_id))
            return
        work_left = _Work(
            run=run,
            night=night,
            owner_id=owner_id,
            noted=await self._database.read(lambda reader: asking.noted(reader, run.job)),
            done=await self._database.read(lambda reader: _record(reader, run.id, owner_id)),
        )
        # What failed before comes last, so that it can't keep the rest from being read.
        todo = deque(sorted(steps, key=work_left.has_failed_before))
        try:
            while todo:
                todo.extendleft(reversed(await self._done_or_smaller(work_left, todo.popleft())))
        except BudgetSpent:
            # Else the same rows would come first every night and use up its tokens.
            await self._note_refused(work_left, [step for step, _ in work_left.refused])
            raise
        await self._note_refused(work_left, [step for step, _ in work_left.refused])
        if work_left.refused:
            _, last = work_left.refused[-1]
            if not work_left.is_reading:
                raise last
            failures.append(last)

    async def _done_or_smaller(self, work: _Work, step: Step) -> Sequence[Step]:
        """Does a step. Returns the steps to do in its place if it failed.

        Raises its error if the model gives no answers any more, and `BudgetSpent` and `StorageError`.
        """
        answer = None
        try:
            answer = await self._asked(step, work.night)
            # Passed from step to step: reading it again for each step would take longer the more was done.
            work.done = await self._database.write(partial(self._carried_out, work=work, step=step, answer=answer))
            work.is_reading, work.silent = work.is_reading or answer is not None, 0
        except (StorageError, BudgetSpent):
            raise
        # Whatever is wrong with one question, its answer or its rows, the other steps are done.
        except Exception as exc:
            run = work.run
            # The cost is booked even though the answer is unreadable.
            if answer is not None:
                await self._database.write(partial(self._book, answer=answer, agent_id=run.agent_id, job=run.job))
            log.warning("job.unread", job=run.job, owner=work.owner_id, rows=len(step.about), error=reason_of(exc))
            work.silent += _is_silent(exc)
            if _is_silent(exc) and (work.silent > _SILENT or not work.is_reading):
                # The model is down, or was so for these rows: next time the others come first.
                work.is_reading = False
                await self._note_refused(work, [step])
                raise
            return work.instead_of(step, exc)
        return ()

    async def _note_refused(self, work: _Work, steps: Sequence[Step]) -> None:
        """Counts the smallest questions that a model refused for the memories in them.

        A model that has read nothing else may be the reason itself. It sets nothing aside that it had not refused
        before, beside others that it read.
        """
        run = work.run

        def act(tx: Transaction) -> None:
            known = asking.suspected(tx, run.job)
            # A question about more is no proof against any of its rows.
            small = [step for step in steps if not step.instead()]
            meant = {row for step in small for row in step.about if work.is_reading or row in known}
            others = {row for step in steps for row in step.about} - meant
            asking.note(tx, run.job, sorted(others), counted=False)
            if set_aside := asking.note(tx, run.job, sorted(meant), counted=True):
                runs.note(tx, run.id, work.owner_id, counts={"set_aside": set_aside}, undo=None)

        if steps:
            await self._database.write(act)

    @in_read
    def _steps(self, reader: Reader, work: Job, night: Night, owner_id: int) -> tuple[Scope, Sequence[Step]]:
        scope = scopes.scope_of_owner(reader, owner_id, agent_id=night.agent_id)
        reader.confine(scope)
        return scope, work.steps(reader, scope, night)

    async def _asked(self, step: Step, night: Night) -> ModelAnswer | None:
        model = self._agents.model(night.agent_id)
        if step.request is None or model is None:
            return None
        agent_id, timezone = night.agent_id, night.timezone
        return await model.ask(step.request, self._database, agent_id=agent_id, timezone=timezone, now=self._now())

    def _carried_out(self, tx: Transaction, *, work: _Work, step: Step, answer: ModelAnswer | None) -> Journal:
        """Carries out a step and records it together with the journal of the owner's earlier steps.

        Returns the joined journal. If a person has undone the run meanwhile, the step is not carried out.
        """
        run, owner_id, before = work.run, work.owner_id, work.done
        if runs.is_undone(tx, run.id, owner_id):
            if answer is not None:
                self._book(tx, answer, agent_id=run.agent_id, job=run.job)
            return before
        with journal.kept(tx) as keeping:
            counts = _known(step.carry_out(tx, "" if answer is None else answer.text))
        nothing = keeping.journal.is_empty
        done = before if nothing else before.then(keeping.journal)
        undo = None if nothing or done.is_empty else done.to_json()
        runs.note(tx, run.id, owner_id, counts=counts, undo=undo)
        runs.renew(tx, run.id, now=self._now())
        if answer is not None:
            self._book(tx, answer, agent_id=run.agent_id, job=run.job)
            asking.forgive(tx, run.job, step.about)
        return done

    async def _rolled_back(
        self, scope: Scope, steps: Sequence[Step], answers: Sequence[ModelAnswer | None]
    ) -> list[Change]:
        def act(tx: Transaction) -> None:
            with journal.kept(tx) as keeping:
                for step, answer in zip(steps, answers, strict=True):
                    step.carry_out(tx, "" if answer is None else answer.text)
            raise _RolledBack(_changes(tx, scope, keeping.journal))

        try:
            await self._database.write(act)
        except _RolledBack as seen:
            return seen.changes
        raise AssertionError("a preview is always rolled back")

    def _night(self, agent_id: int, day: str) -> Night:
        return night_of(self._agents, agent_id, day=day, now=self._now(), new_id=self._new_id)

    def _book(self, tx: Transaction, answer: ModelAnswer, *, agent_id: int, job: str) -> None:
        usage.add(tx, answer.spent, agent_id=agent_id, purpose=job, now=self._now())


async def _failure(act: Awaitable[None], **where: object) -> list[Exception]:
    """Returns the error of `act`, if it raises one, and logs it with `where`. The boundary of the job wrapper."""
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


def _is_silent(exc: Exception) -> bool:
    return isinstance(exc, ModelFailed | TimeoutError) and not isinstance(exc, RequestRefused)


def _code(exc: Exception) -> str:
    return str(getattr(exc, "code", type(exc).__name__))


def _known(figures: Mapping[str, int]) -> Mapping[str, int]:
    assert figures.keys() <= FIGURES, f"nobody can be told what these are: {sorted(figures.keys() - FIGURES)}"
    return figures


def _record(reader: Reader, run_id: int, owner_id: int) -> Journal:
    item = runs.item(reader, run_id, owner_id)
    return Journal() if item is None or item.undo is None else Journal.from_json(item.undo)


def _owned(scope: Scope) -> tuple[int, ...]:
    """Returns the owners whose rows a person may list or undo: their own, or in a group the group's."""
    return scope.own if scope.private else (scope.writes_to,)


def _items(reader: Reader, scope: Scope, run_id: int) -> list[OwnerResult]:
    """Returns a run's changes to a scope's rows.

    Raises the same `NotFound` for a run elsewhere as for a run that does not exist.
    """
    found = [runs.item(reader, run_id, owner_id) for owner_id in _owned(scope)]
    items = [item for item in found if item is not None and item.undo is not None and _is_seen(reader, scope, item)]
    if not items:
        raise NotFound(f"No run {run_id} has changed anything here.")
    return items


def _is_seen(reader: Reader, scope: Scope, item: OwnerResult) -> bool:
    """Returns whether the run changed rows that a person can see, or could see before these were gone."""
    done = Journal.from_json(item.undo or "{}")
    touched = [*done.made, *_seen(done)]
    there = memories.by_ids(reader, scope, touched)
    # A profile is derived from other rows for every prompt. A manner is a result of its own, so it counts.
    return bool(touched) and (not there or any(memory.kind != "profile" for memory in there))


def _seen(done: Journal) -> Mapping[int, Mapping[str, tuple[object, object]]]:
    """Returns the changed columns by row, without rows that changed only in a job's own notes."""
    named = {row for links in (done.linked, done.unlinked) for row, _ in links.get("memory_entities", ())}
    return {row: of for row, of in done.changed.items() if row in named or of.keys() - _NOTED}


def _changes(reader: Reader, scope: Scope, done: Journal) -> list[Change]:
    """Returns a journal as changes to the rows that the scope may see.

    Memories that are derived for every prompt (profiles and manners) are left out.
    """
    changed = _seen(done)
    there = {memory.id: memory for memory in memories.by_ids(reader, scope, [*done.made, *changed])}
    shown = {row: memory for row, memory in there.items() if memory.kind not in ("profile", "directive")}
    changes = [
        Change(what="new", memory=shown[row], made_of=tuple(lineage.parents(reader, scope, row)))
        for row in done.made
        if row in shown
    ]
    ended = compare.replaced(reader, list(changed))
    for row, of in changed.items():
        if row in shown:
            newer, why = ended.get(row, (None, None))
            # A pair may have been compared, and undone, before something else replaced the row.
            is_by_it = newer is not None and of.get("superseded_by", (None, None))[1] == newer
            changes.append(Change(what=_what(of), memory=shown[row], why=why if is_by_it else None))
    return changes


def _what(changed: Mapping[str, tuple[object, object]]) -> What:
    if "archived_at" in changed:
        return "back" if changed["archived_at"][1] is None else "archived"
    if changed.get("superseded_by", (None, None))[1] is not None:
        return "replaced"
    if "compressed_at" in changed:
        return "compressed"
    return "told again" if "reinforced_count" in changed else "changed"
