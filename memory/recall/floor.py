"""Decides which hits are worth a place in a prompt: fewer than there is room for where little was found, or none.

Invariants: Pure. It leaves a hit out of a prompt, never out of a search. Where the embedder is missing, a share of the
best score decides alone, as likeness can't be judged. Hits that were found without scores of parts, by their time or by
substring, are taken as they are.

The figures were chosen on LoCoMo's conversations 26, 30 and 41 and on every second question of MADial and MemDaily;
docs/design/benchmarks.md has the precision and recall on others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import languages
from memory.recall.query import should_search
from memory.recall.search import Hit
from memory.text import words
from memory.text.likeness import said
from memory.text.sentences import parts

_ASKS: Final = ("?", "？")


class _Floor(NamedTuple):
    """The least share of the best score, that of hits with little evidence of their own, and the least nearness.

    If no hit is so near the question, and none holds half of its words, nothing answers it.
    """

    share: float
    share_of_weak: float
    nearness: float


#: With late interaction, which parts good from bad; without; and with words alone.
_CLOSELY: Final = _Floor(0.6, 0.75, 0.02)
_BY_MEANING: Final = _Floor(0.4, 0.5, 0.01)
_BY_WORDS: Final = _Floor(0.5, 0.5, 0.0)
#: A hit is evidence by itself, not by its neighbours, if it has this share of the best nearness or of the words.
_NEAR: Final = 0.35
_WORDS: Final = 1 / 3
_MOST_WORDS: Final = 1 / 2


class _Judged(NamedTuple):
    """A hit with its score without the bot's handicap, and the share of the question's words that it holds.

    Only hits that tell something measure the others. One that tells nothing but `adds` to the question holds half of
    its words. One that `states` something does more than greet and ask.
    """

    hit: Hit
    score: float
    share: float
    states: bool
    tells: bool
    adds: bool

    @property
    def nearness(self) -> float:
        return self.hit.nearness or 0.0


def worth_showing(hits: Sequence[Hit], shares: Sequence[float], question: str) -> list[bool]:
    """Returns for each hit whether it is worth a place. `shares` are the parts of the question's words that they hold.

    The best hit that tells something always is. Greetings, what only asks, and the bot's own words tell nothing, unless
    the question asks for what the bot said; they are worth a place if they hold half of the question's words and more
    than the question says, and the bot's words also if they are nearer than all that people told.
    """
    judged = [_judged(hit, share, question) for hit, share in zip(hits, shares, strict=True)]
    telling = [one for one in judged if one.tells]
    nearest = max((one.nearness for one in telling), default=0.0)
    best = max((one.score for one in telling or judged), default=0.0)
    shown = [one for one in judged if one.tells or one.adds or (one.states and one.nearness > nearest)]
    floor = next((of for part, of in (("late", _CLOSELY), ("vectors", _BY_MEANING)) if _has(hits, part)), _BY_WORDS)
    answered = any(one.nearness >= floor.nearness or one.share >= _MOST_WORDS for one in shown)

    def is_worth(one: _Judged) -> bool:
        if one in telling[:1] or not one.hit.parts:
            return True
        if one.hit.nearness is None:
            # Beside hits that have vectors it lacks a part of its score.
            by_share = floor is not _BY_WORDS and one.share >= _MOST_WORDS
            return by_share or one.score >= best * _BY_WORDS.share
        is_evidence = one.share >= _WORDS or one.nearness >= _NEAR * nearest
        return answered and one.score >= best * (floor.share if is_evidence else floor.share_of_weak)

    return [one in shown and is_worth(one) for one in judged]


def _has(hits: Sequence[Hit], part: str) -> bool:
    return any(part in hit.parts for hit in hits)


def _judged(hit: Hit, share: float, question: str) -> _Judged:
    if hit.passage is None:
        return _Judged(hit, hit.score, share, states=False, tells=True, adds=False)
    message, before = hit.passage.message, hit.passage.before
    is_talk = should_search(message.text)
    states = is_talk and _is_more_than_questions(message.text)
    tells = states and (message.role != "assistant" or _asks_for_answers(question))
    if before is not None and before.text.rstrip().endswith(_ASKS) and not is_talk:
        # "Yes" says what the question before it asks.
        asked = set(words.query_terms(question))
        share = max(share, len(asked.intersection(words.tokens(before.text))) / max(len(asked), 1))
        tells = message.role == "user" and share >= _MOST_WORDS
    adds = not tells and share >= _MOST_WORDS and _adds(message.text, question)
    return _Judged(hit, hit.score / hit.parts.get("agent", 1.0), share, states, tells, adds)


def _is_more_than_questions(text: str) -> bool:
    # Most messages hold no sign of a question, and need not be taken apart.
    return not any(sign in text for sign in _ASKS) or not all(sentence.endswith(_ASKS) for sentence in parts(text))


def _adds(text: str, question: str) -> bool:
    known = {term.word for term in said(question)} | words.stop_tokens()
    return any(term.word not in known for term in said(text))


def _asks_for_answers(question: str) -> bool:
    return _answers().search(question) is not None


@cache
def _answers() -> re.Pattern[str]:
    return re.compile("|".join(languages.part(code, "language")["answers"] for code in languages.LANGUAGES), re.I)
