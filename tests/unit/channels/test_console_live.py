"""Tests the bytes by which a terminal shows a growing text."""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from channels.base import Inbound, NotTaken, Place
from channels.console import ConsoleChannel, Streams
from channels.console_live import LiveLines, LiveText, lines
from tests.kit.hosts import QuietHost
from tests.kit.patience import until
from tests.kit.tables import each_row

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


# Texts as the lines of a terminal


def plain(text: str, columns: int, *, markdown: bool = True, lead: str = "") -> list[str]:
    return lines(text, markdown=markdown, columns=columns, lead=lead, coloured=False)


def test_lines_end_between_words() -> None:
    assert plain("The quick brown fox jumps over the lazy dog", 20) == [
        "The quick brown fox",
        "jumps over the lazy",
        "dog",
    ]


def test_chinese_is_broken_anywhere_but_not_before_its_punctuation_nor_within_a_foreign_word() -> None:
    """It has no blanks, its characters are two columns wide, and Latin words stand in it."""
    assert plain("我们在我们在我们在Lisbon见面，然后去吃饭。", 20) == [
        "我们在我们在我们在",
        "Lisbon见面，然后去吃",
        "饭。",
    ]
    assert plain("我们今天在那里见面了，好。", 20) == ["我们今天在那里见面", "了，好。"]


def test_the_lead_takes_room_in_the_first_line_only() -> None:
    assert plain("one two three four five", 20, lead="fish> ") == ["fish> one two three", "four five"]


def test_list_items_go_on_under_their_words() -> None:
    assert plain("- one two three four five\n  - six seven eight nine ten", 20) == [
        "• one two three four", "  five", "  ◦ six seven eight", "    nine ten",
    ]  # fmt: skip


def test_code_is_neither_wrapped_nor_indented() -> None:
    """So it can be copied as it is; the terminal wraps it itself."""
    long = "    return " + "x + " * 20 + "1"
    assert plain(f"Look:\n\n```python\ndef f(x):\n{long}\n```", 20) == ["Look:", "", "def f(x):", long]


def test_quotes_have_a_bar_on_every_line() -> None:
    assert plain("> one two three four five", 20) == ["│ one two three four", "│ five"]


@each_row(
    ("text", "shown"),
    [
        ("[here](https://a.example/x)", "here (https://a.example/x)"),
        ("https://a.example/x", "https://a.example/x"),
        ("<https://a.example>", "https://a.example"),
        ("[a.example](https://a.example/)", "a.example"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
    ],
)
def test_the_address_of_a_link_can_be_read(text: str, shown: str) -> None:
    assert plain(text, 80) == [shown]


def test_text_that_is_no_markdown_is_shown_as_it_is() -> None:
    assert plain("**x** <id>\n  y", 80, markdown=False) == ["**x** <id>", "  y"]


def test_colours_are_escape_sequences_around_words() -> None:
    assert lines("**a** `b`", markdown=True, columns=80) == ["\x1b[1ma\x1b[0m \x1b[36mb\x1b[0m"]


@given(st.text(st.one_of(st.sampled_from("ab *`_#->[]()&;\n\t你，"), st.characters())), st.integers(20, 60))
def test_no_line_is_too_wide_and_none_holds_a_control_character(text: str, columns: int) -> None:
    """Code is wider, and so is a character that no table knows."""
    for line in plain(text.replace("`", "").replace("\t", "").replace("    ", ""), columns):
        assert wcswidth(line) <= columns
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)


def test_a_control_character_spelt_as_a_number_drives_no_terminal() -> None:
    """In Markdown, &#27; and &#155; stand for characters that begin escape sequences."""
    assert plain("a&#27;[2Jb &#155;31mc", 80) == ["a\ufffd[2Jb \ufffd31mc"]


# A line the gateway could not commit


class Full(QuietHost):
    async def on_inbound(self, inbound: Inbound) -> None:
        raise NotTaken("I could not save that: the disk is full.")

    async def settled(self, place: Place) -> None:
        raise AssertionError("there is nothing to wait for")


async def test_a_line_that_was_not_taken_is_told_and_the_talk_goes_on() -> None:
    """The person must know that it is gone, and can say it again."""
    shown = io.StringIO()
    channel = ConsoleChannel(
        person="ada",
        once="hello",
        now=lambda: 0,
        new_id=lambda: "1",
        streams=Streams(stdin=io.StringIO(), stdout=shown),
    )
    await channel.run(Full())
    assert shown.getvalue() == "I could not save that: the disk is full.\n"
