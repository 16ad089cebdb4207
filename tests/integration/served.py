"""`remora serve` in the test's own process, over platforms of the test's own: started, stopped, started again.

    served = Served(tmp_path, discord=discord, telegram=telegram, now=clock, model_url=discord.model_url)
    async with served.running():                       # until the block ends; the exit code is then in `served.code`
        ...

Invariants: nothing of the product is replaced, only its configuration is small: no embedder, no learning while the test
runs, no limits on how much people say.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from channels.base import Channel
from gateway import app
from gateway.config import load
from gateway.serve import serve
from tests.platforms.discord import Control as Discord
from tests.platforms.telegram import Control as Telegram

_ROOT = Path(__file__).parents[2]
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


class Served:
    """One installation in `folder`. `sections` are top-level sections of the configuration, instead of those here.

    `model` is laid over the entry of the model at `model_url`; without one the agent is offline. `more` are further
    channels. `port` is where health is told.
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
        **sections: str,
    ) -> None:
        self.folder = folder
        self.port = port
        self.code: int | None = None
        self.said: list[str] = []
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
            "memory": "{exit_seconds: 0, quiet_seconds: 3600, extract_tokens: 100000, extract_messages: 1000}",
            "limits": (
                "{burst_seconds: 0, queue: 2000, person_messages_per_minute: 10000, person_burst: 1000, "
                "placeholder_seconds: 60}"
            ),
            "http": "{enabled: false}" if port is None else f"{{port: {port}}}",
            "channels": f"{{telegram: {bots['telegram']}, discord: {bots['discord']}}}",
        }
        lines = [f"{name}: {value}" for name, value in (given | sections).items()]
        (folder / "config.yaml").write_text("\n".join(lines) + "\n")
        (folder / "agents").mkdir(exist_ok=True)
        agent = "name: assistant\n"
        if model_url is not None:
            agent += f"models: [{{provider: openai, model: test, base_url: '{model_url}'{model and ', '}{model}}}]\n"
        (folder / "agents" / "assistant.yaml").write_text(agent)

    @asynccontextmanager
    async def running(self, *, exits: float = 30) -> AsyncIterator[None]:
        """Served while the block runs. Raises what ended it before."""
        config = load(self.folder / "config.yaml", {}, self.folder)
        stop = asyncio.Event()
        channels = {**app.channels(config, now=self._now), **self._more}
        serving = asyncio.create_task(serve(config, channels, stop=stop, say=self.said.append, now=self._now))
        try:
            yield
        finally:
            stop.set()
            async with asyncio.timeout(exits):
                self.code = await serving

    async def health(self) -> dict[str, Any]:
        """What the health page says, when it is there."""
        async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(20):
            while True:
                try:
                    page = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).json()
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                    continue
                assert isinstance(page, dict)
                return page

    async def red(self, channel: str) -> str:
        """The reason of that channel on the health page, when there is one."""
        async with asyncio.timeout(20):
            while True:
                for reason in (await self.health())["reasons"]:
                    if str(reason).startswith(f"{channel}: "):
                        return str(reason)
                await asyncio.sleep(0.05)


@asynccontextmanager
async def spawned(folder: Path) -> AsyncIterator[Process]:
    """`remora serve`, ended with the block; what it prints goes into `printed`."""
    known = {name: value for name, value in os.environ.items() if not name.endswith("_TOKEN")}
    with (folder / "printed").open("wb") as printed:
        serving = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "gateway", "serve", "--config", str(folder / "config.yaml")),
            stdin=DEVNULL,
            stdout=printed,
            stderr=printed,
            env=known | {"PYTHONPATH": str(_ROOT), "NO_PROXY": "*", "HOME": str(folder)},
            cwd=folder,
        )
    try:
        yield serving
    finally:
        if serving.returncode is None:
            serving.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            await serving.wait()
