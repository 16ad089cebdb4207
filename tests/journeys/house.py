"""An installation as `remora init` writes it, served by the program itself; and a watch for what must never happen.

    house = House(tmp_path, telegram=telegram)         # `remora init`, and what `remora channels add` would write
    async with house.open():                           # `remora serve`, until the block ends
        ...
    assert house.troubles() == []

Invariants: no setting is other than `init` writes it, but for the addresses of platforms and the port. The models that
find by meaning serve before a journey begins, as they do for everybody but the first seconds after a start.
"""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.kit.patience import SECONDS, until
from tests.kit.program import ran
from tests.kit.served import ADA, BEN, TELEGRAM_TOKEN, environment, spawned
from tests.platforms.discord import Control as Discord
from tests.platforms.telegram import Control as Telegram

#: A line of the log that tells of a fault, and an answer that does.
_FAULT = re.compile(r"\[(?:error|critical)|\b[a-z_]+\.(?:crashed|broken|ended|given_up)\b|Traceback")
_EXCUSE = re.compile(
    r"went wrong|schiefgegangen|出错|エラー|s'est mal passé|salió mal|internal server error", re.IGNORECASE
)


class House:
    """One installation. `settings` are lines that an operator adds to config.yaml."""

    def __init__(
        self, folder: Path, *, telegram: Telegram | None = None, discord: Discord | None = None, settings: str = ""
    ) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.run("init", str(folder), "--model", "none", "--yes")
        bots = ""
        if telegram is not None:
            bots += (
                f"  telegram:\n    - {{token: '{TELEGRAM_TOKEN}', base_url: '{telegram.url}', "
                f"allow: {[*range(7, 15)]}, admins: [7]}}\n"
            )
        if discord is not None:
            bots += (
                f"  discord:\n    - {{token: '{discord.token}', base_url: '{discord.api_url}', "
                f"allow: {[*range(ADA, BEN + 8)]}, admins: [{ADA}]}}\n"
            )
        with (folder / "config.yaml").open("a", encoding="utf-8") as config:
            config.write(f"http: {{port: {self.port}}}\n{settings}" + (f"channels:\n{bots}" if bots else ""))

    def run(self, *arguments: str) -> str:
        config = () if arguments[0] == "init" else ("--config", str(self.folder / "config.yaml"))
        done = ran(*arguments, *config, folder=self.folder, env=environment(self.folder))
        assert done.returncode == 0, (arguments, done.stdout.decode(), done.stderr.decode())
        return done.stdout.decode()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serves while the block runs. It begins once memory is searched by meaning."""
        async with spawned(self.folder) as serving:
            async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=SECONDS) as client:

                async def settled() -> bool:
                    assert serving.returncode is None, self.log()
                    return await _settled(client)

                await until(settled)
            yield
        assert serving.returncode == 0, self.log()

    def log(self) -> str:
        return (self.folder / "printed").read_text("utf-8", "replace")

    def troubles(self, *answers: str) -> list[str]:
        """Returns the lines of the log that tell of a fault, and the answers that apologise for one."""
        return [
            *(line for line in self.log().splitlines() if _FAULT.search(line)),
            *(answer for answer in answers if _EXCUSE.search(answer)),
        ]


async def _settled(client: httpx.AsyncClient) -> bool:
    try:
        ready = (await client.get("/readyz")).status_code == 200
        stores = (await client.get("/healthz")).json()["stores"]
    except httpx.TransportError:
        return False
    return ready and bool(stores) and not any(store["words_only"] for store in stores)
