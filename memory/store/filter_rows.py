"""The rows that meet typed filters: memories by group, topic, name, place and time, messages by name and time.

Invariants: every row comes through the scope's own condition. Lists, searches and forgetting take the meaning of a
filter from here, so that the rows listed under a filter are the rows forgotten under it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher
from functools import cache
from typing import Final, NamedTuple

from memory import keys, typed_filters
from memory.errors import UnreadFilter
from memory.scope import Scope
from memory.store import entities, memories
from memory.store.database import Parameter, Reader, Row, walled
from memory.text import words
from memory.text.times import clock
from memory.typed_filters import Filter, Filters, GroupOf

#: The kinds that people tell or that are concluded; the others are made from them for prompts.
_KINDS: Final = ("fact", "style", "reflection", "event")
#: The types of an entity that may be a place; "other" is a name of unknown type.
_PLACES: Final = ("location", "other")
#: The letter that German and the Scandinavian languages add to a name, without an apostrophe: "Miriams".
_GENITIVE: Final = "s"
_NAMING: Final = ("about", "place")
#: The condition on rows whose tags count: the speaker's own, of which nothing else has taken the place.
_TAGGED: Final = (
    "m.superseded_by is null and (m.owner_id in (select value from json_each(?))"
    " or m.author_id in (select value from json_each(?)))"
)
#: The most keys or tags that are named where one is not known.
_SUGGESTED: Final = 20


class Reach(NamedTuple):
    """The rows that a person may have erased: all of `owners`, and the messages of `authors` in `places`."""

    owners: Sequence[int]
    places: Sequence[int]
    authors: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    memory_ids: frozenset[int]
    message_ids: frozenset[int]


def read(
    reader: Reader, scope: Scope, text: str, today: date, *, group_of: GroupOf = typed_filters.no_group
) -> Filters:
    """Returns the words and filters of `text`; a topic or name of several words is recognised if this scope knows it.

    Raises `UnknownFilter` and `UnreadFilter`, that too where only a key or tag is given that no memory has.
    """

    @cache
    def labels(name: str) -> dict[str, int]:
        return known_tags(reader, scope) if name == "tag" else _known_keys(reader, scope)

    def is_known(name: str, value: str) -> bool:
        if name == "topic":
            return bool(_topics(reader, scope, value))
        if name == "key":
            return keys.vocabulary_key(value) in labels(name)
        if name == "tag":
            return keys.tag_of(value) in labels(name)
        return bool(_called(reader, scope, value, places=name == "place"))

    try:
        return typed_filters.read(text, today, group_of=group_of, is_known=is_known)
    except UnreadFilter as exc:
        if exc.name in typed_filters.LABELS:
            exc.known = _suggested(labels(exc.name), exc.value)
        raise


def allowed(reader: Reader, scope: Scope, given: Filters, timezone: str) -> Allowed:
    places = Reach(owners=scope.owners, places=(), authors=())
    return Allowed(
        memory_ids=meeting(reader, scope, given, timezone),
        message_ids=frozenset(messages(reader, places, scope, given, timezone)),
    )


def meeting(reader: Reader, scope: Scope, given: Filters, timezone: str) -> frozenset[int]:
    sets = [_memories(reader, scope, condition, timezone) for condition in given.given]
    return frozenset.intersection(*sets) if sets else frozenset(_where(reader, scope, _KINDS))


def holding(reader: Reader, scope: Scope, given: Filters, timezone: str) -> frozenset[int]:
    """Returns the memories that meet every one of the filters and hold all their words, current or not."""
    met = meeting(reader, scope, given, timezone)
    terms = set(words.query_terms(given.words))
    if not terms:
        return met
    held = memories.by_ids(reader, scope, sorted(met))
    texts = {memory.id: f"{memory.key} {memory.value} {memory.subject} {memory.topic}" for memory in held}
    phrase = given.words.casefold()
    return frozenset(
        memory_id for memory_id, text in texts.items() if phrase in text.casefold() or terms <= set(words.tokens(text))
    )


def messages(reader: Reader, reach: Reach, scope: Scope, given: Filters, timezone: str) -> list[int]:
    """Returns the messages within reach that meet every one of the filters; a message has no labels."""
    if any(condition.name in ("category", "topic", *typed_filters.LABELS) for condition in given.given):
        return []
    message_ids: set[int] | None = None
    for one in given.given:
        if one.period is not None:
            meeting_it = within_reach(reader, reach, said=clock.moments(one.period.first, one.period.last, timezone))
        else:
            meeting_it = list(naming_texts(reader, reach, scope, [one.value])[one.value])
        message_ids = set(meeting_it) if message_ids is None else message_ids.intersection(meeting_it)
    return sorted(message_ids or (), reverse=True)


def naming_texts(reader: Reader, reach: Reach, scope: Scope, names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Returns the texts of the messages within reach in which each of these names stands, by name and id, newest first.

    All names are looked for in one reading of the messages: some are as frequent as words.
    """
    forms = {name: _forms(reader, scope, name) for name in names}
    spelled = _spellings(form for some in forms.values() for form in some)
    rows = sorted(_spelling(reader, reach, spelled), key=lambda row: -row["id"]) if names else []
    named: dict[str, dict[int, str]] = {name: {} for name in names}
    for row in rows:
        folded = row["text"].casefold()
        for name, some in forms.items():
            if any(form.casefold() in folded and entities.stands_in(form, row["text"]) for form in some):
                named[name][row["id"]] = row["text"]
    return named


