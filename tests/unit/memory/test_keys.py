"""The vocabulary of facts decides what replaces what and what fades, so its lists are pinned here."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from memory.keys import (
    CATEGORIES,
    KEY_CATEGORIES,
    KEY_LIMIT,
    PROFILE_SLOTS,
    SINGLE_VALUED,
    category_of,
    is_single_valued,
    normalise_key,
    normalise_value,
    profile_slot,
)
from tests.kit.tables import each_row


def test_categories_fade_as_designed() -> None:
    """A wrong half-life would lose an allergy or keep a debugging note for ever."""
    lasting = {name for name, half_life in CATEGORIES.items() if half_life is None}
    assert lasting == {"identity", "relation", "boundary", "health", "instruction"}
    assert {CATEGORIES[name] for name in ("preference", "place", "work")} == {365}
    assert {CATEGORIES[name] for name in ("decision", "solution", "config", "project")} == {180}
    assert {CATEGORIES[name] for name in ("plan", "happening", "artifact")} == {60}
    assert (CATEGORIES["conversation"], CATEGORIES["temp"], CATEGORIES["debug"]) == (14, 3, 3)
    assert "credential" not in CATEGORIES


def test_every_known_key_has_a_known_category() -> None:
    """A fact of an unknown category would have no half-life and fail when its strength is computed."""
    assert set(KEY_CATEGORIES.values()) <= set(CATEGORIES)
    assert category_of("favourite-color") == "preference"
    assert category_of("shoe-size") is None


@each_row("key", ["name", "home", "employer", "birthday", "timezone", "favourite-color"])
def test_single_valued_keys_are_replaced(key: str) -> None:
    """Somebody who moves must not be remembered as living in two places."""
    assert is_single_valued(key)


@each_row("key", ["likes", "allergy", "sister", "pet", "speaks", "note", "favourites", "nationality"])
def test_other_keys_hold_many_values(key: str) -> None:
    """A second allergy that replaced the first one could hurt somebody."""
    assert not is_single_valued(key)


def test_single_valued_keys_are_normalised() -> None:
    """The list is compared with normalised keys, so an entry in any other form would never match."""
    assert {normalise_key(key) for key in SINGLE_VALUED} == SINGLE_VALUED


@each_row(
    ("category", "key", "slot"),
    [
        ("identity", "called", "name"), ("identity", "speaks", "language"), ("identity", "birthday", None),
        ("place", "home", "place"), ("relation", "pet", "relations"), ("preference", "likes", "likes"),
        ("preference", "hobby", "interests"), ("health", "allergy", "boundaries"), ("plan", "goal", "goals"),
        ("plan", "plan", None), ("instruction", "instruction", "how-to-talk"), ("project", "deadline", None),
    ],
)  # fmt: skip
def test_a_fact_feeds_at_most_one_slot(category: str, key: str, slot: str | None) -> None:
    """The profile has little room; the same fact in two slots wastes it."""
    assert profile_slot(category=category, key=key) == slot


def test_no_key_is_named_by_two_slots() -> None:
    """Which slot a fact feeds must not depend on the order of the table."""
    named = [key for slot in PROFILE_SLOTS.values() for key in slot.keys]
    assert len(named) == len(set(named))


@each_row(
    ("text", "key"),
    [
        ("Favorite Colour", "favourite-color"), ("  home_town!! ", "home-town"), ("WLAN-Schlüssel", "wlan-schlüssel"),
        ("最喜欢的 颜色", "最喜欢的-颜色"), ("ชื่อเล่น", "ชื่อเล่น"), ("Ⅳ ﬁle", "iv-file"), ("???", ""), ("x" * 300, "x" * 128),
    ],
)  # fmt: skip
def test_a_key_has_one_spelling(text: str, key: str) -> None:
    """Two spellings of one key would be two memories of one thing."""
    assert normalise_key(text) == key


@given(st.text(max_size=300))
@example("İ")
@example("ΐ" * 100)
def test_normalising_a_key_twice_changes_nothing(text: str) -> None:
    """Keys pass through here on every way into the store, some of them more than once."""
    key = normalise_key(text)
    assert normalise_key(key) == key
    assert len(key) <= KEY_LIMIT
    assert key == key.strip("-")
    assert all(c == "-" or unicodedata.category(c)[0] in "LNM" for c in key)


@each_row(
    ("one", "other"),
    [
        ("Lisbon", " lisbon. "), ("ｂｌａｃｋ  coffee", "Black Coffee"), ("《三体》", "三体"), ("“peanuts”", "peanuts"),
        ("STRASSE", "straße"),
    ],
)  # fmt: skip
def test_values_equal_but_for_their_dress_compare_equal(one: str, other: str) -> None:
    """Being told again is reinforcement, not a second memory."""
    assert normalise_value(one) == normalise_value(other)


@each_row(("one", "other"), [("C", "C#"), ("5", "-5"), ("5", "5%"), ("nuts", "no nuts"), ("Rex", "rey")])
def test_values_that_differ_in_substance_stay_apart(one: str, other: str) -> None:
    """Taking these for equal would silently drop what somebody said."""
    assert normalise_value(one) != normalise_value(other)


@given(st.text(max_size=200))
def test_normalising_a_value_twice_changes_nothing(text: str) -> None:
    """Stored hashes of values are compared with fresh ones, so the form must be a fixed point."""
    value = normalise_value(text)
    assert normalise_value(value) == value
