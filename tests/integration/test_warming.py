"""The first message after a start finds everything built: nobody waits for tables, and Discord's three seconds hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.patience import until
from tests.kit.served import ADA, ANN, TELEGRAM_TOKEN, Served, spawned
from tests.platforms.discord import serving as discord_serving
from tests.platforms.telegram import serving as telegram_serving

SERVER = 234567890123456789
FIRST = (
    "I live in Lisbon", "remind me tomorrow at 9 to call Tom", "我住在上海", "Ich wohne in Berlin", "私は東京に住んでいます",
    "J'habite à Paris", "Vivo en Madrid",
)  # fmt: skip
#: Without warming the loop stands for about a second in all; what is left are imports of some hundredths.
MOST_SECONDS = 0.4


@pytest.mark.campaign
async def test_the_first_command_and_the_first_message_in_each_language_build_nothing_in_the_loop(
    tmp_path: Path,
) -> None:
    async with telegram_serving((TELEGRAM_TOKEN,)) as telegram, discord_serving() as discord:
        _, channel = await discord.add_guild("The server", guild=SERVER)
        Served(tmp_path, telegram=telegram, discord=discord, server=SERVER, log="{level: info}")

        def warm() -> bool:
            printed = (tmp_path / "printed").read_text()
            assert "warming.ended" not in printed
            return "warming.done" in printed

        async with spawned(tmp_path):
            await until(warm)
            await until(lambda: discord.commands(SERVER))
            interaction = await discord.slash("help", user=ADA, channel=channel)
            await discord.wait(answered=interaction)
            for told, text in enumerate(FIRST, 1):
                await telegram.say(text, user=ANN)
                await telegram.wait(bot_messages=told, chat=ANN)
    log = (tmp_path / "printed").read_text()
    stood = [line for line in log.splitlines() if "loop.stood" in line]
    seconds = [float(number) for number in re.findall(r"processor_seconds=([\d.]+)", "\n".join(stood))]
    assert sum(seconds) < MOST_SECONDS, stood
