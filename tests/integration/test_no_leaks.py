"""Nothing gets out: no texts and secrets into logs, and on Discord no pings and previews into chats."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agents.llm import ChatMessage, ModelError, Request
from agents.providers.openai import OpenAIProvider
from agents.spec import ModelSpec
from gateway.config.settings import TelegramSettings
from tests.kit import loopback
from tests.kit.loopback import Answer, Asked
from tests.kit.patience import SECONDS
from tests.kit.served import ADA, ANN, BEN, SELDOM, TELEGRAM_TOKEN, Served, spawned
from tests.platforms.discord import Control as Discord
from tests.platforms.discord import reached
from tests.platforms.discord import serving as serving_discord
from tests.platforms.discord.client import Deed
from tests.platforms.telegram import Control as Telegram
from tests.platforms.telegram import serving as serving_telegram
from tests.platforms.telegram.world import found_entities

HOOKED_TOKEN = "987654321:" + "Zz9-_" * 7
SECRET = TelegramSettings(token=SecretStr(HOOKED_TOKEN)).webhook_secret
MODEL_KEY = "sk-test-0123456789abcdefABCDEF0123456789"


class Canaries:
    """Words that stand in what people say and nowhere else."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.all: list[str] = []

    def __call__(self) -> str:
        self.all.append(f"zwitscher{next(self._numbers):03d}vogel")
        return self.all[-1]


@pytest.mark.campaign
async def test_no_text_and_no_secret_is_ever_logged(tmp_path: Path, unused_tcp_port: int) -> None:
    """At the loudest level, with everything failing that can: a log is copied into bug reports."""
    canary = Canaries()
    async with serving_discord(model_ms=0) as discord, serving_telegram((TELEGRAM_TOKEN, HOOKED_TOKEN)) as telegram:
        hooked = telegram.of(HOOKED_TOKEN)
        server, general = await discord.add_guild("Lake")
        assert general is not None
        await discord.script_model({"long": "word " * 900})
        bots = (
            f"{{telegram: [{{token: '{TELEGRAM_TOKEN}', base_url: '{telegram.url}', allow: [{ANN}], admins: [{ANN}]}}, "
            f"{{id: hooked, token: '{HOOKED_TOKEN}', base_url: '{telegram.url}', allow: [{ANN}], "
            f"webhook: 'https://bot.example.org'}}], "
            f"discord: [{{token: '{discord.token}', base_url: '{discord.api_url}', allow: [{ADA}], admins: [{ADA}], "
            f"servers: [{server}]}}]}}"
        )
        Served(
            tmp_path,
            model_url=discord.model_url,
            model=f"key: '{MODEL_KEY}'",
            port=unused_tcp_port,
            channels=bots,
            limits="{burst_seconds: 0, person_messages_per_minute: 3000}",
            pace=replace(SELDOM, placeholder_seconds=0.01),
            log="{level: debug, format: json, file: remora.log}",
        )
        await hooked.webhook(f"http://127.0.0.1:{unused_tcp_port}")
        async with spawned(tmp_path) as serving:
            await discord.wait(connected=True)
            await on_discord(discord, general, canary)
            await on_telegram(telegram, canary)
            await by_webhook(hooked, canary)
            await crashes(discord, telegram, canary)
        state = await discord.state()
    printed, logged = (tmp_path / "printed").read_text(), (tmp_path / "remora.log").read_text()
    assert serving.returncode == 0, printed
    lines = [json.loads(line) for line in logged.splitlines()]
    assert {"debug", "info", "warning", "error"} <= {line["level"] for line in lines}
    events = {str(line["event"]) for line in lines}
    wanted = {"channel.unread", "telegram.trouble", "discord.not_acknowledged", "send.failed"}
    assert wanted <= events, wanted - events
    tokens = [one["token"] for one in state["interactions"].values()]
    assert len(tokens) >= 15
    written = logged + printed
    secrets = [TELEGRAM_TOKEN, HOOKED_TOKEN, discord.token, SECRET, MODEL_KEY, *tokens]
    found = {one: line(written, one) for one in (*secrets, *canary.all) if one in written}
    assert found == {}


