"""Entities that memories name: people, organizations, places, projects, addresses.

Invariants: An entity belongs to one owner and is made only from that owner's memories. A scope sees the entities of its
owners; if two of them know the same name, it sees one entity. No name outlives the last memory that holds it: code that
deletes memories calls `release` first, in the same transaction.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from memory import keys
from memory.errors import NotFound
from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction, walled

Type: TypeAlias = Literal["person", "organization", "project", "location", "email", "url", "other"]

#: The number of characters of a text that are searched for known names.
MATCH_CHARS: Final = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name as written in some text; names of one type with the same `normal` form mean the same."""

    type: Type
    name: str

    @property
    def normal(self) -> str:
        return normal_form(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """An entity as a scope knows it by one name. `ids` are its rows, one per owner; `aliases` are its other spellings.

    `memory_ids` are the memories that name it and that the scope may read, newest first; `mentions` is their number.
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
    """Returns a name in the form in which names are compared.

    The form is NFKC and case-folded, with single spaces, without title, @, #, scheme or closing slash. "Dr. Chen",
    "CHEN" and "chen" are the same name. In an address neither `www.` nor case matters.
    """
    folded = _folded(name).lstrip("@# ")
    if folded.startswith(("http://", "https://", "www.")):
        return folded.split("://", 1)[-1].removeprefix("www.").rstrip("/")
    bare = _TITLE.sub("", folded).removesuffix("'s").rstrip()
    return bare or folded


_TITLE: Final = re.compile(r"^(?:(?:dr|mr|mrs|ms|prof|professor)\.? ){1,3}(?=\S)")


def stands_in(name: str, text: str) -> bool:
    """Returns whether a name occurs in a text as whole words, in any case: such a text keeps the name alive."""
    return bool(_occurrences(_folded(name), _folded(text)))


def note(tx: Transaction, owner_id: int, memory_id: int, found: Iterable[Named], *, now: int) -> None:
    """Links a memory with the entities it names. Raises `NotFound` if the memory is not one of this owner's.

    A name known by its normal form or by one of its aliases gets no second entity. The fullest spelling becomes its
    name and the others its aliases. An entity of unknown type takes the type found now.
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
        tx.run("insert into memory_entities values (?, ?) on conflict do nothing", (memory_id, entity_id))
        _count(tx, entity_id)


def of_memories(reader: Reader, memory_ids: Sequence[int]) -> list[Named]:
    rows = reader.all(
        "select e.type, e.name from memory_entities l join entities e on e.id = l.entity_id"
        " where l.memory_id in (select value from json_each(?)) group by e.type, e.name order by min(e.id)",
        (memory_ids,),
    )
    return [Named(type=row["type"], name=row["name"]) for row in rows]


def entity(reader: Reader, scope: Scope, name: str) -> Entity | None:
    """Returns the entity called `name` here, by normal form or alias, else as a word of just one person's name."""
    return max(called(reader, scope, name), key=lambda known: known.mentions, default=None)


def everybody(reader: Reader, scope: Scope) -> list[Entity]:
    """Returns all entities with memories that the scope may read, those that are named most first."""
    found = _seen(reader, scope, [known.entity for known in _names(reader, scope)])
    return sorted(found, key=lambda known: (-known.mentions, known.name))


def called(reader: Reader, scope: Scope, name: str) -> list[Entity]:
    everybody, wanted = _names(reader, scope), normal_form(name)
    hits = [known.entity for known in everybody if wanted in known.forms] if wanted else []
    if not hits:
        hits = [known.entity for known in everybody if wanted in known.words]
        hits = hits if len(hits) == 1 else []
    return _seen(reader, scope, list({named.ids: named for named in hits}.values()))


def matching(reader: Reader, scope: Scope, text: str) -> list[Entity]:
    """Returns the entities of this scope that `text` names, the longest names first.

    A name inside a longer one does not count, nor does half a word. Chinese names are found in running text. The cost
    is proportional to the number of entities that the scope's owners know. Only the first `MATCH_CHARS` characters are
    read.
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
        # Two types may share one name; then neither hides the other.
        if all(end <= begin or start >= stop or (start, end) == (begin, stop) for begin, stop in taken):
            taken.append((start, end))
            found[named.ids] = named
    return _seen(reader, scope, list(found.values()))


def release(tx: Transaction, memory_ids: Sequence[int]) -> None:
    """Unlinks memories about to be deleted, and removes every name and spelling that no other memory holds.

    A spelling stays if the text of a remaining memory has it; an entity without a remaining memory is deleted. Call it
    before the rows are deleted, once for all rows that are deleted together.
    """
    going = (memory_ids,)
    named = "memory_id in (select value from json_each(?))"
    rows = tx.all(f"select distinct entity_id from memory_entities where {named}", going)
    tx.run(f"delete from memory_entities where {named}", going)
    for row in rows:
        _check(tx, int(row["entity_id"]))


@walled
def types(reader: Reader, scope: Scope, normal_forms: Sequence[str]) -> defaultdict[str, set[str]]:
    within = scope.owned("e")
    rows = reader.all(
        f"select e.norm, e.type from entities e where e.norm in (select value from json_each(?)) and {within.sql}",
        (normal_forms, *within.parameters),
    )
    types_of: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        types_of[row["norm"]].add(row["type"])
    return types_of


def of_owner(reader: Reader, owner_id: int) -> list[int]:
    return reader.ids("select id from entities where owner_id = ?", (owner_id,))


def drop(tx: Transaction, entity_ids: Sequence[int]) -> None:
    tx.run("delete from entities where id in (select value from json_each(?))", (entity_ids,))


def drop_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run(
        "delete from entities where owner_id in (select id from owners"
        " where identity_id in (select value from json_each(?)))",
        (identity_ids,),
    )


def links(reader: Reader, memory_ids: Sequence[int]) -> list[tuple[int, int]]:
    rows = reader.all(
        "select memory_id, entity_id from memory_entities where memory_id in (select value from json_each(?))",
        (memory_ids,),
    )
    return [(int(row["memory_id"]), int(row["entity_id"])) for row in rows]


def relink(tx: Transaction, pairs: Iterable[tuple[int, int]]) -> None:
    for pair in pairs:
        tx.run(
            "insert into memory_entities select ?1, id from entities where id = ?2 on conflict do nothing",
            pair,
        )


def withdraw(tx: Transaction, pairs: Iterable[tuple[int, int]], *, made: Collection[int]) -> None:
    """Removes links between memories and entities, and deletes every entity that no other memory names.

    An entity in `made`, created for these links, keeps only the spellings that other memories have. Any other entity
    keeps all its spellings.
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
    """Gives each entity, by id, the first of its two types back if it still has the second."""
    for entity_id, (before, after) in types.items():
        tx.run(
            "update entities set type = ?1 where id = ?2 and type = ?3 and not exists (select 1 from entities other"
            " where other.owner_id = entities.owner_id and other.type = ?1 and other.norm = entities.norm)",
            (before, entity_id, after),
        )


def _check(tx: Transaction, entity_id: int) -> None:
    """Reduces an entity to the spellings that occur in its remaining memories."""
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
    aliases = tx.texts("select alias from entity_aliases where entity_id = ? order by alias", (entity_id,))
    spellings = [held["name"], *aliases]
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
        tx.run("insert into entity_aliases values (?, ?) on conflict do nothing", (entity_id, alias))
    _count(tx, entity_id)


def _move(tx: Transaction, entity_id: int, into_id: int, *, aliases: Iterable[str]) -> None:
    tx.run(
        "insert into memory_entities select memory_id, ? from memory_entities where entity_id = ?"
        " on conflict do nothing",
        (into_id, entity_id),
    )
    tx.run("delete from entities where id = ?", (entity_id,))
    for alias in aliases:
        tx.run(
            "insert into entity_aliases select id, ? from entities where id = ? and name <> ? on conflict do nothing",
            (alias, into_id, alias),
        )
    _count(tx, into_id)


def _known(tx: Transaction, owner_id: int, named: Named) -> int | None:
    """Returns the owner's entity that `named` means, by name, else by alias; the same type goes before no type."""
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
    """Stores another spelling; the fullest spelling with mixed case becomes the name that is shown."""
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
    tx.run("insert into entity_aliases values (?, ?) on conflict do nothing", (entity_id, alias))


def _fullness(name: str) -> tuple[int, int]:
    mixed = not name.isupper() and not name.islower() and not name.startswith(("@", "#"))
    return (int(mixed), len(name))


def _count(tx: Transaction, entity_id: int) -> None:
    tx.run(
        "update entities set mention_count = (select count(*) from memory_entities where entity_id = entities.id)"
        " where id = ?",
        (entity_id,),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An entity before its memories are looked up, with the normal forms of its names.

    `words` are the single words of a person's names of two or more words: people are called by any of them.
    """

    entity: Entity
    forms: frozenset[str]
    words: frozenset[str]


@walled
def _names(reader: Reader, scope: Scope, *, within: str | None = None) -> list[_Known]:
    """Returns the entities of the scope's owners, merged by type and name; at least those in the text `within`."""
    owned = scope.owned("e")
    rows = reader.all(
        "select e.id, e.type, e.name, e.norm, a.alias from entities e"
        f" left join entity_aliases a on a.entity_id = e.id where {owned.sql}"
        " order by e.mention_count desc, e.id, a.alias",
        owned.parameters,
    )
    spelled: dict[int, list[str]] = {}
    groups: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        groups.setdefault((row["type"], row["norm"]), {})[row["id"]] = row
        if row["alias"] is not None:
            spelled.setdefault(row["id"], []).append(row["alias"])
    return [
        _one(list(group.values()), spelled)
        for (_, norm), group in groups.items()
        if within is None or any(word in within for word in norm.split()) or any(one in spelled for one in group)
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


@walled
def _seen(reader: Reader, scope: Scope, found: Sequence[Entity]) -> list[Entity]:
    """Adds to each entity the memories that name it and that the scope may read; drops entities without any."""
    if not found:
        return []
    within = scope.predicate("m")
    rows = reader.all(
        "select l.entity_id, l.memory_id from memory_entities l join memories m on m.id = l.memory_id"
        f" where l.entity_id in (select value from json_each(?)) and {within.sql} order by l.memory_id desc",
        ([entity_id for known in found for entity_id in known.ids], *within.parameters),
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
    """Returns the positions of `form` in `text` as a whole word; a single character is never searched for."""
    places: list[int] = []
    start = text.find(form) if len(form) > 1 else -1
    while start >= 0:
        end = start + len(form)
        if not (_glued(text[start - 1 : start], form[0]) or _glued(form[-1], text[end : end + 1])):
            places.append(start)
        start = text.find(form, end)
    return places


def _glued(left: str, right: str) -> bool:
    """Returns whether two neighbouring characters belong to one word; never so in scripts without spaces."""
    return bool(left and right) and left.isalnum() and right.isalnum() and left < _SPACELESS and right < _SPACELESS


#: The first character of the scripts that put no space between words: Kana, Han, Hangul and what follows.
_SPACELESS: Final = "\u3040"
