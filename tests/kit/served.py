"""`remora serve` in the test's own process, over platforms of the test's own: started, stopped, started again.

    served = Served(tmp_path, discord=discord, telegram=telegram, now=clock, model_url=discord.model_url)
    async with served.running():                       # until the block ends; the exit code is then in `served.code`
        ...

Invariants: nothing of the product is replaced, only its configuration is small: no embedder, no learning while the test
runs, no limits on how much people say. With `shipped` it is the one that `remora init` writes, embedder, limits and all.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from channels.base import Channel
from gateway import app, bots
from gateway.config.loading import load
from gateway.config.settings import WorkPace
from gateway.ops.reloading import Sources
from gateway.serve import serve
from tests.kit import stalls
from tests.kit.paced import keep
from tests.kit.patience import SECONDS, limit, until
from tests.kit.program import ran
from tests.platforms.discord import Control as Discord
from tests.platforms.telegram import Control as Telegram

ROOT = Path(__file__).parents[2]
#: People as Discord numbers them; on Telegram numbers are shorter.
ADA, BEN, EVE = 345678901234567890, 345678901234567891, 345678901234567892
ANN, BOB = 7, 8
#: A token as BotFather makes them.
TELEGRAM_TOKEN = "123456789:" + "Aa0_-" * 7


class Clock:
    """The machine's time, moved on by `shift` seconds."""

    def __init__(self) -> None:
        self.shift = 0.0

    def __call__(self) -> int:
        return int((time.time() + self.shift) * 1000)


#: The pace of a bot that reads for memories when it is told to, and shows no placeholders.
SELDOM = WorkPace(exit_seconds=0, quiet_seconds=3600, extract_messages=1000, queue=2000, placeholder_seconds=60)


