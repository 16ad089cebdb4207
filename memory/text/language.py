"""Tells the language of a short text by its script, and in Latin script by common words.

Invariants: pure, but for what it keeps of late. A text that shows no language, or several alike, has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from languages import LANGUAGES, part

#: The characters of a text that are read: its language shows at once.
_READ: Final = 2_000
_KANA: Final = re.compile("[\u3040-\u30ff]")
_HAN: Final = re.compile("[\u3400-\u9fff]")
#: Characters that are frequent in Chinese sentences and absent from Japanese ones.
_CHINESE: Final = re.compile("[你您吗嗎呢吧们們这這还给让说话时间过从对为么麼谢哪儿她它很]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
#: The weight of a word that is enough by itself.
_ALONE: Final = 6
#: The weights of any other listed word, and of a language's own letters.
_COMMON: Final = 2
_LETTER: Final = 1
#: The most words of a text in which one common word alone shows no language: "ta ra" is English.
_SHORT: Final = 2


#: The languages of texts read of late, by the texts' hashes: a turn asks for its words' language up to ten times, and
#: nobody's words stay here.
_told: Final[dict[int, str | None]] = {}
_MOST_TOLD: Final = 1_000


def language_of(text: str) -> str | None:
    text = text[:_READ]
    key = hash(text)
    if key not in _told:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        _told[key] = _shown_in(text)
    return _told[key]


def _shown_in(text: str) -> str | None:
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "zh"
    scores = _scores(text.replace("’", "'").casefold())
    best = max(scores.values())
    leading = [code for code, score in scores.items() if score == best]
    shown = best > (_COMMON if len(_WORD.findall(text)) <= _SHORT else 0)
    return leading[0] if shown and len(leading) == 1 else None


def is_common_in_another(word: str, code: str) -> bool:
    return any(other != code for other, _ in _lists()[0].get(word.casefold(), ()))


def last_language(codes: Iterable[tuple[str, str | None]]) -> str | None:
    """Returns the language in which a person last wrote, from pairs of a text and its `language_of`, newest first.

    No more pairs are read than needed. Words without kana, such as "3/21 歯医者", count as Japanese if the person wrote
    Japanese before.
    """
    open_han = False
    for text, code in codes:
        if code == "zh" and _CHINESE.search(text) is None:
            open_han = True
        elif code is not None:
            return "zh" if open_han and code != "ja" else code
    return "zh" if open_han else None


def _scores(text: str) -> dict[str, int]:
    words, letters = _lists()
    said = _WORD.findall(text)
    # One or two letters alone are an answer ("y", "ok") or a call ("yo"), not a word of any one language.
    said = [] if len("".join(said)) <= 2 else said
    scores = {code: _LETTER * (not own.isdisjoint(text)) for code, own in letters.items()}
    for word in said:
        for code, weight in words.get(word, ()):
            scores[code] += weight
    return scores


@cache
def _lists() -> tuple[dict[str, list[tuple[str, int]]], dict[str, frozenset[str]]]:
    """Returns the weights of each word by language, and each language's own letters."""
    data: dict[str, dict[str, str]] = {code: part(code, "language") for code in LANGUAGES}
    data = {code: lists for code, lists in data.items() if "words" in lists}  # the others' script tells them
    words: dict[str, list[tuple[str, int]]] = {}
    for code, lists in data.items():
        counts = dict.fromkeys(_folded(lists["words"]), _COMMON) | dict.fromkeys(_folded(lists["alone"]), _ALONE)
        for word, count in counts.items():
            words.setdefault(word, []).append((code, count))
    return words, {code: frozenset(lists.get("letters", "")) for code, lists in data.items()}


def _folded(words: str) -> list[str]:
    return words.casefold().split()
