"""The protocols of embedders, and the preparation of texts for them.

Invariants: Vectors have unit length, so a dot product is a cosine. Vectors of embedders with different names are never
compared. No text longer than a chunk is passed to an embedder.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.errors import MemoryFault

#: The characters of one chunk, and those that the next one repeats, so that no sentence is seen only in pieces.
CHUNK_CHARS = 1_600
OVERLAP_CHARS = 320
#: The limit of a chunk in normal form, in characters; ordinary text hardly grows in normal form.
_MOST_NORMAL = 4 * CHUNK_CHARS
#: The number of chunks made of one text; the rest (beyond some 80,000 characters) is found by words only.
MOST_CHUNKS = 64


class EmbeddingFault(MemoryFault):
    """Base class of an embedder's errors. None of them ever fails a turn: recall continues by words alone."""

    code = "embedding"


class EmbedderUnavailable(EmbeddingFault):
    """The embedder can't work here: a package or file is missing or damaged, or the processor can't run it."""

    code = "embedder_unavailable"


class EmbeddingFailed(EmbeddingFault):
    """One request failed; later it may work. `retry_after` is the vendor's figure in seconds."""

    code = "embedding_failed"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TextRefused(EmbeddingFailed):
    """The embedder will never accept one of these texts."""

    code = "text_refused"


class Embedder(Protocol):
    """A model that turns texts into vectors whose cosine measures how alike they are in meaning."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns each text in pieces that the model reads whole; no pieces for an empty text.

        Raises `EmbeddingFailed`.
        """
        ...

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        """Returns one row of unit length per text, (n, dimension).

        `query` marks questions, as opposed to the documents that they look for. Raises `EmbeddingFailed`.
        """
        ...

    async def aclose(self) -> None:
        """Ends threads and frees memory; the embedder must not be used any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The pieces of one text as a model sees them, in reading order.

    `words` holds for each piece the whole word it belongs to, in lower case. `vectors` is (n, dimension), of unit
    length. `stop` marks pieces that carry no meaning of their own (function words, punctuation): they are not stored.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    stop: tuple[bool, ...]


class TokenEmbedder(Protocol):
    """A model that turns each word of a text into a vector that depends on its neighbours, for late interaction."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def suits(self, text: str) -> bool:
        """Returns whether the model knows the language of `text` well enough to help."""
        ...

    async def split(self, texts: Sequence[str]) -> list[list[str]]: ...

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        """Returns the pieces of each text, which are the same for a question and for a document.

        `query` makes no difference but that a question does not wait for documents. Raises `EmbeddingFailed`.
        """
        ...

    async def aclose(self) -> None: ...


def encodable(text: str) -> str:
    """Returns `text` without characters that no model accepts: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def bounded(text: str) -> str:
    """Returns a chunk in the form and length for native code: NFKC, at most `_MOST_NORMAL` characters.

    Tokenizers normalise by themselves, some into a buffer made for ordinary text: one letter such as U+FDFA becomes
    eighteen. A text already in normal form keeps its length.
    """
    return unicodedata.normalize("NFKC", encodable(text[:CHUNK_CHARS]))[:_MOST_NORMAL]


def sign_bits(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Returns one bit per dimension, set above zero: (n, dimension) → (n, dimension / 8), as `numpy.packbits` does."""
    return np.packbits(vectors > 0, axis=1)


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def chunks(text: str, *, count: Callable[[str], int] | None = None, most: int = 0) -> list[str]:
    """Returns `text` in overlapping pieces of at most `CHUNK_CHARS`, cut at the ends of sentences where possible.

    With `count` no piece has more than `most` tokens by it (provided that one character has no more). At most
    `MOST_CHUNKS` pieces are made. The cost is linear in the part of the text that is read.
    """
    text = text.strip()
    found: list[str] = []
    start = 0
    while start < len(text) and len(found) < MOST_CHUNKS:
        end = _end(text, start, CHUNK_CHARS)
        while count is not None and end - start > 1 and (tokens := count(text[start:end])) > most:
            # A little below the share that should fit, so that a second try usually does.
            end = _end(text, start, max(1, int((end - start) * min(0.9, 0.95 * most / tokens))))
        piece = text[start:end].strip()
        if piece:
            found.append(piece)
        if end == len(text):
            break
        start = _next_start(text, start, end)
    return found


#: An end of a sentence. The dot needs a space behind it: those in "3.5" and "example.org" are not ends.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]{0,2}(?=\s)|[。！？；\n]")
_SPACE = re.compile(r"\s")


def _end(text: str, start: int, width: int) -> int:
    """Returns the end of a piece from `start`: after the last sentence, else word, in the second half of `width`."""
    if start + width >= len(text):
        return len(text)
    for boundary in (_SENTENCE_END, _SPACE):
        ends = [match.end() for match in boundary.finditer(text, start + width // 2, start + width)]
        if ends:
            return ends[-1]
    return start + width


def _next_start(text: str, start: int, end: int) -> int:
    """Returns the start of the piece after `text[start:end]`: at the first sentence, else word, within the overlap."""
    # A fifth, as for a full piece, so that short pieces do not repeat most of themselves.
    overlap = min(OVERLAP_CHARS, (end - start) // 5)
    for boundary in (_SENTENCE_END, _SPACE):
        match = boundary.search(text, end - overlap, end)
        if match is not None and match.end() < end:
            return match.end()
    return end - overlap
