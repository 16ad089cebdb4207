"""Appointments that no pattern of a plan reads."""

from __future__ import annotations

from datetime import date

from memory.learn.offline.appointments import appointment
from memory.learn.offline.patterns import extract
from tests.kit.tables import each_row

MONDAY = date(2026, 9, 21)


@each_row(
    ("code", "said", "noted"),
    [
        ("en", "I have the dentist on Thursday at 3", "dentist on Thursday (2026-09-24) at 3"),
        ("en", "dentist thursday 3pm", "dentist thursday (2026-09-24) 3pm"),
        ("en", "Oh, and I've got a check-up on 5 October.", "check-up on 5 October (2026-10-05)"),
        ("de", "am Donnerstag um 15 Uhr hab ich Zahnarzt", "am Donnerstag (2026-09-24) um 15 Uhr Zahnarzt"),
        ("es", "el jueves a las 3 tengo dentista", "el jueves (2026-09-24) a las 3 dentista"),
        ("fr", "jeudi à 15h j'ai dentiste", "jeudi (2026-09-24) à 15h dentiste"),
        ("ja", "木曜日に歯医者があります", "木曜日 (2026-09-24)に歯医者があります"),
        ("zh", "下周三下午两点我要去看牙", "下周三 (2026-09-30)下午两点我要去看牙"),
    ],
)
def test_an_appointment_is_noted_with_its_day(code: str, said: str, noted: str) -> None:
    assert appointment(said, code=code, today=MONDAY) == noted
    assert [one.value for one in extract(said, today=MONDAY) if one.key == "plan"] == [noted]


@each_row(
    ("code", "said"),
    [
        ("en", "I had the dentist on Thursday"),
        ("en", "Tom has a dentist appointment on Friday"),
        ("en", "my sister has the dentist on Thursday"),
        ("en", "when is my dentist appointment on Thursday?"),
        ("en", "the appointment on Friday is cancelled"),
        ("en", "maybe the dentist on Thursday"),
        ("en", "my dentist is nice"),
        ("en", "the dentist on Thursday or the doctor on Friday"),
        ("de", "erinner mich am Donnerstag an den Zahnarzt"),
        ("de", "Lena hat am Freitag Zahnarzt"),
        ("zh", "小明下周三去看牙"),
        ("zh", "下周三要去看牙吗"),
    ],
)
def test_what_is_over_asked_unsure_or_somebody_elses_is_none(code: str, said: str) -> None:
    assert appointment(said, code=code, today=MONDAY) is None
