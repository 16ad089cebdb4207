"""The databases of a configuration: their files, and where their backups are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.config.loading import Config
from memory.errors import MemoryFault
from memory.transfer.backup_copy import store_of
from memory.transfer.backups import Retention


class NoSuchStore(MemoryFault):
    """No database is there, or several are and none was named; the text says which."""

    code = "no_such_store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    folder: Path
    names: tuple[str, ...]
    retention: Retention

    @classmethod
    def of(cls, config: Config, default: str) -> Stores:
        settings = config.settings.backup
        return cls(
            folder=config.data_dir,
            names=tuple(sorted({spec.database or default for spec in config.agents.values()})),
            retention=Retention(folder=settings.within(config.data_dir), keep_days=settings.keep_days),
        )

    def chosen(self, name: str | None) -> tuple[Path, ...]:
        """Returns the store called `name`, or all that are there. Raises `NoSuchStore`."""
        if name is not None:
            self._known(name)
        found = tuple(path for one in self.names if name in (None, one) and (path := self.folder / one).exists())
        if not found:
            raise NoSuchStore(f"There is no {name or 'database'} in {self.folder} yet, so there is nothing to back up.")
        return found

    def target(self, file: Path, name: str | None) -> Path:
        """Returns the store that the backup `file` belongs to. Raises `NoSuchStore`."""
        if name is not None:
            self._known(name)
            return self.folder / name
        by_name = store_of(file)
        if by_name in self.names:
            return self.folder / by_name
        if by_name is None and len(self.names) == 1:
            return self.folder / self.names[0]
        raise NoSuchStore(
            f"The name {file.name} does not say which database it is a backup of. Choose one with --store: "
            f"{', '.join(self.names)}. Take care not to mix up the memories of different agents."
        )

    def served(self, name: str | None, *, on_server: bool) -> tuple[Path, ...]:
        """Returns the store called `name`, or all that there may be. Raises `NoSuchStore`."""
        if not on_server:
            return self.chosen(name)
        if name is not None:
            self._known(name)
        return tuple(self.folder / one for one in self.names if name in (None, one))

    def _known(self, name: str) -> None:
        if name not in self.names:
            raise NoSuchStore(f"No agent has a database {name}. The databases are: {', '.join(self.names)}.")
