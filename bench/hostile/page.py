"""Sends what a visitor of the page can, signed in or not."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import httpx

from bench.hostile.inputs import Deed, enter_all, hostile
from bench.hostile.people import FILES, TEXTS, passwords
from bench.hostile.world import OWN, Visitor, World

#: Markdown whose rendering costs more than its length.
MARKDOWN: Final = {
    "a table of 500 columns": "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n" + ("|" + "b|" * 500 + "\n") * 20,
    "opened pictures": "![a](" * 5_000,
    "opened links": "[a](<" * 6_000,
    "brackets": "[" * 28_000,
    "quotes within quotes": ">" * 28_000 + "a",
    "lists within lists": "".join(" " * n + "- a\n" for n in range(220)),
    "stars": "*a **b " * 4_000,
    "backticks of all lengths": "".join("`" * n + "a" for n in range(1, 230)),
    "references": "".join(f"[{n}]: <x>\n[{n}]\n" for n in range(2_000)),
    "tags": "<a " * 9_000,
    "autolinks": "<a@" * 9_000,
    "entities": "&#x" * 9_000,
    "passwords": passwords(1_000),
}


def _signed_in(act: Callable[[World, Visitor], Awaitable[object]]) -> Deed:
    async def deed(world: World) -> None:
        async with world.visitor() as visitor:
            await act(world, visitor)

    return deed


def _text(text: str) -> Deed:
    return _signed_in(lambda _world, visitor: visitor.say(text))


enter_all("page form", {name: _text(text) for name, text in MARKDOWN.items()}, short=("a table of 500 columns",))


@hostile("page form", "a memory of 2,000 passwords, and a name of 9,000 letters")
async def _memory(world: World) -> None:
    async with world.visitor() as visitor:
        await visitor.post("/memory", text=passwords(2_000))
        await visitor.post("/me/keys", label="x" * 9_000, scopes="read")
        await visitor.post("/agent", agent="x" * 9_000)


@hostile("page form", "two tabs while a long answer grows", short=True)
async def _tabs(world: World) -> None:
    async with world.visitor() as visitor, world.client() as other:
        other.cookies.update(visitor.client.cookies)

        async def tab() -> None:
            async with other.stream("GET", "/chat/main/events?seen=0") as stream, asyncio.timeout(8):
                async for _ in stream.aiter_raw():
                    pass

        tabs = [asyncio.create_task(tab()) for _ in range(4)]
        await visitor.say(MARKDOWN["a table of 500 columns"])
        await asyncio.gather(*tabs, return_exceptions=True)


# Files ----------------------------------------------------------------------------------------------------------


def _upload(name: str, data: bytes) -> Deed:
    return _signed_in(lambda _world, visitor: visitor.say("see", files={"file": (name, data, "text/plain")}))


enter_all(
    "page upload",
    {
        "a file of 3 MB": _upload("a.txt", b"hello world\n" * 250_000),
        "a text of 9 MB of passwords": _upload(*FILES["a text of 9 MB of passwords"]),
        "a PDF that unpacks to 200 MB": _upload(*FILES["a PDF that unpacks to 200 MB"]),
        "a picture of 60,000 by 60,000": _upload(*FILES["a picture of 60,000 by 60,000"]),
    },
)


def parts(count: int, boundary: str, *, head: str = "", body: str = "") -> bytes:
    """Returns a multipart form of so many parts."""
    one = f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n{head}\r\n{body}\r\n'
    return one.encode() * count + f"--{boundary}--\r\n".encode()


def _parted(path: str, content: bytes, boundary: str = "x", kind: str = "multipart/form-data") -> Deed:
    """A form without a key, or (at a path of the chat) of a visitor."""

    async def send(client: httpx.AsyncClient) -> None:
        await client.post(path, content=content, headers={**OWN, "Content-Type": f"{kind}; boundary={boundary}"})

    async def deed(world: World) -> None:
        if path == "/in":
            async with world.client() as client:
                await send(client)
        else:
            async with world.visitor() as visitor:
                await send(visitor.client)

    return deed


enter_all(
    "page upload",
    {
        "9,000 parts, signed in": _parted("/chat/main/say", parts(9_000, "x")),
        "150,000 parts of a longer form, signed in": _parted("/chat/main/say", parts(150_000, "x")),
        "one part with a head of 3 MB": _parted("/chat/main/say", parts(1, "x", head="X-A: " + "b" * 3_000_000 + "\r\n")),
        "a boundary that never ends": _parted("/chat/main/say", b"--x\r\n\r\n" + b"\r\n--" * 1_000_000),
        "parts within parts": _parted(
            "/chat/main/say",
            b"".join(b"--x%d\r\nContent-Type: multipart/mixed; boundary=x%d\r\n\r\n" % (n, n + 1) for n in range(5_000)),
            "x0",
        ),
    },
)  # fmt: skip
enter_all(
    "page without a key",
    {
        "9,000 empty parts": _parted("/in", b"--x\r\n\r\n\r\n" * 9_000 + b"--x--\r\n"),
        "fields without names": _parted("/in", b"&" * 190_000, kind="application/x-www-form-urlencoded"),
        "a field of escapes": _parted("/in", b"code=" + b"%41" * 60_000, kind="application/x-www-form-urlencoded"),
        "a kind with 5,000 parameters": _parted("/in", b"x", kind="multipart/form-data" + ";a=b" * 1_700),
        "a part packed into 100 kB": _parted("/in", parts(1, "x", head="Content-Encoding: gzip\r\n", body="a" * 9_000)),
        "a part in base64 without an end": _parted(
            "/in", parts(1, "x", head="Content-Transfer-Encoding: base64\r\n", body="A" * 99_999)
        ),
    },
    short=("9,000 empty parts",),
)  # fmt: skip

#: Paths and queries that nobody asks for.
QUERIES: Final = (
    "/memory?on=9999-12-31", "/memory?on=0001-01-01", "/memory?on=2027-02-30", "/memory?page=999999999999999",
    "/memory?page=-1", "/memory?q=" + "x" * 6_000, "/memory?filter=since:9999-12-31", "/timeline?on=9999-12-31",
    "/timeline?from=0001-01-01&to=9999-12-31", "/timeline?month=9999-13", "/entities?q=%ff%fe", "/entities/%00",
    "/entities/999999999999999", "/night?page=99999999999999", "/night/999999999999999", "/questions?page=9e99",
    "/why/999999999999999", "/why/-1", "/chat/%2e%2e%2f", "/chat/main/file/999999999999999", "/receipt",
    "/chat/main?before=999999999999999", "/chat/main?before=-5", "/chat/main/events?seen=99999999999999999999999",
    "/chat/" + "x" * 99, "/chat/\u202e", "/me?x=" + "&y=" * 1_500, "/static/x/../../etc/passwd", "/memory/m_" + "z" * 90,
    "/admin", "/admin/jobs", "/%", "//", "/memory?on=" + "9" * 4_400,
)  # fmt: skip


@hostile("page query", "dates, numbers and paths that nobody asks for", short=True)
async def _queries(world: World) -> None:
    async with world.visitor() as visitor:
        for path in QUERIES:
            try:
                async with visitor.client.stream("GET", path, timeout=8) as response:
                    if response.status_code >= 500:
                        world.notes.append(f"{response.status_code} at {path[:60]}")
            except httpx.HTTPError:
                world.notes.append(f"no answer at {path[:60]}")


@hostile("page query", "names and origins that are none")
async def _names(world: World) -> None:
    async with world.client() as client:
        for header, value in (
            ("Host", "["), ("Host", "localhost:99999999"), ("Host", "[::1"), ("Origin", "http://["), ("Origin", "\xff"),
            ("Cookie", "remora=" + "x" * 7_000), ("Cookie", ";" * 7_000), ("Accept-Language", "," * 7_000),
            ("Accept-Language", "-" * 7_000), ("Sec-Fetch-Site", "x" * 7_000), ("Content-Type", "multipart/form-data"),
        ):  # fmt: skip
            for path in ("/in", "/v1/models", "/healthz", "/mcp"):
                for method in ("GET", "POST"):
                    response = await client.request(
                        method, path, headers={header.encode(): value.encode("latin-1")}, content=b""
                    )
                    if response.status_code >= 500:
                        world.notes.append(f"{response.status_code} at {method} {path} with {header}: {value[:20]}")


@hostile("page query", "a page of a long conversation, sixty times at once")
async def _read_often(world: World) -> None:
    async with world.visitor() as visitor:
        await visitor.say(TEXTS["stars"])
        await asyncio.gather(*(visitor.client.get("/chat/main") for _ in range(60)), return_exceptions=True)


# Codes ----------------------------------------------------------------------------------------------------------


@hostile("codes", "three hundred wrong codes to sign in, twenty at a time")
async def _wrong_codes(world: World) -> None:
    async with world.client() as client:
        for _ in range(15):
            await asyncio.gather(
                *(client.post("/in", data={"code": secrets.token_urlsafe(32)}, headers=OWN) for _ in range(20)),
                return_exceptions=True,
            )


@hostile("codes", "wrong codes, five", short=True)
async def _five_wrong_codes(world: World) -> None:
    async with world.client() as client:
        for n in range(5):
            await client.post("/in", data={"code": str(n)}, headers=OWN)


@hostile("codes", "a code of 190,000 characters, and a hundred names to look up")
async def _long_codes(world: World) -> None:
    async with world.client() as client:
        await client.post("/in", data={"code": "#" * 190_000}, headers=OWN)
        for path in ("/in/name",) * 100:
            await client.post(path, data={"code": "\u0661" * 300}, headers=OWN)


@hostile("codes", "codes to link accounts, by ten people")
async def _link_codes(world: World) -> None:
    for _ in range(10):
        user = world.person()
        for n in range(6):
            await world.telegram.say(f"/link CDFG-{2345 + n}", user=user)
    await world.answered(user)
