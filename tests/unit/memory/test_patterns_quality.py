"""Holds the pattern extractor to its quality on hand-labelled lines, and the labels and the scoring to theirs.

The lines were written without sight of the patterns. When a gate fails, mend the pattern; change a label only when
it misreads its line.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.patterns import Disclosure, Fact, Label, Negative, by_patterns, disclosures, negatives, normalise, score

LANGUAGES: Final = ("en", "zh")
# fmt: off
VOCABULARY: Final = frozenset({
    "name", "home", "hometown", "birthday", "age", "nationality", "native-language", "speaks",
    "timezone", "occupation", "employer", "studies", "pet", "partner", "wife", "husband", "girlfriend",
    "boyfriend", "mother", "father", "sister", "brother", "son", "daughter", "friend", "boss",
    "colleague", "likes", "dislikes", "allergy", "diet", "condition", "goal", "owns", "plan", "note",
    "instruction", "called", "boundary",
})
# fmt: on


@pytest.mark.parametrize("language", LANGUAGES)
def test_patterns_say_nothing_wrong_in_nine_of_ten_facts(language: Literal["en", "zh"]) -> None:
    """A false memory about a person costs more trust than a missing one."""
    result = score(disclosures(language), by_patterns)
    precision = result.precision
    assert precision >= 0.9, f"precision {precision:.3f} in {language}\n{result.explain()}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_patterns_find_six_of_ten_facts(language: Literal["en", "zh"]) -> None:
    """Without a model the patterns are all there is, so a bot without a key must still learn most of what it is told."""
    result = score(disclosures(language), by_patterns)
    recall = result.recall
    assert recall >= 0.6, f"recall {recall:.3f} in {language}\n{result.explain()}"


def test_patterns_take_almost_nothing_from_lines_that_only_look_like_disclosures() -> None:
    """Questions, quotes, jokes and other people's lives are most of a chat and must not become a profile."""
    result = score(negatives(), by_patterns)
    false_facts = len(result.wrong)
    assert false_facts <= 2, f"{false_facts} facts in lines without any\n{result.explain()}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_careless_talk_is_understood_as_well_as_an_introduction(language: Literal["en", "zh"]) -> None:
    """People type in small letters, with slips, and say what changed rather than who they are."""
    result = score(disclosures(language, kind="talk"), by_patterns)
    assert result.precision >= 0.9, f"precision {result.precision:.3f} in {language}\n{result.explain()}"
    assert result.recall >= 0.85, f"recall {result.recall:.3f} in {language}\n{result.explain()}"


def test_careless_talk_without_facts_yields_next_to_nothing() -> None:
    """As for the other lines without facts: at most two in a hundred."""
    result = score(negatives(kind="talk_negatives"), by_patterns)
    assert len(result.wrong) <= 0.02 * result.lines, f"{len(result.wrong)} facts\n{result.explain()}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_disclosures_cover_the_vocabulary_evenly(language: Literal["en", "zh"]) -> None:
    """A figure over lines that favour a few keys would say little about the others."""
    lines = disclosures(language)
    lines_per_key = Counter(key for line in lines for key in {fact.key for fact in line.facts})
    favourites = {key for key in lines_per_key if key.startswith("favourite-")}
    assert len(lines) == 40
    assert set(lines_per_key) - favourites == VOCABULARY
    assert favourites
    assert max(lines_per_key.values()) <= 6


def test_negatives_are_half_english_and_half_chinese() -> None:
    """The bound on false facts is for both languages together, so both must weigh the same."""
    lines = negatives()
    chinese = sum(any("\u4e00" <= character <= "\u9fff" for character in line.text) for line in lines)
    assert (len(lines), chinese) == (100, 50)


def test_data_hold_no_line_twice() -> None:
    """A line counted twice, or labelled once with facts and once without, makes the figures meaningless."""
    texts = Counter(line.text for line in disclosures("en") + disclosures("zh"))
    texts.update(line.text for line in negatives())
    assert [text for text, count in texts.items() if count > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_themselves_score_full_marks(language: Literal["en", "zh"]) -> None:
    """If two labels of a line could meet the same prediction, the order of predictions would change the figures."""
    lines = disclosures(language)
    labelled = {line.text: [(fact.key, fact.value) for fact in line.facts] for line in lines}
    for predict in (labelled.__getitem__, lambda text: reversed(labelled[text])):
        result = score(lines, predict)
        assert (result.precision, result.recall) == (1.0, 1.0), result.explain()


def test_score_counts_a_wrong_value_as_wrong_and_as_missed() -> None:
    """A fact with the wrong value is a false memory and leaves the true one unlearned."""
    line = Disclosure(text="I live in Rome", facts=[Label(key="home", value="Rome")])
    result = score([line], lambda _: [("home", "Milan")])
    assert (len(result.right), len(result.wrong), len(result.missed)) == (0, 1, 1)
    assert "wrong   home: Milan" in result.explain()
    assert "missed  home: Rome" in result.explain()


def test_score_counts_a_right_value_under_another_key_as_wrong() -> None:
    """Where somebody grew up is not where they live."""
    line = Disclosure(text="I live in Rome", facts=[Label(key="home", value="Rome")])
    assert score([line], lambda _: [("hometown", "Rome")]).precision == 0.0


def test_score_lets_one_label_pay_for_one_prediction_only() -> None:
    """Guessing every variant of a value must cost precision, while saying the same twice costs nothing."""
    line = Disclosure(text="…", facts=[Label(key="home", value="Rome", accept=["Rome, Italy"])])
    predictions: list[Fact] = [("home", "rome"), ("home", "Rome."), ("home", "Rome, Italy")]
    result = score([line], lambda _: predictions)
    assert (len(result.right), len(result.wrong), len(result.missed)) == (1, 1, 0)


def test_score_counts_every_fact_in_a_negative_as_wrong() -> None:
    """A negative holds no fact, so whatever is found there is false."""
    line = Negative(text="Bob lives in Rome", why="third-person")
    result = score([line], lambda _: [("home", "Rome"), ("name", "Bob")])
    assert (len(result.right), len(result.wrong), len(result.missed)) == (0, 2, 0)


def test_score_of_silence_is_precise_and_finds_nothing() -> None:
    """An extractor that never speaks is never wrong; recall is what tells it from a good one."""
    line = Disclosure(text="I live in Rome", facts=[Label(key="home", value="Rome")])
    result = score([line], lambda _: [])
    assert (result.precision, result.recall) == (1.0, 0.0)


@given(
    value=st.text(alphabet="abcdxyz 城市", min_size=1),
    article=st.sampled_from(["", "a ", "an ", "the ", "My ", "the my "]),
    left=st.sampled_from(["", '"', "“", "《", " "]),
    right=st.sampled_from(["", ".", "!?", "。", "》", " "]),
)
def test_normalise_ignores_case_articles_and_punctuation_around(
    value: str, article: str, left: str, right: str
) -> None:
    """Whether the full stop belongs to the value is not what the figures are about."""
    if value.strip():
        assert normalise(left + article + value.upper() + right) == normalise(value)


def test_normalise_keeps_what_tells_values_apart() -> None:
    """Signs and words inside a value are part of it."""
    assert normalise("Ｌｉｓｂｏｎ") == "lisbon"
    assert normalise("type 1 diabetes") != normalise("type 2 diabetes")
    assert normalise("the dog's bed") == "dog's bed"
    assert normalise("A") == "a"