def naming(reader: Reader, scope: Scope, name: str) -> Callable[[str], bool]:
    """Returns a predicate that is true for texts in which a name stands, in any of the spellings known here."""
    forms = _forms(reader, scope, name)
    return lambda text: any(entities.stands_in(form, text) for form in forms)


def names_in(given: Filters) -> list[str]:
    return [condition.value for condition in given.given if condition.name in _NAMING]


def _memories(reader: Reader, scope: Scope, condition: Filter, timezone: str) -> frozenset[int]:
    if condition.period is not None:
        first, last = clock.moments(condition.period.first, condition.period.last, timezone)
        return frozenset(_where(reader, scope, _KINDS, "m.learned_at >= ? and m.learned_at < ?", first, last))
    memory_ids: list[int] = []
    if condition.group is not None:
        category = condition.group.category
        memory_ids += _where(reader, scope, condition.group.kinds, "? in ('', m.category)", category)
    if condition.name == "topic":
        topics = _topics(reader, scope, condition.value)
        memory_ids += _where(reader, scope, _KINDS, "m.topic in (select value from json_each(?))", topics)
    elif condition.name in typed_filters.LABELS:
        memory_ids += _labelled(reader, scope, condition.name, condition.value)
    elif condition.name in _NAMING:
        memory_ids += _called(reader, scope, condition.value, places=condition.name == "place")
        is_named = naming(reader, scope, condition.value)
        spelled = _spellings(_forms(reader, scope, condition.value))
        held = memories.containing(reader, scope, spelled, limit=-1, besides=memory_ids)
        memory_ids += [memory.id for memory in held if is_named(f"{memory.value} {memory.subject}")]
    return frozenset(memory_ids)


@walled
def _where(
    reader: Reader, scope: Scope, kinds: Iterable[str], condition: str = "true", *parameters: Parameter
) -> list[int]:
    within = scope.predicate("m", by_id="m.id" in condition)
    return reader.ids(
        "select m.id from memories m where m.kind in (select value from json_each(?))"
        f" and {condition} and {within.sql}",
        (list(kinds), *parameters, *within.parameters),
    )


@walled
def _topics(reader: Reader, scope: Scope, topic: str) -> list[str]:
    within = scope.predicate("m")
    wanted = keys.normalise_value(topic)
    rows = reader.all(
        f"select distinct m.topic from memories m where m.topic <> '' and {within.sql}", within.parameters
    )
    return [row["topic"] for row in rows if wanted in (keys.normalise_value(row["topic"]), _spaced(row["topic"]))]


@walled
def known_tags(reader: Reader, scope: Scope) -> dict[str, int]:
    """Returns the speaker's own tags and the number of memories that have each."""
    within = scope.predicate("m")
    rows = reader.all(
        f"select m.tags from memories m where m.tags <> '[]' and {_TAGGED} and {within.sql} order by m.id desc",
        (scope.own, scope.speakers, *within.parameters),
    )
    return dict(Counter(tag for row in rows for tag in json.loads(row["tags"])))


@walled
def _known_keys(reader: Reader, scope: Scope) -> dict[str, int]:
    within = scope.predicate("m")
    rows = reader.all(
        "select m.key, count(*) as n, max(m.id) as newest from memories m"
        f" where m.kind in (select value from json_each(?)) and {within.sql} group by m.key order by newest desc",
        (_KINDS, *within.parameters),
    )
    counts = Counter[str]()
    for row in rows:
        counts[keys.vocabulary_key(row["key"])] += row["n"]
    return dict(counts)


def _labelled(reader: Reader, scope: Scope, name: str, value: str) -> list[int]:
    if name == "key":
        spellings = keys.key_spellings(value)
        return _where(reader, scope, _KINDS, "m.key in (select value from json_each(?))", spellings)
    quoted = json.dumps(keys.tag_of(value), ensure_ascii=False)
    return _where(reader, scope, _KINDS, f"instr(m.tags, ?) > 0 and {_TAGGED}", quoted, scope.own, scope.speakers)


