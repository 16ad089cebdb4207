"""Parts a sentence about the manner of answers into clauses, and reads what each clause wants and denies.

Invariants: pure; time grows linearly with the sentence. A manner that a clause speaks of is wanted, denied, open (a
denial may reach it: "no emojis, lists"), or part of a condition. What is open is neither wanted nor denied.

How it works: words for one manner in all languages are one ("brief", "kürzer", 简短). A sentence falls into segments,
which `wishes.yaml` tells apart by their first words: one asks, one states, one depends on another ("dass du …"), one
sets something beside it ("ohne …"), and one is a mere thing. All but the first two belong to the clause before them, a
leading condition to the clause behind it. A denial reaches what depends on it.
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
class Reading:
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
        """True if the clause has words beside manners."""
        return bool(self.words or self.pieces)


@dataclass(slots=True)
class Clause:
    """The segments of a clause, each with the turn that it takes from those before it."""

    role: Role
    segments: list[tuple[str, Turn]]

    @property
    def asks(self) -> bool:
        return self.role == "asks"

    @property
    def feels(self) -> bool:
        return has("feels", self.segments[0][0])

    @property
    def ends_denied(self) -> bool:
        text, turn = self.segments[-1]
        return turn == "denied" or bool(denials(text))

    def read(self) -> Reading:
        """Returns the contents of the clause."""
        text = " ".join(segment for segment, _ in self.segments)
        others, pieces = _other_words(text)
        return Reading(
            text=text,
            mentions=frozenset(mention for segment, turn in self.segments for mention in _mentions(segment, turn)),
            words=others,
            pieces=pieces,
            telling=frozenset(telling(text)),
            denied=bool(denials(text)),
        )


def joined(readings: Iterable[Reading]) -> Reading:
    """Returns several readings as one."""
    parts = list(readings)
    return Reading(
        text=" ".join(part.text for part in parts),
        mentions=frozenset().union(*(part.mentions for part in parts)),
        words=frozenset().union(*(part.words for part in parts)),
        pieces=tuple(piece for part in parts for piece in part.pieces),
        telling=frozenset().union(*(part.telling for part in parts)),
        denied=any(part.denied for part in parts),
    )


def clauses(plain: str) -> list[Clause]:
    """Returns the clauses of a sentence or a claim in plain words."""
    parted: list[Clause] = []
    japanese, leads = KANA.search(plain) is not None, False
    turn: Turn
    for _, segment in segments(plain):
        role, last, empty = role_of(segment), parted[-1] if parted else None, is_empty(segment)
        if last is not None and role == "asks" and last.ends_denied and _is_polite_thing(segment):
            role = "thing"
        if empty and not denials(segment):
            if role == "thing":  # "no, …" and "ok, …"
                continue
            if last is not None and last.role != "states" and not word("please").sub("", segment).strip(SIGNS):
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
        elif last is not None and role == "asks" and empty and (last.role != "states" or last.feels):
            if leads := bool(denials(segment)):  # "emojis, please don't"
                last.segments = [(text, "open" if last.asks else "denied") for text, _ in last.segments]
            last.role = "asks"
        elif last is not None and (role in ("depends", "beside") or (role == "thing" and not _sets_apart(segment))):
            turn = _turn_after(last, role, segment)
            last.segments.append((segment, turn))
        else:
            # "Not formal, but casual" asks for both, "without emojis please" is all there is.
            takes_over = role == "thing" and last is not None and last.asks
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
        return turn
    if begins("ors", segment) or (has("ors", segment) and not has("answers", segment)):
        clause.segments = [(text, "denied" if turn == "open" else turn) for text, turn in clause.segments]
        return "denied"
    return "open"


def _is_polite_thing(segment: str) -> bool:
    """Returns whether only a "please" makes an order of a segment: it may be denied with the thing before it."""
    bare = word("please").sub(" ", segment).strip(SIGNS)
    return bare != segment and role_of(bare) == "thing" and not has("answers", bare)


def _sets_apart(segment: str) -> bool:
    """Returns whether a thing is wanted or not whatever was said before it: "but …", "only …"."""
    return begins("contrasts", segment) or has("insists", segment)


# Segments -----------------------------------------------------------------------------------------------------------


def segments(plain: str) -> Iterator[tuple[int, str]]:
    """Yields the segments of a sentence, each with its place."""
    ends = [match.end() if match["starts"] is None else match.start("starts") for match in joint().finditer(plain)]
    for start, end in pairwise([0, *ends, len(plain)]):
        part = plain[start:end]
        for first, last in pairwise([0, *_order_within(part), len(part)]):
            if text := part[first:last].strip(" ,;:、"):
                yield start + part.index(text, first), text


def _order_within(part: str) -> list[int]:
    """Returns where an order begins behind a condition without a comma: "when you explain it use lists"."""
    for match in word("orders").finditer(part) if begins("joins", part) else ():
        before, behind = part[: match.start()].split(), part[match.end() :].strip(SIGNS)
        no_verb = len(before) > 2 and not any(word(name).fullmatch(before[-1]) for name in _BEFORE_VERBS)
        if behind and no_verb:
            return [match.start()]
    return []


@lru_cache(_SEGMENTS)
def role_of(segment: str) -> Role:
    """Returns how a segment stands to those beside it."""
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
    return "states" if begins("subjects", segment, start) or has("finite", segment) else "thing"


def _asks(segment: str, start: int) -> bool:
    if has("wants", segment) and has("answers", segment):
        return not _is_deed(word("answers").sub(" ", segment))
    if _is_deed(segment):
        return False
    polite = word("please").sub(" ", segment) if begins("subjects", segment, start) else segment
    if has("asks", polite) or has("polite", segment) or begins("orders", segment, start):
        return True
    if ends_with("ends", segment) or any(place == 0 for place, _ in denials(segment[start:])):
        return True
    return has("feels", segment) and is_empty(segment)


def _is_deed(segment: str) -> bool:
    """Returns whether a segment tells what its speaker wants to do: "I'd like to answer in German"."""
    will = word("own_will").search(segment)
    return will is not None and not has("you", segment) and bool(word("deeds").search(segment, will.end()))


def opening(segment: str) -> int:
    """Returns the end of the words that may stand before an order: "and please just"."""
    end = 0
    while (match := word("openings").match(segment, end)) is not None:
        rest = segment[match.end() :]
        if not rest.strip(SIGNS) or (rest[0].isalnum() and not UNSPACED.match(rest)):
            break
        end = match.end() + len(rest) - len(rest.lstrip(" ,"))
    return end


# Contents -----------------------------------------------------------------------------------------------------------


def names_manner(plain: str, *, but: str = "") -> bool:
    """Returns whether a text speaks of a manner other than `but`."""
    return any(known.search(plain) for name, known in manner_words().items() if name != but)


@lru_cache(_SEGMENTS)
def is_empty(segment: str) -> bool:
    """Returns whether a segment names nothing that could be wanted."""
    others, pieces = _other_words(segment)
    return not (others or pieces or names_manner(word("feels").sub(" ", segment)))


def _other_words(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns the words of a text that are no manner and say something, and its pieces of scripts without spaces."""
    for expression in (word("feels"), *manner_words().values(), _empty()):
        text = expression.sub(" ", text)
    pieces = tuple(piece for piece in UNSPACED.findall(text) if not _FEW_KANA.fullmatch(piece))
    return frozenset(telling(UNSPACED.sub(" ", text))), pieces


