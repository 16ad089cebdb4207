"""Facts are repeated to people in whole clauses, in their language, with their own words untouched."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wording.phrases import say, wording
from languages import LANGUAGES, Language
from memory.keys import KEY_CATEGORIES
from tests.kit.tables import each_row


@each_row(
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


@each_row(
    ("key", "value", "language", "said"),
    [
        ("favourite-color", "Blau", "de", "deine Lieblingsfarbe: Blau"),
        ("favourite-color", "bleu", "fr", "ta couleur préférée : bleu"),
        ("favourite-movie", "Roma", "es", "tu película favorita: Roma"),
        ("favourite-tea", "Oolong", "de", "dein Favorit (tea): Oolong"),
        ("friend", "Luc", "fr", "parmi tes amis : Luc"),
        ("plan", "rendez-vous mardi", "fr", "tu as prévu : rendez-vous mardi"),
    ],
)
def test_a_favourite_is_named_as_people_name_it(key: str, value: str, language: Language, said: str) -> None:
    assert say(key, value, language=language) == said


@each_row("key", sorted(KEY_CATEGORIES))
@each_row("language", LANGUAGES)
def test_every_known_key_has_a_phrase(key: str, language: Language) -> None:
    """A key the extractor can produce must never be shown raw, as a column name."""
    assert say(key, "x", language=language) != f"{key}: x"


@given(key=st.sampled_from([*KEY_CATEGORIES, "favourite-tea", "made-up"]), value=st.text(min_size=1))
def test_a_value_is_never_changed(key: str, value: str) -> None:
    """Braces, line breaks or the placeholder itself in a value are the person's words, not our template."""
    for language in LANGUAGES:
        assert value in say(key, value, language=language)


@each_row(
    ("key", "value", "language", "said"),
    [
        ("allergy", "allergic to nuts", "en", "you are allergic to nuts"),
        ("allergy", "Allergic to allergic to nuts", "en", "you are allergic to nuts"),
        ("allergy", "allergic to nuts", "de", "du bist allergisch gegen nuts"),
        ("allergy", "allergisch gegen Nüsse", "de", "du bist allergisch gegen Nüsse"),
        ("allergy", "alérgica a las nueces", "es", "tienes alergia a: las nueces"),
        ("allergy", "allergique aux noix", "fr", "tu as une allergie : noix"),
        ("allergy", "对花生过敏", "zh", "你对花生过敏"),
        ("allergy", "花生过敏", "zh", "你对花生过敏"),
        ("allergy", "アレルギーは卵", "ja", "アレルギー：卵"),
        ("likes", "likes tea", "en", "you like tea"),
        ("likes", "Likes Bach", "en", "you like Bach"),
        ("likes", "喜欢茶", "zh", "你喜欢茶"),
        ("dislikes", "doesn't like tea", "en", "you don't like tea"),
        ("home", "lives in Lisbon", "en", "you live in Lisbon"),
        ("home", "in Lisbon", "en", "you live in Lisbon"),
        ("home", "wohnt in Kassel", "de", "du wohnst in Kassel"),
        ("home", "vive en Bilbao", "es", "vives en Bilbao"),
        ("home", "habite à Metz", "fr", "tu habites à Metz"),
        ("employer", "在谷歌工作", "zh", "你在谷歌工作"),
        ("age", "30 years old", "en", "you are 30 years old"),
        ("age", "30岁", "en", "you are 30 years old"),
        ("hobby", "Hobby: hiking", "en", "your hobby: hiking"),
        ("sister", "sister is Ana", "en", "your sister: Ana"),
        ("favourite-color", "favourite color is blue", "en", "your favourite color is blue"),
        ("locker-code", "locker-code: 44", "en", "locker-code: 44"),
    ],
)
def test_a_value_that_repeats_its_phrase_is_said_once(key: str, value: str, language: Language, said: str) -> None:
    """Models write whole clauses as values, and "you like likes tea" sounds like a machine."""
    assert say(key, value, language=language) == said


@each_row(
    ("key", "value"),
    [
        ("likes", "Like a Prayer"),
        ("likes", "likeness of being"),
        ("employer", "在线教育公司"),
        ("hometown", "In Salah"),
        ("plan", "plan B"),
        ("home", "lives in"),
        ("likes", "欢乐谷"),
    ],
)
def test_words_that_only_look_like_the_phrase_stay(key: str, value: str) -> None:
    for language in LANGUAGES:
        assert value in say(key, value, language=language)


@pytest.mark.parametrize(
    ("key", "value"),
    [("allergy", "not allergic to nuts"), ("home", "no longer lives in Lisbon"), ("likes", "不喜欢茶")],
)
def test_a_value_that_denies_its_phrase_is_not_set_into_it(key: str, value: str) -> None:
    """You would be told that you are allergic to something that you are not allergic to."""
    for language in LANGUAGES:
        assert say(key, value, language=language) == f"{key}: {value}"


@given(
    key=st.sampled_from([*KEY_CATEGORIES, "favourite-color", "favourite-board-game", "made-up"]),
    value=st.sampled_from(["Zorblax", "mint tea", "花生", "30", "12 March"]),
)
def test_a_whole_phrase_as_a_value_is_said_once_in_every_language(key: str, value: str) -> None:
    """Whichever language a value repeats its phrase in, its words reach the person alone."""
    for written, spoken in product(LANGUAGES, repeat=2):
        phrase = say(key, value, language=written)
        for repeated in (phrase, phrase[:1].upper() + phrase[1:]):
            assert say(key, repeated, language=spoken) == say(key, value, language=spoken)


@each_row("language", LANGUAGES)
def test_the_listed_openings_are_dropped(language: Language) -> None:
    for key, listed in wording(language)["repeats"].items():
        for opening in listed.split("|"):
            space = "" if language in {"zh", "ja"} else " "
            value = f"{opening}{space}Zorblax"
            assert say(key, value, language=language) == say(key, "Zorblax", language=language), value
