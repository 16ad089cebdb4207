"""`remora status` and `check`: how the running bot is, and how its configuration is.

Invariant: both only look; neither opens a store nor starts anything.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gateway.cli.exits import EX_NOT_RUNNING, EX_RED, fail
from gateway.cli.start import CONFIG, loaded


@click.command()
@CONFIG
def status(config_path: Path | None) -> None:
    """Ask the running `remora serve` how it is: exit 0 well, 1 in trouble, 3 not running."""
    from gateway import http

    page = loaded(config_path).settings.http
    if not page.enabled:
        fail("A running bot can't be asked: http.enabled is false in config.yaml.", EX_NOT_RUNNING)
    found = http.ask(page.host, page.port)
    if found is None:
        fail(f"No Remora answers at {http.address(page.host, page.port)}: `remora serve` starts it.", EX_NOT_RUNNING)
    click.echo(http.told(found))
    if found["status"] != "green":
        sys.exit(EX_RED)


@click.command()
@CONFIG
def check(config_path: Path | None) -> None:
    """Check config.yaml and the agents' files, listing every mistake at once."""
    config = loaded(config_path)
    where = config.source or "no config.yaml found: all defaults"
    click.echo(f"Configuration is fine ({where}).")
    click.echo(f"  data in {config.data_dir}")
    for bot in config.settings.channels.bots:
        click.echo(f"  channel {bot.id}: {bot.platform.capitalize()}")
    for name, spec in config.agents.items():
        models = ", ".join(f"{model.provider}/{model.model}".rstrip("/") for model in spec.models)
        chosen = " (default)" if name == config.default_agent else ""
        click.echo(f"  agent {name}{chosen}: {models or 'offline, no language model'}")
