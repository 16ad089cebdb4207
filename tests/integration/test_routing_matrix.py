"""Every kind of answer in every kind of place: it stands exactly where it was asked for, or in /dead, never elsewhere.

Each test is one kind of answer on one platform, with a question in all places at the same time. The answers are held up
on their way; meanwhile topics are closed and threads archived, locked and deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from channels.base import Place
from gateway.wording.texts import CATALOGUE
from tests.kit.patience import SECONDS
from tests.kit.transcripts import ADA, BOB, REEF, ROOT, a_discord, a_telegram, known, serving

Kind = Literal["plain", "long", "stream", "command", "press", "failed", "answer now", "show again"]
KINDS: tuple[Kind, ...] = ("plain", "long", "stream", "command", "press", "failed", "answer now", "show again")

FORUMS = (-1_001_000_000_011, -1_001_000_000_012, -1_001_000_000_013)
CLUB, OLD_CLUB = -1_001_000_000_014, -4_015
LONG = "\n\n".join(f"Part {n}: " + "word " * 180 for n in range(5))
QUESTION = "tell me"
STALE = 3 * 3_600  # seconds after which an answer has to be asked for
#: The bot's messages that then stand in a place, in order.
ANSWERS: dict[Kind, tuple[str, ...]] = {
    "plain": ("Answer to: tell me",),
    "long": (LONG,),
    "stream": ("Answer to: tell me",),
    "command": ("Saved (m_1): you like tea",),
    "press": ("Saved (m_1): you like tea", "I forgot nothing."),
    "failed": ("{error.model_auth}",),
    "answer now": ("{late.ask}", "Answer to: tell me"),
    "show again": ("{again.ask}", "Answer to: tell me"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A place with its name in the matrix. `shut` ends it, or seems to; `gone` tells that nothing can be said there then.

    `home` is the platform's number of what holds its messages.
    """

    name: str
    place: Place
    user: int
    home: int
    topic: int | None = None
    shut: Callable[[], Awaitable[None]] | None = None
    gone: bool = False


class World:
    """A platform with all kinds of places, and what the test does there."""

    #: How a platform calls the request that shows an answer of each kind.
    methods: dict[Kind, str]
    #: Whether it is asked before an answer that may have been shown is shown again.
    offers: bool
    #: Answers that change a message which stands there, and so come also where nothing new can be said.
    changes: frozenset[Kind]

    def __init__(self, platform: Any) -> None:
        self.platform = platform
        self.rooms: list[Room] = []

    async def say(self, room: Room, text: str, *, sent_at: float | None = None) -> None: ...

    async def command(self, room: Room, name: str, argument: str) -> None: ...

    async def press(self, room: Room, *, last: bool) -> None:
        """Presses the last, or the first, button under the newest message of the bot that has any."""

    async def stands(self) -> dict[str, list[str]]:
        """The bot's messages in each room by its name, what is elsewhere under "elsewhere"."""
        raise NotImplementedError

    async def dead(self) -> str:
        raise NotImplementedError

    async def count(self, method: str) -> int:
        return int((await self.platform.state())["requests"].get(method, 0))

    async def fault(self, do: str, method: str, text: str | None = None) -> None:
        await self.platform.fault(do, method=method, text=text, status=401, times=0)


