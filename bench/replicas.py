"""Turns a second of several processes on one store in PostgreSQL: measured here, simulated on machines of their own.

    python -m bench.replicas                    four processes, the offline agent
    python -m bench.replicas --model            answered by a language model that answers at once

Measured: one process, and then all of them at once, in turns, each with the pipeline and sessions of its own, on this
machine. As long as it has fewer cores than there are processes, that shows no growth.

Simulated: turns as a server that logs its statements saw them, replayed by processes that have a core, a connection
that writes and two that read each. The server has `--server-cores`; a statement travels for `--network-ms`. A
transaction waits for its locks as PostgreSQL has it wait. What was held is scaled to processor time that was measured
without the log, so that waiting for the cores of a busy machine doesn't count. No commit takes longer than the median.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench import server, turn
from bench.load import model_server
from bench.server import Logged
from gateway.ops import telemetry
from tests.kit import postgres
from tests.kit.postgres import Server

REPLICAS: Final = (1, 2, 4, 8)
#: Conversations that each simulated process answers at the same time.
_CONCURRENT: Final = 16
_SECONDS: Final = 20.0
#: A key in more than this share of turns belongs to no session.
_COMMON: Final = 0.3


# Measured ---------------------------------------------------------------------------------------------------------


def _process(orders: Connection, setup: turn.Setup, sessions: int, name: str) -> None:
    """Runs the pipeline, and as many turns as it is told to, until it is told 0; answers with the seconds.

    In the end it tells how many messages it received, how many answers it showed, and how many of them are failures.
    """
    telemetry.configure(level="error", format="console", file=None, redact=str)

    async def run() -> None:
        async with turn.running(setup, sessions=sessions, name=name) as world:
            orders.send(0.0)
            while turns := await asyncio.to_thread(orders.recv):
                orders.send(await world.at_once(turns, setup.concurrent))
        orders.send((world.expected, world.channel.shown, world.channel.failed))

    asyncio.run(run())


def measured(one: Server, folder: Path, options: argparse.Namespace, *, model: str) -> dict[str, float]:
    """Returns turns a second of one process and of all, medians over rounds.

    Ends the program unless every message was answered once, by whichever process.
    """
    url, orders, processes = one.database("together"), [], []
    for number in range(options.replicas):
        here, there = multiprocessing.Pipe()
        setup = turn.Setup(
            folder=folder / str(number),
            database_url=url,
            model=model,
            mode="classic",
            concurrent=options.concurrent,
            shared=True,
        )
        process = multiprocessing.get_context("spawn").Process(
            target=_process, args=(there, setup, options.sessions, f"person of {number}")
        )
        process.start()
        there.close()
        orders.append(here)
        processes.append(process)
        here.recv()
    alone, together = [], []
    for _ in range(options.rounds):
        orders[0].send(options.turns)
        alone.append(options.turns / orders[0].recv())
        start = time.perf_counter()
        for each in orders:
            each.send(options.turns)
        for each in orders:
            each.recv()
        together.append(options.replicas * options.turns / (time.perf_counter() - start))
    for each in orders:
        each.send(0)
    counted = [each.recv() for each in orders]
    for process in processes:
        process.join()
    messages, answers, failures = (sum(each) for each in zip(*counted, strict=True))
    if answers != messages or failures:
        raise SystemExit(f"{answers} answers for {messages} messages, {failures} failures: the figures mean nothing")
    return {
        "one process": round(statistics.median(alone), 1),
        f"{options.replicas} processes": round(statistics.median(together), 1),
    }


# Service times ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Turns as they were logged, with their times scaled to processor time, in milliseconds.

    `processor_ms` and `server_ms` are the processor time of a turn in our process and in the server's.
    """

    turns: Sequence[Sequence[Logged]]
    processor_ms: float
    server_ms: float

    def figures(self) -> dict[str, float]:
        """Returns what a turn takes on average."""
        found = {"processor_ms": self.processor_ms, "server_ms": self.server_ms}
        found["statements"] = self._mean(lambda one: one.statements)
        for kind in ("exclusive", "keyed", "read"):
            of_kind = [[one for one in some if one.kind == kind] for some in self.turns]
            found[kind] = statistics.mean(len(some) for some in of_kind)
            found[f"{kind}_held_ms"] = statistics.mean(sum(_held(one) for one in some) for some in of_kind)
        found["commits_ms"] = self._mean(lambda one: one.commit_ms)
        return {name: round(value, 2) for name, value in found.items()}

    def _mean(self, of: Callable[[Logged], float]) -> float:
        return statistics.mean(sum(of(one) for one in some) for some in self.turns)


