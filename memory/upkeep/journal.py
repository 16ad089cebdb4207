"""What a piece of the night's work did to memory, row by row, so that it can be taken back.

Invariants: a job makes rows, closes or archives them and links them, but rewords and deletes none, and spells nobody's
name anew: the database itself refuses that while a journal is kept; a journal holds ids and figures, never words;
taking back restores a value only where it still is what the job left, and what a person has changed since stays as they
want it, with all it rests on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from memory import keys
from memory.store import documents, entities, memories
from memory.store.database import Row, Transaction

#: What a job may change of a row that was there before.
COLUMNS: Final = (
    "agent_id", "importance", "confidence", "strength", "valid_from", "valid_until", "superseded_by",
    "reinforced_count", "last_reinforced_at", "pinned", "confirmed", "compressed_at", "archived_at", "enriched_at",
)  # fmt: skip
#: What is never changed of a row; all else counts its uses.
_FIXED: Final = (
    "short_id", "kind", "owner_id", "author_id", "subject_id", "subject", "category", "topic", "key", "value", "tags",
    "flags", "origin", "created_at", "learned_at", "local_date",
)  # fmt: skip
#: A row holds again with both of these or not at all.
_CLOSING: Final = frozenset({"valid_until", "superseded_by"})
#: Kinds that are made anew for every prompt: nobody wants one of their rows rather than another.
_FOR_PROMPTS: Final = ("profile", "directive")
#: Tables of pairs that begin with a memory, and what the other one is.
_LINKS: Final = {
    "memory_sources": ("message_id", "messages"),
    "memory_parents": ("parent_id", "memories"),
    "memory_entities": ("entity_id", "entities"),
}
Pair: TypeAlias = tuple[int, int]
Values: TypeAlias = Mapping[str, tuple[Any, Any]]
K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What was done: `made` rows, `changed` values of others as (before, after), and links of others, by table.

    `told` says how often made rows counted as told again, where they did, and `closed` what replaced them by then.
    `named` are entities that were made, and `typed` has the types, before and after, of others.
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
        """Whether there is nothing to take back."""
        links = (*self.linked.values(), *self.unlinked.values())
        return not (self.made or self.changed or self.typed or any(links))

    @property
    def touched(self) -> frozenset[int]:
        """Every memory that was there before and of which something changed."""
        links = (pair[0] for pairs in (*self.linked.values(), *self.unlinked.values()) for pair in pairs)
        return frozenset({*self.changed, *links}) - frozenset(self.made)

    def to_json(self) -> str:
        """Read again by `from_json`."""
        return json.dumps(
            {
                "made": self.made, "changed": self.changed, "linked": self.linked, "unlinked": self.unlinked,
                "told": self.told, "closed": self.closed, "named": self.named, "typed": self.typed,
            }
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Journal:
        """What `to_json` wrote; what it lacks counts as nothing done."""
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
        """Both, one after the other, as one. Where somebody changed a value in between, that is how it was before."""
        made = frozenset(self.made)
        changed: dict[int, Values] = dict(self.changed)
        for row, values in later.changed.items():
            if row in made:
                continue
            both = _differing({**changed.get(row, {}), **_values_then(changed.get(row, {}), values)})
            # One by one: all that was there before is as it was.
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


class Keeping:
    """A journal that is being kept; `journal` is there once its block has ended."""

    journal: Journal = Journal()


@contextmanager
def kept(tx: Transaction) -> Iterator[Keeping]:
    """Keep a journal of what the block does to memories, in the same transaction, which ends where the block fails."""
    _watch(tx)
    keeping = Keeping()
    yield keeping
    keeping.journal = _read(tx)
    _unwatch(tx)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """Ids of the rows that are as they were, of those that are gone, and of those that somebody has made theirs since.

    What is made for prompts alone counts with neither.
    """

    back: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    stay: tuple[int, ...] = ()

    @property
    def restored(self) -> int:
        """How many rows are as they were before: what is gone was not there."""
        return len(self.back) + len(self.gone)

    @property
    def left(self) -> int:
        """How many rows stay because somebody has changed them since."""
        return len(self.stay)


def take_back(tx: Transaction, journal: Journal) -> TakenBack:
    """Put rows back as they were before. What was forgotten or changed since stays so."""
    there = {row["id"]: row for row in _rows(tx, (*journal.made, *journal.touched))}
    stay = _wanted(tx, journal, there)
    standing = _behind(tx, stay)
    gone = [row for row in journal.made if row in there and row not in stay]
    _take_back_links(tx, journal, there.keys() - standing, gone)
    # Later work that rests on what goes can't stand; what else it had set aside must not be lost with it.
    memories.take_apart(tx, _made_of(tx, gone))
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
            marks = ", ".join(f"{name} = ?" for name in held)
            tx.run(f"update memories set {marks} where id = ?", (*held.values(), row_id))
            documents.changed(tx, documents.of_memory(row_id))
            if row["kind"] not in _FOR_PROMPTS:
                back.append(row_id)
    memories.delete(tx, gone)
    return TakenBack(
        back=tuple(back),
        gone=tuple(row for row in gone if there[row]["kind"] not in _FOR_PROMPTS),
        stay=tuple(row for row in journal.made if row in stay),
    )


def _wanted(tx: Transaction, journal: Journal, there: Mapping[int, Row]) -> frozenset[int]:
    """The made rows that are to stay: somebody has held on to them since, or to what was made of them."""
    made = frozenset(journal.made)
    wanted = {row for row in made if row in there and _is_wanted(there[row], journal)}
    offspring = tx.all(
        "with recursive line(id, child) as ("
        " select p.parent_id, p.memory_id from memory_parents p"
        " where p.parent_id in (select value from json_each(?))"
        " union select l.id, p.memory_id from memory_parents p join line l on p.parent_id = l.child)"
        " select l.id, l.child, m.kind, m.pinned or m.confirmed or m.last_reinforced_at > m.created_at as held"
        " from line l join memories m on m.id = l.child",
        (json.dumps(sorted(made)),),
    )
    for row in offspring:
        if row["child"] in wanted or (row["child"] not in made and row["held"] and row["kind"] not in _FOR_PROMPTS):
            wanted.add(row["id"])
    return frozenset(wanted)


def _is_wanted(row: Row, done: Journal) -> bool:
    """Whether a person has since shown that a row is to stay, has told it again, or has said what holds instead."""
    if row["pinned"] or row["confirmed"]:
        return True
    if row["kind"] in _FOR_PROMPTS:
        return False
    return row["reinforced_count"] > done.told.get(row["id"], 0) or _is_replaced(row, done)


def _is_replaced(row: Row, done: Journal) -> bool:
    """Whether something else has taken the place of a made row since."""
    return row["superseded_by"] not in (None, done.closed.get(row["id"]), *done.made)


def _may_reopen(tx: Transaction, row: Row, there: Mapping[int, Row], stay: Collection[int], done: Journal) -> bool:
    """Whether nothing holds any more in the place of a row that was closed, once what was made is gone."""
    successor = row["superseded_by"]
    while successor in done.made and successor in there:
        if successor in stay or _is_replaced(there[successor], done):
            return False
        successor = there[successor]["superseded_by"]
    if row["kind"] not in _FOR_PROMPTS and not keys.is_single_valued(row["key"]):
        return True
    heir = tx.one(
        "select 1 from memories old join memories m on m.owner_id = old.owner_id and m.kind = old.kind"
        " and m.key = old.key and m.agent_id is old.agent_id and m.subject = old.subject"
        " and m.subject_id is old.subject_id where old.id = ? and m.valid_until is null and m.archived_at is null"
        " and m.id not in (select value from json_each(?))",
        (row["id"], json.dumps([row["id"], *done.made])),
    )
    return heir is None


def _behind(tx: Transaction, row_ids: Collection[int]) -> frozenset[int]:
    """What these rows were made of."""
    rows = tx.all(
        "select parent_id from memory_parents where memory_id in (select value from json_each(?))",
        (json.dumps(list(row_ids)),),
    )
    return frozenset(row["parent_id"] for row in rows)


def _made_of(tx: Transaction, row_ids: Collection[int]) -> list[int]:
    """What was made of these rows by other work."""
    rows = tx.all(
        "select distinct p.memory_id from memory_parents p join memories m on m.id = p.memory_id"
        " where p.parent_id in (select value from json_each(?1))"
        " and p.memory_id not in (select value from json_each(?1)) and m.kind not in (select value from json_each(?2))",
        (json.dumps(list(row_ids)), json.dumps(_FOR_PROMPTS)),
    )
    return [row["memory_id"] for row in rows]


def _take_back_links(tx: Transaction, journal: Journal, may: Collection[int], gone: Sequence[int]) -> None:
    """Take back what rows were linked with, and the names that only what goes has brought up."""
    for table, (column, other) in _LINKS.items():
        added = [pair for pair in journal.linked.get(table, ()) if pair[0] in may]
        removed = [pair for pair in journal.unlinked.get(table, ()) if pair[0] in may]
        if table == "memory_entities":
            entities.withdraw(tx, [*added, *entities.links(tx, gone)], made=journal.named)
        else:
            for pair in added:
                tx.run(f"delete from {table} where memory_id = ? and {column} = ?", pair)
        for pair in removed:
            tx.run(
                f"insert or ignore into {table} select ?1, ?2 where exists (select 1 from {other} where id = ?2)", pair
            )
    entities.restore_types(tx, journal.typed)


def _values_then(earlier: Mapping[K, tuple[Any, Any]], later: Mapping[K, tuple[Any, Any]]) -> dict[K, tuple[Any, Any]]:
    """What changed later, from how it was before the earlier change, unless somebody changed it in between."""
    return {
        name: (earlier[name][0] if name in earlier and earlier[name][1] == before else before, after)
        for name, (before, after) in later.items()
    }


def _differing(values: Mapping[K, tuple[Any, Any]]) -> dict[K, tuple[Any, Any]]:
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _told_since(later: Journal, made: Collection[int]) -> dict[int, int]:
    """How often rows count as told again by later work: those it has made, and those that had been made before."""
    told = dict(later.told)
    for row, values in later.changed.items():
        if row in made and "reinforced_count" in values:
            before, after = values["reinforced_count"]
            told[row] = after - before
    return told


def _closed_since(later: Journal, made: Collection[int]) -> dict[int, int]:
    """What later work has put in the place of rows that had been made before."""
    return {
        row: values["superseded_by"][1]
        for row, values in later.changed.items()
        if row in made and values.get("superseded_by", (None, None))[1] is not None
    }


def _links_then(
    earlier: Journal, later: Journal, made: Collection[int]
) -> tuple[dict[str, Sequence[Pair]], dict[str, Sequence[Pair]]]:
    """What is linked and unlinked in the end: what one of two pieces linked and the other unlinked is neither."""
    linked: dict[str, Sequence[Pair]] = {}
    unlinked: dict[str, Sequence[Pair]] = {}
    for table in _LINKS:
        net: Counter[Pair] = Counter()
        for journal in (earlier, later):
            net.update(journal.linked.get(table, ()))
            net.subtract(journal.unlinked.get(table, ()))
        linked[table] = [pair for pair, count in net.items() if count > 0 and pair[0] not in made]
        unlinked[table] = [pair for pair, count in net.items() if count < 0 and pair[0] not in made]
    return linked, unlinked


def _rows(tx: Transaction, row_ids: Collection[int]) -> list[Row]:
    columns = ", ".join(("id", "kind", "key", *COLUMNS))
    return tx.all(
        f"select {columns} from memories where id in (select value from json_each(?))", (json.dumps(list(row_ids)),)
    )


def _watch(tx: Transaction) -> None:
    """Have the database note each change to memories, links and names, and refuse what no job may do."""
    columns = ", ".join(COLUMNS)
    old = ", ".join(f"old.{name}" for name in COLUMNS)
    tx.run(f"create temp table journal_rows (id integer primary key, made integer not null, {columns})")
    tx.run("create temp table journal_links (added integer not null, name text not null, memory_id, other_id)")
    tx.run("create temp table journal_names (id integer primary key, made integer not null, type text)")
    for name, event, does in (
        ("made", "after insert on main.memories", "insert into journal_rows (id, made) values (new.id, 1)"),
        (
            "changed", "before update on main.memories",
            f"insert or ignore into journal_rows (id, made, {columns}) values (old.id, 0, {old})",
        ),
        (
            "reworded", f"before update of {', '.join(_FIXED)} on main.memories",
            "select raise(abort, 'a job rewords no memory')",
        ),
        ("deleted", "before delete on main.memories", "select raise(abort, 'a job deletes no memory')"),
        ("named", "after insert on main.entities", "insert into journal_names (id, made) values (new.id, 1)"),
        (
            "typed", "before update of type on main.entities",
            "insert or ignore into journal_names values (old.id, 0, old.type)",
        ),
        ("unnamed", "before delete on main.entities", "select raise(abort, 'a job deletes no name')"),
        # Spellings are words, which a journal may not hold: those of names that were there stay as people write them.
        ("respelled", "before update of name, norm on main.entities", _passed_over("old.id")),
        ("spelled", "before insert on main.entity_aliases", _passed_over("new.entity_id")),
        ("unspelled", "before delete on main.entity_aliases", _passed_over("old.entity_id")),
    ):  # fmt: skip
        tx.run(f"create temp trigger journal_{name} {event} begin {does}; end")
    for table, (column, _) in _LINKS.items():
        for event, side, added in (("insert", "new", 1), ("delete", "old", 0)):
            tx.run(
                f"create temp trigger journal_{table}_{event} after {event} on main.{table} begin"
                f" insert into journal_links values ({added}, '{table}', {side}.memory_id, {side}.{column}); end"
            )


def _passed_over(entity: str) -> str:
    """A trigger's statement that has a change left undone where the entity was there before."""
    return f"select raise(ignore) where {entity} not in (select id from journal_names where made)"


