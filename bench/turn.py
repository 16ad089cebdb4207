"""Measures what a turn costs beside the model: the whole pipeline from inbound to delivered, over many sessions.

    python -m bench.turn                    a store that is a file
    python -m bench.turn --engine both      and one in PostgreSQL, in turns
    python -m bench.turn --model            answered by a language model that answers at once, not by the offline agent

A real store in a temporary folder, or on a server of its own that syncs each commit to the disk; no burst wait. Each
turn is a console message that is received, committed, answered and delivered. Latency is measured from `on_inbound` to
settled, one turn at a time; throughput with `--concurrent` sessions at once. Both are measured in rounds, and in each
round with one engine after the other, so that all share the machine's mood: figures are medians over rounds.
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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

from bench import server
from bench.load import model_server
from channels.base import Capabilities, Channel, Inbound, Outbound
from gateway import app
from gateway.config import loading
from gateway.ops import telemetry
from gateway.pipeline.router import Router
from tests.kit import postgres
from tests.kit.postgres import Server

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
class Setup:
    """How the bot is configured: its data, its database (empty: a file), its search, and its model (empty: none).

    A `shared` database is that of several processes.
    """

    folder: Path
    database_url: str = ""
    mode: str = "classic"
    model: str = ""
    concurrent: int = 16
    shared: bool = False

    def config(self) -> loading.Config:
        agents = self.folder / "agents"
        agents.mkdir(parents=True)
        path = self.folder / "config.yaml"
        url = f"database_url: '{self.database_url}'\n" if self.database_url else ""
        limits = f"limits: {{concurrent_turns: {max(8, self.concurrent)}}}\n"
        path.write_text(f"{url}{limits}recall: {{mode: {self.mode}}}\n", "utf-8")
        if self.model:
            model = f"{{provider: openai, model: answer-0, base_url: '{self.model}', key: sk-1}}"
            agent = f"name: assistant\nmodels: [{model}]\nrouting: {{default: true}}\n"
            (agents / "assistant.yaml").write_text(agent, "utf-8")
        return loading.load(path, {}, self.folder)


@dataclass(slots=True, kw_only=True)
class World:
    """A bot that runs, and the people who speak to it."""

    router: Router
    channel: Silent
    people: Sequence[str]
    chance: random.Random
    expected: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def greet(self) -> None:
        """Has everybody say something, so that each session has been seen and has something to remember."""
        for n, person in enumerate(self.people):
            await self._turn(person, _SAYINGS[n % len(_SAYINGS)])

    async def one_by_one(self, turns: int) -> list[float]:
        """Returns the milliseconds of each turn."""
        times = []
        for _ in range(turns):
            person, text = self.chance.choice(self.people), self.chance.choice(_SAYINGS)
            start = time.perf_counter()
            await self._turn(person, text)
            times.append((time.perf_counter() - start) * 1000)
        return times

    async def at_once(self, turns: int, concurrent: int) -> float:
        """Returns the seconds that so many turns take, `concurrent` at a time."""
        start = time.perf_counter()
        gate = asyncio.Semaphore(concurrent)

        async def one(person: str) -> None:
            async with gate:
                await self._turn(person, self.chance.choice(_SAYINGS))

        await asyncio.gather(*(one(self.people[n % len(self.people)]) for n in range(turns)))
        return time.perf_counter() - start

    def check(self) -> None:
        """Ends the program unless every message was answered."""
        if self.channel.shown != self.expected or self.channel.failed:
            raise SystemExit(
                f"{self.channel.shown} answers for {self.expected} messages, {self.channel.failed} failures:"
                " the figures mean nothing"
            )

    async def _turn(self, person: str, text: str) -> None:
        number = str(next(self.numbers))
        self.expected += 1
        inbound = Inbound(
            channel="console",
            platform="console",
            bot_id="local",
            update_key=f"{person} {number}",
            chat=person,
            chat_kind="private",
            author_id=person,
            author_name=person,
            message_id=number,
            text=text,
            sent_at=app.now(),
        )
        await self.router.on_inbound(inbound)
        await self.router.settled(inbound.place)


@asynccontextmanager
async def running(setup: Setup, *, sessions: int, name: str = "person", seed: int = 7) -> AsyncIterator[World]:
    """Runs a bot, and has so many people, called `name` and a number, speak to it for the first time."""
    channel = Silent()
    async with app.running(setup.config(), {channel.id: channel}) as router:
        people = [f"{name} {n}" for n in range(sessions)]
        world = World(router=router, channel=channel, people=people, chance=random.Random(seed))
        await world.greet()
        yield world
        if not setup.shared:  # else another process may have answered what this one was told
            world.check()


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The figures of one round: times of turns one by one, their processor milliseconds, and turns a second at once."""

    times: Sequence[float]
    processor_ms: float
    server_ms: float
    turns_per_second: float


