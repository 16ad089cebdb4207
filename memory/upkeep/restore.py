"""A backup takes the place of a store: made ready beside it first, then put there in one step.

Invariants: killed at any moment, what stands under the store's name is the old store or the new one, whole; what was
erased after the backup was made is erased in it before anybody can read it; nothing that had been answered or sent is
answered or sent again: of the mail that was open in the backup only that stays open which the replaced store says is;
what was decided since by people and admins (who may speak, opt-outs, links that were cut) holds.
"""

from __future__ import annotations

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
from memory.recall import index
from memory.store import database as stores
from memory.store import history, mailbox, people
from memory.store.database import Database, Reader, Row, Transaction
from memory.store.driver import Driver
from memory.store.migrate import migrations
from memory.upkeep import backup, erased, traces
from memory.upkeep.backup import Contents, Progress
from memory.upkeep.erased import Entry, Replayed

log = structlog.get_logger(__name__)

#: What is about to be done; killed before "replacing" is over the old store is there, and after it the new one.
Stage: TypeAlias = Literal["copying", "preparing", "erasing", "keeping", "replacing", "done"]

#: What is stored as the error of mail that a restored backup held open.
_RESTORED = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was done: `contents` of the backup, `erased` in it once more, mail that was ended, people shut out again.

    `kept` is the replaced store, None where there was none or it was not to be kept. `unread` says why nothing could
    be taken over from it, `bad_lines` counts lines of the erasure list that can't be read.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Since:
    """What the replaced store knows of the world, which has not gone back in time with its database."""

    entries: tuple[Entry, ...] = ()
    unlisted: tuple[Entry, ...] = ()
    waiting: frozenset[tuple[str, str, str]] = frozenset()
    unsent: dict[tuple[int, int], Row] = field(default_factory=dict)
    kept_by_channels: tuple[Row, ...] = ()
    access: tuple[Row, ...] = ()
    silent: tuple[Row, ...] = ()
    left: tuple[Row, ...] = ()
    person_of: dict[tuple[str, str], int] = field(default_factory=dict)


async def restore(
    file: Path,
    store: Path,
    *,
    driver: Driver,
    now: int,
    keep: bool,
    say: Callable[[Stage], None],
    progress: Progress,
) -> Restored:
    """Put the backup `file` in the place of `store`. Blocks the loop at times: nothing else may run in this process.

    With `keep` the replaced store stays beside it. Raises `StoreInUse`, `StoreUnwritable`, `StoreDamaged`,
    `SchemaTooNew` or `StorageError`; the store is then as it was.
    """
    with stores.held(store):
        newest = migrations()[-1].version
        ready = store.with_name(f"{store.name}.restoring")
        _clear(ready)
        try:
            say("copying")
            contents = backup.make(file, ready, driver=driver, newest=newest, progress=progress)
            since, unread = _since(store, driver)
            listed, bad_lines = _list(store, file)
            say("preparing")
            database = await Database.open(ready, now=now, driver=driver)
            try:
                inbox, outbox, unlinked = await database.write(lambda tx: _settle(tx, since, now=now))
                say("erasing")
                entries = [*listed, *(() if since is None else since.entries)]
                replayed = await database.write(lambda tx: erased.replay(tx, entries, now=now))
                if replayed.erasings:
                    await _leave_no_trace(database)
            finally:
                await database.close()
            if since is not None:
                _append(store, since.unlisted)
            kept = _swap(ready, store, driver=driver, now=now, keep=keep, say=say)
        finally:
            _clear(ready)
    say("done")
    return Restored(
        store=store,
        contents=contents,
        erased=replayed,
        inbox_ended=inbox,
        outbox_ended=outbox,
        unlinked=unlinked,
        kept=kept,
        unread=unread,
        bad_lines=bad_lines,
    )


def _since(store: Path, driver: Driver) -> tuple[_Since | None, str | None]:
    """What the store that is replaced can tell, or why it can't."""
    if not store.exists():
        return None, None
    try:
        with backup.opened(store, driver) as connection:
            connection.row_factory = driver.module.Row
            return _told(_Older(connection, driver.module.OperationalError)), None
    except driver.module.Error as exc:
        log.warning("restore.replaced_unread", path=str(store), error=str(exc))
        return None, str(exc)


