"""The web page with 10,000 memories and 5,000 messages in one conversation: `python -m bench.web [--memories N]
[--messages N] [--json]`; some two minutes.

The program is the real one, served in this process, and so is the browser. Everything is asked over loopback, by one
visitor, one request after the other: the first paint in Chromium with nothing kept, the bytes of a page with and
without the files that a browser keeps, the time of each page until its last byte (p95) and the processor's time for it
(median and p95), and the time from the sending of a message in one tab until another tab has it through its stream.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import re
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from playwright.async_api import Browser

from channels.base import Place
from gateway import app
from gateway.config.loading import load
from memory.chat.edits import Edits
from memory.chat.identities import Where, Who
from memory.store.database import Transaction
from tests.kit.browser import chromium
from tests.kit.served import Served
from tests.kit.visit import Guest, Page, paged

PERSON: Final = "Ada"
#: Memories that are told, requests of each page, first paints of each page, and messages sent.
_TOLD: Final = 200
_ASKED: Final = 40
_PAINTED: Final = 8
_SENT: Final = 60
#: Milliseconds between two memories: 10,000 of them fill three and a half years.
_APART_MS: Final = 3 * 3_600_000
_PAGES: Final = (
    "/chat/main", "/chat/main?at=2500", "/chat/main?before=200", "/search?q=sail",
    "/memory", "/memory?page=200", "/memory?q=category:hobby", "/memory?q=sailing",
    "/memory?q=place:Lisbon", "/memory?show=fading", "/memory?on=2026-01-01", "/timeline", "/entities", "/night",
    "/questions", "/me",
)  # fmt: skip
_PAINTS: Final = ("/chat/main", "/chat/main?at=2500", "/memory", "/timeline", "/entities", "/me")
_THINGS: Final = (
    "sailing",
    "chess",
    "bees",
    "pottery",
    "old maps",
    "trains",
    "the oboe",
    "ferns",
    "ice cream",
    "dominoes",
)
_PLACES: Final = ("Lisbon", "Bern", "Oslo", "Porto", "Ghent", "Turin", "Krakow", "Graz", "Lyon", "Leeds")
_PAINT: Final = """
() => new Promise(seen => new PerformanceObserver(list => {
  const paint = list.getEntriesByName("first-contentful-paint")[0];
  if (paint) seen(paint.startTime);
}).observe({ type: "paint", buffered: true }))
"""
_STATIC: Final = re.compile(r'(?:src|href)="(/static/[^"]+)"')


async def fill(folder: Path, count: int) -> None:
    """Has one person keep `_TOLD` things of ten kinds, and multiplies them to `count` rows that all differ."""
    config = load(folder / "config.yaml", {}, folder)
    kinds = ("likes", "hobby", "owns", "note", "plan", "goal", "visited", "friend", "interest", "dislikes")
    chance = random.Random(7)
    async with app.opened(config, {}) as parts:
        memory = parts.roster.stores[parts.roster.default].memory
        place = Place(channel="console", chat=PERSON)
        where = Where(
            session_key=place.session_key, platform="console", chat=PERSON, chat_kind="private", thread=None,
            agent=parts.roster.default,
        )  # fmt: skip
        context = await memory.identities.context(where, Who(platform="console", user_id=PERSON, name=PERSON))
        inbox = await memory.mailbox.receive(
            platform="console", bot_id="bench", update_key="1", session_key=place.session_key, payload="{}"
        )
        assert inbox is not None

        def keep(edits: Edits) -> tuple[()]:
            for n in range(_TOLD):
                thing, town = chance.choice(_THINGS), chance.choice(_PLACES)
                edits.remember(f"{thing} number {n} in {town}", key=kinds[n % len(kinds)])
            return ()

        def multiply(tx: Transaction) -> None:
            columns = [str(row["name"]) for row in tx.all("pragma table_info(memories)")]
            named = ", ".join(name for name in columns if name != "id")
            values = {"short_id": "m.short_id || 'x' || n.value", "value": "m.value || ', again ' || n.value"}
            earlier = f"- (n.value * {_TOLD} + m.id) * {_APART_MS}"
            values |= {name: f"m.{name} {earlier}" for name in ("learned_at", "valid_from", "last_reinforced_at")}
            taken = ", ".join(values.get(name, f"m.{name}") for name in columns if name != "id")
            more = json.dumps(list(range(max(0, count // _TOLD - 1))))
            tx.run(
                f"insert into memories ({named}) select {taken} from memories m, json_each(?) n where m.kind = 'fact'",
                (more,),
            )
            tx.run(
                "insert into memory_entities select m.id, l.entity_id from memories o"
                " join memory_entities l on l.memory_id = o.id"
                " join memories m on m.short_id like o.short_id || 'x%' on conflict do nothing",
            )

        await memory.requests.answer(context, inbox, keep)
        await memory.database.write(multiply)
        # Once for the indexes, which are brought up to date by a search.
        await memory.browse.search(context, "sailing", limit=1)


async def painted(browser: Browser, page: Page, guest: Guest) -> dict[str, float]:
    """Returns the median milliseconds until something of a page is seen, with an empty cache each time."""
    found: dict[str, float] = {}
    for path in _PAINTS:
        times = []
        for _ in range(_PAINTED):
            context = await browser.new_context(viewport={"width": 390, "height": 800})
            await context.add_cookies([{"name": "remora", "value": guest.client.cookies["remora"], "url": page.url}])
            shown = await context.new_page()
            await shown.goto(page.url + path)
            times.append(float(await shown.evaluate(_PAINT)))
            await context.close()
        found[path] = statistics.median(times)
    return found


async def weighed(guest: Guest) -> dict[str, tuple[int, int]]:
    """Returns the bytes of each page as they are sent: with all its files, and by itself."""
    found = {}
    for path in _PAGES:
        answer = await guest.get(path)
        assert answer.status_code == 200, path
        files = [(await guest.get(file)).num_bytes_downloaded for file in sorted(set(_STATIC.findall(answer.text)))]
        found[path] = (answer.num_bytes_downloaded + sum(files), answer.num_bytes_downloaded)
    return found


async def timed(guest: Guest) -> dict[str, tuple[float, float, float]]:
    """Returns the p95 of each page, and of the processor's time for it and its asking median and p95, in milliseconds.

    On a busy machine the first is mostly waiting; the others are not.
    """
    found = {}
    for path in _PAGES:
        times, worked = [], []
        for _ in range(_ASKED):
            began, before = time.perf_counter(), time.process_time()
            await guest.get(path)
            times.append((time.perf_counter() - began) * 1000)
            worked.append((time.process_time() - before) * 1000)
        found[path] = (
            statistics.quantiles(times, n=20)[-1], statistics.median(worked), statistics.quantiles(worked, n=20)[-1]
        )  # fmt: skip
    return found


async def streamed(guest: Guest) -> tuple[float, float]:
    """Returns median and p95 in milliseconds from the sending of a message until another tab has it."""
    times = []
    nonce = await guest.nonce()
    async with guest.stream() as events:
        for n in range(_SENT):
            began = time.perf_counter()
            sending = asyncio.create_task(
                guest.post(
                    "/chat/main/say", text=f"note {n}.", nonce=nonce, once=f"bench{n:020}", headers={"X-Remora": "1"}
                )
            )
            async for _event, data in events:
                if f"note {n}." in str(data.get("html")):
                    times.append((time.perf_counter() - began) * 1000)
                    break
            await sending
            async for _event, data in events:
                if "/why/" in str(data.get("html")):
                    break
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


async def measured(folder: Path, count: int, messages: int) -> dict[str, object]:
    """Returns all figures."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    served = Served(folder, port=port)
    began = time.perf_counter()
    await fill(folder, count)
    filled = time.perf_counter() - began
    async with paged(folder, port=port, served=served) as page, chromium() as browser:
        # As `remora serve` does; here the driver of the browser and the tests' kit are in the process, too.
        gc.freeze()
        guest = await page.signed_in(PERSON)
        await guest.say("Where do I sail?")
        await page.talked(messages, words="We sail in line")
        weights, times = await weighed(guest), await timed(guest)
        return {
            "memories": count,
            "messages": messages,
            "fill_s": round(filled, 1),
            "paint_ms": {path: round(ms) for path, ms in (await painted(browser, page, guest)).items()},
            "cold_bytes": {path: cold for path, (cold, _) in weights.items()},
            "warm_bytes": {path: warm for path, (_, warm) in weights.items()},
            "p95_ms": {path: round(ms, 1) for path, (ms, _, _) in times.items()},
            "processor_ms": {path: round(ms, 1) for path, (_, ms, _) in times.items()},
            "processor_p95_ms": {path: round(ms, 1) for path, (_, _, ms) in times.items()},
            "stream_ms": [round(ms, 1) for ms in await streamed(guest)],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="remora-web-") as folder:
        figures = asyncio.run(measured(Path(folder), given.memories, given.messages))
    print(json.dumps(figures) if given.json else json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