async def rounded(world: World, *, turns: int, concurrent: int, database: Server | None) -> Round:
    """Measures one round; `database` is the server of the store, if it has one."""

    def spent() -> tuple[float, float]:
        return time.process_time(), database.processor_seconds if database is not None else 0.0

    before = spent()
    times = await world.one_by_one(turns)
    own, servers = (1_000 * (after - start) / turns for start, after in zip(before, spent(), strict=True))
    seconds = await world.at_once(turns, concurrent)
    return Round(times=times, processor_ms=own, server_ms=servers, turns_per_second=turns / seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one engine: medians over all rounds, but for p99, which is that of all turns.

    `processor_ms` is what a turn takes of this process's processor time, `server_ms` what it takes of the server's.
    """

    p50_ms: float
    p99_ms: float
    turns_per_second: float
    processor_ms: float
    server_ms: float

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Figures:
        everything = [one for each in rounds for one in each.times]
        return cls(
            p50_ms=round(statistics.median(statistics.median(each.times) for each in rounds), 2),
            p99_ms=round(statistics.quantiles(everything, n=100)[98], 2),
            turns_per_second=round(statistics.median(each.turns_per_second for each in rounds), 1),
            processor_ms=round(statistics.median(each.processor_ms for each in rounds), 2),
            server_ms=round(statistics.median(each.server_ms for each in rounds), 2),
        )


async def measure(folder: Path, options: argparse.Namespace) -> dict[str, Figures]:
    """Returns the figures of each engine that is asked for."""
    engines = ("sqlite", "postgres") if options.engine == "both" else (options.engine,)
    async with AsyncExitStack() as stack:
        model = stack.enter_context(model_server()) if options.model else ""
        database = stack.enter_context(postgres.running({})) if "postgres" in engines else None
        worlds: dict[str, tuple[World, Server | None]] = {}
        for engine in engines:
            on = database if engine == "postgres" else None
            setup = Setup(
                folder=folder / engine,
                database_url="" if on is None else on.database("turns"),
                mode=options.mode,
                model=model,
                concurrent=options.concurrent,
            )
            worlds[engine] = await stack.enter_async_context(running(setup, sessions=options.sessions)), on
            if on is not None:
                server.settle(on, "turns")
        rounds: dict[str, list[Round]] = {engine: [] for engine in engines}
        turns = options.turns // options.rounds
        for _ in range(options.rounds):
            for engine, (world, on) in worlds.items():
                rounds[engine].append(await rounded(world, turns=turns, concurrent=options.concurrent, database=on))
    return {engine: Figures.of(some) for engine, some in rounds.items()}


def ratio(figures: Mapping[str, Figures]) -> dict[str, float]:
    """Returns PostgreSQL's figures divided by SQLite's."""
    one, other = figures["postgres"], figures["sqlite"]
    return {
        "p50": round(one.p50_ms / other.p50_ms, 2),
        "turns_per_second": round(one.turns_per_second / other.turns_per_second, 2),
        "processor": round(one.processor_ms / other.processor_ms, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["sqlite", "postgres", "both"], default="sqlite")
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=2_000, help="one by one, and as many at once")
    parser.add_argument("--rounds", type=int, default=5, help="into which the turns are divided")
    parser.add_argument("--concurrent", type=int, default=16)
    parser.add_argument("--mode", choices=["classic", "hybrid"], default="classic", help="with or without embedders")
    parser.add_argument("--model", action="store_true", help="a language model on loopback answers")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    if wanted.concurrent > wanted.sessions:
        parser.error("--concurrent: two messages of one person at once may be answered together")
    telemetry.configure(level="error", format="console", file=None, redact=str)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), wanted))
        size = sum(file.stat().st_size for file in Path(folder).rglob("remora.db*"))
    found: dict[str, Mapping[str, float]] = {engine: asdict(one) for engine, one in figures.items()}
    if len(figures) > 1:
        found["postgres to sqlite"] = ratio(figures)
    found["process"] = {
        "resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "file_mb": round(size / 1e6, 1),
    }
    if wanted.json:
        print(json.dumps(found))
        return
    for name, values in found.items():
        print(name)
        for figure, value in values.items():
            print(f"{figure:>18} {value:g}")


if __name__ == "__main__":
    main()
