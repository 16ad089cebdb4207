"""Decides whether a person has asked for the manner of answers that a model claims they want.

Invariants: pure. A wish is read in the person's own words alone (`own_words`), in a sentence that asks the assistant
for something: an order, a wish, a polite question, or a yes to the assistant's offer. A sentence that asks about
something, reports what another person says or wants, or is meant for one answer asks for nothing. All of the claim must
be in such sentences: its manners and what they deny, its names, its numbers and its other words. What the bot obeys
has no middle: a wish that is not sure is none.

How it works: words for one manner in six languages are one ("brief", "kürzer", 简短), so that a claim may be in another
language than the message. `wish_words.yaml` holds them, and the words that show how a sentence is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

from languages.reading import listed_words, shipped
from memory.learn.grounding import SaidText, shows, telling
from memory.learn.offline.rules import HOLE
from memory.learn.own_words import own_words
from memory.text import sentences
from memory.text.guard import injection_flags
from memory.text.language import common_words
from memory.text.simplified import simplified
from memory.text.words import fold

#: Characters of a message that are read, from its beginning, the most sentences, and characters of a claim.
_READ: Final = 4_000
_MOST_SENTENCES: Final = 40
_CLAIM: Final = 400
#: The longest quotation that may be part of a wish ("always end with 'Cheers'"), in characters.
_QUOTE: Final = 24
#: The most words and characters of a sentence without a verb that asks for a manner ("shorter!", 简短点).
_FRAGMENT_WORDS: Final = 5
_FRAGMENT: Final = 40
#: Characters behind a word in which Japanese denies it.
_DENIED_WITHIN: Final = 14


@dataclass(frozen=True, slots=True)
class _Reading:
    """The contents of a clause: its manners, each with whether it is denied, and its other words.

    `pieces` are other words in scripts without spaces, `text` is the whole clause.
    """

    text: str
    manners: frozenset[tuple[str, bool]]
    words: frozenset[str]
    pieces: tuple[str, ...]
    denied: bool


def asks_for(claim: str, said: SaidText) -> bool:
    """Returns whether a message asks for the manner that is claimed, and for nothing less than all of it."""
    if len(claim) > _CLAIM or injection_flags(claim) or injection_flags(said.text[:_READ]):
        return False
    if _word("retold").search(_plain(said.text[:_READ])):
        return False
    wanted = _claimed(claim)
    if not (wanted.manners or wanted.words or wanted.pieces):
        return False
    asked = [plain for sentence in _own_sentences(said.text) if (plain := _wish(sentence, wanted))]
    if _says_yes(said.text):
        asked += [_plain(one) for one in sentences.parts(said.before[-_READ:])[-1:] if one.endswith(("?", "？"))]
    return bool(asked) and _holds(asked, wanted)


def adds_nothing(key: str, claim: str) -> bool:
    """Returns whether a key only names the kind of what is claimed ("length", "tone", 称呼)."""
    named, wanted = _claimed(_word("labels").sub(" ", _plain(key))), _claimed(claim)
    manners = {name for name, _ in wanted.manners}
    return {name for name, _ in named.manners} <= manners and named.words <= wanted.words and not named.pieces


def manners_of(text: str) -> set[str]:
    """Returns the manners of answers that a text speaks of, and their opposites."""
    names = {name for name, _ in _manners(_plain(text))} - _ALWAYS
    return names.union(*(_opposites().get(name, ()) for name in names))


def _says_yes(text: str) -> bool:
    first = re.split(r"[,.!;:，。！；：\s]", text.strip(), maxsplit=1)[0]
    return shows("affirms", first) and not shows("rejects", text[:_FRAGMENT])


def _own_sentences(text: str) -> list[str]:
    """Returns the sentences of a message in its author's own words."""
    text = text if len(text) <= _READ else f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"
    own = _without_transcript(_LABEL.sub("", _DASH.sub("", own_words(text.replace("’", "'"), longest_quote=_QUOTE))))
    parts = sentences.parts(own)
    half = _MOST_SENTENCES // 2
    return parts if len(parts) <= _MOST_SENTENCES else [*parts[:half], *parts[-half:]]


def _without_transcript(text: str) -> str:
    """Returns a text without the lines of a conversation: at least two of people with a name and a colon."""
    lines = _SPOKEN_LINE.findall(text)
    return _SPOKEN_LINE.sub(HOLE, text) if len(lines) > 1 else text


def _wish(sentence: str, wanted: _Reading) -> str:
    """Returns a sentence in plain words if it asks for a manner and has to do with what is wanted; else ""."""
    plain = _plain(sentence)
    if not _touches(plain, wanted) or _word("unreal").search(plain):
        return ""
    place = _asked_at(sentence, plain)
    told = _word("reported").search(plain)
    # Japanese says it last.
    if place is None or (told is not None and (told.start() < place or _KANA.search(plain))):
        return ""
    if _word("once").search(plain) and not (_word("henceforth").search(plain) or _word("lasting").search(plain)):
        return ""
    clause = next((text for start, text in _clauses(plain) if start <= place < start + len(text)), plain)
    before = clause[: max(0, place - plain.find(clause))]
    is_of_talk = bool(_word("talk").search(plain)) or bool(_manners(plain))
    return plain if is_of_talk and not _word("kin").search(before) else ""


