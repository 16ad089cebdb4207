"""Every documented kind of update, with fields that nobody knows: taken, told in words, or ignored for a stated reason.

The payloads stand in `tests/data/telegram_kinds.yaml` and `tests/data/discord_kinds.yaml`, written from the platforms'
documentation, so they also are what the tests' own servers are held against.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import yaml
from structlog.testing import capture_logs

from channels.base import Inbound
from channels.discord.payloads import snowflake
from channels.telegram.parsing import parsed
from channels.telegram.updates import UpdateReader
from channels.telegram.wire import TelegramBot
from tests.kit import discord_bot
from tests.kit.hosts import KeepingHost
from tests.kit.patience import SECONDS, limit, until
from tests.kit.served import ADA as DISCORD_ADA
from tests.kit.served import ANN, TELEGRAM_TOKEN, Served
from tests.kit.telegram_bot import ADA, Host, bot, running
from tests.platforms import discord as discords
from tests.platforms.discord import GENERAL
from tests.platforms.telegram import File, serving

_DATA = Path(__file__).parents[1] / "data"
TELEGRAM: Mapping[str, Any] = yaml.safe_load((_DATA / "telegram_kinds.yaml").read_text("utf-8"))
DISCORD: Mapping[str, Any] = yaml.safe_load((_DATA / "discord_kinds.yaml").read_text("utf-8"))
NEW = {"hologram": {"of": ["light", {"depth": 3}]}}
AT = 1_700_000_000


def with_new_fields(value: Any) -> Any:
    """The same with a field that nobody knows in every object."""
    if isinstance(value, dict):
        return {**{name: with_new_fields(inner) for name, inner in value.items()}, "brand_new": deepcopy(NEW)}
    return [with_new_fields(item) for item in value] if isinstance(value, list) else value


def altered(value: Any) -> Iterator[tuple[str, Any]]:
    """Every way in which one value inside could be of a new sort, with its place."""
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in places:
        for below, other in [("", deepcopy(NEW)), *altered(inner)]:
            copy = deepcopy(value)
            copy[name] = other
            yield f"{name}.{below}", copy


def fits(problems: list[str], shapes: Mapping[str, Any], kind: Any, value: Any, place: str) -> None:
    """Adds what of `value` is not as the documentation has the object `kind`."""
    parts = kind.split("|") if isinstance(kind, str) else [kind]
    if value is None and "null" in parts:
        return
    if isinstance(kind, list):
        for number, item in enumerate(value):
            fits(problems, shapes, kind[0], item, f"{place}[{number}]")
    elif parts[0] in shapes and isinstance(value, dict):
        fields = {name.removesuffix("?"): inner for name, inner in shapes[parts[0]].items()}
        wanted = [name for name in shapes[parts[0]] if not name.endswith("?")]
        problems += [f"{place}: no {name}" for name in wanted if name not in value]
        for name, inner in value.items():
            known = fields.get(name) or (fields.get("can_") if name.startswith("can_") else None)
            if known is None:
                problems.append(f"{place}: {kind} has no {name}")
            else:
                fits(problems, shapes, known, inner, f"{place}.{name}")
    elif not any(_is(part, value) for part in parts if part not in shapes):
        problems.append(f"{place}: {value!r} is no {kind}")


def _is(kind: str, value: Any) -> bool:
    types = {
        "int": int,
        "str": str,
        "bool": bool,
        "float": int | float,
        "object": dict,
        "list": list,
        "null": type(None),
    }
    if kind == "id":
        return isinstance(value, str) and value.isdecimal()
    return isinstance(value, types[kind]) and (kind == "bool" or not isinstance(value, bool))


def telegram_message(number: int, content: Mapping[str, Any]) -> dict[str, Any]:
    ada = {"id": ADA, "is_bot": False, "first_name": "Ada"}
    chat = {"id": ADA, "type": "private", "first_name": "Ada"}
    return {"message_id": 1000 + number, "date": AT, "chat": chat, "from": ada, **content}


def telegram_cases() -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """For each group its cases: name, expectation, update."""
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
        "contents": [],
        "beside": [],
        "services": [],
        "updates": [],
    }
    for number, (name, given) in enumerate(TELEGRAM["contents"].items()):
        content = {key: value for key, value in given.items() if key != "expect"}
        groups["contents"].append((name, given.get("expect", "said"), {"message": telegram_message(number, content)}))
    for number, (name, given) in enumerate(TELEGRAM["beside"].items()):
        message = telegram_message(number, {"text": f"hello {number}", **given})
        groups["beside"].append((name, "said", {"message": message}))
    for number, (name, given) in enumerate(TELEGRAM["services"].items()):
        if name != "ignored":
            groups["services"].append((name, "ignored", {"message": telegram_message(number, {name: given})}))
    for name, given in TELEGRAM["updates"].items():
        if name != "ignored":
            update = {key: value for key, value in given.items() if key != "expect"}
            groups["updates"].append((name, given.get("expect", "ignored"), {name.split()[0]: update}))
    return groups


def outcome(host: Host, update: Mapping[str, Any]) -> str:
    [(kind, given)] = update.items()
    if kind == "my_chat_member":
        return {True: "there", False: "gone", None: "lost"}[dict(host.presence).get(str(given["chat"]["id"]))]
    if kind == "message_reaction":
        return judged(host, str(given["message_id"]))
    shown = given.get("message", given)
    number, text = str(shown.get("message_id")), shown.get("text", "-")
    found = [one for one in host.said if one.message_id == number or one.text == text]
    if len(found) > 1:
        return "doubled"
    return told(found[0]) if found else "ignored"


def judged(host: KeepingHost, message_id: str) -> str:
    found = [(told.good, kept) for inbound, told, kept in host.reacted if inbound.message_id == message_id]
    names: dict[tuple[bool | None, bool], str] = {
        (True, True): "liked",
        (False, True): "disliked",
        (True, False): "no more liked",
    }
    return "doubled" if len(found) > 1 else names[found[0]] if found else "ignored"


def told(inbound: Inbound) -> str:
    return "words" if inbound.is_empty and inbound.pressed is None else "said"


@pytest.mark.parametrize("group", ["contents", "beside", "services", "updates"])
async def test_no_documented_update_of_telegram_is_lost(group: str) -> None:
    """A kind that is newer than this program, or than its library, must not cost people their words."""
    cases = telegram_cases()[group]
    async with serving() as telegram:
        with capture_logs() as logs:
            async with running(bot(telegram), Host()) as host:
                for _, _, update in cases:
                    await telegram.inject(with_new_fields(update))
                await telegram.inject({"message": telegram_message(8_000, {"text": "that is all"})})
                await host.until(lambda host: any(one.text == "that is all" for one in host.said))
    outcomes = [(name, wanted, outcome(host, update)) for name, wanted, update in cases]
    misses = [f"{name}: {got}, not {wanted}" for name, wanted, got in outcomes if got != wanted]
    misses += [str(one) for one in logs if one["log_level"] == "error" and one["event"] != "channel.unread"]
    assert not misses, "\n".join(misses)


def test_no_message_of_telegram_is_lost_for_a_value_of_a_new_sort() -> None:
    """A field of another shape costs itself alone: the message is told, and so are the fields beside it."""
    reader = UpdateReader(
        channel="telegram",
        me=TelegramBot(id="4242", username="b", name="B", reads_all_group_messages=True),
        mention=True,
    )
    misses = []
    for name, given in (*TELEGRAM["contents"].items(), *TELEGRAM["beside"].items()):
        if given.get("expect") in ("words", "ignored"):
            continue
        for place, content in altered(given):
            for message in ({"text": "hello", **content}, content):
                update, _ = parsed({"update_id": 1, "message": telegram_message(1, message)}, now=AT * 1000)
                inbound = None if update is None else reader.said([update])
                if inbound is None or (message is not content and place != "text." and not inbound.text):
                    misses.append(f"{name}: {place} {message}")
    assert not misses, "\n".join(misses)


async def test_the_server_of_the_tests_has_the_shapes_of_telegrams_documentation() -> None:
    """Tests by a server that is wrong about Telegram show nothing."""
    problems: list[str] = []
    async with (
        serving() as telegram,
        httpx.AsyncClient(timeout=SECONDS, base_url=f"{telegram.url}/bot{telegram.token}/") as api,
    ):
        for kind in ("photo", "document", "voice", "audio", "video", "video_note", "animation", "sticker"):
            await telegram.say(
                "look",
                user=ADA,
                username="ada",
                language="de",
                file=File(kind=kind, data=b"x", mime="text/plain; charset=utf-8"),
            )
        for thing in (
            {"location": (1.5, 2.5)},
            {"venue": "Cafe"},
            {"contact": "Bob"},
            {"poll": "When?"},
            {"dice": "🎲"},
        ):
            await telegram.say(user=ADA, **thing)
        said = await telegram.say("/start @remora_test_bot", user=ADA, forwarded=True)
        await telegram.edit(said.message_id, "better", chat=ADA)
        thread = await telegram.topic(-1001, user=ADA)
        await telegram.say("in a topic", user=ADA, chat=-1001, thread=thread, sender_chat=-1001)
        await telegram.close_topic(-1001, thread)
        await telegram.member(-1002, "add")
        await telegram.member(ADA, "block")
        await telegram.member(ADA, "unblock")
        await telegram.say("hello", user=ADA, chat=-9, kind="group")
        await telegram.migrate(-9)
        keyboard = {"inline_keyboard": [[{"text": "yes", "callback_data": "y"}]]}
        shown = (await api.post("sendMessage", json={"chat_id": ADA, "text": "sure?", "reply_markup": keyboard})).json()
        await telegram.press(shown["result"]["message_id"], "y", chat=ADA, user=ADA)
        me = (await api.post("getMe")).json()["result"]
        updates = (await api.post("getUpdates", json={"limit": 100})).json()["result"]
    fits(problems, TELEGRAM["objects"], "Message", shown["result"], "sendMessage")
    fits(problems, TELEGRAM["objects"], "User", me, "getMe")
    kinds = {"callback_query": "CallbackQuery", "my_chat_member": "ChatMemberUpdated"}
    for update in updates:
        [(name, value)] = [(name, value) for name, value in update.items() if name != "update_id"]
        fits(problems, TELEGRAM["objects"], kinds.get(name, "Message"), value, name)
    assert len(updates) > 20
    assert not problems, "\n".join(dict.fromkeys(problems))


# Discord.


def discord_message(number: int, channel: int, content: Mapping[str, Any]) -> dict[str, Any]:
    author = {"id": "1001", "username": "ada", "discriminator": "0", "global_name": "Ada", "avatar": None}
    told = {"tts": False, "pinned": False, "mentions": [], "mention_roles": [], "attachments": [], "embeds": []}
    made = {"timestamp": "2026-11-28T12:00:00+00:00", "edited_timestamp": None, "mention_everyone": False}
    return {"id": str(_id(number)), "channel_id": str(channel), "type": 0, "author": author, **told, **made, **content}


def _id(number: int) -> int:
    return snowflake(discord_bot.milliseconds()) // 10_000 * 10_000 + number


Frames = list[tuple[str, str, str, dict[str, Any]]]


def discord_cases(group: str, direct: int) -> Frames:
    """The cases of a group: name, expectation, name of the frame, frame."""
    given: Mapping[str, Any] = DISCORD[group]
    if group == "types":
        kinds = [(expected, kind) for expected in ("said", "ignored") for kind in given[expected]]
        return [
            (
                f"type {kind}",
                expected,
                "MESSAGE_CREATE",
                discord_message(number, direct, {"type": kind, "content": "x"}),
            )
            for number, (expected, kind) in enumerate(kinds)
        ]
    cases: Frames = []
    for number, (name, payload) in enumerate(given.items()):
        if name == "ignored":
            continue
        expected = "said"
        if isinstance(payload, dict) and "expect" in payload:
            expected = payload["expect"]
        content = {key: value for key, value in payload.items() if key != "expect"}
        if group == "messages":
            cases.append((name, expected, "MESSAGE_CREATE", discord_message(number, direct, content)))
        elif group == "interactions":
            cases.append((name, expected, "INTERACTION_CREATE", _interaction(number, direct, content)))
        else:
            cases.append((name, payload.get("expect", "ignored"), name.split()[0], content))
    return cases


def _interaction(number: int, direct: int, content: Mapping[str, Any]) -> dict[str, Any]:
    user = discord_message(0, direct, {})["author"]
    place = {"channel_id": str(direct), "channel": {"id": str(direct), "type": 1}, "context": 1, "user": user}
    facts = {"application_id": "1", "token": f"t{number}", "version": 1, "entitlements": [], "locale": "de"}
    return {"id": str(_id(number)), **place, **facts, **content}


def discord_outcome(host: KeepingHost, frame: Mapping[str, Any]) -> str:
    if "emoji" in frame:
        return judged(host, frame["message_id"])
    found = [one for one in host.said if one.update_key[1:] == frame.get("id", "-")]
    if len(found) > 1:
        return "doubled"
    return told(found[0]) if found else "ignored"


@pytest.mark.parametrize("group", ["messages", "types", "interactions", "events"])
async def test_no_documented_frame_of_discord_is_lost_or_ends_the_run(group: str) -> None:
    """A frame that discord.py or this program can't read must neither cost words nor the connection of all."""
    async with discords.serving() as discord:
        with discords.reached(discord), capture_logs() as logs:
            direct = await discord.dm(1001)
            cases = discord_cases(group, direct)
            async with discord_bot.running(discord_bot.bot(discord), discord_bot.Host()) as host:
                for _, _, name, frame in cases:
                    await discord.event(name, with_new_fields(frame))
                await discord.event("MESSAGE_CREATE", discord_message(8_000, direct, {"content": "that is all"}))
                await host.until(lambda host: any(one.text == "that is all" for one in host.said))
                await discord.wait(idle=0.2)
            identifies = (await discord.state())["gateway"]["identifies"]
    outcomes = [(name, wanted, discord_outcome(host, frame)) for name, wanted, _, frame in cases]
    misses = [f"{name}: {got}, not {wanted}" for name, wanted, got in outcomes if got != wanted]
    misses += [str(one) for one in logs if one["log_level"] == "error" and one["event"] != "channel.unread"]
    assert not misses, "\n".join(misses)
    assert identifies == 1


