"""What is a command and what answers a question."""

from __future__ import annotations

import pytest

from gateway import commands
from gateway.texts import Texts


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/help", ("help", "")),
        ("  /Memory  search  tea ", ("memory", "search  tea")),
        ("/forget@remora_bot m_abc", ("forget", "m_abc")),
        ("/remember a\nb", ("remember", "a\nb")),
        ("/usr/bin/python is broken", None),
        ("what does /help do?", None),
        ("/", None),
        ("//", None),
        ("", None),
    ],
)
def test_a_command_is_a_slash_and_a_word_at_the_start(text: str, parsed: tuple[str, str] | None) -> None:
    """A path or a slash in a sentence is ordinary talk."""
    assert commands.parse(text) == parsed


def test_an_unknown_command_is_answered_with_the_nearest_one() -> None:
    """People mistype."""
    assert "/memory" in commands.unknown("memry", Texts("en"))
    assert "/help" in commands.unknown("xyzzy", Texts("en"))
