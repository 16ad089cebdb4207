"""Texts are cut into the pieces whose scores make the highest sum, whatever the characters."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.embedders.pieces import Pieces

VOCABULARY = {
    "<unk>": 0.0, "▁": -3.0, "a": -4.0, "b": -4.5, "ab": -5.0, "▁ab": -6.5, "aba": -9.0, "ba": -6.0, "山": -5.0, "山b": -6.0,
}  # fmt: skip
UNKNOWN = min(VOCABULARY.values()) - 10


def pieces() -> Pieces:
    names = [name.encode() for name in VOCABULARY]
    return Pieces(
        np.frombuffer(b"".join(names), np.uint8),
        np.array([0, *itertools.accumulate(map(len, names))], dtype=np.uint32),
        np.array(list(VOCABULARY.values()), dtype=np.float32),
        unknown=0,
        normal={ord("A"): "a", ord("\u00ad"): ""},
    )


def best(text: str) -> float:
    """Returns the highest sum, by trying every way to cut `text`."""
    sums = [0.0]
    for end in range(1, len(text) + 1):
        ways = [sums[end - 1] + UNKNOWN]
        for start in range(end):
            piece = text[start:end]
            if piece in VOCABULARY and piece != "<unk>":
                ways.append(sums[start] + VOCABULARY[piece])
        sums.append(max(ways))
    return sums[-1]


@given(st.text(alphabet="abA山x \u00ad<unk>", max_size=12))
def test_no_other_cut_has_a_higher_sum(text: str) -> None:
    read = text.replace("A", "a").replace("\u00ad", "")
    while "  " in read:
        read = read.replace("  ", " ")
    read = (read if read.startswith(" ") else f" {read}").replace(" ", "▁")
    names, ids = list(VOCABULARY), pieces().ids(text)
    scores = [UNKNOWN if number == 0 else VOCABULARY[names[number]] for number in ids]
    assert np.isclose(sum(scores), best(read))
    # An unknown piece is one character.
    assert sum(1 if number == 0 else len(names[number]) for number in ids) == len(read)


def test_the_pieces_come_in_reading_order() -> None:
    assert [list(VOCABULARY)[number] for number in pieces().ids("ab 山b x")] == ["▁ab", "▁", "山b", "▁", "<unk>"]
