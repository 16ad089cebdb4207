"""Phrases of time, in six languages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from languages import LANGUAGES
from memory.text.times.phrases import Reading, Unclear, is_request, read, read_time, several
from memory.text.times.rules import RRULE, following
from memory.text.times.tables import fold
from tests.kit.tables import each_row

SAID = yaml.safe_load((Path(__file__).parents[4] / "data" / "reminder_times.yaml").read_text("utf-8"))
ZONES = {
    "en": "Europe/London", "zh": "Asia/Shanghai", "de": "Europe/Berlin", "es": "Europe/Madrid", "fr": "Europe/Paris",
    "ja": "Asia/Tokyo",
}  # fmt: skip
BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 6, 10, 10, tzinfo=BERLIN)


def lines() -> Iterator[tuple[str, list[str]]]:
    for language, said in SAID.items():
        for line in said:
            yield language, line


@each_row(("language", "line"), list(lines()))
def test_a_time_is_read_as_a_person_means_it(language: str, line: list[str]) -> None:
    text, time, what, *repeated = line
    now = datetime(2026, 6, 10, 10, tzinfo=ZoneInfo(ZONES[language]))
    found = read(text, language=language, now=now)
    if time == "no request":
        assert found is None and not is_request(text, language=language)
        return
    found = found or read_time(text, language=language, now=now)
    assert found is not None
    assert found.what == what
    if isinstance(found, Unclear):
        assert f"ask: {found.reason}" == time
    else:
        assert found.first.strftime("%Y-%m-%dT%H:%M") == time
        assert [part for part in (found.rule, found.until and str(found.until)) if part] == repeated


@each_row(
    ("language", "text", "what"),
    [
        ("en", "hi! remind me tomorrow at 8 to take the bins out", "take the bins out"),
        ("en", "good morning, please remind me at 17:00 to ring Jo", "ring Jo"),
        ("de", "Hallo, erinnere mich morgen um 8 an den Müll", "Müll"),
        ("es", "Buenas tardes, recuérdame mañana a las 8 sacar la basura", "sacar la basura"),
        ("fr", "bonjour, rappelle-moi demain à 8h de sortir la poubelle", "sortir la poubelle"),
        ("ja", "こんにちは、明日の8時にゴミ出しをリマインドして", "ゴミ出し"),
        ("zh", "你好，明天早上八点提醒我倒垃圾", "倒垃圾"),
    ],
)
def test_a_greeting_is_no_part_of_a_reminder(language: str, text: str, what: str) -> None:
    found = read(text, language=language, now=WEDNESDAY)
    assert isinstance(found, Reading) and found.what == what


@each_row("language", LANGUAGES)
@each_row(("text", "minutes"), [("15 min", 15), ("90 min", 90), ("45 min", 45)])
def test_a_length_alone_is_an_answer_to_when(language: str, text: str, minutes: int) -> None:
    found = read_time(text, language=language, now=WEDNESDAY)
    assert isinstance(found, Reading)
    assert found.first - WEDNESDAY == timedelta(minutes=minutes)


@each_row(
    ("text", "language", "hour"),
    [("9", "en", 9), ("um 9", "de", 9), ("18h", "fr", 18), ("九点", "zh", 9), ("9時", "ja", 9), ("a las 9", "es", 9)],
)
def test_an_hour_alone_is_an_answer_to_when(text: str, language: str, hour: int) -> None:
    found = read_time(text, language=language, now=WEDNESDAY)
    assert isinstance(found, Reading)
    assert found.hour_given
    assert (found.first.hour, found.first.minute) == (hour, 0)


@pytest.mark.parametrize(
    ("text", "language"), [("no thanks", "en"), ("lass mal", "de"), ("算了", "zh"), ("もういい", "ja")]
)
def test_words_without_a_time_are_no_answer(text: str, language: str) -> None:
    assert read_time(text, language=language, now=WEDNESDAY) is None


@each_row(("text", "language"), [
        ("remind me who my doctor is", "en"), ("thanks for reminding me", "en"), ("cancel the reminder for friday", "en"),
        ("I told her to remind me tomorrow", "en"), ("das erinnert mich an früher", "de"),
        ("lösch die Erinnerung für Freitag", "de"), ("borra el recordatorio del viernes", "es"),
        ("rappelle-moi ce que j'ai dit hier", "fr"), ("supprime le rappel de vendredi", "fr"), ("取消明天的提醒", "zh"),
        ("叫我小王", "zh"), ("明日の天気を教えて", "ja"), ("リマインダーを消して", "ja"),
    ])  # fmt: skip
def test_talk_that_only_sounds_like_a_request_sets_nothing(text: str, language: str) -> None:
    assert not is_request(text, language=language)
    assert read(text, language=language, now=WEDNESDAY) is None


@pytest.mark.parametrize(
    ("text", "said_to_be"), [("friday 4pm submit", "de"), ("明天上午9点交表", "en"), ("tomorrow at 3:30 call", "es")]
)
def test_a_language_that_was_guessed_wrong_does_not_halve_a_time(text: str, said_to_be: str) -> None:
    right = read_time(text, language="zh" if "点" in text else "en", now=WEDNESDAY)
    assert isinstance(right, Reading)
    assert read_time(text, language=said_to_be, now=WEDNESDAY) == right


@each_row(
    ("language", "text"),
    [
        ("en", "remind me on 1 July at 9am New York time to call Bob"), ("en", "remind me on 1 July at 9am EST to call Bob"),
        ("de", "erinnere mich am 1. Juli um 9 Uhr New Yorker Zeit an Bob"), ("ja", "7月1日のニューヨーク時間9時に電話とリマインドして"),
        ("es", "recuérdame el 1 de julio a las 9 hora de Nueva York llamar a Bob"), ("zh", "7月1日纽约时间9点提醒我打电话"),
        ("fr", "rappelle-moi le 1er juillet à 9h heure de New York d'appeler Bob"),
    ],
)  # fmt: skip
def test_an_hour_by_another_clock_is_in_its_zone(language: str, text: str) -> None:
    found = read(text, language=language, now=WEDNESDAY)
    assert isinstance(found, Reading)
    assert (str(found.first.tzinfo), found.first.astimezone(BERLIN).isoformat()) == (
        "America/New_York", "2026-07-01T15:00:00+02:00"
    )  # fmt: skip


def test_tomorrow_by_another_clock_is_asked_for_where_it_is_another_day() -> None:
    late = datetime(2026, 6, 10, 3, tzinfo=BERLIN)  # the evening of the 9th in New York
    found = read("remind me tomorrow at 9am New York time to call Bob", language="en", now=late)
    assert isinstance(found, Unclear)


@each_row(
    ("language", "text"),
    [
        ("en", "remind me on thursday to call mum, remind me tomorrow to pay"), ("zh", "周四提醒我开会，明天提醒我交报告"),
        ("en", "remind me tomorrow at 9 to call mum and tomorrow at 10 to pay rent"), ("zh", "明天9点提醒我开会，6月11日10点提醒我交报告"),
    ],
)  # fmt: skip
def test_two_reminders_on_one_day_by_two_names_are_two(language: str, text: str) -> None:
    assert isinstance(read(text, language=language, now=WEDNESDAY), Unclear)
    assert [one.first.day for one in several(text, language=language, now=WEDNESDAY)] == [11, 11]


def test_hours_are_counted_through_a_change_of_clocks() -> None:
    night = datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN)
    found = read("remind me in 2 hours", language="en", now=night)
    assert isinstance(found, Reading)
    assert found.first.strftime("%H:%M") == "04:30"


def test_a_time_that_the_clock_skips_falls_after_the_gap() -> None:
    found = read_time("tomorrow at 2:30am", language="en", now=datetime(2026, 3, 28, 12, tzinfo=BERLIN))
    assert isinstance(found, Reading)
    assert found.first.strftime("%d %H:%M") == "29 03:30"


def test_the_skipped_hour_does_not_stay_with_the_repetition() -> None:
    found = read_time("every day at 2:30am", language="en", now=datetime(2026, 3, 28, 12, tzinfo=BERLIN))
    assert isinstance(found, Reading) and found.rule
    later = following(found.rule, after=found.first, first=found.first)
    assert (found.first.strftime("%H:%M"), later and later.strftime("%H:%M")) == ("03:30", "02:30")


def test_the_thirty_first_of_every_month_is_the_last_day_of_a_short_one() -> None:
    found = read_time("every month on the 31st", language="en", now=WEDNESDAY)
    assert isinstance(found, Reading) and found.rule
    assert found.first.date() == date(2026, 6, 30)
    assert following(found.rule, after=found.first, first=found.first) == datetime(2026, 7, 31, 9, tzinfo=BERLIN)


@each_row(("text", "reason"), [
        ("every 2 minutes", "impossible"), ("in 6 years", "impossible"), ("every month", "vague"), ("today", "vague"),
        ("this morning at 8", "past"), ("on june 1 2025", "past"), ("friday at midnight", "vague"),
        ("at 9 and at 10:30", "vague"), ("every friday tomorrow", "vague"), ("next week at 9", "vague"),
    ])  # fmt: skip
def test_a_time_that_is_not_sure_is_asked_for(text: str, reason: str) -> None:
    found = read_time(text, language="en", now=WEDNESDAY)
    assert isinstance(found, Unclear)
    assert found.reason == reason


def test_a_month_stands_before_its_day_in_america() -> None:
    found = [
        read_time("3/7 pay", language="en", now=WEDNESDAY.replace(tzinfo=ZoneInfo(zone)))
        for zone in ("America/Denver", "Europe/London")
    ]
    assert [reading.first.month for reading in found if isinstance(reading, Reading)] == [3, 7]


@given(st.text(max_size=80), st.sampled_from(LANGUAGES))
def test_any_text_is_read_without_an_error(text: str, language: str) -> None:
    assert len(fold(text)) == len(text)
    for found in (read(text, language=language, now=WEDNESDAY), read_time(text, language=language, now=WEDNESDAY)):
        if isinstance(found, Reading):
            assert found.first > WEDNESDAY


@given(
    st.sampled_from(LANGUAGES),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 400), min_size=1, max_size=4),
    st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - the zone is put in below
    st.sampled_from(("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Shanghai")),
)
def test_pieces_of_times_in_any_order_never_lead_into_the_past(
    language: str, seed: int, picks: list[int], moment: datetime, zone: str
) -> None:
    lines_of = SAID[language]
    text = " ".join(lines_of[(seed + pick) % len(lines_of)][0] for pick in picks)
    now = moment.replace(tzinfo=ZoneInfo(zone), microsecond=0)
    found = read_time(text, language=language, now=now)
    if isinstance(found, Reading):
        assert found.first.timestamp() > now.timestamp()
        assert found.until is None or found.until >= found.first.date()
        if found.rule:
            assert found.rule.startswith(RRULE)
            later = following(found.rule, after=found.first, first=found.first)
            assert later is None or later.timestamp() - found.first.timestamp() >= 300


@each_row(("text", "first_times"), [
        ("remind me at 23:00 to sleep and at 1:00 to feed the cat", ["10 23:00", "11 01:00"]),
        ("remind me in 30 minutes to call mom, at 7 to get up", ["10 20:30", "11 07:00"]),
        ("remind me at 23:00 to sleep, at 1:00 to feed the cat and at 5:00 to run", ["10 23:00", "11 01:00", "11 05:00"]),
        ("remind me on friday at 14:00 to call and at 9:00 to pay", ["12 14:00", "12 09:00"]),
    ])  # fmt: skip
def test_a_later_reminder_keeps_the_day_of_the_one_before_but_never_one_that_is_over(
    text: str, first_times: list[str]
) -> None:
    evening = WEDNESDAY.replace(hour=20, minute=0)
    assert [f"{one.first:%d %H:%M}" for one in several(text, language="en", now=evening)] == first_times
