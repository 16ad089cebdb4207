"""Thousands of people who write at once: what each of them costs must be let go, and the next one answered."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path

from tests.attack.frame import ADA, Attack, Bot, scenario
from tests.attack.model import Says

#: Bytes of memory and files held open that a chat may leave behind.
_BYTES, _FILES = 20_000, 20
#: Bytes that are loaded once and only after the first ones have written.
_ONCE = 16_000_000


@scenario("crowd")
async def crowd(attack: Attack) -> None:
    many = 160 if attack.short else 5_000
    people = list(range(20_000, 20_000 + many))
    async with attack.bot(people=(ADA, *people)) as bot:
        bot.model.script = lambda _body: Says(text="Ok.")
        # The first ones have it load what it needs for everybody.
        first = many // 4
        await _write(bot, people[:first])
        began = bot.resident(), _open(bot)
        await _write(bot, people[first:])
        ended = bot.resident(), _open(bot)
        each = (ended[0] - began[0] - _ONCE) / (many - first)
        attack.count(each > _BYTES, f"each of {many} chats leaves {each:,.0f} bytes of memory")
        attack.count(ended[1] > began[1] + _FILES, f"files held open: {began[1]}, then {ended[1]}")
        state = await bot.telegram.state()
        silent = sum(not any(m["by_bot"] for m in state["chats"][str(person)]["messages"]) for person in people)
        attack.count(silent, f"{silent} of {many} were never answered")
        times = [time.monotonic()]
        for n in range(5):
            await bot.ask(f"and now {n}?", user=ADA)
            times.append(time.monotonic())
        slowest = max(later - earlier for earlier, later in pairwise(times))
        attack.count(slowest > 5, f"after {many} chats an answer takes {slowest:.1f} s")
        page = await bot.health()
        attack.count(page is None or page["reasons"], f"health: {page and page['reasons']}")


async def _write(bot: Bot, people: list[int]) -> None:
    for start in range(0, len(people), 50):
        await asyncio.gather(*(bot.telegram.say("I like walks.", user=one) for one in people[start : start + 50]))
        await bot.telegram.wait(delivered=True, timeout=120)
    assert await bot.rest(300), "it does not come to rest"


def _open(bot: Bot) -> int:
    assert bot.process is not None
    return len(list(Path(f"/proc/{bot.process.pid}/fd").iterdir()))
