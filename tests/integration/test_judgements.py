"""A thumb on an answer is a person's judgement of it: `/why` shows it, and it goes when it is taken back or forgotten."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.kit.served import ADA, ANN, BEN, BOB, TELEGRAM_TOKEN, Clock, Served
from tests.platforms import discord, telegram
from tests.platforms.discord.deeds import bot_id

GROUP = -1001234567890
BOT = "@remora_test_bot"


def rows(folder: Path) -> int:
    """Not while the bot runs: Python's own SQLite would take its locks away."""
    [store] = (folder / "data").rglob("*.db")
    with closing(sqlite3.connect(store)) as database:
        return int(database.execute("select count(*) from judgements").fetchone()[0])


async def shown(platform: telegram.Control, chat: int) -> int:
    """The id of the bot's last message in a chat."""
    messages = (await platform.state())["chats"][str(chat)]["messages"]
    return int([message["message_id"] for message in messages if message["by_bot"]][-1])


async def why(platform: telegram.Control, answer: int, *, chat: int, user: int = ANN) -> str:
    """Returns the reply to /why about `answer`."""
    before = len(await platform.texts(chat))
    await platform.say("/why" if chat == user else f"/why{BOT}", user=user, chat=chat, reply_to=answer)
    await platform.wait(bot_messages=before + 1, chat=chat)
    return (await platform.texts(chat))[-1]


def served(folder: Path, platform: telegram.Control, clock: Clock | None = None) -> Served:
    """As `remora init` writes it, but for a group and the platform's addresses."""
    bot = f"[{{token: '{platform.token}', base_url: '{platform.url}', allow: [{BOB}], admins: [{ANN}], groups: [{GROUP}]}}]"
    return Served(
        folder, telegram=platform, now=clock or Clock(), model_url=platform.model_url, shipped=True,
        channels=f"{{telegram: {bot}}}", limits="{burst_seconds: 0}",
    )  # fmt: skip


async def test_a_thumb_on_telegram_is_shown_by_why_changed_taken_back_and_forgotten(tmp_path: Path) -> None:
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform, served(tmp_path, platform).running():
        asked = await platform.say("what grows first?", user=ANN, name="Ann")
        await platform.wait(bot_messages=1, chat=ANN)
        answer = await shown(platform, ANN)
        await platform.react(asked.message_id, "👍", chat=ANN, user=ANN)  # her own message is no answer
        assert "👍" not in await why(platform, answer, chat=ANN)
        await platform.react(answer, "👍🏽", chat=ANN, user=ANN)
        assert "Reactions to it: 👍 1" in await why(platform, answer, chat=ANN)
        await platform.react(answer, "👎", chat=ANN, user=ANN)
        assert "Reactions to it: 👎 1" in await why(platform, answer, chat=ANN)
        await platform.react(answer, "🎉", chat=ANN, user=ANN)
        assert "Reactions" not in await why(platform, answer, chat=ANN)
        await platform.react(answer, "❤", chat=ANN, user=ANN)
        assert "👍 1" in await why(platform, answer, chat=ANN)
        before = len(await platform.texts(ANN))
        await platform.say("/forget everything", user=ANN)
        await platform.wait(bot_messages=before + 1, chat=ANN)
        await platform.press(await shown(platform, ANN), label="yes", chat=ANN, user=ANN)
        await platform.wait(chat=ANN, text="Forgotten")
        await platform.react(answer, "👍", chat=ANN, user=ANN)
        await platform.say("/help", user=ANN)
        await platform.wait(bot_messages=before + 2, chat=ANN)
    assert rows(tmp_path) == 0