def _mentions(segment: str, turn: Turn) -> Iterator[tuple[str, Turn]]:
    denied = denials(segment)
    segment = word("feels").sub(lambda match: " " * len(match.group()), segment)  # "it would be nice if …"
    for name, known in manner_words().items():
        for match in known.finditer(segment):
            yield name, _turn_at(segment, match, denied, turn)


def _turn_at(segment: str, match: re.Match[str], denied: Sequence[tuple[int, int]], turn: Turn) -> Turn:
    """Returns whether a segment denies the word that matches, by denials before it or, in some words, behind it."""
    if not denied:
        return turn
    stop = max((each.start() for each in word("stops").finditer(segment)), default=-1)
    if KANA.search(segment):
        behind = [start for start, _ in denied if match.start() <= start <= match.end() + _DENIED_WITHIN]
        goes_on = any(match.end() <= stop < start for start in behind)
        return turn if not behind else "open" if goes_on else "denied"
    if any(start < stop for start, _ in denied):
        return "open"  # "don't stop"
    before = [end for start, end in denied if start <= match.start()]
    if before:
        return "open" if has("ands", segment[before[-1] : match.start()]) else "denied"
    return "denied" if word("after").search(segment, match.end()) else "open"


def denials(text: str) -> list[tuple[int, int]]:
    """Returns the places of the words that deny something, in their order."""
    text = word("undenied").sub(lambda match: " " * len(match.group()), text)
    lists = [word("denies"), word("stops")] + ([] if KANA.search(text) else [_list("claims")["denied"]])
    return sorted(match.span() for known in lists for match in known.finditer(text))


