"""The Telegram channel beyond text: files, albums, menus, rows of buttons, drafts, and updates over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from channels.base import (
    Attachment,
    Button,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    CommandSpec,
    Inbound,
    NotTaken,
    Place,
    TooLarge,
)
from channels.telegram import TelegramChannel, Webhook
from channels.telegram.updates import album_of, chat_of, gathered
from tests.kit.fakes import Clock
from tests.kit.patience import SECONDS, limit, settle, until
from tests.kit.telegram_bot import ADA, BOT, GROUP, Host, Sleep, bot, given_up, known, place, row, running, shown
from tests.platforms.telegram import Control, File, serving

SECRET = "a-secret-of-this-test"
URL = "https://bot.example.org/hooks"


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with serving() as control:
        yield control


@asynccontextmanager
async def heard(telegram: Control, **options: Any) -> AsyncIterator[tuple[TelegramChannel, Host]]:
    """A channel that receives while the block runs, and what it tells its host."""
    channel, host = bot(telegram, **options), Host()
    async with running(channel, host):
        yield channel, host


# Attachments.


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            File(kind="voice", data=b"ogg"),
            Attachment(kind="audio", name="voice message", media_type="audio/ogg", size=3, spoken=True),
        ),
        (
            File(kind="document", data=b"%PDF", filename="Report.pdf"),
            Attachment(kind="file", name="Report.pdf", media_type="application/pdf", size=4),
        ),
        (
            File(kind="document", data=b"\x89PNG", filename="cat.png"),
            Attachment(kind="image", name="cat.png", media_type="image/png", size=4),
        ),
        (
            File(kind="audio", data=b"mp3", filename="song.mp3"),
            Attachment(kind="audio", name="song.mp3", media_type="audio/mpeg", size=3),
        ),
        (File(kind="video", data=b"mp4"), Attachment(kind="video", name="video", media_type="video/mp4", size=3)),
        (
            File(kind="video_note", data=b"mp4"),
            Attachment(kind="video", name="video note", media_type="video/mp4", size=3),
        ),
        (
            File(kind="animation", data=b"mp4"),
            Attachment(kind="video", name="animation", media_type="video/mp4", size=3),
        ),
        (
            File(kind="document", data=b"x", filename="a.txt", size_told=False),
            Attachment(kind="file", name="a.txt", media_type="text/plain"),
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, File) else "",
)
async def test_file_comes_with_what_telegram_says_of_it_and_can_be_fetched(
    telegram: Control, file: File, expected: Attachment
) -> None:
    """A file nobody can name or read is lost on the person who sent it."""
    async with heard(telegram) as (channel, host):
        await telegram.say(user=ADA, file=replace(file, text="look"))
        [inbound] = await host.hears()
        [found] = inbound.attachments
        assert (inbound.text, replace(found, reference="")) == ("look", expected)
        assert await channel.fetch(inbound, found, limit=100) == file.data
        assert Inbound.from_json(inbound.to_json()) == inbound


@pytest.mark.parametrize(("pixels", "size"), [((640, 480), b"whole"), ((2560, 1920), b"1280x960")])
async def test_photo_comes_in_the_largest_size_a_model_has_use_for(
    telegram: Control, pixels: tuple[int, int], size: bytes
) -> None:
    """Beyond two million pixels it only costs."""
    async with heard(telegram) as (channel, host):
        await telegram.say(user=ADA, file=File(kind="photo", data=b"whole", pixels=pixels))
        [inbound] = await host.hears()
        [photo] = inbound.attachments
        assert (photo.kind, photo.media_type, inbound.text) == ("image", "image/jpeg", "")
        assert await channel.fetch(inbound, photo, limit=1_000) == size


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        ({"location": (52.52, 13.4)}, "location 52.52, 13.4"),
        ({"venue": "The Reef"}, "venue The Reef"),
        ({"contact": "Grace"}, "contact Grace"),
        ({"poll": "Tea or\n coffee?"}, "poll: Tea or coffee?"),
        ({"dice": "🎲"}, "dice 🎲"),
        ({"file": File(kind="sticker", data=b"RIFF", emoji="😀")}, "sticker 😀"),
        ({"poll": "x" * 300}, f"poll: {'x' * 93}…"),
    ],
)
async def test_what_has_no_bytes_is_told_in_a_few_words(telegram: Control, thing: dict[str, Any], name: str) -> None:
    """A model can answer to "location 52.52, 13.4", and not to silence."""
    async with heard(telegram) as (channel, host):
        await telegram.say(user=ADA, **thing)
        [inbound] = await host.hears()
        [found] = inbound.attachments
        assert found.kind == "other"
        assert found.name.startswith(name)
        assert (found.reference, inbound.text) == ("", "")
        with pytest.raises(ChannelError, match="no bytes"):
            await channel.fetch(inbound, found, limit=100)


async def test_too_large_file_is_refused_before_and_while_it_comes(telegram: Control) -> None:
    """A gigabyte must not be read into memory to learn that it is one."""
    async with heard(telegram) as (channel, host):
        await telegram.say(user=ADA, document=b"x" * 2_000)
        [inbound] = await host.hears()
        [found] = inbound.attachments
        with pytest.raises(TooLarge):
            await channel.fetch(inbound, found, limit=1_999)
        assert await telegram.requests("getFile") == []
        with pytest.raises(TooLarge):
            await channel.fetch(inbound, replace(found, size=None), limit=1_999)
        assert len(await channel.fetch(inbound, found, limit=2_000)) == 2_000
        # Telegram does not say how large every file is.
        await telegram.say(user=ADA, file=File(kind="document", data=b"x" * 200_000, size_told=False))
        unsized = (await host.hears(2))[1]
        with pytest.raises(TooLarge):
            await channel.fetch(unsized, unsized.attachments[0], limit=100_000)
        await telegram.say(user=ADA, file=File(kind="video", data=b"x", file_size=21 * 1024 * 1024, size_told=False))
        huge = (await host.hears(3))[2]
        with pytest.raises(TooLarge):
            await channel.fetch(huge, huge.attachments[0], limit=10**9)


async def test_file_that_does_not_come_tells_why_and_keeps_the_token(
    telegram: Control, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address of a file holds the token."""
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    async with heard(telegram) as (channel, host):
        await telegram.say(user=ADA, document=b"x" * 5_000)
        [inbound] = await host.hears()
        [found] = inbound.attachments

        async def failing(expected: type[ChannelError], reference: str = found.reference) -> None:
            with pytest.raises(ChannelError) as caught:
                await channel.fetch(inbound, replace(found, reference=reference), limit=10_000)
            assert type(caught.value) is expected
            # With the variables of every frame below this one, as some loggers show them.
            below = caught.value.with_traceback(caught.tb.tb_next)
            told.extend(traceback.TracebackException.from_exception(below, capture_locals=True).format())

        await failing(ChannelError, "no-such-file")
        for do in ("reset", "close", "cut", "hang", "status"):
            await telegram.fault(do, method="download", times=2)  # the HTTP client repeats a lost GET once
            await given_up(telegram, "download", failing(ChannelUnavailable))
            await telegram.heal()
        await telegram.fault("drip", method="download", seconds=100 * SECONDS)
        await given_up(telegram, "download", failing(ChannelUnavailable))
        await telegram.fault("flood", method="getFile", retry_after=1)
        with pytest.raises(ChannelUnavailable, match="wait"):
            await channel.fetch(inbound, found, limit=10_000)
    secret = telegram.token.partition(":")[2]
    assert secret not in "".join([*told, caplog.text, *capsys.readouterr()])


