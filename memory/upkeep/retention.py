"""What has had its time: words that were said long ago, where they are kept for so long only, and old notes of ours.

Invariants: words go in short transactions, each of which notes that the files are to be rid of them, and with them all
that their turns kept; what was learned from them stays and says "source erased"; nothing more is read off them, though
what was is gone through at night still; a turn under way keeps its words; stopped at any point, the next run finds what
is left to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from memory.recall import index
from memory.store import erasure, mailbox
from memory.store.database import Database, Reader, Transaction
from memory.upkeep import blank

#: Ids of messages that one read looks through, some 20 ms.
_LOOKED_AT: Final = 20_000
#: Messages whose words go in one transaction: the word index takes up to 1 ms to overwrite what it held of one.
_TOGETHER: Final = 100


async def erase_words(database: Database, *, before: int, now: int) -> int:
    """Blank what people and the bot said before a time in milliseconds UTC, in the indexes, too; returns how many

    messages that were. Raises `StorageError` and its kin; what is done stays done.
    """
    gone = 0
    newest = await database.read(_newest)
    for start in range(0, newest, _LOOKED_AT):
        old = await database.read(partial(_said_before, before=before, after=start))
        for first in range(0, len(old), _TOGETHER):
            some = old[first : first + _TOGETHER]
            await database.write(partial(_blank, message_ids=some, now=now))
            await index.keep_up(database)
            gone += len(some)
    await database.write(partial(_clear_beside, before=before, now=now))
    return gone


def drop_runs(tx: Transaction, *, before: int) -> int:
    """Drop the record of the night's runs that began before a time in milliseconds UTC; returns how many.

    Those of which somebody has taken something back stay: their jobs are not to do it again.
    """
    dropped = tx.all(
        "delete from job_runs where started_at < ? and not exists"
        " (select 1 from job_items i where i.run_id = job_runs.id and i.state = 'undone') returning id",
        (before,),
    )
    return len(dropped)


def drop_notes(tx: Transaction, *, before: int) -> None:
    """Drop notes that the files were to be rid of something, which they were before a time in milliseconds UTC."""
    tx.run("delete from erasures where what = '{}' and inbox_id is null and scrubbed_at < ?", (before,))


def _newest(reader: Reader) -> int:
    row = reader.one("select ifnull(max(id), 0) as id from messages")
    assert row is not None
    return int(row["id"])


def _said_before(reader: Reader, *, before: int, after: int) -> list[int]:
    rows = reader.all(
        "select m.id from messages m where m.id > ? and m.id <= ? and m.said_at < ? and m.erased_at is null"
        " and not exists (select 1 from turns t where t.id = m.turn_id and t.state = 'running') order by m.id",
        (after, after + _LOOKED_AT, before),
    )
    return [row["id"] for row in rows]


def _blank(tx: Transaction, *, message_ids: Sequence[int], now: int) -> None:
    blank.blank(tx, message_ids, now=now, by_age=True)
    erasure.note_reworded(tx, now=now)


def _clear_beside(tx: Transaction, *, before: int, now: int) -> None:
    """What was never part of history, and what sums up nothing but words that are gone."""
    failed = tx.all(
        "select id from inbox where state in ('failed', 'dead') and payload <> '' and received_at < ?", (before,)
    )
    mailbox.blank(tx, [row["id"] for row in failed])
    unsent = tx.all("delete from outbox where state in ('dead', 'unknown') and created_at < ? returning id", (before,))
    summed_up = tx.all(
        "update sessions set summary = null, active_task = null where (summary is not null or active_task is not null)"
        " and ifnull(last_message_at, created_at) < ? and not exists"
        " (select 1 from messages m where m.session_id = sessions.id and m.erased_at is null) returning id",
        (before,),
    )
    if failed or unsent or summed_up:
        erasure.note_reworded(tx, now=now)
