"""Offers to import another assistant's notes: MEMORY.md and daily notes beside an agent's file, or where one is.

Invariants: nothing is read here. At a terminal the first start asks once; elsewhere the operator imports with
`remora import`, which shows the notes first.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.config.loading import Config

_MEMORY: Final = ("MEMORY.md", "USER.md")
#: The folder of daily notes beside these files.
_DAYS: Final = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The notes in `folder`: the names of the files with memories, and the number of daily notes."""

    folder: Path
    agent: str
    files: tuple[str, ...]
    days: int

    @property
    def named(self) -> str:
        days = [f"{self.days} daily note{'s'[: self.days > 1]}"] if self.days else []
        return f"{' and '.join([*self.files, *days])} in {self.folder}"

    @property
    def paths(self) -> list[Path]:
        """The files to import, not the whole folder, in which other agents' notes may lie."""
        return [self.folder / name for name in (*self.files, *([_DAYS] if self.days else []))]


def found(config: Config, here: Path | None = None) -> Iterator[Notes]:
    """Yields the notes beside the default agent's file, in folders there named after an agent, and `here`."""
    folders = {name: config.agents_dir / name for name in config.agents}
    places = [(config.default_agent, config.agents_dir), *folders.items()]
    if here is not None and all(here != folder for _, folder in places):
        places.append((config.default_agent, here))
    for name, folder in places:
        files = tuple(file for file in _MEMORY if (folder / file).is_file())
        days = _days(folder / _DAYS)
        if files or days:
            yield Notes(folder=folder, agent=name, files=files, days=days)


def at_first_start(config: Config, here: Path) -> list[Notes]:
    """Returns the notes for agents that have no database yet, so that every start but the first is quiet.

    Nothing is offered where the database is on a server: whether this is the first start can't be seen from here.
    """
    from gateway.config.loading import DEFAULT_DATABASE

    if config.settings.database_url.get_secret_value():
        return []
    return [
        notes
        for notes in found(config, here)
        if not (config.data_dir / (config.agents[notes.agent].database or DEFAULT_DATABASE)).exists()
    ]


def offer(config: Config, notes: Notes) -> str:
    agent = [] if notes.agent == config.default_agent else ["--agent", notes.agent]
    commands = [["remora", "import", str(path), "--person", _admin(config), *agent] for path in notes.paths]
    return f"{notes.named} can become memories. To look at them first: {' && '.join(map(shlex.join, commands))}"


def _days(folder: Path) -> int:
    try:
        names = [file.name for file in folder.iterdir() if file.suffix == ".md"]
    except OSError:
        return 0
    if not names:
        return 0
    # Imported here: few have such notes, and importing the reader loads half of the memory package.
    from memory.transfer.formats import markdown

    return sum(markdown.day_of(name) is not None for name in names)


def _admin(config: Config) -> str:
    """Returns the first admin as `platform:id`: notes of the operator's own assistant are mostly about them."""
    admins = (f"{bot.platform}:{admin}" for bot in config.settings.channels.bots for admin in bot.admins)
    return next(admins, "console:you")
