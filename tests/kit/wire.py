"""A server on a raw socket that answers requests with prepared bytes, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = Callable[["Wire", asyncio.StreamWriter], Awaitable[None]]


class Wire:
    """A server on loopback that reads each request and lets `answer` write what it wants."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.connections = 0
        self.base_url = ""
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0])
                self.heads.append(head)
                self.requests.append(json.loads(await reader.readexactly(length)))
                await self._answer(self, writer)
                await writer.drain()
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def wire(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    served = Wire(answer)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(served.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    served.base_url = f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield served
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def replies(*bodies: bytes | str | dict[str, Any], status: str = "200 OK", headers: str = "") -> Answer:
    """Answer the n-th request with the n-th body, then with the last."""

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        body = bodies[min(len(served.requests), len(bodies)) - 1]
        text = json.dumps(body) if isinstance(body, dict) else body
        raw = text.encode() if isinstance(text, str) else text
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(raw)}\r\n{headers}\r\n".encode() + raw)

    return answer


def refuses_once(refusal: dict[str, Any], then: bytes, status: str = "400 Bad Request") -> Answer:
    refuse, accept = replies(refusal, status=status), replies(then)

    async def answer(served: Wire, writer: asyncio.StreamWriter) -> None:
        await (refuse if len(served.requests) == 1 else accept)(served, writer)

    return answer