# Albums.


def photos(*captions: str) -> list[File]:
    return [File(kind="photo", data=b"p%d" % number, text=text) for number, text in enumerate(captions)]


async def test_album_is_one_message(telegram: Control) -> None:
    """Four pictures and a question about them are one turn, in the order in which they were laid out."""
    async with heard(telegram) as (channel, host):
        sent = await telegram.album(photos("", "which is best?", ""), user=ADA)
        [inbound] = await host.hears()
        assert inbound.text == "which is best?"
        first = sent.parts[0]
        assert inbound.message_id == str(first.message_id)
        assert inbound.update_key == f"{first.update_id}-{ADA}-{first.message_id}+3"
        assert [await channel.fetch(inbound, one, limit=100) for one in inbound.attachments] == [b"p0", b"p1", b"p2"]
        await telegram.wait(delivered=True)
    assert len(host.said) == 1


async def test_album_that_comes_in_pieces_is_waited_for(telegram: Control) -> None:
    """Telegram answers a poll when the first part is there; nothing is confirmed before all are committed."""
    waiting, more = asyncio.Event(), asyncio.Event()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        waiting.set()
        await more.wait()

    await telegram.say("before", user=8)
    await telegram.say("see", user=ADA, photo=b"p0", media_group="g1")
    async with heard(telegram, sleep=sleep) as (_, host), limit():
        await waiting.wait()
        assert [one.text for one in host.said] == ["before"]
        await telegram.say("between", user=8)
        await telegram.say(user=ADA, photo=b"p1", media_group="g1")
        more.set()
        said = await host.hears(3)
        await telegram.wait(delivered=True)
    assert waits == [0.5]
    assert [(one.text, len(one.attachments)) for one in said] == [("before", 0), ("see", 2), ("between", 0)]


