"""Works off one night over and over: each life is a process of its own, to be killed.

    python -m tests.crash.night       lines in, lines out:
    start LIFE PERIOD COMMIT PATH     pid N; then "opened LIFE" once the store is open, "over LIFE" when all is done; it
                                      dies after that commit of its own, of a negative one before, of 0 not at all
    wait                              ended STATUS, when the last life has

Invariants: what is imported is shared, by fork, and nothing else; what the model answers follows from the question
alone, so that a night ends the same however often it was broken off; the last life ends with this process's input.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory.jobs import compress, decay, enrich, merge, reflect, style  # noqa: F401 - all before the forks
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel, ModelAnswer, ModelRequest
from memory.service import Service
from memory.store.sqlite.driver import Driver
from memory.store.usage import Spent
from tests.kit.fakes import DAY, NOON, Clock, runtime
from tests.kit.faults import Faults
from tests.kit.patience import SECONDS

JOBS = ("compress", "merge")
#: Seconds that an answer takes.
_THINKS = 0.004
#: Facts that the model puts into one.
TOGETHER = 4


def main() -> None:
    pid = 0
    for line in sys.stdin:
        command, *rest = line.split(maxsplit=4)
        if command == "wait":
            answer = f"ended {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}"
            pid = 0
        else:
            pid = os.fork()
            if pid == 0:
                _live(int(rest[0]), rest[1], int(rest[2]), Path(rest[3].strip()))
            answer = f"pid {pid}"
        _tell(answer)
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def open_store(path: Path, *, life: int, driver: Driver | None = None) -> Service:
    return await Service.open(
        path,
        agents={"assistant": AgentMemory(model=BackgroundModel(complete=answer))},
        triggers=Triggers(quiet_seconds=3_600),
        runtime=runtime(Clock(NOON + DAY + 1_000 * life), lambda: secrets.token_hex(3)),
        driver=driver,
    )


async def work(service: Service, period: str) -> None:
    for job in JOBS:
        await service.jobs.run("assistant", job, period)


async def answer(request: ModelRequest) -> ModelAnswer:
    """Answers with a fact for each pair of events that tells of one, or with one fact for every four shown together."""
    await asyncio.sleep(_THINKS)
    before, asked, events = request.material.partition("\nEVENTS:")
    rows = [json.loads(line) for line in (events if asked else before).splitlines() if line.startswith("{")]
    said = _told(rows) if asked else _merged([row for row in rows if "id" in row])
    spent = Spent(model="scripted", input_tokens=10, output_tokens=1, cached_tokens=0, estimated=False)
    return ModelAnswer(text=json.dumps(said), spent=spent)


def fact_of(event: str) -> str | None:
    """Returns the lasting fact that an event tells: "tuned the W X early" and "... late" tell that they have W X."""
    words = event.split()
    return f"{words[2]} {words[3]}" if words[0] == "tuned" else None


def topic_of(value: str) -> str:
    return f"band-{ord(value[0]) % 3}"


def _told(rows: list[dict[str, Any]]) -> dict[str, Any]:
    numbers: dict[str, list[int]] = {}
    for row in rows:
        if (value := fact_of(row["text"])) is not None:
            numbers.setdefault(value, []).append(row["n"])
    about = "self" if all("by" in row for row in rows) else "group"
    return {
        "facts": [
            {
                "about": about, "category": "preference", "key": "hobby", "topic": topic_of(value), "value": value,
                "events": of,
            }
            for value, of in numbers.items()
        ]
    }  # fmt: skip


def _merged(rows: list[dict[str, Any]]) -> dict[str, Any]:
    rows = sorted(rows, key=lambda row: row["value"])
    parts = [rows[start : start + TOGETHER] for start in range(0, len(rows) - TOGETHER + 1, TOGETHER)]
    return {
        "merged": [
            {
                "ids": [row["id"] for row in part],
                "key": part[0]["key"],
                "value": ", ".join(row["value"] for row in part),
            }
            for part in parts
        ]
    }


def _live(life: int, period: str, commit: int, path: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    status = 1
    faults = Faults(
        kill_before_commit=-commit if commit < 0 else None, kill_after_commit=commit if commit > 0 else None
    )

    async def living() -> None:
        service = await open_store(path, life=life, driver=faults.driver)
        _tell(f"opened {life}")
        await work(service, period)
        await service.close(seconds=SECONDS)

    try:
        asyncio.run(living())
        status = 0
    finally:
        _tell(f"over {life}")
        os._exit(status)


def _tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
