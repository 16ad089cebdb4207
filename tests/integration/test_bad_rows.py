"""One bad row of each kind beside a good one: a person, a reminder, a task, a session. The good ones go on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.spec import AgentSpec, StandingSpec
from channels.base import NotTaken, Place
from gateway.config.settings import WorkPace
from gateway.ops.health import Report
from gateway.ops.stalls import Stalls
from gateway.ops.standing import standing
from gateway.pipeline.policy import Rules
from gateway.pipeline.reminder_clock import ReminderClock
from gateway.serve import with_loops
from memory.errors import StoreBusy, StoreUnwritable
from memory.store.share import Held, OwnShare
from tests.kit.fakes import DAY, NOON, ScriptedModel
from tests.kit.faults import Faults
from tests.kit.patience import until
from tests.kit.pipeline import World, pipeline
from tests.kit.served import ANN, TELEGRAM_TOKEN, Clock, Served
from tests.kit.served import BOB as BEN
from tests.kit.stores import on_postgres
from tests.platforms.telegram import Control, serving

ADA, BOB = "7", "8"
needs_a_file = pytest.mark.skipif(on_postgres(), reason="its faults are those of a file's driver")
GREEN = Report(reasons=(), channels={}, stores=(), version="1", uptime_seconds=1)
RULES = {"telegram": Rules(admins=frozenset({ADA}), allow=frozenset({BOB}))}


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
async def world(tmp_path: Path, model: ScriptedModel, faults: Faults) -> AsyncIterator[World]:
    async with pipeline(tmp_path, rules=RULES, model=model, driver=faults.driver) as made:
        yield made


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with serving((TELEGRAM_TOKEN,)) as control:
        yield control


def clock_of(world: World, *tasks: StandingSpec) -> ReminderClock:
    return ReminderClock(
        world.store,
        world.walls,
        access=world.memory.access,
        answer=world.router.begin_task,
        tokens_per_day={"assistant": None},
        now=world.clock,
        standing=standing({"assistant": AgentSpec(name="assistant", timezone="UTC", tasks=tasks)}, Path()),
    )


async def told(world: World, clock: ReminderClock, *, minutes: float) -> dict[str, list[str]]:
    """Moves the clock and lets it look; returns what each of the two is shown then."""
    world.clock.move(minutes=minutes)
    wall = world.walls["telegram"]
    before = len(wall.sent)
    await clock.work_off()
    for chat in (ADA, BOB):
        await world.router.settled(Place(channel="telegram", chat=chat))
    return {chat: [one.text for one in wall.sent[before:] if one.place.chat == chat] for chat in (ADA, BOB)}


async def spoil(world: World, sql: str, *parameters: str) -> None:
    await world.memory.database.write(lambda tx: tx.run(sql, parameters))


async def test_a_person_whose_memories_can_not_be_read_keeps_nobody_from_being_asked(world: World) -> None:
    """Nor from their reminders; and whoever operates the bot sees who is left out, by number."""
    for person in (ADA, BOB):
        await world.say("/privacy followups on", author=person)
        await world.say("/remember I have a dentist appointment on Monday", author=person)
    await world.say("/remind stretch in 3 days", author=BOB)
    # A zone that this machine does not know, as after an update of its tables.
    await spoil(world, "update people set timezone = 'Atlantis/Lost' where id = 1")
    world.clock.set(NOON + 3 * DAY)
    shown = await told(world, clock_of(world), minutes=5)
    assert shown[ADA] == [] and sorted(shown[BOB]) == [
        "Yesterday you had this planned: “dentist appointment”. How did it go?",
        "⏰ stretch\n(This was due at 09:00.)",
    ]
    (held,) = world.memory.loops.put_off()
    assert held.unit.startswith("follow-up of account ") and "ZoneInfoNotFoundError" in held.reason


async def test_a_reminder_that_can_not_be_shown_holds_up_no_other(world: World) -> None:
    for person in (ADA, BOB):
        await world.say("/remind stretch in 10 minutes", author=person)
    good = (await world.rows(f"select key from sessions where key like '%:{ADA}:%'"))[0][0]
    await spoil(world, "update sessions set key = 'damaged' where key = ?", good)
    clock = clock_of(world)
    assert await told(world, clock, minutes=11) == {ADA: [], BOB: ["⏰ stretch"]}
    seen = with_loops(GREEN, {"remora.db": world.memory.loops}, Stalls())
    assert seen.status == "green" and seen.loops[0].failing == 1
    assert seen.loops[0].put_off[0].startswith("reminders, reminder 1: failed 1 times, is tried again soon (ValueError")
    await spoil(world, "update sessions set key = ? where key = 'damaged'", good)
    shown = await told(world, clock, minutes=1)
    assert shown[BOB] == [] and len(shown[ADA]) == 1
    assert world.memory.loops.put_off() == []


@needs_a_file
async def test_a_standing_task_outlives_a_busy_store(world: World, model: ScriptedModel, faults: Faults) -> None:
    """It counts as begun only once it was begun."""
    await world.say("hello", author=BOB)
    task = StandingSpec(at="30 12 * * *", person=f"telegram:{BOB}", text="List what is planned.")
    clock = clock_of(world, task)
    model.answers = ["You meet Zelda."]
    faults.break_down("database is locked", on="insert into inbox")
    with pytest.raises(StoreBusy):
        await told(world, clock, minutes=31)
    faults.mend()
    assert await told(world, clock, minutes=1) == {ADA: [], BOB: ["You meet Zelda."]}
    assert await told(world, clock, minutes=1) == {ADA: [], BOB: []}


@needs_a_file
async def test_after_a_full_disk_reminders_come_at_once(world: World, faults: Faults) -> None:
    """However long it was full: the disk was no reminder's fault, so none is put off."""
    for person in (ADA, BOB):
        await world.say("/remind stretch in 10 minutes", author=person)
    clock = clock_of(world)
    faults.break_down("database or disk is full", on="insert into outbox")
    for minutes in (11, 5, 20, 40):
        with pytest.raises(StoreUnwritable):
            await told(world, clock, minutes=minutes)
    faults.mend()
    shown = await told(world, clock, minutes=0)
    assert [len(shown[person]) for person in (ADA, BOB)] == [1, 1]
    assert world.memory.loops.put_off() == []