async def test_album_is_not_confirmed_before_all_of_it_is_taken(telegram: Control) -> None:
    """A process killed while it waits for the rest must get all of the album again."""
    waiting = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    await telegram.say("before", user=8)
    await telegram.say("see", user=ADA, photo=b"p0", media_group="g1")
    async with heard(telegram, sleep=sleep), limit():
        await waiting.wait()
    await telegram.say(user=ADA, photo=b"p1", media_group="g1")
    async with heard(telegram) as (_, host):
        said = await host.hears(2)
    assert [(one.text, len(one.attachments)) for one in said] == [("before", 0), ("see", 2)]


async def test_albums_that_come_interleaved_are_told_apart(telegram: Control) -> None:
    """Two people send at the same time; nobody's picture may end in the other's message."""
    for number in range(3):
        for user, group in ((ADA, "a"), (8, "b")):
            await telegram.say(f"{group}{number}" if number == 1 else "", user=user, photo=b"p", media_group=group)
    await telegram.say("last", user=ADA)
    async with heard(telegram) as (_, host):
        said = await host.hears(3)
        await telegram.wait(delivered=True)
    assert [(one.author_id, one.text, len(one.attachments)) for one in said] == [
        (str(ADA), "a1", 3),
        ("8", "b1", 3),
        (str(ADA), "last", 0),
    ]


async def test_part_that_comes_late_is_a_message_of_its_own_for_whom_the_album_was(telegram: Control) -> None:
    """A slow upload must not be lost, in a group neither, where it has no words that name the bot."""
    async with heard(telegram) as (_, host):
        await telegram.say(f"{BOT} look", user=ADA, chat=GROUP, photo=b"p0", media_group="g")
        await telegram.say("", user=ADA, chat=GROUP, photo=b"p1", media_group="g")
        await host.hears(1)
        await telegram.wait(delivered=True)
        late = await telegram.say("", user=ADA, chat=GROUP, photo=b"p2", media_group="g")
        second = (await host.hears(2))[1]
        await telegram.say("", user=ADA, chat=GROUP, photo=b"p3", media_group="another")
        third = (await host.hears(3))[2]
    assert (host.said[0].text, len(host.said[0].attachments), host.said[0].addressed) == ("look", 2, True)
    assert (second.message_id, len(second.attachments), second.addressed) == (str(late.message_id), 1, True)
    assert not third.addressed


async def test_album_that_was_not_taken_comes_again_whole(telegram: Control) -> None:
    """And under the same key, by which the inbox knows it."""
    host = Host(refusals=[NotTaken("the disk is full")])
    await telegram.album(photos("x", ""), user=ADA)
    async with running(bot(telegram, sleep=Sleep()), host):
        said = await host.hears(2)
        await telegram.wait(delivered=True)
    assert said[0] == said[1]
    assert len(said[0].attachments) == 2


