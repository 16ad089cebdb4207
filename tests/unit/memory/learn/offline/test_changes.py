"""Reading what a message takes back."""

from __future__ import annotations

import pytest

from memory.learn.offline.changes import changes, put_right, to_forget
from tests.kit.tables import each_row


@each_row(
    ("said", "what"),
    [
        ("forget about my knee", "my knee"),
        ("Could you please bin the stuff about Ottoline?", "Ottoline"),
        ("un-know my locker number, would you", "my locker number"),
        ("pretend I never told you about the tattoo", "tattoo"),
        ("keep my debts out of your notes", "my debts"),
        ("remove from memory: the boat's name", "boat's name"),
        ("I'd rather you didn't store my weight", "my weight"),
        ("no need to remember the alarm code", "alarm code"),
        ("I shouldn't have mentioned the lawsuit", "lawsuit"),
        ("feed the cat but forget where I work", "where I work"),
        ("The Lisbon idea? Forget it.", "Lisbon idea"),
        ("please let go of what I said about my cousin because he reads this", "my cousin"),
        ("forget everything you know about me", "all"),
        ("forget what I just told you", "last"),
        ("oh, delete that please", "last"),
    ],
)
def test_a_request_to_forget_names_its_topic(said: str, what: str) -> None:
    assert to_forget(said) == what


@each_row(
    "said",
    [
        "don't forget my birthday",
        "I forgot my umbrella",
        "did you forget my name?",
        "never forget where you come from",
        "before I forget, the plumber comes on Monday",
        "I need to remove a splinter",
        "we stopped keeping bees",
        "I keep hens",
        "take care!",
        "take out the bins on Tuesday",
        "I don't remember my shoe size",
        "forget-me-nots are my favourite flowers",
    ],
)
def test_what_only_speaks_of_forgetting_is_no_request(said: str) -> None:
    assert to_forget(said) is None


@each_row(
    ("said", "what"),
    [
        ("I sold the boat", "the boat"),
        ("gave up on Greek, too hard", "Greek"),
        ("no more coffee for me", "coffee"),
        ("I don't play chess any more", "play chess"),
        ("had to let Bertram go", "Bertram"),
        ("The choir has disbanded.", "The choir"),
        ("i dont play the oboe anymore", "play the oboe"),
        ("we had to put our old spaniel down on Friday", "our old spaniel"),
        ("since the breakup with Ines I sleep badly", "Ines"),
    ],
)
def test_what_is_over_is_named(said: str, what: str) -> None:
    (ended,) = changes(said).ended
    assert ended.what == what


def test_what_is_over_may_be_named_in_the_sentence_before() -> None:
    (ended,) = changes("My paleo diet lasted a week. I'm done with it.").ended
    assert "paleo" in ended.what


@pytest.mark.parametrize(
    ("said", "wrong", "right"),
    [
        ("it's Tessel, not Tassel", "Tassel", "Tessel"),
        ("my name isn't Karl, it's Carl", "Karl", "Carl"),
        ("s/Monday/Tuesday/", "Monday", "Tuesday"),
        ("the shop is in Ghent, not Bruges", "Bruges", "in Ghent"),
    ],
)
def test_a_correction_may_name_both(said: str, wrong: str, right: str) -> None:
    (denied,) = changes(said).denied
    assert (denied.what, denied.new) == (wrong, right)


@each_row(
    ("said", "right"),
    [
        ("make that three eggs", "three eggs"),
        ("change my favourite colour to ochre", "ochre"),
        ("*Lisbeth", "Lisbeth"),
        ("it's spelled Kateryna", "Kateryna"),
        ("I meant Thursday", "Thursday"),
        ("Correction, it should be the 12th", "12th"),
    ],
)
def test_a_correction_may_name_only_what_is_right(said: str, right: str) -> None:
    read = changes(said)
    assert read.corrects and read.new == right


@each_row(
    "said",
    ["I live in Ghent", "We had soup", "Where do I live, not work?", "I put the kids to sleep", "put it down there"],
)
def test_a_plain_statement_or_question_takes_nothing_back(said: str) -> None:
    read = changes(said)
    assert not (read.corrects or read.denied or read.ended)


def test_a_correction_takes_the_place_of_a_word_of_its_kind() -> None:
    assert put_right("train to Ghent at 7:15", "it leaves at 9:40", near=True) == "train to Ghent at 9:40"
    assert put_right("choir on Monday", "Tuesday", near=True) == "choir on Tuesday"
    assert put_right("Dr Pemble", "it's Dr Pimble", near=False) == "Dr Pimble"
    assert put_right("allergic to nuts", "the weather is fine", near=False) is None


@pytest.mark.parametrize(
    ("text", "off", "moved"),
    [
        ("ugh they cancelled", True, False),
        ("it's been moved to thursday", False, True),
        ("wurde abgesagt", True, False),
        ("verschoben auf Mittwoch", False, True),
        ("c'est annulé", True, False),
        ("ils l'ont décalé à jeudi", False, True),
        ("lo han cancelado", True, False),
        ("lo han movido al jueves", False, True),
        ("啊取消了", True, False),
        ("改签了 周六上午", False, True),
        ("キャンセルになった", True, False),
        ("土曜の10時に変更になった", False, True),
        ("actually scrap that, landlord pulled out, not moving anymore", True, False),
        ("wir ziehen doch nicht um", True, False),
        ("finalement on ne part plus", True, False),
        ("al final no me mudo", True, False),
        ("算了，不搬了", True, False),
        ("結局引っ越さないことになった", True, False),
        ("I moved to Bonn", False, False),
        ("we have a cat", False, False),
    ],
)
def test_what_is_cancelled_or_moved_without_a_name_is_told(text: str, off: bool, moved: bool) -> None:
    found = changes(text)
    assert (found.off, found.moved) == (off, moved)


@pytest.mark.parametrize(
    ("text", "sure"), [("sorry, the knee hurts", False), ("sorry, I mixed it up", True), ("fat fingers, it's 12", True)]
)
def test_politeness_alone_puts_nothing_right(text: str, sure: bool) -> None:
    assert changes(text).sure is sure


def test_a_time_of_day_is_no_correction_of_a_place_in_an_order() -> None:
    assert put_right("the test is the 9th of May", "call me at 6pm", near=True) is None
    assert put_right("the test is the 9th of May", "on the 11th", near=True) == "the test is the 11th of May"


def test_a_word_is_put_right_only_by_a_clear_correction() -> None:
    """ "Sorry" may be said of anything."""
    assert put_right("they trampled all evening", "I trample", near=True, slips=False) is None
