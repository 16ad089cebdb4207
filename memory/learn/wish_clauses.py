"""Reads a sentence as clauses about the manner of answers: what asks, what depends on it, and what is denied.

Invariants: pure; time grows linearly with the sentence, which comes as `plain_words` makes it.

How it works: words for one manner in all languages are one ("brief", "kürzer", 简短). A sentence falls into segments,
which `wishes.yaml` tells apart by their first words: one asks, one states, one depends on another ("dass du …"), one
sets something beside it ("ohne …"), and one is a mere thing. All but the first two belong to the clause before them, a
leading condition to the clause behind it. A denial reaches what depends on it; whether it reaches a second thing ("no
emojis, lists") is open.
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
from memory.learn.grounding import telling
from memory.text.simplified import simplified
from memory.text.words import fold

Turn: TypeAlias = Literal["wanted", "denied", "open", "limit"]
Role: TypeAlias = Literal["asks", "states", "depends", "beside", "thing"]

#: Characters behind a word in which Japanese denies it.
_DENIED_WITHIN: Final = 14
#: The segments whose readings are kept: each is looked at several times.
_SEGMENTS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseContents:
    """The contents of a clause: its manners, each with its turn, and its other words.

    `pieces` are other words in scripts without spaces, `text` is the whole clause, `telling` are all its content words.
    """

    text: str
    mentions: frozenset[tuple[str, Turn]]
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
class Clause:
    """The segments of a clause, each with the turn that it takes from those before it."""

    role: Role
    segments: list[tuple[str, Turn]]

    @property
    def feels(self) -> bool:
        return has("feels", self.segments[0][0])

    @property
    def may_ask(self) -> bool:
        return self.role != "states" or self.feels

    @property
    def ends_denied(self) -> bool:
        text, turn = self.segments[-1]
        return turn == "denied" or bool(denials(text))

    def cores(self) -> Iterator[ClauseContents]:
        """Yields what the clause says, and what it says without a thing that is set beside it at its end."""
        yield self.read()
        (text, turn), *before = reversed(self.segments)
        if before and turn == "wanted" and role_of(text) == "thing" and not has("ors", " ".join(s for s, _ in before)):
            core = Clause(self.role, self.segments[:-1]).read()
            if core.names_more:  # "I'd like a short, easy recipe" says nothing before its end
                yield core

    def read(self) -> ClauseContents:
        text = " ".join(segment for segment, _ in self.segments)
        others, pieces = other_words(text)
        return ClauseContents(
            text=text,
            mentions=frozenset(mention for segment, turn in self.segments for mention in mentions(segment, turn)),
            words=others,
            pieces=pieces,
            telling=frozenset(telling(text)),
            denied=bool(denials(text)),
        )


# Clauses ------------------------------------------------------------------------------------------------------------


def joined(readings: Iterable[ClauseContents]) -> ClauseContents:
    parts = list(readings)
    return ClauseContents(
        text=" ".join(part.text for part in parts),
        mentions=frozenset().union(*(part.mentions for part in parts)),
        words=frozenset().union(*(part.words for part in parts)),
        pieces=tuple(piece for part in parts for piece in part.pieces),
        telling=frozenset().union(*(part.telling for part in parts)),
        denied=any(part.denied for part in parts),
    )


def clauses_of(plain: str) -> list[Clause]:
    parted: list[Clause] = []
    japanese, leads = KANA.search(plain) is not None, False
    turn: Turn
    for _, segment in segments_of(plain):
        role, last, empty = role_of(segment), parted[-1] if parted else None, is_empty(segment)
        if last is not None and role == "asks" and last.ends_denied and is_polite_thing(segment):
            role = "thing"
        if empty and not denials(segment):
            if role == "thing":  # "no, …" and "ok, …"
                continue
            if last is not None and last.may_ask and not listing("please").sub("", segment).strip(SIGNS):
                last.role = "asks"
                continue
        if last is not None and leads:
            # Whatever an empty clause is about, or what is asked under a condition.
            fresh = role == "asks" or japanese or last.segments[-1][1] == "limit"
            turn = "denied" if last.ends_denied and not fresh else "wanted"
            last.segments.append((segment, turn))
            # "I hate it when people …" is no wish.
            others = role == "depends" and is_of_others(segment)
            last.role = "states" if others else "asks" if "asks" in (role, last.role) else last.role
            leads = japanese and role == "thing"
        elif last is not None and role == "asks" and empty and last.may_ask and (denials(segment) or last.feels):
            if leads := bool(denials(segment)):  # "emojis, please don't"
                last.segments = [(text, "open" if last.role == "asks" else "denied") for text, _ in last.segments]
            last.role = "asks"
        elif last is not None and (role in ("depends", "beside") or (role == "thing" and not _sets_apart(segment))):
            turn = _turn_after(last, role, segment)
            last.segments.append((segment, turn))
        else:
            # "Not formal, but casual" asks for both, "without emojis please" is all there is.
            takes_over = role == "thing" and last is not None and last.role == "asks"
            turn = "limit" if role == "depends" and not empty else "wanted"
            asks = takes_over or (role == "beside" and has("please", segment))
            parted.append(Clause("asks" if asks else role, [(segment, turn)]))
            leads = role == "depends" or (empty and role != "states") or (japanese and role == "thing")
    return parted


def _turn_after(clause: Clause, role: Role, segment: str) -> Turn:
    """Returns the turn of what follows in a clause.

    A denial reaches what depends on it, and all of a list that ends with "or".
    """
    turn, denied = clause.segments[-1][1], clause.ends_denied
    if role == "beside":  # "neither … nor"; whatever sets apart what follows denies it by itself
        return "denied" if denied else "wanted"
    if role == "depends":
        return "denied" if denied and has("infinitive", segment) else "limit"
    if not denied:
        return "open" if has("either", clause.segments[-1][0]) else turn
    if begins("ors", segment) or (has("ors", segment) and not has("answers", segment)):
        clause.segments = [(text, "denied" if turn == "open" else turn) for text, turn in clause.segments]
        return "denied"
    return "open"


def is_polite_thing(segment: str) -> bool:
    """Returns whether only a "please" makes an order of a segment: it may be denied with the thing before it."""
    bare = listing("please").sub(" ", segment).strip(SIGNS)
    return bare != segment and role_of(bare) == "thing" and not has("answers", bare)


def _sets_apart(segment: str) -> bool:
    return begins("contrasts", segment) or has("insists", segment)


# Segments -----------------------------------------------------------------------------------------------------------


def segments_of(plain: str) -> Iterator[tuple[int, str]]:
    ends = [match.end() if match["starts"] is None else match.start("starts") for match in joint().finditer(plain)]
    for start, end in pairwise([0, *ends, len(plain)]):
        part = plain[start:end]
        for first, last in pairwise([0, *_order_within(part), len(part)]):
            if text := part[first:last].strip(" ,;:、"):
                yield start + part.index(text, first), text


def _order_within(part: str) -> list[int]:
    for match in listing("orders").finditer(part) if begins("joins", part) else ():
        before, behind = part[: match.start()].split(), part[match.end() :].strip(SIGNS)
        no_verb = len(before) > 2 and not any(listing(name).fullmatch(before[-1]) for name in _BEFORE_VERBS)
        if behind and no_verb:
            return [match.start()]
    return []


@lru_cache(_SEGMENTS)
def role_of(segment: str) -> Role:
    start, unspaced = opening(segment), UNSPACED.search(segment) is not None
    gives_reason = unspaced and ends_with("reasons", segment) and not has("asks", segment)
    if gives_reason or any(begins(name, segment, at) for name in ("despite", "reasons") for at in (0, start)):
        return "states"
    if begins("beside", segment):
        return "beside"
    depends = begins("joins", segment) or (unspaced and ends_with("joins", segment))
    if not depends and _asks(segment, start):
        return "asks"
    if depends or (begins("regards", segment) and not names_manner(segment)):
        return "depends"
    states = begins("subjects", segment, start) or has("finite", segment) or _is_inverted(segment, start)
    return "states" if states else "thing"


def _is_inverted(segment: str, start: int) -> bool:
    verb = listing("orders").match(segment, start)
    return verb is not None and begins("inverts", segment[verb.end() :].lstrip())


def _asks(segment: str, start: int) -> bool:
    if has("wants", segment) and has("answers", segment):
        return not _is_deed(listing("answers").sub(" ", segment))
    if _is_deed(segment):
        return False
    polite = listing("please").sub(" ", segment) if begins("subjects", segment, start) else segment
    if has("asks", polite) or has("polite", segment):
        return True
    if begins("orders", segment, start) and not _is_inverted(segment, start):
        return True
    denied = any(place == 0 for place, _ in denials(segment[start:])) and not _is_inverted(segment, start)
    if denied or ends_with("ends", segment):
        return True
    return has("feels", segment) and is_empty(segment)


def _is_deed(segment: str) -> bool:
    """Returns whether a segment tells what its speaker wants to do: "I'd like to answer in German"."""
    will = listing("own_will").search(segment)
    return will is not None and not has("you", segment) and bool(listing("deeds").search(segment, will.end()))


def opening(segment: str) -> int:
    """Returns the end of the words that may stand before an order: "and please just"."""
    end = 0
    while (match := listing("openings").match(segment, end)) is not None:
        rest = segment[match.end() :]
        if not rest.strip(SIGNS) or (rest[0].isalnum() and not UNSPACED.match(rest)):
            break
        end = match.end() + len(rest) - len(rest.lstrip(" ,"))
    return end


# Contents -----------------------------------------------------------------------------------------------------------


def names_manner(plain: str, *, but: str = "") -> bool:
    if but:
        return any(known.search(plain) for name, known in manners().items() if name != but)
    return _any_manner().search(plain) is not None


@lru_cache(_SEGMENTS)
def is_empty(segment: str) -> bool:
    others, pieces = other_words(segment)
    return not (others or pieces or names_manner(listing("feels").sub(" ", segment)))


def other_words(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    for expression in (listing("feels"), *manners().values(), _empty()):
        text = expression.sub(" ", text)
    pieces = tuple(piece for piece in UNSPACED.findall(text) if not _FEW_KANA.fullmatch(piece))
    return frozenset(telling(UNSPACED.sub(" ", text))), pieces


def mentions(segment: str, turn: Turn) -> Iterator[tuple[str, Turn]]:
    denied = denials(segment)
    segment = listing("feels").sub(lambda match: " " * len(match.group()), segment)  # "it would be nice if …"
    for name, known in manners().items():
        for match in known.finditer(segment):
            yield name, _turn_at(segment, match, denied, turn)


def _turn_at(segment: str, match: re.Match[str], denied: Sequence[tuple[int, int]], turn: Turn) -> Turn:
    """Returns whether a segment denies the word that matches, by denials before it or, in some words, behind it."""
    if not denied:
        return "open" if has("either", segment[: match.start()]) else turn
    stops = {each.start() for each in listing("stops").finditer(segment)}
    stop = max(stops, default=-1)
    if KANA.search(segment):
        behind = [start for start, _ in denied if match.start() <= start <= match.end() + _DENIED_WITHIN]
        goes_on = any(match.end() <= stop < start for start in behind)
        return turn if not behind else "open" if goes_on else "denied"
    if any(start < stop and start not in stops for start, _ in denied):
        return "open"  # "don't stop"
    before = [end for start, end in denied if start <= match.start()]
    if before:
        return "open" if has("ands", segment[before[-1] : match.start()]) else "denied"
    return "denied" if listing("after").search(segment, match.end()) else "open"


def denials(text: str) -> list[tuple[int, int]]:
    text = listing("undenied").sub(lambda match: " " * len(match.group()), text)
    denying = [listing("denies"), listing("stops")] + ([] if KANA.search(text) else [lists("claims")["denied"]])
    return sorted(match.span() for known in denying for match in known.finditer(text))


# Words --------------------------------------------------------------------------------------------------------------


def plain_words(text: str) -> str:
    """Returns a text as its words are looked up: folded, with its signs, without phrases that mean nothing here."""
    signed = text.translate(_SIGNS_PLAIN)
    plain = _folded(signed if KANA.search(signed) else simplified(signed))
    return " ".join(listing("at_most").sub("max", listing("idle").sub(" ", plain)).split())


def _folded(text: str) -> str:
    # Folding would make "I like" of "I'd like".
    return " ".join(fold(_WOULD.sub(" would", text)).split())


lists = partial(listed, plain=_folded)
#: The words for each manner of answers.
manners = partial(listed, "wishes", "manners", _folded)


@cache
def _any_manner() -> re.Pattern[str]:
    return listed_words(_folded("|".join(words("wishes", "manners").values())))


def listing(name: str) -> re.Pattern[str]:
    return lists("wishes")[name]


def is_of_others(text: str) -> bool:
    return lists("claims")["kin"].search(text) is not None


def has(name: str, text: str) -> bool:
    return listing(name).search(text) is not None


def begins(name: str, text: str, at: int = 0) -> bool:
    return listing(name).match(text, at) is not None


def ends_with(name: str, plain: str) -> bool:
    last = plain.rstrip(SIGNS)
    return any(match.end() == len(last) for match in listing(name).finditer(last))


@cache
def _empty() -> re.Pattern[str]:
    return listed_words(_folded("|".join([*(words("wishes")[name] for name in _EMPTY), words("claims")["denied"]])))


@cache
def joint() -> re.Pattern[str]:
    starts = "|".join(listing(name).pattern for name in ("despite", "reasons", "contrasts", "beside", "joins"))
    beginning = (*map(listing, ("orders", "asks", "stops")), lists("claims")["denied"])
    heads = "|".join(known.pattern for known in beginning)
    behind = "|".join(f"(?<={re.escape(cut)})" for cut in words("wishes")["cut_behind"].split("|"))
    return re.compile(
        rf"[,;:、]\s*|\s-\s|\s(?P<starts>{starts})|\s(?=(?:{listing('ands').pattern})\s(?:{heads}))"
        rf"|(?={listing('cut_before').pattern})|{behind}"
    )


#: Manners of which one is what the denial of the other asks for.
_PAIRS: Final = {
    "brief": "long", "formal": "informal", "funny": "serious", "lower_case": "capitals", "metric": "imperial",
    "honest": "sugarcoated",
}  # fmt: skip
OPPOSITES: Final[Mapping[str, str]] = _PAIRS | {other: name for name, other in _PAIRS.items()}
FLIPPED: Final[Mapping[Turn, Turn]] = {"wanted": "denied", "denied": "wanted"}
_EMPTY: Final = (
    "henceforth", "lasting", "frame", "light", "wants", "feels", "offers", "asks", "polite", "able", "orders", "stops",
    "denies", "tags",
)  # fmt: skip
KANA: Final = re.compile("[\u3040-\u30ff]")
UNSPACED: Final = re.compile("[\u3040-\u9fff]+")
SIGNS: Final = " .!?,;:~-"
_WOULD: Final = re.compile(r"(?<=\w)['’]d\b", re.IGNORECASE)
_FEW_KANA: Final = re.compile("[\u3040-\u309f]{1,2}")
#: The lists of words behind which a verb orders nothing.
_BEFORE_VERBS: Final = ("subjects", "you", "verbal")
_SIGNS_PLAIN: Final[Mapping[int, int]] = str.maketrans("，。！？；：、（）—–…", ",.!?;:,()--.")