async def test_album_that_comes_again_with_a_late_part_is_the_same_message_and_one_more(telegram: Control) -> None:
    """A process that died before it confirmed an album must neither answer it twice nor lose what came since."""

    class Dying(Host):
        async def on_inbound(self, inbound: Inbound) -> None:
            await super().on_inbound(inbound)
            await asyncio.Event().wait()

    host = Dying()
    await telegram.say("see", user=ADA, photo=b"p0", media_group="g1")
    await telegram.say(user=ADA, photo=b"p1", media_group="g1")
    async with running(bot(telegram, sleep=Sleep()), host):
        [first] = await host.hears()
    late = await telegram.say(user=ADA, photo=b"p2", media_group="g1")
    again = Host(memory=host.memory)
    async with running(bot(telegram, sleep=Sleep()), again):
        said = await again.hears(2)
        await telegram.wait(delivered=True)
    assert said[0] == first
    assert len(first.attachments) == 2
    assert (said[1].message_id, len(said[1].attachments)) == (str(late.message_id), 1)
    assert len(again.said) == 2


async def test_edited_caption_belongs_to_the_album(telegram: Control) -> None:
    """The stored message is known by the first part's id; a part without words has nothing to correct."""
    async with heard(telegram) as (_, host):
        sent = await telegram.album(photos("one", "", ""), user=ADA)
        await host.hears(1)
        ids = [part.message_id for part in sent.parts]
        await telegram.edit(ids[0], "two", chat=ADA)
        await telegram.edit(ids[1], "three", chat=ADA)
        await telegram.edit(ids[2], "", chat=ADA)
        await telegram.say("after", user=ADA)
        said = await host.hears(4)
    assert [(one.text, one.edited, one.message_id) for one in said[1:3]] == [
        ("two", True, str(ids[0])),
        ("three", True, str(ids[0])),
    ]
    assert said[3].text == "after"


# The menu.

COMMANDS = (
    CommandSpec(name="help", help="what I can do", translated={"zh": "我能做什么", "de-x": "never"}),
    CommandSpec(name="link", help="join chats", translated={"zh": "连接"}, private=True),
    CommandSpec(name="allow", help="let in", admin=True),
)


async def offered(telegram: Control, channel: TelegramChannel, host: Host) -> None:
    async with running(channel, host):
        await telegram.wait(polling=True)
        await telegram.wait(idle=0.2)


async def test_everybody_is_offered_what_they_may_do_where_they_are(telegram: Control) -> None:
    """A command that is refused wherever it is typed teaches people that the bot is broken."""
    await known(telegram)
    host = Host(commands=COMMANDS, trusted=[str(ADA), "12345", "not-a-number"])
    await offered(telegram, bot(telegram), host)
    assert list(await telegram.menu(8)) == ["help", "link"]
    assert list(await telegram.menu(8, chat=GROUP)) == ["help"]
    assert list(await telegram.menu(ADA)) == ["help", "link", "allow"]
    assert await telegram.menu(8, language="zh-hans") == {"help": "我能做什么", "link": "连接"}
    assert await telegram.menu(ADA, language="zh") == {"help": "我能做什么", "link": "连接", "allow": "let in"}
    assert (await telegram.menu(8, language="de"))["help"] == "what I can do"


async def test_menu_is_sent_only_when_it_changed(telegram: Control) -> None:
    """Telegram limits these requests, and a bot that crashes in a loop would use them up."""
    await known(telegram)
    host = Host(commands=COMMANDS, trusted=[str(ADA)])
    await offered(telegram, bot(telegram), host)
    sent = len(await telegram.requests("setMyCommands"))
    assert sent == 6
    await offered(telegram, bot(telegram), host)
    assert len(await telegram.requests("setMyCommands")) == sent
    host.commands = (*COMMANDS, CommandSpec(name="block", help="shut out", admin=True))
    await offered(telegram, bot(telegram), host)
    assert len(await telegram.requests("setMyCommands")) == sent + 2
    assert "block" in await telegram.menu(ADA)
    host.trusted = []
    await offered(telegram, bot(telegram), host)
    assert list(await telegram.menu(ADA)) == ["help", "link"]


