"""Memories that speak of a plan one may ask about, or of a birthday."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from memory.reminders import occasions
from memory.reminders.occasions import Occasion
from memory.store.memories import Memory

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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "value",
    [
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
    ],
)  # fmt: skip
def test_what_is_no_sure_and_harmless_plan_of_ones_own_is_none(value: str) -> None:
    assert occasions.plan_of(fact(value)) is None


@pytest.mark.parametrize(
    ("of", "counts"),
    [
        ({}, True), ({"kind": "event", "category": "conversation", "key": ""}, True),
        ({"category": "health", "key": "appointment"}, True), ({"category": "decision", "key": "note"}, True),
        ({"category": "preference", "key": "likes"}, False), ({"key": "goal"}, False), ({"kind": "style"}, False),
        ({"confidence": 0.4}, False), ({"subject": "Ben"}, False), ({"flags": ("injection",)}, False),
    ],
)  # fmt: skip
def test_only_a_sure_fact_of_the_person_is_a_plan(of: dict[str, Any], *, counts: bool) -> None:
    assert (occasions.plan_of(fact("dentist appointment tomorrow (2026-11-24)", **of)) is not None) is counts


def test_a_note_is_a_plan_only_if_it_names_an_occasion() -> None:
    note = {"category": "decision", "key": "note"}
    assert occasions.plan_of(fact("the flight to Rome on Friday (2026-11-27)", **note)) is not None
    assert occasions.plan_of(fact("the wifi password changes on Friday (2026-11-27)", **note)) is None


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("April 9", "04-09"), ("9 April 1988", "04-09"), ("1988-07-17", "07-17"), ("--04-09", "04-09"),
        ("9. April", "04-09"), ("9 de abril de 1990", "04-09"), ("9 avril", "04-09"), ("1990年4月9日", "04-09"),
        ("29 February", "02-28"), ("4/9", None), ("in spring", None),
    ],
)  # fmt: skip
def test_a_birthday_is_known_by_its_day_and_month(value: str, day: str | None) -> None:
    found = occasions.birthday_of(fact(value, key="birthday", category="identity"), 2027)
    assert found == (None if day is None else date.fromisoformat(f"2027-{day}"))


@pytest.mark.parametrize(
    ("said", "later", "settled"),
    [
        ("the dentist is cancelled", False, True), ("the dentist called", False, False), ("cancelled!", False, False),
        ("the dentist was quick", True, True), ("what a day", True, False),
    ],
)  # fmt: skip
def test_a_message_settles_a_plan_that_it_names(said: str, *, later: bool, settled: bool) -> None:
    plan = Occasion(day=date(2026, 11, 24), what="dentist appointment")
    assert occasions.is_settled(plan, said, later=later) is settled
