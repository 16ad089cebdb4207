"""Masks the secrets of a running turn wherever the model repeats them: by their value, in any disguise.

The model reads a message as it was said, so its answer, its steps and the arguments of its tools may hold a password
that `redact` would not recognise without the words around it.

Invariants: everything that `redact` masks is masked here too; the time is linear in the text; a text without a secret's
letters in their order stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from memory.text.secrets.redact import redact, secrets_in

_MASK: Final = "[secret: repeated]"
#: The text between letters that are spelt out, quoted, escaped, set in code or separated by invisible characters.
_BETWEEN_LETTERS: Final = r"[\s\-\u2010-\u2015－＿．，＊｀_.,·•*~`'\"|/\\\u00ad\u200b-\u200d\u2060\ufeff]{0,9}"
#: The text between words that are numbered or listed.
_BETWEEN_WORDS: Final = r"[\W\d_]{0,12}"
#: Values shorter than this are looked for as whole words only: three digits occur in any number.
_SHORT: Final = 6
#: Values shorter than this are not looked for spelt out: "1, 2, 3" is counting.
_SPELT: Final = 4
#: The characters, or words, of the parts in which a longer value is looked for: half a key is a secret too.
_PART_LETTERS: Final = 32
_PART_WORDS: Final = 3
_MANY_WORDS: Final = 6


def masking(originals: Sequence[str]) -> Callable[[str], str]:
    """Returns a function that masks secrets as `redact` does, and those in `originals` by their values."""
    values = dict.fromkeys(value for original in originals for value in secrets_in(original))
    patterns = dict.fromkeys(pattern for value in values for pattern in _patterns(value))
    if not patterns:
        return redact
    # The longest first: a whole value before a part of another.
    known = re.compile("|".join(sorted(patterns, key=len, reverse=True)), re.IGNORECASE)
    return lambda text: redact(known.sub(_MASK, text))


def _patterns(value: str) -> Iterator[str]:
    words = unicodedata.normalize("NFKC", value).split()
    if len(words) >= _MANY_WORDS:
        parts = [words[at : at + _PART_WORDS] for at in range(len(words) - _PART_WORDS + 1)]
    else:
        parts = [words]
    for part in parts:
        letters = ["".join(filter(_counts, word)) for word in part]
        size = sum(map(len, letters))
        if size > _PART_LETTERS:
            whole = "".join(letters)
            ends = [*range(_PART_LETTERS, size, _PART_LETTERS), size]
            yield from (_spelt(whole[end - _PART_LETTERS : end]) for end in ends)
        elif size:
            pattern = _BETWEEN_WORDS.join(map(_spelt if size >= _SPELT else re.escape, filter(None, letters)))
            yield rf"(?<![^\W_]){pattern}(?![^\W_])" if size < _SHORT else pattern


def _spelt(letters: str) -> str:
    return _BETWEEN_LETTERS.join(map(_letter, letters))


def _letter(letter: str) -> str:
    """Returns a pattern of a character and its full-width form."""
    wide = chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else ""
    return f"[{re.escape(letter)}{wide}]" if wide else re.escape(letter)


def _counts(letter: str) -> bool:
    """Returns whether a character belongs to the value, not to the text that may stand between any two letters."""
    return re.fullmatch(_BETWEEN_LETTERS, letter) is None