class _Older(Reader):
    """A store that may be of another version: what it does not have yet, it has none of."""

    def __init__(self, connection: sqlite3.Connection, missing: type[Exception]) -> None:
        super().__init__(connection)
        self._missing = missing

    def all(self, sql: str, parameters: Sequence[stores.Value] = ()) -> list[Row]:
        try:
            return super().all(sql, parameters)
        except self._missing as exc:
            if not str(exc).startswith("no such"):
                raise
            return []


def _told(reader: Reader) -> _Since:
    rows = reader.all("select what, erased_at, listed_at from erasures where what <> '{}' order by id")
    _, unlisted = erased.unlisted(reader)
    open_mail = reader.all("select platform, bot_id, update_key from inbox where state = 'pending'")
    outbox = reader.all(
        "select id, created_at, state, offered, attempts, not_before, error from outbox"
        " where state in ('pending', 'sending', 'unknown')"
    )
    identities = reader.all("select platform, user_id, person_id from identities")
    return _Since(
        entries=tuple(erased.entry_of(reader, row["erased_at"], row["what"]) for row in rows),
        unlisted=tuple(unlisted),
        waiting=frozenset((row["platform"], row["bot_id"], row["update_key"]) for row in open_mail),
        unsent={(row["id"], row["created_at"]): row for row in outbox},
        kept_by_channels=tuple(reader.all("select channel, name, value from channel_state")),
        access=tuple(reader.all("select channel, subject, reference, state, granted_by, created_at from access")),
        silent=(
            *reader.all(
                "select i.platform, i.user_id, p.learning, 1 as about from identities i"
                " join people p on p.id = i.person_id where p.learning = 0"
            ),
            *reader.all(
                "select i.platform, i.user_id, 1 as learning, p.about from identities i"
                " join people p on p.id = i.person_id where p.about = 0"
            ),
        ),
        left=tuple(
            reader.all(
                "select a.platform, a.reference, c.learning, c.left_at from chats c join chat_aliases a"
                " on a.chat_id = c.id where c.learning = 0 or c.left_at is not null"
            )
        ),
        person_of={(row["platform"], row["user_id"]): row["person_id"] for row in identities},
    )


def _settle(tx: Transaction, since: _Since | None, *, now: int) -> tuple[int, int, int]:
    """End the mail that may have been dealt with, and have hold what was decided since.

    Returns how many messages were ended, how many rows to send, and how many links were cut.
    """
    inbox, outbox = _end_mail(tx, since or _Since(), now=now)
    tx.run("delete from pairings")
    tx.run("update questions set state = 'expired' where state = 'open'")
    # Where a channel had come to is of no use now: what was said meanwhile would be answered twice.
    tx.run("delete from channel_state")
    unlinked = 0
    if since is not None:
        for row in since.kept_by_channels:
            tx.run("insert into channel_state values (?, ?, ?)", tuple(row))
        for row in since.access:
            tx.run("insert or replace into access values (?, ?, ?, ?, ?, ?)", tuple(row))
        for row in since.silent:
            tx.run(
                "update people set learning = min(learning, ?), about = min(about, ?)"
                " where id = (select person_id from identities where platform = ? and user_id = ?)",
                (row["learning"], row["about"], row["platform"], row["user_id"]),
            )
        for row in since.left:
            tx.run(
                "update chats set learning = min(learning, ?), left_at = coalesce(left_at, ?)"
                " where id = (select chat_id from chat_aliases where platform = ? and reference = ?)",
                (row["learning"], row["left_at"], row["platform"], row["reference"]),
            )
        unlinked = _unlink(tx, since)
    people.drop_snapshots(tx)
    return inbox, outbox, unlinked


def _end_mail(tx: Transaction, since: _Since, *, now: int) -> tuple[int, int]:
    waiting = tx.all("select id, platform, bot_id, update_key, state from inbox where state in ('pending', 'claimed')")
    over = [
        row["id"]
        for row in waiting
        if row["state"] == "claimed" or (row["platform"], row["bot_id"], row["update_key"]) not in since.waiting
    ]
    history.abandon_turns(tx, over, error=_RESTORED, now=now)
    mailbox.answered(tx, over, error=_RESTORED, now=now)
    ended = 0
    for row in tx.all("select id, created_at from outbox where state in ('pending', 'sending', 'unknown')"):
        open_there = since.unsent.get((row["id"], row["created_at"]))
        if open_there is not None:
            tx.run(
                "update outbox set state = ?, offered = ?, attempts = ?, not_before = ?, error = ? where id = ?",
                (*(open_there[name] for name in ("state", "offered", "attempts", "not_before", "error")), row["id"]),
            )
            continue
        ended += 1
        tx.run(
            "update outbox set state = 'dead', error = ?, text = '', markup = '', buttons = '', ticket = '',"
            " file_name = '', file = null where id = ?",
            (_RESTORED, row["id"]),
        )
    return len(over), ended


