"""One platform's trouble stays its own: the other goes on answering, health says what to do, the end is a good one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.kit.patience import until
from tests.kit.served import ADA, ANN, TELEGRAM_TOKEN, Clock, Served
from tests.platforms.discord import Control as Discord
from tests.platforms.discord import reached
from tests.platforms.discord import serving as serving_discord
from tests.platforms.telegram import Control as Telegram
from tests.platforms.telegram import serving as serving_telegram

PORTAL = "https://discord.com/developers/applications"


class Both(NamedTuple):
    discord: Discord
    telegram: Telegram
    server: int
    general: int
    served: Served

    async def telegram_answers(self, word: str) -> None:
        await self.telegram.say(f"I live in {word}", user=ANN, name="Ann")
        await self.telegram.wait(chat=ANN, text=word)

    async def discord_answers(self, word: str) -> None:
        said = await self.discord.say(f"I live in {word}", user=ADA, name="Ada")
        await self.discord.wait(channel=said.channel, text=word)


@pytest.fixture
async def both(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Both]:
    async with serving_discord() as discord, serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        with reached(discord):
            server, general = await discord.add_guild("Lake")
            assert general is not None
            served = Served(
                tmp_path, discord=discord, telegram=telegram, server=server, now=Clock(), port=unused_tcp_port
            )
            yield Both(discord, telegram, server, general, served)


Break = Callable[[Both], Awaitable[object]]


async def wrong_token(both: Both) -> None:
    await both.discord.revoke()


async def no_intent(both: Both) -> None:
    await both.discord.bot(reads_messages=False)


async def down(both: Both) -> None:
    await both.discord.fault("status", times=0, status=503)
    await both.discord.gateway(accepting=False)


async def unreachable(both: Both) -> None:
    await both.discord.fault("reset", times=0)
    await both.discord.gateway(accepting=False)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (wrong_token, f"{PORTAL} → your application → Bot → Reset Token"),
        (no_intent, f"“Message Content Intent” at {PORTAL} → your application → Bot"),
        (down, ""),
        (unreachable, ""),
    ],
)
async def test_telegram_answers_while_discord_lets_nobody_in(both: Both, broken: Break, said: str) -> None:
    """A token that was reset, an intent that was never switched on, a platform that is away."""
    await broken(both)
    async with both.served.running():
        await both.telegram_answers("Lisbon")
        reason = await both.served.red("discord")
        assert said in reason
        await both.telegram_answers("Porto")
        assert not any(one.startswith("telegram") for one in (await both.served.health())["reasons"])
    assert both.served.code == 0
    assert both.discord.token not in reason + "\n".join(both.served.said)


async def test_an_intent_that_is_taken_away_while_it_runs_is_told(both: Both) -> None:
    """Discord closes the connection with 4014; its REST side goes on as if nothing were."""
    async with both.served.running():
        await both.discord_answers("Lisbon")
        await both.discord.bot(reads_messages=False)
        await both.discord.drop_connection(code=4014)

        async def refused() -> str:
            reason = await both.served.red("discord")
            return reason if "Message Content Intent" in reason else ""

        reason = await until(refused)
        assert PORTAL in reason
        await both.telegram_answers("Porto")
    assert both.served.code == 0


async def test_commands_that_discord_does_not_take_any_more_today_stop_nothing(both: Both) -> None:
    """30034: typed words are answered on both, nobody is alarmed over a menu, and Discord is not asked again."""
    await both.discord.rules(create_limit=0)
    for word in ("Lisbon", "Porto"):
        async with both.served.running():
            await both.discord_answers(word)
            await both.telegram_answers(word)
            said = await both.discord.say(f"{both.discord.mention} /help", user=ADA, channel=both.general)
            await both.discord.wait(channel=said.channel, text="/forget")
            await both.discord.wait(idle=0.5)
            assert (await both.served.health())["reasons"] == []
        assert both.served.code == 0
    state = await both.discord.state()
    assert not any(state["commands"].values())
    assert state["requests"]["put_commands"] == 3, "one for private chats and one for each server, once"


async def telegram_token(both: Both) -> None:
    await both.telegram.revoke()


async def telegram_down(both: Both) -> None:
    await both.telegram.fault("status", times=0, status=502)


async def telegram_hangs(both: Both) -> None:
    await both.telegram.fault("hang", times=0)


@pytest.mark.parametrize(
    ("broken", "said"), [(telegram_token, "BotFather"), (telegram_down, ""), (telegram_hangs, None)]
)
async def test_discord_answers_while_telegram_lets_nobody_in(both: Both, broken: Break, said: str | None) -> None:
    """The other way round; a request that hangs is not yet trouble, and holds up nobody either."""
    await broken(both)
    async with both.served.running():
        await both.discord_answers("Lisbon")
        if said is not None:
            assert said in await both.served.red("telegram")
        await both.discord_answers("Porto")
        assert not any(one.startswith("discord") for one in (await both.served.health())["reasons"])
    assert both.served.code == 0
