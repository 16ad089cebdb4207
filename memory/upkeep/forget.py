"""Forgetting on request: what goes with the rows that were chosen, and its going.

Invariants: what is to go is worked out first, by reading, and the receipt counts just that; a message's words go only
where the one who asks may have them erased, others' are no more learned from; the bot's words, its tool calls and all
copies that quote what goes, go along; what was derived of a forgotten row goes, and what else that was made of comes
back; rows that others may point to stay, empty. Nothing here calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, TypeAlias

from memory import keys, profile
from memory.scope import Scope
from memory.store import erasure, history, mailbox, memories, people, recalls
from memory.store.database import Reader, Row, Transaction
from memory.store.memories import Memory
from memory.upkeep import choose
from memory.upkeep.choose import Asker, Selection, What
from memory.upkeep.quotes import Quotes, is_telling

#: With the source messages' words, or without: these then stay in history, but nothing is learned from them.
How: TypeAlias = Literal["words", "memory"]

#: Messages whose words go in one transaction, at some 20 µs each; the others are out of everybody's sight by then.
_AT_ONCE: Final = 5_000
#: Stored as the error of a message that was erased before anybody answered it.
_ERASED: Final = "erased"
#: Answers that are read at a time when they are looked through.
_READ: Final = 5_000
#: Pages of the word index that are merged in one transaction: at most 40 ms (docs/memory.md).
_PAGES: Final = 200
#: A row of the word index that no document has, there while it is merged a second time.
_STIRRING: Final = -1


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
    any more, as from `others`, which somebody else has said. `staying` counts memories that lose a source and stay.
    `looked` tells which answers quote what goes.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What went. `keep_source` are memories that stay though a source of theirs is erased."""

    memories: int = 0
    derived: int = 0
    restored: int = 0
    messages: int = 0
    replies: int = 0
    files: int = 0
    keep_source: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """By what the answers of turns that were under way are known to tell what went; held in memory alone.

    `texts` are looked for everywhere, `values` in turns that were given a memory that went.
    """

    texts: Quotes
    values: Quotes


def plan(reader: Reader, asker: Asker, selection: Selection, how: How, *, looked: Looked | None = None) -> Plan:
    """What forgetting `selection` comes to as things stand; `looked` is what an earlier plan of the same has found."""
    chosen = choose.chosen(reader, asker, selection)
    # Where all goes, all versions are among it.
    every = selection.what in ("all", "me")
    going = chosen.memories if every else _with_same_words(reader, asker, chosen.memories)
    derived, restored = memories.made_of(reader, [memory.id for memory in going])
    sources = frozenset[int]().union(*memories.source_ids(reader, [memory.id for memory in going]).values())
    said = chosen.message_ids | sources
    theirs = choose.erasable(reader, asker, selection.what, sorted(said))
    looked = looked or Looked()
    if how == "memory":
        telling = history.replies_telling(reader, _told(reader, going), sources=said)
        messages, replies = said, telling | _not_by_people(reader, said)
    else:
        whole = _is_whole(asker, selection.what)
        messages = theirs if whole else theirs | _said_again(reader, asker, theirs)
        if not whole:
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
        others=tuple(sorted(said - theirs)) if how == "words" else (),
        staying=_losing_a_source(reader, messages, {memory.id for memory in (*going, *derived)})
        if how == "words"
        else 0,
        skipped=chosen.skipped,
        looked=looked,
    )


