"""Forgetting on request: what goes with the rows that were chosen, and its going.

Invariants: what is to go is worked out first, by reading, and the receipt counts just that; a message's words go only
where the one who asks may have them erased, others' are no more learned from; the bot's words, its tool calls and all
copies that quote what goes, go along; what was derived of a forgotten row goes, and what else that was made of comes
back; rows that others may point to stay, empty. Nothing here calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, TypeAlias

from memory import keys, profile
from memory.scope import Scope
from memory.store import erasure, history, memories, people, recalls
from memory.store.database import Reader, Transaction
from memory.store.memories import Memory
from memory.upkeep import choose
from memory.upkeep.choose import Asker, Selection, What

#: With the source messages' words, or without: these then stay in history, but nothing is learned from them.
How: TypeAlias = Literal["words", "memory"]

#: A text of so many characters is looked for in all that the bot said to this person; a shorter one only where its
#: memory is known to have been told. Half as many where a letter is a syllable or a word.
_TELLING: Final = 8
#: Texts that are looked for in that way: each costs a look at every answer.
_SOUGHT: Final = 100
#: Pages of the word index that are merged in one transaction: at most 40 ms (docs/memory.md).
_PAGES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes: `memories` that were chosen and their versions that say the same, what was `derived` of them.

    `restored` comes back. Of `messages` and `replies` the words go, or with how = "memory" nothing is learned from them
    any more, as from `others`, which somebody else has said. `staying` counts memories that lose a source and stay.
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


def plan(reader: Reader, asker: Asker, selection: Selection, how: How) -> Plan:
    """What forgetting `selection` comes to as things stand."""
    chosen = choose.chosen(reader, asker, selection)
    going = _with_same_words(reader, asker, chosen.memories)
    derived, restored = memories.made_of(reader, [memory.id for memory in going])
    sources = frozenset[int]().union(*memories.source_ids(reader, [memory.id for memory in going]).values())
    said = chosen.message_ids | sources
    theirs = choose.erasable(reader, asker, selection.what, sorted(said))
    if how == "memory":
        telling = history.replies_telling(reader, _told(reader, going), sources=said)
        messages, replies = said, telling | _not_by_people(reader, said)
    else:
        messages = theirs | _said_again(reader, asker, theirs)
        whole = selection.what in ("all", "me") or (selection.what == "here" and asker.scope.private)
        replies = _replies(reader, asker, going, messages, sought=not whole)
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
    )


def carry_out(tx: Transaction, asker: Asker, going: Plan, *, now: int, new_id: Callable[[], str]) -> tuple[Counts, str]:
    """Have all of it go; returns the receipt's figures and, as JSON of ids, what went."""
    blanked = (*going.messages, *going.replies)
    others = going.others
    if others:
        others = (*others, *history.replies_telling(tx, [], sources=others) - set(blanked))
    running: list[int] = []
    files = 0
    if going.how == "memory":
        history.unlearn(tx, blanked)
    else:
        history.unlearn(tx, others)
        needles = _spellings([memory.value for memory in going.memories] + _texts(tx, blanked))
        owners = sorted({memory.owner_id for memory in going.memories} | _owners(tx, blanked))
        files, running = blank(tx, blanked, now=now)
        _clear_mail(tx, asker, going, sessions_of(tx, owners, asker.selves), needles)
        _clear_summaries(tx, blanked, sessions_of(tx, owners, asker.selves), needles)
    _drop_memories(tx, asker.scope, going, now=now, new_id=new_id)
    identities = choose.identities(tx, asker) if going.what == "me" else []
    _clear_person(tx, identities)
    counts = Counts(
        memories=len(going.memories),
        derived=len(going.derived),
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
        "identities": identities,
    }
    return counts, json.dumps(what)


