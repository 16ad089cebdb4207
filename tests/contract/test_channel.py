"""The contract of every channel, run over each of them: the gateway decides by this and never by a platform's name."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from channels.api import ApiChannel, ApiReply
from channels.base import (
    Attachment,
    Button,
    Channel,
    ChannelError,
    ChannelUnavailable,
    CommandSpec,
    File,
    Form,
    Inbound,
    NotTaken,
    Option,
    Outbound,
    Place,
    Reaction,
    Suggestion,
    TooLarge,
    carrying,
    rows,
)
from channels.console import ConsoleChannel, Streams
from channels.discord import DiscordChannel
from channels.supervision import Pace
from channels.telegram import TelegramChannel, Wire
from channels.web import PageItem, WebChannel
from tests.kit.patience import SECONDS, limit, settle, until
from tests.platforms import discord as discords
from tests.platforms.telegram import serving

NOW = 1_700_000_000_000

COMMANDS = (
    CommandSpec(name="help", help="what I can do", translated={"zh": "我会做什么"}, shared=True),
    CommandSpec(name="keep", help="keep it", options=(Option(name="id", help="which", suggests=True),), forms=True),
    CommandSpec(name="let", help="let in", admin=True, private=True, options=(Option(name="who", help="an id"),)),
)
FILE = b"the bytes of a file"
NOTES = carrying("notes.txt", "text/plain", FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The acts of a person beyond talking.

    `attach` sends FILE with some words; `press` presses the button with that data under a message; `keyboard` is the
    data of the buttons under it, row by row.
    """

    attach: Callable[[], Awaitable[object]]
    press: Callable[[str, str], Awaitable[object]]
    keyboard: Callable[[str], Awaitable[list[list[str]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The acts of a test at the other end of a wire, beyond talking.

    `lose` has the next send take effect without an answer; `age` lets so many seconds pass there; `fail` has every
    request fail until `mend`; `lock_out` makes the token worthless.
    """

    lose: Callable[[], Awaitable[object]]
    age: Callable[[float], Awaitable[None]]
    fail: Callable[[], Awaitable[object]]
    mend: Callable[[], Awaitable[None]]
    lock_out: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A channel and the person at its other end: `say` and `hang_up` are theirs, `screen` is what they see.

    `files` are those they were shown, in order: names and bytes. `hang_up` is None where people only fall silent, and
    a run ends with a shutdown. `hands` is None where people can only type, `platform` where there is none. `store` is what hosts keep for the channel.
    """

    channel: Channel
    place: Place
    author: str
    say: Callable[[str], Awaitable[None]]
    hang_up: Callable[[], None] | None
    screen: Callable[[], Awaitable[str]]
    files: Callable[[], Awaitable[list[tuple[str, bytes]]]]
    hands: Hands | None = None
    platform: Platform | None = None
    store: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Gateway:
    """A host that keeps what it is told and, when it has an answer, sends it at once, in place of what was pressed."""

    channel: Channel
    store: dict[str, str]
    answer: str | None = None
    said: list[Inbound] = field(default_factory=list)
    failure: Exception | None = None
    commands: Sequence[CommandSpec] = COMMANDS
    taken: int = 0
    told: asyncio.Event = field(default_factory=asyncio.Event)
    answering: list[asyncio.Task[str]] = field(default_factory=list)

    def admins(self, channel: str) -> Sequence[str]:
        return ()

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        return ()

    async def form(self, inbound: Inbound) -> Form | None:
        return None

    async def stop(self, place: Place) -> bool:
        return False

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        return {name: value for name, value in self.store.items() if name.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            self.store.pop(name, None)
            if value is not None:
                self.store[name] = value

    async def on_inbound(self, inbound: Inbound) -> None:
        self.said.append(inbound)
        self.told.set()
        if self.failure is not None:
            raise self.failure
        if self.answer is not None:
            pressed = inbound.message_id if inbound.pressed is not None else None
            answer = Outbound(
                id=len(self.said), place=inbound.place, text=self.answer, edits=pressed, ticket=inbound.ticket
            )
            # Not awaited: a platform may have to hear first that the message was taken.
            self.answering.append(asyncio.create_task(self.channel.send(answer)))
        self.taken += 1

    async def on_reacted(self, inbound: Inbound, reaction: Reaction, *, kept: bool) -> None:
        raise AssertionError(f"nobody reacted to {inbound.message_id}")

    async def on_previews(self, inbound: Inbound) -> None:
        raise AssertionError(f"nobody resolved the links of {inbound.message_id}")

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        raise AssertionError(f"nobody deleted {message_ids}")

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        raise AssertionError(f"nobody moved {chat}")

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        raise AssertionError(f"nobody came to {chat} or went")

    async def on_rights(
        self, channel: str, chat: str, *, write: bool, threads: Collection[str | None] | None = None
    ) -> None:
        raise AssertionError(f"nobody changed what may be done in {chat}")

    async def settled(self, place: Place) -> None:
        return None

    async def took(self, messages: int) -> None:
        """Until so many messages came, or were refused, and every answer is shown."""
        while len(self.said) < messages:
            self.told.clear()
            await self.told.wait()
        await asyncio.gather(*self.answering)


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
        streams=Streams(
            stdin=cleanup.enter_context(os.fdopen(read_end, encoding="utf-8")),
            stdout=cleanup.enter_context(paper.open("w", encoding="utf-8")),
        ),
        files=folder / "exports",
    )

    async def say(text: str) -> None:
        keyboard.write(f"{text}\n")
        keyboard.flush()

    async def screen() -> str:
        return paper.read_text(encoding="utf-8")

    async def files() -> list[tuple[str, bytes]]:
        printed = map(Path, paper.read_text(encoding="utf-8").splitlines())
        return [(path.name, path.read_bytes()) for path in printed if path.parent == folder / "exports"]

    return Rig(
        channel=channel,
        place=Place(channel="console", chat="ada"),
        author="ada",
        say=say,
        hang_up=keyboard.close,
        screen=screen,
        files=files,
    )


async def telegram(cleanup: AsyncExitStack, _folder: Path) -> Rig:
    """A Telegram bot, its platform, and somebody who has written to it before."""
    platform = await cleanup.enter_async_context(serving())
    ada = 7
    await platform.say("/start", user=ada, name="Ada")
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        # Messages from before the test are not part of it.
        drop = f"{platform.url}/bot{platform.token}/deleteWebhook"
        await client.get(drop, params={"drop_pending_updates": True})
    channel = TelegramChannel(
        id="telegram",
        wire=Wire(platform.token, platform.url),
        now=lambda: NOW,
        pace=Pace(poll_seconds=1, request_seconds=SECONDS),
    )

    async def say(text: str) -> None:
        await platform.say(text, user=ada, sent_at=NOW // 1000)

    async def screen() -> str:
        return "\n".join(await platform.texts(ada))

    async def keyboard(message: str) -> list[list[str]]:
        shown = (await platform.state())["chats"][str(ada)]["messages"]
        [markup] = [one["reply_markup"] for one in shown if str(one["message_id"]) == message]
        return [[button["callback_data"] for button in row] for row in markup["inline_keyboard"]]

    return Rig(
        channel=channel,
        place=Place(channel="telegram", chat=str(ada)),
        author=str(ada),
        say=say,
        hang_up=None,
        screen=screen,
        files=lambda: platform.files(ada),
        hands=Hands(
            attach=lambda: platform.say("look", user=ada, document=FILE, filename="notes.txt"),
            press=lambda message, data: platform.press(int(message), data, chat=ada, user=ada),
            keyboard=keyboard,
        ),
        platform=Platform(
            lose=lambda: platform.fault("reset", at="after effect"),
            age=platform.pass_time,
            fail=lambda: platform.fault("reset", times=0),
            mend=platform.heal,
            lock_out=platform.revoke,
        ),
    )


async def discord(cleanup: AsyncExitStack, _folder: Path) -> Rig:
    """A Discord bot, its platform, and somebody who has written to it before."""
    platform = await cleanup.enter_async_context(discords.serving())
    cleanup.enter_context(discords.reached(platform))
    ada, now = 7, [NOW]
    home = await platform.dm(ada)
    store: dict[str, str] = {}

    def bot() -> DiscordChannel:
        return DiscordChannel(
            id="discord",
            token=platform.token,
            base_url=platform.api_url,
            now=lambda: now[0],
            pace=Pace(request_seconds=SECONDS, sleep=lambda _seconds: asyncio.sleep(0), random=lambda: 0.0),
        )

    async def met() -> None:
        """An earlier run: what was said before the bot's very first session is not meant for it."""
        if store:
            return
        earlier = bot()
        host = Gateway(earlier, store)
        running = asyncio.create_task(earlier.run(host))
        async with limit():
            await hearing(earlier)
            await platform.say("/start", user=ada, name="Ada", sent_at=NOW / 1000 - 60)
            await host.took(1)
        running.cancel()
        await asyncio.wait([running])

    async def say(text: str, **more: Any) -> None:
        await met()
        await platform.say(text, user=ada, sent_at=NOW / 1000, **more)

    async def screen() -> str:
        return "\n".join(await platform.texts(home))

    async def keyboard(message: str) -> list[list[str]]:
        shown = await platform.message(int(message))
        return [[button["custom_id"] for button in row["components"]] for row in shown["components"]]

    async def press(message: str, data: str) -> None:
        now[0] = int(time.time() * 1000)  # for Discord's ids tell the time, and how long one may answer
        await platform.press(int(message), data, user=ada)

    return Rig(
        channel=bot(),
        place=Place(channel="discord", chat=str(home)),
        author=str(ada),
        say=say,
        hang_up=None,
        screen=screen,
        files=lambda: platform.files(home),
        hands=Hands(
            attach=lambda: say("look", attachments=[("notes.txt", FILE, "text/plain")]), press=press, keyboard=keyboard
        ),
        platform=Platform(
            lose=lambda: platform.fault("reset", at="after effect", method="send"),
            age=platform.pass_time,
            fail=lambda: platform.fault("reset", times=0),
            mend=platform.heal,
            lock_out=platform.revoke,
        ),
        store=store,
    )


async def web(cleanup: AsyncExitStack, _folder: Path) -> Rig:
    """The channel of the web page, and somebody with a tab open on it."""
    channel = WebChannel("web-assistant", now=lambda: NOW)
    ada = "telegram.7"
    place = Place(channel=channel.id, chat=ada)
    tab = cleanup.enter_context(channel.tab(place))
    numbers = count(1)
    screen: dict[str, PageItem] = {}
    told: list[str] = []
    saying: set[asyncio.Task[None]] = set()

    def message(text: str, **more: Any) -> Inbound:
        number = next(numbers)
        return Inbound(
            channel=channel.id, platform=channel.platform, bot_id=channel.id, update_key=f"k{number}", chat=ada,
            chat_kind="private", author_id=ada, author_name="Ada", text=text, sent_at=NOW,
            **{"message_id": f"m{number}", **more},
        )  # fmt: skip

    async def hear(inbound: Inbound) -> None:
        try:
            await channel.say(inbound)
        except ChannelError as exc:
            told.append(str(exc))

    async def say(text: str, **more: Any) -> None:
        task = asyncio.create_task(hear(message(text, **more)))
        saying.add(task)
        task.add_done_callback(saying.discard)
        await asyncio.sleep(0)

    async def look() -> list[PageItem]:
        await asyncio.sleep(0)
        while (change := await tab.next(0.01)) is not None:
            screen[change[1].key] = change[1]
        return [item for item in screen.values() if not item.mine]

    async def shown() -> str:
        return "\n".join([*(item.text for item in await look() if item.text), *told])

    async def files() -> list[tuple[str, bytes]]:
        kept = [channel.file(place, item.row) for item in await look() if item.file is not None]
        return [(file.name, file.data) for file in kept if file is not None]

    async def keyboard(key: str) -> list[list[str]]:
        await look()
        return [[button.data for button in row] for row in rows(screen[key].buttons)]

    return Rig(
        channel=channel,
        place=place,
        author=ada,
        say=say,
        hang_up=None,
        screen=shown,
        files=files,
        hands=Hands(
            attach=lambda: say("look", attachments=(NOTES,)),
            press=lambda key, data: say("", message_id=key, pressed=data),
            keyboard=keyboard,
        ),
    )


@dataclass(slots=True)
class Busy(Gateway):
    """A host whose answers take until they are let go."""

    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def settled(self, place: Place) -> None:
        await self.let_go.wait()


async def api(cleanup: AsyncExitStack, _folder: Path) -> Rig:
    """The channel of programs, and one of them, which has a request open until it says something or is looked at."""
    channel = ApiChannel(now=lambda: NOW, harmless=str)
    place = Place(channel=channel.id, chat="key1", thread="assistant.main")
    numbers, busy = count(1), Busy(channel, {})
    to_say: asyncio.Queue[Inbound] = asyncio.Queue()
    replies: list[ApiReply] = []

    def message(text: str, *attached: Attachment) -> Inbound:
        key = f"k{next(numbers)}"
        return Inbound(
            channel=channel.id, platform=channel.platform, bot_id=channel.id, update_key=key, chat=place.chat,
            chat_kind="private", author_id=place.chat, author_name="Ada", message_id=key, text=text, sent_at=NOW,
            thread=place.thread, ticket=key, attachments=attached,
        )  # fmt: skip

    async def ask(inbound: Inbound) -> None:
        """Asks as programs do: once more as long as nobody is there."""

        async def answered() -> bool:
            try:
                replies.append(await channel.ask(inbound))
            except ChannelUnavailable:
                return False
            return True

        await until(answered)

    async def ask_all() -> None:
        while True:
            await ask(await to_say.get())

    async def wait_for_something() -> None:
        busy.let_go.clear()
        running = asyncio.create_task(channel.run(busy))
        await ask(message("anything else?"))
        await until(lambda: channel.reachable(place))
        running.cancel()
        await asyncio.wait([running])

    async def say(text: str, *attached: Attachment) -> None:
        busy.let_go.set()
        to_say.put_nowait(message(text, *attached))

    async def screen() -> str:
        busy.let_go.set()
        for reply in replies:
            await reply.done()
        shown = "\n".join(one for reply in replies if (one := reply.refused or reply.text))
        await wait_for_something()
        return shown

    async def nothing(*_: str) -> list[Any]:
        return []

    asking = asyncio.create_task(ask_all())
    cleanup.callback(asking.cancel)
    cleanup.callback(busy.let_go.set)
    await wait_for_something()
    return Rig(
        channel=channel,
        place=place,
        author=place.chat,
        say=say,
        hang_up=None,
        screen=screen,
        files=nothing,
        hands=Hands(attach=lambda: say("look", NOTES), press=nothing, keyboard=nothing),
    )


@pytest.fixture(params=[console, telegram, discord, web, api], ids=["console", "telegram", "discord", "web", "api"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    """One channel after the other; each builder takes an exit stack and an empty folder."""
    build: Callable[[AsyncExitStack, Path], Awaitable[Rig]] = request.param
    async with AsyncExitStack() as cleanup:
        yield await build(cleanup, tmp_path)


async def hearing(channel: Channel) -> None:
    """Until a running channel has got through to its platform."""
    await until(lambda: not (channel.health().trouble or channel.health().contact is None))


async def run(rig: Rig, host: Gateway, *, messages: int) -> None:
    """Run the channel until the person hangs up, or, where they can't, until so many messages were taken."""
    async with limit():
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
    host = Gateway(rig.channel, rig.store)
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
    host = Gateway(rig.channel, rig.store)
    for text in ("one", "same", "same"):
        await rig.say(text)
    await run(rig, host, messages=3)
    assert [inbound.text for inbound in host.said] == ["one", "same", "same"]
    assert len({inbound.update_key for inbound in host.said}) == 3
    assert len({inbound.message_id for inbound in host.said}) == 3


async def test_channel_shows_a_sent_message_once(rig: Rig) -> None:
    host = Gateway(rig.channel, rig.store, answer="a plain answer")
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
    host = Gateway(rig.channel, rig.store)
    await run(rig, host, messages=0)
    assert host.said == []


async def test_channel_run_ends_when_cancelled(rig: Rig) -> None:
    """A shutdown cancels the run while it waits for the person."""
    running = asyncio.create_task(rig.channel.run(Gateway(rig.channel, rig.store)))
    await settle()  # so it waits, if it is quick; ending must not depend on it
    running.cancel()
    async with limit():
        await asyncio.wait([running])
    assert running.cancelled()
    if rig.hang_up is not None:
        rig.hang_up()


async def test_channel_does_not_hide_that_a_message_was_not_taken(rig: Rig) -> None:
    """When the store can't be written the message must not count as received. The page's others go on meanwhile."""
    host = Gateway(rig.channel, rig.store, failure=OSError("disk full"))
    await rig.say("keep this")
    if rig.hang_up is not None:
        rig.hang_up()
    running = asyncio.create_task(rig.channel.run(host))
    if rig.channel.platform != "web":
        async with limit():
            with pytest.raises(OSError, match="disk full"):
                await running
    if rig.platform is None and rig.hang_up is None:

        async def is_told() -> bool:
            return "The message was not taken" in await rig.screen()

        await until(is_told)
    running.cancel()
    await asyncio.wait([running])


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


async def test_channel_puts_an_edit_in_the_place_of_any_of_its_messages(rig: Rig) -> None:
    """A page that is turned, a question that is answered: the message changes, and its buttons with it."""
    if rig.channel.capabilities.stream != "edit":
        pytest.skip("what is shown is not edited here")
    shown = await rig.channel.send(
        Outbound(id=1, place=rig.place, text="page 1", buttons=(Button(label="›", data="to:2"),))
    )
    back = Button(label="‹", data="to:1")
    again = Outbound(id=2, place=rig.place, text="page 2", edits=shown, buttons=(back,))
    assert await rig.channel.send(again) == shown
    assert await rig.screen() == "page 2"
    if rig.channel.capabilities.buttons:
        assert await _hands(rig).keyboard(shown) == [["to:1"]]


async def test_channel_lays_buttons_in_rows_and_brings_back_what_is_pressed(rig: Rig) -> None:
    """A question whose buttons are missing can't be answered; one whose data is cut is answered wrongly."""
    if not rig.channel.capabilities.buttons:
        pytest.skip("people type here")
    buttons = [Button(label=f"choice {n}", data=f"{n}" + "y" * 63) for n in range(7)]
    shown = await rig.channel.send(Outbound(id=1, place=rig.place, text="Which?", buttons=tuple(buttons)))
    laid = [[button.data for button in row] for row in rows(buttons)]
    assert len(laid) > 1
    assert await _hands(rig).keyboard(shown) == laid

    host = Gateway(rig.channel, rig.store, answer="You chose 5.")
    running = asyncio.create_task(rig.channel.run(host))
    async with limit():
        await hearing(rig.channel)
        await _hands(rig).press(shown, buttons[5].data)
        await host.took(1)
    running.cancel()
    await asyncio.wait([running])
    [pressed] = host.said
    assert (pressed.pressed, pressed.text, pressed.message_id) == (buttons[5].data, "", shown)
    assert (pressed.author_id, pressed.place) == (rig.author, rig.place)
    assert Inbound.from_json(pressed.to_json()) == pressed
    assert await rig.screen() == "You chose 5."


async def test_channel_does_not_show_twice_a_row_whose_fate_was_unknown(rig: Rig) -> None:
    """A message that may have been shown is told so; where its row is known again, resending is safe, even later."""
    if rig.platform is None:
        pytest.skip("nothing comes between the channel and its screen")
    for number, seconds in enumerate((0.0, 900.0), start=1):
        # The platform grows older, the channel's clock does not: so the row is that much older.
        made_at = NOW - round(seconds * 1_000)
        row = Outbound(id=number, place=rig.place, text=f"answer {number}", made_at=made_at)
        await rig.platform.lose()
        with pytest.raises(ChannelError) as caught:
            await rig.channel.send(row)
        assert not caught.value.certain
        await rig.platform.age(seconds)
        if rig.channel.capabilities.resend == "same":
            assert await rig.channel.send(replace(row, retried=True))
        assert (await rig.screen()).count(f"answer {number}") == 1


async def test_channel_shows_a_file_with_its_text_once(rig: Rig) -> None:
    """A file that somebody asked for, such as all that is remembered of them, arrives byte for byte."""
    if not rig.channel.capabilities.file_bytes:
        pytest.skip("only words are shown here")
    data = "# Ada\n- likes tea \U0001f375\r\n".encode() + bytes(range(256))
    row = Outbound(
        id=1, place=rig.place, text="Here it is.", file=File(name="memories 记忆.md", data=data), made_at=NOW
    )
    assert len(data) < 1_000_000 < rig.channel.capabilities.file_bytes
    shown = await rig.channel.send(row)
    assert shown
    assert (await rig.screen()).count("Here it is.") == 1
    assert await rig.files() == [("memories 记忆.md", data)]
    alone = replace(row, id=2, text="", file=File(name="list.json", data=b"[]"))
    assert await rig.channel.send(alone) != shown
    assert await rig.files() == [("memories 记忆.md", data), ("list.json", b"[]")]


async def test_channel_refuses_a_file_that_is_larger_than_it_says(rig: Rig) -> None:
    if rig.platform is None:
        pytest.skip("there is room for what fits into memory")
    file = File(name="all.zip", data=bytes(rig.channel.capabilities.file_bytes + 1))
    with pytest.raises(TooLarge, match=r"all\.zip has") as refused:
        await rig.channel.send(Outbound(id=1, place=rig.place, text="Here", file=file, made_at=NOW))
    assert refused.value.certain
    assert await rig.screen() == ""


async def test_channel_does_not_show_a_file_twice_whose_fate_was_unknown(rig: Rig) -> None:
    """As with words: known again, or told to be in doubt."""
    if rig.platform is None:
        pytest.skip("nothing comes between the channel and its screen")
    for number, seconds in enumerate((0.0, 900.0), start=1):
        file = File(name=f"file {number}.md", data=b"x" * number)
        row = Outbound(id=number, place=rig.place, text="", file=file, made_at=NOW - round(seconds * 1_000))
        await rig.platform.lose()
        with pytest.raises(ChannelError) as caught:
            await rig.channel.send(row)
        assert not caught.value.certain
        await rig.platform.age(seconds)
        if rig.channel.capabilities.resend == "same":
            assert await rig.channel.send(replace(row, retried=True))
        assert len(await rig.files()) == number


async def test_channel_links_to_messages_without_asking_anybody(rig: Rig) -> None:
    """Told beside each thing that is remembered: it may be wrong of no place, and fails for none."""
    if rig.platform is not None:
        await rig.platform.fail()
    for place in (
        rig.place,
        replace(rig.place, chat="nobody"),
        replace(rig.place, thread="x"),
        replace(rig.place, chat=""),
    ):
        for message in ("1", "", "no id", "0.5"):
            link = rig.channel.link(place, message)
            assert link is None or link.startswith("https://")


async def test_channel_hands_over_files_that_can_be_fetched_after_a_restart(rig: Rig) -> None:
    """The bytes are fetched by what stands in the mailbox, and never more of them than allowed."""
    if rig.hands is None:
        pytest.skip("there are no files here")
    host = Gateway(rig.channel, rig.store)
    await rig.hands.attach()
    await run(rig, host, messages=1)
    inbound = Inbound.from_json(host.said[0].to_json())
    assert inbound == host.said[0]
    [found] = inbound.attachments
    assert (inbound.text, found.kind, found.name) == ("look", "file", "notes.txt")
    assert await rig.channel.fetch(inbound, found, limit=len(FILE)) == FILE
    for most in (len(FILE) - 1, 0):
        with pytest.raises(TooLarge):
            await rig.channel.fetch(inbound, found, limit=most)
        with pytest.raises(TooLarge):
            await rig.channel.fetch(inbound, replace(found, size=None), limit=most)


async def test_channel_refuses_to_fetch_what_has_no_bytes(rig: Rig) -> None:
    """Whatever stands in an old row, the one error that is expected comes of it."""
    inbound = Inbound(
        channel=rig.channel.id,
        platform=rig.channel.platform,
        bot_id="1",
        update_key="1",
        chat=rig.place.chat,
        chat_kind="private",
        author_id=rig.author,
        author_name="Ada",
        message_id="1",
        text="",
        sent_at=NOW,
    )
    for reference in ("", "nonsense", "{}", '{"url": 1}', "\0"):
        with pytest.raises(ChannelError):
            await rig.channel.fetch(inbound, Attachment(kind="file", name="a", reference=reference), limit=1_000)


TEXTS = {
    "short": "short",
    "marks": "a *b* _c_ `d` <e> & [f](g) " * 400,
    "fish": "\U0001f41f" * 5_000,
    "head": "# Head\n\n- item\n",
    "fence": "```python\n" + "print('```')\n" * 600 + "```",
    "open fence": "````\n" + "x" * 9_000,
    "table": "|a|b|\n|-|-|\n" + "|**1**|`2`|\n" * 700,
    "nested": "\n".join("  " * (n % 9) + f"- _item_ **{n}**" for n in range(600)),
    "quotes": ">" * 300 + " deep\n" * 500,
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 900,
    "accents": "e\u0301\u0302" * 3_000,
    "arabic": "\u202e\u0645\u0631\u062d\u0628\u0627 **x** " * 600,
    "pings": "@everyone <@1> <#2> @remora_test_bot " * 200,
    "links": "[a](https://example.org/" + "p" * 3_000 + ") " * 3,
    "blank": " \n\t\n ",
    "nothing": "",
}


async def test_channel_makes_messages_it_can_send(rig: Rig) -> None:
    """Delivery stores these rows and sends each as it is; what is not Markdown loses no character."""
    for name, text in TEXTS.items():
        for markdown in (True, False):
            chunks = rig.channel.chunks(text, markdown=markdown)
            assert chunks, name
            if not text.strip():
                continue  # nobody has said that nothing can be shown
            for number, chunk in enumerate(chunks):
                row = Outbound(id=number, place=rig.place, text=chunk.text, markup=chunk.markup, made_at=NOW)
                assert await rig.channel.send(row), name
            if not markdown:
                # A platform may need more characters, to show those of the text as they are.
                shown = iter("".join(chunk.text for chunk in chunks))
                assert all(letter in shown for letter in text if not letter.isspace()), name


async def test_channel_may_be_asked_to_show_that_it_works(rig: Rig) -> None:
    """Nothing that only decorates an answer may stop it, also while the platform is down."""
    shown = "1"
    if rig.channel.capabilities.stream == "edit":
        shown = await rig.channel.send(Outbound(id=1, place=rig.place, text="…"))
    if rig.platform is not None:
        await rig.platform.fail()
    for place in (rig.place, replace(rig.place, chat="nobody"), replace(rig.place, chat="5")):
        await rig.channel.typing(place)
        if rig.channel.capabilities.stream == "edit":
            await rig.channel.revise(place, shown, "The **ans")
            await rig.channel.revise(place, "no id", "The **answ")
    if rig.platform is not None:
        await rig.platform.mend()
        assert await rig.screen() == "…"


async def test_channel_gives_a_message_again_that_was_not_taken(rig: Rig) -> None:
    """A store that can't be written for a while costs time, and nothing else; a person at a terminal is told."""
    refusing = Gateway(rig.channel, rig.store, failure=NotTaken("the disk is full"))
    await rig.say("keep this")
    await run(rig, refusing, messages=1)
    if rig.platform is None:
        assert "the disk is full" in await rig.screen()
        return
    taking = Gateway(rig.channel, rig.store)
    await run(rig, taking, messages=1)
    assert {inbound.update_key for inbound in refusing.said} == {taking.said[0].update_key}
    assert taking.said[0].text == "keep this"


async def test_channel_that_is_not_let_in_says_so(rig: Rig) -> None:
    """Only the operator can help, and health is where they look; what is to be shown meanwhile was surely not shown."""
    if rig.platform is None:
        pytest.skip("there is nobody to let it in")
    await rig.platform.lock_out()
    with pytest.raises(ChannelError) as caught:
        async with limit():
            await rig.channel.run(Gateway(rig.channel, rig.store))
    assert rig.channel.health().trouble == str(caught.value)
    with pytest.raises(ChannelError) as refused:
        await rig.channel.send(Outbound(id=1, place=rig.place, text="hello"))
    assert refused.value.certain


async def test_channel_that_can_not_reach_its_platform_says_so(rig: Rig) -> None:
    """An outage is no refusal: it is tried again, and health is red until it is over."""
    if rig.platform is None:
        pytest.skip("there is no platform to reach")
    await rig.platform.fail()
    running = asyncio.create_task(rig.channel.run(Gateway(rig.channel, rig.store)))
    await until(lambda: not (not rig.channel.health().trouble or "ended" in rig.channel.health().trouble))
    running.cancel()
    [ended] = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError) or (isinstance(ended, ChannelError) and ended.retryable)
    await rig.platform.mend()
    await rig.say("hello")
    host = Gateway(rig.channel, rig.store)
    await run(rig, host, messages=1)
    assert [inbound.text for inbound in host.said] == ["hello"]


async def test_channel_tells_when_its_platform_last_answered(rig: Rig) -> None:
    """Health is red for a channel to which nothing comes."""
    assert rig.channel.health().trouble == ""
    await rig.say("hello")
    await run(rig, Gateway(rig.channel, rig.store), messages=1)
    assert rig.channel.health().contact in (None, NOW)


def _hands(rig: Rig) -> Hands:
    assert rig.hands is not None
    return rig.hands