def carry_out(
    tx: Transaction, asker: Asker, going: Plan, *, now: int, new_id: Callable[[], str]
) -> tuple[Counts, str, Sought | None]:
    """Have all of it go; returns the receipt's figures, as JSON of ids what went, and what `finish` has to look for."""
    blanked = (*going.messages, *going.replies)
    others = going.others
    if others:
        others = (*others, *history.replies_telling(tx, [], sources=others) - set(blanked))
    owners = sorted({memory.owner_id for memory in going.memories} | _owners(tx, blanked))
    under_way = _under_way(tx, sessions_of(tx, owners, choose.identities(tx, asker)))
    sought = _sought(tx, going) if under_way else None
    running: list[int] = []
    files = 0
    if going.how == "memory":
        history.unlearn(tx, blanked)
    else:
        history.unlearn(tx, others)
        sessions = sessions_of(tx, owners, asker.selves)
        quotes = going.looked.quotes
        if _is_whole(asker, going.what):
            quotes = Quotes(_telling(tx, [*going.memories, *going.derived], []))
        _clear_mail(tx, asker, going, sessions, quotes, now=now)
        _clear_summaries(tx, blanked, _quoted_in_summaries(tx, sessions, quotes, going.memories))
        running, files = running_turns(tx, blanked), _files(tx, blanked)
        history.hide(tx, blanked[_AT_ONCE:], now=now)
        blank(tx, blanked[:_AT_ONCE], now=now)
    _drop_memories(tx, asker.scope, going, now=now, new_id=new_id)
    identities = choose.identities(tx, asker) if going.what == "me" else []
    _clear_person(tx, identities)
    # As in the preview: a profile is made of the others.
    told = sum(memory.kind not in ("profile", "directive") for memory in going.memories)
    counts = Counts(
        memories=told,
        derived=len(going.derived) + len(going.memories) - told,
        restored=len(going.restored),
        messages=len(going.messages) if going.how == "words" else 0,
        replies=len(going.replies) if going.how == "words" else 0,
        files=files,
        keep_source=going.staying,
    )
    what = {
        "what": going.what,
        "how": going.how,
        "memories": [memory.id for memory in (*going.memories, *going.derived)],
        "messages": list(blanked),
        "others": list(others),
        "running": running,
        "beside": sorted(under_way - set(running)),
        "identities": identities,
    }
    return counts, json.dumps(what), sought


def rest(what: str) -> Iterator[list[int]]:
    """The messages that `carry_out` has only put out of sight, in portions for `blank_hidden`."""
    told = json.loads(what)
    messages = told.get("messages", []) if told.get("how") == "words" else []
    for start in range(_AT_ONCE, len(messages), _AT_ONCE):
        yield messages[start : start + _AT_ONCE]


