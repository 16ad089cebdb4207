"""Builds before the first message what it would otherwise build in the event loop: tables, patterns and parsers.

All of it is named here. Each is built at its first use, so it is used here once, on words that say nothing. Patterns
that only a transaction or a thread uses are not among them.

Invariants: nothing is stored or sent. The functions may run in any thread, beside the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final

import structlog

from agents import plugins
from agents.offline.speech import speech
from channels.base import Channel
from gateway import bots
from gateway.commands import plain
from gateway.config.loading import Config
from gateway.config.settings import BotSettings, OtherSettings
from gateway.ops.background import beside
from gateway.wording import phrases
from gateway.wording.texts import CATALOGUE, Texts
from languages import Language
from memory.learn.offline import patterns
from memory.reminders import orders
from memory.text.secrets.redact import redact
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.times.tables import table

log = structlog.get_logger(__name__)

#: Seconds after which what is seldom needed at once is built. It would slow down the connecting.
_CONNECTING: Final = 3.0
#: In each language a message that every pattern for its language has to be tried on, because it says nothing.
_SAYINGS: Final[Mapping[Language, str]] = {
    "en": "The weather is such that I wonder about it.",
    "zh": "天气真是一言难尽啊，我觉得。",
    "de": "Das Wetter ist so, dass ich mich wundere.",
    "ja": "天気のことを考えています。",
    "fr": "Le temps est tel que je me demande.",
    "es": "El tiempo es tal que me pregunto.",
}


def import_for(config: Config) -> None:
    import_module("gateway.serve")
    for bot in config.settings.channels.bots:
        _import_channel(bot)
    if config.page_agents:
        import_module("gateway.page.routes")


def _import_channel(bot: BotSettings) -> None:
    if isinstance(bot, OtherSettings):
        plugins.load(plugins.CHANNELS, bot.platform)
    else:
        import_module(f"channels.{bot.platform}")


@asynccontextmanager
async def warming_up(
    config: Config, channels: Iterable[Channel], sleep: Callable[[float], Awaitable[None]]
) -> AsyncIterator[asyncio.Event]:
    """Builds everything in a thread while the block runs.

    The event it gives is set once all is there that first messages to these channels need, in the languages of the
    agents. The rest follows when the channels have had time to connect: somebody may write in any language.
    """
    ready = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.to_thread(_warm_up, config, list(channels))
        finally:
            ready.set()
        await sleep(_CONNECTING)
        for language in sorted(_SAYINGS, key=_expected(config).__contains__):
            await asyncio.to_thread(_warm_up_language, language)
            await asyncio.to_thread(patterns.discloses, _SAYINGS[language])
        log.info("warming.done")

    async with beside([work()]):
        yield ready


async def warm_channel(bot: BotSettings, *, now: Callable[[], int]) -> Channel:
    await asyncio.to_thread(_import_channel, bot)
    channel = bots.channel(bot, now=now)
    await asyncio.to_thread(channel.warm_up)
    return channel


def _warm_up(config: Config, channels: Iterable[Channel]) -> None:
    for channel in channels:
        channel.warm_up()
    redact("Nothing.")
    for texts in CATALOGUE.values():
        len(texts)
    for language in _expected(config):
        _warm_up_language(language)


def _expected(config: Config) -> set[Language]:
    # The patterns for English are tried on texts in every language.
    return {"en", *(spec.language for spec in config.agents.values())}


def _warm_up_language(language: Language) -> None:
    saying = _SAYINGS[language]
    speech(language, simplified, parts)
    list(orders.read(saying, language=language))
    table(language).build()
    plain.requested(saying, modelless=True)
    phrases.say("lives-in", "-", language=language)
    Texts(language).date(0)