class Served:
    """One installation in `folder`. `sections` are top-level sections of the configuration, instead of those here.

    `model` is laid over the entry of the model at `model_url`; without one the agent is offline. `more` are further
    channels. `port` is where health is told. `reload` is set to have the configuration read anew, `stop` to end it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        discord: Discord | None = None,
        telegram: Telegram | None = None,
        server: int | None = None,
        now: Callable[[], int] = app.now,
        model_url: str | None = None,
        model: str = "",
        port: int | None = None,
        more: dict[str, Channel] | None = None,
        shipped: bool = False,
        pace: WorkPace = SELDOM,
        **sections: str,
    ) -> None:
        self.folder = folder
        self.port = port
        self.code: int | None = None
        self.said: list[str] = []
        self.reload = asyncio.Event()
        self.stop = asyncio.Event()
        self._now = now
        self._more = more or {}
        bots = {"telegram": "[]", "discord": "[]"}
        if telegram is not None:
            bots["telegram"] = (
                f"[{{token: '{telegram.token}', base_url: '{telegram.url}', allow: [{ANN}, {BOB}], admins: [{ANN}]}}]"
            )
        if discord is not None:
            servers = "" if server is None else f", servers: [{server}]"
            bots["discord"] = (
                f"[{{token: '{discord.token}', base_url: '{discord.api_url}', allow: [{ADA}, {BEN}], "
                f"admins: [{ADA}]{servers}}}]"
            )
        given: dict[str, str] = {
            "data_dir": "data",
            "embedding": "{provider: none}",
            "limits": "{burst_seconds: 0, person_messages_per_minute: 10000}",
            "http": "{enabled: false}" if port is None else f"{{port: {port}}}",
            "channels": f"{{telegram: {bots['telegram']}, discord: {bots['discord']}}}",
        }
        self.pace = WorkPace() if shipped else pace
        keep(self.pace, folder)
        if shipped:
            given = {name: given[name] for name in ("data_dir", "http")}
        lines = [f"{name}: {value}" for name, value in (given | sections).items()]
        (folder / "config.yaml").write_text("\n".join(lines) + "\n")
        (folder / "agents").mkdir(exist_ok=True)
        agent = "name: assistant\n"
        if model_url is not None:
            agent += f"models: [{{provider: openai, model: test, base_url: '{model_url}'{model and ', '}{model}}}]\n"
        (folder / "agents" / "assistant.yaml").write_text(agent)

    @asynccontextmanager
    async def running(self, *, exits: float = SECONDS) -> AsyncIterator[None]:
        """Serves while the block runs. Raises what ended it before."""
        sources = Sources(lambda: load(self.folder / "config.yaml", {}, self.folder, pace=self.pace), self.reload)
        config = sources.read()
        self.stop = stop = asyncio.Event()
        channels = {**bots.channels(config, now=self._now), **self._more}
        serving = asyncio.create_task(
            serve(config, channels, stop=stop, say=self.said.append, sources=sources, now=self._now)
        )
        try:
            yield
        finally:
            stop.set()
            async with asyncio.timeout(exits):
                self.code = await serving

    async def health(self) -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:

            async def served() -> dict[str, Any] | None:
                try:
                    page: dict[str, Any] = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).json()
                except httpx.TransportError:
                    return None
                return page

            return await until(served)

    async def ready(self) -> None:
        """Waits until it takes in what is said. Its health can be read before."""
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:

            async def takes() -> bool:
                try:
                    return (await client.get(f"http://127.0.0.1:{self.port}/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await until(takes)

    async def red(self, channel: str) -> str:
        """Returns the reason of that channel on the health page, once there is one."""

        async def reason() -> str:
            reasons = map(str, (await self.health())["reasons"])
            return next((reason for reason in reasons if reason.startswith(f"{channel}: ")), "")

        return await until(reason)


def environment(folder: Path, code: Path = ROOT) -> dict[str, str]:
    """Returns the command that starts `remora` for the installation in `folder`, run from the checkout `code`."""
    known = {name: value for name, value in os.environ.items() if not name.endswith("_TOKEN")}
    return known | {"PYTHONPATH": str(code), "NO_PROXY": "*", "HOME": str(folder)}


@asynccontextmanager
async def spawned(
    folder: Path, *, code: Path = ROOT, python: str = sys.executable, under: Sequence[str] = (), may_stand: bool = False
) -> AsyncIterator[Process]:
    """`remora serve`, ended with the block; what it prints is added to `printed`.

    `code` is the checkout it runs from, `under` a command that sets limits and becomes it. Unless its event loop
    `may_stand`, a long stall in its log is an error.
    """
    with (folder / "printed").open("ab") as printed:
        serving = await asyncio.create_subprocess_exec(
            *(*under, python),
            *("-m", "tests.kit.paced", "serve", "--config", str(folder / "config.yaml")),
            stdin=DEVNULL,
            stdout=printed,
            stderr=printed,
            env=environment(folder, code),
            cwd=folder,
        )
    try:
        yield serving
    finally:
        if serving.returncode is None:
            serving.send_signal(signal.SIGTERM)
        async with limit():
            await serving.wait()
    if not may_stand:
        stalls.check_log((folder / "printed").read_text(errors="replace"))


class Machine:
    """A folder with a configuration, and the program started in it."""

    def __init__(self, folder: Path, telegram: Telegram) -> None:
        self.folder = folder
        self.telegram = telegram
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.config = folder / "config.yaml"

    def configure(self, bot: str = "allow: [7], admins: [7]") -> None:
        self.config.write_text(
            self.settings(f"[{{token: '{TELEGRAM_TOKEN}', base_url: '{self.telegram.url}', {bot}}}]")
        )

    def settings(self, bots: str) -> str:
        return (
            f"data_dir: data\nembedding: {{provider: none}}\nlimits: {{burst_seconds: 0}}\n"
            f"http: {{port: {self.port}}}\nchannels:\n  telegram: {bots}\n"
        )

    def configure_both(self, discord: Discord) -> None:
        telegram = f"[{{token: '{TELEGRAM_TOKEN}', base_url: '{self.telegram.url}', allow: [7], admins: [7]}}]"
        self.config.write_text(
            f"{self.settings(telegram)}  discord:\n    - token: {discord.token}\n      base_url: {discord.api_url}\n"
            f"      allow: [{ADA}]\n      admins: [{ADA}]\n"
        )

    async def start(self, *arguments: str, stdin: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "gateway", *arguments, "--config", str(self.config)),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(self.folder),
            cwd=self.folder,
            # Ctrl-C is ignored in what a shell runs in the background, these tests perhaps among it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    async def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Starts the program and waits for its end; returns the exit code and what was printed."""
        done = await asyncio.to_thread(
            ran, *arguments, "--config", str(self.config), folder=self.folder, env=environment(self.folder),
            stdin=stdin.encode(),
        )  # fmt: skip
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    async def in_trouble(self) -> bool:
        page = await self.health()
        return page is not None and page["status"] != "green"

    async def is_ready(self) -> bool:
        """Returns whether messages are taken: health is told before."""
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            return (await client.get(f"http://127.0.0.1:{self.port}/readyz")).status_code == 200

    async def health(self) -> dict[str, object] | None:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            try:
                page = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).json()
            except httpx.HTTPError:
                return None
        assert isinstance(page, dict)
        return page


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    async with limit():
        _, err = await process.communicate()
    stalls.check_log(err.decode())
    return process.returncode, err.decode()
