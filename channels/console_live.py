"""Answers on a terminal: Markdown as lines that fit it, and, while one grows, only changed lines written again.

Invariants: no line is wider than the terminal, except for lines of code, which the terminal wraps itself so that they
can be copied whole. Without colours a line holds no escape sequence. The cursor stands behind the last line. Lines that
have left the screen at its upper edge stay as they were shown.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from wcwidth import wcswidth, width

from channels.console_pipe import printable
from channels.markup import Styled, terminal

#: Select Graphic Rendition (ECMA-48) for each kind of formatting.
_SGR = {
    "heading": "1",
    "bold": "1",
    "italic": "3",
    "strike": "9",
    "code": "36",
    "pre": "36",
    "link": "4",
    "address": "2",
    "marker": "2",
    "lead": "1",
}
_QUOTE = "│ "
#: Narrower terminals get lines of this width, because hardly a word would fit.
_NARROWEST = 20
_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U0001f300-\U0003ffff"
#: Punctuation that must not begin a line.
_CLOSING = "，。、；：？！）》」』】…”’"
#: A unit that stays on one line: blanks, a word or one East Asian character. Punctuation goes with the unit before it.
_UNIT = re.compile(rf"\s+|(?:[{_WIDE}]|[^\s{_WIDE}]+)[{_CLOSING}]*")


def lines(text: str, *, markdown: bool, columns: int, lead: str = "", coloured: bool = True) -> list[str]:
    width = max(columns, _NARROWEST)
    runs = terminal(text, width) if markdown else [Styled(text=text)]
    # Markdown can spell a character as a number, so only its result shows what a terminal would get.
    runs = [Styled(text=printable(run.text), kinds=run.kinds) for run in runs]
    if lead:
        runs = [Styled(text=lead, kinds=frozenset({"lead"})), *runs]
    shown: list[str] = []
    for line in _split(runs):
        quote = _QUOTE if any("quote" in run.kinds for run in line) else ""
        shown += [
            quote + "".join(_styled(run, coloured=coloured) for run in piece)
            for piece in _wrapped(line, width - len(quote))
        ]
    return shown


def _split(runs: Iterable[Styled]) -> Iterator[list[Styled]]:
    line: list[Styled] = []
    for run in runs:
        first, *others = run.text.split("\n")
        line.append(Styled(text=first, kinds=run.kinds))
        for text in others:
            yield line
            line = [Styled(text=text, kinds=run.kinds)]
    yield line


def _wrapped(line: Sequence[Styled], width: int) -> Iterator[list[Styled]]:
    """Yields the pieces of a line that fit into `width` columns. Pieces after the first have the line's indent."""
    text = "".join(run.text for run in line)
    if _columns(text) <= width or any("pre" in run.kinds for run in line):
        yield list(line)
        return
    indent = _indent(line)
    start = 0
    while start < len(text):
        room = width - (_columns(indent) if start else 0)
        end = _fitting(text, start, room)
        piece = _cut(line, start, start + len(text[start:end].rstrip()))
        yield [Styled(text=indent), *piece] if start and indent else piece
        start = end + len(text[end:]) - len(text[end:].lstrip())


def _indent(line: Sequence[Styled]) -> str:
    """Returns the blanks under which a line goes on: its own, and the width of its bullet or number."""
    blanks = 0
    for run in line:
        if "lead" in run.kinds:
            continue
        if "marker" not in run.kinds:
            blanks += len(run.text) - len(run.text.lstrip(" "))
            if run.text.strip(" "):
                break
        else:
            blanks += _columns(run.text)
    return " " * min(blanks, 8)


def _fitting(text: str, start: int, room: int) -> int:
    """Returns where the longest part of `text[start:]` of at most `room` columns ends, between words if possible."""
    end, used = start, 0
    for unit in _UNIT.finditer(text, start):
        used += _columns(unit[0])
        if used > room and not unit[0].isspace():
            break
        end = unit.end()
    if text[start:end].strip():
        return end
    end, used = start, 0
    while end < len(text) and used + _columns(text[end]) <= room:
        used += _columns(text[end])
        end += 1
    return max(end, start + 1)


def _cut(line: Sequence[Styled], start: int, end: int) -> list[Styled]:
    piece, at = [], 0
    for run in line:
        text = run.text[max(0, start - at) : max(0, end - at)]
        if text:
            piece.append(Styled(text=text, kinds=run.kinds))
        at += len(run.text)
    return piece


def _styled(run: Styled, *, coloured: bool) -> str:
    sgr = ";".join(dict.fromkeys(_SGR[kind] for kind in sorted(run.kinds) if kind in _SGR))
    text = run.text.rstrip()
    return f"\x1b[{sgr}m{text}\x1b[0m{run.text[len(text) :]}" if coloured and sgr and text else run.text


def _columns(text: str) -> int:
    """Returns the width of a text; an unprintable character counts as one column."""
    if text.isascii():
        return len(text)
    width = wcswidth(text)
    return width if width >= 0 else len(text)


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
        shown = lines(text, markdown=False, columns=width, coloured=False)
        self._write("".join(f"\x1b[2m{line}\x1b[0m\n" if self._coloured else f"{line}\n" for line in shown))

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
        return lines(text, markdown=markdown, columns=columns, lead=f"{self._name} ", coloured=self._coloured)


class LiveLines:
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
