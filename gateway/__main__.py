"""The command line. Each command reads the configuration, does its work and ends with a code that says how it went."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import click

from agents.spec import AGENT_NAME
from channels.base import ChannelError, Inbound
from gateway.config import (
    CONFIG_NAME,
    EX_CONFIG,
    TELEGRAM_TOKEN,
    TELEGRAM_URL,
    Config,
    ConfigError,
    TelegramSettings,
    find,
    load,
)
from memory.errors import StorageError, StoreBusy, StoreDamaged, StoreInUse, StoreUnwritable

if TYPE_CHECKING:
    from channels.base import Channel
    from channels.console import ConsoleChannel
    from channels.telegram import BotFacts
    from gateway.recording import Recording

# `remora status`, as the exit codes of service scripts have it: 0 well, 1 in trouble, 3 not running.
EX_RED = 1
EX_NOT_RUNNING = 3
# As in BSD's sysexits.h.
EX_DATAERR = 65
EX_SOFTWARE = 70
EX_CANTCREAT = 73
EX_TEMPFAIL = 75

_GO_ON = (
    "The bot is configured, but knows nobody yet: the same command waits for the code again, or write your numeric "
    "user id into allow and admins, at the bot in config.yaml."
)
_BY_HAND = "Nobody may talk to it yet: write your numeric user id into allow and admins, at the bot in config.yaml"

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
        _fail(str(exc), _storage_code(exc))
    except ChannelError as exc:
        _fail(str(exc), EX_SOFTWARE)


@main.command()
@_CONFIG
def serve(config_path: Path | None) -> None:
    """Answer on the chat platforms until Ctrl-C or SIGTERM."""
    from gateway import http

    config = _loaded(config_path)
    if not config.settings.channels.telegram:
        _fail(
            "There is no chat platform to serve. `remora channels add telegram` sets a bot up in two minutes; "
            "`remora chat` needs none.",
            EX_CONFIG,
        )
    try:
        code = asyncio.run(_served(config))
    except StorageError as exc:
        _fail(str(exc), _storage_code(exc))
    except http.AddressUnusable as exc:
        _fail(str(exc), EX_CONFIG)
    sys.exit(code)


@main.command()
@_CONFIG
def status(config_path: Path | None) -> None:
    """Ask the running `remora serve` how it is: exit 0 well, 1 in trouble, 3 not running."""
    from gateway import http

    page = _loaded(config_path).settings.http
    if not page.enabled:
        _fail("A running bot can't be asked: http.enabled is false in config.yaml.", EX_NOT_RUNNING)
    found = http.ask(page.host, page.port)
    if found is None:
        _fail(f"No Remora answers at {http.address(page.host, page.port)}: `remora serve` starts it.", EX_NOT_RUNNING)
    click.echo(http.told(found))
    if found["status"] != "green":
        sys.exit(EX_RED)


@main.group()
def channels() -> None:
    """The chat platforms: set one up, list them."""


@channels.command("list")
@_CONFIG
def list_channels(config_path: Path | None) -> None:
    """List the configured channels and who may talk there."""
    from gateway import app, policy

    config = _loaded(config_path)
    console = config.settings.channels.console
    click.echo(f"console: the terminal, {'by `remora chat`' if console.enabled else 'switched off'}")
    for bot in config.settings.channels.telegram:
        number = bot.token.get_secret_value().partition(":")[0]
        click.echo(
            f"{bot.id}: Telegram, bot {number}; {len({*bot.allow, *bot.admins})} people, "
            f"{len(bot.admins)} of them admins; {len(bot.groups)} groups"
        )
    for warning in policy.warnings(app.rules(config)):
        click.echo(f"Warning: {warning}", err=True)


@channels.group("add")
def add_channel() -> None:
    """Set a chat platform up."""


@add_channel.command("telegram")
@_CONFIG
@click.option("--token", help="The bot's token; else it is asked for, or read from a pipe.")
@click.option("--id", "channel", default="telegram", show_default=True, help="The channel's name; one for each bot.")
@click.option("--no-pair", is_flag=True, help="Don't wait for the first person: allow and admins stay as they are.")
@click.option("--base-url", help="A Bot API server of your own.", hidden=True)
def add_telegram(
    config_path: Path | None, token: str | None, channel: str, no_pair: bool, base_url: str | None
) -> None:
    """Set a Telegram bot up: test its token, write it into .env and config.yaml, let the first person in."""
    from gateway import setup

    if not re.match(AGENT_NAME, channel) or channel == "console":
        _fail("--id must be a name of small letters, digits, - and _, and not console.", click.UsageError.exit_code)
    home = Path.home()
    file = _config_to_write(config_path, home)
    name = setup.variable(channel)
    bot = _configured(file, channel, name, home)
    base_url = base_url or (bot.base_url if bot is not None else TELEGRAM_URL)
    token = (token or (bot.token.get_secret_value() if bot is not None else None) or _asked_token()).strip()
    _check_token(token, bot, channel, name)
    try:
        facts = asyncio.run(_probed(token, base_url))
        click.echo(f"This is @{facts.username} ({facts.name}).")
        for line in _privacy_mode(facts):
            click.echo(line)

        def check_file(new: Path) -> None:
            try:
                load(new, os.environ, home)
            except ConfigError as exc:
                raise ConfigError(replace(p, file=file if p.file == new else p.file) for p in exc.problems) from exc

        setup.keep_token(file.parent / ".env", name, token)
        setup.add_bot(file, channel=channel, name=name, base_url=base_url, check=check_file)
        click.echo(f"Its token is in {file.parent / '.env'} as {name}, its entry in {file}.")
        config = load(file, os.environ, home)
        known = next(one for one in config.settings.channels.telegram if one.id == channel)
        if no_pair or known.admins:
            people = f"{len({*known.allow, *known.admins})} people may talk to it"
            click.echo(f"{people if known.allow or known.admins else _BY_HAND}. Start it with `remora serve`.")
            return
        person = asyncio.run(_paired(config, channel, facts.username))
        if person is None:
            _fail(f"Nobody sent the code in time. {_GO_ON}", EX_TEMPFAIL)
        setup.let_in(file, channel=channel, person=person.author_id, check=check_file)
    except KeyboardInterrupt:
        click.echo(f"\nStopped. {_GO_ON}", err=True)
        sys.exit(130)
    except ConfigError as exc:
        _fail(f"{exc}\nNothing was changed in {file}.", EX_CONFIG)
    except ChannelError as exc:
        _fail(str(exc), EX_TEMPFAIL if exc.retryable else EX_CONFIG)
    except OSError as exc:
        _fail(f"Can't write {exc.filename}: {exc.strerror}. Fix the rights of the file and its folder.", EX_CANTCREAT)
    click.echo(
        f"{person.author_name} ({person.author_id}) may talk to it now and is its admin. Start it with `remora serve`."
    )


@main.command()
@_CONFIG
def check(config_path: Path | None) -> None:
    """Check config.yaml and the agents' files, listing every mistake at once."""
    config = _loaded(config_path)
    where = config.source or "no config.yaml found: all defaults"
    click.echo(f"Configuration is fine ({where}).")
    click.echo(f"  data in {config.data_dir}")
    for bot in config.settings.channels.telegram:
        click.echo(f"  channel {bot.id}: Telegram")
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
        _fail(str(exc), _storage_code(exc))
    except ChannelError as exc:
        _fail(f"{exc} The same command goes on from where this one stopped.", EX_SOFTWARE)