def _unlink(tx: Transaction, since: _Since) -> int:
    """Part identities that are one person here and were not any more."""
    first: dict[int, int] = {}
    cut = 0
    for row in tx.all(
        "select id, person_id, platform, user_id from identities where person_id in"
        " (select person_id from identities group by person_id having count(*) > 1) order by id"
    ):
        person = since.person_of.get((row["platform"], row["user_id"]))
        if person is not None and first.setdefault(row["person_id"], person) != person:
            people.unlink(tx, row["id"])
            cut += 1
    return cut


async def _leave_no_trace(database: Database) -> None:
    # The backup's index may be another version's, or damaged.
    mending = index.Mending(database)
    await mending.begin()
    await mending.done()
    await index.catch_up(database)
    begin = True
    while not await database.write(lambda tx: traces.merge_words(tx, begin=begin)):  # noqa: B023 - awaited at once
        begin = False
    if not await database.scrub():
        raise StorageError(
            f"What was forgotten could not be erased from {database.path}, so the backup was not put in place. "
            "Nothing was changed. Try again."
        )


def _list(store: Path, file: Path) -> tuple[list[Entry], int]:
    """The entries beside the store, and beside the backup, for it may have come from another machine."""
    entries: list[Entry] = []
    bad = 0
    for path in dict.fromkeys((erased.path_of(store), erased.path_of(file.parent / store.name))):
        try:
            found, unreadable = erased.read(path)
        except OSError as exc:
            raise StoreUnwritable(
                f"Can't read {path}: {exc.strerror}. It tells what was forgotten since, so nothing was restored."
            ) from exc
        entries += found
        bad += unreadable
    return entries, bad


def _append(store: Path, entries: Sequence[Entry]) -> None:
    try:
        erased.append(erased.path_of(store), entries)
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't write {erased.path_of(store)}: {exc.strerror}. Nothing was changed. Check the folder and its disk."
        ) from exc


def _swap(
    ready: Path, store: Path, *, driver: Driver, now: int, keep: bool, say: Callable[[Stage], None]
) -> Path | None:
    """Put `ready` in the place of `store`; returns under which name the old one is kept."""
    kept = None
    wal, shm = (store.with_name(store.name + ending) for ending in ("-wal", "-shm"))
    with _in_place(store):
        backup.on_disk(ready)
        say("keeping")
        if store.exists():
            backup.empty_log(store, driver)
            if keep:
                kept = backup.aside_of(store, now)
                # Where its log could not be emptied, both are kept, and together they are the old store.
                for one in (wal, store):
                    if one.exists():
                        _double(one, kept.with_name(kept.name + one.name.removeprefix(store.name)))
                backup.on_disk(store.parent)
        # A log must never meet a database that is not its own.
        wal.unlink(missing_ok=True)
        shm.unlink(missing_ok=True)
        say("replacing")
        ready.replace(store)
        backup.on_disk(store.parent)
    return kept


def _double(path: Path, other: Path) -> None:
    """Have a file under a second name, so that it is never without one."""
    try:
        os.link(path, other)
    except OSError:
        # Not every file system has links.
        shutil.copy2(path, other)
        backup.on_disk(other)


def _clear(ready: Path) -> None:
    """Remove what was made beside the store, of this run or of one that was cut off."""
    for path in (ready, *ready.parent.glob(f"{ready.name}.*.copy"), *ready.parent.glob(f"{ready.name}.*.partial")):
        backup.remove(path)
    for ending in (".lock", ".pid"):
        ready.with_name(ready.name + ending).unlink(missing_ok=True)


@contextmanager
def _in_place(store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't put the backup in the place of {store}: {exc.strerror} ({exc.filename}). The database is as it "
            "was. Check the rights of its folder and the space on its disk."
        ) from exc