async def test_what_discord_py_can_not_read_of_a_server_costs_only_that() -> None:
    """Else one channel of a new sort would end the connection, and again after each new one."""
    strange = {"hologram": {"of": "light"}}
    async with discords.serving() as discord:
        with discords.reached(discord):
            async with discord_bot.running(discord_bot.bot(discord), discord_bot.Host()) as host:
                [guild] = (await heard_from(discord, ["GUILD_CREATE"]))["GUILD_CREATE"]
                kitchen = {**guild["channels"][0], "id": "77", "name": "kitchen"}
                told = {
                    **guild,
                    "channels": [strange, kitchen, {"id": "78", "type": 0}],
                    "threads": [strange, 4],
                    "roles": [*guild["roles"], {"id": "79", "color": strange}],
                    "members": [*guild["members"], {"user": strange}, None],
                    "emojis": [strange],
                    "stickers": [{"format_type": 99}],
                    "stage_instances": [strange],
                    "guild_scheduled_events": [strange],
                    "premium_subscription_count": strange,
                }
                await discord.event("GUILD_CREATE", told)
                own = next(role["id"] for role in guild["roles"] if role["id"] != guild["id"])
                words = {"content": f"<@&{own}> what is <#77>?", "mention_roles": [own], "guild_id": guild["id"]}
                message = discord_message(1, 77, words)
                await discord.event("MESSAGE_CREATE", message)
                [inbound] = await host.hears()
            state = await discord.state()
    assert (inbound.text, inbound.chat_title, inbound.addressed) == ("what is #kitchen?", "#kitchen", True)
    assert state["gateway"]["identifies"] == 2  # the bot's, and the one of the test that has looked


