"""Texts as the lines of a terminal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from channels.console_live import lines
from tests.kit.tables import each_row


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
