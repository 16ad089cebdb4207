"""Sends what foreign servers can: the model, a tool server, and the pages that `fetch_url` reads."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from aiohttp import web

from bench.hostile.inputs import Deed, enter_all, hostile
from bench.hostile.page import MARKDOWN
from bench.hostile.people import TEXTS, bomb_of_pdf, looping_pdf, passwords
from bench.hostile.world import PUBLIC, ModelAnswer, World, calls, event, streamed
from tests.platforms.chat_model import JSON, whole

#: Seconds for which an endless answer goes on.
_ENDLESS: Final = 8.0

# The model ------------------------------------------------------------------------------------------------------


def _answers(*deltas: JSON, finish: str = "stop") -> ModelAnswer:
    return lambda request, body: streamed(request, body, deltas, finish)


def _bytes(*pieces: bytes, headers: dict[str, str] | None = None, pause: float = 0, status: int = 200) -> ModelAnswer:
    """The pieces as they are; the last is repeated for a while if there is a pause."""

    async def answer(request: web.Request, _body: JSON) -> web.StreamResponse:
        return await _written(request, pieces, {"content-type": "text/event-stream", **(headers or {})}, pause, status)

    return answer


async def _written(
    request: web.Request, pieces: Iterable[bytes], headers: dict[str, str], pause: float, status: int = 200
) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers, status=status)
    await response.prepare(request)
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):
        piece = b""
        for piece in pieces:
            await response.write(piece)
        ends = loop.time() + _ENDLESS
        while pause and loop.time() < ends:
            await asyncio.sleep(pause)
            await response.write(piece)
        await response.write_eof()
    return response


async def _many_calls(request: web.Request, body: JSON) -> web.StreamResponse:
    function = {"name": "search_memory", "arguments": json.dumps({"query": TEXTS["times"][:400]})}
    deltas = [
        {"tool_calls": [{"index": n, "id": f"c{n}", "type": "function", "function": function}]} for n in range(2_000)
    ]
    return await streamed(request, body, deltas, "tool_calls")


async def _call_in_pieces(request: web.Request, body: JSON) -> web.StreamResponse:
    start = {"index": 0, "id": "c", "type": "function", "function": {"name": "search_memory", "arguments": ""}}
    piece = {"tool_calls": [{"index": 0, "function": {"arguments": "["}}]}
    return await streamed(request, body, [{"tool_calls": [start]}, *([piece] * 100_000)], "tool_calls")


_PACKED: Final = gzip.compress(b"data: " + b"x" * 200_000_000 + b"\n\n", 9)

enter_all(
    "model answer",
    {
        name: partial(World.asks_model, answer=answer)
        for name, answer in {
            "100,000 pieces of one letter": _answers(*[{"content": "a"}] * 100_000),
            "a piece of 9 MB": _answers({"content": "hello world " * 750_000}),
            "passwords, piece by piece": _answers(*({"content": f"pw: Zq{n}x!{n * 7919}\n"} for n in range(3_000))),
            "a table of 500 columns": _answers({"content": MARKDOWN["a table of 500 columns"]}),
            "opened pictures": _answers({"content": MARKDOWN["opened pictures"]}),
            "brackets": _answers({"content": "[" * 100_000}),
            "marks of thinking, never closed": _answers({"content": "<think>" * 20_000}),
            "a line of 60 MB without an end": _bytes(b"data: ", *[b"x" * 1_000_000] * 60),
            "lines without an end": _bytes(event({"content": "a"}), pause=0.001),
            "silence with signs of life": _bytes(b": still here\n\n", pause=0.01),
            "a body that unpacks to 200 MB": _bytes(_PACKED, headers={"content-encoding": "gzip"}),
            "JSON of 100,000 levels": _bytes(b"data: " + b"[" * 100_000 + b"\n\n"),
            "bytes that are no text": _bytes(b"data: \xff\xfe\xfd\n\n" * 1_000),
            "parts of the wrong types": _bytes(
                *(f"data: {one}\n\n".encode() for one in ("5", "null", "[]", '{"choices": 5}', '{"choices": [5]}',
                  '{"choices": [{"delta": 5}]}', '{"choices": [{"delta": {"content": 5}}]}', '{"usage": "x", "choices": []}',
                  '{"choices": [{"delta": {"tool_calls": 5}}]}', '{"choices": [{"delta": {"tool_calls": [{"index": -9}]}}]}'))
            ),
            "2,000 calls of tools": _many_calls,
            "a call in 100,000 pieces": _call_in_pieces,
            "arguments of 900 levels": calls("search_memory", '{"query":' + "[" * 900 + "]" * 900 + "}"),
            "arguments of 5 MB": calls("remember_fact", {"text": "x" * 5_000_000}),
            "a call with dates that do not exist": calls("remember_fact", {"text": "a concert with Tom (2027-02-30)"}),
            "an error of 20 MB": _bytes(b"x" * 20_000_000, status=500),
            "a way elsewhere, for ever": _bytes(b"", headers={"location": "/v1/chat/completions"}, status=307),
        }.items()
    },
    short=("passwords, piece by piece",),
)  # fmt: skip


@hostile("model answer", "a table of 500 columns, growing on an open page")
async def _on_the_page(world: World) -> None:
    marker = "case-growing"

    async def answer(request: web.Request, body: JSON) -> web.StreamResponse:
        text = MARKDOWN["a table of 500 columns"]
        if not body.get("stream"):
            return web.json_response(whole(body, text))
        pieces = (event({"content": text[at : at + 900]}) for at in range(0, len(text), 900))
        return await _written(request, [*pieces, event({}, "stop")], {"content-type": "text/event-stream"}, 0)

    world.model.answers[marker] = answer
    async with world.visitor() as visitor:

        async def tab() -> None:
            async with asyncio.timeout(8), visitor.client.stream("GET", "/chat/main/events?seen=0") as stream:
                async for _ in stream.aiter_raw():
                    pass

        tabs = [asyncio.create_task(tab()) for _ in range(4)]
        await visitor.say(marker)
        await asyncio.gather(*tabs, return_exceptions=True)


# The tool server ------------------------------------------------------------------------------------------------

_GIVEN: Final = {
    "20,000 passwords": "passwords", "a line of 10 MB": "one-line", "50,000 parts": "blocks", "opened pictures": "brackets",
    "JSON of 900 levels": "deep", "a picture of 8 MB": "picture", "parts of the wrong types": "kinds",
    "a result of the wrong type": "schemaless", "20,000 notices before it": "flood", "5 MB said to the side": "scream",
    "notices in place of an answer": "drip", "the end in the middle of a line": "leave", "5,000 links": "links",
    "600,000 lists": "heap", "200,000 notes beside it": "notes",
}  # fmt: skip

enter_all(
    "tool result",
    {name: partial(World.asks_model, answer=calls("hostile__give", {"what": what})) for name, what in _GIVEN.items()}
    | {"an expression that takes for ever": partial(World.asks_model, answer=calls("hostile__patterned", {}))},
    short=("20,000 passwords",),
)


# Pages ----------------------------------------------------------------------------------------------------------


def _fetches(answer: Callable[[web.Request], Any], name: str) -> Deed:
    """Has somebody ask for a page, which the model fetches."""

    async def deed(world: World) -> None:
        path = f"/{abs(hash(name)):x}"
        world.web[path] = answer
        address = f"http://{PUBLIC}{path}"
        marker = f"read {address}"
        world.model.answers[marker] = calls("fetch_url", {"url": address})
        await world.say(marker)

    return deed


def _page(body: bytes, kind: str = "text/html", **headers: str) -> Callable[[web.Request], Any]:
    async def answer(_request: web.Request) -> web.StreamResponse:
        given = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return web.Response(body=body, headers=given)

    return answer


def _drips(*pieces: bytes, pause: float, **headers: str) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.StreamResponse:
        given = {"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await _written(request, pieces, given, pause)

    return answer


async def _round(request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"location": request.path})


async def _inwards(_request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"location": "http://127.0.0.1/healthz"})


def _bomb(packer: Any, piece: bytes = b"<p>" * 300_000, count: int = 300) -> bytes:
    return b"".join(packer.compress(piece) for _ in range(count)) + bytes(packer.flush())


_PAGES: Final[dict[str, Callable[[web.Request], Any]]] = {
    "gzip that unpacks to 270 MB": _page(_bomb(zlib.compressobj(9, wbits=31)), content_encoding="gzip"),
    "gzip within gzip": _page(gzip.compress(_bomb(zlib.compressobj(9, wbits=31))), content_encoding="gzip, gzip"),
    "deflate that was not asked for": _page(_bomb(zlib.compressobj(9)), content_encoding="deflate"),
    "brotli that was not asked for": _page(b"\x1b\xff\xff\x3f" * 999, content_encoding="br"),
    "gzip that is none": _page(b"hello", content_encoding="gzip"),
    "many empty members of gzip": _page(gzip.compress(b"") * 90_000, content_encoding="gzip"),
    "a byte now and then": _drips(b"<", pause=0.2),
    "packed bytes that unpack to nothing": _drips(
        gzip.compress(b"<p>x")[:15], b"\0\0\0\xff\xff" * 999, pause=0.01, content_encoding="gzip"
    ),
    "chunks without an end": _drips(b"<p>word</p>" * 9_000, pause=0.001),
    "a title of 100 MB": _drips(b"<title>", *[b"word " * 200_000] * 100, pause=0),
    "300,000 elements in each other": _page(b"<div>" * 300_000 + b"word"),
    "a million entities": _page(b"<p>" + b"&#x4e00;" * 240_000),
    "a million attributes": _page(b"<p " + b"a=b " * 490_000 + b">word"),
    "a table within tables": _page(b"<table><tr><td>" * 100_000 + b"word"),
    "passwords": _page(b"<pre>" + passwords(90_000).encode()),
    "comments before it": _page(b"<!--" * 400_000 + b"<html>word"),
    "a PDF that unpacks to 200 MB": _page(bomb_of_pdf(), "application/pdf"),
    "a PDF under the type of a page": _page(looping_pdf()),
    "a character set that is none": _page(b"<p>word", "text/html; charset=" + "x" * 5_000),
    "a character set that unpacks": _page(zlib.compress(b"a" * 900_000), "text/html; charset=zlib_codec"),
    "a character set of a domain": _page(b"<p>" + b"a." * 900_000, "text/html; charset=idna"),
    "a character set of punycode": _page(b"-" + b"a9" * 900_000, "text/plain; charset=punycode"),
    "a way to itself": _round,
    "a way to this machine": _inwards,
    "a head of 200 kB": _page(b"<p>word", x="y" * 200_000),
}


enter_all("fetched page", {name: _fetches(answer, name) for name, answer in _PAGES.items()},
          short=("gzip that unpacks to 270 MB",), needs_web=True)  # fmt: skip
