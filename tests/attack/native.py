"""Characters that code below Python does not expect: they may end no process and stop no recall."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tests.attack.frame import ADA, CALLED, EVE, GROUP, Attack, Bot, scenario
from tests.attack.model import words
from tests.platforms.client import ControlError

#: Texts that grow, break or vanish where they are normalised, cut into words, or handed to native code.
_TEXTS: dict[str, str] = {
    "salat ×10": "\ufdfa" * 10,
    "salat ×1": "\ufdfa",
    "salat ×20": "\ufdfa" * 20,
    "salat ×100": "\ufdfa" * 100,
    "jalla ×40": "\ufdfb" * 40,
    "arabic ligatures": "\ufdf0\ufdf1\ufdf2\ufdf3\ufdf4\ufdf5\ufdf6\ufdf7\ufdf8\ufdf9\ufdfa\ufdfb\ufdfc" * 8,
    "salat among words": " ".join(["peace \ufdfa be"] * 12),
    "salat in one word": "a" + "\ufdfa" * 200 + "b",
    "squared apartment": "\u3300\u3316\u332b\u337f\u32ff" * 60,
    "fractions and circles": "⒛⑳㊿㋿¼½⅞ⅷ" * 60,
    "ligatures": "ﬃﬄﬆ" * 300,
    "long decompositions": "\u1d160\U0001d160\u0390\u1f82\u0958" * 80,
    "hangul fillers": "\u3164\uffa0\u115f" * 200,
    "nul": "a\0b\0" * 50,
    "controls": "".join(map(chr, range(1, 32))) * 20 + "\x7f\x80\x9f",
    "lone high surrogate": "a\ud800b" * 30,
    "lone low surrogate": "\udc00\udfff" * 30,
    "reversed pair": "\ude00\ud83d" * 30,
    "noncharacters": "\ufdd0\ufffe\uffff\U0010ffff" * 40,
    "unassigned planes": "\U0004fffd\U000dfffd\U00080000" * 60,
    "private use": "\ue000\U000f0000\U00100000" * 60,
    "combining stack": "e" + "\u0301\u0316\u20dd" * 400,
    "combining alone": "\u0300" * 1_500,
    "zero width joins": "👩\u200d" * 400,
    "flags and tags": "🏴" + "\U000e0067\U000e007f" * 200,
    "variation selectors": "a" + "\ufe0f\U000e01ef" * 400,
    "bidi overrides": "\u202e\u2066abc\u2069\u202c" * 120,
    "one long word": "a" * 4_000,
    "one long word of ß": "ß" * 4_000,
    "one long word of 中": "中" * 4_000,
    "one long number": "9" * 4_000,
    "İ": "İ" * 2_000,
    "thai without blanks": "กำแพงที่สูง" * 300,
    "tibetan stacks": "\u0f77\u0f79\u0f73" * 200,
    "blanks of every kind": "\u00a0\u1680\u2000\u2028\u2029\u205f\u3000\x0b\x0c\x85" * 120 + "x",
    "32,000 without a blank": "q" * 32_000,
    "32,000 of salat": "\ufdfa" * 32_000,
    "every kind at once": "\ufdfa\0\ud800\u0300\U0010ffff\u202e" * 300,
}  # fmt: skip
#: Those that the short form tries.
_FEW = ("salat ×100", "every kind at once")


#: A question without a word of what was told, and what it is to find.
_QUESTION, _FOUND = "Which town does my sibling reside in nowadays?", "Porto"


@scenario("native")
async def native(attack: Attack) -> None:
    async with attack.bot(embedding="{provider: local}") as bot:
        await bot.ask("My sister moved to Porto in spring because she loves the ocean.")
        assert await _means(bot), "nothing is found by its meaning before the attack, so nothing can be learned from it"
        for n, (what, ways) in enumerate(_ways(attack.short)):
            for way in ways:
                with suppress(ControlError):
                    await _send(bot, way, _TEXTS[what])
            await bot.rest(30)
            # This question also has the index take in what was said.
            answers = not bot.died() and await bot.ask(f"Are you there, {n}?", user=ADA) is not None
            lives = await bot.rest(30)
            fault = ""
            if bot.died():
                fault = f"{what} as {ways}: the process ended with {bot.process and bot.process.returncode}"
                fault += await _again(bot)
            elif not answers or not lives:
                fault = f"{what} as {ways}: " + ("it does not come to rest" if answers else "no answer")
            for _ in ways:
                attack.count(fault, fault)
        await bot.ask("The boat is called Kingfisher.")
        await bot.rest()
        attack.count(
            not await _finds(bot, "What is the boat called?", "Kingfisher"), "new words are not found any more"
        )
        await bot.ask("My sister moved to Porto in spring because she loves the ocean.")
        await bot.rest()
        still = await _means(bot)
        page = await bot.health()
        attack.count(
            not still and not (page and page["reasons"]), "nothing is found by meaning any more, and health is green"
        )


async def _means(bot: Bot) -> bool:
    """Returns whether anything is found by its meaning. The models are loaded some seconds after the start."""
    for _ in range(30):
        if await _finds(bot, _QUESTION, _FOUND):
            return True
        await asyncio.sleep(1)
    return False


def _ways(short: bool) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields the names of texts, each with the ways by which it comes."""
    ways = ("name", "file name", "forwarded", "title", "edit", "file", "reply")
    for n, what in enumerate(_FEW if short else _TEXTS):
        yield what, ("message", ways[n % 7], ways[(n + 3) % 7])


async def _send(bot: Bot, way: str, text: str) -> None:
    """One text of a stranger to the group, by one way."""
    group: dict[str, Any] = {"user": EVE, "chat": GROUP}
    called = f"{CALLED} "
    match way:
        case "message":
            await bot.telegram.say(called + text, **group)
        case "name":
            await bot.telegram.say(called, name=text[:64], **group)
            await bot.telegram.say(called, name="Eve", **group)
        case "title":
            await bot.telegram.say(called, title=text[:128], **group)
            await bot.telegram.say(called, title="Walkers", **group)
        case "file name":
            await bot.telegram.say(called, document=b"a list", filename=text[:60] + ".txt", mime="text/plain", **group)
        case "file":
            data = text.encode("utf-8", "surrogatepass")
            await bot.telegram.say(called, document=data, filename="a.txt", mime="text/plain", **group)
        case "forwarded":
            await bot.telegram.say(called + text, forwarded=True, **group)
        case "edit":
            said = await bot.telegram.say(called, **group)
            await bot.telegram.edit(said.message_id, called + text, chat=GROUP)
        case "reply":
            said = await bot.telegram.say(text, **group)
            await bot.telegram.say(called, reply_to=said.message_id, **group)


async def _finds(bot: Bot, question: str, wanted: str) -> bool:
    """Returns whether a question of a new session reaches the model with what was told."""
    await bot.ask("/new")
    bot.model.requests.clear()
    await bot.ask(question)
    asked = bot.model.turns()
    return bool(asked) and any(wanted in text for _, text in words(asked[-1]))


async def _again(bot: Bot) -> str:
    """Starts it anew, with what it holds, or with nothing where that ends it again; returns what came of it."""
    for told in (", and lives again", ", and at every start after that"):
        await bot.kill()
        if "every" in told:
            for path in (bot.folder / "data").glob("*"):
                path.unlink() if path.is_file() else None
        with suppress(TimeoutError):
            await bot.start()
            # Its models are loaded some seconds later.
            for _ in range(80):
                if bot.died():
                    break
                await asyncio.sleep(0.1)
            else:
                return told
    return ", and with nothing in its memory, too"
