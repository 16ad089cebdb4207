"""Runs of jobs: in which order, once each, what becomes of failures and of a killed process; looked at and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.context import Context
from memory.errors import NotFound, StoreBusy
from memory.jobs import runs
from memory.jobs.base import Job, Night, Step
from memory.jobs.runner import Jobs, NoUndo
from memory.learn.agents import AgentMemory, Agents
from memory.learn.answer import Unreadable
from memory.learn.learner import Learner, Triggers
from memory.learn.model import BackgroundModel, ModelAnswer, ModelFailed, ModelRequest
from memory.scope import Scope
from memory.service import Service
from memory.store import chats, memories, scopes
from memory.store.database import Reader, Transaction
from memory.store.memories import Draft, Memory
from memory.store.sqlite import health
from memory.store.usage import Spent
from tests.kit.fakes import DAY, NOON, Clock, counting_ids, runtime
from tests.kit.forgetting import forgotten_alone
from tests.kit.patience import SECONDS
from tests.kit.stores import connection_of, link, remembering
from tests.kit.talk import act, group, private, remember, say

#: The value of the row that the test's job makes, and leaves alone.
_MADE = "all in one"


class Model:
    """Answers "yes", unless for this very question something else is prepared; keeps what it was asked."""

    def __init__(self, **answers: str | Exception | Callable[[], Awaitable[str]]) -> None:
        self.answers: dict[str, str | Exception | Callable[[], Awaitable[str]]] = dict(answers)
        self.asked: list[str] = []

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request.material)
        answer = self.answers.get(request.material, "yes")
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, str):
            answer = await answer()
        spent = Spent(model="scripted", input_tokens=10, output_tokens=1, cached_tokens=0, estimated=False)
        return ModelAnswer(text=answer, spent=spent)


def notes_of(reader: Reader, scope: Scope) -> list[Memory]:
    found = [one for one in memories.current(reader, scope, ("fact",), limit=100) if one.value != _MADE]
    return sorted(found, key=lambda one: one.id)


def owners(reader: Reader, night: Night) -> list[int]:
    """Those with anything to put together."""
    served = scopes.owners_served(reader, night.agent_id)
    return [one for one in served if notes_of(reader, scopes.scope_of_owner(reader, one, agent_id=night.agent_id))]


def steps(reader: Reader, scope: Scope, night: Night) -> Sequence[Step]:
    """Each note is a step; the first makes a row of all, once. The model is asked with the note's words."""
    notes = notes_of(reader, scope)
    is_made = len(notes) < sum(memories.held(reader, scope).kinds.values())

    def step(note: Memory, made_of: Sequence[Memory]) -> Step:
        def carry_out(tx: Transaction, answer: str) -> Mapping[str, int]:
            if answer not in ("yes", ""):
                raise Unreadable(f"That is no answer: {answer}")
            if memories.by_id(tx, scope, note.id) is None:
                return {}
            counts = {"archived": 1}
            if made_of:
                made = memories.insert(tx, merged(scope, night), new_id=night.new_id, now=night.now)
                memories.set_parents(tx, made, [one.id for one in made_of])
                counts["merged"] = 1
            tx.run("update memories set archived_at = ? where id = ?", (night.now, note.id))
            return counts

        request = ModelRequest(instructions="Is it so?", material=note.value) if night.model else None
        return Step(carry_out=carry_out, request=request)

    return [step(note, notes if n == 0 and not is_made else ()) for n, note in enumerate(notes)]


def merged(scope: Scope, night: Night) -> Draft:
    return Draft(
        kind="fact", owner_id=scope.writes_to, category="decision", key="notes", value=_MADE, importance=5,
        confidence=1.0, origin="derived", learned_at=night.now, local_date=night.day,
    )  # fmt: skip


MERGE = Job(name="merge", owners=owners, steps=steps)


def jobs(
    memory: Service, clock: Clock, model: Callable[[ModelRequest], Awaitable[ModelAnswer]] | None = None, *,
    table: Sequence[Job] = (MERGE,), agents: Agents | None = None, learner: Learner | None = None, **options: Any,
) -> Jobs:  # fmt: skip
    ids = counting_ids()
    return Jobs(
        memory.database,
        table=table,
        learner=learner or memory.learner,
        agents=agents
        or remembering(memory, model=None if model is None else BackgroundModel(complete=model, **options)),
        now=clock,
        new_id=lambda: f"m_n{ids()}",
    )


