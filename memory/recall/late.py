"""Late interaction: each word of a question is matched with the token of a text that is closest in meaning.

Invariants: Pure. A text is stored as one bit per dimension of each of its tokens, so a score is an estimate; the
question's own vectors stay whole. Scores of one question may be compared with each other, and with nothing else.

Source: MaxSim of Khattab & Zaharia, "ColBERT" (2020), on the token vectors of a sentence model. It was measured that
bits lose next to nothing here, and that rare words must weigh more (docs/design/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: The number of multiplications in one matrix product.
_PRODUCTS = 200_000


def best_matches(question: NDArray[np.float32], texts: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Returns the best match of each of the question's tokens in each text: (texts, tokens of the question).

    `question` is (tokens, dimension), of unit length. Each text is (its tokens, dimension / 8), bits as
    `numpy.packbits` gives them, with at least one token.
    """
    if not texts or not len(question):
        return np.zeros((len(texts), len(question)), dtype=np.float32)
    bits = np.concatenate(texts)
    alike = np.empty((len(bits), len(question)), dtype=np.float32)
    # Few enough that BLAS stays on this thread: on a busy machine waiting for a second one took ten times as long.
    together = max(1, _PRODUCTS // question.size)
    for start in range(0, len(bits), together):
        ones = np.unpackbits(bits[start : start + together], axis=1).astype(np.float32)
        alike[start : start + together] = ones @ question.T
    # Turns 0 and 1 into -1 and +1: twice the sum over the ones, minus the sum over all.
    alike = 2 * alike - question.sum(axis=1)
    starts = np.concatenate(([0], np.cumsum([len(text) for text in texts])[:-1]))
    return np.asarray(np.maximum.reduceat(alike, starts, axis=0) / np.sqrt(question.shape[1]), dtype=np.float32)
