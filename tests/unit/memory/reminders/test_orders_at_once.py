"""Orders about existing reminders, in six languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from languages import LANGUAGES
from memory.reminders.orders import Order, is_beside, read, reworded, takes_back
from tests.kit.tables import each_row


def first(text: str, language: str) -> Order | None:
    return next(read(text, language=language), None)


@each_row(("language", "text"), [
        ("en", "what are my reminders?"), ("en", "show my reminders please"), ("en", "do I have any reminders?"),
        ("de", "Was sind meine Erinnerungen?"), ("de", "zeig mir meine Erinnerungen"),
        ("es", "¿Cuáles son mis recordatorios?"), ("fr", "Quels sont mes rappels ?"),
        ("zh", "我有哪些提醒？"), ("zh", "查看提醒"), ("ja", "リマインダーを見せて"), ("ja", "リマインダー一覧"),
    ])  # fmt: skip
def test_a_person_asks_for_the_list_in_words(language: str, text: str) -> None:
    assert first(text, language) == Order(action="list", named=True)


@each_row(
    ("language", "text", "meant"),
    [
        ("en", "cancel the second one", Order(action="cancel", place=2)),
        ("en", "delete reminder 12, please", Order(action="cancel", number=12, named=True)),
        ("en", "snooze it for 20 minutes", Order(action="snooze", rest="20 minutes")),
        ("en", "move the second one to friday at 9", Order(action="change", place=2, rest="to friday at 9")),
        ("de", "lösche die zweite", Order(action="cancel", place=2)),
        ("de", "Erinnerung 2 löschen", Order(action="cancel", number=2, named=True)),
        ("es", "cancela el segundo", Order(action="cancel", place=2)),
        ("fr", "annule le deuxième", Order(action="cancel", place=2)),
        ("zh", "取消第二个", Order(action="cancel", place=2)),
        ("zh", "第二个改到明天十点", Order(action="change", place=2, rest="明天十点")),
        ("ja", "2番目をキャンセルして", Order(action="cancel", place=2)),
    ],
)
def test_a_reminder_is_named_by_its_number_or_its_place(language: str, text: str, meant: Order) -> None:
    assert first(text, language) == meant


@each_row(("language", "text"), [
        ("en", "actually forget it"), ("en", "never mind"), ("de", "ach nein, vergiss es"), ("de", "doch nicht"),
        ("es", "olvídalo"), ("fr", "laisse tomber"), ("zh", "算了"), ("ja", "やっぱりいい"),
    ])  # fmt: skip
def test_a_change_of_mind_takes_back(language: str, text: str) -> None:
    assert takes_back(text, language=language)


@pytest.mark.parametrize("text", ["forget my dog's name", "cancel my gym membership", "cancel reminder 2", "hello"])
def test_talk_of_something_takes_nothing_back(text: str) -> None:
    assert not takes_back(text, language="en")


@pytest.mark.parametrize(
    ("language", "text", "reminder"),
    [
        ("en", "cancel the reminder to call mum", "Call Mum"),
        ("de", "lösche die Erinnerung an den Müll", "Müll"),
        ("zh", "取消交房租的提醒", "交房租"),
    ],
)
def test_a_reminder_is_named_by_its_words(language: str, text: str, reminder: str) -> None:
    order = first(text, language)
    assert order is not None and order.named and order.speaks_of(reminder)
    assert not order.speaks_of("something else")


def test_a_request_is_no_order() -> None:
    assert first("remind me to cancel the reminder", "en") is None


@each_row(
    ("language", "text", "words"),
    [
        ("en", "actually to ring her", "ring her"),
        ("en", "No, I meant: write to Paul!", "write to Paul"),
        ("de", "nein, ich meinte das Altpapier", "das Altpapier"),
        ("es", "en realidad llamar al casero", "llamar al casero"),
        ("fr", "non, je voulais dire tailler la haie", "tailler la haie"),
        ("zh", "不对，我是说交水费", "交水费"),
        ("ja", "ごめん、正しくは瓶を出す", "瓶を出す"),
        ("en", "actually I am tired", ""),
        ("en", "I want to ring her", ""),
        ("es", "en realidad estoy cansada", ""),
        ("fr", "en fait je suis fatigué", ""),
        ("zh", "其实我累了", ""),
    ],
)
def test_words_take_the_place_of_those_of_a_reminder(language: str, text: str, words: str) -> None:
    assert reworded(text, language=language) == words


def test_words_beside_a_time_are_small() -> None:
    assert is_beside("no, make it instead", language="en")
    assert not is_beside("i go to the gym", language="en")


@given(st.text(max_size=100), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_is_read(text: str, language: str) -> None:
    for order in read(text, language=language):
        assert order.number is None or order.number >= 0


def test_words_stand_in_a_reminder_as_whole_ones() -> None:
    order = first("cancel the art", "en")
    assert order is not None and order.calls_off
    assert order.speaks_of("Art class") and not order.speaks_of("start the car")


@each_row(("language", "said"), [("en", "make it 20:30"), ("de", "ok, mach lieber 20:30"), ("es", "mejor ponlo a las 20:30"), ("fr", "plutôt, mets 20:30"), ("ja", "20:30に変更"), ("zh", "算了，改成20:30")])  # fmt: skip
def test_the_minutes_of_a_time_are_no_reminder(language: str, said: str) -> None:
    """ "Make it 20:30" is not about reminder 30."""
    order = next(read(said, language=language))
    assert order.action == "change" and order.number is None and order.rest.endswith("20:30")
