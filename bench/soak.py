"""Days in minutes: `remora serve` over a platform whose time is moved, while everything around it fails now and then.

Run `python -m bench.soak [--hours 72] [--chats 50] [--minutes 30] [--seconds 3600]`. The bot is a process of its own
(`soaked`), Telegram and the model are another, and the clock is moved on by so many `minutes` after each round, in
which everybody says one thing. In turn the model fails or hangs, the
network is cut before and after a message arrives, nothing can be written (every write beyond a file's first page is
refused), and the clock is put back. Prints JSON; exit code 1 when a gate is missed. Every message must be answered, or
its person told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.soaked import Bot, Held, begun
from gateway.ops import health
from tests.platforms.telegram import Control, running

TOKEN: Final = "123456789:" + "Aa0_-" * 7
#: Seconds in which an answer, or a word that there is none, must come.
PATIENCE: Final = 90.0
#: Seconds for which an answer may still follow another message.
_AFTER: Final = 4.0
_SAYINGS: Final = (
    "I like tea number {n}", "what do I like?", "/memory", "I live in Lisbon", "/remember that box {n} is blue",
    "where is box {n}?", "tell me something", "/status", "my sister is called Ana", "/profile",
)  # fmt: skip
#: The faults, one after the other, each for one round; between two of them a round is quiet.
TROUBLES: Final = ("model fails", "model hangs", "cut before", "cut after", "polls cut", "disk full", "clock back")
#: Tasks, threads and open files that may come and go.
_SWING: Final = 3
#: The most connections: to Telegram and the model, which keep some open for those who talk at once.
SOCKETS: Final = 60
#: The most by which memory may grow over 10,000 turns, in MB.
SLOPE_MB: Final = 1.0


@dataclass(slots=True)
class Course:
    """The course of a soak: what became of the messages, and what the bot held after each round."""

    fates: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    log_mb: float = 0.0
    threads_left: int = 0
    hours: float = 0.0
    status: str = ""


def configure(folder: Path, telegram: Control, chats: int, port: int) -> None:
    """Writes a configuration with defaults as far as the soak can bear them."""
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(
        "name: assistant\ntimezone: UTC\nmodels: [{provider: openai, model: test, timeout: 3, "
        f"base_url: '{telegram.model_url}'}}]\n"
    )
    (folder / "config.yaml").write_text(
        f"data_dir: data\nembedding: {{provider: none}}\nhttp: {{port: {port}}}\nbackup: {{keep_days: 2}}\n"
        "limits: {burst_seconds: 0, person_messages_per_minute: 10000}\n"
        f"channels: {{telegram: [{{token: '{TOKEN}', base_url: '{telegram.url}', "
        f"allow: {[1_000 + n for n in range(chats)]}, admins: [1000]}}]}}\n"
    )


async def soak(
    folder: Path, *, hours: float, chats: int, minutes: float, most: float, troubles: Sequence[str]
) -> Course:
    """Runs the bot for so many hours of its own time, and `most` seconds of ours, but until each trouble has been."""
    course, began = Course(), time.monotonic()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with running("--model-ms", "20", token=TOKEN) as telegram:
        configure(folder, telegram, chats, port)
        async with begun(folder) as bot:
            for n in range(max(2 * len(troubles), round(hours * 60 / minutes))):
                trouble = troubles[n // 2 % len(troubles)] if n % 2 else ""
                await _round(course, telegram, bot, n, chats, trouble)
                step = minutes * 60 if trouble != "clock back" else -2 * 3600
                await bot.move(step)
                await telegram.pass_time(minutes * 60)
                await _rest(course, telegram, folder, bot)
                course.hours = (n + 1) * minutes / 60
                if time.monotonic() - began > most and n + 1 >= 2 * len(troubles):
                    break
            await telegram.heal()
            # A message ends the poll that is under way, and with it the hours without contact.
            await telegram.say("/status", user=1_000)
            course.status = await _status(port)
            course.threads_left = await bot.end()
    return course


async def _round(course: Course, telegram: Control, bot: Bot, n: int, chats: int, trouble: str) -> None:
    """Everybody says one thing, while one thing goes wrong."""
    match trouble:
        case "model fails":
            await telegram.fault("status", method="model", times=chats, status=503, body="{}")
        case "model hangs":
            await telegram.fault("hang", method="model", times=1)
        case "cut before":
            await telegram.fault("reset", method="sendMessage", times=3)
        case "cut after":
            await telegram.fault("reset", at="after effect", method="sendMessage", times=2)
        case "polls cut":
            await telegram.fault("reset", method="getUpdates", times=2)
    await bot.full(trouble == "disk full")
    asking = [asyncio.create_task(_ask(course, telegram, n, 1_000 + chat)) for chat in range(chats)]
    if trouble == "disk full":
        await asyncio.sleep(1.5)
        await bot.full(False)
    await asyncio.gather(*asking)
    await telegram.heal()


async def _ask(course: Course, telegram: Control, n: int, user: int) -> None:
    """Says one thing and waits for what comes of it. What holds the message's mark is its answer."""
    before, mark = len(await telegram.texts(user)), f"t{n}x{user}"
    saying = _SAYINGS[(n + user) % len(_SAYINGS)].format(n=n)
    command = saying.startswith("/")
    await telegram.say(saying if command else f"{saying} {mark}", user=user)
    began, told = time.monotonic(), 0.0
    while time.monotonic() - began < PATIENCE:
        new = await telegram.texts(user, since=before)
        if any(command or mark in text for text in new):
            course.fates["command" if command else "answered"] += 1
            return
        told = told or (time.monotonic() if new else 0.0)
        if told and time.monotonic() - told > _AFTER:
            course.fates["told"] += 1
            return
        await asyncio.sleep(0.2)
    course.lost.append(f"{mark}: {saying}")


