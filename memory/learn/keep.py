"""Turns one draft into rows: a new memory, an old one told again, or a replacement.

Invariants: a row is replaced only under a key on the closed list of single values, if a model names the row, or by a
value that denies all that the row says and nothing else ("nuts", "not allergic to nuts any more"), and only by a sure
draft: an unsure one stands beside the row it may replace. A named row is replaced only if the speaker may change it,
and rows derived from it go with it. Message time decides, so an older message never closes a newer value. Values that
differ in a number, a name, a date or a negation are never taken for the same. Every row names the messages it was
learned from. For people who have opted out, nothing is kept from their words unless they ask for it themselves, nor
anything about them from others' words, whatever its way here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memory import keys, profile
from memory.learn import opt_outs
from memory.learn.entities import extract, of_fact
from memory.recall.cues import cues
from memory.scope import Scope
from memory.store import entities, erasure, fading, history, lineage, memories, people, scopes
from memory.store.database import Keys, Transaction, of_owner
from memory.store.entities import Named
from memory.store.memories import Draft, Memory
from memory.text.guard import injection_flags
from memory.text.likeness import differs_in_substance, jaccard, said, surface
from memory.text.things import Thing, names_the_same, thing, unclear
from memory.text.words import fold, tokens

#: Rows at least this much alike, word for word, say the same, unless they differ in substance (DESIGN 5.3).
_ALIKE = 0.75
#: The fewest distinct words, or characters and their pairs, with which a value says something without its key.
_STATEMENT = 4
#: The most facts among which another thing of the same name is looked for, the weightiest first.
_LOOKED_THROUGH = 2_000


def touched(scope: Scope) -> Keys:
    """Returns the names of the rows that `keep` touches in a scope, whatever is learned there.

    A row is kept with the owner that the scope writes to. It may end rows of that owner, and of the other accounts of
    the person in private; a row made from another has the same owner.
    """
    return [of_owner(owner_id) for owner_id in sorted({*scope.own, scope.writes_to})]


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
    """Writes `draft` in the open transaction and brings the profile up to date.

    `replaces` are ids of rows that are no longer true because of it; rows that the speaker may not change are skipped.
    `names` are entities that the reader of the draft found, besides those seen in the draft itself; which of them are
    noted is the agent's setting. Returns the id of the row that holds the draft, new or not; None if it was forgotten
    since, or is not to be learned (see `memory.learn.opt_outs`).
    """
    if not may_be_kept(tx, draft, source_ids, names=names, now=now):
        return None
    draft = replace(draft, flags=injection_flags(draft.value))
    sure = draft.confidence >= memories.SURE
    named = [one for one in memories.by_ids(tx, scope, replaces if sure else ()) if _may_replace(scope, one, draft)]
    named += [one for one in _denied(tx, scope, draft) if sure and one.id not in replaces]
    memory_id = _place(tx, scope, draft, named, source_ids=source_ids, now=now, new_id=new_id)
    memories.add_sources(tx, memory_id, source_ids)
    if draft.kind == "style":
        fading.set_aside_rest(tx, scope, memory_id, now=now)
    finder = scopes.name_finder(tx, scope.agent_id)
    if finder != "none":
        seen = of_fact(draft.key, draft.value, subject=draft.subject) if draft.kind == "fact" else extract(draft.value)
        told = names if finder in ("auto", "model") else ()
        entities.note(tx, draft.owner_id, memory_id, [*told, *seen], now=now)
    slots = {_slot(scope, draft)} | {_slot(scope, memory) for memory in named}
    for owner_id, slot in sorted(filter(None, slots)):
        profile.refresh(tx, scope, owner_id, slot, now=now, new_id=new_id)
        if slot == "timezone":
            profile.follow_timezone(tx, scope, owner_id)
    return memory_id


def keep_new(
    tx: Transaction,
    scope: Scope,
    draft: Draft,
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
    replaces: Sequence[int] = (),
    names: Sequence[Named] = (),
) -> tuple[int | None, bool]:
    """Keeps `draft` as `keep` does, but changes nothing if a row says it already.

    Returns what `keep` does, and whether the row is new.
    """
    made: set[str] = set()

    def noted() -> str:
        made.add(short_id := new_id())
        return short_id

    def act() -> int | None:
        return keep(tx, scope, draft, source_ids=source_ids, now=now, new_id=noted, replaces=replaces, names=names)

    def is_new(memory_id: int | None) -> bool:
        return memory_id is not None and memories.short_id(tx, memory_id) in made

    memory_id = tx.attempt(act, keep=is_new)
    return memory_id, is_new(memory_id)


def supersede(tx: Transaction, scope: Scope, old: Memory, new: Memory, *, now: int, new_id: Callable[[], str]) -> None:
    """Ends a fact because another one, which began later, holds now, as if the newer one had just been told.

    Only the meant part of a merged fact ends, and rows that repeat the old one end with it.
    """
    draft = memories.draft_of(new, learned_at=new.valid_from)
    _close(tx, scope, [old], new.id, draft=draft)
    for owner_id, slot in sorted(filter(None, {_slot(scope, draft), _slot(scope, old)})):
        profile.refresh(tx, scope, owner_id, slot, now=now, new_id=new_id)


def may_be_kept(
    tx: Transaction, draft: Draft, source_ids: Sequence[int], *, names: Sequence[Named] = (), now: int
) -> bool:
    """Returns whether everybody concerned lets a draft be kept, and it was not forgotten since it was said."""
    if not _is_wished(tx, draft, source_ids, names, now=now):
        return False
    said_at: int | None = draft.learned_at
    if draft.origin not in ("extracted", "imported", "derived"):
        # A text that a person types to be kept is said now. A model's text was said in the messages that the model
        # had been given.
        said_at = history.recorded_at(tx, source_ids)
    return said_at is None or not erasure.was_forgotten(tx, draft.owner_id, draft.key, draft.value, said_at=said_at)


def same(memory: Memory, draft: Draft) -> bool:
    """Returns whether a memory and a draft say one thing (DESIGN 5.3)."""
    if draft.kind == "event" and memory.local_date != draft.local_date:
        return False
    if _equal(memory, draft):
        return True
    if draft.kind == "fact":
        known, named = thing(memory.key, memory.value), thing(draft.key, draft.value)
        if names_the_same(known, named) and _kinds(named) <= _kinds(known):
            return True
    if memory.category != draft.category or keys.is_single_valued(draft.key) or keys.is_single_valued(memory.key):
        return False
    if memory.key != draft.key and not _key_adds_nothing(memory, draft):
        return False
    return jaccard(memory.value, draft.value) >= _ALIKE and not differs_in_substance(memory.value, draft.value)


def _kinds(named: Thing | None) -> frozenset[str]:
    return named.kinds if named is not None else frozenset()


def _is_unclear(tx: Transaction, scope: Scope, draft: Draft, memory: Memory) -> bool:
    """Returns whether a draft or the memory may name either of two things that are known by that name."""
    named = thing(draft.key, draft.value) if draft.kind == "fact" else None
    if named is None:
        return False
    facts = memories.current(tx, scope, ("fact",), limit=_LOOKED_THROUGH)
    things = {
        fact.id: thing(fact.key, fact.value)
        for fact in facts
        if (fact.owner_id, fact.subject_id, fact.subject) == (draft.owner_id, draft.subject_id, draft.subject)
        and _one_subject(fact, draft)
        and any(name in fold(fact.value) for name in named.names)
    }
    others = {fact_id: each for fact_id, each in things.items() if each is not None}
    return not unclear({0: named, **others}).isdisjoint({0, memory.id})


def _is_wished(tx: Transaction, draft: Draft, source_ids: Sequence[int], names: Sequence[Named], *, now: int) -> bool:
    """Returns whether the author and the person it is about let a draft be kept.

    A text that a person types to be kept has no message of history as its source; with a source, a model wants it kept.
    A derived memory was learned before.
    """
    overheard = draft.origin in ("extracted", "imported") or (draft.origin == "told" and bool(source_ids))
    if overheard and draft.author_id is not None and not people.speaker_by_id(tx, draft.author_id).learning:
        return False
    return opt_outs.may_be_told_of(
        tx,
        owner_id=draft.owner_id,
        author_id=draft.author_id,
        subject_id=draft.subject_id,
        subject=draft.subject,
        names=names,
        now=now,
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
    single = draft.kind == "fact" and keys.is_single_valued(draft.key) and draft.confidence >= memories.SURE
    rivals = [memory for memory in present if memory.key == draft.key] if single else []
    replaced = {memory.id for memory in named}
    for memory in present:
        alike = _equal(memory, draft) if memory.id in replaced else same(memory, draft)
        if (
            memory.valid_until is None
            and alike
            and (_equal(memory, draft) or not _is_unclear(tx, scope, draft, memory))
        ):
            # If a memory was merged, the merged row counts as told again: the part must not come back beside it.
            holds = lineage.merged_into(tx, scope, memory)
            # A message that is read a second time does not count as told again.
            if not lineage.learned_from(tx, holds.id, source_ids):
                memories.reinforce(tx, holds.id, at=draft.learned_at, confidence=draft.confidence)
            # A memory that was unsure until now has ended nothing yet.
            over = [*named, *rivals] if memory.unsure else named
            _close(tx, scope, [one for one in over if one.id != holds.id], holds.id, draft=draft)
            return holds.id
        if memory.valid_until is not None and _equal(memory, draft) and draft.learned_at <= memory.valid_until:
            return memory.id  # said before it was replaced, though read after
    before = [memory for memory in rivals if memory.valid_from <= draft.learned_at]
    after = [memory for memory in (*rivals, *named) if memory.valid_from > draft.learned_at]
    if after:
        # Said earlier than what we know, though read later: it is history from the start.
        draft = replace(draft, valid_until=after[0].valid_from, superseded_by=after[0].id)
    memory_id = memories.insert(tx, draft, new_id=new_id, now=now)
    _close(tx, scope, [*before[-1:], *named], memory_id, draft=draft)
    return memory_id


def _close(tx: Transaction, scope: Scope, replaced: Sequence[Memory], memory_id: int, *, draft: Draft) -> None:
    """Ends the rows in `replaced` that held until now and began before the draft, and rows that repeat them.

    When a merged row ends, its other parts still hold: only the part nearest to the draft ends with it.
    """
    at = draft.learned_at
    for memory in {memory.id: memory for memory in replaced}.values():
        if memory.valid_from <= at and (memory.valid_until is None or memory.valid_until > at):
            memories.supersede(tx, memory.id, memory_id, at=at)
            parts = lineage.merged(tx, scope, memory)
            memories.part(tx, parts)
            _close(tx, scope, _nearest(parts, draft), memory_id, draft=draft)
            tried = set[int]()
            # Parts that come back from a merged row may repeat it, too.
            while copies := [one for one in _repeating(tx, scope, memory, draft) if one.id not in tried]:
                tried |= {copy.id for copy in copies}
                _close(tx, scope, copies, memory_id, draft=draft)


def _repeating(tx: Transaction, scope: Scope, memory: Memory, draft: Draft) -> list[Memory]:
    """Returns derived rows that say all of a memory under its key and do not agree with the draft: they end with it.

    A night job that reads of a thing twice may word it differently, and nobody would name all of those rows.
    """
    new = set(tokens(draft.value))
    beside = [one for one in memories.derived_beside(tx, scope, memory) if not (one.pinned or one.confirmed)]
    found = [one for one in beside if _says_little_else(one, memory) and not new.issubset(tokens(one.value))]
    names = people.names(tx, {one.subject_id for one in (*found, memory) if one.subject_id is not None})
    about = _called(memory, names)
    return [row for row in found if _called(row, names) == about]


def _says_little_else(one: Memory, memory: Memory) -> bool:
    """Returns whether a row says all of a memory, denies nothing of it, and has hardly more words of meaning.

    A number, date or name of its own counts as more.
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
    """Returns the name of a row's subject."""
    return (memory.subject or names.get(memory.subject_id or 0, "")).casefold()