async def test_menu_that_is_refused_keeps_nobody_from_talking(telegram: Control) -> None:
    """Typed commands work without it; the next start tries again."""
    host = Host(commands=COMMANDS)
    await telegram.fault("status", method="setMyCommands")
    async with running(bot(telegram), host):
        await telegram.wait(method="setMyCommands")
        await telegram.say("hello", user=ADA)
        await host.hears()
    assert host.memory == {}
    await offered(telegram, bot(telegram), host)
    assert list(await telegram.menu(8)) == ["help", "link"]


async def test_lists_that_were_sent_before_one_failed_are_not_sent_again(telegram: Control) -> None:
    """Else a list that always fails makes every start send all the others."""
    await known(telegram)
    host = Host(commands=COMMANDS, trusted=[str(ADA)])
    await telegram.fault("status", method="setMyCommands", nth=3)
    await offered(telegram, bot(telegram), host)
    await offered(telegram, bot(telegram), host)
    sent = await telegram.requests("setMyCommands")
    assert len(sent) == 3 + 4
    assert list(await telegram.menu(ADA)) == ["help", "link", "allow"]


async def test_menu_is_not_offered_beyond_the_end_of_the_run(telegram: Control) -> None:
    """The next run may have other commands, and nothing of ours goes on after a shutdown."""
    await telegram.fault("hang", method="setMyCommands")
    async with running(bot(telegram), Host(commands=COMMANDS)):
        await telegram.wait(polling=True)
        await until(lambda: telegram.requests("setMyCommands"))
    await telegram.heal()
    await telegram.wait(idle=0.3)
    assert len(await telegram.requests("setMyCommands")) == 1


# Buttons.


async def test_buttons_stand_in_rows_that_fit(telegram: Control) -> None:
    """Telegram cuts labels that don't fit into their row."""
    await known(telegram)
    buttons = tuple(Button(label=label, data=label) for label in ("Yes", "No", "Remove this memory for ever", "Back"))
    await bot(telegram).send(row("Well?", buttons=buttons))
    keyboard = (await shown(telegram))["reply_markup"]["inline_keyboard"]
    assert [[button["text"] for button in line] for line in keyboard] == [
        ["Yes", "No"],
        ["Remove this memory for ever"],
        ["Back"],
    ]


async def test_answer_to_a_press_takes_the_place_of_what_was_pressed(telegram: Control) -> None:
    """A question that was answered must not invite to be answered again."""
    async with heard(telegram) as (channel, host):
        await known(telegram)
        question = await channel.send(row("Sure?", buttons=(Button(label="Yes", data="y"),)))
        await telegram.press(int(question), label="Yes", chat=ADA, user=ADA)
        pressed = (await host.hears(2))[1]
        next_question = (Button(label="Undo", data="u"),)
        assert await channel.send(row("Done.", edits=pressed.message_id, buttons=next_question)) == question
        assert (await shown(telegram))["reply_markup"]["inline_keyboard"][0][0]["text"] == "Undo"
        await channel.send(row("Undone.", edits=pressed.message_id))
    message = await shown(telegram)
    assert (message["text"], "reply_markup" in message) == ("Undone.", False)
    assert await telegram.texts(ADA) == ["Undone."]


# Drafts.


async def test_answer_grows_as_a_draft_in_private_chats_only(telegram: Control) -> None:
    """A draft needs no placeholder, and leaves nothing behind when the process is killed."""
    await known(telegram)
    clock = Clock()
    channel = bot(telegram, stream="draft", now=clock)
    assert (channel.drafts(place()), channel.drafts(place(GROUP))) == (True, False)
    assert not bot(telegram).drafts(place())
    for text in ("The", "The **ans**", "The **ans**"):
        clock.move(minutes=2 / 60)
        await channel.revise(place(), "17", text)
    assert await telegram.drafts(ADA) == ["The", "The ans"]
    clock.move(minutes=20 / 60)
    await channel.revise(place(), "17", "The **ans**")
    assert len(await telegram.drafts(ADA)) == 3  # before the first vanishes after 30 s
    await channel.send(row("The answer."))
    assert await telegram.drafts(ADA, standing=True) == []
    assert await telegram.texts(ADA) == ["The answer."]


