"""Language models to choose from: vendors, the keys in the environment, and an Ollama on this machine.

Invariant: nothing is used without a yes. `serve` never asks, so that no stray key sends a chat to a vendor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from agents.agent import exchange
from agents.budget import count_tokens
from agents.llm import ChatMessage, ModelError, Request, ToolSpec
from agents.providers.adapters import connect
from agents.providers.table import KNOWN
from agents.spec import ModelSpec
from gateway.models import http_client

OLLAMA = "http://127.0.0.1:11434"
#: Seconds for a server of one's own to list its models; longer would be felt at every start.
_PATIENCE = 0.5


#: The companies with a key, by the name of their provider.
VENDORS = {name: known for name, known in KNOWN.items() if known.variable}


_QUESTION = "What time is it? Use the tool, then answer in five words at most."
_CLOCK = ToolSpec(name="now", description="Tells the time.", parameters={"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    model: ModelSpec
    question: str


async def find(env: Mapping[str, str]) -> Offer | None:
    """Returns the first model at hand: by OpenAI's key in the environment, then the first of the local Ollama."""
    openai = VENDORS["openai"]
    key = env.get(openai.variable, "").strip()
    if key:
        return Offer(
            model=ModelSpec(provider="openai", model=openai.model, key=SecretStr(key)),
            question=(
                f"{openai.variable} is set. Chat with {openai.model} this time?"
                f" Your messages then go to {openai.host} and cost money."
            ),
        )
    address = ollama(env)
    names = await ollama_models(address)
    if not names:
        return None
    return Offer(
        model=ModelSpec.model_validate({"provider": "ollama", "model": names[0], "base_url": f"{address}/v1"}),
        question=f"Ollama is running on this machine. Chat with its model {names[0]} this time?",
    )


def ollama(env: Mapping[str, str]) -> str:
    """Returns the address of the local Ollama, by its own variable OLLAMA_HOST or its usual port."""
    host = env.get("OLLAMA_HOST", "").strip()
    if not host:
        return OLLAMA
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        # A server that listens on all addresses is reached by this machine's own.
        name = "127.0.0.1" if parts.hostname in ("0.0.0.0", None) else parts.hostname  # noqa: S104
        return f"{parts.scheme}://{name}:{parts.port or 11434}"
    except ValueError:
        return OLLAMA


async def ollama_models(address: str) -> list[str]:
    """Returns the names of the models of the Ollama at `address`, the latest first. Empty when none answers."""
    try:
        # No proxy: this asks this machine only.
        async with httpx.AsyncClient(trust_env=False, timeout=_PATIENCE) as client:
            answer = (await client.get(f"{address}/api/tags")).json()
        return [str(model["name"]) for model in answer["models"]]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return []


async def context_of(model: ModelSpec) -> int | None:
    """Returns the tokens that an Ollama reads for a model which it has just answered with; None if it does not say."""
    parts = urlsplit(model.base_url)
    try:
        async with http_client(timeout=_PATIENCE) as client:
            answer = (await client.get(f"{parts.scheme}://{parts.netloc}/api/ps")).json()
        running = {str(entry["name"]): int(entry["context_length"]) for entry in answer["models"]}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return None
    return running.get(model.model, running.get(f"{model.model}:latest"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of a trial: why there was no answer ("" if there was one), and whether the model called the tool."""

    trouble: str = ""
    calls: bool = False


async def tried(model: ModelSpec) -> Trial:
    """Asks the model for the time, with a tool that tells it, and gives the result of its call back.

    Some servers take a call's result only with fields of their own, so that a plain word would prove little.
    """
    request = Request(messages=(ChatMessage(role="user", content=_QUESTION),), tools=(_CLOCK,))
    async with http_client() as client:
        provider = connect(client, model, count_tokens=count_tokens)
        try:
            completion = await provider.complete(request)
            calls = bool(completion.tool_calls)
            if calls:
                results = ["12:34"] * len(completion.tool_calls)
                traffic = exchange(completion.text, completion.tool_calls, results, completion.opaque)
                await provider.complete(replace(request, messages=(*request.messages, *traffic)))
        except ModelError as error:
            return Trial(trouble=str(error))
    return Trial(calls=calls)
