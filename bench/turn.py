"""Measures what a turn costs beside the model: the whole pipeline from inbound to delivered, over many sessions.

    python -m bench.turn                    as `remora init` sets it up: both embedding models, a store that is a file
    python -m bench.turn --mode classic     without the embedding models
    python -m bench.turn --sessions 1       one long conversation of 220 messages, at its beginning and at its end
    python -m bench.turn --engine both      and a store in PostgreSQL, in turns
    python -m bench.turn --model            answered by a language model that answers at once, not by the offline agent

A real store in a temporary folder, or on a server of its own that syncs each commit to the disk; no burst wait. Each
turn is a console message that is received, committed, answered and delivered. Latency is measured from `on_inbound` to
settled, one turn at a time; throughput with `--concurrent` sessions at once. Both are measured in rounds, and in each
round with one engine after the other, so that all share the machine's mood: figures are medians over rounds.

Processor time is that of the bot and of the processes it starts, such as that of the models. It is taken from rest to
rest, so it includes what a turn leaves to be done in the background. `docs/design/benchmarks.md` explains each figure.

Other revisions are measured with this file, too (`bench.against`), so it uses little of the product.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import re
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from channels.base import Capabilities, Channel, Inbound, Outbound
from gateway import app

if TYPE_CHECKING:
    from gateway.config.loading import Config
    from gateway.reception.router import Router
    from tests.kit.postgres import Server

#: Where the configuration is loaded, now and in version 0.1.
_LOADERS: Final = ("gateway.config.loading", "gateway.config")
#: The messages of a long conversation.
_LONG: Final = 220
#: A bot is at rest when it took less than this share of a core in so many looks, of so many seconds, one after another.
_REST_SHARE, _REST_LOOKS, _LOOK_SECONDS = 0.1, 4, 0.25
#: Seconds after the start in which a bot at rest may still be about to load its models.
_BEFORE_MODELS = 3.0

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
    mode: str = "hybrid"
    model: str = ""
    concurrent: int = 16
    shared: bool = False

    def config(self) -> Config:
        agents = self.folder / "agents"
        agents.mkdir(parents=True)
        path = self.folder / "config.yaml"
        url = f"database_url: '{self.database_url}'\n" if self.database_url else ""
        limits = f"limits: {{concurrent_turns: {max(8, self.concurrent)}}}\n"
        if _is_there("gateway.config.retired"):
            search = "embedding: {provider: none}\n" if self.mode == "classic" else ""
        else:  # a revision that knows no other way to search by words
            search = f"recall: {{mode: {self.mode}}}\n"
        path.write_text(f"{url}{limits}{search}", "utf-8")
        if self.model:
            model = f"{{provider: openai, model: answer-0, base_url: '{self.model}', key: sk-1}}"
            agent = f"name: assistant\nmodels: [{model}]\n"
            (agents / "assistant.yaml").write_text(agent, "utf-8")
        loading: Any = import_module(_LOADERS[0] if _is_there(_LOADERS[0]) else _LOADERS[1])
        config: Config = loading.load(path, {}, self.folder)
        return config


def _is_there(module: str) -> bool:
    with suppress(ModuleNotFoundError):  # which tells that its parent is no package
        return find_spec(module) is not None
    return False


def started_processes() -> frozenset[int]:
    """Returns the processes that this one has started and that still run; none where there is no /proc."""
    pids: set[int] = set()
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # that thread has just ended
            pids |= {int(pid) for pid in children.read_text().split()}
    return frozenset(pids)


@dataclass(slots=True, kw_only=True)
class World:
    """A bot that runs, and the people who speak to it. `strangers` are processes that others have started."""

    router: Router
    channel: Silent
    people: Sequence[str]
    chance: random.Random
    strangers: frozenset[int] = frozenset()
    expected: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def models_seconds(self) -> float:
        """Returns the processor time that the processes started by the bot have taken so far."""
        total = 0.0
        for pid in started_processes() - self.strangers:
            with suppress(OSError):  # it has just ended
                total += time.clock_gettime(~pid << 3 | 2)  # Linux's number for the processor clock of a process
        return total

    def resident_mb(self) -> float:
        """Returns the most memory that the bot and the processes it has started have held, each at its own time."""
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for pid in started_processes() - self.strangers:
            with suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text("utf-8")
                most += sum(int(kilobytes) for kilobytes in re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE))
        return most / 1024

    async def at_rest(self) -> None:
        """Waits until the work in the background, such as loading models and making vectors, has come to an end."""
        before, quiet = time.process_time() + self.models_seconds(), 0
        while quiet < _REST_LOOKS:
            await asyncio.sleep(_LOOK_SECONDS)
            after = time.process_time() + self.models_seconds()
            quiet = quiet + 1 if after - before < _REST_SHARE * _LOOK_SECONDS else 0
            before = after

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
    channel, strangers = Silent(), started_processes()
    async with app.running(setup.config(), {channel.id: channel}) as router:
        people = [f"{name} {n}" for n in range(sessions)]
        world = World(router=router, channel=channel, people=people, chance=random.Random(seed), strangers=strangers)
        await world.greet()
        if setup.mode == "hybrid":
            await asyncio.sleep(_BEFORE_MODELS)
            await world.at_rest()
            check_vectors(setup.folder)
        yield world
        if not setup.shared:  # else another process may have answered what this one was told
            world.check()


def check_vectors(folder: Path) -> None:
    """Ends the program if a store in a file of this folder has no vectors: then it is searched by words alone."""
    for file in folder.rglob("remora.db"):
        with closing(sqlite3.connect(file)) as store:
            if not store.execute("select count(*) from vectors").fetchone()[0]:
                raise SystemExit("The embedding models made no vectors: the figures mean nothing. Try: remora doctor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The figures of one round: times of turns one by one, their processor milliseconds, and turns a second at once."""

    times: Sequence[float]
    processor_ms: float
    models_processor_ms: float
    server_processor_ms: float
    resident_mb: float
    turns_per_second: float


