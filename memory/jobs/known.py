"""Compares a concluded fact with the known facts about its subject: whether it is new, and whether it may be kept.

Invariants: reads only. People, in groups too, are known by identity or by name. A fact that a person has told of
themselves, pinned or confirmed is never corrected by a conclusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memory import keys
from memory.scope import Scope
from memory.store import lineage, memories, people
from memory.store.database import Reader
from memory.store.memories import Draft, Memory
from memory.text.likeness import differs_in_substance, jaccard
from memory.text.words import tokens

#: The most facts of an owner that are looked through, the weightiest first.
LOOKED_THROUGH: Final = 2_000
#: Rows at least this much alike say the same, unless they differ in substance (DESIGN 5.3).
_ALIKE: Final = 0.75


def standing(reader: Reader, scope: Scope, draft: Draft) -> list[Memory]:
    """Returns the owner's live facts about the subject of a draft, by identity or by name.

    In a group, members have told most of it about themselves, in rows of their own.
    """
    facts = [
        memory
        for memory in memories.current(reader, scope, ("fact",), limit=LOOKED_THROUGH)
        if memory.owner_id == draft.owner_id
    ]
    names = people.names(reader, {memory.subject_id for memory in facts if memory.subject_id is not None})
    about = draft.subject.casefold()
    return [
        memory
        for memory in facts
        if (memory.subject_id == draft.subject_id and memory.subject.casefold() == about)
        or (about and names.get(memory.subject_id or 0, "").casefold() == about)
    ]


def contradicts(reader: Reader, about: Sequence[Memory], draft: Draft, *, read: frozenset[int]) -> bool:
    """Returns whether a fact would replace a value that must stay.

    These are values that a person has confirmed or pinned, that were read from the very messages `read`, or that a
    person has told of themselves while others speak of them here.
    """
    if not keys.is_single_valued(draft.key):
        return False
    value = keys.normalise_value(draft.value)
    rivals = [one for one in about if one.key == draft.key and keys.normalise_value(one.value) != value]
    if any(is_sure(one) or one.subject_id not in (None, draft.subject_id) for one in rivals):
        return True
    sources = lineage.source_ids(reader, [one.id for one in rivals])
    return any(not read.isdisjoint(of_one) for of_one in sources.values())


def is_told(about: Sequence[Memory], draft: Draft) -> bool:
    """Returns whether a live fact of any author says all of a draft; with a single-valued key also if it says less.

    Otherwise a value that a model has cut short would replace the whole one.
    """
    words, single = set(tokens(draft.value)), keys.is_single_valued(draft.key)
    for memory in about:
        if memory.category != draft.category:
            continue
        known = set(tokens(memory.value))
        if words <= known or (single and memory.key == draft.key and known <= words):
            return True
        if jaccard(memory.value, draft.value) >= _ALIKE and not differs_in_substance(memory.value, draft.value):
            return True
    return False


def about(memory: Memory) -> tuple[object, ...]:
    """Returns the fields that facts share if they speak of the same subject, in the words of the same person."""
    return (memory.owner_id, memory.subject_id, memory.subject, memory.author_id, memory.agent_id)


def is_sure(memory: Memory) -> bool:
    return memory.pinned or memory.confirmed
