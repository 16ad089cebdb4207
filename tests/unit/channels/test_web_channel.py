"""The page's channel: one message that can't be taken keeps no other waiting, and what it holds is bounded."""

from __future__ import annotations

import asyncio
import sys

import pytest

from channels.base import File, Inbound, NotTaken, Outbound, Place
from channels.web import WebChannel
from tests.kit.fakes import Clock
from tests.kit.hosts import KeepingHost


class Refusing(KeepingHost):
    """Keeps what it is told, after its refusals."""

    async def on_inbound(self, inbound: Inbound) -> None:
        await self.let_in()
        self.said.append(inbound)


def said(number: int) -> Inbound:
    return Inbound(
        channel="web", platform="web", bot_id="web", update_key=str(number), chat=str(number), chat_kind="private",
        author_id=str(number), author_name="Ann", message_id=str(number), text="hello", sent_at=1,
    )  # fmt: skip


async def test_a_message_that_can_not_be_taken_ends_the_taking_for_nobody_else() -> None:
    host, web = Refusing(refusals=[ZeroDivisionError(), NotTaken("later")]), WebChannel("web", now=Clock())
    running = asyncio.create_task(web.run(host))
    for number in (1, 2):
        with pytest.raises(NotTaken):
            await web.say(said(number))
    await web.say(said(3))
    assert [one.message_id for one in host.said] == ["3"] and not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def place(number: int) -> Place:
    """A conversation of Ann's."""
    return Place(channel="web", chat="ann", thread=f"c{number}")


def shown(number: int, *, to: int, data: bytes | None = None) -> Outbound:
    file = None if data is None else File(name="a.bin", data=data)
    return Outbound(id=number, place=place(to), text=f"answer {number}", file=file)


async def test_commands_in_ever_new_conversations_fill_no_memory() -> None:
    """Their answers are held for an hour only if nobody asks for so many; the newest stay."""
    web = WebChannel("web", now=Clock())
    for number in range(1, 601):
        await web.send(shown(number, to=number))
    assert web.held(place(1)) == [] == web.held(place(100))
    assert [item.text for item in web.held(place(101))] == ["answer 101"]
    assert [item.text for item in web.held(place(600))] == ["answer 600"]


@pytest.mark.parametrize("places", [1, 5])
async def test_files_that_are_held_have_a_bound_together(places: int) -> None:
    web, data = WebChannel("web", now=Clock()), bytes(20_000_000)
    for number in range(1, 6):
        await web.send(shown(number, to=number % places, data=data))
    files = [web.file(place(number % places), number) for number in range(1, 6)]
    assert [file is not None for file in files] == [False, False, True, True, True]


async def test_what_was_held_for_its_time_is_let_go_though_nobody_looks() -> None:
    clock = Clock()
    web, data = WebChannel("web", now=clock), bytes(1_000)
    before = sys.getrefcount(data)
    await web.send(shown(1, to=1, data=data))
    assert sys.getrefcount(data) > before
    clock.at += 3_600_000
    await web.send(shown(2, to=2))
    assert sys.getrefcount(data) == before
