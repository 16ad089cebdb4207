"""Chooses the adapter for a model."""

from __future__ import annotations

from collections.abc import Callable

import httpx

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
