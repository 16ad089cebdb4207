"""The clock of the reminders over the whole pipeline: reminders shown, tasks answered, both within people's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.llm import ModelUnavailable
from channels.base import Place
from gateway.pipeline.policy import Rules
from gateway.pipeline.reminder_clock import ReminderClock
from tests.kit.fakes import ScriptedModel, calls, says
from tests.kit.pipeline import World, pipeline

ADA, BOB = "7", "8"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def world(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[World]:
    rules = {"telegram": Rules(admins=frozenset({ADA}), allow=frozenset({BOB}), groups=frozenset({"-5"}))}
    async with pipeline(tmp_path, rules=rules, model=model) as made:
        yield made


async def passes(world: World, *, minutes: float = 0, days: float = 0, tokens: int | None = None) -> list[str]:
    """Moves the clock and lets it look; returns what is shown then, to Bob or in the group."""
    world.clock.move(minutes=minutes, days=days)
    wall = world.walls["telegram"]
    before = len(wall.sent)
    clock = ReminderClock(
        world.store,
        world.walls,
        access=world.memory.access,
        answer=world.router.begin_task,
        tokens_per_day={"assistant": tokens},
        now=world.clock,
    )
    await clock.work_off()
    for chat in (BOB, "-5"):
        await world.router.settled(Place(channel="telegram", chat=chat))
    return [one.text for one in wall.sent[before:]]


async def test_who_was_blocked_since_is_reminded_of_nothing(world: World) -> None:
    """Their rights end at once, and what was due meanwhile does not come later."""
    await world.say("/remind stretch in 10 minutes", author=BOB)
    await world.say(f"/block {BOB}", author=ADA)
    assert await passes(world, minutes=11) == []
    await world.say(f"/allow {BOB}", author=ADA)
    assert await passes(world, minutes=11) == []


async def test_a_group_is_told_whom_a_reminder_is_for(world: World) -> None:
    """It answers the message in which it was asked for."""
    heard = world.inbound("/remind bring the map in 10 minutes", author=BOB, chat="-5")
    await world.hear(heard)
    assert await passes(world, minutes=11) == ["⏰ N8: bring the map"]
    assert world.walls["telegram"].sent[-1].reply_to == heard.message_id
    assert [button.label for button in world.walls["telegram"].sent[-1].buttons] == [
        "Done",
        "Snooze 10 min",
        "Snooze 1 h",
    ]


async def test_a_model_sets_a_reminder_that_is_said_back(world: World, model: ScriptedModel) -> None:
    """The reminder that was really set is shown below the model's words, and is set once."""
    wanted = ("reminders", '{"action": "set", "text": "call mum", "when": "in 20 minutes"}')
    model.answers = [calls(wanted), "Of course!"]
    (answer,) = await world.say("could you remind me in 20 minutes to call mum?", author=BOB)
    assert answer.startswith("Of course!\nReminder 1. Saturday 21 November, 12:20 UTC: call mum")
    assert [button.label for button in world.walls["telegram"].sent[-1].buttons] == ["Cancel 1"]
    assert await passes(world, minutes=21) == ["⏰ call mum"]


async def test_a_model_is_told_to_ask_for_a_time_that_can_not_be_read(world: World, model: ScriptedModel) -> None:
    """It must not guess."""
    for when, told in (("soon", "not clear"), ("", "No time"), ("2020-01-01T09:00", "is over")):
        arguments = f'{{"action": "set", "text": "call mum", "when": "{when}"}}'
        model.answers = [calls(("reminders", arguments)), "When?"]
        await world.say("remind me to call mum", author=BOB)
        assert told in model.requests[-1].messages[-1].content
    assert "no reminders" in (await world.say("/remind", author=BOB))[0]


async def test_a_model_is_told_what_was_no_part_of_a_time(world: World, model: ScriptedModel) -> None:
    """An exception or a condition that the reminder would lose is asked for, whoever words it."""
    for when, told in (("every day at 9 except holidays", "not clear"), ("at 9 with Bob", "“with Bob”")):
        arguments = f'{{"action": "set", "text": "call mum", "when": "{when}"}}'
        model.answers = [calls(("reminders", arguments)), "When?"]
        await world.say("remind me to call mum", author=BOB)
        assert told in model.requests[-1].messages[-1].content
    assert "no reminders" in (await world.say("/remind", author=BOB))[0]


@pytest.mark.parametrize("line", ["0 0 9 * * 1-5 stand-up", "0 0 9 * * 1-5", "0 30 9 ? * MON-FRI stand-up"])
async def test_six_fields_of_cron_are_no_other_time(world: World, line: str) -> None:
    (answer,) = await world.say(f"/remind cron {line}", author=BOB)
    assert "6 fields" in answer and await world.rows("select * from reminders") == []


