"""Claims of a model that a message supports, and claims that it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.learn.grounding import Claim, SaidText, features, is_quoted, judge
from tests.kit.tables import each_row


def verdict(key: str, value: str, text: str, *, before: str = "", quote: str = "") -> str:
    return weighed(Claim(key=key, value=value, quote=quote), text, before=before)


def weighed(claim: Claim, text: str, *, before: str = "") -> str:
    return judge(claim, SaidText(text=text, before=before)).verdict


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("sister", "Anna lives in Rome", "my sister Anna lives in Rome"),
        ("appointment", "dentist on Friday at 10", "I have a dentist appointment on Friday at 10"),
        ("pickup", "6:40 at gate B", "quickly: pickup is at 6:40 at gate B."),
        ("event", "stopped violin lessons in March", "I stopped my violin lessons in March."),
    ],
)
def test_what_a_message_says_is_sure(key: str, value: str, text: str) -> None:
    assert verdict(key, value, text) == "sure"


@each_row(
    ("key", "value", "text"),
    [
        ("occupation", "astronaut", "nice weather today"),
        ("plan", "moves to the city of Graz in autumn", "maybe I will move to Graz in autumn, we'll see"),
        ("car", "a 1978 Saab in the garage", "I have a 1987 Saab in the garage"),
        ("home", "Osaka", "what time is it in Osaka right now?"),
        ("likes", "hiking", "I never said that, please don't."),
    ],
)
def test_what_a_message_may_not_mean_is_never_sure(key: str, value: str, text: str) -> None:
    assert verdict(key, value, text) != "sure"


def test_a_question_about_a_thing_is_no_fact_about_who_asks() -> None:
    """Most invented health facts come from questions."""
    assert verdict("condition", "diabetes", "can people with gout eat lychees?") == "refused"


def test_a_quote_that_nobody_wrote_and_no_word_of_it_is_refused() -> None:
    text = "the trains were late again"
    assert verdict("work", "conductor", text, quote="I work as a conductor") == "refused"
    assert verdict("work", "conductor", text, quote="the trains were late") != "refused"
    assert is_quoted("Trains were LATE", text) and not is_quoted("early", text)


def test_a_yes_says_what_was_asked_and_a_no_does_not() -> None:
    asked = "Does your mother still live in Toledo?"
    yes, no = (features(Claim(key="mother", value="lives in Toledo"), SaidText(text=said, before=asked)) for said in
               ("yes, in the same house", "no, she moved"))  # fmt: skip
    assert yes["suggested"] == 0 and yes["words shared"] > 0
    assert no["suggested"] > 0


@each_row(
    ("key", "value", "text", "verdicts"),
    [
        ("home", "Porto", "my home is Porto", "sure"),
        ("occupation", "nurse", "I work as a nurse at the children's hospital in Leeds", "sure"),
        ("name", "Ada", "I'm Ada", "sure"),
        ("name", "taxi", "Call me a taxi please", "unsure"),
        ("name", "Bob", "Call me when Bob is there", "unsure"),
        ("favourite-board-game", "chess", "my favourite board game is chess", "sure"),
        ("home", "苏州", "我住在苏州", "sure"),
        ("home", "Porto", "my sister lives in Porto", "unsure"),
        ("home", "Porto", "I don't live in Porto", "unsure"),
        ("home", "Porto", "do I live in Porto?", "refused"),
        ("age", "40", "My flight to Oslo is on December 12 at 7:40", "refused"),
    ],
)
def test_one_word_is_sure_if_its_clause_says_of_what_it_is_the_value(
    key: str, value: str, text: str, verdicts: str
) -> None:
    """Most of what people say of themselves is one name beside "live", "work" or "allergic"."""
    assert verdict(key, value, text) == verdicts


def test_a_claim_that_names_what_it_replaces_needs_less_but_no_doubt() -> None:
    """A model that finds the row which is over has read the message."""
    sold = Claim(key="car", value="drives a Volvo V60", replaces=True)
    assert weighed(sold, "I sold the Panda and got myself a Volvo V60.") == "sure"
    assert weighed(sold, "Maybe I'll get myself a Volvo V60.") != "sure"


@given(key=st.text(max_size=20), value=st.text(max_size=60), text=st.text(max_size=200), before=st.text(max_size=60))
def test_any_text_gets_a_verdict(key: str, value: str, text: str, before: str) -> None:
    assert verdict(key, value, text, before=before, quote=value) in ("sure", "unsure", "refused")


def test_what_is_said_in_so_many_words_of_oneself_is_sure() -> None:
    text = "Got the keys this morning and slept on the floor: I live in Trondheim from today."
    claim = Claim(key="home", value="lives in Trondheim")
    assert weighed(claim, text) == "sure"
    assert weighed(claim, "Maybe I live in Trondheim next year, who knows.") != "sure"
    assert weighed(claim, "My sister lives in Trondheim.") != "sure"
