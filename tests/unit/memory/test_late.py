"""Matching a question's tokens with bits of a text's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.rank import best_matches


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
