"""A real browser: Debian's Chromium, driven by playwright.

Invariant: nothing is downloaded. Where there is no Chromium, `found` says so, and how to get one.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

MISSING = "no Chromium; on Debian: apt-get install chromium"
#: It reaches nothing beyond this machine, and needs neither a screen nor rights.
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


def found() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A running browser. One is enough: each test opens a context of its own in it."""
    path = found()
    assert path is not None, MISSING
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        try:
            yield browser
        finally:
            await browser.close()
