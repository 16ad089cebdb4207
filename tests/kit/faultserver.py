"""A model server on this machine that fails in every way known from practice, each request as it is told.

Invariants: it speaks HTTP by hand, so that it can break any rule of it; `stop` and `start` keep the port; what it
has started ends with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.kit.patience import settle

#: The server's answer when it is well.
WELL = "All is well."
#: The part of an answer that it has sent when it fails in the middle.
BEGUN = "The capital of"

_OK = b"HTTP/1.1 200 OK\r\n"
_STREAM = _OK + b"content-type: text/event-stream\r\nconnection: close\r\n\r\n"
_MEGABYTE = 1 << 20

_Mode: TypeAlias = Callable[["FaultServer", asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class FaultServer:
    """`mode` is how each further request is answered.

    `bodies` go before it: each is sent once, as a stream's body, to the first request whose last message holds its
    key. `requests` has the JSON of every request read, `written` counts the bytes that were sent.
    """

    port: int
    tls: ssl.SSLContext | None = None
    mode: str = "well"
    bodies: dict[str, bytes] = field(default_factory=dict)
    requests: list[Any] = field(default_factory=list)
    written: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def base_url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://localhost:{self.port}/v1"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self.tls)

    async def stop(self) -> None:
        """Close the port, so that connections are refused, and every connection that is open."""
        if self._server is None:
            return
        self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
        self.written += len(data)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.mode == "mute":
                await asyncio.Event().wait()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            self.requests.append(request)
            said = str(request["messages"][-1]["content"])
            key = next((key for key in self.bodies if key in said), None)
            if key is not None:
                await self.send(writer, _STREAM + self.bodies.pop(key))
            else:
                await MODES[self.mode](self, writer)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass  # the client has had enough, or did not speak HTTP at all
        finally:
            writer.close()


@asynccontextmanager
async def serving(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultServer]:
    """A server that is up and well, on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = FaultServer(port=port, tls=tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def sse(*chunks: object) -> bytes:
    """Chunks as the body of a stream; texts and bytes stand as they are, the rest as JSON."""
    parts = (c if isinstance(c, bytes) else (c if isinstance(c, str) else json.dumps(c)).encode() for c in chunks)
    return b"".join(b"data: " + part + b"\n\n" for part in parts)


def delta(finish: str | None = None, **fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def says(text: str) -> bytes:
    return sse(delta(content=text), delta("stop"), "[DONE]")


async def _well(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + says(WELL))


async def _hang(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _hang_midstream(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + sse(delta(content=BEGUN)))
    await asyncio.Event().wait()


async def _drip(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM)
    await _byte_by_byte(server, writer, says(WELL))


async def _drip_head(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await _byte_by_byte(server, writer, _STREAM + says(WELL))


async def _drip_error(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, b"HTTP/1.1 500 Oops\r\n\r\n")
    await _byte_by_byte(server, writer, b"out of order " * 100)


async def _byte_by_byte(server: FaultServer, writer: asyncio.StreamWriter, data: bytes) -> None:
    for byte in data:
        await server.send(writer, bytes([byte]))
        await asyncio.sleep(1)


async def _pings(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM)
    while True:
        await server.send(writer, b": ping\n\n")
        await asyncio.sleep(0.05)


async def _reset(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    # No time to linger: the kernel answers with RST instead of an orderly end.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _reset_midstream(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + sse(delta(content=BEGUN)))
    await settle()  # or the reset would overtake what was sent
    await _reset(server, writer)


async def _close(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _cut(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _OK + b'content-length: 5000\r\n\r\n{"choices": [{"message": {"content": "All')


async def _cut_midstream(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + sse(delta(content=BEGUN)))


async def _cut_line(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + b'data: {"choices": [{"delta": {"content": "All')


def _refuses(status: str, headers: str = "", body: str = '{"error": {"message": "no"}}') -> _Mode:
    async def mode(server: FaultServer, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n"
        await server.send(writer, head.encode() + body.encode())

    return mode


async def _garbage(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _OK + b"connection: close\r\n\r\n" + os.urandom(4096))


async def _garbage_line(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + sse("{oops"))


async def _failed(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + sse(delta("error"), "[DONE]"))


async def _failed_midstream(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + sse(delta(content=BEGUN)) + b"event: error\ndata: out of memory\n\n")


async def _no_http(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, b"SSH-2.0-OpenSSH_9.6\r\n" * 3)


async def _empty(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _OK + b"content-length: 0\r\n\r\n")


async def _empty_answer(server: FaultServer, writer: asyncio.StreamWriter) -> None:
    await server.send(writer, _STREAM + says(""))


def _huge(head: bytes, piece: bytes) -> _Mode:
    async def mode(server: FaultServer, writer: asyncio.StreamWriter) -> None:
        await server.send(writer, head)
        block = piece * (_MEGABYTE // len(piece))
        for _ in range(100):
            with suppress(ConnectionError):
                await server.send(writer, block)

    return mode


#: How a request may be answered, by name. "mute" is not among them: it does not even read the request.
MODES: Mapping[str, _Mode] = {
    "well": _well, "hang": _hang, "hang_midstream": _hang_midstream, "drip": _drip, "drip_head": _drip_head,
    "drip_error": _drip_error, "pings": _pings, "reset": _reset, "reset_midstream": _reset_midstream, "close": _close,
    "cut": _cut, "cut_midstream": _cut_midstream, "cut_line": _cut_line, "busy": _refuses("429 Too Many Requests"),
    "busy_soon": _refuses("429 Too Many Requests", "retry-after: 1\r\n"),
    "busy_long": _refuses("429 Too Many Requests", "retry-after: 3600\r\n"),
    "broken": _refuses("500 Internal Server Error"),
    "broken_gateway": _refuses("502 Bad Gateway", body="<html><title>502 Bad Gateway</title></html>"),
    "garbage": _garbage, "garbage_line": _garbage_line, "failed": _failed, "failed_midstream": _failed_midstream,
    "no_http": _no_http, "empty": _empty, "empty_answer": _empty_answer,
    "huge": _huge(_OK + b"connection: close\r\n\r\n" + b'{"choices": "', b"x"),
    "huge_stream": _huge(_STREAM, sse(delta(content="x" * 1000))),
    "huge_line": _huge(_STREAM + b"data: ", b"x"),
    "huge_error": _huge(b"HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n", b"x"),
}  # fmt: skip
