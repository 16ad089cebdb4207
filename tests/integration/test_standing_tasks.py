"""Standing tasks of agents' files: begun once at each time, for one person, and silent where there is nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.llm import ModelUnavailable
from agents.spec import AgentSpec, StandingSpec
from channels.base import Place
from gateway.ops.standing import HEARTBEAT, standing
from gateway.pipeline.policy import Rules
from gateway.pipeline.reminder_clock import ReminderClock
from tests.kit.fakes import ScriptedModel
from tests.kit.pipeline import World, pipeline

ADA, BOB = "7", "8"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def world(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[World]:
    rules = {"telegram": Rules(admins=frozenset({ADA}), allow=frozenset({BOB}), groups=frozenset({"-5"}))}
    async with pipeline(tmp_path, rules=rules, model=model) as made:
        await made.say("hello", author=BOB)
        yield made


def clock_of(world: World, folder: Path, *tasks: StandingSpec, tokens: int | None = None) -> ReminderClock:
    agent = AgentSpec(name="assistant", timezone="UTC", tasks=tasks)
    return ReminderClock(
        world.store,
        world.walls,
        access=world.memory.access,
        answer=world.router.begin_task,
        tokens_per_day={"assistant": tokens},
        now=world.clock,
        standing=standing({"assistant": agent}, folder),
    )


async def passes(world: World, clock: ReminderClock, *, minutes: float = 0) -> list[str]:
    """Moves the clock and lets it look; returns what is shown then."""
    world.clock.move(minutes=minutes)
    wall = world.walls["telegram"]
    before = len(wall.sent)
    await clock.work_off()
    await world.router.settled(Place(channel="telegram", chat=BOB))
    return [one.text for one in wall.sent[before:]]


async def test_a_task_of_the_file_is_answered_once_at_each_time(
    world: World, model: ScriptedModel, tmp_path: Path
) -> None:
    """Also where the process ended and began again right after, and not when its time is long over."""
    # It is shortly after noon.
    task = StandingSpec(at="30 12-14 * * *", person=f"telegram:{BOB}", text="List what is planned.")
    clock = clock_of(world, tmp_path, task)
    assert await passes(world, clock) == []
    model.answers = ["You meet Zelda."]
    assert await passes(world, clock, minutes=31) == ["You meet Zelda."]
    assert "List what is planned." in model.requests[-1].messages[-1].content
    assert world.walls["telegram"].sent[-1].place.chat == BOB
    assert await passes(world, clock, minutes=1) == []
    assert await passes(world, clock_of(world, tmp_path, task), minutes=1) == []
    model.answers = ["NOTHING"]
    assert await passes(world, clock, minutes=60) == []
    assert model.answers == []
    asked = len(model.requests)
    assert await passes(world, clock_of(world, tmp_path, task), minutes=60 * 12) == []
    assert len(model.requests) == asked


async def test_a_heartbeat_file_is_read_each_time_and_an_idle_one_asks_no_model(
    world: World, model: ScriptedModel, tmp_path: Path
) -> None:
    clock = clock_of(world, tmp_path, StandingSpec(at="*/30 * * * *", person=f"telegram:{BOB}"))
    asked = len(model.requests)
    for idle in (None, "", "# Heartbeat\n\n<!-- write\ntasks here -->\n- [ ]\n"):
        if idle is not None:
            (tmp_path / HEARTBEAT).write_text(idle)
        assert await passes(world, clock, minutes=30) == []
    assert len(model.requests) == asked
    (tmp_path / HEARTBEAT).write_text("# Heartbeat\n- [ ] look whether the plants need water\n")
    model.answers = ["Water the plants."]
    assert await passes(world, clock, minutes=30) == ["Water the plants."]
    assert "plants need water" in model.requests[-1].messages[-1].content


async def test_it_is_told_to_its_person_alone_while_they_may_speak(
    world: World, model: ScriptedModel, tmp_path: Path
) -> None:
    """A stranger has no private chat here; who is blocked, or whose agent has spent its tokens, is told nothing."""
    strangers = StandingSpec(at="*/30 * * * *", person="telegram:99", text="Say hello.")
    assert await passes(world, clock_of(world, tmp_path, strangers), minutes=31) == []
    bobs = StandingSpec(at="*/30 * * * *", person=f"telegram:{BOB}", text="Say hello.")
    assert await passes(world, clock_of(world, tmp_path, bobs, tokens=0), minutes=30) == []
    await world.say(f"/block {BOB}", author=ADA)
    asked = len(model.requests)
    assert await passes(world, clock_of(world, tmp_path, bobs), minutes=30) == []
    assert len(model.requests) == asked


async def test_a_failure_is_not_told_and_the_next_time_is_tried(
    world: World, model: ScriptedModel, tmp_path: Path
) -> None:
    clock = clock_of(world, tmp_path, StandingSpec(at="*/30 * * * *", person=f"telegram:{BOB}", text="Say hello."))
    model.answers = [ModelUnavailable("down")] * 9
    assert await passes(world, clock, minutes=31) == []
    model.answers = ["Hello!"]
    assert await passes(world, clock, minutes=30) == ["Hello!"]
