"""The last message answered anew or taken back, the task, what was used, and "that" in plain words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm import ModelUnavailable
from channels.base import ChannelUnavailable
from tests.kit.bench import Desk, Phone
from tests.kit.fakes import Clock, ScriptedModel, calls
from tests.kit.talk import received


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Desk:
    return Desk(tmp_path, ScriptedModel(), Phone(), clock)


async def learn(desk: Desk) -> None:
    memory = desk.memory
    await memory.learner.flush((await desk.context("ada")).session.id, "test")


async def test_a_message_is_answered_anew_and_the_old_answer_leaves_the_conversation(desk: Desk) -> None:
    """Otherwise the model would see its own bad answer as an example."""
    desk.model.answers = ["A poor answer.", "A better answer.", "And on."]
    async with desk.running():
        await desk.say("Tell me of Lisbon")
        await desk.say("/retry")
        assert desk.screen.texts == ["A poor answer.", "A better answer."]
        asked = [message.content.splitlines()[-1] for message in desk.model.requests[1].messages[1:]]
        assert len(asked) == 1 and "Tell me of Lisbon" in desk.model.requests[1].messages[1].content
        await desk.say("Go on")
        shown = "\n".join(message.content for message in desk.model.requests[2].messages)
        assert "A better answer." in shown and "A poor answer." not in shown
        assert await desk.rows("select count(*) from messages where role = 'user'") == [(2,)]
        assert await desk.rows("select text from messages where role = 'assistant' order by id") == [
            ("",), ("A better answer.",), ("And on.",),
        ]  # fmt: skip


async def test_a_failed_answer_has_a_button_that_tries_again(desk: Desk) -> None:
    """Nobody should have to type it all once more."""
    desk.model.answers = [ModelUnavailable("no route to host"), "Here I am."]
    async with desk.running():
        await desk.say("Are you there?")
        (button,) = desk.screen.sent[-1].buttons
        await desk.push(button.data)
        assert desk.screen.texts[-1] == "Here I am."
        assert "Are you there?" in desk.model.requests[-1].messages[-1].content


async def test_answering_anew_learns_nothing_twice(desk: Desk) -> None:
    """The message was said once, however often it is answered."""
    async with desk.running():
        await desk.say("I live in Lisbon")
        await learn(desk)
        await desk.say("/retry")
        await learn(desk)
        assert await desk.rows("select value, reinforced_count from memories where kind = 'fact'") == [("Lisbon", 0)]


async def test_without_a_message_there_is_nothing_to_answer_anew(desk: Desk) -> None:
    async with desk.running():
        await desk.say("/retry")
        await desk.say("hello")
        await desk.say("/new")
        await desk.say("/retry")
        assert (
            desk.screen.texts[0] == desk.screen.texts[-1]
            and "no message here that I could answer again" in desk.screen.texts[0]
        )


async def test_a_turn_that_broke_off_while_it_was_answered_anew_is_taken_up(tmp_path: Path, clock: Clock) -> None:
    """The inbox row of the command waits for the answer, as that of the message did."""
    desk = Desk(tmp_path, ScriptedModel("One.", "Two."), Phone(), clock)
    async with desk.running():
        await desk.say("Count")
        memory = desk.memory
        command = desk.inbound("/retry")
        inbox_id = await received(memory, command.place.session_key, command.to_json())
        assert await memory.turns.again(await desk.context("ada"), inbox_id) is not None
    async with desk.running() as router:
        await router.settled(command.place)
        assert desk.screen.texts == ["One.", "Two."]


async def test_in_a_group_only_ones_own_message_is_answered_anew(desk: Desk) -> None:
    desk.model.answers = ["To Ada.", "To Bob.", "To Ada again."]
    async with desk.running():
        await desk.say("What of apples?", person="ada", chat="club")
        await desk.say("What of pears?", person="bob", chat="club")
        await desk.say("/retry", person="ada", chat="club")
        last = desk.model.requests[-1].messages[-1].content
        assert "What of apples?" in last and "pears" not in last
        assert await desk.rows("select text from messages where role = 'assistant' order by id") == [
            ("",), ("To Bob.",), ("To Ada again.",),
        ]  # fmt: skip


async def test_a_task_is_set_shown_seen_by_the_model_and_ended(desk: Desk) -> None:
    async with desk.running():
        await desk.say("/task")
        await desk.say("/task plan the trip to Lisbon")
    async with desk.running():
        await desk.say("/task")
        await desk.say("where were we?")
        assert "plan the trip to Lisbon" in desk.model.requests[-1].messages[-1].content
        await desk.say("/task done")
        await desk.say("and now?")
        assert "plan the trip" not in desk.model.requests[-1].messages[-1].content
    assert desk.screen.texts[1] == "All right, our task is now: plan the trip to Lisbon"
    assert desk.screen.texts[2] == "Our task: plan the trip to Lisbon"
    assert "Task done: plan the trip to Lisbon" in desk.screen.texts


async def test_usage_tells_what_models_took_here(desk: Desk) -> None:
    async with desk.running():
        await desk.say("hello", person="bob")
        await desk.say("/usage")
        assert "No language model" in desk.screen.texts[-1]
        await desk.say("hello")
        await desk.say("/usage")
        assert "answers, " in desk.screen.texts[-1] and "1 calls" in desk.screen.texts[-1]


async def test_forget_that_offers_what_was_just_learned_and_said(desk: Desk) -> None:
    async with desk.running():
        await desk.say("I live in Lisbon. My sister Anna lives in Porto.")
        await learn(desk)
        await desk.say("forget that")
        offered = desk.screen.sent[-1]
        assert "Lisbon" in offered.text
        assert [b.data.split()[0] for b in offered.buttons] == ["run:/forget", "run:/forget", "run:/undo"]
        assert await desk.rows("select count(*) from memories where kind = 'fact'") == [(2,)]
        await desk.push(offered.buttons[0].data)
        assert "Lisbon" in desk.screen.texts[-1]


async def test_that_is_wrong_offers_what_the_answer_said_and_else_is_ordinary_talk(desk: Desk) -> None:
    desk.model.answers = ["Noted.", "You live in Lisbon.", "Haha.", "Is it?"]
    async with desk.running():
        await desk.say("I live in Lisbon")
        await learn(desk)
        await desk.say("where do I live?")
        await desk.say("that's wrong")
        assert "/correct m_" in desk.screen.texts[-1]
        await desk.say("tell me a joke")
        await desk.say("that's wrong")
        assert desk.screen.texts[-1] == "Is it?"


async def test_what_tools_kept_is_at_hand_too(desk: Desk) -> None:
    """A model that remembers on request has learned from that very message."""
    desk.model.answers = [calls(("remember_fact", '{"text": "I play the cello"}')), "Saved.", "x"]
    async with desk.running():
        await desk.say("remember that I play the cello")
        await desk.say("忘掉这个")
        assert "cello" in desk.screen.texts[-1]


async def test_a_turn_is_taken_back_with_what_it_taught(desk: Desk) -> None:
    """Also what it had replaced holds again, and no word of it is left in history."""
    async with desk.running():
        await desk.say("I live in Porto")
        await learn(desk)
        desk.clock.move(minutes=1)
        await desk.say("I live in Lisbon")
        await learn(desk)
        await desk.say("/undo")
        assert "you live in Lisbon" in desk.screen.texts[-1]
        assert await desk.rows("select value, valid_until from memories where key = 'home' and kind = 'fact'") == [
            ("Porto", None)
        ]
        assert await desk.rows("select count(*) from messages where text like '%Lisbon%'") == [(0,)]
        await desk.say("/undo")
        await desk.say("/undo")
        assert "no message here that I could take back" in desk.screen.texts[-1]
        assert await desk.rows("select count(*) from memories") == [(0,)]


async def test_what_a_tool_did_in_a_turn_is_taken_back_too(desk: Desk) -> None:
    """A correction by a tool as much as what it kept."""
    async with desk.running():
        await desk.say("I live in Porto")
        await learn(desk)
        ((short_id,),) = await desk.rows("select short_id from memories where key = 'home' and kind = 'fact'")
        desk.clock.move(minutes=1)
        arguments = f'{{"id": "{short_id}", "value": "Lisbon"}}'
        desk.model.answers = [calls(("correct_fact", arguments)), "Done."]
        await desk.say("you have my home wrong, it is further south")
        assert await desk.rows("select value from memories where kind = 'profile' and valid_until is null") == [
            ("Lisbon",)
        ]
        await desk.say("/undo")
        assert await desk.rows("select value from memories where kind = 'profile' and valid_until is null") == [
            ("Porto",)
        ]


async def test_nobody_takes_back_what_somebody_else_has_said(desk: Desk) -> None:
    """In a group everybody has a last word of their own."""
    async with desk.running():
        await desk.say("What of apples?", person="ada", chat="club")
        await desk.say("What of pears?", person="bob", chat="club")
        await desk.say("/undo", person="ada", chat="club")
        assert await desk.rows("select text from messages where role = 'user' order by id") == [
            ("",), ("What of pears?",),
        ]  # fmt: skip


async def test_a_button_takes_back_the_turn_it_was_made_for_and_no_other(desk: Desk) -> None:
    """Pressed twice, later, or by somebody else it must not take what is said since, or by them."""
    async with desk.running():
        await desk.say("one fine day")
        await desk.say("I live in Lisbon. My sister Anna lives in Porto.")
        await learn(desk)
        await desk.say("forget that")
        (button,) = [b for b in desk.screen.sent[-1].buttons if "undo" in b.data]
        await desk.push(button.data)
        await desk.push(button.data)
        assert "only your last message" in desk.screen.texts[-1]
        assert await desk.rows("select text from messages where role = 'user' order by id") == [
            ("one fine day",), ("",),
        ]  # fmt: skip


async def test_a_button_tries_the_failed_answer_again_and_nothing_newer(desk: Desk) -> None:
    """Nobody's good answer is thrown away by an old button."""
    desk.model.answers = [ModelUnavailable("no route to host"), "Fine now."]
    async with desk.running():
        await desk.say("are you there?")
        (button,) = desk.screen.sent[-1].buttons
        await desk.say("hello?")
        await desk.push(button.data)
        assert "only your last message" in desk.screen.texts[-1]
        assert await desk.rows("select text from messages where role = 'assistant'") == [("Fine now.",)]


