"""A proxy on a port of this machine, HTTP CONNECT or SOCKS5, that leads every name and address to this machine.

async with proxy("socks5", user="ada", password="s3cret") as way:
    ...                                       # way.url; way.asked: the hosts and ports that were asked for
"""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

_REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"


@dataclass(slots=True, kw_only=True)
class Way:
    """The proxy's address, and where it was asked to lead, as its clients wrote it."""

    url: str = ""
    asked: list[str] = field(default_factory=list)


@asynccontextmanager
async def proxy(
    kind: Literal["http", "socks5", "socks5h"], *, user: str = "", password: str = "", port: int | None = None
) -> AsyncIterator[Way]:
    """With `port` everything is led to that port of this machine, else to the port that was asked for."""
    way = Way()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            greet = _http if kind == "http" else _socks
            where = await greet(reader, writer, user, password)
            if where is None:
                return
            host, wanted, head = where
            way.asked.append(f"{host}:{wanted}")
            there = await asyncio.open_connection("127.0.0.1", port or wanted)
            if head:
                there[1].write(head)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if kind == "http" else b"\5\0\0\1\0\0\0\0\0\0")
            await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))
        except (asyncio.IncompleteReadError, OSError):
            pass  # somebody has had enough
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    name = f"{user}:{password}@" if user else ""
    way.url = f"{kind}://{name}127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield way
    finally:
        server.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _http(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str, password: str
) -> tuple[str, int, bytes] | None:
    """CONNECT; else a request for a whole address, whose head goes on as it is."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, target, _ = head.split(" ", 2)
    word = base64.b64encode(f"{user}:{password}".encode()).decode()
    if user and f"Basic {word}" not in head:
        writer.write(_REFUSED)
        return None
    if method != "CONNECT":
        parts = urlsplit(target)
        return parts.hostname or "", parts.port or 80, head.encode()
    host, _, port = target.rpartition(":")
    return host, int(port), b""


async def _socks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str, password: str
) -> tuple[str, int, bytes] | None:
    """RFC 1928, and RFC 1929 for the password."""
    methods = await reader.readexactly((await reader.readexactly(2))[1])
    wanted = 2 if user else 0
    writer.write(bytes([5, wanted if wanted in methods else 255]))
    if wanted not in methods:
        return None
    if user:
        name = await reader.readexactly((await reader.readexactly(2))[1])
        word = await reader.readexactly((await reader.readexactly(1))[0])
        fits = (name.decode(), word.decode()) == (user, password)
        writer.write(bytes([1, 0 if fits else 1]))
        if not fits:
            return None
    kind = (await reader.readexactly(4))[3]
    if kind == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    else:
        family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
        host = socket.inet_ntop(family, await reader.readexactly(size))
    return host, int.from_bytes(await reader.readexactly(2), "big"), b""
