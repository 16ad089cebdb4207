"""The command line. Each command reads the configuration, does its work and ends with a code that says how it went."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, TypeAlias

import click

from agents.spec import AGENT_NAME
from channels.base import ChannelError, Inbound
from gateway.config import CONFIG_NAME, EX_CONFIG, Config, ConfigError, find, load
from gateway.settings import DISCORD_TOKEN, TELEGRAM_TOKEN, BotSettings, DiscordSettings, discord_number
from memory.errors import MemoryFault, StorageError, StoreBusy, StoreDamaged, StoreInUse, StoreUnwritable

if TYPE_CHECKING:
    from channels.base import Channel
    from channels.console import ConsoleChannel
    from gateway.importing import Wanted
    from gateway.recording import Recording
    from gateway.setup import Platform
    from memory.transferring import Owner

# `remora status`, as the exit codes of service scripts have it: 0 well, 1 in trouble, 3 not running.
EX_RED = 1
EX_NOT_RUNNING = 3
# As in BSD's sysexits.h.
EX_DATAERR = 65
EX_NOINPUT = 66
EX_SOFTWARE = 70
EX_CANTCREAT = 73
EX_TEMPFAIL = 75

#: What is said to whoever is to send a pairing code, line by line.
_Pairing: TypeAlias = Callable[[str], tuple[str, ...]]

_GO_ON = (
    "The bot is configured, but knows nobody yet: the same command waits for the code again, or write your numeric "
    "user id into allow and admins, at the bot in config.yaml."
)
_BY_HAND = "Nobody may talk to it yet: write your numeric user id into allow and admins, at the bot in config.yaml"
_SERVERS = (
    "In servers it answers where you let it: write /allow here in a channel, or put the server's id into servers, at "
    "the bot in config.yaml."
)
_WHERE_A_TOKEN_IS: Mapping[Platform, tuple[str, ...]] = {
    "telegram": ("Make a bot: write /newbot to https://t.me/BotFather on Telegram, and copy the token it gives you.",),
    "discord": (
        "Make a bot at https://discord.com/developers/applications: New Application, then its Bot page. There switch",
        "Message Content Intent on, save, press Reset Token and copy the token it shows.",
    ),
}
#: Tokens that look right, to read a configuration with whose token is not set yet.
_SAMPLES: Mapping[Platform, str] = {"telegram": f"12345:{'x' * 35}", "discord": f"{'x' * 24}.{'x' * 6}.{'x' * 38}"}

_CONFIG = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Where config.yaml is (else $REMORA_CONFIG, …).",
)


_TOKEN = click.option("--token", help="The bot's token; else it is asked for, or read from a pipe.")
_NO_PAIR = click.option(
    "--no-pair", is_flag=True, help="Don't wait for the first person: allow and admins stay as they are."
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
    if not config.settings.channels.bots:
        _fail(
            "There is no chat platform to serve. `remora channels add telegram` sets a bot up in two minutes, "
            "`remora channels add discord` in five; `remora chat` needs none.",
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
    for bot in config.settings.channels.bots:
        places = f"{len(bot.groups)} groups"
        if isinstance(bot, DiscordSettings):
            places = f"{len(bot.servers)} servers, {len(bot.groups)} single channels"
        click.echo(
            f"{bot.id}: {bot.platform.capitalize()}, bot {bot.number}; {len({*bot.allow, *bot.admins})} people, "
            f"{len(bot.admins)} of them admins; {places}"
        )
    for warning in policy.warnings(app.rules(config)):
        click.echo(f"Warning: {warning}", err=True)


@channels.group("add")
def add_channel() -> None:
    """Set a chat platform up."""


@add_channel.command("telegram")
@_CONFIG
@_TOKEN
@click.option("--id", "channel", default="telegram", show_default=True, help="The channel's name; one for each bot.")
@_NO_PAIR
@click.option("--base-url", help="A Bot API server of your own.", hidden=True)
def add_telegram(
    config_path: Path | None, token: str | None, channel: str, no_pair: bool, base_url: str | None
) -> None:
    """Set a Telegram bot up: test its token, write it into .env and config.yaml, let the first person in."""
    _add("telegram", config_path, token=token, channel=channel, no_pair=no_pair, base_url=base_url)


@add_channel.command("discord")
@_CONFIG
@_TOKEN
@click.option("--id", "channel", default="discord", show_default=True, help="The channel's name; one for each bot.")
@_NO_PAIR
@click.option("--base-url", help="Another address of Discord's API.", hidden=True)
def add_discord(config_path: Path | None, token: str | None, channel: str, no_pair: bool, base_url: str | None) -> None:
    """Set a Discord bot up: test its token, write it into .env and config.yaml, let the first person in."""
    _add("discord", config_path, token=token, channel=channel, no_pair=no_pair, base_url=base_url)


@main.command()
@_CONFIG
def check(config_path: Path | None) -> None:
    """Check config.yaml and the agents' files, listing every mistake at once."""
    config = _loaded(config_path)
    where = config.source or "no config.yaml found: all defaults"
    click.echo(f"Configuration is fine ({where}).")
    click.echo(f"  data in {config.data_dir}")
    for bot in config.settings.channels.bots:
        click.echo(f"  channel {bot.id}: {bot.platform.capitalize()}")
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


