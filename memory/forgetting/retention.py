"""Removes expired data: words said long ago, if they are kept for a limited time only, and old records.

Invariants: words go in short transactions, each of which notes that the files are to be scrubbed of them; the data that
their turns kept goes with them. Memories learned from them stay and say "source erased". Nothing more is learned from
the words, but night jobs still process the memories learned. A running turn keeps its words. If it is stopped at any
point, the next run finds the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from memory.forgetting import blanking
from memory.mailbox import inbox, outbox
from memory.recall import index
from memory.store import chats, erasure, history
from memory.store.database import Database, Reader, Transaction

#: Message ids that one read looks through, in some 20 ms.
_LOOKED_AT: Final = 20_000
#: Messages blanked in one transaction: the word index takes up to 1 ms to overwrite its entries of one.
_TOGETHER: Final = 100


async def erase_words(database: Database, *, before: int, now: int) -> int:
    """Blanks messages of people and the bot said before a time (milliseconds UTC), in the indexes, too.

    Returns the number of these messages. Raises `StorageError` and its subclasses; committed parts stay erased.
    """
    gone = 0
    # A message committed meanwhile under a lower id is found the next time, which begins from the first id again.
    newest = await database.read(history.newest_id)
    for start in range(0, newest, _LOOKED_AT):
        old = await database.read(partial(said_before, before=before, after=start))
        for first in range(0, len(old), _TOGETHER):
            some = old[first : first + _TOGETHER]
            await database.write(partial(_blank, message_ids=some, now=now))
            await index.keep_up(database)
            gone += len(some)
    await database.write(partial(_clear_beside, before=before, now=now))
    return gone


def said_before(reader: Reader, *, before: int, after: int) -> list[int]:
    """Returns the next messages after the id `after` that have expired. Messages of running turns are left out."""
    return reader.ids(
        "select m.id from messages m where m.id > ? and m.id <= ? and m.said_at < ? and m.erased_at is null"
        " and not exists (select 1 from turns t where t.id = m.turn_id and t.state = 'running') order by m.id",
        (after, after + _LOOKED_AT, before),
    )


def _blank(tx: Transaction, *, message_ids: Sequence[int], now: int) -> None:
    blanking.blank(tx, message_ids, now=now, by_age=True)
    erasure.note_reworded(tx, now=now)


def _clear_beside(tx: Transaction, *, before: int, now: int) -> None:
    """Erases mail that never became part of history, and summaries of sessions whose words are all gone."""
    failed = inbox.failed(tx, before=before)
    inbox.blank(tx, failed)
    unsent = outbox.drop_undelivered(tx, before=before)
    summed_up = chats.drop_spent_summaries(tx, before=before)
    if failed or unsent or summed_up:
        erasure.note_reworded(tx, now=now)
