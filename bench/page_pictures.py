"""Pictures of the web page: `python -m bench.page_pictures [--write]` shows it to a browser and takes them.

Every page in both themes and two widths goes into a temporary folder, to be looked at. With `--write` those that stand
in the README are made anew. The program and the browser are real; what it remembers was replayed from `TOLD`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, BrowserContext

from tests.kit.browser import chromium
from tests.kit.served import Served
from tests.kit.visit import USED, Guest, Page, paged

ROOT: Final = Path(__file__).parents[1]
PICTURES: Final = ROOT / "docs" / "pictures"
#: The messages that Ada has sent in the months before.
TOLD: Final = (
    ("2026-03-02T18:05:00Z", "Hi! My name is Ada and I live in Lisbon."),
    ("2026-03-02T18:06:00Z", "I'm allergic to peanuts."),
    ("2026-03-15T10:00:00Z", "I work at Fernweh Maps as a cartographer."),
    ("2026-04-19T09:12:00Z", "My sister Mira Santos has moved to Lyon, she is a vet there."),
    ("2026-04-21T09:12:00Z", "Mira Santos has a dog called Pippin."),
    ("2026-05-03T19:00:00Z", "I love rowing on the Tagus early in the morning."),
    ("2026-06-07T20:40:00Z", "My brother Tomas lives in Berlin and works at Bauhaus Press."),
    ("2026-06-20T08:00:00Z", "I'm learning Portuguese guitar with Teresa."),
    ("2026-07-30T12:00:00Z", "Please remember: the spare key is under the blue flower pot behind the shed."),
    ("2026-08-11T21:00:00Z", "I don't like coriander."),
    ("2026-09-02T07:30:00Z", "Tomas and Mira Santos are coming to Lisbon on 3 December."),
)
#: The messages that are sent in the pictures.
SAID: Final = (
    "What am I allergic to?",
    "We moved! I live in Porto now.",
    "Where do I live?",
    "/remember I want to see Mira on Sunday",
)
WIDTHS: Final = {"wide": (1200, 820), "phone": (390, 800)}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _replay(folder: Path) -> None:
    """Plays what was told into the store of `folder`."""
    lines = [
        json.dumps({"id": number, "time": time, "channel": "console", "chat": "Ada", "author_id": "Ada", "text": text})
        for number, (time, text) in enumerate(TOLD)
    ]
    subprocess.run(
        [sys.executable, "-m", "bench.replay", "--record-only", "--config", str(folder / "config.yaml"), "-"],
        input="\n".join(lines).encode(),
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": str(folder)},
        check=True,
    )


async def _lived_in(guest: Guest) -> dict[str, str]:
    """Has things said and done, and returns the pages there are."""
    for text in SAID:
        await guest.say(text)
    await guest.say("What did I tell you about my sister?", thread="family")
    found = (await guest.get("/memory?q=Porto")).text.partition('href="/memory/')[2].partition('"')[0]
    await guest.told(f"/memory/{found}", at=f"/memory/{found}", action="pin")
    turns = re.findall(r'href="/why/(\d+)"', (await guest.get("/chat/main")).text)
    name = (await guest.get("/entities")).text.partition('<a href="/entities/')[2].partition('"')[0]
    return {
        "in": "/in", "chat": "/chat/main", "memory": "/memory", "search": "/memory?q=Mira", "one": f"/memory/{found}",
        "why": f"/why/{turns[-1]}", "timeline": "/timeline", "entities": "/entities",
        "entity": f"/entities/{name}", "night": "/night", "me": "/me", "refused": "/nowhere",
        "empty": "/memory?q=Zebra", "wrong": f"/why/{turns[-1]}?wrong=1",
        "pinned": "/memory?show=pinned", "questions": "/questions", "reminders": "/reminders",
        "hits": "/search?q=Porto", "commands": "/commands",
    }  # fmt: skip


async def _used(page: Page) -> dict[str, str]:
    """Books what a model would have taken in three weeks, and returns the pages of admins."""
    now, day = int(time.time() * 1000), 86_400_000
    for back in range(21):
        tokens = 9_000 + 4_000 * (back * 7 % 5)
        at = now - back * day
        await page.alter((USED, ["chat", tokens, tokens * 3e-6, at]), (USED, ["extract", tokens // 3, 0.004, at]))
    named = ("jobs", "usage", "dead", "people", "log")
    return {"admin": "/admin"} | {f"admin-{name}": f"/admin/{name}" for name in named}


async def _context(browser: Browser, page: Page, guest: Guest, size: str, theme: str) -> BrowserContext:
    width, height = WIDTHS[size]
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=1,
        reduced_motion="reduce",
    )
    await context.add_cookies([{"name": "remora", "value": guest.client.cookies["remora"], "url": page.url}])
    return context


async def taken(folder: Path, *, write: bool) -> None:
    """Takes the pictures into `folder`."""
    installation = folder / "installation"
    installation.mkdir()
    port = _free_port()
    served = Served(
        installation,
        port=port,
    )
    await asyncio.to_thread(_replay, installation)
    async with paged(installation, port=port, served=served) as page, chromium() as browser:
        guest = await page.signed_in("Ada")
        paths = await _lived_in(guest)
        disliked = (await guest.get("/memory?q=coriander")).text.partition('href="/memory/')[2].partition('"')[0]
        await guest.told("/forget", at="/memory", ids=disliked)
        await _taken_of(browser, page, guest, paths, folder, write=write)
        admin = await page.signed_in("you")
        await _taken_of(browser, page, admin, await _used(page), folder, write=False)


async def _taken_of(
    browser: Browser, page: Page, guest: Guest, paths: dict[str, str], folder: Path, *, write: bool
) -> None:
    """Takes the pictures of somebody's pages."""
    for size in WIDTHS:
        for theme in ("light", "dark"):
            context = await _context(browser, page, guest, size, theme)
            shown = await context.new_page()
            for name, path in paths.items():
                await shown.goto(page.url + path)
                await shown.wait_for_timeout(120)
                await shown.screenshot(path=folder / f"{name}-{size}-{theme}.png", full_page=name != "chat")
                if write and (name, size, theme) in (("chat", "wide", "light"), ("one", "wide", "dark")):
                    await shown.screenshot(path=PICTURES / f"page-{name}.png")
            await context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes pictures of the web page.")
    parser.add_argument("--write", action="store_true", help="make the pictures of the documentation anew")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="remora-page-"))
    asyncio.run(taken(folder, write=given.write))
    print(f"Look at them: {folder}")


if __name__ == "__main__":
    main()
