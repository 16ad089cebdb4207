"""The Telegram channel over the tests' own Bot API server, and a host that keeps what it is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from channels.base import CommandSpec, Inbound, Outbound, Place
from channels.supervision import Pace
from channels.telegram import TelegramChannel, Wire
from tests.kit.hosts import KeepingHost
from tests.kit.patience import SECONDS, leap, settle
from tests.platforms.telegram import Control

T = TypeVar("T")
ADA = 7
GROUP = -1001234567890
BOT = "@remora_test_bot"


@dataclass
class Host(KeepingHost):
    """Keeps every message, also those it refuses."""

    commands: Sequence[CommandSpec] = (CommandSpec(name="help", help="what I can do"),)
    moved: list[tuple[str, str, str]] = field(default_factory=list)

    async def on_inbound(self, inbound: Inbound) -> None:
        self.said.append(inbound)
        self.told.set()
        await self.let_in()

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        self.moved.append((channel, chat, new_chat))
        self.told.set()

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        raise AssertionError("Telegram does not tell of deleted messages")


class Sleep:
    """Waits that are noted and over at once."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


def milliseconds() -> int:
    return int(time.time() * 1000)


def bot(
    telegram: Control,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    poll_seconds: float = 2,
    request_seconds: float = SECONDS,
    **options: Any,
) -> TelegramChannel:
    given: dict[str, Any] = {
        "id": "telegram",
        "wire": Wire(telegram.token, options.pop("base_url", telegram.url), options.pop("proxy", None)),
        "now": milliseconds,
        "pace": Pace(request_seconds=request_seconds, poll_seconds=poll_seconds, sleep=sleep, random=lambda: 0.0),
    }
    return TelegramChannel(**(given | options))


@asynccontextmanager
async def running(channel: TelegramChannel, host: Host) -> AsyncIterator[Host]:
    """The channel receives while the block runs; its end is a shutdown."""
    task = asyncio.create_task(channel.run(host))
    try:
        yield host
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def given_up(telegram: Control, method: str, work: Coroutine[Any, Any, T]) -> T:
    """Returns what `work` gives, once the time has passed in which it waits for the answer to a request."""
    count = len(await telegram.requests(method))
    task = asyncio.create_task(work)
    await telegram.wait(method=method, count=count + 1)
    await settle()
    leap(SECONDS)
    return await task


def place(chat: int = ADA, thread: int | None = None) -> Place:
    return Place(channel="telegram", chat=str(chat), thread=None if thread is None else str(thread))


def row(text: str, where: Place | None = None, **fields: Any) -> Outbound:
    return Outbound(id=1, place=where or place(), text=text, **fields)


async def shown(telegram: Control, chat: int = ADA) -> dict[str, Any]:
    """The last message of a chat, as clients show it."""
    message: dict[str, Any] = (await telegram.state())["chats"][str(chat)]["messages"][-1]
    return message


async def known(telegram: Control) -> None:
    """Ada has written to the bot, so it may write to her."""
    await telegram.say("hello", user=ADA)
