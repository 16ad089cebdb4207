"""Facts that people plainly state about themselves, and their standing requests, found by patterns alone: no model.

Invariants: pure; time grows linearly with the text, of which only the first and the last `WINDOW` characters are read;
masked secrets never enter a value. Games, texts to be worked on, and whatever comes after them in a message state
nothing. A doubtful sentence is left alone: a wrong memory costs more than a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

from languages import LANGUAGES, Language, part
from memory.keys import category_of, normalise_value
from memory.learn.offline.appointments import without_owner
from memory.learn.offline.statements import CarriedSubject, Stated, statements
from memory.learn.own_words import own_words
from memory.learn.wishes import passes_on, standing
from memory.text.language import language_of
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.times.spans import anchor

#: The characters read at each end of a message; people introduce themselves at the edges of long texts.
WINDOW: Final = 4_000
#: Facts taken from one message at most: more is a list pasted in, not talk.
MOST_FACTS: Final = 40
#: The longest quotation that may be part of a value, as a title is, in characters.
_QUOTE: Final = 20
_HAN: Final = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """A fact of the speaker's, before the memory decides about it; one about a relative has the relation as key.

    `importance` is 1 to 10, `confidence` 0 to 1.
    """

    category: str
    key: str
    value: str
    importance: int
    confidence: float


def extract(text: str, *, today: date) -> list[Disclosure]:
    """Returns the disclosures in `text`, said on `today` by the person themselves; each (key, value) once, in order.

    Standing requests ("from now on …", 以后请…) are facts of the category `instruction`.
    """
    facts: dict[tuple[str, str], Disclosure] = {}
    for fact in _facts(text, today):
        importance, confidence = _WEIGHTS.get(fact.key, _DEFAULT_WEIGHTS)
        disclosure = Disclosure(
            category=category_of(fact.key) or "identity",
            key=fact.key,
            value=fact.value.strip(),
            importance=importance,
            confidence=confidence,
        )
        facts.setdefault((fact.key, normalise_value(fact.value)), disclosure)
        if len(facts) == MOST_FACTS:
            break
    return list(facts.values())


def discloses(text: str) -> bool:
    """Returns whether `text` holds a self-disclosure or a standing request, by the rules of `extract`."""
    # Which day it is changes how a plan is written, not whether it is one.
    return next(_facts(text, date(2000, 1, 1)), None) is not None


def _facts(text: str, today: date) -> Iterator[Stated]:
    if len(text) > 2 * WINDOW:
        text = f"{text[:WINDOW]}\n{text[-WINDOW:]}"
    if _listed("staged").match(text) or _listed("acted").search(text):
        return
    wishes, text = standing(text), own_words(text, longest_quote=_QUOTE, given=False)
    plain = simplified(text)
    if _listed("jokes").search(plain):
        return
    written = language_of(text)
    if written is None:
        # A text too short to show its language is in the one whose templates read it.
        stated = next(filter(None, (list(_stated(text, code, today)) for code in LANGUAGES)), [])
    else:
        stated = list(_stated(text, written, today))
    names = [fact.value for fact in stated if fact.key == "called"]
    for wish in wishes:
        # "Answer in French from now on" itself reads like work on a text.
        if not any(name in wish for name in names) and not _listed("fiction").search(
            simplified(text.replace(wish, ""))
        ):
            yield Stated("instruction", wish)
    for fact in stated:
        if fact.key != "note" or not any(wish in fact.value for wish in wishes):
            yield fact


def _stated(text: str, written: Language, today: date) -> Iterator[Stated]:
    speaker = CarriedSubject()
    for sentence in parts(text):
        if _listed("fiction").search(simplified(sentence)):
            return
        code = written if written not in ("en", "zh") else "zh" if _HAN.search(sentence) else "en"
        facts = statements(sentence, code, today, speaker)
        # "Tell Tom: call me Al" gives no name to be called by.
        yield from (_anchored(fact, today) for fact in facts if fact.key != "called" or not passes_on(sentence))


def _anchored(fact: Stated, today: date) -> Stated:
    if fact.key not in ("plan", "note", "goal"):
        return fact
    value = without_owner(fact.value) if fact.key == "plan" else fact.value
    return fact._replace(value=anchor(value, today, ahead=fact.key != "note"))


def is_in_play(before: Iterable[str]) -> bool:
    """Returns whether a person's earlier messages, newest first, began a game that none after it ended."""
    for text in before:
        plain = simplified(text)
        if _listed("play").search(plain):
            return True
        if _listed("play_over").search(plain):
            return False
    return False


@cache
def _listed(name: str) -> re.Pattern[str]:
    """Returns an expression of `facts.yaml` in all languages: people ask for texts in another than their own."""
    return re.compile("|".join(f"(?:{part(code, 'facts').get(name, '(?!)')})" for code in LANGUAGES), re.IGNORECASE)


_DEFAULT_WEIGHTS = (6, 0.85)
#: (importance 1-10, confidence 0-1) by key: facts whose loss does harm stand highest; wishes are said more lightly.
_WEIGHTS = {
    **dict.fromkeys(("name", "called", "allergy"), (9, 0.95)),
    **dict.fromkeys(("condition", "boundary"), (9, 0.9)),
    **dict.fromkeys(("diet", "instruction"), (8, 0.9)),
    **dict.fromkeys(("birthday", "note"), (7, 0.95)),
    **dict.fromkeys(("home", "occupation", "timezone"), (7, 0.9)),
    "employer": (7, 0.85),
    "goal": (6, 0.75),
    **dict.fromkeys(("likes", "dislikes"), (5, 0.8)),
    "plan": (5, 0.75),
    "owns": (4, 0.75),
}