@main.command()
@_CONFIG
@click.option(
    "--to", type=click.Path(path_type=Path), metavar="FILE", help="Another file (.db) or folder; nothing is dropped."
)
@click.option("--store", metavar="NAME", help="Only this database, such as remora.db.")
def backup(config_path: Path | None, to: Path | None, store: str | None) -> None:
    """Copy the databases, beside a running bot or without one, check the copies, drop old ones."""
    from gateway import app
    from gateway import backup as backing

    stores = backing.Stores.of(_loaded(config_path), app.DEFAULT_DATABASE)
    with _copying("Nothing was left behind."):
        asyncio.run(backing.make(stores, name=store, to=to, now=app.now, say=click.echo, progress=_copied))


@main.command()
@_CONFIG
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--store", metavar="NAME", help="The database to replace, where the file's name does not tell it.")
@click.option("--discard", is_flag=True, help="Don't keep the database that is replaced.")
def restore(config_path: Path | None, file: Path, store: str | None, discard: bool) -> None:
    """Put a backup in the place of a database, and erase in it what was forgotten since. Stop the bot first."""
    from gateway import app
    from gateway import backup as backing

    config = _loaded(config_path)
    stores = backing.Stores.of(config, app.DEFAULT_DATABASE)
    with _copying("The database is as it was, unless it says above that the backup is in its place."):
        asyncio.run(
            backing.restore(
                file.absolute(),
                stores.target(file, store),
                keep=not discard,
                keep_days=stores.retention.keep_days,
                now=app.now(),
                say=click.echo,
                progress=_copied,
            )
        )


@contextmanager
def _copying(left: str) -> Iterator[None]:
    """Say what has gone wrong with copies of databases, and what is `left` after Ctrl-C; end with its code."""
    from gateway.backup import NoSuchStore

    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nStopped. {left}", err=True)
        sys.exit(130)
    except NoSuchStore as exc:
        _fail(str(exc), EX_NOINPUT)
    except StorageError as exc:
        _fail(str(exc), _storage_code(exc))


def _copied(done: int, of: int) -> None:
    """How far a copy is, where somebody watches."""
    if sys.stderr.isatty():
        click.echo(f"\r{100 * done // max(of, 1):3} % of {of / 1e6:.0f} MB", nl=done >= of, err=True)


_PERSON = click.option("--person", metavar="PLATFORM:USER", help="A person, as telegram:123456.")
_CHAT = click.option("--chat", metavar="CHANNEL:CHAT", help="A group, as telegram:-1001234567890.")
_AGENT_WIDE = click.option("--agent-wide", is_flag=True, help="Everybody who talks with the agent.")
_AGENT = click.option("--agent", metavar="NAME", help="The agent, and so the store; else the default one.")


