"""What an embedder gives, whichever it is, and how a text is made ready for one.

Invariants: vectors have unit length, so a dot product is a cosine; vectors of embedders with different names are never
compared; no text longer than a chunk is handed to an embedder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.errors import MemoryFault

#: Characters of one chunk, and how many of them the next one repeats, so that no sentence is only ever seen cut.
CHUNK_CHARS = 1_600
OVERLAP_CHARS = 320
#: Chunks made of one text; what lies behind (some 80,000 characters) is found by words only.
MOST_CHUNKS = 64


class EmbeddingFault(MemoryFault):
    """Base of what can go wrong with an embedder. None of it ever fails a turn: words go on alone."""

    code = "embedding"


class EmbedderUnavailable(EmbeddingFault):
    """This embedder can't work here: a package or file is missing or damaged, or the processor can't run it."""

    code = "embedder_unavailable"


class EmbeddingFailed(EmbeddingFault):
    """One request failed; later it may work. `retry_after` is a vendor's word in seconds."""

    code = "embedding_failed"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TextRefused(EmbeddingFailed):
    """The embedder will never take one of these texts."""

    code = "text_refused"


class Embedder(Protocol):
    """Turns texts into vectors whose cosine tells how alike they are in meaning."""

    @property
    def name(self) -> str:
        """Which model, in which version: kept with the vectors."""
        ...

    @property
    def dimension(self) -> int: ...

    def split(self, text: str) -> list[str]:
        """`text` in pieces that the model reads whole; none for a text with nothing in it.

        May take milliseconds a piece: long texts are split off the event loop.
        """
        ...

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        """One row of unit length for each text, (n, dimension). `query` tells questions from what they look for.

        Raises `EmbeddingFailed`.
        """
        ...

    async def aclose(self) -> None:
        """End threads and give memory back; the embedder is not used any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The pieces of one text as a model sees them, in reading order.

    `words` names for each piece the whole word it belongs to, in lower case; `vectors` is (n, dimension), unit length;
    `stop` marks pieces that carry no meaning of their own (function words, punctuation): they are not stored.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    stop: tuple[bool, ...]


class TokenEmbedder(Protocol):
    """Turns each word of a text into a vector that knows its neighbours: what late interaction compares."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def suits(self, text: str) -> bool:
        """Whether the model knows the language of `text` well enough to help."""
        ...

    def split(self, text: str) -> list[str]: ...

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        """The pieces of each text. Raises `EmbeddingFailed`."""
        ...

    async def aclose(self) -> None: ...


def encodable(text: str) -> str:
    """`text` without what no model can be given: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def sign_bits(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """One bit a dimension, set above zero: (n, dimension) → (n, dimension / 8), as `numpy.packbits` orders them."""
    return np.packbits(vectors > 0, axis=1)


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at unit length; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def chunks(text: str, *, count: Callable[[str], int] | None = None, most: int = 0) -> list[str]:
    """`text` in overlapping pieces of at most `CHUNK_CHARS`, cut at the ends of sentences where there are any.

    With `count` no piece has more than `most` tokens by it (as long as one character has no more). At most
    `MOST_CHUNKS` pieces are made. The cost is linear in the part of the text that is read.
    """
    text = text.strip()
    found: list[str] = []
    start = 0
    while start < len(text) and len(found) < MOST_CHUNKS:
        end = _end(text, start, CHUNK_CHARS)
        while count is not None and end - start > 1 and (tokens := count(text[start:end])) > most:
            # A little below the share that should fit, so that a second try mostly does.
            end = _end(text, start, max(1, int((end - start) * min(0.9, 0.95 * most / tokens))))
        piece = text[start:end].strip()
        if piece:
            found.append(piece)
        if end == len(text):
            break
        start = _next_start(text, start, end)
    return found


#: An end of a sentence. The dot needs a space behind it: "3.5" and "example.org" are no ends.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]{0,2}(?=\s)|[。！？；\n]")
_SPACE = re.compile(r"\s")


def _end(text: str, start: int, width: int) -> int:
    """Where a piece from `start` ends: after the last sentence, else word, in the second half of `width` characters."""
    if start + width >= len(text):
        return len(text)
    for boundary in (_SENTENCE_END, _SPACE):
        ends = [match.end() for match in boundary.finditer(text, start + width // 2, start + width)]
        if ends:
            return ends[-1]
    return start + width


def _next_start(text: str, start: int, end: int) -> int:
    """Where the piece after `text[start:end]` begins: at the first sentence, else word, within the overlap."""
    # A fifth, as of a full piece, so that short pieces do not repeat most of themselves.
    overlap = min(OVERLAP_CHARS, (end - start) // 5)
    for boundary in (_SENTENCE_END, _SPACE):
        match = boundary.search(text, end - overlap, end)
        if match is not None and match.end() < end:
            return match.end()
    return end - overlap