def _unwatch(tx: Transaction) -> None:
    for row in tx.all("select name from temp.sqlite_master where type = 'trigger' and name glob 'journal_*'"):
        tx.run(f"drop trigger temp.{row['name']}")
    for table in ("rows", "links", "names"):
        tx.run(f"drop table temp.journal_{table}")


def _read(tx: Transaction) -> Journal:
    before = {row["id"]: row for row in tx.all("select * from temp.journal_rows order by id")}
    made = tuple(row_id for row_id, row in before.items() if row["made"])
    changed: dict[int, Values] = {}
    told: dict[int, int] = {}
    closed: dict[int, int] = {}
    for row in _rows(tx, list(before)):
        if row["id"] in made:
            told |= {row["id"]: row["reinforced_count"]} if row["reinforced_count"] else {}
            closed |= {row["id"]: row["superseded_by"]} if row["superseded_by"] is not None else {}
        elif values := _differing({name: (before[row["id"]][name], row[name]) for name in COLUMNS}):
            changed[row["id"]] = values
    net: dict[str, Counter[Pair]] = {table: Counter() for table in _LINKS}
    for row in tx.all(
        "select * from temp.journal_links where memory_id not in (select value from json_each(?))", (json.dumps(made),)
    ):
        net[row["name"]][(row["memory_id"], row["other_id"])] += 1 if row["added"] else -1
    names = tx.all(
        "select n.id, n.made, n.type as before, e.type from temp.journal_names n join entities e on e.id = n.id"
    )
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
