"""Rows of what memories name: people, organizations, places, projects, addresses.

Invariants: an entity belongs to one owner and is made only from that owner's memories; a scope sees those of its
owners, as one where two of them know the same name; nothing stays of a name that no memory holds any more: whoever
deletes memories calls `release` first, in the same transaction.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from memory import keys
from memory.errors import NotFound
from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction

Type: TypeAlias = Literal["person", "organization", "project", "location", "email", "url", "other"]

#: How much of a text is looked through for known names, in characters.
MATCH_CHARS: Final = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name as it is written somewhere; names of one type with the same `normal` form mean the same."""

    type: Type
    name: str

    @property
    def normal(self) -> str:
        return normal_form(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """What a scope knows by one name: `ids` are its rows, one per owner; `aliases` its other spellings.

    `memory_ids` are those of the memories naming it that this scope may read, newest first; `mentions` counts them.
    """

    ids: tuple[int, ...]
    type: Type
    name: str
    aliases: tuple[str, ...]
    memory_ids: tuple[int, ...]

    @property
    def mentions(self) -> int:
        return len(self.memory_ids)


def normal_form(name: str) -> str:
    """A name as it is compared: NFKC, case folded, single spaces, without title, @, #, scheme or closing slash.

    "Dr. Chen", "CHEN" and "chen" are one; what an address stands for depends on neither `www.` nor its case.
    """
    folded = _folded(name).lstrip("@# ")
    if folded.startswith(("http://", "https://", "www.")):
        return folded.split("://", 1)[-1].removeprefix("www.").rstrip("/")
    bare = _TITLE.sub("", folded).removesuffix("'s").rstrip()
    return bare or folded


_TITLE: Final = re.compile(r"^(?:(?:dr|mr|mrs|ms|prof|professor)\.? ){1,3}(?=\S)")


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as whole words, in whatever case: what keeps it when memories go."""
    return bool(_occurrences(_folded(name), _folded(text)))


def note(tx: Transaction, owner_id: int, memory_id: int, found: Iterable[Named], *, now: int) -> None:
    """Link a memory with what it names; raises `NotFound` when it is not a memory of this owner.

    A known name, by its normal form or one of its aliases, is not made again: a fuller spelling becomes its name, the
    others its aliases, and what was of no known type takes the type it is found to have.
    """
    if tx.one("select 1 from memories where id = ? and owner_id = ?", (memory_id, owner_id)) is None:
        raise NotFound(f"No memory {memory_id} of owner {owner_id}: entities are noted with the owner of their memory.")
    for named in found:
        if not named.normal:
            continue
        entity_id = _known(tx, owner_id, named)
        if entity_id is None:
            entity_id = tx.insert(
                "insert into entities (owner_id, type, name, norm, created_at) values (?, ?, ?, ?, ?)",
                (owner_id, named.type, named.name, named.normal, now),
            )
        else:
            _spelled(tx, entity_id, named)
        tx.run("insert or ignore into memory_entities values (?, ?)", (memory_id, entity_id))
        _count(tx, entity_id)


def of_memories(reader: Reader, memory_ids: Sequence[int]) -> list[Named]:
    """What these memories name, each once, as it is called."""
    rows = reader.all(
        "select distinct e.type, e.name from memory_entities l join entities e on e.id = l.entity_id"
        " where l.memory_id in (select value from json_each(?)) order by e.id",
        (json.dumps(list(memory_ids)),),
    )
    return [Named(type=row["type"], name=row["name"]) for row in rows]


def merge(tx: Transaction, scope: Scope, keep_id: int, other_id: int) -> None:
    """Make one entity of two of the same owner; the other's name and aliases become aliases.

    Raises `NotFound` when either is not in this scope or they belong to two owners.
    """
    within = scope.owned("e")
    rows = tx.all(
        f"select e.id, e.owner_id, e.name from entities e where e.id in (?, ?) and {within.sql}",
        (keep_id, other_id, *within.parameters),
    )
    if len(rows) != 2 or rows[0]["owner_id"] != rows[1]["owner_id"]:
        raise NotFound(f"Entities {keep_id} and {other_id} can't be made one: both must be known here, to one owner.")
    names = [row["name"] for row in rows if row["id"] == other_id]
    _move(tx, other_id, keep_id, aliases=[*names, *_aliases(tx, other_id)])


def entity(reader: Reader, scope: Scope, name: str) -> Entity | None:
    """What this scope knows by `name`: its normal form, an alias, else a word of exactly one person's name."""
    return max(_called(reader, scope, [name]), key=lambda known: known.mentions, default=None)


def linked(reader: Reader, scope: Scope, names: Sequence[str]) -> list[int]:
    """Ids of the memories of this scope that name any of `names`, each once, newest first."""
    found = _called(reader, scope, names)
    return sorted({memory_id for known in found for memory_id in known.memory_ids}, reverse=True)


def matching(reader: Reader, scope: Scope, text: str) -> list[Entity]:
    """The entities of this scope that `text` names, the longest names first.

    A name inside a longer one does not count, nor does half a word; Chinese names stand in running text. Costs in
    proportion to what this scope's owners know; the first `MATCH_CHARS` characters are read.
    """
    folded = _folded(text[:MATCH_CHARS])
    everybody = _names(reader, scope, within=folded)
    bearers = Counter(word for known in everybody for word in known.words)
    places = [
        (start, start + len(form), known.entity)
        for known in everybody
        for form in known.forms | {word for word in known.words if bearers[word] == 1}
        for start in _occurrences(form, folded)
    ]
    taken: list[tuple[int, int]] = []
    found: dict[tuple[int, ...], Entity] = {}
    for start, end, named in sorted(places, key=lambda place: (place[0] - place[1], place[0])):
        # Two types may share one name, and neither hides the other.
        if all(end <= begin or start >= stop or (start, end) == (begin, stop) for begin, stop in taken):
            taken.append((start, end))
            found[named.ids] = named
    return _seen(reader, scope, list(found.values()))


def release(tx: Transaction, memory_ids: Sequence[int]) -> None:
    """Unlink memories about to be deleted, and remove every name and spelling that no other memory holds.

    A spelling stays where the text of a remaining memory has it; an entity without a remaining memory goes. Call it
    before the rows are deleted, for all that go together.
    """
    going = (json.dumps(list(memory_ids)),)
    named = "memory_id in (select value from json_each(?))"
    rows = tx.all(f"select distinct entity_id from memory_entities where {named}", going)
    tx.run(f"delete from memory_entities where {named}", going)
    for row in rows:
        _check(tx, int(row["entity_id"]))


def links(reader: Reader, memory_ids: Sequence[int]) -> list[tuple[int, int]]:
    """What these memories name, as (memory id, entity id)."""
    rows = reader.all(
        "select memory_id, entity_id from memory_entities where memory_id in (select value from json_each(?))",
        (json.dumps(list(memory_ids)),),
    )
    return [(int(row["memory_id"]), int(row["entity_id"])) for row in rows]


def withdraw(tx: Transaction, pairs: Iterable[tuple[int, int]], *, made: Collection[int]) -> None:
    """Take back that memories name somebody or something; a name that no other memory holds goes.

    Of the entities that were `made` for these only the spellings stay that other memories have; others stay as spelled.
    """
    withdrawn = set(pairs)
    for pair in withdrawn:
        tx.run("delete from memory_entities where memory_id = ? and entity_id = ?", pair)
    for entity_id in sorted({entity_id for _, entity_id in withdrawn}):
        if tx.one("select 1 from entities where id = ?", (entity_id,)) is None:
            continue
        if tx.one("select 1 from memory_entities where entity_id = ?", (entity_id,)) is None:
            tx.run("delete from entities where id = ?", (entity_id,))
        elif entity_id in made:
            _check(tx, entity_id)
        else:
            _count(tx, entity_id)


def restore_types(tx: Transaction, types: Mapping[int, tuple[str, str]]) -> None:
    """Give entities, by id, back the first of two types where they have the second still."""
    for entity_id, (before, after) in types.items():
        tx.run("update or ignore entities set type = ? where id = ? and type = ?", (before, entity_id, after))


def _check(tx: Transaction, entity_id: int) -> None:
    """Keep of an entity what its remaining memories say."""
    texts = [
        _folded(text)
        for row in tx.all(
            "select m.subject, m.topic, m.key, m.value, m.tags from memory_entities l"
            " join memories m on m.id = l.memory_id where l.entity_id = ?",
            (entity_id,),
        )
        for text in row
    ]
    held = tx.one("select owner_id, type, name, norm from entities where id = ?", (entity_id,))
    assert held is not None  # it was linked a moment ago
    spellings = [held["name"], *_aliases(tx, entity_id)]
    kept = [name for name in spellings if any(_occurrences(_folded(name), text) for text in texts)]
    if not kept:
        tx.run("delete from entities where id = ?", (entity_id,))
        return
    tx.run("delete from entity_aliases where entity_id = ?", (entity_id,))
    name, norm = kept[0], normal_form(kept[0])
    twin = tx.one(
        "select id from entities where owner_id = ? and type = ? and norm = ? and id <> ?",
        (held["owner_id"], held["type"], norm, entity_id),
    )
    if twin is not None:
        _move(tx, entity_id, twin["id"], aliases=kept)
        return
    tx.run("update entities set name = ?, norm = ? where id = ?", (name, norm, entity_id))
    for alias in kept[1:]:
        tx.run("insert or ignore into entity_aliases values (?, ?)", (entity_id, alias))
    _count(tx, entity_id)


def _move(tx: Transaction, entity_id: int, into_id: int, *, aliases: Iterable[str]) -> None:
    """Give one entity's memories and these spellings to another, and remove it."""
    tx.run("update or ignore memory_entities set entity_id = ? where entity_id = ?", (into_id, entity_id))
    tx.run("delete from entities where id = ?", (entity_id,))
    for alias in aliases:
        tx.run(
            "insert or ignore into entity_aliases select id, ? from entities where id = ? and name <> ?",
            (alias, into_id, alias),
        )
    _count(tx, into_id)


def _known(tx: Transaction, owner_id: int, named: Named) -> int | None:
    """The owner's entity that `named` means: same type first, then the untyped one, then one with such an alias."""
    rows = tx.all(
        "select id, type from entities where owner_id = ? and norm = ? and type in (?, 'other', ?)",
        (owner_id, named.normal, named.type, named.type),
    )
    if not rows and named.type == "other":
        rows = tx.all("select id, type from entities where owner_id = ? and norm = ?", (owner_id, named.normal))
    if not rows:
        rows = [
            row
            for row in tx.all(
                "select e.id, e.type, a.alias from entities e join entity_aliases a on a.entity_id = e.id"
                " where e.owner_id = ?",
                (owner_id,),
            )
            if normal_form(row["alias"]) == named.normal and named.type in (row["type"], "other")
        ]
    return next((int(row["id"]) for row in sorted(rows, key=lambda row: row["type"] == "other")), None)


def _spelled(tx: Transaction, entity_id: int, named: Named) -> None:
    """Remember another spelling; the fullest one with capitals is the name it is shown by."""
    row = tx.one("select type, name, norm from entities where id = ?", (entity_id,))
    assert row is not None
    if row["type"] == "other" and named.type != "other":
        tx.run("update entities set type = ? where id = ?", (named.type, entity_id))
    if named.name == row["name"]:
        return
    shown, alias = row["name"], named.name
    if named.normal == row["norm"] and _fullness(named.name) > _fullness(row["name"]):
        shown, alias = alias, shown
        tx.run("update entities set name = ? where id = ?", (shown, entity_id))
        tx.run("delete from entity_aliases where entity_id = ? and alias = ?", (entity_id, shown))
    tx.run("insert or ignore into entity_aliases values (?, ?)", (entity_id, alias))


def _fullness(name: str) -> tuple[int, int]:
    mixed = not name.isupper() and not name.islower() and not name.startswith(("@", "#"))
    return (int(mixed), len(name))


def _count(tx: Transaction, entity_id: int) -> None:
    tx.run(
        "update entities set mention_count = (select count(*) from memory_entities where entity_id = entities.id)"
        " where id = ?",
        (entity_id,),
    )


def _aliases(reader: Reader, entity_id: int) -> list[str]:
    rows = reader.all("select alias from entity_aliases where entity_id = ? order by alias", (entity_id,))
    return [row["alias"] for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An entity, its memories not looked up yet, with the normal forms of its names.

    `words` are those of a person's names of two words and more: people go by either.
    """

    entity: Entity
    forms: frozenset[str]
    words: frozenset[str]


def _called(reader: Reader, scope: Scope, names: Sequence[str]) -> list[Entity]:
    everybody = _names(reader, scope)
    found: dict[tuple[int, ...], Entity] = {}
    for wanted in filter(None, map(normal_form, names)):
        hits = [known.entity for known in everybody if wanted in known.forms]
        if not hits:
            hits = [known.entity for known in everybody if wanted in known.words]
            hits = hits if len(hits) == 1 else []
        found |= {named.ids: named for named in hits}
    return _seen(reader, scope, list(found.values()))


def _names(reader: Reader, scope: Scope, *, within: str | None = None) -> list[_Known]:
    """The entities of the scope's owners, those of one type and name as one; all that may occur `within` a text."""
    owned = scope.owned("e")
    rows = reader.all(
        f"select e.id, e.type, e.name, e.norm from entities e where {owned.sql} order by e.mention_count desc, e.id",
        owned.parameters,
    )
    aliases = reader.all(
        f"select a.entity_id, a.alias from entity_aliases a join entities e on e.id = a.entity_id where {owned.sql}"
        " order by a.alias",
        owned.parameters,
    )
    spelled: dict[int, list[str]] = {}
    for row in aliases:
        spelled.setdefault(row["entity_id"], []).append(row["alias"])
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["type"], row["norm"]), []).append(row)
    return [
        _one(group, spelled)
        for (_, norm), group in groups.items()
        if within is None or any(word in within for word in norm.split()) or any(row["id"] in spelled for row in group)
    ]