async def heard_from(
    discord: discords.Control, until: list[str], act: Callable[[], Awaitable[object]] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The frames that a listener of its own gets until each of `until` came, by their names; it acts once it is in."""
    frames: dict[str, list[dict[str, Any]]] = {}
    async with aiohttp.ClientSession() as session:
        address = f"{discord.url.replace('http', 'ws', 1)}/gateway?v=10&encoding=json"
        async with limit(), session.ws_connect(address) as gateway:
            asked = {"token": discord.token, "intents": 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15, "properties": {}}
            await gateway.send_json({"op": 2, "d": asked})
            while not all(name in frames for name in until):
                frame = await gateway.receive_json()
                if frame["t"] is not None:
                    frames.setdefault(frame["t"], []).append(frame["d"])
                if frame["t"] == "GUILD_CREATE" and act is not None:
                    await act()
            await gateway.close()
    return frames


async def test_the_server_of_the_tests_has_the_shapes_of_discords_documentation() -> None:
    """Tests by a server that is wrong about Discord show nothing."""
    async with discords.serving() as discord:

        async def act() -> None:
            file = ("a.txt", b"x", "text/plain; charset=utf-8")
            first = await discord.say("hello <@1001>", user=1001, name="Ada", channel=GENERAL, attachments=[file])
            await discord.say("in answer", user=1001, channel=GENERAL, reply_to=first.message_id)
            await discord.slash("help", user=1001, channel=GENERAL, unchecked=True)
            await discord.edit(first.message_id, "better")
            await discord.say("in private", user=1001, channel=await discord.dm(1001))
            thread = await discord.open_thread(user=1001)
            await discord.say("in a thread", user=1001, channel=thread)
            await discord.archive(thread)
            await discord.delete(first.message_id)
            await discord.event("HOLOGRAM_CREATE", {})

        frames = await heard_from(discord, ["HOLOGRAM_CREATE"], act)
    kinds = {
        "GUILD_CREATE": "Guild",
        "MESSAGE_CREATE": "Message",
        "MESSAGE_UPDATE": "Message",
        "THREAD_CREATE": "Channel",
    }
    kinds |= {"THREAD_UPDATE": "Channel", "CHANNEL_CREATE": "Channel", "INTERACTION_CREATE": "Interaction"}
    problems: list[str] = []
    for name, kind in kinds.items():
        for frame in frames.get(name, ()):
            fits(problems, DISCORD["objects"], kind, frame, name)
    assert kinds.keys() - frames.keys() == {"CHANNEL_CREATE"}
    assert not problems, "\n".join(dict.fromkeys(problems))


async def test_who_sends_what_can_not_be_read_is_told_so_in_their_language(tmp_path: Path) -> None:
    """Silence looks as if the bot were broken; and thirty days after it was blocked, what it knows is erased."""
    async with serving((TELEGRAM_TOKEN,)) as telegram, discords.serving() as discord:
        with discords.reached(discord):
            served = Served(tmp_path, telegram=telegram, discord=discord)
            async with served.running():
                await telegram.say("Hallo", user=ANN, name="Ann", language="de")
                await telegram.wait(chat=ANN, bot_messages=1)
                ann = {"id": ANN, "is_bot": False, "first_name": "Ann", "language_code": "de"}
                chat = {"id": ANN, "type": "private", "first_name": "Ann"}
                strange = {"message_id": 500, "date": AT, "chat": chat, "from": ann, "text": {"parts": ["a"]}}
                await telegram.inject({"message": {**strange, "date": int(time.time())}})
                await telegram.wait(chat=ANN, text="nichts Lesbares")
                new = {"status": "hologram", "user": {"id": 4242, "is_bot": True, "first_name": "Remora"}}
                change = {"chat": chat, "from": ann, "date": AT, "old_chat_member": new, "new_chat_member": new}
                await telegram.inject({"my_chat_member": change})
                await discord.wait(connected=True)
                asked = await discord.slash("help", user=DISCORD_ADA, unchecked=True)
                await discord.wait(answered=asked)
                wire = _interaction(1, await discord.dm(DISCORD_ADA), {"type": 99})
                wire["user"]["id"] = str(DISCORD_ADA)
                await discord.event("INTERACTION_CREATE", wire)
                await discord.wait(text="nichts Lesbares")
                [store] = (tmp_path / "data").rglob("*.db")
                await until(lambda: _left(store))


def _left(store: Path) -> bool:
    with closing(sqlite3.connect(store)) as database:
        return bool(database.execute("select count(*) from chats where left_at is not null").fetchone()[0])
