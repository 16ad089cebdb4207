"""`remora channels`: list the chat platforms, or set one up."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.start import CONFIG, loaded

_TOKEN = click.option("--token", help="The bot's token. Without it, the command asks for it or reads it from a pipe.")
_NO_PAIR = click.option(
    "--no-pair", is_flag=True, help="Don't wait for the first person; leave allow and admins as they are."
)


@click.group()
def channels() -> None:
    """Set up or list chat platforms."""


@channels.command("list")
@CONFIG
def list_channels(config_path: Path | None) -> None:
    """List the configured channels and who may talk there."""
    from gateway import bots
    from gateway.config.settings import DiscordSettings
    from gateway.pipeline import policy

    config = loaded(config_path)
    click.echo("console: the terminal, used by `remora chat`")
    for bot in config.settings.channels.bots:
        places = f"{len(bot.groups)} groups"
        if isinstance(bot, DiscordSettings):
            places = f"{len(bot.servers)} servers, {len(bot.groups)} single channels"
        click.echo(
            f"{bot.id}: {bot.platform.capitalize()}, bot {bot.number}; {len({*bot.allow, *bot.admins})} people, "
            f"{len(bot.admins)} of them admins; {places}"
        )
    for warning in policy.warnings(bots.rules(config)):
        click.echo(f"Warning: {warning}", err=True)


@channels.group("add")
def add_channel() -> None:
    """Set up a chat platform."""


@add_channel.command("telegram")
@CONFIG
@_TOKEN
@click.option(
    "--id", "channel", default="telegram", show_default=True, help="The channel's name, different for each bot."
)
@_NO_PAIR
@click.option("--base-url", help="A Bot API server of your own.", hidden=True)
def add_telegram(
    config_path: Path | None, token: str | None, channel: str, no_pair: bool, base_url: str | None
) -> None:
    """Set up a Telegram bot: check its token, write .env and config.yaml, let the first person in."""
    from gateway.cli import adding

    adding.add("telegram", config_path, token=token, channel=channel, no_pair=no_pair, base_url=base_url)


@add_channel.command("discord")
@CONFIG
@_TOKEN
@click.option(
    "--id", "channel", default="discord", show_default=True, help="The channel's name, different for each bot."
)
@_NO_PAIR
@click.option("--base-url", help="Another address of Discord's API.", hidden=True)
def add_discord(config_path: Path | None, token: str | None, channel: str, no_pair: bool, base_url: str | None) -> None:
    """Set up a Discord bot: check its token, write .env and config.yaml, let the first person in."""
    from gateway.cli import adding

    adding.add("discord", config_path, token=token, channel=channel, no_pair=no_pair, base_url=base_url)
