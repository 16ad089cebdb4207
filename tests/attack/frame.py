"""The frame of every attack: a real bot as a process of its own, what its attackers do to it, and what is counted.

Invariants: the bot is `remora serve` (or another command) of the checkout that is attacked, reached through its
platform, its model, its HTTP port, its files and its signals, and in no other way; an attempt is counted once, as held
or as breached.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from tests.attack.model import Model, modelling
from tests.kit.program import ran
from tests.kit.served import TELEGRAM_TOKEN, Served, environment, spawned
from tests.platforms.client import ControlError
from tests.platforms.telegram import Control, serving

ROOT = Path(__file__).parents[2]
#: An admin, people who are let in, and the group they share.
ADMIN, ADA, BEN, EVE = 7, 1007, 1008, 1009
GROUP = -1_001_000_000_001
CALLED = "@remora_test_bot"
_TICKS = os.sysconf("SC_CLK_TCK")


def patient(seconds: float) -> float:
    """Returns the seconds to wait on this machine for what takes so many on a free one."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(slots=True)
class Attack:
    """One scenario's count. `code` is the checkout that is attacked, `python` what it runs on."""

    name: str
    code: Path = ROOT
    python: str = sys.executable
    short: bool = False
    tried: int = 0
    breached: int = 0
    details: list[str] = field(default_factory=list)

    def count(self, breached: object, detail: str) -> None:
        self.tried += 1
        if breached:
            self.breached += 1
            self.details.append(detail)

    @asynccontextmanager
    async def bot(self, *, started: bool = True, **options: Any) -> AsyncIterator[Bot]:
        """A bot that serves a Telegram of its own until the block ends; `options` are those of `Bot`."""
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"attack-{self.name}-")))
            telegram = await stack.enter_async_context(serving((TELEGRAM_TOKEN,)))
            model = await stack.enter_async_context(modelling())
            bot = Bot(self, folder, telegram, model, **options)
            await telegram.group(GROUP, title="Walkers")
            stack.push_async_callback(bot.kill)
            if started:
                await bot.start()
            yield bot


