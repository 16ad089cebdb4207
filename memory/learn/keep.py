"""Turns one draft into rows: a new memory, an old one told again, or a replacement.

Invariants: a row is replaced only under a key on the closed list of single values, if a model names the row, or by a
value that denies all that the row says and nothing else ("nuts", "not allergic to nuts any more"), and only by a sure
draft: an unsure one stands beside the row it may replace. A named row is replaced only if the speaker may change it,
and rows derived from it go with it. Message time decides, so words that are read late end nothing that was told after
them (`memory.learn.current_value`). Placing a draft costs by the rows that share its words. Every row names the
messages it was learned from. For people who have opted out, nothing is kept from their words unless they ask for it
themselves, nor anything about them from others' words, whatever its way here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from memory import keys, profile
from memory.learn import current_value, opt_outs
from memory.learn.entities import extract, of_fact
from memory.learn.same import equal, is_denial, is_opposite, same, says_as_much
from memory.recall import index
from memory.scope import Scope
from memory.store import entities, fading, history, lineage, memories, people, scopes, word_columns
from memory.store.database import Keys, Reader, Transaction, of_owner
from memory.store.entities import Named
from memory.store.memories import Draft, Memory
from memory.text.guard import injection_flags
from memory.text.likeness import said, surface
from memory.text.things import thing, unclear
from memory.text.words import stop_tokens, tokens

#: The most words of a draft by which rows are looked for.
_TERMS: Final = 24
#: The texts whose words are kept: an import compares each with many.
_TEXTS: Final = 4_096


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
    rows = near(tx, scope, draft)
    named = _ended_by(tx, scope, draft, replaces, rows)
    if draft.origin not in ("told", "admin") and any(current_value.jumped(one, draft) for one in named):
        draft, named = replace(draft, confidence=min(draft.confidence, current_value.DOUBTED)), []
    memory_id = _place(tx, scope, draft, rows, named, source_ids=source_ids, now=now, new_id=new_id)
    if draft.kind == "style":
        fading.set_aside_rest(tx, scope, memory_id, now=now)
    finder = scopes.name_finder(tx, scope.agent_id)
    if finder != "none":
        seen = of_fact(draft.key, draft.value, subject=draft.subject) if draft.kind == "fact" else extract(draft.value)
        told = names if finder in ("auto", "model") else ()
        entities.note(tx, draft.owner_id, memory_id, [*told, *seen], now=now)
    settled = current_value.settle(tx, scope, draft, now=now, new_id=new_id)
    if draft.origin != "imported" or draft.key == "timezone":  # an import brings the profile up to date at its end
        _refresh(tx, scope, [draft, *named, *settled], now=now, new_id=new_id)
    return memory_id


def confirm(tx: Transaction, scope: Scope, memory: Memory, *, now: int, new_id: Callable[[], str]) -> None:
    memories.confirm(tx, memory.id, at=now)
    draft = memories.draft_of(memory, confidence=1.0, learned_at=now, confirmed=True)
    named: list[Memory] = []
    if memory.unsure:
        named = _ended_by(tx, scope, draft, (), [row for row in near(tx, scope, draft) if row.id != memory.id])
        _close(tx, scope, named, memory.id, draft=draft, new_id=new_id, now=now)
    settle(tx, scope, [memory, *named], now=now, new_id=new_id)


def settle(tx: Transaction, scope: Scope, rows: Sequence[Memory], *, now: int, new_id: Callable[[], str]) -> None:
    changed: list[Memory] = []
    done: set[object] = set()
    for row in rows:
        about = (
            row.key,
            current_value.subject_of(tx, scope, row),
            None if row.subject_id is not None else row.author_id,
        )
        if about not in done and row.owner_id in (*scope.own, scope.writes_to):
            done.add(about)
            changed += current_value.settle(tx, scope, row, now=now, new_id=new_id)
    _refresh(tx, scope, [*rows, *changed], now=now, new_id=new_id)


def _refresh(
    tx: Transaction, scope: Scope, rows: Sequence[Memory | Draft], *, now: int, new_id: Callable[[], str]
) -> None:
    for owner_id, slot in sorted({fed for row in rows if (fed := _slot(scope, row)) is not None}):
        profile.refresh(tx, scope, owner_id, slot, now=now, new_id=new_id)
        if slot == "timezone":
            profile.follow_timezone(tx, scope, owner_id)


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
    _close(tx, scope, [old], new.id, draft=draft, new_id=new_id, now=now)
    _refresh(tx, scope, [draft, old], now=now, new_id=new_id)


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
    return said_at is None or not word_columns.was_forgotten(
        tx, draft.owner_id, draft.key, draft.value, said_at=said_at
    )


def near(reader: Reader, scope: Scope, draft: Draft) -> list[Memory]:
    about = current_value.subject_of(reader, scope, draft)
    telling = _telling(draft.value)
    terms = sorted(telling, key=lambda word: (-len(word), word))[:_TERMS]
    # Half an index would hide what it does not hold yet.
    if index.is_whole(reader):
        rows = memories.near(reader, scope, about, draft, terms)
    else:
        rows = memories.of_subject(reader, scope, about)
    single = keys.is_single_valued(draft.key)

    def touches(row: Memory) -> bool:
        if (single and row.key == draft.key) or row.value == draft.value:
            return True
        # What says or denies the same shares most words, or at least those of the shorter text.
        words = _telling(row.value)
        return 2 * len(words & telling) >= min(len(words), len(telling)) > 0

    return [row for row in rows if current_value.of_one(scope, row, draft) and touches(row)]


@lru_cache(_TEXTS)
def _telling(text: str) -> frozenset[str]:
    words = frozenset(tokens(text))
    return words - stop_tokens() or words


def _is_unclear(draft: Draft, memory: Memory, rows: Sequence[Memory]) -> bool:
    named = thing(draft.key, draft.value) if draft.kind == "fact" else None
    if named is None:
        return False
    things = {row.id: thing(row.key, row.value) for row in rows if row.live}
    sharing = {row_id: each for row_id, each in things.items() if each is not None and each.names & named.names}
    return not unclear({0: named, **sharing}).isdisjoint({0, memory.id})


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
    rows: Sequence[Memory],
    named: Sequence[Memory],
    *,
    source_ids: Sequence[int],
    now: int,
    new_id: Callable[[], str],
) -> int:
    """Writes the draft as a telling of a row that says it, or as a row of its own, and ends those that are named."""
    unsure = draft.kind == "fact" and draft.confidence < memories.SURE
    held = _saying(tx, draft, rows, named)
    if held is not None:
        # If a memory was merged, the merged row counts as told again: the part must not come back beside it.
        row = lineage.merged_into(tx, scope, held) if held.valid_until is None else held
        # A message that is read a second time does not count as told again, nor one that may not mean it.
        is_proof = row.unsure and not unsure and keys.is_single_valued(draft.key)
        again = not lineage.learned_from(tx, row.id, source_ids) and (held.valid_until is None or is_proof)
        if again and (row.unsure or not unsure):
            memories.reinforce(tx, row.id, at=draft.learned_at, confidence=draft.confidence)
            if is_proof:
                memories.set_values(tx, row.id, {"valid_from": draft.learned_at})
        memory_id = row.id
    else:
        last = current_value.told_last(tx, named)
        after = [one for one in named if last[one.id] > draft.learned_at and not one.unsure]
        if after:
            # Said earlier than what we know, though read later: it is history from the start.
            first = min(after, key=lambda one: (max(one.valid_from, draft.learned_at), one.id))
            until = first.valid_from if first.valid_from > draft.learned_at else last[first.id]
            draft = replace(draft, valid_until=until, superseded_by=first.id)
        memory_id = memories.insert(tx, draft, new_id=new_id, now=now)
    memories.add_sources(tx, memory_id, source_ids, unsure=unsure)
    if held is None or held.valid_until is None:
        _close(tx, scope, [one for one in named if one.id != memory_id], memory_id, draft=draft, new_id=new_id, now=now)
    return memory_id


def _saying(tx: Reader, draft: Draft, rows: Sequence[Memory], named: Sequence[Memory]) -> Memory | None:
    """Returns the row that says what a draft says: one that holds, first a sure one, or one that held at the time."""
    replaced = {one.id for one in named}
    single = draft.kind == "fact" and keys.is_single_valued(draft.key)

    def says(row: Memory) -> bool:
        if row.owner_id != draft.owner_id:  # accounts that are linked may part again
            return False
        if equal(row, draft):
            return draft.kind != "event" or row.local_date == draft.local_date
        if row.id in replaced or (single and row.key != draft.key):
            return False
        return same(row, draft) and not _is_unclear(draft, row, rows)

    saying = [row for row in rows if (row.valid_until is None or draft.learned_at <= row.valid_until) and says(row)]
    saying = [row for row in saying if row.valid_until is None or equal(row, draft)]
    return min(saying, key=lambda row: (row.unsure, row.valid_until is not None), default=None)


def _ended_by(
    reader: Reader, scope: Scope, draft: Draft, replaces: Sequence[int], rows: Sequence[Memory]
) -> list[Memory]:
    """Returns the rows that a draft ends: those that its reader names, that it denies, or notes that it says better."""
    if draft.kind != "fact" or draft.confidence < memories.SURE:
        return []
    named = [one for one in memories.by_ids(reader, scope, replaces) if _may_replace(scope, one, draft)]
    single = keys.is_single_valued(draft.key)
    for row in rows:
        if not row.live or row.pinned or row.confirmed or row.id in replaces or not _may_replace(scope, row, draft):
            continue
        denied = not single and (is_opposite(row, draft) or is_denial(row, draft))
        if denied or (row.key == "note" != draft.key and says_as_much(row, draft)):
            named.append(row)
    return named


def _close(
    tx: Transaction,
    scope: Scope,
    replaced: Sequence[Memory],
    memory_id: int,
    *,
    draft: Draft,
    new_id: Callable[[], str],
    now: int,
) -> None:
    """Ends the rows in `replaced` that held until now and were last told before the draft, and rows that repeat them.

    When a merged row ends, its other parts still hold: only the part nearest to the draft ends with it. What may have
    been meant later stands by itself.
    """
    at = draft.learned_at
    last = current_value.told_last(tx, replaced)
    for memory in {memory.id: memory for memory in replaced}.values():
        if last[memory.id] <= at and (memory.valid_until is None or memory.valid_until > at):
            memories.supersede(tx, memory.id, memory_id, at=at)
            current_value.part(tx, memory, at=at, now=now, new_id=new_id)
            parts = lineage.merged(tx, scope, memory)
            memories.part(tx, parts)
            _close(tx, scope, _nearest(parts, draft), memory_id, draft=draft, new_id=new_id, now=now)
            tried = set[int]()
            # Parts that come back from a merged row may repeat it, too.
            while copies := [one for one in _repeating(tx, scope, memory, draft) if one.id not in tried]:
                tried |= {copy.id for copy in copies}
                _close(tx, scope, copies, memory_id, draft=draft, new_id=new_id, now=now)


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
    return (memory.subject or names.get(memory.subject_id or 0, "")).casefold()


def _nearest(parts: Sequence[Memory], draft: Draft) -> list[Memory]:
    about = [memory for memory in parts if memory.key == draft.key]
    if len(about) == 1:
        return about
    words = {item.word for item in said(draft.value)}
    shared = {memory.id: words & {item.word for item in said(memory.value)} for memory in about or parts}
    best = max(about or parts, key=lambda memory: len(shared[memory.id]), default=None)
    return [best] if best is not None and shared[best.id] else []


def _may_replace(scope: Scope, memory: Memory, draft: Draft) -> bool:
    if memory.kind != draft.kind or memory.kind != "fact":
        return False
    if memory.owner_id in scope.own:
        return draft.owner_id in scope.own
    theirs = draft.author_id is not None and draft.author_id in (memory.author_id, memory.subject_id)
    return memory.owner_id == draft.owner_id and theirs


def _slot(scope: Scope, row: Memory | Draft) -> tuple[int, str] | None:
    slot = keys.profile_slot(category=row.category, key=row.key)
    return (row.owner_id, slot) if slot and row.kind == "fact" and row.owner_id in scope.own else None
