"""Every page and every link on it in a real browser, in the settings of a new installation, with a store that is lived in."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from playwright.async_api import Page as Shown
from playwright.async_api import expect

from tests.browser.conftest import Opening
from tests.kit.browser import MISSING, found
from tests.kit.patience import until
from tests.kit.visit import USED, Guest, Page

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]
#: A folder for pictures, to be looked at; without one none are taken.
PICTURES = os.environ.get("REMORA_PICTURES")
#: What somebody says, in two languages: facts, a value that is replaced, a reminder, and a question that waits.
SAID = (
    "My name is Ada and I live in Lisbon.", "My sister is called Mira Santos. I am allergic to nuts.",
    "Ich arbeite bei der Post und ich mag Tee.", "We moved! I live in Porto now.", "Where do I live?",
    "/remind me tomorrow at 9 to call Mira", "/profile manner Be kind.", "/task tidy my notes every Monday at 9",
)  # fmt: skip
#: Elements that are placed by something outside the box they scroll in, so that they lengthen what is around it.
ESCAPED = """() => [...document.querySelectorAll("body *")].filter(one => {
  if (getComputedStyle(one).position !== "absolute" || !one.getClientRects().length) return false;
  let box = one.parentElement;
  while (box && !/auto|scroll/.test(getComputedStyle(box).overflowY + getComputedStyle(box).overflowX)) box = box.parentElement;
  return box && box !== document.body && box !== document.documentElement && !box.contains(one.offsetParent);
}).map(one => one.outerHTML.slice(0, 120))"""


async def lived_in(page: Page, guest: Guest) -> None:
    for text in SAID:
        await guest.say(text)
    await guest.say("look at this", files={"file": ("notes.txt", b"the pump is in the shed", "text/plain")})
    await guest.say("/forget nuts", thread="asks")
    assert "nuts" in await guest.text("/questions")
    await page.alter((USED, ["chat", 7_000, 0.25, int(time.time() * 1000)]))


@pytest.mark.parametrize("person", ["you", "a plain visitor"])
async def test_every_link_leads_to_a_page(shipped: Page, opening: Opening, person: str) -> None:
    """Nothing answers with an error, says anything in the console, or asks another host."""
    shown, guest = await opening(person, at=shipped)
    await lived_in(shipped, guest)
    if person == "you":
        old = "update memories set last_reinforced_at = 1, importance = 1 where kind = 'fact' and valid_until is null"
        await shipped.alter((old, []))
        await guest.told("/admin/jobs", at="/admin/jobs", job="decay", agent="assistant")

        async def decayed() -> bool:
            return "/night/" in (await guest.get("/night")).text

        await until(decayed)
    wrong: list[str] = []
    shown.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 500 else None)
    shown.on("request", lambda asked: None if asked.url.startswith(shipped.url) else wrong.append(asked.url))
    shown.on("console", lambda said: wrong.append(f"{shown.url}: {said.text}") if said.type == "error" else None)
    shown.on("pageerror", lambda error: wrong.append(f"{shown.url}: {error}"))
    todo, done = ["/"], set[str]()
    while todo:
        path = todo.pop()
        done.add(path)
        answer = await shown.goto(path)
        assert answer is not None and answer.status == 200, path
        assert await shown.evaluate(ESCAPED) == [], path
        links = await shown.evaluate(
            "[...document.querySelectorAll('main a:not([download]), nav a')].map(one => one.getAttribute('href'))"
        )
        paths = {link.partition("#")[0] for link in links if link and link.startswith("/")}
        todo += sorted(
            each for each in paths - done - set(todo) if "/file/" not in each and not each.startswith("/chat/c")
        )
    assert wrong == []
    kinds = {path.split("?")[0].split("/")[1] for path in done}
    assert {"chat", "memory", "timeline", "entities", "night", "questions", "me", "why"} <= kinds
    assert ("admin" in kinds) == (person == "you")
    assert person != "you" or any(path.startswith("/night/") for path in done)
    assert any(path.startswith("/memory/m_") for path in done) and any(path.startswith("/entities/") for path in done)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [(320, 640), (1280, 800)], ids=["phone", "desktop"])
async def test_a_long_conversation_opens_at_its_end(
    shipped: Page, opening: Opening, size: tuple[int, int], theme: str
) -> None:
    """The newest answer is on the screen, and so is the field below it."""
    width, height = size
    shown, guest = await opening(f"talks at length {theme} {width}", at=shipped, color_scheme=theme,
                                 viewport={"width": width, "height": height})  # fmt: skip
    for number in range(8):
        await guest.say(f"I like the song number {number}, and here is why: " + "it goes on and on. " * 12)
    await shown.goto("/chat")
    await on_screen(shown, height)
    await shown.reload()
    await on_screen(shown, height)
    if PICTURES:
        await shown.screenshot(path=Path(PICTURES) / f"chat-{width}-{theme}.png")


async def on_screen(shown: Shown, height: int) -> None:
    await expect(shown.locator(".item.mine")).to_have_count(8)
    await expect(shown.locator(".item.theirs").last).to_be_in_viewport()
    await expect(shown.locator(".item.theirs").last.locator(".foot")).to_be_in_viewport(ratio=1)
    await expect(shown.locator("#text")).to_be_in_viewport(ratio=1)
    assert await shown.evaluate("document.documentElement.scrollHeight") <= height
    assert await shown.evaluate("scrollY") == 0
