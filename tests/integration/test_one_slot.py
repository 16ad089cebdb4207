"""A server that works on one request at a time: reading for memories gives way to people, over real HTTP."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from agents.failover import Servers
from agents.llm import ChatMessage, Request
from agents.spec import AgentSpec, ModelSpec
from gateway import models
from memory.learn.model import ModelRequest
from tests.kit.patience import SECONDS, limit, settle, until
from tests.kit.wire import Wire, wire


class OneSlot:
    """Answers a person at once; a reading takes until it may `finish`. Counts the readings that were broken off."""

    def __init__(self) -> None:
        self.finish = asyncio.Event()
        self.readings = 0
        self.broken_off = 0

    async def answer(self, served: Wire, writer: asyncio.StreamWriter) -> None:
        said = b'data: {"choices": [{"delta": {"content": "{}"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
        if "READ" not in served.requests[-1]["messages"][0]["content"]:
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + said)
            await writer.drain()
            writer.close()
            return
        self.readings += 1
        writer.write(
            b'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: {"choices": [{"delta": {"content": " "}}]}\n\n'
        )
        await writer.drain()
        try:
            while not self.finish.is_set():
                writer.write(b": working\n\n")
                await writer.drain()
                await settle()
        except ConnectionError:
            self.broken_off += 1
            raise
        writer.write(said)
        await writer.drain()
        writer.close()


async def test_a_person_is_answered_while_a_long_reading_waits_and_its_tokens_are_counted() -> None:
    """A short answer took two minutes behind a reading of one and a half."""
    server = OneSlot()
    async with wire(server.answer) as served, httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        spec = AgentSpec(
            name="assistant",
            models=(ModelSpec.model_validate({"provider": "openai", "model": "m", "base_url": served.base_url}),),
        )
        assert spec.models[0].slots == 1
        shared = models.Models(lambda: client, Servers(asyncio.get_running_loop().time))
        background = models.background_model(spec, shared)
        assert background is not None
        asked = ModelRequest(instructions="READ", material="many words " * 100)
        reading = asyncio.ensure_future(background.complete(asked))
        await until(lambda: server.readings)
        chat = models.answering_agent(spec, shared, SECONDS).provider
        async with limit():
            assert (await chat.complete(Request(messages=(ChatMessage(role="user", content="hi"),)))).text == "{}"
        await until(lambda: server.broken_off)
        server.finish.set()
        answer = await asyncio.wait_for(reading, SECONDS)
        alone = await background.complete(asked)
    assert server.readings == 3
    # The reading that was broken off was paid for, too.
    assert answer.spent.input_tokens == 2 * alone.spent.input_tokens


@pytest.mark.parametrize(
    ("own", "background", "wanted"),
    [({}, None, 0.0), ({"temperature": 0.6}, None, 0.6), ({"top_p": 0.9}, None, None), ({"temperature": 0.6}, {}, 0.0)],
)
async def test_readings_keep_the_temperature_that_the_operator_has_set(
    own: dict[str, float], background: dict[str, float] | None, wanted: float | None
) -> None:
    """That of the model that reads: one of the background's, or without those the agent's own."""
    server = OneSlot()
    server.finish.set()
    async with wire(server.answer) as served, httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        reached = {"provider": "openai", "model": "m", "base_url": served.base_url}
        reading = {} if background is None else {"background": {"models": [reached | background]}}
        spec = AgentSpec.model_validate({"name": "assistant", "models": [reached | own], **reading})
        shared = models.Models(lambda: client, Servers(asyncio.get_running_loop().time))
        model = models.background_model(spec, shared)
        assert model is not None
        await model.complete(ModelRequest(instructions="READ", material="words"))
    assert served.requests[0].get("temperature") == wanted
