"""Conversations in a browser: versions of a message, a list that lives, commands to choose from, and keys."""

from __future__ import annotations

import asyncio
import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page as Shown
from playwright.async_api import Route, expect

from tests.browser.conftest import Opening
from tests.kit.browser import MISSING, found
from tests.kit.patience import until

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]


async def say(shown: Shown, text: str, answers: int) -> None:
    await shown.fill("#text", text)
    await shown.press("#text", "Enter")
    await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(answers)


async def test_a_message_is_said_in_other_words_and_both_versions_are_read(opening: Opening) -> None:
    shown, _ = await opening("reworder")
    await shown.goto("/chat/main")
    await say(shown, "I play chess", 1)
    await say(shown, "I live in Bern", 2)
    await shown.press("#text", "ArrowUp")
    text = shown.locator("form.edit textarea")
    await expect(text).to_be_focused()
    await expect(text).to_have_value("I live in Bern")
    await text.press("Escape")
    await expect(shown.locator("form.edit")).to_have_count(0)
    await shown.get_by_role("link", name="Edit").last.click()
    await text.fill("I live in Basel")
    await text.press("Enter")
    await shown.wait_for_url(re.compile("/chat/c"))
    await expect(shown.locator(".item.mine")).to_have_text([re.compile("chess"), re.compile("Basel")])
    await expect(shown.locator(".version")).to_contain_text("2 of 2")
    await shown.get_by_role("link", name="Version before").click()
    await expect(shown.locator(".item.mine").last).to_contain_text("Bern")
    await shown.get_by_role("link", name="Version after").click()
    await expect(shown.locator(".item.mine").last).to_contain_text("Basel")
    await shown.get_by_role("button", name="Answer anew").last.click()
    await expect(shown.locator(".version")).to_contain_text("3 of 3")
    await expect(shown.locator(".item.mine")).to_have_count(2)
    await expect(shown.locator("#talks li")).to_have_count(1)


async def test_the_list_is_the_same_in_every_tab(opening: Opening) -> None:
    """A new conversation and a new title come by themselves; what is forgotten goes."""
    first, _ = await opening("lister")
    second = await first.context.new_page()
    await first.goto("/chat/one")
    await second.goto("/chat/two")
    await say(first, "The roses need water", 1)
    await expect(second.locator("#talks li")).to_have_text(["The roses need water"])
    await first.reload()
    await first.locator(".menu summary").click()
    await first.fill("#title", "Garden")
    await first.get_by_role("button", name="Rename").click()
    await expect(second.locator("#talks li")).to_have_text(["Garden"])
    await first.locator(".menu summary").click()
    await first.get_by_role("button", name="Delete").click()
    await first.locator(".receipt button").first.click()
    await expect(first.locator(".receipt")).to_contain_text("Forgotten")
    await expect(second.locator("#talks li")).to_have_count(0)


async def test_commands_are_chosen_from_a_list(opening: Opening) -> None:
    shown, _ = await opening("chooser")
    await shown.goto("/chat/main")
    field, options = shown.locator("#text"), shown.get_by_role("option")
    await field.press_sequentially("/re")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await expect(options.filter(has_text="/remind")).to_have_count(1)
    assert (await Axe().run(shown)).response["violations"] == []
    before = await field.get_attribute("aria-activedescendant")
    await field.press("ArrowDown")
    assert await field.get_attribute("aria-activedescendant") != before
    await field.press("ArrowUp")
    await field.press("Escape")
    await expect(options).to_have_count(0)
    await field.fill("")
    await field.press_sequentially("/stat")
    await field.press("Tab")
    await expect(field).to_have_value("/status ")
    await expect(options).to_have_count(0)
    await field.fill("")
    await field.press_sequentially("/undo")
    await field.press("Enter")
    await expect(shown.locator(".item.mine")).to_contain_text("/undo")


async def test_keys_lead_where_they_say(opening: Opening) -> None:
    shown, _ = await opening("keyed")
    await shown.goto("/chat/main")
    await say(shown, "I play chess", 1)
    await shown.keyboard.press("Control+/")
    await expect(shown.locator("#keys")).to_be_visible()
    assert (await Axe().run(shown)).response["violations"] == []
    await shown.keyboard.press("Escape")
    await expect(shown.locator("#keys")).to_be_hidden()
    await shown.keyboard.press("Alt+KeyN")
    await shown.wait_for_url(re.compile("/chat/c"))
    await expect(shown.locator("#nothing")).to_be_visible()


async def test_the_scripts_of_every_page_run(opening: Opening) -> None:
    """An error in one fails the test at its end; those of a conversation share their names."""
    shown, _ = await opening("runner")
    for path in ("/memory", "/timeline", "/entities", "/search", "/questions", "/reminders", "/commands", "/me", "/in"):
        answer = await shown.goto(path)
        assert answer is not None and answer.status == 200, path
    await shown.goto("/chat/main")
    names = ("kept", "loadPart", "deliver", "record", "relist", "goOn", "offer", "keyed")
    assert await shown.evaluate(f"[{', '.join(f'typeof {name}' for name in names)}]") == [
        "object", *["function"] * (len(names) - 1)
    ]  # fmt: skip


