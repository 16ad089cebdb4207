"""Settles which value of a key with one value at a time holds: the one that was told last.

Invariants: only the times at which people said something count, not the order in which it was read, nor which of their
linked accounts said it. A telling that may not mean it ends nothing and is ended by nothing; it is at an end when the
value is told plainly, or when it was said while that value held. An age that jumps ends none that was told, until it is
told twice, or by the person's own request. A row that a person's words ended, without another value, stays ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory import keys
from memory.learn.same import says_as_much
from memory.scope import Scope
from memory.store import memories, people
from memory.store.database import Reader, Transaction
from memory.store.memories import Draft, Memory, MemoryTelling, Subject
from memory.text.likeness import surface

#: The confidence of a value that was said plainly and yet may be a slip: it reads as unsure.
DOUBTED: Final = 0.55
#: The confidence of a value that a message may not mean.
UNSURE: Final = 0.4
#: The years by which an age may differ from what it should be by now.
_AGE_SLIP: Final = 1.5
_YEAR_MS: Final = 365.25 * 86_400_000


@dataclass(frozen=True, slots=True)
class _Told:
    """A plain telling of a row: when, in which order of equal times, and the row."""

    at: int
    order: int
    row: Memory


def subject_of(reader: Reader, scope: Scope, row: Memory | Draft) -> Subject:
    """Returns whom or what a row is about.

    What a person's accounts told of themselves is of one subject, and so is what somebody told of themselves in a group
    and what a model put under their name there.
    """
    own = row.owner_id in scope.own
    about = Subject(
        kind=row.kind,
        owner_ids=scope.own if own else (row.owner_id,),
        subject=row.subject,
        subject_id=row.subject_id,
        selves=scope.selves if own and row.subject_id in scope.selves else (),
    )
    if own or row.author_id is None or row.subject_id not in (None, row.author_id):
        return about
    name = people.names(reader, {row.author_id}).get(row.author_id, "")
    if row.subject_id is None and row.subject.casefold() != name.casefold():
        return about
    return (
        replace(about, selves=(row.author_id,), names=(name, row.subject) if row.subject else (name,))
        if name
        else about
    )


def of_one(scope: Scope, row: Memory, other: Memory | Draft) -> bool:
    """Returns whether both speak of the same: the sisters of two people in a group may share a name."""
    authors = {row.author_id, other.author_id}
    return other.subject_id is not None or len(authors) == 1 or authors <= {*scope.selves}


def told_last(reader: Reader, rows: Sequence[Memory]) -> dict[int, int]:
    """Returns when each row was last told plainly, in milliseconds UTC; for an unsure row, when it was last meant."""
    tellings = memories.tellings(reader, [row.id for row in rows])
    times = {row.id: [each.at for each in _plain(row, tellings[row.id])] for row in rows}
    return {row.id: max(times[row.id] or [each.at for each in tellings[row.id]] or [row.learned_at]) for row in rows}


def settle(tx: Transaction, scope: Scope, row: Memory | Draft, *, now: int, new_id: Callable[[], str]) -> list[Memory]:
    if row.kind != "fact" or not keys.is_single_valued(row.key):
        return []
    about = subject_of(tx, scope, row)
    rows = [each for each in memories.of_subject(tx, scope, about, key=row.key) if of_one(scope, each, row)]
    tellings = memories.tellings(tx, [each.id for each in rows])
    line = sorted(
        (_Told(each.at, each.message_id, one) for one in rows for each in _plain(one, tellings[one.id])),
        key=lambda told: (told.at, told.order, told.row.id),
    )
    line, doubted = _without_jumps(line)
    changed = _trust(tx, rows, line, doubted)
    changed += _succeed(tx, rows, line)
    changed += _free(tx, rows, line, tellings, now=now, new_id=new_id)
    return changed


def part(tx: Transaction, row: Memory, *, at: int, now: int, new_id: Callable[[], str]) -> None:
    """Lets what may have been meant after a row's end stand by itself, as an unsure row."""
    if row.unsure or keys.is_single_valued(row.key):
        return
    loose = [each for each in memories.tellings(tx, [row.id])[row.id] if each.unsure and each.at > at]
    if loose:
        memory_id = _standing(tx, [], row, loose, now=now, new_id=new_id)
        memories.move_sources(tx, row.id, memory_id, [each.message_id for each in loose])


def _plain(row: Memory, tellings: Sequence[MemoryTelling]) -> list[MemoryTelling]:
    """Returns a row's plain tellings, with one at the time that the person confirmed it or had it kept."""
    if row.unsure and row.confidence != DOUBTED:
        return []
    plain = [each for each in tellings if not each.unsure]
    if not tellings or row.confirmed or row.origin == "told":
        plain.append(MemoryTelling(at=row.learned_at, message_id=0, unsure=False))
    return plain


def _same_value(row: Memory, other: Memory) -> bool:
    return keys.normalise_value(row.value) == keys.normalise_value(other.value) or says_as_much(row, other)


def _without_jumps(line: Sequence[_Told]) -> tuple[list[_Told], set[int]]:
    """Returns the tellings that count, and the rows of those that don't: an age that jumps from what held before."""
    counted: list[_Told] = []
    doubted: list[_Told] = []
    for told in line:
        held = counted[-1] if counted else None
        again = any(each.row.value == told.row.value and each.order != told.order for each in doubted)
        wished = told.row.confirmed or told.row.origin in ("told", "admin")
        if held is None or wished or again or not jumps(held.row, told.row, years=(told.at - held.at) / _YEAR_MS):
            counted.append(told)
        else:
            doubted.append(told)
    return counted, {told.row.id for told in doubted} - {told.row.id for told in counted}


