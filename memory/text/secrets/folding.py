"""The normal form in which secrets are read: no accents, no invisible characters, one width, one blank."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from languages.reading import shipped

#: The stand-in for a mark of an earlier pass. Neither is a character, and no text that people send holds them.
BARRIER = "\ufdd0"
_NOTHING = "\ufdd1"
_MARK = re.compile(r"\[secret: [a-z ]{3,30}\]")


#: The most characters kept folded: more than any language uses.
_KEPT = 32_768


class _Folded(dict[int, str]):
    """A table of each character's one plain character, or nothing."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = "".join(
            one for one in unicodedata.normalize("NFKD", char) if unicodedata.category(one) not in _INVISIBLE
        )
        if unicodedata.category(char) == "Nd":
            plain = str(unicodedata.decimal(char))
        # A character that would become several, such as a ligature or a Hangul syllable, stays as it is.
        plain = plain if len(plain) < 2 else char
        plain = {"Zs": " ", "Zl": "\n", "Zp": "\n", "Pd": "-"}.get(unicodedata.category(plain or "a"), plain)
        # Nobody can fill the memory by sending every character there is.
        if len(self) < _KEPT:
            self[code] = plain
        return plain


_INVISIBLE = frozenset({"Mn", "Me", "Cf", "Cc", "Cn"})
_FOLDED = _Folded({ord(char): char for char in "\t\n" + BARRIER} | {ord("\r"): " "})


def folded(text: str) -> str:
    return text.translate(_FOLDED)


def folded_with_places(text: str) -> tuple[str, Sequence[int]]:
    """Returns the normal form with a barrier for each mark, and the places of its characters and its end in `text`."""
    marked = _MARK.sub(lambda mark: BARRIER.ljust(len(mark.group()), _NOTHING), text.replace(BARRIER, _NOTHING))
    plain = folded(marked)
    if len(plain) == len(text):
        return plain, range(len(text) + 1)
    return plain, [*(i for i, char in enumerate(marked) if _FOLDED[ord(char)]), len(text)]


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
