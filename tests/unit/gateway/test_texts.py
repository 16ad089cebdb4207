"""The catalogue is complete in every language."""

from __future__ import annotations

from string import Formatter

import pytest

from gateway.commands import TABLE
from gateway.texts import CATALOGUE, Texts, spoken, written_in

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
