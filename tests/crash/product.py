"""Starts the bot as `remora serve` runs it, over and over: each life is a process of its own, to be killed.

    python -m tests.crash.product CONFIG     lines in, lines out:
    start                                    the process id of a new life
    start before|after HOLDING               the same, on a SQLite that ends the process with SIGKILL before or after
                                             the first commit of a transaction with a statement that holds HOLDING
    serve                                    the process id of a new life of the whole program
    wait                                     the exit status of the last life, when it has ended

Invariants: what is imported is shared, by fork, and nothing else: reading the platforms' models takes longer than all
the rest of a start; the last life ends with this process's input.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import channels.discord
import channels.telegram  # noqa: F401 - both before the forks
from channels.supervision import supervise
from gateway import app, bots
from gateway.__main__ import main as remora
from gateway.config.loading import Config, load
from gateway.ops import telemetry
from memory.store.sqlite.driver import Driver
from memory.text.secrets.redact import redact
from tests.kit.faults import Faults
from tests.kit.paced import kept


def main(config_path: Path) -> None:
    pid = 0
    for line in sys.stdin:
        command, _, point = line.strip().partition(" ")
        if command == "wait":
            answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            pid = 0
        else:
            pid = os.fork()
            if pid == 0:
                _live(config_path, point) if command == "start" else _program(config_path)
            answer = pid
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _program(config_path: Path) -> None:
    _leave_the_lines()
    code = 1
    try:
        remora(["serve", "--config", str(config_path)], obj=kept(config_path.parent))
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - told, and the life ends
        traceback.print_exc()
    finally:
        os._exit(code)


def _leave_the_lines() -> None:
    """Standard input and output belong to the process that starts lives."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)


def _live(config_path: Path, point: str) -> None:
    _leave_the_lines()
    config = load(config_path, os.environ, Path.home(), pace=kept(config_path.parent))
    log = config.settings.log
    telemetry.configure(level=log.level, format=log.format, file=config.log_file, redact=redact)
    telemetry.log_crashes()
    try:
        asyncio.run(_serve(config, _driver(point)))
    finally:
        os._exit(1)


def _driver(point: str) -> Driver | None:
    when, _, holding = point.partition(" ")
    if when == "before":
        return Faults(kill_before_commit=1, holding=holding).driver
    if when == "after":
        return Faults(kill_after_commit=1, holding=holding).driver
    return None


def _tell() -> None:
    for task in asyncio.all_tasks():
        task.print_stack(limit=6)


async def _serve(config: Config, driver: Driver | None) -> None:
    """Does what `gateway.serve` does, without its health page. On SIGUSR2 it says on stderr what it waits for."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, _tell)
    serving = bots.channels(config, now=app.now)
    async with app.running(config, serving, driver=driver) as router, asyncio.TaskGroup() as group:
        for channel in serving.values():
            group.create_task(supervise(channel, router))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