def line(text: str, part: str) -> str:
    """The line of a log in which something stands, as far as it is of interest."""
    at = text.index(part)
    return text[max(0, text.rfind("\n", 0, at) + 1, at - 700) : at + 100]


async def on_discord(discord: Discord, general: int, canary: Canaries) -> None:
    """Talk, commands, a form, completions, presses; each way to answer also fails."""
    direct = (await discord.say(f"hello {canary()}", user=ADA, name="Ada")).channel
    await discord.wait(channel=direct, bot_messages=1)
    await discord.wait(method="put_commands", count=3)
    faults: list[dict[str, Any]] = [
        {"do": "status", "method": "send", "status": 502, "body": f"<h1>{canary()}</h1>"},
        {"do": "flood", "method": "send", "retry_after": 0.2, "nth": 2},
        {"do": "reset", "method": "send", "nth": 4},
        {"do": "reset", "method": "send", "nth": 5, "at": "after effect"},
        {"do": "garbage", "method": "edit", "body": f'{{"content": "{canary()}'},
        {"do": "cut", "method": "edit", "nth": 3},
        {"do": "status", "method": "model", "status": 500, "body": f'{{"error": {{"message": "not {canary()}"}}}}'},
        {"do": "reset", "method": "model", "nth": 4},
    ]
    for fault in faults:
        await discord.fault(**fault)
    for number in range(10):
        # Two people in turns, so that each is answered by itself.
        text = f"{discord.mention} {canary()}{' long' * (number % 2)}"
        await discord.say(text, user=(ADA, BEN)[number % 2], channel=general)
    await discord.wait(idle=1.0)
    breaks: tuple[Deed, ...] = ("status", "flood", "reset", "cut")
    for round_, method in enumerate(("callback", "edit_original"), 1):
        for number, do in enumerate(breaks):
            await discord.fault(do, method=method, nth=2 * number + 1, retry_after=0.2, status=500)
        for _ in range(len(breaks)):
            await discord.slash("remember", {"text": f"I like {canary()}"}, user=ADA, channel=general)
            await discord.slash("help", user=ADA, channel=general)
        await discord.wait(method="callback", count=round_ * 2 * len(breaks))
        await discord.wait(idle=0.7)
    await discord.heal()
    asked = await discord.slash("remember", user=ADA)
    await discord.wait(responded=asked)
    if (await discord.interaction(asked))["form"] is not None:
        await discord.submit(asked, f"my boat is {canary()}")
    await discord.autocomplete("forget", {"what": canary()}, user=ADA)
    await discord.say(f"/forget {canary()}", user=ADA)
    await discord.say("/forget all", user=ADA)
    state = await discord.state()
    for message in [one for one in state["bot_messages"] if one["components"]][:3]:
        button = message["components"][0]["components"][0]["custom_id"]
        await discord.press(int(message["id"]), button, user=message["only_for"] or ADA)
    await discord.say(user=ADA, attachments=[(f"{canary()}.txt", f"a file {canary()}".encode(), "text/plain")])
    await discord.fault("status", method="download", status=500, times=2)
    await discord.say(f"and {canary()}", user=ADA, attachments=[("b.txt", b"lost", "text/plain")])
    stranger = await discord.say(f"let me in {canary()}", user=BEN)
    await discord.wait(channel=stranger.channel, bot_messages=1)
    await discord.wait(idle=1.0)