def jumped(old: Memory, new: Draft) -> bool:
    return jumps(old, new, years=(new.learned_at - old.learned_at) / _YEAR_MS)


def jumps(old: Memory, new: Memory | Draft, *, years: float) -> bool:
    if old.key != new.key or old.key not in _COUNTED:
        return False
    before, after = (
        sorted(number for number in surface(each.value).numbers if number.isdigit()) for each in (old, new)
    )
    if len(before) != 1 or len(after) != 1:
        return False
    grown = int(after[0]) - int(before[0])
    return abs(grown - years) > _AGE_SLIP if old.key == "age" else not 0 <= grown <= 1


#: The keys whose values are numbers that change slowly.
_COUNTED: Final = frozenset({"age", "children", "child", "kids", "siblings", "grandchildren"})


def _trust(tx: Transaction, rows: Sequence[Memory], line: Sequence[_Told], doubted: set[int]) -> list[Memory]:
    changed = []
    sure = {told.row.id for told in line}
    for row in rows:
        if row.id in doubted and row.confidence != DOUBTED:
            memories.set_values(tx, row.id, {"confidence": DOUBTED})
            changed.append(row)
        elif row.id in sure and row.confidence == DOUBTED:
            memories.set_values(tx, row.id, {"confidence": memories.SURE})
            changed.append(row)
        elif row.id not in sure | doubted and not row.unsure:
            # The message that said it plainly says something else now.
            memories.set_values(tx, row.id, {"confidence": UNSURE})
            changed.append(row)
    return changed


def _succeed(tx: Transaction, rows: Sequence[Memory], line: Sequence[_Told]) -> list[Memory]:
    if not line:
        return []
    last = {told.row.id: place for place, told in enumerate(line)}
    among = {row.id for row in rows}
    changed = []
    for row in rows:
        if row.id not in last:
            continue
        following = line[last[row.id] + 1] if last[row.id] + 1 < len(line) else None
        if not (row.valid_until is None or row.superseded_by in among or _left(tx, row, among)):
            continue
        at = None if following is None else following.at
        by = None if following is None else following.row.id
        if (row.valid_until, row.superseded_by) != (at, by):
            memories.supersede(tx, row.id, by, at=at)
            changed.append(row)
    return changed


def _left(tx: Transaction, row: Memory, among: set[int]) -> bool:
    if row.superseded_by is None or row.superseded_by in among:
        return False
    return any(
        each.key == row.key and each.owner_id != row.owner_id for each in memories.of_ids(tx, [row.superseded_by])
    )


def _free(
    tx: Transaction,
    rows: Sequence[Memory],
    line: Sequence[_Told],
    tellings: dict[int, list[MemoryTelling]],
    *,
    now: int,
    new_id: Callable[[], str],
) -> list[Memory]:
    """Parts what may have been meant from what was told: it stands by itself if the value did not hold then.

    So does a row whose plain telling is gone, which another value has ended until now.
    """
    sure, among = {told.row.id for told in line}, {row.id for row in rows}
    live = [row for row in rows if row.id not in sure and row.valid_until is None]
    changed = []
    for row in rows:
        told = [each for each in line if _same_value(each.row, row)]
        meant = [each for each in tellings[row.id] if each.unsure or row.id not in sure]
        loose = [each for each in meant if _is_loose(each, line, told)]
        is_outlived = not row.unsure and row.superseded_by in among
        if row.id in sure and loose:
            memory_id = _standing(tx, live, row, loose, now=now, new_id=new_id)
            memories.move_sources(tx, row.id, memory_id, [each.message_id for each in loose])
        elif row.id in sure or row.confidence == DOUBTED:
            continue
        elif loose and (is_outlived or row.superseded_by in {each.id for each in rows if _same_value(each, row)}):
            memories.supersede(tx, row.id, None, at=None)
            live.append(row)
        elif meant and told and not loose and (is_outlived or row.valid_until is None):
            memories.supersede(tx, row.id, told[-1].row.id, at=max(row.valid_from, meant[-1].at))
            live = [each for each in live if each.id != row.id]
        else:
            continue
        changed.append(row)
    for row in [each for each in live if each.confidence != DOUBTED]:
        if (other := _alike(live, row)) is not None:
            memories.move_sources(tx, row.id, other.id, [each.message_id for each in tellings[row.id]])
            memories.supersede(tx, row.id, other.id, at=max(row.valid_from, other.valid_from))
            live.remove(row)
            changed.append(row)
    return changed


def _is_loose(meant: MemoryTelling, line: Sequence[_Told], told: Sequence[_Told]) -> bool:
    """Returns whether a value neither was told plainly afterwards nor held when it may have been meant."""
    held = next((each for each in reversed(line) if each.at <= meant.at), None)
    over = held is not None and held.row.superseded_by is None and (held.row.valid_until or meant.at + 1) <= meant.at
    return all(each.at < meant.at for each in told) and (over or held not in told)


def _alike(live: Sequence[Memory], row: Memory) -> Memory | None:
    mine = (each for each in live if each.owner_id == row.owner_id and each.id != row.id)
    return next((each for each in mine if _same_value(each, row)), None)


def _standing(
    tx: Transaction,
    live: Sequence[Memory],
    row: Memory,
    loose: Sequence[MemoryTelling],
    *,
    now: int,
    new_id: Callable[[], str],
) -> int:
    if (other := _alike(live, row)) is not None:
        return other.id
    draft = memories.draft_of(
        row, confidence=UNSURE, learned_at=loose[0].at, valid_from=loose[0].at, origin="extracted"
    )
    return memories.insert(tx, replace(draft, confirmed=False), new_id=new_id, now=now)
