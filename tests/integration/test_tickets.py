"""Answers to interactions: what lets a platform show them in place goes with them, and is repeated without harm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import Capabilities, ChannelUnavailable, Inbound
from gateway.pipeline.policy import Rules
from tests.kit.bench import Desk, Phone, SlowModel
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.patience import until

UNSURE = ChannelUnavailable("timed out", certain=False)


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Desk:
    phone = Phone()
    phone.capabilities = Capabilities(stream="edit", resend="same", buttons=True, burst_seconds=0)
    return Desk(tmp_path, ScriptedModel(), phone, clock)


def slash(desk: Desk, text: str) -> Inbound:
    """A command as a platform with tickets gives it."""
    return replace(desk.inbound(text), ticket="secret-ticket")


async def test_a_ticket_goes_with_every_piece_of_the_answer_and_is_gone_afterwards(desk: Desk) -> None:
    """It is a secret: it stays no longer than it is of use."""
    async with desk.running() as router:
        said = slash(desk, "/help")
        await router.on_inbound(said)
        await router.settled(said.place)
        assert [(sent.ticket, sent.chunk, sent.retried) for sent in desk.screen.sent] == [("secret-ticket", 0, False)]
        assert await desk.rows("select ticket from outbox union all select payload from inbox") == [("",), ("",)]


async def test_the_first_message_under_a_ticket_is_repeated_when_its_fate_is_unknown(desk: Desk) -> None:
    """It is an edit of what stands there: the same once more."""
    desk.screen.failures = [UNSURE]
    async with desk.running() as router:
        said = slash(desk, "/help")
        await router.on_inbound(said)
        await router.settled(said.place)
        assert desk.screen.sent == []
        desk.clock.at += 1_000
        desk.stores["assistant"].delivery.wake(said.place.session_key)
        await router.settled(said.place)
        [shown] = desk.screen.sent
        assert (shown.ticket, shown.retried) == ("secret-ticket", True)


async def test_where_the_platform_knows_its_messages_again_an_answer_is_repeated_and_not_offered(desk: Desk) -> None:
    """No note with a button where none is needed."""
    desk.screen.failures = [UNSURE]
    async with desk.running() as router:
        await desk.say("hello")
        desk.clock.at += 1_000
        desk.stores["assistant"].delivery.wake(desk.inbound("").place.session_key)
        await router.settled(desk.inbound("").place)
        [shown] = desk.screen.sent
        assert (shown.text, shown.retried) == ("All right.", True) and desk.clock.just_now(shown.made_at + 1_000)


async def test_the_answer_to_a_questions_button_takes_its_place(desk: Desk) -> None:
    """Buttons that nobody may press any more should not stay."""
    async with desk.running():
        await desk.say("/remember that I like tea")
        [(short_id,), *_] = await desk.rows("select short_id from memories")
        await desk.say(f"/forget {short_id}")
        question = desk.screen.sent[-1]
        pressed = replace(desk.press(question.buttons[0].data), message_id="m77")
        await desk.router.on_inbound(pressed)
        await desk.router.settled(pressed.place)
        assert desk.screen.sent[-1].edits == "m77" and desk.screen.sent[-1].buttons == ()


async def test_what_channels_remember_is_theirs_alone(desk: Desk) -> None:
    """Positions survive a restart, and no channel reads another's."""
    async with desk.running() as router:
        await router.keep("one", {"seen:1": "10", "seen:2": "20", "hash": "x"})
        await router.keep("one", {"seen:2": None})
        await router.keep("other", {"seen:1": "99"})
    async with desk.running() as router:
        assert await router.kept("one", "seen:") == {"seen:1": "10"}
        assert await router.kept("one") == {"seen:1": "10", "hash": "x"}


async def test_a_command_that_is_not_taken_is_answered_where_it_was_given(desk: Desk) -> None:
    """Its platform shows that an answer is being made, for a quarter of an hour."""
    desk.rules = Rules(allow=frozenset({"7"}))
    async with desk.running() as router:
        said = replace(desk.inbound("/status", person="8", chat="5"), ticket="t")
        for one in (said, replace(said, pressed="page:list:2", text="")):
            await router.on_inbound(one)
            await router.settled(one.place)
        assert [(sent.text, sent.ticket) for sent in desk.screen.sent] == [
            ("I don't take commands here, or not from you.", "t")
        ]


async def test_a_row_is_not_taken_for_shown_that_surely_was_not(desk: Desk) -> None:
    """Looking for it could find another message with the same words."""
    desk.screen.failures = [ChannelUnavailable("slow down", retry_after=0.1)]
    async with desk.running() as router:
        await desk.say("hello")
        desk.clock.at += 100
        desk.stores["assistant"].delivery.wake(desk.inbound("").place.session_key)
        await router.settled(desk.inbound("").place)
        [shown] = desk.screen.sent
        assert not shown.retried


async def test_what_is_read_back_place_by_place_is_no_flood(desk: Desk) -> None:
    """Twelve messages in half an hour are not too many because those of one place come before the others."""
    desk.rules = Rules(allow=frozenset({"5"}), groups=frozenset({"-1", "-2"}))
    async with desk.running() as router:
        for chat in ("-1", "-2"):
            for n in range(12):
                said = desk.inbound(f"{n}", person="5", chat=chat)
                await router.on_inbound(replace(said, sent_at=desk.clock() - 3_600_000 + n * 60_000))
        assert await desk.rows("select count(*) from inbox") == [(24,)]


async def test_a_placeholder_of_unknown_fate_becomes_the_answer_where_it_is_known_again(
    tmp_path: Path, clock: Clock
) -> None:
    """Killed while it was shown, the next run sends the same once more, and no "…" stays beside the answer."""
    phone = Phone()
    phone.capabilities = Capabilities(stream="edit", resend="same", buttons=True, revise_seconds=0.02, burst_seconds=0)
    desk = Desk(tmp_path, SlowModel("Too late."), phone, clock)
    desk.placeholder_seconds, phone.hangs = 0.01, True
    said = desk.inbound("hello")
    async with desk.running() as router:
        await router.on_inbound(said)
        await phone.arrived.wait()
        await router.drain(seconds=0)
    desk.model = model = SlowModel("Some words")
    phone.hangs = False
    async with desk.running() as router:
        await until(lambda: phone.sent)
        model.go_on()
        await router.settled(said.place)
    again, answer = phone.sent
    assert (again.text, again.retried) == ("…", True)
    assert (answer.text, answer.edits) == ("Some words", str(again.id))
