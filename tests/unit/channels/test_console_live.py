"""Tests the bytes by which a terminal shows a growing text."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from channels.console_live import LiveLines, LiveText
from tests.kit.patience import until

COLUMNS, HEIGHT = 8, 6
LINES = st.lists(st.text("ab", max_size=20), min_size=1, max_size=12)


class Screen:
    """A terminal that understands what `LiveLines` and `LiveText` write without colours; no line leaves it."""

    def __init__(self, columns: int = COLUMNS) -> None:
        self.columns = columns
        self.writes = 0
        self.cells: list[list[str]] = [[]]
        self.row = self.column = 0

    def write(self, written: str) -> None:
        self.writes += 1
        for part in re.findall(r"\x1b\[\d*[AKJ]|[\s\S]", written):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.down()
            elif part == "\x1b[K":
                del self.cells[self.row][self.column :]
            elif part == "\x1b[J":
                del self.cells[self.row][self.column :], self.cells[self.row + 1 :]
            elif part.startswith("\x1b"):
                self.row -= int(part[2:-1])
            else:
                self.put(part)

    def down(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.cells):
            self.cells.append([])

    def put(self, letter: str) -> None:
        if self.column == self.columns:
            self.down()
        line = self.cells[self.row]
        line[self.column : self.column + 1] = [letter]
        self.column += 1

    @property
    def shown(self) -> list[str]:
        return ["".join(line) for line in self.cells]


def played(*texts: Sequence[str], height: int = 1_000) -> Screen:
    """The screen after each of the texts took the place of the one before."""
    screen, live = Screen(), LiveLines()
    for text in texts:
        screen.write(live.change(text, columns=COLUMNS, height=height))
    return screen


@given(st.lists(LINES, min_size=1, max_size=5))
def test_the_screen_shows_the_last_text_however_the_text_has_changed(texts: list[list[str]]) -> None:
    """A mark that is closed later, a table whose columns grow, a line that was no list and now is one."""
    assert played(*texts).shown == played(texts[-1]).shown


def test_a_text_that_only_grows_is_written_once() -> None:
    live = LiveLines()
    written = [live.change(text, columns=80, height=24) for text in (["on"], ["one"], ["one", "tw"], ["one", "two"])]
    assert written == ["on", "e", "\ntw", "o"]


def test_a_changed_line_is_overwritten_without_being_cleared_first() -> None:
    """The rest of the line is cleared behind the words."""
    live = LiveLines()
    live.change(["one", "**two"], columns=80, height=24)
    assert live.change(["one", "two"], columns=80, height=24) == "\rtwo\x1b[K"


@given(LINES, LINES)
def test_lines_that_have_left_the_screen_are_not_reached_for(before: list[str], after: list[str]) -> None:
    """A terminal can't move its cursor there: it would write over other lines instead."""
    live = LiveLines()
    live.change(before, columns=COLUMNS, height=HEIGHT)
    moved = re.search(r"\x1b\[(\d+)A", live.change(after, columns=COLUMNS, height=HEIGHT))
    assert moved is None or int(moved[1]) < HEIGHT


def live(screen: Screen) -> LiveText:
    """Texts of somebody called fish."""
    size = os.terminal_size((screen.columns, 24))
    return LiveText(screen.write, lambda: size, name="fish>", coloured=False)


async def test_an_answer_takes_the_place_of_the_sign_that_it_is_being_made() -> None:
    """The sign is gone as soon as there is a word."""
    screen = Screen(columns=40)
    text = live(screen)
    text.wait()
    assert screen.shown == ["fish> …"]
    text.begin()
    text.add("Hi")
    assert screen.shown == ["fish> Hi"]
    text.end(markdown=True)
    assert screen.shown == ["fish> Hi", ""]


async def test_what_arrives_quickly_is_drawn_together() -> None:
    """A model may give a thousand pieces a second, and each drawing reads the whole text."""
    screen = Screen(columns=40)
    text = live(screen)
    text.begin()
    for n in range(500):
        text.add(f"**{n}** ")
    await asyncio.sleep(0)
    assert screen.writes < 50
    text.end(markdown=True)
    assert " ".join(" ".join(screen.shown).split()) == "fish> " + " ".join(str(n) for n in range(500))


async def test_a_pause_shows_all_that_has_come() -> None:
    """A piece that came too soon after another is not held back until the next one."""
    screen = Screen(columns=40)
    text = live(screen)
    text.begin()
    text.add("one ")
    text.add("two")
    await until(lambda: screen.shown == ["fish> one two"])
