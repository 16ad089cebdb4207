"""`remora chat`, `serve` and `replay`: the bot at work, in the terminal, on the platforms or over a recording.

Invariant: whatever cuts one short, nothing it has taken is lost; the same command goes on with it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from channels.base import ChannelError
from gateway.cli.bar import progress
from gateway.cli.exits import EX_DATAERR, EX_SOFTWARE, fail, storage_code
from gateway.cli.start import CONFIG, loaded, set_up_logs
from gateway.config import EX_CONFIG, Config
from memory.errors import StorageError

if TYPE_CHECKING:
    from channels.console import ConsoleChannel
    from gateway.recording import Recording


@click.command()
@CONFIG
@click.option("--as", "person", default="you", show_default=True, metavar="NAME", help="Chat as this person.")
@click.option("--once", metavar="TEXT", help="Say one thing, print the answer, leave.")
def chat(config_path: Path | None, person: str, once: str | None) -> None:
    """Chat in the terminal, or line by line through a pipe."""
    config = loaded(config_path)
    if not config.settings.channels.console.enabled:
        fail("The console is switched off: set channels.console.enabled to true in config.yaml.", EX_CONFIG)
    if not person.strip():
        fail("--as needs a name.", click.UsageError.exit_code)
    try:
        asyncio.run(_chat(config, person.strip(), once))
    except KeyboardInterrupt:
        # Everything said is committed; what is unanswered is taken up at the next start.
        sys.exit(130)
    except StorageError as exc:
        fail(str(exc), storage_code(exc))
    except ChannelError as exc:
        fail(str(exc), EX_SOFTWARE)


@click.command()
@CONFIG
def serve(config_path: Path | None) -> None:
    """Answer on the chat platforms until Ctrl-C or SIGTERM."""
    from gateway import http

    config = loaded(config_path)
    if not config.settings.channels.bots:
        fail(
            "There is no chat platform to serve. `remora channels add telegram` sets a bot up in two minutes, "
            "`remora channels add discord` in five; `remora chat` needs none.",
            EX_CONFIG,
        )
    try:
        code = asyncio.run(_served(config))
    except StorageError as exc:
        fail(str(exc), storage_code(exc))
    except http.AddressUnusable as exc:
        fail(str(exc), EX_CONFIG)
    sys.exit(code)


@click.command()
@CONFIG
@click.argument("file", type=click.File("rb"))
@click.option("--record-only", is_flag=True, help="Store and learn, but answer nothing and call no chat model.")
def replay(config_path: Path | None, file: BinaryIO, record_only: bool) -> None:
    """Play a recorded conversation (JSON lines, see docs/replay.md) into memory, at the times it was held."""
    from gateway import recording

    config = loaded(config_path)
    try:
        recorded = recording.read(file.read())
    except recording.BadRecording as exc:
        fail(f"{exc}\nNothing was stored of {file.name}.", EX_DATAERR)
    if recorded.unknown:
        click.echo(f"Fields that mean nothing here are left out: {', '.join(recorded.unknown)}.", err=True)
    try:
        asyncio.run(_replay(config, recorded, record_only))
    except KeyboardInterrupt:
        click.echo("Stopped. The same command goes on from here.", err=True)
        sys.exit(130)
    except StorageError as exc:
        fail(str(exc), storage_code(exc))
    except ChannelError as exc:
        fail(f"{exc} The same command goes on from where this one stopped.", EX_SOFTWARE)


async def _chat(config: Config, person: str, once: str | None) -> None:
    # Imported here: `remora check` needs none of it, and starts in half the time.
    from channels.console import ConsoleChannel
    from gateway import app

    set_up_logs(config)
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
        files=config.data_dir / "exports",
    )
    await _talk(config, channel)


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


async def _talk(config: Config, channel: ConsoleChannel) -> None:
    from gateway import app, jobs

    channels = {channel.id: channel}
    async with (
        app.opened(config, channels) as parts,
        app.answering(config, channels, parts) as router,
        # The innermost: who leaves does not wait for the work of the night, which goes on the next time.
        jobs.ticking(parts.workers),
    ):
        await router.settled(channel.place)
        await channel.run(router)


async def _served(config: Config) -> int:
    from gateway import app, policy
    from gateway import serve as serving

    set_up_logs(config)
    stop = asyncio.Event()
    with serving.signals(stop):
        return await serving.serve(
            config,
            app.channels(config),
            stop=stop,
            say=partial(click.echo, err=True),
            warnings=policy.warnings(app.rules(config)),
        )


async def _replay(config: Config, recorded: Recording, record_only: bool) -> None:
    from gateway import app
    from gateway import replay as replaying

    set_up_logs(config)
    began = time.monotonic()
    clock = replaying.RecordedTime(recorded.lines[0].time)
    channels = {name: replaying.ReplayChannel(name) for name in recorded.channels}
    async with app.opened(config, channels, now=clock) as parts:
        setup = app.replaying(config, parts)
        with progress(len(recorded.lines), "Replaying", "messages") as advance:
            if record_only:
                tally = await replaying.record(setup, recorded, clock, advance)
            else:
                async with app.answering(
                    config, channels, parts, now=clock, admission=app.everybody(channels)
                ) as router:
                    tally = await replaying.answer(setup, recorded, clock, advance, host=router, channels=channels)
    done = "recorded" if record_only else "answered"
    click.echo(
        f"{tally.messages} messages {done} ({tally.repeated} were there already, {tally.left_out} left out), "
        f"{len(tally.sessions)} sessions, {len(tally.people)} people, {tally.memories} memories learned, "
        f"{tally.failures} failures, {time.monotonic() - began:.1f} seconds."
    )
    if tally.failures:
        sys.exit(EX_SOFTWARE)
