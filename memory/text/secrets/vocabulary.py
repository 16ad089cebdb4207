"""The words that reveal secrets, from `words.yaml`, as patterns."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from languages.reading import shipped
from memory.text.secrets.folding import folded


def data(name: str) -> dict[str, Any]:
    held: dict[str, Any] = shipped("memory.text.secrets", name)
    return held


_WORDS: Final = data("words.yaml")
#: The label, the kind of value, and the words, each in the normal form.
ANNOUNCING: Final = [
    (str(row["label"]), str(row["kind"]), [folded(word).lower() for word in row["words"].split(", ")])
    for row in _WORDS["announce"]
]


def tree(words: list[str]) -> str:
    branches: dict[str, list[str]] = {}
    for opening in words:
        if opening:
            branches.setdefault(opening[0], []).append(opening[1:])
    parts = "|".join(re.escape(first) + tree(rest) for first, rest in branches.items())
    return "" if not parts else f"(?:{parts})" + ("?" if "" in words else "")


@cache
def any_of(name: str) -> str:
    some = _WORDS[name].split(", ")
    return "|".join(some) if has_patterns(name) else tree(some)


def has_patterns(name: str) -> bool:
    return re.search(r"[\\(\[?{]", _WORDS[name]) is not None


def words(name: str) -> frozenset[str]:
    return frozenset(folded(_WORDS[name]).split(", "))


@cache
def pattern(source: str) -> re.Pattern[str]:
    """Returns `source` compiled for the normal form, in which "é" is "e", for any case."""
    return re.compile(folded(source), re.IGNORECASE)
