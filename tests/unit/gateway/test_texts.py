"""The catalogue is complete in every language."""

from __future__ import annotations

from string import Formatter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import AttachmentKind, Chunk
from channels.markup import telegram
from gateway.catalogue import CATALOGUE
from gateway.commands import TABLE
from gateway.texts import Texts, spoken, written_in

from agents.llm import (  # isort: skip
    BadCompletion, ContextOverflow, ModelAuth, ModelError, ModelRateLimited, ModelRefused, ModelUnavailable,
)  # fmt: skip


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_language_has_the_same_texts_with_the_same_fields() -> None:
    """A missing text would be an error in the middle of an answer."""
    english = {key: _fields(text) for key, text in CATALOGUE["en"].items()}
    for language in CATALOGUE:
        assert {key: _fields(text) for key, text in CATALOGUE[language].items()} == english


@pytest.mark.parametrize("command", TABLE, ids=lambda command: command.name)
def test_every_command_has_a_help_line(command: object) -> None:
    """/help is made from the table."""
    assert f"help.{command.name}" in CATALOGUE["en"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "error",
    [ModelError, ModelAuth, ModelUnavailable, ModelRateLimited, ContextOverflow, ModelRefused, BadCompletion],
)
def test_every_model_error_has_words_for_the_person(error: type[ModelError]) -> None:
    """What an error says to a person is decided in one place."""
    assert f"error.{error.code}" in CATALOGUE["en"]


@pytest.mark.parametrize(
    "why",
    [
        "too_large", "no_reader", "unreadable", "unreachable", "no_transcriber", "not_transcribed", "empty", "off",
        "locked", "no_sight",
    ],
)  # fmt: skip
def test_every_reason_an_attachment_was_of_no_use_has_words_for_the_person(why: str) -> None:
    """Silence would look as if it had been read."""
    for language in CATALOGUE:
        line = CATALOGUE[language][f"attach.{why}"]
        assert _fields(line) == {"name"} and "\n" not in line


def test_an_attachment_is_called_by_its_name_where_it_has_one() -> None:
    """Names come from people: of any length, over several lines."""
    texts = Texts("en")
    assert texts.attachment("file", "report.pdf") == "report.pdf"
    assert texts.attachment("file", "two\nlines {why}.txt") == "two lines (why).txt"
    assert texts.attachment("file", "my_long_name.tar.gz") == "my_long_name.tar.gz"
    assert len(texts.attachment("file", "x" * 1_000)) == 60
    for kind in get_args(AttachmentKind):
        for language in CATALOGUE:
            assert Texts(language).attachment(kind, " ") == CATALOGUE[language][f"attach.{kind}"]


def _told(name: str) -> Chunk:
    texts = Texts("en")
    (chunk,) = telegram(texts("attach.empty", name=texts.attachment("file", name)))
    return chunk


@pytest.mark.parametrize(
    "name",
    ["**all**", "*a*", "__init__.py", "_a_", "`rm`", "||b||", "~~c~~", "[d](http://e.example)", "<@1>", "a\\*b", "```"],
)
def test_the_name_of_an_attachment_is_never_markdown(name: str) -> None:
    """Whoever sends a file could else have the bot say something in bold, or show a link under other words."""
    assert _told(name).markup == _told("plain.txt").markup


@given(st.text("*_`~|\\[]()<>!#-x \n", max_size=40))
def test_no_name_of_an_attachment_is_markdown(name: str) -> None:
    """Whatever the signs in it."""
    assert _told(name).markup == _told("plain.txt").markup


def test_dates_are_read_where_the_person_lives() -> None:
    """Near midnight the day depends on the timezone."""
    late = 1_795_301_999_000  # 21 November 2026, 22:59:59 UTC
    assert Texts("en", "UTC").date(late) == "21 Nov 2026"
    assert Texts("en", "Asia/Shanghai").date(late) == "22 Nov 2026"
    assert Texts("zh", "Asia/Shanghai").date(late) == "2026年11月22日"


def test_an_answer_is_in_the_language_of_the_message() -> None:
    """Unless the person has chosen one."""
    assert written_in("我住在里斯本", "en") == "zh"
    assert written_in("I live in Lisbon", "zh") == "zh"
    assert written_in("I live in Lisbon", "en") == "en"
    assert written_in("東京に住んでいます", "en") == "en"
    assert spoken("zh", "en") == "zh" and spoken(None, "en") == "en" and spoken("fr", "zh") == "zh"


def test_what_changed_within_a_day_is_shown_with_the_time() -> None:
    """ "From 21 Nov to 21 Nov" would say nothing."""
    noon, hour, day = 1_795_262_400_000, 3_600_000, 86_400_000
    assert Texts("en").span(noon, noon + hour) == ("21 Nov 2026 12:00", "21 Nov 2026 13:00")
    assert Texts("en").span(noon, noon + day) == ("21 Nov 2026", "22 Nov 2026")
