"""The whole process under load: what one person waits while others say too much, wait, or meet a model that hangs.

Run `python -m bench.load [--json] [--runs N] [--mode classic|hybrid] [SCENARIO ...]`. The pipeline is the real one,
from a channel that keeps times to a server with OpenAI's API, which is another process on this machine and answers
after a set delay. A scenario with a baseline measures it in the same run, in turns with the load; figures are medians
of all runs. Exit code 1 when one misses its gate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from channels.base import Capabilities, Channel, ChatKind, Inbound, Outbound
from gateway import app
from gateway.config import loading
from gateway.config.settings import WorkPace
from gateway.ops import telemetry
from gateway.pipeline.policy import Rules
from gateway.reception.router import Router
from memory.service import Service

#: The model's answer, whatever it is asked; any other text that is shown is the product's own.
ANSWER = "All is well, and how are you?"
#: The model's answer when it is asked for memories.
NOTHING = '{"facts": [], "styles": [], "event": null, "entities": []}'
#: Turns that run at the same time, the default of config.yaml.
SLOTS = 8
#: A new message waits no longer than this, in seconds, while a backlog is worked off.
FIRST_ANSWER = 3.0
#: The write-ahead log stays below so many megabytes.
LOG_MB = 16.0
#: Open files and tasks that may come and go.
_SWING = 3

_SAYINGS = (
    "I live in Lisbon",
    "what do you know about me?",
    "my sister is called Ana and she likes tea",
    "我喜欢爬山",
    "where do I live?",
    "ok",
    "tell me something about the weather in my city, please",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody on the platform; alone with the bot, or in the group `group`."""

    id: int
    group: int | None = None

    @property
    def chat(self) -> str:
        return str(self.id if self.group is None else self.group)


class Platform(Channel):
    """A channel that keeps when what was shown; rules say who may speak on it, as on a real platform."""

    id = "load"
    platform = "load"
    capabilities = Capabilities(burst_seconds=0)

    def __init__(self) -> None:
        self.shown = 0
        self.failed = 0
        self.locked = 0
        #: By chat, how often the model's words were shown, and when something was shown last (`time.perf_counter`).
        self.answers: Counter[str] = Counter()
        self.last: dict[str, float] = {}
        self._numbers = count(1)
        self._expected: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)

    async def send(self, outbound: Outbound) -> str:
        self.shown += 1
        self.failed += "went wrong" in outbound.text
        self.locked += "locked" in outbound.text
        self.answers[outbound.place.chat] += outbound.text == ANSWER
        self.last[outbound.place.chat] = time.perf_counter()
        waiting = self._expected[outbound.place.chat]
        while waiting and waiting[0].done():  # somebody who has gone away
            waiting.popleft()
        if waiting:
            waiting.popleft().set_result(None)
        return str(self.shown)

    def said(self, person: Person, text: str, *, seconds_ago: float = 0.0) -> Inbound:
        """A message that nobody said before."""
        kind: ChatKind = "private" if person.group is None else "group"
        number = next(self._numbers)
        return Inbound(
            channel=self.id,
            platform=self.platform,
            bot_id="1",
            update_key=str(number),
            chat=person.chat,
            chat_kind=kind,
            author_id=str(person.id),
            author_name=f"Person {person.id}",
            message_id=str(number),
            text=text,
            sent_at=app.now() - int(seconds_ago * 1000),
        )

    async def ask(self, router: Router, person: Person, text: str) -> float:
        """Say something and wait until the next thing is shown there; returns the seconds."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._expected[person.chat].append(answered)
        start = time.perf_counter()
        try:
            await router.on_inbound(self.said(person, text))
            await answered
        finally:
            answered.cancel()
        return time.perf_counter() - start


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The setting of scenarios: the model server's address, how recall searches, how long a phase takes in seconds.

    `size` shrinks crowds and backlogs for a quick look. The gates are meant for 1, and for "classic"
    recall: in "hybrid" each turn costs some tenth of a second of a processor, and the crowds alone keep two busy.
    """

    address: str
    mode: Literal["classic", "hybrid"] = "classic"

    @property
    def embedder(self) -> str:
        return "local" if self.mode == "hybrid" else "none"

    seconds: float = 12.0
    lock_seconds: float = 120.0
    size: float = 1.0

    def sized(self, number: int) -> int:
        return max(2, round(number * self.size))

    def configured(self, folder: Path, model: str, *, hangs_for: Sequence[Person] = ()) -> loading.Config:
        """A configuration with all defaults and one agent; another one, whose model hangs, serves `hangs_for`."""
        agents = folder / "agents"
        agents.mkdir(parents=True)
        (folder / "config.yaml").write_text(
            f"limits: {{concurrent_turns: {SLOTS}}}\nembedding: {{provider: {self.embedder}}}\n", "utf-8"
        )
        (agents / "assistant.yaml").write_text(self._agent("assistant", model), "utf-8")
        if hangs_for:
            people = ", ".join(f"'load:{person.id}'" for person in hangs_for)
            (agents / "stuck.yaml").write_text(
                self._agent("stuck", "hang") + f"routing: {{people: [{people}]}}\n", "utf-8"
            )
        return loading.load(folder / "config.yaml", {}, folder, pace=WorkPace(exit_seconds=0))

    def _agent(self, name: str, model: str) -> str:
        return f"name: {name}\nmodels: [{{provider: openai, model: {model}, base_url: '{self.address}', key: sk-1}}]\n"

    @asynccontextmanager
    async def running(
        self, settings: loading.Config, platform: Platform, people: Sequence[Person] | None = None
    ) -> AsyncIterator[Router]:
        """The product with these people on its lists; with None whoever speaks may, as much as they like."""
        parties = {platform.id: platform}
        admission = {platform.id: Rules(open_to_all=True) if people is None else rules(people)}
        async with AsyncExitStack() as stack:
            parts = await stack.enter_async_context(app.opened(settings, parties))
            yield await stack.enter_async_context(app.answering(settings, parties, parts, admission=admission))