class Telegram(World):
    offers = True
    changes: frozenset[Kind] = frozenset({"stream", "press"})
    methods: dict[Kind, str] = dict.fromkeys(KINDS, "sendMessage") | {
        "stream": "editMessageText",
        "press": "editMessageText",
    }

    async def build(self) -> None:
        platform = self.platform
        # A topic is opened in a chat that is there; what was said in it is not part of this.
        await platform.say("/start", user=BOB, name="Bob")
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            drop = f"{platform.url}/bot{platform.token}/deleteWebhook"
            await client.get(drop, params={"drop_pending_updates": True})
        general, open_forum, closing_forum = FORUMS
        await platform.group(CLUB, title="Club")
        await platform.group(OLD_CLUB, kind="group", title="Old club")
        for forum in FORUMS:
            await platform.group(forum, forum=True)
        topic, closing = await platform.topic(open_forum), await platform.topic(closing_forum)
        private = await platform.topic(BOB, user=BOB)

        async def close() -> None:
            await platform.close_topic(closing_forum, closing)

        def room(name: str, chat: int, thread: int | None = None, *, user: int = ADA) -> Room:
            place = Place(channel="telegram", chat=str(chat), thread=None if thread is None else str(thread))
            return Room(name=name, place=place, user=user, home=chat, topic=thread)

        self.rooms = [
            room("private", ADA),
            room("private with thread", BOB, private, user=BOB),
            room("group", OLD_CLUB),
            room("supergroup", CLUB),
            room("general", general),
            room("topic", open_forum, topic),
        ]
        closed = room("closed topic", closing_forum, closing)
        self.rooms.append(
            Room(
                name=closed.name, place=closed.place, user=ADA, home=closing_forum, topic=closing, shut=close, gone=True
            )
        )

    async def say(self, room: Room, text: str, *, sent_at: float | None = None) -> None:
        called = "@remora_test_bot " if room.home < 0 else ""
        at = None if sent_at is None else int(sent_at)
        await self.platform.say(called + text, user=room.user, chat=room.home, thread=room.topic, sent_at=at)

    async def command(self, room: Room, name: str, argument: str) -> None:
        await self.platform.say(
            f"/{name}@remora_test_bot {argument}", user=room.user, chat=room.home, thread=room.topic
        )

    async def press(self, room: Room, *, last: bool) -> None:
        shown = (await self.platform.state())["chats"][str(room.home)]["messages"]
        message = next(one for one in reversed(shown) if "reply_markup" in one)
        button = message["reply_markup"]["inline_keyboard"][-1 if last else 0][-1 if last else 0]
        await self.platform.press(message["message_id"], button["callback_data"], chat=room.home, user=room.user)

    async def stands(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        where = {(room.home, room.topic): room.name for room in self.rooms} | {(ROOT, None): "admin"}
        for chat, known_of in (await self.platform.state())["chats"].items():
            for message in known_of["messages"]:
                topic = message.get("message_thread_id") if message.get("is_topic_message") else None
                if message["by_bot"] and not message["deleted"]:
                    found.setdefault(where.get((int(chat), topic), "elsewhere"), []).append(message["text"])
        return found

    async def dead(self) -> str:
        await self.platform.say("/dead", user=ROOT)
        await self.platform.wait(chat=ROOT, bot_messages=1)
        return str((await self.platform.texts(ROOT))[-1])


class Discord(World):
    offers = False
    changes: frozenset[Kind] = frozenset({"command", "press"})
    methods: dict[Kind, str] = dict.fromkeys(KINDS, "send") | {
        "stream": "edit",
        "press": "edit_original",
        "command": "edit_original",
    }

    _admin = 0

    async def build(self) -> None:
        platform = self.platform
        text = await platform.add_channel("general", guild=REEF)
        news = await platform.add_channel("news", guild=REEF, kind="announcement")
        forum = await platform.add_channel("questions", guild=REEF, kind="forum")
        self._admin = await platform.dm(ROOT)
        threads = {name: await platform.open_thread(text, name) for name in ("open", "old", "locked", "deleted")}
        private = await platform.open_thread(text, "secret", private=True)
        post = await platform.forum_post(forum, "Which film?", "Who knows one?")

        async def archive() -> None:
            await platform.archive(threads["old"])

        async def lock() -> None:
            await platform.lock(threads["locked"], archived=True)

        async def delete() -> None:
            await platform.delete_channel(threads["deleted"])

        def room(
            name: str,
            home: int,
            parent: int | None = None,
            shut: Callable[[], Awaitable[None]] | None = None,
            *,
            gone: bool = False,
        ) -> Room:
            place = Place(channel="discord", chat=str(parent or home), thread=None if parent is None else str(home))
            return Room(name=name, place=place, user=ADA, home=home, shut=shut, gone=gone)

        self.rooms = [
            room("direct", await platform.dm(ADA)), room("channel", text), room("announcement", news),
            room("public thread", threads["open"], text), room("private thread", private),
            room("forum post", post, forum),
            room("archived thread", threads["old"], text, archive),
            room("locked thread", threads["locked"], text, lock, gone=True),
            room("deleted thread", threads["deleted"], text, delete, gone=True),
        ]  # fmt: skip

    async def say(self, room: Room, text: str, *, sent_at: float | None = None) -> None:
        called = "" if room.name == "direct" else f"{self.platform.mention} "
        await self.platform.say(called + text, user=room.user, name="Ada", channel=room.home, sent_at=sent_at)

    async def command(self, room: Room, name: str, argument: str) -> None:
        option = {"remember": "text", "forget": "what"}[name]
        await self.platform.slash(name, {option: argument}, user=room.user, channel=room.home)

    async def press(self, room: Room, *, last: bool) -> None:
        shown = (await self.platform.state())["channels"][str(room.home)]["messages"]
        message = next(one for one in reversed(shown) if one["components"])
        button = message["components"][-1 if last else 0]["components"][-1 if last else 0]
        await self.platform.press(int(message["id"]), button["custom_id"], user=room.user)

    async def stands(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        where = {room.home: room.name for room in self.rooms} | {self._admin: "admin"}
        for channel, known_of in (await self.platform.state())["channels"].items():
            for message in known_of["messages"]:
                if message["by_bot"] and not (message["deleted"] or message["loading"]):
                    assert message["only_for"] in (None, ADA)
                    said = message["content"].replace("\\", "")
                    found.setdefault(where.get(int(channel), "elsewhere"), []).append(said)
        return found

    async def dead(self) -> str:
        # Not among the commands that Discord offers in private chats: typed, it is one.
        await self.platform.say("/dead", user=ROOT)
        await self.platform.wait(channel=self._admin, bot_messages=1)
        return str((await self.platform.texts(self._admin))[-1]).replace("\\", "")


@asynccontextmanager
async def on_telegram(folder: Path, placeholder: float) -> AsyncIterator[Telegram]:
    async with a_telegram() as platform:
        world = Telegram(platform)
        await world.build()
        groups = [CLUB, OLD_CLUB, *FORUMS]
        async with serving(folder, telegram=platform, model=platform.model_url, placeholder=placeholder, groups=groups):
            yield world


@asynccontextmanager
async def on_discord(folder: Path, placeholder: float) -> AsyncIterator[Discord]:
    async with a_discord() as platform:
        world = Discord(platform)
        await world.build()
        async with serving(folder, discord=platform, model=platform.model_url, placeholder=placeholder):
            yield world


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("open_world", [on_telegram, on_discord], ids=["telegram", "discord"])
async def test_answer_stands_where_it_was_asked_for_or_in_dead(
    open_world: Callable[[Path, float], AbstractAsyncContextManager[World]], kind: Kind, tmp_path: Path
) -> None:
    """An answer elsewhere is read by the wrong people; one that is nowhere leaves somebody waiting."""
    async with open_world(tmp_path, 0.05 if kind == "stream" else 60) as world:
        await _prepare(world, kind)
        ready, shown = await world.stands(), await world.count(world.methods[kind])
        await world.fault("hang", world.methods[kind])
        await asyncio.gather(*(_ask(world, room, kind) for room in world.rooms))
        await world.platform.wait(method=world.methods[kind], count=shown + len(world.rooms))
        await asyncio.gather(*(room.shut() for room in world.rooms if room.shut is not None))
        await world.platform.heal()
        await world.platform.wait(delivered=True, idle=0.3)
        after = await world.stands()
        told = await world.dead()

        assert {room.name: _verdict(world, room, kind, ready, after, told) for room in world.rooms} == {
            room.name: "dead" if room.gone and kind not in world.changes else "there" for room in world.rooms
        }
        assert after.keys() <= {room.name for room in world.rooms}


async def _prepare(world: World, kind: Kind) -> None:
    """All that comes before the answer which is looked at."""
    await world.platform.script_model({"long": LONG}, ms=300 if kind == "stream" else 0)
    match kind:
        case "failed":
            await world.fault("status", "model")
        case "press":
            await asyncio.gather(*(world.command(room, "remember", "I like tea") for room in world.rooms))
            await world.platform.wait(text="Saved", bot_messages=len(world.rooms))
            ids = {name: texts[-1].split()[1].strip("():") for name, texts in (await world.stands()).items()}
            await asyncio.gather(*(world.command(room, "forget", ids[room.name]) for room in world.rooms))
            await world.platform.wait(text="or just yes", bot_messages=len(world.rooms))
        case "answer now":
            stale = time.time() - STALE
            await asyncio.gather(*(world.say(room, QUESTION, sent_at=stale) for room in world.rooms))
            await world.platform.wait(text=CATALOGUE["en"]["late.ask"], bot_messages=len(world.rooms))
        case "show again":
            await world.fault("reset", world.methods[kind], "Answer to")
            await asyncio.gather(*(world.say(room, QUESTION) for room in world.rooms))
            if world.offers:
                await world.platform.wait(text=CATALOGUE["en"]["again.ask"], bot_messages=len(world.rooms))
            else:
                await world.platform.wait(method=world.methods[kind], count=len(world.rooms))
            await world.platform.heal()


async def _ask(world: World, room: Room, kind: Kind) -> None:
    match kind:
        case "plain" | "stream" | "failed":
            await world.say(room, QUESTION)
        case "long":
            await world.say(room, "a long one")
        case "command":
            await world.command(room, "remember", "I like tea")
        case "press":
            await world.press(room, last=True)
        case "answer now":
            await world.press(room, last=False)
        case "show again" if world.offers:
            await world.press(room, last=False)


def _verdict(
    world: World,
    room: Room,
    kind: Kind,
    ready: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    told: str,
) -> str:
    """ "there", "dead", or what is wrong."""
    stands = [text.partition("\n\n{first.")[0] for text in map(known, after.get(room.name, ()))]
    wanted = [text for text in ANSWERS[kind] if world.offers or text != "{again.ask}"]
    dead = room.place.session_key in told
    if _letters(stands) == _letters(wanted) and not dead:
        return "there"
    # A placeholder whose answer could not follow says nothing.
    if dead and [text for text in after.get(room.name, ()) if text != "…"] == list(ready.get(room.name, ())):
        return "dead"
    return f"{stands} stands there, dead: {dead}"


def _letters(texts: Sequence[str]) -> str:
    """Texts in one, however they were cut."""
    return "".join("".join(texts).split())
