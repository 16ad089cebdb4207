"""How candidates for a question are scored."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.rank import (
    CLASSIC,
    HYBRID,
    Candidate,
    MessageSpot,
    Ranked,
    Statistics,
    best_matches,
    bm25,
    rank,
    table,
)
from memory.text.words import tokens

SCOPE = Statistics(documents=100, average_length=8)


def message(nth: int, text: str, *, sitting: int = 1, session: int = 1, **more: object) -> Candidate:
    words = text.split()
    return Candidate(
        doc=2 * (1_000 * sitting + nth) + 1,
        counts={word: float(words.count(word)) for word in words},
        length=float(len(words)),
        spot=MessageSpot(session_id=session, sitting=sitting, nth=nth, by_agent=False, asks=False),
        **more,  # type: ignore[arg-type]
    )


def order(ranked: list[Ranked]) -> list[int]:
    return [one.candidate.spot.nth for one in ranked if one.candidate.spot is not None]


def test_an_answer_is_found_by_the_question_before_it() -> None:
    """People do not repeat the question's words when they answer it."""
    talk = [message(1, "which city do you like"), message(2, "lisbon of course"), message(9, "see you soon")]
    assert order(rank(["city", "like"], talk, SCOPE, CLASSIC)) == [1, 2, 9]
    alone = rank(["city", "like"], talk, SCOPE, replace(CLASSIC, lent=0, sitting=0))
    assert [one.score > 0 for one in alone] == [True, False, False]


def test_words_are_lent_within_a_sitting_only() -> None:
    """A message of the next day belongs to another conversation."""
    same = rank(["city"], [message(1, "which city"), message(2, "lisbon")], SCOPE, replace(CLASSIC, sitting=0))
    other = rank(
        ["city"], [message(1, "which city"), message(2, "lisbon", sitting=2)], SCOPE, replace(CLASSIC, sitting=0)
    )
    assert same[1].score > 0 and other[1].score == 0


def test_a_sitting_that_was_all_about_it_lifts_its_messages() -> None:
    """A message amid talk of the matter is a better guess than one like it elsewhere."""
    talk = [
        message(1, "boat trip", sitting=1), message(6, "boat hire", sitting=1), message(11, "boat engine", sitting=1),
        message(1, "boat trip", sitting=2), message(6, "dinner", sitting=2),
    ]  # fmt: skip
    ranked = rank(["boat", "trip"], talk, SCOPE, CLASSIC)
    assert ranked[0].candidate.spot is not None and ranked[0].candidate.spot.sitting == 1


def test_speaker_and_date_lift_but_never_decide_alone() -> None:
    """They are bounded: the right words of somebody else still win over nothing at all."""
    talk = [message(1, "boat trip to porto"), message(9, "hello there", speaks=True, dated=2.0)]
    assert order(rank(["boat", "trip", "porto"], talk, SCOPE, CLASSIC)) == [1, 9]
    alike = [message(1, "boat trip"), message(9, "boat trip", speaks=True)]
    assert order(rank(["boat", "trip"], alike, SCOPE, CLASSIC)) == [9, 1]


def test_a_question_is_rarely_the_answer() -> None:
    """Who asked the same before must not get their own question back."""
    asked = message(1, "which boat")
    asked.spot = asked.spot._replace(asks=True) if asked.spot is not None else None
    assert order(rank(["boat"], [asked, message(9, "the boat")], SCOPE, CLASSIC)) == [9, 1]


def test_likeness_counts_from_the_usual_on() -> None:
    """Cosines of one model lie close together: only what stands out says anything."""
    talk = [message(n * 9, "x", cosine=0.83) for n in range(1, 6)] + [message(90, "x", cosine=0.90)]
    ranked = rank([], talk, SCOPE, replace(HYBRID, sitting=0))
    assert order(ranked)[0] == 90 and ranked[1].score == 0


def test_late_interaction_takes_the_best_token_here_or_beside() -> None:
    """Each word of the question is met by its best match, for less where a neighbour has it."""
    met, unmet = np.array([0.9, 0.1], dtype=np.float32), np.array([0.1, 0.1], dtype=np.float32)
    talk = [message(n * 9, "x", late=unmet) for n in range(1, 6)]
    talk += [message(90, "x", late=met), message(91, "x", late=unmet)]
    scope = replace(SCOPE, token_worth=np.array([2.0, 1.0]))
    ranked = rank([], talk, scope, replace(HYBRID, sitting=0))
    assert order(ranked)[:2] == [90, 91] and ranked[0].score > ranked[1].score > ranked[2].score == 0


def test_without_vectors_hybrid_ranks_as_classic_does() -> None:
    """No embedder: words go on alone, and nothing else changes."""
    talk = [message(1, "which city"), message(2, "lisbon"), message(9, "a city by the sea")]
    assert order(rank(["city"], talk, SCOPE, HYBRID)) == order(rank(["city"], talk, SCOPE, CLASSIC))


def test_a_memory_needs_no_neighbours() -> None:
    """Facts stand alone and compete with what was said."""
    fact = Candidate(doc=4, counts={"city": 1.0}, length=3)
    ranked = rank(["city"], [message(1, "hello"), fact], SCOPE, CLASSIC)
    assert ranked[0].candidate is fact and ranked[0].parts["words"] > 0


words = st.lists(st.sampled_from(["boat", "city", "tea", "dog"]), max_size=5).map(" ".join)
spots = st.tuples(st.integers(1, 3), st.integers(1, 12), words, st.booleans(), st.none() | st.floats(-1, 1))


@given(
    spots=st.lists(spots, max_size=12, unique_by=lambda spot: spot[:2]), terms=st.sets(st.sampled_from(["boat", "tea"]))
)
def test_every_candidate_comes_out_once_with_a_finite_score(
    spots: list[tuple[int, int, str, bool, float | None]], terms: set[str]
) -> None:
    """Whatever signals are missing, nothing is dropped and nothing is worth less than nothing."""
    talk = [message(nth, text, sitting=s, speaks=by, cosine=like) for s, nth, text, by, like in spots]
    ranked = rank(sorted(terms), talk, SCOPE, HYBRID)
    assert sorted(one.candidate.doc for one in ranked) == sorted(c.doc for c in talk)
    assert all(np.isfinite(one.score) and one.score >= 0 for one in ranked)
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


# Ranking by shared words


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


# Matching a question's tokens with bits of a text's


def vectors(seed: int, count: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, 384)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def bits(tokens: np.ndarray) -> np.ndarray:
    return np.packbits(tokens > 0, axis=1)


@given(seed=st.integers(0, 1_000), lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_it_is_the_dot_product_with_the_signs(seed: int, lengths: list[int]) -> None:
    question = vectors(seed, 3)
    texts = [vectors(seed + n + 1, length) for n, length in enumerate(lengths)]
    found = best_matches(question, [bits(text) for text in texts])
    for row, text in zip(found, texts, strict=True):
        signs = np.where(text > 0, 1.0, -1.0)
        expected = (signs @ question.T / np.sqrt(384)).max(axis=0)
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_a_token_meets_its_own_bits_best() -> None:
    """Bits keep enough of a vector to know it again."""
    question, other = vectors(1, 1), vectors(2, 1)
    found = best_matches(question, [bits(question), bits(other)])
    assert found[0, 0] > 0.7 > 0.3 > found[1, 0]


def test_no_texts_give_no_rows() -> None:
    assert best_matches(vectors(1, 2), []).shape == (0, 2)
