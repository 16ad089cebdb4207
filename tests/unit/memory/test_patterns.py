"""People say who they are in passing, half asleep and without commas; these are sentences of that kind."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memory.keys import CATEGORIES, VALUE_LIMIT, normalise_key
from memory.learn.offline.patterns import MOST_FACTS, WINDOW, extract
from tests.kit.tables import each_row

TODAY = date(2026, 11, 21)
SENTENCES: dict[str, list[list[str]]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "sentences.yaml").read_text("utf-8")
)


def told(text: str) -> str:
    return "; ".join(f"{fact.key}={fact.value}" for fact in extract(text, today=TODAY))


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences_are_read_as_they_are_meant(name: str) -> None:
    """A false memory is repeated to the person for months; silence costs nothing."""
    read = {text: told(text) for text, *_ in SENTENCES[name]}
    assert read == {text: "; ".join(facts) for text, *facts in SENTENCES[name]}


def test_only_the_edges_of_a_long_text_are_read() -> None:
    """A pasted book costs no more than a page; what is said before and after it still counts."""
    filler = "and so on. " * (4 * WINDOW // 10)
    assert told(f"I live in Oslo. {filler}") == "home=Oslo"
    assert told(f"{filler} I live in Oslo.") == "home=Oslo"
    assert told(f"{filler} I live in Oslo. {filler}") == ""


def test_a_list_pasted_in_is_cut_off() -> None:
    """Hundreds of facts from one message are a file, not a person talking."""
    text = ". ".join(f"I'm allergic to stuff{number}" for number in range(200))
    assert len(extract(text, today=TODAY)) == MOST_FACTS


def test_candidates_are_ready_to_be_written() -> None:
    """The writer adds nothing: category and weight come with the fact."""
    (fact,) = extract("我对花生过敏", today=TODAY)
    assert (fact.category, fact.key, fact.value, fact.importance) == ("health", "allergy", "花生", 9)
    (remembered,) = extract("remember that the key is under the pot", today=TODAY)
    assert remembered.category == "decision"


SPOKEN = st.sampled_from(
    [
        "I'm", "I", "my", "name is", "live in", "Lisbon", "and", ",", ".", "?", "don't", "like", "tea", "a",
        "nurse", "sister", "Ana", "from now on", "answer in", '"', "'", "call me", "if", "not", "我", "叫", "住在",
        "北京", "，", "。", "喜欢", "猫", "对", "过敏", "以后", "请", "别", "吗", "的", "是", "今年", "28", "岁", "[secret: x]",
        "remember that", "tomorrow", "明天", "\n", "because",
    ]
)  # fmt: skip


@given(words=st.lists(SPOKEN, max_size=30), spaced=st.booleans())
def test_any_jumble_of_words_gives_well_formed_facts(words: list[str], spaced: bool) -> None:
    """Chat is full of fragments; whatever comes out must be storable as it is."""
    text = (" " if spaced else "").join(words)
    facts = extract(text, today=TODAY)
    for fact in facts:
        assert fact.category in CATEGORIES
        assert fact.key == normalise_key(fact.key)
        assert 0 < len(fact.value) <= VALUE_LIMIT
        assert fact.value == fact.value.strip()
        assert "[secret" not in fact.value
        assert "\ufffc" not in fact.value
        assert 1 <= fact.importance <= 10
        assert 0 < fact.confidence <= 1


@given(st.text(max_size=400))
def test_no_text_breaks_the_extractor(text: str) -> None:
    """A message that can't be read for facts must still be answered."""
    extract(text, today=TODAY)


@each_row(
    "unit",
    [
        "a", " ", ",", '"', "'", "(", "《", "I ", "I like ", "my Aa ", "I'm a ", "I really ", "我", "我喜欢", "今年", "我喜欢a和",
        "记住", "[secret:", "*", "*a", "**a ", "(a", "（走", "my Aa and ", "next week I ", "as a ", "lol", "还有",
    ],
)  # fmt: skip
def test_hostile_repetition_comes_to_an_end(unit: str) -> None:
    """One message must not hold up everybody else; a pattern that backtracks without bound would hang here."""
    extract(unit * (2 * WINDOW), today=TODAY)


def test_what_follows_a_relative_without_a_subject_is_not_the_speakers() -> None:
    """女儿……对虾过敏 is the daughter's allergy."""
    assert extract("女儿今年上小学，对虾过敏", today=date(2026, 9, 1)) == []
    assert [one.value for one in extract("我女儿叫小满，我对虾过敏", today=date(2026, 9, 1))] == ["小满", "虾"]


def test_a_german_name_that_is_also_a_word_is_one_after_heisst() -> None:
    names = [extract(text, today=TODAY) for text in ("Mein Bruder heißt Will", "Ich heiße Sie Willkommen")]
    assert [[fact.value for fact in facts] for facts in names] == [["Will"], []]
