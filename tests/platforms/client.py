"""The actions of a test on every platform, and the requests that carry them; the rest is each platform's own `Control`.

Invariants: one HTTP request per call; nothing is kept here but the address; what the platform refuses raises
`ControlError` with its words.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

import httpx

from tests.kit.patience import SECONDS

JSON: TypeAlias = dict[str, Any]

_ROOT = Path(__file__).parents[2]


class ControlError(Exception):
    """The platform could not do what the test asked; the message is its own."""


class PlatformControl:
    """A platform as one bot's tests see it. `url` is the platform's, `token` the bot's."""

    def __init__(self, url: str, token: str, *, client: httpx.AsyncClient | None = None) -> None:
        self.url = url
        self.token = token
        # Longer than anything is waited for there. Loopback speaks no TLS, and making ready for it takes longer than a test.
        self._client = client or httpx.AsyncClient(base_url=url, timeout=2 * SECONDS, trust_env=False, verify=False)

    @property
    def model_url(self) -> str:
        """The base address of the fake chat model, for a provider's `base_url`."""
        return f"{self.url}/model/v1"

    def of(self, token: str) -> Self:
        """The same platform seen from another of its bots."""
        return type(self)(self.url, token, client=self._client)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def revoke(self, *, revoked: bool = True) -> None:
        """Has the token refused from now on, or accepted again."""
        await self.ask("revoke", revoked=revoked)

    async def pass_time(self, seconds: float) -> None:
        """Move the platform's clock: all that it dates, and all that it lets wait."""
        await self.ask("pass_time", seconds=seconds)

    async def timing(self, *, latency_ms: float | None = None, effect: str | None = None) -> None:
        """Sets the round trip, and when a request takes effect: "arrival", "mixed" or "late" (see breaking.Timing)."""
        await self.ask("timing", latency_ms=latency_ms, effect=effect)

    async def heal(self) -> None:
        """Remove all faults and let hanging requests go on to their end."""
        await self.ask("heal")

    async def script_model(self, answers: Mapping[str, str] | None = None, *, ms: float | None = None) -> None:
        """Sets what the fake model answers to texts that contain a key, and how long it takes."""
        await self.ask("script_model", answers=answers, ms=ms)

    async def state(self) -> JSON:
        """All there is to know of this bot, see control.state."""
        return await self.ask("state")

    async def asked(self) -> JSON:
        """Returns how often the fake model was asked each text; empty when it was asked nothing yet."""
        counts: JSON = (await self.state())["model"]["asked"]
        return counts

    async def requests(self, method: str | None = None) -> list[JSON]:
        """The last requests, oldest first; at most 5,000."""
        return list((await self.ask("requests", method=method))["requests"])

    async def reset(self) -> None:
        """Forget everything of this bot: what was said, what waits, faults, counts."""
        await self.ask("reset")

    async def fault(self, do: str, **fields: Any) -> int:
        """Makes a request go wrong, see faults.Fault for the fields; returns the fault's id."""
        return int((await self.ask("fault", do=do, **fields))["fault"])

    async def wait(self, *, timeout: float = SECONDS, **wanted: Any) -> None:
        """Waits until all that is wanted holds, see `_missing`; raises `TimeoutError` that tells how far it came."""
        waited = await self.ask("wait", timeout=timeout, **wanted)
        if not waited["met"]:
            raise TimeoutError(f"not within {timeout} s: {waited['missing']}")

    async def ask(self, action: str, **fields: Any) -> JSON:
        """One control request; None fields are left out. Raises `ControlError`."""
        body = {name: value for name, value in fields.items() if value is not None}
        # Escaped, for people's clients send lone surrogates as well.
        said = json.dumps({"token": self.token, **body})
        response = await self._client.post(f"/control/{action}", content=said)
        answer = response.json()
        if response.status_code != 200:
            raise ControlError(answer["error"])
        assert isinstance(answer, dict)
        return answer


C = TypeVar("C", bound=PlatformControl)


@asynccontextmanager
async def started(kind: type[C], module: str, token: str, arguments: tuple[str, ...]) -> AsyncIterator[C]:
    """The platform in a process of its own, ended with the block. `arguments` are those of its command line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, "--token", token, *arguments, cwd=_ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise ControlError("the platform's process ended before it listened; its standard error tells why")
        control = kind(url, token)
        try:
            yield control
        finally:
            await control.aclose()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()
