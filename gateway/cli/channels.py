"""`remora channels`: list the chat platforms, or set one up."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from gateway.cli.start import CONFIG, loaded


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


def _add_command(platform: Literal["telegram", "discord"], server: str) -> None:
    text = (
        f"Set up a {platform.capitalize()} bot: check its token, write .env and config.yaml, let the first person in."
    )

    @add_channel.command(platform, help=text)
    @CONFIG
    @click.option("--token", help="The bot's token. Without it, the command asks for it or reads it from a pipe.")
    @click.option(
        "--id", "channel", default=platform, show_default=True, help="The channel's name, different for each bot."
    )
    @click.option(
        "--no-pair", is_flag=True, help="Don't wait for the first person; leave allow and admins as they are."
    )
    @click.option("--base-url", help=server, hidden=True)
    def add(config_path: Path | None, token: str | None, channel: str, no_pair: bool, base_url: str | None) -> None:
        from gateway.cli import adding

        adding.add(platform, config_path, token=token, channel=channel, no_pair=no_pair, base_url=base_url)


_add_command("telegram", "A Bot API server of your own.")
_add_command("discord", "Another address of Discord's API.")
