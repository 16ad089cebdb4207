"""Putting a plan on another day or at another hour."""

from __future__ import annotations

from datetime import date

from memory.learn.offline.rescheduling import rescheduled
from tests.kit.tables import each_row

FRIDAY = date(2026, 11, 20)


@each_row(
    ("plan", "said", "moved"),
    [
        ("dentist next Tuesday at 3pm", "moved to Wednesday", "dentist next Wednesday at 3pm"),
        ("dentist on Tuesday at 3pm", "it's at 5", "dentist on Tuesday at 5"),
        ("dentist on Tuesday at 3pm", "moved to Wednesday at 5pm", "dentist on Wednesday at 5pm"),
        ("dentist tomorrow", "no, on the 25th", "dentist on the 25th"),
        ("Zahnarzt am Dienstag um 15 Uhr", "auf 16 Uhr verlegt", "Zahnarzt am Dienstag um 16 Uhr"),
        ("1er mars à Rome", "non, le 2", "2 mars à Rome"),
        ("下周二下午3点看牙", "改到4点", "下周二下午4点看牙"),
    ],
)
def test_the_new_time_takes_the_place_of_the_old(plan: str, said: str, moved: str) -> None:
    found = rescheduled(plan, said, told=FRIDAY, today=FRIDAY)
    assert found is not None
    assert found.plan == moved


@each_row(
    ("plan", "said"),
    [
        ("flying to Rome on 3 March", "at 9am"),
        ("flying to Rome on 3 March", "no, on Wednesday"),
        ("trip from 3 March to 9 March", "no, on the 15th"),
        ("dentist on Tuesday", "Wednesday or Thursday"),
        ("dentist on Tuesday", "it was lovely"),
        ("下周二下午3点看牙", "改到9点"),
    ],
)
def test_a_time_without_a_clear_place_moves_nothing(plan: str, said: str) -> None:
    assert rescheduled(plan, said, told=FRIDAY, today=FRIDAY) is None
