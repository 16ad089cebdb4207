"""Attacks by a member of a group or a stranger on others: by a name, by a code, by guessing."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from contextlib import closing, suppress
from dataclasses import replace
from random import Random

from tests.attack.frame import ADA, ADMIN, BEN, EVE, GROUP, Attack, Bot, scenario
from tests.attack.model import Says, words
from tests.kit.served import SELDOM
from tests.platforms.chat_model import JSON, is_extraction

_QUIET = replace(SELDOM, exit_seconds=0, quiet_seconds=0.2)
_CODE = re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b")
_LETTERS = "CDFGHJKMNPQRTVWX23456789"
_CHANCE = Random(4)

#: Names somebody takes before they want nothing told of them.
_NAMES = (
    "Coffee lover", "coffee", "Ada", "Ａda", "A\u200bda", "ada", "Ada Lovelace", "Ben", "self", "me", "I", "user",
    "person", "likes", "Walkers", "the", "Coffee", "Kenya", "you", "all", "(the assistant)",
)  # fmt: skip


def _reader(body: JSON) -> Says | None:
    """Reads "I like …" of each speaker and "Somebody likes …" of somebody, as a good model does."""
    if not is_extraction(body):
        return Says(text="Ok.")
    facts = []
    for line in words(body)[-1][1].splitlines():
        if not line.startswith('{"n"'):
            continue
        said = json.loads(line)
        for about, value in re.findall(r"(?:^|\s)(I|[A-Z]\w+) likes? (\w+(?: \w+)?)", str(said["text"])):
            facts.append(
                {
                    "about": "self" if about == "I" else about, "category": "preference", "topic": "", "key": "likes",
                    "value": value, "importance": 5, "confidence": 0.9, "messages": [said["n"]], "replaces": None,
                }
            )  # fmt: skip
        for thing, value in re.findall(r"(Coffee|Kenya) (?:is|has) (\w+)", str(said["text"])):
            facts.append(
                {
                    "about": thing, "category": "fact", "topic": "", "key": "note", "value": value, "importance": 5,
                    "confidence": 0.9, "messages": [said["n"]], "replaces": None,
                }
            )  # fmt: skip
    return Says(text=json.dumps({"facts": facts, "styles": [], "event": None, "entities": []}))


@scenario("names")
async def names(attack: Attack) -> None:
    async with attack.bot(pace=_QUIET) as bot:
        bot.model.script = _reader
        for person, name in ((ADA, "Ada"), (BEN, "Ben"), (EVE, "Eve")):
            await bot.ask("good morning", user=person, chat=GROUP, name=name)
        for n, name in enumerate(_NAMES[:: 8 if attack.short else 1]):
            await bot.ask("hello", user=EVE, chat=GROUP, name=name)
            await bot.ask("/privacy about off", user=EVE, chat=GROUP)
            told = {
                f"roasts{n:02}q": (ADA, "I like roasts{}q"),
                f"brews{n:02}q": (ADA, "Ada likes brews{}q"),
                f"strong{n:02}q": (ADA, "Coffee is strong{}q"),
                f"farms{n:02}q": (BEN, "Kenya has farms{}q"),
                f"walks{n:02}q": (BEN, "I like walks{}q"),
            }
            if _first_word(name) != "ada":
                # Else nobody could tell which of two they mean.
                told[f"hums{n:02}q"] = (BEN, "Ada likes hums{}q")
            for user, text in told.values():
                await bot.ask(text.format(f"{n:02}"), user=user, chat=GROUP)
            await bot.rest()
            with bot.database() as database:
                kept = " ".join(row[0] for row in database.execute("select value from memories"))
            for value, (_, text) in told.items():
                attack.count(value not in kept, f"as {name!r}: “{text}” is not learned any more")
        # Her wish holds: of herself, by the name she has always had.
        await bot.ask("hello", user=EVE, chat=GROUP, name="Eve")
        await bot.rest()
        await _a_week_later(bot)
        await bot.ask("Eve likes secretsq", user=ADA, chat=GROUP)
        await bot.rest()
        with bot.database() as database:
            kept = " ".join(row[0] for row in database.execute("select value from memories"))
        attack.count("secretsq" in kept, "what others say of one who wants nothing told is learned")


def _first_word(name: str) -> str:
    return unicodedata.normalize("NFKC", name).replace("\u200b", "").split()[0].casefold()


def _guess() -> str:
    letters = "".join(_CHANCE.choices(_LETTERS, k=8))
    return f"{letters[:4]}-{letters[4:]}"


#: How a code is given: a format, whether by /link in private, and whether it counts as an attempt of a stranger.
_WAYS = {
    "by command": "/link {}", "bare": "{}", "bare in small letters": "{}", "bare without a hyphen": "{}",
    "by start": "/start {}", "by pair": "/pair {}",
}  # fmt: skip


def _written(way: str, code: str) -> str:
    code = code.lower() if "small" in way else code.replace("-", "") if "without" in way else code
    return _WAYS[way].format(code)


@scenario("codes")
async def codes(attack: Attack) -> None:
    guessers = list(range(2_000, 2_100))
    async with attack.bot(people=(ADMIN, ADA, BEN, EVE, *guessers)) as bot:
        bot.model.script = lambda _body: Says(text="Ok.")
        await _link_codes(attack, bot, guessers)
        await _pairing_codes(attack, bot)


async def _link_codes(attack: Attack, bot: Bot, guessers: list[int]) -> None:
    """One who has guessed wrong as often as is allowed gives the right code."""
    ways = [way for way in _WAYS if way not in ("by start", "by pair")]
    pairs = [(wrong, right) for wrong in ways for right in ways]
    for wrong, right in pairs[:: 9 if attack.short else 1]:
        guesser = guessers.pop()
        code = await _link_code(bot)
        for _ in range(4 if attack.short else 12):
            await bot.ask(_written(wrong, _guess()), user=guesser)
        answer = await bot.ask(_written(right, code), user=guesser) or ""
        attack.count(_taken(answer), f"wrong {wrong}, then right {right}: {answer[:80]!r}")
    for name in ("forgotten",) if attack.short else ("forgotten", "restarted", "edited"):
        guesser = guessers.pop()
        code = await _link_code(bot)
        for _ in range(4):
            await bot.ask(f"/link {_guess()}", user=guesser)
        if name == "forgotten":
            await bot.ask("/privacy delete", user=guesser)
            await bot.ask("yes", user=guesser)
        elif name == "restarted":
            await bot.kill()
            await bot.start()
        if name == "edited":
            said = await bot.telegram.say("hello", user=guesser)
            await bot.rest()
            await bot.telegram.edit(said.message_id, f"/link {code}", chat=guesser)
            await bot.rest()
            answer = (await bot.texts(guesser))[-1]
        else:
            answer = await bot.ask(f"/link {code}", user=guesser) or ""
        attack.count(_taken(answer), f"shut off, then {name}, then right: {answer[:80]!r}")
    # Many who guess, and somebody who knows: nobody gets in by luck, and the one who knows is not kept out.
    code = await _link_code(bot)
    many = guessers[: 10 if attack.short else 60]
    for guesser in many:
        answers = [await bot.ask(_written(way, _guess()), user=guesser) or "" for way in ("bare", "by command")]
        attack.count(any(map(_taken, answers)), "a guess was right")
    # A hundred wrong codes of all people together end the open ones: who knows one gets in with the next.
    answer = await bot.ask(f"/link {code if attack.short else await _link_code(bot)}", user=BEN) or ""
    attack.count(not _taken(answer), f"who knows the code is kept out by those who guess: {answer[:80]!r}")


async def _pairing_codes(attack: Attack, bot: Bot) -> None:
    strangers = iter(range(3_000, 9_000))
    ways = ("bare", "by start", "by pair", "bare in small letters")
    for wrong in ways[:: 3 if attack.short else 1]:
        for right in ways[:: 4 if attack.short else 1]:
            stranger = next(strangers)
            code = _CODE.search(await bot.ask("/pair", user=ADMIN) or "")
            assert code is not None, "no code was given to the admin"
            for _ in range(3):
                await bot.ask(_written(wrong, _guess()), user=stranger, seconds=3)
            await bot.ask(_written(right, code[0]), user=stranger, seconds=3)
            answer = await bot.ask("hello?", user=stranger, seconds=2) or ""
            attack.count("Ok." in answer, f"a stranger, wrong {wrong}, then right {right}: let in")
            # Used up by somebody who is let in already, so that the next one can be made.
            await bot.ask(f"/allow {next(strangers)}", user=ADMIN)
            helper = next(strangers)
            await bot.ask(_written("bare", code[0]), user=helper, seconds=3)
            attack.count(
                "Ok." not in (await bot.ask("hello?", user=helper, seconds=10) or ""),
                "who knows the code is kept out by a guesser",
            )
    many = 20 if attack.short else 1_000
    for _ in range(many):
        with suppress(TimeoutError):
            await bot.telegram.say(_guess(), user=(stranger := next(strangers)))
            await bot.telegram.say(_guess(), user=stranger)
    await bot.rest()
    allowed = await bot.ask("/allow", user=ADMIN) or ""
    attack.count(str(stranger) in allowed, "a guess let a stranger in")
    attack.count(await bot.ask("still there?", user=ADA) is None, f"{many} strangers guess, and nobody is answered")
    attack.tried += 2 * many


async def _link_code(bot: Bot) -> str:
    found = _CODE.search(await bot.ask("/link", user=ADA) or "")
    assert found is not None, "no code was given"
    return found[0]


def _taken(answer: str) -> bool:
    """Returns whether the bot goes on with a code as the right one."""
    return "created that code" in answer


async def _a_week_later(bot: Bot) -> None:
    """Names are borne for longer than the week after which they count, where the target counts it."""
    await bot.stop()
    path = bot.folder / "data" / "remora.db"
    with closing(sqlite3.connect(path)) as database, suppress(sqlite3.OperationalError), database:
        database.execute("update identities set named_at = named_at - 8 * 86400000")
    await bot.start()
