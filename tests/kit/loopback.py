"""A small HTTP server on this machine, for the other side of a client: gets JSON, answers what a function says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a request; a `body` that is no string is sent as JSON."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def serving(answer: Callable[[Asked], Awaitable[Answer]]) -> AsyncIterator[str]:
    """The server's address while the block runs."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"null")
            said = await answer(Asked(path=first.split()[1], headers=headers, body=body))
            content = (said.body if isinstance(said.body, str) else json.dumps(said.body)).encode()
            sent = {"content-length": str(len(content)), "connection": "close", **said.headers}
            top = f"HTTP/1.1 {said.status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items())
            writer.write(top.encode() + b"\r\n" + content)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has had enough
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
