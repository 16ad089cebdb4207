"""Servers of tools as an agent uses them: running, with what they have pinned kept in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from agents.spec import ServerSpec
from agents.tools import ForeignTool
from agents.toolservers.definitions import Definition
from agents.toolservers.server import ToolServer
from memory.text.guard import clean
from tests.kit.patience import SECONDS


class Monotonic:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class Kept:
    """Keeps pinned definitions as the store would."""

    def __init__(self) -> None:
        self.pins: Mapping[str, Definition] = {}

    async def keep(self, pins: Mapping[str, Definition]) -> None:
        self.pins = pins


@asynccontextmanager
async def running(
    spec: ServerSpec, kept: Kept | None = None, *, seconds: float = SECONDS, clock: Callable[[], float] | None = None
) -> AsyncIterator[ToolServer]:
    kept = kept or Kept()
    server = ToolServer(
        spec, call_seconds=seconds, pinned=kept.pins, keep=kept.keep, clean=clean, monotonic=clock or Monotonic()
    )
    try:
        yield server
    finally:
        await server.close()


async def tool(server: ToolServer, name: str) -> ForeignTool:
    return next(one for one in await server.tools() if one.name.endswith(f"__{name}"))
