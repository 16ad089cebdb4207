"""Restores a backup: prepares it beside the store, then replaces the store in one step.

Invariants: after a kill at any moment, the old store or the new one stands under the store's name, whole. Erasures made
after the backup are repeated in it before anybody can read it. No message is answered or sent again: the backup's open
mail stays open only if it is open in the replaced store, too, and reminders continue from the replaced store's state.
Later decisions of people and admins (access, opt-outs, cut links) hold. To erase again what an older copy brought back
does no harm if it is done twice, and ends only when no byte of it is left in the store's own files.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import structlog

from memory.errors import StorageError, StoreUnwritable
from memory.forgetting import ledger
from memory.forgetting.ledger import LedgerEntry, Replayed
from memory.mailbox import inbox, outbox
from memory.people import access, keyring, visits
from memory.people.codes import LINKING, PAIRING
from memory.recall import index
from memory.reminders import reminding
from memory.store import chats, files, history, people, questions, sealing, word_columns
from memory.store.database import Database, Parameter, Reader, Row, Transaction
from memory.store.files import Contents, Progress
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.database import SqliteDatabase, SqliteReader, held
from memory.store.sqlite.driver import Driver
from memory.store.sqlite.migrate import migrations
from memory.transfer import backup_copy

log = structlog.get_logger(__name__)

#: The step that is about to begin. A kill before the end of "replacing" leaves the old store, a later one the new
#: store.
Stage: TypeAlias = Literal["copying", "preparing", "erasing", "keeping", "replacing", "done"]

#: Stored as the error of mail that a restored backup held open.
_RESTORED = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore: the backup's `contents`, the repeated erasures, the ended mail, and the links cut again.

    `kept` is the replaced store; None if there was none or it was not to be kept. `unread` is the reason why nothing
    could be taken over from it. `bad_lines` counts unreadable lines of the ledger. `lost_key` is set if a key that
    sealed forgotten statements is missing.
    """

    store: Path
    contents: Contents
    erased: Replayed
    inbox_ended: int
    outbox_ended: int
    unlinked: int
    kept: Path | None
    unread: str | None
    bad_lines: int
    lost_key: bool


