"""One person on Telegram and Discord: linked, read from both, opted out, parted and erased, through the whole product."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.served import ADA, ANN, TELEGRAM_TOKEN, Clock, Served
from tests.platforms.discord import Control as Discord
from tests.platforms.discord import reached
from tests.platforms.discord import serving as serving_discord
from tests.platforms.telegram import Control as Telegram
from tests.platforms.telegram import serving as serving_telegram


@dataclass(frozen=True, kw_only=True)
class Both:
    """Ann on Telegram, who is Ada on Discord, and one installation that serves both."""

    telegram: Telegram
    discord: Discord
    served: Served
    folder: Path
    dm: int

    async def on_telegram(self, text: str, answer: str) -> None:
        """Ann says something and is shown an answer with these words in it, one more than before."""
        before = sum(answer in shown for shown in await self.telegram.texts(ANN))
        await self.telegram.say(text, user=ANN, name="Ann")
        await self.telegram.wait(chat=ANN, text=answer, bot_messages=before + 1)

    async def on_discord(self, text: str, answer: str) -> None:
        before = sum(answer in shown for shown in await self.discord.texts(self.dm))
        await self.discord.say(text, user=ADA, name="Ada")
        await self.discord.wait(channel=self.dm, text=answer, bot_messages=before + 1)

    async def press_on_telegram(self, label: str) -> None:
        """Press a button under the bot's last message to Ann."""
        chat = (await self.telegram.state())["chats"][str(ANN)]
        shown = [one["message_id"] for one in chat["messages"] if one["by_bot"]]
        pressed = await self.telegram.press(shown[-1], label=label, chat=ANN, user=ANN)
        await self.telegram.wait(answered=pressed)

    async def memory_on_telegram(self) -> str:
        await self.on_telegram("/memory", "What I remember")
        return (await self.telegram.texts(ANN))[-1]

    async def memory_on_discord(self) -> str:
        await self.on_discord("/memory", "What I remember")
        return (await self.discord.texts(self.dm))[-1]


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with serving_discord() as discord, serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        with reached(discord):
            served = Served(tmp_path, discord=discord, telegram=telegram, now=Clock())
            async with served.running():
                dm = await discord.dm(user=ADA)
                yield Both(telegram=telegram, discord=discord, served=served, folder=tmp_path, dm=dm)
    assert served.code == 0


async def test_one_person_on_two_platforms(both: Both) -> None:
    """A code from Telegram given on Discord; then both read each other's, and after /unlink neither."""
    await both.on_telegram("I live in Lisbon", "Lisbon")
    await both.on_discord("I like Quaxolia", "Quaxolia")
    assert "Quaxolia" not in await both.memory_on_telegram()

    await both.on_telegram("/link", "Send me this in private from your other account")
    found = re.search(r"/link (\S{9})", (await both.telegram.texts(ANN))[-1])
    assert found is not None
    await both.on_discord(f"/link {found[1]}", "“Ann” on Telegram created that code")
    await both.on_discord("yes", "I have asked “Ann” on Telegram")
    await both.telegram.wait(chat=ANN, text="“Ada” on Discord has sent the code you created")
    await both.press_on_telegram("yes")
    await both.telegram.wait(chat=ANN, text="Linked: I now treat “Ann” on Telegram, “Ada” on Discord as one person")
    await both.discord.wait(
        channel=both.dm, text="Linked: I now treat “Ann” on Telegram, “Ada” on Discord as one person"
    )
    for seen in (await both.memory_on_telegram(), await both.memory_on_discord()):
        assert "Lisbon" in seen and "Quaxolia" in seen

    await both.on_discord("/privacy out", "From now on I learn nothing")
    await both.on_telegram("I like xylophones", "you have opted out")
    assert "xylophones" not in await both.memory_on_discord()

    await both.on_discord("/unlink", "Unlink “Ada” on Discord?")
    await both.on_discord("yes", "“Ada” on Discord is no longer linked")
    await both.telegram.wait(chat=ANN, text="“Ada” on Discord is no longer linked")
    on_telegram, on_discord = await both.memory_on_telegram(), await both.memory_on_discord()
    assert "Lisbon" in on_telegram and "Quaxolia" not in on_telegram
    assert "Quaxolia" in on_discord and "Lisbon" not in on_discord


async def test_deleting_me_on_one_platform_takes_the_linked_account_with_it(both: Both) -> None:
    """Everything of the person goes, wherever they said it; and no byte of it is left in the files."""
    await both.on_telegram("I live in Lisbonnia", "Lisbonnia")
    await both.on_discord("I like Quaxolia", "Quaxolia")
    await both.on_telegram("/link", "Send me this in private from your other account")
    found = re.search(r"/link (\S{9})", (await both.telegram.texts(ANN))[-1])
    assert found is not None
    await both.on_discord(f"/link {found[1]}", "created that code")
    await both.on_discord("yes", "I have asked")
    await both.telegram.wait(chat=ANN, text="has sent the code")
    await both.press_on_telegram("yes")
    await both.discord.wait(channel=both.dm, text="Linked: ")
    await both.on_telegram("/privacy delete", "Erase everything?")
    await both.press_on_telegram("yes")
    await both.telegram.wait(chat=ANN, text="Erased: 2 of your messages")
    files = b"".join(one.read_bytes() for one in (both.folder / "data").glob("remora.db*"))
    assert b"Lisbonnia" not in files and b"Quaxolia" not in files
    await both.on_discord("/unlink", "not linked with any other")
    await both.on_discord("/memory", "anything about you here")
