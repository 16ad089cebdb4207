"""kill -9 of the server while 20 tabs of its web page stream: each answer stands there once after the reconnect.

`REMORA_KILLS` sets how often the server is killed (once in the ordinary run, `make crash PLATFORM=page` many times).
The tabs do what the page's own script does; nothing of the server is in this process.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.patience import SECONDS, limit, until
from tests.kit.served import Served, spawned
from tests.kit.visit import Guest, Page, words

pytestmark = pytest.mark.campaign

KILLS = int(os.environ.get("REMORA_KILLS", "1"))
PEOPLE = 10
#: Tabs of each person, and kills after which a new conversation begins: a page shows the last 80 messages.
TABS = 2
LONG = 10
_ITEM = re.compile(r'(?=<article id="([^"]+)")')
_MINE = re.compile(r'<article id="[^"]+" class="item mine".*?</article>', re.DOTALL)
_ANSWER = re.compile(r'href="/why/(\d+)"')


class Tab:
    """An open tab: it shows what comes, and connects again when the connection is lost."""

    def __init__(self, guest: Guest, thread: str) -> None:
        self._guest = guest
        self._path = f"/chat/{thread}/events"
        self._items: dict[str, str] = {}
        self._seen = ""
        self._running = asyncio.create_task(self._listen())

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    @property
    def shown(self) -> str:
        return "".join(self._items.values())

    async def _listen(self) -> None:
        while True:
            with suppress(httpx.HTTPError):
                address = f"{self._path}?seen={self._seen}"
                async with self._guest.client.stream("GET", address, timeout=SECONDS) as answer:
                    event = ""
                    async for line in answer.aiter_lines():
                        if line.startswith("event: "):
                            event = line.removeprefix("event: ")
                        elif line.startswith("data: "):
                            self._show(event, httpx.Response(200, text=line.removeprefix("data: ")).json())
            await asyncio.sleep(0.1)

    def _show(self, event: str, data: dict[str, Any]) -> None:
        if event == "log":
            self._items = {
                found[1]: part
                for part in _ITEM.split(data["html"])[2::2]
                if (found := re.search(r'id="([^"]+)"', part))
            }
            self._seen = data["seen"]
        elif event == "item":
            self._items.pop("typing", None)
            self._items[data["key"]] = data["html"]
            self._seen = ""


def amiss(html: str, said: list[str], known: set[str]) -> str:
    """Returns what is wrong with a page, if anything: each message taken stands there once, and each answer once.

    Messages that waited when the server was killed are answered together, so an answer may be to several of them.
    """
    shown = words(html)
    times = Counter({text: len(re.findall(rf"{text}(?!\d)", shown)) for text in said})
    mine = html.count('class="item mine"')
    answers = Counter(_ANSWER.findall(html))
    if lost := [text for text in known if not times[text]]:
        return f"lost: {lost}"
    waits = html.rpartition('class="item ')[2].startswith("mine")
    if len(answers) > mine or (mine and not answers) or set(answers.values()) - {1} or waits or "growing" in html:
        return f"{mine} messages, answers {answers}"
    own = Counter(re.findall(r"thing\d+x\d+x\d+", words("".join(_MINE.findall(html)))))
    return "" if set(own.values()) <= {1} else f"doubled: {own}"


async def say(guest: Guest, thread: str, text: str, nonce: str, nth: int) -> bool:
    """Says something; False if the browser can't tell whether it arrived."""
    try:
        sent = await guest.post(
            f"/chat/{thread}/say", text=f"I like {text}", nonce=nonce, once=f"crash{nth:020}", headers={"X-Remora": "1"}
        )
    except httpx.HTTPError:
        return False
    return sent.status_code == 204


async def settled(
    guests: list[Guest], tabs: dict[int, list[Tab]], thread: str, said: dict[int, list[str]], known: dict[int, set[str]]
) -> None:
    """Waits until every page and every tab shows each message and each answer once; says what stays wrong."""
    wrong: dict[str, str] = {}
    for _ in range(100):
        wrong = {}
        for person, guest in enumerate(guests):
            try:
                loaded = (await guest.get(f"/chat/{thread}")).text
            except httpx.HTTPError as error:
                wrong[f"person {person}"] = repr(error)
                continue
            html = loaded.partition('id="log"')[2].partition("</section>")[0]
            for name, each in (("page", html), *((f"tab {n}", tab.shown) for n, tab in enumerate(tabs[person]))):
                if found := amiss(each, said[person], known[person]):
                    wrong[f"person {person}, {name}"] = found
        if not wrong:
            return
        await asyncio.sleep(0.2)
    raise AssertionError(wrong)


async def test_each_answer_stands_once_in_every_tab_after_the_server_was_killed(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    Served(tmp_path, port=unused_tcp_port)
    page = Page(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")
    chance = random.Random(5)
    guests: list[Guest] = []
    nonces: list[str] = []
    tabs: dict[int, list[Tab]] = {}
    said: dict[int, list[str]] = {}
    known: dict[int, set[str]] = {}
    taken = 0
    try:
        for run in range(KILLS + 1):
            thread = f"k{run // LONG}"
            async with spawned(tmp_path) as server:
                await up(page)
                if not guests:
                    guests = [await page.signed_in(f"p{person}") for person in range(PEOPLE)]
                    nonces = [await guest.nonce() for guest in guests]
                if run % LONG == 0:
                    await asyncio.gather(*(tab.close() for of in tabs.values() for tab in of))
                    tabs = {person: [Tab(guest, thread) for _ in range(TABS)] for person, guest in enumerate(guests)}
                    said, known = ({person: [] for person in tabs}, {person: set() for person in tabs})
                await settled(guests, tabs, thread, said, known)
                if run == KILLS:
                    break
                texts = [f"thing{run}x{person}x{n}" for n in range(2) for person in range(PEOPLE)]
                sending = [
                    asyncio.create_task(say(guests[nth % PEOPLE], thread, text, nonces[nth % PEOPLE], run * 100 + nth))
                    for nth, text in enumerate(texts)
                ]
                # In the middle of it: some messages are taken, some answers grow, some are shown.
                await some_done(sending, chance.randrange(1, len(sending)))
                await asyncio.sleep(chance.uniform(0, 0.1))
                server.kill()
                await server.wait()
                for nth, arrived in enumerate(await asyncio.gather(*sending)):
                    said[nth % PEOPLE].append(texts[nth])
                    if arrived:
                        known[nth % PEOPLE].add(texts[nth])
                        taken += 1
        assert taken > 0, "every kill came before anything was taken"
    finally:
        await asyncio.gather(*(tab.close() for of in tabs.values() for tab in of))
        await page.close()


async def some_done(tasks: list[asyncio.Task[bool]], count: int) -> None:
    async with limit():
        while sum(task.done() for task in tasks) < count:
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)


async def up(page: Page) -> None:
    nobody = page.guest()

    async def served() -> bool:
        with suppress(httpx.HTTPError):
            return (await nobody.get("/in")).status_code == 200
        return False

    await until(served)