async def test_refused_draft_ends_drafts_and_edits_no_message_by_a_turns_number(telegram: Control) -> None:
    """The number that the gateway goes on to give is a turn's; a message with this id has other words."""
    await known(telegram)
    await telegram.allow_drafts(allowed=False)
    clock = Clock()
    channel = bot(telegram, stream="draft", now=clock)
    old = await channel.send(row("an old answer"))
    for place_, turn in ((place(), old), (place(), "999")):
        clock.move(minutes=1)
        await channel.revise(place_, turn, "half of a new one")
    assert not channel.drafts(place())
    clock.move(minutes=1)
    await channel.revise(place(), old, "half of a new one, and more")
    assert await telegram.texts(ADA) == ["an old answer"]
    placeholder = await channel.send(row("…"))
    clock.move(minutes=1)
    await channel.revise(place(), placeholder, "half of")
    assert await telegram.texts(ADA) == ["an old answer", "half of"]


async def test_draft_raises_nothing(telegram: Control) -> None:
    """A growing answer goes on whatever the platform says."""
    clock = Clock()
    channel = bot(telegram, stream="draft", now=clock)
    await channel.revise(place(), "1", "to somebody who never wrote")
    assert channel.drafts(place())
    await known(telegram)
    await telegram.fault("flood", method="sendMessageDraft", retry_after=3)
    for reference in ("2", "nonsense"):
        clock.move(minutes=1)
        await channel.revise(place(), reference, "hello")
    assert channel.drafts(place())
    await channel.revise(Place(channel="telegram", chat="somewhere"), "1", "nobody")


# Updates over HTTP.


@asynccontextmanager
async def hooked(
    telegram: Control, host: Host, **options: Any
) -> AsyncIterator[tuple[TelegramChannel, httpx.AsyncClient, str]]:
    """The channel with its hook on a server, which Telegram reaches; a client, and the hook's address for it."""
    channel = bot(telegram, webhook=Webhook(url=URL, secret=SECRET), **options)
    hook = channel.hook()
    assert hook is not None

    async def take(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not hook.is_genuine(headers):
            return web.Response(status=401)
        return web.Response(status=await hook.take(headers, await request.read()))

    application = web.Application(client_max_size=hook.limit)
    application.router.add_post(f"/hooks{hook.path}", take)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await telegram.webhook(base)
        async with httpx.AsyncClient(timeout=SECONDS) as client, running(channel, host):
            await telegram.wait(method="setWebhook")
            yield channel, client, f"{base}/hooks{hook.path}"
    finally:
        await runner.cleanup()


def pushed(text: str = "hello", update_id: int = 1) -> dict[str, Any]:
    chat = {"id": ADA, "type": "private", "first_name": "Ada"}
    sender = {"id": ADA, "is_bot": False, "first_name": "Ada"}
    message = {"message_id": 1, "date": 1_700_000_000, "chat": chat, "from": sender, "text": text}
    return {"update_id": update_id, "message": message}


def secret(text: str = SECRET) -> dict[str, str]:
    return {"x-telegram-bot-api-secret-token": text}


async def test_update_comes_over_http_as_it_would_by_polling(telegram: Control) -> None:
    host = Host()
    async with hooked(telegram, host) as (channel, _, _url):
        said = await telegram.say("hello", user=ADA)
        [inbound] = await host.hears()
        await telegram.wait(delivered=True)
        assert channel.health().contact is not None
        assert channel.health().trouble == ""
    assert inbound.update_key == f"{said.update_id}-{ADA}-{said.message_id}"
    state = (await telegram.state())["webhook"]
    assert state["url"] == f"{URL}/telegram/telegram"  # and it stays
    assert (state["secret"], state["max_connections"]) == (SECRET, 40)
    assert "run has ended" in channel.health().trouble
    assert await telegram.requests("getUpdates") == []


async def test_stranger_is_turned_away(telegram: Control) -> None:
    """Who knows the address must not be able to speak in anybody's name."""
    host = Host()
    async with hooked(telegram, host) as (_, client, url):
        for headers in (
            {},
            secret(""),
            secret("wrong"),
            secret(f"{SECRET}x"),
            {"x-telegram-bot-api-secret-token": "é"},
        ):
            raw = [(name.encode(), value.encode()) for name, value in headers.items()]
            assert (await client.post(url, json=pushed(), headers=raw)).status_code == 401
        assert (await client.post(url, json=pushed(), headers=secret())).status_code == 200
    assert len(host.said) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"update_id": "1"}'])
