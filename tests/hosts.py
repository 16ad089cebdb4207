"""Hosts for channels under test: one that takes everything, to be narrowed by those who look at something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from channels.base import CommandSpec, Form, Inbound, Place, Suggestion


class QuietHost:
    """Implements `channels.base.Host`: takes everything, answers nothing, and remembers what channels keep."""

    commands: Sequence[CommandSpec] = ()

    def __init__(self) -> None:
        self.memory: dict[str, str] = {}

    def admins(self, channel: str) -> Sequence[str]:
        return ()

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        return ()

    async def form(self, inbound: Inbound) -> Form | None:
        return None

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        return {name: value for name, value in self.memory.items() if name.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                self.memory.pop(name, None)
            else:
                self.memory[name] = value

    async def on_inbound(self, inbound: Inbound) -> None: ...

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None: ...

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None: ...

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None: ...

    async def settled(self, place: Place) -> None: ...