async def on_telegram(telegram: Telegram, canary: Canaries) -> None:
    """The same where the token stands in every address."""
    await telegram.say(f"hello {canary()}", user=ANN, name="Ann")
    await telegram.wait(chat=ANN, bot_messages=1)
    await telegram.fault("status", method="sendMessage", status=502, body=f"<h1>{canary()}</h1>")
    await telegram.say(f"one {canary()}", user=ANN)
    await telegram.fault("flood", method="sendMessage", retry_after=1)
    await telegram.say(f"two {canary()} long", user=ANN)
    for fault in ("reset", "cut", "garbage"):
        await telegram.fault(fault, method="sendMessage")
        await telegram.fault(fault, method="getUpdates")
        await telegram.say(f"three {canary()}", user=ANN)
    await telegram.fault(
        "refuse", method="sendMessage", status=403, description="Forbidden: bot was blocked by the user"
    )
    await telegram.say(f"four {canary()}", user=ANN)
    await telegram.say(f"/remember I like {canary()}", user=ANN)
    await telegram.say(f"/forget {canary()}", user=ANN)
    await telegram.say(user=ANN, document=f"a file {canary()}".encode(), filename="a.txt")
    await telegram.fault("reset", method="download", times=2)
    await telegram.say(f"and {canary()}", user=ANN, document=b"lost", filename="b.txt")
    await telegram.say("/forget all", user=ANN)
    await telegram.wait(idle=1.0)
    for message in (await telegram.state())["chats"][str(ANN)]["messages"]:
        for row in (message.get("reply_markup") or {}).get("inline_keyboard", ())[:1]:
            await telegram.press(message["message_id"], row[0]["callback_data"], chat=ANN, user=ANN)
    await telegram.wait(idle=1.0)


async def by_webhook(hooked: Telegram, canary: Canaries) -> None:
    """A path and a header that only Telegram knows."""
    await hooked.say(f"hello {canary()}", user=ANN, name="Ann")
    await hooked.wait(chat=ANN, bot_messages=1)
    await hooked.fault("reset", method="webhook", at="after effect")
    await hooked.say(f"again {canary()}", user=ANN)
    await hooked.wait(chat=ANN, bot_messages=2)
    await hooked.wait(idle=0.5)


async def crashes(discord: Discord, telegram: Telegram, canary: Canaries) -> None:
    """Sends updates that no version of ours was made for: errors with people's words not far away."""
    message = {"message_id": "no number", "date": 1, "chat": {"id": ANN, "type": "private"}, "text": canary()}
    await telegram.inject({"message": message})
    await telegram.inject({"message": message | {"message_id": 99, "text": {"is": canary()}}})
    author = {"id": str(ADA), "username": "ada"}
    place = str(await discord.dm(ADA))
    odd = {"id": str(1 << 62), "channel_id": place, "author": author, "content": canary(), "type": 0}
    await discord.event("MESSAGE_CREATE", odd | {"mentions": [{"name": canary()}]})
    await discord.say(f"still there? {canary()}", user=ADA)
    await discord.wait(idle=1.0)


ANSWER = (
    "Wake up @everyone and @here, <@345678901234567890> <@!345678901234567890> <@&900> <#901>! "
    "See https://example.org/a and [this](https://example.org/b) <https://example.org/c> www.example.org\n\n"
)


async def test_nothing_that_is_shown_on_discord_pings_or_previews(tmp_path: Path) -> None:
    """Whatever a model says and by whatever way it goes out: message, growing edit, reply, answer to a command."""
    async with serving_discord(model_ms=0) as discord:
        with reached(discord):
            server, general = await discord.add_guild("Lake")
            await discord.script_model({"short": ANSWER, "long": ANSWER + "word " * 900 + ANSWER})
            served = Served(
                tmp_path,
                discord=discord,
                server=server,
                model_url=discord.model_url,
                limits="{burst_seconds: 0, person_messages_per_minute: 3000}",
                pace=replace(SELDOM, placeholder_seconds=0),
            )
            async with served.running():
                await discord.wait(connected=True)
                await discord.wait(method="put_commands", count=3)
                for text in ("short", "long", f"I like {ANSWER}"):
                    await discord.say(text, user=ADA)
                    said = await discord.say(f"{discord.mention} {text}", user=ADA, channel=general)
                    await discord.say(text, user=BEN, channel=general, reply_to=said.message_id)
                await discord.wait(idle=1.0)
                await discord.slash("remember", {"text": f"I like {ANSWER}"}, user=ADA, channel=general)
                await discord.slash("why", user=ADA, channel=general)
                await discord.slash("help", user=ADA)
                await discord.slash("memory", user=ADA, channel=general)
                asked = await discord.slash("forget", {"what": "all"}, user=ADA, channel=general)
                await discord.wait(answered=asked)
                await discord.say(f"{discord.mention} short", user=ADA, channel=general)
                await discord.wait(idle=1.0)
            state = await discord.state()
    assert state["violations"] == []
    bodies = [body for message in state["bot_messages"] for body in message["asked"] if body.get("content")]
    assert len(bodies) >= 15 and any("example.org" in body["content"] for body in bodies)
    for body in bodies:
        assert body["allowed_mentions"] == {"parse": [], "replied_user": False}
        assert body["flags"] & 4
    assert not re.search(r"@everyone|@here|<@!?\d|<@&\d", " ".join(body["content"] for body in bodies))


