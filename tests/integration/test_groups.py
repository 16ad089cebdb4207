"""Groups as people use them: other bots' commands, a bot's name in code, and admins who stay anonymous."""

from __future__ import annotations

from pathlib import Path

from tests.kit import discord_bot
from tests.kit.served import ANN, BOB, TELEGRAM_TOKEN, Served
from tests.platforms import discord, telegram
from tests.platforms.discord import GENERAL

GROUP = -1001234567890
BOT = "@remora_test_bot"


async def test_a_name_in_code_calls_nobody_on_discord() -> None:
    """It is talk about the bot; the same name beside it is a call."""
    async with (
        discord.serving() as platform,
        discord_bot.running(discord_bot.bot(platform), discord_bot.Host()) as host,
    ):
        name = platform.mention
        for words in (f"write `{name} hello`", f"```\n{name} hello\n```", f"{name} what does `{name}` do?"):
            await platform.say(words, user=1001, channel=GENERAL)
        assert [said.addressed for said in await host.hears(3)] == [False, False, True]


async def test_an_anonymous_admin_is_told_once_why_nobody_answers(tmp_path: Path) -> None:
    """Also after a restart; other bots' commands get no answer, and whoever shows who they are gets one."""
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        account = f"[{{token: '{platform.token}', base_url: '{platform.url}', admins: [{ANN}], groups: [{GROUP}]}}]"
        bot = Served(
            tmp_path, telegram=platform, model_url=platform.model_url, shipped=True,
            channels=f"{{telegram: {account}}}", limits="{burst_seconds: 0}",
        )  # fmt: skip
        await platform.group(GROUP, title="Allotment")
        for answers in (2, 3):
            async with bot.running():
                await platform.say("/help", chat=GROUP, user=1087968824, sender_chat=GROUP)
                await platform.say(f"{BOT} are you there?", chat=GROUP, user=1087968824, sender_chat=GROUP)
                await platform.say("/weather in Ulm", chat=GROUP, user=BOB)
                await platform.say(f"{BOT} hello", chat=GROUP, user=BOB)
                await platform.wait(bot_messages=answers, chat=GROUP)
        hint, *greeted = await platform.texts(GROUP)
        assert "Remain anonymous" in hint and len(greeted) == 2
        assert set(await platform.asked()) == {text for text in await platform.asked() if "hello" in text}


async def test_an_edit_carries_out_no_request_a_second_time(tmp_path: Path) -> None:
    """A request in plain words is done when its row is over, and stands in no history."""
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        account = f"[{{token: '{platform.token}', base_url: '{platform.url}', admins: [{ANN}], groups: [{GROUP}]}}]"
        bot = Served(tmp_path, telegram=platform, shipped=True, channels=f"{{telegram: {account}}}")
        await platform.group(GROUP)
        async with bot.running():
            asked = await platform.say(f"{BOT} remind me tomorrow at 9 to call mum", chat=GROUP, user=ANN)
            await platform.wait(bot_messages=1, chat=GROUP)
            await platform.edit(asked.message_id, f"{BOT} remind me tomorrow at 10 to call mum", chat=GROUP)
            await platform.say("/remind@remora_test_bot list", chat=GROUP, user=ANN)
            await platform.wait(bot_messages=2, chat=GROUP)
        assert "call mum" in (listed := (await platform.texts(GROUP))[-1]) and listed.count("call mum") == 1
