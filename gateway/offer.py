"""Which model a terminal chat may offer when none is configured: a key in the environment, or an Ollama here.

Invariant: nothing is used without a yes, and only for this run; `serve` never asks, so that no stray key sends a chat
to a vendor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from pydantic import SecretStr

from agents.spec import ModelSpec

OLLAMA = "http://127.0.0.1:11434"
#: A model of the vendor that is cheap, fast and calls tools.
_OPENAI_MODEL = "gpt-4o-mini"
#: Seconds for a server on this machine to say what it has; longer would be felt at every start.
_PATIENCE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that could be used, in words for the question, and how to keep it in an agent's file."""

    model: ModelSpec
    question: str
    lasting: str


async def find(env: Mapping[str, str], *, ollama: str = OLLAMA) -> Offer | None:
    """The first model at hand: the key in the environment, then the local server."""
    key = env.get("OPENAI_API_KEY", "").strip()
    if key:
        return Offer(
            model=ModelSpec(provider="openai", model=_OPENAI_MODEL, key=SecretStr(key)),
            question=(
                f"OPENAI_API_KEY is set. Chat with {_OPENAI_MODEL} this time?"
                " What you say then goes to api.openai.com and costs money."
            ),
            lasting=f"models: [{{provider: openai, model: {_OPENAI_MODEL}, key: '${{OPENAI_API_KEY}}'}}]",
        )
    name = await _ollama_model(ollama)
    if name is None:
        return None
    return Offer(
        model=ModelSpec(provider="openai", model=name, base_url=f"{ollama}/v1"),
        question=f"An Ollama runs on this machine. Chat with its model {name} this time?",
        lasting=f"models: [{{provider: openai, model: '{name}', base_url: '{ollama}/v1'}}]",
    )


async def _ollama_model(address: str) -> str | None:
    try:
        # No proxy: this asks this machine only.
        async with httpx.AsyncClient(trust_env=False, timeout=_PATIENCE) as client:
            answer = (await client.get(f"{address}/api/tags")).json()
        return str(answer["models"][0]["name"])
    except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError):
        return None
