"""Decides whether a person has asked for the manner of answers that a model claims they want.

Invariants: pure. A wish is read in the person's own words alone (`own_words`), in a clause that asks the assistant for
something: an order, a wish, a polite question, or a yes to the assistant's offer. A sentence that asks about something,
reports what another person says or wants, gives words to be passed on, or is meant for one answer or one text asks for
nothing. All of the claim must be in such clauses: its manners and what they deny, its names, its numbers and its other
words. What the bot obeys has no middle: a wish that is not sure is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from memory.learn.grounding import SaidText
from memory.learn.offline.rules import HOLE
from memory.learn.own_words import own_words
from memory.learn.wish_clauses import (
    KANA,
    UNSPACED,
    Reading,
    Turn,
    begins,
    clauses,
    denials,
    ends_with,
    has,
    is_empty,
    is_of_others,
    joined,
    joint,
    manner_words,
    names_manner,
    opening,
    plain_words,
    role_of,
    segments,
    word,
)
from memory.text import sentences
from memory.text.guard import injection_flags
from memory.text.words import tokens

#: Characters of a message that are read, from both ends, the most sentences, and characters of a claim.
_READ: Final = 4_000
_MOST_SENTENCES: Final = 40
_CLAIM: Final = 400
#: The longest quotation that may be part of a wish ("always end with 'Cheers'"), in characters.
_QUOTE: Final = 24
#: The most words and characters of a sentence without a verb that asks for a manner ("shorter!", 简短点).
_FRAGMENT_WORDS: Final = 5
_FRAGMENT: Final = 40
#: The characters of an answer that are read for a yes and its conditions.
_YES: Final = 160
#: The messages and claims whose readings are kept: a model makes many claims of each message.
_KEPT: Final = 64


def asks_for(claim: str, said: SaidText) -> bool:
    """Returns whether a message asks for the manner that is claimed, and for nothing less than all of it."""
    if len(claim) > _CLAIM or injection_flags(claim):
        return False
    text = said.text if len(said.text) <= _READ else f"{said.text[: _READ // 2]}\n{said.text[-_READ // 2 :]}"
    return _holds(_asked(text, said.before[-_READ:]), _wanted(claim))


def adds_nothing(key: str, claim: str) -> bool:
    """Returns whether a key only names the kind of what is claimed ("length", "tone", 称呼)."""
    named, wanted = _wanted(word("labels").sub(" ", plain_words(key))), _wanted(claim)
    return named.manners <= wanted.manners and named.words <= wanted.words and not named.pieces


def manners_of(text: str) -> set[str]:
    """Returns the manners of answers that a text speaks of, and their opposites."""
    plain = plain_words(text)
    return set(
        _with_opposites(frozenset(name for name, words in manner_words().items() if words.search(plain)) - _ALWAYS)
    )


def _with_opposites(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names) | {_OPPOSITES[name] for name in names if name in _OPPOSITES}


@lru_cache(_KEPT)
def _wanted(claim: str) -> Reading:
    return joined(clause.read() for clause in clauses(plain_words(claim)))


@lru_cache(_KEPT)
def _asked(text: str, before: str) -> tuple[Reading, ...]:
    """Returns the clauses of a message that ask the assistant for a lasting manner."""
    if injection_flags(text) or has("retold", plain_words(text)):
        return ()
    plain = [plain_words(part) for part in _own_sentences(text)]
    wishes = [_wish(sentence) for sentence in plain]
    asked: list[Reading] = []
    for place, (sentence, wish) in enumerate(zip(plain, wishes, strict=True)):
        if wish and (_lasts(sentence) or not _is_for_work(wish, plain[:place] + plain[place + 1 :])):
            asked += wish
    return (*asked, *_agreed(text, before))


def _own_sentences(text: str) -> list[str]:
    """Returns the sentences of a message in its author's own words."""
    own = _LABEL.sub("", _DASH.sub("", own_words(text.replace("’", "'"), longest_quote=_QUOTE)))
    if len(_SPOKEN_LINE.findall(own)) > 1:  # a conversation between people with a name and a colon
        own = _SPOKEN_LINE.sub(HOLE, own)
    parts, half = sentences.parts(own), _MOST_SENTENCES // 2
    return parts if len(parts) <= _MOST_SENTENCES else [*parts[:half], *parts[-half:]]


