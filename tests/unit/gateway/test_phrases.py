"""Facts are repeated to people in whole clauses, in their language, with their own words untouched."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.phrases import Language, say
from memory.keys import KEY_CATEGORIES


@pytest.mark.parametrize(
    ("key", "value", "english", "chinese"),
    [
        ("home", "Lisbon", "you live in Lisbon", "你住在Lisbon"),
        ("home", "里斯本", "you live in 里斯本", "你住在里斯本"),
        ("allergy", "花生", "you are allergic to 花生", "你对花生过敏"),
        ("sister", "Ana", "your sister: Ana", "你的姐妹：Ana"),
        ("mother-in-law", "Eva", "your mother-in-law: Eva", "你的岳母或婆婆：Eva"),
        ("favourite-color", "blue", "your favourite color is blue", "你最喜欢的颜色是blue"),
        ("favourite-board-game", "Go", "your favourite board game is Go", "你最喜欢的board game是Go"),
        ("dislikes", "香菜", "you don't like 香菜", "你不喜欢香菜"),
        ("locker-code", "44", "locker-code: 44", "locker-code: 44"),
        ("favourite-", "x", "favourite-: x", "favourite-: x"),
    ],
)
def test_a_fact_is_said_as_a_clause_in_either_language(key: str, value: str, english: str, chinese: str) -> None:
    """These are the sentences people read after "Noted" and must recognise as their own."""
    assert say(key, value, language="en") == english
    assert say(key, value, language="zh") == chinese


@pytest.mark.parametrize("key", sorted(KEY_CATEGORIES))
@pytest.mark.parametrize("language", get_args(Language))
def test_every_known_key_has_a_phrase(key: str, language: Language) -> None:
    """A key the extractor can produce must never be shown raw, as a column name."""
    assert say(key, "x", language=language) != f"{key}: x"


@given(key=st.sampled_from([*KEY_CATEGORIES, "favourite-tea", "made-up"]), value=st.text(min_size=1))
def test_a_value_is_never_changed(key: str, value: str) -> None:
    """Braces, line breaks or the placeholder itself in a value are the person's words, not our template."""
    for language in get_args(Language):
        assert value in say(key, value, language=language)
