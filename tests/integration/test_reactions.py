"""Reactions and previews of links as Telegram and Discord have them, in whole installations.

A reaction to a question is its button, for the one who was asked; an answer that comes whole is announced by a reaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

from channels.base import Attachment, ChannelUnavailable, Outbound, Place
from memory.store.database import Transaction
from tests.kit import fakes
from tests.kit.bench import Bench, Screen, SlowModel
from tests.kit.patience import limit, until
from tests.kit.served import ADA, ANN, BEN, BOB, TELEGRAM_TOKEN, Clock, Served
from tests.platforms import discord, telegram

GROUP = -1001234567890
BOT = "@remora_test_bot"
REFUSED = "Bad Request: REACTION_INVALID"


def on_telegram(folder: Path, platform: telegram.Control, *, stream: str = "edit") -> Served:
    """As `remora init` writes it, but for a group, the platform's addresses and how answers grow."""
    bot = f"{{token: '{platform.token}', base_url: '{platform.url}', allow: [{BOB}], admins: [{ANN}], groups: [{GROUP}]"
    return Served(
        folder, telegram=platform, now=Clock(), model_url=platform.model_url, shipped=True,
        channels=f"{{telegram: [{bot}, stream: {stream}}}]}}", limits="{burst_seconds: 0}",
    )  # fmt: skip


@asynccontextmanager
async def on_discord(
    folder: Path, *, stream: str = "edit", model_ms: float = 0, burst: float = 0
) -> AsyncIterator[tuple[discord.Control, int]]:
    async with discord.serving(model_ms=model_ms) as platform:
        server, general = await platform.add_guild("Allotment")
        assert general is not None
        account = (
            f"{{token: '{platform.token}', base_url: '{platform.api_url}', allow: [{BEN}], admins: [{ADA}],"
            f" servers: [{server}], stream: {stream}}}"
        )
        bot = Served(
            folder, discord=platform, now=Clock(), model_url=platform.model_url, shipped=True,
            channels=f"{{discord: [{account}]}}", limits=f"{{burst_seconds: {burst}}}",
        )  # fmt: skip
        async with bot.running():
            await platform.wait(connected=True)
            yield platform, general


async def asked(platform: telegram.Control, chat: int) -> int:
    messages = (await platform.state())["chats"][str(chat)]["messages"]
    return int([message["message_id"] for message in messages if message["by_bot"]][-1])


async def test_on_telegram_a_thumb_under_a_question_is_its_button(tmp_path: Path) -> None:
    """A heart likes the question, and answers nothing."""
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform, on_telegram(tmp_path, platform).running():
        await platform.say("/remember I like gooseberries", user=ANN, name="Ann")
        await platform.wait(bot_messages=1, chat=ANN)
        count = 1
        for emoji, told in (("❤", "gooseberries"), ("👎🏽", "gooseberries"), ("👍", "")):
            await platform.say("/forget everything", user=ANN)
            count += 1
            await platform.wait(bot_messages=count, chat=ANN)
            await platform.react(await asked(platform, ANN), emoji, chat=ANN, user=ANN)
            if emoji != "❤":
                count += 1
                await platform.wait(bot_messages=count, chat=ANN)
            await platform.say("/memory", user=ANN)
            count += 1
            await platform.wait(bot_messages=count, chat=ANN)
            assert ("gooseberries" in (await platform.texts(ANN))[-1]) == bool(told)


async def test_in_a_group_only_who_is_asked_answers_by_a_reaction(tmp_path: Path) -> None:
    async with telegram.serving((TELEGRAM_TOKEN,)) as platform:
        await platform.group(GROUP, title="Allotment", bot_admin=True)
        async with on_telegram(tmp_path, platform).running():
            for user, name in ((ANN, "Ann"), (BOB, "Bob")):
                await platform.say(f"/remember{BOT} {name} likes gooseberries", user=user, chat=GROUP, name=name)
            await platform.wait(bot_messages=2, chat=GROUP)
            await platform.say(f"/forget{BOT} everything", user=BOB, chat=GROUP)
            await platform.wait(bot_messages=3, chat=GROUP)
            question = await asked(platform, GROUP)
            await platform.react(question, "👍", chat=GROUP, user=ANN)
            await platform.say(f"/help{BOT}", user=ANN, chat=GROUP)
            await platform.wait(bot_messages=4, chat=GROUP)
            assert not any("Forgotten" in text for text in await platform.texts(GROUP))
            await platform.react(question, "👍", chat=GROUP, user=BOB)
            await platform.wait(text="Forgotten", chat=GROUP)


async def test_on_discord_a_mark_under_a_question_is_its_button(tmp_path: Path) -> None:
    async with on_discord(tmp_path) as (platform, general):
        await platform.say(f"{platform.mention} /remember I like gooseberries", user=BEN, channel=general)
        await platform.wait(bot_messages=1, channel=general)
        await platform.say(f"{platform.mention} /forget everything", user=BEN, channel=general)
        await platform.wait(bot_messages=2, channel=general)
        messages = (await platform.state())["channels"][str(general)]["messages"]
        question = [int(message["id"]) for message in messages if message["by_bot"]][-1]
        await platform.react(question, "✅", user=ADA)
        await platform.say(f"{platform.mention} /help", user=ADA, channel=general)
        await platform.wait(bot_messages=3, channel=general)
        await platform.react(question, "✅", user=BEN)
        await platform.wait(text="Forgotten", channel=general)


