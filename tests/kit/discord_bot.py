"""The Discord channel over the tests' own server, and a host that keeps what it is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from channels.base import CommandSpec, Form, Inbound, Option, Outbound, Place, Suggestion
from channels.discord import DiscordChannel
from channels.supervision import Pace
from tests.kit.hosts import KeepingHost
from tests.kit.patience import SECONDS, until
from tests.platforms.discord import GENERAL, GUILD, Control

COMMANDS = (
    CommandSpec(name="help", help="what I can do", translated={"zh": "我会做什么"}, shared=True),
    CommandSpec(
        name="memory",
        help="what I remember",
        options=(
            Option(name="what", help="list or show", choices=("list", "show")),
            Option(name="which", help="an id", suggests=True),
        ),
        forms=True,
    ),
    CommandSpec(name="allow", help="let somebody in", admin=True, options=(Option(name="who", help="an id"),)),
    CommandSpec(name="export", help="all there is", private=True),
)


@dataclass
class Host(KeepingHost):
    """Keeps the messages it takes."""

    commands: Sequence[CommandSpec] = COMMANDS
    deleted: list[tuple[Place, tuple[str, ...]]] = field(default_factory=list)
    suggested: list[tuple[str, str, str]] = field(default_factory=list)
    asks: Form | None = None

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        self.suggested.append((inbound.text, option, typed))
        return [Suggestion(value="m_7k2pq4", label="likes tea"), Suggestion(value="x" * 101, label="too long")]

    async def form(self, inbound: Inbound) -> Form | None:
        return self.asks

    async def on_inbound(self, inbound: Inbound) -> None:
        await self.let_in()
        self.said.append(inbound)
        self.told.set()

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        raise AssertionError("Discord's chats don't move")

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        self.deleted.append((place, tuple(message_ids)))
        self.told.set()


def milliseconds() -> int:
    return int(time.time() * 1000)


def bot(
    discord: Control, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, **options: Any
) -> DiscordChannel:
    given: dict[str, Any] = {
        "id": "discord",
        "token": discord.token,
        "base_url": discord.api_url,
        "now": milliseconds,
        "pace": Pace(request_seconds=SECONDS, sleep=sleep, random=lambda: 0.0),
    }
    return DiscordChannel(**(given | options))


@asynccontextmanager
async def running(channel: DiscordChannel, host: Host) -> AsyncIterator[Host]:
    """The channel receives while the block runs; its end is a shutdown."""
    task = asyncio.create_task(channel.run(host))
    try:
        # A run that ends has failed, and says why below.
        await until(lambda: task.done() or (not channel.health().trouble and channel.health().contact is not None))
        if task.done():
            await task
        yield host
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def place(chat: int, thread: int | None = None) -> Place:
    return Place(channel="discord", chat=str(chat), thread=None if thread is None else str(thread))


def row(text: str, where: Place, **fields: Any) -> Outbound:
    given: dict[str, Any] = {"id": 1, "made_at": milliseconds()}
    return Outbound(place=where, text=text, **(given | fields))


async def registered(discord: Control) -> None:
    """The commands of the guild are there, which come last."""
    await until(lambda: discord.commands(GUILD))


@asynccontextmanager
async def command(
    discord: Control, name: str = "memory", *, user: int = 1001, **options: Any
) -> AsyncIterator[tuple[DiscordChannel, Inbound]]:
    """A running channel (with these options) and a command that somebody has used in the guild, `/memory` with its option."""
    channel = bot(discord, **options)
    async with running(channel, Host()) as host:
        await registered(discord)
        await discord.slash(name, {"what": "list"} if name == "memory" else None, user=user, channel=GENERAL)
        [inbound] = await host.hears()
        yield channel, inbound
