"""`remora chat`, `serve` and `web`: the bot at work, in the terminal or on the platforms, and the way to its page.

Invariant: whatever interrupts a command, no message that it has taken is lost; the same command goes on with them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from channels.base import ChannelError
from channels.ids import FORMATS
from gateway.cli.start import (
    CONFIG,
    EX_CANTCREAT,
    EX_CONFIG,
    EX_NOT_RUNNING,
    EX_SOFTWARE,
    EX_UNAVAILABLE,
    Unusable,
    ending,
    fail,
    loaded,
    set_up_logs,
    tell_errors,
)
from gateway.pipeline.policy import OPERATOR

if TYPE_CHECKING:
    from channels.console import ConsoleChannel
    from gateway.config.loading import Config


#: Seconds that leaving may take without a word.
_SILENT = 1.0
_LEAVING = "(Reading what was said, to remember it. Ctrl-C leaves at once; the next start goes on with it.)"


@click.command()
@CONFIG
@click.option("--as", "person", default=OPERATOR, show_default=True, metavar="NAME", help="Chat as this person.")
@click.option("--once", metavar="TEXT", help="Send one message, print the answer and exit.")
def chat(config_path: Path | None, person: str, once: str | None) -> None:
    """Chat in the terminal, or line by line through a pipe."""
    config = loaded(config_path)
    # Bytes of another encoding come as lone surrogates, which no database takes.
    if not person.strip() or any("\ud800" <= letter <= "\udfff" for letter in person):
        fail("--as needs a name, in UTF-8.", click.UsageError.exit_code)
    if once is not None and not once.strip():
        fail("--once needs a message, such as --once 'What do you know about me?'.", click.UsageError.exit_code)
    with ending():  # all messages are committed; unanswered ones are taken up at the next start
        try:
            # No watch for stalls: one person waits, who sees that, and a script has nothing to read of it.
            answered = asyncio.run(_chat(config, person.strip(), once))
        except ChannelError as exc:
            fail(str(exc), EX_SOFTWARE)
    if once is not None and not answered:
        sys.exit(EX_UNAVAILABLE)


@click.command()
@CONFIG
def serve(config_path: Path | None) -> None:
    """Answer on the chat platforms until Ctrl-C or SIGTERM."""
    from gateway import warming
    from gateway.ops import http, stalls

    config = loaded(config_path)
    if not (config.settings.channels.bots or config.settings.api.enabled or config.page_agents):
        fail(
            "No chat platform is set up. `remora channels add telegram` takes two minutes, `remora channels add "
            "discord` five. To chat here in the terminal, run `remora chat`; the web page needs web.url where it is "
            "reached from other machines.",
            EX_CONFIG,
        )
    warming.import_for(config)  # before the loop begins
    with ending():
        try:
            sys.exit(stalls.run(_served(config, config_path)))
        except http.AddressUnusable as exc:
            fail(str(exc), EX_CONFIG)


@click.command()
@CONFIG
@click.option("--as", "person", default=OPERATOR, show_default=True, metavar="NAME", help="Sign in as this person.")
def web(config_path: Path | None, person: str) -> None:
    """Print a link that signs you in to the web page of the running `remora serve`."""
    from gateway.ops import health
    from gateway.page.visitors import leave_code

    config = loaded(config_path)
    if not config.page_agents:
        fail("The web page is off. Write web: {enabled: true} into config.yaml and restart.", EX_CONFIG)
    if not FORMATS["console"].is_person(person):
        fail("--as needs a name without : and line breaks.", click.UsageError.exit_code)
    if health.ask(config.settings.http.host, config.settings.http.port) is None:
        fail("No Remora serves the page. Start it with `remora serve`.", EX_NOT_RUNNING)
    code = secrets.token_urlsafe(32)
    try:
        leave_code(config.data_dir, code, person)
    except OSError as exc:
        fail(f"The code can't be written to {config.data_dir} ({exc.strerror}).", EX_CANTCREAT)
    click.echo(f"{config.settings.page_url}/in#{code}")
    click.echo("Open it within ten minutes; it works once.", err=True)


async def _chat(config: Config, person: str, once: str | None) -> bool:
    """Returns whether every message was answered."""
    # Imported here: `remora check` needs none of it, and starts in half the time.
    from channels.console import ConsoleChannel, Looks, Streams
    from gateway import app
    from gateway.ops.telemetry import traced

    at_terminal = once is None and sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal:
        await _offer_import(config, f"console:{person}")
    log_file = set_up_logs(config, beside_chat=True)
    if at_terminal:
        config = await _with_offered_model(config)
    channel = ConsoleChannel(
        person=person,
        once=once,
        now=app.now,
        new_id=lambda: secrets.token_hex(8),
        streams=Streams(stdin=sys.stdin, stdout=sys.stdout, env=os.environ),
        looks=Looks(greeting=_greeting(config), agent_name=config.default_agent),
        files=config.data_dir / "exports",
    )
    if log_file is not None:
        tell_errors(partial(_tell, asyncio.get_running_loop(), channel, _from_here(log_file)))
    with traced(os.environ), channel.keyboard():
        return await _talk(config, channel)


def _tell(loop: asyncio.AbstractEventLoop, channel: ConsoleChannel, log_file: Path, error: str) -> None:
    """Shows an error beside the chat. May be called in any thread."""
    line = f"{error} (details in {log_file})"
    try:
        loop.call_soon_threadsafe(channel.remark if channel.interactive else partial(click.echo, err=True), line)
    except RuntimeError:  # the chat is over
        click.echo(line, err=True)


async def _with_offered_model(config: Config) -> Config:
    """Asks once, if no model is configured, whether to use one at hand, and names the command that keeps it."""
    from gateway.cli import init_texts, offer
    from gateway.config.loading import is_reference

    spec = config.agents[config.default_agent]
    if spec.models:
        return config
    found = await offer.find(os.environ)
    if found is None or not _agrees(found.question):
        if config.source is None or is_reference(config.source, os.environ, Path.home()):
            click.echo(init_texts.texts(init_texts.language(os.environ))["chat"])
        return config
    click.echo(init_texts.texts(init_texts.language(os.environ))["keep"])
    agents = {**config.agents, spec.name: spec.model_copy(update={"models": (found.model,)})}
    return replace(config, agents=agents)


async def _offer_import(config: Config, person: str) -> None:
    """Asks at the first start whether another assistant's notes are to be imported, and imports them.

    The chat then makes the database, so nobody is asked again.
    """
    from gateway.cli import importing, notes, transfers

    for some in notes.at_first_start(config, Path.cwd()):
        click.echo(f"{some.named} can become memories of you. `remora import undo` takes them back.")
        if not _agrees("Import them now?"):
            continue
        owner = importing.owner_of(config, person=person, chat=None, agent_wide=False, agent=some.agent)
        assert owner is not None
        for path in some.paths:
            wanted = importing.Wanted(path=path, owner=owner, learn=True)
            try:
                await transfers.bring_in(config, wanted, dry_run=False, yes=True)
            except Unusable as exc:
                # The offer is made only once, so the other notes and the chat must not wait for this one.
                click.echo(f"{exc} Left out: {path}", err=True)


def _agrees(question: str) -> bool:
    """Asks at the terminal. Ctrl-D means no, and Ctrl-C ends the command."""
    try:
        return click.confirm(question, default=False)
    except click.Abort as exc:
        if not isinstance(exc.__context__, EOFError):
            raise
        click.echo()
        return False


def _greeting(config: Config) -> str:
    spec = config.agents[config.default_agent]
    model = spec.models[0].model or "offline" if spec.models else "offline, no language model"
    folder = _from_here(config.data_dir)
    return f"{spec.name} ({model}) keeps its memory in {folder}. /help shows what it can do, /quit leaves."


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


async def _talk(config: Config, channel: ConsoleChannel) -> bool:
    from gateway import app
    from gateway.ops import night_clock

    channels = {channel.id: channel}
    async with (
        app.opened(config, channels) as parts,
        app.answering(config, channels, parts) as router,
        # The innermost: a person who leaves does not wait for the work of the night, which goes on the next time.
        night_clock.ticking(parts.workers),
    ):
        await router.settled(channel.place)
        await channel.run(router)
        if channel.interactive:
            asyncio.get_running_loop().call_later(_SILENT, channel.remark, _LEAVING)
        turns = {
            outcome for store in parts.roster.each_store for kind, outcome in store.turns.tally.counts if kind == "turn"
        }
        return turns <= {"answered"}


async def _served(config: Config, config_path: Path | None) -> int:
    from gateway import app, bots
    from gateway import serve as serving
    from gateway.cli import notes
    from gateway.config.loading import ConfigError, find, load
    from gateway.ops.reloading import Sources
    from gateway.ops.telemetry import traced

    set_up_logs(config)
    for some in notes.at_first_start(config, Path.cwd()):
        _tell_operator(notes.offer(config, some))
    stop, home, cwd = asyncio.Event(), Path.home(), Path.cwd()
    sources = Sources(
        lambda: load(find(config_path, os.environ, cwd, home), os.environ, home, pace=config.pace), asyncio.Event()
    )
    with traced(os.environ), serving.signals(stop, sources.asked):
        while True:
            code = await serving.serve(
                config, bots.channels(config, now=app.now), stop=stop, say=_tell_operator, sources=sources
            )
            if code != serving.BEGIN_ANEW or stop.is_set():
                return code
            with suppress(ConfigError):  # the last good one serves
                config = sources.read()


def _tell_operator(text: str) -> None:
    with suppress(OSError):  # the terminal may have been closed
        click.echo(text, err=True)
