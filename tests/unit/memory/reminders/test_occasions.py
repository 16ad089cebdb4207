"""Memories that speak of a plan one may ask about, or of a birthday."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.reminders import occasions
from memory.reminders.occasions import Occasion
from memory.store.memories import Memory
from memory.text.times import clock, phrases
from memory.text.times.spans import anchor, days_named, spans
from tests.kit.tables import each_row

#: A Monday.
TOLD = "2026-11-23"


def fact(value: str, **of: Any) -> Memory:
    fields: dict[str, Any] = {
        "id": 1, "short_id": "m_1", "kind": "fact", "owner_id": 1, "author_id": 1, "subject_id": 1,
        "subject_name": None, "subject": "", "agent_id": None, "category": "plan", "topic": "", "key": "plan",
        "value": value, "flags": (), "importance": 5, "confidence": 0.8, "strength": 1.0, "origin": "extracted",
        "learned_at": 0, "local_date": TOLD, "valid_from": 0, "valid_until": None, "superseded_by": None,
        "access_count": 0, "reinforced_count": 0, "last_reinforced_at": 0, "pinned": False, "confirmed": False,
        "archived_at": None,
    }  # fmt: skip
    return Memory(**(fields | of))


@each_row(
    ("value", "day", "what"),
    [
        ("dentist appointment tomorrow (2026-11-24)", "2026-11-24", "dentist appointment"),
        ("Dentist appointment on 2026-11-27 at 10:00", "2026-11-27", "Dentist appointment"),
        ("flying to Rome on December 3rd (2026-12-03)", "2026-12-03", "flying to Rome"),
        ("übermorgen fahre ich nach Hamburg", "2026-11-25", "fahre ich nach Hamburg"),
        ("el viernes voy al concierto", "2026-11-27", "voy al concierto"),
        ("le 3 décembre je déménage", "2026-12-03", "je déménage"),
        ("周六跟小李吃饭", "2026-11-28", "跟小李吃饭"),
        ("明日歯医者に行く", "2026-11-24", "歯医者に行く"),
        ("sister's wedding on Saturday (2026-11-28)", "2026-11-28", "sister's wedding"),
    ],
)
def test_a_plan_with_a_day_to_come_is_one(value: str, day: str, what: str) -> None:
    assert occasions.plan_of(fact(value)) == Occasion(day=date.fromisoformat(day), what=what)


@each_row("value", [
        # No one day, or one that is over.
        "flying to Rome next week (2026-11-30)", "moving to Berlin in December (2026-12)", "learn the piano",
        "in Rome from December 3rd (2026-12-03) to December 10th (2026-12-10)", "dinner with Ben (2026-11-20)",
        "gym every Friday", "我明年搬到北京", "来月引っ越す",
        # Unsure, off, an end.
        "maybe going swimming tomorrow (2026-11-24)", "not going to the party on Friday (2026-11-27)",
        "rent is due on Friday (2026-11-27)", "deadline on Friday (2026-11-27)", "finish the report by Friday",
        "am Freitag gehe ich nicht zur Feier", "el viernes no voy a la fiesta", "demain je ne vais pas au concert",
        "周五不去聚会", "金曜日はパーティーに行かない",
        # Tender.
        "aunt's funeral on Friday (2026-11-27)", "chemo appointment on Friday (2026-11-27)",
        "court hearing on Friday (2026-11-27)", "am Freitag habe ich die Scheidung", "mañana voy al entierro de Ana",
        "demain on va chez l'avocat", "周五去医院做手术", "明日離婚届を出す",
        # Somebody else's.
        "sister has an exam on Wednesday (2026-11-25)", "mein Bruder hat am Freitag eine Prüfung",
        "mi hermana tiene mañana un examen", "ma sœur a un examen vendredi", "妹妹明天考试", "妹は明日試験がある",
    ])  # fmt: skip
def test_what_is_no_sure_and_harmless_plan_of_ones_own_is_none(value: str) -> None:
    assert occasions.plan_of(fact(value)) is None


@each_row(("of", "counts"), [
        ({}, True), ({"kind": "event", "category": "conversation", "key": ""}, True),
        ({"category": "health", "key": "appointment"}, True), ({"category": "decision", "key": "note"}, True),
        ({"category": "preference", "key": "likes"}, False), ({"key": "goal"}, False), ({"kind": "style"}, False),
        ({"confidence": 0.4}, False), ({"subject": "Ben"}, False), ({"flags": ("injection",)}, False),
    ])  # fmt: skip
def test_only_a_sure_fact_of_the_person_is_a_plan(of: dict[str, Any], *, counts: bool) -> None:
    assert (occasions.plan_of(fact("dentist appointment tomorrow (2026-11-24)", **of)) is not None) is counts


def test_a_note_is_a_plan_only_if_it_names_an_occasion() -> None:
    note = {"category": "decision", "key": "note"}
    assert occasions.plan_of(fact("the flight to Rome on Friday (2026-11-27)", **note)) is not None
    assert occasions.plan_of(fact("the wifi password changes on Friday (2026-11-27)", **note)) is None


@each_row(("value", "day"), [
        ("April 9", "04-09"), ("9 April 1988", "04-09"), ("1988-07-17", "07-17"), ("--04-09", "04-09"),
        ("9. April", "04-09"), ("9 de abril de 1990", "04-09"), ("9 avril", "04-09"), ("1990年4月9日", "04-09"),
        ("29 February", "02-28"), ("4/9", None), ("in spring", None),
    ])  # fmt: skip
def test_a_birthday_is_known_by_its_day_and_month(value: str, day: str | None) -> None:
    found = occasions.birthday_of(fact(value, key="birthday", category="identity"), 2027)
    assert found == (None if day is None else date.fromisoformat(f"2027-{day}"))


@each_row(("said", "later", "settled"), [
        ("the dentist is cancelled", False, True), ("the dentist called", False, False), ("cancelled!", False, False),
        ("the dentist was quick", True, True), ("what a day", True, False),
    ])  # fmt: skip
def test_a_message_settles_a_plan_that_it_names(said: str, *, later: bool, settled: bool) -> None:
    plan = Occasion(day=date(2026, 11, 24), what="dentist appointment")
    assert occasions.is_settled(plan, said, later=later) is settled


@pytest.mark.parametrize(
    "value",
    [
        "I have a concert with Tom (2027-02-30)", "concert with Tom (0000-00-00)", "concert with Tom (2026-13-01)",
        "concert with Tom (٢٠٢٧-٠٢-٢٨)", "concert with Tom (2027-02-27/2027-02-30)",
    ],
)  # fmt: skip
def test_a_day_that_does_not_exist_is_no_day(value: str) -> None:
    assert occasions.plan_of(fact(value)) is None


def test_a_day_that_exists_counts_beside_one_that_does_not() -> None:
    planned = occasions.plan_of(fact("concert with Tom tomorrow (2026-11-24), tickets (2027-02-30)"))
    assert planned is not None and planned.day == date(2026, 11, 24)


#: Pieces of what people write of times, with the extremes of the calendar and digits of other scripts.
PIECES = (
    "(2027-02-30)", "(0000-00-00)", "(9999-12-31)", "(0001-01-01)", "(9999-12-31/0001-01-01)", "2026-11-27", "--02-30",
    "1999-02-29", "29.2.2100", "2/30", "9999年12月31日", "令和99999年1月1日", "2月30日", "٣", "²", "½", "Ⅳ", "１２", "④",
    "99999999999999999999", "in", "every", "until", "alle", "jeden", "dans", "dentro de", "每", "后", "days", "Jahren",
    "semaines", "siglos", "个月", "か月後", "tomorrow", "Freitag", "lundi", "週末", "周日", "25:61", "12:00", "noon",
    "concert with Tom", "my birthday is", "Zahnarzt", "歯医者", "，", " ", "-", "/", ".",
)  # fmt: skip


@given(
    st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)),
    st.sampled_from(["plan", "birthday", "goal", "home"]),
    st.sampled_from(["0001-01-01", "2026-11-23", "9999-12-31"]),
)
def test_no_text_of_a_memory_ends_the_look_for_occasions(value: str, key: str, told: str) -> None:
    """One memory that can't be read must not end everybody's reminders."""
    memory = fact(value, key=key, local_date=told)
    planned = occasions.plan_of(memory)
    assert planned is None or planned.day > date.fromisoformat(told)
    for year in (1, 2024, 9999):
        occasions.birthday_of(memory, year)


@given(
    st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)),
    st.sampled_from(["en", "zh", "de", "ja", "fr", "es"]),
    st.sampled_from(
        [
            datetime(1, 1, 1, 0, 0, 1, tzinfo=UTC),
            datetime(2026, 11, 23, 9, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
        ]
    ),
    st.sampled_from(["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"]),
)
def test_no_text_ends_the_reading_of_days_and_times(text: str, language: str, now: datetime, zone: str) -> None:
    """At the ends of the calendar either, where every sum is out of it."""
    aware = now.replace(tzinfo=ZoneInfo(zone))
    named = days_named(text, language=language, now=aware)
    assert named is None or named[0] <= named[1] or "/" in text
    phrases.read(text, language=language, now=aware)
    phrases.read_time(text, language=language, now=aware)
    for ahead in (True, False):
        anchor(text, now.date(), ahead=ahead)
    for period in spans(text, now.date(), looks="back"):
        clock.moments(period.first, period.last, zone)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("day", [date.min, date(9999, 12, 30), date.max])
def test_every_day_has_an_end(day: date, zone: str) -> None:
    assert isinstance(clock.end_of(day, zone), int)
