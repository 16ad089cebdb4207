"""Decides whether two statements about one subject say the same, or one denies the other.

Invariants: pure. Values that differ in a number, a name, a date or a negation are never taken for the same. Words that
only repeat the key ("allergic to walnuts" under allergy) say nothing more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from languages import listed
from memory import keys
from memory.recall.cues import cues
from memory.store.memories import Draft, Memory
from memory.text.likeness import differs_in_substance, jaccard, said
from memory.text.things import Thing, names_the_same, thing
from memory.text.words import fold, tokens

Statement: TypeAlias = Memory | Draft

#: Rows at least this much alike, word for word, say the same, unless they differ in substance.
_ALIKE: Final = 0.75
#: The fewest distinct words, or characters and their pairs, with which a value says something without its key.
_STATEMENT: Final = 4
#: The keys whose cues are words of the key alone. Those of others name kinds, as "cat" does under pet.
_LABELLED: Final = frozenset(
    {
        "allergy", "likes", "dislikes", "home", "hometown", "occupation", "employer", "hobby", "interest", "speaks",
        "name",
    }
)  # fmt: skip
#: The key of a statement without a known kind.
_NOTE: Final = "note"


#: The readings of some texts: an import compares each with many.
_thing: Final = lru_cache(4_096)(thing)
_terms: Final = lru_cache(4_096)(said)


def same(memory: Statement, draft: Statement) -> bool:
    if draft.kind == "event" and memory.local_date != draft.local_date:
        return False
    if equal(memory, draft):
        return True
    if draft.kind == "fact" and (_name_one_thing(memory, draft) or says_as_much(memory, draft)):
        return True
    if memory.category != draft.category or keys.is_single_valued(draft.key) or keys.is_single_valued(memory.key):
        return False
    comparable = memory.key == draft.key or _key_adds_nothing(memory, draft)
    alike = comparable and jaccard(memory.value, draft.value) >= _ALIKE
    return alike and not differs_in_substance(memory.value, draft.value)


def _name_one_thing(memory: Statement, draft: Statement) -> bool:
    known, named = _thing(memory.key, memory.value), _thing(draft.key, draft.value)
    return names_the_same(known, named) and _kinds(named) <= _kinds(known)


def equal(memory: Statement, draft: Statement) -> bool:
    return memory.key == draft.key and keys.normalise_value(memory.value) == keys.normalise_value(draft.value)


def says_as_much(memory: Statement, draft: Statement) -> bool:
    """Returns whether two facts say the same apart from words for their keys.

    A note has no key of its own. It repeats a fact, but a fact says more than a note: its key.
    """
    key = draft.key if memory.key == _NOTE else memory.key
    if key not in _LABELLED or draft.key not in (key, _NOTE):
        return False
    if differs_in_substance(memory.value, draft.value):
        return False
    words, others = ({item.word for item in _terms(each.value)} - _label(key) for each in (memory, draft))
    return bool(words) and words == others


def is_opposite(one: Statement, other: Statement) -> bool:
    (liked, of_one), (disliked, of_other) = _feeling(one), _feeling(other)
    return liked * disliked < 0 and of_one == of_other != frozenset()


def is_denial(one: Statement, other: Statement) -> bool:
    if not (keys.tells(one.key, other.key) or keys.tells(other.key, one.key)):
        return False
    told, meant = _terms(one.value), _terms(other.value)
    if {frozenset(item.denied for item in each) for each in (told, meant)} != {frozenset({0}), frozenset({1})}:
        return False
    words, others = ({item.word for item in each} for each in (told, meant))
    label = _label(one.key) | _label(other.key)
    # The word that a key and a value share may be all that the value says ("owns: no car").
    return words == others or (bool(words - label) and words - label == others - label)


def _feeling(one: Statement) -> tuple[int, frozenset[str]]:
    """Returns 1 for what is liked, -1 for what is disliked and 0 for neither, and the words for what that is."""
    loves, loathes = (listed("claims", plain=fold)[name] for name in ("loves", "loathes"))
    plain = fold(one.value)
    if one.key not in (*_LIKING, "dislikes") and one.category != "preference":
        return 0, frozenset()
    left = loathes.sub(" ", plain)
    if one.key in _LIKING:
        feeling = -1 if loathes.search(plain) else 1
    else:
        feeling = -1 if one.key == "dislikes" or loathes.search(plain) else int(loves.search(plain) is not None)
    if any(item.denied % 2 for item in _terms(left)):
        feeling = -feeling
    return feeling, frozenset(item.word for item in _terms(loves.sub(" ", left))) - _FILLING


#: Keys of what somebody likes, and words beside it that say nothing of it.
_LIKING: Final = frozenset({"likes", "hobby", "interest"})
_FILLING: Final = frozenset(tokens("now really very much lately today since jetzt sehr ahora mucho maintenant 现在 今"))


def _label(key: str) -> frozenset[str]:
    return frozenset(tokens(f"{cues(key)} {key}"))


def _kinds(named: Thing | None) -> frozenset[str]:
    return named.kinds if named is not None else frozenset()


def _key_adds_nothing(memory: Statement, draft: Statement) -> bool:
    """Returns whether values under different keys can be compared without them.

    They can't if each key has a meaning of its own ("likes", "dislikes"), or if a value is too short to be a statement
    ("blue" as the colour of a car or of a flat).
    """
    if keys.category_of(memory.key) is not None and keys.category_of(draft.key) is not None:
        return False
    return min(len(set(tokens(memory.value))), len(set(tokens(draft.value)))) >= _STATEMENT
