"""A text as the lines of a terminal: Markdown formatted, words kept whole, wide characters counted as two columns.

Pure: text in, lines out. Invariants: no line is wider than the terminal, except for lines of code, which the terminal
wraps itself so that they can be copied whole. Without colours a line holds no escape sequence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from wcwidth import wcswidth

from channels.console_text import printable
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