async def told(memory: Service, *people_: str, notes: int = 1) -> list[Context]:
    """Each of these has had something kept in private, named after them."""
    contexts = []
    for person in people_:
        context = await memory.identities.context(*private(person))
        for n in range(notes):
            await remember(memory, context, f"{person} {n}" if n else person)
        contexts.append(context)
    return contexts


async def values(memory: Service, context: Context) -> list[str]:
    return sorted(one.value for one in await memory.browse.memories(context, limit=100))


async def dump(memory: Service, *but: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, but for some, and for the signs of life and the commits of processes."""

    def read(reader: Reader) -> dict[str, list[tuple[Any, ...]]]:
        names = [row["name"] for row in reader.all("select name from sqlite_schema where type = 'table'")]
        return {
            name: [tuple(row) for row in reader.all(f"select * from {name}")]
            for name in names
            if name not in (*but, "replicas", "commits") and name not in health.WORDS and not name.startswith("sqlite_")
        }

    return await memory.database.read(read)


# Runs ------------------------------------------------------------------------------------------------------------


async def test_a_run_goes_through_each_owner_once_and_sums_what_it_did(memory: Service, clock: Clock) -> None:
    """In the order in which they came, so that a run that broke off is easy to follow."""
    contexts = await told(memory, "ada", "bob", "cyd", notes=2)
    model = Model()
    run = await jobs(memory, clock, model).run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error, run.attempts) == ("done", None, 1)
    assert run.counts == {"archived": 6, "merged": 3}
    assert model.asked == sorted(model.asked)
    assert [await values(memory, one) for one in contexts] == [[_MADE]] * 3


@pytest.mark.sqlite("traces its statements")
async def test_a_step_adds_to_the_record_without_reading_it_again(memory: Service, clock: Clock) -> None:
    """Read anew for each, the record of thousands of rows would take longer than the work."""
    (ada,) = await told(memory, "ada", notes=4)
    # With --twice each statement is traced twice.
    done: set[str] = set()

    def watched(reader: Reader, scope: Scope, night: Night) -> Sequence[Step]:
        def watching(step: Step) -> Step:
            def carry_out(tx: Transaction, answer: str) -> Mapping[str, int]:
                connection_of(tx).set_trace_callback(done.add)
                return step.carry_out(tx, answer)

            return replace(step, carry_out=carry_out)

        return [watching(step) for step in steps(reader, scope, night)]

    night = jobs(memory, clock, table=[replace(MERGE, steps=watched)])
    run = await night.run("assistant", "merge", "2026-11-21")
    await memory.database.write(lambda tx: connection_of(tx).set_trace_callback(None))
    assert run is not None and run.counts == {"archived": 4, "merged": 1}
    assert sum("update job_items set counts" in one for one in done) == 4
    assert not any("i.undo" in one for one in done)
    assert (await night.undo(ada, run.id)).restored == 5


async def test_those_for_whom_there_is_nothing_to_do_are_no_item(memory: Service, clock: Clock) -> None:
    """A quick look finds whom a run goes through, and may name some too many."""
    await told(memory, "ada")
    await memory.identities.context(*private("bob"))
    everybody = Job(name="merge", owners=lambda reader, night: scopes.owners_served(reader, 1), steps=steps)
    run = await jobs(memory, clock, table=[everybody]).run("assistant", "merge", "2026-11-21")
    assert run is not None and run.counts == {"archived": 1, "merged": 1}
    [newest] = await memory.jobs.newest(limit=1)
    assert (newest.done, newest.of) == (1, 1)


async def test_a_period_that_is_done_is_not_done_again(memory: Service, clock: Clock) -> None:
    """However often the clock asks; the next period is another matter."""
    (ada,) = await told(memory, "ada")
    night = jobs(memory, clock)
    assert await night.run("assistant", "merge", "2026-11-21") is not None
    await act(memory, ada, lambda edits: edits.remember("another", key="note"))
    assert await night.run("assistant", "merge", "2026-11-21") is None
    assert await values(memory, ada) == [_MADE, "another"]
    assert await night.last("assistant", "merge") == "2026-11-21"
    run = await night.run("assistant", "merge", "2026-11-22")
    assert run is not None and run.counts == {"archived": 1}
    assert await night.last("assistant", "merge") == "2026-11-22"


async def test_a_run_by_hand_is_none_of_the_clocks(memory: Service, clock: Clock) -> None:
    """Else the night after it would be left out."""
    night = jobs(memory, clock)
    assert await night.run("assistant", "merge", "2026-11-25T12:00:00") is not None
    assert await night.last("assistant", "merge") is None


@pytest.mark.parametrize("wrong", [ValueError("a fault of ours"), ModelFailed("down"), "nonsense"])
async def test_one_owner_who_fails_holds_up_no_other(memory: Service, clock: Clock, wrong: str | Exception) -> None:
    """Whatever goes wrong; the run says that something did, and what became of the rest."""
    contexts = await told(memory, "ada", "bob", "cyd")
    run = await jobs(memory, clock, Model(bob=wrong)).run("assistant", "merge", "2026-11-21")
    assert run is not None and run.state == "failed"
    assert run.error == getattr(wrong, "code", "ValueError" if isinstance(wrong, ValueError) else Unreadable.code)
    assert run.counts == {"archived": 2, "merged": 2}
    assert [await values(memory, one) for one in contexts] == [[_MADE], ["bob"], [_MADE]]


async def test_an_answer_that_can_t_be_read_is_paid_for(memory: Service, clock: Clock) -> None:
    """Tokens that a model took are booked once, whatever it said."""
    await told(memory, "ada")
    await jobs(memory, clock, Model(ada="nonsense")).run("assistant", "merge", "2026-11-21")
    booked = await memory.database.read(lambda reader: reader.all("select purpose, input_tokens from usage"))
    assert [tuple(row) for row in booked] == [("merge", 10)]


async def test_an_answer_that_can_t_be_read_holds_up_no_other_step(memory: Service, clock: Clock) -> None:
    """The rest of the owner's work is done; the run tells it, and goes over what is left when it is tried again."""
    (ada,) = await told(memory, "ada", notes=3)
    model = Model(**{"ada": "nonsense", "ada 1": "nonsense"})
    night = jobs(memory, clock, model)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error) == ("failed", Unreadable.code)
    assert (model.asked, run.counts) == (["ada", "ada 1", "ada 2"], {"archived": 1})
    assert await values(memory, ada) == ["ada", "ada 1"]
    (item,) = await night.mine(ada, limit=5)
    assert item.state == "failed"
    model.answers.clear()
    clock.move(minutes=10)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.counts) == ("done", {"archived": 3, "merged": 1})
    assert model.asked[3:] == ["ada", "ada 1"]


