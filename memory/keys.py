"""The vocabulary of facts: categories with their half-lives, known keys, and when two keys or values are equal.

Invariants: Every key that `normalise_key` returns is lower case, hyphenated and at most `KEY_LIMIT` characters long.
Normalising twice changes nothing. The list of single-valued keys is closed; every other key holds many values.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

#: The longest key and the longest value of a fact, in characters.
KEY_LIMIT: Final = 128
VALUE_LIMIT: Final = 2048
#: The longest tag in characters, and the most tags of a memory.
TAG_LIMIT: Final = 40
TAGS_LIMIT: Final = 8

#: The categories of facts and their half-lives in days; a category with None never fades.
CATEGORIES: Final[Mapping[str, float | None]] = MappingProxyType(
    {
        "identity": None,
        "relation": None,
        "boundary": None,
        "health": None,
        "instruction": None,
        "preference": 365.0,
        "place": 365.0,
        "work": 365.0,
        "decision": 180.0,
        "solution": 180.0,
        "config": 180.0,
        "project": 180.0,
        "plan": 60.0,
        "happening": 60.0,
        "artifact": 60.0,
        "conversation": 14.0,
        "temp": 3.0,
        "debug": 3.0,
    }
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words for relations as keys, for both languages.
RELATIONS: Final = _set(
    "partner wife husband mother father fiance girlfriend boyfriend sibling sister brother twin son daughter child"
    " grandmother grandfather grandson granddaughter aunt uncle cousin niece nephew mother-in-law"
    " father-in-law sister-in-law brother-in-law stepmother stepfather stepson stepdaughter friend roommate"
    " neighbour boss manager supervisor colleague mentor teacher doctor dentist therapist"
)

#: Keys for which a new value replaces the old one. Favourites (`favourite-…`) are the only open family. Relatives are
#: not included: "my mother is a doctor" must not replace her name.
SINGLE_VALUED: Final = _set(
    "name called home hometown birthday age native-language language timezone occupation employer"
)

#: The category of each known key. "note" (the text after "remember that") is filed under decisions: the person chose to
#: have it kept, and it should outlive a conversation without lasting forever.
KEY_CATEGORIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            _set("name called birthday age nationality native-language language speaks timezone religion"), "identity"
        ),
        **dict.fromkeys(("home", "hometown"), "place"),
        **dict.fromkeys(("occupation", "employer", "studies"), "work"),
        **dict.fromkeys(("likes", "dislikes", "interest", "hobby"), "preference"),
        **dict.fromkeys(("allergy", "diet", "condition"), "health"),
        **dict.fromkeys(("goal", "plan"), "plan"),
        **dict.fromkeys(RELATIONS | {"pet"}, "relation"),
        "owns": "artifact",
        "note": "decision",
        "instruction": "instruction",
        "boundary": "boundary",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSlot:
    """The input of one profile slot: these keys whatever their category, and all other keys of these categories."""

    keys: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()


#: The slots of a profile in the order they are shown. A key named by one slot never feeds another through its category.
#: Health has no slot of its own: an allergy or a diet limits what may be suggested, so it belongs to the boundaries.
PROFILE_SLOTS: Final[Mapping[str, ProfileSlot]] = MappingProxyType(
    {
        "name": ProfileSlot(keys=frozenset({"name", "called"})),
        "language": ProfileSlot(keys=frozenset({"language", "native-language", "speaks"})),
        "timezone": ProfileSlot(keys=frozenset({"timezone"})),
        "place": ProfileSlot(keys=frozenset({"nationality"}), categories=frozenset({"place"})),
        "work": ProfileSlot(categories=frozenset({"work"})),
        "relations": ProfileSlot(categories=frozenset({"relation"})),
        "likes": ProfileSlot(categories=frozenset({"preference"})),
        "boundaries": ProfileSlot(categories=frozenset({"boundary", "health"})),
        "goals": ProfileSlot(keys=frozenset({"goal"})),
        "interests": ProfileSlot(keys=frozenset({"interest", "hobby"})),
        "how-to-talk": ProfileSlot(categories=frozenset({"instruction"})),
    }
)

_SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(_set("full-name first-name real-name given-name user-name"), "name"),
        **dict.fromkeys(_set("nickname preferred-name"), "called"),
        **dict.fromkeys(
            _set("residence lives-in home-city current-city current-home place-of-residence living-in city"
                 " home-location current-residence wohnort ville ciudad 城市 住址 住まい 居住地"),
            "home",
        ),
        **dict.fromkeys(_set("birthplace place-of-birth born-in home-town"), "hometown"),
        **dict.fromkeys(_set("date-of-birth birth-date birthdate geburtstag cumpleaños 生日 誕生日"), "birthday"),
        **dict.fromkeys(_set("mother-tongue first-language"), "native-language"),
        **dict.fromkeys(_set("preferred-language reply-language"), "language"),
        **dict.fromkeys(_set("time-zone tz"), "timezone"),
        **dict.fromkeys(
            _set("job job-title profession current-job beruf trabajo métier 职业 工作 職業 仕事"), "occupation"
        ),
        **dict.fromkeys(
            _set("company workplace current-employer works-at works-for arbeitgeber empresa employeur 公司 会社"),
            "employer",
        ),
    }
)  # fmt: skip
_SPELLINGS = {"favorite": "favourite", "favorites": "favourite", "favourites": "favourite", "colour": "color"}

#: Keys under which one value says much the same, one line each: special keys | general ones. A special key tells all
#: general ones, and a general one those behind it. A person with a son called Leo has a child called Leo; a daughter
#: called Leo is another person.
_FAMILIES: Final = tuple(
    tuple(tuple(side.split()) for side in line.split("|"))
    for line in """
    | hobby hobbies pastime leisure free-time interest interests likes like enjoys preference preferences activity
    | dislikes dislike hates aversion
    | allergy allergies condition medical health
    | diet eating-habits food
    | goal goals ambition aim plan plans intention
    | studies education school degree major
    | pet pets animal animals
    car bike bicycle motorcycle boat house instrument | owns has possession possessions belongings
    car motorcycle | vehicle vehicles transport
    | speaks languages languages-spoken
    | religion faith belief
    son daughter | child children kid kids family
    sister brother twin | sibling siblings family
    mother father | parent parents family
    wife husband girlfriend boyfriend fiance | partner spouse relationship family
    """.strip().splitlines()
)  # fmt: skip


def tells(key: str, other: str) -> bool:
    """Returns whether a value under `key` implies the same value under `other`."""
    return key == other or any(
        other in general and (key in special or key in general[: general.index(other)])
        for special, general in _FAMILIES
    )


def kin(key: str) -> list[str]:
    """Returns the key, and the keys under which its value says much the same."""
    family = (other for special, general in _FAMILIES for other in (*special, *general))
    return list(dict.fromkeys([key, *(other for other in family if tells(key, other) or tells(other, key))]))


def most_telling(among: Sequence[str]) -> str | None:
    """Returns the one of these keys that tells all others; None if there is no such key."""
    return next((key for key in among if all(tells(key, other) for other in among)), None)


def normalise_key(text: str) -> str:
    """Returns a key as it is stored: lower case, letters and digits of any script joined by single hyphens.

    It is at most `KEY_LIMIT` characters long. British and American spellings of the vocabulary become one. The result
    is empty if the text holds no letter or digit.
    """
    folded = _fold(text)
    words = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in folded).split()
    return "-".join(_SPELLINGS.get(word, word) for word in words)[:KEY_LIMIT].rstrip("-")


def tag_of(text: str) -> str:
    """Returns a tag as it is stored, in the form of a key; it is empty if the text holds no letter or digit."""
    return normalise_key(text)[:TAG_LIMIT].rstrip("-")


def unfit_tags(tags: Iterable[str]) -> list[str]:
    """Returns those of these that would lose more than spaces, a leading # and joining signs as a tag."""

    def fits(tag: str) -> bool:
        plain = re.sub(r"[\s\-_./'’]", "", tag.strip().removeprefix("#"))
        is_whole = all(unicodedata.category(c)[0] in "LNM" for c in plain)
        return is_whole and 0 < len(normalise_key(tag)) <= TAG_LIMIT

    return [tag for tag in tags if not fits(tag)]


