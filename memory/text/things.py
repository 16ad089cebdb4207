"""Recognises statements that name a thing a person has, and two wordings that name the same one.

Invariants: pure; time grows linearly with the text. Two statements name the same thing if they give it the same name
and the same kind, one of them says nothing else, and neither denies it or tells of the past. A statement that may name
either of two things is unclear. Whose thing it is, the caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from typing import Final

from languages import listed
from memory import keys
from memory.text.likeness import surface
from memory.text.words import fold, stem

#: The longest statement that merely names a thing, and the longest name in a script without spaces, in characters.
_LONGEST: Final = 120
_NAME: Final = 8
#: Stands for the word of a kind; no word is written so.
_KIND: Final = "K1ND"
_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
#: Keys of the vocabulary under which things are named.
_ANIMALS: Final = ("cat", "dog", "rabbit", "bird", "horse", "hamster", "fish", "turtle", "guinea")
#: The families of kinds; all others are people.
_FAMILIES: Final = dict.fromkeys(_ANIMALS, "animal") | dict.fromkeys(("car", "boat"), "vehicle")
_KEYS: Final = keys.RELATIONS | {"pet", "owns", "note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A named thing: its kinds, empty if only "pet" is said; their families; its names, and all words said of it."""

    kinds: frozenset[str]
    families: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]

    @property
    def is_name(self) -> bool:
        """True if nothing else is said of the thing."""
        return self.words <= self.names


def thing(key: str, value: str) -> Thing | None:
    """Returns the thing that a fact names, or None."""
    plain, named = fold(value), fold(key.replace("-", " "))
    if len(value) > _LONGEST or (keys.category_of(key) is not None and key not in _KEYS):
        return None
    if _list("over").search(plain) or _rest(named).strip():
        return None
    kinds = kinds_of(value) | kinds_of(named)
    families = _families_of(kinds, plain, named)
    # "My sister's dog Rex" is no thing of one's own.
    if len(families) != 1 or len(kinds_of(value)) > 1:
        return None
    said = _rest(plain, kind=_KIND).split()
    words = frozenset(said) - {_KIND}
    # A first word is a name by its capital here, and a single one without any ("rex").
    stems = surface(f"x {value}").names
    names = frozenset(
        word
        for word in words
        if (len(word) <= _NAME if _UNSPACED.search(word) else len(words) == 1 or stem(word) in stems)
    )
    if _KIND in said:
        # "My sister lent Anna a bike" names no sister.
        places = [place for place, word in enumerate(said) if word == _KIND]
        runs = [_run(beside, names) for place in places for beside in (said[place + 1 :], said[:place][::-1])]
        names = frozenset().union(*runs)
    else:  # "Anna works with Tom" names Anna
        names = frozenset(takewhile(names.__contains__, said))
    return Thing(kinds=kinds, families=families, names=names, words=words) if names else None


def _run(said: Sequence[str], names: frozenset[str]) -> frozenset[str]:
    """Returns the names with which some words begin; in a script without spaces only one of them is a name."""
    run = list(takewhile(names.__contains__, said))
    return frozenset(run[:1] if run and _UNSPACED.search(run[0]) else run)


def kinds_of(text: str) -> frozenset[str]:
    plain = fold(text)
    return frozenset(kind for kind, words in _kinds().items() if words.search(plain))


def names_the_same(full: Thing | None, other: Thing | None) -> bool:
    """Returns whether both name the same thing, and `full` says all that `other` says."""
    if full is None or other is None:
        return False
    if not are_of_a_kind(full, other):
        return False
    # A statement with more than a name may say something else of the thing.
    return other.is_name and other.names <= full.names


def are_of_a_kind(one: Thing, other: Thing) -> bool:
    """Returns whether nothing that is said of two things tells their kinds apart."""
    return one.families == other.families and (not one.kinds or not other.kinds or one.kinds == other.kinds)


def unclear(things: Mapping[int, Thing]) -> set[int]:
    """Returns the ids of the statements that may name either of two things: "Anna", of Anna Schmidt and Anna Müller."""
    alike: dict[Thing, list[int]] = {}
    for place, each in things.items():
        alike.setdefault(replace(each, words=each.names), []).append(place)
    sharing: dict[str, list[Thing]] = {}
    for each in alike:
        for name in each.names:
            sharing.setdefault(name, []).append(each)
    near: dict[Thing, list[Thing]] = {each: [] for each in alike}
    for short in alike:
        # Among those with its rarest name: all of a common name compared with each other would take long.
        for full in min((sharing[name] for name in short.names), key=len):
            if short.names <= full.names and are_of_a_kind(short, full):
                near[short].append(full)
                near[full].append(short)
    return {
        place
        for each, places in alike.items()
        if any(not _may_be_one(*pair) for pair in combinations(near[each], 2))
        for place in places
    }


def _may_be_one(this: Thing, other: Thing) -> bool:
    return are_of_a_kind(this, other) and (this.names <= other.names or other.names <= this.names)


def _families_of(kinds: frozenset[str], *texts: str) -> frozenset[str]:
    families = {family for family, named in _families().items() if any(map(named.search, texts))}
    return frozenset(families | {_FAMILIES.get(kind, "person") for kind in kinds})


def _rest(plain: str, *, kind: str = "") -> str:
    """Returns a text without the words for having and naming, and with `kind` in place of each kind."""
    for words in _kinds().values():
        plain = words.sub(f" {kind} ", plain)
    for words in (*_families().values(), _list("frame")):
        plain = words.sub(" ", plain)
    return " ".join(_WORD.findall(plain))


def _list(name: str) -> re.Pattern[str]:
    return listed("things", plain=fold)[name]


def _families() -> Mapping[str, re.Pattern[str]]:
    return listed("things", "general", fold)


def _kinds() -> Mapping[str, re.Pattern[str]]:
    return listed("things", "kinds", fold)