async def test_a_model_that_does_not_answer_ends_an_owners_work(memory: Service, clock: Clock) -> None:
    """It is down, or was so for this one: to ask the rest takes a minute and a half each."""
    await told(memory, "ada", notes=3)
    model = Model(ada=ModelFailed("down"))
    run = await jobs(memory, clock, model).run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, model.asked) == ("failed", ["ada"])


@pytest.mark.parametrize("wrong", [KeyError("a fault of ours"), StoreBusy("for too long")])
async def test_what_goes_wrong_beside_the_owners_is_the_runs_failure(
    memory: Service, clock: Clock, wrong: Exception
) -> None:
    """Whatever it is: recorded under its code, and tried again like the failure of one of them."""
    (ada,) = await told(memory, "ada")
    broken = [wrong]

    def listed(reader: Reader, night: Night) -> list[int]:
        if broken:
            raise broken.pop()
        return owners(reader, night)

    night = jobs(memory, clock, table=[Job(name="merge", owners=listed, steps=steps)])
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error) == ("failed", getattr(wrong, "code", "KeyError"))
    clock.move(minutes=10)
    assert [one.job for one in await night.unfinished("assistant")] == ["merge"]
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.attempts) == ("done", 2)
    assert await values(memory, ada) == [_MADE]


async def test_what_can_t_be_read_before_a_run_holds_up_none_of_it(memory: Service, clock: Clock) -> None:
    """Unread talk is one thing; the rest of the night is another."""
    (ada,) = await told(memory, "ada")
    await say(memory, private("ada"), "I like tea", clock=clock)

    learner = Learner(
        memory.database, agents=Agents(memory.agents.ids, {}), triggers=Triggers(), now=clock, new_id=counting_ids()
    )
    flushing = Job(name="merge", owners=owners, steps=steps, flushes=True)
    night = jobs(memory, clock, table=[flushing], learner=learner)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error) == ("failed", "KeyError")
    assert await values(memory, ada) == [_MADE]