def rules(people: Sequence[Person]) -> Rules:
    """These people may speak, and in their groups."""
    return Rules(
        allow=frozenset(str(person.id) for person in people),
        groups=frozenset(str(person.group) for person in people if person.group is not None),
    )


async def backlog(bench: Bench, folder: Path) -> Mapping[str, float]:
    """Messages of two people in turns in each of 100 groups wait in the inbox when the process starts."""
    platform, talkers = Platform(), _talkers(bench)
    settings = bench.configured(folder, "after-300")
    async with app.opened(settings, {}) as parts:
        memory = parts.roster.stores["assistant"].memory
        for person, text in _pending(bench, talkers):
            await _leave(memory, platform.said(person, text, seconds_ago=60))
    start = time.perf_counter()
    newcomers = [Person(id=9_000_000 + n) for n in range(1_000)]
    async with bench.running(settings, platform, [*talkers, *newcomers]) as router:
        ready = time.perf_counter() - start
        return {"ready_s": ready, **await _worked_off(bench, router, platform, newcomers, start)}


async def arriving(bench: Bench, folder: Path) -> Mapping[str, float]:
    """The same messages were said a minute ago, and arrive one after the other as soon as the process has started."""
    platform, talkers = Platform(), _talkers(bench)
    settings = bench.configured(folder, "after-300")
    newcomers = [Person(id=9_000_000 + n) for n in range(1_000)]
    async with bench.running(settings, platform, [*talkers, *newcomers]) as router:
        start = time.perf_counter()
        for person, text in _pending(bench, talkers):
            await router.on_inbound(platform.said(person, text, seconds_ago=60))
        taken = time.perf_counter() - start
        return {"taken_s": taken, **await _worked_off(bench, router, platform, newcomers, start)}


async def hung(bench: Bench, folder: Path) -> Mapping[str, float]:
    """Thirty people talk while twice as many as there are slots wait for an agent whose model hangs."""
    people = [Person(id=1_000 + n) for n in range(bench.sized(30))]
    stuck = [Person(id=5_000 + n) for n in range(2 * SLOTS)]
    times: dict[str, list[float]] = {}
    for phase in ("base", "load"):
        platform = Platform()
        settings = bench.configured(folder / phase, "after-100", hangs_for=stuck)
        async with bench.running(settings, platform, [*people, *stuck]) as router:
            if phase == "load":
                for person in stuck:
                    await router.on_inbound(platform.said(person, "are you there?"))
            times[phase] = await _crowd(router, platform, people, seconds=bench.seconds, every=2.0)
            if phase == "load":
                # Or the end would wait for them. Each that ends makes room for the next, so one round is enough.
                for person in stuck:
                    await platform.ask(router, person, "/stop")
    return _beside(times)


