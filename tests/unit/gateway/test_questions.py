"""How a stored question is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.pipeline import questions
from gateway.wording.texts import Texts
from memory.store.questions import Question
from tests.kit.tables import each_row

QUESTION = Question(id=17, purpose="forget", payload="{}", choices=("yes", "no"), preset="yes")


@each_row(
    ("typed", "taken"),
    [
        ("yes", "yes"), ("Yes!", "yes"), ("y", "yes"), ("是的", "yes"), ("no", "no"), ("不要", "no"),
        ("maybe", questions.UNCLEAR), ("2", "no"), ("也许", questions.UNCLEAR), ("I am not sure yet", None),
        ("yes please", "yes"), ("Sí, por favor", "yes"), ("ja, bitte!", "yes"), ("Oui, merci", "yes"),
        ("はい、お願いします", "yes"), ("好的", "yes"), ("no, gracias", "no"), ("nein danke", "no"), ("Non merci", "no"),
        ("いいえ。", "no"), ("ja, aber erst morgen", questions.UNCLEAR), ("please", None),
        ("yes please do it later", questions.UNCLEAR),
    ],
)  # fmt: skip
def test_only_a_plain_answer_answers_a_question(typed: str, taken: str | None) -> None:
    assert questions.typed(QUESTION, typed) == taken


@each_row(("typed", "taken"), [
        ("yes", "yes"), ("Yes.", "yes"), ("是", "yes"), ("no", "no"), ("n", "no"), ("不要", "no"), ("取消", "no"),
        ("ok", questions.UNSURE), ("Sure!", questions.UNSURE), ("y", questions.UNSURE), ("好的", questions.UNSURE),
        ("对", questions.UNSURE), ("确定", questions.UNSURE), ("hello", None),
    ])  # fmt: skip
def test_what_cant_be_undone_takes_the_very_word(typed: str, taken: str | None) -> None:
    """An "ok" to something else must not erase a person's everything, nor be lost as a no."""
    assert questions.typed(replace(QUESTION, preset="no"), typed) == taken


CHOICES = replace(QUESTION, choices=("words", "memory", "no"), preset="words")


@each_row(("typed", "taken"), [
        ("1", "words"), ("2", "memory"), ("3.", "no"), ("(2)", "memory"), ("option 2", "memory"), ("２", "memory"),
        ("the second one", "memory"), ("der zweite", "memory"), ("第二个", "memory"), ("la segunda", "memory"),
        ("go ahead", "words"), ("Of course!", "words"), ("没问题", "words"), ("adelante", "words"), ("d'accord", "words"),
        ("4", questions.UNCLEAR), ("0", questions.UNCLEAR), ("not sure", questions.UNCLEAR), ("hmm…", questions.UNCLEAR),
        ("weiß nicht", questions.UNCLEAR), ("no sé", questions.UNCLEAR), ("也许", questions.UNCLEAR),
        ("yes but keep the words", questions.UNCLEAR), ("2 eggs and flour", None), ("ok, what is for dinner?", None),
        ("I am not sure that he is right", None), ("yes I went to the market with Ben today", None),
    ])  # fmt: skip
def test_a_choice_is_taken_by_its_number_and_a_doubtful_answer_is_known_as_such(typed: str, taken: str | None) -> None:
    """People answer a list by number, and hesitate before something that can't be undone."""
    assert questions.typed(CHOICES, typed) == taken


@pytest.mark.parametrize(("typed", "taken"), [("1", questions.UNSURE), ("2", "no"), ("go ahead", questions.UNSURE)])
def test_a_number_alone_never_does_what_takes_the_very_word(typed: str, taken: str) -> None:
    """A number may be meant for something else on the screen."""
    assert questions.typed(replace(QUESTION, preset="no"), typed) == taken


@each_row(("typed", "taken"), [
        ("the words", "words"), ("And the words, too!", "words"), ("only the memory", "memory"), ("this", None),
        ("memory only", "memory"), ("nur die Erinnerung", "memory"), ("only this memory is about Ada", None),
    ])  # fmt: skip
def test_a_choice_may_be_said_in_part(typed: str, taken: str | None) -> None:
    question = replace(QUESTION, choices=("words", "memory", "no"), preset="words")
    assert questions.typed(question, typed) == taken


def test_a_button_names_its_question_and_its_choice() -> None:
    buttons = questions.buttons(QUESTION, Texts("zh"))
    assert [(button.label, questions.pressed(button.data)) for button in buttons] == [
        ("是", (17, "yes")),
        ("否", (17, "no")),
    ]
    alone = questions.buttons(QUESTION, Texts("zh"), alone=True)
    assert [questions.pressed(button.data) for button in alone] == [(17, "yes"), (17, "no")]
    assert all(len(button.data.encode()) <= 64 for button in (*buttons, *alone))


def test_a_button_tells_whether_its_question_stands_alone() -> None:
    """Other words in a message must not go with the answer."""
    for alone in (False, True):
        for button in questions.buttons(QUESTION, Texts("en"), alone=alone):
            assert questions.holds_the_question(button.data) is alone
    assert (
        not questions.holds_the_question("page:list:1")
        and not questions.holds_the_question(":alone")
        and not questions.holds_the_question("")
    )


@each_row("data", ["", "answer:", "answer:x:yes", "answer:99999999999999999999:yes", "again:3", "now"])
def test_other_data_is_no_answer(data: str) -> None:
    assert questions.pressed(data) is None
