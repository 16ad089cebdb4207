"""Decides whether a model's summary speaks of what it sums up, or is a refusal or empty words.

Invariants: pure; time grows linearly with both texts. A summary speaks of its material if it shares a name, a number or
a word of meaning with it. In another language it may share nothing, so only words that refuse speak against it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memory.learn.grounding import shows, telling
from memory.text import sentences
from memory.text.language import language_of
from memory.text.likeness import surface
from memory.text.words import tokens

#: The longest sentence that may be nothing but a refusal, in characters.
_REFUSAL: Final = 240
#: Words of material that are read, and characters of one text that are looked at for names.
_READ: Final = 400_000
_NAMES: Final = 8_000


def speaks_of(summary: str, material: Sequence[str]) -> bool:
    said = " ".join(one for one in sentences.parts(summary) if not is_refusal(one, material))
    if not telling(said):
        return False
    held, shown = _held(material), surface(said)
    if not (shown.names | shown.numbers).isdisjoint(held):
        return True
    own = {word for word in telling(said) if not _UNIT.fullmatch(word)}
    return bool(own & held) or _is_translated(said, material)


def is_refusal(text: str, material: Sequence[str]) -> bool:
    """Returns whether a short text is words with which a model says nothing.

    A person may have told of a refusal: then most of its other words are in the material.
    """
    if len(text) > _REFUSAL or not shows("refuses", text):
        return False
    own = telling(text)
    return 2 * len(own & _held(material)) <= len(own)


def _held(material: Sequence[str]) -> frozenset[str]:
    held = {token for text in material for token in tokens(text, limit=_READ)}
    return frozenset(held.union(*(surface(text[:_NAMES]).numbers for text in material)))


def _is_translated(summary: str, material: Sequence[str]) -> bool:
    language = language_of("\n".join(text[:200] for text in material[:20]))
    return language is not None and (language_of(summary) or "en") != language


#: A single character of a script without spaces, which many words share.
_UNIT: Final = re.compile("[\u3040-\u9fff]")
