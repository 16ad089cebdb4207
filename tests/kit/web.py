"""A piece of the web on this machine: a server of pages, and the way to it that names and public addresses lead."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpcore

#: A public address. Nothing is sent there: `Net` leads to the server on this machine.
PUBLIC = "93.184.216.34"

#: Ways to write this machine, its network and its provider's servers.
FORBIDDEN = (
    "http://127.0.0.1/", "http://127.0.0.1./", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.1/", "http://0x7F.0x0.0x0.0x1/", "http://0177.0.0.1/", "http://017700000001/", "http://0/", "http://0.0.0.0/",
    "http://127。0。0。1/", "http://１２７.0.0.1/", "http://①②⑦.0.0.1/", "http://127.0.0.1%00/", "http://%31%32%37.0.0.1/",
    "http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://a.localhost/", "http://localhost.localdomain/",
    "http://printer/", "http://printer.local/", "http://wiki.lan/", "http://db.internal/", "http://nas.home.arpa/", "http://x.test/",
    "http://metadata.google.internal/", "http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/", "http://0xa9fea9fe/",
    "http://2852039166/", "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/", "http://[fd00:ec2::254]/",
    "http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://100.64.0.1/",
    "http://198.18.0.1/", "http://224.0.0.1/", "http://255.255.255.255/", "http://240.0.0.1/", "http://192.0.2.1/",
    "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/", "http://[2002:a00:1::1]/", "http://[2001:0:1::1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/", "http://[fc00::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/",
    "http://[100::1]/",
    "http://example.org@127.0.0.1/", "http://example.org:80@127.0.0.1/", "http://127.0.0.1#@example.org/", "http://user@example.org/",
    "http://example.org\\@127.0.0.1/", "http://127.0.0.1\\@example.org/", "http://example.org /", "http://exam\tple.org/",
    "http://example.org:22/", "http://example.org:8080/", "http://example.org:0/", "http://example.org:99999/",
    "file:///etc/passwd", "ftp://example.org/", "gopher://127.0.0.1:6379/_x", "data:text/html,x", "javascript:alert(1)",
    "unix:///var/run/docker.sock", "http://", "http:///x", "//example.org/", "example.org", "", "http://example.org/" + "a" * 2_000,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An answer of the server, with `drip` seconds between its bytes."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: float = 0.0


@dataclass(slots=True, kw_only=True)
class Site:
    """Pages by path, and the head of each request that came."""

    port: int = 0
    pages: dict[str, Served] = field(default_factory=dict)
    heads: list[str] = field(default_factory=list)

    def page(self, path: str, words: str, **headers: str) -> None:
        head = {"Content-Type": "text/html; charset=utf-8", **headers}
        self.pages[path] = Served(body=words.encode(), headers=head)

    def moved(self, path: str, to: str) -> None:
        self.pages[path] = Served(status=302, headers={"Location": to})


@asynccontextmanager
async def site(tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    made = Site()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            made.heads.append(head)
            said = made.pages.get(head.split()[1].partition("?")[0], Served(status=404))
            top = f"HTTP/1.1 {said.status} Said\r\nConnection: close\r\n"
            top += "".join(f"{name}: {value}\r\n" for name, value in said.headers.items())
            writer.write(top.encode() + b"\r\n")
            for piece in [said.body[n : n + 1] for n in range(len(said.body))] if said.drip else [said.body]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(said.drip)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass  # the client has had enough
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


class Net(httpcore.AsyncNetworkBackend):
    """Leads every connection to one port of this machine, and notes where it was to go."""

    def __init__(self, port: int) -> None:
        self.reached: list[str] = []
        self._port = port
        self._real = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.reached.append(host)
        return await self._real.connect_tcp("127.0.0.1", self._port, timeout)


class Names:
    """A name server: the addresses of each name, those of the n-th question if there are several."""

    def __init__(self, **known: Sequence[Sequence[str]]) -> None:
        self.known = {name.replace("_", "."): list(answers) for name, answers in known.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.known.get(host, [[PUBLIC]])
        return answers.pop(0) if len(answers) > 1 else answers[0]
