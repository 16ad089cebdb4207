"""Promise 3 through the whole product: what somebody has forgotten on a platform stands in no file any more.

Bob on Telegram, who is Ben on Discord, says more than a hundred words that stand nowhere else, in all the ways there
are; Ann, who is Ada, says others. The bot is a process of its own, so a test may open its database with any SQLite.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.config.settings import WorkPace
from tests.kit import stalls
from tests.kit.patience import until
from tests.kit.served import ADA, ANN, BEN, BOB, TELEGRAM_TOKEN, Served, spawned
from tests.platforms import chat_model
from tests.platforms.discord import Control as Discord
from tests.platforms.discord import serving as serving_discord
from tests.platforms.telegram import Control as Telegram
from tests.platforms.telegram import File
from tests.platforms.telegram import serving as serving_telegram

GROUP = -1_001_000_000_001
_ROOT = Path(__file__).parents[2]
_DAY = 86_400
#: The form of a fact for the extracting model; a topic, or whom it is about, may stand before.
_KEEPS = re.compile(r"(?:topic (\w+): |about (\w+): )?I keep ([^.!?\n]{1,200})")
_SHORT_ID = re.compile(r"m_[a-z0-9]{6}")
_COUNTED = {
    "Memories": "memories", "Memories made from them": "memories", "Messages erased": "messages", "My answers erased": "replies",
    "Files": "files",
}  # fmt: skip


@dataclass
class Mind:
    """The chat model and the transcriber: quotes what it is told, calls tools on demand, and keeps all it was sent."""

    base_url: str = ""
    sent: list[str] = field(default_factory=list)
    extractions: int = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.sent.append(json.dumps(body, ensure_ascii=False))
        if chat_model.is_extraction(body):
            self.extractions += 1
            return web.json_response(chat_model.whole(body, json.dumps(_extracted(body))))
        said = " ".join(chat_model.last_words(body).split())
        asked = re.fullmatch(r"please (keep|find) (.+)", said)
        if asked is None or body["messages"][-1]["role"] == "tool":
            answer = "Answer to you" if said.startswith("hush: ") else f"Answer to: {said}"
            events = list(chat_model.streamed(body, answer))
        else:
            tool, argument = {"keep": ("remember_fact", "text"), "find": ("search_memory", "query")}[asked[1]]
            events = _calling(tool, {argument: asked[2]})
        return web.Response(text="".join(events), content_type="text/event-stream")

    async def transcribe(self, request: web.Request) -> web.Response:
        file = (await request.post())["file"]
        assert isinstance(file, web.FileField)
        with file.file:
            return web.json_response({"text": file.file.read().decode()})


def _calling(tool: str, arguments: dict[str, str]) -> list[str]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    head = {"object": "chat.completion.chunk", "model": "test"}
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    ]
    return [*(f"data: {json.dumps({**head, 'choices': [one]})}\n\n" for one in choices), "data: [DONE]\n\n"]


def _extracted(body: dict[str, Any]) -> dict[str, Any]:
    facts = []
    for line in str(body["messages"][-1]["content"]).splitlines():
        said = json.loads(line) if line.startswith("{") and '"n"' in line else {}
        if "n" not in said or str(said.get("by", "")).startswith("(you"):
            continue
        for topic, whom, kept in _KEEPS.findall(str(said.get("text", ""))):
            facts.append(
                {
                    "about": whom or "self", "category": "project" if topic else "preference", "topic": topic,
                    "key": "keeps", "value": kept.strip(), "importance": 5, "confidence": 0.9,
                    "messages": [said["n"]], "replaces": None,
                }
            )  # fmt: skip
    return {"facts": facts, "styles": [], "event": None, "entities": []}


@asynccontextmanager
async def thinking() -> AsyncIterator[Mind]:
    mind = Mind()
    application = web.Application()
    application.router.add_post("/v1/chat/completions", mind.complete)
    application.router.add_post("/v1/audio/transcriptions", mind.transcribe)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        mind.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield mind
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The contents of the database at a moment: ids of memories, erased messages by role, files."""

    memories: frozenset[int]
    erased: frozenset[tuple[int, bool]]
    files: frozenset[int]


