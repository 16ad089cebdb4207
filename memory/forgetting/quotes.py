"""Finds out which of many texts stand in other texts: literally, in JSON, or in JSON nested in JSON.

Invariants: no quote is missed, whatever the text. Case makes no difference. The cost grows with the text that is
searched, and hardly with the number of texts searched for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from memory.text import words

#: The shortest text, in characters, that counts as a quote; half of it in scripts where a letter is a syllable or a
#: word. Shorter texts say little and occur in much.
_TELLING: Final = 8
#: Lengths of the pieces that texts are indexed by, in characters; the longest that fits is used.
_PIECES: Final = (16, 8, 4, 2, 1)


def is_telling(text: str) -> bool:
    """Returns whether a text is long enough for another text that holds it to be a quote of it."""
    return len(text) >= (_TELLING if text.isascii() else _TELLING // 2)


class Quotes:
    """Texts to search for. Blank texts say nothing and are left out.

    Some neighbouring pieces of each text are indexed, so many that one of them lies on a multiple of its length
    wherever the text stands. In the searched text, only the pieces at these places are looked up; where a piece is
    known, its texts are compared. (Sampling a q-gram index, as in Sutinen and Tarhio, "On using q-gram locations in
    approximate string matching", 1995.)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts: Final = frozenset(texts)
        self._pieces: dict[int, dict[str, list[str]]] = {}
        for text in sorted(set(_spellings(self.texts))):
            size = next(size for size in _PIECES if 2 * size - 1 <= len(text))
            pieces = self._pieces.setdefault(size, {})
            # Many texts begin alike. The pieces that fewest texts share tell them apart.
            first, last = 0, len(text) - 2 * size + 1
            start = min((first, last // 2, last), key=lambda at: len(pieces.get(text[at : at + size], ())))
            for at in range(start, start + size):
                pieces.setdefault(text[at : at + size], []).append(text)

    def stand_in(self, text: str, *, whole_words: bool = False) -> bool:
        folded = text.casefold()
        return any(not whole_words or _is_apart(folded, found) for found in self._found(folded))

    def _found(self, folded: str) -> Iterator[str]:
        for size, pieces in self._pieces.items():
            for at in range(0, len(folded) - size + 1, size):
                for text in pieces.get(folded[at : at + size], ()):
                    if text in folded:
                        yield text


def _spellings(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for ascii_only in (False, True):
            once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            for spelled in (text, once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]):
                if spelled.strip():
                    yield spelled.casefold()


def _is_apart(text: str, found: str) -> bool:
    at = text.find(found)
    while at >= 0:
        end = at + len(found)
        if not (_is_one_word(text[at - 1 : at], found[0]) or _is_one_word(found[-1], text[end : end + 1])):
            return True
        at = text.find(found, at + 1)
    return False


def _is_one_word(before: str, after: str) -> bool:
    """Returns whether a word goes on from one character to the next; in scripts without spaces this can't be told."""
    spaced = [char.isalnum() and words.UNIT.match(char) is None for char in (before, after)]
    return all(spaced)
