"""The pipeline put together over open stores, as the composition root does it, with room for what a test varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents.budget import USUAL_CONTEXT, Gauge
from agents.llm import Provider
from agents.skills import Skill
from agents.spec import AgentSpec, ModelSpec, ToolName, WebToolName
from agents.tools import ToolSource
from channels.base import Channel, Inbound
from gateway.app import MASK
from gateway.internet.tools import Web
from gateway.ops.night_clock import Worker
from gateway.pipeline.course import Agent, Limits
from gateway.pipeline.delivery import Delivery
from gateway.pipeline.limits import Buckets
from gateway.pipeline.policy import Policy, Rules
from gateway.pipeline.store import Roster, Store
from gateway.pipeline.turn import TurnRunner
from gateway.reading.attachments import Attachments
from gateway.reception.dispatch import Speakers
from gateway.reception.router import Flow, Router
from memory.service import Service
from memory.text.links import defang
from memory.text.secrets.repeated import masking
from tests.kit.fakes import Clock, reader, runtime
from tests.kit.patience import SECONDS

LIMITS = Limits(seconds=SECONDS, message_chars=1_000, placeholder_seconds=SECONDS)


def agent(
    provider: Provider,
    name: str = "assistant",
    *,
    models: tuple[ModelSpec, ...] = (),
    context: int = USUAL_CONTEXT,
    more_tools: tuple[ToolName | WebToolName, ...] = (),
    sources: tuple[ToolSource, ...] = (),
    skills: tuple[Skill, ...] = (),
    **more: Any,
) -> Agent:
    spec = AgentSpec(name=name, timezone="UTC", models=models, **more)
    spec = spec.model_copy(update={"tools": (*spec.tools, *more_tools)})
    gauge = Gauge([context])
    return Agent(spec=spec, provider=provider, offline=False, gauge=gauge, sources=sources, skills=skills)


def assembled_store(
    memory: Service,
    channels: Mapping[str, Channel],
    clock: Clock,
    new_id: Callable[[], str],
    *,
    limits: Limits = LIMITS,
    nights: Worker | None = None,
    web: Web | None = None,
) -> Store:
    """The parts that the pipeline needs of one open store."""
    delivery = Delivery(memory, channels, language="en", now=clock)
    turns = TurnRunner(
        memory,
        limits=limits,
        runtime=runtime(clock, new_id),
        masking=masking,
        defang=lambda text, growing: defang(text, growing=growing),
        wake=delivery.wake,
        web=web,
    )
    return Store(memory=memory, turns=turns, delivery=delivery, nights=nights)


def assembled_router(
    agents: Mapping[str, Agent],
    stores: Mapping[str, Store],
    channels: Mapping[str, Channel],
    clock: Clock,
    *,
    rules: Mapping[str, Rules],
    route: Callable[[Inbound], str] | None = None,
    a_minute: int = 1_000_000,
    burst: int = 1_000_000,
    attachments: Attachments | None = None,
    queue: int = 5,
    retry_seconds: float = 0.05,
    api: str = "",
) -> Router:
    """A router, not started. The first agent answers unless `route` says otherwise; nobody says too much by default."""
    first = next(iter(agents))
    return Router(
        roster=Roster(agents=agents, stores=stores, route=route or (lambda _: first), default=first, api=api),
        channels=channels,
        speakers=Speakers(
            access=stores[first].memory.access,
            policy=Policy(rules, monotonic=lambda: clock() / 1000),
            buckets=Buckets(per_minute=a_minute, burst=burst, monotonic=lambda: 0.0),
            new_code=lambda: "CDFG-2345",
        ),
        attachments=attachments or reader(),
        mask=MASK,
        flow=Flow(
            burst_seconds=0,
            concurrent_turns=4,
            queue=queue,
            stale_hours=2,
            message_chars=LIMITS.message_chars,
            retry_seconds=retry_seconds,
        ),
        now=clock,
    )
