"""Undoes an import: removes its memories and messages batch by batch, and the names that came from it alone.

Invariants: an import's rows carry its number, so removing them leaves the store as if the import had never been.
Memories that it replaced hold again. Memories learned from its words alone go, unless a person confirmed or pinned them
since. Its words don't count as words erased on request. Only the figures of the import itself stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory.forgetting import erase
from memory.store import chats, erasure, history, imports, lineage, memories, people
from memory.store.database import Transaction
from memory.store.imports import Import
from memory.transfer import ingest
from memory.transfer.homes import Home


def take_out_messages(
    tx: Transaction, home: Home, message_ids: Sequence[int], *, now: int, new_id: Callable[[], str]
) -> int:
    """Blanks the messages and removes memories learned from them alone, unless they were confirmed or pinned since.

    Returns the number of removed memories.
    """
    history.erase(tx, message_ids, now=now)
    # They lose their owner. Otherwise they would count as words erased on request, which no import brings back.
    history.disown(tx, message_ids)
    taught = [one for one in lineage.resting_on(tx, message_ids) if not (one.confirmed or one.pinned)]
    memories.retract(tx, [one.id for one in taught])
    erase.show_change(tx, home.scope, taught, now=now, new_id=new_id)
    return len(taught)


def close(tx: Transaction, one: Import, home: Home, *, now: int, new_id: Callable[[], str]) -> None:
    """Closes an import, of which only the figures are left."""
    ingest.refresh(tx, home, now=now, new_id=new_id)
    # People whose names are removed are named again when next seen.
    people.unname_imported(tx, one.id, home.identity_id, first=one.started_at, last=one.ended_at or now)
    chats.untitle_imported(tx, one.id, home.chat_id)
    erasure.note_reworded(tx, now=now)
    imports.undone(tx, one.id, now=now)