def _nearest(parts: Sequence[Memory], draft: Draft) -> list[Memory]:
    """Returns the part of a merged memory that a draft is about: the most similar, under its key if there is any."""
    about = [memory for memory in parts if memory.key == draft.key]
    if len(about) == 1:
        return about
    words = {item.word for item in said(draft.value)}
    shared = {memory.id: words & {item.word for item in said(memory.value)} for memory in about or parts}
    best = max(about or parts, key=lambda memory: len(shared[memory.id]), default=None)
    return [best] if best is not None and shared[best.id] else []


def _denied(tx: Transaction, scope: Scope, draft: Draft) -> list[Memory]:
    """Returns live facts of a draft's subject that deny it or that it denies, except those that people made sure."""
    if draft.kind != "fact" or keys.is_single_valued(draft.key):
        return []
    return [
        one
        for one in _of_subject(tx, scope, draft)
        if one.live
        and not (one.pinned or one.confirmed)
        and (_is_opposite(one, draft) or _is_denial(one, draft))
        and _one_subject(one, draft)
        and _may_replace(scope, one, draft)
    ]


def _is_opposite(one: Memory, other: Draft) -> bool:
    """Returns whether one likes what the other dislikes."""
    values = keys.normalise_value(one.value), keys.normalise_value(other.value)
    return {one.key, other.key} == {"likes", "dislikes"} and values[0] == values[1]


