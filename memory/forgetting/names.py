"""Reads whether a text gives a name: "Rose called", but not "prices rose", "20 Mark" or "Max Weber" for Max.

Invariants: pure. A text in doubt does not give the name, since texts that do are erased.
"""

from __future__ import annotations

import re

from memory.store import entities


def gives(name: str, text: str, *, is_word: bool) -> bool:
    """Returns whether a text gives a name with its capitals and alone, if its script has capitals.

    With `is_word`, the name is a word, too, and at the beginning of a sentence it may be that word.
    """
    if name.lower() == name.upper():
        return entities.stands_in(name, text)
    if name.islower():
        return False
    before = r"(?<=[\w,;]\s)" if is_word else r"(?<!\w)"
    for match in re.finditer(rf"{before}(?<!\d\s){re.escape(name)}(?:['’]?s)?(?!\w)\s*", text):
        is_longer = match[0][-1:].isspace() and text[match.end() : match.end() + 1].isupper()
        if not is_longer:
            return True
    return False


def is_small_in(name: str, text: str) -> bool:
    """Returns whether a text holds the word that a name is, or the name in small letters."""
    small = name.lower()
    return small != name.upper() and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", text) is not None
