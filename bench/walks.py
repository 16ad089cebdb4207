"""Counts the files and functions that a message, a command or a night job passes through.

    python -m bench.walks [--files]

Each walk is made once to warm up and then followed in every thread, from the message's arrival until all that it sets
off has come to rest. Counted are our own files and functions that were entered, in the order of their first call;
`--files` lists the files.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

import structlog

from tests.kit.bench import Desk, Phone
from tests.kit.fakes import Clock, ScriptedModel

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(f"{ROOT / name}/" for name in ("gateway", "channels", "memory", "agents", "languages"))


class Tracer:
    """Notes every function of ours that is entered while it is on."""

    def __init__(self) -> None:
        self.entered: dict[tuple[str, str], None] = {}
        self.on = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self.on and event == "call" and code.co_filename.startswith(PACKAGES) and not code.co_name.startswith("<"):
            self.entered[code.co_filename.removeprefix(f"{ROOT}/"), f"{code.co_name}:{code.co_firstlineno}"] = None

    async def follow(self, walk: Callable[[], Awaitable[object]]) -> tuple[list[str], int]:
        self.entered.clear()
        self.on = True
        await walk()
        await asyncio.sleep(0.3)
        self.on = False
        return list(dict.fromkeys(file for file, _ in self.entered)), len(self.entered)


async def walks(tracer: Tracer, folder: Path) -> dict[str, tuple[list[str], int]]:
    desk = Desk(folder, ScriptedModel(), Phone(), Clock())
    async with desk.running():
        for text in ("good morning", "/remember I like jazz", "/forget jazz", "yes"):
            await desk.say(text)

        async def forget() -> None:
            await desk.say("/forget Porto")
            await desk.say("yes")

        async def night() -> None:
            memory = desk.memories["remora.db"]
            await memory.jobs.run("assistant", "merge", "2026-11-22")

        return {
            "message": await tracer.follow(lambda: desk.say("I like tea")),
            "/remember": await tracer.follow(lambda: desk.say("/remember I live in Porto")),
            "/forget": await tracer.follow(forget),
            "night job": await tracer.follow(night),
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.walks", description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files of each walk, in order")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    tracer = Tracer()
    sys.setprofile(tracer)
    threading.setprofile(tracer)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(walks(tracer, Path(folder)))
    sys.setprofile(None)
    for name, (files, functions) in found.items():
        print(f"{name:10} {len(files):3} files {functions:4} functions")
        if asked.files:
            print("".join(f"    {file}\n" for file in files), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
