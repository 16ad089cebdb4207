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
from typing import Final, Literal

from languages import LANGUAGES, Language, part
from memory.keys import category_of, normalise_value
from memory.learn.offline.appointments import without_owner
from memory.learn.offline.statements import CarriedSubject, Stated, statements
from memory.learn.own_words import own_words
from memory.learn.wishes import passes_on
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
    """Something worth remembering, before the memory decides about it.

    `importance` is 1 to 10, `confidence` 0 to 1. `subject` is "self": facts about relatives are the speaker's, under
    the relation as key. Validity is left open here: what counts is when it was said.
    """

    kind: Literal["fact", "style"]
    category: str
    key: str
    value: str
    subject: str
    importance: int
    confidence: float
    topic: str
    valid_from: date | None
    valid_until: date | None
    language: Language


def extract(text: str, *, today: date) -> list[Disclosure]:
    """Returns the disclosures in `text`, said on `today` by the person themselves; each (key, value) once, in order.

    Standing requests ("from now on …", 以后请…) are facts of the category `instruction`.
    """
    facts: dict[tuple[str, str], Disclosure] = {}
    for language, fact in _facts(text, today):
        importance, confidence = _WEIGHTS.get(fact.key, _DEFAULT_WEIGHTS)
        disclosure = Disclosure(
            kind="fact",
            category=category_of(fact.key) or "identity",
            key=fact.key,
            value=fact.value.strip(),
            subject="self",
            importance=importance,
            confidence=confidence,
            topic="",
            valid_from=None,
            valid_until=None,
            language=language,
        )
        facts.setdefault((fact.key, normalise_value(fact.value)), disclosure)
        if len(facts) == MOST_FACTS:
            break
    return list(facts.values())


def discloses(text: str) -> bool:
    """Returns whether `text` holds a self-disclosure or a standing request, by the rules of `extract`."""
    # Which day it is changes how a plan is written, not whether it is one.
    return next(_facts(text, date(2000, 1, 1)), None) is not None


def _facts(text: str, today: date) -> Iterator[tuple[Language, Stated]]:
    if len(text) > 2 * WINDOW:
        text = f"{text[:WINDOW]}\n{text[-WINDOW:]}"
    if _STAGED.match(text) or _ACTED.search(text):
        return
    text = own_words(text, longest_quote=_QUOTE, given=False)
    if _listed("jokes").search(simplified(text)):
        return
    written = language_of(text)
    if written is None:
        # A text too short to show its language is in the one whose templates read it.
        yield from next(filter(None, (list(_stated(text, code, today)) for code in LANGUAGES)), [])
    else:
        yield from _stated(text, written, today)


def _stated(text: str, written: Language, today: date) -> Iterator[tuple[Language, Stated]]:
    speaker = CarriedSubject()
    for sentence in parts(text):
        if _listed("fiction").search(simplified(sentence)):
            return
        code = written if written not in ("en", "zh") else "zh" if _HAN.search(sentence) else "en"
        facts = [fact for fact in statements(sentence, code, today, speaker) if _is_meant(fact, sentence)]
        yield from ((code, _anchored(fact, today)) for fact in facts)


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
    return re.compile("|".join(f"(?:{part(code, 'facts')[name]})" for code in LANGUAGES), re.IGNORECASE)


def _is_meant(fact: Stated, sentence: str) -> bool:
    """Returns whether a name to be called by is the speaker's: "Tell Tom: call me Al" is not."""
    return fact.key != "called" or not passes_on(sentence)


#: Stage directions at the start of a message: "*walks in*", "(in a deep voice)", （走进来）. Words of the speaker about
#: themselves, an age or an aside ("(btw …)", （补充一下）) are none.
_STAGED = re.compile(
    r"\s{0,20}(?:\*(?![\s*])(?!(?:i|i'm|my|me)\b)[^*\n]{1,120}\*(?!\*)|_(?![\s_])[a-z]{2,20}s\b[^_\n]{0,120}_(?!_)"
    r"|[(（\[【]\s?(?:(?!(?:this|his|is|was|has|does|yes|as|us|ps|plus|thanks|always|sometimes|perhaps|nothing|anything"
    r"|something|everything|during|regarding|following|btw|news|its|being|having)\b)[a-z]{2,20}(?:s|ing)\b"
    r"|(?:in|with) an? [\w ]{2,30}(?:voice|tone|accent|whisper|smile|grin)|scene\b|setting\b|narrator\b|enter\b)"
    r"[^()（）\[\]【】\n]{0,120}[)）\]】]"
    r"|[(（\[【](?=[^()（）\[\]【】\n]{0,120}[\u3400-\u9fff])(?![^()（）\[\]【】\n]{0,120}(?:[我俺\d：:男女]|补充|補充|顺便|順便"
    r"|对了|對了|抱歉|不好意思|更正|备注|備註|回复|回覆|接上|续|續|急|在线|線上|谢谢|謝謝|已|说明|說明|其实|其實|提醒|另外|注意"
    r"|先说|先說|认真|認真|真的|重要|匿名|首先|如题|如題))[^()（）\[\]【】\n]{1,120}[)）\]】])",
    re.IGNORECASE,
)
#: An action in asterisks later on: "*draws his sword*"; a single word within a sentence is stressed and not acted.
_ACTED = re.compile(r"(?<![\w*])\*[a-z]{2,20}s(?: [^*\n]{1,120}\*(?![\w*])|\*\s{0,9}$)", re.MULTILINE)
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
