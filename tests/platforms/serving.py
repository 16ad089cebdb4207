"""A platform on a port of this machine, in this process and event loop, for the time of a block."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from aiohttp import web

from tests.platforms.breaking import Effect, Timing
from tests.platforms.client import PlatformControl
from tests.platforms.control import Wrong

Act: TypeAlias = Callable[[Any, str, str, dict[str, Any]], Awaitable[dict[str, Any]]]


class Served(Protocol):
    """A platform; `open` tells it its address."""

    def application(self) -> web.Application: ...

    def open(self, url: str) -> None: ...

    async def aclose(self) -> None: ...


C = TypeVar("C", bound=PlatformControl)


@asynccontextmanager
async def listening(
    make: Callable[[Timing], Served],
    *,
    showing: Collection[str],
    port: int = 0,
    latency_ms: float = 0,
    effect: Effect = "arrival",
    seed: int = 1,
) -> AsyncIterator[str]:
    """The platform's address while the block runs."""
    # Reproducible fates are wanted, not secrets.
    platform = make(Timing(latency=latency_ms / 1000, effect=effect, showing=showing, chance=random.Random(seed)))
    runner = web.AppRunner(platform.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        platform.open(url)
        yield url
    finally:
        await platform.aclose()
        await runner.cleanup()


@asynccontextmanager
async def controlled(kind: type[C], address: AbstractAsyncContextManager[str], token: str) -> AsyncIterator[C]:
    """The platform at an address, controlled as one of its bots."""
    async with address as url:
        platform = kind(url, token)
        try:
            yield platform
        finally:
            await platform.aclose()


async def told(request: web.Request, platform: Any, act: Act) -> web.Response:
    """Does an action of a test for the bot that it names, or for the first one."""
    fields = await request.json()
    token = fields.pop("token", next(iter(platform.accounts)))
    try:
        return web.json_response(await act(platform, token, request.match_info["action"], fields))
    except Wrong as error:
        return web.json_response({"error": str(error)}, status=400)
