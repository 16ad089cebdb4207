"""The page shows the work behind it, in a browser, in the settings of a new installation with a model."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page as Shown
from playwright.async_api import expect

from tests.browser.conftest import Ahead, Opening, free_port
from tests.kit.browser import MISSING, found
from tests.kit.served import Served
from tests.kit.visit import USED, Page, paged
from tests.platforms.telegram import serving as serving_telegram

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(found() is None, reason=MISSING),
]
#: A folder for pictures, to be looked at; without one none are taken.
PICTURES = os.environ.get("REMORA_PICTURES")
SIZES = [(360, 740), (1440, 900)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def asked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """The page of an agent with a model, which has learned, answered and failed for a year."""
    folder, port = tmp_path_factory.mktemp("asked"), free_port()
    async with serving_telegram(("123456789:" + "Aa0_-" * 7,)) as platform:
        await platform.script_model({"Where is my boat": "Your boat lies in Setubal, as you told me."})
        served = Served(folder, port=port, now=Ahead(), shipped=True, model_url=platform.model_url)
        async with paged(folder, port=port, served=served) as shown:
            you = await shown.signed_in("you")
            for fact in ("my boat lies in Setubal", "my sister plays the cello", "I like short answers"):
                await you.told("/memory", at="/memory", value=fact)
            await you.say("I like long walks on Sunday mornings, and I tell you about them at some length.")
            await you.say("Where is my boat, and does my sister play?")
            for text in ("tomorrow at 9 call Mira", "every Monday at 8:30 put out the bins"):
                await you.told("/reminders", at="/reminders", text=text)
            now, day = int(time.time() * 1000), 86_400_000
            turn = (
                "insert into turns (session_id, agent_id, state, error, started_at, finished_at)"
                " select id, agent_id, ?, ?, ?, ? from sessions limit 1"
            )
            await shown.alter(
                *((USED, [("chat", "extract")[n % 3 == 0], 900 * (n % 7 + 1), 0.002 * (n % 5), now - n * day])
                  for n in range(28)),
                *((turn, ["failed" if n % 11 == 0 else "done", "model_unavailable" if n % 11 == 0 else None,
                          now - n // 4 * day, now - n // 4 * day + 800 + 700 * (n % 9)]) for n in range(110)),
                ("update memories set learned_at = learned_at - 5184000000 where value like '%cello%'", []),
            )  # fmt: skip
            yield shown


async def open_all(shown: Shown) -> None:
    await shown.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_pictures_settings_and_reminders_fit_and_have_no_barrier(
    asked: Page, opening: Opening, width: int, height: int, theme: str
) -> None:
    """Also with every table open; what is pressed is large."""
    shown, guest = await opening("you", at=asked, color_scheme=theme, viewport={"width": width, "height": height})
    turn = (await guest.get("/chat/main")).text.rpartition('href="/why/')[2].partition("?")[0].partition('"')[0]
    one = (await guest.get("/memory?q=Setubal")).text.partition('href="/memory/')[2].partition('"')[0]
    axe = Axe()
    for path in (f"/why/{turn}", f"/memory/{one}", "/me", "/reminders", "/admin", "/admin/usage", "/admin/log"):
        await shown.goto(path)
        if PICTURES:
            name = f"{path.split('/')[-1] if 'admin' in path else path.split('/')[1]}-{width}-{theme}.png"
            await shown.screenshot(path=Path(PICTURES) / name, full_page=True)
        await open_all(shown)
        report = await axe.run(shown)
        assert report.violations_count == 0, f"{path}: {report.generate_report()}"
        assert await shown.evaluate("document.documentElement.scrollWidth") <= width, path
        low = await shown.evaluate(
            "[...document.querySelectorAll('main button, main .button, main select, main input:not([type=hidden])')]"
            ".filter(each => each.offsetParent).map(each => [each.textContent, each.getBoundingClientRect().height])"
            ".filter(each => each[1] < 44)"
        )
        assert low == [], path


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
async def test_settings_and_reminders_are_changed_by_hand(asked: Page, opening: Opening, script: bool) -> None:
    shown, _ = await opening(f"hand {script}", at=asked, java_script_enabled=script, color_scheme="light")
    await shown.goto("/me")
    await shown.get_by_label("Colours of this browser").select_option("dark")
    await shown.locator("form[action='/theme'] button").click()
    await expect(shown.locator("html")).to_have_attribute("data-theme", "dark")
    paper = await shown.locator("html").evaluate("one => getComputedStyle(one).backgroundColor") if script else ""
    assert not script or paper == "rgb(18, 25, 27)"
    await shown.get_by_label("Time zone").fill("Asia/Tokyo")
    await shown.locator("button[value=zone]").click()
    await expect(shown.locator(".receipt")).to_contain_text("Asia/Tokyo")
    await shown.goto("/reminders")
    await shown.get_by_label("A new reminder").fill("tomorrow at 9 call Mira")
    await shown.get_by_role("button", name="Remind me").click()
    await expect(shown.locator(".receipt")).to_contain_text("09:00 Tokyo")
    await shown.goto("/reminders")
    await shown.get_by_text("Change it").click()
    await shown.get_by_label("Other words").fill("call Mira's mother")
    await shown.locator("button[value=words]").click()
    await shown.goto("/reminders")
    await expect(shown.locator(".list")).to_contain_text("call Mira's mother")
    await shown.get_by_role("button", name="Cancel it").click()
    await expect(shown.locator(".receipt")).to_contain_text("Mira")
    await shown.goto("/reminders")
    await expect(shown.locator("main")).to_contain_text("No reminders")
