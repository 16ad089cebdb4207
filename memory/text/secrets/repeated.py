"""Masks the secrets of a running turn wherever the model repeats them: by their value, in any disguise.

The model reads a message as it was said, so its answer, its steps and the arguments of its tools may hold a password
that `redact` would not recognise without the words around it.

Text and values are compared in the normal form of `folding`, in lower case and without the signs that may stand between
two letters. A run of more such signs than a disguise has becomes a barrier that no value crosses.

Invariants: everything that `redact` masks is masked here too; the time is linear in the text, whatever the number of
values is; a text without a secret's letters in their order stays as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from memory.text.secrets.folding import BARRIER, folded, folded_with_places
from memory.text.secrets.redact import redact, secrets_in

_MASK: Final = "[secret: repeated]"
#: The signs, folded, between letters that are spelt out, quoted, escaped or set in code, and the most of them in a row.
_BETWEEN_LETTERS: Final = re.compile(r"[\s\-_.,·•*~`'\"|/\\]+")
_MOST_BETWEEN_LETTERS: Final = 9
#: The text between words that are numbered or listed, and its longest length.
_BETWEEN_WORDS: Final = re.compile(r"[\W\d_]+")
_MOST_BETWEEN_WORDS: Final = 12
#: Shorter values are not looked for: one letter or two occur everywhere.
_LEAST: Final = 3
#: Values shorter than this are looked for as whole words only: three digits occur in any number.
_SHORT: Final = 6
#: Values shorter than this are not looked for spelt out: "1, 2, 3" is counting.
_SPELT: Final = 4
#: The characters, or words, of the parts in which a longer value is looked for: half a key is a secret too.
_PART_LETTERS: Final = 32
_PART_WORDS: Final = 3
_MANY_WORDS: Final = 6
#: The most parts that are looked for, the longest first. They bound the memory; messages have some hundred at most.
_MOST_PARTS: Final = 20_000

_Span: TypeAlias = tuple[int, int]


def masking(originals: Sequence[str]) -> Callable[[str], str]:
    """Returns a function that masks secrets as `redact` does, and those in `originals` by their values.

    Make it once for a turn: finding the values takes as long as masking the originals.
    """
    values = dict.fromkeys(value for original in originals for value in secrets_in(original))
    parts = sorted({part for value in values for part in _parts(value)}, key=len, reverse=True)[:_MOST_PARTS]
    if not parts:
        return redact
    spelt, listed = _Parts(parts), _Parts([part for part in parts if len(part) >= _SHORT and part.isalpha()])

    def mask(text: str) -> str:
        if not text:
            return text
        plain, places = folded_with_places(text)
        low = plain.lower()
        low = low if len(low) == len(plain) else plain
        spans = [*_found(spelt, low, _BETWEEN_LETTERS, _MOST_BETWEEN_LETTERS)]
        spans += _found(listed, low, _BETWEEN_WORDS, _MOST_BETWEEN_WORDS)
        return redact(_replaced(text, [(places[start], places[end - 1] + 1) for start, end in sorted(spans)]))

    return mask


class _Parts:
    """Parts of values, found at a place of a text by their first letters."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.all = frozenset(parts)
        self.lengths = defaultdict[str, list[int]](list)
        for length, beginning in sorted({(len(part), part[:_LEAST]) for part in parts}, reverse=True):
            self.lengths[beginning].append(length)


def _parts(value: str) -> Iterator[str]:
    words = [_BETWEEN_LETTERS.sub("", word) for word in folded(value).lower().split()]
    some = [words]
    if len(words) >= _MANY_WORDS:
        some = [words[at : at + _PART_WORDS] for at in range(len(words) - _PART_WORDS + 1)]
    for part in map("".join, some):
        if len(part) > _PART_LETTERS:
            ends = [*range(_PART_LETTERS, len(part), _PART_LETTERS), len(part)]
            yield from (part[end - _PART_LETTERS : end] for end in ends)
        elif len(part) >= _LEAST:
            yield part


def _found(parts: _Parts, text: str, between: re.Pattern[str], most: int) -> Iterator[_Span]:
    """Yields start and end of each of the parts in `text`, in which up to `most` signs may stand between two letters.

    Of the parts at a place only the longest is found.
    """
    starts, froms, runs = [0], [0], list[str]()
    at = last = 0
    for gap in between.finditer(text) if parts.all else ():
        barrier = BARRIER if len(gap.group()) > most else ""
        runs += (text[last : gap.start()], barrier)
        at += gap.start() - last + len(barrier)
        last = gap.end()
        starts.append(at)
        froms.append(last)
    letters = "".join(runs) + text[last:]

    def place(nth: int) -> int:
        run = bisect_right(starts, nth) - 1
        return froms[run] + nth - starts[run]

    nth, end = 0, len(letters) - _LEAST
    while nth <= end:
        for length in parts.lengths.get(letters[nth : nth + _LEAST], ()):
            # Near the end of the text the rest is shorter, and may be another part.
            if nth + length <= len(letters) and letters[nth : nth + length] in parts.all:
                start, stop = place(nth), place(nth + length - 1) + 1
                if length >= _SHORT or _stands_alone(text, start, stop, length):
                    yield start, stop
                    nth += length - 1
                    break
        nth += 1


def _stands_alone(text: str, start: int, end: int, length: int) -> bool:
    """Returns whether a short value stands there as a whole word, and spelt out only if it is long enough for that."""
    if length < _SPELT and end - start != length:
        return False
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())


def _replaced(text: str, spans: Sequence[_Span]) -> str:
    kept: list[str] = []
    last = 0
    for start, end in spans:
        if start >= last:
            kept += (text[last:start], _MASK)
        last = max(last, end)
    return "".join(kept) + text[last:]
