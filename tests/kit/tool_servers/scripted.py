"""A server over HTTP that answers as its test says, byte for byte, with no SDK that would refuse to.

It takes the place of a stranger's: what a test does not script is answered as a server should.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from aiohttp import web

JSON: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[web.Request, JSON], Awaitable[web.StreamResponse]]

LOOK: JSON = {
    "name": "look",
    "description": "Looks.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": True},
}


class Scripted:
    """A server with a tool `look`. `answers` are by the method of the protocol, or by `GET` and `DELETE`.

    `seen` holds what it was sent; `left` counts the answers that their reader left before the end.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.seen: list[JSON] = []
        self.left = 0
        self.headers: dict[str, str] = {}
        self.tools: list[JSON] = [LOOK]
        self.url = ""

    def methods(self, method: str) -> list[JSON]:
        return [message for message in self.seen if message.get("method") == method]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        message: JSON = await request.json() if request.method == "POST" else {"method": request.method}
        self.seen.append(message)
        answer = self.answers.get(message.get("method", ""), self._proper)
        try:
            return await answer(request, message)
        except (ConnectionError, asyncio.CancelledError):
            self.left += 1
            raise

    async def _proper(self, request: web.Request, message: JSON) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response(status=405)
        if "id" not in message or "method" not in message:
            return web.Response(status=202 if request.method == "POST" else 200)
        method = message["method"]
        if method == "initialize":
            about = {"name": "scripted", "version": "1"}
            version = message["params"].get("protocolVersion", "2025-06-18")
            result: JSON = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            return web.json_response(replied(message, result), headers=self.headers)
        if method == "tools/list":
            return web.json_response(replied(message, {"tools": self.tools}))
        if method == "tools/call":
            return web.json_response(replied(message, text("fine")))
        error = {"code": -32601, "message": "there is no such method"}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})


def text(*texts: str) -> JSON:
    return {"content": [{"type": "text", "text": one} for one in texts]}


def replied(message: JSON, result: JSON) -> JSON:
    """Returns the response to a message."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def event(message: JSON) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


async def streamed(
    request: web.Request, *pieces: bytes, pause: float = 0.0, for_ever: bool = False, kind: str = "text/event-stream"
) -> web.StreamResponse:
    """Answers with these pieces; `for_ever` repeats the last one, with a pause before each."""
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    while for_ever:
        await asyncio.sleep(pause)
        await response.write(pieces[-1])
    return response


@asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    """Runs a server on a port of its own."""
    server = Scripted()
    application = web.Application(client_max_size=100_000_000)
    application.router.add_route("*", "/mcp", server.handle)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}/mcp"
        yield server
    finally:
        await runner.cleanup()
