"""Decides whether a person has asked for the manner of answers that a model claims they want.

Invariants: pure; time grows linearly with the message. A wish is read in the person's own words alone (`own_words`), in
a clause that asks the assistant for something: an order, a wish, a polite question, or a yes to the assistant's offer.
A sentence that asks about something, reports what another person says or wants, gives words to be passed on, or is
meant for one answer or one text asks for nothing. All of the claim must be in such clauses: its manners and what they
deny, its names, its numbers and its other words. What the bot obeys has no middle: a wish that is not sure is none.

How it works: words for one manner in all languages are one ("brief", "kürzer", 简短), so that a claim may be in another
language than the message. A sentence falls into segments, which `wishes.yaml` tells apart by their first words: one
asks, one states, one depends on another ("dass du …"), one sets something beside it ("ohne …"), and one is a mere
thing. All but the first two belong to the clause before them, a leading condition to the clause behind it. A denial
reaches what depends on it; whether it reaches a second thing ("no emojis, lists") is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from languages import listed, words
from languages.reading import listed_words
from memory.learn.grounding import SaidText, telling
from memory.learn.own_words import HOLE, own_words
from memory.text import sentences
from memory.text.guard import injection_flags
from memory.text.simplified import simplified
from memory.text.words import fold, tokens

_Turn: TypeAlias = Literal["wanted", "denied", "open", "limit"]
_Role: TypeAlias = Literal["asks", "states", "depends", "beside", "thing"]

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
#: The messages and claims whose readings are kept: a model makes many claims of each message.
_KEPT: Final = 64
#: Characters behind a word in which Japanese denies it.
_DENIED_WITHIN: Final = 14
#: The segments whose readings are kept: each is looked at several times.
_SEGMENTS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """The contents of a clause: its manners, each with its turn, and its other words.

    `pieces` are other words in scripts without spaces, `text` is the whole clause, `telling` are all its content words.
    """

    text: str
    mentions: frozenset[tuple[str, _Turn]]
    words: frozenset[str]
    pieces: tuple[str, ...]
    telling: frozenset[str]
    denied: bool

    @property
    def manners(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.mentions)

    @property
    def names_more(self) -> bool:
        return bool(self.words or self.pieces)


@dataclass(slots=True)
class _Clause:
    """The segments of a clause, each with the turn that it takes from those before it."""

    role: _Role
    segments: list[tuple[str, _Turn]]

    @property
    def feels(self) -> bool:
        return _has("feels", self.segments[0][0])

    @property
    def may_ask(self) -> bool:
        return self.role != "states" or self.feels

    @property
    def ends_denied(self) -> bool:
        text, turn = self.segments[-1]
        return turn == "denied" or bool(_denials(text))

    def read(self) -> _Contents:
        text = " ".join(segment for segment, _ in self.segments)
        others, pieces = _other_words(text)
        return _Contents(
            text=text,
            mentions=frozenset(mention for segment, turn in self.segments for mention in _mentions(segment, turn)),
            words=others,
            pieces=pieces,
            telling=frozenset(telling(text)),
            denied=bool(_denials(text)),
        )


def asks_for(claim: str, said: SaidText) -> bool:
    """Returns whether a message asks for the manner that is claimed, and for nothing less than all of it."""
    if len(claim) > _CLAIM or injection_flags(claim):
        return False
    text = said.text if len(said.text) <= _READ else f"{said.text[: _READ // 2]}\n{said.text[-_READ // 2 :]}"
    return _holds(_asked(text, said.before[-_READ:]), _wanted(claim))


def adds_nothing(key: str, claim: str) -> bool:
    """Returns whether a key only names the kind of what is claimed ("length", "tone", 称呼)."""
    named, wanted = _wanted(_word("labels").sub(" ", _plain(key))), _wanted(claim)
    return named.manners <= wanted.manners and named.words <= wanted.words and not named.pieces


def manners_of(text: str) -> set[str]:
    plain = _plain(text)
    return set(_with_opposites(frozenset(name for name, words in _manners().items() if words.search(plain)) - _ALWAYS))


def passes_on(sentence: str, place: int | None = None) -> bool:
    """Returns whether a sentence gives words to be told to another person, or a text to be written.

    Those that begin at `place` are in question, else all behind a colon.
    """
    plain = _plain(sentence)
    if any(not _begins("to_me", plain[match.end() :].lstrip(" -")) for match in _word("tells").finditer(plain)):
        return True
    head, colon, _ = plain.partition(":")
    heeds = _has("heeds", head)
    announces = _is_empty(_word("heeds").sub(" ", head)) and (heeds or _role_of(head) != "asks")
    behind = place is None or place > len(head) or not _names_manner(head)
    return bool(colon) and ((behind and not announces) or (_has("writes", head) and not heeds))


def _with_opposites(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names) | {_OPPOSITES[name] for name in names if name in _OPPOSITES}


@lru_cache(_KEPT)
def _wanted(claim: str) -> _Contents:
    return _joined(clause.read() for clause in _clauses(_plain(claim)))


@lru_cache(_KEPT)
def _asked(text: str, before: str) -> tuple[_Contents, ...]:
    if injection_flags(text) or _has("retold", _plain(text)):
        return ()
    plain = [_plain(part) for part in _own_sentences(text)]
    wishes = [_wish(sentence) for sentence in plain]
    asked: list[_Contents] = []
    for place, (sentence, wish) in enumerate(zip(plain, wishes, strict=True)):
        if wish and (_lasts(sentence) or not _is_for_work(wish, plain[:place] + plain[place + 1 :])):
            asked += wish
    return (*asked, *_agreed(text, before))


def _own_sentences(text: str) -> list[str]:
    own = _LABEL.sub("", _DASH.sub("", own_words(text.replace("’", "'"), longest_quote=_QUOTE)))
    if len(_SPOKEN_LINE.findall(own)) > 1:  # a conversation between people with a name and a colon
        own = _SPOKEN_LINE.sub(HOLE, own)
    parts, half = sentences.parts(own), _MOST_SENTENCES // 2
    return parts if len(parts) <= _MOST_SENTENCES else [*parts[:half], *parts[-half:]]


def _wish(plain: str) -> list[_Contents]:
    if not (_has("talk", plain) or _names_manner(plain)) or _has("unreal", plain) or _has("vague", plain):
        return []
    place = _asked_at(plain)
    if place is None or passes_on(plain, place) or not _is_own(plain, place):
        return []
    if (_has("once", plain) or _has("tasks", plain)) and not _lasts(plain, standing=False):
        return []
    parts = _clauses(plain)
    return [clause.read() for clause in [clause for clause in parts if clause.role == "asks"] or parts]


def _asked_at(plain: str) -> int | None:
    """Returns the place in a sentence where it begins to ask the assistant for something; None if it does not."""
    if _is_question(plain) and not _ends_with("tags", plain):
        places = [match.start() for match in _word("polite").finditer(plain)]
        able = _word("able").search(plain)
        if able is not None and (_has("henceforth", plain) or _word("requests").search(plain, able.end())):
            places.append(able.start())
    else:
        roles = [(start, segment, _role_of(segment)) for start, segment in _segments(plain)]
        places = [start + _opening(segment) for start, segment, role in roles if role == "asks"]
        alone = bool(roles) and roles[0][2] == "beside" and _has("please", plain)  # "without emojis, please"
        places += [0] if alone or (not places and _is_fragment(plain)) else []
    return min(places, default=None)


def _is_question(plain: str) -> bool:
    return plain.endswith("?") or _ends_with("questions", plain)


def _is_fragment(plain: str) -> bool:
    """Returns whether a sentence is but a manner, as "shorter!" or "from now on one sentence each" is."""
    short = len(plain) <= _FRAGMENT and len(plain.split()) <= _FRAGMENT_WORDS
    if not (_begins("henceforth", plain) or (short and _names_manner(plain, but="naming"))):
        return False
    return not _is_of_others(plain) and all(_role_of(segment) != "states" for _, segment in _segments(plain))


def _is_own(plain: str, place: int) -> bool:
    reported = _word("reported").search(plain)
    # Japanese says it last.
    if reported is not None and (reported.start() < place or _KANA.search(plain)):
        return False
    start = max((match.end() for match in _joint().finditer(plain, 0, place)), default=0)
    return not _is_of_others(plain[start:place])


def _lasts(plain: str, *, standing: bool = True) -> bool:
    """Returns whether a sentence speaks of all answers; `standing` counts what lasts by its nature, as a name does."""
    return _has("henceforth", plain) or _has("lasting", plain) or (standing and _has("standing", plain))


def _is_for_work(wish: Sequence[_Contents], others: Sequence[str]) -> bool:
    """Returns whether other sentences give work or ask something, but not about the manner itself.

    A wish without a word for its time is meant for that work.
    """
    names = _with_opposites(frozenset().union(*(reading.manners for reading in wish)))
    return any(_is_work(plain, names) for plain in others if not _lasts(plain))


def _is_work(plain: str, names: frozenset[str]) -> bool:
    if _has("tasks", plain):
        return True
    if _is_question(plain) and not _has("polite", plain):
        return not any(_manners()[name].search(plain) for name in names)
    unspaced = _UNSPACED.search(plain) is not None
    if _names_manner(plain) or (_has("talk", plain) and not unspaced):
        return False
    full = [(segment, _role_of(segment)) for _, segment in _segments(plain) if not _is_empty(segment)]
    # A thing of some length may be an order with a verb that no list has: "Compare the two phones."
    things = [segment[_opening(segment) :] for segment, role in full if role == "thing"]
    longest = max((len(thing if unspaced else thing.split()) for thing in things), default=0)
    return longest > _THING or any(role == "asks" for _, role in full) or (unspaced and _has("wants", plain))


def _agreed(text: str, before: str) -> list[_Contents]:
    """Returns what the assistant has offered right before a message, if the message is a yes.

    Conditions of the yes are part of what is returned, so that a claim must have them, too.
    """
    plain, offer = _plain(text[:_YES]), _plain("".join(sentences.parts(before)[-1:]))
    yes = _word("agrees").match(plain)
    if yes is None or not _is_question(offer) or not _has("offers", offer) or _is_question(plain.partition(" ")[0]):
        return []
    if _begins("joins", plain) and plain[yes.end() :].startswith(" "):  # "si" with no accent is "if" and "yes"
        return []
    # 好 is a yes alone, and no yes as the beginning of a word.
    if _UNSPACED.match(plain) and len(re.split(r"[\W_]", plain, maxsplit=1)[0]) > len(yes.group()) + 2:
        return []
    rest = _word("agrees").sub(" ", plain[yes.end() :])
    first = re.split(r"[.!?]", rest, maxsplit=1)[0]
    several = sum(words.search(offer) is not None for words in _manners().values()) > 1
    once = _has("once", first) or (_has("once", offer) and not _lasts(offer))
    if once or _denials(first) or _list("claims")["rejects"].search(first) or (several and _has("alternatives", offer)):
        return []
    asked = [clause.read() for clause in _clauses(offer)]
    if _has("limits", rest):
        condition = _wanted(rest)
        return [_joined([*asked, condition])] if condition.names_more else []
    beside = [segment for _, segment in _segments(first) if _role_of(segment) not in ("asks", "states")]
    return [_joined([*asked, *map(_wanted, beside)])]


def _holds(asked: Sequence[_Contents], wanted: _Contents) -> bool:
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
    if any((name, _FLIPPED.get(turn)) in given for name, turn in wanted.mentions if name != "naming"):
        return False  # it says both
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
    own = set(tokens(_word("claimant").sub(" ", wanted.text)))
    return len(own) > 1 and any(own <= set(tokens(part.text)) and part.denied == wanted.denied for part in parts)


# Clauses ------------------------------------------------------------------------------------------------------------


def _joined(readings: Iterable[_Contents]) -> _Contents:
    parts = list(readings)
    return _Contents(
        text=" ".join(part.text for part in parts),
        mentions=frozenset().union(*(part.mentions for part in parts)),
        words=frozenset().union(*(part.words for part in parts)),
        pieces=tuple(piece for part in parts for piece in part.pieces),
        telling=frozenset().union(*(part.telling for part in parts)),
        denied=any(part.denied for part in parts),
    )


def _clauses(plain: str) -> list[_Clause]:
    parted: list[_Clause] = []
    japanese, leads = _KANA.search(plain) is not None, False
    turn: _Turn
    for _, segment in _segments(plain):
        role, last, empty = _role_of(segment), parted[-1] if parted else None, _is_empty(segment)
        if last is not None and role == "asks" and last.ends_denied and _is_polite_thing(segment):
            role = "thing"
        if empty and not _denials(segment):
            if role == "thing":  # "no, …" and "ok, …"
                continue
            if last is not None and last.may_ask and not _word("please").sub("", segment).strip(_SIGNS):
                last.role = "asks"
                continue
        if last is not None and leads:
            # Whatever an empty clause is about, or what is asked under a condition.
            fresh = role == "asks" or japanese or last.segments[-1][1] == "limit"
            turn = "denied" if last.ends_denied and not fresh else "wanted"
            last.segments.append((segment, turn))
            # "I hate it when people …" is no wish.
            others = role == "depends" and _is_of_others(segment)
            last.role = "states" if others else "asks" if "asks" in (role, last.role) else last.role
            leads = japanese and role == "thing"
        elif last is not None and role == "asks" and empty and last.may_ask and (_denials(segment) or last.feels):
            if leads := bool(_denials(segment)):  # "emojis, please don't"
                last.segments = [(text, "open" if last.role == "asks" else "denied") for text, _ in last.segments]
            last.role = "asks"
        elif last is not None and (role in ("depends", "beside") or (role == "thing" and not _sets_apart(segment))):
            turn = _turn_after(last, role, segment)
            last.segments.append((segment, turn))
        else:
            # "Not formal, but casual" asks for both, "without emojis please" is all there is.
            takes_over = role == "thing" and last is not None and last.role == "asks"
            turn = "limit" if role == "depends" and not empty else "wanted"
            asks = takes_over or (role == "beside" and _has("please", segment))
            parted.append(_Clause("asks" if asks else role, [(segment, turn)]))
            leads = role == "depends" or (empty and role != "states") or (japanese and role == "thing")
    return parted


def _turn_after(clause: _Clause, role: _Role, segment: str) -> _Turn:
    """Returns the turn of what follows in a clause.

    A denial reaches what depends on it, and all of a list that ends with "or".
    """
    turn, denied = clause.segments[-1][1], clause.ends_denied
    if role == "beside":  # "neither … nor"; whatever sets apart what follows denies it by itself
        return "denied" if denied else "wanted"
    if role == "depends":
        return "denied" if denied and _has("infinitive", segment) else "limit"
    if not denied:
        return "open" if _has("either", clause.segments[-1][0]) else turn
    if _begins("ors", segment) or (_has("ors", segment) and not _has("answers", segment)):
        clause.segments = [(text, "denied" if turn == "open" else turn) for text, turn in clause.segments]
        return "denied"
    return "open"


def _is_polite_thing(segment: str) -> bool:
    """Returns whether only a "please" makes an order of a segment: it may be denied with the thing before it."""
    bare = _word("please").sub(" ", segment).strip(_SIGNS)
    return bare != segment and _role_of(bare) == "thing" and not _has("answers", bare)


def _sets_apart(segment: str) -> bool:
    return _begins("contrasts", segment) or _has("insists", segment)


# Segments -----------------------------------------------------------------------------------------------------------


def _segments(plain: str) -> Iterator[tuple[int, str]]:
    ends = [match.end() if match["starts"] is None else match.start("starts") for match in _joint().finditer(plain)]
    for start, end in pairwise([0, *ends, len(plain)]):
        part = plain[start:end]
        for first, last in pairwise([0, *_order_within(part), len(part)]):
            if text := part[first:last].strip(" ,;:、"):
                yield start + part.index(text, first), text


def _order_within(part: str) -> list[int]:
    for match in _word("orders").finditer(part) if _begins("joins", part) else ():
        before, behind = part[: match.start()].split(), part[match.end() :].strip(_SIGNS)
        no_verb = len(before) > 2 and not any(_word(name).fullmatch(before[-1]) for name in _BEFORE_VERBS)
        if behind and no_verb:
            return [match.start()]
    return []


@lru_cache(_SEGMENTS)
def _role_of(segment: str) -> _Role:
    start, unspaced = _opening(segment), _UNSPACED.search(segment) is not None
    gives_reason = unspaced and _ends_with("reasons", segment) and not _has("asks", segment)
    if gives_reason or any(_begins(name, segment, at) for name in ("despite", "reasons") for at in (0, start)):
        return "states"
    if _begins("beside", segment):
        return "beside"
    depends = _begins("joins", segment) or (unspaced and _ends_with("joins", segment))
    if not depends and _asks(segment, start):
        return "asks"
    if depends or (_begins("regards", segment) and not _names_manner(segment)):
        return "depends"
    states = _begins("subjects", segment, start) or _has("finite", segment) or _is_inverted(segment, start)
    return "states" if states else "thing"


def _is_inverted(segment: str, start: int) -> bool:
    verb = _word("orders").match(segment, start)
    return verb is not None and _begins("inverts", segment[verb.end() :].lstrip())


def _asks(segment: str, start: int) -> bool:
    if _has("wants", segment) and _has("answers", segment):
        return not _is_deed(_word("answers").sub(" ", segment))
    if _is_deed(segment):
        return False
    polite = _word("please").sub(" ", segment) if _begins("subjects", segment, start) else segment
    if _has("asks", polite) or _has("polite", segment):
        return True
    if _begins("orders", segment, start) and not _is_inverted(segment, start):
        return True
    if _ends_with("ends", segment) or any(place == 0 for place, _ in _denials(segment[start:])):
        return True
    return _has("feels", segment) and _is_empty(segment)


def _is_deed(segment: str) -> bool:
    """Returns whether a segment tells what its speaker wants to do: "I'd like to answer in German"."""
    will = _word("own_will").search(segment)
    return will is not None and not _has("you", segment) and bool(_word("deeds").search(segment, will.end()))


def _opening(segment: str) -> int:
    """Returns the end of the words that may stand before an order: "and please just"."""
    end = 0
    while (match := _word("openings").match(segment, end)) is not None:
        rest = segment[match.end() :]
        if not rest.strip(_SIGNS) or (rest[0].isalnum() and not _UNSPACED.match(rest)):
            break
        end = match.end() + len(rest) - len(rest.lstrip(" ,"))
    return end


# Contents -----------------------------------------------------------------------------------------------------------


def _names_manner(plain: str, *, but: str = "") -> bool:
    return any(known.search(plain) for name, known in _manners().items() if name != but)


@lru_cache(_SEGMENTS)
def _is_empty(segment: str) -> bool:
    others, pieces = _other_words(segment)
    return not (others or pieces or _names_manner(_word("feels").sub(" ", segment)))


def _other_words(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    for expression in (_word("feels"), *_manners().values(), _empty()):
        text = expression.sub(" ", text)
    pieces = tuple(piece for piece in _UNSPACED.findall(text) if not _FEW_KANA.fullmatch(piece))
    return frozenset(telling(_UNSPACED.sub(" ", text))), pieces


def _mentions(segment: str, turn: _Turn) -> Iterator[tuple[str, _Turn]]:
    denied = _denials(segment)
    segment = _word("feels").sub(lambda match: " " * len(match.group()), segment)  # "it would be nice if …"
    for name, known in _manners().items():
        for match in known.finditer(segment):
            yield name, _turn_at(segment, match, denied, turn)


def _turn_at(segment: str, match: re.Match[str], denied: Sequence[tuple[int, int]], turn: _Turn) -> _Turn:
    """Returns whether a segment denies the word that matches, by denials before it or, in some words, behind it."""
    if not denied:
        return "open" if _has("either", segment[: match.start()]) else turn
    stops = {each.start() for each in _word("stops").finditer(segment)}
    stop = max(stops, default=-1)
    if _KANA.search(segment):
        behind = [start for start, _ in denied if match.start() <= start <= match.end() + _DENIED_WITHIN]
        goes_on = any(match.end() <= stop < start for start in behind)
        return turn if not behind else "open" if goes_on else "denied"
    if any(start < stop and start not in stops for start, _ in denied):
        return "open"  # "don't stop"
    before = [end for start, end in denied if start <= match.start()]
    if before:
        return "open" if _has("ands", segment[before[-1] : match.start()]) else "denied"
    return "denied" if _word("after").search(segment, match.end()) else "open"


def _denials(text: str) -> list[tuple[int, int]]:
    text = _word("undenied").sub(lambda match: " " * len(match.group()), text)
    lists = [_word("denies"), _word("stops")] + ([] if _KANA.search(text) else [_list("claims")["denied"]])
    return sorted(match.span() for known in lists for match in known.finditer(text))


# Words --------------------------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Returns a text as its words are looked up: folded, with its signs, without phrases that mean nothing here."""
    signed = text.translate(_SIGNS_PLAIN)
    plain = _folded(signed if _KANA.search(signed) else simplified(signed))
    return " ".join(_word("at_most").sub("max", _word("idle").sub(" ", plain)).split())


