"""An hour on the page, in a browser and in the settings that `remora init` writes."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, Response
from playwright.async_api import Page as Tab

from tests.journeys.house import House
from tests.journeys.talk import LEAD, TALK, held_by_many
from tests.kit.browser import MISSING, chromium, found
from tests.kit.patience import SECONDS, until

pytestmark = pytest.mark.skipif(found() is None, reason=MISSING)
#: The most pages of one kind that are opened.
_ALIKE = 20


async def test_an_hour_on_the_page_goes_without_a_fault(tmp_path: Path) -> None:
    """Talk, a file of 3 MB, a second tab, every page and every link, and a restart in between."""
    house = House(tmp_path)
    async with chromium() as browser:
        watch = Watch()
        async with house.open():
            tabs = [await signed_in(browser, watch, house, f"person{n}") for n in range(len(TALK))]
            answers = await held_by_many([Chat(each).ask for each in tabs])
            tab = tabs[LEAD]
            chat = Chat(tab)
            await chat.sees_the_end()
            await tab.reload()
            await chat.sees_the_end()
            second = await tab.context.new_page()
            await second.goto(tab.url)
            await chat.send("I am allergic to sesame")
            await second.locator(".item.theirs", has_text="sesame").last.wait_for()
            await tab.set_input_files(
                "input[type=file]", {"name": "plan.txt", "mimeType": "text/plain", "buffer": b"the plan " * 340_000}
            )
            await chat.send("the plan of the house")
            await tab.locator(".item.mine", has_text="plan.txt").last.wait_for()
            paths = await every_page(second, house.url)
            assert {"/memory", "/timeline", "/entities", "/night", "/questions", "/me"} <= paths
            assert {path.split("/")[1] for path in paths} >= {"chat", "memory", "why", "entities"}
            troubles = [*watch.troubles]
        async with house.open():
            # Tabs that looked for the program meanwhile did so in vain, as they do after this.
            await tab.reload()
            watch.troubles.clear()
            await tab.reload()
            answers.append(await chat.ask("what is the number of my locker?", "12"))
            await chat.sees_the_end()
            troubles += watch.troubles
        assert [*troubles, *house.troubles(*answers)] == []


async def signed_in(browser: Browser, watch: Watch, house: House, person: str) -> Tab:
    """Returns a tab of a person with a browser of their own."""
    context = await browser.new_context(viewport={"width": 900, "height": 700})
    context.set_default_timeout(SECONDS * 1000)
    watch.over(context)
    tab = await context.new_page()
    await tab.goto((await asyncio.to_thread(house.run, "web", "--as", person)).strip())
    await tab.get_by_role("button", name=re.compile("Continue")).click()
    return tab


class Watch:
    """Keeps what went wrong in browsers: refusals, errors of scripts, and errors on their consoles."""

    def __init__(self) -> None:
        self.troubles: list[str] = []

    def over(self, context: BrowserContext) -> None:
        context.on("response", self._response)
        context.on("weberror", lambda error: self.troubles.append(str(error.error)))
        context.on("console", lambda line: self.troubles.append(line.text) if line.type == "error" else None)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.append(f"{response.status} {response.url}")


class Chat:
    """A person who types into a tab and reads what appears."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    async def send(self, text: str) -> None:
        await self._tab.fill("#text", text)
        await self._tab.press("#text", "Enter")

    async def ask(self, text: str, expected: str) -> str:
        """Says something and returns what is shown below it, once that fits `expected` and grows no more."""
        items = self._tab.locator("#log .item")
        before = await items.count()
        await self.send(text)
        shown: list[str] = []

        async def fits() -> bool:
            nonlocal shown
            shown = (await self._tab.locator("#log .item.theirs:not(.growing)").all_inner_texts())[-3:]
            return await items.count() >= before + 2 and re.search(expected, "\n".join(shown)) is not None

        try:
            await until(fits)
        except AssertionError:
            raise AssertionError(f"{text!r} was not answered by {expected!r}, but {shown}") from None
        return shown[-1]

    async def sees_the_end(self) -> None:
        for what in (self._tab.locator("#log .item").last, self._tab.locator("#text")):
            await what.wait_for(state="visible")
            box, size = await what.bounding_box(), self._tab.viewport_size
            assert box is not None and size is not None
            assert 0 <= box["y"] + box["height"] - 1 <= size["height"], (box, size)


async def every_page(tab: Tab, url: str) -> set[str]:
    """Opens every page that a link leads to, from the one that is open on. Returns the paths.

    Of pages that differ in their filters or in what they are about, some are opened.
    """
    waiting, seen, tried = [tab.url], set[str](), Counter[str]()
    while waiting:
        address = waiting.pop()
        kind = urlsplit(address).path.split("/")[1]
        if address in seen or tried[kind] == _ALIKE:
            continue
        seen.add(address)
        tried[kind] += 1
        await tab.goto(address, wait_until="load")
        links = await tab.eval_on_selector_all("a[href]:not([download])", "all => all.map(one => one.href)")
        for link in links:
            place = urldefrag(urljoin(address, link)).url
            if place.startswith(f"{url}/") or urlsplit(place).netloc == urlsplit(address).netloc:
                waiting.append(place)
    return {urlsplit(address).path for address in seen}
