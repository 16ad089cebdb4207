"""The models that a chat may offer when none is configured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from agents.spec import ModelSpec
from gateway.cli import offer
from tests.kit.tables import each_row


@asynccontextmanager
async def server(body: bytes) -> AsyncIterator[str]:
    """Answers every request on loopback with `body`. A client that gives up leaves no connection open."""
    answering: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.append(asyncio.create_task(answer(reader, writer)))

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with listening:
        host, port = listening.sockets[0].getsockname()
        yield f"http://{host}:{port}"
        await asyncio.gather(*answering)


async def test_a_key_in_the_environment_is_offered_with_what_it_means() -> None:
    found = await offer.find({"OPENAI_API_KEY": "sk-x", "OLLAMA_HOST": "127.0.0.1:9"})
    assert found is not None
    assert "api.openai.com" in found.question and "cost money" in found.question
    assert "sk-x" not in found.question


async def test_a_local_ollama_is_offered_with_its_first_model() -> None:
    async with server(b'{"models": [{"name": "qwen3:8b"}, {"name": "x"}]}') as address:
        found = await offer.find({"OLLAMA_HOST": address})
    assert found is not None
    assert found.model.model == "qwen3:8b" and found.model.base_url == f"{address}/v1"


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"models": []}', b'{"models": [{}]}', b"null", b'{"models": 3}'])
async def test_anything_else_on_that_port_is_no_offer(body: bytes) -> None:
    async with server(body) as address:
        assert await offer.find({"OLLAMA_HOST": address}) is None


@each_row(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":1234", "http://127.0.0.1:1234"),
        ("box:1234", "http://box:1234"),
        ("https://box.example", "https://box.example:11434"),
        ("x:port", "http://127.0.0.1:11434"),
    ],
)
def test_ollama_is_where_its_own_variable_says(host: str, address: str) -> None:
    """It listens where OLLAMA_HOST names; all addresses include this machine's own."""
    assert offer.ollama({"OLLAMA_HOST": host}) == address


async def test_nothing_at_hand_is_no_offer() -> None:
    assert await offer.find({"OPENAI_API_KEY": " ", "OLLAMA_HOST": "127.0.0.1:9"}) is None


async def test_a_model_that_fails_the_trial_says_why_without_the_key() -> None:
    async with server(b'{"error": {"message": "no such model"}}') as address:
        spec = ModelSpec.model_validate({"provider": "openai", "model": "m", "base_url": address, "key": "sk-secret"})
        reason = (await offer.tried(spec)).trouble
    assert reason and "sk-secret" not in reason


async def test_a_model_that_answers_is_no_trouble() -> None:
    whole = b'{"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}'
    async with server(whole) as address:
        spec = ModelSpec.model_validate({"provider": "openai", "model": "m", "base_url": address})
        assert await offer.tried(spec) == offer.Trial(calls=False)