async def _chat(config: Config, person: str, once: str | None) -> None:
    # Imported here: `remora check` needs none of it, and starts in half the time.
    from channels.console import ConsoleChannel
    from gateway import app

    _log(config)
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
    await _talk(config, channel)


async def _talk(config: Config, channel: ConsoleChannel) -> None:
    from gateway import app

    async with app.running(config, {channel.id: channel}) as router:
        await router.settled(channel.place)
        await channel.run(router)


async def _served(config: Config) -> int:
    from gateway import app, policy
    from gateway import serve as serving

    _log(config)
    stop = asyncio.Event()
    with serving.signals(stop):
        return await serving.serve(
            config,
            app.channels(config),
            stop=stop,
            say=partial(click.echo, err=True),
            warnings=policy.warnings(app.rules(config)),
        )


def _config_to_write(config_path: Path | None, home: Path) -> Path:
    """The config.yaml to change: the one in use, or a new one where data already lies when there is none."""
    if config_path is not None:
        return config_path.expanduser().absolute()
    try:
        found = find(None, os.environ, Path.cwd(), home)
    except ConfigError as exc:
        _fail(str(exc), EX_CONFIG)
    return (found or home / ".config" / "remora" / CONFIG_NAME).absolute()


def _configured(file: Path, channel: str, name: str, home: Path) -> TelegramSettings | None:
    """The bot with this id, where it and its token are there already. A token that is not set yet is no mistake."""
    if not file.exists():
        return None
    try:
        config = load(file, os.environ, home)
    except ConfigError:
        try:
            load(file, {name: f"12345:{'x' * 35}", **os.environ}, home)
        except ConfigError as exc:
            _fail(f"{exc}\nCorrect this first; nothing was changed.", EX_CONFIG)
        return None
    return next((bot for bot in config.settings.channels.telegram if bot.id == channel), None)