def _held(one: Logged) -> float:
    return one.client_ms + one.server_ms + one.commit_ms


async def logged(one: Server, setup: turn.Setup, *, sessions: int, turns: int) -> tuple[list[list[Logged]], float]:
    """Returns the transactions of each turn, and the milliseconds of a turn."""
    found, times = [], []
    async with turn.running(setup, sessions=sessions) as world:
        await world.one_by_one(20)
        for _ in range(turns):
            before = one.log.stat().st_size
            times += await world.one_by_one(1)
            found.append(server.transactions(one.log.read_bytes()[before:].decode()))
    return found, statistics.mean(times)


async def unlogged(one: Server, setup: turn.Setup, *, sessions: int, turns: int) -> tuple[float, float]:
    """Returns the processor time of a turn in our process and in the server's, in milliseconds."""
    async with turn.running(setup, sessions=sessions) as world:
        await world.one_by_one(20)
        round_ = await turn.rounded(world, turns=turns, concurrent=setup.concurrent, database=one)
    return round_.processor_ms, round_.server_processor_ms


def scaled(turns: Sequence[Sequence[Logged]], *, turn_ms: float, processor_ms: float, server_ms: float) -> Service:
    """Returns the turns with the processor time that they took, in place of the time that went by."""
    server_wall = statistics.mean(sum(one.server_ms for one in some) for some in turns)
    commits = statistics.mean(sum(one.commit_ms for one in some) for some in turns)
    of_server, of_client = server_ms / server_wall, processor_ms / (turn_ms - server_wall - commits)
    commit = statistics.median(one.commit_ms for some in turns for one in some if one.kind != "read")

    def one_scaled(one: Logged) -> Logged:
        on_server, by_client = one.server_ms * of_server, one.client_ms * of_client
        end = min(one.commit_ms, commit)
        return replace(one, server_ms=on_server, commit_ms=end, held_ms=on_server + by_client + end)

    return Service(
        turns=[[one_scaled(one) for one in some] for some in turns], processor_ms=processor_ms, server_ms=server_ms
    )


# Simulated --------------------------------------------------------------------------------------------------------

#: A course of events: it yields milliseconds to wait for, or what it wants to have.
Course: TypeAlias = Generator["float | Wanted", None, None]


class Resource:
    """So many equal places, or a lock that many share or one has; whoever asked first comes first."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.taken = 0
        self.queue: deque[tuple[int, Course]] = deque()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A course wants so many places of a resource."""

    resource: Resource
    places: int = 1


class Simulation:
    """Events in their order. `now` is in milliseconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Course]] = []
        self._n = 0

    def begin(self, course: Course, *, after: float = 0.0) -> None:
        self._n += 1
        heapq.heappush(self._events, (self.now + after, self._n, course))

    def free(self, wanted: Wanted) -> None:
        """Gives places back, and lets those go on that wait for them."""
        resource = wanted.resource
        resource.taken -= wanted.places
        while resource.queue and resource.taken + resource.queue[0][0] <= resource.places:
            places, course = resource.queue.popleft()
            resource.taken += places
            self.begin(course)

    def run(self, *, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, course = heapq.heappop(self._events)
            said = next(course, None)
            if isinstance(said, Wanted):
                resource = said.resource
                if not resource.queue and resource.taken + said.places <= resource.places:
                    resource.taken += said.places
                    self.begin(course)
                else:
                    resource.queue.append((said.places, course))
            elif said is not None:
                self.begin(course, after=said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The parts that one process has for itself."""

    core: Resource
    writer: Resource
    readers: Resource


