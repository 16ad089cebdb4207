"""Offers to import another assistant's notes: MEMORY.md and daily notes beside an agent's file.

Invariant: nothing is read or imported here; the operator does that with `remora import`, which shows the notes first.
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


def beside_agents(config: Config) -> Iterator[Notes]:
    folders = {name: config.agents_dir / name for name in config.agents}
    for name, folder in [(config.default_agent, config.agents_dir), *folders.items()]:
        files = tuple(file for file in _MEMORY if (folder / file).is_file())
        days = _days(folder / _DAYS)
        if files or days:
            yield Notes(folder=folder, agent=name, files=files, days=days)


def offers(config: Config, *, person: str | None = None, without: str | None = None) -> list[str]:
    """Returns a line about the notes beside each agent; `without` a database's name, only of agents that are new."""
    return [
        _offer(config, notes, person or _admin(config))
        for notes in beside_agents(config)
        if without is None or not (config.data_dir / (config.agents[notes.agent].database or without)).exists()
    ]


def _offer(config: Config, notes: Notes, person: str) -> str:
    what = [*notes.files, *([f"{notes.days} daily note{'s'[: notes.days > 1]}"] if notes.days else [])]
    agent = [] if notes.agent == config.default_agent else ["--agent", notes.agent]
    # Not the whole folder, because other agents' notes may lie in it.
    paths = [*notes.files, *([_DAYS] if notes.days else [])]
    commands = [["remora", "import", str(notes.folder / path), "--person", person, *agent] for path in paths]
    return (
        f"{' and '.join(what)} in {notes.folder} can become memories. To look at them first: "
        f"{' && '.join(map(shlex.join, commands))}"
    )


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
