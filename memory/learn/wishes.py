"""Decides what manner of answers a person has asked for: whether a model's claim about it holds, and without a model.

Invariants: pure; time grows linearly with the message. A wish is read in the person's own words alone (`own_words`), in
a clause that asks the assistant for something: an order, a wish, a polite question, or a yes to the assistant's offer.
A sentence that asks about something, reports what another person says or wants, gives words to be passed on, or is
meant for one answer or one text asks for nothing. All of a claim must be in such clauses: its manners and what they
deny, its names, its numbers and its other words. What the bot obeys has no middle: a wish that is not sure is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import combinations
from typing import Final, NamedTuple

from languages import words
from languages.reading import listed_words
from memory.learn.grounding import SaidText
from memory.learn.own_words import HOLE, own_words, writes_to
from memory.learn.wish_clauses import (
    FLIPPED,
    KANA,
    OPPOSITES,
    SIGNS,
    UNSPACED,
    Clause,
    ClauseContents,
    begins,
    clauses_of,
    denials,
    ends_with,
    has,
    is_empty,
    is_of_others,
    is_polite_thing,
    joined,
    joint,
    listing,
    lists,
    manners,
    mentions,
    names_manner,
    opening,
    other_words,
    plain_words,
    role_of,
    segments_of,
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
#: The most words of a thing, or characters in scripts without spaces, that is no order.
_THING: Final = 2
#: The characters of an answer that are read for a yes and its conditions.
_YES: Final = 160
#: The longest sentence that is noted as a wish, in characters, and the most parts of one that are left out if they add
#: nothing to it.
_WISH: Final = 200
_PARTS: Final = 8
#: The most wishes of a message that are noted.
_MOST_WISHES: Final = 8
#: The messages and claims whose readings are kept: a model makes many claims of each message.
_KEPT: Final = 64


class _Wish(NamedTuple):
    """A sentence that asks for a manner: as it is written, as it is read, and those of its clauses that ask."""

    text: str
    plain: str
    clauses: tuple[Clause, ...]
    contents: tuple[ClauseContents, ...]


def asks_for(claim: str, said: SaidText) -> bool:
    """Returns whether a message asks for the manner that is claimed, and for nothing less than all of it."""
    if len(claim) > _CLAIM or injection_flags(claim):
        return False
    return _holds(_asked(_ends_of(said.text), said.before[-_READ:]), _wanted(claim))


def standing(text: str) -> list[str]:
    """Returns a message's plain wishes for all answers from then on, each in the words of the message.

    Without a claim to hold against the message, it must name a manner and nothing else, or say that it lasts.
    """
    if writes_to(text):
        return []
    wishes = [wish for wish in _wishes(_ends_of(text)) if HOLE not in wish.text and len(wish.text) <= _WISH]
    plain = [
        wish
        for wish in wishes
        if any(_is_plain(clause, wish.plain) for clause in wish.clauses) and not _contradicts(wish.plain)
    ]
    return [_shortened(wish) for wish in plain[:_MOST_WISHES]]


def _contradicts(plain: str) -> bool:
    """Returns whether a sentence answers what was said before it: "no, his name is Max", "no not that warm"."""
    return (begins("contradicts", plain) or _NO.match(plain) is not None) and not has("henceforth", plain)


def is_for_work(wish: str, before: Iterable[str]) -> bool:
    """Returns whether a wish may be meant for a text that was asked for `before`: it does not say that it lasts."""
    plain = plain_words(wish)
    lasts = _lasts(plain, standing=False) or has("answers", plain)
    return not lasts and any(has("tasks", plain_words(_ends_of(text))) for text in before)


def adds_nothing(key: str, claim: str) -> bool:
    """Returns whether a key only names the kind of what is claimed ("length", "tone", 称呼)."""
    named, wanted = _wanted(listing("labels").sub(" ", plain_words(key))), _wanted(claim)
    return named.manners <= wanted.manners and named.words <= wanted.words and not named.pieces


def manners_of(text: str) -> set[str]:
    plain = plain_words(text)
    return set(_with_opposites(frozenset(name for name, words in manners().items() if words.search(plain)) - _ALWAYS))


def passes_on(sentence: str, place: int | None = None) -> bool:
    """Returns whether a sentence gives words to be told to another person, or a text to be written.

    Those that begin at `place` are in question, else all behind a colon.
    """
    plain = plain_words(sentence)
    if any(not begins("to_me", plain[match.end() :].lstrip(" -")) for match in listing("tells").finditer(plain)):
        return True
    head, colon, _ = plain.partition(":")
    behind = place is None or place > len(head) or not names_manner(head)
    return bool(colon) and ((behind and not _announces(head)) or (has("writes", head) and not has("heeds", head)))


def _announces(head: str) -> bool:
    """Returns whether what stands before a colon only says that a wish follows: "one request", "new rule for us"."""
    return is_empty(listing("heeds").sub(" ", head)) and (has("heeds", head) or role_of(head) != "asks")


def _with_opposites(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names) | {OPPOSITES[name] for name in names if name in OPPOSITES}


@lru_cache(_KEPT)
def _wanted(claim: str) -> ClauseContents:
    return joined(clause.read() for clause in clauses_of(plain_words(claim)))


def _ends_of(text: str) -> str:
    return text if len(text) <= _READ else f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"


@lru_cache(_KEPT)
def _asked(text: str, before: str) -> tuple[ClauseContents, ...]:
    if _is_void(text):
        return ()
    return (*(contents for wish in _wishes(text) for contents in wish.contents), *_agreed(text, before))


def _is_void(text: str) -> bool:
    return bool(injection_flags(text)) or has("retold", plain_words(text))


@lru_cache(_KEPT)
def _wishes(text: str) -> tuple[_Wish, ...]:
    written = _own_sentences(text)
    plain = [plain_words(sentence) for sentence in written]
    wishes = [_wish(*sentence) for sentence in zip(written, plain, strict=True)]
    if not any(wishes) or _is_void(text):
        return ()
    return tuple(
        wish
        for place, wish in enumerate(wishes)
        if wish and (_lasts(wish.plain) or not _is_for_work(wish, plain[:place] + plain[place + 1 :]))
    )


def _own_sentences(text: str) -> list[str]:
    own = _LABEL.sub("", _DASH.sub("", own_words(text.replace("’", "'"), longest_quote=_QUOTE)))
    if len(_SPOKEN_LINE.findall(own)) > 1:  # a conversation between people with a name and a colon
        own = _SPOKEN_LINE.sub(HOLE, own)
    parts, half = sentences.parts(own), _MOST_SENTENCES // 2
    return parts if len(parts) <= _MOST_SENTENCES else [*parts[:half], *parts[-half:]]


def _wish(text: str, plain: str) -> _Wish | None:
    is_about_talk = (
        has("talk", plain) or names_manner(plain) or (has("please", plain) and _lasts(plain, standing=False))
    )
    if not is_about_talk or has("unreal", plain) or has("vague", plain):
        return None
    place = _asked_at(plain)
    if place is None or passes_on(plain, place) or not _is_own(plain, place):
        return None
    if (has("once", plain) or has("tasks", plain)) and not _lasts(plain, standing=False):
        return None
    head, colon, rest = plain.partition(":")
    parts = clauses_of(rest if colon and _announces(head) else plain)
    asking = tuple(clause for clause in parts if clause.role == "asks") or tuple(parts)
    return _Wish(text, plain, asking, tuple(core for clause in asking for core in clause.cores()))


def _is_plain(clause: Clause, plain: str) -> bool:
    """Returns whether a clause asks for a manner and for nothing beside it, or for any under words that make it last.

    Its conditions are left aside, for they stay with its words.
    """
    core = [(segment, turn) for segment, turn in clause.segments if turn != "limit"]
    named = {name for segment, turn in core for name, _ in mentions(segment, turn)}
    text = " ".join(segment for segment, _ in core)
    bare = all(listing("labels").fullmatch(word) for words in other_words(text) for word in words)
    asks = clause.role == "asks" or _is_question(plain)
    if has("tasks", plain) and not (has("henceforth", plain) or has("answers", plain) or has("lasting", text)):
        return False  # "Show me all you know, but not so long" is meant for one text
    always = has("lasting", text) and (bare or begins("lasting", plain) or not has("tasks", plain))
    if always or has("henceforth", plain):
        return (bare and bool(named - {"naming"})) or (asks and (bool(named - {"naming"}) or has("talk", text)))
    # "Shorter please" is said of the last answer.
    is_remark = is_polite_thing(text) and not (denials(text) or begins("beside", text) or _is_question(plain))
    if not has("answers", plain) and (not asks or is_remark):
        return False
    unnamed = named == {"naming"} and bool(denials(text)) and not (has("contradicts", plain) or _NO.search(plain))
    return unnamed or (bare and bool(named - _LOOSE))


def _shortened(wish: _Wish) -> str:
    """Returns the fewest parts of a sentence that ask for the same, without the words of politeness at their edges."""
    head, colon, rest = wish.text.partition(":")
    if colon and has("heeds", plain_words(head)):
        wish = _wish(rest, plain_words(rest)) or wish
    ends = [0, *(match.end() for match in _PART.finditer(wish.text)), len(wish.text)]
    runs = [wish.text[start:end] for start, end in combinations(ends, 2)] if len(ends) <= _PARTS else []
    asked = _same_wish(wish)
    shorter = (run for run in sorted(runs, key=len) if _same_wish(_wish(run, plain_words(run))) == asked)
    text = next(shorter, wish.text)
    start, end = 0, len(text)
    spans = [match.span() for match in _edges().finditer(text)]
    for first, last in spans:
        start = last if not text[start:first].strip(SIGNS) else start
    for first, last in reversed(spans):
        end = first if not text[last:end].strip(SIGNS) else end
    return text[start:end].strip(_AROUND) or text.strip(_AROUND)


def _same_wish(wish: _Wish | None) -> object:
    return wish and [(part.mentions, part.words, part.pieces, part.denied) for part in wish.contents]


@cache
def _edges() -> re.Pattern[str]:
    return listed_words("|".join(words("wishes")[name] for name in ("please", "henceforth", "ands", "contrasts")))


def _asked_at(plain: str) -> int | None:
    """Returns the place in a sentence where it begins to ask the assistant for something; None if it does not."""
    if _is_question(plain) and not ends_with("tags", plain):
        places = [match.start() for match in listing("polite").finditer(plain)]
        able = listing("able").search(plain)
        if able is not None and (has("henceforth", plain) or listing("requests").search(plain, able.end())):
            places.append(able.start())
    else:
        roles = [(start, segment, role_of(segment)) for start, segment in segments_of(plain)]
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
    return not is_of_others(plain) and all(role_of(segment) != "states" for _, segment in segments_of(plain))


def _is_own(plain: str, place: int) -> bool:
    reported = listing("reported").search(plain)
    # Japanese says it last.
    if reported is not None and (reported.start() < place or KANA.search(plain)):
        return False
    start = max((match.end() for match in joint().finditer(plain, 0, place)), default=0)
    return not is_of_others(plain[start:place])


def _lasts(plain: str, *, standing: bool = True) -> bool:
    """Returns whether a sentence speaks of all answers; `standing` counts what lasts by its nature, as a name does."""
    return has("henceforth", plain) or has("lasting", plain) or (standing and has("standing", plain))


def _is_for_work(wish: _Wish, others: Sequence[str]) -> bool:
    """Returns whether other sentences give work or ask something, but not about the manner itself.

    A wish without a word for its time is meant for that work.
    """
    names = _with_opposites(frozenset().union(*(reading.manners for reading in wish.contents)))
    return any(_is_work(plain, names) for plain in others if not _lasts(plain))


def _is_work(plain: str, names: frozenset[str]) -> bool:
    if has("tasks", plain):
        return True
    if _is_question(plain) and not has("polite", plain):
        return not any(manners()[name].search(plain) for name in names)
    unspaced = UNSPACED.search(plain) is not None
    if names_manner(plain) or (has("talk", plain) and not unspaced):
        return False
    full = [(segment, role_of(segment)) for _, segment in segments_of(plain) if not is_empty(segment)]
    # A thing of some length may be an order with a verb that no list has: "Compare the two phones."
    things = [segment[opening(segment) :] for segment, role in full if role == "thing"]
    longest = max((len(thing if unspaced else thing.split()) for thing in things), default=0)
    return longest > _THING or any(role == "asks" for _, role in full) or (unspaced and has("wants", plain))


def _agreed(text: str, before: str) -> list[ClauseContents]:
    """Returns what the assistant has offered right before a message, if the message is a yes.

    Conditions of the yes are part of what is returned, so that a claim must have them, too.
    """
    plain, offer = plain_words(text[:_YES]), plain_words("".join(sentences.parts(before)[-1:]))
    yes = listing("agrees").match(plain)
    if yes is None or not _is_question(offer) or not has("offers", offer) or _is_question(plain.partition(" ")[0]):
        return []
    if begins("joins", plain) and plain[yes.end() :].startswith(" "):  # "si" with no accent is "if" and "yes"
        return []
    # 好 is a yes alone, and no yes as the beginning of a word.
    if UNSPACED.match(plain) and len(re.split(r"[\W_]", plain, maxsplit=1)[0]) > len(yes.group()) + 2:
        return []
    rest = listing("agrees").sub(" ", plain[yes.end() :])
    first = re.split(r"[.!?]", rest, maxsplit=1)[0]
    several = sum(words.search(offer) is not None for words in manners().values()) > 1
    once = has("once", first) or (has("once", offer) and not _lasts(offer))
    if once or denials(first) or lists("claims")["rejects"].search(first) or (several and has("alternatives", offer)):
        return []
    asked = [clause.read() for clause in clauses_of(offer)]
    if has("limits", rest):
        condition = _wanted(rest)
        return [joined([*asked, condition])] if condition.names_more else []
    beside = [segment for _, segment in segments_of(first) if role_of(segment) not in ("asks", "states")]
    return [joined([*asked, *map(_wanted, beside)])]


def _holds(asked: Sequence[ClauseContents], wanted: ClauseContents) -> bool:
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
    if any((name, FLIPPED.get(turn)) in given for name, turn in wanted.mentions if name != "naming"):
        return False  # it says both
    given |= {(OPPOSITES[name], FLIPPED[turn]) for name, turn in given if name in OPPOSITES and turn in FLIPPED}
    # "When you correct my English, keep to British spelling" is one wish; one for English alone names no deed.
    if wanted.words and wanted.mentions & given:
        given |= {(name, "wanted") for name, turn in given if turn == "limit"}
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
    own = set(tokens(listing("claimant").sub(" ", wanted.text)))
    return len(own) > 1 and any(own <= set(tokens(part.text)) and part.denied == wanted.denied for part in parts)


#: Manners whose words stand in any text about answers.
_ALWAYS: Final = frozenset({"questions", "naming", "examples", "simple", "honest"})
#: Manners that are also asked for in one answer, or whose words are said of much else.
_LOOSE: Final = frozenset({"questions", "naming", "examples", "greeting", "teacher", "robot", "simple"})
_PART: Final = re.compile(r"[,;:，、；：]\s*")
_AROUND: Final = " .!?,;:~-。！？，；：、…"
_DASH: Final = re.compile(r"^[ \t]{0,4}[-–] ", re.MULTILINE)
#: The label of an attachment, and a line of somebody in a conversation.
_NO: Final = re.compile(r"no[,.!:]")
_LABEL: Final = re.compile(r"^\[[^\]\n]{1,200}\]", re.MULTILINE)
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t*_>-]{0,6}(?:\[[^\]\n]{3,40}\] ?)?[^\W\d_][\w .'-]{0,24}(?: ?[\[(][^\])\n]{3,30}[\])])? ?[:：][^\n]*",
    re.MULTILINE,
)
