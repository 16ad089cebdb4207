"""An hour on Discord, in the settings that `remora init` writes."""

from __future__ import annotations

import time
from pathlib import Path

from tests.journeys.house import House
from tests.journeys.talk import TALK, Reader, held_by_many
from tests.kit.patience import SECONDS
from tests.kit.served import ADA, BEN
from tests.platforms.discord import GENERAL, Control, serving

#: The first of those who talk beside Ada.
FIRST = BEN + 1
#: Seconds between two messages of a person who reads the answers.
_READS = 6.0


async def test_an_hour_on_discord_goes_without_a_fault(tmp_path: Path) -> None:
    """Talk in private, a file of 3 MB, an edit, a deletion, slash commands, a channel, and a restart in between."""
    async with serving() as discord:
        house = House(tmp_path, discord=discord)
        chat = Chat(discord, ADA, await discord.dm(ADA))
        async with house.open():
            others = [Chat(discord, user, await discord.dm(user)) for user in range(FIRST, FIRST + len(TALK) - 1)]
            answers = await held_by_many([chat.ask, *(each.ask for each in others)])
            await discord.say(user=ADA, attachments=[("plan.txt", b"the plan " * 340_000, "text/plain")])
            answers.append(await chat.until(r"\w"))
            said = await discord.say("I am allergic to pears", user=ADA)
            await chat.until("pears")
            await discord.edit(said.message_id, "I am allergic to plums")
            while "plums" not in await chat.ask("/memory list category:health", "What I remember"):
                pass
            for name in ("memory", "profile", "why", "status", "help", "privacy"):
                used = await discord.slash(name, user=ADA)
                await discord.wait(answered=used, timeout=SECONDS)
            choices = await discord.autocomplete("memory", {"action": "show", "rest": ""}, user=ADA)
            assert choices is not None
            channel = Chat(discord, ADA, GENERAL)
            await discord.say(f"{discord.mention} /allow here", user=ADA, channel=GENERAL)
            answers.append(await channel.until(r"\w"))
            await discord.say(f"{discord.mention} hello, I sing alto", user=BEN, channel=GENERAL)
            answers.append(await channel.until(r"\w"))
        async with house.open():
            answers.append(await chat.ask("Where do I live?", "Braga"))
        assert house.troubles(*answers, *await discord.texts(GENERAL)) == []
        assert await discord.violations() == []


class Chat(Reader):
    """A person in a channel with the bot."""

    def __init__(self, discord: Control, user: int, channel: int) -> None:
        super().__init__(lambda: discord.texts(channel))
        self._discord = discord
        self._user = user
        self._clock = time.time() - 1_800

    async def ask(self, text: str, expected: str) -> str:
        """Says something in private and returns what the bot has written to it, once that fits `expected`.

        People are slower than tests: by the platform's clock, each message comes some seconds after the one before.
        """
        self._clock += _READS
        await self._discord.say(text, user=self._user, sent_at=self._clock)
        return await self.until(expected)