def _touches(plain: str, wanted: _Reading) -> bool:
    """Returns whether a sentence has any of what is wanted: most have nothing, and are read no further."""
    names = {name for name, _ in wanted.manners}
    names |= {other for name in names for other in _opposites().get(name, ())}
    if any(_lists()["manners"][name].search(plain) for name in names):
        return True
    return any(piece in plain for piece in wanted.pieces) or not wanted.words.isdisjoint(telling(plain))


def _asked_at(sentence: str, plain: str) -> int | None:
    """Returns the place in a sentence where it begins to ask the assistant for something; None if it does not."""
    if sentence.rstrip().endswith(("?", "？")) and not _ends_with("tags", plain):
        polite = _word("polite").search(plain)
        return None if polite is None else polite.start()
    places = [found.start() for name in ("asks", "polite") if (found := _word(name).search(plain)) is not None]
    for start, clause in _clauses(plain):
        opening = _OPENING.match(clause)
        assert opening is not None  # it may be empty
        if _word("orders").match(clause, opening.end()) or _ends_with("ends", clause):
            places.append(start + opening.end())
    if not places and _is_fragment(plain):
        places = [0]
    return min(places, default=None)


def _ends_with(name: str, plain: str) -> bool:
    last = plain.rstrip(_SIGNS)
    return any(match.end() == len(last) for match in _word(name).finditer(last))


def _is_fragment(plain: str) -> bool:
    """Returns whether a sentence is but a manner, as "shorter!" or "from now on one sentence each" is."""
    manners = {name for name, _ in _manners(plain)} - {"naming"}
    short = len(plain) <= _FRAGMENT and len(plain.split()) <= _FRAGMENT_WORDS
    if not (_word("henceforth").match(plain) or (short and manners)):
        return False
    return not (_word("own").search(plain) or _word("kin").search(plain))


# The contents -------------------------------------------------------------------------------------------------------


def _holds(asked: Sequence[str], wanted: _Reading) -> bool:
    """Returns whether sentences that ask for something ask for all that is wanted.

    Only clauses count that speak of nothing else: "a short book" is no wish for short answers.
    """
    read = [_read(clause) for sentence in asked for _, clause in _clauses(sentence)]
    clauses = [one for one in read if one.words <= wanted.words and _within(one.pieces, wanted.pieces)]
    given = {mention for one in clauses for mention in one.manners}
    given |= {(other, not denied) for name, denied in given for other in _opposites().get(name, ())}
    if not wanted.manners <= given:
        return False
    text = " ".join(one.text for one in clauses)
    if not wanted.words <= telling(text) or not all(piece in text for piece in wanted.pieces):
        return False
    return bool(wanted.manners) or wanted.denied == any(one.denied for one in clauses if one.words or one.pieces)


def _within(pieces: Iterable[str], others: Iterable[str]) -> bool:
    """Returns whether each piece is part of one of the others."""
    return all(any(piece in other for other in others) for piece in pieces)


def _read(clause: str) -> _Reading:
    left = clause
    for listed in (*_lists()["manners"].values(), _word("empty")):
        left = listed.sub(" ", left)
    return _Reading(
        text=clause,
        manners=frozenset(_manners(clause)),
        words=frozenset(telling(_UNSPACED.sub(" ", left))),
        pieces=tuple(one for one in _UNSPACED.findall(left) if not _FEW_KANA.fullmatch(one)),
        denied=_denies(clause),
    )


def _claimed(claim: str) -> _Reading:
    read = [_read(clause) for _, clause in _clauses(_plain(claim))]
    return _Reading(
        text=claim,
        manners=frozenset(mention for one in read for mention in one.manners),
        words=frozenset(word for one in read for word in one.words),
        pieces=tuple(piece for one in read for piece in one.pieces),
        denied=any(one.denied for one in read),
    )


def _manners(clause: str) -> set[tuple[str, bool]]:
    """Returns the manners that a clause speaks of, each with whether it is denied."""
    japanese = _KANA.search(clause) is not None
    everywhere = not japanese and _denies(clause)
    found: set[tuple[str, bool]] = set()
    for name, listed in _lists()["manners"].items():
        for match in listed.finditer(clause):
            behind = clause[match.end() : match.end() + _DENIED_WITHIN]
            found.add((name, _denies(behind) if japanese else everywhere))
    return found


def _denies(text: str) -> bool:
    text = _NO_DENIAL.sub(" ", text)
    return bool(_word("denies").search(text)) or (_KANA.search(text) is None and bool(_word("denied").search(text)))


