"""Tells how a command goes: its progress, and in trouble the reason on stderr and an exit code for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, Protocol

import click

from memory.errors import MemoryFault, ReadTooLong, StorageError, StoreBusy, StoreDamaged, StoreInUse, StoreUnwritable

# The exit codes of `remora status`, which follow service scripts: 0 well, 1 in trouble, 3 not running.
EX_RED = 1
EX_NOT_RUNNING = 3
# As in BSD's sysexits.h.
EX_DATAERR = 65
EX_NOINPUT = 66
EX_SOFTWARE = 70
EX_CANTCREAT = 73
EX_TEMPFAIL = 75
EX_CONFIG = 78


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
