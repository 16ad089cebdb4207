"""Real browsers: Debian's Chromium, and Debian's Firefox by `tests/kit/firefox.py`, driven by playwright.

Invariant: nothing is downloaded. Where there is no browser, `found` says so, and how to get one.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

MISSING = "no Chromium; on Debian: apt-get install chromium"
NO_FIREFOX = "no Firefox; on Debian: apt-get install firefox-esr"
#: It reaches nothing beyond this machine, and needs neither a screen nor rights.
_FLAGS = (
    "--use-fake-device-for-media-stream",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
)
_ROOT = Path(__file__).parents[2]


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


@asynccontextmanager
async def firefox() -> AsyncIterator[Browser]:
    assert shutil.which("firefox-esr") is not None, NO_FIREFOX
    with tempfile.TemporaryDirectory() as folder:
        # Playwright launches one file.
        path = Path(folder, "firefox")
        path.write_text(f'#!/bin/sh\ncd "{_ROOT}" && exec "{sys.executable}" -m tests.kit.firefox "$@"\n', "utf-8")
        path.chmod(0o700)
        async with async_playwright() as playwright:
            browser = await playwright.firefox.launch(channel="moz-firefox", executable_path=path)
            try:
                yield browser
            finally:
                await browser.close()
