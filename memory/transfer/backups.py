"""The gateway's interface to backups: makes one of an open store, and tells when the last is gone.

Invariants: erasures are in the ledger before a backup is made and at each start. A backup is dropped `keep_days` days
after it was made, whether or not there is a newer one, because people are told so when they forget something.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

import structlog

from memory.errors import StorageError, StoreBehind
from memory.forgetting import ledger
from memory.forgetting.ledger import Replayed
from memory.store import word_columns
from memory.store.database import Database, Transaction
from memory.store.files import Contents, Progress
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.driver import Driver
from memory.store.sqlite.migrate import migrations
from memory.transfer import backup_copy
from memory.transfer.backup_copy import DAY_MS, Backup

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: The age up to which any backup counts as today's. It is less than a day because no hour is met exactly.
_FRESH_MS: Final = 20 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The folder of the backups, the days each is kept, and whether one is made each day.

    A database server's own log, archives and backups keep data for `server_days`; 0 if that is not configured.
    """

    folder: Path
    keep_days: int = 14
    daily: bool = True
    server_days: int = 0


class Backups:
    """The backups of one open store. Call `begin` when the store is open."""

    def __init__(self, database: Database, *, retention: Retention | None, now: Callable[[], int]) -> None:
        self._database = database
        self._retention = retention or Retention(folder=database.path.parent / "backups")
        self._now = now
        self._making = asyncio.Lock()
        self._listing = asyncio.Lock()

    @property
    def keep_days(self) -> int:
        return self._retention.keep_days

    @property
    def on_server(self) -> bool:
        """True if the database is on a server, which has its own log, archives and backups."""
        return self._database.driver is None

    @property
    def server_days(self) -> int:
        """The days after which erased data is gone from these, too; 0 if that is not configured."""
        return self._retention.server_days

    async def begin(self) -> None:
        """Lists the unlisted erasures of an earlier run, and seals the entries of an earlier version.

        Raises `StoreBehind` if a store on a server was replaced by an older copy of it.
        """
        listed = ledger.path_of(self._database.path)
        try:
            await asyncio.to_thread(ledger.seal_list, listed, self._database.seal)
        except (OSError, StorageError) as exc:
            log.error("erased.not_sealed", file=str(listed), error=str(exc), again="at the next start")
        await self._stand_by_list(listed)
        await self.list_erased()

    async def _stand_by_list(self, listed: Path) -> None:
        """Repeats the listed erasures that the store does not know of. Raises `StoreBehind` on a server.

        A file lies beside its list, so the list is its own: an older copy was put there, or the machine lost its power
        before the erasure was on the disk. On a server, the list may be that of another database.
        """
        try:
            entries, _ = await asyncio.to_thread(ledger.read, listed)
        except OSError as exc:
            log.error(
                "erased.not_read", file=str(listed), error=str(exc), effect="whether all of it is gone is unknown"
            )
            return
        missing = await self._database.read(lambda reader: ledger.missing(reader, entries))
        if not missing:
            return
        if self.on_server:
            moved = "If you have not carried the file beside it over yet, run `remora move --to postgres` instead. "
            raise StoreBehind(
                f"The store {self._database.path.name} is older than {listed}: it lacks {missing} of the erasures that "
                "are listed there, as after a backup was put back, and may hold again what people had forgotten. Run "
                f"`remora erase-again`. {moved if self._database.path.exists() else ''}"
                "If the list belongs to another database, move it away."
            )

        def act(tx: Transaction) -> Replayed:
            word_columns.note_reworded(tx, now=self._now())  # the files are scrubbed once the store is open
            return ledger.replay(tx, entries, now=self._now())

        again = await self._database.write(act)
        log.warning(
            "erased.again", store=str(self._database.path), because="it is older than its list", **asdict(again)
        )

    async def make(self) -> Backup:
        """Makes a backup now and drops those that are too old. Only the caller waits for it.

        Raises `StoreUnwritable`, `StoreDamaged` or another `StorageError`; the older backups are then untouched.
        """
        if self._database.driver is None:
            raise StorageError(
                "This store is on a PostgreSQL server, which makes its backups: use pg_dump or the server's own "
                "archive (docs/scale.md). After a restore, ask again for what was forgotten since."
            )
        async with self._making:
            await self.list_erased()
            one = await copy(self._database.path, self._retention.folder, now=self._now(), driver=self._database.driver)
            await self.drop_old()
            return one

    async def make_daily(self) -> Backup | None:
        """Makes a backup, unless daily backups are switched off or today's exists; for a quiet hour of each day.

        Raises the same errors as `make`.
        """
        if not self._retention.daily or self._database.driver is None:
            return None
        newest = await asyncio.to_thread(backup_copy.newest, self._database.path, self._retention.folder)
        # A backup from the future was made while the clock was ahead, and does not count as today's.
        if newest is not None and 0 <= self._now() - newest < _FRESH_MS:
            return None
        return await self.make()

    async def drop_old(self) -> int:
        """Drops backups older than `keep_days` and returns their number; for a quiet hour of each day, too.

        Raises `StoreUnwritable`.
        """
        return await drop_old(self._database.path, self._retention, now=self._now())

    async def until(self) -> int | None:
        """Returns the time (milliseconds UTC) at which the last copy of the store's present content will be gone.

        None without any copy, and for a store on a server if `server_days` is not configured.
        """
        if self.on_server:
            return self._now() + self.server_days * DAY_MS if self.server_days else None
        found = await asyncio.to_thread(backup_copy.made, self._database.path, self._retention.folder)
        return found[0][1] + self.keep_days * DAY_MS if found else None

    async def list_erased(self) -> int:
        """Adds the erasures to the ledger and returns the number of new ones.

        After a failure they are added later: the erasing itself has happened.
        """
        async with self._listing:
            try:
                ids, entries = await self._database.read(ledger.unlisted)
                if not ids:
                    return 0
                await asyncio.to_thread(ledger.append, ledger.path_of(self._database.path), entries)

                def act(tx: Transaction) -> None:
                    word_columns.listed(tx, ids, now=self._now())

                await self._database.write(act)
            except (OSError, StorageError) as exc:
                log.error("erased.not_listed", store=str(self._database.path), error=str(exc), again="at the next time")
                return 0
            return len(ids)