def _suggested(labelled: dict[str, int], value: str) -> tuple[str, ...]:
    """Returns the labels that are most like a value, else those of the most memories."""

    def likeness(label: str) -> tuple[float, int]:
        ratio = SequenceMatcher(a=value.lower()[: keys.KEY_LIMIT], b=label, autojunk=False).ratio()
        return (-ratio if ratio > 0.5 else 0, -labelled[label])

    return tuple(sorted(labelled, key=likeness)[:_SUGGESTED])


def _spaced(topic: str) -> str:
    """Returns a topic as people type it: extraction writes "new-roof" for a new roof."""
    return keys.normalise_value(topic.replace("-", " "))


def _called(reader: Reader, scope: Scope, name: str, *, places: bool) -> list[int]:
    """Returns the memories linked with the entity called `name` here, as a place or as anything else."""
    known = [one for one in entities.called(reader, scope, name) if not places or one.type in _PLACES]
    linked = [memory_id for entity in known for memory_id in entity.memory_ids]
    if places:
        return _where(reader, scope, _KINDS, "m.id in (select value from json_each(?))", linked)
    about = _memories_about(reader, scope, name)
    wanted = keys.normalise_value(name)
    held = memories.containing(reader, scope, _spellings([name]), limit=-1)
    subjects = [memory.id for memory in held if keys.normalise_value(memory.subject) == wanted]
    return _where(reader, scope, _KINDS, "m.id in (select value from json_each(?))", [*linked, *about, *subjects])


def _forms(reader: Reader, scope: Scope, name: str) -> list[str]:
    """Returns the spellings under which a name stands in texts: as typed, as known here, and in the genitive."""
    known = [spelled for one in entities.called(reader, scope, name) for spelled in (one.name, *one.aliases)]
    forms = list(dict.fromkeys([name, *known]))
    # "Andreas" is no genitive if a person of that name is known.
    return [
        *forms,
        *(f"{form}{_GENITIVE}" for form in forms if not entities.called(reader, scope, f"{form}{_GENITIVE}")),
    ]


def _spellings(forms: Iterable[str]) -> list[str]:
    """Returns names in the cases in which they may stand in a text, for SQL, which folds only ASCII letters."""
    return list(dict.fromkeys(one for form in forms for one in (form, form.lower(), form.upper(), form.title())))


def _shortest(spellings: Sequence[str]) -> list[str]:
    """Returns the spellings to look for in texts and in texts in small letters: those that hold no other of them."""
    small = [one for one in spellings if not one.isascii() or one == one.lower()]
    return [one for one in small if not any(other != one and other in one for other in small)]


def within_reach(
    reader: Reader, reach: Reach, *, text: str | None = None, said: tuple[int, int] | None = None
) -> list[int]:
    """Returns the messages within reach, newest first.

    With `text`, only those that contain it in any case; with `said`, those from one time up to, not including, another.
    """
    narrowed, parameters = "", list[str | int]()
    if text is not None:
        narrowed, parameters = " and instr(lower(m.text), lower(?4)) > 0", [text]
    elif said is not None:
        narrowed, parameters = " and m.said_at >= ?4 and m.said_at < ?5", [*said]
    found = reader.ids(
        f"select m.id from messages m where m.erased_at is null{narrowed} and"
        " (m.owner_id in (select value from json_each(?1)) or m.owner_id in (select value from json_each(?2))"
        " and m.role = 'user' and m.author_id in (select value from json_each(?3)))",
        (*reach, *parameters),
    )
    return sorted(found, reverse=True)


def _spelling(reader: Reader, reach: Reach, spellings: Sequence[str]) -> list[Row]:
    """Returns the messages within reach that contain any of these spellings, as rows of id and text.

    The text holds the tool calls of a message, too.
    """
    return reader.all(
        "with told as materialized (select m.id, m.text || ' ' || coalesce(m.tool_calls, '') as text,"
        "   lower(m.text || ' ' || coalesce(m.tool_calls, '')) as small from messages m where m.erased_at is null and"
        "   (m.owner_id in (select value from json_each(?1)) or m.owner_id in (select value from json_each(?2))"
        "   and m.role = 'user' and m.author_id in (select value from json_each(?3))))"
        " select id, text from told where exists (select 1 from json_each(?4) s"
        "   where instr(text, s.value) > 0 or instr(small, s.value) > 0)",
        (*reach, _shortest(spellings)),
    )


@walled
def _memories_about(reader: Reader, scope: Scope, name: str) -> list[int]:
    within = scope.predicate("m")
    return reader.ids(
        "select m.id from memories m join identities i on i.id = m.subject_id"
        f" where lower(i.name) = lower(?) and {within.sql}",
        (name, *within.parameters),
    )
