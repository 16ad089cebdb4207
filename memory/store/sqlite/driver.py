"""Chooses the SQLite library: the bundled one if it is installed, else the one Python was built with.

The bundled build can load extensions; many Python builds can't. Both implement DB-API 2 with identical names, so a
driver is just that module.
"""

from __future__ import annotations

import importlib
import sqlite3
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    name: str
    module: ModuleType

    @property
    def version(self) -> tuple[int, ...]:
        version: tuple[int, ...] = self.module.sqlite_version_info
        return version

    @property
    def loads_extensions(self) -> bool:
        return hasattr(self.module.Connection, "enable_load_extension")

    def load_vectors(self, connection: sqlite3.Connection) -> str:
        """Loads sqlite-vec, and nothing else ever, into `connection`. Returns why it can't; empty on success."""
        if not self.loads_extensions:
            return f"{self} can't load sqlite-vec, which compares vectors."
        try:
            import sqlite_vec  # there is no build for some platforms

            connection.enable_load_extension(True)
            try:
                sqlite_vec.load(connection)
            finally:
                connection.enable_load_extension(False)
        except (ImportError, self.module.Error) as exc:
            return f"sqlite-vec, which compares vectors, can't be loaded: {exc}."
        return ""

    def __str__(self) -> str:
        extensions = "with" if self.loads_extensions else "without"
        return f"SQLite {'.'.join(map(str, self.version))} ({self.name}, {extensions} extensions)"


def built_in() -> Driver:
    return Driver(name="built in", module=sqlite3)


def bundled() -> Driver | None:
    """Returns the SQLite that came with Remora's packages, or None if there is no build for this platform."""
    try:
        return Driver(name="bundled", module=importlib.import_module("sqlean.dbapi2"))
    except ImportError:
        return None


def best() -> Driver:
    return bundled() or built_in()