async def test_thumbs_that_agree_are_a_wish_for_the_length_of_answers(tmp_path: Path) -> None:
    """It is shown and forgotten like any style, and goes when one thumb is taken back or speaks against it."""
    clock = Clock()
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform, served(tmp_path, platform, clock).running():
        answers = []
        for n in range(4):
            words = " ".join(f"bean{n}{k}" for k in range(120)) if n < 3 else "and peas?"
            await platform.say(words, user=ANN, name="Ann")
            await platform.wait(bot_messages=n + 1, chat=ANN)
            answers.append(await shown(platform, ANN))
        count = 4

        async def remembered() -> str:
            nonlocal count
            await platform.say("/memory", user=ANN)
            count += 1
            await platform.wait(bot_messages=count, chat=ANN)
            return (await platform.texts(ANN))[-1]

        for answer in answers[:2]:
            await platform.react(answer, "👎", chat=ANN, user=ANN)
        assert "short answers" not in await remembered()
        await platform.react(answers[2], "👎", chat=ANN, user=ANN)
        await platform.react(answers[3], "👍", chat=ANN, user=ANN)
        assert "short answers" in await remembered()
        await platform.react(answers[3], "👎", chat=ANN, user=ANN)
        assert "short answers" not in await remembered()
        await platform.react(answers[3], chat=ANN, user=ANN)
        assert "short answers" in await remembered()
        await platform.react(answers[2], chat=ANN, user=ANN)
        assert "short answers" not in await remembered()
        clock.shift += 120  # there is a limit on what is said in a minute
        await platform.react(answers[2], "👎", chat=ANN, user=ANN)
        [line] = [line for line in (await remembered()).splitlines() if "short answers" in line]
        found = re.search(r"m_\w+", line)
        assert found is not None
        await platform.say(f"/forget {found[0]}", user=ANN)
        await platform.wait(bot_messages=count + 1, chat=ANN)
        await platform.press(await shown(platform, ANN), label="this memory only", chat=ANN, user=ANN)
        await platform.wait(chat=ANN, text="Forgotten")
        count = len(await platform.texts(ANN))
        await platform.react(answers[3], "👍", chat=ANN, user=ANN)
        assert "short answers" not in await remembered(), "it was forgotten since the others"
        for answer in answers[:3]:
            await platform.react(answer, chat=ANN, user=ANN)
            await platform.react(answer, "👎", chat=ANN, user=ANN)
        assert "short answers" in await remembered()


async def test_in_a_group_each_person_whom_the_bot_knows_judges_once(tmp_path: Path) -> None:
    """Whoever has never talked with it leaves no trace, and neither does who may not."""
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        await platform.group(GROUP, title="Allotment", bot_admin=True)
        async with served(tmp_path, platform).running():
            await platform.say("hello", user=ANN, name="Ann")
            await platform.wait(bot_messages=1, chat=ANN)
            await platform.say(f"{BOT} what grows first?", user=BOB, chat=GROUP, name="Bob")
            await platform.wait(bot_messages=1, chat=GROUP)
            answer = await shown(platform, GROUP)
            for user in (ANN, BOB, 99):
                await platform.react(answer, "👍", chat=GROUP, user=user)
            await platform.react(answer, "👍", "👎", chat=GROUP, user=BOB)
            assert "Reactions to it: 👍 1 👎 1" in await why(platform, answer, chat=GROUP, user=BOB)
        assert rows(tmp_path) == 2


async def test_a_thumb_on_discord_is_shown_by_why_and_taken_back(tmp_path: Path) -> None:
    """In a server and in a direct message; a thumb that was changed before it is taken away takes nothing back."""
    server = 197038439483310086
    async with discord.serving() as platform:
        with discord.reached(platform):
            _, kitchen = await platform.add_guild("Kitchen", guild=server)
            assert kitchen is not None
            bot = Served(tmp_path, discord=platform, server=server)
            async with bot.running():
                await platform.wait(connected=True)
                await judges(platform, kitchen, BEN)
                await judges(platform, await platform.dm(ADA), ADA)


async def judges(platform: discord.Control, channel: int, user: int) -> None:
    call = f"<@{bot_id(platform.token)}>"
    asked = await platform.say(f"{call} hello", user=user, channel=channel)
    await platform.wait(bot_messages=1, channel=channel)
    messages = (await platform.state())["channels"][str(channel)]["messages"]
    answer = [int(message["id"]) for message in messages if message["by_bot"]][-1]
    await platform.react(asked.message_id, "👎", user=user)
    await platform.react(answer, "👍🏿", user=user)
    await platform.react(answer, "👎", user=user)
    await platform.react(answer, "👍", user=user, gone=True)
    await platform.say(f"{call} /why", user=user, channel=channel, reply_to=answer)
    await platform.wait(text="Reactions to it: 👎 1", channel=channel)
    before = len(await platform.texts(channel))
    await platform.react(answer, "👎", user=user, gone=True)
    await platform.say(f"{call} /why", user=user, channel=channel, reply_to=answer)
    await platform.wait(bot_messages=before + 1, channel=channel)
    assert "Reactions" not in (await platform.texts(channel))[-1]