def gone(message_ids: Sequence[int], taught: Sequence[Memory]) -> str:
    """As JSON of ids: messages whose words went on a platform, and the memories that went with them."""
    return json.dumps(
        {
            "what": "memories", "how": "words", "memories": [memory.id for memory in taught],
            "messages": list(message_ids), "others": [], "running": [], "identities": [],
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
        blank(tx, there, now=now)
        history.unlearn(tx, told["others"])
        _clear_summaries(tx, there, [], [])
    else:
        history.unlearn(tx, there)
    held = tx.all(
        "select id from memories where created_at <= ? and id in (select value from json_each(?))",
        (erased_at, json.dumps(told["memories"])),
    )
    for memory in memories.of_ids(tx, [row["id"] for row in held]):
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=erased_at)
    memories.take_apart(tx, [row["id"] for row in held])
    _clear_person(tx, told["identities"])
    people.drop_snapshots(tx)


def finish(tx: Transaction, what: str, *, now: int) -> bool:
    """Have go what turns have brought that were under way when their words were erased; False as long as one is."""
    running = json.loads(what).get("running", [])
    if not running:
        return True
    these = json.dumps(running)
    if tx.one("select 1 from turns where state = 'running' and id in (select value from json_each(?))", (these,)):
        return False
    rows = tx.all(
        "select id from messages where role <> 'user' and erased_at is null"
        " and turn_id in (select value from json_each(?))",
        (these,),
    )
    blank(tx, [row["id"] for row in rows], now=now)
    _clear_turns(tx, running)
    return True


def blank(tx: Transaction, message_ids: Collection[int], *, now: int) -> tuple[int, list[int]]:
    """Have the words of messages go, with all that their turns kept of them; a turn that is under way keeps its steps.

    Returns how many files went, and the turns under way.
    """
    these = json.dumps(list(message_ids))
    row = tx.one("select count(*) as n from attachments where message_id in (select value from json_each(?))", (these,))
    assert row is not None
    history.erase(tx, list(message_ids), now=now)
    turns = tx.all(
        "select distinct turn_id from messages where turn_id is not null and id in (select value from json_each(?))",
        (these,),
    )
    return int(row["n"]), _clear_turns(tx, [turn["turn_id"] for turn in turns])


def clear_traffic(tx: Transaction, message_ids: Sequence[int], *, now: int) -> bool:
    """Of the turns of these messages only what people have seen stays: their words went, and tools were given them.

    Returns whether there was anything else.
    """
    turns = [
        row["turn_id"]
        for row in tx.all(
            "select distinct turn_id from messages where turn_id is not null"
            " and id in (select value from json_each(?))",
            (json.dumps(list(message_ids)),),
        )
    ]
    rows = tx.all(
        "select m.id from messages m join turns t on t.id = m.turn_id where m.role <> 'user' and t.state <> 'running'"
        " and (m.role = 'tool' and m.erased_at is null or m.tool_calls is not null)"
        " and m.turn_id in (select value from json_each(?))",
        (json.dumps(turns),),
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
    before = _changes(tx)
    tx.run("insert into words (words, rank) values ('merge', ?)", (-_PAGES if begin else _PAGES,))
    # The command counts as one change, and what it writes as others.
    return _changes(tx) - before < 2


def _changes(tx: Transaction) -> int:
    row = tx.one("select total_changes() as n")
    assert row is not None
    return int(row["n"])


def _with_same_words(reader: Reader, asker: Asker, found: Sequence[Memory]) -> list[Memory]:
    """These and those of their versions that say the same or less or more of it, or come from the same messages."""
    going = {memory.id: memory for memory in found}
    for memory in found:
        linked = [
            one
            for one in memories.versions(reader, asker.scope, memory)
            if one.id not in going and choose.may_change(one, asker.scope)
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


def _said_again(reader: Reader, asker: Asker, message_ids: frozenset[int]) -> frozenset[int]:
    """The person's other messages that say the very same, though nothing was learned from them."""
    rows = reader.all(
        "select again.id from messages said join messages again on again.author_id = said.author_id"
        " where said.id in (select value from json_each(?1)) and said.role = 'user' and length(said.text) >= ?2"
        " and again.role = 'user' and again.text = said.text and again.erased_at is null"
        " and said.author_id in (select value from json_each(?3))",
        (json.dumps(sorted(message_ids)), _TELLING, json.dumps(asker.selves)),
    )
    return frozenset(row["id"] for row in rows)


def _replies(
    reader: Reader, asker: Asker, going: Sequence[Memory], messages: frozenset[int], *, sought: bool
) -> frozenset[int]:
    """What the bot said in answer to these messages, and wherever it quotes them or what was learned of them."""
    quoting = set(history.replies_telling(reader, _told(reader, going), sources=messages))
    if sought and going:
        # The texts of memories first: these the bot is most likely to have repeated.
        values = [memory.value for memory in going]
        owners = {memory.owner_id for memory in going} | _owners(reader, messages)
        sessions = sessions_of(reader, sorted(owners), asker.selves)
        telling = [text for text in (*values, *_texts(reader, messages)) if _is_telling(text)][:_SOUGHT]
        quoting |= _quoting(reader, sessions, _spellings(telling))
        quoting |= _quoting_memories(reader, sessions, going)
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


def _quoting(reader: Reader, sessions: Sequence[int], needles: Sequence[str]) -> set[int]:
    rows = reader.all(
        "select m.id from messages m where m.session_id in (select value from json_each(?1)) and m.role <> 'user'"
        " and m.erased_at is null and exists (select 1 from json_each(?2) n"
        " where instr(lower(m.text || ' ' || ifnull(m.tool_calls, '')), n.value) > 0)",
        (json.dumps(list(sessions)), json.dumps(needles)),
    )
    return {row["id"] for row in rows}


def _quoting_memories(reader: Reader, sessions: Sequence[int], going: Sequence[Memory]) -> set[int]:
    """What tools brought with a memory's own id, or were given with it."""
    return _quoting(reader, sessions, [memory.short_id.lower() for memory in going])


def _is_telling(text: str) -> bool:
    return len(text) >= (_TELLING if text.isascii() else _TELLING // 2)


def _spellings(texts: Iterable[str]) -> list[str]:
    """Texts as they may stand in a text, in JSON, and in JSON that stands in JSON; in lower case."""
    found: dict[str, None] = {}
    for text in texts:
        for ascii_only in (False, True):
            once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            for spelled in (text, once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]):
                if spelled.strip():
                    found[_lower(spelled)] = None
    return list(found)


def _lower(text: str) -> str:
    """As SQLite's `lower`: the 26 letters only."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def _texts(reader: Reader, message_ids: Collection[int]) -> list[str]:
    rows = reader.all(
        "select text from messages where id in (select value from json_each(?)) and length(text) >= ?",
        (json.dumps(sorted(message_ids)), _TELLING // 2),
    )
    return [row["text"] for row in rows]


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
        " union select m.session_id from messages m join owners o on o.identity_id = m.author_id"
        " join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id and c.kind = 'private'"
        " where o.id in (select value from json_each(?1))",
        (json.dumps(list(owners)), json.dumps(list(identities))),
    )
    return [row["id"] for row in rows]


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


def _clear_mail(tx: Transaction, asker: Asker, going: Plan, session_ids: Sequence[int], needles: Sequence[str]) -> None:
    """What has no turn: messages that failed before they had one, and what the bot has still to show."""
    sessions, texts = json.dumps(list(session_ids)), json.dumps(needles)
    whole, partly = _whole_sessions(tx, asker, going), _partly(tx, asker, going)
    selves = json.dumps(_selves(tx, asker, going))
    failed = tx.all(
        "select i.id from inbox i join sessions s on s.key = i.session_key"
        " where i.state in ('failed', 'dead') and i.payload <> '' and (s.id in (select value from json_each(?3))"
        " or s.id in (select value from json_each(?1)) and exists (select 1 from json_each(?2) n"
        "   where instr(lower(i.payload), n.value) > 0)"
        # Of a group only what they said themselves.
        " or json_valid(i.payload) and s.id in (select value from json_each(?4))"
        "   and i.payload ->> '$.author_id' in (select user_id from identities p where p.platform = i.platform"
        "     and p.id in (select value from json_each(?5))))",
        (sessions, texts, json.dumps(whole), json.dumps(partly), selves),
    )
    these = json.dumps([row["id"] for row in failed])
    tx.run("update inbox set payload = '' where id in (select value from json_each(?))", (these,))
    tx.run(
        "delete from attachments where message_id is null and inbox_id in (select value from json_each(?))", (these,)
    )
    tx.run(
        "delete from outbox where turn_id is null and state <> 'sent' and session_key in"
        " (select key from sessions where id in (select value from json_each(?1)))"
        " and (session_key in (select key from sessions where id in (select value from json_each(?3)))"
        " or exists (select 1 from json_each(?2) n"
        "   where instr(lower(text || ' ' || markup || ' ' || buttons || ' ' || file_name), n.value) > 0))",
        (sessions, texts, json.dumps(whole)),
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


def _clear_summaries(
    tx: Transaction, message_ids: Collection[int], session_ids: Sequence[int], needles: Sequence[str]
) -> None:
    """Summaries and tasks of sessions whose words went, for they are made of them; and any others that quote them."""
    tx.run(
        "update sessions set summary = null, active_task = null where (summary is not null or active_task is not null)"
        " and (id in (select session_id from messages where id in (select value from json_each(?1)))"
        " or id in (select value from json_each(?2)) and exists (select 1 from json_each(?3) n"
        "   where instr(lower(ifnull(summary, '') || ' ' || ifnull(active_task, '')), n.value) > 0))",
        (json.dumps(sorted(message_ids)), json.dumps(list(session_ids)), json.dumps(needles)),
    )


def _drop_memories(tx: Transaction, scope: Scope, going: Plan, *, now: int, new_id: Callable[[], str]) -> None:
    for memory in going.memories:
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    doomed = [*going.memories, *going.derived]
    # What would bring a job's rows back would bring these back, too.
    tx.run(
        "update job_items set undo = null where undo is not null and owner_id in (select value from json_each(?))",
        (json.dumps(sorted({memory.owner_id for memory in doomed})),),
    )
    needles = _spellings(memory.value for memory in doomed if _is_telling(memory.value))
    tx.run(
        "update job_runs set result = '{}' where exists (select 1 from json_each(?) n"
        " where instr(lower(result), n.value) > 0)",
        (json.dumps(needles),),
    )
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
    tx.run("delete from questions where asker_id in (select value from json_each(?)) and state <> 'answered'", these)
    tx.run("delete from link_codes where identity_id in (select value from json_each(?))", these)
    tx.run("delete from link_tries where identity_id in (select value from json_each(?))", these)
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