def _folded(text: str) -> str:
    # Folding would make "I like" of "I'd like".
    return " ".join(fold(_WOULD.sub(" would", text)).split())


_list = partial(listed, plain=_folded)
#: The words for each manner of answers.
_manners = partial(listed, "wishes", "manners", _folded)


def _word(name: str) -> re.Pattern[str]:
    return _list("wishes")[name]


def _is_of_others(text: str) -> bool:
    return _list("claims")["kin"].search(text) is not None


def _has(name: str, text: str) -> bool:
    return _word(name).search(text) is not None


def _begins(name: str, text: str, at: int = 0) -> bool:
    return _word(name).match(text, at) is not None


def _ends_with(name: str, plain: str) -> bool:
    last = plain.rstrip(_SIGNS)
    return any(match.end() == len(last) for match in _word(name).finditer(last))


@cache
def _empty() -> re.Pattern[str]:
    lists = [*(words("wishes")[name] for name in _EMPTY), words("claims")["denied"]]
    return listed_words(_folded("|".join(lists)))


@cache
def _joint() -> re.Pattern[str]:
    starts = "|".join(_word(name).pattern for name in ("despite", "reasons", "contrasts", "beside", "joins"))
    lists = (*map(_word, ("orders", "asks", "stops")), _list("claims")["denied"])
    heads = "|".join(known.pattern for known in lists)
    behind = "|".join(f"(?<={re.escape(cut)})" for cut in words("wishes")["cut_behind"].split("|"))
    return re.compile(
        rf"[,;:、]\s*|\s-\s|\s(?P<starts>{starts})|\s(?=(?:{_word('ands').pattern})\s(?:{heads}))"
        rf"|(?={_word('cut_before').pattern})|{behind}"
    )


