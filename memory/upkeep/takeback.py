"""An import taken back: its memories and messages go, batch by batch, and the names that nothing else has brought.

Invariants: what an import wrote is known by its number, so that taking it out leaves things as if it had never been:
what it had replaced holds again, what was learned from its words alone goes, unless somebody stood by it since; words
that it brought do not pass for words erased on request; of the import itself only its figures stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from memory.store import erasure, history, memories
from memory.store.database import Reader, Transaction
from memory.upkeep import erase, transfer
from memory.upkeep.imports import Home, Import


def some_memories(reader: Reader, import_id: int, *, limit: int) -> list[int]:
    """Ids of memories that an import brought and that are still there."""
    rows = reader.all("select id from memories where import_id = ? order by id desc limit ?", (import_id, limit))
    return [row["id"] for row in rows]


def some_messages(reader: Reader, import_id: int, *, limit: int) -> list[int]:
    """Ids of messages that an import brought and whose words are still there."""
    rows = reader.all(
        "select id from messages where import_id = ? and erased_at is null order by id limit ?", (import_id, limit)
    )
    return [row["id"] for row in rows]


def take_out_memories(tx: Transaction, memory_ids: Sequence[int]) -> int:
    """Remove these, with what was derived of them; what they had replaced holds again. Returns how many went."""
    memories.retract(tx, memory_ids)
    return len(memory_ids)


def take_out_messages(
    tx: Transaction, home: Home, message_ids: Sequence[int], *, now: int, new_id: Callable[[], str]
) -> int:
    """Blank these words, and remove what was learned from them alone, unless somebody stood by it since.

    Returns how many memories went.
    """
    history.erase(tx, message_ids, now=now)
    # Nobody's, or they would pass for words that were erased on request, which no import brings back.
    tx.run(
        "update messages set owner_id = null, author_name = '', platform_ref = null"
        " where id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    taught = [one for one in memories.resting_on(tx, message_ids) if not (one.confirmed or one.pinned)]
    memories.retract(tx, [one.id for one in taught])
    erase.show_change(tx, home.scope, taught, now=now, new_id=new_id)
    return len(taught)


def close(tx: Transaction, one: Import, home: Home, *, now: int, new_id: Callable[[], str]) -> None:
    """Nothing of the import is left but its figures."""
    transfer.refresh(tx, home, now=now, new_id=new_id)
    _unname(tx, one, home, now=now)
    erasure.note_reworded(tx, now=now)
    tx.run("update imports set state = 'undone', digest = '', ended_at = ? where id = ?", (now, one.id))


def _unname(tx: Transaction, one: Import, home: Home, *, now: int) -> None:
    """Blank the names of people, and the group's title, that nothing but an import has brought.

    Somebody met here has said something, is known of, has a private chat or was seen a second time; or else is named
    again when next seen.
    """
    tx.run(
        "update identities set name = '' where name <> '' and last_seen_at = first_seen_at"
        " and (id = ?1 or first_seen_at between ?3 and ?4"
        "   or id in (select author_id from messages where import_id = ?2))"
        " and not exists (select 1 from messages m where m.author_id = identities.id"
        "   and (m.import_id is null or m.erased_at is null))"
        " and id not in (select author_id from memories where author_id is not null"
        "   union all select subject_id from memories where subject_id is not null"
        "   union all select identity_id from chats where identity_id is not null)"
        " and not exists (select 1 from identities other"
        "   where other.person_id = identities.person_id and other.id <> identities.id)",
        (home.identity_id, one.id, one.started_at, one.ended_at or now),
    )
    tx.run(
        "update chats set title = '' where id = ?1 and not exists (select 1 from sessions s"
        "   left join messages m on m.session_id = s.id and (m.import_id is null or m.erased_at is null)"
        "   left join inbox i on i.session_key = s.key"
        "   where s.chat_id = chats.id and coalesce(m.id, i.id) is not null)"
        " and not exists (select 1 from owners o left join memories held on held.owner_id = o.id"
        "   left join imports other on other.owner_id = o.id and other.id <> ?2 and other.state <> 'undone'"
        "   where o.chat_id = chats.id and coalesce(held.id, other.id) is not null)",
        (home.chat_id, one.id),
    )
