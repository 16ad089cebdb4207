"""Hosts for channels under test: one that takes everything, to be narrowed by those who look, and one that looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from channels.base import CommandSpec, Host, Inbound, Reaction
from tests.kit.patience import limit


class QuietHost(Host):
    """Takes everything, answers nothing, and remembers what channels keep."""

    commands: Sequence[CommandSpec] = ()

    def __init__(self) -> None:
        self.memory: dict[str, str] = {}

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        return {name: value for name, value in self.memory.items() if name.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                self.memory.pop(name, None)
            else:
                self.memory[name] = value


@dataclass
class KeepingHost(QuietHost):
    """Keeps what it is told. `refusals` are raised first, one for each message; `gate` holds it up."""

    commands: Sequence[CommandSpec] = ()
    memory: dict[str, str] = field(default_factory=dict)
    trusted: Sequence[str] = ()
    said: list[Inbound] = field(default_factory=list)
    presence: list[tuple[str, bool]] = field(default_factory=list)
    reacted: list[tuple[Inbound, Reaction, bool]] = field(default_factory=list)
    previewed: list[Inbound] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)
    gate: asyncio.Event | None = None
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def admins(self, channel: str) -> Sequence[str]:
        return self.trusted

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        self.presence.append((chat, present))
        self.told.set()

    async def on_reacted(self, inbound: Inbound, reaction: Reaction, *, kept: bool) -> None:
        self.reacted.append((inbound, reaction, kept))
        self.told.set()

    async def on_previews(self, inbound: Inbound) -> None:
        self.previewed.append(inbound)
        self.told.set()

    async def let_in(self) -> None:
        """Wait at the gate; raises the next refusal."""
        if self.gate is not None:
            await self.gate.wait()
        if self.refusals:
            raise self.refusals.pop(0)

    async def until(self, reached: Callable[[Self], bool]) -> None:
        async with limit():
            while not reached(self):
                self.told.clear()
                await self.told.wait()

    async def hears(self, count: int = 1) -> list[Inbound]:
        await self.until(lambda host: len(host.said) >= count)
        return self.said
