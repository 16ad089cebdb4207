"""The bot of a soak, in a process of its own: the real parts, with a clock that can be moved and a disk that can fill.

It is apart from those who talk with it, so that what it holds is its own. `begun` starts it and gives a `Bot`, by which
the soak moves its clock, fills its disk and asks what it holds.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import resource
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from bench.load import resident_mb
from gateway import bots
from gateway.config import loading
from gateway.config.settings import WorkPace
from gateway.ops import telemetry
from gateway.serve import serve

#: Seconds that the bot has to begin, and to end.
_PATIENCE = 60.0


class MovedTime:
    """A wall clock that can be put on and back, and waits that end with it."""

    def __init__(self) -> None:
        self._wall = self._passed = 0.0
        self._moved = asyncio.Event()

    def now(self) -> int:
        return int((time.time() + self._wall) * 1000)

    def monotonic(self) -> float:
        return time.monotonic() + self._passed

    def move(self, seconds: float) -> None:
        self._wall += seconds
        self._passed += max(0.0, seconds)
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        while (left := until - self.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._moved.wait(), left)
            except TimeoutError:
                return
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Held:
    """The resources that the process holds.

    `blocks` are those of Python's own memory: unlike the rest, they tell a leak at once.
    """

    resident_mb: float
    blocks: int
    files: int
    sockets: int
    tasks: int
    threads: int


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot that runs in a process of its own."""

    process: SpawnProcess
    wire: Connection

    async def move(self, seconds: float) -> None:
        await self._ask("move", seconds)

    async def full(self, full: bool) -> None:
        """Lets the bot write nothing beyond the first page of a file, or all again."""
        await self._ask("full", full)

    async def held(self) -> Held:
        found: Held = await self._ask("held")
        return found

    async def end(self) -> int:
        """Ends the bot as a signal would; returns how many threads were left."""
        left: int = await self._ask("stop")
        await asyncio.to_thread(self.process.join, _PATIENCE)
        return left

    async def _ask(self, name: str, *values: object) -> Any:
        return await asyncio.to_thread(self._asked, name, values)

    def _asked(self, name: str, values: tuple[object, ...]) -> Any:
        self.wire.send((name, values))
        if not self.wire.poll(_PATIENCE):
            raise TimeoutError(f"the bot did not answer to {name!r} within {_PATIENCE:g} s")
        return self.wire.recv()


@asynccontextmanager
async def begun(folder: Path) -> AsyncIterator[Bot]:
    """Runs the bot whose configuration is in `folder`. Its end raises `EOFError` at whoever asks it something."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_run, args=(folder, there), daemon=True)
    process.start()
    there.close()
    try:
        yield Bot(process, here)
    finally:
        process.kill()
        process.join()
        here.close()


def _run(folder: Path, wire: Connection) -> None:
    telemetry.configure(level="error", format="json", file=None, redact=str)
    code = asyncio.run(_serve(folder, wire))
    if code == 0:
        wire.send(threading.active_count() - 1)
    sys.exit(code)


async def _serve(folder: Path, wire: Connection) -> int:
    clock, stop, loop = MovedTime(), asyncio.Event(), asyncio.get_running_loop()
    config = loading.load(folder / "config.yaml", {}, folder, pace=WorkPace(quiet_seconds=1, exit_seconds=5))
    deeds: Mapping[str, Callable[..., object]] = {"move": clock.move, "full": _fill, "held": _held, "stop": stop.set}

    def told() -> None:
        try:
            name, values = wire.recv()
        except EOFError:
            stop.set()
            return
        done = deeds[name](*values)
        if name == "stop":
            loop.remove_reader(wire.fileno())
        else:
            wire.send(done)

    loop.add_reader(wire.fileno(), told)
    return await serve(
        config, bots.channels(config, now=clock.now), stop=stop, say=lambda _: None,
        now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep,
    )  # fmt: skip


def _fill(full: bool) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096 if full else hard, hard))


def _held() -> Held:
    gc.collect()
    open_now = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    sockets = sum(name.startswith("socket:") for name in open_now)
    return Held(
        resident_mb=resident_mb(),
        blocks=sys.getallocatedblocks(),
        files=len(open_now) - sockets,
        sockets=sockets,
        tasks=len(asyncio.all_tasks()),
        threads=threading.active_count(),
    )
