"""Sends what anybody can to the port, byte by byte, and delivers what somebody can who pretends to be Telegram."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bench.hostile.inputs import Deed, enter_all, hostile
from bench.hostile.page import MARKDOWN
from bench.hostile.people import passwords
from bench.hostile.world import HOOK_SECRET, World

#: Seconds that connections are held.
HELD: Final = 5.0
_HEAD: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


async def _held(world: World, count: int, first: bytes, then: bytes = b"", *, reads: bool = True) -> None:
    """Opens so many connections, says something on each, and holds them; `then` follows ten times a second."""
    lines: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for _ in range(count):
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                reader, writer = await world.open()
                if not reads:
                    reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(first)
                lines.append((reader, writer))
    for _ in range(int(HELD * 10)):
        await asyncio.sleep(0.1)
        for _, writer in lines:
            if then and not writer.transport.is_closing():
                writer.write(then)
    for _, writer in lines:
        writer.transport.abort()


def _holds(count: int, first: bytes, then: bytes = b"") -> Deed:
    return lambda world: _held(world, count, first, then)


enter_all(
    "raw connections",
    {
        "500 that say nothing": _holds(500, b""),
        "500 heads, byte by byte": _holds(500, _HEAD, b"a"),
        "200 headers without an end": _holds(200, _HEAD + b"X-A: ", b"b" * 2_000),
        "100 of 100,000 headers": _holds(100, _HEAD + b"A: b\r\n" * 100_000),
        "200 bodies of which nothing comes": _holds(200, b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n"),
        "100 bodies in chunks of a byte": _holds(
            100, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 500
        ),
        "a chunk that says it has 2^70 bytes": _holds(
            20, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 18 + b"\r\n", b"x" * 9_000
        ),
        "a chunk with an extension without an end": _holds(
            20, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;a=", b"x" * 9_000
        ),
        "1,000 requests at once on each of 20": _holds(20, (_HEAD + b"\r\n") * 1_000),
        "bodies that promise to come": _holds(
            50, b"POST /in HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999\r\n\r\n"
        ),
    },
    short=("500 heads, byte by byte",),
)  # fmt: skip

_ODD: Final = (
    b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 200, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET " + b"/" * 60_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"\0" * 9_000, b"\r\n" * 9_000,
    b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", b"x" * 60_000,
    b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\nx",
    b"GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a.b:443 HTTP/1.1\r\n\r\n",
    b"GET /%ff%fe%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: deflate\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\nabc",
)  # fmt: skip


async def _answer(world: World, request: bytes) -> None:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(3):
            reader, writer = await world.open()
            try:
                writer.write(request)
                status = (await reader.readline()).split()
                if len(status) > 1 and status[1].isdigit():
                    world.statuses.append(int(status[1]))
                    if int(status[1]) >= 500:
                        world.notes.append(f"{int(status[1])} to {request[:60]!r}")
            finally:
                writer.transport.abort()


@hostile("raw connections", "heads that are none")
async def _odd_heads(world: World) -> None:
    await asyncio.gather(*(_answer(world, request) for request in _ODD))


@hostile("raw connections", "2,000 opened and reset")
async def _resets(world: World) -> None:
    for n in range(2_000):
        with suppress(OSError):
            _, writer = await world.open()
            writer.write(_HEAD[: n % len(_HEAD)])
            writer.transport.abort()


@hostile("raw connections", "64 answers of a large page that nobody reads", short=True)
async def _unread(world: World) -> None:
    async with world.visitor() as visitor:
        for n in range(4):
            await visitor.post("/chat/main/say", text=MARKDOWN["lists within lists"] + passwords(200, n * 200))
        await asyncio.sleep(2)
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.client.cookies.items())
    request = f"GET /chat/main HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n".encode()
    await _held(world, 64, request, reads=False)


# Webhooks -------------------------------------------------------------------------------------------------------


async def _delivered(world: World, bodies: Sequence[bytes], *, secret: str = HOOK_SECRET) -> None:
    headers = {"X-Telegram-Bot-Api-Secret-Token": secret, "Content-Type": "application/json"}
    async with world.client() as client:
        await asyncio.gather(
            *(client.post("/telegram/hooked", content=body, headers=headers) for body in bodies), return_exceptions=True
        )


def _update(user: int, text: object) -> bytes:
    person = {"id": user, "is_bot": False, "first_name": "x"}
    chat = {"id": user, "type": "private", "first_name": "x"}
    message = {"message_id": 1, "date": 1_800_000_000, "chat": chat, "from": person, "text": text}
    return json.dumps({"update_id": user, "message": message}).encode()


enter_all(
    "webhook",
    {
        "64 bodies of 1 MB under a wrong secret": lambda world: _delivered(
            world, [b"x" * 1_000_000] * 64, secret="wrong"
        ),
        "64 bodies of 9.9 MB under the right secret": lambda world: _delivered(world, [b"x" * 9_900_000] * 64),
        "JSON of 100,000 levels": lambda world: _delivered(world, [b"[" * 100_000, b'{"a":' * 100_000]),
        "updates of the wrong types": lambda world: _delivered(
            world, [b"5", b"[]", b"null", b'{"update_id": "x"}', _update(5, ["x"]), _update(10**30, "x"), b"\xff"]
        ),
        "a message of 900,000 characters of passwords": lambda world: _delivered(
            world, [_update(world.person(), passwords(60_000)[:900_000])]
        ),
    },
)
