"""Undoes an import: takes out its memories and messages batch by batch, and the names that nothing else brought.

Invariants: what an import wrote is known by its number, so taking it out leaves things as if the import had never been.
What it replaced holds again. What was learned from its words alone goes, unless somebody confirmed or pinned it since.
Its words don't pass for words erased on request. Of the import itself only its figures stay.
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
    """Blanks the messages and removes what was learned from them alone, unless it was confirmed or pinned since.

    Returns how many memories went.
    """
    history.erase(tx, message_ids, now=now)
    # They lose their owner. Otherwise they would pass for words erased on request, which no import brings back.
    history.disown(tx, message_ids)
    taught = [one for one in lineage.resting_on(tx, message_ids) if not (one.confirmed or one.pinned)]
    memories.retract(tx, [one.id for one in taught])
    erase.show_change(tx, home.scope, taught, now=now, new_id=new_id)
    return len(taught)


def close(tx: Transaction, one: Import, home: Home, *, now: int, new_id: Callable[[], str]) -> None:
    """Closes an import of which nothing is left but its figures."""
    ingest.refresh(tx, home, now=now, new_id=new_id)
    # Anybody whose name goes is named again when next seen.
    people.unname_imported(tx, one.id, home.identity_id, first=one.started_at, last=one.ended_at or now)
    chats.untitle_imported(tx, one.id, home.chat_id)
    erasure.note_reworded(tx, now=now)
    imports.undone(tx, one.id, now=now)