async def test_what_is_no_update_is_refused(telegram: Control, body: bytes) -> None:
    async with hooked(telegram, Host()) as (_, client, url):
        assert (await client.post(url, content=body, headers=secret())).status_code == 400


async def test_update_is_confirmed_only_after_its_commit(telegram: Control) -> None:
    """An update that was not taken is sent again."""
    host = Host(refusals=[NotTaken("the disk is full"), NotTaken("the disk is full")])
    async with hooked(telegram, host) as (channel, _, _url):
        await telegram.say("first", user=ADA)
        await telegram.say("second", user=ADA)
        await host.hears(4)
        await telegram.wait(delivered=True)
        assert channel.health().trouble == ""
    assert [one.text for one in host.said] == ["first", "first", "first", "second"]
    attempts = (await telegram.state())["webhook"]["attempts"]
    assert [one["status"] for one in attempts] == [503, 503, 200, 200]


async def test_update_before_or_after_the_run_has_to_wait(telegram: Control) -> None:
    channel = bot(telegram, webhook=Webhook(url=URL, secret=SECRET))
    hook = channel.hook()
    assert hook is not None
    assert await hook.take(secret(), json.dumps(pushed()).encode()) == 503
    host = Host()
    async with hooked(telegram, host) as (channel, _, _url):
        hook = channel.hook()
    assert hook is not None
    assert await hook.take(secret(), json.dumps(pushed()).encode()) == 503
    assert host.said == []


async def test_order_is_kept_in_a_chat_and_no_chat_waits_for_another(telegram: Control) -> None:
    """Requests come at the same time; a chat's second message must not overtake its first."""
    host = Host(gate=asyncio.Event())
    async with hooked(telegram, host) as (_, client, url):
        posts = []
        for number in range(3):
            body = pushed(str(number), update_id=number)
            posts.append(asyncio.create_task(client.post(url, json=body, headers=secret())))
            await settle()
        other = pushed("other", update_id=9)
        other["message"]["chat"]["id"] = 8
        posts.append(asyncio.create_task(client.post(url, json=other, headers=secret())))
        await host.hears(2)
        assert [one.text for one in host.said] == ["0", "other"]
        assert host.gate is not None
        host.gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*posts)] == [200] * 4
    assert [one.text for one in host.said] == ["0", "other", "1", "2"]


async def test_album_over_http_arrives_whole_and_for_whom_it_was(telegram: Control) -> None:
    """Telegram sends the next part when the one before is committed, so they come one by one."""
    host = Host()
    async with hooked(telegram, host):
        await telegram.album(photos(f"{BOT} which?", "", ""), user=ADA, chat=GROUP)
        said = await host.hears(3)
        await telegram.wait(delivered=True)
    assert [(one.text, one.addressed, len(one.attachments)) for one in said] == [
        ("which?", True, 1),
        ("", True, 1),
        ("", True, 1),
    ]


async def test_update_that_crashes_the_host_is_left_out_in_the_end(telegram: Control) -> None:
    """A bug over one message must not silence its chat for ever."""
    host = Host(refusals=[RuntimeError("a bug")] * 3)
    async with hooked(telegram, host) as (channel, _, _url):
        hook = channel.hook()
        assert hook is not None
        with capture_logs() as logs:
            for _ in range(2):
                with pytest.raises(RuntimeError):
                    await hook.take(secret(), json.dumps(pushed()).encode())
            assert await hook.take(secret(), json.dumps(pushed()).encode()) == 200
    assert [entry["event"] for entry in logs] == ["channel.update_skipped"]
    assert len(host.said) == 3


class Ticks:
    """Waits that end when the test says so."""

    def __init__(self) -> None:
        self.waiting = asyncio.Semaphore(0)
        self._over = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        assert seconds == 60
        self.waiting.release()
        await self._over.acquire()

    async def tick(self) -> None:
        """The wait that has begun ends, and the next begins."""
        async with limit():
            self._over.release()
            await self.waiting.acquire()