async def test_on_telegram_a_whole_answer_is_announced_by_a_reaction(tmp_path: Path) -> None:
    """A quick answer is not, a failed one takes it away, and where it is refused nobody hears of it."""
    async with (
        telegram.serving((TELEGRAM_TOKEN,), model_ms=700) as platform,
        on_telegram(tmp_path, platform, stream="mark").running(),
    ):
        said = await platform.say("what grows first?", user=ANN, name="Ann")
        await platform.wait(bot_messages=1, chat=ANN)
        eyes = [{"message_id": said.message_id, "emojis": emojis} for emojis in (["👀"], [])]
        await until(lambda: marked(platform, eyes))
        await platform.say("/help", user=ANN)
        await platform.wait(bot_messages=2, chat=ANN)
        assert (await platform.state())["marks"] == eyes
        await platform.fault("refuse", method="model", at="after effect", status=400, times=1)
        failed = await platform.say("what grows then?", user=ANN)
        await platform.wait(bot_messages=3, chat=ANN)
        eyes += [{"message_id": failed.message_id, "emojis": emojis} for emojis in (["👀"], [])]
        await until(lambda: marked(platform, eyes))
        await platform.fault("refuse", method="setMessageReaction", status=400, description=REFUSED, times=0)
        await platform.say("what grows last?", user=ANN)
        await platform.wait(bot_messages=4, chat=ANN)
        assert "what grows last?" in (await platform.texts(ANN))[-1]


async def marked(platform: telegram.Control | discord.Control, marks: Sequence[Mapping[str, object]]) -> bool:
    return bool((await platform.state())["marks"] == marks)


class Marking(Screen):
    """A screen that keeps its marks, and is told to wait at their removal, once."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = replace(self.capabilities, marks=True)
        self.marks: list[bool] = []
        self.failing = [ChannelUnavailable("slowly", retry_after=0)]

    async def mark(self, place: Place, message_id: str, *, on: bool) -> None:
        if not on and self.failing:
            raise self.failing.pop()
        self.marks.append(on)

    async def send(self, outbound: Outbound) -> str:
        assert self.marks == [True], "the answer does not wait for the removal"
        return await super().send(outbound)


async def test_a_mark_goes_after_the_answer_and_again_if_it_was_put_off(tmp_path: Path, clock: fakes.Clock) -> None:
    model, screen = SlowModel("peas"), Marking()
    bench = Bench(tmp_path, model, screen, clock)
    async with bench.running() as router:
        await router.on_inbound(bench.inbound("what grows first?"))
        await until(lambda: screen.marks)
        model.go_on()
        await until(lambda: screen.texts)
        await until(lambda: screen.marks == [True, False])
    assert not screen.failing


async def test_on_discord_a_whole_answer_is_announced_by_a_reaction(tmp_path: Path) -> None:
    async with on_discord(tmp_path, stream="mark", model_ms=700) as (platform, general):
        said = await platform.say(f"{platform.mention} what grows first?", user=BEN, channel=general)
        await platform.wait(bot_messages=1, channel=general)
        eyes = [{"message_id": str(said.message_id), "emoji": "👀", "there": there} for there in (True, False)]
        await until(lambda: marked(platform, eyes))
        await platform.deny(general, "react")
        await platform.say(f"{platform.mention} what grows then?", user=BEN, channel=general)
        await platform.wait(bot_messages=2, channel=general)
        assert "what grows then?" in (await platform.texts(general))[-1]
        assert (await platform.state())["marks"] == eyes


async def test_a_preview_that_comes_late_is_read_for_the_turn_or_kept_with_the_message(tmp_path: Path) -> None:
    """It never makes a second answer."""
    async with on_discord(tmp_path, burst=1.5) as (platform, general):
        said = await platform.say(f"{platform.mention} look https://example.org", user=BEN, channel=general)
        await platform.unfurl(said.message_id)
        await platform.wait(bot_messages=1, channel=general)
        assert "[link preview Example]" in (await platform.state())["model"]["read"][-1]
        late = await platform.say(f"{platform.mention} see https://example.net", user=BEN, channel=general)
        await platform.wait(bot_messages=2, channel=general)
        for _ in range(2):
            await platform.unfurl(late.message_id)
        await platform.say(f"{platform.mention} well?", user=BEN, channel=general)
        await platform.wait(bot_messages=3, channel=general)
        read = (await platform.state())["model"]["read"][-1]
        assert "example.net" in read and read.count("[link preview Example]") == 2
        assert len(await platform.texts(general)) == 3
    [store] = (tmp_path / "data").rglob("*.db")
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("select count(*) from erasures").fetchone() == (0,), "no words have gone"


async def test_previews_of_a_message_that_was_not_taken_write_nothing(tmp_path: Path, clock: fakes.Clock) -> None:
    """Platforms tell them of whoever posts a link."""
    bench, begun, end = Bench(tmp_path, fakes.ScriptedModel(), Screen(), clock), threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        begun.set()
        end.wait()

    async with bench.running() as router:
        posted = bench.inbound("https://example.org", chat="club")
        holding = asyncio.create_task(bench.memory.database.write(hold))
        await asyncio.to_thread(begun.wait)
        try:
            async with limit():
                await router.on_previews(replace(posted, attachments=(Attachment(kind="preview", name="Example"),)))
        finally:
            end.set()
            await holding
