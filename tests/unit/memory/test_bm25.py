"""Ranking by shared words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.rank import bm25, table
from memory.text.words import tokens


def score(terms: list[str], *texts: str, documents: int = 0) -> list[float]:
    docs = [tokens(text) for text in texts]
    counts = table(terms, [{token: float(doc.count(token)) for token in doc} for doc in docs])
    lengths = np.array([float(len(doc)) for doc in docs])
    return list(bm25(counts, lengths, documents=documents or len(docs), average_length=float(lengths.mean())))


def test_it_agrees_with_the_formula_done_by_hand() -> None:
    """One number worked out on paper holds every constant in its place."""
    counts = table(["cat"], [{"cat": 2.0, "x": 2.0}, {"x": 8.0}])
    found = bm25(counts, np.array([4.0, 8.0]), documents=10, average_length=6, k1=1.2, b=0.75)
    idf = math.log(1 + (10 - 1 + 0.5) / (1 + 0.5))
    assert list(found) == [pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 6))), 0.0]


def test_rare_words_short_texts_and_repeats_rank_higher() -> None:
    rare, common, _ = score(["okapi", "dog"], "okapi here", "dog here", "dog there")
    assert rare > common
    short, long = score(["dog"], "dog", "dog and very many other words beside", documents=9)
    assert short > long
    twice, once = score(["dog"], "dog dog cat", "dog cat cat", documents=9)
    assert twice > once


def test_a_word_lent_by_a_neighbour_counts_less_than_an_own_one() -> None:
    own, lent = bm25(np.array([[1.0], [0.4]]), np.array([5.0, 5.0]), documents=9, average_length=5)
    assert own > lent > 0


def test_frequencies_of_the_scope_win_over_those_of_the_candidates() -> None:
    """Where only the best candidates are scored, a common word must not look rare."""
    counts, lengths = np.array([[1.0]]), np.array([3.0])
    [alone] = bm25(counts, lengths, documents=1_000, average_length=3)
    [common] = bm25(counts, lengths, documents=1_000, average_length=3, frequencies=np.array([900.0]))
    assert common < alone


def test_lengths_that_do_not_belong_to_the_texts_are_refused() -> None:
    """A silent shift by one would rank by other people's lengths."""
    with pytest.raises(ValueError, match="1 texts with 0 lengths"):
        bm25(np.ones((1, 1)), np.zeros(0), documents=1, average_length=1)


def test_no_candidates_get_no_scores() -> None:
    assert list(bm25(table(["a"], []), np.zeros(0), documents=0, average_length=0)) == []


documents = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), max_size=6), max_size=12)


@given(docs=documents, terms=st.lists(st.sampled_from("abcdefg"), max_size=8, unique=True), total=st.integers(0, 100))
def test_it_is_finite_and_positive_just_where_a_term_occurs(
    docs: list[dict[str, float]], terms: list[str], total: int
) -> None:
    """Also for words that every text holds, and when the count of texts lags behind."""
    lengths = np.array([float(sum(doc.values())) for doc in docs])
    average = float(lengths.sum()) / max(len(docs), 1)
    scores = bm25(table(terms, docs), lengths, documents=total, average_length=average)
    assert len(scores) == len(docs)
    for doc, value in zip(docs, scores, strict=True):
        assert math.isfinite(value)
        assert (value > 0) == any(term in doc for term in terms)
