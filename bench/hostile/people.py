"""Sends what a person can on Telegram and on Discord."""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bench.hostile.inputs import Deed, enter_all, hostile
from bench.hostile.world import FAR, PATIENCE, World
from tests.platforms.client import ControlError
from tests.platforms.discord import GENERAL

#: The most characters of a message on Telegram and on Discord.
NEAR_MOST, FAR_MOST = 4_096, 2_000


def passwords(count: int, start: int = 0) -> str:
    """Returns lines that each hold another password."""
    return "\n".join(f"pw: Zq{n}x!{n * 7919 % 9973}" for n in range(start, start + count))


def filled(piece: str, most: int = NEAR_MOST) -> str:
    """Returns a text of at most `most` characters made of one piece."""
    return (piece * (most // len(piece) + 1))[:most]


#: Texts that cost a reader more than their length, by what they are made of.
TEXTS: Final = {
    "passwords": passwords(185),
    "passwords without marks": filled("my password is Hunter%d and the pin 4711 "),
    "keys of vendors": filled("sk-proj-abcdefghijklmnopqrstuvwx AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijklmnopqrstuvwxyz "),
    "digits": filled("4111 1111 1111 1111 "),
    "one word": filled("a"),
    "opened brackets": filled("["),
    "opened pictures": filled("![a]("),
    "opened tags": filled("<img src="),
    "backticks of all lengths": filled("".join("`" * n + " " for n in range(1, 88))),
    "stars": filled("*a_b**c~~"),
    "quotes within quotes": filled(">", 2_000) + "x",
    "a table of many columns": "|" + "a|" * 1_000 + "\n|" + "-|" * 1_000,
    "addresses": filled("http://a.example/b?c=d&e=f "),
    "half addresses": filled("http:// www. a@ @b "),
    "days": filled("tomorrow at 5 and next Friday or 2027-02-30 and 31.02.2027 "),
    "times": filled("in 5 minutes every 3 hours at 25:61 "),
    "numbers in words": filled("twenty-one hundred thousand million "),
    "accents": filled("a" + "\u0301" * 60),
    "hidden characters": filled("a\u200b\u202e\u2066\ufeff"),
    "one code point of many": filled("\ufdfa"),
    "mixed scripts": filled("аbс我ﾊﾝ가ا"),
    "names": filled("Ana Maria de la Cruz met Tom Smith and "),
    "likes and dislikes": filled("I like tea. I don't like tea. I moved to Rome. "),
    "JSON": filled('{"a":[') + "]",
    "lines": "\n" * 4_000 + "x",
    "emoji": filled("👩‍👩‍👧‍👦"),
}  # fmt: skip

#: Commands with arguments that nobody gives.
COMMANDS: Final = (
    "/remember I have a concert with Tom (2027-02-30)", "/remember on 9999-12-31 and on 0000-00-00 I marry",
    "/remind in 99999999999999999999 years to sleep", "/remind every 0 seconds to wake", "/memory list since:9999-12-31",
    "/memory list since:0001-01-01 topic:" + "x" * 900, "/memory show m_" + "z" * 3_000, "/forget " + "(a+)+$" * 600,
    "/forget " + "%_" * 1_500, "/correct m_7k2pq4 " + "![a](" * 700, "/why 99999999999999999999", "/keys make " + "x" * 3_900,
)  # fmt: skip


def _text(text: str) -> Deed:
    async def deed(world: World) -> None:
        await world.say(text)

    return deed


#: Texts that are tried one by one; the others come together, from several people.
_ALONE: Final = (
    "passwords", "passwords without marks", "keys of vendors", "opened pictures", "half addresses", "one code point of many",
    "numbers in words", "names",
)  # fmt: skip

enter_all(
    "telegram text", {f"{name}, one message": _text(TEXTS[name]) for name in _ALONE}, short=("passwords, one message",)
)


@hostile("telegram text", "every other costly text at once, from six people")
async def _texts(world: World) -> None:
    users = [world.person() for _ in range(6)]
    for n, name in enumerate(name for name in TEXTS if name not in _ALONE):
        await world.telegram.say(TEXTS[name], user=users[n % len(users)])
    for user in users:
        await world.answered(user)


@hostile("telegram text", "passwords, seven messages at once")
async def _burst(world: World) -> None:
    await world.say(*(passwords(185, start=n * 185) for n in range(7)))


@hostile("telegram text", "brackets and pictures, seven messages at once")
async def _burst_of_marks(world: World) -> None:
    await world.say(*(TEXTS["opened pictures"], TEXTS["opened brackets"]) * 3)


@hostile("telegram commands", "dates, numbers and patterns that nobody gives")
async def _commands(world: World) -> None:
    user = world.person()
    for n, command in enumerate(COMMANDS):
        if n == 6:
            user = world.person()
        await world.telegram.say(command, user=user)
    await world.answered(user, 3)


@hostile("telegram commands", "two hundred reminders a person, one second each")
async def _reminders(world: World) -> None:
    for _ in range(8):
        user = world.person()
        for n in range(10):
            await world.telegram.say(f"/remind in {n + 1} seconds to drink", user=user)
    await world.answered(user, 4)


# Files ----------------------------------------------------------------------------------------------------------


def bomb_of_pdf(unpacked: int = 200_000_000) -> bytes:
    """Returns a PDF whose only page's content unpacks to so many bytes."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(unpacked // 1_000_000)) + packer.flush()
    return _pdf(
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(packed), packed),
    )  # fmt: skip


def looping_pdf() -> bytes:
    """Returns a PDF whose pages contain themselves."""
    return _pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 100000>>")


def _pdf(*objects: bytes) -> bytes:
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    at = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, at)
    return bytes(data)


def huge_picture() -> bytes:
    """Returns a small PNG that says it has 60,000 times 60,000 points."""
    head = (60_000).to_bytes(4) * 2 + b"\x08\x06\0\0\0"
    packed = zlib.compress(b"\0" * 5_000_000, 9)
    parts = ((b"IHDR", head), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4) for kind, data in parts
    )


#: Files: a name and the bytes.
FILES: Final[dict[str, tuple[str, bytes]]] = {
    "a text of 9 MB of passwords": ("a.txt", passwords(600_000).encode()[:9_000_000]),
    "a text of one line": ("a.md", b"a" * 9_000_000),
    "a JSON file nested deeply": ("a.json", b"[" * 9_000_000),
    "a text in UTF-16": ("a.txt", ("\ufeff" + "pw: Zq1x!77 ä\n" * 300_000).encode("utf-16")),
    "a PDF that unpacks to 200 MB": ("a.pdf", bomb_of_pdf()),
    "a PDF whose pages contain themselves": ("a.pdf", looping_pdf()),
    "a picture of 60,000 by 60,000": ("a.png", huge_picture()),
    "a CSV of commas": ("a.csv", b"," * 9_000_000),
    "a name of 200 strange characters": ("\u202e../" * 50 + ".txt", b"hello"),
}


def _file(name: str, data: bytes) -> Deed:
    async def deed(world: World) -> None:
        await world.say("what is in it?", document=data, filename=name)

    return deed


enter_all("telegram file", {name: _file(*file) for name, file in FILES.items()},
          short=("a PDF that unpacks to 200 MB",))  # fmt: skip


@hostile("telegram file", "ten files at once, each with a caption of passwords")
async def _captions(world: World) -> None:
    user = world.person()
    for n in range(10):
        await world.telegram.say(
            passwords(60, n * 60)[:1_024], user=user, document=b"a\n" * 400_000, filename=f"{n}.txt"
        )
    await world.answered(user)


@hostile("telegram edit", "forty edits of a message to other passwords")
async def _edits(world: World) -> None:
    user = world.person()
    said = await world.telegram.say("hello", user=user)
    for n in range(40):
        await world.telegram.edit(said.message_id, passwords(185, n), chat=user)
    await world.answered(user)


@hostile("telegram edit", "a reply to a long message, with a hundred entities")
async def _entities(world: World) -> None:
    user = await world.say(TEXTS["opened pictures"])
    said = await world.telegram.say(TEXTS["names"], user=user)
    entities = [{"type": "bold", "offset": n, "length": 4_000 - n} for n in range(100)]
    await world.say("a" * 4_096, user=user, reply_to=said.message_id, entities=entities)


@hostile("telegram update", "parts of the wrong type and of great length")
async def _updates(world: World) -> None:
    user = world.person()
    odd: Sequence[dict[str, object]] = (
        {"message": {"message_id": 1, "date": 10**15, "chat": {"id": user, "type": "private"}, "text": "x"}},
        {"message": {"message_id": -1, "date": 0, "chat": {"id": user, "type": "nonsense"}, "from": 5, "text": ["x"]}},
        {"edited_message": None, "message": "text"},
        {"callback_query": {"id": "1", "from": {"id": user, "is_bot": False, "first_name": "x" * 9_999}, "data": "x" * 999}},
        {"my_chat_member": {"chat": {}}, "poll_answer": {"poll_id": "x"}},
    )  # fmt: skip
    for update in odd:
        with suppress(ControlError):
            await world.telegram.inject(dict(update))
    await world.say("hello", user=user, name="x" * 64, extra={"quote": {"text": "y" * 9_000, "position": 0}})


# Discord --------------------------------------------------------------------------------------------------------


def _far_text(text: str) -> Deed:
    async def deed(world: World) -> None:
        await _said(world, text)

    return deed


async def _said(world: World, text: str, files: Sequence[tuple[str, bytes, str]] = ()) -> None:
    user = FAR + world.person()
    said = await world.discord.say(text, user=user, attachments=files)
    try:
        await world.discord.wait(channel=said.channel, bot_messages=1, timeout=PATIENCE)
    except TimeoutError:
        world.notes.append("the attacker got no answer")


enter_all(
    "discord message",
    {
        "passwords": _far_text(passwords(95)[:FAR_MOST]),
        "hidden parts": _far_text(filled("||a", FAR_MOST)),
        "mentions": _far_text(filled("<@1001><@&5><#901>", FAR_MOST)),
        "fences": _far_text(filled("```a\n", FAR_MOST)),
        "four thousand characters": _far_text(passwords(185)[:4_000]),
        "a file of passwords": lambda world: _said(world, "see", [("a.txt", FILES["a text of 9 MB of passwords"][1], "text/plain")]),
    },
)  # fmt: skip


async def _slashed(world: World, name: str, options: dict[str, str]) -> None:
    interaction = await world.discord.slash(name, options, user=FAR + world.person(), unchecked=True)
    try:
        await world.discord.wait(answered=interaction, timeout=PATIENCE)
    except TimeoutError:
        world.notes.append("the attacker got no answer")


enter_all(
    "discord command",
    {
        "an argument of 6,000 characters": lambda world: _slashed(world, "remember", {"text": passwords(290)[:6_000]}),
        "options that do not exist": lambda world: _slashed(world, "memory", {str(n): "x" * 100 for n in range(25)}),
        "a date that does not exist": lambda world: _slashed(world, "remember", {"text": "a concert with Tom (2027-02-30)"}),
    },
)  # fmt: skip


@hostile("discord command", "the first command after a start", short=True, fresh=True)
async def _first(world: World) -> None:
    await _slashed(world, "help", {})


@hostile("discord command", "fifty completions at once")
async def _completions(world: World) -> None:
    user = FAR + world.person()
    options = {"text": filled("m_(a+)+$", 100)}
    await asyncio.gather(
        *(world.discord.autocomplete(name, options, user=user) for name in ("forget", "memory", "correct", "why", "pin") * 10),
        return_exceptions=True,
    )  # fmt: skip


@hostile("discord command", "presses of buttons that were never there")
async def _presses(world: World) -> None:
    user = FAR + world.person()
    said = await world.discord.say("hello", user=user)
    for custom in ("", "x" * 100, "q:" + "9" * 90, base64.b64encode(b"\0" * 60).decode(), json.dumps({"a": 1})):
        with suppress(ControlError):
            await world.discord.press(said.message_id, custom, user=user, stale=True)
    with suppress(ControlError):
        await world.discord.say("hello", user=user, channel=GENERAL)
