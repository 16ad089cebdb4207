"""The bot over both platforms as `remora serve` runs it, and what people see of it, written down as text.

A transcript has a line for each message that stands in a place, oldest first: who says it, in brackets what it answers
and who alone sees it, the words (further lines are indented), the names of files, and the buttons under it. Ids of
memories are numbered as they appear; moments, days, codes, scores and amounts of tokens stand as (now), today, (code), …
and (n); long texts that are always the same have their name in the catalogue, such as {first.private}.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from channels.supervision import supervise
from gateway import app, bots
from gateway.config.loading import load
from gateway.config.settings import WorkPace
from gateway.reception.router import Router
from gateway.wording.texts import CATALOGUE
from tests.kit import stalls
from tests.kit.patience import until
from tests.platforms import discord as discords
from tests.platforms import telegram as telegrams

#: Two people and an admin, with ids as both platforms may give them.
ADA, BOB, ROOT = 100_000_000_000_001, 100_000_000_000_002, 100_000_000_000_009
CLUB, FORUM = -1_001_000_000_001, -1_001_000_000_002
REEF = 200_000_000_000_001  # a Discord server
BOT = "42424:AA" + "for-tests-only-" * 2 + "abc"
#: So long a text stands by its name, unless it has fields. These do however short they are.
_LONG = 60
_NAMED = ("first.private", "first.group", "late.ask", "again.ask", "dead.told")
_STARTER = 21  # the type of the message that stands for the one a thread was opened from
_MENTION = re.compile(r"<@!?\d{1,20}>")  # nobody else is called
_ESCAPED = re.compile(r"\\([^A-Za-z0-9\s])")
_MEMORY = re.compile(r"\bm_[a-z0-9]{6}\b")
_MOMENT = re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d\b|\d{4}年\d{1,2}月\d{1,2}日 \d\d:\d\d")
_DATE = re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d{4}\b|\d{4}年\d{1,2}月\d{1,2}日")
#: Which work of the night is next depends on the hour.
_NIGHT = re.compile(r"(?<=Next nightly job: )[^,\n]+|(?<=下一项夜间任务：)[^，\n]+")
_CODE = re.compile(r"\b[A-Z2-9]{4}-[A-Z2-9]{4}\b")
_SCORE = re.compile(r" · (score|得分) .*")
#: How much was used hangs on how many messages were read in one go.
_USED = re.compile(r"\d{1,6}(?=(?: calls| tokens| out\b| 次调用| 个 token))|(?<=输入 )\d{1,6}")


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    telegram: telegrams.Control | None = None,
    discord: discords.Control | None = None,
    model: str = "",
    sees: bool = False,
    quiet: float = 600,
    placeholder: float = 60,
    groups: Sequence[int] = (CLUB, FORUM),
) -> AsyncIterator[Router]:
    """The bot as `remora serve` runs it from configuration files in `folder`, once it hears what is said.

    `model` is where the chat model answers, which `sees` pictures; without it the bot is offline. In `groups`
    of Telegram, and in the server REEF, everybody may speak.
    """
    (folder / "agents").mkdir(exist_ok=True)
    models = [{"provider": "openai", "model": "m", "base_url": model, "sees": sees}] if model else []
    spec = {"name": "assistant", "language": "en", "timezone": "UTC", "models": models}
    (folder / "agents" / "assistant.yaml").write_text(json.dumps(spec))
    people = {"allow": [ADA, BOB], "admins": [ROOT]}
    entries: dict[str, list[dict[str, Any]]] = {"telegram": [], "discord": []}
    if telegram is not None:
        entries["telegram"] = [{"token": telegram.token, "base_url": telegram.url, **people, "groups": list(groups)}]
    if discord is not None:
        servers = {"servers": [REEF]}
        entries["discord"] = [{"token": discord.token, "base_url": discord.api_url, **people, **servers}]
    settings = {
        "data_dir": "data",
        "embedding": {"provider": "none"},
        "http": {"enabled": False},
        "limits": {"burst_seconds": 0, "person_messages_per_minute": 10_000, "concurrent_turns": 64},
        "channels": entries,
    }
    (folder / "config.yaml").write_text(json.dumps(settings))
    pace = WorkPace(quiet_seconds=quiet, exit_seconds=0, placeholder_seconds=placeholder)
    config = load(folder / "config.yaml", os.environ, folder, pace=pace)
    channels = bots.channels(config, now=app.now)
    async with app.running(config, channels) as router:
        receiving = [asyncio.create_task(supervise(channel, router)) for channel in channels.values()]
        try:
            if telegram is not None:
                await telegram.wait(polling=True)
            if discord is not None:
                await discord.wait(connected=True)
                await until(lambda: discord.commands(REEF))
            yield router
        finally:
            for task in receiving:
                task.cancel()
            await asyncio.gather(*receiving, return_exceptions=True)


@asynccontextmanager
async def a_telegram() -> AsyncIterator[telegrams.Control]:
    """The platform with a bot whose token the configuration takes."""
    async with telegrams.serving((BOT,)) as platform:
        yield platform


@asynccontextmanager
async def a_discord() -> AsyncIterator[discords.Control]:
    """The platform with a chat model, and the bot in a server of an id the configuration takes."""
    async with discords.serving(model_ms=0) as platform:
        with discords.reached(platform):
            await platform.add_guild("Reef", guild=REEF)
            yield platform


async def learned(platform: telegrams.Control | discords.Control, times: int) -> None:
    """Until what was said has been read for memories so many times, and that is kept."""

    async def read() -> bool:
        return bool((await platform.state())["model"]["extractions"] >= times)

    await until(read)
    await platform.wait(idle=0.3)


@stalls.apart()
def known(text: str) -> str:
    """A text with what differs from run to run, or is said in many places, by its name."""
    numbers = {found: f"m_{number}" for number, found in enumerate(dict.fromkeys(_MEMORY.findall(text)), start=1)}
    text = _MEMORY.sub(lambda match: numbers[match[0]], text)
    for pattern, name in ((_NIGHT, "(job)"), (_MOMENT, "(now)"), (_DATE, "today"), (_CODE, "(code)"), (_USED, "(n)")):
        text = pattern.sub(name, text)
    text = _SCORE.sub(r" · \1 …", text)
    for texts in CATALOGUE.values():
        for key, fixed in texts.items():
            long = len(fixed) >= _LONG and "{" not in fixed
            if long or key in _NAMED:
                text = text.replace(fixed, f"{{{key}}}")
    return text


def expected(text: str) -> str:
    """A transcript as it is written down in a test."""
    return dedent(text).strip("\n")


def telegram_transcript(state: Mapping[str, Any], chat: int, thread: int | None = None) -> str:
    """Returns the messages of a chat, or of one of its topics."""
    shown: list[str] = []
    for message in state["chats"][str(chat)]["messages"]:
        topic = message.get("message_thread_id") if message.get("is_topic_message") else None
        if message["deleted"] or topic != thread or "forum_topic_created" in message:
            continue
        answered = message.get("reply_to_message", {})
        to = "" if "forum_topic_created" in answered else answered.get("text", answered.get("caption", ""))
        files = [name for name in ("photo", "voice") if name in message]
        files += [message["document"]["file_name"]] if "document" in message else []
        keyboard = message.get("reply_markup", {}).get("inline_keyboard", ())
        shown.append(
            _line(
                message["from"]["first_name"],
                message.get("text", message.get("caption", "")),
                to=to,
                files=files,
                buttons=[[button["text"] for button in row] for row in keyboard],
            )
        )
    return known("\n".join(shown))


def discord_transcript(state: Mapping[str, Any], channel: int, user: int = ADA) -> str:
    """Returns the messages that `user` sees in a channel or thread."""
    messages = {message["id"]: message for message in state["channels"][str(channel)]["messages"]}
    shown: list[str] = []
    for message in messages.values():
        hidden = message["deleted"] or message["loading"] or message["only_for"] not in (None, user)
        if hidden or message["type"] == _STARTER:
            continue
        answered = messages.get((message.get("message_reference") or {}).get("message_id"), {})
        shown.append(
            _line(
                "Remora" if message["by_bot"] else message["author"]["global_name"],
                _said(message),
                to=_said(answered) if answered else "",
                only=message["only_for"] is not None,
                files=[one["filename"] for one in message["attachments"]],
                buttons=[[button["label"] for button in row["components"]] for row in message["components"]],
            )
        )
    return known("\n".join(shown))


def _said(message: Mapping[str, Any]) -> str:
    """The words of a message on Discord, as its app shows them."""
    return _MENTION.sub("@Remora", _ESCAPED.sub(r"\1", message["content"]))


def _line(
    who: str,
    text: str,
    *,
    to: str = "",
    only: bool = False,
    files: Sequence[str] = (),
    buttons: Sequence[Sequence[str]] = (),
) -> str:
    notes = ([f"to “{to.splitlines()[0]}”"] if to else []) + (["only you see this"] if only else [])
    head = who + (f" ({', '.join(notes)})" if notes else "") + ":"
    first, *more = text.split("\n")
    words = [" ".join(filter(None, [head, first])), *(f"    {line}" if line else "" for line in more)]
    words[-1] += f" [{', '.join(files)}]" if files else ""
    return "\n".join([*words, *("    " + " ".join(f"[{label}]" for label in row) for row in buttons)])
