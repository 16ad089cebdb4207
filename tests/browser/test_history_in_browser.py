"""A conversation longer than the screen in a real browser, in the settings of a new installation, with a second tab."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page as Shown
from playwright.async_api import expect

from tests.browser.conftest import Ahead, Opening, free_port
from tests.kit.browser import MISSING, found
from tests.kit.patience import until
from tests.kit.served import Served
from tests.kit.visit import Guest, Page, paged

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]

_LINE = re.compile(r"\bline (\d+)\b")
#: The first item on the screen: its name and its distance from the top.
_FIRST = """() => {
  const log = document.getElementById('log'), top = log.getBoundingClientRect().top;
  const item = [...log.querySelectorAll('.item')].find((one) => one.getBoundingClientRect().bottom > top);
  return [item.id, Math.round(item.getBoundingClientRect().top - top)];
}"""
_AT_END = "() => { const log = document.getElementById('log'); return log.scrollHeight - log.scrollTop - log.clientHeight < 5; }"


@asynccontextmanager
async def long_talk(folder: Path) -> AsyncIterator[Page]:
    """A served page in the settings that `remora init` writes, on which Ada has said hello and 300 lines more."""
    port = free_port()
    async with paged(folder, port=port, served=Served(folder, port=port, now=Ahead(), shipped=True)) as page:
        ada = await page.signed_in("ada")
        await ada.say("hello")
        await page.talked(300)
        yield page


async def numbers(shown: Shown) -> list[int]:
    return [
        int(_LINE.findall(text)[0]) for text in await shown.locator("#log .words").all_inner_texts() if "line " in text
    ]


async def say(shown: Shown, text: str) -> None:
    await shown.fill("#text", text)
    await shown.press("#text", "Enter")


async def scrolled_until(shown: Shown, where: str, done: Callable[[], Awaitable[bool]]) -> None:
    async def further() -> bool:
        await shown.evaluate(f"() => {{ const log = document.getElementById('log'); log.scrollTop = {where}; }}")
        return await done()

    await until(further)


async def test_a_long_conversation_is_read_to_its_first_line_and_does_not_jump(
    tmp_path: Path, opening: Opening
) -> None:
    """Neither when earlier messages come, nor when somebody speaks in another tab, nor when the connection comes back."""
    async with long_talk(tmp_path) as page:
        shown, guest = await opening("ada", at=page)
        await shown.goto("/chat/main")
        second = await shown.context.new_page()
        await second.goto("/chat/main")
        assert await shown.evaluate(_AT_END) and len(await numbers(shown)) == 80
        # A place close to the edge, from which earlier messages are loaded, but not at it.
        await shown.evaluate("() => { document.getElementById('log').scrollTop = 700; }")
        before = await shown.evaluate(_FIRST)
        await expect(shown.locator("#log .item")).not_to_have_count(80)
        assert await shown.evaluate(_FIRST) == before

        await say(second, "said in another tab")
        await expect(shown.locator(".item.mine", has_text="said in another tab")).to_have_count(1)
        await expect(shown.locator(".item.growing")).to_have_count(0)
        assert await shown.evaluate(_FIRST) == before
        await shown.context.set_offline(True)
        await guest.say("said while it was offline")
        await shown.context.set_offline(False)
        await expect(shown.locator(".item.mine", has_text="said while it was offline")).to_have_count(1)
        assert await shown.evaluate(_FIRST) == before

        async def at_first() -> bool:
            return await shown.locator("#earlier").count() == 0

        await scrolled_until(shown, "0", at_first)
        assert await numbers(shown) == list(range(1, 301))
        names = await shown.locator("#log .item").evaluate_all("(all) => all.map((one) => one.id)")
        assert len(set(names)) == len(names)
        days = await shown.locator("#log .day").all_inner_texts()
        assert len(set(days)) == len(days)
        await expect(shown.locator("#log .item").first).to_contain_text("hello")


async def test_a_hit_leads_to_its_message_and_from_there_to_the_end(tmp_path: Path, opening: Opening) -> None:
    """Messages that come meanwhile do not stand behind the wrong one; whoever speaks is at the end at once."""
    async with long_talk(tmp_path) as page:
        shown, guest = await opening("ada", at=page)
        ((number,),) = await page.alter(("select id from messages where text = 'line 100'", ()))
        await shown.goto("/search")
        await shown.get_by_role("searchbox").fill("hello")
        await shown.keyboard.press("Enter")
        await expect(shown.locator(".hits a mark").last).to_have_text("hello")
        await shown.locator(".hits a").last.click()
        await expect(shown.locator(".item.sought")).to_contain_text("hello")

        await shown.goto(f"/chat/main?at={number}#at")
        await expect(shown.locator(".item.sought")).to_be_in_viewport()
        await expect(shown.locator(".item.sought")).to_contain_text("line 100")
        await guest.say("said meanwhile")
        await expect(shown.locator("#later")).to_be_attached()
        assert "said meanwhile" not in await shown.inner_text("#log")

        async def at_end() -> bool:
            return await shown.locator("#later").count() == 0

        await scrolled_until(shown, "log.scrollHeight", at_end)
        await expect(shown.locator(".item.mine", has_text="said meanwhile")).to_have_count(1)
        seen = await numbers(shown)
        assert seen == list(range(seen[0], 301)) and seen[0] <= 61
        await guest.say("said at the end")
        await expect(shown.locator(".item.mine", has_text="said at the end")).to_have_count(1)

        await shown.goto(f"/chat/main?at={number}#at")
        await say(shown, "and now")
        await expect(shown.locator(".item.mine", has_text="and now")).to_be_in_viewport()
        await expect(shown.locator(".item.theirs").last).to_be_in_viewport()
        assert (await numbers(shown))[-1] == 300 and await shown.locator("#later").count() == 0


async def test_without_a_script_the_links_lead_through_the_conversation(tmp_path: Path, opening: Opening) -> None:
    async with long_talk(tmp_path) as page:
        shown, _ = await opening("ada", at=page, java_script_enabled=False, viewport={"width": 360, "height": 740})
        await shown.goto("/chat/main#end")
        await shown.get_by_role("link", name="Earlier messages").click()
        assert await numbers(shown) == list(range(141, 221))
        await shown.get_by_role("link", name="Later messages").click()
        assert await numbers(shown) == list(range(221, 301))
        await shown.get_by_role("link", name="Earlier messages").click()
        await shown.get_by_role("link", name="The last messages").click()
        assert (await numbers(shown))[-1] == 300


async def unsent(shown: Shown, text: str) -> None:
    await shown.route("**/say", lambda route: route.abort())
    await say(shown, text)
    await expect(shown.locator(".failed", has_text=text)).to_have_count(1)
    await shown.unroute("**/say")


async def test_what_was_not_sent_outlives_the_tab_and_goes_when_it_is_taken(shipped: Page, opening: Opening) -> None:
    """In its conversation, for its person."""
    shown, guest = await opening("keeps", at=shipped)
    await shown.goto("/chat/main")
    await unsent(shown, "do not lose this")
    await unsent(shown, "nor this")
    await shown.reload()
    await expect(shown.locator(".failed .words")).to_have_text(["do not lose this", "nor this"])
    another = await shown.context.new_page()
    await shown.close(run_before_unload=True)
    await another.goto("/chat/boat")
    await expect(another.locator(".failed")).to_have_count(0)
    await another.goto("/chat/main")
    await another.locator(".failed").first.get_by_role("button", name="Send again").click()
    await another.locator(".failed").last.get_by_role("button", name="Remove").click()
    await expect(another.locator(".failed")).to_have_count(0)
    await expect(another.get_by_role("link", name="Why this answer?")).to_have_count(1)
    await another.reload()
    await expect(another.locator(".item.mine")).to_have_count(1)
    await expect(another.locator(".unsent")).to_have_count(0)
    log = (await guest.get("/chat/main")).text.partition('id="log"')[2]
    assert log.count("do not lose this") == 1
    assert await another.evaluate("Object.keys(localStorage).length") == 0


async def test_nobody_else_sees_what_was_not_sent_and_the_sign_out_takes_it_away(
    shipped: Page, opening: Opening
) -> None:
    shown, guest = await opening("leaves", at=shipped)
    _, eve = await opening("comes after", at=shipped)
    await shown.goto("/chat/main")
    await unsent(shown, "between you and me")

    async def sign_in(who: Guest) -> None:
        cookie = {"name": "remora", "value": who.client.cookies["remora"], "url": shipped.url}
        await shown.context.add_cookies([cookie])  # type: ignore[list-item]
        await shown.goto("/chat/main")

    await sign_in(eve)
    await expect(shown.locator(".unsent")).to_have_count(0)
    assert "between" not in await shown.content()
    await sign_in(guest)
    await expect(shown.locator(".failed")).to_contain_text("between you and me")
    await shown.fill("#text", "half a sentence")
    await shown.goto("/me")
    await shown.get_by_role("button", name="Sign out everywhere").click()
    await shown.wait_for_url("**/in?left=1")
    await expect(shown.get_by_role("heading").first).to_be_visible()
    assert await shown.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