def _wish(plain: str) -> list[Reading]:
    """Returns the clauses of a sentence that ask the assistant for a manner of its answers."""
    if not (has("talk", plain) or names_manner(plain)) or has("unreal", plain) or has("vague", plain):
        return []
    place = _asked_at(plain)
    if place is None or _passes_on(plain) or not _is_own(plain, place):
        return []
    if (has("once", plain) or has("tasks", plain)) and not _lasts(plain, standing=False):
        return []
    parts = clauses(plain)
    asking = [clause.read() for clause in parts if clause.asks]
    return asking or [clause.read() for clause in parts]


def _asked_at(plain: str) -> int | None:
    """Returns the place in a sentence where it begins to ask the assistant for something; None if it does not."""
    if _is_question(plain) and not ends_with("tags", plain):
        places = [match.start() for match in word("polite").finditer(plain)]
        able = word("able").search(plain)
        if able is not None and (has("henceforth", plain) or word("requests").search(plain, able.end())):
            places.append(able.start())
    else:
        roles = [(start, segment, role_of(segment)) for start, segment in segments(plain)]
        places = [start + opening(segment) for start, segment, role in roles if role == "asks"]
        alone = bool(roles) and roles[0][2] == "beside" and has("please", plain)  # "without emojis, please"
        places += [0] if alone or (not places and _is_fragment(plain)) else []
    return min(places, default=None)


def _is_question(plain: str) -> bool:
    return plain.endswith("?") or ends_with("questions", plain)


def _is_fragment(plain: str) -> bool:
    """Returns whether a sentence is but a manner, as "shorter!" or "from now on one sentence each" is."""
    short = len(plain) <= _FRAGMENT and len(plain.split()) <= _FRAGMENT_WORDS
    if not (begins("henceforth", plain) or (short and names_manner(plain, but="naming"))):
        return False
    return not is_of_others(plain) and all(role_of(segment) != "states" for _, segment in segments(plain))


def _is_own(plain: str, place: int) -> bool:
    """Returns whether nobody else asks for it, in a sentence that asks from a place on."""
    reported = word("reported").search(plain)
    # Japanese says it last.
    if reported is not None and (reported.start() < place or KANA.search(plain)):
        return False
    start = max((match.end() for match in joint().finditer(plain, 0, place)), default=0)
    return not is_of_others(plain[start:place])


def _passes_on(plain: str) -> bool:
    """Returns whether a sentence gives words to be told to another person, or a text to be written."""
    if any(not begins("to_me", plain[match.end() :].lstrip(" -")) for match in word("tells").finditer(plain)):
        return True
    head, colon, _ = plain.partition(":")
    announces = has("heeds", head) or is_empty(head) or (names_manner(head) and not has("writes", head))
    return bool(colon) and not announces


def _lasts(plain: str, *, standing: bool = True) -> bool:
    """Returns whether a sentence speaks of all answers; `standing` counts what lasts by its nature, as a name does."""
    return has("henceforth", plain) or has("lasting", plain) or (standing and has("standing", plain))


def _is_for_work(wish: Sequence[Reading], others: Sequence[str]) -> bool:
    """Returns whether other sentences give work or ask something, but not about the manner itself.

    A wish without a word for its time is meant for that work.
    """
    names = _with_opposites(frozenset().union(*(reading.manners for reading in wish)))
    return any(_is_work(plain, names) for plain in others if not _lasts(plain))


def _is_work(plain: str, names: frozenset[str]) -> bool:
    if has("tasks", plain):
        return True
    if _is_question(plain) and not has("polite", plain):
        return not any(manner_words()[name].search(plain) for name in names)
    if has("talk", plain) or names_manner(plain):
        return False
    # A thing of some length may be an order with a verb that no list has: "Compare the two phones."
    return any(
        not is_empty(segment) and (role == "asks" or (role == "thing" and len(segment[opening(segment) :].split()) > 2))
        for segment, role in ((segment, role_of(segment)) for _, segment in segments(plain))
    )