async def test_one_press_makes_one_branch_however_often_it_is_repeated(opening: Opening) -> None:
    """Also if the reply was lost, so that it is pressed again."""
    shown, _ = await opening("presser")
    await shown.goto("/chat/main")
    await say(shown, "I live in Bern", 1)
    taken, asked = asyncio.Event(), []

    async def lose(route: Route) -> None:
        asked.append(route.request.post_data)
        await taken.wait()
        await route.fetch()
        await route.abort()

    await shown.route("**/branch", lose)
    await shown.get_by_role("link", name="Edit").click()
    text = shown.locator("form.edit textarea")
    await text.fill("I live in Basel")
    for _ in range(3):
        await shown.keyboard.down("Enter")
    await shown.keyboard.up("Enter")
    await text.press("Enter")
    await until(lambda: len(asked) > 0)
    taken.set()
    await expect(shown.locator("#state")).not_to_be_empty()
    assert len(asked) == 1
    await shown.unroute("**/branch")
    await text.press("Enter")
    await shown.wait_for_url(re.compile("/chat/c"))
    await expect(shown.locator(".version")).to_contain_text("2 of 2")


async def test_what_is_typed_in_an_edit_outlives_a_lost_connection(opening: Opening) -> None:
    shown, _ = await opening("mender")
    await shown.goto("/chat/main")
    await say(shown, "I play chess", 1)
    await say(shown, "I live in Bern", 2)
    edits = shown.locator("form.edit textarea")
    for opened in (1, 2):
        await shown.get_by_role("link", name="Edit").first.click()
        await expect(edits).to_have_count(opened)
    assert len({await edit.get_attribute("id") for edit in await edits.all()}) == 2
    await edits.last.press("End")
    await edits.last.press_sequentially("?")
    await expect(shown.locator("#keys")).to_be_hidden()
    old = await shown.locator(".item.mine").last.element_handle()
    await shown.evaluate("() => { seen = ''; return catchUp(); }")
    assert old is not None and not await old.evaluate("item => item.isConnected")
    await expect(edits.last).to_have_value("I live in Bern?")
    await expect(edits.last).to_be_focused()
    await expect(shown.locator(".item.mine .words:visible")).to_have_count(0)
    await edits.last.press("Escape")
    await expect(edits).to_have_count(1)


async def test_escape_stops_an_answer_only_where_it_belongs_to_nothing_else(opening: Opening) -> None:
    shown, _ = await opening("escaper")
    await shown.goto("/chat/main")
    await say(shown, "I play chess", 1)
    await shown.reload()
    stops: list[str] = []
    shown.on("request", lambda request: stops.append(request.url) if request.url.endswith("/stop") else None)
    await shown.evaluate("stop.hidden = false")
    await shown.keyboard.press("Control+/")
    await expect(shown.locator("#keys")).to_be_visible()
    await shown.keyboard.press("Escape")
    await expect(shown.locator("#keys")).to_be_hidden()
    await shown.locator(".menu summary").click()
    await shown.press("#title", "Escape")
    assert stops == []
    async with shown.expect_request("**/stop"):
        await shown.press("#text", "Escape")
    assert len(stops) == 1


async def test_a_list_that_comes_anew_keeps_the_focus(opening: Opening) -> None:
    shown, _ = await opening("focuser")
    await shown.goto("/chat/main")
    await say(shown, "I play chess", 1)
    link = shown.locator("#talks a")
    await expect(link).to_have_count(1)
    await link.focus()
    old = await link.element_handle()
    await shown.evaluate("relist()")
    await shown.wait_for_function("old => !old.isConnected", arg=old)
    await expect(link).to_be_focused()


@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1440, "light")])
async def test_it_works_without_a_script_and_at_every_width(opening: Opening, width: int, theme: str) -> None:
    shown, _ = await opening(
        f"plain{width}", java_script_enabled=False, viewport={"width": width, "height": 800}, color_scheme=theme
    )
    await shown.goto("/chat/main")
    await shown.fill("#text", "I live in Bern")
    await shown.click("#send")
    await shown.get_by_role("link", name="Edit").click()
    await shown.fill("form.edit textarea", "I live in Basel")
    await shown.get_by_role("button", name="Send").click()
    await expect(shown.locator(".version")).to_contain_text("2 of 2")
    await shown.locator(".menu summary").click()
    await shown.fill("#title", "Towns on the Rhine, and whatever else there is to say about them, at length")
    await shown.get_by_role("button", name="Rename").click()
    await expect(shown.locator(".menu strong")).to_contain_text("Towns on the Rhine")
    assert await shown.evaluate("document.documentElement.scrollWidth") <= width
    await shown.goto("/commands")
    await expect(shown.locator(".commands")).to_contain_text("/forget")
