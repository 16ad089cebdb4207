"""Ranks texts by the words they share with a question.

Invariants: Pure. Document frequency is counted within the scope, so that a score says nothing about other people's
vocabulary. A score is at least 0, and 0 means that no term occurs.

Source: BM25 as in Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with Lucene's
idf, ln(1 + (N - n + 0.5) / (n + 0.5)), which stays positive for a word that occurs everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The usual values: recall is flat around them (docs/design/benchmarks.md).
_K1 = 1.2
_B = 0.75


def table(terms: Sequence[str], docs: Sequence[Mapping[str, float]]) -> Floats:
    """Returns the number of times each term occurs in each text: (texts, terms)."""
    column = {term: i for i, term in enumerate(terms)}
    counts = np.zeros((len(docs), len(terms)))
    for row, doc in enumerate(docs):
        for term in column.keys() & doc.keys():
            counts[row, column[term]] = doc[term]
    return counts


def idf(frequencies: Floats, documents: int) -> Floats:
    """Returns the inverse document frequency of terms with these `frequencies` in so many `documents`."""
    held = np.minimum(frequencies, documents)
    return np.asarray(np.log(1 + (documents - held + 0.5) / (held + 0.5)))


def bm25(
    counts: Floats,
    lengths: Floats,
    *,
    documents: int,
    average_length: float,
    frequencies: Floats | None = None,
    k1: float = _K1,
    b: float = _B,
) -> Floats:
    """Returns one score per text.

    `counts` is (texts, terms) and may hold fractions, for words lent by a neighbour. `lengths` is (texts,), in tokens.
    `documents` and `average_length` describe the whole scope. `frequencies` is (terms,); without it the texts must be
    *all* texts of the scope that hold any of the terms. Raises `ValueError` if the shapes do not match.
    """
    if counts.shape[0] != lengths.shape[0]:
        raise ValueError(f"{counts.shape[0]} texts with {lengths.shape[0]} lengths")
    if frequencies is None:
        frequencies = (counts > 0).sum(axis=0).astype(float)
    # A count taken a moment before the candidates may lag behind them; idf must stay defined.
    worth = idf(frequencies, max(documents, counts.shape[0]))
    mean = average_length if average_length > 0 else 1.0
    damping = k1 * (1 - b + b * lengths / mean)
    return np.asarray((counts * (k1 + 1) / (counts + damping[:, None])) @ worth)
