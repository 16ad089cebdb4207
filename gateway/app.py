"""The composition root: the only place where concrete channels, providers and stores meet."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar, get_args

import httpx

from agents import skills
from agents.budget import count_tokens
from agents.failover import Servers
from agents.own_tools import OwnTools, UnusableTool
from agents.skills import UnusableSkill
from agents.spec import AgentSpec, WebToolName
from agents.tools import ToolSource
from agents.toolservers.definitions import Definition, pinned, to_text
from agents.toolservers.server import ToolServer
from channels.api import API, ApiChannel
from channels.base import Channel, Inbound, Place
from gateway.api.callers import agent_in
from gateway.bots import rules
from gateway.config.loading import DEFAULT_DATABASE, WEB_PREFIX, Config, ConfigError
from gateway.config.settings import TranscriberSettings
from gateway.config.strict_yaml import Problem
from gateway.meaning import search_setup
from gateway.models import Client, Models, agent_memory, answering_agent, connections
from gateway.ops.background import beside
from gateway.ops.learned import remembered
from gateway.ops.night_clock import Worker, timetables
from gateway.ops.reloading import Reload
from gateway.ops.rights import close_to_others
from gateway.ops.standing import StandingTask, standing
from gateway.pipeline.course import Agent, Limits
from gateway.pipeline.delivery import Delivery
from gateway.pipeline.limits import Buckets
from gateway.pipeline.policy import Policy, Rules, new_code
from gateway.pipeline.reminder_clock import ReminderClock
from gateway.pipeline.store import Roster, Store
from gateway.pipeline.turn import TurnRunner
from gateway.reading.attachments import Attachments
from gateway.reception.dispatch import Speakers
from gateway.reception.intake import Mask
from gateway.reception.router import Flow, Router
from gateway.reception.sharing import Sharing
from memory.housekeeping import Keeping
from memory.learn.learner import Triggers
from memory.runtime import Runtime
from memory.service import Service
from memory.store.sqlite.driver import Driver
from memory.text.guard import clean
from memory.text.links import defang
from memory.text.secrets.redact import redact
from memory.text.secrets.repeated import masking
from memory.transfer.backups import Retention

if TYPE_CHECKING:
    from agents.providers.transcribe import Transcriber
    from gateway.api.doors import Doors
    from gateway.internet.tools import Web

# Without l, o, 0 and 1, because ids are read aloud and typed. With 32 letters, a random byte favours none of them.
_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
#: Seconds that running turns get when the process is asked to stop.
_STOP_SECONDS = 10.0
#: The most characters kept of a file, which is more than a model reads of it at once.
_FILE_CHARS = 200_000
#: The mask that every text passes before it is kept.
MASK = Mask(clean=clean, redact=redact)
T = TypeVar("T")


def now() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Returns six random characters. There are 2^30 ids, and the code that stores an id checks whether it is taken."""
    return "".join(_ID_LETTERS[byte % 32] for byte in os.urandom(6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The agents of a configuration with their stores, and the parts that they share.

    `attachments` reads the files that come with a message's text. `policy` decides who may speak. `clocks` are those of
    the reminders, once the pipeline runs.
    """

    roster: Roster
    attachments: Attachments
    policy: Policy
    models: Models
    clocks: list[ReminderClock] = field(default_factory=list)
    replaced: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def workers(self) -> list[Worker]:
        return [store.nights for store in self.roster.each_store if store.nights is not None]


@asynccontextmanager
async def running(
    config: Config, channels: Mapping[str, Channel], *, now: Callable[[], int] = now, driver: Driver | None = None
) -> AsyncIterator[Router]:
    """Opens everything in `config` and takes up the work that an earlier run left. Closes everything in order on exit.

    `now` is the clock of all parts, in milliseconds since 1970 UTC. `driver` is the SQLite to use; None chooses the
    best one available. Raises `memory.errors.StorageError` if a store can't be opened.
    """
    async with (
        opened(config, channels, now=now, driver=driver) as parts,
        answering(config, channels, parts, now=now) as router,
    ):
        yield router


@asynccontextmanager
async def opened(
    config: Config, channels: Mapping[str, Channel], *, now: Callable[[], int] = now, driver: Driver | None = None
) -> AsyncIterator[Opened]:
    """Opens the stores and agents of `config` without answering or taking anything up. Raises as `running` does."""
    settings = config.settings
    runtime = Runtime(now=now, new_id=new_id, count_tokens=count_tokens)
    close_to_others(config, DEFAULT_DATABASE)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connections())
        search = search_setup(settings, client)
        models = Models(client, Servers(time.monotonic), stack.enter_context(remembered(config.data_dir, now)))
        web = _web(config, client)
        policy = Policy(rules(config), monotonic=time.monotonic)
        made: dict[str, Agent] = {}
        stores: dict[str, Store] = {}
        for database, served in by_database(config).items():
            memory = await Service.open(
                config.data_dir / database,
                agents={name: agent_memory(spec, models) for name, spec in served.items()},
                runtime=runtime,
                triggers=Triggers(
                    quiet_seconds=config.pace.quiet_seconds,
                    tokens=settings.memory.extract_tokens,
                    messages=config.pace.extract_messages,
                ),
                search=search,
                keeping=_keeping(config),
                driver=driver,
                database_url=settings.database_url.get_secret_value(),
            )
            stack.push_async_callback(memory.close, seconds=config.pace.exit_seconds)
            for name, spec in served.items():
                made[name] = await _equipped(spec, config, models, memory)
            store = _store(config, memory, channels, served, runtime, web, policy.admins)
            stores |= dict.fromkeys(served, store)
        roster = Roster(
            agents={name: made[name] for name in config.agents},
            stores=stores,
            route=routing(config),
            default=config.default_agent,
            api=api_address(config),
            pages=dict.fromkeys(config.page_agents, settings.page_url),
        )
        parts = Opened(roster=roster, attachments=_attachments(config, client), policy=policy, models=models)
        stack.push_async_callback(_close_sources, parts)
        yield parts


def _store(
    config: Config,
    memory: Service,
    channels: Mapping[str, Channel],
    served: Mapping[str, AgentSpec],
    runtime: Runtime,
    web: Web | None,
    admins: Callable[[str], Sequence[str]],
) -> Store:
    limits, attachments = config.settings.limits, config.settings.attachments
    language = config.agents[config.default_agent].language
    delivery = Delivery(memory, channels, language=language, now=runtime.now, admins=admins)
    turns = TurnRunner(
        memory,
        limits=Limits(
            seconds=limits.turn_seconds,
            message_chars=limits.message_chars,
            placeholder_seconds=config.pace.placeholder_seconds,
            text_tokens=attachments.text_tokens,
            pictures=attachments.pictures,
        ),
        runtime=runtime,
        masking=masking,
        defang=lambda text, growing: defang(text, growing=growing),
        wake=delivery.wake,
        web=web,
    )
    return Store(
        memory=memory, turns=turns, delivery=delivery, nights=Worker(memory, timetables(served), now=runtime.now)
    )


async def renew(running: Config, config: Config, parts: Opened) -> None:
    """Makes open parts follow `config` from now on. Answers under way go on as they began.

    `config` differs from the `running` one only in what can be changed while the bot runs: agents, but neither their
    databases nor that any is missing, and who may speak. Raises `ConfigError` before anything has changed, or
    `memory.errors.StorageError`.
    """
    roster, models, seconds = parts.roster, parts.models, config.settings.limits.turn_seconds
    stores = {name: store.memory for name, store in roster.stores.items()}
    databases = {spec.database: stores[name] for name, spec in running.agents.items()}
    changed = {name: spec for name, spec in config.agents.items() if spec != running.agents.get(name)}
    made = {name: await _equipped(spec, config, models, databases[spec.database]) for name, spec in changed.items()}
    for database, memory in databases.items():
        own = {name: agent_memory(spec, models) for name, spec in changed.items() if spec.database == database}
        if own:
            await memory.renew_agents(own)
    for agent in [roster.agents[name] for name in made if name in roster.agents]:
        closing = asyncio.create_task(_close_later(agent.sources, seconds + _STOP_SECONDS))
        parts.replaced.add(closing)
        closing.add_done_callback(parts.replaced.discard)
    agents = {name: made.get(name) or roster.agents[name] for name in config.agents}
    roster.renew(agents, routing(config), config.default_agent)
    parts.policy.renew(rules(config))
    web = _web(config, models.client)
    for store in roster.each_store:
        specs = {name: spec for name, spec in config.agents.items() if roster.stores[name] is store}
        if web is not None:
            store.turns.renew(web)
        if store.nights is not None:
            store.nights.renew(timetables(specs))
    for clock in parts.clocks:
        clock.renew(*_tasks(config, roster, clock.store))


def by_database(config: Config) -> dict[str, dict[str, AgentSpec]]:
    found: dict[str, dict[str, AgentSpec]] = {}
    for name, spec in config.agents.items():
        found.setdefault(spec.database or DEFAULT_DATABASE, {})[name] = spec
    return found


@asynccontextmanager
async def answering(
    config: Config,
    channels: Mapping[str, Channel],
    parts: Opened,
    *,
    now: Callable[[], int] = now,
    admission: Mapping[str, Rules] | None = None,
    reload: Reload | None = None,
    takes_part: bool = False,
) -> AsyncIterator[Router]:
    """Runs the pipeline over open stores, and ends its work on exit. `admission` None means the rules of `config`."""
    roster = parts.roster
    access = roster.stores[config.default_agent].memory.access
    policy = parts.policy if admission is None else Policy(admission, monotonic=time.monotonic)
    router = _router(config, channels, parts, policy, now=now, reload=reload)
    for store in roster.each_store:
        tokens_per_day, tasks = _tasks(config, roster, store)
        parts.clocks.append(
            ReminderClock(
                store,
                channels,
                access=access,
                answer=router.begin_task,
                tokens_per_day=tokens_per_day,
                now=now,
                standing=tasks,
            )
        )
    try:
        await router.take_up()
        sharing = [Sharing(store, router, takes_part=takes_part) for store in roster.each_store]
        async with beside([clock.work() for clock in parts.clocks]), beside([share.work() for share in sharing]):
            yield router
    finally:
        taken_for_dead = any(store.memory.share.lost.is_set() for store in roster.each_store)
        await router.drain(seconds=0.0 if taken_for_dead else _STOP_SECONDS)


def _router(
    config: Config,
    channels: Mapping[str, Channel],
    parts: Opened,
    policy: Policy,
    *,
    now: Callable[[], int],
    reload: Reload | None,
) -> Router:
    limits = config.settings.limits
    return Router(
        roster=parts.roster,
        channels=channels,
        speakers=Speakers(
            access=parts.roster.stores[config.default_agent].memory.access,
            policy=policy,
            buckets=Buckets(
                per_minute=limits.person_messages_per_minute, burst=limits.person_burst, monotonic=time.monotonic
            ),
            new_code=lambda: new_code(secrets.choice),
        ),
        reload=reload,
        attachments=parts.attachments,
        mask=MASK,
        flow=Flow(
            burst_seconds=limits.burst_seconds,
            concurrent_turns=limits.concurrent_turns,
            queue=config.pace.queue,
            stale_hours=config.pace.stale_hours,
            message_chars=limits.message_chars,
        ),
        now=now,
    )


def _tasks(config: Config, roster: Roster, store: Store) -> tuple[dict[str, int | None], list[StandingTask]]:
    """Returns the tokens that agents may spend in the background on a day, and the standing tasks of one store."""
    tokens_per_day = {name: spec.background.tokens_per_day for name, spec in config.agents.items()}
    tasks = standing(config.agents, config.agents_dir)
    return tokens_per_day, [one for one in tasks if roster.stores[one.agent.name] is store]


def doors(
    config: Config, channels: Mapping[str, Channel], parts: Opened, *, version: str, now: Callable[[], int] = now
) -> Doors | None:
    channel = channels.get(API)
    if not isinstance(channel, ApiChannel):
        return None
    # Imported here, so that the terminal chat does not pay for loading the server.
    from gateway.api.callers import Callers
    from gateway.api.completions import Completions
    from gateway.api.doors import Doors
    from gateway.api.operations import Operations
    from gateway.api.tools import ToolDoor

    settings = config.settings
    completions = Completions(
        parts.roster,
        channel,
        defang=lambda text, growing: defang(text, growing=growing),
        seconds=settings.limits.turn_seconds,
        now=now,
        new_id=lambda: secrets.token_hex(12),
    )
    callers = Callers(parts.roster, settings.api.front_ends, parts.policy, now=now)
    operations = Operations(parts.roster, channels, mask=MASK, now=now, new_id=lambda: secrets.token_hex(12))
    tools = ToolDoor(operations, version=version, body_bytes=settings.api.body_bytes)
    return Doors(settings.api, callers, completions, operations, tools, monotonic=time.monotonic, now=now)


def api_address(config: Config) -> str:
    """Returns the address at which programs reach the agents; "" if they can't."""
    # Imported here, so that the terminal chat does not pay for loading the server.
    from gateway.ops.health import near_url

    settings = config.settings
    if not settings.api.enabled:
        return ""
    return settings.api.url or near_url(settings.http.host, settings.http.port)


def routing(config: Config) -> Callable[[Inbound], str]:
    """Returns a function that names the agent that answers a message.

    Rules for people win over rules for threads, then chats, then channels, then the default. In a group the place alone
    decides the store, and a rule for a person chooses among the agents of that store.
    """
    rules: dict[tuple[str, str], str] = {("channels", f"{WEB_PREFIX}{name}"): name for name in config.page_agents}
    for name, spec in config.agents.items():
        for kind in ("people", "threads", "chats", "channels"):
            rules |= {(kind, rule): name for rule in getattr(spec.routing, kind)}

    def route(inbound: Inbound) -> str:
        if inbound.channel == API and (named := agent_in(inbound.thread)) in config.agents:
            return named
        chat = Place(channel=inbound.channel, chat=inbound.chat).session_key.removesuffix(":-")
        claims = (("threads", inbound.place.session_key), ("chats", chat), ("channels", inbound.channel))
        placed = next((rules[claim] for claim in claims if claim in rules), config.default_agent)
        own = rules.get(("people", f"{inbound.platform}:{inbound.author_id}"), placed)
        same = config.agents[own].database == config.agents[placed].database
        return own if same or inbound.chat_kind == "private" else placed

    return route


def _attachments(config: Config, client: Client) -> Attachments:
    settings, voice = config.settings.attachments, config.settings.transcriber
    return Attachments(
        max_bytes=settings.max_bytes,
        fetch_seconds=settings.fetch_seconds,
        transcribe_seconds=voice.timeout if voice is not None else 0.0,
        text_chars=_FILE_CHARS,
        transcribe=None if voice is None else _transcriber(voice, client).transcribe,
        mask=MASK,
        sleep=asyncio.sleep,
    )


def _transcriber(voice: TranscriberSettings, client: Client) -> Transcriber:
    # Imported here, as few have one.
    from agents.providers.transcribe import Transcriber

    return Transcriber(
        client(),
        base_url=voice.base_url,
        key=voice.key.get_secret_value() if voice.key is not None else None,
        model=voice.model,
        timeout=voice.timeout,
        language=voice.language,
        sleep=asyncio.sleep,
        random=random.random,
    )


def _web(config: Config, client: Client) -> Web | None:
    if not any(name in get_args(WebToolName) for spec in config.agents.values() for name in spec.tools):
        return None
    # Imported here, as agents have to be given these tools.
    from gateway.internet.reach import PublicWeb
    from gateway.internet.tools import Pages, SearxSearch, Web

    settings = config.settings.internet
    return Web(
        reach=PublicWeb(tls=httpx.create_ssl_context(), ports=settings.ports),
        pages=Pages(),
        search=None if settings.search is None else SearxSearch(client(), base_url=settings.search),
        mask=MASK,
    )


async def _equipped(spec: AgentSpec, config: Config, models: Models, memory: Service) -> Agent:
    return replace(
        answering_agent(spec, models, config.settings.limits.turn_seconds),
        sources=await _tool_sources(spec, config, memory),
        skills=_usable(config, partial(skills.load, spec.skills, config.skills_dir)),
    )


async def _tool_sources(spec: AgentSpec, config: Config, memory: Service) -> tuple[ToolSource, ...]:
    sources: list[ToolSource] = []
    if spec.own_tools:
        seconds = spec.turn.call_seconds
        sources.append(
            _usable(config, lambda: OwnTools(spec.own_tools, config.tools_dir, call_seconds=seconds, clean=clean))
        )
    for server in spec.mcp:
        kept = f"{spec.name}/{server.name}"

        async def keep(pins: Mapping[str, Definition], kept: str = kept) -> None:
            await memory.outside_calls.keep_tools(kept, to_text(pins))

        sources.append(
            ToolServer(
                server,
                call_seconds=spec.turn.call_seconds,
                pinned=pinned(await memory.outside_calls.tools(kept)),
                keep=keep,
                clean=clean,
                monotonic=time.monotonic,
            )
        )
    return tuple(sources)


def _usable(config: Config, made: Callable[[], T]) -> T:
    """Returns a tool or skill. One that can't be used is a mistake in the configuration."""
    try:
        return made()
    except (UnusableTool, UnusableSkill) as exc:
        fix = "correct it, or remove its name from the agent's file"
        raise ConfigError(
            [Problem(file=config.agents_dir, line=None, key="", value=None, message=str(exc), fix=fix)]
        ) from exc


async def _close_sources(parts: Opened) -> None:
    for task in parts.replaced:
        task.cancel()
    await asyncio.gather(*parts.replaced, return_exceptions=True)
    await asyncio.gather(*(source.close() for agent in parts.roster.agents.values() for source in agent.sources))


async def _close_later(sources: Sequence[ToolSource], seconds: float) -> None:
    """Closes replaced tools once no turn that began before can be using them."""
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.gather(*(source.close() for source in sources))


def _keeping(config: Config) -> Keeping:
    backup, memory = config.settings.backup, config.settings.memory
    return Keeping(
        durability=config.settings.durability,
        retention=Retention(
            folder=backup.within(config.data_dir),
            keep_days=backup.keep_days,
            daily=backup.daily,
            server_days=backup.server_days,
        ),
        transcript_days=memory.transcript_days,
        left_chat_days=memory.left_chat_days,
        export_days=memory.export_days,
        admins_read=memory.admins_read,
    )