Scenario: TypeAlias = Callable[[Attack], Coroutine[Any, Any, None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    def enter(one: Scenario) -> Scenario:
        SCENARIOS[name] = one
        return one

    return enter


class Bot:
    """`remora serve` in a process of its own, with a chat model behind it unless it is `offline`.

    `under` is a command that sets limits and becomes the bot; `bots` are more options of its Telegram channel;
    `sections` are those of config.yaml.
    """

    def __init__(
        self,
        attack: Attack,
        folder: Path,
        telegram: Control,
        model: Model,
        *,
        offline: bool = False,
        under: Sequence[str] = (),
        people: Sequence[int] = (ADMIN, ADA, BEN, EVE),
        bots: str = "",
        **sections: str,
    ) -> None:
        self.attack = attack
        self.folder = folder
        self.telegram = telegram
        self.model = model
        self.under = under
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        channel = (
            f"{{telegram: [{{token: '{telegram.token}', base_url: '{telegram.url}', allow: {[*people]}, "
            f"admins: [{ADMIN}], groups: [{GROUP}]{bots and ', '}{bots}}}]}}"
        )
        options: dict[str, Any] = {
            "channels": channel,
            "log": "{level: info, format: json, file: remora.log}",
            **sections,
        }
        self.served = Served(
            folder,
            telegram=telegram,
            model_url=None if offline else model.url,
            model="context: 60000",
            port=self.port,
            **options,
        )
        self._running = AsyncExitStack()
        self.process: Process | None = None

    # Its life.

    async def start(self) -> None:
        """Returns when it listens. Raises `TimeoutError` when it does not."""
        polls = await self._polls()
        self.process = await self._running.enter_async_context(
            spawned(self.folder, code=self.attack.code, python=self.attack.python, under=self.under)
        )
        ends = asyncio.get_running_loop().time() + patient(60)
        while asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.1)
            if await self._polls() > polls:
                return
            if self.died():
                break
        raise TimeoutError(f"the bot did not come to listen: {self.printed()[-600:]}")

    async def stop(self) -> None:
        await self._running.aclose()

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
        await self._running.aclose()

    def died(self) -> bool:
        return self.process is None or self.process.returncode is not None

    def printed(self) -> str:
        with suppress(FileNotFoundError):
            return (self.folder / "printed").read_text("utf-8", "replace")
        return ""

    async def cli(self, *arguments: str, stdin: str = "", seconds: float = 120) -> tuple[int, str]:
        """Another command of the same installation: its exit code, and all it printed."""
        if (self.attack.code, self.attack.python) == (ROOT, sys.executable):
            config = ("--config", str(self.folder / "config.yaml"))
            env = environment(self.folder)
            done = await asyncio.to_thread(ran, *arguments, *config, folder=self.folder, env=env, stdin=stdin.encode())
            return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")
        process = await asyncio.create_subprocess_exec(
            *(self.attack.python, "-m", "gateway", *arguments, "--config", str(self.folder / "config.yaml")),
            stdin=PIPE if stdin else DEVNULL,
            stdout=PIPE,
            stderr=subprocess.STDOUT,
            env=environment(self.folder, self.attack.code),
            cwd=self.folder,
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(stdin.encode() or None), seconds)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        assert process.returncode is not None
        return process.returncode, out.decode("utf-8", "replace")

    # The acts of people.

    async def ask(
        self, text: str, *, user: int = ADA, chat: int | None = None, seconds: float = 20, **more: Any
    ) -> str | None:
        """Says something as a person, in a group by the bot's name; returns what is answered, None when nothing is.

        An answer is what the bot newly said in that chat, or to that person in private.
        """
        places = {chat, user} - {None}
        before = {place: await self._count(place) for place in places}
        call = f"{CALLED} " if chat is not None and chat < 0 and not text.startswith("/") else ""
        await self.telegram.say(call + text, user=user, chat=chat, **more)
        ends = asyncio.get_running_loop().time() + patient(seconds)
        while asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.05)
            for place in places:
                texts = await self.texts(place)
                if len(texts) > before[place] and texts[-1] != "…":
                    return "\n".join(texts[before[place] :])
            if self.died():
                return None
        return None

    async def texts(self, chat: int | None) -> list[str]:
        if chat is None:
            return []
        with suppress(ControlError):
            return await self.telegram.texts(chat)
        return []

    async def press(self, label: str, *, chat: int, user: int) -> None:
        for message in reversed((await self.telegram.state())["chats"][str(chat)]["messages"]):
            rows = message.get("reply_markup", {}).get("inline_keyboard", [])
            if message["by_bot"] and any(button["text"] == label for row in rows for button in row):
                await self.telegram.press(message["message_id"], label=label, chat=chat, user=user)
                return
        raise AssertionError(f"no button {label} in {chat}")

    # The view from outside.

    async def health(self, seconds: float = 5) -> dict[str, Any] | None:
        """The health page, None when it is not answered in time."""
        async with httpx.AsyncClient(trust_env=False, timeout=seconds) as client:
            try:
                page = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).json()
            except (httpx.HTTPError, ValueError):
                return None
        assert isinstance(page, dict)
        return page

    async def rest(self, seconds: float = 60) -> bool:
        """Wait until all was taken and the process does nothing for half a second; False when it died or goes on."""
        ends = asyncio.get_running_loop().time() + patient(seconds)
        with suppress(TimeoutError):
            await self.telegram.wait(delivered=True, timeout=patient(min(10, seconds)))
        still, last = 0, self._worked()
        while still < 5 and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.1)
            if self.died():
                return False
            worked = self._worked()
            # A hundredth of a second of work is polling. On a busy machine a thread that wants to work may not get to.
            still, last = (still + 1 if worked - last <= 0.011 and not self._wants_to_work() else 0), worked
        return still >= 5

    def resident(self) -> int:
        return self._status("VmRSS") * 1024

    @contextmanager
    def database(self, name: str = "remora.db") -> Iterator[sqlite3.Connection]:
        uri = f"{(self.folder / 'data' / name).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as database:
            yield database

    def files(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.name not in ("config.yaml", "assistant.yaml"):
                yield path

    def holding(self, *values: str) -> str:
        """The first place in its files where one of `values` stands in the clear, or "".

        Compared by bytes without case, in UTF-8 and as JSON escapes it.
        """
        wanted = {
            form.lower()
            for value in values
            for form in (value.encode(), value.encode("unicode_escape"), value.replace('"', '\\"').encode())
        }
        for path in self.files():
            content = path.read_bytes().lower()
            for form in wanted:
                if form in content:
                    return f"{path.relative_to(self.folder)} holds {form.decode('utf-8', 'replace')!r}"
        return ""

    async def sent(self) -> str:
        """Every text that the platform was ever given, edits and drafts among it."""
        return "\n".join(str(entry) for entry in await self.telegram.requests())

    async def _count(self, chat: int | None) -> int:
        return len(await self.texts(chat))

    async def _polls(self) -> int:
        return int((await self.telegram.state())["requests"].get("getUpdates", 0))

    def _wants_to_work(self) -> bool:
        """Returns whether a thread of it runs, waits for a processor or for the disk."""
        if self.process is None:
            return False
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
                if (thread / "stat").read_text().rpartition(") ")[2][0] in "RD":
                    return True
        return False

    def _worked(self) -> float:
        """Seconds of processor time."""
        assert self.process is not None
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
            return (int(fields[11]) + int(fields[12])) / _TICKS
        return 0.0

    def _status(self, name: str) -> int:
        assert self.process is not None
        text = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
        return int(found[1]) if found else 0
