"""A chat model in OpenAI's format for an attack: keeps every request, says and calls what it is told to, piece by piece.

Invariants: without a script it answers as the platforms' model does (chat_model.py); what it was asked is kept whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.platforms import chat_model
from tests.platforms.chat_model import JSON, is_extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """A model's step: words and calls of tools, each a name with its arguments."""

    text: str = ""
    calls: Sequence[tuple[str, JSON]] = ()


@dataclass(slots=True)
class Model:
    """`script` gives the step for a request, None for the usual answer. `pause` lies between two `piece`s of a stream.

    Of a stream each piece has so many characters.
    """

    url: str = ""
    requests: list[JSON] = field(default_factory=list)
    script: Callable[[JSON], Says | None] = lambda _body: None
    pause: float = 0.0
    piece: int = 7
    usual: chat_model.Model = field(default_factory=lambda: chat_model.Model(0))

    def turns(self) -> list[JSON]:
        """The requests of turns, without those that read for memories."""
        return [body for body in self.requests if not is_extraction(body)]

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        says = self.script(body) or Says(text=self.usual.answer(body))
        whole = chat_model.whole(body, says.text)
        calls = [
            {
                "index": n,
                "id": f"call_{len(self.requests)}_{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for n, (name, arguments) in enumerate(says.calls)
        ]
        if not body.get("stream"):
            if calls:
                whole["choices"][0]["message"]["tool_calls"] = calls
                whole["choices"][0]["finish_reason"] = "tool_calls"
            return web.json_response(whole)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        deltas: list[JSON] = [
            {"content": says.text[at : at + self.piece]} for at in range(0, len(says.text), self.piece)
        ]
        deltas += [{"tool_calls": calls}] if calls else []
        head = {**whole, "object": "chat.completion.chunk"}
        usage = head.pop("usage")
        try:
            await response.prepare(request)
            for delta in deltas:
                choice = {"index": 0, "delta": delta, "finish_reason": None}
                await response.write(_event({**head, "choices": [choice]}))
                await asyncio.sleep(self.pause)
            last = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
            await response.write(_event({**head, "choices": [last]}))
            await response.write(_event({**head, "choices": [], "usage": usage}) + b"data: [DONE]\n\n")
            await response.write_eof()
        except ConnectionError:
            pass  # nobody listens any more
        return response


@asynccontextmanager
async def modelling() -> AsyncIterator[Model]:
    model = Model()
    application = web.Application(client_max_size=50_000_000)
    application.router.add_post("/v1/chat/completions", model.complete)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield model
    finally:
        await runner.cleanup()


def words(body: JSON) -> list[tuple[str, str]]:
    """The roles and texts of a request's messages."""
    found = []
    for message in body["messages"]:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "\n".join(str(part.get("text", "")) for part in content)
        found.append((str(message["role"]), str(content)))
    return found


def _event(chunk: JSON) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