#: What people and admins decided since a backup holds after it is restored: how it is read there and taken over here.
_DECISIONS: tuple[tuple[Callable[[Reader], list[Row]], Callable[[Transaction, list[Row]], object]], ...] = (
    (access.decided, access.take_over),
    (people.opted_out, people.take_over_opt_outs),
    (chats.silent_chats, chats.take_over_silence),
    (reminding.moved_on, reminding.take_over),
    (people.follow_ups_since, people.take_over_follow_ups),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Since:
    """The replaced store's knowledge of the world, which has not gone back in time with the database."""

    entries: tuple[LedgerEntry, ...] = ()
    unlisted: tuple[LedgerEntry, ...] = ()
    waiting: frozenset[tuple[str, str, str]] = frozenset()
    unsent: dict[tuple[int, int], Row] = field(default_factory=dict)
    kept_by_channels: tuple[Row, ...] = ()
    decisions: tuple[list[Row], ...] = ()
    person_of: dict[tuple[str, str], int] = field(default_factory=dict)


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
    """Replaces `store` with the backup `file`. Blocks the loop at times: nothing else may run in this process.

    With `keep` the replaced store stays beside it. Raises `StoreInUse`, `StoreUnwritable`, `StoreDamaged`,
    `SchemaTooNew` or `StorageError`; the store is then as it was.
    """
    driver = driver or drivers.best()
    with held(store):
        ready = store.with_name(f"{store.name}.restoring")
        _clear(ready)
        try:
            say("copying")
            contents = backup_copy.make(file, ready, driver=driver, newest=migrations()[-1].version, progress=progress)
            since, unread = _since(store, driver)
            # A backup may come from another machine, with its own list.
            lists = (ledger.path_of(store), ledger.path_of(file.parent / store.name))
            listed, bad_lines = ledger.read_all(
                lists, effect="It lists what was forgotten since, so nothing was restored."
            )
            say("preparing")
            # A backup from another machine may have been sealed with that machine's key.
            sealing.add(sealing.path_of(store), sealing.keys_in(sealing.path_of(file.parent / store.name)))
            erased, ended, lost_key = await _prepared(ready, store, since, listed, driver=driver, now=now, say=say)
            kept = _swap(ready, store, driver=driver, now=now, keep=keep, say=say)
        finally:
            _clear(ready)
    say("done")
    inbox_ended, outbox_ended, unlinked = ended
    return Restored(
        store=store,
        contents=contents,
        erased=erased,
        inbox_ended=inbox_ended,
        outbox_ended=outbox_ended,
        unlinked=unlinked,
        kept=kept,
        unread=unread,
        bad_lines=bad_lines,
        lost_key=lost_key,
    )


async def _prepared(
    ready: Path,
    store: Path,
    since: _Since | None,
    listed: Sequence[LedgerEntry],
    *,
    driver: Driver,
    now: int,
    say: Callable[[Stage], None],
) -> tuple[Replayed, tuple[int, int, int], bool]:
    """Ends in the copy `ready` what a backup would do again, and repeats the erasures since, which it also lists.

    Returns the erasures, the result of `_settle`, and whether a key of the copy is lost.
    """
    database = await SqliteDatabase.open(ready, now=now, driver=driver, keys=sealing.path_of(store))
    try:
        ended = await database.write(lambda tx: _settle(tx, since, now=now))
        say("erasing")
        entries = [*listed, *(() if since is None else since.entries)]
        replayed = await database.write(lambda tx: ledger.replay(tx, entries, now=now))
        await database.write(lambda tx: word_columns.seal_all(tx, now=now))
        if replayed.erasings and not await left_no_trace(database):
            raise StorageError(
                f"What was forgotten could not be erased from {database.path}, so the backup was not put in place. "
                "Nothing was changed. Try again."
            )
    finally:
        await database.close()
    if since is not None:
        _append(store, [ledger.sealed(entry, database.seal) for entry in since.unlisted])
    return replayed, ended, bool(database.seal.lost)


def _since(store: Path, driver: Driver) -> tuple[_Since | None, str | None]:
    if not store.exists():
        return None, None
    try:
        with files.opened(store, driver) as connection:
            connection.row_factory = driver.module.Row
            return _told(_Older(connection, driver.module.OperationalError)), None
    except driver.module.Error as exc:
        log.warning("restore.replaced_unread", path=str(store), error=str(exc))
        return None, str(exc)


class _Older(SqliteReader):
    """A store that may be of another version: missing tables and columns read as empty."""

    def __init__(self, connection: sqlite3.Connection, missing: type[Exception]) -> None:
        super().__init__(connection)
        self._missing = missing

    def all(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]:
        try:
            return super().all(sql, parameters)
        except self._missing as exc:
            if not str(exc).startswith("no such"):
                raise
            return []


def _told(reader: Reader) -> _Since:
    _, unlisted = ledger.unlisted(reader)
    return _Since(
        entries=tuple(
            ledger.entry_of(reader, row["erased_at"], row["what"]) for row in word_columns.on_request(reader)
        ),
        unlisted=tuple(unlisted),
        waiting=frozenset(_update(row) for row in inbox.open_rows(reader) if row["state"] == "pending"),
        unsent={(row["id"], row["created_at"]): row for row in outbox.open_rows(reader)},
        kept_by_channels=tuple(access.all_kept(reader)),
        decisions=tuple(read(reader) for read, _ in _DECISIONS),
        person_of={(row["platform"], row["user_id"]): row["person_id"] for row in people.all_identities(reader)},
    )


def _update(row: Row) -> tuple[str, str, str]:
    """Returns the identity of an inbox row, which is the same in every copy of the store."""
    return row["platform"], row["bot_id"], row["update_key"]


def _settle(tx: Transaction, since: _Since | None, *, now: int) -> tuple[int, int, int]:
    """Ends mail that may have been handled, and applies the decisions made since the backup.

    Returns the numbers of inbox rows and outbox rows that were ended, and of links that were cut.
    """
    inbox, outbox = _end_mail(tx, since or _Since(), now=now)
    PAIRING.end_all(tx)
    LINKING.end_all(tx)
    visits.drop_all(tx)
    # A key that was revoked since must not come back.
    keyring.drop_all(tx)
    questions.expire_all(tx)
    # The backup's channel positions are useless now: later messages would be answered twice.
    access.replace_kept(tx, () if since is None else since.kept_by_channels)
    unlinked = 0
    if since is not None:
        for (_, take_over), rows in zip(_DECISIONS, since.decisions, strict=True):
            take_over(tx, rows)
        unlinked = _unlink(tx, since)
    chats.drop_snapshots(tx)
    return inbox, outbox, unlinked


def _end_mail(tx: Transaction, since: _Since, *, now: int) -> tuple[int, int]:
    over = [row["id"] for row in inbox.open_rows(tx) if row["state"] == "claimed" or _update(row) not in since.waiting]
    history.abandon_turns(tx, over, error=_RESTORED, now=now)
    inbox.end(tx, over, error=_RESTORED, now=now)
    ended = 0
    for row in outbox.open_rows(tx):
        open_there = since.unsent.get((row["id"], row["created_at"]))
        if open_there is not None:
            outbox.put_back(tx, open_there)
        else:
            ended += 1
            outbox.mark_dead(tx, row["id"], _RESTORED)
    return len(over), ended


def _unlink(tx: Transaction, since: _Since) -> int:
    """Separates identities that are one person here but no longer were in the replaced store."""
    first: dict[int, int] = {}
    cut = 0
    for row in people.linked_identities(tx):
        person = since.person_of.get((row["platform"], row["user_id"]))
        if person is not None and first.setdefault(row["person_id"], person) != person:
            people.unlink(tx, row["id"])
            cut += 1
    return cut


async def left_no_trace(database: Database, *, seconds: float = 5) -> bool:
    """Removes from a store that was put back all bytes of erased rows. Returns False if that was not possible."""
    # The backup's index may be of another version, or damaged.
    mending = index.Mending(database)
    await mending.begin()
    await mending.done()
    await index.catch_up(database)
    return await database.scrub(seconds=seconds)


def _append(store: Path, entries: Sequence[LedgerEntry]) -> None:
    try:
        ledger.append(ledger.path_of(store), entries)
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't write {ledger.path_of(store)}: {exc.strerror}. Nothing was changed. Check the folder and its disk."
        ) from exc


