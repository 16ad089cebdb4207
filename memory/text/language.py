"""Tells the language of a short text: by its script, in Latin script by common words.

Invariants: pure. A text that shows no language, or several alike, has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from memory.text.shipped import shipped

#: Characters read: a language shows at once.
_READ: Final = 2_000
_KANA: Final = re.compile("[\u3040-\u30ff]")
_HAN: Final = re.compile("[\u3400-\u9fff]")
#: Characters that a Chinese sentence often has and a Japanese one has not.
_CHINESE: Final = re.compile("[你您吗嗎呢吧们們这這还给让说话时间过从对为么麼谢哪儿她它很]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
#: What a word that is enough by itself counts.
_ALONE: Final = 6
#: What another word counts, and a letter.
_COMMON: Final = 2
_LETTER: Final = 1
#: Words up to which one common word alone shows no language: "ta ra" is English.
_SHORT: Final = 2


def language_of(text: str) -> str | None:
    """Returns the code of the language `text` is written in; None if that is not clear."""
    text = text[:_READ]
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "zh"
    scores = _scores(text.replace("’", "'").casefold())
    best = max(scores.values())
    leading = [code for code, score in scores.items() if score == best]
    shown = best > (_COMMON if len(_WORD.findall(text)) <= _SHORT else 0)
    return leading[0] if shown and len(leading) == 1 else None


def last_language(codes: Iterable[tuple[str, str | None]]) -> str | None:
    """Returns the language in which somebody wrote last, by texts with what `language_of` says, the oldest first.

    Words without kana, such as "3/21 歯医者", are Japanese from those who wrote Japanese before.
    """
    last: str | None = None
    for text, code in codes:
        if code is not None and not (last == "ja" and code == "zh" and _CHINESE.search(text) is None):
            last = code
    return last


def _scores(text: str) -> dict[str, int]:
    words, letters = _lists()
    said = _WORD.findall(text)
    # One or two letters alone are an answer ("y", "ok") or a call ("yo"), and no word of any one language.
    said = [] if len("".join(said)) <= 2 else said
    scores = {code: _LETTER * (not own.isdisjoint(text)) for code, own in letters.items()}
    for word in said:
        for code, weight in words.get(word, ()):
            scores[code] += weight
    return scores


@cache
def _lists() -> tuple[dict[str, list[tuple[str, int]]], dict[str, frozenset[str]]]:
    """Returns for each word what it counts in which languages, and each language's letters."""
    data: dict[str, Any] = shipped("memory.text", "languages.yaml")
    letters = data.pop("letters")
    words: dict[str, list[tuple[str, int]]] = {}
    for code, lists in data.items():
        counts = dict.fromkeys(_folded(lists["words"]), _COMMON) | dict.fromkeys(_folded(lists["alone"]), _ALONE)
        for word, count in counts.items():
            words.setdefault(word, []).append((code, count))
    return words, {code: frozenset(letters.get(code, "")) for code in data}


def _folded(words: str) -> list[str]:
    return words.casefold().split()
