"""How candidates for a question are scored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.rank import CLASSIC, HYBRID, Candidate, MessageSpot, Ranked, Statistics, rank

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