async def test_a_figure_that_nobody_can_be_told_is_a_fault(memory: Service, clock: Clock) -> None:
    """Found by whoever adds it: every job's tests go through here."""
    await told(memory, "ada")

    def counting(reader: Reader, scope: Scope, night: Night) -> Sequence[Step]:
        return [Step(carry_out=lambda _tx, _answer: {"oddities": 1})]

    night = jobs(memory, clock, table=[Job(name="merge", owners=owners, steps=counting)])
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.error, run.counts) == ("AssertionError", {})


async def test_what_goes_wrong_with_the_whole_store_s_work_is_its_runs_failure(memory: Service, clock: Clock) -> None:
    """A disk that is taken away is no `MemoryFault`, and must not end the nights of all."""

    async def act() -> Mapping[str, int]:
        raise OSError("no such device")

    run = await jobs(memory, clock).once("assistant", "tidy", "2026-11-21", act)
    assert run is not None and (run.state, run.error) == ("failed", "OSError")


async def test_a_failed_run_is_tried_again_after_waits_and_then_given_up(memory: Service, clock: Clock) -> None:
    """After 10 minutes, an hour and 4 hours, for those alone for whom it failed."""
    ada, bob = await told(memory, "ada", "bob")
    model = Model(ada=ModelFailed("down"))
    night = jobs(memory, clock, model)
    await night.run("assistant", "merge", "2026-11-21")
    for minutes in (10, 60, 240):
        clock.move(minutes=minutes - 1)
        assert await night.unfinished("assistant") == []
        assert await night.run("assistant", "merge", "2026-11-21") is None
        clock.move(minutes=1)
        assert [run.job for run in await night.unfinished("assistant")] == ["merge"]
        run = await night.run("assistant", "merge", "2026-11-21")
        assert run is not None and run.state == "failed"
    assert run is not None and run.attempts == 4
    assert model.asked == ["ada", "bob", "ada", "ada", "ada"]
    clock.move(days=7)
    assert await night.unfinished("assistant") == []
    assert await night.run("assistant", "merge", "2026-11-21") is None
    (progress,) = await night.newest(limit=5)
    assert progress.given_up and (progress.done, progress.of) == (2, 2)
    assert (await values(memory, ada), await values(memory, bob)) == (["ada"], [_MADE])


async def test_a_run_that_failed_ends_well_once_it_can(memory: Service, clock: Clock) -> None:
    """The figures are those of all its tries."""
    await told(memory, "ada", "bob")
    model = Model(ada=ModelFailed("down"))
    night = jobs(memory, clock, model)
    await night.run("assistant", "merge", "2026-11-21")
    del model.answers["ada"]
    clock.move(minutes=10)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error) == ("done", None)
    assert run.counts == {"archived": 2, "merged": 2}


async def test_three_owners_in_a_row_without_an_answer_end_a_run(memory: Service, clock: Clock) -> None:
    """The model is down then: to ask it for everybody takes the whole night."""
    people_ = ("ada", "bob", "cyd", "dan", "eve")
    await told(memory, *people_)
    model = Model(**dict.fromkeys(people_, ModelFailed("down")))
    night = jobs(memory, clock, model)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error) == ("failed", "model_failed")
    assert model.asked == ["ada", "bob", "cyd"]
    model.answers.clear()
    clock.move(minutes=10)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and run.counts == {"archived": 5, "merged": 5}


async def test_failures_that_are_not_in_a_row_end_no_run(memory: Service, clock: Clock) -> None:
    """A model that answers now and then is up."""
    await told(memory, "ada", "bob", "cyd", "dan", "eve")
    model = Model(ada=ModelFailed("down"), bob=ModelFailed("down"), dan=ModelFailed("down"))
    run = await jobs(memory, clock, model).run("assistant", "merge", "2026-11-21")
    assert run is not None and run.counts == {"archived": 2, "merged": 2}
    assert model.asked == ["ada", "bob", "cyd", "dan", "eve"]


async def test_when_the_tokens_of_the_day_are_spent_the_rest_waits_for_another(memory: Service, clock: Clock) -> None:
    """The run says that it was skipped, and is not tried again and again on the same day."""
    ada, bob = await told(memory, "ada", "bob")
    model = Model()
    night = jobs(memory, clock, model, tokens_per_day=10)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.error) == ("skipped", "budget_spent")
    assert run.counts == {"archived": 1, "merged": 1}
    clock.move(minutes=60)
    assert await night.unfinished("assistant") == []
    assert await night.run("assistant", "merge", "2026-11-21") is None
    clock.move(days=1)
    run = await night.run("assistant", "merge", "2026-11-22")
    assert run is not None and run.state == "done"
    assert (await values(memory, ada), await values(memory, bob)) == ([_MADE], [_MADE])


