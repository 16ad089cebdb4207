"""Ends a command in trouble: the reason on stderr, and an exit code for scripts."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from memory.errors import StorageError, StoreBusy, StoreDamaged, StoreInUse, StoreUnwritable

# `remora status`, as the exit codes of service scripts have it: 0 well, 1 in trouble, 3 not running.
EX_RED = 1
EX_NOT_RUNNING = 3
# As in BSD's sysexits.h.
EX_DATAERR = 65
EX_NOINPUT = 66
EX_SOFTWARE = 70
EX_CANTCREAT = 73
EX_TEMPFAIL = 75


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong and how to mend it, and end."""
    click.echo(message, err=True)
    sys.exit(code)


def storage_code(error: StorageError) -> int:
    """The exit code of what the store could not do: wait and try again, mend rights, or look at the file."""
    codes = {
        StoreInUse: EX_TEMPFAIL,
        StoreBusy: EX_TEMPFAIL,
        StoreUnwritable: EX_CANTCREAT,
        StoreDamaged: EX_DATAERR,
    }
    return codes.get(type(error), EX_SOFTWARE)