async def test_webhook_that_fails_makes_health_red(telegram: Control) -> None:
    """A wrong address or certificate is silence; only Telegram knows of it."""
    ticks = Ticks()
    host = Host()
    async with hooked(telegram, host, sleep=ticks) as (channel, _, url):
        async with limit():
            await ticks.waiting.acquire()
        await ticks.tick()
        assert channel.health().trouble == ""
        await telegram.pass_time(5)
        await telegram.webhook("http://127.0.0.1:1")
        await telegram.say("hello", user=ADA)
        await telegram.wait(method="webhook")
        await ticks.tick()
        assert "Connection refused" in channel.health().trouble
        assert URL in channel.health().trouble
        await telegram.fault("status", method="getWebhookInfo")
        await ticks.tick()
        assert "502" in channel.health().trouble
        await telegram.webhook(url.partition("/hooks")[0])
        await host.hears()
        await telegram.wait(delivered=True)
        assert channel.health().trouble == ""


async def test_webhook_taken_by_another_program_is_seen(telegram: Control) -> None:
    """Messages would go there for ever."""
    ticks = Ticks()
    channel = bot(telegram, webhook=Webhook(url=URL, secret=SECRET), sleep=ticks)
    task = asyncio.create_task(channel.run(Host()))
    async with limit():
        await ticks.waiting.acquire()
        call = f"{telegram.url}/bot{telegram.token}/setWebhook"
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            await client.get(call, params={"url": "https://example.org/other"})
        with pytest.raises(ChannelUnavailable, match="another program"):
            await asyncio.gather(task, ticks.tick())
    task.cancel()


async def test_webhook_without_a_good_secret_is_refused_by_name() -> None:
    """An open hook lets anybody speak in anybody's name."""
    for wrong in ("", "short", "x" * 257, "with spaces in the middle", "ünïcödé-ünïcödé"):
        with pytest.raises(ChannelRefused, match=r"the secret of a webhook"):
            Webhook(url=URL, secret=wrong)
    with pytest.raises(ChannelRefused, match="webhook must be"):
        Webhook(url="", secret=SECRET)
    assert SECRET not in repr(Webhook(url=URL, secret=SECRET))


async def test_webhook_address_that_telegram_does_not_take_ends_the_run(telegram: Control) -> None:
    channel = bot(telegram, webhook=Webhook(url="http://bot.example.org", secret=SECRET))
    with pytest.raises(ChannelRefused, match="webhook must be"):
        await channel.run(Host())
    assert "webhook must be" in channel.health().trouble
    assert bot(telegram).hook() is None


# Pure parts.

PARTS = st.builds(
    lambda number, chat, group: {
        "update_id": number,
        "message": {"chat": {"id": chat}, **({} if group is None else {"media_group_id": group})},
    },
    st.integers(),
    st.integers(1, 3),
    st.none() | st.sampled_from("ab"),
)
JUNK = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from(["message", "chat", "id", "media_group_id"]), inner, max_size=4),
)


@given(st.lists(PARTS, max_size=12, unique_by=lambda update: update["update_id"]))
def test_gathering_albums_loses_and_doubles_nothing(updates: list[dict[str, Any]]) -> None:
    """Whatever comes between the parts of an album, each update is handed over once, and those without one in order."""
    groups = gathered(updates)
    assert sorted(map(str, updates)) == sorted(str(update) for group in groups for update in group)
    firsts = [updates.index(group[0]) for group in groups]
    assert firsts == sorted(firsts)
    names = [album_of(group[0]) for group in groups]
    albums = [name for name in names if name is not None]
    assert len(albums) == len(set(albums))
    assert all(len({album_of(update) for update in group}) == 1 for group in groups)
    assert all(len(group) == 1 for group, name in zip(groups, names, strict=True) if name is None)


@given(st.dictionaries(st.sampled_from(["message", "callback_query", "update_id"]), JUNK, max_size=3))
def test_update_of_any_shape_has_a_chat_and_an_album_or_none(update: dict[str, Any]) -> None:
    """An update of a shape that Telegram adds next year must not end the channel before it is read."""
    assert isinstance(chat_of(update), str)
    assert album_of(update) is None or isinstance(album_of(update), str)
