"""Reminders through the whole product, on the tests' own Telegram: set in words, shown once, put off, late, cancelled."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.kit.patience import until
from tests.kit.served import ANN, BOB, TELEGRAM_TOKEN, Clock, Served
from tests.platforms.telegram import Control, serving

GROUP = -5_001


@dataclass
class Bot:
    """The bot, its Telegram and the machine's time."""

    served: Served
    telegram: Control
    clock: Clock

    async def shown(self, chat: int = ANN) -> list[dict[str, Any]]:
        """The bot's messages of a chat, as clients show them."""
        chats = (await self.telegram.state())["chats"]
        known = chats.get(str(chat), {"messages": []})["messages"]
        return [message for message in known if message["by_bot"] and not message["deleted"]]

    async def texts(self, chat: int = ANN) -> list[str]:
        return [str(message.get("text", "")) for message in await self.shown(chat)]

    async def sees(self, pattern: str, chat: int = ANN, *, times: int = 1) -> dict[str, Any]:
        """Waits until a pattern is shown so often in a chat; returns the last message with it."""

        async def seen() -> list[dict[str, Any]]:
            found = [one for one in await self.shown(chat) if re.search(pattern, str(one.get("text", "")))]
            return found if len(found) >= times else []

        matching: list[dict[str, Any]] = await until(seen)
        return matching[-1]

    async def say(self, text: str, answer: str, *, user: int = ANN, **more: Any) -> dict[str, Any]:
        """Says something and waits for an answer that no earlier message gave."""
        chat = int(more.get("chat") or user)
        before = len([one for one in await self.texts(chat) if re.search(answer, one)])
        await self.telegram.say(text, user=user, sent_at=self.clock() // 1000, **more)
        return await self.sees(answer, chat, times=before + 1)

    async def press(self, message: dict[str, Any], label: str, *, user: int = ANN, chat: int = ANN) -> None:
        rows = message["reply_markup"]["inline_keyboard"]
        data = next(button["callback_data"] for row in rows for button in row if button["text"] == label)
        await self.telegram.press(message["message_id"], data, chat=chat, user=user)

    async def later(self, minutes: float, *, user: int = ANN) -> None:
        """Moves the machine's clock, and has the bot look at it."""
        self.clock.shift += minutes * 60
        before = len(await self.texts(user))
        await self.telegram.say("/remind list", user=user, sent_at=self.clock() // 1000)

        async def answered() -> bool:
            return len(await self.texts(user)) > before

        await until(answered)


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncIterator[Bot]:
    clock = Clock()
    async with serving((TELEGRAM_TOKEN,)) as telegram:
        await telegram.group(GROUP, kind="group", title="Walkers")
        served = Served(tmp_path, telegram=telegram, now=clock)
        config = tmp_path / "config.yaml"
        config.write_text(config.read_text().replace("admins:", f"groups: [{GROUP}], admins:"))
        (tmp_path / "agents" / "assistant.yaml").write_text("name: assistant\ntimezone: Europe/Berlin\n")
        yield Bot(served=served, telegram=telegram, clock=clock)


async def test_a_reminder_is_read_back_and_comes_once(bot: Bot) -> None:
    """The person sees what was understood, and the words come when they should, and never again."""
    async with bot.served.running():
        said = await bot.say("/remind call mum in 10 minutes", "Reminder 1")
        due = datetime.now(UTC) + timedelta(minutes=10)
        assert re.match(r"Reminder 1\. \w+ \d+ \w+, \d\d:\d\d Berlin: call mum$", said["text"]), said["text"]
        assert f"{due:%M}" in said["text"] or f"{due - timedelta(minutes=1):%M}" in said["text"]
        await bot.later(5)
        assert "⏰ call mum" not in await bot.texts()
        await bot.later(5.2)
        await bot.sees("^⏰ call mum$")
        await bot.later(60 * 24)
        assert len([one for one in await bot.texts() if one.startswith("⏰")]) == 1


async def test_plain_words_do_without_a_model(bot: Bot) -> None:
    """An agent without a model takes what is said as it is meant, in the language of the words."""
    async with bot.served.running():
        await bot.say("Please remind me to water the plants in 2 hours", r"Reminder 1\..*: water the plants$")
        await bot.later(120.5)
        await bot.sees("^⏰ water the plants$")


async def test_buttons_put_off_and_end_a_reminder(bot: Bot) -> None:
    """A press moves it by ten minutes; done deletes its words."""
    async with bot.served.running():
        await bot.say("/remind stretch in 5 minutes", "Reminder 1")
        await bot.later(5.5)
        shown = await bot.sees("^⏰ stretch$")
        await bot.press(shown, "Snooze 10 min")
        await bot.sees(r"Reminder 1 comes again\. .*: stretch")
        await bot.later(5)
        assert "⏰ stretch" not in await bot.texts()
        await bot.later(5.5)
        again = await bot.sees("^⏰ stretch$")
        await bot.press(again, "Done")
        await bot.sees("^Done: stretch$")
        await bot.say("/remind", "no reminders")


async def test_who_was_off_is_late_once_and_a_repeated_one_shows_the_latest_only(bot: Bot) -> None:
    """A bot that was off for days says when it was due; nobody wants three mornings at once."""
    async with bot.served.running():
        await bot.say("/remind call the bank in 1 hour", "Reminder 1")
        await bot.say(
            "/remind every day at 9:00 take the pills", r"Reminder 2\. every day at 09:00, next .*, 09:00 Berlin: take"
        )
    bot.clock.shift += 4 * 86_400
    async with bot.served.running():
        late = await bot.sees("⏰ call the bank")
        assert re.search(r"\(This was due at \w+ \d+ \w+, \d\d:\d\d Berlin\.\)", late["text"])
        await bot.sees(r"⏰ take the pills")
        assert len([one for one in await bot.texts() if "⏰" in one]) == 2
        listed = await bot.say("/remind", "Your reminders:")
        assert "every day at 09:00, next" in listed["text"]


async def test_a_time_that_was_not_named_is_asked_for(bot: Bot) -> None:
    async with bot.served.running():
        await bot.say("/remind buy milk", "When shall I remind you: buy milk")
        await bot.say("tomorrow at 10", r"Reminder 1\. .*10:00 Berlin: buy milk")
        await bot.say("/remind pay the rent", "When shall I remind you: pay the rent")
        await bot.say("no", "All right, no reminder.")
        assert "rent" not in (await bot.say("/remind", "Your reminders:"))["text"]


async def test_a_reply_changes_the_time(bot: Bot) -> None:
    """As one says it to a person: "no, at 10"."""
    async with bot.served.running():
        said = await bot.say("/remind every weekday at 8:30 stand-up", "Reminder 1")
        await bot.say(
            "no, at 10",
            r"Changed: reminder 1\. Monday to Friday at 10:00, next .*, 10:00 Berlin: stand-up",
            reply_to=said["message_id"],
        )
        await bot.say("/remind change 1 tomorrow at 11", r"Changed: reminder 1\. .*11:00")
        await bot.say("/remind cancel 1", "Reminder 1 is cancelled: stand-up")


async def test_a_group_shows_nothing_that_was_asked_for_elsewhere(bot: Bot) -> None:
    """Nobody sees another person's private reminders or cancels them."""
    async with bot.served.running():
        await bot.say("/remind see the doctor tomorrow at 9", "Reminder 1")
        called = "@remora_test_bot"
        await bot.say(f"/remind{called} bring the map tomorrow at 8", "Reminder 2", chat=GROUP)
        listed = await bot.say(f"/remind{called}", "from this chat", chat=GROUP)
        assert "map" in listed["text"] and "doctor" not in listed["text"]
        await bot.say(f"/remind{called} cancel 1", "There is no reminder 1 here", chat=GROUP)
        await bot.press(listed, "Cancel 2", user=BOB, chat=GROUP)
        await bot.sees("That reminder is gone, or it isn't yours", GROUP)
        both = await bot.say("/remind", "Your reminders:")
        assert "map" in both["text"] and "doctor" in both["text"]


async def test_what_is_forgotten_is_not_reminded_of(bot: Bot) -> None:
    """The reminder is shown before it goes, and is gone with what it speaks of."""
    async with bot.served.running():
        await bot.say("/remind meet Zelda tomorrow at 9", "Reminder 1")
        asked = await bot.say("/forget Zelda", "Forget this")
        assert "Reminder: “meet Zelda”" in asked["text"]
        await bot.say("yes", r"Reminders: 1")
        await bot.say("/remind", "no reminders")


async def test_a_person_changes_their_mind_in_words(bot: Bot) -> None:
    """Right after the bot has said a reminder back, no number is needed, and no reply."""
    async with bot.served.running():
        await bot.say("remind me to call mum tomorrow at 9", r"Reminder 1\. .*09:00")
        await bot.say("no, at 10", r"Changed: reminder 1\. .*10:00 Berlin: call mum")
        await bot.say("make it 11", r"Changed: reminder 1\. .*11:00 Berlin: call mum")
        await bot.say("remind me to buy milk", "When shall I remind you: buy milk")
        await bot.say("actually forget it", "no reminder")
        await bot.say("remind me tomorrow at 12 to feed the cat", r"Reminder 2\. .*12:00")
        assert "call mum" in (await bot.say("what are my reminders?", "Your reminders:"))["text"]
        await bot.say("cancel the second one", "Reminder 2 is cancelled: feed the cat")
        await bot.say("cancel the reminder to call mum", "Reminder 1 is cancelled")
        await bot.say("remind me every sunday at 18:00 to ring Jo", "Reminder 1")
        await bot.say("stop the sunday one", "Reminder 1 is cancelled: ring Jo")


async def test_a_place_in_the_list_that_is_another_number_is_not_guessed(bot: Bot) -> None:
    async with bot.served.running():
        await bot.say("remind me tomorrow at 12 to feed the cat", "Reminder 1")
        await bot.say("remind me tomorrow at 9 to call mum", "Reminder 2")
        await bot.say("cancel the second one", r"2\. .*call mum\n1\. .*feed the cat")


async def test_another_request_is_no_answer_to_when(bot: Bot) -> None:
    async with bot.served.running():
        await bot.say("remind me to swim", "When shall I remind you: swim")
        await bot.say("remind me tomorrow to feed the cat", r"Reminder \d\. .*feed the cat")


async def test_a_shown_reminder_is_put_off_and_done_in_words(bot: Bot) -> None:
    async with bot.served.running():
        await bot.say("/remind stretch in 5 minutes", "Reminder 1")
        await bot.later(6)
        await bot.sees("⏰ stretch")
        await bot.say("/remind snooze 1", "Reminder 1 comes again")
        await bot.say("snooze 1 hour", "Reminder 1 comes again")
        await bot.say("done", "Done: stretch")


async def test_orders_behind_the_command_are_no_texts_of_reminders(bot: Bot) -> None:
    async with bot.served.running():
        await bot.say("/remind stretch tomorrow at 9", "Reminder 1")
        await bot.say("/remind cancel the first one", "Reminder 1 is cancelled")
        await bot.say("/remind snooze", "no reminders")


async def test_talk_that_only_sounds_like_an_order_is_left_alone(bot: Bot) -> None:
    async with bot.served.running():
        await bot.say("remind me to call mum tomorrow at 9", "Reminder 1")
        await bot.say("cancel my gym membership", r"Okay|Noted|don't")
        await bot.say("/remind", r"1\. .*call mum")
