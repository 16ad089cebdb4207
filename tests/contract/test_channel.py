"""What every channel must do, run over each of them: the gateway decides by this and never by a platform's name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from channels.base import Channel, CommandSpec, Inbound, Outbound, Place
from channels.console import ConsoleChannel

NOW = 1_700_000_000_000
TIMEOUT = 20  # seconds until a channel that hangs fails its test


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A channel and the person at its other end: `say` and `hang_up` are theirs, `screen` is what they see."""

    channel: Channel
    place: Place
    author: str
    say: Callable[[str], None]
    hang_up: Callable[[], None]
    screen: Callable[[], str]


@dataclass(slots=True)
class Gateway:
    """A host that keeps what it is told and, when it has an answer, sends it before the place is settled."""

    channel: Channel
    answer: str | None = None
    said: list[Inbound] = field(default_factory=list)
    failure: Exception | None = None
    commands: Sequence[CommandSpec] = (CommandSpec(name="help", help="what I can do"),)

    async def on_inbound(self, inbound: Inbound) -> None:
        self.said.append(inbound)
        if self.failure is not None:
            raise self.failure

    async def settled(self, place: Place) -> None:
        if self.answer is not None:
            await self.channel.send(Outbound(id=len(self.said), place=place, text=self.answer, turn=len(self.said)))


def console(cleanup: ExitStack, folder: Path) -> Rig:
    """The terminal channel between a pipe and a file."""
    ids = count(1)
    read_end, write_end = os.pipe()
    keyboard = cleanup.enter_context(os.fdopen(write_end, "w", encoding="utf-8"))
    paper = folder / "screen"
    channel = ConsoleChannel(
        person="ada",
        now=lambda: NOW,
        new_id=lambda: f"id{next(ids)}",
        stdin=cleanup.enter_context(os.fdopen(read_end, encoding="utf-8")),
        stdout=cleanup.enter_context(paper.open("w", encoding="utf-8")),
    )

    def say(text: str) -> None:
        keyboard.write(f"{text}\n")
        keyboard.flush()

    return Rig(
        channel=channel,
        place=Place(channel="console", chat="ada"),
        author="ada",
        say=say,
        hang_up=keyboard.close,
        screen=lambda: paper.read_text(encoding="utf-8"),
    )


@pytest.fixture(params=[console], ids=["console"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """One channel after the other; each builder takes an exit stack and an empty folder."""
    build: Callable[[ExitStack, Path], Rig] = request.param
    with ExitStack() as cleanup:
        yield build(cleanup, tmp_path)


async def run(rig: Rig, host: Gateway) -> None:
    """Run the channel to its end, which the person must have brought about."""
    async with asyncio.timeout(TIMEOUT):
        await rig.channel.run(host)


async def test_channel_hands_over_a_well_formed_inbound(rig: Rig) -> None:
    """Everything later, from policy to memory, goes by these fields."""
    host = Gateway(rig.channel)
    rig.say("hello there")
    rig.hang_up()
    await run(rig, host)
    [inbound] = host.said
    assert inbound.text == "hello there"
    assert inbound.place == rig.place
    assert (inbound.channel, inbound.platform) == (rig.channel.id, rig.channel.platform)
    assert (inbound.author_id, inbound.chat_kind, inbound.addressed) == (rig.author, "private", True)
    assert inbound.update_key
    assert inbound.message_id
    assert inbound.bot_id
    assert inbound.author_name
    assert inbound.sent_at == NOW
    assert Inbound.from_json(inbound.to_json()) == inbound


async def test_channel_keeps_the_order_and_gives_each_message_its_own_key(rig: Rig) -> None:
    """The inbox drops a message whose key it knows, so equal texts still need different keys."""
    host = Gateway(rig.channel)
    for text in ("one", "same", "same"):
        rig.say(text)
    rig.hang_up()
    await run(rig, host)
    assert [inbound.text for inbound in host.said] == ["one", "same", "same"]
    assert len({inbound.update_key for inbound in host.said}) == 3
    assert len({inbound.message_id for inbound in host.said}) == 3


async def test_channel_shows_a_sent_message_once(rig: Rig) -> None:
    """The plain case: an answer that comes whole."""
    host = Gateway(rig.channel, answer="a plain answer")
    rig.say("hello")
    rig.hang_up()
    await run(rig, host)
    assert rig.screen().count("a plain answer") == 1


async def test_channel_shows_a_streamed_message_once(rig: Rig) -> None:
    """The row that completes a stream must not repeat what the person has already read."""
    if rig.channel.capabilities.stream != "append":
        pytest.skip("this platform takes answers whole")
    for piece in ("Once ", "and ", "only"):
        await rig.channel.append(rig.place, 1, piece)
    assert "Once and only" in rig.screen()
    await rig.channel.send(Outbound(id=1, place=rig.place, text="Once and only once.", turn=1))
    assert rig.screen().count("Once and only once.") == 1
    assert rig.screen().count("Once") == 1


async def test_channel_shows_two_equal_messages_twice(rig: Rig) -> None:
    """Showing once is meant per row: saying "yes" twice is two answers."""
    ids = [await rig.channel.send(Outbound(id=number, place=rig.place, text="yes", turn=number)) for number in (1, 2)]
    assert rig.screen().count("yes") == 2
    assert all(ids)
    assert len(set(ids)) == 2


async def test_channel_marks_a_row_of_an_earlier_run(rig: Rig) -> None:
    """The person may have seen it before the restart, and should not take it for a new answer."""
    if rig.channel.capabilities.resend != "mark":
        pytest.skip("this platform does not show such rows again")
    await rig.channel.send(Outbound(id=1, place=rig.place, text="new"))
    plain = rig.screen()
    await rig.channel.send(Outbound(id=2, place=rig.place, text="old", earlier_run=True))
    marked = rig.screen().removeprefix(plain)
    assert marked.count("old") == 1
    assert len(marked.strip()) > len("old")


async def test_channel_reaches_its_own_places_only(rig: Rig) -> None:
    """Rows for other places wait in the outbox for the run that can show them."""
    assert rig.channel.reachable(rig.place)
    assert not rig.channel.reachable(replace(rig.place, channel=f"{rig.place.channel}2"))


async def test_channel_run_ends_when_the_person_is_gone(rig: Rig) -> None:
    """Without anybody at the other end the process must be able to stop."""
    host = Gateway(rig.channel)
    rig.hang_up()
    await run(rig, host)
    assert host.said == []


async def test_channel_run_ends_when_cancelled(rig: Rig) -> None:
    """A shutdown cancels the run while it waits for the person."""
    running = asyncio.create_task(rig.channel.run(Gateway(rig.channel)))
    await asyncio.sleep(0.05)  # long enough to be waiting; ending must not depend on it
    running.cancel()
    async with asyncio.timeout(TIMEOUT):
        await asyncio.wait([running])
    assert running.cancelled()
    rig.hang_up()


async def test_channel_does_not_hide_that_a_message_was_not_taken(rig: Rig) -> None:
    """When the store can't be written the message must not count as received."""
    host = Gateway(rig.channel, failure=OSError("disk full"))
    rig.say("keep this")
    rig.hang_up()
    with pytest.raises(OSError, match="disk full"):
        await run(rig, host)
