"""A line the gateway could not commit."""

from __future__ import annotations

import io

from channels.base import Inbound, NotTaken, Place
from channels.console import ConsoleChannel, Streams
from tests.kit.hosts import QuietHost


class Full(QuietHost):
    async def on_inbound(self, inbound: Inbound) -> None:
        raise NotTaken("I could not save that: the disk is full.")

    async def settled(self, place: Place) -> None:
        raise AssertionError("there is nothing to wait for")


async def test_a_line_that_was_not_taken_is_told_and_the_talk_goes_on() -> None:
    """The person must know that it is gone, and can say it again."""
    shown = io.StringIO()
    channel = ConsoleChannel(
        person="ada",
        once="hello",
        now=lambda: 0,
        new_id=lambda: "1",
        streams=Streams(stdin=io.StringIO(), stdout=shown),
    )
    await channel.run(Full())
    assert shown.getvalue() == "I could not save that: the disk is full.\n"
