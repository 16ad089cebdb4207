"""Conversations in real browsers with many tabs, in the settings of a new installation: each browser has one stream.

To playwright every tab is visible, so nothing here is spared by tabs that are hidden.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Request, Route, expect
from playwright.async_api import Page as Shown

from tests.browser.conftest import Opening, free_port
from tests.kit.browser import MISSING, found
from tests.kit.patience import until
from tests.kit.served import Served, spawned
from tests.kit.visit import Guest, Page

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]


class Streams:
    """The streams of one browser: how many were opened, and how many are open."""

    def __init__(self, context: BrowserContext) -> None:
        self.opened = 0
        self._open: dict[Request, Shown] = {}
        context.on("request", self._began)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._ended)

    def _began(self, request: Request) -> None:
        if "/events?" in request.url:
            self.opened += 1
            self._open[request] = request.frame.page

    def _ended(self, request: Request) -> None:
        self._open.pop(request, None)

    @property
    def open(self) -> int:
        return sum(not shown.is_closed() for shown in self._open.values())


async def tabs(first: Shown, count: int, path: str = "/chat/main") -> list[Shown]:
    more = [await first.context.new_page() for _ in range(count - 1)]
    for shown in (first, *more):
        await shown.goto(path)
    return [first, *more]


async def say(shown: Shown, text: str) -> None:
    await shown.fill("#text", text)
    await shown.press("#text", "Enter")


async def everywhere(shown: list[Shown], *texts: str) -> None:
    """Waits until each of the tabs shows each of the messages once, and an answer after them."""
    for one in shown:
        for text in texts:
            await expect(one.locator(".item.mine", has_text=re.compile(rf"{text}$", re.M))).to_have_count(1)
        await expect(one.locator(".item:not(.mine):not(.growing)").last).to_be_attached()
        await expect(one.locator(".unsent, .growing")).to_have_count(0)


async def test_ten_tabs_in_each_of_two_browsers_have_one_stream_each(shipped: Page, opening: Opening) -> None:
    """A message sent in any tab arrives in all of them, and nobody connects again and again."""
    first, _ = await opening("ten tabs", at=shipped)
    second, _ = await opening("ten tabs", at=shipped)
    streams = [Streams(first.context), Streams(second.context)]
    shown = [*await tabs(first, 10), *await tabs(second, 10)]
    said = ("I live in Bern", "My dog is called Rex", "I play the oboe")
    for tab, text in zip((shown[0], shown[9], shown[19]), said, strict=True):
        await say(tab, text)
        await everywhere(shown, text)
    await everywhere(shown, *said)
    assert [each.open for each in streams] == [1, 1]
    assert max(each.opened for each in streams) <= 3


async def test_conversations_beyond_those_of_a_stream_say_so_and_go_on_when_they_are_used(
    shipped: Page, opening: Opening
) -> None:
    """A tab that gets nothing must not look as if nothing was said."""
    first, guest = await opening("many talks", at=shipped)
    shown = [first, *[await first.context.new_page() for _ in range(20)]]
    for number, tab in enumerate(shown):
        await tab.goto(f"/chat/talk-{number:02}")
    many = await first.locator("#log").get_attribute("data-many")

    async def left() -> list[int] | None:
        numbers = [number for number, tab in enumerate(shown) if await tab.locator("#state").inner_text() == many]
        return numbers if len(numbers) == 1 else None

    (number,) = await until(left)
    await guest.say("said while it was left", thread=f"talk-{number:02}")
    await shown[number].click("#text")
    await everywhere([shown[number]], "said while it was left")
    await expect(shown[number].locator("#state")).to_have_text("")
    assert await until(left) != [number], "another one has given up its place"


async def test_another_tab_takes_over_the_stream_and_nothing_is_lost_or_doubled(
    shipped: Page, opening: Opening
) -> None:
    first, guest = await opening("takes over", at=shipped)
    streams = Streams(first.context)
    shown = await tabs(first, 3)
    other = await first.context.new_page()
    await other.goto("/chat/boat")
    await say(shown[1], "the first word")
    await everywhere(shown, "the first word")
    for nth in range(2):
        await shown.pop(0).close()
        await guest.say(f"said by the way {nth}")
        await guest.say(f"said of the boat {nth}", thread="boat")
        await everywhere(shown, f"said by the way {nth}")
        await everywhere([other], f"said of the boat {nth}")
    await everywhere(shown, "the first word", "said by the way 0", "said by the way 1")
    await expect(other.locator(".item.mine")).to_have_count(2)
    assert streams.open == 1


async def test_a_tab_that_sleeps_with_the_stream_is_replaced_when_another_is_used(
    shipped: Page, opening: Opening
) -> None:
    """A phone stops tabs in the background, and such a tab holds the lock for ever."""
    shown, guest = await opening("sleeper", at=shipped)
    await shown.goto("/chat/main")
    group = f"remora {await shown.locator('#log').get_attribute('data-of')}"
    sleeper = await shown.context.new_page()
    await sleeper.goto("/memory")
    await sleeper.evaluate(
        "group => new Promise(done => navigator.locks.request(group, {steal: true}, () => { done(); return new Promise(() => {}) }))",
        group,
    )
    await guest.say("nobody hears this yet")
    await everywhere([shown], "nobody hears this yet")


async def test_two_people_in_one_browser_never_see_each_others_words(shipped: Page, opening: Opening) -> None:
    """One signs in after the other, who left a tab open."""
    hers, ada = await opening("first of two", at=shipped)
    _, eve = await opening("second of two", at=shipped)
    await hers.goto("/chat/main")
    await say(hers, "ada was here")
    await everywhere([hers], "ada was here")
    cookie = {"name": "remora", "value": eve.client.cookies["remora"], "url": shipped.url}
    await hers.context.add_cookies([cookie])  # type: ignore[list-item]
    theirs = await hers.context.new_page()
    await theirs.goto("/chat/main")
    await say(theirs, "eve was here")
    await ada.say("ada goes on")
    await everywhere([theirs], "eve was here")
    await everywhere([hers], "ada was here", "ada goes on")
    assert "ada" not in await theirs.inner_text("#log")
    await say(hers, "ada forgot to sign out")
    await expect(hers.locator(".failed")).to_contain_text("ada forgot to sign out")
    assert "eve" not in await hers.inner_text("#log")
    await hers.context.set_offline(True)
    await hers.context.set_offline(False)
    await say(theirs, "eve goes on")
    await everywhere([theirs], "eve was here", "eve goes on")
    assert "eve" not in await hers.inner_text("#log") and "ada" not in await theirs.inner_text("#log")


async def test_whoever_has_too_many_browsers_is_told_and_none_fights_for_a_place(
    shipped: Page, opening: Opening
) -> None:
    shown = [(await opening("many browsers", at=shipped))[0] for _ in range(10)]
    streams = [Streams(one.context) for one in shown]
    for one in shown:
        await one.goto("/chat/main")
    for one in shown[:2]:
        await expect(one.get_by_role("status")).to_contain_text("too many browsers")
    await say(shown[9], "who hears me")
    await everywhere(shown[2:], "who hears me")
    assert sum(each.opened for each in streams) == 10
    await shown[0].locator("#text").focus()
    await shown[0].keyboard.press("Shift")
    await everywhere(shown[:1], "who hears me")
    await expect(shown[2].get_by_role("status")).to_contain_text("too many browsers")
    assert sum(each.opened for each in streams) == 11


async def test_a_tab_left_open_over_a_restart_catches_up(tmp_path: Path, opening: Opening) -> None:
    """A message that could not be sent meanwhile says so, and is sent once there is a server, once."""
    port = free_port()
    Served(tmp_path, port=port, shipped=True)
    page = Page(tmp_path, f"http://127.0.0.1:{port}")
    try:
        async with spawned(tmp_path) as server:
            await up(page)
            shown, guest = await opening("restart", at=page)
            both = await tabs(shown, 2)
            await say(shown, "before the end")
            await everywhere(both, "before the end")
            server.kill()
            await server.wait()
            await expect(both[1].get_by_role("status")).to_contain_text("connection is lost")
            await say(shown, "while it was gone")
            await expect(shown.locator(".failed")).to_contain_text("while it was gone")
        async with spawned(tmp_path):
            await up(page)
            await guest.say("said elsewhere")
            await everywhere([both[1]], "before the end", "said elsewhere")
            await everywhere(both, "before the end", "said elsewhere", "while it was gone")
            await expect(shown.get_by_role("status")).to_have_text("")
            await shown.reload()
            await everywhere([shown], "before the end", "said elsewhere", "while it was gone")
            await shown.context.close()
    finally:
        await page.close()


async def up(page: Page) -> None:
    import httpx

    nobody: Guest = page.guest()

    async def answers() -> bool:
        try:
            return (await nobody.get("/in")).status_code == 200
        except httpx.TransportError:
            return False

    await until(answers)


@pytest.mark.parametrize("status", [400, 500, 503])
async def test_a_refused_message_says_why_and_can_be_sent_again(shipped: Page, opening: Opening, status: int) -> None:
    """With its file; the words that are typed meanwhile stay."""
    shown, _ = await opening(f"refused {status}", at=shipped)
    await shown.goto("/chat/main")

    async def refuse(route: Route) -> None:
        await route.fulfill(status=status, body="The disk is full." if status == 503 else "")

    await shown.route("**/say", refuse)
    await shown.set_input_files(
        "input[type=file]", {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"the pump is in the shed"}
    )
    await say(shown, "look at this")
    failed = shown.locator(".failed")
    await expect(failed).to_contain_text("notes.txt")
    await expect(failed.get_by_role("alert")).to_contain_text("The disk is full." if status == 503 else "not sent")
    await shown.unroute("**/say")
    await failed.get_by_role("button", name="Send again").click()
    await everywhere([shown], "look at this")
    await expect(shown.locator(".item.mine")).to_contain_text("notes.txt")


async def test_an_answer_to_a_form_that_is_lost_doubles_nothing(shipped: Page, opening: Opening) -> None:
    """The server has the message, and the browser can't know: of a button, too."""
    shown, _ = await opening("lost reply", at=shipped)
    await shown.goto("/chat/main")

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await shown.route("**/say", lose)
    await say(shown, "/remember the safe is behind the mirror")
    await everywhere([shown], "behind the mirror")
    await shown.unroute("**/say")
    await say(shown, "/forget mirror")
    await shown.route("**/press", lose)
    button = shown.locator(".buttons button").first
    await button.click()
    await expect(shown.locator(".item.theirs", has_text="Forgotten")).to_have_count(1)
    await shown.reload()
    await expect(shown.locator(".item.mine")).to_have_count(2)
    await expect(shown.locator(".item.theirs", has_text="Forgotten")).to_have_count(1)


