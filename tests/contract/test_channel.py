"""What every channel must do, run over each of them: the gateway decides by this and never by a platform's name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import httpx
import pytest

from channels.base import Button, Channel, CommandSpec, Inbound, Outbound, Place
from channels.console import ConsoleChannel
from channels.telegram import TelegramChannel
from tests.platforms.telegram import serving

NOW = 1_700_000_000_000
TIMEOUT = 20  # seconds until a channel that hangs fails its test


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A channel and the person at its other end: `say` and `hang_up` are theirs, `screen` is what they see.

    `hang_up` is None where people only fall silent, and a run ends with a shutdown.
    """

    channel: Channel
    place: Place
    author: str
    say: Callable[[str], Awaitable[None]]
    hang_up: Callable[[], None] | None
    screen: Callable[[], Awaitable[str]]


@dataclass(slots=True)
class Gateway:
    """A host that keeps what it is told and, when it has an answer, sends it at once."""

    channel: Channel
    answer: str | None = None
    said: list[Inbound] = field(default_factory=list)
    failure: Exception | None = None
    commands: Sequence[CommandSpec] = (CommandSpec(name="help", help="what I can do"),)
    taken: int = 0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def on_inbound(self, inbound: Inbound) -> None:
        self.said.append(inbound)
        if self.failure is not None:
            raise self.failure
        if self.answer is not None:
            await self.channel.send(Outbound(id=len(self.said), place=inbound.place, text=self.answer))
        self.taken += 1
        self.told.set()

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        raise AssertionError(f"nobody moved {chat}")

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        raise AssertionError(f"nobody came to {chat} or went")

    async def settled(self, place: Place) -> None:
        return None

    async def took(self, messages: int) -> None:
        while self.taken < messages:
            self.told.clear()
            await self.told.wait()


async def console(cleanup: AsyncExitStack, folder: Path) -> Rig:
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

    async def say(text: str) -> None:
        keyboard.write(f"{text}\n")
        keyboard.flush()

    async def screen() -> str:
        return paper.read_text(encoding="utf-8")

    return Rig(
        channel=channel,
        place=Place(channel="console", chat="ada"),
        author="ada",
        say=say,
        hang_up=keyboard.close,
        screen=screen,
    )


