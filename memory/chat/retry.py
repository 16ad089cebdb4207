"""A person's last turn: the memories that it concerns, answering its messages again, and undoing it.

Invariants: when a turn is answered again, its answer goes, and the memories from its messages stay: read a second time
the messages teach nothing new. When it is undone, the memories from them alone go as well, and the facts that these had
replaced or made unsure hold again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.forgetting import blank_messages, erase
from memory.keys import normalise_value
from memory.learn import keep, retract
from memory.mailbox import inbox
from memory.scope import Scope
from memory.store import history, lineage, memories, questions, recalls, word_columns
from memory.store.chats import Session
from memory.store.database import Reader, Row, Transaction
from memory.store.memories import Memory

#: The most memories offered when a person says "that".
_OFFERED: Final = 5
#: Kinds of memories that people change themselves.
_TOLD: Final = ("fact", "style", "event", "reflection")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHand:
    """The memories and the turn that "that" may mean.

    `learned` are memories from the person's last messages, `quoted` those that the answer quotes, `turn_id` is their
    last turn; None if they have said nothing in this window. `said` are their messages in it.
    """

    learned: tuple[Memory, ...] = ()
    quoted: tuple[Memory, ...] = ()
    turn_id: int | None = None
    said: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneTurn:
    """A turn that was undone: the time when the person had said it (milliseconds UTC), and the memories that went.

    `again` are the facts that the turn had ended, or made unsure, and that hold again.
    """

    said_at: int
    memories: tuple[Memory, ...]
    again: tuple[Memory, ...] = ()


def last_said(reader: Reader, session: Session, scope: Scope) -> list[Row]:
    """Returns the messages of the newest turn in the window in which the speaker said something, in order.

    Rows of id, turn_id, role, text and said_at; messages whose words are erased are left out.
    """
    return history.last_exchange(reader, session.id, after=session.window_after, authors=scope.speakers)


def at_hand(reader: Reader, session: Session, scope: Scope) -> AtHand:
    found = last_said(reader, session, scope)
    if not found:
        return AtHand()
    said = tuple(row["id"] for row in found if row["role"] == "user")
    learned = lineage.taught_by(reader, scope, said)
    answer = normalise_value(" ".join(row["text"] for row in found if row["role"] == "assistant"))
    entered = [entry.item_id for entry in recalls.of_turn(reader, found[0]["turn_id"]) if entry.item == "memory"]
    quoted = [m for m in memories.by_ids(reader, scope, entered) if normalise_value(m.value) in answer]
    return AtHand(learned=_offered(learned), quoted=_offered(quoted), turn_id=found[0]["turn_id"], said=said)


def _offered(found: Sequence[Memory]) -> tuple[Memory, ...]:
    return tuple([memory for memory in found if memory.live and memory.kind in _TOLD][:_OFFERED])


def again(
    tx: Transaction, session: Session, scope: Scope, inbox_id: int, *, failed: int | None = None, now: int
) -> int | None:
    """Moves the messages of the last turn into a new turn, which the inbox row waits for; None if there are none.

    With `failed`, only if that is the last turn and has brought no answer.
    """
    found = last_said(tx, session, scope)
    said = [row["id"] for row in found if row["role"] == "user"]
    if not said:
        return None
    if failed is not None and not (history.has_failed(tx, failed) and found[0]["turn_id"] == failed):
        return None
    # Blanking also removes the part of the answer that is still to be shown.
    blank_messages.blank(tx, [row["id"] for row in found if row["role"] != "user"], now=now)
    history.drop_steps(tx, [found[0]["turn_id"]])
    turn_id, *_ = history.begin_turn(tx, session, now=now)
    history.move(tx, said, turn_id)
    inbox.claim(tx, [inbox_id], turn_id)
    return turn_id


def undo(
    tx: Transaction,
    session: Session,
    scope: Scope,
    *,
    turn_id: int | None = None,
    timezone: str,
    now: int,
    new_id: Callable[[], str],
) -> UndoneTurn | None:
    """Undoes the last turn, as if it had never been said; None if there is none, or if it is not `turn_id`.

    Memories that the person has pinned, or has confirmed since, are kept on their word.
    """
    found = last_said(tx, session, scope)
    said = [row["id"] for row in found if row["role"] == "user"]
    if not said or turn_id not in (None, found[0]["turn_id"]):
        return None
    taught = [
        memory
        for memory in lineage.resting_on(tx, said)
        # A memory that the person told the bot to keep is confirmed from the start.
        if not memory.pinned and (memory.origin == "told" or not memory.confirmed)
    ]
    erase.unlearn_replies(tx, taught, sources=said)
    for memory in taught:
        word_columns.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    memories.retract(tx, [memory.id for memory in taught])
    # Facts that a turn's words ended, ended at the time of the last of these words.
    again = memories.reopen(tx, scope, at=max(row["said_at"] for row in found if row["role"] == "user"))
    messages = history.messages_of_turn(tx, found[0]["turn_id"])
    lifted = retract.lift(tx, scope, messages, timezone=timezone, now=now, new_id=new_id)
    again = list({memory.id: memory for memory in (*again, *lifted)}.values())
    told = memories.untell(tx, said, erased=True)
    keep.settle(tx, scope, [*taught, *told], now=now, new_id=new_id)
    ids = [row["id"] for row in found]
    word_columns.note_said(tx, ids, now=now)
    blank_messages.blank(tx, ids, now=now)
    questions.withdraw(tx, found[0]["turn_id"])
    word_columns.record(tx, None, erase.gone(ids, taught), "{}", now=now)
    erase.show_change(tx, scope, [*taught, *again], now=now, new_id=new_id)
    return UndoneTurn(
        said_at=found[0]["said_at"],
        memories=tuple(taught),
        again=tuple(memory for memory in again if memory.kind == "fact"),
    )