def _asked_token() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline(1000)
    click.echo("Make a bot: write /newbot to https://t.me/BotFather on Telegram, and copy the token it gives you.")
    return str(click.prompt("Token (not shown)", hide_input=True))


def _check_token(token: str, bot: TelegramSettings | None, channel: str, name: str) -> None:
    if not TELEGRAM_TOKEN.fullmatch(token):
        _fail(
            "This is no token of a bot: digits, a colon and 35 more characters. Copy it whole from @BotFather.",
            EX_DATAERR,
        )
    number = token.partition(":")[0]
    if bot is not None and bot.token.get_secret_value().partition(":")[0] != number:
        _fail(
            f"The channel {channel} is another bot already. Take it out of config.yaml first, or give this one a "
            f"name of its own with --id {channel}-2.",
            EX_CONFIG,
        )
    if os.environ.get(name, token) != token:
        _fail(
            f"The environment variable {name} holds another token and would win over .env: unset it first.", EX_CONFIG
        )


async def _probed(token: str, base_url: str) -> BotFacts:
    from channels.telegram import probe

    return await probe(token, base_url)


def _privacy_mode(facts: BotFacts) -> tuple[str, str]:
    if facts.reads_all_group_messages:
        return (
            "Its privacy mode is off: in groups Telegram shows it every message.",
            "It answers what is meant for it and keeps nothing of the rest. /setprivacy at @BotFather changes it.",
        )
    return (
        "Its privacy mode is on: in groups it sees commands, mentions of it and replies to it, and nothing else.",
        "That is enough to talk with it. /setprivacy at @BotFather changes it; then add it to its groups anew.",
    )


async def _paired(config: Config, channel: str, username: str) -> Inbound | None:
    from gateway import app, policy, setup

    _log(config)
    bot: Channel = app.channels(config)[channel]
    code = policy.new_code(secrets.choice)
    minutes = setup.PAIRING_SECONDS / 60
    click.echo("\nNow say who you are. Open this on the phone or computer where you use Telegram, and press Start:")
    click.echo(f"  https://t.me/{username}?start={code.replace('-', '')}")
    click.echo(f"or send this code to @{username}: {code}")
    click.echo(f"Waiting {minutes:g} minutes; Ctrl-C leaves ...")
    return await setup.pair(
        bot,
        code=code,
        language=config.agents[config.default_agent].language,
        say=partial(click.echo, err=True),
    )


async def _replay(config: Config, recorded: Recording, record_only: bool) -> None:
    from gateway import app
    from gateway import replay as replaying

    _log(config)
    began = time.monotonic()
    clock = replaying.RecordedTime(recorded.lines[0].time)
    channels = {name: replaying.ReplayChannel(name) for name in recorded.channels}
    async with app.opened(config, channels, now=clock) as parts:
        setup = app.replaying(config, parts)
        with _progress(len(recorded.lines)) as advance:
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


def _log(config: Config) -> None:
    """Set the logs up as configured; from here on also a crash is redacted."""
    from gateway import telemetry
    from memory.learn.redact import redact

    log = config.settings.log
    try:
        telemetry.configure(level=log.level, format=log.format, file=config.log_file, redact=redact)
    except telemetry.LogFileError as exc:
        _fail(str(exc), EX_CANTCREAT)
    telemetry.log_crashes()


def _storage_code(error: StorageError) -> int:
    codes = {
        StoreInUse: EX_TEMPFAIL,
        StoreBusy: EX_TEMPFAIL,
        StoreUnwritable: EX_CANTCREAT,
        StoreDamaged: EX_DATAERR,
    }
    return codes.get(type(error), EX_SOFTWARE)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