def blank_hidden(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Have the words go of those of these messages that are out of sight. A second time it changes nothing."""
    rows = tx.all(
        "select id from messages where erased_at is not null and id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    blank(tx, [row["id"] for row in rows], now=now)


def gone(
    message_ids: Sequence[int],
    taught: Sequence[Memory],
    *,
    what: Literal["memories", "edited"] = "memories",
    traffic: Sequence[int] = (),
) -> str:
    """As JSON of ids: messages whose words went on a platform, and the memories that went with them.

    Where it was "edited", others have taken the place of these words, and may teach the same again. `traffic` are turns
    that are under way, and whose steps are to go when they end.
    """
    return json.dumps(
        {
            "what": what, "how": "words", "memories": [memory.id for memory in taught],
            "messages": list(message_ids), "others": [], "running": [], "traffic": list(traffic), "identities": [],
        }
    )  # fmt: skip


def replay(tx: Transaction, what: str, *, erased_at: int, now: int) -> None:
    """Do what `what`, as `carry_out` gave it, tells of once more: to a store put back as it was before.

    Rows made after `erased_at` (milliseconds UTC) are others that have got the same ids since, and are left alone.
    """
    told = json.loads(what)
    if not told:
        return
    there = [
        row["id"]
        for row in tx.all(
            "select id from messages where recorded_at <= ? and id in (select value from json_each(?))",
            (erased_at, json.dumps(told["messages"])),
        )
    ]
    if told["how"] == "words":
        clear_traffic(tx, there, now=now)
        blank(tx, there, now=now)
        history.unlearn(tx, told["others"])
        _clear_summaries(tx, there, [])
    else:
        history.unlearn(tx, there)
    held = tx.all(
        "select id from memories where created_at <= ? and id in (select value from json_each(?))",
        (erased_at, json.dumps(told["memories"])),
    )
    for memory in memories.of_ids(tx, [row["id"] for row in held]) if told.get("what") != "edited" else ():
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=erased_at)
    memories.take_apart(tx, [row["id"] for row in held])
    _clear_person(tx, told["identities"])
    people.drop_snapshots(tx)


def finish(tx: Transaction, what: str, *, sought: Sought | None, now: int) -> bool:
    """Have go what turns have brought that were under way when something was erased; False as long as one is.

    Of turns whose own words went all goes, of others beside these what tells of what went: what is `sought`. Where that
    is not known any more, for the process has ended since, all of theirs goes.
    """
    told = json.loads(what)
    running, beside, traffic = (told.get(name, []) for name in ("running", "beside", "traffic"))
    if not (running or beside or traffic):
        return True
    these = json.dumps([*running, *beside, *traffic])
    if tx.one("select 1 from turns where state = 'running' and id in (select value from json_each(?))", (these,)):
        return False
    _clear_traffic(tx, traffic, now=now)
    telling = beside if sought is None else _telling_turns(tx, beside, told["memories"], sought)
    rows = tx.all(
        "select id from messages where role <> 'user' and erased_at is null"
        " and turn_id in (select value from json_each(?))",
        (json.dumps([*running, *telling]),),
    )
    if told["how"] == "memory":
        history.unlearn(tx, [row["id"] for row in rows])
        return True
    blank(tx, [row["id"] for row in rows], now=now)
    _clear_turns(tx, [*running, *telling])
    return True


def _sought(reader: Reader, going: Plan) -> Sought:
    said = (*going.messages, *going.replies) if going.how == "words" else ()
    told = (*going.memories, *going.derived)
    return Sought(texts=Quotes(_telling(reader, told, said)), values=Quotes(memory.value for memory in told))


def _telling_turns(reader: Reader, turn_ids: Sequence[int], memory_ids: Sequence[int], sought: Sought) -> list[int]:
    """The turns of which anything, shown or not, tells what is sought."""
    rows = reader.all(
        "with told (turn_id, text) as ("
        " select turn_id, text || ' ' || ifnull(tool_calls, '') from messages where role <> 'user'"
        "   and turn_id in (select value from json_each(?1))"
        " union all select turn_id, completion from steps where turn_id in (select value from json_each(?1))"
        " union all select turn_id, ifnull(result, '') from effects where turn_id in (select value from json_each(?1))"
        " union all select turn_id, text || ' ' || markup || ' ' || buttons || ' ' || file_name from outbox"
        "   where turn_id in (select value from json_each(?1)))"
        " select turn_id, text, exists (select 1 from recalls r where r.turn_id = t.turn_id and r.item = 'memory'"
        "   and r.item_id in (select value from json_each(?2))) as given from told t",
        (json.dumps(list(turn_ids)), json.dumps(list(memory_ids))),
    )
    telling = {
        row["turn_id"]
        for row in rows
        if sought.texts.stand_in(row["text"]) or (row["given"] and sought.values.stand_in(row["text"]))
    }
    return sorted(telling)


def blank(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Have the words of messages go, with all that their turns kept of them. A turn under way keeps its steps."""
    history.erase(tx, message_ids, now=now)
    _clear_turns(tx, _turns_of(tx, message_ids))


def clear_traffic(tx: Transaction, message_ids: Sequence[int], *, now: int) -> bool:
    """Of the turns of these messages only what people have seen stays: their words went, and tools were given them.

    Returns whether there was anything else.
    """
    return _clear_traffic(tx, _turns_of(tx, message_ids), now=now)


def running_turns(reader: Reader, message_ids: Sequence[int]) -> list[int]:
    """Those of the turns of these messages that are under way."""
    rows = reader.all(
        "select id from turns where state = 'running' and id in (select value from json_each(?))",
        (json.dumps(_turns_of(reader, message_ids)),),
    )
    return [row["id"] for row in rows]


def _turns_of(reader: Reader, message_ids: Sequence[int]) -> list[int]:
    rows = reader.all(
        "select distinct turn_id from messages where turn_id is not null and id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    return [row["turn_id"] for row in rows]


def _clear_traffic(tx: Transaction, turns: Sequence[int], *, now: int) -> bool:
    rows = tx.all(
        "select m.id from messages m join turns t on t.id = m.turn_id where m.role <> 'user' and t.state <> 'running'"
        " and (m.role = 'tool' and m.erased_at is null or m.tool_calls is not null)"
        " and m.turn_id in (select value from json_each(?))",
        (json.dumps(list(turns)),),
    )
    history.erase(tx, [row["id"] for row in rows], now=now)
    return _clear_steps(tx, turns) or bool(rows)


def show_change(
    tx: Transaction, scope: Scope, changed: Sequence[Memory], *, now: int, new_id: Callable[[], str]
) -> None:
    """A correction or a forget shows at once: in the profile, and in every prompt's snapshot."""
    slots = {
        (memory.owner_id, slot)
        for memory in changed
        if memory.kind == "fact"
        and memory.owner_id in scope.own
        and (slot := keys.profile_slot(category=memory.category, key=memory.key)) is not None
    }
    for owner_id, slot in sorted(slots):
        profile.refresh(tx, scope, owner_id, slot, now=now, new_id=new_id)
    authors = {memory.author_id for memory in changed if memory.author_id is not None}
    if changed:
        people.drop_snapshots_of(tx, {memory.owner_id for memory in changed}, authors)


def unlearn_replies(tx: Transaction, told: Sequence[Memory], *, sources: Collection[int]) -> None:
    """What the bot answered to `sources`, or said of these memories elsewhere, is not learned from or found again."""
    history.unlearn(tx, history.replies_telling(tx, _told(tx, told), sources=sources))


def merge_words(tx: Transaction, *, begin: bool) -> bool:
    """Bring the word index a step nearer to one piece, in which nothing of removed rows is left; whether it is one.

    An index of which a row is removed keeps its words, and a note that they are void, until both meet in a merge:
    https://sqlite.org/fts5.html#the_merge_command, where a negative number of pages has all pieces merged.
    """
    if tx.one("select 1 from sqlite_schema where name = 'words'") is None:
        return True
    if begin:
        tx.run("delete from words where rowid = ?", (_STIRRING,))
    before = changes(tx)
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES if begin else _PAGES,))
    # The command counts as one change, and what it writes as others.
    if changes(tx) - before >= 2:
        return False
    if tx.one("select 1 from words where rowid = ?", (_STIRRING,)) is not None:
        tx.run("delete from words where rowid = ?", (_STIRRING,))
        return True
    # Pieces of one level are merged into the next, and if an index had more levels once, the notes are kept: a piece
    # older than these might be there. Merged with a smaller one of another level they go, and the words in them, too.
    if _is_tiny(tx):
        tx.run("insert into words (words) values ('rebuild')")
        return True
    tx.run("insert into words (rowid, scope, tokens) values (?, '', 'x')", (_STIRRING,))
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES,))
    return False


