"""The bots of a configuration: their channels, and who may speak to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents import plugins
from channels.api import API, ApiChannel
from channels.base import Capabilities, Channel
from channels.ids import FORMATS, format_of
from gateway.config.loading import CONFIG_NAME, WEB_PREFIX, Config, ConfigError
from gateway.config.settings import BotSettings, DiscordSettings, OtherSettings
from gateway.config.strict_yaml import Problem
from gateway.pipeline.policy import OPERATOR, Rules
from memory.text.links import defang


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


def channels(config: Config, *, now: Callable[[], int]) -> dict[str, Channel]:
    made: dict[str, Channel] = {API: ApiChannel(now=now, harmless=defang)} if config.settings.api.enabled else {}
    made |= {bot.id: channel(bot, now=now) for bot in config.settings.channels.bots}
    if config.page_agents:
        # Imported here, so that the terminal chat does not pay for loading it.
        from channels.web import WebChannel

        ids = [f"{WEB_PREFIX}{name}" for name in config.page_agents]
        made |= {name: WebChannel(name, now=now) for name in ids}
    return made


def channel(bot: BotSettings, *, now: Callable[[], int]) -> Channel:
    # Imported here, so that nobody pays for loading a platform that they don't use.
    if isinstance(bot, OtherSettings):
        return _other_channel(bot, now)
    token = bot.token.get_secret_value()
    if isinstance(bot, DiscordSettings):
        from channels.discord import DiscordChannel

        return DiscordChannel(
            id=bot.id, token=token, base_url=bot.base_url, proxy=bot.own_proxy,
            mention=bot.mention, stream=bot.stream, now=now,
        )  # fmt: skip
    from channels.telegram import TelegramChannel, Webhook, Wire

    return TelegramChannel(
        id=bot.id,
        wire=Wire(token, bot.base_url, bot.own_proxy),
        mention=bot.mention,
        stream=bot.stream,
        webhook=None if bot.webhook is None else Webhook(url=bot.webhook, secret=bot.webhook_secret),
        now=now,
    )


def _other_channel(bot: OtherSettings, now: Callable[[], int]) -> Channel:
    """Returns the channel that another package makes. Raises `ConfigError` for one that breaks the protocol."""
    place = f"channels.other, {bot.id}"
    try:
        made: Channel = plugins.made(plugins.CHANNELS, bot.platform, id=bot.id, options=bot.options, now=now)
    except plugins.PluginUnusable as exc:
        raise unusable_part(place, str(exc)) from exc
    if why := _broken(made, bot):
        raise unusable_part(place, why)
    return made


def unusable_part(
    place: str, why: str, fix: str = "correct its options, or ask whoever wrote the package"
) -> ConfigError:
    return ConfigError([Problem(file=Path(CONFIG_NAME), line=None, key=place, value=None, message=why, fix=fix)])


def _broken(made: Any, bot: OtherSettings) -> str:
    """Returns in which way a channel does not keep the protocol: it would lose messages without a word."""
    if not isinstance(made.capabilities, Capabilities):
        return "its capabilities are no channels.base.Capabilities"
    if (made.id, made.platform) != (bot.id, bot.platform):
        return f"its id and platform are {made.id!r} and {made.platform!r}, not {bot.id!r} and {bot.platform!r}"
    lacking = [name for name in ("run", "send") if getattr(type(made), name, None) in (None, getattr(Channel, name))]
    return f"it has no method {' and no method '.join(lacking)}" if lacking else ""
