"""Reads retractions: requests to forget, and facts that are over or were wrong, by a language's `facts.yaml`.

Invariants: pure, without a look at memory; time is bounded by the length of the sentences read. English and Chinese,
which people mix, are tried together; another language alone, and all if none shows. A question takes nothing back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from languages import LANGUAGES, part
from languages.reading import compiled
from memory.learn.offline import requests, substitution
from memory.text.language import language_of
from memory.text.sentences import parts
from memory.text.simplified import simplified

#: Longest message and longest sentence read, in characters: nobody takes something back at greater length.
_LONGEST: Final = 600
_SENTENCE: Final = 240
_EDGES: Final = " .!?。！？…~～,，;；:"
_HAS_WORD: Final = re.compile(r"\w")
_QUOTES: Final = re.compile(r"[“”「」『』\"]")
_BESIDE_HAN: Final = re.compile(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])")
#: "Really a poodle??" states something, in wonder.
_ASKS: Final = re.compile(
    r"(?<![?!？])[?？]\s*$|^(?:(?:so|and|but|ok|hey|no|well|i (?:mean|said))[, ]+)*"
    r"(?:what|who|where|when|why|how|which|do|does|did|can|could)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A fact that is over. `what` names it, and may be empty if `keys` say enough."""

    what: str
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A fact that was wrong. `new` holds in its place, or is empty."""

    what: str
    new: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The statements that a message takes back. `corrects` is True if it shows that it puts something right, and is
    `sure` unless "sorry" or "actually" is all that shows it. It `contradicts` the message before it if it begins with a
    no that is meant for it.

    `new` is the right value, if it is said without the wrong one ("no, it's Topsy", "make that two"). `rest` is the
    message without the denied parts and without the words that announce a correction. `off` and `moved` tell that
    something without a name is cancelled ("they called it off") or on another day, `moves` that it is to be; `off_what`
    are the words that follow and may name it. Only if the message is `parted`, it speaks of a death, or of an animal
    given away. If it is `revoked`, what the message before states does not hold ("scrap that").
    If it is only `dismissed` ("never mind"), no more is asked or planned. One that
    only `declines` ("no, thanks") says nothing of what was stated.
    """

    ended: tuple[Ended, ...] = ()
    denied: tuple[Denied, ...] = ()
    corrects: bool = False
    sure: bool = False
    contradicts: bool = False
    rest: str = ""
    new: str = ""
    off: bool = False
    off_what: str = ""
    moved: bool = False
    moves: bool = False
    parted: bool = False
    revoked: bool = False
    dismissed: bool = False
    declines: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    code: str
    forget: tuple[re.Pattern[str], ...]
    around: re.Pattern[str]
    reason: re.Pattern[str]
    all: re.Pattern[str]
    requests: requests.Requests | None
    ends: tuple[tuple[frozenset[str], re.Pattern[str]], ...]
    denials: tuple[re.Pattern[str], ...]
    corrects: re.Pattern[str]
    weak: re.Pattern[str]
    contradicts: re.Pattern[str]
    opening: re.Pattern[str]
    only_denies: re.Pattern[str]
    instead: tuple[re.Pattern[str], ...]
    kinds: dict[str, re.Pattern[str]]
    pronouns: frozenset[str]
    meant: re.Pattern[str]
    off: re.Pattern[str]
    moved: re.Pattern[str]
    moves: re.Pattern[str]
    parted: re.Pattern[str]
    revoked: re.Pattern[str]
    dismissed: re.Pattern[str]
    declines: re.Pattern[str]
    erase: re.Pattern[str]
    beside: re.Pattern[str]
    spared: re.Pattern[str]
    empty: frozenset[str]

    def named(self, words: str | None) -> str:
        """Returns words without signs around them, and without empty words unless there are no others."""
        words = (words or "").strip(_EDGES)
        return " ".join(word for word in words.split() if word.casefold() not in self.empty) or words


def to_forget(text: str) -> str | None:
    """Returns the words for what a message asks to forget; None if it asks to forget nothing.

    "all" stands for everything and "last" for the last message.
    """
    said = _sentences(text, asking=True)
    for language in _languages(language_of(text)):
        whole = ", ".join(said)
        # "Scrap that, the landlord pulled out" gives a reason, and no name.
        off = language.off.match(whole)
        reason = whole[off.end() :] if off is not None else ""
        taken_back = language.revoked.fullmatch(whole) or language.dismissed.fullmatch(whole)
        if taken_back or (reason.startswith(",") and to_forget(reason[1:]) is None):
            continue
        # "Don't forget the milk" and "I forgot the milk" hold the words, but ask for the opposite, or for nothing.
        if any(language.spared.search(one) for one in said):
            continue
        what = _by_whole(said, language) if language.requests is None else requests.meant(said, language.requests)
        what = what or _by_part(said, language)
        if what is not None:
            return what
    return None


