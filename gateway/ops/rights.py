"""Closes Remora's files to other users where an earlier version or another program has left them open.

New files are closed by the umask that the command line sets. Files that the operator writes (config.yaml, agents) and
folders that already existed stay as they are.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import structlog

from gateway.config.loading import Config
from gateway.ops.databases import Stores
from gateway.ops.learned import FILE

log = structlog.get_logger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def close_to_others(config: Config, default: str) -> None:
    """Removes other users' rights to Remora's files. `default` is the database of agents that don't name one."""
    for path in open_to_others(config, default):
        try:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
        except OSError as error:
            log.warning("file.open_to_others", path=str(path), error=error.strerror, fix="make Remora's user its owner")


def open_to_others(config: Config, default: str) -> list[Path]:
    found = []
    for path in _kept(config, Stores.of(config, default)):
        with suppress(OSError):  # gone since it was listed
            if path.stat().st_mode & _OTHERS:
                found.append(path)
    return found


def _kept(config: Config, stores: Stores) -> Iterator[Path]:
    within = [
        (stores.folder, [*stores.names, FILE]),
        (stores.retention.folder, [f"{Path(name).stem}-" for name in stores.names]),
        (stores.folder / "exports", [""]),
    ]
    if config.log_file is not None:
        within.append((config.log_file.parent, [config.log_file.name]))
    if config.source is not None:
        within.append((config.source.parent, [".env"]))
    for folder, beginnings in within:
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name.startswith(tuple(beginnings)) and path.is_file() and not path.is_symlink():
                yield path