async def copy(
    store: Path, to: Path, *, now: int, driver: Driver | None = None, progress: Progress = lambda done, of: None
) -> Backup:
    """Backs up `store` to the folder `to`, or to a file of that name if it ends in .db, even while the store is in use.

    Raises the same errors as `Backups.make`. If the caller is cancelled, nothing is left behind.
    """
    target = to if to.suffix == ".db" else to / backup_copy.name_of(store, now)
    which = driver or drivers.best()

    def act(stopped: Callable[[], bool]) -> Backup:
        def told(done: int, of: int) -> None:
            if stopped():
                raise StorageError("The backup was stopped, and no partial copy was kept.")
            progress(done, of)

        contents = backup_copy.make(store, target, driver=which, newest=migrations()[-1].version, progress=told)
        return Backup(
            path=target,
            made_at=now,
            size=target.stat().st_size,
            people=contents.rows["people"],
            messages=contents.rows["messages"],
            memories=contents.rows["memories"],
        )

    return await _in_thread(act)


async def examine(store: Path, *, driver: Driver | None = None) -> Contents:
    """Returns the contents of `store`, which another process may have open, after checking all of it.

    Takes as long as reading the file does. Raises `StoreDamaged`, `SchemaTooNew` or another `StorageError`.
    """
    newest_schema = migrations()[-1].version
    return await asyncio.to_thread(
        backup_copy.check, store, of=store, driver=driver or drivers.best(), newest=newest_schema
    )


async def drop_old(store: Path, retention: Retention, *, now: int) -> int:
    """Drops old backups of a store that need not be open, as `Backups.drop_old` does."""
    before = now - retention.keep_days * DAY_MS
    return len(await asyncio.to_thread(backup_copy.drop_old, store, retention.folder, before=before, now=now))


async def _in_thread(act: Callable[[Callable[[], bool]], T]) -> T:
    """Runs `act` in a thread. The callable passed to `act` returns True once the caller has stopped waiting."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(act, stop.is_set)
    except asyncio.CancelledError:
        stop.set()
        raise
