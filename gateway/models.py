"""The language models of a configuration: those that answer, and those that read conversations while nobody waits."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import time as clock_time
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx

from agents import budget, plugins
from agents.budget import Gauge, count_tokens
from agents.failover import Chain, Member, Servers
from agents.llm import BadCompletion, ChatMessage, Completion, ContextOverflow, ModelError, ModelRefused, Request
from agents.offline.provider import OfflineProvider
from agents.spec import AgentSpec, ModelSpec, SessionSpec
from gateway.bots import unusable_part
from gateway.pipeline.course import Agent
from gateway.pipeline.outcome import spent_on
from memory.learn.agents import AgentMemory, Rotation
from memory.learn.model import BackgroundModel, ModelAnswer, ModelFailed, ModelRequest, RequestRefused, RequestTooLong
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens

if TYPE_CHECKING:
    from agents.providers.quirks import Learned

#: Gives the HTTP client that all requests share.
Client: TypeAlias = Callable[[], httpx.AsyncClient]


def http_client(**options: Any) -> httpx.AsyncClient:
    """Returns a client that goes by the proxies of the environment, but asks this machine itself without one."""
    here = ("localhost", "*.localhost", "127.0.0.1", "[::1]")
    try:
        return httpx.AsyncClient(mounts={f"all://{name}": None for name in here}, **options)
    except ValueError:
        # httpx's own words hold the address, and with it perhaps a password.
        raise unusable_part(
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY",
            "in the environment is no address of a proxy",
            "write http://host:port, https://host:port or socks5://host:port",
        ) from None


@asynccontextmanager
async def connections() -> AsyncIterator[Client]:
    """Gives the client, which is made at its first use: reading the certificates takes 20 ms of a start."""
    client = cache(http_client)
    try:
        yield client
    finally:
        if client.cache_info().currsize:
            await client().aclose()


@dataclass(frozen=True, slots=True)
class Models:
    client: Client
    servers: Servers
    learned: Learned = field(default_factory=dict)

    def member(self, model: ModelSpec) -> Member:
        if model.provider == "offline":
            return Member(provider=OfflineProvider(tokens, simplified, parts))
        # Imported here, so that an agent without a model does not pay for loading them.
        if model.from_outside:
            from agents.providers.adapters import OutsideProvider

            name = f"{model.provider}/{model.model}"
            try:
                made = plugins.made(plugins.PROVIDERS, model.provider, model, client=self.client())
            except plugins.PluginUnusable as exc:
                raise unusable_part(f"models, {name}", str(exc)) from exc
            address = model.base_url or model.provider
            return Member(
                provider=OutsideProvider(made, name), context=model.context, address=address, slots=model.slots
            )
        from agents.providers.adapters import connect

        adapter = connect(self.client(), model, count_tokens=count_tokens, learned=self.learned)
        return Member(provider=adapter, context=model.context, address=adapter.address, slots=model.slots)

    def chain(self, models: Iterable[ModelSpec], *, seconds: float | None = None, background: bool = False) -> Chain:
        return Chain(
            [self.member(model) for model in models],
            sleep=asyncio.sleep,
            random=random.random,
            now=time.monotonic,
            seconds=seconds,
            servers=self.servers,
            background=background,
        )


def answering_agent(spec: AgentSpec, models: Models, seconds: float) -> Agent:
    if all(model.provider == "offline" for model in spec.models):
        # It never fails, so it needs no retries.
        offline = OfflineProvider(tokens, simplified, parts)
        return Agent(spec=spec, provider=offline, offline=True, asks=offline.asks)
    gauge = Gauge([model.context for model in spec.models])
    return Agent(spec=spec, provider=models.chain(spec.models, seconds=seconds), offline=False, gauge=gauge)


def agent_memory(spec: AgentSpec, shared: Models) -> AgentMemory:
    return AgentMemory(
        timezone=spec.timezone,
        model=background_model(spec, shared),
        learns_style=spec.memory.enabled and spec.memory.manner,
        nightly=spec.memory.enabled,
        rotation=_rotation(spec.session),
        entities=spec.memory.entities,
    )


def _rotation(session: SessionSpec) -> Rotation:
    return Rotation(
        idle_ms=None if session.idle_hours is None else int(session.idle_hours * 3_600_000),
        at=None if session.at is None else clock_time.fromisoformat(session.at),
    )


def _temperature(spec: AgentSpec) -> float | None:
    """Returns 0, so that what is read does not vary, unless the operator has set it or top_p, beside which some servers
    take none."""
    is_set = any(model.temperature is not None or model.top_p is not None for model in spec.background_models)
    return None if is_set else 0.0


def _request(asked: ModelRequest, *, temperature: float | None) -> Request:
    return Request(
        messages=(
            ChatMessage(role="system", content=asked.instructions),
            ChatMessage(role="user", content=asked.material),
        ),
        temperature=temperature,
        json_mode=True,
        json_schema=asked.schema,
    )


def background_model(spec: AgentSpec, shared: Models) -> BackgroundModel | None:
    models = spec.background_models
    if not models:
        return None
    chain = shared.chain(models, background=True)
    # The cost of calls that gave way or broke off; it is booked with the next answer.
    owed: list[Completion] = []
    gauge = Gauge([model.context for model in models])
    refused = False  # the last request: the next one suits the smallest model of the chain, as any may have refused

    def room(instructions: str, answer: int) -> int:
        return budget.background(gauge.room(refused=refused), instructions=count_tokens(instructions), answer=answer)

    async def complete(asked: ModelRequest) -> ModelAnswer:
        nonlocal refused
        request = replace(_request(asked, temperature=_temperature(spec)), on_aborted=owed.append)
        tokens = gauge.room(refused=refused)
        free = max(budget.LEAST_ANSWER, tokens - budget.size(request, count_tokens))
        request = replace(request, max_tokens=min(asked.max_tokens, free))
        try:
            completion = await chain.complete(request)
        except ContextOverflow as exc:
            gauge.overflowed(request, tokens, str(exc))
            refused = True
            raise RequestTooLong(str(exc)) from exc
        except (BadCompletion, ModelRefused) as exc:
            raise RequestRefused(str(exc)) from exc
        except ModelError as exc:
            raise ModelFailed(str(exc)) from exc
        gauge.counted(request, completion)
        refused = False
        spent = spent_on([*owed, completion])
        owed.clear()
        return ModelAnswer(text=completion.text, spent=spent)

    return BackgroundModel(
        complete=complete, room=room, tokens_per_day=spec.background.tokens_per_day, seconds=spec.background.timeout
    )