CALLING = (
    "Ask @ada_lovelace or **@bob_1815**, (@carl_fg) and [@dora_x](https://example.org/d), `@erin_code`, _@fred__. "
    "https://a/@gina_x x@hugo.y@ivan_z ada@example.org\n> @jane_q\n\n```\n@kate_r\n```\n| @lena_s |\n|---|\n| @mike_t |\n\n"
)


async def test_nothing_that_is_shown_on_telegram_calls_anybody_by_name(tmp_path: Path) -> None:
    """A bare @name rings that member of the group: message, draft, answer to a command."""
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        await telegram.script_model({"short": CALLING, "long": CALLING + "word " * 900 + CALLING}, ms=600)
        bots = (
            f"{{telegram: [{{token: '{TELEGRAM_TOKEN}', base_url: '{telegram.url}', allow: [{ANN}], stream: draft}}],"
            " discord: []}"
        )
        served = Served(
            tmp_path,
            telegram=telegram,
            model_url=telegram.model_url,
            channels=bots,
            limits="{burst_seconds: 0, person_messages_per_minute: 3000}",
            pace=replace(SELDOM, placeholder_seconds=0),
        )
        async with served.running():
            for said in ("short", f"/remember I like {CALLING}", "/memory", "/why", "long"):
                before = len(await telegram.texts(ANN))
                await telegram.say(said, user=ANN)
                await telegram.wait(chat=ANN, bot_messages=before + 1)
        state = await telegram.state()
    shown = [
        one
        for chat in state["chats"].values()
        for message in chat["messages"]
        if message["by_bot"]
        for one in (message, *message["edits"])
    ] + state["drafts"]
    assert sum("Ask" in one["text"] for one in shown) >= 4
    assert [called for one in shown for called in calls(one["text"], one.get("entities", []))] == []
    texts = " ".join(one["text"] for one in shown)
    assert "ada@example.org" in texts and "@kate_r" in texts and "@erin_code" in texts


def calls(text: str, entities: Sequence[dict[str, Any]]) -> list[str]:
    """Returns whom a text calls on Telegram: names that stand in no code."""
    code = [(one["offset"], one["offset"] + one["length"]) for one in entities if one["type"] in ("code", "pre")]
    return [
        text
        for found in found_entities(text)
        if found["type"] == "mention" and not any(start <= found["offset"] < end for start, end in code)
    ]


async def test_a_server_that_repeats_what_it_was_asked_is_not_quoted() -> None:
    """Servers that check requests with pydantic answer 400 with the whole input; the error goes into the log."""
    canary = Canaries()()

    async def refuse(asked: Asked) -> Answer:
        told = {"loc": ["body", "messages"], "msg": "bad", "input": asked.body["messages"]}
        return Answer(status=400, body={"error": {"message": json.dumps(told)}})

    async with loopback.serving(refuse) as url, httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        model = ModelSpec(provider="openai", base_url=url, model="test", timeout=SECONDS)
        provider = OpenAIProvider(client, model, count_tokens=len)
        with pytest.raises(ModelError) as raised:
            await provider.complete(Request(messages=(ChatMessage(role="user", content=f"my secret is {canary}"),)))
    assert canary not in str(raised.value)
