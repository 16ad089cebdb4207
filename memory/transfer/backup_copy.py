"""Backups of a store: copied in one read while the store is in use, checked against that read, and dropped when old.

Invariants: a backup bears its name only once it is complete, checked and on the disk. It holds one committed state and
no byte of a removed row. A failure leaves the store and the older backups as they were. Only files named like our
backups are ever dropped.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from memory.errors import SchemaTooNew, StorageError, StoreBusy, StoreDamaged, StoreUnwritable
from memory.store import files
from memory.store.files import Contents, Progress
from memory.store.sqlite import health
from memory.store.sqlite.driver import Driver

DAY_MS: Final = 24 * 3_600_000
#: Bytes left free beside a copy, so that the store can go on.
_ROOM: Final = 32 * 1024 * 1024
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_STAMPED: Final = r"(\d{8}T\d{6}Z)"
#: Milliseconds after which the remains of an interrupted copy are dropped.
_LEFT_OVER_MS: Final = DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A copy of a store as of `made_at` (milliseconds UTC), with its `size` in bytes and the numbers of its rows."""

    path: Path
    made_at: int
    size: int
    people: int
    messages: int
    memories: int

    @property
    def name(self) -> str:
        return self.path.name


def name_of(store: Path, made_at: int) -> str:
    """Returns the name of a backup of `store`. Sorting by name sorts by time."""
    return f"{store.stem}-{stamp(made_at)}.db"


def store_of(backup: Path) -> str | None:
    """Returns the file name of a backup's store, from the backup's name; None for any other name."""
    found = re.fullmatch(rf"(.+)-{_STAMPED}\.db", backup.name)
    return None if found is None else f"{found[1]}.db"


def aside_of(store: Path, at: int) -> Path:
    return store.with_name(f"{store.name}.before-restore-{stamp(at)}")


