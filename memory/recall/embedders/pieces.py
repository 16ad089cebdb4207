"""Cuts texts into the pieces of a model's vocabulary, so that the sum of their scores is highest.

Invariants: pure; the cost is linear in the length of the text. Pieces are found by the hashes of their bytes, as a
dictionary of 250,000 pieces would take 40 MB. Two texts of one hash would only pass for each other.

Source: Kudo, "Subword Regularization" (2018), the unigram model; the hash is FNV-1a.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

#: The constants of FNV-1a in 64 bits.
_START, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
#: The bits of a hash by which most of what is no piece is passed over.
_BITS = 22
#: The sign of a space in the vocabulary.
_SPACE = "\u2581"
#: How much lower than the lowest piece a character without one scores.
_UNKNOWN = 10.0


class Pieces:
    """A vocabulary. Piece n is `blob[offsets[n]:offsets[n + 1]]`, in UTF-8; `unknown` stands for all other characters.

    `normal` gives the normal form of each character that has another one.
    """

    def __init__(
        self,
        blob: NDArray[np.uint8],
        offsets: NDArray[np.uint32],
        scores: NDArray[np.float32],
        *,
        unknown: int,
        normal: Mapping[int, str],
    ) -> None:
        lengths = np.diff(offsets)
        self._longest = int(lengths.max())
        hashes = np.full(len(lengths), _START)
        for n in range(self._longest):
            longer = np.flatnonzero(lengths > n)
            hashes[longer] = (hashes[longer] ^ blob[offsets[longer] + n]) * _PRIME
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._hashes = hashes[self._order]
        likely = np.zeros(1 << _BITS, dtype=bool)
        likely[hashes >> np.uint64(64 - _BITS)] = True
        self._likely = np.packbits(likely, bitorder="little")
        self._scores = scores
        self._unknown = unknown
        self._unknown_score = float(scores.min()) - _UNKNOWN
        self._normal = normal

    def ids(self, text: str) -> list[int]:
        """Returns the numbers of the pieces of `text`, a space before it included."""
        text = re.sub("  +", " ", text.translate(self._normal))
        data = np.frombuffer((text if text.startswith(" ") else f" {text}").replace(" ", _SPACE).encode(), np.uint8)
        begins = np.flatnonzero(data & 0xC0 != 0x80)  # UTF-8 marks all bytes of a character but the first
        starts, ends, ids = self._matches(data, begins)
        scores = self._scores[ids].tolist()
        # The unknown character comes last, so that a piece of the same score wins.
        every = range(len(begins))
        steps = zip(
            [*starts.tolist(), *every],
            [*np.searchsorted(begins, ends).tolist(), *(i + 1 for i in every)],
            [*ids.tolist(), *(self._unknown for _ in every)],
            [*scores, *(self._unknown_score for _ in every)],
            strict=True,
        )
        best = [0.0, *(-np.inf for _ in every)]
        came = [(0, 0)] * len(best)
        for start, end, piece, score in sorted(steps, key=lambda step: step[0]):
            if best[start] + score > best[end]:
                best[end], came[end] = best[start] + score, (start, piece)
        way: list[int] = []
        at = len(begins)
        while at:
            at, piece = came[at]
            way.append(piece)
        return way[::-1]

    def _matches(
        self, data: NDArray[np.uint8], begins: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
        """Returns where pieces begin, as numbers of characters, where they end, as numbers of bytes, and which."""
        hashes = np.full(len(begins), _START)
        starts, ends, hashed = [], [], []
        # No piece goes on behind the end of a word.
        longest = max(map(len, data.tobytes().split(_SPACE.encode()))) + len(_SPACE.encode())
        for n in range(min(longest, self._longest)):
            # Those too near the end for a longer piece come last.
            inside = int(np.searchsorted(begins, len(data) - n))
            if not inside:
                break
            hashes = (hashes[:inside] ^ data[begins[:inside] + n]) * _PRIME
            places = hashes >> np.uint64(64 - _BITS)
            likely = np.flatnonzero(
                self._likely[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8) & 1
            )
            starts.append(likely)
            ends.append(begins[likely] + n + 1)
            hashed.append(hashes[likely])
        wanted = np.concatenate(hashed)
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        is_piece = self._hashes[places] == wanted
        ids = self._order[places]
        is_piece &= ids != self._unknown
        return np.concatenate(starts)[is_piece], np.concatenate(ends)[is_piece], ids[is_piece]
