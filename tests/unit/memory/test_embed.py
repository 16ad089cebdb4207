"""How texts are made ready for an embedder."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.embed import CHUNK_CHARS, MOST_CHUNKS, OVERLAP_CHARS, chunks, encodable, normalised, sign_bits
from memory.recall.embedders.pieces import Pieces

PROSE = "Ana moved to Porto in May. She likes it there! 她喜欢那里。Does she? "


def test_a_short_text_is_one_piece() -> None:
    """Most messages are; nothing may be added to them or taken away."""
    assert chunks("  Ana lives in Porto. ") == ["Ana lives in Porto."]
    assert chunks(" \n ") == []


def test_pieces_end_and_begin_at_sentences() -> None:
    pieces = chunks(PROSE * 100)
    assert len(pieces) > 3
    assert all(piece.endswith((".", "!", "?", "。")) for piece in pieces)
    assert all(piece.startswith(("Ana", "She", "她", "Does")) for piece in pieces)


def test_a_dot_within_a_number_or_a_name_is_no_end() -> None:
    """ "Version 3.5 of example.org" is one thing."""
    pieces = chunks("version 3.5 of example.org is fine and so on " * 80)
    assert not any(piece.startswith(("5", "org")) for piece in pieces)


@given(st.text(alphabet=st.sampled_from("ab .。\n我🙂"), max_size=6_000))
def test_pieces_are_short_enough_and_leave_nothing_out(text: str) -> None:
    """Words that are in no piece can't be found by meaning."""
    pieces = chunks(text)
    assert all(0 < len(piece) <= CHUNK_CHARS for piece in pieces)
    position = 0
    for piece in pieces:
        start = text.find(piece, max(0, position - OVERLAP_CHARS - CHUNK_CHARS))
        assert start >= 0
        assert not text[position:start].strip()
        position = max(position, start + len(piece))
    assert not text[position:].strip()


@given(st.text(alphabet=st.sampled_from("ab .。我🙂"), max_size=3_000), st.integers(2, 40))
def test_pieces_have_no_more_tokens_than_the_model_reads(text: str, most: int) -> None:
    """Text behind the model's limit is cut off silently."""

    def count(piece: str) -> int:
        return sum(1 if char.isascii() else 2 for char in piece)

    assert all(count(piece) <= most for piece in chunks(text, count=count, most=most))


def test_an_endless_text_costs_a_bounded_number_of_pieces() -> None:
    """A pasted log must not occupy the embedder for hours."""
    assert len(chunks("x" * 1_000_000)) == MOST_CHUNKS
    assert len(chunks(PROSE * 20_000)) == MOST_CHUNKS


@given(st.text())
def test_any_text_can_be_encoded_afterwards(text: str) -> None:
    """Half an emoji from a careless client must not stop the worker."""
    made = encodable(text + "\ud83d\0")
    assert "\0" not in made
    made.encode()


def test_bits_tell_the_sign_of_each_dimension() -> None:
    """The order is that of numpy.unpackbits, by which they are read."""
    vectors = np.array([[0.1, -0.2, 0.0, 0.3, -1, -1, -1, 1]], dtype=np.float32)
    assert np.unpackbits(sign_bits(vectors), axis=1).tolist() == [[1, 0, 0, 1, 0, 0, 0, 1]]


def test_normalising_leaves_a_row_of_zeros() -> None:
    """A text without a piece has no direction, and no division by zero."""
    made = normalised(np.array([[3, 4], [0, 0]], dtype=np.float32))
    assert np.allclose(made, np.array([[0.6, 0.8], [0, 0]]))


# Texts are cut into the pieces whose scores make the highest sum, whatever the characters


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