async def test_a_pressed_try_again_that_broke_off_is_taken_up(tmp_path: Path, clock: Clock) -> None:
    """The press waits for the answer, and is not done a second time."""
    desk = Desk(tmp_path, ScriptedModel(ModelUnavailable("down"), "Here I am."), Phone(), clock)
    async with desk.running():
        await desk.say("are you there?")
        (button,) = desk.screen.sent[-1].buttons
        memory = desk.memory
        pressed = desk.press(button.data)
        inbox_id = await received(memory, pressed.place.session_key, pressed.to_json())
        assert await memory.turns.again(await desk.context("ada"), inbox_id) is not None
    async with desk.running() as router:
        await router.settled(pressed.place)
        assert desk.screen.texts[-1] == "Here I am."
        assert await desk.rows("select count(*) from turns where state = 'running'") == [(0,)]


async def test_an_answer_that_waits_to_be_shown_is_not_shown_beside_the_new_one(desk: Desk) -> None:
    desk.model.answers = ["The old one.", "The new one."]
    async with desk.running() as router:
        desk.screen.failures = [ChannelUnavailable("busy", retry_after=3600)]
        await desk.say("hello")
        await desk.rows("select 1")
        desk.clock.move(minutes=1)
        await desk.say("/retry")
        await router.settled(desk.inbound("").place)
        shown = await desk.rows("select count(*) from outbox where text like '%old one%'")
        assert shown == [(0,)] and "The old one." not in desk.screen.texts