def _is_denial(one: Memory, other: Draft) -> bool:
    """Returns whether one denies exactly the statement of the other, apart from words for their keys."""
    if not (keys.tells(one.key, other.key) or keys.tells(other.key, one.key)):
        return False
    told, meant = said(one.value), said(other.value)
    if {frozenset(item.denied for item in each) for each in (told, meant)} != {frozenset({0}), frozenset({1})}:
        return False
    words, others = ({item.word for item in each} for each in (told, meant))
    label = {*tokens(f"{cues(one.key)} {cues(other.key)}"), *tokens(f"{one.key} {other.key}")}
    # The word that a key and a value share may be all that the value says ("owns: no car").
    return words == others or (bool(words - label) and words - label == others - label)


def _may_replace(scope: Scope, memory: Memory, draft: Draft) -> bool:
    """Returns whether the speaker may end this row: it is theirs alone, or in a group said by or about them."""
    if memory.kind != draft.kind or memory.kind != "fact":
        return False
    if memory.owner_id in scope.own:
        return draft.owner_id in scope.own
    theirs = draft.author_id is not None and draft.author_id in (memory.author_id, memory.subject_id)
    return memory.owner_id == draft.owner_id and theirs


def _slot(scope: Scope, row: Memory | Draft) -> tuple[int, str] | None:
    """Returns the owner and the profile slot that a row feeds, if any."""
    slot = keys.profile_slot(category=row.category, key=row.key)
    return (row.owner_id, slot) if slot and row.kind == "fact" and row.owner_id in scope.own else None