def _by_part(said: list[str], language: _Language) -> str | None:
    """Returns the rest of a message without its words for forgetting and the excuses around them."""
    text = _read_in(language, ", ".join(said))
    if language.erase.search(text) is None:
        return None
    left = language.erase.sub(" ", text)
    while (shorter := language.beside.sub(" ", left)) != left:
        left = shorter
    left = " ".join(left.replace(",", " ").split()).strip(_EDGES)
    return language.named(left) if _HAS_WORD.search(left) is not None else requests.LAST


def _by_whole(said: list[str], language: _Language) -> str | None:
    """Returns the words for what a sentence asks to forget, by a pattern that fits it as a whole."""
    for sentence in said:
        for pattern in language.forget:
            found = pattern.fullmatch(_read_in(language, sentence))
            if found is not None:
                what = sentence[slice(*found.span("what"))]
                what = language.reason.split(what, maxsplit=1)[0].strip(_EDGES)
                if language.all.fullmatch(what):
                    return requests.ALL
                named = language.named(language.around.sub("", what))
                # "Streich das" names it elsewhere.
                if named.casefold() not in language.empty and _HAS_WORD.search(language.beside.sub(" ", named)):
                    return named
    return None


def changes(text: str) -> Changes:
    read = _languages(language_of(text))
    # "You have Friday? It's Wednesday": a question corrects as well.
    marks = [(language, _read_in(language, one)) for one in _sentences(text, asking=True) for language in read]
    first = () if _ASKS.search(text) else marks[: len(read)]
    contradicts = any(language.contradicts.match(one) for language, one in first)
    whole = ", ".join(_sentences(text, asking=True))
    # Short words of thanks show no language.
    if any(language.declines.fullmatch(_read_in(language, whole)) for language in map(_read, LANGUAGES)):
        return Changes(declines=True)
    reading = _Reading(corrects=contradicts or any(language.corrects.search(one) for language, one in marks))
    for sentence in _sentences(text):
        left = sentence
        for language in read:
            left = reading.without_denied(left, language)
        reading.rest.append(left)
    off = [(match, one) for language, one in marks if (match := language.off.match(one)) is not None]
    sure = any(language.corrects.search(language.weak.sub("", one)) for language, one in marks)
    return Changes(
        ended=tuple(reading.ended),
        denied=tuple(reading.denied),
        corrects=reading.corrects,
        sure=sure or contradicts or bool(reading.new or reading.denied),
        contradicts=contradicts,
        rest=". ".join(filter(None, reading.rest)),
        new=reading.new.strip(_EDGES),
        off=bool(off),
        off_what=next((one[match.end() :] for match, one in off if not one[match.end() :].startswith(",")), ""),
        moved=any(language.moved.match(one) for language, one in marks),
        moves=any(language.moves.match(one) for language, one in marks),
        parted=any(language.parted.search(one) for language, one in marks),
        revoked=any(language.revoked.fullmatch(one) for language, one in marks),
        dismissed=any(language.dismissed.fullmatch(one) for language, one in marks),
    )


@dataclass(slots=True)
class _Reading:
    """The part of a message read so far; see `Changes`."""

    corrects: bool
    ended: list[Ended] = field(default_factory=list)
    denied: list[Denied] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    new: str = ""

    def without_denied(self, left: str, language: _Language) -> str:
        """Notes what a sentence takes back in a language. Returns the sentence without its denied part."""
        instead = _instead(left, language)
        if instead is not None:
            self.corrects = True
            self.new = instead.new
            self.denied += [instead] if instead.what else []
        opening = language.opening.match(_read_in(language, left))
        left = left[opening.end() :] if opening is not None else left
        over = None if instead is not None else _ended(left, language)
        wrong = _denied(left, language)
        if over is not None:
            # "Keto lasted eleven days. I'm done with it."
            named = self.rest[-1] if self.rest and over.what.casefold() in language.pronouns else over.what
            self.ended.append(Ended(what=named, keys=over.keys))
        elif wrong is None and (right := language.meant.match(_read_in(language, left))) is not None:
            self.new = left[slice(*right.span("new"))]
        elif wrong is not None:
            self.denied.append(wrong)
            # "It's Topsy, not Mopsy": the right value ends where the denial begins.
            start = left.find(wrong.new) if wrong.new else -1
            if -1 < start < left.rfind(wrong.what):
                return left[: start + len(wrong.new)]
            if wrong.new and start > -1 and wrong.what in left:
                rest = left[left.find(wrong.what) + len(wrong.what) :].strip(_EDGES)
                opening = language.opening.match(rest)
                return rest[opening.end() :] if opening is not None else rest
            if language.only_denies.fullmatch(left):
                self.corrects = True
                return ""
        return left


