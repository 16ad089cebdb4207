"""The composition root: the one place where concrete channels, providers and stores meet."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import httpx

from agents.chain import Chain
from agents.llm import Provider
from agents.providers.offline import OfflineProvider
from agents.providers.openai import OpenAIProvider
from agents.spec import AgentSpec, ModelSpec
from agents.tokens import count_tokens
from channels.base import Channel, Inbound, Place
from gateway.config import Config
from gateway.delivery import Delivery
from gateway.router import Router, Store
from gateway.turn import Agent, Limits, Turns
from memory.learn.guard import clean
from memory.learn.redact import redact
from memory.service import Service, Triggers

#: The database of every agent that names none of its own.
DEFAULT_DATABASE = "remora.db"
# No l, o, 0, 1: ids are read aloud and typed.
_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
#: Seconds that turns under way get when the process is asked to stop.
_STOP_SECONDS = 10.0


def now() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Six random characters: 2^30 ids, and whoever stores one looks whether it is taken."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(6))


@asynccontextmanager
async def running(config: Config, channels: Mapping[str, Channel]) -> AsyncIterator[Router]:
    """Everything of `config`, open and taken up from where it was; closed in order on the way out.

    Raises `memory.errors.StorageError` when a store can't be opened.
    """
    settings = config.settings
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient())
        agents = {name: _agent(spec, client) for name, spec in config.agents.items()}
        stores: dict[str, Store] = {}
        for database in {spec.database or DEFAULT_DATABASE for spec in config.agents.values()}:
            served = {
                name: spec for name, spec in config.agents.items() if (spec.database or DEFAULT_DATABASE) == database
            }
            memory = await Service.open(
                config.data_dir / database,
                agents={name: spec.timezone for name, spec in served.items()},
                triggers=Triggers(
                    quiet_seconds=settings.memory.quiet_seconds,
                    tokens=settings.memory.extract_tokens,
                    messages=settings.memory.extract_messages,
                ),
                now=now,
                new_id=new_id,
                count_tokens=count_tokens,
                durability=settings.durability,
            )
            stack.push_async_callback(memory.close, seconds=settings.memory.exit_seconds)
            store = Store(
                memory=memory,
                turns=Turns(
                    memory,
                    limits=Limits(seconds=settings.limits.turn_seconds, message_chars=settings.limits.message_chars),
                    now=now,
                    new_id=new_id,
                    count_tokens=count_tokens,
                    redact=redact,
                ),
                delivery=Delivery(memory, channels),
            )
            stores |= dict.fromkeys(served, store)
        router = Router(
            stores=stores,
            agents=agents,
            route=routing(config),
            channels=channels,
            clean=clean,
            redact=redact,
            burst_seconds=settings.limits.burst_seconds,
            concurrent_turns=settings.limits.concurrent_turns,
            queue=settings.limits.queue,
            language=config.agents[config.default_agent].language,
        )
        stack.push_async_callback(router.drain, seconds=_STOP_SECONDS)
        await router.take_up()
        yield router


def routing(config: Config) -> Callable[[Inbound], str]:
    """Which agent answers a message: people win over threads, these over chats, channels, the default.

    The store follows from the place alone; a rule for a person chooses among the agents of that store.
    """
    rules: dict[tuple[str, str], str] = {}
    for name, spec in config.agents.items():
        for kind in ("people", "threads", "chats", "channels"):
            rules |= {(kind, rule): name for rule in getattr(spec.routing, kind)}

    def route(inbound: Inbound) -> str:
        chat = Place(channel=inbound.channel, chat=inbound.chat).session_key.removesuffix(":-")
        claims = (("threads", inbound.place.session_key), ("chats", chat), ("channels", inbound.channel))
        placed = next((rules[claim] for claim in claims if claim in rules), config.default_agent)
        own = rules.get(("people", f"{inbound.platform}:{inbound.author_id}"), placed)
        return own if config.agents[own].database == config.agents[placed].database else placed

    return route


def _agent(spec: AgentSpec, client: httpx.AsyncClient) -> Agent:
    providers: list[Provider] = [_provider(model, client) for model in spec.models] or [OfflineProvider()]
    if all(isinstance(provider, OfflineProvider) for provider in providers):
        return Agent(spec=spec, provider=providers[0], offline=True)  # it never fails: nothing to retry
    chain = Chain(providers, sleep=asyncio.sleep, random=random.random, now=time.monotonic)
    return Agent(spec=spec, provider=chain, offline=False)


def _provider(model: ModelSpec, client: httpx.AsyncClient) -> Provider:
    if model.provider == "offline":
        return OfflineProvider()
    return OpenAIProvider(
        client,
        base_url=model.base_url,
        model=model.model,
        key=model.key.get_secret_value() if model.key is not None else None,
        temperature=model.temperature,
        max_tokens=model.max_tokens,
        timeout=model.timeout,
        count_tokens=count_tokens,
    )
