"""Backups as the gateway sees them: one made of an open store, which there are, until when, and one brought back.

Invariants: what was erased is in the list beside the database before a backup is made and at each start; a backup is
dropped `keep_days` after it was made, whether there is a newer one or not, for that is what people are told who had
something forgotten.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import structlog

from memory.errors import StorageError
from memory.store import driver as drivers
from memory.store.database import Database, Transaction
from memory.store.driver import Driver
from memory.store.migrate import migrations
from memory.upkeep import backup, erased
from memory.upkeep import restore as restoring
from memory.upkeep.backup import DAY_MS, Backup, Contents, Progress, store_of
from memory.upkeep.restore import Restored, Stage

__all__ = [
    "Backup", "Backups", "Contents", "Progress", "Restored", "Retention", "Stage", "copy", "drop_old",
    "restore", "store_of",
]  # fmt: skip

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: A backup that is younger, by whomever it was made, does for today; less than a day, for no hour is met exactly.
_FRESH_MS: Final = 20 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Where backups are, for how many days each is kept, and whether one is made each day."""

    folder: Path
    keep_days: int = 14
    daily: bool = True


class Backups:
    """The backups of one open store. `begin` it when the store is open."""

    def __init__(self, database: Database, *, retention: Retention, now: Callable[[], int]) -> None:
        self._database = database
        self._retention = retention
        self._now = now
        self._making = asyncio.Lock()
        self._listing = asyncio.Lock()

    @property
    def keep_days(self) -> int:
        return self._retention.keep_days

    async def begin(self) -> None:
        """List what an earlier run has erased and not listed."""
        await self.list_erased()

    async def make(self) -> Backup:
        """Make a backup now, and drop those that are too old. Nobody waits for it but the caller.

        Raises `StoreUnwritable`, `StoreDamaged` or another `StorageError`; the older backups are then untouched.
        """
        async with self._making:
            await self.list_erased()
            one = await copy(self._database.path, self._retention.folder, now=self._now(), driver=self._database.driver)
            await self.drop_old()
            return one

    async def make_daily(self) -> Backup | None:
        """For a quiet hour of each day: make a backup, unless that is switched off or there is one of this day.

        Raises as `make`.
        """
        if not self._retention.daily:
            return None
        newest = await asyncio.to_thread(backup.newest, self._database.path, self._retention.folder)
        # One of the future was made while the clock was ahead, and says nothing of today.
        if newest is not None and 0 <= self._now() - newest < _FRESH_MS:
            return None
        return await self.make()

    async def drop_old(self) -> int:
        """Drop what is older than `keep_days`; for a quiet hour of each day, too. Returns how many went.

        Raises `StoreUnwritable`.
        """
        dropped = await asyncio.to_thread(_drop_old, self._database.path, self._retention, self._now())
        return len(dropped)

    async def until(self) -> int | None:
        """When the newest copy of what is in the store now will be gone, milliseconds UTC; None without any."""
        found = await asyncio.to_thread(backup.made, self._database.path, self._retention.folder)
        return found[0][1] + self.keep_days * DAY_MS if found else None

    async def list_erased(self) -> int:
        """Put what was erased into the list beside the database; returns how many were added.

        Where that can't be done now it is done later: the erasing itself has happened.
        """
        async with self._listing:
            try:
                ids, entries = await self._database.read(erased.unlisted)
                if not ids:
                    return 0
                await asyncio.to_thread(erased.append, erased.path_of(self._database.path), entries)

                def act(tx: Transaction) -> None:
                    erased.listed(tx, ids, now=self._now())

                await self._database.write(act)
            except (OSError, StorageError) as exc:
                log.error("erased.not_listed", store=str(self._database.path), error=str(exc), again="at the next time")
                return 0
            return len(ids)


async def copy(
    store: Path,
    to: Path,
    *,
    now: int,
    driver: Driver | None = None,
    progress: Progress = lambda done, of: None,
) -> Backup:
    """A backup of `store` in the folder `to`, or in a file of that name where it ends in .db, whoever uses the store.

    Raises as `Backups.make`. When the caller is cancelled, nothing is left behind.
    """
    target = to if to.suffix == ".db" else to / backup.name_of(store, now)
    which = driver or drivers.best()

    def act(stopped: Callable[[], bool]) -> Backup:
        def told(done: int, of: int) -> None:
            if stopped():
                raise StorageError("The backup was stopped; nothing of it was kept.")
            progress(done, of)

        contents = backup.make(store, target, driver=which, newest=migrations()[-1].version, progress=told)
        return Backup(
            path=target,
            made_at=now,
            size=target.stat().st_size,
            people=contents.rows["people"],
            messages=contents.rows["messages"],
            memories=contents.rows["memories"],
        )

    return await _in_thread(act)


async def drop_old(store: Path, retention: Retention, *, now: int) -> int:
    """As `Backups.drop_old`, of a store that need not be open."""
    return len(await asyncio.to_thread(_drop_old, store, retention, now))


async def restore(
    file: Path,
    store: Path,
    *,
    now: int,
    keep: bool,
    say: Callable[[Stage], None],
    driver: Driver | None = None,
    progress: Progress = lambda done, of: None,
) -> Restored:
    """Put the backup `file` in the place of `store`; see `memory/upkeep/restore.py`. Nobody may have the store open."""
    return await restoring.restore(
        file, store, driver=driver or drivers.best(), now=now, keep=keep, say=say, progress=progress
    )


def _drop_old(store: Path, retention: Retention, now: int) -> list[Path]:
    return backup.drop_old(store, retention.folder, before=now - retention.keep_days * DAY_MS, now=now)


async def _in_thread(act: Callable[[Callable[[], bool]], T]) -> T:
    """Run `act` in a thread; it is told when nobody waits for it any more."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(act, stop.is_set)
    except asyncio.CancelledError:
        stop.set()
        raise
