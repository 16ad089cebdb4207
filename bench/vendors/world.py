"""The bot, the people who talk with it, and what is made of what they read.

Invariants: the bot is `remora serve` of this checkout. What `remora init` wrote for a server is the entry of its model
in each agent's file; only the path of its address, and what a case sets, differ. Nothing is read of the bot but answers
and its log.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from agents.spec import USUAL_TOOLS
from bench.vendors.play import KEY, Case, Run, Turn, serving, tries
from bench.vendors.rules import Seat
from bench.vendors.table import VENDORS
from gateway.config.settings import WorkPace
from tests.kit.paced import keep
from tests.kit.program import ran
from tests.kit.served import environment, spawned

_FRONT_KEY: Final = "a-shared-key-of-the-hall-0123"
#: Seconds until an answer counts as none, and until something has been learned.
_PATIENCE, _LEARNING = 75.0, 25.0
#: People who talk at the same time.
_AT_ONCE: Final = 20
#: A picture of one dot.
_PICTURE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Er"
    "kJggg=="
)
#: What no person should read.
_RAW: Final = re.compile(r'\{"|Traceback|<think|</think|<\|channel|DSML|<tool_call|\[TOOL_CALLS\]|req_[0-9a-f]{6}')


class Bot:
    """The bot in `folder`, and the log that its operator reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=_PATIENCE,
            limits=httpx.Limits(max_connections=100), headers={"Authorization": f"Bearer {_FRONT_KEY}"},
        )  # fmt: skip

    def write(self, runs: Sequence[Run], entries: Mapping[str, Mapping[str, Any]]) -> None:
        front = {"name": "hall", "key": _FRONT_KEY, "shared": True}
        config = {
            "data_dir": "data", "http": {"port": self.port}, "default_agent": runs[0].agent,
            "log": {"format": "json", "file": "remora.log"},
            "api": {"enabled": True, "requests_per_minute": 100_000, "concurrent": 100, "front_ends": [front]},
        }  # fmt: skip
        (self.folder / "agents").mkdir(parents=True)
        keep(WorkPace(exit_seconds=1), self.folder)
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
        keys = {vendor.key: KEY for vendor in VENDORS.values() if vendor.key} | {"WRONG_KEY": "sk-wrong"}
        (self.folder / ".env").write_text("".join(f"{name}={key}\n" for name, key in keys.items()), "utf-8")
        for run in runs:
            models = []
            for name in run.seats:
                entry = {**entries[name], "base_url": run.urls[name], **run.case.options, "model": run.model(name)}
                entry |= {} if run.case.right_key else {"key": "${WRONG_KEY}"}
                models.append({option: value for option, value in entry.items() if value is not None})
            text = yaml.safe_dump({"name": run.agent, "models": models, "tools": [*USUAL_TOOLS, "memory_stats"]})
            (self.folder / "agents" / f"{run.agent}.yaml").write_text(text, "utf-8")

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Starts the bot, and goes on once it takes messages. Raises `TimeoutError`."""
        async with spawned(self.folder, may_stand=True) as process:
            async with asyncio.timeout(120):
                while not await self._is_ready():
                    if process.returncode is not None:
                        raise TimeoutError(f"the bot has ended: {self.text('printed')[-900:]}")
                    await asyncio.sleep(0.1)
            yield

    async def _is_ready(self) -> bool:
        with suppress(httpx.HTTPError):
            return (await self.client.get("/readyz")).status_code == 200
        return False

    def text(self, name: str = "remora.log") -> str:
        file = self.folder / name
        return file.read_text("utf-8", "replace") if file.exists() else ""

    def log(self, run: Run, start: int) -> str:
        """Returns the lines of the log behind `start` that are about a case.

        They name its agent, or one of its models and no session.
        """
        models = [run.model(name) for name in run.seats]

        def is_about(line: str) -> bool:
            return run.agent in line or ('"session"' not in line and any(model in line for model in models))

        return "\n".join(filter(is_about, self.text()[start:].splitlines()))

    async def say(self, run: Run, text: str, *, picture: bool = False) -> str:
        """Says something as the person of this case; returns the answer."""
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": _PICTURE}}]
        messages = [{"role": "user", "content": parts if picture else text}]
        answer = await self.client.post(
            "/v1/chat/completions", json={"model": run.agent, "user": f"p-{run.agent}", "messages": messages},
            headers={"X-LibreChat-User-Id": f"p-{run.agent}", "X-LibreChat-Conversation-Id": f"c-{run.agent}"},
        )  # fmt: skip
        if answer.status_code != 200:
            return f"HTTP {answer.status_code} {answer.text[:300]}"
        return str(answer.json()["choices"][0]["message"]["content"] or "")


async def play(bot: Bot, run: Run, turns: Sequence[Turn]) -> None:
    """Plays these turns until one goes wrong, and notes why."""
    began = time.monotonic()
    for turn in turns:
        number = run.case.turns.index(turn) + 1
        try:
            why = await _played(bot, run, turn, number)
        except httpx.HTTPError as error:
            is_late = isinstance(error, httpx.TimeoutException)
            why = f"no answer within {_PATIENCE:.0f} s" if is_late else f"no answer: {type(error).__name__}"
        if why:
            run.why = f"turn {number} of {len(run.case.turns)}: {why}"
            break
    run.turn = None
    run.seconds += time.monotonic() - began


async def _played(bot: Bot, run: Run, turn: Turn, number: int) -> str:
    if turn.chooses:
        await bot.say(run, f"/model {run.model(turn.chooses)}")
    if "bicycle" in turn.say:
        await bot.say(run, f"/remember my bicycle is called {run.planted}")
    run.begin(turn, number)
    start = len(bot.text())
    run.text = await bot.say(run, f"{turn.say} {run.mark}", picture=turn.picture)
    wrong = judged(run, turn, run.text, bot.log(run, start), bot.log(run, 0))
    if not wrong and turn.usage:
        wrong = await _used(bot, run)
    return await _learned(bot, run, turn.learns) if not wrong and turn.learns else wrong


def judged(run: Run, turn: Turn, text: str, log: str, logged: str) -> str:
    """Returns what is wrong with what a person reads after a turn, or ""."""
    answered, count = run.secret in text, len(run.requests)
    gap = run.came[1] - run.came[0] if len(run.came) > 1 else 0.0
    last = f"; last refusal: {run.refusals[-1]}" if run.refusals else f"; {run.notes[-1]}" if run.notes else ""
    checks = (
        (turn.want == "answer" and not answered, f"the answer did not come{last}"),
        (turn.want == "told" and answered, "an answer came out of a failure"),
        (turn.by not in {"", run.by}, f"{run.by} answered, not {turn.by}{last}"),
        (text.count(run.secret) > 1, "the answer came more than once"),
        (run.muse in text, "thoughts were shown"),
        (_RAW.search(text) is not None, "raw text was shown"),
        (not text.strip(), "nothing was told"),
        (turn.lacks != "" and re.search(turn.lacks, text) is not None, f"the text has {turn.lacks!r}"),
        (re.search(turn.has, text) is None, f"the text lacks {turn.has!r}"),
        (not answered and re.search(turn.cause, log) is None, f"the log does not name {turn.cause!r}"),
        (re.search(turn.logs, logged) is None, f"the log does not name {turn.logs!r}"),
        (count > turn.most, f"{count} requests, {turn.most} at most"),
        (count > 1 and gap < turn.waits, f"asked again after {gap:.2f} s, not {turn.waits} s"),
    )  # fmt: skip
    return next((why for is_wrong, why in checks if is_wrong), "")


async def _used(bot: Bot, run: Run) -> str:
    counts = re.search(r"answers, .*?([\d,.]+) tokens in, ([\d,.]+) out", await bot.say(run, "/usage"))
    counted = tuple(int(re.sub(r"\D", "", each)) for each in counts.groups()) if counts else None
    sent = (run.read, run.written)
    return "" if counted == sent else f"/usage counts {counted}, the server {sent}"


async def _learned(bot: Bot, run: Run, wanted: str) -> str:
    end = time.monotonic() + _LEARNING
    while time.monotonic() < end:
        if wanted in await bot.say(run, "/memory"):
            return ""
        await asyncio.sleep(1)
    return f"{wanted!r} was not learned; {run.refusals[-1:]}"


# remora init ----------------------------------------------------------------------------------------------------------


async def initialise(folder: Path, run: Run) -> dict[str, Any]:
    ((name, url),) = run.urls.items()
    vendor, began, (wanted,) = VENDORS[name], time.monotonic(), run.case.turns
    run.begin(wanted, 1)
    run.mark = ""
    env = environment(folder) | ({vendor.key: KEY if run.case.right_key else "sk-wrong"} if vendor.key else {})
    key = ["--key-env", vendor.key] if vendor.key else []
    given = ["init", str(folder), "--model", vendor.model, "--base-url", url, *key, "--yes"]
    process = await asyncio.to_thread(ran, *given, folder=folder, env=env)
    out, failed = (process.stdout + process.stderr).decode(), process.returncode != 0
    run.text, run.seconds = out[-400:], time.monotonic() - began
    if wanted.want != "answer":
        if not failed and wanted.want == "told":
            run.why = "init took a model that does not answer"
        elif re.search(wanted.has, out) is None:
            run.why = f"init does not name {wanted.has!r}"
        return {}
    file = folder / "agents" / "assistant.yaml"
    if failed or not file.exists():
        run.why = f"init ended with {process.returncode}"
        # What it writes for another server of that name, so that the other cases can still be played.
        entry = {"key": f"${{{vendor.key}}}"} if vendor.key else {}
        return {"provider": vendor.provider, "model": vendor.model, **entry}
    return {**yaml.safe_load(file.read_text("utf-8"))["models"][0], "provider": vendor.provider}


async def played(cases: Sequence[Case], folder: Path) -> AsyncIterator[Run]:
    # The settings of every server that is played come from `remora init`, also where that is no case itself.
    made = {case.name: case for case in cases if case.kind == "remora init"}
    for name in dict.fromkeys(name for case in cases for name in case.vendors):
        title, turns = f"remora init: {name}", (Turn(steps=(tries,)),)
        made.setdefault(title, Case(kind="remora init", name=title, vendors=(name,), turns=turns))
    runs: dict[str, Run] = {}
    entries: dict[str, dict[str, Any]] = {}
    at_once = asyncio.Semaphore(2)

    async with serving(runs) as listen:

        async def enter(case: Case, agent: str) -> Run:
            run = runs[agent] = Run(case, agent, {name: Seat(VENDORS[name]) for name in case.vendors})
            await listen(run)
            return run

        async def init(case: Case, number: int) -> Run:
            async with at_once:
                home = folder / f"init{number}"
                await asyncio.to_thread(home.mkdir)
                run = await enter(case, f"i{number}")
                if entry := await initialise(home, run):
                    entries[case.vendors[0]] = entry
                return run

        for done in asyncio.as_completed([init(case, number) for number, case in enumerate(made.values())]):
            if (run := await done).case in cases:
                yield run
        if talks := [case for case in cases if case.kind != "remora init"]:
            talking = [await enter(case, f"v{number:03}-{case.vendors[0]}") for number, case in enumerate(talks)]
            bot = Bot(folder / "bot")
            await asyncio.to_thread(bot.write, talking, entries)
            async with bot.client:
                async for run in _talked(bot, talking):
                    yield run


async def _talked(bot: Bot, runs: Sequence[Run]) -> AsyncIterator[Run]:
    """Has everybody talk up to the restart; then, after one restart for all, the others to their end."""
    at_once = asyncio.Semaphore(_AT_ONCE)
    waiting: list[Run] = []

    async def talk(run: Run, turns: Sequence[Turn]) -> Run:
        async with at_once:
            await play(bot, run, turns)
        return run

    def restart(run: Run) -> int:
        return next((at for at, turn in enumerate(run.case.turns) if turn.restart), len(run.case.turns))

    async with bot.up():
        for done in asyncio.as_completed([talk(run, run.case.turns[: restart(run)]) for run in runs]):
            run = await done
            if not run.why and restart(run) < len(run.case.turns):
                waiting.append(run)
            else:
                yield run
    if waiting:
        async with bot.up():
            for done in asyncio.as_completed([talk(run, run.case.turns[restart(run) :]) for run in waiting]):
                yield await done