#: Manners whose words stand in any text about answers.
_ALWAYS: Final = frozenset({"questions", "naming", "examples", "simple", "honest"})
#: Manners of which one is what the denial of the other asks for.
_PAIRS: Final = {
    "brief": "long", "formal": "informal", "funny": "serious", "lower_case": "capitals", "metric": "imperial",
    "honest": "sugarcoated",
}  # fmt: skip
_OPPOSITES: Final[Mapping[str, str]] = _PAIRS | {other: name for name, other in _PAIRS.items()}
_FLIPPED: Final[Mapping[_Turn, _Turn]] = {"wanted": "denied", "denied": "wanted"}
_DASH: Final = re.compile(r"^[ \t]{0,4}[-–] ", re.MULTILINE)
#: The label of an attachment, and a line of somebody in a conversation.
_LABEL: Final = re.compile(r"^\[[^\]\n]{1,200}\]", re.MULTILINE)
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t*_>-]{0,6}(?:\[[^\]\n]{3,40}\] ?)?[^\W\d_][\w .'-]{0,24}(?: ?[\[(][^\])\n]{3,30}[\])])? ?[:：][^\n]*",
    re.MULTILINE,
)
_EMPTY: Final = (
    "henceforth", "lasting", "frame", "light", "wants", "feels", "offers", "asks", "polite", "able", "orders", "stops",
    "denies", "tags",
)  # fmt: skip
_KANA: Final = re.compile("[\u3040-\u30ff]")
_UNSPACED: Final = re.compile("[\u3040-\u9fff]+")
_SIGNS: Final = " .!?,;:~-"
_WOULD: Final = re.compile(r"(?<=\w)['’]d\b", re.IGNORECASE)
_FEW_KANA: Final = re.compile("[\u3040-\u309f]{1,2}")
#: The lists of words behind which a verb orders nothing.
_BEFORE_VERBS: Final = ("subjects", "you", "verbal")
_SIGNS_PLAIN: Final[Mapping[int, int]] = str.maketrans("，。！？；：、（）—–…", ",.!?;:,()--.")