def _is_tiny(tx: Transaction) -> bool:
    """Whether the word index is a page, than which none is smaller. The first ten rows are not of pieces."""
    row = tx.one("select count(*) as n from words_data where id > 10")
    assert row is not None
    return int(row["n"]) < 2


def changes(tx: Transaction) -> int:
    """How many rows were written since the store was opened."""
    row = tx.one("select total_changes() as n")
    assert row is not None
    return int(row["n"])


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


def _told(reader: Reader, going: Sequence[Memory]) -> list[tuple[str, list[int]]]:
    return [(memory.value, recalls.turns_with(reader, memory.id)) for memory in going]


def _is_whole(asker: Asker, what: What) -> bool:
    """Whether all of a place or person goes: then nothing of it need be looked for."""
    return what in ("all", "me") or (what == "here" and asker.scope.private)


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


def _telling(reader: Reader, going: Sequence[Memory], message_ids: Collection[int]) -> frozenset[str]:
    """What tells of these memories and messages. Tools bring a memory with its own id, or are given it with that."""
    said = [*(memory.value for memory in going), *_texts(reader, message_ids)]
    return frozenset([*(text for text in said if is_telling(text)), *(memory.short_id for memory in going)])


def _look(reader: Reader, asker: Asker, going: Sequence[Memory], messages: frozenset[int], before: Looked) -> Looked:
    """Look for quotes through what the bot said where this is told, but for what was found `before`."""
    owners = {memory.owner_id for memory in going} | _owners(reader, messages)
    sessions = frozenset(sessions_of(reader, sorted(owners), asker.selves))
    texts = _telling(reader, going, messages)
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
    quoting = looked.quoting | history.replies_telling(reader, _told(reader, going), sources=messages)
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


