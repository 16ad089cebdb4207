"""The journal of a night job's changes to memory, row by row, so that they can be undone.

Invariants: a job makes rows, closes or archives them and links them; it rewords and deletes none, and does not respell
names: the database itself refuses that while a journal is kept. A journal holds ids and figures, never words. Undoing
restores a value only if it is still the job's. A row that a person has changed since stays as they want it, with
everything it rests on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from memory import keys
from memory.store import entities, job_watch, lineage, memories
from memory.store.database import Row, Transaction
from memory.store.job_watch import COLUMNS, LINKS

#: A row is reopened with both of these or not at all.
_CLOSING: Final = frozenset({"valid_until", "superseded_by"})
#: Kinds that are rebuilt for every prompt: nobody wants one of their rows rather than another.
_FOR_PROMPTS: Final = ("profile", "directive")
Pair: TypeAlias = tuple[int, int]
Values: TypeAlias = Mapping[str, tuple[Any, Any]]
K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A record of the changes: `made` rows, `changed` values of others as (before, after), links of others by table.

    `told` says how often made rows counted as told again by then, if at all, and `closed` names their replacements.
    `named` are the entities made, and `typed` has the types, before and after, of others.
    """

    made: tuple[int, ...] = ()
    changed: Mapping[int, Values] = field(default_factory=dict)
    linked: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    unlinked: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    told: Mapping[int, int] = field(default_factory=dict)
    closed: Mapping[int, int] = field(default_factory=dict)
    named: tuple[int, ...] = ()
    typed: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        links = (*self.linked.values(), *self.unlinked.values())
        return not (self.made or self.changed or self.typed or any(links))

    @property
    def touched(self) -> frozenset[int]:
        links = (pair[0] for pairs in (*self.linked.values(), *self.unlinked.values()) for pair in pairs)
        return frozenset({*self.changed, *links}) - frozenset(self.made)

    def to_json(self) -> str:
        return json.dumps(
            {
                "made": self.made, "changed": self.changed, "linked": self.linked, "unlinked": self.unlinked,
                "told": self.told, "closed": self.closed, "named": self.named, "typed": self.typed,
            }
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Journal:
        """Reads the form that `to_json` writes; missing members count as no changes."""
        read = json.loads(text)

        def by_table(name: str) -> dict[str, Sequence[Pair]]:
            return {table: [(a, b) for a, b in pairs] for table, pairs in read.get(name, {}).items()}

        return cls(
            made=tuple(read.get("made", ())),
            changed={
                int(row): {name: (before, after) for name, (before, after) in of.items()}
                for row, of in read.get("changed", {}).items()
            },
            linked=by_table("linked"),
            unlinked=by_table("unlinked"),
            told={int(row): count for row, count in read.get("told", {}).items()},
            closed={int(row): successor for row, successor in read.get("closed", {}).items()},
            named=tuple(read.get("named", ())),
            typed={int(row): (before, after) for row, (before, after) in read.get("typed", {}).items()},
        )

    def then(self, later: Journal) -> Journal:
        """Returns both journals as one, in this order. A value that a person changed in between is the value before."""
        made = frozenset(self.made)
        changed: dict[int, Values] = dict(self.changed)
        for row, values in later.changed.items():
            if row in made:
                continue
            both = _differing({**changed.get(row, {}), **_values_then(changed.get(row, {}), values)})
            # Value by value, the later change has undone the earlier one: the row is as it was.
            if both:
                changed[row] = both
            else:
                changed.pop(row, None)
        typed = {**self.typed, **_values_then(self.typed, later.typed)}
        linked, unlinked = _links_then(self, later, made)
        return Journal(
            made=(*self.made, *later.made),
            changed=changed,
            linked=linked,
            unlinked=unlinked,
            told=dict(Counter(self.told) + Counter(_told_since(later, made))),
            closed={**self.closed, **later.closed, **_closed_since(later, made)},
            named=(*self.named, *later.named),
            typed={row: pair for row, pair in _differing(typed).items() if row not in self.named},
        )


class JournalKeeping:
    """A journal being kept. `journal` is set once its block has ended."""

    journal: Journal = Journal()


@contextmanager
def kept(tx: Transaction) -> Iterator[JournalKeeping]:
    """Keeps a journal of the block's changes to memories, in the same transaction, which ends if the block fails."""
    job_watch.watch(tx)
    keeping = JournalKeeping()
    yield keeping
    keeping.journal = _read(tx)
    job_watch.unwatch(tx)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """The ids of rows that were restored (`back`), deleted (`gone`), and kept because a person made them theirs
    (`stay`).

    Rows made for prompts alone are in neither `back` nor `gone`.
    """

    back: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    stay: tuple[int, ...] = ()

    @property
    def restored(self) -> int:
        """The number of rows that are as they were before: deleted rows were not there then."""
        return len(self.back) + len(self.gone)

    @property
    def left(self) -> int:
        return len(self.stay)


def take_back(tx: Transaction, journal: Journal) -> TakenBack:
    """Restores rows as they were before. Rows that were forgotten or changed since stay so."""
    there = {row["id"]: row for row in job_watch.rows(tx, (*journal.made, *journal.touched))}
    stay = _wanted(tx, journal, there)
    standing = lineage.behind(tx, stay)
    gone = [row for row in journal.made if row in there and row not in stay]
    _take_back_links(tx, journal, there.keys() - standing, gone)
    # Later work that rests on deleted rows can't stand, but other rows that it had archived must not be lost with it.
    memories.take_apart(tx, lineage.made_from(tx, gone, besides=_FOR_PROMPTS))
    back = []
    for row_id, values in journal.changed.items():
        if row_id not in there or row_id in standing:
            continue
        row = there[row_id]
        held = {name: before for name, (before, after) in values.items() if row[name] == after}
        reopens = held.get("valid_until", row["valid_until"]) is None and row["valid_until"] is not None
        whole = held.keys() >= values.keys() & _CLOSING
        if not whole or (reopens and not _may_reopen(tx, row, there, stay, journal)):
            held = {name: before for name, before in held.items() if name not in _CLOSING}
        if held:
            memories.set_values(tx, row_id, held)
            if row["kind"] not in _FOR_PROMPTS:
                back.append(row_id)
    memories.delete(tx, gone)
    return TakenBack(
        back=tuple(back),
        gone=tuple(row for row in gone if there[row]["kind"] not in _FOR_PROMPTS),
        stay=tuple(row for row in journal.made if row in stay),
    )


def _wanted(tx: Transaction, journal: Journal, there: Mapping[int, Row]) -> frozenset[int]:
    """Returns the made rows that stay: a person has held on to them since, or to rows made from them."""
    made = frozenset(journal.made)
    wanted = {row for row in made if row in there and _is_wanted(there[row], journal)}
    for row in lineage.offspring(tx, made):
        if row["child"] in wanted or (row["child"] not in made and row["held"] and row["kind"] not in _FOR_PROMPTS):
            wanted.add(row["id"])
    return frozenset(wanted)


def _is_wanted(row: Row, done: Journal) -> bool:
    """Returns whether a person has since held on to a row, told it again, or told its replacement."""
    if row["pinned"] or row["confirmed"]:
        return True
    if row["kind"] in _FOR_PROMPTS:
        return False
    return row["reinforced_count"] > done.told.get(row["id"], 0) or _is_replaced(row, done)


def _is_replaced(row: Row, done: Journal) -> bool:
    return row["superseded_by"] not in (None, done.closed.get(row["id"]), *done.made)


def _may_reopen(tx: Transaction, row: Row, there: Mapping[int, Row], stay: Collection[int], done: Journal) -> bool:
    """Returns whether no row replaces a closed row any more, once the made rows are gone."""
    successor = row["superseded_by"]
    while successor in done.made and successor in there:
        if successor in stay or _is_replaced(there[successor], done):
            return False
        successor = there[successor]["superseded_by"]
    if row["kind"] not in _FOR_PROMPTS and not keys.is_single_valued(row["key"]):
        return True
    return not memories.has_heir(tx, row["id"], besides=done.made)


def _take_back_links(tx: Transaction, journal: Journal, may: Collection[int], gone: Sequence[int]) -> None:
    """Undoes the rows' links, and withdraws names that come from deleted rows alone."""

    def of(by_table: Mapping[str, Sequence[Pair]], table: str) -> list[Pair]:
        return [pair for pair in by_table.get(table, ()) if pair[0] in may]

    links: tuple[memories.Links, ...] = ("memory_sources", "memory_parents")
    for table in links:
        memories.unlink(tx, of(journal.linked, table), table=table)
        memories.relink(tx, of(journal.unlinked, table), table=table)
    named = [*of(journal.linked, "memory_entities"), *entities.links(tx, gone)]
    entities.withdraw(tx, named, made=journal.named)
    entities.relink(tx, of(journal.unlinked, "memory_entities"))
    entities.restore_types(tx, journal.typed)


def _values_then(earlier: Mapping[K, tuple[Any, Any]], later: Mapping[K, tuple[Any, Any]]) -> dict[K, tuple[Any, Any]]:
    """Returns the later changes, from the value before the earlier change unless it was changed in between."""
    return {
        name: (earlier[name][0] if name in earlier and earlier[name][1] == before else before, after)
        for name, (before, after) in later.items()
    }


def _differing(values: Mapping[K, tuple[Any, Any]]) -> dict[K, tuple[Any, Any]]:
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _told_since(later: Journal, made: Collection[int]) -> dict[int, int]:
    """Returns how often later work counted rows as told again: its own rows, and those made before it."""
    told = dict(later.told)
    for row, values in later.changed.items():
        if row in made and "reinforced_count" in values:
            before, after = values["reinforced_count"]
            told[row] = after - before
    return told


def _closed_since(later: Journal, made: Collection[int]) -> dict[int, int]:
    """Returns the rows with which later work has replaced rows made before it."""
    return {
        row: values["superseded_by"][1]
        for row, values in later.changed.items()
        if row in made and values.get("superseded_by", (None, None))[1] is not None
    }


def _links_then(
    earlier: Journal, later: Journal, made: Collection[int]
) -> tuple[dict[str, Sequence[Pair]], dict[str, Sequence[Pair]]]:
    """Returns the net links and unlinks: a link made in one journal and removed in the other is in neither."""
    linked: dict[str, Sequence[Pair]] = {}
    unlinked: dict[str, Sequence[Pair]] = {}
    for table in LINKS:
        net: Counter[Pair] = Counter()
        for journal in (earlier, later):
            net.update(journal.linked.get(table, ()))
            net.subtract(journal.unlinked.get(table, ()))
        linked[table] = [pair for pair, count in net.items() if count > 0 and pair[0] not in made]
        unlinked[table] = [pair for pair, count in net.items() if count < 0 and pair[0] not in made]
    return linked, unlinked


def _read(tx: Transaction) -> Journal:
    before = {row["id"]: row for row in job_watch.touched(tx)}
    made = tuple(row_id for row_id, row in before.items() if row["made"])
    changed: dict[int, Values] = {}
    told: dict[int, int] = {}
    closed: dict[int, int] = {}
    for row in job_watch.rows(tx, list(before)):
        if row["id"] in made:
            told |= {row["id"]: row["reinforced_count"]} if row["reinforced_count"] else {}
            closed |= {row["id"]: row["superseded_by"]} if row["superseded_by"] is not None else {}
        elif values := _differing({name: (before[row["id"]][name], row[name]) for name in COLUMNS}):
            changed[row["id"]] = values
    net: dict[str, Counter[Pair]] = {table: Counter() for table in LINKS}
    for row in job_watch.links(tx, besides=made):
        net[row["name"]][(row["memory_id"], row["other_id"])] += 1 if row["added"] else -1
    names = job_watch.names(tx)
    return Journal(
        made=made,
        changed=changed,
        linked={table: [pair for pair, count in pairs.items() if count > 0] for table, pairs in net.items()},
        unlinked={table: [pair for pair, count in pairs.items() if count < 0] for table, pairs in net.items()},
        told=told,
        closed=closed,
        named=tuple(row["id"] for row in names if row["made"]),
        typed=_differing({row["id"]: (row["before"], row["type"]) for row in names if not row["made"]}),
    )
