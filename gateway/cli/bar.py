"""Shows the progress of a long command to an operator at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress(length: int, label: str, what: str) -> Iterator[Callable[[int], None]]:
    """A bar where somebody watches, and else a line for every tenth."""
    if sys.stderr.isatty():
        with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
            yield bar.update
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        tenth, done = done * 10 // length, done + count
        if done * 10 // length > tenth:
            click.echo(f"{done} of {length} {what}", err=True)

    yield advance
