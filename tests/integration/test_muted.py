"""A chat in which the bot may not write: nobody is paid for answers there, nothing is lost, and an admin hears of it once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from channels.base import Muted, Outbound, Place
from memory.mailbox import outbox
from memory.mailbox.outbox import Outgoing, Part
from memory.service import Service
from memory.store import chats
from tests.kit import fakes
from tests.kit.bench import Bench, Screen
from tests.kit.patience import until
from tests.kit.served import ADA, ANN, BOB, TELEGRAM_TOKEN, Clock, Served
from tests.kit.stores import rows
from tests.platforms import discord, telegram

GROUP = -1001234567890
REFUSED = "Bad Request: not enough rights to send text messages to the chat"
BOT = "@remora_test_bot"
MINUTE = 60


def served(folder: Path, clock: Clock, platform: telegram.Control, port: int) -> Served:
    """As `remora init` writes it, but for a group and the platform's addresses."""
    bot = f"[{{token: '{platform.token}', base_url: '{platform.url}', allow: [{BOB}], admins: [{ANN}], groups: [{GROUP}]}}]"
    return Served(
        folder, telegram=platform, now=clock, model_url=platform.model_url, port=port, shipped=True,
        channels=f"{{telegram: {bot}}}", limits="{burst_seconds: 0}",
    )  # fmt: skip


async def paid(platform: telegram.Control | discord.Control, words: str) -> int:
    return sum(count for text, count in (await platform.asked()).items() if words in text)


async def idle(bot: Served) -> bool:
    return [store["oldest_inbox_seconds"] for store in (await bot.health())["stores"]] == [None]


async def muted(bot: Served, count: int) -> Any:
    async def holds() -> bool:
        return [store["muted"] for store in (await bot.health())["stores"]] == [count]

    await until(holds)


