"""An Ollama on loopback: it lists its models and answers a chat, or refuses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

ANSWER = "Hello from the model!"


@dataclass(slots=True, kw_only=True)
class FakeOllama:
    """`models` are those it lists, `broken` those that fail; `asked` has the body of every request to chat.

    With `keys`, a request to chat has to show one of them. `context` is the size that models were loaded with; an older
    Ollama does not tell it.
    """

    models: Sequence[str] = ("qwen3:8b", "llama3.2:3b")
    broken: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    context: int | None = None
    asked: list[Any] = field(default_factory=list)
    address: str = ""

    async def tags(self, request: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": name} for name in self.models]})

    async def running(self, request: web.Request) -> web.Response:
        told = {} if self.context is None else {"context_length": self.context}
        return web.json_response({"models": [{"name": name, **told} for name in self.models]})

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append({**body, "authorization": request.headers.get("authorization")})
        if self.keys and request.headers.get("authorization", "").removeprefix("Bearer ") not in self.keys:
            return web.json_response({"error": {"message": "no such key"}}, status=401)
        if body["model"] in self.broken:
            return web.json_response({"error": {"message": "model requires more system memory"}}, status=500)
        message = {"role": "assistant", "content": ANSWER}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})


@asynccontextmanager
async def running(ollama: FakeOllama) -> AsyncIterator[FakeOllama]:
    app = web.Application()
    app.router.add_get("/api/tags", ollama.tags)
    app.router.add_get("/api/ps", ollama.running)
    app.router.add_post("/v1/chat/completions", ollama.chat)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    ollama.address = f"{host}:{port}"
    try:
        yield ollama
    finally:
        await runner.cleanup()
