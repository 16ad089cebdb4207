"""Text on its way to a terminal or a pipe: freed of control characters, and written as it comes."""

from __future__ import annotations

import re
from collections.abc import Callable

#: C0, DEL and C1 (ECMA-48) except tab and newline. With these characters a text could control the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Returns `text` without control characters; pieces of a text give the pieces of the result."""
    return _CONTROLS.sub("", text)


class PlainText:
    """Text for pipes, files and terminals that can't move their cursor."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def begin(self) -> None:
        """Begins a text."""

    def add(self, text: str) -> None:
        self._write(text)

    def end(self, *, markdown: bool) -> None:
        """Ends the text and its line. `markdown` makes no difference here."""
        self._write("\n")

    def show(self, text: str, *, markdown: bool) -> None:
        self._write(f"{text}\n")

    def aside(self, text: str) -> None:
        self._write(f"{text}\n")

    def wait(self) -> None:
        """Shows nothing: text without a cursor has no sign for waiting."""

    def clear(self) -> None:
        """Clears nothing, as `wait` shows nothing."""
