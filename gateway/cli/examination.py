"""Examines an installation: one finding for each thing that can be wrong with it, with the remedy.

Invariants: nothing in the installation is changed, so it may run beside the bot. Models and platforms get one real
request each, all else stays on this machine. No finding holds a key, a token or a remembered text.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from agents.spec import ModelSpec
from channels.base import ChannelError, ChannelRefused
from gateway import app, meaning
from gateway.cli import offer
from gateway.cli.start import counted
from gateway.cli.status import reading, without_names
from gateway.commands.jobs import outcome
from gateway.config.loading import DEFAULT_DATABASE, Config, misplaced
from gateway.config.settings import DiscordSettings, OtherSettings, TelegramSettings
from gateway.ops import health
from gateway.ops.databases import Stores
from gateway.ops.rights import open_to_others
from gateway.wording.texts import Texts
from memory.errors import SchemaTooNew, StorageError, StoreDamaged
from memory.jobs.runner import latest_in
from memory.store.server import Deployment, ServerState, Standby
from memory.transfer import backup_copy, backups

State = Literal["ok", "warning", "trouble"]

#: Bytes of free disk below which a warning is due, and below which the store may fail to write tomorrow.
_LITTLE: Final = 1_000_000_000
_NO_ROOM: Final = 200_000_000
_HOUR_MS: Final = 3_600_000
#: A daily backup older than this was missed.
_BACKUP_MS: Final = 48 * _HOUR_MS
#: The most that a standby may be behind, in seconds and in bytes.
_LAG_SECONDS: Final = 60.0
_LAG_BYTES: Final = 256_000_000
#: Seconds for the whole of the memory probe, with the start of its process.
_PROBE_SECONDS: Final = 120.0
#: The word that is planted, found and forgotten; no text holds it by chance.
_PLANTED: Final = "quibbleroot"
#: The remedies for a store that can't be read, where the error does not name one.
_REMEDIES: Final[dict[type[StorageError], str]] = {
    StoreDamaged: "Restore a backup with `remora restore`; until then, don't delete anything.",
    SchemaTooNew: "Or restore a backup that this version made, with `remora restore`.",
}
_REPORT: Final = "Please report this with the output of `remora doctor --json`."


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one thing. `fix` says what to do, and is empty if there is nothing to do."""

    about: str
    state: State
    text: str
    fix: str = ""


def status(findings: list[Diagnosis]) -> Literal["green", "yellow", "red"]:
    states = {one.state for one in findings}
    return "red" if "trouble" in states else "yellow" if "warning" in states else "green"


