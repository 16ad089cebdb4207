"""The contract of every provider, whichever vendor is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from llmock.pytest_plugin import LLMock
from pydantic import SecretStr

from agents.budget import count_tokens
from agents.failover import Chain
from agents.llm import ChatMessage, Provider, Request
from agents.offline.provider import OfflineProvider
from agents.providers.openai import OpenAIProvider
from agents.spec import ModelSpec
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens
from tests.kit.patience import SECONDS

REQUEST = Request(messages=(ChatMessage(role="user", content="Say hello to Ada."),), said="Say hello to Ada.")


@pytest.fixture(params=["offline", "openai", "chain"])
async def provider(request: pytest.FixtureRequest, llmock: LLMock) -> AsyncIterator[Provider]:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        model = ModelSpec(
            provider="openai",
            base_url=llmock.base_url(),
            model="gpt-4o",
            key=SecretStr("sk-local-test"),
            timeout=SECONDS,
        )
        openai = OpenAIProvider(client, model, count_tokens=count_tokens)
        made: dict[str, Provider] = {
            "offline": OfflineProvider(tokens, simplified, parts),
            "openai": openai,
            "chain": Chain([openai], sleep=asyncio.sleep, random=lambda: 0.5, now=lambda: 0.0),
        }
        yield made[request.param]


async def test_the_pieces_shown_are_the_answer(provider: Provider) -> None:
    pieces: list[str] = []

    async def on_text(text: str) -> None:
        pieces.append(text)

    completion = await provider.complete(REQUEST, on_text)
    assert completion.text.strip() and "".join(pieces) == completion.text


async def test_an_answer_comes_whole_without_anybody_listening(provider: Provider) -> None:
    assert (await provider.complete(REQUEST)).text.strip()


async def test_a_completion_says_who_gave_it(provider: Provider) -> None:
    completion = await provider.complete(REQUEST)
    assert provider.name and completion.provider and completion.model


async def test_closing_twice_is_harmless(provider: Provider) -> None:
    await provider.aclose()
    await provider.aclose()