def _agreed(text: str, before: str) -> list[Reading]:
    """Returns what the assistant has offered right before a message, if the message is a yes.

    Conditions of the yes are part of what is returned, so that a claim must have them, too.
    """
    plain, offer = plain_words(text[:_YES]), plain_words("".join(sentences.parts(before)[-1:]))
    yes = word("agrees").match(plain)
    if yes is None or not (_is_question(offer) and has("offers", offer)) or (has("once", offer) and not _lasts(offer)):
        return []
    # 好 is a yes alone, and no yes as the beginning of a word.
    if UNSPACED.match(plain) and len(re.split(r"[\W_]", plain, maxsplit=1)[0]) > len(yes.group()) + 2:
        return []
    rest = word("agrees").sub(" ", plain[yes.end() :])
    first = re.split(r"[.!?]", rest, maxsplit=1)[0]
    several = sum(words.search(offer) is not None for words in manner_words().values()) > 1
    if denials(first) or has("once", first) or (several and has("alternatives", offer)):
        return []
    asked = [clause.read() for clause in clauses(offer)]
    if has("limits", rest):
        condition = _wanted(rest)
        return [joined([*asked, condition])] if condition.names_more else []
    beside = [segment for _, segment in segments(first) if role_of(segment) not in ("asks", "states")]
    return [joined([*asked, *map(_wanted, beside)])]


def _holds(asked: Sequence[Reading], wanted: Reading) -> bool:
    """Returns whether clauses that ask for something ask for all that is wanted.

    Only clauses count that speak of nothing else: "a short book" is no wish for short answers.
    """
    parts = [
        part
        for part in asked
        if part.words <= wanted.words
        and all(any(piece in other for other in wanted.pieces) for piece in part.pieces)
        and {name for name, turn in part.mentions if turn == "limit"} <= wanted.manners
    ]
    given = {mention for part in parts for mention in part.mentions}
    given |= {(_OPPOSITES[name], _FLIPPED[turn]) for name, turn in given if name in _OPPOSITES and turn in _FLIPPED}
    if not (
        wanted.mentions <= given
        and all(any(word in part.telling for part in parts) for word in wanted.words)
        and all(any(piece in part.text for part in parts) for piece in wanted.pieces)
    ):
        return False
    if wanted.manners:
        return True
    if wanted.names_more:
        return all(part.denied == wanted.denied for part in parts if part.names_more)
    # All its words are those that any claim has: they must be just those of a clause.
    own = set(tokens(word("claimant").sub(" ", wanted.text)))
    return len(own) > 1 and any(own <= set(tokens(part.text)) and part.denied == wanted.denied for part in parts)


#: Manners whose words stand in any text about answers.
_ALWAYS: Final = frozenset({"questions", "naming", "examples", "simple", "honest"})
#: Manners of which one is what the denial of the other asks for.
_PAIRS: Final = {
    "brief": "long", "formal": "informal", "funny": "serious", "lower_case": "capitals", "metric": "imperial",
}  # fmt: skip
_OPPOSITES: Final[Mapping[str, str]] = _PAIRS | {other: name for name, other in _PAIRS.items()}
_FLIPPED: Final[Mapping[Turn, Turn]] = {"wanted": "denied", "denied": "wanted"}
_DASH: Final = re.compile(r"^[ \t]{0,4}[-–] ", re.MULTILINE)
#: The label of an attachment, and a line of somebody in a conversation.
_LABEL: Final = re.compile(r"^\[[^\]\n]{1,200}\]", re.MULTILINE)
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t*_>-]{0,6}(?:\[[^\]\n]{3,40}\] ?)?[^\W\d_][\w .'-]{0,24}(?: ?[\[(][^\])\n]{3,30}[\])])? ?[:：][^\n]*",
    re.MULTILINE,
)
