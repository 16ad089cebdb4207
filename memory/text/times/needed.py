"""The literal texts of which a match of a pattern must contain one, so that most patterns need not be tried on a text.

Invariants: pure. A text in which none of them stands has no match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

#: Texts of which one must stand in a match; None if there are none that are known.
_Needs: TypeAlias = frozenset[str] | None
_Slots: TypeAlias = Sequence[frozenset[str]]
#: A character that stands for the first of other patterns, and is in no text.
FIRST_SLOT: Final = 0xE000
#: Larger sets of characters, such as all letters, are in every text.
_MOST_CHARACTERS: Final = 40
#: The parsed form of a pattern is the only one that tells its parts; it has no public name since Python 3.11.
_parse: Any = re._parser.parse  # type: ignore[attr-defined]


def needed(pattern: str, slots: _Slots = ()) -> frozenset[str]:
    """Returns texts of which each match contains at least one; empty if none are known.

    A character from `FIRST_SLOT` on stands for a pattern that needs those texts of `slots`.
    """
    return _of_all(_parse(pattern), slots) or frozenset()


def _of_all(parts: Iterable[tuple[Any, Any]], slots: _Slots) -> _Needs:
    """Returns the most telling of the sets that a sequence needs: the one whose shortest text is the longest."""
    sets: list[frozenset[str]] = []
    run = ""
    for name, value in parts:
        if str(name) == "LITERAL" and value < FIRST_SLOT:
            run += chr(value)
            continue
        sets += [frozenset([run])] if run else []
        run = ""
        if (texts := _of(str(name), value, slots)) is not None:
            sets.append(texts)
    sets += [frozenset([run])] if run else []
    return max(sets, key=lambda texts: (min(map(len, texts)), -len(texts)), default=None)


def _of(name: str, value: Any, slots: _Slots) -> _Needs:
    match name:
        case "LITERAL" if value - FIRST_SLOT < len(slots):
            return slots[value - FIRST_SLOT] or None
        case "BRANCH":
            return _of_any([_of_all(branch, slots) for branch in value[1]])
        case "IN":
            return _of_any([_of_character(str(kind), item, slots) for kind, item in value])
        case "SUBPATTERN" | "ASSERT":
            return _of_all(value[-1], slots)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0]:
            return _of_all(value[2], slots)
    return None


def _of_character(kind: str, item: Any, slots: _Slots) -> _Needs:
    match kind:
        case "LITERAL" if item >= FIRST_SLOT:
            return _of(kind, item, slots)
        case "LITERAL":
            return frozenset([chr(item)])
        case "RANGE" if item[1] - item[0] < _MOST_CHARACTERS:
            return frozenset(map(chr, range(item[0], item[1] + 1)))
        case "CATEGORY" if str(item) == "CATEGORY_DIGIT":
            return frozenset("0123456789")
    return None


def _of_any(alternatives: Sequence[_Needs]) -> _Needs:
    sets = [texts for texts in alternatives if texts]
    return frozenset().union(*sets) if len(sets) == len(alternatives) else None
