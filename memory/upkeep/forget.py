"""Forgetting on request: what goes with the rows that were chosen, worked out by reading.

Invariants: nothing is changed here, and the receipt counts just what is planned here; a message's words go only where
the one who asks may have them erased, others' are no more learned from; the bot's words, its tool calls and all copies
that quote what goes, go along; what was derived of a forgotten row goes, and what else that was made of comes back;
an event that a forgotten row was made of goes with the last of its own words, and is not read again while it stays.
Nothing here calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from memory import keys
from memory.store import history, memories, recalls
from memory.store.database import Reader, Row
from memory.store.memories import Memory
from memory.upkeep import choose
from memory.upkeep.choose import Asker, Selection, What
from memory.upkeep.quotes import Quotes, is_telling

#: With the source messages' words, or without: these then stay in history, but nothing is learned from them.
How: TypeAlias = Literal["words", "memory"]

#: Answers that are read at a time when they are looked through.
_READ: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The bot's messages in `sessions`, up to one, that hold one of `quotes`: a later look reads what came since."""

    quotes: Quotes = field(default_factory=lambda: Quotes(()))
    sessions: frozenset[int] = frozenset()
    upto: int = 0
    quoting: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes: `memories` that were chosen and their versions that say the same, what was `derived` of them.

    `restored` comes back. Of `messages` and `replies` the words go, or with how = "memory" nothing is learned from them
    any more, as from `others`, which somebody else has said, or whose words went by their age. `staying` counts
    memories that lose a source and stay. `looked` tells which answers quote what goes.
    """

    what: What
    how: How
    memories: tuple[Memory, ...]
    derived: tuple[Memory, ...]
    restored: tuple[Memory, ...]
    messages: tuple[int, ...]
    replies: tuple[int, ...]
    others: tuple[int, ...]
    staying: int
    skipped: int
    looked: Looked

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.messages or self.replies)


def plan(reader: Reader, asker: Asker, selection: Selection, how: How, *, looked: Looked | None = None) -> Plan:
    """What forgetting `selection` comes to as things stand; `looked` is what an earlier plan of the same has found."""
    chosen = choose.chosen(reader, asker, selection)
    # Where all goes, all versions are among it.
    every = selection.what in ("all", "me")
    going = chosen.memories if every else _with_parts(reader, _with_same_words(reader, asker, chosen.memories))
    derived, restored = memories.made_of(reader, [memory.id for memory in going])
    sources = frozenset[int]().union(*memories.source_ids(reader, [memory.id for memory in going]).values())
    said = chosen.message_ids | sources
    theirs = choose.erasable(reader, asker, selection.what, sorted(said))
    looked = looked or Looked()
    if how == "memory":
        telling = history.replies_telling(reader, with_turns(reader, going), sources=said)
        messages, replies = said, telling | _not_by_people(reader, said)
    else:
        whole = is_whole(asker, selection.what)
        messages = theirs if whole else theirs | _said_again(reader, asker, theirs)
        if not whole:
            if events := _left_without_words(reader, asker, going, messages):
                going = [*going, *events]
                derived, restored = memories.made_of(reader, [memory.id for memory in going])
            looked = _look(reader, asker, [*going, *derived], messages, looked)
        replies = _replies(reader, going, messages, looked)
    replies = _with_words(reader, replies | _not_by_people(reader, messages))
    messages = _with_words(reader, messages) - replies
    return Plan(
        what=selection.what,
        how=how,
        memories=tuple(going),
        derived=tuple(derived),
        restored=tuple(restored),
        messages=tuple(sorted(messages)),
        replies=tuple(sorted(replies)),
        others=tuple(sorted((said - theirs if how == "words" else frozenset()) | _gone_by_age(reader, said))),
        staying=_losing_a_source(reader, messages, {memory.id for memory in (*going, *derived)})
        if how == "words"
        else 0,
        skipped=chosen.skipped,
        looked=looked,
    )


def is_whole(asker: Asker, what: What) -> bool:
    """Whether all of a place or person goes: then nothing of it need be looked for."""
    return what in ("all", "me") or (what == "here" and asker.scope.private)


def with_turns(reader: Reader, going: Sequence[Memory]) -> list[tuple[str, list[int]]]:
    """The values of these memories, each with the turns that it was recalled in."""
    return [(memory.value, recalls.turns_with(reader, memory.id)) for memory in going]


def telling_texts(reader: Reader, going: Sequence[Memory], message_ids: Collection[int]) -> frozenset[str]:
    """What tells of these memories and messages. Tools bring a memory with its own id, or are given it with that."""
    said = [*(memory.value for memory in going), *_texts(reader, message_ids)]
    return frozenset([*(text for text in said if is_telling(text)), *(memory.short_id for memory in going)])


def owners_of(reader: Reader, message_ids: Collection[int]) -> set[int]:
    """Whose these messages are."""
    rows = reader.all(
        "select distinct owner_id from messages where owner_id is not null and id in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)),),
    )
    return {row["owner_id"] for row in rows}


def sessions_of(reader: Reader, owners: Sequence[int], identities: Sequence[int]) -> list[int]:
    """The sessions in which something of these owners is told: groups', and these people's private ones."""
    rows = reader.all(
        "select s.id from sessions s join owners o on o.chat_id = s.chat_id"
        " where o.id in (select value from json_each(?1))"
        " union select m.session_id from messages m join sessions s on s.id = m.session_id"
        " join chats c on c.id = s.chat_id and c.kind = 'private'"
        " where m.author_id in (select value from json_each(?2))"
        # Where nobody has said anything yet, the bot may have.
        " union select s.id from chats c join sessions s on s.chat_id = c.id where c.kind = 'private'"
        " and (c.identity_id in (select value from json_each(?2)) or c.identity_id in"
        "   (select identity_id from owners where id in (select value from json_each(?1))))"
        " union select m.session_id from messages m join owners o on o.identity_id = m.author_id"
        " join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id and c.kind = 'private'"
        " where o.id in (select value from json_each(?1))",
        (json.dumps(list(owners)), json.dumps(list(identities))),
    )
    return [row["id"] for row in rows]


def _with_parts(reader: Reader, chosen: Sequence[Memory]) -> list[Memory]:
    """Merged memories together with what they were merged from, where no part of it was chosen by itself."""
    ids = {memory.id for memory in chosen}
    parts = memories.parts_of(reader, sorted(ids))
    whole = {part for some in parts.values() if ids.isdisjoint(some) for part in some}
    return [*chosen, *memories.of_ids(reader, sorted(whole))]


def _with_same_words(reader: Reader, asker: Asker, found: Sequence[Memory]) -> list[Memory]:
    """These and those of their versions that say the same or less or more of it, or come from the same messages."""
    going = {memory.id: memory for memory in found}
    may_erase = choose.may_erase(reader, asker)
    for memory in found:
        linked = [
            one for one in memories.versions(reader, asker.scope, memory) if one.id not in going and may_erase(one)
        ]
        if not linked:
            continue
        sources = memories.source_ids(reader, [memory.id, *(one.id for one in linked)])
        value = keys.normalise_value(memory.value)
        for one in linked:
            other = keys.normalise_value(one.value)
            alone = sources[one.id] and sources[one.id] <= sources[memory.id]
            if other in value or value in other or alone:
                going[one.id] = one
    return list(going.values())


def _left_without_words(
    reader: Reader, asker: Asker, going: Sequence[Memory], messages: Collection[int]
) -> list[Memory]:
    """The events these were made of whose own words all go with `messages`: they would tell the same."""
    may_erase = choose.may_erase(reader, asker)
    ids = {memory.id for memory in going}
    behind = {
        event.id
        for memory in going
        if memory.origin == "derived"
        for event in memories.parents(reader, asker.scope, memory.id)
        if event.kind == "event" and event.id not in ids and may_erase(event)
    }
    return [event for event in memories.resting_on(reader, sorted(messages)) if event.id in behind] if behind else []


def _said_again(reader: Reader, asker: Asker, message_ids: frozenset[int]) -> frozenset[int]:
    """The person's other messages here that say the very same, though nothing was learned from them."""
    telling = [text for text in _texts(reader, message_ids, by=asker.selves) if is_telling(text)]
    rows = reader.all(
        "select id from messages where author_id in (select value from json_each(?1)) and role = 'user'"
        " and erased_at is null and owner_id in (select value from json_each(?2))"
        " and text in (select value from json_each(?3))",
        (json.dumps(asker.selves), json.dumps(asker.scope.owners), json.dumps(telling)),
    )
    return frozenset(row["id"] for row in rows)