def put_right(value: str, said: str, *, near: bool, slips: bool = True) -> str | None:
    """Returns `value` with its words replaced by those of the same kind in `said`; None if none fits.

    With `near` the correction is known to be about the value. Without `slips` only numbers, days and names are
    corrected.
    """
    return substitution.put_right(value, said, _kinds(language_of(f"{value} {said}")), near=near, slips=slips)


@cache
def _kinds(written: str | None) -> dict[str, re.Pattern[str]]:
    """Returns, by kind, the patterns of the words of that kind: "mon" is a day in English and "my" in French."""
    words: dict[str, list[str]] = {}
    for language in _languages(written):
        for kind, pattern in language.kinds.items():
            words.setdefault(kind, []).append(f"(?:{pattern.pattern})")
    return {kind: re.compile("|".join(each), re.IGNORECASE) for kind, each in words.items()}


def _instead(sentence: str, language: _Language) -> Denied | None:
    """Returns the value that holds instead, and its subject if named, in forms that say only this: "make that two"."""
    for pattern in language.instead:
        found = pattern.fullmatch(sentence)
        if found is not None:
            groups = found.groupdict()
            return Denied(what=(groups.get("not") or "").strip(_EDGES), new=groups["new"].strip(_EDGES))
    return None


def _ended(sentence: str, language: _Language) -> Ended | None:
    for keys, pattern in language.ends:
        found = pattern.fullmatch(_read_in(language, sentence))
        if found is not None:
            spans = (found.span(name) for name, value in found.groupdict().items() if value)
            what = sentence[slice(*next(spans, (0, 0)))]
            return Ended(what=language.named(what), keys=keys)
    return None


def _denied(sentence: str, language: _Language) -> Denied | None:
    for pattern in language.denials:
        found = pattern.match(_read_in(language, sentence))
        if found is not None:
            what = sentence[slice(*found.span("not"))]
            new = sentence[slice(*found.span("new"))] if found.groupdict().get("new") else ""
            return Denied(what=language.named(what), new=new.strip(_EDGES))
    return None


def _read_in(language: _Language, sentence: str) -> str:
    return simplified(sentence) if language.code == "zh" else sentence


def _sentences(text: str, *, asking: bool = False) -> list[str]:
    """Returns the sentences that state something, with `asking` also questions.

    They have single blanks, none beside Chinese characters, straight apostrophes and no end signs.
    """
    if len(text) > _LONGEST:
        return []
    said = [_BESIDE_HAN.sub("", " ".join(_QUOTES.sub("", one.replace("’", "'")).split())) for one in parts(text)]
    stated = [one for one in said if asking or not _ASKS.search(one)]
    return [one.strip(_EDGES) for one in stated if one.strip(_EDGES) and len(one) <= _SENTENCE]


@cache
def _languages(written: str | None) -> tuple[_Language, ...]:
    mixed = ("en", "zh")
    codes = LANGUAGES if written is None else mixed if written in mixed else (written,)
    return tuple(_read(code) for code in codes)


@cache
def _read(code: str) -> _Language:
    data: dict[str, Any] = part(code, "facts")

    def pattern(source: str) -> re.Pattern[str]:
        return re.compile(source, re.IGNORECASE)

    return _Language(
        **compiled(_Language, {**data, "off": data["called_off"]}, pattern),
        code=code,
        forget=tuple(map(pattern, data.get("forget", ()))),
        requests=requests.read(data["requests"]) if "requests" in data else None,
        ends=tuple((frozenset(one["keys"]), pattern(one["ends"])) for one in data["ends"]),
        denials=tuple(map(pattern, data["denials"])),
        instead=tuple(map(pattern, data.get("instead", ()))),
        kinds={kind: pattern(source) for kind, source in data.get("kinds", {}).items()},
        pronouns=frozenset(data.get("pronouns", "").split()),
        empty=frozenset(data.get("empty", "").split()),
    )