@needs_a_file
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("database or disk is full", "the disk is full"), ("database is locked", "another program"),
        ("no such column: lost", "something is wrong with the database"),
    ],
)  # fmt: skip
async def test_who_can_not_be_heard_is_told_why_without_paths_and_statements(
    world: World, faults: Faults, error: str, reason: str
) -> None:
    """The channel shows the text to people, and the reason with its paths to the operator."""
    faults.break_down(error, on="insert into inbox")
    with pytest.raises(NotTaken) as raised:
        await world.say("hello", author=BOB)
    assert reason in str(raised.value) and "Say it again" in str(raised.value), "nothing of it is kept"
    assert "remora.db" in raised.value.reason, "the operator is told which file"
    assert not [part for part in ("insert", "remora.db", "/", "column", "select") if part in str(raised.value)]


@needs_a_file
async def test_follow_ups_that_can_not_be_listed_keep_no_reminder_from_being_shown(
    world: World, faults: Faults
) -> None:
    await world.say("/remind stretch in 10 minutes", author=BOB)
    faults.break_down("no such column: lost", on="follow_ups")
    shown = await told(world, clock_of(world), minutes=11)
    assert shown[BOB] == ["⏰ stretch"]
    assert [one.unit for one in world.memory.loops.put_off("reminders")] == ["follow-ups"]


