"""Decides which hits are worth a place in a prompt: fewer than there is room for where little was found, or none.

Invariants: Pure. It leaves a hit out of a prompt, never out of a search. Where the embedder is missing, a share of the
best score decides alone, as likeness can't be judged. Hits that were found without scores of parts, by their time or by
substring, are taken as they are.

The figures were chosen on LoCoMo's conversations 26, 30 and 41 and on MADial; docs/design/benchmarks.md has the
precision and recall on others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import languages
from memory.recall.query import should_search
from memory.recall.search import Hit
from memory.text.sentences import parts


@dataclass(frozen=True, slots=True)
class _Floor:
    """The least share of the best score, that of hits with little evidence of their own, and the least nearness.

    If no hit is so near the question, and none holds half of its words, nothing answers it.
    """

    share: float
    share_of_weak: float
    nearness: float


#: With late interaction, which parts good from bad; without; and with words alone.
_CLOSELY: Final = _Floor(0.6, 0.75, 0.02)
_BY_MEANING: Final = _Floor(0.5, 0.65, 0.01)
_BY_WORDS: Final = _Floor(0.5, 0.5, 0.0)
#: A hit is evidence by itself, not by its neighbours, if it has this share of the best nearness or of the words.
_NEAR: Final = 0.35
_WORDS: Final = 1 / 3
_MOST_WORDS: Final = 1 / 2


def worth_showing(hits: Sequence[Hit], shares: Sequence[float], question: str) -> list[bool]:
    """Returns for each hit whether it is worth a place. `shares` are the parts of the question's words that they hold.

    Greetings, what only asks, and the bot's own words are not; the last are where the question asks for them.
    """
    floor = next((of for part, of in (("late", _CLOSELY), ("vectors", _BY_MEANING)) if _has(hits, part)), _BY_WORDS)
    best = max((hit.score for hit in hits), default=0.0)
    nearest = max((hit.nearness for hit in hits), default=0.0)
    answered = nearest >= floor.nearness or max(shares, default=0.0) >= _MOST_WORDS
    of_bot = _asks_for_answers(question)

    def is_worth(hit: Hit, share: float) -> bool:
        if hit.passage is not None and not _tells(hit, of_bot=of_bot):
            return False
        if not hit.parts:
            return True
        is_evidence = share >= _WORDS or hit.nearness >= _NEAR * nearest
        return answered and hit.score >= best * (floor.share if is_evidence else floor.share_of_weak)

    return [is_worth(hit, share) for hit, share in zip(hits, shares, strict=True)]


def _has(hits: Sequence[Hit], part: str) -> bool:
    return any(part in hit.parts for hit in hits)


def _tells(hit: Hit, *, of_bot: bool) -> bool:
    assert hit.passage is not None
    message = hit.passage.message
    if message.role == "assistant" and not of_bot:
        return False
    return should_search(message.text) and not all(one.endswith(("?", "？")) for one in parts(message.text))


def _asks_for_answers(question: str) -> bool:
    return _answers().search(question) is not None


@cache
def _answers() -> re.Pattern[str]:
    return re.compile("|".join(languages.part(code, "language")["answers"] for code in languages.LANGUAGES), re.I)