async def flooder(bench: Bench, folder: Path) -> Mapping[str, float]:
    """Fifty people say something every two seconds while one says a hundred things a second."""
    people = [Person(id=1_000 + n) for n in range(bench.sized(50))]
    rude = Person(id=5_000)
    times: dict[str, list[float]] = {}
    answered = 0
    for phase in ("base", "load"):
        platform = Platform()
        settings = bench.configured(folder / phase, "after-100")
        async with bench.running(settings, platform, [*people, rude]) as router, asyncio.TaskGroup() as group:
            flood = group.create_task(_flood(router, platform, rude, per_second=100)) if phase == "load" else None
            times[phase] = await _crowd(router, platform, people, seconds=bench.seconds, every=2.0)
            if flood is not None:
                flood.cancel()
                answered = platform.answers[rude.chat]
    limits = settings.settings.limits
    most = limits.person_burst + limits.person_messages_per_minute * bench.seconds / 60 + 1
    return {**_beside(times), "flood_answers": answered, "flood_most": most}


async def locks(bench: Bench, folder: Path) -> Mapping[str, float]:
    """Fifty people talk, tell, ask and forget without a pause; nobody may read that a database is locked."""
    people = [Person(id=1_000 + n) for n in range(bench.sized(50))]
    platform = Platform()
    settings = bench.configured(folder, "after-50")
    log_mb = 0.0
    with counting("locked") as logged:
        async with bench.running(settings, platform) as router, asyncio.TaskGroup() as group:

            async def watch() -> None:
                nonlocal log_mb
                while True:
                    log_mb = max(log_mb, _wal_mb(folder))
                    await asyncio.sleep(0.2)

            watching = group.create_task(watch())
            times = await _crowd(router, platform, people, seconds=bench.lock_seconds, every=0.0, commands=_COMMANDS)
            watching.cancel()
    return {
        "answers": len(times),
        "per_second": len(times) / bench.lock_seconds,
        "p95_ms": _p95(times),
        "locked_logs": logged.count,
        "locked_answers": platform.locked,
        "failed_answers": platform.failed,
        "log_mb": log_mb,
    }