async def test_a_task_that_was_taken_in_but_not_queued_is_answered_a_moment_later(
    world: World, model: ScriptedModel
) -> None:
    """Its row is committed, so no clock begins it again: it is found by looking."""
    await world.say("hello", author=BOB)
    task = StandingSpec(at="30 12 * * *", person=f"telegram:{BOB}", text="List what is planned.")
    clock = clock_of(world, task)
    held = world.memory.share

    class Unsteady(OwnShare):
        """The first hold fails with a fault of ours."""

        fails = True

        async def hold(self, session_key: str, *, spread: bool = False, asks: bool = False) -> Held:
            if self.fails:
                self.fails = False
                raise RuntimeError
            return await held.hold(session_key, spread=spread, asks=asks)

    world.memory.share = Unsteady()
    model.answers = ["You meet Zelda."]
    await told(world, clock, minutes=31)
    await until(lambda: [one.text for one in world.walls["telegram"].sent][-1:] == ["You meet Zelda."])


async def test_a_time_that_comes_while_a_standing_task_is_put_off_is_not_lost(
    world: World, model: ScriptedModel
) -> None:
    """Only its beginning is put off, for longer than a time counts as just reached."""
    await world.say("hello", author=BOB)
    task = StandingSpec(at="30 12 * * *", person=f"telegram:{BOB}", text="List what is planned.")
    clock = clock_of(world, task)
    loops, unit = world.memory.loops, f"task {clock._standing[0].key}"
    for _ in range(8):
        loops.fail("reminders", unit, ValueError())
    model.answers = ["You meet Zelda."]
    assert await told(world, clock, minutes=31) == {ADA: [], BOB: []}
    assert await told(world, clock, minutes=61) == {ADA: [], BOB: ["You meet Zelda."]}


async def test_a_day_that_does_not_exist_stops_nobody_s_reminders(
    tmp_path: Path, telegram: Control, unused_tcp_port: int
) -> None:
    """Not now and not at the next start; and health is told as it is."""
    clock = Clock()
    served = Served(tmp_path, telegram=telegram, now=clock, port=unused_tcp_port, pace=WorkPace(quiet_seconds=1))
    async with served.running():
        await served.health()
        said = ("/privacy followups on", "/remember I have a concert with Tom (2027-02-30)")
        for number, text in enumerate(said, start=1):
            await telegram.say(text, user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=number)
        await telegram.say("/remind stretch in 2 hours", user=BEN, name="Ben")
        await telegram.wait(chat=BEN, bot_messages=1)
    with sqlite3.connect(tmp_path / "data" / "remora.db") as store:
        # At any hour of the day on which this runs.
        store.execute("update people set follow_ups = '0-24' where follow_ups <> ''")
    clock.shift += 3 * 3_600
    async with served.running():
        await telegram.wait(chat=BEN, bot_messages=2)
        page = await served.health()
    assert (page["status"], page["loops"]) == ("green", [])


@needs_a_file
async def test_a_loop_that_fails_turns_health_red_until_it_works_again(world: World, faults: Faults) -> None:
    await world.say("/remind stretch in 10 minutes", author=BOB)
    world.clock.move(minutes=11)
    loops, again = world.memory.loops, asyncio.Event()

    async def sleep(seconds: float) -> None:
        """Lets the test look after the failed round, and waits for good after the round that went well."""
        if loops.troubles:
            await again.wait()
        else:
            await asyncio.Event().wait()

    faults.break_down("database disk image is malformed", on="from reminders")
    working = asyncio.create_task(clock_of(world).work(sleep))
    await until(lambda: loops.troubles)
    seen = with_loops(GREEN, {"remora.db": loops}, Stalls())
    assert seen.status == "red" and "“reminders” failed" in seen.reasons[0] and seen.loops[0].restarts == 1
    faults.mend()
    again.set()
    await until(lambda: not loops.troubles)
    await world.router.settled(Place(channel="telegram", chat=BOB))
    working.cancel()
    assert world.walls["telegram"].sent[-1].text == "⏰ stretch"
    assert with_loops(GREEN, {"remora.db": loops}, Stalls()).status == "green"