def _clauses(sentence: str) -> Iterable[tuple[int, str]]:
    """Yields the clauses of a sentence, each with its place."""
    ends = [match.end() for match in _JOINT.finditer(sentence)]
    for start, end in pairwise([0, *ends, len(sentence)]):
        if part := sentence[start:end].strip():
            yield start + len(sentence[start:end]) - len(sentence[start:end].lstrip()), part


def _plain(text: str) -> str:
    """Returns a text as its words are looked up: folded, with its signs, without phrases that mean nothing here."""
    signed = text.translate(_SIGNS_PLAIN)
    plain = signed if _KANA.search(signed) else simplified(signed)
    return " ".join(_word("at_most").sub("max", _word("idle").sub(" ", _folded(plain))).split())


def _folded(text: str) -> str:
    return fold(text.replace("’", "'"))


def _word(name: str) -> re.Pattern[str]:
    found: re.Pattern[str] = _lists()[name]
    return found


@cache
def _lists() -> Mapping[str, Any]:
    data: dict[str, Any] = shipped("memory.learn", "grounding_words.yaml")
    data |= shipped("memory.learn", "wish_words.yaml")
    manners = {name: listed_words(_folded(words)) for name, words in data.pop("manners").items()}
    del data["opposites"]
    data["empty"] = "|".join([*common_words(), *(data[name] for name in _EMPTY)])
    return {name: listed_words(_folded(words)) for name, words in data.items()} | {"manners": manners}


@cache
def _opposites() -> Mapping[str, Sequence[str]]:
    pairs: list[list[str]] = shipped("memory.learn", "wish_words.yaml")["opposites"]
    return {name: [other for other in pair if other != name] for pair in pairs for name in pair}


#: Manners whose words stand in any text about answers.
_ALWAYS: Final = frozenset({"questions", "naming", "examples", "simple", "honest"})
#: The lists of words that say nothing beside a wish.
_EMPTY: Final = (
    "frame",
    "asks",
    "orders",
    "polite",
    "tags",
    "talk",
    "denies",
    "denied",
    "henceforth",
    "lasting",
    "light",
)
_FEW_KANA: Final = re.compile("[\u3040-\u30ff]{1,2}")
_KANA: Final = re.compile("[\u3040-\u30ff]")
_UNSPACED: Final = re.compile("[\u3040-\u9fff]+")
_SIGNS: Final = " .!?,;:~-"
_SIGNS_PLAIN: Final = str.maketrans("，。！？；：、（）—–…", ",.!?;:,()--.")
#: Words with 不 in them that deny nothing.
_NO_DENIAL: Final = re.compile("能不能|可不可以|好不好|行不行|不过|不好意思|不管|不论|不同|差不多")
_DASH: Final = re.compile(r"^[ \t]{0,4}[-–] ", re.MULTILINE)
#: Words before an order: "and please just".
_OPENING: Final = re.compile(
    r"(?:(?:and|also|but|so|then|always|please|bitte|immer|toujours|siempre"
    r"|nunca|por favor|oh|ok|okay|hey|hi|hello|btw|by the way|well|just|only|simply|now|again"
    r"|und|auch|aber|also|dann|jetzt|einfach|ubrigens|hallo|ach|doch|ab jetzt|ab sofort|in zukunft"
    r"|et|aussi|mais|alors|donc|salut|desormais|dorenavant|a partir de maintenant"
    r"|y|e|tambien|pero|entonces|hola|ahora|a partir de ahora|de ahora en adelante"
    r"|from now on|in future|in the future|going forward|from today|when you \w+(?: \w+){0,4}"
    r"|那|那么|还有|对了|然后|顺便|就|あと|それと|で|じゃあ)[ ,]+)*"
)
_JOINT: Final = re.compile(
    r"[,;:、]\s*|\s-\s|\s(?=(?:but|because|aber|sondern|weil|denn|pero|sino|porque|mais|parce|car"
    r"|so (?:please|that|i|you|keep|be|use|answer)"
    r"|(?:and|und|et|y|e) (?:dont|do not|no|never|stop|please|always|use|be|keep|kein\w*|bitte|immer|nie|ne|toujours"
    r"|sois|nunca|siempre|usa|se|pas)"
    r"|without|ohne|sans|sin|instead of|rather than|statt|anstatt|au lieu|plutot que|en vez de|en lugar de)\b)"
    r"|(?<=じゃなくて)|(?<=ではなくて)|(?=而是)|(?=而不是)"
)
#: The label of an attachment, and a line of somebody in a conversation.
_LABEL: Final = re.compile(r"^\[[^\]\n]{1,200}\]", re.MULTILINE)
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t*_>-]{0,6}(?:\[[^\]\n]{3,40}\] ?)?[^\W\d_][\w .'-]{0,24}(?: ?[\[(][^\])\n]{3,30}[\])])? ?[:：][^\n]*",
    re.MULTILINE,
)