async def test_an_hour_elsewhere_is_said_with_ones_own(world: World) -> None:
    (answer,) = await world.say("/remind call Bob on 1 December at 9am New York time", author=BOB)
    assert "Tuesday 1 December, 09:00 New York (14:00 UTC): call Bob" in answer


async def test_a_change_keeps_the_repetition_and_no_keeps_the_reminder(world: World, model: ScriptedModel) -> None:
    """Another hour is no other habit; whoever is asked "when?" about a reminder that stands may leave it as it is."""
    await world.say("/remind every weekday at 8:30 stand-up", author=BOB)
    model.answers = [calls(("reminders", '{"action": "change", "number": 1, "when": "at 10"}')), "Done."]
    (answer,) = await world.say("make the stand-up at ten", author=BOB)
    assert "Monday to Friday at 10:00, next Monday 23 November, 10:00 UTC: stand-up" in answer
    assert "time has passed" in (await world.say("/remind change 1 yesterday at 9", author=BOB))[0]
    assert await world.rows("select substr(rule, 1, 17), due_at is not null from reminders") == [
        ("RRULE:FREQ=WEEKLY", 1)
    ]
    asked = await world.say("/remind buy milk", author=BOB)
    assert asked == ["When shall I remind you: buy milk?"]
    assert await world.say("no", author=BOB) == ["All right, no reminder."]
    assert await world.rows("select text from reminders") == [("stand-up",)]


async def test_a_task_is_answered_by_the_agent_and_silent_where_there_is_nothing(
    world: World, model: ScriptedModel
) -> None:
    """It is a turn of its own with memory and tools, and says nothing where there is nothing to tell."""
    (set_back,) = await world.say("/remind task every day at 9:00 list what I have planned", author=BOB)
    assert "every day at 09:00, next" in set_back and "task: list what I have planned" in set_back
    model.answers = ["You meet Zelda at ten."]
    assert await passes(world, days=1) == ["You meet Zelda at ten."]
    assert "list what I have planned" in model.requests[-1].messages[-1].content
    model.answers = ["NOTHING."]
    assert await passes(world, days=1) == []


async def test_a_task_that_fails_three_times_in_a_row_is_switched_off(world: World, model: ScriptedModel) -> None:
    """Its person is told once, and not of each failure; another time switches it on again."""
    await world.say("/remind task every day at 9:00 list what I have planned", author=BOB)
    for day in (1, 2):
        model.answers = [ModelUnavailable("down")] * 9
        assert await passes(world, days=1) == [], day
    model.answers = [ModelUnavailable("down")] * 9
    (told,) = await passes(world, days=1)
    assert told.startswith("I switched off task 1 because it failed three times in a row")
    assert await passes(world, days=2) == []
    await world.say("/remind change 1 every day at 10:00", author=BOB)
    model.answers = ["Here you are."]
    assert await passes(world, days=1) == ["Here you are."]


async def test_a_task_for_one_time_is_tried_again_after_a_failure(world: World, model: ScriptedModel) -> None:
    """Else nobody would ever hear of it. Three failures switch it off, as any task."""
    await world.say("/remind task in 10 minutes list what I have planned", author=BOB)
    model.answers = [ModelUnavailable("down")] * 9
    assert await passes(world, minutes=11) == []
    model.answers = ["Here you are."]
    assert await passes(world, minutes=61) == ["Here you are."]
    assert await passes(world, days=1) == []
    await world.say("/remind task in 10 minutes list what I have planned", author=BOB)
    shown: list[str] = []
    for _ in range(6):
        model.answers = [ModelUnavailable("down")] * 9
        shown += await passes(world, minutes=61)
    assert len(shown) == 1 and shown[0].startswith("I switched off task")


async def test_a_zone_that_is_gone_holds_up_nobody(world: World) -> None:
    """A machine may lose a name of the time zones; the reminder comes all the same, and so do the others."""
    await world.say("/remind stretch in 10 minutes", author=BOB)
    await world.memory.database.write(lambda tx: tx.run("update reminders set zone = 'Mars/Base'"))
    await world.say("/remind call mum in 20 minutes", author=BOB)
    late, other = await passes(world, minutes=30)
    assert "stretch" in late and "call mum" in other


async def test_a_task_is_left_out_when_the_tokens_of_the_day_are_used_up(world: World, model: ScriptedModel) -> None:
    """It costs what the agent may spend by itself, and counts as such."""
    await world.say("/remind task every day at 9:00 list what I have planned", author=BOB)
    model.answers = [says("First.")]
    assert await passes(world, days=1, tokens=1) == ["First."]
    assert (await world.rows("select distinct purpose from usage")) == [("task",)]
    assert await passes(world, days=1, tokens=0) == []
    assert model.answers == []
