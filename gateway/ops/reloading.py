"""Reloads the configuration while the bot runs: by a signal, when a file changes, or because an admin says so.

Invariants: a configuration that can't be read or applied changes nothing, and the last good one stays in force. Options
that only a restart can change stay as they were and are named each time. Only names of options are told, never values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import structlog
from pydantic import BaseModel

from agents.spec import RoutingSpec
from gateway.config.loading import Config, ConfigError, voices_of
from gateway.config.settings import Settings
from memory.errors import StorageError
from memory.loops import Loops

log = structlog.get_logger(__name__)

#: Seconds between two looks at the files.
_LOOKS: Final = 5.0
#: The sections of config.yaml that can change while the bot runs, besides the agents' files.
_LIVE: Final = frozenset({"channels", "default_agent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """A reload's changed options, and those that only a restart changes; with a `problem` nothing was changed."""

    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    problem: str = ""


#: Reads the configuration anew and applies it.
Reload: TypeAlias = Callable[[], Awaitable[Reloaded]]


@dataclass(frozen=True, slots=True)
class Sources:
    """The source of a changed configuration: `read` raises `ConfigError`; setting `asked` asks for a reading now."""

    read: Callable[[], Config]
    asked: asyncio.Event


class Reloader:
    def __init__(self, config: Config, sources: Sources, apply: Callable[[Config, Config], Awaitable[None]]) -> None:
        """`apply` puts the second configuration in the place of the first. Raises `ConfigError` or `StorageError`."""
        self.config = config
        self._sources = sources
        self._apply = apply
        self._lock = asyncio.Lock()
        self._seen = self._looked = _looks(config)

    async def reload(self) -> Reloaded:
        async with self._lock:
            # Before reading, so that a file written meanwhile is seen as a change.
            self._seen = _looks(self.config)
            try:
                read = await asyncio.to_thread(self._sources.read)
                for sentence in read.retired:
                    log.warning("config.retired", option=sentence)
                config = applicable(self.config, read)
                result = Reloaded(changed=differences(self.config, config), restart=differences(config, read))
                if result.changed:
                    await self._apply(self.config, config)
            except (ConfigError, StorageError) as exc:
                log.error("config.refused", error=str(exc), effect="the last good configuration goes on")
                return Reloaded(problem=str(exc))
            self.config = config
            log.warning("config.reloaded", changed=result.changed, only_after_a_restart=result.restart)
            return result

    async def watch(self, loops: Loops, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Reloads when asked to, and when a file has changed and is no longer being written. Never ends."""
        await loops.run(
            "configuration",
            self._look,
            effect="Changes of the configuration are not taken up.",
            woken=self._sources.asked,
            sleep=sleep,
        )

    async def _look(self) -> float:
        before, self._looked = self._looked, _looks(self.config)
        if self._sources.asked.is_set() or (self._looked != self._seen and self._looked == before):
            # Cleared before reading, as more may be asked meanwhile.
            self._sources.asked.clear()
            try:
                await self.reload()
            except Exception:
                self._sources.asked.set()
                raise
        return _LOOKS


def applicable(running: Config, read: Config) -> Config:
    """Returns the part of a configuration that applies without a restart; an agent that is gone keeps answering."""
    fixed = {name: getattr(running.settings, name) for name in Settings.model_fields if name not in _LIVE}
    databases = {spec.database for spec in running.agents.values()}
    agents = {}
    for name, old in running.agents.items():
        new = read.agents.get(name)
        change = {"routing": RoutingSpec()} if new is None else {"database": old.database}
        agents[name] = (old if new is None else new).model_copy(update=change)
    agents |= {
        name: new for name, new in read.agents.items() if name not in running.agents and new.database in databases
    }
    # The default agent's database also holds who was let in.
    default = read.default_agent
    if default not in agents or agents[default].database != agents[running.default_agent].database:
        default = running.default_agent
    return replace(
        running,
        settings=read.settings.model_copy(update=fixed),
        default_agent=default,
        agents=agents,
        source=read.source,
    )


def differences(one: Config, other: Config) -> tuple[str, ...]:
    """Returns the options in which two configurations differ, as `section.option`; a bot or agent as a whole."""
    first, second = _options(one), _options(other)
    found = set()
    for name in first.keys() | second.keys():
        if name in first and name in second:
            found |= {name} if first[name] != second[name] else set()
        else:
            whole = name.rpartition(".")[0]
            there = second if name in first else first
            found.add(name if any(known.startswith(f"{whole}.") for known in there) else whole or name)
    return tuple(sorted(found))


def _options(config: Config) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for name in Settings.model_fields.keys() - _LIVE:
        value = getattr(config.settings, name)
        found |= _fields(name, value) if isinstance(value, BaseModel) else {name: value}
    for bot in config.settings.channels.bots:
        found |= _fields(f"channels.{bot.id}", bot)
    for name, spec in config.agents.items():
        found |= _fields(f"agents.{name}", spec)
    return found | {"default_agent": config.default_agent, "web.agents": config.page_agents}


def _fields(name: str, model: BaseModel) -> Mapping[str, object]:
    return {f"{name}.{field}": getattr(model, field) for field in type(model).model_fields}


def _looks(config: Config) -> Mapping[Path, tuple[int, ...]]:
    folder = config.agents_dir.parent if config.source is None else config.source.parent
    files = [config.source, folder / ".env", *sorted(config.agents_dir.glob("*.yaml"))]
    files += [file for name in config.agents for file in voices_of(config.agents_dir, name, config.default_agent)]
    found = {}
    for file in files:
        if file is not None:
            try:
                status = file.stat()
            except OSError:
                continue
            found[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