async def test_what_was_skipped_goes_on_with_the_next_day_s_tokens(memory: Service, clock: Clock) -> None:
    """On the same record, so that a weekly job loses no week; what was done stays done, and a day's want is no try."""
    contexts = await told(memory, "ada", "bob", "cyd", "dan", "eve", "fay")
    model = Model()
    night = jobs(memory, clock, model, tokens_per_day=10)
    for day in range(6):
        run = await night.run("assistant", "merge", "2026-11-21")
        assert run is not None and (run.state, run.attempts) == ("skipped" if day < 5 else "done", 1)
        assert run.counts == {"archived": day + 1, "merged": day + 1}
        if day == 5:
            break
        assert run.not_before == NOON + day * DAY + DAY // 2  # the next midnight
        clock.at = run.not_before - 1_000
        assert await night.unfinished("assistant") == []
        assert await night.run("assistant", "merge", "2026-11-21") is None
        (progress,) = await night.newest(limit=5)
        assert (progress.run.state, progress.done, progress.of) == ("skipped", day + 1, 6)
        clock.at = run.not_before
        assert [one.period for one in await night.unfinished("assistant")] == ["2026-11-21"]
    assert model.asked == ["ada", "bob", "cyd", "dan", "eve", "fay"]
    assert [await values(memory, one) for one in contexts] == [[_MADE]] * 6


async def test_a_run_that_is_broken_off_goes_on_where_it_was(memory: Service, clock: Clock) -> None:
    """At once, in a process that lives on; what was done is not done or paid again, and it counts as no try."""
    ada, bob = await told(memory, "ada", "bob", notes=2)
    stuck = asyncio.Event()

    async def never() -> str:
        stuck.set()
        await asyncio.Event().wait()
        raise AssertionError

    model = Model(**{"ada 1": never})
    night = jobs(memory, clock, model)
    running = asyncio.create_task(night.run("assistant", "merge", "2026-11-21"))
    await stuck.wait()
    assert await night.run("assistant", "merge", "2026-11-21") is None
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    model.answers.clear()
    assert [(run.period, run.put_down) for run in await night.unfinished("assistant")] == [("2026-11-21", True)]
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and (run.state, run.attempts) == ("done", 1)
    assert model.asked == ["ada", "ada 1", "ada 1", "bob", "bob 1"]
    # The row that was made of both is one, though its second parent was set aside by a later try.
    assert (await values(memory, ada), await values(memory, bob)) == ([_MADE], [_MADE])


async def test_what_ends_the_process_each_time_is_given_up(memory: Service, clock: Clock) -> None:
    """After as many tries as of what fails each time; people are told, and may have it tried again."""
    (ada,) = await told(memory, "ada")
    night = jobs(memory, clock)
    agent_id = memory.agents.ids["assistant"]
    for attempt in range(1, 5):
        # A process that is killed says nothing more: its run stays as it was begun.
        run = await memory.database.write(lambda tx: runs.begin(tx, "merge", agent_id, "2026-11-21", now=clock()))
        assert run is not None and run.attempts == attempt
        assert await night.unfinished("assistant") == []
        await night.begin()
        assert [one.state for one in await night.unfinished("assistant")] == ["running"] * (attempt < 4)
    (progress,) = await night.newest(limit=5)
    assert progress.given_up and (progress.run.state, progress.run.error) == ("failed", "broken_off")
    clock.move(days=2)
    await night.begin()
    assert await night.unfinished("assistant") == []
    assert await night.run("assistant", "merge", "2026-11-21") is None
    assert await values(memory, ada) == ["ada"]
    by_hand = await night.run("assistant", "merge", "2026-11-21T12:00:00")
    assert by_hand is not None and by_hand.state == "done"
    assert await values(memory, ada) == [_MADE]


async def test_the_lease_of_a_run_that_says_nothing_ends(memory: Service, clock: Clock) -> None:
    """Where nobody starts anew, a run that hung is taken over."""
    await told(memory, "ada")
    night = jobs(memory, clock)
    agent_id = memory.agents.ids["assistant"]
    await memory.database.write(lambda tx: runs.begin(tx, "merge", agent_id, "2026-11-21", now=clock()))
    clock.move(minutes=14)
    assert await night.run("assistant", "merge", "2026-11-21") is None
    clock.move(minutes=1)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and run.state == "done"