def _look(reader: Reader, asker: Asker, going: Sequence[Memory], messages: frozenset[int], before: Looked) -> Looked:
    """Look for quotes through what the bot said where this is told, but for what was found `before`."""
    owners = {memory.owner_id for memory in going} | owners_of(reader, messages)
    sessions = frozenset(sessions_of(reader, sorted(owners), asker.selves))
    texts = telling_texts(reader, going, messages)
    if (before.quotes.texts, before.sessions) != (texts, sessions):
        before = Looked(quotes=Quotes(texts))
    quoting = {
        row["id"]
        for row in _answers(reader, asker, going, sessions, after=before.upto)
        if before.quotes.stand_in(f"{row['text']} {row['tool_calls'] or ''}")
    }
    newest = reader.one("select ifnull(max(id), 0) as id from messages")
    assert newest is not None
    return Looked(quotes=before.quotes, sessions=sessions, upto=newest["id"], quoting=before.quoting | quoting)


def _answers(
    reader: Reader, asker: Asker, going: Sequence[Memory], sessions: Collection[int], *, after: int
) -> Iterator[Row]:
    """What the bot said in these sessions: in a group to this person, or where a memory that goes was at hand.

    Else anybody could have answers to others erased, by having a common phrase remembered and forgotten.
    """
    governed, selves = json.dumps(choose.governed(reader, asker)), json.dumps(asker.selves)
    given = json.dumps(sorted({turn for memory in going for turn in recalls.turns_with(reader, memory.id)}))
    for session_id in sessions:
        last = after
        while rows := reader.all(
            "select m.id, m.text, m.tool_calls from messages m join sessions s on s.id = m.session_id"
            " join chats c on c.id = s.chat_id where m.session_id = ?1 and m.id > ?2 and m.role <> 'user'"
            " and m.erased_at is null and (c.kind = 'private' or m.owner_id in (select value from json_each(?3))"
            " or m.turn_id in (select value from json_each(?4)) or exists (select 1 from messages asked"
            "   where asked.turn_id = m.turn_id and asked.role = 'user'"
            "   and asked.author_id in (select value from json_each(?5)))) order by m.id limit ?6",
            (session_id, last, governed, given, selves, _READ),
        ):
            yield from rows
            last = rows[-1]["id"]


