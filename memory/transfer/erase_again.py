"""Erases forgotten data again that is back in a store because an older copy was put in its place.

Invariants: the lists are the ledgers beside the store and those of other machines. Running it twice, or without need,
changes nothing. It ends only when no byte of the erased data is left in the store's own files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.errors import StorageError, StoreUnwritable
from memory.forgetting import ledger
from memory.forgetting.ledger import Replayed
from memory.store import erasure, sealing
from memory.store.database import Database
from memory.store.sqlite.database import SqliteDatabase
from memory.transfer.restore import left_no_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedAgain:
    """The outcome: the erasures that the lists hold, and those that were repeated with their rows.

    `bad_lines` counts unreadable lines of the lists. `lost_key` is set if a key that sealed forgotten statements is
    missing.
    """

    listed: int
    again: Replayed
    bad_lines: int
    lost_key: bool


def lists_of(store: Path, others: Sequence[Path] = ()) -> list[Path]:
    """Returns the list beside a store, if it exists, and the `others`."""
    beside = ledger.path_of(store)
    return list(dict.fromkeys([*([beside] if beside.exists() else []), *others]))


async def erase_again(store: Path, lists: Sequence[Path], *, now: int, database_url: str = "") -> ErasedAgain:
    """Erases the data named in these lists from a store. The key beside each list is taken over.

    Raises `StoreInUse`, `StoreUnwritable` or another `StorageError`.
    """
    entries, bad_lines = await asyncio.to_thread(ledger.read_all, lists, effect="Nothing was changed.")
    for path in lists:
        sealing.add(sealing.path_of(store), sealing.keys_in(path.with_suffix(".key")))
    database = await _opened(store, database_url, now=now)
    try:
        again = await database.write(lambda tx: ledger.replay(tx, entries, now=now))
        await database.write(lambda tx: erasure.seal_all(tx, now=now))
        # Entries from another machine's list must be on this one's, too: this store may be put back once more.
        beside, _ = ledger.read(ledger.path_of(store))
        known = {(entry.erased_at, entry.what) for entry in beside}
        others = [entry for entry in entries if (entry.erased_at, entry.what) not in known]
        ledger.append(ledger.path_of(store), [ledger.sealed(entry, database.seal) for entry in others])
        # Also without need: an earlier run may have been stopped before this.
        if not await left_no_trace(database, seconds=60):
            raise StorageError(
                f"What was forgotten is erased from {store.name}, but traces may be left in its files, which could not "
                "be rewritten; the log says why. Run this again when nothing reads them."
            )
        used = {under for entry in entries for _, _, under in entry.hashes if under}
        lost_key = bool(database.seal.lost or database.seal.missing(used))
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't write {ledger.path_of(store)}: {exc.strerror}. Check the folder and its disk, and run this again."
        ) from exc
    finally:
        await database.close()
    return ErasedAgain(listed=len(entries), again=again, bad_lines=bad_lines, lost_key=lost_key)


async def _opened(store: Path, database_url: str, *, now: int) -> Database:
    if not database_url:
        return await SqliteDatabase.open(store, now=now)
    from memory.store.postgres.database import PostgresDatabase  # an extra that few need

    return await PostgresDatabase.open(database_url, store, now=now)
