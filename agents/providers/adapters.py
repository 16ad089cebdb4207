"""Chooses the adapter for a model."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from agents.llm import BadCompletion, Completion, ModelError, OnText, Provider, Request
from agents.providers.adapter import Adapter
from agents.providers.anthropic import AnthropicProvider
from agents.providers.openai import OpenAIProvider
from agents.providers.quirks import Learned
from agents.spec import ModelSpec


def connect(
    client: httpx.AsyncClient, model: ModelSpec, *, count_tokens: Callable[[str], int], learned: Learned | None = None
) -> Adapter:
    """Returns the adapter for a model's server, with the quirks `learned` about it. Sends nothing yet."""
    adapter = AnthropicProvider if model.provider == "anthropic" else OpenAIProvider
    return adapter(client, model, count_tokens=count_tokens, learned=learned)


class OutsideProvider:
    """Implements `agents.llm.Provider` over a provider that may break its protocol."""

    def __init__(self, provider: Provider, name: str) -> None:
        self._provider = provider
        self.name = name

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        try:
            completion = await self._provider.complete(request, on_text)
        except ModelError:
            raise
        # A boundary: a stranger's code may raise anything.
        except Exception as exc:
            raise BadCompletion(f"{self.name}: its package failed: {type(exc).__name__}: {exc}") from exc
        if not isinstance(completion, Completion):
            raise BadCompletion(f"{self.name}: its package answered with {type(completion).__name__}, no Completion.")
        return completion

    async def aclose(self) -> None:
        await self._provider.aclose()
