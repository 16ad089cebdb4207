"""`remora status` and `check`: the state of the running bot, and of its configuration.

Invariant: both only look; neither opens a store nor starts anything.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli import notes
from gateway.cli.start import CONFIG, EX_NOT_RUNNING, EX_RED, fail, loaded
from memory.learn import spacy_names

if TYPE_CHECKING:
    from agents.spec import AgentSpec
    from gateway.config.loading import Config


@click.command()
@CONFIG
def status(config_path: Path | None) -> None:
    """Show how the running `remora serve` is doing. Exits with 0 if well, 1 if in trouble, 3 if not running."""
    from gateway.ops import health

    page = loaded(config_path).settings.http
    if not page.enabled:
        fail("Can't ask the running bot, because http.enabled is false in config.yaml.", EX_NOT_RUNNING)
    found = health.ask(page.host, page.port)
    if found is None:
        fail(
            f"No Remora answers at {health.address(page.host, page.port)}. Start it with `remora serve`.",
            EX_NOT_RUNNING,
        )
    click.echo(health.told(found))
    if found["status"] != "green":
        sys.exit(EX_RED)


@click.command()
@CONFIG
def check(config_path: Path | None) -> None:
    """Check config.yaml and the agents' files, and list every mistake."""
    from agents.spec import LONGEST_PERSONA
    from gateway.config.loading import misplaced, voices_of

    config = loaded(config_path)
    where = config.source or "no config.yaml found, so all defaults apply"
    click.echo(f"The configuration is fine ({where}).")
    click.echo(f"  data in {config.data_dir}")
    for bot in config.settings.channels.bots:
        click.echo(f"  channel {bot.id}: {bot.platform.capitalize()}")
    for name, spec in config.agents.items():
        models = ", ".join(f"{model.provider}/{model.model}".rstrip("/") for model in spec.models)
        chosen = " (default)" if name == config.default_agent else ""
        click.echo(f"  agent {name}{chosen}: {models or 'offline, no language model'}")
        if reads := reading(spec):
            click.echo(f"    {reads}")
        for file in voices_of(config.agents_dir, name, config.default_agent):
            click.echo(f"    with {file}, {len(file.read_text('utf-8-sig').strip())} of {LONGEST_PERSONA} characters")
    for some in notes.found(config):
        click.echo(f"  {notes.offer(config, some)}")
    for sentence in [*misplaced(config, Path.cwd(), Path.home()), *without_names(config)]:
        click.echo(f"Warning: {sentence}", err=True)


def reading(spec: AgentSpec) -> str:
    """Returns a sentence about the model that reads conversations for memories, and why; "" if patterns do."""
    models = spec.background_models
    return f"{models[0].provider}/{models[0].model} reads in the background: {spec.background_reason}" if models else ""


def without_names(config: Config) -> list[str]:
    """Returns a sentence for each agent whose configured name finder is not installed."""
    sentences = []
    for name, spec in config.agents.items():
        if spec.memory.entities == "spacy" and not spacy_names.is_installed():
            sentences.append(
                f"Agent {name} is to find names with spaCy (memory.entities), which is not installed here, so patterns "
                f"alone find them. {spacy_names.INSTALL}"
            )
        elif spec.memory.entities == "model" and not spec.background_models:
            sentences.append(
                f"Agent {name} is to find names with its model (memory.entities), but has none, so patterns alone find "
                "them. Give it a model, or set memory.entities to auto."
            )
    return sentences