async def telegram(cleanup: AsyncExitStack, _folder: Path) -> Rig:
    """A Telegram bot, its platform, and somebody who has written to it before."""
    platform = await cleanup.enter_async_context(serving())
    ada = 7
    await platform.say("/start", user=ada, name="Ada")
    async with httpx.AsyncClient() as client:
        # What was said before the test is not part of it.
        drop = f"{platform.url}/bot{platform.token}/deleteWebhook"
        await client.get(drop, params={"drop_pending_updates": True})
    channel = TelegramChannel(
        id="telegram", token=platform.token, base_url=platform.url, now=lambda: NOW, poll_seconds=1, request_seconds=5
    )

    async def say(text: str) -> None:
        await platform.say(text, user=ada, sent_at=NOW // 1000)

    async def screen() -> str:
        return "\n".join(await platform.texts(ada))

    return Rig(
        channel=channel,
        place=Place(channel="telegram", chat=str(ada)),
        author=str(ada),
        say=say,
        hang_up=None,
        screen=screen,
    )


@pytest.fixture(params=[console, telegram], ids=["console", "telegram"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    """One channel after the other; each builder takes an exit stack and an empty folder."""
    build: Callable[[AsyncExitStack, Path], Awaitable[Rig]] = request.param
    async with AsyncExitStack() as cleanup:
        yield await build(cleanup, tmp_path)


async def run(rig: Rig, host: Gateway, *, messages: int) -> None:
    """Run the channel until the person hangs up, or, where they can't, until so many messages were taken."""
    async with asyncio.timeout(TIMEOUT):
        if rig.hang_up is not None:
            rig.hang_up()
            await rig.channel.run(host)
            return
        running = asyncio.create_task(rig.channel.run(host))
        took = asyncio.create_task(host.took(messages))
        await asyncio.wait({running, took}, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, took):
            task.cancel()
        await asyncio.gather(running, took, return_exceptions=True)
        if not running.cancelled():
            running.result()


async def test_channel_hands_over_a_well_formed_inbound(rig: Rig) -> None:
    """Everything later, from policy to memory, goes by these fields."""
    host = Gateway(rig.channel)
    await rig.say("hello there")
    await run(rig, host, messages=1)
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
        await rig.say(text)
    await run(rig, host, messages=3)
    assert [inbound.text for inbound in host.said] == ["one", "same", "same"]
    assert len({inbound.update_key for inbound in host.said}) == 3
    assert len({inbound.message_id for inbound in host.said}) == 3


async def test_channel_shows_a_sent_message_once(rig: Rig) -> None:
    """The plain case: an answer that comes whole."""
    host = Gateway(rig.channel, answer="a plain answer")
    await rig.say("hello")
    await run(rig, host, messages=1)
    assert (await rig.screen()).count("a plain answer") == 1


async def test_channel_shows_a_streamed_message_once(rig: Rig) -> None:
    """The row that completes a stream must not repeat what the person has already read."""
    if rig.channel.capabilities.stream != "append":
        pytest.skip("what is shown does not grow here")
    for piece in ("Once ", "and ", "only"):
        await rig.channel.append(rig.place, 1, piece)
    assert "Once and only" in await rig.screen()
    await rig.channel.send(Outbound(id=1, place=rig.place, text="Once and only once.", turn=1))
    assert (await rig.screen()).count("Once and only once.") == 1
    assert (await rig.screen()).count("Once") == 1


async def test_channel_shows_two_equal_messages_twice(rig: Rig) -> None:
    """Showing once is meant per row: saying "yes" twice is two answers."""
    ids = [await rig.channel.send(Outbound(id=number, place=rig.place, text="yes", turn=number)) for number in (1, 2)]
    assert (await rig.screen()).count("yes") == 2
    assert all(ids)
    assert len(set(ids)) == 2


async def test_channel_marks_a_row_of_an_earlier_run(rig: Rig) -> None:
    """The person may have seen it before the restart, and should not take it for a new answer."""
    if rig.channel.capabilities.resend != "mark":
        pytest.skip("this platform does not show such rows again")
    await rig.channel.send(Outbound(id=1, place=rig.place, text="new"))
    plain = await rig.screen()
    await rig.channel.send(Outbound(id=2, place=rig.place, text="old", earlier_run=True))
    marked = (await rig.screen()).removeprefix(plain)
    assert marked.count("old") == 1
    assert len(marked.strip()) > len("old")


async def test_channel_reaches_its_own_places_only(rig: Rig) -> None:
    """Rows for other places wait in the outbox for the run that can show them."""
    assert rig.channel.reachable(rig.place)
    assert not rig.channel.reachable(replace(rig.place, channel=f"{rig.place.channel}2"))


async def test_channel_run_ends_when_the_person_is_gone(rig: Rig) -> None:
    """Without anybody at the other end the process must be able to stop."""
    if rig.hang_up is None:
        pytest.skip("people here only fall silent")
    host = Gateway(rig.channel)
    await run(rig, host, messages=0)
    assert host.said == []


async def test_channel_run_ends_when_cancelled(rig: Rig) -> None:
    """A shutdown cancels the run while it waits for the person."""
    running = asyncio.create_task(rig.channel.run(Gateway(rig.channel)))
    await asyncio.sleep(0.05)  # long enough to be waiting; ending must not depend on it
    running.cancel()
    async with asyncio.timeout(TIMEOUT):
        await asyncio.wait([running])
    assert running.cancelled()
    if rig.hang_up is not None:
        rig.hang_up()


async def test_channel_does_not_hide_that_a_message_was_not_taken(rig: Rig) -> None:
    """When the store can't be written the message must not count as received."""
    host = Gateway(rig.channel, failure=OSError("disk full"))
    await rig.say("keep this")
    if rig.hang_up is not None:
        rig.hang_up()
    async with asyncio.timeout(TIMEOUT):
        with pytest.raises(OSError, match="disk full"):
            await rig.channel.run(host)


async def test_channel_turns_a_placeholder_into_the_answer(rig: Rig) -> None:
    """The final edit may be made again after a crash, and must leave one message."""
    if rig.channel.capabilities.stream != "edit":
        pytest.skip("what is shown is not edited here")
    shown = await rig.channel.send(Outbound(id=1, place=rig.place, text="…", turn=1))
    await rig.channel.revise(rig.place, shown, "The **ans")
    for _ in range(2):
        whole = Outbound(id=1, place=rig.place, text="The answer.", turn=1, edits=shown)
        assert await rig.channel.send(whole) == shown
    assert await rig.screen() == "The answer."


async def test_channel_shows_buttons_where_it_says_so(rig: Rig) -> None:
    """A question whose buttons are missing can't be answered by pressing."""
    if not rig.channel.capabilities.buttons:
        pytest.skip("people type here")
    yes = Button(label="Yes", data="y" * 64)
    await rig.channel.send(Outbound(id=1, place=rig.place, text="Really?", buttons=(yes,)))
    assert "Really?" in await rig.screen()


@pytest.mark.parametrize(
    "text", ["short", "a *b* _c_ `d` <e> & [f](g) " * 400, "\U0001f41f" * 5_000, "# Head\n\n- item\n"]
)
async def test_channel_makes_messages_it_can_send(rig: Rig, text: str) -> None:
    """Delivery stores these rows and sends each as it is; what is not Markdown loses no character."""
    for markdown in (True, False):
        chunks = rig.channel.chunks(text, markdown=markdown)
        assert chunks
        for number, chunk in enumerate(chunks):
            row = Outbound(id=number, place=rig.place, text=chunk.text, markup=chunk.markup)
            assert await rig.channel.send(row)
        if not markdown:
            joined = "".join(chunk.text for chunk in chunks)
            assert "".join(joined.split()) == "".join(text.split())


async def test_channel_may_be_asked_to_show_that_it_works(rig: Rig) -> None:
    """Nothing that only decorates an answer may stop it."""
    await rig.channel.typing(rig.place)
    await rig.channel.typing(replace(rig.place, chat="nobody"))


async def test_channel_tells_when_its_platform_last_answered(rig: Rig) -> None:
    """Health is red for a channel to which nothing comes."""
    assert rig.channel.health().trouble == ""
    await rig.say("hello")
    await run(rig, Gateway(rig.channel), messages=1)
    assert rig.channel.health().contact in (None, NOW)