def stamp(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime(_STAMP)


def made(store: Path, folder: Path) -> list[tuple[Path, int]]:
    """Returns backups of `store` in `folder` and stores that backups replaced, with their times, newest first."""
    ours = re.compile(rf"{re.escape(store.stem)}-{_STAMPED}\.db")
    aside = re.compile(rf"{re.escape(store.name)}\.before-restore-{_STAMPED}")
    found = [
        (path, made_at)
        for place, pattern in ((folder, ours), (store.parent, aside))
        for path in _files(place)
        if (match := pattern.fullmatch(path.name)) is not None and (made_at := _time(match[1])) is not None
    ]
    return sorted(found, key=lambda one: (one[1], one[0].name), reverse=True)


def newest(store: Path, folder: Path) -> int | None:
    """Returns the time (milliseconds UTC) of the newest backup of `store` in `folder`; None if there is none."""
    return next((made_at for path, made_at in made(store, folder) if store_of(path) is not None), None)


def drop_old(store: Path, folder: Path, *, before: int, now: int) -> list[Path]:
    """Removes backups made before a time (milliseconds UTC), and the remains of interrupted copies.

    Raises `StoreUnwritable`.
    """
    old = [path for path, made_at in made(store, folder) if made_at < before]
    cut_off = re.compile(rf"{re.escape(store.stem)}-.+\.(?:copy|partial)")
    for path in _files(folder):
        with suppress(FileNotFoundError):
            if cut_off.fullmatch(path.name) and path.stat().st_mtime * 1000 < now - _LEFT_OVER_MS:
                old.append(path)
    for path in old:
        remove(path)
    return old


def make(store: Path, target: Path, *, driver: Driver, newest: int, progress: Progress) -> Contents:
    """Copies the store in the file `store` to `target`, even while others use it. Blocks; run it in a thread.

    `newest` is the newest schema version known here. Takes twice the store's size for a while. Raises
    `StoreUnwritable`, `StoreDamaged`, `StoreBusy`, `SchemaTooNew` or `StorageError`, and what `progress` raises;
    nothing is left behind then.
    """
    # The process id separates a backup made from the command line from one made in the chat.
    raw, partial = (target.with_name(f"{target.name}.{os.getpid()}.{what}") for what in ("copy", "partial"))
    try:
        with _told(store, driver):
            target.parent.mkdir(parents=True, exist_ok=True)
            _make_room(store, target)
            taken = _snapshot(store, raw, driver, progress)
            _write_anew(raw, partial, driver)
            partial.chmod(0o600)
        contents = check(partial, of=store, driver=driver, newest=newest)
        if contents != taken:
            raise StorageError(f"The copy of {store} does not match the database, so it was not kept. Try again.")
        with _told(target, driver):
            on_disk(partial)
            partial.replace(target)
            on_disk(target.parent)
    finally:
        with suppress(StoreUnwritable):
            remove(raw)
            remove(partial)
    return contents


def check(file: Path, *, of: Path, driver: Driver, newest: int) -> Contents:
    """Checks a whole copy `of` a store or backup. Accepts damaged indexes, because they are rebuilt.

    Raises `StoreDamaged` for a damaged store or a file that isn't one of ours, `SchemaTooNew` for one of a later
    version.
    """
    with _told(of, driver), files.connected(file, driver, mode="ro") as connection:
        damaged = files.damaged(connection, driver)
        if damaged:
            raise StoreDamaged(f"{of} is damaged ({', '.join(damaged)}). No copy was made and nothing was changed.")
        contents = files.contents(connection)
    if contents.schema > newest:
        raise SchemaTooNew(
            f"{of} was written by a newer Remora (schema {contents.schema}, this one knows {newest}). Nothing was "
            "changed. Install that version, and try again."
        )
    return contents


def remove(path: Path) -> None:
    """Removes a database and the files beside it. Raises `StoreUnwritable`."""
    try:
        for ending in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    except OSError as exc:
        raise StoreUnwritable(f"Can't remove {path}: {exc.strerror}. Check the permissions of its folder.") from exc


def on_disk(path: Path) -> None:
    """Returns once a file, or the names in a folder, would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _snapshot(store: Path, raw: Path, driver: Driver, progress: Progress) -> Contents:
    """Copies the pages. Returns the contents that the same read counts."""
    with files.opened(store, driver) as source:
        if not files.is_store(source):
            raise StoreDamaged(f"{store} is not a Remora database. Nothing was changed.")
        # The first read fixes the state that is copied. While it lasts, writers only add to their log.
        contents = files.contents(source)
        files.copy_pages(source, raw, driver, progress)
    return contents


def _write_anew(raw: Path, partial: Path, driver: Driver) -> None:
    """Rewrites the copy from its rows, because pages keep traces of rows that were moved within them."""
    try:
        files.write_anew(raw, partial, driver)
    except driver.module.Error as exc:
        if not health.is_damage(exc):
            raise
        # Only an index may be damaged: the later check finds out.
        remove(partial)
        raw.replace(partial)


def _make_room(store: Path, target: Path) -> None:
    log = store.with_name(store.name + "-wal")
    size = store.stat().st_size + (log.stat().st_size if log.exists() else 0)
    free = shutil.disk_usage(target.parent).free
    if free < 2 * size + _ROOM:
        raise StoreUnwritable(
            f"The disk holding {target.parent} has {free / 1e6:.0f} MB free, and a copy of {store} takes "
            f"{(2 * size + _ROOM) / 1e6:.0f} MB while it is made. No copy was made and nothing was changed. Free some "
            "space, or name another folder as backup.folder in config.yaml."
        )


@contextmanager
def _told(file: Path, driver: Driver) -> Iterator[None]:
    """Translates failures to errors that explain them for a copy. The driver's texts are SQLite's."""
    try:
        yield
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't write {exc.filename or file}: {exc.strerror}. No copy was made and nothing was changed. Check the "
            "folder, its permissions and its disk."
        ) from exc
    except driver.module.Error as exc:
        text = str(exc)
        if "full" in text or "I/O" in text or "readonly" in text or "unable to open" in text:
            raise StoreUnwritable(
                f"Can't copy to or from {file}: {text}. No copy was made and nothing was changed. Check the folder, "
                "its permissions and its disk."
            ) from exc
        if "locked" in text:
            raise StoreBusy(
                f"Another program has kept the database locked for too long ({text}). No copy was made. Try again."
            ) from exc
        if health.is_damage(exc) or health.is_undecodable(exc):
            raise StoreDamaged(f"{file} is damaged or not a Remora database. Nothing was changed.") from exc
        raise StorageError(f"{file}: {text}") from exc


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise StoreUnwritable(f"Can't read the folder {folder}: {exc.strerror}. Check its permissions.") from exc


def _time(stamped: str) -> int | None:
    try:
        return int(datetime.strptime(stamped, _STAMP).replace(tzinfo=UTC).timestamp()) * 1000
    except ValueError:
        return None  # digits, but no date
