"""Requests of channels: what is returned for an answer, a file that is too long, and a server that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, web

from channels.base import ChannelError, ChannelUnavailable, TooLarge
from channels.http import HttpAnswer, HttpClient
from tests.kit.patience import SECONDS

_SECRET = "s3cr3t"


async def session() -> ClientSession:
    return ClientSession()


async def answer(request: web.Request) -> web.StreamResponse:
    """Ten bytes, as the path says: whole, in pieces, refused, or cut off in the middle."""
    match request.match_info["how"]:
        case "refused":
            return web.Response(status=404, body=b"x" * 10)
        case "moved":
            return web.Response(status=302, headers={"Location": "/whole"})
        case "whole":
            return web.Response(body=b"x" * 10)
        case how:
            response = web.StreamResponse(headers={"Content-Length": "20"} if how == "cut" else {})
            await response.prepare(request)
            await response.write(b"x" * 10)
            if how == "cut":
                assert request.transport is not None
                request.transport.close()
            return response


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/{how}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def asked(url: str, *, limit: int | None = None) -> HttpAnswer | ChannelError:
    return await HttpClient(session).exchange("GET", url, server="the server", seconds=SECONDS, limit=limit)


async def test_an_answer_is_given_whatever_its_status() -> None:
    """The platform decides what it means; a redirect is not followed, for it may lead anywhere."""
    async with server() as base:
        found = {how: await asked(f"{base}/{how}") for how in ("whole", "pieces", "refused", "moved")}
    assert {how: one.status for how, one in found.items() if isinstance(one, HttpAnswer)} == {
        "whole": 200, "pieces": 200, "refused": 404, "moved": 302
    }  # fmt: skip


async def test_a_file_of_more_bytes_than_allowed_is_not_read() -> None:
    """It holds for announced and unannounced lengths."""
    async with server() as base:
        for how in ("whole", "pieces"):
            assert isinstance(await asked(f"{base}/{how}", limit=9), TooLarge)
            fits = await asked(f"{base}/{how}", limit=10)
            assert isinstance(fits, HttpAnswer) and fits.body == b"x" * 10
        refused = await asked(f"{base}/refused", limit=9)
        assert isinstance(refused, HttpAnswer) and (refused.status, refused.body) == (404, b"")


async def test_an_error_tells_whether_the_request_had_no_effect_and_holds_no_address() -> None:
    """A server that was never reached has done nothing; one that broke off may have."""
    async with server() as base:
        cut = await asked(f"{base}/cut?{_SECRET}")
    gone = await asked(f"{base}/whole?{_SECRET}")
    assert isinstance(cut, ChannelUnavailable) and not cut.certain
    assert isinstance(gone, ChannelUnavailable) and gone.certain
    for error in (cut, gone):
        assert "the server" in str(error) and _SECRET not in str(error) and base not in str(error)
        assert error.__cause__ is None and error.__context__ is None and error.__traceback__ is None


async def test_one_session_lives_as_long_as_anybody_uses_it() -> None:
    """Requests side by side share its connections, and none is left open."""
    client, release = HttpClient(session), asyncio.Event()
    found: list[ClientSession] = []

    async def use() -> None:
        async with client.open() as shared:
            found.append(shared)
            await release.wait()

    tasks = [asyncio.create_task(use()) for _ in range(2)]
    async with client.open() as mine:
        release.set()
        await asyncio.gather(*tasks)
        open_inside = not mine.closed
    assert found == [mine, mine] and open_inside and mine.closed
    async with client.open() as anew:
        assert anew is not mine
