"""The nightly sweep: what fades and when, what never does, and how it comes back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory import keys
from memory.context import Context
from memory.jobs.base import Night, Step
from memory.jobs.decay import JOB
from memory.jobs.runs import Run
from memory.learn import keep
from memory.service import Service
from memory.store import fading, memories, scopes
from memory.store.database import Reader, Transaction
from memory.store.memories import Kind
from tests.kit.fakes import Clock
from tests.kit.stores import draft, planted, profile_of, remembered
from tests.kit.talk import act, group, met, private

#: The first whole day, counted from when it was told, on which a row of a category is set aside; the day before, not.
GONE_ON = {
    "temp": 13, "debug": 13,
    "conversation": 61,
    "plan": 260, "happening": 260, "artifact": 260,
    "decision": 778, "solution": 778, "config": 778, "project": 778,
    "preference": 1578, "place": 1578, "work": 1578,
}  # fmt: skip
STAYING = {"identity", "relation", "boundary", "health", "instruction"}


async def sweep(memory: Service, clock: Clock, agent: str = "assistant") -> Run:
    period = datetime.fromtimestamp(clock() / 1000, UTC).date().isoformat()
    run = await memory.jobs.run(agent, "decay", period)
    assert run is not None and run.state == "done"
    return run


async def standing(memory: Service) -> set[str]:
    """The values of all rows that are current, profile and directive too."""
    rows = await memory.database.read(
        lambda reader: reader.all(
            "select value from memories where archived_at is null and superseded_by is null and valid_until is null"
        )
    )
    return {row["value"] for row in rows}


async def test_each_category_goes_on_its_day_and_not_before(memory: Service, clock: Clock) -> None:
    """The half-lives and the line below which a memory is set aside say the day; the table writes it out."""
    assert GONE_ON.keys() | STAYING == keys.CATEGORIES.keys()
    ada = await met(memory, clock)
    for category in keys.CATEGORIES:
        await planted(memory, ada, category, category=category, key=f"about {category}")
    start, gone = clock(), set[str]()
    for day in sorted(set(GONE_ON.values())):
        clock.at = start
        clock.move(days=day - 1)
        assert (await sweep(memory, clock)).counts == {}
        clock.move(days=1)
        gone |= {category for category, on in GONE_ON.items() if on == day}
        await sweep(memory, clock)
        assert set(keys.CATEGORIES) & await standing(memory) == set(keys.CATEGORIES) - gone
    clock.move(days=50 * 365)
    assert (await sweep(memory, clock)).counts == {}


@pytest.mark.parametrize(("told_again", "last_day"), [(0, 60), (1, 121), (4, 302)])
async def test_a_style_lasts_fourteen_days_for_each_time_it_was_told(
    memory: Service, clock: Clock, told_again: int, last_day: int
) -> None:
    ada = await met(memory, clock)
    style = await planted(memory, ada, "answers briefly", kind="style", agent_id=ada.scope.agent_id)
    for _ in range(told_again):
        await memory.database.write(lambda tx: memories.reinforce(tx, style, at=clock()))
    clock.move(days=last_day)
    await sweep(memory, clock)
    assert "answers briefly" in await standing(memory)
    clock.move(days=1)
    assert (await sweep(memory, clock)).counts == {"archived": 1}
    assert "answers briefly" not in await standing(memory)


async def test_what_somebody_holds_on_to_and_what_is_no_fact_never_goes(memory: Service, clock: Clock) -> None:
    """Pinned, confirmed, reflections, events, and what is made for every prompt."""
    ada = await met(memory, clock)
    await planted(memory, ada, "passing")
    await planted(memory, ada, "sure", confirmed=True)
    held = await planted(memory, ada, "held")
    await memory.database.write(lambda tx: memories.pin(tx, held, pinned=True))
    kinds: tuple[Kind, ...] = ("reflection", "event", "profile", "directive")
    for kind in kinds:
        await planted(memory, ada, kind, kind=kind, key=kind, category="temp")
    clock.move(days=20 * 365)
    assert (await sweep(memory, clock)).counts == {"archived": 1}
    assert await standing(memory) == {"sure", "held", *kinds}


async def test_a_weaker_start_ends_sooner(memory: Service, clock: Clock) -> None:
    """Base strength is a factor: at a quarter of it two half-lives are gone from the start."""
    ada = await met(memory, clock)
    weak, none = [await planted(memory, ada, value, category="plan") for value in ("weak", "none")]

    def weaken(tx: Transaction) -> None:
        tx.run("update memories set strength = 0.25 where id = ?", (weak,))
        tx.run("update memories set strength = 0 where id = ?", (none,))

    await memory.database.write(weaken)
    await sweep(memory, clock)
    assert await standing(memory) == {"weak"}
    clock.move(days=139)
    await sweep(memory, clock)
    assert await standing(memory) == {"weak"}
    clock.move(days=1)
    await sweep(memory, clock)
    assert await standing(memory) == set()


async def test_the_cheap_look_finds_all_that_has_faded(memory: Service, clock: Clock) -> None:
    """Rows that SQL passes over must not be due: no day, category or kind lies between the two."""
    ada = await met(memory, clock)
    for n, category in enumerate(keys.CATEGORIES):
        await planted(memory, ada, f"{n}", category=category, key=f"about {n}")
        await planted(memory, ada, f"style {n}", category=category, kind="style", key=f"style {n}")
    start = clock()

    def both(reader: Reader) -> tuple[set[int], set[int]]:
        rows = memories.current(reader, ada.scope, ("fact", "style"), limit=100)
        due = {memory.id for memory in rows if fading.has_faded(memory, now=clock())}
        return due, {memory.id for memory in fading.faded(reader, ada.scope, now=clock())}

    ends = [0, *(3 * 4.321928 * days / 3 for days in (3, 14, 60, 180, 365))]
    for end in ends:
        for minutes in range(-120, 121, 7):
            clock.at = start
            clock.move(days=end, minutes=minutes)
            due, found = await memory.database.read(both)
            assert found == due


async def test_a_second_run_finds_nothing_and_names_nobody(memory: Service, clock: Clock) -> None:
    """Only owners with work get a row, and a night is worked once."""
    ada = await met(memory, clock)
    await met(memory, clock, private("bob"))
    await planted(memory, ada, "passing")
    clock.move(days=61)
    first = await sweep(memory, clock)
    assert await memory.jobs.run("assistant", "decay", first.period) is None
    clock.move(days=1)
    second = await sweep(memory, clock)
    rows = await memory.database.read(lambda r: r.all("select run_id, owner_id from job_items order by 1, 2"))
    assert [tuple(row) for row in rows] == [(first.id, ada.scope.writes_to)]
    assert second.counts == {}


async def test_taking_it_back_leaves_every_byte_as_it_was_and_it_is_not_done_again(
    memory: Service, clock: Clock
) -> None:
    """Profile slots included: the one that lost a part and the one that lost all."""
    ada = await met(memory, clock)

    def learn(tx: Transaction) -> None:
        for n, (key, category, value) in enumerate(
            [("goal", "plan", "run a marathon"), ("likes", "preference", "jazz"), ("interest", "temp", "tides"),
             ("interest", "preference", "chess"), ("note", "temp", "the bus is late")],
        ):  # fmt: skip
            said = draft(ada, value, clock, key=key, category=category, importance=9 - n)
            keep.keep(tx, ada.scope, said, source_ids=[], now=clock(), new_id=memory.new_id)

    await memory.database.write(learn)
    slots = {slot.key: slot.value for slot in await profile_of(memory, ada)}
    assert slots["goals"] == "run a marathon" and "tides" in slots["interests"]
    clock.move(days=261)
    before = await remembered(memory)
    run = await sweep(memory, clock)
    assert run.counts == {"archived": 3}
    slots = {slot.key: slot.value for slot in await profile_of(memory, ada)}
    assert "goals" not in slots and slots["interests"] == "interest chess" and slots["likes"] == "jazz"
    undone = await memory.jobs.undo(ada, run.id)
    assert undone.left == 0 and await remembered(memory) == before
    clock.move(days=1)
    assert (await sweep(memory, clock)).counts == {}
    assert await remembered(memory) == before


async def test_what_is_told_again_comes_back(memory: Service, clock: Clock) -> None:
    ada = await met(memory, clock)
    plan = await planted(memory, ada, "learn to sail", category="plan", key="goal")
    clock.move(days=260)
    await sweep(memory, clock)
    assert await standing(memory) == set()

    def again(tx: Transaction) -> int | None:
        said = draft(ada, "learn to sail", clock, category="plan", key="goal")
        return keep.keep(tx, ada.scope, said, source_ids=[], now=clock(), new_id=memory.new_id)

    assert await memory.database.write(again) == plan
    assert [slot.value for slot in await profile_of(memory, ada)] == ["learn to sail"]
    clock.move(days=259)
    await sweep(memory, clock)
    assert "learn to sail" in await standing(memory)


@pytest.mark.parametrize("what", ["pin", "confirm", "correct"])
async def test_what_is_pinned_confirmed_or_corrected_comes_back_for_good(
    memory: Service, clock: Clock, what: str
) -> None:
    ada = await met(memory, clock)
    await planted(memory, ada, "learn to sail", category="plan", key="goal")
    clock.move(days=260)
    await sweep(memory, clock)
    [found] = [hit.memory for hit in await memory.browse.search(ada, "sail", limit=5) if hit.memory is not None]
    assert found.archived_at is not None and clock.just_now(found.archived_at)
    if what == "pin":
        await act(memory, ada, lambda edits: edits.pin(found.short_id, pinned=True))
    elif what == "confirm":
        await act(memory, ada, lambda edits: edits.confirm(found.short_id))
    else:
        await act(memory, ada, lambda edits: edits.correct(found.short_id, "learn to sail well"))
    expected = "learn to sail well" if what == "correct" else "learn to sail"
    assert [m.value for m in await memory.browse.memories(ada, limit=5)] == [expected]
    assert [slot.value for slot in await profile_of(memory, ada)] == [expected]
    clock.move(days=10 * 365)
    assert (await sweep(memory, clock)).counts == {}


async def test_what_changes_between_look_and_sweep_stays(memory: Service, clock: Clock) -> None:
    """Told again, pinned, replaced or forgotten meanwhile: none of it is set aside."""
    ada = await met(memory, clock)
    again, held, old, gone, plain = [
        await planted(memory, ada, value, key=value) for value in ("again", "held", "old", "gone", "plain")
    ]
    clock.move(days=70)
    steps = await planned(memory, ada, clock)

    def meanwhile(tx: Transaction) -> None:
        memories.reinforce(tx, again, at=clock())
        memories.pin(tx, held, pinned=True)
        new = memories.insert(tx, draft(ada, "new", clock), new_id=memory.new_id, now=clock())
        memories.supersede(tx, old, new, at=clock())
        memories.delete(tx, [gone])

    await memory.database.write(meanwhile)
    [step] = steps
    assert await memory.database.write(lambda tx: step.carry_out(tx, "")) == {"archived": 1}
    rows = await memory.database.read(lambda r: r.all("select id from memories where archived_at is not null"))
    assert [row["id"] for row in rows] == [plain]


async def planned(memory: Service, context: Context, clock: Clock) -> list[Step]:
    """Returns the steps that the job would take for one owner."""

    def read(reader: Reader) -> list[Step]:
        agent_id = context.scope.agent_id
        night = Night(
            agent_id=agent_id, day="2027-01-30", timezone="UTC", now=clock(), new_id=memory.new_id, model=False
        )
        return list(JOB.steps(reader, scopes.scope_of_owner(reader, context.scope.writes_to, agent_id=agent_id), night))

    return await memory.database.read(read)


async def test_many_rows_go_in_portions_and_a_broken_run_goes_on(memory: Service, clock: Clock) -> None:
    """A writer waits for no more than one portion, and what was done stays done."""
    ada = await met(memory, clock)

    def many(tx: Transaction) -> None:
        for n in range(1_100):
            memories.insert(tx, draft(ada, f"note {n}", clock), new_id=memory.new_id, now=clock())

    await memory.database.write(many)
    clock.move(days=61)
    steps = await planned(memory, ada, clock)
    counts = [await memory.database.write(lambda tx: step.carry_out(tx, "")) for step in steps[:1]]  # noqa: B023
    assert len(steps) == 3 and counts == [{"archived": 500}]
    assert (await sweep(memory, clock)).counts == {"archived": 600}


async def test_the_agent_that_serves_somebody_sweeps_for_them_and_for_groups_too(memory: Service, clock: Clock) -> None:
    """Each owner is swept by one agent; a style of the other one is not its to touch."""
    ada = await met(memory, clock)
    club = await met(memory, clock, group("club", "ada"))
    other = await met(memory, clock, private("bob", agent="other"))
    for context in (ada, club, other):
        await planted(memory, context, f"of {context.session.key}")
    await planted(memory, ada, "of the other agent", kind="style", agent_id=other.scope.agent_id)
    clock.move(days=61)
    assert (await sweep(memory, clock)).counts == {"archived": 2}
    assert await standing(memory) == {f"of {other.session.key}", "of the other agent"}
    assert (await sweep(memory, clock, agent="other")).counts == {"archived": 1}
