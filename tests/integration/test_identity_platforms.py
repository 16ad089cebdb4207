"""Privileges of admins, tried over Telegram and Discord as these bring them: nobody but the named person gets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.wording.texts import CATALOGUE
from tests.kit.served import ADA, ANN, BEN, BOB, EVE, TELEGRAM_TOKEN, Served
from tests.platforms import discord as discords
from tests.platforms import telegram as telegrams

#: The accounts that Telegram puts in the place of an anonymous admin and of a channel that posts, and its own.
GROUP_BOT, CHANNEL_BOT, SERVICE = 1087968824, 136817688, 777000
CLUB = -1_001_000_000_021
TEXTS = CATALOGUE["en"]


async def test_over_telegram_nobody_but_the_admin_lets_anybody_in(tmp_path: Path) -> None:
    """Anonymous, forwarded, edited, posted, pressed: what the platform itself allows people to try."""
    async with telegrams.serving((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram)
        async with served.running():
            await telegram.say("/allow here", user=ANN, chat=CLUB)
            await telegram.wait(chat=CLUB, bot_messages=1)
            for who in (GROUP_BOT, CHANNEL_BOT, SERVICE, ANN):
                await telegram.say("/allow 991", user=who, chat=CLUB, sender_chat=CLUB)
            await telegram.say("/allow 992", user=GROUP_BOT, chat=CLUB, is_bot=True)
            await telegram.say("/allow 993", user=ANN, chat=CLUB, forwarded=True)
            await telegram.say("/allow 994@remora", user=BOB, chat=CLUB, name=str(ANN), username=str(ANN))
            await telegram.say("/allow@another_bot 995", user=ANN, chat=CLUB)
            await telegram.say("/allow 996", user=BOB, chat=CLUB, photo=b"x")
            await telegram.say("/аllow 997", user=ANN, chat=CLUB)
            said = await telegram.say("hello", user=ANN)
            await telegram.wait(chat=ANN, bot_messages=1)
            await telegram.edit(said.message_id, "/allow 998", chat=ANN)
            await telegram.say("/allow 999", user=ANN, forwarded=True)
            await telegram.say(f"/admin memory {ANN}", user=BOB)
            await telegram.say("/help", user=BOB, chat=CLUB)
            await telegram.wait(chat=CLUB, text="/forget")
            await telegram.wait(chat=BOB, bot_messages=1)
            await telegram.say("/allow", user=ANN)
            await telegram.wait(chat=ANN, text=str(CLUB))
            listed = (await telegram.texts(ANN))[-1]
            club, bob = await telegram.texts(CLUB), await telegram.texts(BOB)
    assert "99" not in listed.replace(str(CLUB), "")
    assert not any("may talk to me now" in text for text in (*club[1:], *bob))
    assert bob == [TEXTS["command.unknown"].format(name="admin", hint="")]


async def test_over_discord_nobody_but_the_admin_gets_what_admins_have(tmp_path: Path) -> None:
    """Webhooks, other bots, the server's owner and whoever uses a command that they are not offered."""
    async with discords.serving() as discord:
        with discords.reached(discord):
            server, general = await discord.add_guild("Lake")
            assert general is not None
            served = Served(tmp_path, discord=discord, server=server)
            async with served.running():
                await discord.wait(connected=True)
                await discord.admin(BEN, guild=server)
                for way in ("webhook", "is_bot", "forwarded"):
                    more: dict[str, Any] = {way: True}
                    await discord.say(f"{discord.mention} /allow 991", user=ADA, channel=general, **more)
                await discord.say("/allow 992", user=BEN, name=str(ADA), nick=str(ADA))
                await discord.slash("allow", {"who": "993"}, user=BEN, channel=general, unchecked=True)
                await discord.slash("admin", {"what": "memory", "who": str(ADA)}, user=BEN, unchecked=True)
                stranger = await discord.slash("pair", user=EVE, channel=general, unchecked=True)
                await discord.wait(answered=stranger)
                await discord.wait(channel=await discord.dm(BEN), bot_messages=2)
                await discord.say("/allow", user=ADA, is_bot=False)
                await discord.wait(channel=await discord.dm(ADA), bot_messages=1)
                told = (await discord.seen(await discord.dm(ADA), user=ADA))[-1][1]
                seen = [text for who in (BEN, EVE) for _, text in await discord.seen(general, user=who)]
                seen += [text for _, text in await discord.seen(await discord.dm(BEN), user=BEN)]
    assert "99" not in told and "/allow" in told
    assert not any("may talk to me now" in text or "Give this code" in text for text in seen)