async def examine(
    config: Config,
    *,
    outside: bool = True,
    now: Callable[[], int] = app.now,
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> AsyncIterator[Diagnosis]:
    """Yields the findings, the quick ones first; `outside` asks models and platforms. `free` gives the free bytes."""
    yield _configuration(config)
    for sentence in [*misplaced(config, Path.cwd(), Path.home()), *without_names(config)]:
        yield Diagnosis("configuration", "warning", sentence)
    for name, spec in config.agents.items():
        if reads := reading(spec):
            yield Diagnosis(f"memory of {name}", "ok", reads)
    yield disk(config.data_dir, free(_existing(config.data_dir)))
    yield _permissions(config)
    yield await _process(config)
    for store in Stores.of(config, DEFAULT_DATABASE).names:
        async for finding in _store(config, store, now()):
            yield finding
    if outside or config.settings.embedding.provider not in ("openai", "ollama"):
        yield await _meaning(config)
    if outside:
        async for finding in _platforms(config):
            yield finding
        async for finding in _models(config):
            yield finding


def _configuration(config: Config) -> Diagnosis:
    bots = ", ".join(bot.id for bot in config.settings.channels.bots) or "no platform, the terminal alone"
    where = config.source or "no config.yaml, so all defaults apply"
    return Diagnosis("configuration", "ok", f"{where}; agents: {', '.join(config.agents)}; channels: {bots}")


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def disk(folder: Path, free: int) -> Diagnosis:
    text = f"{free / 1e9:.1f} GB free for {folder}"
    if free < _NO_ROOM:
        return Diagnosis("disk", "trouble", text, "Free some space now: what can't be written can't be remembered.")
    if free < _LITTLE:
        return Diagnosis("disk", "warning", text, "Free some space, or move data_dir to another disk.")
    return Diagnosis("disk", "ok", text)


def _permissions(config: Config) -> Diagnosis:
    for folder in (config.data_dir, config.settings.backup.within(config.data_dir)):
        try:
            with tempfile.TemporaryFile(dir=_existing(folder)) as file:
                file.write(b"?")
        except OSError as error:
            text = f"{folder} can't be written: {error.strerror}"
            fix = "Run Remora as the user who owns the folder, give it to this one with chown, or look at its disk."
            return Diagnosis("permissions", "trouble", text, fix)
    shared = [path.name for path in open_to_others(config, DEFAULT_DATABASE)]
    if shared:
        text = f"other users of this machine can read {', '.join(sorted(shared)[:5])}"
        return Diagnosis("permissions", "warning", text, "The next start closes them to others.")
    return Diagnosis("permissions", "ok", "databases, backups and keys are this user's alone")


async def _process(config: Config) -> Diagnosis:
    page = config.settings.http
    if not page.enabled:
        text = "http.enabled is false, so the running bot can't be asked"
        return Diagnosis("process", "warning", text, "Write http: {enabled: true} into config.yaml.")
    found = await asyncio.to_thread(health.ask, page.host, page.port)
    if found is None:
        text = f"no Remora answers at {health.address(page.host, page.port)}"
        return Diagnosis("process", "warning", text, "Start it with `remora serve`.")
    reasons = [str(reason) for reason in found.get("reasons", ())]
    reasons += [one["words_only"] for one in found["stores"] if one.get("words_only")]
    if found["status"] != "green":
        fix = "`remora status` shows more, and the log says what happened."
        return Diagnosis("process", "trouble", " ".join(reasons), fix)
    if reasons:
        return Diagnosis("process", "warning", " ".join(reasons))
    return Diagnosis("process", "ok", f"version {found['version']} runs and is well")


async def _store(config: Config, name: str, now: int) -> AsyncIterator[Diagnosis]:
    path, address = config.data_dir / name, config.settings.database_url.get_secret_value()
    if not (address or path.exists()):
        yield Diagnosis(name, "ok", "not made yet; the first message makes it")
        return
    try:
        held = None if address else await backups.examine(path)
        runs = await latest_in(path, address)
    except StorageError as error:
        yield Diagnosis(name, "trouble", str(error), _REMEDIES.get(type(error), ""))
        return
    newest = None
    if held is None:
        async for finding in _deployment(config, name, path):
            yield finding
        yield await _second_wall(name, path, address)
    else:
        rows = counted(**{table: held.rows[table] for table in ("people", "messages", "memories")})
        yield Diagnosis(name, "ok", f"sound, {rows}")
        newest = backup_copy.newest(path, config.settings.backup.within(config.data_dir))
    last = max([newest or 0, *(one.run.started_at for one in runs)])
    if last > now + _HOUR_MS:
        text = f"the clock is {(last - now) / _HOUR_MS:.0f} hours behind the newest backup or job"
        fix = "Set this machine's clock; reminders and nightly jobs follow it."
        yield Diagnosis(f"{name}: clock", "trouble", text, fix)
    if held is not None:
        yield _backup(config, name, newest, now)
    failed = [one for one in runs if one.run.state == "failed"]
    for one in failed:
        zone = config.agents[one.run.agent].timezone if one.run.agent in config.agents else "UTC"
        told = f"{one.run.job} of {one.run.agent}: {outcome(Texts('en', zone), one)}"
        yield Diagnosis(f"{name}: jobs", "warning", told)
    if not failed:
        yield Diagnosis(f"{name}: jobs", "ok", "none has failed" if runs else "none has run yet")


async def _deployment(config: Config, name: str, path: Path) -> AsyncIterator[Diagnosis]:
    from memory.store.postgres import database
    from memory.store.postgres.database import CONNECTIONS, look

    address = config.settings.database_url.get_secret_value()
    found = await look(address, path, database.deployment)
    if found is None or found.server is None:
        yield Diagnosis(name, "ok", "the PostgreSQL server answers; the store is not made yet")
        return
    server = found.server
    yield Diagnosis(name, "ok", f"{found.engine} answers, with pgvector {server.vectors}")
    yield processes(name, found)
    stores = len(Stores.of(config, DEFAULT_DATABASE).names)
    yield connections(name, server, processes=len(found.answering), each=CONNECTIONS * stores)
    yield durability(name, server, asked_for=config.settings.durability == "power-loss")
    for standby in server.standbys:
        yield following(name, standby)


def processes(name: str, found: Deployment) -> Diagnosis:
    each = [f"{its.id} ({', '.join([f'{its.lanes} sessions', *its.duties])})" for its in found.answering]
    text = f"{len(each)} running: {', '.join(each)}" if each else "none is running"
    return Diagnosis(f"{name}: processes", "ok", text)


def connections(name: str, server: ServerState, *, processes: int, each: int) -> Diagnosis:
    about, needed = f"{name}: connections", each * (processes + 1)
    text = f"{processes} processes and one more to replace another need {needed}, {server.most_connections} are allowed"
    if each * processes > server.most_connections:
        return Diagnosis(about, "trouble", text, "Raise max_connections of the server, or run fewer processes.")
    if needed > server.most_connections:
        fix = f"Raise max_connections of the server, or the limit of the role or database, to {needed} and more."
        return Diagnosis(about, "warning", text, fix)
    return Diagnosis(about, "ok", text)


def durability(name: str, server: ServerState, *, asked_for: bool) -> Diagnosis:
    """Judges whether commits outlast a crash of the server; `asked_for` means that `durability` is power-loss."""
    about = f"{name}: durability"
    if not server.fsync:
        text = "fsync is off, so a crash of the server's machine can destroy the whole database"
        return Diagnosis(about, "trouble", text, "Write fsync = on into postgresql.conf and reload the server.")
    if not (server.synchronous_commit or asked_for):
        text = "synchronous_commit is off, so a crash of the server can lose what was said in the last second"
        fix = "Set it to on for the role (`alter role … set synchronous_commit = on`), or durability: power-loss here."
        return Diagnosis(about, "warning", text, fix)
    return Diagnosis(about, "ok", "fsync and synchronous_commit are on")


def following(name: str, standby: Standby) -> Diagnosis:
    about, text = f"{name}: standby {standby.name}", health.lag(asdict(standby))
    if standby.lag_bytes is None:
        return Diagnosis(about, "warning", text, "Let an administrator run `grant pg_monitor to` that role.")
    if standby.state != "streaming" or (standby.lag_seconds or 0) > _LAG_SECONDS or standby.lag_bytes > _LAG_BYTES:
        fix = "Look at that server and the network. If this server is lost, so is what the standby has not received."
        return Diagnosis(about, "warning", text, fix)
    return Diagnosis(about, "ok", text)


async def _second_wall(name: str, path: Path, address: str) -> Diagnosis:
    from memory.store.postgres import database as postgres  # an extra, which answers here

    about = f"{name}: second wall"
    if await postgres.is_walled(address, path):
        return Diagnosis(about, "ok", "row-level security holds")
    return Diagnosis(about, "warning", postgres.BYPASSED, postgres.ORDINARY_ROLE)


def _backup(config: Config, name: str, newest: int | None, now: int) -> Diagnosis:
    about = f"{name}: backups"
    if newest is None:
        fix = "`remora backup` makes one now; the nightly jobs make one a day."
        return Diagnosis(about, "warning", "none yet", fix)
    hours = max(0, now - newest) // _HOUR_MS
    if config.settings.backup.daily and now - newest > _BACKUP_MS:
        fix = "Look at `remora jobs list`, and make one with `remora backup`."
        return Diagnosis(about, "warning", f"the newest is {hours // 24} days old", fix)
    return Diagnosis(about, "ok", f"the newest is {hours} hours old")


async def _meaning(config: Config) -> Diagnosis:
    settings = config.settings
    if settings.embedding.provider == "none":
        return Diagnosis("search by meaning", "ok", "switched off, so words alone find memories")
    if why := await meaning.without_meaning(settings.embedding):
        return Diagnosis("search by meaning", "warning", why, "Until then words alone find memories.")
    return Diagnosis("search by meaning", "ok", f"the model answers ({settings.embedding.provider})")


async def _platforms(config: Config) -> AsyncIterator[Diagnosis]:
    for bot in config.settings.channels.bots:
        about = f"channel {bot.id}"
        if isinstance(bot, OtherSettings):
            continue  # only its own channel knows how to ask for it
        try:
            name = await _met(bot)
        except ChannelError as error:
            fix = (
                f"Check the token of {bot.id}; `remora channels add {bot.platform}` takes a new one."
                if isinstance(error, ChannelRefused)
                else f"Check this machine's network, and base_url and proxy of {bot.id}."
            )
            yield Diagnosis(about, "trouble", str(error), fix)
        else:
            yield Diagnosis(about, "ok", f"{bot.platform.capitalize()} knows it as {name}")


async def _met(bot: TelegramSettings | DiscordSettings) -> str:
    """Returns the name of a bot as its platform tells it. Raises `ChannelError`."""
    token = bot.token.get_secret_value()
    if bot.platform == "telegram":
        from channels import telegram

        return f"@{(await telegram.probe(token, bot.base_url, proxy=bot.own_proxy)).username}"
    from channels import discord

    return (await discord.probe(token, bot.base_url, proxy=bot.own_proxy)).name


async def _models(config: Config) -> AsyncIterator[Diagnosis]:
    """Yields a finding for each of the agents' models, after one question that needs a tool."""
    models: list[ModelSpec] = []
    for spec in config.agents.values():
        models += [model for model in (*spec.models, *spec.background.models) if model not in models]
    models = [model for model in models if model.provider != "offline"]
    for model in models:
        about = f"model {model.provider}/{model.model}"
        agents = [name for name, spec in config.agents.items() if model in (*spec.models, *spec.background.models)]
        trial = await offer.tried(model)
        if trial.trouble:
            fix = f"Look at models in the file of {', '.join(agents)}, and at the key it names."
            yield Diagnosis(about, "trouble", trial.trouble, fix)
        elif (reads := await offer.context_of(model) if model.provider == "ollama" else None) and reads < model.context:
            fix = f"Start Ollama with OLLAMA_CONTEXT_LENGTH={model.context}, or set context: {reads} for the model."
            why = f"reads {reads} tokens of a request and drops the rest without a word; context says {model.context}"
            yield Diagnosis(about, "warning", f"answers, but {why}", fix)
        else:
            yield Diagnosis(about, "ok", "answers and uses tools" if trial.calls else "answers; used no tool")
    if not models:
        yield Diagnosis("models", "ok", "no agent has one; they answer from memory alone")


async def probe() -> Diagnosis:
    """Plants a memory in a store of its own, finds it, forgets it, and looks for its bytes in every file left."""
    with tempfile.TemporaryDirectory(prefix="remora-doctor-") as folder:
        home = Path(folder)
        (home / "config.yaml").write_text("data_dir: data\nembedding: {provider: none}\nhttp: {enabled: false}\n")
        said = await _chat(home, f"I like {_PLANTED}.", "What do I like?", "/memory list", f"/forget {_PLANTED}", "yes")
        after = await _chat(home, "What do I like?")
        if isinstance(said, Diagnosis):
            return said
        if isinstance(after, Diagnosis):
            return after
        if said.count(_PLANTED) < 2:
            return Diagnosis("memory", "trouble", "a memory that was told was not found again", _REPORT)
        if _PLANTED in after:
            return Diagnosis("memory", "trouble", "a forgotten memory came back", _REPORT)
        if left := _holding(home, _PLANTED.encode()):
            return Diagnosis("memory", "trouble", f"a forgotten memory still stands in {', '.join(left)}", _REPORT)
    text = "a memory was told, found, forgotten, and left no byte behind (in a store of its own)"
    return Diagnosis("memory", "ok", text)


def _holding(folder: Path, words: bytes) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and words in path.read_bytes())


async def _chat(home: Path, *lines: str) -> str | Diagnosis:
    environment: dict[str, str] = {**os.environ, "HOME": str(home), "LANG": "en_US.UTF-8", "LC_ALL": ""}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "chat", "--config", str(home / "config.yaml")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
    )
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            out, _ = await process.communicate("".join(f"{line}\n" for line in lines).encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        text = f"a chat of {len(lines)} lines took longer than {_PROBE_SECONDS:.0f} seconds"
        return Diagnosis("memory", "trouble", text, "Look at what else this machine is doing.")
    if process.returncode:
        text = f"a chat ended with code {process.returncode}: {out.decode('utf-8', 'replace').strip()[-300:]}"
        return Diagnosis("memory", "trouble", text, _REPORT)
    return out.decode("utf-8", "replace")