async def test_enter_pressed_twice_sends_once_and_a_page_that_still_loads_sends(
    shipped: Page, opening: Opening
) -> None:
    shown, _ = await opening("hasty", at=shipped)
    await shown.goto("/chat/main", wait_until="commit")
    await shown.fill("#text", "hello in haste")
    await shown.click("#send")
    await everywhere([shown], "hello in haste")
    await shown.set_input_files("input[type=file]", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"one"})
    await shown.fill("#text", "twice in haste")
    await shown.evaluate("""() => {
      const enter = () => document.getElementById('text').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', cancelable: true}));
      enter(); enter();
    }""")
    await everywhere([shown], "twice in haste")
    await expect(shown.locator(".item.mine")).to_have_count(2)


async def test_whoever_signs_in_again_sends_what_was_left(shipped: Page, opening: Opening, browser: Browser) -> None:
    """In another tab of the same browser; somebody else's session sends nothing in their name."""
    shown, guest = await opening("signs in again", at=shipped)
    _, eve = await opening("somebody else", at=shipped)
    await shown.goto("/chat/main")
    await expect(shown.locator("#nothing")).to_be_visible()
    await guest.post("/out", at="/me", which="all")
    await say(shown, "do not lose this")
    failed = shown.locator(".failed")
    await expect(failed.get_by_role("link")).to_have_count(1)
    again = await shipped.signed_in("signs in again")
    for who in (eve, again):
        cookie = {"name": "remora", "value": who.client.cookies["remora"], "url": shipped.url}
        await shown.context.add_cookies([cookie])  # type: ignore[list-item]
        async with shown.expect_response("**/say"):
            await failed.get_by_role("button", name="Send again").click()
    await everywhere([shown], "do not lose this")
    assert "do not lose" not in await eve.text("/chat/main") and "do not lose" in await again.text("/chat/main")
