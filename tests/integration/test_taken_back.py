"""Messages with something beside their words, and messages that are taken back: edited, deleted, stopped."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bench.offline import talk
from channels.base import Attachment, Inbound
from tests.kit.bench import Desk, Phone, SlowModel
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.patience import until


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Desk:
    return Desk(tmp_path, ScriptedModel(), Phone(), clock)


async def test_a_deleted_message_is_taken_back_before_its_turn_and_after(desk: Desk) -> None:
    """Words that somebody deletes are not to be known any longer."""
    async with desk.running() as router:
        await desk.say("I live in Lisbon", key="m1")
        await desk.memory.learner.flush((await desk.context("ada")).session.id, "test")
        place = desk.inbound("").place
        await router.on_deleted(place, ["m1", "never-said"])
        await router.settled(place)
        assert await desk.rows("select text from messages where role = 'user'") == [("",)]


async def test_a_message_with_nothing_but_a_sticker_is_answered(desk: Desk) -> None:
    async with desk.running() as router:
        said = replace(desk.inbound(""), attachments=(Attachment(kind="other", name="sticker 😀"),))
        await router.on_inbound(said)
        await router.settled(said.place)
        assert desk.screen.texts == ["All right."]
        assert await desk.rows("select text from messages where role = 'user'") == [("[sticker 😀]",)]


async def test_what_is_deleted_while_its_turn_goes_on_teaches_nothing(tmp_path: Path, clock: Clock) -> None:
    """Neither what it said nor what the model has just noted of it."""
    model = SlowModel("Lisbon it is.")
    desk = Desk(tmp_path, model, Phone(), clock)
    async with desk.running() as router:
        said = desk.inbound("I live in Lisbon", key="m1")
        await router.on_inbound(said)
        await until(lambda: bool(model.requests))
        await router.on_deleted(said.place, ["m1"])
        model.go_on()
        await router.settled(said.place)
        memory = desk.memory
        await memory.learner.flush((await desk.context("ada")).session.id, "test")
        assert await desk.rows("select value from memories") == []
        assert await desk.rows("select role, recall, learn from messages order by id") == [
            ("user", 0, 0),
            ("assistant", 0, 0),
        ]


async def test_what_is_deleted_while_its_file_is_fetched_is_not_answered(desk: Desk) -> None:
    """Its words are in no turn yet, and must not come into one; nothing of the file is kept."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Library(Phone):
        async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
            begun.set()
            await go_on.wait()
            return b"the secret plan"

    desk.screen = Library()
    async with desk.running() as router:
        file = Attachment(kind="file", name="plan.txt", reference="1")
        said = replace(desk.inbound("read this", key="m1"), attachments=(file,))
        await router.on_inbound(said)
        await begun.wait()
        await router.on_deleted(said.place, ["m1"])
        go_on.set()
        await router.settled(said.place)
        assert desk.screen.sent == []
        assert await desk.rows("select state, payload from inbox") == [("done", "")]
        assert await desk.rows("select count(*) from attachments") == [(0,)]
        assert await desk.rows("select count(*) from messages") == [(0,)]


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
async def test_stop_ends_an_answer_wherever_it_is(desk: Desk, steps: int) -> None:
    """Waiting in its lane, on its way to its turn, or held up by a file: the answer is being made all the while."""

    class Library(Phone):
        async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
            await asyncio.Event().wait()
            raise AssertionError

    desk.screen = Library()
    async with desk.running() as router:
        file = Attachment(kind="file", name="plan.txt", reference="1")
        said = replace(desk.inbound("read this", key="m1"), attachments=(file,))
        await router.on_inbound(said)
        for _ in range(steps):
            await asyncio.sleep(0)
        await desk.say("/stop")
        assert desk.screen.texts == ["Stopping.", "Stopped. Your message is kept."]
    assert desk.model.requests == []


async def test_an_edited_caption_keeps_what_came_with_it(desk: Desk) -> None:
    async with desk.running() as router:
        file = Attachment(kind="other", name="sticker 😀")
        said = replace(desk.inbound("look", key="m1"), attachments=(file,))
        await router.on_inbound(said)
        await router.settled(said.place)
        for number, text in enumerate(("look", "look here")):
            edit = replace(said, text=text, edited=True, update_key=f"e{number}")
            await router.on_inbound(edit)
            await router.settled(edit.place)
        assert await desk.rows("select text, edited_at is null from messages where role = 'user'") == [
            ("look here\n[sticker 😀]", 0)
        ]


async def test_a_name_said_anew_replaces_the_last_one() -> None:
    async with talk() as person:
        await person.say("my favourite film is Heat")
        (told,) = await person.say("no wait, it's Alien")
        assert told.endswith("your favourite movie is Alien.")


async def test_a_correction_that_names_what_was_wrong_changes_nothing_else() -> None:
    async with talk() as person:
        await person.say("we're getting a puppy next month")
        await person.say("I start at Skyscanner on monday")
        await person.say("actually it's not monday its the 7th december")
        (plans,) = await person.say("/memory list plan")
        assert "7th" not in plans
        (told,) = await person.say("when do I start at skyscanner?")
        assert "7th december" in told


async def test_a_timezone_that_is_told_sets_the_clock_until_it_is_forgotten() -> None:
    async with talk() as person:
        await person.say("my timezone is Berlin")
        (clock,) = await person.say("what time is it?")
        assert "Europe/Berlin" in clock
        await person.say("forget my timezone")
        await person.say("yes")
        (clock,) = await person.say("what time is it?")
        assert "UTC" in clock


async def test_wrong_means_what_was_just_noted() -> None:
    async with talk() as person:
        await person.say("I live in Rom")
        (told,) = await person.say("that's wrong")
        assert "you live in Rom" in told and "/correct" in told
