"""One journey through the page in Firefox, in the settings of a new installation, with scripts and where none load.

`REMORA_BROWSER=firefox pytest tests/browser` runs all tests of this folder there.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from playwright.async_api import Page as Shown

from gateway.page.visitors import leave_code
from tests.kit.browser import NO_FIREFOX, firefox
from tests.kit.patience import SECONDS
from tests.kit.pictures import png
from tests.kit.visit import Page

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(shutil.which("firefox-esr") is None, reason=NO_FIREFOX),
]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def fox() -> AsyncIterator[Browser]:
    expect.set_options(timeout=SECONDS * 1_000)
    async with firefox() as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_a_journey(shipped: Page, fox: Browser, scripts: bool) -> None:
    """Sign in, say, read the answer and why, see the memory, forget it with a receipt, and send a picture."""
    context = await fox.new_context(base_url=shipped.url)
    context.set_default_timeout(SECONDS * 1_000)
    if not scripts:
        # Playwright itself can do nothing in a Firefox that runs none at all.
        await context.route(re.compile(r"\.js$"), lambda route: route.abort())
    shown, wrong = await context.new_page(), list[str]()
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    await sign_in(shipped, shown, f"fox {scripts}", scripts=scripts)

    await shown.fill("#text", "I live in Bern")
    await shown.click("#send")
    await expect(shown.locator(".item.theirs:not(.growing)")).to_have_count(1)
    await shown.fill("#text", "Where do I live?")
    await shown.click("#send")
    await expect(shown.get_by_role("link", name="Why this answer?")).to_have_count(2)
    await expect(shown.locator(".item.theirs").last).to_contain_text("Bern")
    await shown.get_by_role("link", name="Why this answer?").last.click()
    await shown.get_by_role("link", name="You live in Bern").first.click()
    await expect(shown.locator("section", has_text="Answers that used it")).to_contain_text("Where do I live?")
    await shown.get_by_role("button", name="Forget").click()
    await shown.locator(".receipt button").first.click()
    await expect(shown.locator(".receipt")).to_contain_text("Forgotten")
    await shown.goto("/memory")
    await expect(shown.locator("main")).not_to_contain_text("Bern")

    await shown.goto("/chat/files")
    await shown.set_input_files("input[name=file]", {"name": "door.png", "mimeType": "image/png", "buffer": png()})
    if scripts:
        await expect(shown.locator("#files canvas")).to_have_count(1)
    await shown.fill("#text", "look")
    await shown.click("#send")
    await expect(shown.locator(".item.theirs:not(.growing)")).to_have_count(1)
    await expect(shown.locator(".item.mine img")).to_have_attribute("alt", "door.png")
    await context.close()
    assert wrong == [] or not scripts


async def sign_in(page: Page, shown: Shown, person: str, *, scripts: bool) -> None:
    code = secrets.token_urlsafe(8)
    leave_code(page.data, code, person)
    await shown.goto(f"/in#{code}")
    if scripts:
        await shown.get_by_role("button", name=f"Continue as {person}").click()
    else:
        await shown.fill("[name=code]", code)
        await shown.get_by_role("button", name="Continue").click()
    await expect(shown).to_have_url(re.compile("/chat/main"))
