"""An hour on Telegram, in the settings that `remora init` writes."""

from __future__ import annotations

import time
from pathlib import Path

from tests.journeys.house import House
from tests.journeys.talk import TALK, Reader, held_by_many
from tests.kit.served import TELEGRAM_TOKEN
from tests.platforms.telegram import Control, serving

ADA, BEN, GROUP = 7, 8, -1001234
#: The first of those who talk beside Ada.
FIRST = 9
#: Seconds between two messages of a person who reads the answers.
_READS = 6.0


async def test_an_hour_on_telegram_goes_without_a_fault(tmp_path: Path) -> None:
    """Talk, a file of 3 MB, a picture, an edit, buttons, a group, and a restart in between."""
    async with serving((TELEGRAM_TOKEN,)) as telegram:
        house = House(tmp_path, telegram=telegram)
        chat, group = Chat(telegram, ADA), Chat(telegram, GROUP)
        async with house.open():
            others = [Chat(telegram, user) for user in range(FIRST, FIRST + len(TALK) - 1)]
            answers = await held_by_many([chat.ask, *(each.ask for each in others)])
            await telegram.say(user=ADA, document=b"the plan " * 340_000, filename="plan.txt", mime="text/plain")
            answers.append(await chat.until(r"\w"))
            await telegram.say("what is this?", user=ADA, photo=b"\x89PNG\r\n\x1a\n" + bytes(100_000))
            answers.append(await chat.until(r"\w"))
            written = await telegram.say("I am allergic to pears", user=ADA)
            await chat.until("pears")
            await telegram.edit(written.message_id, "I am allergic to plums", chat=ADA)
            while "plums" not in await chat.ask("/memory list category:health", "What I remember"):
                pass
            await chat.ask("/forget walnuts", "Forget this")
            await chat.press("and the words")
            await telegram.wait(chat=ADA, text="Forgotten")
            await telegram.group(GROUP, kind="supergroup", title="Choir", forum=False, bot_admin=False)
            await telegram.say("/allow@remora_test_bot here", user=ADA, chat=GROUP)
            answers.append(await group.until(r"\w"))
            await telegram.say("@remora_test_bot hello, I sing alto", user=BEN, chat=GROUP)
            answers.append(await group.until(r"\w"))
        async with house.open():
            answers.append(await chat.ask("Where do I live?", "Braga"))
        assert house.troubles(*answers, *await telegram.texts(ADA), *await telegram.texts(GROUP)) == []


class Chat(Reader):
    """A person in a chat with the bot."""

    def __init__(self, telegram: Control, chat: int) -> None:
        super().__init__(lambda: telegram.texts(chat))
        self._telegram = telegram
        self._chat = chat
        self._clock = time.time() - 1_800

    async def ask(self, text: str, expected: str) -> str:
        """Says something and returns what the bot has written to it, once that fits `expected`.

        People are slower than tests: by the platform's clock, each message comes some seconds after the one before.
        """
        self._clock += _READS
        await self._telegram.say(text, user=self._chat, language="en", sent_at=int(self._clock))
        return await self.until(expected)

    async def press(self, label: str) -> None:
        """Presses the newest button whose label holds `label`."""
        messages = (await self._telegram.state())["chats"][str(self._chat)]["messages"]
        buttons = [
            (message["message_id"], button["text"])
            for message in messages
            for row in message.get("reply_markup", {}).get("inline_keyboard", [])
            for button in row
            if label in button["text"]
        ]
        message_id, whole = buttons[-1]
        await self._telegram.press(message_id, label=whole, chat=self._chat, user=self._chat)