def _one(rows: Sequence[Row], spelled: dict[int, list[str]]) -> _Known:
    kind, norm = rows[0]["type"], rows[0]["norm"]
    aliases = [alias for row in rows for alias in spelled.get(row["id"], ())]
    names = dict.fromkeys([*(row["name"] for row in rows), *aliases])
    first = next(iter(names))
    forms = frozenset([norm, *map(normal_form, aliases)])
    words = (word for form in forms if kind == "person" and " " in form for word in form.split())
    return _Known(
        entity=Entity(
            ids=tuple(int(row["id"]) for row in rows),
            type=kind,
            name=first,
            aliases=tuple(name for name in names if name != first),
            memory_ids=(),
        ),
        forms=forms,
        words=frozenset(word for word in words if len(word) > 2),
    )


def _seen(reader: Reader, scope: Scope, found: Sequence[Entity]) -> list[Entity]:
    """These with the memories that name them and that the scope may read; without any, an entity is not known here."""
    within = scope.predicate("m")
    rows = reader.all(
        "select l.entity_id, l.memory_id from memory_entities l join memories m on m.id = l.memory_id"
        f" where l.entity_id in (select value from json_each(?)) and {within.sql} order by l.memory_id desc",
        (json.dumps([entity_id for known in found for entity_id in known.ids]), *within.parameters),
    )
    memories: dict[int, list[int]] = {}
    for row in rows:
        memories.setdefault(row["entity_id"], []).append(row["memory_id"])
    filled = [
        replace(known, memory_ids=tuple(sorted({m for i in known.ids for m in memories.get(i, ())}, reverse=True)))
        for known in found
    ]
    return [known for known in filled if known.memory_ids]


def _folded(text: str) -> str:
    return keys.normalise_value(text).replace("’", "'")


def _occurrences(form: str, text: str) -> list[int]:
    """Where `form` stands in `text` as a whole word; one character alone is no name to look for."""
    found: list[int] = []
    start = text.find(form) if len(form) > 1 else -1
    while start >= 0:
        end = start + len(form)
        if not (_glued(text[start - 1 : start], form[0]) or _glued(form[-1], text[end : end + 1])):
            found.append(start)
        start = text.find(form, end)
    return found


def _glued(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word; scripts without spaces have no such."""
    return bool(left and right) and left.isalnum() and right.isalnum() and left < _SPACELESS and right < _SPACELESS


#: Where the scripts begin that put no space between words: Kana, Han, Hangul and what follows.
_SPACELESS: Final = "\u3040"
