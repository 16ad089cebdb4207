"""An answer on a terminal while it grows: formatted at once, and only changed lines are written again.

The cursor stands behind the last line. Lines that have left the screen at its upper edge stay as they were shown.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from wcwidth import width

from channels import console_page

_CLEAR_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"
#: The sign shown where the answer will be.
_WAITING = "…"
#: The least time between two drawings of a growing text: in seconds, and as a multiple of the time that drawing took.
_INTERVAL = 0.04
_SHARE = 8


class LiveText:
    """Texts with the speaker's `name` before them. `size` returns the columns and lines of the terminal."""

    def __init__(
        self, write: Callable[[str], None], size: Callable[[], os.terminal_size], *, name: str, coloured: bool
    ) -> None:
        self._write = write
        self._size = size
        self._name = name
        self._coloured = coloured
        self._lines = LiveLines()
        self._text = ""
        self._columns = 0
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = False

    def begin(self) -> None:
        self.clear()
        self._text = ""
        self._columns = self._size().columns - 1

    def add(self, text: str) -> None:
        self._text += text
        wait = self._next - time.monotonic()
        if wait <= 0:
            self._draw(markdown=True)
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._draw_later)

    def end(self, *, markdown: bool) -> None:
        """Ends the text and its line."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._draw(markdown=markdown)
        self._write("\n")
        self._lines, self._next = LiveLines(), 0.0

    def show(self, text: str, *, markdown: bool) -> None:
        self.begin()
        self._text = text
        self.end(markdown=markdown)

    def aside(self, text: str) -> None:
        """Writes a line about the conversation, less conspicuous than its messages."""
        width = self._size().columns - 1
        lines = console_page.lines(text, markdown=False, columns=width, coloured=False)
        self._write("".join(f"\x1b[2m{line}\x1b[0m\n" if self._coloured else f"{line}\n" for line in lines))

    def wait(self) -> None:
        self._waiting = True
        self._write(self._shown(_WAITING, markdown=False)[0])

    def clear(self) -> None:
        if self._waiting:
            self._waiting = False
            self._write("\r" + _CLEAR_LINE)

    def _draw_later(self) -> None:
        self._timer = None
        self._draw(markdown=True)

    def _draw(self, *, markdown: bool) -> None:
        began = time.monotonic()
        size = self._size()
        lines = self._shown(self._text, markdown=markdown)
        self._write(self._lines.change(lines, columns=size.columns, height=size.lines))
        now = time.monotonic()
        self._next = now + max(_INTERVAL, _SHARE * (now - began))

    def _shown(self, text: str, *, markdown: bool) -> list[str]:
        columns = self._columns or self._size().columns - 1
        return console_page.lines(
            text, markdown=markdown, columns=columns, lead=f"{self._name} ", coloured=self._coloured
        )


class LiveLines:
    """The lines of one text that are on the screen."""

    def __init__(self) -> None:
        self._shown: list[str] = []

    def change(self, lines: Sequence[str], *, columns: int, height: int) -> str:
        """Returns the text to write so that the screen shows `lines` in place of the lines shown before."""
        before, self._shown = self._shown, list(lines)
        if not before:
            return "\n".join(lines)
        same = 0
        while same < min(len(before), len(lines)) and before[same] == lines[same]:
            same += 1
        if same == len(before):
            return "".join(f"\n{line}" for line in lines[same:])
        same = min(same, len(lines) - 1)
        last = len(before) - 1
        if same == last and same < len(lines) and lines[same].startswith(before[same]):
            return lines[same][len(before[same]) :] + "".join(f"\n{line}" for line in lines[same + 1 :])
        rows = [_rows(line, columns) for line in before]
        while sum(rows[same:]) > height and same < last:
            same += 1
        up = min(sum(rows[same:]), height) - 1
        written = "\n".join(_cleared(line, columns) for line in lines[same:])
        shorter = sum(_rows(line, columns) for line in lines[same:]) < sum(rows[same:])
        return "\r" + (f"\x1b[{up}A" if up else "") + written + (_CLEAR_BELOW if shorter else "")


def _rows(line: str, columns: int) -> int:
    return max(1, -(-width(line) // columns))


def _cleared(line: str, columns: int) -> str:
    """Returns a line that takes the old line's place to its end. After a full row there is nothing to clear."""
    wide = width(line)
    return line if wide and wide % columns == 0 else line + _CLEAR_LINE