def _replies(reader: Reader, going: Sequence[Memory], messages: frozenset[int], looked: Looked) -> frozenset[int]:
    """What the bot said in answer to these messages, and wherever it quotes them or what was learned of them."""
    quoting = looked.quoting | history.replies_telling(reader, with_turns(reader, going), sources=messages)
    turns = reader.all(
        "select distinct turn_id from messages where turn_id is not null and id in (select value from json_each(?))",
        (json.dumps(sorted(quoting)),),
    )
    # A tool's call, its result and the answer made of them go together: a half of it is of no use to anybody.
    rows = reader.all(
        "select m.id from messages m where m.role <> 'user' and m.turn_id in (select value from json_each(?))"
        " and exists (select 1 from messages t where t.turn_id = m.turn_id and t.tool_calls is not null)",
        (json.dumps([row["turn_id"] for row in turns]),),
    )
    return frozenset(quoting | {row["id"] for row in rows})


def _texts(reader: Reader, message_ids: Collection[int], *, by: Sequence[int] | None = None) -> list[str]:
    """What was said in these messages, with `by` only what these identities said."""
    rows = reader.all(
        "select distinct text from messages where id in (select value from json_each(?1)) and text <> ''"
        " and (?2 is null or author_id in (select value from json_each(?2)))",
        (json.dumps(sorted(message_ids)), None if by is None else json.dumps(list(by))),
    )
    return [row["text"] for row in rows]


def _not_by_people(reader: Reader, message_ids: Collection[int]) -> frozenset[int]:
    rows = reader.all(
        "select id from messages where role <> 'user' and id in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)),),
    )
    return frozenset(row["id"] for row in rows)


def _with_words(reader: Reader, message_ids: Collection[int]) -> frozenset[int]:
    """Those whose words are still there."""
    rows = reader.all(
        "select id from messages where erased_at is null and id in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)),),
    )
    return frozenset(row["id"] for row in rows)


def _gone_by_age(reader: Reader, message_ids: Collection[int]) -> frozenset[int]:
    """Those whose words are gone though nobody has wished that nothing be learned from them."""
    rows = reader.all(
        "select id from messages where erased_at is not null and learn = 1 and id in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)),),
    )
    return frozenset(row["id"] for row in rows)


def _losing_a_source(reader: Reader, message_ids: Collection[int], going: Collection[int]) -> int:
    row = reader.one(
        "select count(distinct memory_id) as n from memory_sources where message_id in (select value from json_each(?))"
        " and memory_id not in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)), json.dumps(sorted(going))),
    )
    assert row is not None
    return int(row["n"])