async def _rest(course: Course, telegram: Control, folder: Path, bot: Bot) -> None:
    """Notes what the bot holds when all is quiet, also what learns from the messages."""
    with suppress(TimeoutError):
        await telegram.wait(idle=1.5, timeout=20)
    course.held.append(await bot.held())
    log = folder / "data" / "remora.db-wal"
    course.log_mb = max(course.log_mb, log.stat().st_size / 1e6 if log.exists() else 0.0)


async def _status(port: int) -> str:
    """Returns what the health page says, once it has had the time of a poll to be green again."""
    said = ""
    for _ in range(40):
        page = await asyncio.to_thread(health.ask, "127.0.0.1", port)
        said = "no answer" if page is None else f"{page['status']} {'; '.join(page['reasons'])}".strip()
        if said == "green":
            break
        await asyncio.sleep(1)
    return said


def figures(course: Course, folder: Path, *, seconds: float) -> Mapping[str, object]:
    """Returns the figures of a soak. `folder` is the bot's, which has ended."""
    turns, held = sum(course.fates.values()), course.held
    resident = [one.resident_mb for one in held]
    tenths = [max(0, len(held) * n // 10 - 1) for n in range(1, 11)]
    # The first half warms up.
    half = resident[len(held) // 2 :]
    rounds = [turns * n / len(held) / 10_000 for n in range(len(half))]
    early, last = held[: len(held) // 2], held[-1]
    data = [path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file()]
    return {
        "hours": course.hours,
        "seconds": round(seconds),
        "messages": turns + len(course.lost),
        **{name: course.fates[name] for name in ("answered", "command", "told")},
        "lost": course.lost,
        "health": course.status,
        "resident_mb_by_tenths": [round(resident[nth], 1) for nth in tenths],
        "blocks_by_tenths": [held[nth].blocks for nth in tenths],
        "mb_per_10000_turns": round(statistics.linear_regression(rounds, half).slope, 2),
        "files_before": max(one.files for one in early),
        "files_after": last.files,
        "sockets": max(one.sockets for one in held),
        "tasks_before": max(one.tasks for one in early),
        "tasks_after": last.tasks,
        "threads_before": max(one.threads for one in early),
        "threads_after": last.threads,
        "threads_left": course.threads_left,
        "log_mb": round(course.log_mb, 1),
        "data_files": len(data),
        "data_mb": round(sum(data) / 1e6, 1),
    }


def missed(found: Mapping[str, object], *, short: bool = False) -> list[str]:
    """Returns the gates that figures miss. The slope is no gate of a `short` soak: it ends before memory is level."""
    wrong = [f"lost: {found['lost']}"] if found["lost"] else []
    if found["health"] != "green":
        wrong.append(f"health at the end: {found['health']}")
    if not short and float(str(found["mb_per_10000_turns"])) >= SLOPE_MB:
        wrong.append(f"memory grows by {found['mb_per_10000_turns']} MB in 10,000 turns")
    wrong += [
        f"more {name} than before"
        for name in ("files", "tasks", "threads")
        if int(str(found[f"{name}_after"])) > int(str(found[f"{name}_before"])) + _SWING
    ]
    if int(str(found["sockets"])) > SOCKETS:
        wrong.append(f"{found['sockets']} connections")
    if found["threads_left"]:
        wrong.append(f"threads left at the end: {found['threads_left']}")
    return wrong


def run(
    *, hours: float, chats: int, minutes: float, most: float = 3_600.0, troubles: Sequence[str] = TROUBLES
) -> Mapping[str, object]:
    """Runs a soak and returns its figures."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        course = asyncio.run(
            soak(Path(folder), hours=hours, chats=chats, minutes=minutes, most=most, troubles=troubles)
        )
        return figures(course, Path(folder), seconds=time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=72.0, help="hours of the bot's time")
    parser.add_argument("--chats", type=int, default=50, help="people who say something in each round")
    parser.add_argument("--minutes", type=float, default=30.0, help="minutes by which the clock moves after a round")
    parser.add_argument("--seconds", type=float, default=3_600.0, help="seconds after which it ends early")
    wanted = parser.parse_args()
    os.environ["NO_PROXY"] = "*"
    found = run(hours=wanted.hours, chats=wanted.chats, minutes=wanted.minutes, most=wanted.seconds)
    wrong = missed(found)
    print(json.dumps({**found, "missed": wrong}, indent=1))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
