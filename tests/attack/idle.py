"""Connections to the HTTP port that are held and say nothing, or next to nothing, while people talk with the bot."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.attack.frame import ADA, ADMIN, Attack, Bot, patient, scenario

#: The bytes, by a connection's number, that it has sent when it falls silent, or (True) goes on byte by byte.
_KINDS: dict[str, tuple[Callable[[int], bytes], bool]] = {
    "silent": (lambda _: b"", False),
    "half a line": (lambda _: b"GET /heal", False),
    "half a head": (lambda _: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ", False),
    "a head byte by byte": (lambda _: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", True),
    "kept alive": (lambda _: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
    "a body that never comes": (
        lambda _: b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx",
        False,
    ),
    "a body byte by byte": (
        lambda _: b"POST /telegram/telegram HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
        True,
    ),
}  # fmt: skip


@scenario("idle")
async def idle(attack: Attack) -> None:
    many, files = (200, 128) if attack.short else (1_000, 512)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4 * many), hard), hard))
    async with attack.bot(under=("prlimit", f"--nofile={files}:{files}", "--")) as bot:
        for kind in ("a head byte by byte",) if attack.short else _KINDS:
            async with _held(bot, kind, many):
                answered = await bot.ask(f"Are you there, {kind}?", user=ADA, seconds=20)
                attack.count(answered is None, f"{many} connections, {kind}: the chat is not answered")
                # The file of a log, a database or a download needs room too.
                attack.count(
                    await bot.ask("/memory export", user=ADA, seconds=20) is None,
                    f"{many} connections, {kind}: a command with files is not answered",
                )
                attack.count(
                    await _page(bot) is None, f"{many} connections, {kind}: no health page in 45 s while they are held"
                )
            await asyncio.sleep(0.5)
            attack.count(await bot.health() is None, f"{kind}: no health page after all connections were closed")
            if bot.died():
                await bot.kill()
                await bot.start()


@scenario("descriptors")
async def descriptors(attack: Attack) -> None:
    """With 256 open files at most: many connections, many uploads at once, and a bot that is well again after them."""
    many, people = (100, 6) if attack.short else (400, 24)
    crowd = range(2_000, 2_000 + people)
    async with attack.bot(under=("prlimit", "--nofile=256:256", "--"), people=(*crowd, ADMIN, ADA)) as bot:
        for kind in ("silent", "kept alive") if attack.short else ("silent", "half a head", "kept alive"):
            async with _held(bot, kind, many):
                for n in range(4 * people):
                    data = f"note {n}\n".encode() * 20_000
                    await bot.telegram.say(f"file {n}", user=crowd[n % people], document=data, filename=f"{n}.txt")
                answered = await bot.ask(f"Are you there, {kind}?", user=ADA, seconds=40)
                attack.count(answered is None, f"{kind}: the chat is not answered while files come in")
                attack.count(await _page(bot) is None, f"{kind}: no health page in 45 s")
            await bot.rest()
            for user in crowd:
                texts = await bot.texts(user)
                attack.count(not texts, f"{kind}: {user} has sent files and has no answer")
            page = await bot.health()
            attack.count(page is None or page["reasons"], f"{kind}: afterwards health says {page and page['reasons']}")
            attack.count("Traceback" in bot.printed(), f"{kind}: {bot.printed()[-300:]}")
        opened = len(list(Path(f"/proc/{bot.process.pid}/fd").iterdir())) if bot.process else 0
        attack.count(opened > 100, f"{opened} files are still open when nobody asks anything")


async def _page(bot: Bot) -> object | None:
    began, page = time.monotonic(), None
    while page is None and time.monotonic() - began < patient(45):
        page = await bot.health(seconds=patient(3))
    return page


@asynccontextmanager
async def _held(bot: Bot, kind: str, many: int) -> AsyncIterator[None]:
    said, trickles = _KINDS[kind]
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for n in range(many):
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(0.5):
                streams.append(await asyncio.open_connection("127.0.0.1", bot.port))
                streams[-1][1].write(said(n))

    async def trickle() -> None:
        while trickles:
            await asyncio.sleep(1)
            for _, writer in streams:
                if not writer.transport.is_closing():
                    writer.write(b"a")

    trickling = asyncio.create_task(trickle())
    try:
        await asyncio.sleep(1)
        yield
    finally:
        trickling.cancel()
        for _, writer in streams:
            writer.transport.abort()
