"""The doors for programs over the whole pipeline and a real socket, with a wall as the platform where keys are made.

    async with house(tmp_path, model=ScriptedModel("Hello.")) as home:
        key = await home.key()
        answer = await home.post("/v1/chat/completions", key, {...})

Invariants: nothing of Remora is replaced but platform, model and clock.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agents.llm import Completion, OnText, Provider, Request
from channels.api import API, ApiChannel
from channels.base import Channel
from channels.ids import FORMATS
from gateway.api.callers import Callers
from gateway.api.completions import Completions
from gateway.api.doors import Doors
from gateway.api.operations import Operations
from gateway.api.tools import ToolDoor
from gateway.app import MASK
from gateway.config.settings import ApiSettings
from gateway.ops.health import Report
from gateway.ops.http import serving
from gateway.pipeline.policy import Policy, Rules
from gateway.pipeline.store import Roster
from memory.text.links import defang
from tests.kit.fakes import NOON, Clock, says
from tests.kit.patience import SECONDS
from tests.kit.pipeline import Wall, World, pipeline

#: Two people, and a group that they are in.
RULES = {
    "telegram": Rules(allow=frozenset({"7", "8"}), groups=frozenset({"-5"})),
    API: Rules(vouched=True, ids=FORMATS[API]),
}
FRONT_KEY, JWT_SECRET, SHARED_KEY = (
    "front-end-key-0123456789abc",
    "jwt-secret-0123456789abcdef",
    "shared-key-0123456789abcdef",
)
FRONT_ENDS: list[dict[str, Any]] = [
    {"name": "open-webui", "key": FRONT_KEY, "jwt_secret": JWT_SECRET},
    {"name": "hall", "key": SHARED_KEY, "shared": True},
]


class PiecewiseModel:
    """Gives an answer word by word. Each word waits at `gate`; `began` is set with the first request."""

    name = "piecewise/model"

    def __init__(self, text: str) -> None:
        self.text = text
        self.gate = asyncio.Semaphore(0)
        self.began = asyncio.Event()
        self.requests: list[Request] = []

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        self.requests.append(request)
        self.began.set()
        for word in re.findall(r"\S+\s*", self.text):
            await self.gate.acquire()
            if on_text is not None:
                await on_text(word)
        return says(self.text)

    async def aclose(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """Open doors at `url`."""

    world: World
    channel: ApiChannel
    url: str
    client: httpx.AsyncClient

    async def key(self, label: str = "laptop", *, author: str = "7") -> str:
        (told,) = await self.world.say(f"/keys make {label}", author=author)
        found = re.search(r"^rk_\S+$", told, re.MULTILINE)
        assert found is not None, told
        return found[0]

    async def ask(
        self, method: str, path: str, key: str = "", body: object = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        sent = {**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        return await self.client.request(method, self.url + path, json=body, headers=sent)

    async def chat(
        self, key: str, *said: str, model: str = "assistant", headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        """Sends a conversation whose messages are a person's and the agent's in turns."""
        roles = ["user", "assistant"]
        messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
        return await self.ask(
            "POST", "/v1/chat/completions", key, {"model": model, "messages": messages, **more}, headers
        )


def content(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def events(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def signed(claims: Mapping[str, object], *, secret: str = JWT_SECRET, algorithm: str = "HS256") -> str:
    """A token as front ends sign it."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": algorithm, "typ": "JWT"}, claims)
    ]
    mark = hmac.digest(secret.encode(), b".".join(parts), "sha256")
    return b".".join([*parts, base64.urlsafe_b64encode(mark).rstrip(b"=")]).decode()


async def _green() -> Report:
    return Report(reasons=(), channels={}, stores=(), version="1", uptime_seconds=1)


@asynccontextmanager
async def doors_of(
    roster: Roster,
    channels: Mapping[str, Channel],
    channel: ApiChannel,
    rules: Mapping[str, Rules],
    clock: Clock,
    *,
    quiet: float = 10,
    **settings: Any,
) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    """Opens the doors to these agents while the block runs: their address, and a client. `settings` are those of `api`."""
    given = ApiSettings.model_validate(
        {"enabled": True, "front_ends": FRONT_ENDS, "requests_per_minute": 10_000, **settings}
    )

    def new_id() -> str:
        return f"{clock()}"

    completions = Completions(
        roster,
        channel,
        defang=lambda text, growing: defang(text, growing=growing),
        seconds=SECONDS,
        now=clock,
        new_id=new_id,
    )
    callers = Callers(roster, given.front_ends, Policy(rules, monotonic=lambda: 0.0), now=clock)
    operations = Operations(roster, channels, mask=MASK, now=clock, new_id=new_id)
    tools = ToolDoor(operations, version="1", body_bytes=given.body_bytes)
    doors = Doors(
        given, callers, completions, operations, tools, monotonic=lambda: clock() / 1000, now=clock, quiet=quiet
    )
    try:
        async with (
            serving(_green, host="127.0.0.1", port=0, doors=lambda: [doors]) as page,
            httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client,
        ):
            yield page.removesuffix("/healthz"), client
    finally:
        await doors.close()


@asynccontextmanager
async def house(
    folder: Path,
    *,
    model: Provider | None = None,
    rules: Mapping[str, Rules] = RULES,
    quiet: float = 10,
    a_minute: int = 1_000_000,
    burst: int = 1_000_000,
    **settings: Any,
) -> AsyncIterator[House]:
    """Opens the doors of an installation in `folder` while the block runs. `settings` are those of `api`."""
    channel = ApiChannel(now=lambda: NOON, harmless=defang)
    walls: dict[str, Any] = {"telegram": Wall("telegram"), API: channel}
    async with pipeline(
        folder, rules=rules, model=model, walls=walls, api="http://127.0.0.1:8765", a_minute=a_minute, burst=burst
    ) as world:
        stores = dict.fromkeys(world.agents, world.store)
        first = next(iter(world.agents))
        roster = Roster(agents=world.agents, stores=stores, route=lambda _: first, default=first)
        receiving = asyncio.create_task(channel.run(world.router))
        try:
            async with doors_of(roster, walls, channel, rules, world.clock, quiet=quiet, **settings) as (url, client):
                yield House(world=world, channel=channel, url=url, client=client)
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving
