"""When a request takes effect on any platform, and what breaks on the way of its answer."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import struct
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

from tests.platforms.faults import Fault, Faults
from tests.platforms.ledger import Entry

Effect = Literal["arrival", "mixed", "late"]

#: Seconds between two looks whether a client is still there.
_LOOK = 0.01


@dataclass(slots=True, kw_only=True)
class Timing:
    """`latency` is the round trip in seconds, `showing` are the methods that show something.

    What is shown takes effect at "arrival", "late" (at the end, and only if the client is still connected), or "mixed":
    half of them so and half so, by `chance`. Nothing tells a client which it was.
    """

    latency: float = 0
    effect: Effect = "arrival"
    showing: Collection[str]
    chance: random.Random

    def late(self, method: str) -> bool:
        if method not in self.showing or self.effect == "arrival":
            return False
        return self.effect == "late" or self.chance.random() < 0.5


async def break_off(
    request: web.Request, fault: Fault, faults: Faults[Any], *, begun: str, broken: str, killed: Callable[[int], None]
) -> web.StreamResponse | None:
    """A fault of the network or the server happens; what is answered then, or None to go on.

    `begun` are the first bytes of an answer that is cut, `broken` is JSON that ends too soon. `killed` is called right
    before the product's process is.
    """
    match fault.do:
        case "delay":
            await asyncio.sleep(fault.seconds)
        case "status":
            page = f"<html><body><h1>{fault.status} {fault.description}</h1></body></html>"
            text = page if fault.body is None else fault.body
            return web.Response(status=fault.status, text=text, content_type="text/html")
        case "garbage" | "empty":
            text = "" if fault.do == "empty" else broken if fault.body is None else fault.body
            # Without a charset: discord.py reads JSON only under exactly this content type.
            return web.Response(body=text.encode(), headers={"content-type": "application/json"})
        case "cut":
            response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "200"})
            await response.prepare(request)
            await response.write(begun.encode())
            hang_up(request, reset=False)
            return response
        case "hang":
            healed = faults.healed
            while faults.healed == healed and not gone(request):
                await asyncio.sleep(_LOOK)
        case "reset" | "close":
            hang_up(request, reset=fault.do == "reset")
            return web.Response()
        case "kill":
            await asyncio.sleep(fault.seconds)
            assert fault.pid is not None
            killed(fault.pid)
            os.kill(fault.pid, signal.SIGKILL)
            await _until_gone(request)
            return web.Response()
    return None


async def exchange(
    request: web.Request,
    entry: Entry,
    fault: Fault | None,
    perform: Callable[[], Awaitable[web.Response]],
    strike: Callable[[Fault], Awaitable[web.StreamResponse | None]],
    *,
    latency: float,
    late: bool,
) -> web.StreamResponse:
    """One request and its answer, with the effect and the fault at their moments."""
    if fault is not None and fault.at == "before effect" and (broken := await strike(fault)) is not None:
        return broken
    if late:
        await asyncio.sleep(latency)
        if gone(request):
            return web.Response()
    response = await perform()
    if fault is not None and fault.at == "after effect" and (broken := await strike(fault)) is not None:
        return broken
    if not late:
        await asyncio.sleep(latency)
    if gone(request):
        return web.Response()
    entry.answered = True
    if fault is not None and fault.at == "after answer":
        # The bytes are on their way before anything breaks.
        await response.prepare(request)
        await response.write_eof()
        await strike(fault)
    return response


def gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def hang_up(request: web.Request, *, reset: bool) -> None:
    transport = request.transport
    if transport is None:
        return
    if reset:
        # Lingering for no time makes the kernel send RST where it would say goodbye.
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


async def _until_gone(request: web.Request) -> None:
    """A killed process's sockets close a moment after it."""
    while not gone(request):
        await asyncio.sleep(_LOOK)
    # The others of its connections close in the same moment.
    await asyncio.sleep(_LOOK)
