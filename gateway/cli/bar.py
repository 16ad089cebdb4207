"""Shows the progress of a long command to an operator at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import click


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