async def rounded(world: World, *, turns: int, concurrent: int, database: Server | None) -> Round:
    """Measures one round; `database` is the server of the store, if it has one."""

    def spent() -> tuple[float, float, float]:
        models = world.models_seconds()
        return time.process_time() + models, models, database.processor_seconds if database is not None else 0.0

    await world.at_rest()
    before = spent()
    times = await world.one_by_one(turns)
    await world.at_rest()
    own, models, servers = (1_000 * (after - start) / turns for start, after in zip(before, spent(), strict=True))
    seconds = await world.at_once(turns, concurrent) if concurrent > 1 else sum(times) / 1_000
    return Round(
        resident_mb=world.resident_mb(),
        times=times,
        processor_ms=own,
        models_processor_ms=models,
        server_processor_ms=servers,
        turns_per_second=turns / seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one engine: medians over all rounds, but for p99, which is that of all turns.

    `processor_ms` is the processor time of a turn, and `models_processor_ms` the part of it that the models' process
    took; `server_processor_ms` is that of the database's server. `resident_mb` includes the models. `first` and `last`
    name the first and the last round.
    """

    p50_ms: float
    first_p50_ms: float
    last_p50_ms: float
    p99_ms: float
    turns_per_second: float
    processor_ms: float
    first_processor_ms: float
    last_processor_ms: float
    models_processor_ms: float
    server_processor_ms: float
    resident_mb: float

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Figures:
        everything = [one for each in rounds for one in each.times]
        return cls(
            p50_ms=round(statistics.median(statistics.median(each.times) for each in rounds), 2),
            first_p50_ms=round(statistics.median(rounds[0].times), 2),
            last_p50_ms=round(statistics.median(rounds[-1].times), 2),
            p99_ms=round(statistics.quantiles(everything, n=100)[98], 2),
            turns_per_second=round(statistics.median(each.turns_per_second for each in rounds), 1),
            processor_ms=round(statistics.median(each.processor_ms for each in rounds), 2),
            first_processor_ms=round(rounds[0].processor_ms, 2),
            last_processor_ms=round(rounds[-1].processor_ms, 2),
            models_processor_ms=round(statistics.median(each.models_processor_ms for each in rounds), 2),
            server_processor_ms=round(statistics.median(each.server_processor_ms for each in rounds), 2),
            resident_mb=round(rounds[-1].resident_mb, 1),
        )


async def measure(folder: Path, options: argparse.Namespace) -> dict[str, Figures]:
    """Returns the figures of each engine that is asked for."""
    engines = ("sqlite", "postgres") if options.engine == "both" else (options.engine,)
    async with AsyncExitStack() as stack:
        model, database = "", None
        if options.model:
            from bench.load import model_server  # it uses more of the product than a turn needs

            model = stack.enter_context(model_server())
        if "postgres" in engines:
            from tests.kit import postgres

            database = stack.enter_context(postgres.running({}))
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
                from bench import server

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
    parser.add_argument("--sessions", type=int, default=1_000, help="1: one long conversation")
    parser.add_argument("--turns", type=int, help=f"one by one, and as many at once: 2000, or {_LONG} in one session")
    parser.add_argument("--rounds", type=int, default=5, help="into which the turns are divided")
    parser.add_argument("--concurrent", type=int, default=16)
    parser.add_argument("--mode", choices=["classic", "hybrid"], default="hybrid", help="without or with the models")
    parser.add_argument("--model", action="store_true", help="a language model on loopback answers")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    wanted.turns = wanted.turns or (_LONG if wanted.sessions == 1 else 2_000)
    # Two messages of one person at once may be answered together.
    wanted.concurrent = min(wanted.concurrent, wanted.sessions)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), wanted))
        size = sum(file.stat().st_size for file in Path(folder).rglob("remora.db*"))
    found: dict[str, Mapping[str, float]] = {}
    for engine, measured in figures.items():
        # Over many sessions, rounds differ by chance.
        left_out = ("first_", "last_") if wanted.sessions > 1 else ()
        found[engine] = {name: value for name, value in asdict(measured).items() if not name.startswith(left_out)}
    if len(figures) > 1:
        found["postgres to sqlite"] = ratio(figures)
    found["process"] = {
        "file_mb": round(size / 1e6, 1),
        "load": load,
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
