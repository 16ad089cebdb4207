"""The page's channel while it takes messages: one that can't be taken keeps no other waiting."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Inbound, NotTaken
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
    """Its own sender is told so, at once."""
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