def _of_subject(tx: Transaction, scope: Scope, draft: Draft) -> list[Memory]:
    """Returns rows about the subject of a draft; if that is its author by name, also what they told of themselves."""
    rows = memories.same_subject(tx, scope, draft)
    author = None if draft.author_id is None or draft.subject_id is not None else draft.author_id
    if author is not None and people.names(tx, {author}).get(author, "").casefold() == draft.subject.casefold() != "":
        own = memories.same_subject(tx, scope, replace(draft, subject="", subject_id=author))
        rows = sorted([*rows, *own], key=lambda memory: (memory.valid_from, memory.id))
    return rows


def _one_subject(memory: Memory, draft: Draft) -> bool:
    """Returns whether both speak of the same: the sisters of two people in a group may share a name."""
    return draft.subject_id is not None or memory.author_id == draft.author_id


def _equal(memory: Memory, draft: Draft) -> bool:
    return memory.key == draft.key and keys.normalise_value(memory.value) == keys.normalise_value(draft.value)


def _key_adds_nothing(memory: Memory, draft: Draft) -> bool:
    """Returns whether values under different keys can be compared without them.

    They can't if each key has a meaning of its own ("likes", "dislikes"), or if a value is too short to be a statement
    ("blue" as the colour of a car or of a flat).
    """
    if keys.category_of(memory.key) is not None and keys.category_of(draft.key) is not None:
        return False
    return min(len(set(tokens(memory.value))), len(set(tokens(draft.value)))) >= _STATEMENT
