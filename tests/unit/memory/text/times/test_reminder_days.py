"""Tests which days to come a text names."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from memory.text.times.spans import days_named
from tests.kit.tables import each_row

#: A Wednesday.
NOW = datetime(2026, 11, 25, 12, tzinfo=ZoneInfo("Europe/Berlin"))


def on(first: int, last: int | None = None) -> tuple[date, date]:
    return date(2026, 11, first), date(2026, 11, first if last is None else last)


@each_row(
    ("language", "text", "days"),
    [
        ("en", "what's happening on friday?", on(27)),
        ("en", "anything on today?", on(25)),
        ("en", "am I free this weekend?", on(28, 29)),
        ("en", "what's on this week?", on(25, 29)),
        ("de", "was steht morgen an?", on(26)),
        ("de", "was ist diese Woche los?", on(25, 29)),
        ("es", "¿qué tengo el viernes?", on(27)),
        ("fr", "qu'est-ce que j'ai demain ?", on(26)),
        ("zh", "后天有什么安排？", on(27)),
        ("ja", "今週末の予定は？", on(28, 29)),
    ],
)
def test_a_day_a_weekend_and_a_week_are_named(language: str, text: str, days: tuple[date, date]) -> None:
    assert days_named(text, language=language, now=NOW) == days


def test_the_next_week_is_a_whole_one() -> None:
    assert days_named("what's on next week?", language="en", now=NOW) == (date(2026, 11, 30), date(2026, 12, 6))
    assert days_named("下周有什么安排？", language="zh", now=NOW) == (date(2026, 11, 30), date(2026, 12, 6))


def test_a_date_that_was_added_decides() -> None:
    assert days_named("dentist tomorrow (2026-12-24) at 4pm", language="en", now=NOW) == (date(2026, 12, 24),) * 2


@pytest.mark.parametrize("text", ["what do I do?", "friday or saturday?", ""])
def test_no_day_or_several_apart_are_none(text: str) -> None:
    assert days_named(text, language="en", now=NOW) is None
