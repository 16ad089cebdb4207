"""A person's last turn: what it is about, its messages answered once more as they stand, or all of it taken back.

Invariants: when it is answered anew its answer goes, and what the messages have taught stays: read a second time they
say nothing a second time; when it is taken back so is what they alone have taught, and what that had replaced holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.keys import normalise_value
from memory.scope import Scope
from memory.store import erasure, history, mailbox, memories, questions, recalls
from memory.store.database import Reader, Row, Transaction
from memory.store.memories import Memory
from memory.store.people import Session
from memory.upkeep import blank, erase

#: Memories that are offered when somebody says "that".
_OFFERED: Final = 5
#: Kinds of memories that people change themselves.
_TOLD: Final = ("fact", "style", "event", "reflection")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHand:
    """What "that" may mean: what was `learned` from the person's last messages, what the answer `quoted` of what is

    remembered, and their last turn; None: they have said nothing in this window.
    """

    learned: tuple[Memory, ...] = ()
    quoted: tuple[Memory, ...] = ()
    turn_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A turn that was taken back: when the person had said it (milliseconds UTC), and the memories that went."""

    said_at: int
    memories: tuple[Memory, ...]


def last_said(reader: Reader, session: Session, scope: Scope) -> list[Row]:
    """The messages of the newest turn of the window in which the one who speaks here said something, in order.

    Rows of id, turn_id, role, text and said_at; those whose words are erased are left out.
    """
    speakers = json.dumps([scope.speaker_id, *scope.selves])
    return reader.all(
        "select id, turn_id, role, text, said_at from messages where erased_at is null and turn_id = ("
        "   select m.turn_id from messages m join turns t on t.id = m.turn_id"
        "   where m.session_id = ?1 and m.id > ?2 and m.role = 'user' and m.erased_at is null"
        "   and t.state <> 'running' and m.author_id in (select value from json_each(?3)) order by m.id desc limit 1)"
        " order by id",
        (session.id, session.window_after, speakers),
    )


def at_hand(reader: Reader, session: Session, scope: Scope) -> AtHand:
    """What was learned from the person's last messages, and what the answer to them says of what is remembered."""
    found = last_said(reader, session, scope)
    if not found:
        return AtHand()
    learned = reader.all(
        "select distinct memory_id from memory_sources where message_id in (select value from json_each(?))",
        (json.dumps([row["id"] for row in found if row["role"] == "user"]),),
    )
    answer = normalise_value(" ".join(row["text"] for row in found if row["role"] == "assistant"))
    entered = [entry.item_id for entry in recalls.of_turn(reader, found[0]["turn_id"]) if entry.item == "memory"]
    quoted = [m for m in memories.by_ids(reader, scope, entered) if normalise_value(m.value) in answer]
    return AtHand(
        learned=_offered(memories.by_ids(reader, scope, [row["memory_id"] for row in learned])),
        quoted=_offered(quoted),
        turn_id=found[0]["turn_id"],
    )


def _offered(found: Sequence[Memory]) -> tuple[Memory, ...]:
    return tuple([memory for memory in found if memory.live and memory.kind in _TOLD][:_OFFERED])


def again(
    tx: Transaction, session: Session, scope: Scope, inbox_id: int, *, failed: int | None = None, now: int
) -> int | None:
    """Put the messages of the last turn into a new one, which the inbox row waits for; None when there are none.

    With `failed` only if that is the last turn, and has brought no answer.
    """
    found = last_said(tx, session, scope)
    said = [row["id"] for row in found if row["role"] == "user"]
    if not said or (failed is not None and not _has_failed(tx, failed, found)):
        return None
    # With what of them is still to be shown.
    blank.blank(tx, [row["id"] for row in found if row["role"] != "user"], now=now)
    for table in ("steps", "effects"):
        tx.run(f"delete from {table} where turn_id = ?", (found[0]["turn_id"],))
    turn_id = history.begin_turn(tx, session, now=now)
    tx.run("update messages set turn_id = ? where id in (select value from json_each(?))", (turn_id, json.dumps(said)))
    mailbox.claim(tx, [inbox_id], turn_id)
    return turn_id


def _has_failed(reader: Reader, turn_id: int, last: Sequence[Row]) -> bool:
    failed = reader.one("select 1 from turns where id = ? and state = 'failed'", (turn_id,)) is not None
    return failed and last[0]["turn_id"] == turn_id


def undo(
    tx: Transaction,
    session: Session,
    scope: Scope,
    *,
    turn_id: int | None = None,
    now: int,
    new_id: Callable[[], str],
) -> Undone | None:
    """Take the last turn back, as if it had never been said; None when there is none, or it is not `turn_id`.

    What the person has pinned, or has confirmed since, stands by their word.
    """
    found = last_said(tx, session, scope)
    said = [row["id"] for row in found if row["role"] == "user"]
    if not said or turn_id not in (None, found[0]["turn_id"]):
        return None
    taught = [
        memory
        for memory in memories.resting_on(tx, said)
        # What was told to be kept is confirmed from the start.
        if not memory.pinned and (memory.origin == "told" or not memory.confirmed)
    ]
    erase.unlearn_replies(tx, taught, sources=said)
    for memory in taught:
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    memories.retract(tx, [memory.id for memory in taught])
    ids = [row["id"] for row in found]
    blank.blank(tx, ids, now=now)
    questions.withdraw(tx, found[0]["turn_id"])
    erasure.record(tx, None, erase.gone(ids, taught), "{}", now=now)
    erase.show_change(tx, scope, taught, now=now, new_id=new_id)
    return Undone(said_at=found[0]["said_at"], memories=tuple(taught))