async def test_what_stands_behind_retry_is_no_message(desk: Desk) -> None:
    """Least of all a secret, which the running turn alone may see."""
    desk.model.answers = ["A.", "B."]
    async with desk.running():
        await desk.say("Tell me of Lisbon")
        await desk.say("/retry token ghp_" + "a1B2" * 9)
        last = desk.model.requests[-1].messages[-1].content
        assert "Tell me of Lisbon" in last and "ghp_" not in last


async def test_what_is_typed_by_somebody_else_and_forwarded_is_no_command(desk: Desk) -> None:
    async with desk.running() as router:
        await desk.say("/remember my bike is red")
        await desk.say("/forget bike")
        for text in ("yes", "/undo", "/forget all"):
            await router.on_inbound(replace(desk.inbound(text), forwarded=True))
            await router.settled(desk.inbound("").place)
        assert await desk.rows("select count(*) from memories where kind = 'fact'") == [(1,)]
        assert len(desk.model.requests) == 3


async def test_a_task_is_short(desk: Desk) -> None:
    """It stands in every prompt, outside of any budget."""
    async with desk.running():
        await desk.say("/task " + "plan " * 100)
        assert "at most 300" in desk.screen.texts[-1]
        assert await desk.rows("select active_task from sessions") == [(None,)]


async def test_a_question_about_arithmetic_is_not_about_memory(desk: Desk) -> None:
    """Only what the answer said of what is remembered can be meant as wrong."""
    desk.model.answers = ["381", "Let me see."]
    async with desk.running():
        await desk.say("I live in Lisbon. What is 17 times 23?")
        await learn(desk)
        await desk.say("That's wrong")
        assert desk.screen.texts[-1] == "Let me see."