def _files(reader: Reader, message_ids: Sequence[int]) -> int:
    row = reader.one(
        "select count(*) as n from attachments where message_id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    assert row is not None
    return int(row["n"])


def _owners(reader: Reader, message_ids: Collection[int]) -> set[int]:
    rows = reader.all(
        "select distinct owner_id from messages where owner_id is not null and id in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)),),
    )
    return {row["owner_id"] for row in rows}


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


def _losing_a_source(reader: Reader, message_ids: Collection[int], going: Collection[int]) -> int:
    row = reader.one(
        "select count(distinct memory_id) as n from memory_sources where message_id in (select value from json_each(?))"
        " and memory_id not in (select value from json_each(?))",
        (json.dumps(sorted(message_ids)), json.dumps(sorted(going))),
    )
    assert row is not None
    return int(row["n"])


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


def _under_way(reader: Reader, sessions: Sequence[int]) -> set[int]:
    """The turns that run in these sessions: what they were given may hold what goes now."""
    rows = reader.all(
        "select id from turns where state = 'running' and session_id in (select value from json_each(?))",
        (json.dumps(list(sessions)),),
    )
    return {row["id"] for row in rows}


def _clear_turns(tx: Transaction, turn_ids: Sequence[int]) -> list[int]:
    """Drop what turns that have ended kept beside history, and what they have still to show; returns the others."""
    these = json.dumps(list(turn_ids))
    running = tx.all(
        "select id from turns where state = 'running' and id in (select value from json_each(?))", (these,)
    )
    ended = json.dumps(sorted(set(turn_ids) - {row["id"] for row in running}))
    tx.run("delete from outbox where state <> 'sent' and turn_id in (select value from json_each(?))", (ended,))
    tx.run(
        "update outbox set text = '', markup = '', buttons = '', ticket = '', file_name = '', file = null"
        " where turn_id in (select value from json_each(?)) and (text <> '' or file is not null)",
        (ended,),
    )
    _clear_steps(tx, turn_ids)
    return [row["id"] for row in running]


def _clear_steps(tx: Transaction, turn_ids: Sequence[int]) -> bool:
    """Drop the model's steps and the tools' results of turns that have ended; whether there were any."""
    ended = (json.dumps(list(turn_ids)),)
    steps = tx.all(
        "delete from steps where turn_id in (select id from turns where state <> 'running'"
        " and id in (select value from json_each(?))) returning turn_id",
        ended,
    )
    effects = tx.all(
        "delete from effects where turn_id in (select id from turns where state <> 'running'"
        " and id in (select value from json_each(?))) returning turn_id",
        ended,
    )
    return bool(steps or effects)


def _clear_mail(
    tx: Transaction, asker: Asker, going: Plan, session_ids: Sequence[int], quotes: Quotes, *, now: int
) -> None:
    """What has no turn: messages that failed before one or wait to be asked for, and what the bot has still to show.

    Of a group they go only where the person said them themselves, unless they may have all of it erased.
    """
    whole, partly = set(_whole_sessions(tx, asker, going)), set(_partly(tx, asker, going))
    ended = [
        row["id"]
        for row in _unanswered(tx, {*session_ids, *whole, *partly}, _selves(tx, asker, going))
        if row["session_id"] in whole
        or (row["own"] and row["session_id"] in partly)
        or (
            (row["own"] or row["private"] or (asker.may_all and row["chat_id"] == asker.session.chat_id))
            and quotes.stand_in(f"{row['text']} {row['files']}", whole_words=True)
        )
    ]
    mailbox.answered(tx, ended, error=_ERASED, now=now)
    mailbox.blank(tx, ended)
    unsent = tx.all(
        "select o.id, s.id as session_id, o.text || ' ' || o.markup || ' ' || o.buttons || ' ' || o.file_name as text,"
        " o.file from outbox o join sessions s on s.key = o.session_key where o.turn_id is null and o.state <> 'sent'"
        " and s.id in (select value from json_each(?))",
        (json.dumps([*session_ids, *whole]),),
    )
    for row in unsent:
        shown = f"{row['text']} {(row['file'] or b'').decode(errors='ignore')}"
        if row["session_id"] in whole or quotes.stand_in(shown, whole_words=True):
            tx.run("delete from outbox where id = ?", (row["id"],))


def _unanswered(reader: Reader, session_ids: Collection[int], selves: Sequence[int]) -> list[Row]:
    """The messages of these sessions that never came to a turn, with their files, and whether these identities' own."""
    return reader.all(
        "select i.id, s.id as session_id, s.chat_id, c.kind = 'private' as private,"
        " ifnull(iif(json_valid(i.payload), i.payload ->> '$.text', i.payload), '') as text,"
        " ifnull((select group_concat(a.name || ' ' || a.text, ' ') from attachments a where a.inbox_id = i.id"
        "   and a.message_id is null), '') as files,"
        " exists (select 1 from identities p where p.platform = i.platform and p.id in"
        "   (select value from json_each(?2)) and p.user_id = iif(json_valid(i.payload),"
        "   i.payload ->> '$.author_id', '')) as own"
        " from inbox i join sessions s on s.key = i.session_key join chats c on c.id = s.chat_id"
        " where s.id in (select value from json_each(?1)) and i.payload <> ''"
        " and (i.state in ('failed', 'dead') or (i.state = 'pending' and i.held = 1))",
        (json.dumps(list(session_ids)), json.dumps(list(selves))),
    )


def _whole_sessions(reader: Reader, asker: Asker, going: Plan) -> list[int]:
    """The sessions of which nothing is to stay."""
    if going.what == "here":
        return [asker.session.id] if asker.scope.private or asker.may_all else []
    if going.what == "all" and not asker.scope.private:
        return _of_chat(reader, asker) if asker.may_all else []
    if going.what in ("all", "me"):
        return sessions_of(reader, [], _selves(reader, asker, going))
    return []


def _partly(reader: Reader, asker: Asker, going: Plan) -> list[int]:
    """The sessions of which nothing that they said themselves is to stay."""
    match going.what:
        case "here":
            return [asker.session.id]
        case "all":
            return _of_chat(reader, asker)
        case "me":
            return [row["id"] for row in reader.all("select id from sessions")]
        case _:
            return []


def _of_chat(reader: Reader, asker: Asker) -> list[int]:
    rows = reader.all("select id from sessions where chat_id = ?", (asker.session.chat_id,))
    return [row["id"] for row in rows]


def _selves(reader: Reader, asker: Asker, going: Plan) -> Sequence[int]:
    return choose.identities(reader, asker) if going.what == "me" else asker.selves


def _clear_summaries(tx: Transaction, message_ids: Collection[int], quoting: Collection[int]) -> None:
    """Summaries and tasks of sessions whose words went, for they are made of them; and of those that quote them."""
    tx.run(
        "update sessions set summary = null, active_task = null where (summary is not null or active_task is not null)"
        " and (id in (select session_id from messages where id in (select value from json_each(?1)))"
        " or id in (select value from json_each(?2)))",
        (json.dumps(sorted(message_ids)), json.dumps(list(quoting))),
    )


def _quoted_in_summaries(
    reader: Reader, session_ids: Sequence[int], quotes: Quotes, going: Sequence[Memory]
) -> list[int]:
    """The sessions whose summary or task quotes what goes, or holds a value that does, however short."""
    values = Quotes(memory.value for memory in going)
    rows = reader.all(
        "select id, ifnull(summary, '') || ' ' || ifnull(active_task, '') as text from sessions"
        " where (summary is not null or active_task is not null) and id in (select value from json_each(?))",
        (json.dumps(list(session_ids)),),
    )
    return [row["id"] for row in rows if quotes.stand_in(row["text"]) or values.stand_in(row["text"], whole_words=True)]


def _drop_memories(tx: Transaction, scope: Scope, going: Plan, *, now: int, new_id: Callable[[], str]) -> None:
    for memory in going.memories:
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    doomed = [*going.memories, *going.derived]
    # What would bring a job's rows back would bring these back, too.
    tx.run(
        "update job_items set undo = null where undo is not null and owner_id in (select value from json_each(?))",
        (json.dumps(sorted({memory.owner_id for memory in doomed})),),
    )
    quotes = Quotes(memory.value for memory in doomed if is_telling(memory.value))
    for row in tx.all("select id, result from job_runs where result <> '{}'"):
        if quotes.stand_in(row["result"]):
            tx.run("update job_runs set result = '{}' where id = ?", (row["id"],))
    memories.take_apart(tx, [memory.id for memory in going.memories])
    show_change(tx, scope, [*doomed, *going.restored], now=now, new_id=new_id)


def _clear_person(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """What is left of people beside what they said and what is known of them: names, questions, codes, looks, links."""
    if not identity_ids:
        return
    these = (json.dumps(list(identity_ids)),)
    private = json.dumps(sessions_of(tx, [], identity_ids))
    tx.run("update messages set author_name = '' where author_id in (select value from json_each(?))", these)
    tx.run("update identities set name = '' where id in (select value from json_each(?))", these)
    # The very request that this is done for is open still, and says who makes it.
    tx.run(
        "update inbox set payload = json_set(payload, '$.author_name', '') where state <> 'done'"
        " and json_valid(payload) and payload ->> '$.author_id' in (select user_id from identities p"
        "   where p.platform = inbox.platform"
        "   and p.id in (select value from json_each(?)))",
        these,
    )
    tx.run("delete from questions where asker_id in (select value from json_each(?)) and state <> 'answered'", these)
    # Wrong codes stay counted, or erasing all would buy another three guesses.
    tx.run("delete from link_codes where identity_id in (select value from json_each(?))", these)
    tx.run(
        "delete from looks where owner_id in (select id from owners"
        " where identity_id in (select value from json_each(?)))",
        these,
    )
    tx.run(
        "delete from entities where owner_id in (select id from owners"
        " where identity_id in (select value from json_each(?)))",
        these,
    )
    tx.run(
        "delete from recalls where turn_id in (select id from turns where session_id in"
        " (select value from json_each(?)))",
        (private,),
    )
    tx.run(
        "update sessions set summary = null, active_task = null, snapshot = null, snapshot_at = null"
        " where id in (select value from json_each(?))",
        (private,),
    )
    tx.run(
        "update chats set title = '' where kind = 'private' and id in"
        " (select chat_id from sessions where id in (select value from json_each(?)))",
        (private,),
    )
    for identity_id in identity_ids:
        people.begin_anew(tx, identity_id)
