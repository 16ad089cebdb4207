"""The command line. Each command reads the configuration, does its work and ends with a code that says how it went."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import click

from channels.base import ChannelError
from gateway.config import EX_CONFIG, Config, ConfigError, find, load
from memory.errors import StorageError, StoreInUse, StoreUnwritable

if TYPE_CHECKING:
    from channels.console import ConsoleChannel
    from gateway.recording import Recording

# As in BSD's sysexits.h.
EX_DATAERR = 65
EX_SOFTWARE = 70
EX_CANTCREAT = 73
EX_TEMPFAIL = 75

_CONFIG = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Where config.yaml is (else $REMORA_CONFIG, …).",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="remora")
def main() -> None:
    """Remora: a chat bot that remembers, and lets people see, correct and erase what it remembers."""


@main.command()
@_CONFIG
@click.option("--as", "person", default="you", show_default=True, metavar="NAME", help="Chat as this person.")
@click.option("--once", metavar="TEXT", help="Say one thing, print the answer, leave.")
def chat(config_path: Path | None, person: str, once: str | None) -> None:
    """Chat in the terminal, or line by line through a pipe."""
    config = _loaded(config_path)
    if not config.settings.channels.console.enabled:
        _fail("The console is switched off: set channels.console.enabled to true in config.yaml.", EX_CONFIG)
    if not person.strip():
        _fail("--as needs a name.", click.UsageError.exit_code)
    try:
        asyncio.run(_chat(config, person.strip(), once))
    except KeyboardInterrupt:
        # Everything said is committed; what is unanswered is taken up at the next start.
        sys.exit(130)
    except StorageError as exc:
        _fail(str(exc), {StoreInUse: EX_TEMPFAIL, StoreUnwritable: EX_CANTCREAT}.get(type(exc), EX_SOFTWARE))
    except ChannelError as exc:
        _fail(str(exc), EX_SOFTWARE)


@main.command()
@_CONFIG
def check(config_path: Path | None) -> None:
    """Check config.yaml and the agents' files, listing every mistake at once."""
    config = _loaded(config_path)
    where = config.source or "no config.yaml found: all defaults"
    click.echo(f"Configuration is fine ({where}).")
    click.echo(f"  data in {config.data_dir}")
    for name, spec in config.agents.items():
        models = ", ".join(f"{model.provider}/{model.model}".rstrip("/") for model in spec.models)
        chosen = " (default)" if name == config.default_agent else ""
        click.echo(f"  agent {name}{chosen}: {models or 'offline, no language model'}")


@main.command()
@_CONFIG
@click.argument("file", type=click.File("rb"))
@click.option("--record-only", is_flag=True, help="Store and learn, but answer nothing and call no chat model.")
def replay(config_path: Path | None, file: BinaryIO, record_only: bool) -> None:
    """Play a recorded conversation (JSON lines, see docs/replay.md) into memory, at the times it was held."""
    from gateway import recording

    config = _loaded(config_path)
    try:
        recorded = recording.read(file.read())
    except recording.BadRecording as exc:
        _fail(f"{exc}\nNothing was stored of {file.name}.", EX_DATAERR)
    if recorded.unknown:
        click.echo(f"Fields that mean nothing here are left out: {', '.join(recorded.unknown)}.", err=True)
    try:
        asyncio.run(_replay(config, recorded, record_only))
    except KeyboardInterrupt:
        click.echo("Stopped. The same command goes on from here.", err=True)
        sys.exit(130)
    except StorageError as exc:
        _fail(str(exc), {StoreInUse: EX_TEMPFAIL, StoreUnwritable: EX_CANTCREAT}.get(type(exc), EX_SOFTWARE))
    except ChannelError as exc:
        _fail(f"{exc} The same command goes on from where this one stopped.", EX_SOFTWARE)