class Replay:
    """Processes on machines of their own that answer recorded turns from one store."""

    def __init__(self, service: Service, *, server_cores: int, network_ms: float) -> None:
        self._service = service
        self._network_ms = network_ms
        self._server = Resource(server_cores)
        self._everybody = 10**6
        self._store = Resource(self._everybody)
        keys = Counter(key for some in service.turns for key in {key for one in some for key in one.keys})
        self._common = {key: Resource(1) for key, n in keys.items() if n > _COMMON * len(service.turns)}
        self._simulation = Simulation()
        self._chance = random.Random(1)
        self.answered = 0

    def turns_per_second(self, replicas: int) -> float:
        for _ in range(replicas):
            machine = Machine(core=Resource(1), writer=Resource(1), readers=Resource(2))
            for _ in range(_CONCURRENT):
                self._simulation.begin(self._talk(machine))
        self._simulation.run(until=1_000 * _SECONDS)
        return self.answered / _SECONDS

    def _talk(self, machine: Machine) -> Course:
        while True:
            some = self._chance.choice(self._service.turns)
            # The work of our process outside of transactions is spread between them.
            rest = max(self._service.processor_ms - sum(one.client_ms for one in some), 0.0) / (len(some) + 1)
            for one in some:
                yield from self._spend(machine.core, rest)
                connection = Wanted(machine.readers if one.kind == "read" else machine.writer)
                yield connection
                yield from self._transaction(machine, one)
                self._simulation.free(connection)
            yield from self._spend(machine.core, rest)
            self.answered += 1

    def _transaction(self, machine: Machine, one: Logged) -> Course:
        locks = {
            "exclusive": [Wanted(self._store, self._everybody)],
            "keyed": [Wanted(self._store), *(Wanted(self._common[key]) for key in one.keys if key in self._common)],
        }.get(one.kind, [])
        for lock in locks:
            yield lock
        steps = max(one.statements, 1)
        for _ in range(steps):
            yield from self._spend(machine.core, one.client_ms / steps)
            yield self._network_ms
            yield from self._spend(self._server, one.server_ms / steps)
        yield one.commit_ms
        for lock in locks:
            self._simulation.free(lock)

    def _spend(self, resource: Resource, milliseconds: float) -> Course:
        yield (wanted := Wanted(resource))
        yield milliseconds
        self._simulation.free(wanted)


def simulated(service: Service, *, server_cores: int, network_ms: float) -> dict[str, float]:
    """Returns turns a second by the number of processes."""
    return {
        f"{n} of {_CONCURRENT} at once": round(
            Replay(service, server_cores=server_cores, network_ms=network_ms).turns_per_second(n), 1
        )
        for n in REPLICAS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=4, help="processes that are measured; 0 only simulates")
    parser.add_argument("--sessions", type=int, default=50, help="of each process")
    parser.add_argument("--turns", type=int, default=200, help="of each process in a round, and logged")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrent", type=int, default=16)
    parser.add_argument("--server-cores", type=int, default=8)
    parser.add_argument("--network-ms", type=float, default=0.1, help="on the way of each statement, there and back")
    parser.add_argument("--model", action="store_true", help="a language model on loopback answers")
    options = parser.parse_args()
    telemetry.configure(level="error", format="console", file=None, redact=str)
    found: dict[str, Mapping[str, Any]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = stack.enter_context(model_server()) if options.model else ""
        # The settings are the server's own, so a commit is on the disk before it is answered.
        with postgres.running({}) as one:
            if options.replicas:
                found["measured, turns a second"] = measured(one, folder, options, model=model)
            setup = turn.Setup(folder=folder / "alone", database_url=one.database("alone"), model=model, mode="classic")
            own, servers = asyncio.run(unlogged(one, setup, sessions=options.sessions, turns=options.turns))
        with postgres.running(server.LOGGED) as one:
            setup = turn.Setup(
                folder=folder / "logged", database_url=one.database("logged"), model=model, mode="classic"
            )
            turns, turn_ms = asyncio.run(logged(one, setup, sessions=options.sessions, turns=options.turns))
    service = scaled(turns, turn_ms=turn_ms, processor_ms=own, server_ms=servers)
    found["a turn"] = service.figures()
    simulation = simulated(service, server_cores=options.server_cores, network_ms=options.network_ms)
    found["simulated, turns a second"] = simulation
    for name, values in found.items():
        print(name)
        for figure, value in values.items():
            print(f"{figure:>20} {value:g}")
    one_alone = next(iter(simulation.values()))
    print(json.dumps({"to one": [round(value / one_alone, 2) for value in simulation.values()]}))


if __name__ == "__main__":
    main()
