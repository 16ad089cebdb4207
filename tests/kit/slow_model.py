"""A model whose answers grow as a test says: a server with OpenAI's API, whose streams wait for the next words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


class SlowModel:
    """Every request takes its words from one queue, until `END`; `asked` counts the requests that began to answer."""

    END = "\0"

    def __init__(self) -> None:
        self.asked = 0
        self.url = ""
        self._words: asyncio.Queue[str] = asyncio.Queue()

    def say(self, *words: str) -> None:
        for word in words:
            self._words.put_nowait(word)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.asked += 1
        while (word := await self._words.get()) != self.END:
            await response.write(_event({"delta": {"content": word}}))
        await response.write(_event({"delta": {}, "finish_reason": "stop"}) + b"data: [DONE]\n\n")
        return response


def _event(choice: dict[str, object]) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0} | choice]}).encode() + b"\n\n"


@asynccontextmanager
async def slow_model() -> AsyncIterator[SlowModel]:
    model, app = SlowModel(), web.Application()
    app.router.add_post("/v1/chat/completions", model.chat)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield model
    finally:
        await runner.cleanup()