# Words --------------------------------------------------------------------------------------------------------------


def plain_words(text: str) -> str:
    """Returns a text as its words are looked up: folded, with its signs, without phrases that mean nothing here."""
    signed = text.translate(_SIGNS_PLAIN)
    plain = _folded(signed if KANA.search(signed) else simplified(signed))
    return " ".join(word("at_most").sub("max", word("idle").sub(" ", plain)).split())


def _folded(text: str) -> str:
    # Folding would make "I like" of "I'd like".
    return " ".join(fold(_WOULD.sub(" would", text)).split())


_list = partial(listed, plain=_folded)
#: The words for each manner of answers.
manner_words = partial(listed, "wishes", "manners", _folded)


def word(name: str) -> re.Pattern[str]:
    """Returns a list of `wishes.yaml` as an expression."""
    return _list("wishes")[name]


def is_of_others(text: str) -> bool:
    """Returns whether a text names another person."""
    return _list("claims")["kin"].search(text) is not None


def has(name: str, text: str) -> bool:
    """Returns whether a text has a word of a list."""
    return word(name).search(text) is not None


def begins(name: str, text: str, at: int = 0) -> bool:
    """Returns whether a text has a word of a list at a place."""
    return word(name).match(text, at) is not None


def ends_with(name: str, plain: str) -> bool:
    """Returns whether a text has a word of a list at its end."""
    last = plain.rstrip(SIGNS)
    return any(match.end() == len(last) for match in word(name).finditer(last))


@cache
def _empty() -> re.Pattern[str]:
    """Returns the words that say nothing beside a wish."""
    lists = [*(words("wishes")[name] for name in _EMPTY), words("claims")["denied"]]
    return listed_words(_folded("|".join(lists)))


@cache
def joint() -> re.Pattern[str]:
    """Returns what stands between two segments."""
    starts = "|".join(word(name).pattern for name in ("despite", "reasons", "contrasts", "beside", "joins"))
    heads = "|".join([*(word(name).pattern for name in ("orders", "asks", "stops")), _list("claims")["denied"].pattern])
    return re.compile(
        rf"[,;:、]\s*|\s-\s|\s(?P<starts>{starts})|\s(?=(?:{word('ands').pattern})\s(?:{heads}))"
        r"|(?<=じゃなくて)|(?<=ではなくて)|(?=而是)|(?=而不是)"
    )


_EMPTY: Final = (
    "henceforth", "lasting", "frame", "light", "wants", "feels", "offers", "asks", "polite", "able", "orders", "stops",
    "denies", "tags",
)  # fmt: skip
KANA: Final = re.compile("[\u3040-\u30ff]")
UNSPACED: Final = re.compile("[\u3040-\u9fff]+")
SIGNS: Final = " .!?,;:~-"
_WOULD: Final = re.compile(r"(?<=\w)['’]d\b", re.IGNORECASE)
_FEW_KANA: Final = re.compile("[\u3040-\u30ff]{1,2}")
#: The lists of words behind which a verb orders nothing.
_BEFORE_VERBS: Final = ("subjects", "you", "verbal")
_SIGNS_PLAIN: Final[Mapping[int, int]] = str.maketrans("，。！？；：、（）—–…", ",.!?;:,()--.")
