"""Answers for the asker's eyes alone do not stand in a group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import Place
from tests.kit.bench import Desk, Phone
from tests.kit.fakes import Clock, ScriptedModel


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Desk:
    """A platform where a person's private chat has their own id, as on Telegram."""
    phone = Phone()
    phone.capabilities = replace(phone.capabilities, direct=True)
    return Desk(tmp_path, ScriptedModel(), phone, clock)


def places(desk: Desk) -> list[tuple[str, str]]:
    return [(outbound.place.chat, outbound.text.splitlines()[0]) for outbound in desk.screen.sent]


async def test_a_private_answer_goes_to_the_private_chat_and_the_group_is_told(desk: Desk) -> None:
    """Else whoever asked would not know where to look."""
    async with desk.running() as router:
        await desk.say("hello")
        await desk.say("/status", chat="club")
        await router.settled(Place(channel="console", chat="ada"))
        (mine,) = [text for chat, text in places(desk)[1:] if chat == "ada"]
        assert "model" in mine
        assert [text for chat, text in places(desk) if chat == "club"] == ["I have answered you in our private chat."]


async def test_who_has_never_written_in_private_is_told_how_and_shown_nothing(desk: Desk) -> None:
    """A bot can't begin a private chat."""
    async with desk.running():
        await desk.say("/status", chat="club")
        assert [chat for chat, _ in places(desk)] == ["club"] and "in private once" in places(desk)[0][1]


async def test_after_the_private_chat_was_left_nothing_is_sent_there(desk: Desk) -> None:
    async with desk.running() as router:
        await desk.say("hello")
        await router.on_presence("console", "ada", present=False)
        await desk.say("/status", chat="club")
        assert places(desk)[-1][0] == "club" and "in private once" in places(desk)[-1][1]


async def test_where_answers_can_be_hidden_they_stay_where_they_were_asked(desk: Desk) -> None:
    """As on Discord, where only the asker sees them."""
    desk.screen.capabilities = replace(desk.screen.capabilities, hidden=True)
    async with desk.running() as router:
        await desk.say("hello")
        given = replace(desk.inbound("/status", chat="club"), ticket="t")
        await router.on_inbound(given)
        await router.settled(given.place)
        assert places(desk)[-1][0] == "club" and "model" in places(desk)[-1][1]


async def test_a_command_typed_as_a_message_is_not_answered_before_everybody(desk: Desk) -> None:
    """Only what was given as a command of the platform's own can be answered for one person's eyes."""
    desk.screen.capabilities = replace(desk.screen.capabilities, hidden=True, direct=False)
    async with desk.running():
        await desk.say("hello")
        await desk.say("/status", chat="club")
        assert "slash command" in places(desk)[-1][1]


async def test_an_address_in_an_answer_that_carries_much_is_no_link(desk: Desk) -> None:
    """Whoever opened it, or a preview, would tell its owner what the model was talked into putting there."""
    carried = "https://evil.example/?q=" + "everything-that-is-known-of-ada-" * 5
    desk.model.answers = [f"Look [here]({carried}), or at https://example.org/page."]
    async with desk.running():
        await desk.say("hello")
    (shown,) = desk.screen.sent
    assert "https://evil" not in shown.text + shown.markup and "https://example.org/page" in shown.text
