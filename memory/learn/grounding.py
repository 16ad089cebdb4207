"""Weighs whether a message makes the statement that a model claims to have read in it.

Invariants: pure. Nothing is looked up and nothing is changed. A verdict is "sure", "unsure" (kept with little
confidence, shown as unsure, closes nothing) or "refused". A claim with a doubt that it does not repeat, or with
another number than the message, is never sure. An open verdict may be asked about (`memory.learn.entailment`); what
no answer could make sure is not open.

How it works: the clause that a claim rests on is found by shared words and by its quote. Some twenty features of
claim and clause (words shared, a question, a doubt, a denial, an end or another person that the claim does not mention)
are weighed by a logistic regression. No feature decides alone, so a word that is missing from the lists costs little.
Likeness of meaning is left out: it moved the measure by .01 and costs a vector for each clause
(docs/design/benchmarks.md).

`python -m bench.grounding FILE --fit` prints the weights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import Final, Literal, NamedTuple, TypeAlias

from languages import listed
from memory import keys
from memory.recall.cues import cues
from memory.text import sentences
from memory.text.language import language_of
from memory.text.likeness import surface
from memory.text.words import fold, stop_tokens, tokens

Verdict: TypeAlias = Literal["sure", "unsure", "refused"]

#: Characters of a message that are read for one claim, from its beginning, and the most sentences.
_READ: Final = 4_000
_MOST_SENTENCES: Final = 100
#: The number of shared words beyond which more of them tell nothing.
_LONG: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement that a model says it has read: about the speaker, or with `of_other` about another person or thing.

    `replaces` is True if the model names a known fact that is over because of it: two signs that it has read well.
    """

    key: str
    value: str
    quote: str = ""
    of_other: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidText:
    text: str
    before: str = ""


class Weighed(NamedTuple):
    """`is_open` is True if another reading of the claim and its words may change the verdict."""

    verdict: Verdict
    is_open: bool = False


def judge(claim: Claim, said: SaidText) -> Weighed:
    found = features(claim, said)
    if found["misquoted"] and not found["words shared"]:
        return Weighed("refused")
    if _is_of_clock(claim.value.strip(), said.text[:_READ]) or _is_no_name(claim, said.text[:_READ]):
        return Weighed("refused")
    likely = likelihood(found, WEIGHTS)
    # Words that the assistant alone has used were said by nobody.
    if likely < REFUSED_BELOW or (found["suggested"] and not found["words shared"]):
        return Weighed("refused")
    undoubted = not any(found[name] for name in _DOUBTS)
    plain = undoubted and ((claim.replaces and found["words shared"] > 0) or _is_literal(claim, said, found))
    if (likely >= SURE_FROM and not is_doubtful(found)) or plain:
        return Weighed("sure", likely < CARRIED_FROM)
    floored = any(found[name] for name in _FLOOR) or _is_question(bearing(claim, said.text[:_READ])[1])
    return Weighed("unsure", found["words shared"] > 0 and not floored)


def _is_question(sentence: str) -> bool:
    return sentence.endswith(("?", "？"))


def _is_of_clock(value: str, message: str) -> bool:
    """Returns whether a number stands in a message as an hour or a minute alone, so that it counts nothing."""
    return value.isdigit() and value in message and value not in _CLOCK.sub(" ", message)


def _is_no_name(claim: Claim, message: str) -> bool:
    """Returns whether a name is what somebody asks for by "call me": a time, or a taxi. Names have capitals."""
    value = claim.value.strip()
    place = message.lower().find(value.lower())
    written = value if place < 0 else message[place : place + len(value)]
    return claim.key in NAMES and written == written.lower() and listed("claims")["unnamed"].match(written) is not None


def _is_literal(claim: Claim, said: SaidText, found: Mapping[str, float]) -> bool:
    """Returns whether a clause about the speaker says all content words of the claim: several, or one and its key."""
    clause, _ = bearing(claim, said.text[:_READ])
    wanted, there = telling(claim.value), telling(clause)
    if not wanted or not wanted <= there or found["ended"] or found["denied"] or claim.of_other:
        return False
    if len(wanted) > 1 and found["of self"]:
        return True
    key = keys.vocabulary_key(claim.key)
    labels = telling(f"{cues(key)} {key.replace('-', ' ')}") - wanted
    place = fold(clause).find(fold(claim.value))
    of_self = shows("mine", clause) and place > 0 and not shows("kin", fold(clause)[:place])
    introduces = key == "name" and there == wanted and claim.value.istitle()
    # "Call me when Bob is there" gives nobody a name.
    labelled = (key not in NAMES and not labels.isdisjoint(there)) or (key == "home" and shows("moved", clause))
    return of_self and (introduces or labelled)


