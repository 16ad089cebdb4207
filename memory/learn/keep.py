"""One proposed memory → rows: new, told again, or a replacement.

Invariants: only a key on the closed list of single values, or a model that names the row, replaces anything; a named
row is replaced only where the one who speaks may change it, and what was derived of it goes with it; message time
decides, so an older message never closes a newer value; what differs in a number, a name, a date or a negation is
never taken for the same; every row names the messages it was learned from; of people who want it so nothing is kept
from their words unless they ask for it themselves, nor of them from others' words, whoever brings it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memory import keys, profile
from memory.learn.entities import extract, of_fact
from memory.learn.guard import injection_flags
from memory.recall.likeness import differs_in_substance, jaccard, said, surface
from memory.recall.words import tokens
from memory.scope import Scope
from memory.store import entities, erasure, history, memories, people, styles, wishes
from memory.store.database import Transaction
from memory.store.entities import Named
from memory.store.memories import Draft, Memory

#: Rows at least this much alike, word for word, say the same unless they differ in substance (DESIGN 5.3).
_ALIKE = 0.75
#: Distinct words, or characters and their pairs, from which on a value says something without its key.
_STATEMENT = 4


def keep(
    tx: Transaction,
    scope: Scope,
    draft: Draft,
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
    replaces: Sequence[int] = (),
    names: Sequence[Named] = (),
) -> int | None:
    """Write `draft` in the open transaction, with what follows from it for the profile.

    `replaces` are ids of rows that are no longer true because of it; those outside what the speaker may change are
    passed over. `names` are entities that whoever read it found, beside those seen in the draft itself. Returns the id
    of the row that holds the draft, new or not; None when it was forgotten since, or is not to be learned (see
    `memory.store.wishes`).
    """
    if not may_be_kept(tx, draft, source_ids):
        return None
    draft = replace(draft, flags=injection_flags(draft.value))
    named = [memory for memory in memories.by_ids(tx, scope, replaces) if _may_replace(scope, memory, draft)]
    memory_id = _place(tx, scope, draft, named, source_ids=source_ids, now=now, new_id=new_id)
    memories.add_sources(tx, memory_id, source_ids)
    if draft.kind == "style":
        styles.set_aside_rest(tx, scope, memory_id, now=now)
    seen = of_fact(draft.key, draft.value, subject=draft.subject) if draft.kind == "fact" else extract(draft.value)
    entities.note(tx, draft.owner_id, memory_id, [*names, *seen], now=now)
    slots = {_slot(scope, draft)} | {_slot(scope, memory) for memory in named}
    for owner_id, slot in sorted(filter(None, slots)):
        profile.refresh(tx, scope, owner_id, slot, now=now, new_id=new_id)
    return memory_id


def may_be_kept(tx: Transaction, draft: Draft, source_ids: Sequence[int]) -> bool:
    """Whether nobody of those concerned wants it left out, and it was not forgotten since it was said."""
    if not _is_wished(tx, draft, source_ids):
        return False
    said_at: int | None = draft.learned_at
    if draft.origin not in ("extracted", "imported", "derived"):
        # What is typed to be kept is said now; what a model wants kept was said in the messages it had been given.
        said_at = history.recorded_at(tx, source_ids)
    return said_at is None or not erasure.was_forgotten(tx, draft.owner_id, draft.key, draft.value, said_at=said_at)


def same(memory: Memory, draft: Draft) -> bool:
    """Whether both rows say one thing (DESIGN 5.3)."""
    if draft.kind == "event" and memory.local_date != draft.local_date:
        return False
    if _equal(memory, draft):
        return True
    if memory.category != draft.category or keys.is_single_valued(draft.key) or keys.is_single_valued(memory.key):
        return False
    if memory.key != draft.key and not _key_adds_nothing(memory, draft):
        return False
    return jaccard(memory.value, draft.value) >= _ALIKE and not differs_in_substance(memory.value, draft.value)


def _is_wished(tx: Transaction, draft: Draft, source_ids: Sequence[int]) -> bool:
    """Whether the one who said it and the one it is about let it be kept.

    What somebody types to be kept has no message of history as its source; with one it is a model that wants it kept.
    What is derived was learned before.
    """
    overheard = draft.origin in ("extracted", "imported") or (draft.origin == "told" and bool(source_ids))
    if overheard and draft.author_id is not None and not people.speaker_by_id(tx, draft.author_id).learning:
        return False
    return wishes.may_be_told_of(
        tx,
        owner_id=draft.owner_id,
        author_id=draft.author_id,
        subject_id=draft.subject_id,
        subject=draft.subject,
    )


def _place(
    tx: Transaction,
    scope: Scope,
    draft: Draft,
    named: list[Memory],
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
) -> int:
    present = [memory for memory in _of_subject(tx, scope, draft) if _one_subject(memory, draft)]
    replaced = {memory.id for memory in named}
    for memory in present:
        alike = _equal(memory, draft) if memory.id in replaced else same(memory, draft)
        if memory.valid_until is None and alike:
            # What was merged is told again of what it was merged into: it must not come back beside it.
            holds = memories.merged_into(tx, scope, memory)
            # A message that is read a second time says nothing a second time.
            if not memories.learned_from(tx, holds.id, source_ids):
                memories.reinforce(tx, holds.id, at=draft.learned_at)
            _close(tx, scope, [one for one in named if one.id != holds.id], holds.id, draft=draft)
            return holds.id
        if memory.valid_until is not None and _equal(memory, draft) and draft.learned_at <= memory.valid_until:
            return memory.id  # said before it was replaced, though read after
    single = draft.kind == "fact" and keys.is_single_valued(draft.key)
    rivals = [memory for memory in present if memory.key == draft.key] if single else []
    before = [memory for memory in rivals if memory.valid_from <= draft.learned_at]
    after = [memory for memory in (*rivals, *named) if memory.valid_from > draft.learned_at]
    if after:
        # Said earlier than what we know, though read later: it is history from the start.
        draft = replace(draft, valid_until=after[0].valid_from, superseded_by=after[0].id)
    memory_id = memories.insert(tx, draft, new_id=new_id, now=now)
    _close(tx, scope, [*before[-1:], *named], memory_id, draft=draft)
    return memory_id


def _close(tx: Transaction, scope: Scope, replaced: Sequence[Memory], memory_id: int, *, draft: Draft) -> None:
    """End those of `replaced` that held until now and began before what the draft says, and what repeats them.

    Of one that was merged the other parts still hold: only the part that is nearest to the draft ends with it.
    """
    at = draft.learned_at
    for memory in {memory.id: memory for memory in replaced}.values():
        if memory.valid_from <= at and (memory.valid_until is None or memory.valid_until > at):
            memories.supersede(tx, memory.id, memory_id, at=at)
            parts = memories.merged(tx, scope, memory)
            memories.part(tx, parts)
            _close(tx, scope, _nearest(parts, draft), memory_id, draft=draft)
            tried = set[int]()
            # What comes back of a whole may repeat it, too.
            while copies := [one for one in _repeating(tx, scope, memory, draft) if one.id not in tried]:
                tried |= {one.id for one in copies}
                _close(tx, scope, copies, memory_id, draft=draft)


def _repeating(tx: Transaction, scope: Scope, memory: Memory, draft: Draft) -> list[Memory]:
    """What was derived, says all of a memory under its key and not what the draft says: it holds no longer than that.

    A night that reads of something twice may put it down in other words; nobody would name all of them.
    """
    new = set(tokens(draft.value))
    beside = [one for one in memories.derived_beside(tx, scope, memory) if not (one.pinned or one.confirmed)]
    found = [one for one in beside if _says_little_else(one, memory) and not new.issubset(tokens(one.value))]
    names = people.names(tx, {one.subject_id for one in (*found, memory) if one.subject_id is not None})
    about = _called(memory, names)
    return [one for one in found if _called(one, names) == about]


def _says_little_else(one: Memory, memory: Memory) -> bool:
    """Whether a row says all of a memory, denies nothing of it, and has hardly more words of meaning than that.

    A number, date or name of its own is more.
    """
    ours, theirs = surface(one.value), surface(memory.value)
    told, stated = said(one.value), {item.word for item in said(memory.value)}
    denied = {item.word for item in told if item.denied} - {item.word for item in said(memory.value) if item.denied}
    more = {item.word for item in told} - stated - {item.word for item in said(memory.key.replace("-", " "))}
    return (
        set(tokens(memory.value)).issubset(tokens(one.value))
        and denied.isdisjoint(stated)
        and not (ours.numbers - theirs.numbers or ours.names - theirs.words)
        and len(more) <= len(stated)
    )


def _called(memory: Memory, names: Mapping[int, str]) -> str:
    """Whom or what a row is about, by name."""
    return (memory.subject or names.get(memory.subject_id or 0, "")).casefold()


def _nearest(parts: Sequence[Memory], draft: Draft) -> list[Memory]:
    """The part of a merged memory that a draft is about: of those under its key, if any, the one most like it."""
    about = [memory for memory in parts if memory.key == draft.key]
    if len(about) == 1:
        return about
    words = {item.word for item in said(draft.value)}
    shared = {memory.id: words & {item.word for item in said(memory.value)} for memory in about or parts}
    best = max(about or parts, key=lambda memory: len(shared[memory.id]), default=None)
    return [best] if best is not None and shared[best.id] else []


def _may_replace(scope: Scope, memory: Memory, draft: Draft) -> bool:
    """Whether the one who speaks may end this row: it is theirs alone, or in a group said by or about them."""
    if memory.kind != draft.kind or memory.kind != "fact":
        return False
    if memory.owner_id in scope.own:
        return draft.owner_id in scope.own
    theirs = draft.author_id is not None and draft.author_id in (memory.author_id, memory.subject_id)
    return memory.owner_id == draft.owner_id and theirs


def _slot(scope: Scope, row: Memory | Draft) -> tuple[int, str] | None:
    """The owner and the profile slot that a row feeds, if any."""
    slot = keys.profile_slot(category=row.category, key=row.key)
    return (row.owner_id, slot) if slot and row.kind == "fact" and row.owner_id in scope.own else None


def _of_subject(tx: Transaction, scope: Scope, draft: Draft) -> list[Memory]:
    """Rows about whom or what a draft is about; those a speaker told of themselves also where it names them."""
    rows = memories.same_subject(tx, scope, draft)
    author = None if draft.author_id is None or draft.subject_id is not None else draft.author_id
    if author is not None and people.names(tx, {author}).get(author, "").casefold() == draft.subject.casefold() != "":
        own = memories.same_subject(tx, scope, replace(draft, subject="", subject_id=author))
        rows = sorted([*rows, *own], key=lambda memory: (memory.valid_from, memory.id))
    return rows


def _one_subject(memory: Memory, draft: Draft) -> bool:
    """Whether both speak of the same: the sisters of two people in a group may share a name."""
    return draft.subject_id is not None or memory.author_id == draft.author_id


def _equal(memory: Memory, draft: Draft) -> bool:
    return memory.key == draft.key and keys.normalise_value(memory.value) == keys.normalise_value(draft.value)


def _key_adds_nothing(memory: Memory, draft: Draft) -> bool:
    """Whether values under different keys can be compared without them.

    Not when each key has a meaning of its own ("likes", "dislikes"), nor when a value is too short to be a statement
    ("blue" as the colour of a car or of a flat).
    """
    if keys.category_of(memory.key) is not None and keys.category_of(draft.key) is not None:
        return False
    return min(len(set(tokens(memory.value))), len(set(tokens(draft.value)))) >= _STATEMENT