def split_tags(text: str) -> list[str]:
    """Returns the tags that a person types, between spaces or commas; quotes keep one of several words together."""
    typed = re.findall(r'#?["“„«「]([^"“”„»」]+)["“”»」]|([^\s,，、;；]+)', text)
    return [quoted or word for quoted, word in typed]


def key_spellings(text: str) -> list[str]:
    """Returns the keys that are equal to `vocabulary_key(text)`, that first."""
    key = vocabulary_key(text)
    return [key, *(spelling for spelling, meant in _SYNONYMS.items() if meant == key)]


def vocabulary_key(text: str) -> str:
    """Returns `normalise_key(text)`, with synonyms of single-valued keys replaced by the vocabulary's own.

    It is for keys that a model makes up: "current-city" and "home" must become one key, or a person lives in two
    places.
    """
    key = normalise_key(text)
    return _SYNONYMS.get(key, key)


def normalise_value(text: str) -> str:
    """Returns a value as it is compared, not shown: NFKC, case-folded, single spaces, no punctuation around it."""
    folded = " ".join(_fold(text).split())
    start, end = 0, len(folded)
    while start < end and _is_edge(folded[start]):
        start += 1
    while end > start and _is_edge(folded[end - 1]):
        end -= 1
    return folded[start:end] or folded


def category_of(key: str) -> str | None:
    """Returns the category of a known normalised key; None for a key outside the vocabulary."""
    return "preference" if key.startswith("favourite-") else KEY_CATEGORIES.get(key)


def is_single_valued(key: str) -> bool:
    """Returns whether a new value of this normalised key replaces the old one."""
    return key in SINGLE_VALUED or key.startswith("favourite-")


def profile_slot(*, category: str, key: str) -> str | None:
    for name, slot in PROFILE_SLOTS.items():
        if key in slot.keys:
            return name
    for name, slot in PROFILE_SLOTS.items():
        if category in slot.categories:
            return name
    return None


def _fold(text: str) -> str:
    # Twice, because folding can leave characters that NFKC changes again (Unicode 3.13, D146).
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.casefold())


def _is_edge(character: str) -> bool:
    # Signs that carry meaning at the edge of a value ("C++", "C#", "€5", "-3") must not be stripped as punctuation.
    return character.isspace() or (unicodedata.category(character)[0] == "P" and character not in "#%-@&*")
