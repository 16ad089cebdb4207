"""One browser and one served page for all tests of this folder; each test signs in as somebody of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from playwright.async_api import Page as Shown

from tests.kit.browser import chromium, firefox
from tests.kit.patience import SECONDS
from tests.kit.served import Clock, Served
from tests.kit.visit import Guest, Page, paged

#: Opens a tab in which somebody is signed in, and gives it with the same session as plain requests.
Opening = Callable[..., Awaitable[tuple[Shown, Guest]]]


class Ahead(Clock):
    """Goes on by a fifth of a second at every look."""

    def __call__(self) -> int:
        self.shift += 0.2
        return super().__call__()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with paged(tmp_path_factory.mktemp("page"), port=free_port()) as served:
        yield served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shipped(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """The page in the settings that `remora init` writes. Its clock runs ahead, so that nobody says too much at once."""
    folder, port = tmp_path_factory.mktemp("shipped"), free_port()
    async with paged(folder, port=port, served=Served(folder, port=port, now=Ahead(), shipped=True)) as served:
        yield served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    expect.set_options(timeout=SECONDS * 1_000)
    async with (firefox if os.environ.get("REMORA_BROWSER") == "firefox" else chromium)() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def opening(page: Page, browser: Browser) -> AsyncIterator[Opening]:
    """Gives `Opening`; its options are those of a browser's context. What the page's script trips over fails the test."""
    contexts, errors = [], []

    async def opened(person: str, *, at: Page = page, **options: Any) -> tuple[Shown, Guest]:
        guest = await at.signed_in(person)
        context = await browser.new_context(base_url=at.url, **({"reduced_motion": "reduce"} | options))
        contexts.append(context)
        context.set_default_timeout(SECONDS * 1_000)
        await context.add_cookies([{"name": "remora", "value": guest.client.cookies["remora"], "url": at.url}])
        shown = await context.new_page()
        shown.on("pageerror", lambda error: errors.append(str(error)))
        shown.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
        return shown, guest

    yield opened
    for context in contexts:
        await context.close()
    assert errors == []
