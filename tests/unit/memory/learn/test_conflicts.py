"""What a new fact means for an older one."""

from __future__ import annotations

import pytest

from memory.learn.conflicts import Told, outcome


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (("allergy", "allergic to nuts"), ("health", "not allergic to nuts"), "supersede"),
        (("music", "hates country music"), ("likes", "loves country music"), "supersede"),
        (("city", "Lisbon"), ("home", "Porto"), "supersede"),
        (("wohnort", "Kassel"), ("home", "Jena"), "supersede"),
        (("pet", "parrot named Figaro"), ("event", "parrot Figaro died"), "end"),
        (("plan", "trip to Peru in March"), ("travel", "Peru trip cancelled"), "end"),
        (("birthday", "2 April"), ("birthday", "12 April"), "ask"),
        (("likes", "opera"), ("likes", "heavy metal"), "keep_both"),
        (("habit", "jazz in the morning"), ("habit", "jazz in the evening"), "keep_both"),
        (("drink", "drinks tea without sugar"), ("drink", "sugar in coffee"), "keep_both"),
        (("employer", "works at a bank in Munich"), ("event", "sister in Munich died"), "keep_both"),
        (("pet", "parrot named Figaro"), ("pet", "Figaro had a bath"), "keep_both"),
        (("allergy", "allergic to nuts"), ("sister", "sister not allergic to nuts"), "keep_both"),
    ],
)
def test_a_fact_takes_the_place_of_what_it_denies_and_of_nothing_else(
    old: tuple[str, str], new: tuple[str, str], expected: str
) -> None:
    """In doubt both stand."""
    assert outcome(Told(key=old[0], value=old[1]), Told(key=new[0], value=new[1])) == expected


def test_a_mistake_put_right_needs_no_question() -> None:
    """The person has said which one is wrong."""
    right = Told(key="birthday", value="12 April", text="small mistake of mine, I was born on 12 April")
    assert outcome(Told(key="birthday", value="2 April"), right) == "supersede"
