"""The channels while they receive: each is supervised on its own, and can be put in or taken out.

Invariant: a channel whose connection is the same stays connected, whatever else changes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final

from channels.base import Channel, Host
from channels.supervision import supervise
from gateway.config.settings import BotSettings
from gateway.ops.background import cancelled
from memory.loops import Loops

#: The settings of a bot that say who may speak: they concern the policy, not the connection.
_POLICY: Final = {"allow", "admins", "groups", "servers", "group_members", "observe"}


class Receiving:
    """Runs `channels`, which others may be looking at: only this object changes them."""

    def __init__(
        self,
        channels: dict[str, Channel],
        host: Host,
        *,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
        loops: Loops,
    ) -> None:
        """`loops` see to it that one process receives for a bot that allows one receiver."""
        self._channels = channels
        self._host = host
        self._sleep = sleep
        self._monotonic = monotonic
        self._loops = loops
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._changing = False

    async def run(self) -> None:
        """Runs the channels until all have ended. Raises an error that a channel must not raise."""
        try:
            for channel in self._channels.values():
                self._begin(channel)
            while self._tasks or self._changing:
                self._changed.clear()
                changed = asyncio.ensure_future(self._changed.wait())
                waits: list[asyncio.Future[Any]] = [*self._tasks.values(), changed]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                for name in [name for name, task in self._tasks.items() if task.done()]:
                    self._tasks.pop(name).result()
        finally:
            await cancelled(self._tasks.values())

    async def renew(self, running: Sequence[BotSettings], bots: Sequence[BotSettings], made: Sequence[Channel]) -> None:
        """Takes out the bots that are gone and those whose connection changed, and puts in the channels `made`."""
        before, after = {bot.id: _connection(bot) for bot in running}, {bot.id: _connection(bot) for bot in bots}
        self._changing = True
        try:
            for name in [name for name, connection in before.items() if after.get(name) != connection]:
                task = self._tasks.pop(name, None)
                await cancelled([task] if task is not None else [])
                self._channels.pop(name, None)
            for channel in made:
                self._channels[channel.id] = channel
                self._begin(channel)
        finally:
            self._changing = False
            self._changed.set()

    @staticmethod
    def changed(running: Sequence[BotSettings], bots: Sequence[BotSettings]) -> list[BotSettings]:
        """Returns the bots that are new or connected in another way."""
        before = {bot.id: _connection(bot) for bot in running}
        return [bot for bot in bots if before.get(bot.id) != _connection(bot)]

    def seconds(self, name: str) -> float | None:
        """Returns the seconds since a channel was begun; None while another process receives for its bot."""
        began = self._began.get(name)
        return None if began is None else self._monotonic() - began

    def _begin(self, channel: Channel) -> None:
        self._began.pop(channel.id, None)
        self._tasks[channel.id] = asyncio.create_task(self._receive(channel))

    async def _receive(self, channel: Channel) -> None:
        async with self._loops.by_one(f"bot {channel.id}") if channel.receives_alone else nullcontext():
            self._began[channel.id] = self._monotonic()
            await supervise(channel, self._host, sleep=self._sleep, random=random.random)


def _connection(bot: BotSettings) -> dict[str, object]:
    return {name: value for name, value in dict(bot).items() if name not in _POLICY} | {"platform": bot.platform}