async def _chat(config: Config, person: str, once: str | None) -> None:
    # Imported here: `remora check` needs none of it, and starts in half the time.
    from channels.console import ConsoleChannel
    from gateway import app, telemetry
    from memory.learn.redact import redact

    log = config.settings.log
    telemetry.configure(level=log.level, format=log.format, file=config.log_file, redact=redact)
    telemetry.log_crashes()
    if once is None and sys.stdin.isatty() and sys.stdout.isatty():
        config = await _with_offered_model(config)
    channel = ConsoleChannel(
        person=person,
        once=once,
        now=app.now,
        new_id=lambda: secrets.token_hex(8),
        stdin=sys.stdin,
        stdout=sys.stdout,
        greeting=_greeting(config),
        agent_name=config.default_agent,
        env=os.environ,
    )
    await _serve(config, channel)


async def _serve(config: Config, channel: ConsoleChannel) -> None:
    from gateway import app

    async with app.running(config, {channel.id: channel}) as router:
        await router.settled(channel.place)
        await channel.run(router)


async def _replay(config: Config, recorded: Recording, record_only: bool) -> None:
    from gateway import app, telemetry
    from gateway import replay as replaying
    from memory.learn.redact import redact

    log = config.settings.log
    telemetry.configure(level=log.level, format=log.format, file=config.log_file, redact=redact)
    telemetry.log_crashes()
    began = time.monotonic()
    clock = replaying.RecordedTime(recorded.lines[0].time)
    channels = {name: replaying.ReplayChannel(name) for name in recorded.channels}
    async with app.opened(config, channels, now=clock) as parts:
        setup = app.replaying(config, parts)
        with _progress(len(recorded.lines)) as advance:
            if record_only:
                tally = await replaying.record(setup, recorded, clock, advance)
            else:
                async with app.answering(config, channels, parts) as router:
                    tally = await replaying.answer(setup, recorded, clock, advance, host=router, channels=channels)
    done = "recorded" if record_only else "answered"
    click.echo(
        f"{tally.messages} messages {done} ({tally.repeated} were there already, {tally.left_out} left out), "
        f"{len(tally.sessions)} sessions, {len(tally.people)} people, {tally.memories} memories learned, "
        f"{tally.failures} failures, {time.monotonic() - began:.1f} seconds."
    )
    if tally.failures:
        sys.exit(EX_SOFTWARE)


@contextmanager
def _progress(length: int) -> Iterator[Callable[[int], None]]:
    """A bar where somebody watches, and else a line for every tenth."""
    if sys.stderr.isatty():
        with click.progressbar(length=length, label="Replaying", file=sys.stderr) as bar:
            yield bar.update
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        tenth, done = done * 10 // length, done + count
        if done * 10 // length > tenth:
            click.echo(f"{done} of {length} messages", err=True)

    yield advance


async def _with_offered_model(config: Config) -> Config:
    """Where no model is configured, ask once whether to use one that is at hand."""
    from gateway import offer

    spec = config.agents[config.default_agent]
    if spec.models or (found := await offer.find(os.environ)) is None:
        return config
    if not click.confirm(found.question, default=False):
        return config
    click.echo(f"To keep it, write this into {config.agents_dir / (spec.name + '.yaml')}:\n  {found.lasting}")
    agents = {**config.agents, spec.name: spec.model_copy(update={"models": (found.model,)})}
    return replace(config, agents=agents)


def _greeting(config: Config) -> str:
    spec = config.agents[config.default_agent]
    model = spec.models[0].model or "offline" if spec.models else "offline, no language model"
    here = Path.cwd()
    folder = config.data_dir.relative_to(here) if config.data_dir.is_relative_to(here) else config.data_dir
    return f"{spec.name} ({model}) remembers in {folder}. /help shows what it can do, Ctrl-D leaves."


def _loaded(config_path: Path | None) -> Config:
    home = Path.home()
    try:
        return load(find(config_path, os.environ, Path.cwd(), home), os.environ, home)
    except ConfigError as exc:
        _fail(str(exc), EX_CONFIG)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
