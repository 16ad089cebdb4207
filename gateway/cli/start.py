"""Begins a command: finds and reads the configuration, and sets up the logs as it says.

Invariant: a mistake there ends the command before it has done anything, with a list of all mistakes.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import click

from memory.errors import MemoryFault, ReadTooLong, StorageError, StoreBusy, StoreDamaged, StoreInUse, StoreUnwritable

if TYPE_CHECKING:
    from gateway.config.loading import Config
    from gateway.config.settings import WorkPace
    from gateway.pipeline.store import Roster

#: The log of terminal chats, in the data folder.
_CHAT_LOG = "chat.log"
CONFIG = click.option(
    "--config", "config_path", type=click.Path(path_type=Path), help="Path of config.yaml (default: $REMORA_CONFIG, …)."
)
AGENT = click.option(
    "--agent", metavar="NAME", help="The agent, and with it the database; otherwise the default agent."
)


def loaded(config_path: Path | None) -> Config:
    """Returns the configuration at this path or in the usual places; a mistake in it ends the command."""
    from gateway.config.loading import ConfigError, find, load

    home = Path.home()
    try:
        config = load(find(config_path, os.environ, Path.cwd(), home), os.environ, home, pace=pace())
    except ConfigError as exc:
        fail(str(exc), EX_CONFIG)
    for sentence in config.retired:
        click.echo(f"Note: {sentence}", err=True)
    return config


def pace() -> WorkPace:
    """Returns the pace that a program calling the command line set; outside of commands, the default."""
    from gateway.config.settings import WorkPace

    context = click.get_current_context(silent=True)
    return (context and context.find_object(WorkPace)) or WorkPace()


def set_up_logs(config: Config, *, beside_chat: bool = False) -> Path | None:
    """Sets up the logs and returns their file, or None for stderr; `beside_chat` they never go to the terminal."""
    from gateway.ops import telemetry
    from memory.child import map_large_blocks
    from memory.text.secrets.redact import redact

    log = config.settings.log
    file = config.log_file
    own = beside_chat and file is None and sys.stderr.isatty()
    if own:
        file = config.data_dir / _CHAT_LOG
        with suppress(OSError):  # if it can't be made, the log file can't be opened either, which says so
            config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        telemetry.configure(level=log.level, format=log.format, file=file, redact=redact, rotate=own)
    except telemetry.LogFileError as exc:
        fail(str(exc), EX_CANTCREAT)
    telemetry.log_crashes()
    # The objects of the program stay: without this, each full collection walks through all of them.
    gc.freeze()
    gc.set_threshold(20_000)
    map_large_blocks()
    return file


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[Roster]:
    from gateway import app

    set_up_logs(config)
    async with app.opened(config, {}) as parts:
        yield parts.roster


def tell_errors(tell: Callable[[str], None]) -> None:
    """Makes the log call `tell` with a line for each error, in any thread."""
    from gateway.ops import telemetry
    from memory.text.secrets.redact import redact

    telemetry.tell_errors(tell, redact=redact)


# The exit codes of `remora status`, which follow service scripts: 0 well, 1 in trouble, 3 not running.
EX_RED = 1
EX_NOT_RUNNING = 3
# As in BSD's sysexits.h.
EX_DATAERR = 65
EX_NOINPUT = 66
EX_UNAVAILABLE = 69
EX_SOFTWARE = 70
EX_CANTCREAT = 73
EX_TEMPFAIL = 75
EX_CONFIG = 78


def counted(**numbers: int) -> str:
    """Returns numbers with the things they count, such as "1 person, 1,200 messages"; the names are plurals."""
    irregular = {"people": "person", "memories": "memory"}
    return ", ".join(
        f"{number:,} {irregular.get(things, things.removesuffix('s')) if number == 1 else things}"
        for things, number in numbers.items()
    )


class Unusable(Exception):
    """Raised if the operator's input or the files can't be used. `str()` is written for the operator."""


def fail(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)


def storage_code(error: StorageError) -> int:
    """Returns the exit code for an error of the store: wait and try again, mend rights, or look at the file."""
    codes = {
        StoreInUse: EX_TEMPFAIL,
        StoreBusy: EX_TEMPFAIL,
        ReadTooLong: EX_TEMPFAIL,
        StoreUnwritable: EX_CANTCREAT,
        StoreDamaged: EX_DATAERR,
    }
    return codes.get(type(error), EX_SOFTWARE)


@contextmanager
def ending(*, stopped: str = "", in_use: str = "") -> Iterator[None]:
    """Ends a command that fails within the block. `stopped` is said after Ctrl-C, `in_use` for a store in use."""
    try:
        yield
    except KeyboardInterrupt:
        if stopped:
            click.echo(stopped, err=True)
        sys.exit(130)
    except StorageError as exc:
        fail(f"{exc} {in_use}" if in_use and isinstance(exc, StoreInUse) else str(exc), storage_code(exc))
    except (Unusable, MemoryFault) as exc:
        fail(str(exc), EX_DATAERR)


class Advance(Protocol):
    """A callback that takes the number of entries just done, and perhaps the place of the work."""

    def __call__(self, count: int, at: str = "", /) -> None: ...


@contextmanager
def progress(length: int, label: str, what: str) -> Iterator[Advance]:
    """Yields a callback that moves a bar on a terminal, and elsewhere prints a line for every tenth."""
    if sys.stderr.isatty():
        with click.progressbar(
            length=length, label=label, file=sys.stderr, item_show_func=lambda at: at or "", show_pos=True
        ) as bar:
            yield bar.update
        return
    done = 0

    def advance(count: int, at: str = "", /) -> None:
        nonlocal done
        tenth, done = done * 10 // length, done + count
        if done * 10 // length > tenth:
            click.echo(f"{done} of {length} {what}", err=True)

    yield advance
