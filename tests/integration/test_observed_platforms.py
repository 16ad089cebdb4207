"""Talk of a group that was not meant for the bot, read on Telegram and Discord through the whole product."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.kit.loopback import Answer, Asked
from tests.kit.loopback import serving as serving_model
from tests.kit.served import ADA, ANN, BEN, BOB, TELEGRAM_TOKEN, Served
from tests.platforms.discord import reached
from tests.platforms.discord import serving as serving_discord
from tests.platforms.telegram import serving as serving_telegram

GROUP = -1001234567890


class Model:
    """Says yes, and keeps what it was asked last."""

    asked = ""

    async def __call__(self, asked: Asked) -> Answer:
        self.asked = asked.body["messages"][-1]["content"]
        return Answer(
            body={"choices": [{"message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}]}
        )


@asynccontextmanager
async def serving(folder: Path, model: Model, bots: str) -> AsyncIterator[None]:
    async with serving_model(model) as address:
        served = Served(folder, model_url=f"{address}/v1", model="context: 32000", channels=bots)
        async with served.running():
            yield


async def test_on_telegram(tmp_path: Path) -> None:
    model = Model()
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        bot = f"token: '{telegram.token}', base_url: '{telegram.url}', groups: [{GROUP}], observe: context"
        async with serving(tmp_path, model, f"{{telegram: [{{{bot}}}]}}"):
            await telegram.group(GROUP, bot_admin=True)
            await telegram.say("Shall we take the night train?", user=ANN, name="Ann", chat=GROUP)
            await telegram.say("@remora_test_bot what do you think?", user=BOB, name="Bob", chat=GROUP)
            await telegram.wait(chat=GROUP, text="Yes.")
            assert "Ann: Shall we take the night train?" in model.asked
            assert any("latest lines for an hour" in text for text in await telegram.texts(GROUP))


async def test_message_that_names_the_bot_only_after_an_edit_is_answered_once(tmp_path: Path) -> None:
    """Whoever forgot the mention adds it; an edit of a message that was answered, or into a command, says nothing new."""
    model = Model()
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        bot = f"token: '{telegram.token}', base_url: '{telegram.url}', groups: [{GROUP}], observe: context"
        async with serving(tmp_path, model, f"{{telegram: [{{{bot}}}]}}"):
            await telegram.group(GROUP, bot_admin=True)
            said = await telegram.say("is it far?", user=ANN, name="Ann", chat=GROUP)
            other = await telegram.say("to all", user=BOB, name="Bob", chat=GROUP)
            await telegram.edit(said.message_id, "@remora_test_bot is it far?", chat=GROUP)
            await telegram.wait(chat=GROUP, text="Yes.")
            assert "Ann: is it far?" in model.asked and "- Ann: is it far?" not in model.asked
            await telegram.edit(said.message_id, "@remora_test_bot is it very far?", chat=GROUP)
            await telegram.edit(other.message_id, "/help@remora_test_bot", chat=GROUP)
            await telegram.say("@remora_test_bot and now?", user=BOB, name="Bob", chat=GROUP)
            await telegram.wait(chat=GROUP, text="Yes.", bot_messages=2)
            assert len(await telegram.texts(GROUP)) == 2


async def test_on_discord(tmp_path: Path) -> None:
    model = Model()
    async with serving_discord() as discord:
        with reached(discord):
            server, general = await discord.add_guild("Lake")
            assert general is not None
            bot = f"token: '{discord.token}', base_url: '{discord.api_url}', servers: [{server}], observe: context"
            async with serving(tmp_path, model, f"{{discord: [{{{bot}}}]}}"):
                await discord.wait(connected=True)
                await discord.say("Shall we take the night train?", user=ADA, name="Ada", channel=general)
                await discord.say(f"{discord.mention} what do you think?", user=BEN, name="Ben", channel=general)
                await discord.wait(channel=general, text="Yes.")
                assert "Ada: Shall we take the night train?" in model.asked