@pytest.mark.parametrize("at", range(1, 8))
async def test_a_run_cut_short_anywhere_ends_the_same(tmp_path: Path, clock: Clock, at: int) -> None:
    """Killed at its n-th question, the store opened anew: the rows are as if nothing had been."""

    async def opened() -> Service:
        return await Service.open(
            tmp_path / "remora.db",
            agents={"assistant": AgentMemory()},
            triggers=Triggers(quiet_seconds=3_600),
            runtime=runtime(clock),
        )

    memory = await opened()
    contexts = await told(memory, "ada", "bob", notes=3)
    model, stuck = Model(), asyncio.Event()

    async def counted(request: ModelRequest) -> ModelAnswer:
        if len(model.asked) == at - 1:
            stuck.set()
            await asyncio.Event().wait()
        return await model(request)

    night = jobs(memory, clock, counted)
    running = asyncio.create_task(night.run("assistant", "merge", "2026-11-21"))
    await asyncio.wait({running, waiting := asyncio.create_task(stuck.wait())}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    running.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    await memory.close(seconds=SECONDS)
    memory = await opened()
    try:
        run = await jobs(memory, clock, model).run("assistant", "merge", "2026-11-21")
        assert (run is None) == (at == 7)
        done = (await memory.jobs.newest(limit=1))[0].run
        assert (done.state, done.counts) == ("done", {"archived": 6, "merged": 2})
        assert [await values(memory, one) for one in contexts] == [[_MADE]] * 2
        assert sorted(model.asked) == sorted(f"{who}{n}" for who in ("ada", "bob") for n in ("", " 1", " 2"))
    finally:
        await memory.close(seconds=SECONDS)


# Whose they are --------------------------------------------------------------------------------------------------


async def test_what_is_not_ones_own_is_answered_as_if_it_were_not(memory: Service, clock: Clock) -> None:
    """Another's run reads like none at all, to look at and to take back."""
    ada, bob = await told(memory, "ada", "bob")
    club = await memory.identities.context(*group("club", "ada"))
    night = jobs(memory, clock)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None
    cyd = await memory.identities.context(*private("cyd"))
    for context in (cyd, club):
        said = []
        for number in (run.id, 999):
            for ask in (night.did, night.undo):
                with pytest.raises(NotFound) as refused:
                    await ask(context, number)
                said.append(str(refused.value).replace(str(number), "n"))
        assert len(set(said)) == 1
        assert await night.mine(context, limit=10) == [] and await night.item(context, run.id) == []
    (item,) = await night.mine(ada, limit=10)
    assert item.counts == {"archived": 1, "merged": 1}
    assert [change.memory.value for change in await night.did(ada, run.id)] == [_MADE, "ada"]
    assert [one.value for one in (await night.did(bob, run.id))[0].made_of] == ["bob"]


async def test_taking_back_touches_ones_own_rows_alone_and_once(memory: Service, clock: Clock) -> None:
    """The same run has worked on others, whose night it was, too."""
    ada, bob = await told(memory, "ada", "bob")
    night = jobs(memory, clock)
    before = await dump(memory, "job_runs", "job_items", "changes")
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None
    undone = await night.undo(ada, run.id)
    assert (undone.restored, undone.left, [one.value for one in undone.back]) == (2, 0, ["ada"])
    assert (await values(memory, ada), await values(memory, bob)) == (["ada"], [_MADE])
    with pytest.raises(NoUndo):
        await night.undo(ada, run.id)
    await night.undo(bob, run.id)
    assert await dump(memory, "job_runs", "job_items", "changes") == before
    assert {item.state for one in (ada, bob) for item in await night.mine(one, limit=10)} == {"undone"}
    owner_id = ada.scope.writes_to
    (kept,) = await memory.database.read(lambda reader: runs.undone(reader, "merge", owner_id))
    assert "ada" not in kept


async def test_what_was_pinned_since_stays_and_what_was_forgotten_is_not_back(memory: Service, clock: Clock) -> None:
    """A person's word of the day after counts for more than their wish to have the night undone."""
    ada, bob = await told(memory, "ada", "bob", notes=2)
    night = jobs(memory, clock)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None
    made = (await memory.browse.memories(ada, limit=1))[0]
    await act(memory, ada, lambda edits: edits.pin(made.short_id, pinned=True))
    undone = await night.undo(ada, run.id)
    assert (undone.restored, [one.value for one in undone.stay]) == (0, [_MADE])
    first = next(one.memory for one in await night.did(bob, run.id) if one.memory.value == "bob")
    await forgotten_alone(memory, bob, first.id)
    assert await values(memory, bob) == ["bob 1"]  # what was made of it is gone, the other one is back
    assert [one.memory.value for one in await night.did(bob, run.id)] == ["bob 1"]
    await night.undo(bob, run.id)
    assert await values(memory, bob) == ["bob 1"]


async def test_linked_accounts_are_looked_at_and_taken_back_as_one(memory: Service, clock: Clock) -> None:
    """A link changes who reads, and so whose runs one sees."""
    ada, phone = await told(memory, "ada", "phone")
    night = jobs(memory, clock)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None
    await link(memory, ada, phone)
    assert [item.run.id for item in await night.mine(ada, limit=10)] == [run.id, run.id]
    assert sorted(one.memory.value for one in await night.did(phone, run.id)) == ["ada", _MADE, _MADE, "phone"]
    assert (await night.undo(phone, run.id)).restored == 4
    assert await values(memory, ada) == ["ada", "phone"]


async def test_a_group_has_its_own_runs(memory: Service, clock: Clock) -> None:
    """A run of a group is seen there, by all of them, and by nobody in private."""
    for person in ("ada", "bob"):
        club = await memory.identities.context(*group("club", person))
        await remember(memory, club, f"{person} in the club")
    night = jobs(memory, clock)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None and run.counts == {"archived": 2, "merged": 1}
    for person in ("ada", "bob", "cyd"):
        assert len(await night.mine(await memory.identities.context(*group("club", person)), limit=10)) == 1
        assert await night.mine(await memory.identities.context(*private(person)), limit=10) == []


async def test_a_preview_tells_what_would_be_and_keeps_nothing_but_its_cost(memory: Service, clock: Clock) -> None:
    """It is the very work, rolled back."""
    ada, _ = await told(memory, "ada", "bob", notes=2)
    night = jobs(memory, clock, model := Model())
    before = await dump(memory, "usage")
    changes = await night.preview(ada, "merge")
    assert [(one.what, one.memory.value) for one in changes] == [
        ("new", _MADE),
        ("archived", "ada"),
        ("archived", "ada 1"),
    ]
    assert [one.value for one in changes[0].made_of] == ["ada", "ada 1"]
    assert model.asked == ["ada", "ada 1"]
    assert await dump(memory, "usage") == before
    booked = await memory.database.read(lambda reader: reader.all("select purpose, input_tokens from usage"))
    assert [tuple(row) for row in booked] == [("merge", 10)] * 2
    with pytest.raises(NotFound):
        await night.preview(ada, "launch")


async def test_a_memory_tells_which_run_made_it_and_which_set_it_aside(memory: Service, clock: Clock) -> None:
    """So that whoever wonders finds the way to take it back."""
    (ada,) = await told(memory, "ada", notes=2)
    night = jobs(memory, clock)
    run = await night.run("assistant", "merge", "2026-11-21")
    assert run is not None
    new, *old = [one.memory for one in await night.did(ada, run.id)]
    shown = await act(memory, ada, lambda edits: [edits.show(one.short_id) for one in (new, *old)])
    assert [one.made_by and one.made_by.id for one in shown] == [run.id, None, None]
    assert [one.set_aside_by and one.set_aside_by.id for one in shown] == [None, run.id, run.id]
    assert [[made.id for made in one.made_into] for one in shown] == [[], [new.id], [new.id]]


# Whose agent works ------------------------------------------------------------------------------------------------


async def test_each_owner_has_the_one_agent_that_they_talked_with_last(memory: Service, clock: Clock) -> None:
    """Agents of one store share people: two of them at work on the same rows would do everything twice."""
    steps_: list[tuple[tuple[str, ...], str, dict[str, list[str]]]] = [
        (("private", "ada"), "assistant", {"assistant": ["ada"], "other": []}),
        (("private", "bob"), "other", {"assistant": ["ada"], "other": ["bob"]}),
        (("group", "club", "ada"), "assistant", {"assistant": ["ada", "club"], "other": ["bob"]}),
        (("private", "ada"), "other", {"assistant": ["club"], "other": ["ada", "bob"]}),
        (("group", "club", "bob"), "other", {"assistant": [], "other": ["ada", "bob", "club"]}),
        (("private", "ada"), "assistant", {"assistant": ["ada"], "other": ["bob", "club"]}),
    ]
    for place, agent, served in steps_:
        clock.move(minutes=1)
        where = private(place[1], agent=agent) if place[0] == "private" else group(place[1], place[2], agent=agent)
        context = await memory.identities.context(*where)
        await act(memory, context, lambda edits: edits.remember("something", key="note"))
        await spoken(memory, context, clock)
        assert await served_by(memory) == served


async def test_who_talked_last_with_an_agent_that_has_no_nights_is_anothers_still(
    memory: Service, clock: Clock
) -> None:
    """Such an agent takes nobody's night away, whose session it has taken over; nor does one that is no longer configured."""
    (ada,) = await told(memory, "ada")
    await spoken(memory, ada, clock)
    clock.move(minutes=1)
    await spoken(memory, await memory.identities.context(*private("ada", agent="other")), clock)
    idle = jobs(memory, clock)
    run = await idle.run("assistant", "merge", "2026-11-21")
    assert run is not None and run.counts == {}
    asleep = dict.fromkeys(memory.agents.by_id, AgentMemory(nightly=False))
    agents = Agents(memory.agents.ids, asleep | {memory.agents.ids["assistant"]: AgentMemory()})
    nightly = jobs(memory, clock, table=(replace(MERGE, owners=people_of_the_night),), agents=agents)
    run = await nightly.run("assistant", "merge", "2026-11-22")
    assert run is not None and run.counts == {"archived": 1, "merged": 1}


def people_of_the_night(reader: Reader, night: Night) -> list[int]:
    return scopes.owners_served(reader, night.agent_id, among=night.nightly)


async def test_a_thread_with_its_own_memory_has_its_own_agent(memory: Service, clock: Clock) -> None:
    """And the chat around it, that shares nothing of it, another."""
    room = await memory.identities.context(*group("room", "ada", own_threads=True))
    await spoken(memory, room, clock)
    clock.move(minutes=1)
    thread = await memory.identities.context(*group("room", "ada", thread="den", agent="other", own_threads=True))
    await spoken(memory, thread, clock)
    assert await served_by(memory) == {"assistant": [], "other": ["room", "room/den"]}
    clock.move(minutes=1)
    await spoken(memory, room, clock)
    assert await served_by(memory) == {"assistant": ["room"], "other": ["room/den"]}


async def test_where_the_bot_was_removed_nobody_works(memory: Service, clock: Clock) -> None:
    """Jobs stop there until it is let in again; what one told it elsewhere is gone through all the same."""
    club = await memory.identities.context(*group("club", "ada"))
    ada = await memory.identities.context(*private("ada"))
    for context in (club, ada):
        await spoken(memory, context, clock)
    await present(memory, "club", clock())
    assert await served_by(memory) == {"assistant": ["ada"], "other": []}
    await present(memory, "ada", clock())
    assert await served_by(memory) == {"assistant": [], "other": []}
    await present(memory, "club", None)
    assert await served_by(memory) == {"assistant": ["club"], "other": []}


async def present(memory: Service, reference: str, left_at: int | None) -> None:
    await memory.database.write(
        lambda tx: chats.present(tx, platform="console", channel="console", reference=reference, left_at=left_at)
    )


async def spoken(memory: Service, context: Context, clock: Clock) -> None:
    await memory.database.write(
        lambda tx: tx.run("update sessions set last_message_at = ? where id = ?", (clock(), context.session.id))
    )


async def served_by(memory: Service) -> dict[str, list[str]]:
    """The owners each agent goes through, by the platform's names."""

    def act(reader: Reader) -> dict[str, list[str]]:
        names = {
            row["id"]: row["name"]
            for row in reader.all(
                "select o.id, coalesce(i.user_id, a.reference || coalesce('/' || o.thread, '')) as name from owners o"
                " left join identities i on i.id = o.identity_id left join chat_aliases a on a.chat_id = o.chat_id"
            )
        }
        return {
            agent: sorted(names[owner] for owner in scopes.owners_served(reader, agent_id))
            for agent, agent_id in memory.agents.ids.items()
        }

    return await memory.database.read(act)
