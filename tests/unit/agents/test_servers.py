"""Tests of who gives way to whom at a model server."""

from __future__ import annotations

import asyncio

import pytest

from agents.failover import Servers
from tests.kit.patience import limit, settle


async def test_a_background_call_gives_way_to_a_person_and_begins_anew() -> None:
    """On a server that does one thing at a time a person would wait for the end of a long reading."""
    servers = Servers(lambda: 0.0)
    begun, cancelled, finish = [0], [0], asyncio.Event()

    async def read() -> str:
        begun[0] += 1
        try:
            await finish.wait()
        except asyncio.CancelledError:
            cancelled[0] += 1
            raise
        return "read"

    reading = asyncio.ensure_future(servers.in_background("here", 1, read))
    await settle()
    async with servers.live("here", 1):
        await settle()
        assert (begun, cancelled) == ([1], [1])
    await settle()
    assert begun == [2]
    finish.set()
    assert await reading == "read"


async def test_a_background_call_waits_while_people_are_answered() -> None:
    """It would be cancelled at once."""
    servers = Servers(lambda: 0.0)

    async def read() -> str:
        return "read"

    async with servers.live("here", 1):
        reading = asyncio.ensure_future(servers.in_background("here", 1, read))
        await settle()
        assert not reading.done()
    assert await reading == "read"


async def test_other_servers_and_servers_with_room_go_on() -> None:
    servers = Servers(lambda: 0.0)

    async def read() -> str:
        return "read"

    async with servers.live("here", 2):
        assert await servers.in_background("there", 1, read) == "read"
        assert await servers.in_background("here", 2, read) == "read"
        assert await servers.in_background("cloud", None, read) == "read"


async def test_a_hung_answer_holds_up_no_other_person() -> None:
    """The server's own queue decides among people."""
    servers = Servers(lambda: 0.0)
    async with servers.live("here", 1), limit(), servers.live("here", 1):
        pass


async def test_a_cancelled_background_call_ends() -> None:
    """The process is about to stop, or the reading took too long."""
    servers = Servers(lambda: 0.0)
    begun = asyncio.Event()

    async def read() -> None:
        begun.set()
        await asyncio.Event().wait()

    reading = asyncio.ensure_future(servers.in_background("here", 1, read))
    await begun.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    async with servers.live("here", 1):
        pass


async def test_an_error_of_a_background_call_is_its_callers() -> None:
    servers = Servers(lambda: 0.0)

    async def fail() -> None:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError):
            await servers.in_background("here", 1, fail)
