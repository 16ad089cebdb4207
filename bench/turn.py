"""What a turn costs beside the model: the whole pipeline from inbound to delivered, over many sessions.

Run `python -m bench.turn [--json] [--sessions N] [--turns N] [--concurrent N]`. A real store in a temporary folder,
the offline agent, no burst wait; each turn is a console message that is received, committed, answered and delivered.
Latency is measured from `on_inbound` to settled, one turn at a time; throughput with `--concurrent` sessions at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from channels.base import Capabilities, Channel, Inbound, Outbound
from gateway import app
from gateway.config import loading
from gateway.ops import telemetry
from gateway.pipeline.router import Router

_SAYINGS = (
    "I live in Lisbon",
    "what do you know about me?",
    "my sister is called Ana and she likes tea",
    "I'm allergic to peanuts",
    "我喜欢爬山",
    "where do I live?",
    "ok",
    "remember that the spare key is under the blue pot",
    "tell me something about the weather in my city, please",
)


class Silent(Channel):
    """A channel that shows nothing and counts."""

    id = "console"
    platform = "console"
    capabilities = Capabilities(burst_seconds=0)

    def __init__(self) -> None:
        self.shown = 0
        self.failed = 0

    async def send(self, outbound: Outbound) -> str:
        self.shown += 1
        self.failed += "went wrong" in outbound.text
        return str(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    sessions: int
    turns: int
    p50_ms: float
    p99_ms: float
    turns_per_second: float
    concurrent: int
    resident_mb: float
    database_mb: float

    def as_json(self) -> Mapping[str, float]:
        return {name: getattr(self, name) for name in self.__slots__}


async def measure(
    folder: Path, *, sessions: int, turns: int, concurrent: int, mode: str = "classic", seed: int = 7
) -> Figures:
    """Run `turns` turns over `sessions` sessions, once one by one and once `concurrent` at a time.

    `mode` is that of recall: in `hybrid` the embedding models run, too, for each question and each message.
    """
    channel = Silent()
    settings = loading.load(_config(folder, concurrent, mode), {}, folder)
    chance = random.Random(seed)
    numbers = count(1)

    async with app.running(settings, {channel.id: channel}) as router:
        for n in range(sessions):  # every session has been seen and has something to remember
            await _turn(router, f"person {n}", _SAYINGS[n % len(_SAYINGS)], next(numbers))
        times = []
        for _ in range(turns):
            person, text = f"person {chance.randrange(sessions)}", chance.choice(_SAYINGS)
            start = time.perf_counter()
            await _turn(router, person, text, next(numbers))
            times.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        people = [f"person {n % sessions}" for n in range(turns)]
        gate = asyncio.Semaphore(concurrent)

        async def one(person: str) -> None:
            async with gate:
                await _turn(router, person, chance.choice(_SAYINGS), next(numbers))

        await asyncio.gather(*(one(person) for person in people))
        elapsed = time.perf_counter() - start
        size = _size(folder)
    expected = sessions + 2 * turns
    if channel.shown != expected or channel.failed:
        raise SystemExit(
            f"{channel.shown} answers for {expected} messages, {channel.failed} failures: the figures mean nothing"
        )
    return Figures(
        sessions=sessions,
        turns=turns,
        p50_ms=round(statistics.median(times), 2),
        p99_ms=round(statistics.quantiles(times, n=100)[98], 2),
        turns_per_second=round(turns / elapsed, 1),
        concurrent=concurrent,
        resident_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        database_mb=round(size / 1e6, 1),
    )


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("remora.db*"))


async def _turn(router: Router, person: str, text: str, number: int) -> None:
    inbound = Inbound(
        channel="console",
        platform="console",
        bot_id="local",
        update_key=str(number),
        chat=person,
        chat_kind="private",
        author_id=person,
        author_name=person,
        message_id=str(number),
        text=text,
        sent_at=app.now(),
    )
    await router.on_inbound(inbound)
    await router.settled(inbound.place)


def _config(folder: Path, concurrent: int, mode: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(f"limits: {{concurrent_turns: {max(8, concurrent)}}}\nrecall: {{mode: {mode}}}\n", "utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--concurrent", type=int, default=16)
    parser.add_argument("--mode", choices=["classic", "hybrid"], default="classic", help="with or without embedders")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    telemetry.configure(level="error", format="console", file=None, redact=str)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(
            measure(
                Path(folder),
                sessions=wanted.sessions,
                turns=wanted.turns,
                concurrent=wanted.concurrent,
                mode=wanted.mode,
            )
        )
    if wanted.json:
        print(json.dumps(figures.as_json()))
        return
    for name, value in figures.as_json().items():
        print(f"{name:>18} {value:g}")


if __name__ == "__main__":
    main()
