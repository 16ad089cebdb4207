"""Tells what a new fact means for an older one of the same person: it takes its place, ends it, or stands beside it.

Invariants: pure. In doubt both stand. Facts about different people never conflict. "ask" is for what doesn't change in
a life and was not called a mistake: then only the person knows which is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory import keys
from memory.learn.grounding import shows, telling
from memory.text.likeness import differs_in_substance, said

Outcome: TypeAlias = Literal["supersede", "end", "ask", "keep_both"]

#: What is so for life.
_FOR_LIFE: Final = frozenset({"birthday", "hometown", "blood-type", "native-language"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A fact and, of the new one, the words it was said with."""

    key: str
    value: str
    text: str = ""


def outcome(old: Told, new: Told) -> Outcome:
    """Returns what a new fact means for an older one about the same person."""
    if keys.normalise_value(old.value) == keys.normalise_value(new.value):
        return "keep_both"
    if _ends(old, new):
        return "end"
    if _people(old) != _people(new):
        return "keep_both"
    if _denies(old.value, new.value):
        return "supersede"
    return _in_one_slot(old, new)


def _in_one_slot(old: Told, new: Told) -> Outcome:
    """Returns what holds where both may be under a key with room for one value."""
    key = keys.vocabulary_key(new.key)
    single = key == keys.vocabulary_key(old.key) and keys.is_single_valued(key)
    if not single or not differs_in_substance(old.value, new.value):
        return "keep_both"
    return "ask" if key in _FOR_LIFE and not shows("mistaken", new.text) else "supersede"


def _ends(old: Told, new: Told) -> bool:
    """Returns whether a new fact tells the end of an older one, and names most of it."""
    if not shows("over", new.value) or shows("over", old.value) or not _people(new) <= _people(old):
        return False
    words = telling(old.value)
    return 2 * len(words & telling(new.value)) >= len(words) or bool(words & telling(new.text))


def _denies(old: str, new: str) -> bool:
    """Returns whether one text denies most of what the other says, or likes what the other hates."""
    before, after = ({one.word: one for one in said(text)} for text in (old, new))
    same = before.keys() & after.keys()
    if not same or 2 * len(same) < max(len(before), len(after)):
        return False
    like, hate = (said(word)[0].word for word in ("like", "hate"))
    turned = any(bool(before[word].denied) != bool(after[word].denied) for word in same)
    return turned or (like in before and hate in after) or (hate in before and like in after)


def _people(fact: Told) -> frozenset[str]:
    """Returns the relatives and friends that a fact is about; none if it is about the speaker."""
    words = keys.normalise_key(fact.key).split("-") + fact.value.casefold().split()
    return frozenset(word for word in words if word in keys.RELATIONS)