def _swap(
    ready: Path, store: Path, *, driver: Driver, now: int, keep: bool, say: Callable[[Stage], None]
) -> Path | None:
    kept = None
    wal, shm = (store.with_name(store.name + ending) for ending in ("-wal", "-shm"))
    with _in_place(store):
        backup_copy.on_disk(ready)
        say("keeping")
        if store.exists():
            files.empty_log(store, driver)
            if keep:
                kept = backup_copy.aside_of(store, now)
                # If its log could not be emptied, both files are kept: together they are the old store.
                for one in (wal, store):
                    if one.exists():
                        _double(one, kept.with_name(kept.name + one.name.removeprefix(store.name)))
                backup_copy.on_disk(store.parent)
        # A log must never be used with another database.
        wal.unlink(missing_ok=True)
        shm.unlink(missing_ok=True)
        say("replacing")
        ready.replace(store)
        backup_copy.on_disk(store.parent)
    return kept


def _double(path: Path, other: Path) -> None:
    """Gives a file a second name, so that it is never nameless."""
    try:
        os.link(path, other)
    except OSError:
        # Some file systems have no links.
        shutil.copy2(path, other)
        backup_copy.on_disk(other)


def _clear(ready: Path) -> None:
    for path in (ready, *ready.parent.glob(f"{ready.name}.*.copy"), *ready.parent.glob(f"{ready.name}.*.partial")):
        backup_copy.remove(path)
    for ending in (".lock", ".pid"):
        ready.with_name(ready.name + ending).unlink(missing_ok=True)


@contextmanager
def _in_place(store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't replace {store} with the backup: {exc.strerror} ({exc.filename}). The database is unchanged. "
            "Check the permissions of its folder and the space on its disk."
        ) from exc


# An older copy that was put in a store's place ------------------------------------------------------------------------


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
        await database.write(lambda tx: word_columns.seal_all(tx, now=now))
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