async def soak(bench: Bench, folder: Path) -> Mapping[str, float]:
    """Five hundred chats of twenty messages each: does anything grow that should not?"""
    people = [Person(id=1_000 + n) for n in range(bench.sized(500))]
    platform = Platform()
    settings = bench.configured(folder, "after-0")
    gate = asyncio.Semaphore(50)
    rest: list[tuple[float, int, int]] = []
    log_mb = 0.0

    async def one(person: Person, n: int) -> None:
        async with gate:
            await platform.ask(router, person, _SAYINGS[n % len(_SAYINGS)])

    async with bench.running(settings, platform) as router:
        for n in range(20):
            await asyncio.gather(*(one(person, n) for person in people))
            log_mb = max(log_mb, _wal_mb(folder))
            await asyncio.sleep(0.05)  # senders that are done go
            rest.append((resident_mb(), open_files(), len(asyncio.all_tasks())))
    half = rest[len(rest) // 2 :]
    turns = [len(people) * n / 1_000 for n in range(len(half))]
    return {
        "turns": platform.shown,
        "failed_answers": platform.failed,
        "resident_mb": rest[-1][0],
        "mb_per_1000_turns": statistics.linear_regression(turns, [mb for mb, _, _ in half]).slope,
        "files_before": rest[len(rest) // 4][1],
        "files_after": rest[-1][1],
        "tasks_before": rest[len(rest) // 4][2],
        "tasks_after": rest[-1][2],
        "log_mb": log_mb,
    }


def missed(scenario: str, figures: Mapping[str, float]) -> list[str]:
    """Returns the gates that these figures miss, in words."""
    gates: dict[str, bool] = {}
    if "new_s" in figures:
        gates[f"a new message is answered within {FIRST_ANSWER:g} s of the start"] = figures["new_s"] <= FIRST_ANSWER
        gates[f"later ones within {FIRST_ANSWER:g} s"] = figures["new_worst_s"] <= FIRST_ANSWER
    if "load_p95_ms" in figures:
        base = figures["base_p95_ms"]
        gates["others wait at most half as long again, or 20 ms longer"] = figures["load_p95_ms"] <= max(
            1.5 * base, base + 20
        )
    if "flood_answers" in figures:
        gates["who floods is answered as often as anybody may be"] = figures["flood_answers"] <= figures["flood_most"]
    for name in ("locked_logs", "locked_answers", "failed_answers"):
        if name in figures:
            gates[f"no {name.replace('_', ' ')}"] = figures[name] == 0
    if "log_mb" in figures:
        gates[f"the log stays below {LOG_MB:g} MB"] = figures["log_mb"] <= LOG_MB
    for name in ("files", "tasks"):
        if f"{name}_after" in figures:
            gates[f"no more {name} than before"] = figures[f"{name}_after"] <= figures[f"{name}_before"] + _SWING
    return [f"{scenario}: {gate}" for gate, met in gates.items() if not met]


SCENARIOS: Mapping[str, Callable[[Bench, Path], Coroutine[None, None, Mapping[str, float]]]] = {
    "backlog": backlog,
    "arriving": arriving,
    "hung": hung,
    "flooder": flooder,
    "locks": locks,
    "soak": soak,
}
#: Those that are long enough to be run once.
_ONCE = frozenset({"locks", "soak"})
#: The commands that people type in `locks` beside ordinary talk.
_COMMANDS = ("/remember my cat is called Miu", "/memory", "/memory search tea", "/why", "/status", "/new")


def _talkers(bench: Bench) -> list[Person]:
    return [Person(id=1_000 + n, group=-(1_000 + n // 2)) for n in range(2 * bench.sized(100))]


def _pending(bench: Bench, talkers: Sequence[Person]) -> Iterator[tuple[Person, str]]:
    """A thousand messages: in each group its two people speak in turns, so that no two messages become one."""
    groups = len(talkers) // 2
    for n in range(bench.sized(1_000)):
        yield talkers[2 * (n % groups) + (n // groups) % 2], _SAYINGS[n % len(_SAYINGS)]


async def _leave(memory: Service, inbound: Inbound) -> None:
    """Commits a message and leaves it unanswered, as a process does that ends in between."""
    await memory.mailbox.receive(
        platform=inbound.platform,
        bot_id=inbound.bot_id,
        update_key=inbound.update_key,
        session_key=inbound.place.session_key,
        payload=inbound.to_json(),
    )


async def _worked_off(
    bench: Bench, router: Router, platform: Platform, newcomers: Sequence[Person], start: float
) -> Mapping[str, float]:
    """One new person after the other says something in private until the backlog is answered."""
    pending = bench.sized(1_000)
    waits: list[float] = []
    new = 0.0
    for person in newcomers:
        waits.append(await platform.ask(router, person, "hello, I am new here"))
        new = new or time.perf_counter() - start
        if platform.shown - len(waits) >= pending:
            break
        await asyncio.sleep(0.5)
    drained = max(at for chat, at in platform.last.items() if chat.startswith("-")) - start
    return {
        "new_s": new,
        "new_worst_s": max(waits),
        "drained_s": drained,
        "drained_at_best_s": pending * 0.3 / SLOTS,
        "failed_answers": platform.failed,
    }


async def _crowd(
    router: Router,
    platform: Platform,
    people: Sequence[Person],
    *,
    seconds: float,
    every: float,
    commands: Sequence[str] = (),
) -> list[float]:
    """Returns the seconds that each answer took.

    Each person speaks every `every` seconds, but not before the answer to the message before; who is still waiting at
    the end counts with the wait so far.
    """
    end = time.perf_counter() + seconds
    times: list[float] = []

    async def one(n: int, person: Person) -> None:
        await asyncio.sleep(every * n / len(people))
        for turn in count(n):
            start = time.perf_counter()
            if start >= end:
                return
            saying = _SAYINGS[turn % len(_SAYINGS)]
            if commands and turn % 5 == 0:
                saying = commands[turn // 5 % len(commands)]
            try:
                async with asyncio.timeout(end + 1.0 - start):
                    await platform.ask(router, person, saying)
            except TimeoutError:
                pass
            now = time.perf_counter()
            times.append(now - start)
            await asyncio.sleep(max(0.0, start + every - now))

    await asyncio.gather(*(one(n, person) for n, person in enumerate(people)))
    return times


async def _flood(router: Router, platform: Platform, person: Person, *, per_second: int) -> None:
    """Say things at this rate, waiting for nothing but for each to be taken; what is late is made up for."""
    start = time.perf_counter()
    for n in count():
        await asyncio.sleep(max(0.0, start + n / per_second - time.perf_counter()))
        await router.on_inbound(platform.said(person, f"again and again, {n}"))


def _beside(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {
        f"{phase}_{name}": value
        for phase, own in times.items()
        for name, value in (
            ("n", len(own)),
            ("p50_ms", statistics.median(own) * 1000),
            ("p95_ms", _p95(own)),
            ("max_ms", max(own) * 1000),
        )
    }


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[18] * 1000


def _wal_mb(folder: Path) -> float:
    return max((file.stat().st_size for file in folder.rglob("*.db-wal")), default=0) / 1e6


def resident_mb() -> float:
    """Returns how much memory this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def open_files() -> int:
    """Returns how many files and connections this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


class Counting(logging.Handler):
    """Counts what is logged with a certain word in it, at any level that is logged at all."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.count = 0
        self._word = word

    def emit(self, record: logging.LogRecord) -> None:
        self.count += self._word in str(record.msg) or self._word in record.getMessage()


@contextmanager
def counting(word: str) -> Iterator[Counting]:
    """Count within the block. Our own log lines come by here once `gateway.ops.telemetry` is configured."""
    handler = Counting(word)
    logging.getLogger().addHandler(handler)
    try:
        yield handler
    finally:
        logging.getLogger().removeHandler(handler)


@contextmanager
def model_server() -> Iterator[str]:
    """The address of a server of its own process, which takes nothing from this one.

    A model called `after-N` answers after N milliseconds, one called `hang` never.
    """
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        process.terminate()
        process.join()
        process.close()
        here.close()
        there.close()


def _serve(port_to: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.start_server(_accept, "127.0.0.1", 0, backlog=1_000)
        port_to.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


async def _accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            name, _, delay = request["model"].partition("-")
            if name == "hang":
                await reader.read()
                break
            await asyncio.sleep(int(delay) / 1000)
            body = _events(NOTHING if "response_format" in request else ANSWER)
            top = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(top.encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client has gone
    finally:
        writer.close()


def _events(text: str) -> bytes:
    """`text` as a stream of OpenAI's API, in three pieces."""
    deltas: list[tuple[dict[str, str], str | None]] = [({"content": part}, None) for part in text.partition(" ")]
    deltas.append(({}, "stop"))
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    usage = {"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": 10, "total_tokens": 510}}
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in (*chunks, usage)) + b"data: [DONE]\n\n"


def measure(scenario: str, bench: Bench, *, runs: int) -> dict[str, float]:
    """The median of each figure over `runs` runs, each with a fresh store."""
    results = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            results.append(asyncio.run(SCENARIOS[scenario](bench, Path(folder))))
    return {name: round(statistics.median(result[name] for result in results), 3) for name in results[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all when none is named"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each scenario but locks and soak")
    parser.add_argument("--seconds", type=float, default=12.0, help="how long hung and flooder measure each time")
    parser.add_argument("--lock-seconds", type=float, default=120.0, help="how long locks takes")
    parser.add_argument("--size", type=float, default=1.0, help="a part of the crowds and backlogs, for a quick look")
    parser.add_argument("--mode", choices=["classic", "hybrid"], default="classic", help="without or with embedders")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each scenario")
    wanted = parser.parse_args()
    if unknown := [name for name in wanted.scenarios if name not in SCENARIOS]:
        parser.error(f"there is no scenario called {', '.join(unknown)}")
    os.environ["NO_PROXY"] = "*"
    telemetry.configure(level="warning", format="console", file=None, redact=str)
    all_missed: list[str] = []
    with model_server() as address:
        bench = Bench(
            address=address,
            mode=wanted.mode,
            seconds=wanted.seconds,
            lock_seconds=wanted.lock_seconds,
            size=wanted.size,
        )
        for scenario in wanted.scenarios or SCENARIOS:
            runs = 1 if scenario in _ONCE else wanted.runs
            figures = measure(scenario, bench, runs=runs)
            misses = missed(scenario, figures)
            all_missed += misses
            if wanted.json:
                line = {"scenario": scenario, "mode": bench.mode, "runs": runs, **figures, "missed": misses}
                print(json.dumps(line), flush=True)
            else:
                print(f"{scenario} ({bench.mode}, {runs} runs)", flush=True)
                for name, value in figures.items():
                    print(f"{name:>20} {value:g}", flush=True)
                print("\n".join(f"  MISSED {miss}" for miss in misses) or "  all gates met", flush=True)
    if all_missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