@dataclass
class World:
    """Both platforms, a model, and one installation in `folder`. `planted` are words by the way they are to go."""

    telegram: Telegram
    discord: Discord
    mind: Mind
    folder: Path
    dm: int
    general: int
    planted: dict[str, list[str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    taken_back: int = 0

    @property
    def database(self) -> Path:
        return self.folder / "data" / "remora.db"

    def new(self, way: str, count: int = 4) -> str:
        """Words that stand nowhere else, each one piece for a tokeniser."""
        begin = sum(map(len, self.planted.values()))
        made = [f"zq{hashlib.sha256(str(n).encode()).hexdigest()[:14]}" for n in range(begin, begin + count)]
        self.planted.setdefault(way, []).extend(made)
        return " ".join(made)

    # People -----------------------------------------------------------------------------------------------------

    async def say(
        self, text: str = "", answer: str = "Answer to", *, chat: int = BOB, user: int = BOB, **more: Any
    ) -> str:
        before = await self.telegram.texts(chat)
        await self.telegram.say(text, user=user, chat=None if chat == user else chat, **more)
        count = sum(answer in shown for shown in before) + 1
        await self.telegram.wait(chat=chat, text=answer, bot_messages=count)
        return [shown for shown in await self.telegram.texts(chat) if answer in shown][-1]

    async def write(self, text: str = "", answer: str = "Answer to", *, user: int = BEN, **more: Any) -> int:
        channel = more.get("channel") or await self.discord.dm(user=user)
        before = sum(answer in shown for shown in await self.discord.texts(channel))
        said = await self.discord.say(text, user=user, **more)
        await self.discord.wait(channel=channel, text=answer, bot_messages=before + 1)
        return said.message_id

    async def press(self, chat: int = BOB) -> str:
        """Presses "and the words" under the bot's last message on Telegram; returns what then stands in its place."""
        shown = [one for one in (await self.telegram.state())["chats"][str(chat)]["messages"] if one["by_bot"]][-1]
        await self.telegram.press(shown["message_id"], label="and the words", chat=chat, user=BOB)
        return await self.receipt_at(shown["message_id"], chat)

    async def receipt_at(self, message_id: int, chat: int) -> str:

        async def told() -> str:
            messages = (await self.telegram.state())["chats"][str(chat)]["messages"]
            [text] = [str(one["text"]) for one in messages if one["message_id"] == message_id]
            return text if text.startswith("Forgotten") else ""

        return await until(told)

    async def press_on_discord(self, channel: int, label: str) -> str:
        messages = (await self.discord.state())["channels"][str(channel)]["messages"]
        asked = [one for one in messages if one["by_bot"] and one["components"] and not one["deleted"]][-1]
        [button] = [one for row in asked["components"] for one in row["components"] if one["label"] == label]
        await self.discord.press(int(asked["id"]), button["custom_id"], user=BEN)

        async def told() -> str:
            text = str((await self.discord.message(int(asked["id"])))["content"])
            return text if text != asked["content"] else ""

        return (await until(told)).replace("\\", "")

    # Files ------------------------------------------------------------------------------------------------------

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, parameters).fetchall()

    async def learned(self, *values: str) -> None:
        for value in values:
            await until(partial(self.rows, "select 1 from memories where instr(value, ?)", value))

    def stand(self) -> Stand:
        return Stand(
            memories=frozenset(row[0] for row in self.rows("select id from memories where kind <> 'profile'")),
            erased=frozenset(self.rows("select id, role = 'user' from messages where erased_at is not null")),
            files=frozenset(row[0] for row in self.rows("select id from attachments")),
        )

    @stalls.apart()
    def traces(self, words: list[str], *, beside: tuple[Path, ...] = ()) -> dict[str, list[str]]:
        """Returns which of `words` stand in the store's files, in the log, and in files `beside` them."""
        store = [self.database, *(self.database.with_name(f"remora.db{end}") for end in ("-wal", "-shm", ".erased"))]
        found: dict[str, list[str]] = {}
        for file in (*store, self.folder / "log.json", *beside):
            data = file.read_bytes() if file.exists() else b""
            # The word index keeps what begins alike once.
            standing = [word for word in words if word.encode() in data or word[3:].encode() in data]
            if standing:
                found[file.name] = standing
        return found

    def forgotten(self, way: str, before: Stand, receipt: str, *, scrubbed: bool = True) -> None:
        """Checks that a receipt tells the truth, and that the words planted for `way` stand in no file."""
        assert ("No trace" in receipt) == scrubbed and ("Traces remain" in receipt) != scrubbed, receipt
        now, counted = self.stand(), dict.fromkeys(_COUNTED.values(), 0)
        for name, count in re.findall(r"([A-Z][a-z ]+): (\d+)\.", receipt.splitlines()[0].removeprefix("Forgotten. ")):
            counted[_COUNTED[name]] += int(count)
        assert counted["messages"] == sum(user for _, user in now.erased - before.erased), receipt
        assert counted["replies"] == sum(not user for _, user in now.erased - before.erased), receipt
        assert counted["files"] == len(before.files - now.files), receipt
        assert counted["memories"] == len(before.memories - now.memories), receipt
        self.gone += self.planted[way]
        assert not any(word in receipt for word in self.gone)
        if scrubbed:
            assert self.traces(self.gone) == {}


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    async with (
        serving_discord(model_ms=0) as discord,
        serving_telegram((TELEGRAM_TOKEN,)) as telegram,
        thinking() as mind,
    ):
        server, general = await discord.add_guild("Lake")
        assert general is not None
        Served(
            folder,
            discord=discord,
            telegram=telegram,
            server=server,
            model_url=mind.base_url,
            pace=WorkPace(exit_seconds=0, quiet_seconds=0.1, placeholder_seconds=60, stale_hours=168),
            log="{level: debug, format: json, file: log.json}",
            limits="{burst_seconds: 0, person_messages_per_minute: 3000}",
            transcriber=f"{{model: whisper-1, base_url: '{mind.base_url}'}}",
        )
        config = folder / "config.yaml"
        config.write_text(config.read_text().replace("admins: [7]", f"admins: [7], groups: [{GROUP}]"))
        await telegram.group(GROUP, title="Club")
        yield World(telegram, discord, mind, folder, await discord.dm(user=BEN), general)


async def plant_on_telegram(world: World) -> None:
    """Plants the words of Bob, and of Ann beside him."""
    new = world.new
    await world.say(f"I keep {new('range')} for winter", sent_at=int(time.time() - 3 * _DAY))
    await world.say(f"/remember the key is {new('id')}", "Saved (")
    saved = await world.say(f"/remember the bike is {new('correct')}", "Saved (")
    await world.say(f"/correct {_id_in(saved)} the bike is {new('correct')}", "Corrected: ")
    await world.say(f"I keep {new('query')} in the attic")
    await world.say(voice=f"I keep {new('query')} in the attic".encode())
    paper = File(
        kind="document", data=f"List: {new('query')}".encode(), filename=f"{new('query', 1)}.txt", mime="text/plain",
        text=f"From the attic: {new('query')}",
    )  # fmt: skip
    await world.say(file=paper)
    await world.say(f"please keep attic {new('query')}")
    await world.say(f"please find attic {new('query')}")
    await world.say(f"topic aurora: I keep {new('topic')}")
    await world.say(f"about Quillon: I keep {new('about')}")
    await world.say(f"I keep {new('reply')}")
    await world.say(f"I keep {new('reply to the answer')}")
    await world.say(f"@remora_test_bot I keep {new('here')}", chat=GROUP)
    await world.say(f"@remora_test_bot here is {new('here')}", chat=GROUP, voice=f"I keep {new('here')}".encode())
    await world.say(f"I keep {new('all')} and {new('all')}", document=new("all").encode(), filename="list.txt")
    await world.say(f"/task sort {new('all')}", "our task is now")
    for chat in (ANN, GROUP):
        await world.say("@remora_test_bot I keep a parrot of my own", chat=chat, user=ANN, name="Ann")
    await world.learned(
        *(world.planted[way][0] for way in ("range", "query", "topic", "about", "reply", "here", "all"))
    )


async def plant_on_discord(world: World) -> None:
    """Plants the words of Ben, who has a name of his own, and of Ada beside him."""
    new, mention = world.new, world.discord.mention
    await world.write(f"I keep {new('everything')}", name=f"Ben {new('everything', 1)}")
    await world.write(
        f"I keep {new('words on discord')} in the shed",
        attachments=[(f"{new('words on discord', 1)}.txt", new("words on discord").encode(), "text/plain")],
    )
    await world.write(voice=f"I keep {new('everything')}".encode())
    await world.write(f"{mention} I keep {new('here on discord')}", channel=world.general)
    # The bot's own answer to what is deleted or edited stays, as it stays on the platform.
    world.taken_back = await world.write(f"hush: I keep {new('deleted')}")
    await world.write("I keep a hamster of my own", user=ADA, name="Ada")
    await world.write(f"{mention} I keep a hamster of my own", user=ADA, channel=world.general)
    await world.learned(
        *(world.planted[way][0] for way in ("everything", "words on discord", "here on discord", "deleted"))
    )


def others(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of Ann and Ada: what they said, what was answered, what was learned of it."""
    said = "select distinct turn_id from messages where author_id in ({who})"
    who = f"select id from identities where user_id in ('{ANN}', '{ADA}')"
    theirs = {
        "messages": f"turn_id in ({said.format(who=who)})",
        "memories": f"author_id in ({who})",
        "memory_sources": f"memory_id in (select id from memories where author_id in ({who}))",
        "turns": f"id in ({said.format(who=who)})",
        "steps": f"turn_id in ({said.format(who=who)})",
        "recalls": f"turn_id in ({said.format(who=who)})",
        "outbox": f"turn_id in ({said.format(who=who)})",
        "owners": f"identity_id in ({who})",
    }
    return {table: sorted(world.rows(f"select * from {table} where {where}")) for table, where in theirs.items()}


def _id_in(text: str) -> str:
    found = _SHORT_ID.search(text)
    assert found is not None, text
    return found[0]


@pytest.mark.campaign
async def test_what_is_forgotten_stands_in_no_file_any_more(tmp_path: Path) -> None:
    """By every way there is, on both platforms, beside another reader, in new backups and exports, after a restore."""
    async with world(tmp_path) as there:
        async with spawned(tmp_path):
            await there.telegram.wait(polling=True)
            await there.discord.wait(connected=True)
            await plant_on_telegram(there)
            await plant_on_discord(there)
            await there.say("/memory export transcript", "one file to read")
            await there.say("/backup", "Backed up", chat=ANN, user=ANN)
            kept = others(there)
            await forget_on_telegram(there)
            await forget_on_discord(there)
            await nothing_is_learned_anew(there)
            assert others(there) == kept
        await restored(there)
        assert len(there.gone) >= 100


async def forget_on_telegram(world: World) -> None:
    saved = [text for text in await world.telegram.texts(BOB) if text.startswith("Saved (")]
    before = world.stand()
    with closing(sqlite3.connect(world.database)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from messages").fetchone()
        await world.say(f"/forget {_id_in(saved[0])}", "Forget this?")
        world.forgotten("id", before, await world.press(), scrubbed=False)
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 3 * _DAY))
    for way, typed in (
        ("correct", "bike"),
        ("query", "attic"),
        ("topic", "topic:aurora"),
        ("about", "about:Quillon"),
        ("range", f"{day}..{day}"),
    ):
        before = world.stand()
        await world.say(f"/forget {typed}", "and the words (or just yes)")
        world.forgotten(way, before, await world.press())
    for way, by_bot in (("reply", False), ("reply to the answer", True)):
        before = world.stand()
        shown = (await world.telegram.state())["chats"][str(BOB)]["messages"]
        [target] = [one for one in shown if one["by_bot"] == by_bot and world.planted[way][0] in one.get("text", "")]
        await world.say("/forget", "and the words (or just yes)", reply_to=target["message_id"])
        world.forgotten(way, before, await world.press())
    before = world.stand()
    await world.say("/forget@remora_test_bot here", "and the words (or just yes)", chat=GROUP)
    world.forgotten("here", before, await world.press(GROUP))
    before = world.stand()
    await world.say("/forget all", "and the words (or just yes)")
    world.forgotten("all", before, await world.press())


async def take_back(world: World) -> list[str]:
    """Deletes one message on Discord and edits one on each platform; returns what stood in these."""
    edited = await world.write(f"hush: I keep {world.new('edited')}")
    await world.telegram.say(f"hush: I keep {world.new('edited')}", user=BOB)
    await world.learned(*world.planted["edited"][::4])
    await world.discord.delete(world.taken_back)
    await world.discord.edit(edited, "I keep quiet")
    said = (await world.telegram.state())["chats"][str(BOB)]["messages"]
    [other] = [one["message_id"] for one in said if world.planted["edited"][-1] in one.get("text", "")]
    await world.telegram.edit(other, "I keep silent", chat=BOB)
    await world.learned("quiet", "silent")
    await until(
        lambda: world.rows("select 1 from messages where platform_ref = ? and text = ''", str(world.taken_back))
    )
    return world.planted["edited"]


async def forget_on_discord(world: World) -> None:
    """By a slash command, and all of a person. What was deleted and edited goes from the files with it."""
    world.gone += [*world.planted["deleted"], *await take_back(world)]
    for way, typed, channel in (("words on discord", "shed", world.dm), ("here on discord", "here", world.general)):
        before = world.stand()
        asked = await world.discord.slash("forget", {"what": typed}, user=BEN, channel=channel)
        await world.discord.wait(answered=asked)
        world.forgotten(way, before, await world.press_on_discord(channel, "and the words"))
    await world.write("/privacy delete", "This erases everything of yours")
    told = await world.press_on_discord(world.dm, "yes")
    assert "Erased: " in told
    world.gone += world.planted["everything"]
    assert world.traces(world.gone) == {}


async def nothing_is_learned_anew(world: World) -> None:
    """Whatever is read and asked from now on, no model is sent what is gone, and no copy made now holds it."""
    sent, read = len(world.mind.sent), world.mind.extractions
    await world.say("I keep bees", name="Bob")
    await world.write("I keep wasps", name="Ben")
    await world.learned("bees", "wasps")
    await world.say("what was in the attic?")
    await world.say("/memory export transcript", "one file to read")
    await world.say("/backup", "Backed up", chat=ANN, user=ANN)
    assert world.mind.extractions >= read + 2
    assert not [word for word in world.gone if any(word in body for body in world.mind.sent[sent:])]
    files = await world.telegram.files(BOB)
    assert len(files) == 4 and not [word for word in world.gone if any(word.encode() in data for _, data in files[2:])]
    backups = sorted((world.folder / "data" / "backups").glob("*.db"))
    assert len(backups) == 2
    assert world.traces(world.gone, beside=(backups[1],)) == {}
    assert len(world.traces(world.gone, beside=(backups[0],))[backups[0].name]) > 80


async def restored(world: World) -> None:
    """The backup made before it all is put back: nothing that was forgotten comes with it."""
    oldest = min((world.folder / "data" / "backups").glob("*.db"))
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "restore", "--config", str(world.folder / "config.yaml"), "--discard"),
        str(oldest),
        cwd=_ROOT,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, errors = await done.communicate()
    assert done.returncode == 0, (out, errors)
    assert world.traces(world.gone) == {}
    async with spawned(world.folder):
        await world.telegram.wait(polling=True)
        assert "parrot" in await world.say("/memory", "What I remember", chat=ANN, user=ANN)
        await world.say("what was in the attic?")
        await world.say("/memory", "I don't remember anything about you here yet.")
        assert world.traces(world.gone) == {}


@asynccontextmanager
async def lives(folder: Path) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """Runs processes of the bot one after another (see tests/crash/product.py); yields a function that asks them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.product", str(folder / "config.yaml")), cwd=_ROOT, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    written, shown = process.stdin, process.stdout

    async def ask(line: str) -> str:
        written.write(f"{line}\n".encode())
        return (await shown.readline()).decode().strip()

    try:
        yield ask
    finally:
        written.close()
        await process.wait()


@pytest.mark.campaign
async def test_killed_between_the_erasing_and_the_receipt_the_receipt_comes_once(tmp_path: Path) -> None:
    """kill -9 as the erasing is committed, or just before: nothing is left, and that is told, once."""
    async with world(tmp_path) as there, lives(tmp_path) as product:
        for moment in ("before", "after"):
            await product(f"start {moment} insert into erasures")
            await there.say(f"I keep {there.new(moment)}")
            await there.learned(there.planted[moment][0])
            await there.say(f"/forget {there.planted[moment][0]}", "and the words (or just yes)")
            asked = (await there.telegram.state())["chats"][str(BOB)]["messages"][-1]["message_id"]
            await there.telegram.press(asked, label="and the words", chat=BOB, user=BOB)
            assert await product("wait") == "-9"
            pid = int(await product("start"))
            told = await there.receipt_at(asked, BOB)
            assert "Messages erased: 1. My answers erased: 1." in told and "No trace" in told
            await there.telegram.wait(idle=0.5)
            assert there.traces(there.planted[moment]) == {}
            receipts = [text for text in await there.telegram.texts(BOB) if text.startswith("Forgotten")]
            assert len(receipts) == ("before", "after").index(moment) + 1
            os.kill(pid, signal.SIGKILL)
            await product("wait")