async def test_a_group_in_which_it_may_not_write_costs_one_call_and_is_tried_again(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """The restart knows of it, what was said is kept, and the right to write ends it."""
    clock = Clock()
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        bot = served(tmp_path, clock, platform, unused_tcp_port)
        await platform.group(GROUP, title="Allotment")
        async with bot.running():
            await bot.ready()
            await platform.say("hello", user=ANN, name="Ann")
            await platform.wait(bot_messages=1, chat=ANN)
            await platform.fault("refuse", place=GROUP, times=0, status=400, description=REFUSED)
            await platform.say(f"{BOT} what grows first?", user=BOB, chat=GROUP, name="Bob")
            await muted(bot, 1)
            for n in range(8):
                await platform.say(f"{BOT} what grows then, number {n}?", user=BOB, chat=GROUP, name="Bob")
            await platform.wait(bot_messages=2, chat=ANN)
            await platform.say("/status", user=ANN)
            await platform.wait(bot_messages=3, chat=ANN)
            hello, told, status = await platform.texts(ANN)
            assert hello.startswith("Answer to: ") and "may not write in “Allotment”" in told
            assert "No right to write: Allotment" in status
            page = await bot.health()
            assert page["status"] == "green"
        async with bot.running():
            await bot.ready()
            await platform.say(f"{BOT} what grows last?", user=BOB, chat=GROUP, name="Bob")
            await platform.say("still there?", user=ANN)
            await platform.wait(bot_messages=4, chat=ANN)
            assert (await paid(platform, "grow"), len(await platform.texts(ANN))) == (1, 4)
            refused = len([one for one in await platform.requests("sendMessage") if one["chat"] == GROUP])
            clock.shift += 11 * MINUTE  # one attempt
            await platform.say(f"{BOT} what grows now?", user=BOB, chat=GROUP, name="Bob")
            await until(lambda: counted(platform, refused))
            await platform.say(f"{BOT} and what grows next?", user=BOB, chat=GROUP, name="Bob")
            await platform.say("and now?", user=ANN)
            await platform.wait(bot_messages=5, chat=ANN)
            assert await paid(platform, "grow") == 2
            await platform.heal()
            await platform.member(GROUP, "add", user=BOB)
            await platform.say(f"{BOT} what may I sow?", user=BOB, chat=GROUP, name="Bob")
            await platform.wait(bot_messages=1, chat=GROUP)
            assert len(await platform.texts(ANN)) == 5
            await muted(bot, 0)
        assert await paid(platform, "what may I sow?") == 1


async def test_reminders_that_come_once_wait_for_the_right_to_write_and_come_as_one_message(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    clock = Clock()
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        bot = served(tmp_path, clock, platform, unused_tcp_port)
        await platform.group(GROUP, title="Allotment")
        async with bot.running():
            await bot.ready()
            await platform.say("hello", user=ANN, name="Ann")
            await platform.wait(bot_messages=1, chat=ANN)
            for n, what in enumerate(("water the beans", "weed the peas"), 1):
                await platform.say(f"/remind{BOT} in {n + 3} minutes {what}", user=BOB, chat=GROUP, name="Bob")
                await platform.wait(bot_messages=n, chat=GROUP)
            await platform.fault("refuse", place=GROUP, times=0, status=400, description=REFUSED)
        clock.shift += 6 * MINUTE
        async with bot.running():
            await bot.ready()
            await muted(bot, 1)
        async with bot.running():
            await bot.ready()
            await platform.heal()
            await platform.member(GROUP, "add", user=BOB)
            await platform.wait(bot_messages=3, chat=GROUP)
            await muted(bot, 0)
            told = [line for line in (await platform.texts(GROUP))[2].splitlines() if "due at" not in line]
            assert told == ["⏰ Bob: water the beans", "⏰ Bob: weed the peas"]


async def counted(platform: telegram.Control, before: int) -> bool:
    return len([one for one in await platform.requests("sendMessage") if one["chat"] == GROUP]) > before


async def test_a_restriction_that_telegram_tells_of_costs_nothing(tmp_path: Path, unused_tcp_port: int) -> None:
    """Fields that nobody knows yet don't hide it."""
    clock = Clock()
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        bot = served(tmp_path, clock, platform, unused_tcp_port)
        await platform.group(GROUP, title="Allotment")
        async with bot.running():
            await bot.ready()
            await platform.say("hello", user=ANN, name="Ann")
            await platform.say(f"{BOT} what grows first?", user=BOB, chat=GROUP, name="Bob")
            await platform.wait(bot_messages=1, chat=ANN)
            await platform.wait(bot_messages=1, chat=GROUP)
            rights = (
                "messages",
                "audios",
                "documents",
                "photos",
                "videos",
                "video_notes",
                "voice_notes",
                "polls",
                "other_messages",
            )
            me = {
                "id": int(platform.token.partition(":")[0]),
                "is_bot": True,
                "first_name": "Test",
                "username": BOT[1:],
            }
            restricted = {
                "user": me, "status": "restricted", "is_member": True, "until_date": 0, "can_add_web_page_previews": False,
                "can_react_to_messages": False, "can_edit_tag": False,
                "can_change_info": False, "can_invite_users": False, "can_pin_messages": False, "can_manage_topics": False,
                "can_hum": False, **{f"can_send_{right}": False for right in rights},
            }  # fmt: skip
            chat = {"id": GROUP, "type": "supergroup", "title": "Allotment"}
            change = {
                "chat": chat, "from": {"id": BOB, "is_bot": False, "first_name": "Bob"}, "date": clock() // 1000,
                "old_chat_member": {"user": me, "status": "member"}, "new_chat_member": restricted,
            }  # fmt: skip
            await platform.inject({"my_chat_member": change})
            await platform.wait(bot_messages=2, chat=ANN)
            await platform.say(f"{BOT} what grows then?", user=BOB, chat=GROUP, name="Bob")
            await platform.say("still there?", user=ANN)
            await platform.wait(bot_messages=3, chat=ANN)
            assert await paid(platform, "grow") == 1
            free = {"user": me, "status": "member"}
            await platform.inject(
                {"my_chat_member": {**change, "old_chat_member": restricted, "new_chat_member": free}}
            )
            await platform.say(f"{BOT} what grows now?", user=BOB, chat=GROUP, name="Bob")
            await platform.wait(bot_messages=2, chat=GROUP)


async def test_a_closed_topic_is_named_and_its_reopening_ends_it(tmp_path: Path, unused_tcp_port: int) -> None:
    clock = Clock()
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        bot = served(tmp_path, clock, platform, unused_tcp_port)
        await platform.group(GROUP, title="Allotment", forum=True)
        async with bot.running():
            await bot.ready()
            await platform.say("hello", user=ANN, name="Ann")
            await platform.wait(bot_messages=1, chat=ANN)
            topic = await platform.topic(GROUP, "Peas", user=BOB)
            await platform.say(f"{BOT} what of peas?", user=BOB, chat=GROUP, thread=topic, name="Bob")
            await platform.wait(bot_messages=1, chat=GROUP)
            await platform.close_topic(GROUP, topic, user=BOB)
            await platform.say(f"{BOT} and of beans?", user=BOB, chat=GROUP, thread=topic, name="Bob")
            await muted(bot, 1)
            await platform.wait(bot_messages=2, chat=ANN)
            assert "may not write in “Allotment › Peas”" in (await platform.texts(ANN))[1]
            reopened = {
                "message_id": 9001, "message_thread_id": topic, "is_topic_message": True, "date": clock() // 1000,
                "chat": {"id": GROUP, "type": "supergroup", "title": "Allotment", "is_forum": True}, "hue": 3,
                "from": {"id": BOB, "is_bot": False, "first_name": "Bob"}, "forum_topic_reopened": {"why": "rain"},
            }  # fmt: skip
            await platform.inject({"message": reopened})
            await muted(bot, 0)


@asynccontextmanager
async def muted_on_discord(folder: Path, port: int) -> AsyncIterator[tuple[discord.Control, Served, int, int, int]]:
    """Yields the platform, the bot, a server, its channel in which the bot may not write, and an admin's private chat."""
    async with discord.serving(model_ms=0) as platform:
        server, general = await platform.add_guild("Allotment")
        assert general is not None
        account = (
            f"[{{token: '{platform.token}', base_url: '{platform.api_url}', admins: [{ADA}], servers: [{server}]}}]"
        )
        bot = Served(
            folder, discord=platform, now=Clock(), model_url=platform.model_url, port=port, shipped=True,
            channels=f"{{discord: {account}}}", limits="{burst_seconds: 0}",
        )  # fmt: skip
        async with bot.running():
            await bot.ready()
            home = (await platform.say("hello", user=ADA)).channel
            await platform.wait(bot_messages=1, channel=home)
            await platform.deny(general, "send")
            await platform.say(f"{platform.mention} what grows first?", user=1001, channel=general)
            await muted(bot, 1)
            yield platform, bot, server, general, home


async def test_on_discord_a_change_of_rights_ends_it(tmp_path: Path, unused_tcp_port: int) -> None:
    async with muted_on_discord(tmp_path, unused_tcp_port) as (platform, bot, _, general, home):
        for n in range(8):
            await platform.say(f"{platform.mention} what grows then, number {n}?", user=1001, channel=general)
        await platform.wait(bot_messages=2, channel=home)
        await platform.say("still there?", user=ADA)
        await platform.wait(bot_messages=3, channel=home)
        assert await paid(platform, "grow") == 1
        assert "may not write in “Allotment › #general”" in (await platform.texts(home))[1]
        await platform.deny(general)
        await muted(bot, 0)
        await platform.say(f"{platform.mention} what grows now?", user=1001, channel=general)
        await platform.wait(bot_messages=1, channel=general)


async def test_on_discord_a_change_that_gives_no_right_costs_nothing_and_tells_nobody(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """Neither does one that gives it only until the next answer: an admin is told again once something was shown."""
    async with muted_on_discord(tmp_path, unused_tcp_port) as (platform, bot, server, general, home):
        await platform.wait(bot_messages=2, channel=home)
        colour = {"id": "4242", "name": "gardeners", "permissions": "0", "position": 1, "hoist": False, "gloss": 7}
        for n in range(4):
            change = {"guild_id": str(server), "role": {**colour, "color": n, "managed": False}}
            await platform.event("GUILD_ROLE_UPDATE", change)
            await platform.say(f"{platform.mention} what grows then, number {n}?", user=1001, channel=general)
        await platform.say("still there?", user=ADA)
        await platform.wait(bot_messages=3, channel=home)
        await until(lambda: idle(bot))
        assert await paid(platform, "grows") == 1
        await platform.deny(general)
        await muted(bot, 0)
        await platform.deny(general, "send")
        await platform.say(f"{platform.mention} what grows now?", user=1001, channel=general)
        await muted(bot, 1)
        await platform.say("and now?", user=ADA)
        await platform.wait(bot_messages=4, channel=home)
        assert (await paid(platform, "grows"), len(await platform.texts(home))) == (2, 4)


class Gagged(Screen):
    """A screen that shows nothing while it is `gagged`."""

    gagged = True

    async def send(self, outbound: Outbound) -> str:
        if self.gagged:
            raise Muted("no right")
        return await super().send(outbound)


async def test_the_rows_say_where_it_may_not_write(tmp_path: Path, clock: fakes.Clock) -> None:
    """Another process may have noted it, and a chat that was left is none of them."""
    bench = Bench(tmp_path, fakes.ScriptedModel(), Gagged(), clock)
    async with bench.running():
        await bench.say("hi", chat="club")
        await until(lambda: holds(bench, 1))
        await bench.router.on_presence("console", "club", present=False)
        assert await holds(bench, 0)
        await bench.router.on_presence("console", "club", present=True)
        key = Place(channel="console", chat="club").session_key
        await bench.memory.database.write(lambda tx: chats.mute(tx, [key], now=clock()))
        assert await holds(bench, 1)
        await bench.router.on_rights("console", "club", write=True)
        assert await holds(bench, 0)


async def holds(bench: Bench, count: int) -> bool:
    return (await bench.memory.stats.health([])).muted == count


async def test_held_reminders_stay_rows_of_their_own_until_they_are_shown(memory: Service) -> None:
    """A refusal, a cancelled first one and a wish to forget concern each alone; all end with the message they are in."""
    key, mailbox = Place(channel="console", chat="club").session_key, memory.mailbox
    pieces = [Part(text=text, reminder_id=n) for n, text in enumerate(("water the beans", "weed the peas", "sow"), 1)]
    await memory.database.write(lambda tx: mailbox.post(tx, Outgoing(session_key=key, pieces=pieces)))
    await memory.database.write(lambda tx: tx.run("update outbox set error = 'muted'"))
    row = await mailbox.take(key)
    assert row is not None and row.text == "water the beans\nweed the peas\nsow"
    await mailbox.not_sent(row, "pending", "muted")
    kept = await rows(memory, "select text, state from outbox order by id")
    assert kept == [("water the beans", "pending"), ("weed the peas", "pending"), ("sow", "pending")]
    first = [row.id]
    await memory.database.write(lambda tx: outbox.drop(tx, first))
    row = await mailbox.take(key)
    assert row is not None and row.text == "weed the peas\nsow"
    assert await mailbox.sent(row, "7") is None
    assert await rows(memory, "select text, state, platform_ref from outbox order by id") == [
        ("", "sent", "7"), ("", "sent", None),
    ]  # fmt: skip