@main.command("import")
@_CONFIG
@click.argument("what", nargs=-1, required=True, metavar="PATH | list | undo ID")
@_PERSON
@_CHAT
@_AGENT_WIDE
@_AGENT
@click.option("--talk", "talks", multiple=True, metavar="ID", help="A chat of a Telegram export; may be repeated.")
@click.option("--me", metavar="USER", help="The owner's user id in the export, where it is another one.")
@click.option("--learn/--no-learn", default=None, help="Read people's own words for memories (a person's: yes).")
@click.option("--dry-run", is_flag=True, help="Show what would come of it, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def import_(
    *,
    config_path: Path | None,
    what: tuple[str, ...],
    person: str | None,
    chat: str | None,
    agent_wide: bool,
    agent: str | None,
    talks: tuple[str, ...],
    me: str | None,
    learn: bool | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Bring memory in: notes of other assistants, Telegram exports, our own; show or undo what was brought in."""
    from gateway import importing

    config = _loaded(config_path)
    with _transferring():
        owner = importing.owner_of(config, person=person, chat=chat, agent_wide=agent_wide, agent=agent)
        if what[0] == "undo" and len(what) == 2:
            asyncio.run(_undo_import(config, what[1]))
        elif what == ("list",):
            asyncio.run(_list_imports(config))
        elif len(what) > 1:
            _fail("Name one file or folder, or say `list` or `undo ID`.", click.UsageError.exit_code)
        elif owner is None:
            asyncio.run(_name_owners(config, agent or config.default_agent))
        else:
            wanted = importing.Wanted(
                path=Path(what[0]),
                owner=owner,
                learn=owner.kind == "person" if learn is None else learn,
                talks=talks,
                me=me,
            )
            asyncio.run(_bring_in(config, wanted, dry_run=dry_run, yes=yes))


@main.command()
@_CONFIG
@_PERSON
@_CHAT
@_AGENT_WIDE
@_AGENT
@click.option(
    "--to", "folder", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Where the files go."
)
@click.option("--transcript", is_flag=True, help="With all that was said, not only what was learned from.")
def export(
    *,
    config_path: Path | None,
    person: str | None,
    chat: str | None,
    agent_wide: bool,
    agent: str | None,
    folder: Path,
    transcript: bool,
) -> None:
    """Write all that is remembered of a person or a group into files: one for another Remora, one to read."""
    from gateway import importing

    config = _loaded(config_path)
    with _transferring():
        owner = importing.owner_of(config, person=person, chat=chat, agent_wide=agent_wide, agent=agent)
        if owner is None:
            asyncio.run(_name_owners(config, agent or config.default_agent))
        else:
            asyncio.run(_export(config, owner, folder, transcript=transcript))


@contextmanager
def _transferring() -> Iterator[None]:
    """Says what went wrong with an import or export, and ends with its code."""
    from gateway.importing import Unusable

    try:
        yield
    except KeyboardInterrupt:
        click.echo("Stopped. What is done stays; the same command goes on from here.", err=True)
        sys.exit(130)
    except Unusable as exc:
        _fail(str(exc), EX_DATAERR)
    except StorageError as exc:
        _fail(str(exc), _storage_code(exc))
    except MemoryFault as exc:
        _fail(str(exc), EX_DATAERR)
    except OSError as exc:
        _fail(f"Can't write {exc.filename}: {exc.strerror}. Fix the rights of the folder.", EX_CANTCREAT)


async def _bring_in(config: Config, wanted: Wanted, *, dry_run: bool, yes: bool) -> None:
    from gateway import app, importing
    from memory.learn.guard import clean
    from memory.learn.redact import redact

    _log(config)
    found = importing.gather(config, wanted, mask=lambda text: redact(clean(text)))
    async with app.opened(config, {}) as parts:
        transfer = parts.stores[wanted.owner.agent].memory.transfer
        preview = await transfer.preview(wanted.owner, found.material, digest=found.digest)
        click.echo(importing.told(preview, wanted.owner))
        for advice in found.advice:
            click.echo(f"\n{advice}")
        if dry_run or not preview.counts.memories + preview.counts.messages:
            click.echo("Nothing was changed.")
            return
        if not yes:
            if not sys.stdin.isatty():
                _fail("Nothing was brought in: nobody can be asked here, so add --yes.", click.UsageError.exit_code)
            click.confirm("Bring it in?", default=False, abort=True)
        with _progress(len(found.material.items) + len(found.material.lines), "Bringing in", "entries") as advance:
            brought = await transfer.bring(
                wanted.owner,
                found.material,
                session_key=importing.session_key(config, wanted.owner, found.channel),
                learn=wanted.learn,
                digest=found.digest,
                progress=advance,
            )
        click.echo(importing.done(brought))


async def _undo_import(config: Config, short_id: str) -> None:
    from gateway import app, importing

    _log(config)
    async with app.opened(config, {}) as parts:
        transfer = await importing.find_import((store.memory.transfer for store in parts.stores.values()), short_id)
        counts = next(one.counts for one in await transfer.imports() if one.short_id == short_id)
        with _progress(counts.memories + counts.messages, "Taking out", "entries") as advance:
            one = await transfer.undo(short_id, progress=advance)
    click.echo(f"{one.short_id} is undone: what it brought in is erased, and what it had replaced holds again.")


async def _list_imports(config: Config) -> None:
    from gateway import app, importing

    _log(config)
    async with app.opened(config, {}) as parts:
        stores = {id(store.memory): store.memory for store in parts.stores.values()}
        click.echo(importing.listed([one for memory in stores.values() for one in await memory.transfer.imports()]))


async def _name_owners(config: Config, agent: str) -> None:
    from gateway import app, importing

    _log(config)
    async with app.opened(config, {}) as parts:
        _fail(importing.nobody(await parts.stores[agent].memory.transfer.known()), click.UsageError.exit_code)


async def _export(config: Config, owner: Owner, folder: Path, *, transcript: bool) -> None:
    from gateway import app, importing

    _log(config)
    async with app.opened(config, {}) as parts:
        exported = await parts.stores[owner.agent].memory.transfer.export_of(owner, transcript=transcript)
    data, page = importing.write(exported, owner, folder, now=app.now())
    click.echo(f"{exported.memories} memories and {exported.messages} messages are in {data}; read them in {page}.")


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
        files=config.data_dir / "exports",
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


def _add(
    platform: Platform,
    config_path: Path | None,
    *,
    token: str | None,
    channel: str,
    no_pair: bool,
    base_url: str | None,
) -> None:
    """`remora channels add`, for any platform."""
    from gateway import setup

    if not re.match(AGENT_NAME, channel) or channel == "console":
        _fail("--id must be a name of small letters, digits, - and _, and not console.", click.UsageError.exit_code)
    home = Path.home()
    file = _config_to_write(config_path, home)
    name = setup.variable(channel)
    bot, known = _configured(file, platform, channel, name, home)
    base_url = base_url or (bot.base_url if bot is not None else setup.URLS[platform])
    token = (token or known or _asked_token(platform)).strip()
    _check_token(platform, token, bot if known is not None else None, channel, name)
    left = f"Nothing was changed in {file}."

    def check_file(new: Path) -> None:
        try:
            load(new, os.environ, home)
        except ConfigError as exc:
            raise ConfigError(replace(p, file=file if p.file == new else p.file) for p in exc.problems) from exc

    try:
        pairing = _MEET[platform](token, base_url)
        setup.keep_token(file.parent / ".env", name, token)
        left = f"The token is in {file.parent / '.env'} as {name}; nothing was changed in {file}."
        setup.add_bot(file, platform=platform, channel=channel, name=name, base_url=base_url, check=check_file)
        click.echo(f"Its token is in {file.parent / '.env'} as {name}, its entry in {file}.")
        left = _GO_ON
        config = load(file, os.environ, home)
        entry = next(one for one in config.settings.channels.bots if one.id == channel)
        if no_pair or entry.admins:
            people = f"{len({*entry.allow, *entry.admins})} people may talk to it"
            click.echo(f"{people if entry.allow or entry.admins else _BY_HAND}. Start it with `remora serve`.")
            return
        person = asyncio.run(_paired(config, channel, pairing))
        if person is None:
            _fail(f"Nobody sent the code in time. {_GO_ON}", EX_TEMPFAIL)
        setup.let_in(file, platform=platform, channel=channel, person=person.author_id, check=check_file)
        click.echo(f"{_shown(person.author_name)} ({person.author_id}) may talk to it now and is its admin.")
        left = f"The bot and its admin stay in {file}, only its servers are missing. Start it with `remora serve`."
        if platform == "discord":
            servers = _chosen_servers(token, base_url)
            if servers:
                setup.answer_in(file, channel=channel, servers=servers, check=check_file)
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"\nStopped. {left}", err=True)
        sys.exit(130)
    except ConfigError as exc:
        _fail(f"{exc}\n{left}", EX_CONFIG)
    except ChannelError as exc:
        _fail(f"{exc} {left}", EX_TEMPFAIL if exc.retryable else EX_CONFIG)
    except OSError as exc:
        _fail(f"Can't write {exc.filename}: {exc.strerror}. Fix the rights of the file and its folder.", EX_CANTCREAT)
    click.echo("Start it with `remora serve`.")


def _config_to_write(config_path: Path | None, home: Path) -> Path:
    """The config.yaml to change: the one in use, or a new one where data already lies when there is none."""
    if config_path is not None:
        return config_path.expanduser().absolute()
    try:
        found = find(None, os.environ, Path.cwd(), home)
    except ConfigError as exc:
        _fail(str(exc), EX_CONFIG)
    return (found or home / ".config" / "remora" / CONFIG_NAME).absolute()


def _configured(
    file: Path, platform: Platform, channel: str, name: str, home: Path
) -> tuple[BotSettings | None, str | None]:
    """The bot with this id, where it is there already, and its token. A token that is not set yet is no mistake."""
    if not file.exists():
        return None, None
    unset = False
    try:
        config = load(file, os.environ, home)
    except ConfigError:
        try:
            config = load(file, {name: _SAMPLES[platform], **os.environ}, home)
        except ConfigError as exc:
            _fail(f"{exc}\nCorrect this first; nothing was changed.", EX_CONFIG)
        unset = True
    bot = next((one for one in config.settings.channels.bots if one.id == channel), None)
    if bot is None:
        return None, None
    if bot.platform != platform:
        _fail(
            f"The channel {channel} is a bot on {bot.platform.capitalize()} already. Give this one a name of its own "
            f"with --id {channel}-2.",
            EX_CONFIG,
        )
    return bot, None if unset else bot.token.get_secret_value()


def _asked_token(platform: Platform) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline(1000)
    for line in _WHERE_A_TOKEN_IS[platform]:
        click.echo(line)
    return str(click.prompt("Token (not shown)", hide_input=True))


def _check_token(platform: Platform, token: str, bot: BotSettings | None, channel: str, name: str) -> None:
    if platform == "telegram":
        fits, number = TELEGRAM_TOKEN.fullmatch(token), token.partition(":")[0]
        rule = "digits, a colon and 35 more characters. Copy it whole from @BotFather."
    else:
        fits, number = DISCORD_TOKEN.fullmatch(token), discord_number(token)
        rule = "three parts with dots between them. Copy it whole from the Bot page, where Reset Token shows a new one."
    if not fits:
        _fail(f"This is no token of a bot: {rule}", EX_DATAERR)
    if bot is not None and number and bot.number and bot.number != number:
        _fail(
            f"The channel {channel} is another bot already. Take it out of config.yaml first, or give this one a "
            f"name of its own with --id {channel}-2.",
            EX_CONFIG,
        )
    if os.environ.get(name, token) != token:
        _fail(
            f"The environment variable {name} holds another token and would win over .env: unset it first.", EX_CONFIG
        )


def _meet_telegram(token: str, base_url: str) -> _Pairing:
    """Say whom the token belongs to, and what its owner should know. Raises `ChannelError`."""
    from channels.telegram import probe

    facts = asyncio.run(probe(token, base_url))
    click.echo(f"This is @{facts.username} ({facts.name}).")
    if facts.reads_all_group_messages:
        click.echo("Its privacy mode is off: in groups Telegram shows it every message.")
        click.echo(
            "It answers what is meant for it and keeps nothing of the rest. /setprivacy at @BotFather changes it."
        )
    else:
        click.echo(
            "Its privacy mode is on: in groups it sees commands, mentions of it and replies to it, nothing else."
        )
        click.echo(
            "That is enough to talk with it. /setprivacy at @BotFather changes it; then add it to its groups anew."
        )
    return lambda code: (
        "Now say who you are. Open this on the phone or computer where you use Telegram, and press Start:",
        f"  https://t.me/{facts.username}?start={code.replace('-', '')}",
        f"or send this code to @{facts.username}: {code}",
    )


def _meet_discord(token: str, base_url: str) -> _Pairing:
    """As `_meet_telegram`; on a terminal it waits until the bot may read what is written in servers."""
    from channels.discord import probe

    facts = asyncio.run(probe(token, base_url))
    click.echo(f"This is {_shown(facts.name)} ({facts.id}).")
    while not facts.reads_messages:
        click.echo("Its Message Content Intent is off: Discord would not let it read what people write. Open", err=True)
        click.echo(f"  https://discord.com/developers/applications/{facts.application_id}/bot", err=True)
        click.echo("and there, under Privileged Gateway Intents, switch it on and save the changes.", err=True)
        if not sys.stdin.isatty():
            break
        click.prompt("Press Enter when that is done", default="", show_default=False)
        facts = asyncio.run(probe(token, base_url))
    click.echo("With this link you add it to a server of yours:")
    click.echo(f"  {facts.invite}")
    return lambda code: (
        "Now say who you are. Once it is in a server with you, click its name there and send it this code:",
        f"  {code}",
        "Only a direct message counts: in a channel of the server others could read the code.",
    )


_MEET: Mapping[Platform, Callable[[str, str], _Pairing]] = {"telegram": _meet_telegram, "discord": _meet_discord}


async def _paired(config: Config, channel: str, pairing: _Pairing) -> Inbound | None:
    from gateway import app, policy, setup

    _log(config)
    bot: Channel = app.channels(_asking(config))[channel]
    code = policy.new_code(secrets.choice)
    minutes = setup.PAIRING_SECONDS / 60
    click.echo()
    for line in pairing(code):
        click.echo(line)
    click.echo(f"Waiting {minutes:g} minutes; Ctrl-C leaves ...")
    return await setup.pair(
        bot,
        code=code,
        language=config.agents[config.default_agent].language,
        say=partial(click.echo, err=True),
    )


def _asking(config: Config) -> Config:
    """The configuration without webhooks: nothing is served over HTTP while somebody is let in."""
    channels = config.settings.channels
    bots = tuple(bot.model_copy(update={"webhook": None}) for bot in channels.telegram)
    channels = channels.model_copy(update={"telegram": bots})
    return replace(config, settings=config.settings.model_copy(update={"channels": channels}))


def _chosen_servers(token: str, base_url: str) -> list[str]:
    """The ids of the servers to answer in; who is not at a terminal, or chooses none, is told how to do it later."""
    chosen = []
    if sys.stdin.isatty():
        try:
            found = asyncio.run(_servers(token, base_url))
        except ChannelError as exc:
            click.echo(f"Its servers can't be listed now: {exc}", err=True)
            found = {}
        for server, name in found.items():
            if click.confirm(
                f"Shall it answer in all channels of {_shown(name)} ({server}) that it sees?", default=False
            ):
                chosen.append(server)
    if not chosen:
        click.echo(_SERVERS)
    return chosen


async def _servers(token: str, base_url: str) -> dict[str, str]:
    """The servers that a Discord bot is in: the name of each by its id. Raises `ChannelError`."""
    from channels.discord import servers

    return await servers(token, base_url)


def _shown(name: str) -> str:
    """A name that anybody may have chosen, with nothing in it that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


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
def _progress(length: int, label: str = "Replaying", what: str = "messages") -> Iterator[Callable[[int], None]]:
    """A bar where somebody watches, and else a line for every tenth."""
    if sys.stderr.isatty():
        with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
            yield bar.update
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        tenth, done = done * 10 // length, done + count
        if done * 10 // length > tenth:
            click.echo(f"{done} of {length} {what}", err=True)

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