def likelihood(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Returns how likely a claim is true, by its features. The weight called "" counts always."""
    total = sum(weight * found.get(name, 1.0) for name, weight in weights.items())
    return 1 / (1 + exp(-total))


def is_doubtful(found: Mapping[str, float]) -> bool:
    return bool(found["hedged"] or found["numbers missing"])


def features(claim: Claim, said: SaidText) -> dict[str, float]:
    message, before = said.text[:_READ], said.before[-_READ:]
    wanted, held, asked = telling(claim.value), telling(message), telling(before)
    if _opens("affirms", message) and any(sign in before for sign in "?？"):
        held |= asked  # a yes confirms what was asked
    clause, sentence = bearing(claim, message)
    there, key = telling(clause), keys.vocabulary_key(claim.key)
    labels = keys.category_of(key) not in (None, "plan", "relation", "decision")
    of_other = claim.of_other or _is_of_other(claim.key, message)
    suggested = wanted & asked - held
    found: dict[str, bool | float] = {
        "nothing shared": not wanted & held and not _is_translated(claim.value, message),
        "words shared": min(len(wanted & held), _LONG),
        "said of the clause": len((wanted | telling(key)) & there) / max(1, len(there)),
        "labels": labels,
        "asks": _is_question(sentence) or shows("asks", sentence) or _opens("asks_first", sentence),
        "quotes": bool(_QUOTES.search(message)) and not wanted & telling(_QUOTES.sub(" ", message)),
        "of another kept": of_other and shows("kin", message),
        "of nobody": of_other and not shows("kin", message),
        "of self": shows("own", clause) and not of_other,
        "answers": bool(before),
        "suggested": len(suggested) / max(1, len(wanted)),
        "misquoted": bool(claim.quote) and not is_quoted(claim.quote, message),
        "numbers missing": _other_number(wanted, held | asked),
        **_manner(claim, message, sentence, clause),
    }
    return {name: float(share) for name, share in found.items()}


def _other_number(wanted: set[str], held: set[str]) -> bool:
    """Returns whether a claim has a number that a message with numbers lacks. A number in words (zwölf) is not read."""
    numbers, counted = ({word for word in words if word.isdigit()} for words in (wanted, held))
    # "since '74" says 1974.
    missing = {one for one in numbers if not any(one.endswith(other) for other in counted)}
    return bool(missing and counted)


def _manner(claim: Claim, message: str, sentence: str, clause: str) -> dict[str, bool]:
    value = f"{claim.key.replace('_', ' ').replace('-', ' ')} {claim.value}"
    hedged, ended, denied = shows("hedged", sentence), shows("ended", clause), shows("denied", clause)
    return {
        "hedged": hedged and not shows("hedged", value),
        "hedge kept": hedged and shows("hedged", value),
        "unreal": shows("unreal", sentence) and not shows("unreal", value),
        "ended": ended and not shows("ended", value),
        "end kept": ended and shows("ended", value),
        "denied": denied and not shows("denied", value),
        "denial kept": denied and shows("denied", value),
        "denial added": not shows("denied", message) and shows("denied", value),
    }


def is_quoted(quote: str, message: str) -> bool:
    return "".join(_LETTERS.findall(fold(quote))) in "".join(_LETTERS.findall(fold(message)))


def telling(text: str) -> set[str]:
    return (set(tokens(text)) - stop_tokens()) | set(surface(text).numbers)


def _is_of_other(key: str, message: str) -> bool:
    if keys.category_of(keys.vocabulary_key(key)) is not None and not shows("kin", fold(key)):
        return False
    first, *rest = re.split("[-_ ]", fold(key))
    return shows("kin", first) or (bool(rest) and first in fold(message).split())


def bearing(claim: Claim, message: str) -> tuple[str, str]:
    """Returns the clause that a claim rests on, and its sentence."""
    wanted = telling(claim.value)
    best, place = -1, (message, message)
    for sentence in sentences.parts(message)[:_MOST_SENTENCES]:
        for clause in _parted(sentence):
            score = 2 * len(wanted & telling(clause)) + (bool(claim.quote) and is_quoted(clause, claim.quote))
            if score > best:
                best, place = score, (clause, sentence)
    return place


def _parted(sentence: str) -> list[str]:
    ends = [match.end() for match in _JOINT.finditer(sentence)]
    return [part for start, end in pairwise([0, *ends, len(sentence)]) if len(part := sentence[start:end].strip()) > 2]


def shows(kind: str, text: str) -> bool:
    return listed("claims")[kind].search(text) is not None


def _is_translated(value: str, message: str) -> bool:
    language = language_of(message)
    return language is not None and (language_of(value) or "en") != language


def _opens(kind: str, text: str) -> bool:
    found = listed("claims")[kind].search(text)
    return found is not None and not _LETTERS.search(text[: found.start()])


#: The keys of what somebody is called.
NAMES: Final = frozenset(("name", "called"))
_CLOCK: Final = re.compile(r"\d{1,2}[:.h]\d{2}\b")
_LETTERS: Final = re.compile(r"\w")
_JOINT: Final = re.compile(r"[,;:、，；：—–]\s*|\s(?=(?:but|so|because|aber|weil|pero|porque|mais|parce)\s)")
#: The features any of which keeps a claim from replacing a fact that a model calls over, unless all of them are sure.
_DOUBTS: Final = ("hedged", "numbers missing", "asks", "unreal", "quotes", "suggested", "of nobody", "misquoted")
#: Those below which no other reading lifts a claim.
_FLOOR: Final = ("hedged", "numbers missing", "unreal", "quotes", "suggested", "misquoted")
_QUOTES: Final = re.compile(r"[\"“„«]([^\"”“»]{2,400})[\"”“»]|「([^」]{2,400})」|『([^』]{2,400})』")
#: The weights of the features and the shares of likelihood, fitted on 320 claims about 150 messages in six languages.
WEIGHTS: Final[Mapping[str, float]] = {
    "nothing shared": -0.55,
    "words shared": 0.38,
    "said of the clause": 0.51,
    "labels": -0.74,
    "asks": -2.37,
    "quotes": -1.3,
    "of another kept": 1.01,
    "of nobody": -0.65,
    "of self": 0.34,
    "answers": 0.39,
    "suggested": -0.9,
    "numbers missing": -0.49,
    "hedged": -1.65,
    "hedge kept": 2.84,
    "unreal": -0.85,
    "ended": -1.22,
    "end kept": 2.16,
    "denied": -0.48,
    "denial kept": 0.46,
    "denial added": 0.56,
    "": 0.04,
}
SURE_FROM: Final = 0.74
REFUSED_BELOW: Final = 0.14
#: The likelihood from which nobody is asked about a claim.
CARRIED_FROM: Final = 0.95
