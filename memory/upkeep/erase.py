"""A forget carried out: memories, words and all copies of them go; done once more in a store put back; how it is noted.

Invariants: what goes is what was planned, by ids; what is noted of it holds ids and figures, never text; most words are
only put out of sight at once, and blanked in portions after; nothing of a group goes that who asks may not have erased;
rows that others may point to stay, empty. Nothing here calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from memory import keys, profile
from memory.scope import Scope
from memory.store import erasure, history, mailbox, memories, people
from memory.store.database import Reader, Row, Transaction
from memory.store.memories import Memory
from memory.upkeep import choose, forget
from memory.upkeep.blank import Sought, blank, clear_traffic, running_turns, sought_of, under_way
from memory.upkeep.choose import Asker
from memory.upkeep.forget import Plan, sessions_of
from memory.upkeep.quotes import Quotes

#: Messages whose words go in one transaction, at some 20 µs each; the others are out of everybody's sight by then.
_AT_ONCE: Final = 5_000
#: Stored as the error of a message that was erased before anybody answered it.
_ERASED: Final = "erased"


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


def carry_out(
    tx: Transaction, asker: Asker, going: Plan, *, now: int, new_id: Callable[[], str]
) -> tuple[Counts, str, Sought | None]:
    """Have all of it go; returns the receipt's figures, as JSON of ids what went, and what `blank.finish` looks for."""
    blanked = (*going.messages, *going.replies)
    others = going.others
    if others:
        others = (*others, *history.replies_telling(tx, [], sources=others) - set(blanked))
    owners = sorted({memory.owner_id for memory in going.memories} | forget.owners_of(tx, blanked))
    turns = under_way(tx, sessions_of(tx, owners, choose.identities(tx, asker)))
    sought = sought_of(tx, going) if turns else None
    running: list[int] = []
    files = 0
    if going.how == "memory":
        history.unlearn(tx, (*blanked, *others))
    else:
        history.unlearn(tx, others)
        sessions = sessions_of(tx, owners, asker.selves)
        quotes = going.looked.quotes
        if forget.is_whole(asker, going.what):
            quotes = Quotes(forget.telling_texts(tx, [*going.memories, *going.derived], []))
        _clear_mail(tx, asker, going, sessions, quotes, now=now)
        _clear_summaries(tx, blanked, _quoted_in_summaries(tx, sessions, quotes, going.memories))
        running, files = running_turns(tx, blanked), _files(tx, blanked)
        history.hide(tx, blanked[_AT_ONCE:], now=now)
        blank(tx, blanked[:_AT_ONCE], now=now)
    _drop_memories(tx, asker.scope, going, now=now, new_id=new_id)
    identities = choose.identities(tx, asker) if going.what == "me" else []
    _clear_person(tx, identities)
    # As in the preview: a profile is made of the others.
    told = sum(not memory.follows for memory in going.memories)
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
        "derived": [memory.id for memory in going.derived],
        "messages": list(blanked),
        "others": list(others),
        "running": running,
        "beside": sorted(turns - set(running)),
        "identities": identities,
    }
    return counts, json.dumps(what), sought


def rest(what: str) -> Iterator[list[int]]:
    """The messages that `carry_out` has only put out of sight, in portions for `blank.blank_hidden`."""
    told = json.loads(what)
    messages = told.get("messages", []) if told.get("how") == "words" else []
    for start in range(_AT_ONCE, len(messages), _AT_ONCE):
        yield messages[start : start + _AT_ONCE]


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
        history.unlearn(tx, (*there, *told["others"]))
    held = tx.all(
        "select id from memories where created_at <= ? and id in (select value from json_each(?))",
        (erased_at, json.dumps(told["memories"])),
    )
    for memory in memories.of_ids(tx, [row["id"] for row in held]) if told.get("what") != "edited" else ():
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=erased_at)
    ids = [row["id"] for row in held]
    derived = told.get("derived", told["memories"])
    memories.take_apart(tx, ids, forgotten=set(ids).difference(derived))
    _clear_person(tx, told["identities"])
    people.drop_snapshots(tx)


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
    history.unlearn(tx, history.replies_telling(tx, forget.with_turns(tx, told), sources=sources))


def _files(reader: Reader, message_ids: Sequence[int]) -> int:
    row = reader.one(
        "select count(*) as n from attachments where message_id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    assert row is not None
    return int(row["n"])


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
    ids = [memory.id for memory in going.memories]
    memories.take_apart(tx, ids, forgotten=ids)
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
