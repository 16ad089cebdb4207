"""A server that writes down recordings, over OpenAI's API for transcriptions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Ears:
    """Notes what the server heard, and the words that it finds in everything."""

    base_url: str = ""
    words: str = "I like green tea"
    heard: list[bytes] = field(default_factory=list)

    @property
    def section(self) -> str:
        return f"{{base_url: '{self.base_url}', model: ears}}"


@asynccontextmanager
async def listening() -> AsyncIterator[Ears]:
    ears = Ears()

    async def transcribe(request: web.Request) -> web.Response:
        file = (await request.post())["file"]
        assert isinstance(file, web.FileField)
        with file.file:
            ears.heard.append(file.file.read())
        return web.json_response({"text": ears.words, "usage": {"type": "duration", "seconds": 1}, "unknown": True})

    application = web.Application()
    application.router.add_post("/v1/audio/transcriptions", transcribe)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ears.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield ears
    finally:
        await runner.cleanup()
