"""Copies of a store: made in one read while it is in use, compared with that read, and dropped when they are old.

Invariants: a backup bears its name only once it is whole, checked and on the disk; it holds one committed state and no
byte of a removed row; whatever goes wrong leaves the store and the older backups as they were; only files named as ours
are ever dropped.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from memory.errors import SchemaTooNew, StorageError, StoreBusy, StoreDamaged, StoreUnwritable
from memory.store import health
from memory.store.driver import Driver

#: Is told how far the copy is, in bytes, of how many; whoever raises in it ends the copy.
Progress: TypeAlias = Callable[[int, int], None]

DAY_MS: Final = 24 * 3_600_000
#: Pages of one step of a copy, some 10 ms.
_STEP_PAGES: Final = 1_000
#: Bytes that stay free beside a copy: the store must be able to go on.
_ROOM: Final = 32 * 1024 * 1024
#: What a file holds that is one of ours.
_TABLES: Final = frozenset({"migrations", "store_settings", "people", "messages", "memories"})
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_STAMPED: Final = r"(\d{8}T\d{6}Z)"
#: What is left of a copy that was cut off is dropped after so long.
_LEFT_OVER_MS: Final = DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A copy of a store as it was at `made_at` (milliseconds UTC), of `size` bytes, and how much it holds."""

    path: Path
    made_at: int
    size: int
    people: int
    messages: int
    memories: int

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file holds: the version of its schema, and the rows of each table that is no index."""

    schema: int
    rows: Mapping[str, int]


def name_of(store: Path, made_at: int) -> str:
    """What a backup of `store` is called; sorted by name they are sorted by time."""
    return f"{store.stem}-{stamp(made_at)}.db"


def store_of(backup: Path) -> str | None:
    """The file name of the store that a backup was made of, by its own name; None for another kind of name."""
    found = re.fullmatch(rf"(.+)-{_STAMPED}\.db", backup.name)
    return None if found is None else f"{found[1]}.db"


def aside_of(store: Path, at: int) -> Path:
    """Under which name a store is kept that a backup has taken the place of."""
    return store.with_name(f"{store.name}.before-restore-{stamp(at)}")


def stamp(at: int) -> str:
    """A time, milliseconds UTC, for a file's name."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime(_STAMP)


def made(store: Path, folder: Path) -> list[tuple[Path, int]]:
    """The backups of `store` in `folder`, and the stores that backups have replaced, with their times; newest first."""
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
    """When the newest backup of `store` in `folder` was made, milliseconds UTC; None without any."""
    return next((made_at for path, made_at in made(store, folder) if store_of(path) is not None), None)


def drop_old(store: Path, folder: Path, *, before: int, now: int) -> list[Path]:
    """Remove what was made before a time (milliseconds UTC), and what is left of copies that were cut off.

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
    """Copy the store in the file `store`, whoever uses it meanwhile, to `target`. Blocks; for a thread.

    `newest` is the newest version of a schema that is known here. Takes twice the store's size for a while. Raises
    `StoreUnwritable`, `StoreDamaged`, `StoreBusy`, `SchemaTooNew` or `StorageError`, and what `progress` raises;
    nothing is left behind then.
    """
    # Named after the process: one made from the command line may run beside one made in the chat.
    raw, partial = (target.with_name(f"{target.name}.{os.getpid()}.{what}") for what in ("copy", "partial"))
    try:
        with _told(store, driver):
            target.parent.mkdir(parents=True, exist_ok=True)
            _make_room(store, target)
            taken = _snapshot(store, raw, driver, progress)
            _write_anew(raw, partial, driver)
            partial.chmod(stat.S_IMODE(store.stat().st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        contents = check(partial, of=store, driver=driver, newest=newest)
        if contents != taken:
            raise StorageError(f"The copy of {store} does not hold what the database does; it was not kept. Try again.")
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
    """Look through all of a copy `of` a store or backup; an index may be damaged, for it is made anew.

    Raises `StoreDamaged` for what is no store of ours or a damaged one, `SchemaTooNew` for one of a later version.
    """
    with _told(of, driver), _connected(file, driver, mode="ro") as connection:
        damaged = [] if _is_sound(connection, driver) else _damaged(connection, driver)
        if damaged:
            raise StoreDamaged(f"{of} is damaged ({', '.join(damaged)}). No copy was made and nothing was changed.")
        contents = _contents(connection)
    if contents.schema > newest:
        raise SchemaTooNew(
            f"{of} was written by a newer Remora (schema {contents.schema}, this one knows {newest}). Nothing was "
            "changed. Install that version, and try again."
        )
    return contents


def remove(path: Path) -> None:
    """Remove a database with what lies beside it. Raises `StoreUnwritable`."""
    try:
        for ending in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    except OSError as exc:
        raise StoreUnwritable(f"Can't remove {path}: {exc.strerror}. Check the rights of its folder.") from exc


def on_disk(path: Path) -> None:
    """Return once a file, or the names in a folder, would outlast a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def empty_log(store: Path, driver: Driver) -> None:
    """Bring what is in the log of a store that nobody uses into its file; where that can't be, the log stays."""
    with suppress(driver.module.Error), _connected(store, driver) as connection:
        connection.execute("pragma busy_timeout = 500")
        connection.execute("pragma wal_checkpoint(truncate)").fetchone()


@contextmanager
def opened(file: Path, driver: Driver) -> Iterator[sqlite3.Connection]:
    """A database to read, whoever else uses it: one committed state for as long as this lasts."""
    with _connected(file, driver) as connection:
        connection.execute("pragma query_only = on")
        connection.execute("begin")
        yield connection


def _snapshot(store: Path, raw: Path, driver: Driver, progress: Progress) -> Contents:
    """Copy the pages; what the same read counts."""
    with opened(store, driver) as source:
        _look_at_kind(source, store)
        # The first read decides which state this is; as long as it lasts, writers only add to their log.
        contents = _contents(source)
        page = int(source.execute("pragma page_size").fetchone()[0])
        with _connected(raw, driver, mode="rwc") as copy:
            source.backup(
                copy,
                pages=_STEP_PAGES,
                progress=lambda status, left, pages: progress((pages - left) * page, pages * page),
                sleep=0.01,
            )
            copy.execute("pragma journal_mode = delete")
    return contents


def _write_anew(raw: Path, partial: Path, driver: Driver) -> None:
    """Pages keep traces of rows that were moved within them: write the copy anew from its rows."""
    try:
        with _connected(raw, driver) as copy:
            _merge_words(copy, driver)
            copy.execute("vacuum into ?", (str(partial),))
    except driver.module.Error as exc:
        if not health.is_damage(exc):
            raise
        # Perhaps of an index alone: the check tells.
        remove(partial)
        raw.replace(partial)


def _merge_words(copy: sqlite3.Connection, driver: Driver) -> None:
    """The word index keeps words of removed rows until it is fed and merged; what it lacks then, the log names still.

    See https://sqlite.org/fts5.html#the_optimize_command.
    """
    tables = {row[0] for row in copy.execute("select name from sqlite_schema where type = 'table'")}
    if not tables >= {"words", "changes"}:
        return
    try:
        if any(row[1] == "doc" for row in copy.execute("pragma table_info(changes)")):
            copy.execute("delete from words where rowid in (select doc from changes)")
        copy.execute("insert into words (words) values ('optimize')")
        # Once more, and why: see `merge_words` in traces.py.
        if copy.execute("select count(*) from words_data where id > 10").fetchone()[0] < 2:
            copy.execute("insert into words (words) values ('rebuild')")
        else:
            copy.execute("insert into words (rowid, scope, tokens) values (-1, '', 'x')")
            copy.execute("insert into words (words) values ('optimize')")
            copy.execute("delete from words where rowid = -1")
    except driver.module.OperationalError as exc:
        # Of a later SQLite: it can't be read by this one, nor searched, and is made anew.
        if "invalid fts5" not in str(exc):
            raise


def _look_at_kind(connection: sqlite3.Connection, file: Path) -> None:
    names = {row[0] for row in connection.execute("select name from sqlite_schema where type = 'table'")}
    if not names >= _TABLES:
        raise StoreDamaged(f"{file} is no Remora database. Nothing was changed.")


def _contents(connection: sqlite3.Connection) -> Contents:
    tables = connection.execute(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name"
    ).fetchall()
    schema = connection.execute("select coalesce(max(version), 0) from migrations").fetchone()[0]
    rows = {
        name: int(connection.execute(f"select count(*) from {name}").fetchone()[0])
        for (name,) in tables
        if name not in health.DERIVED
    }
    return Contents(schema=int(schema), rows=rows)


def _damaged(connection: sqlite3.Connection, driver: Driver) -> list[str]:
    """Which tables are, of those that nobody could make anew."""
    error: type[Exception] = driver.module.Error
    found = health.damaged_canonical(connection, error, free_pages=True)
    if not found:
        tables = connection.execute("select name from sqlite_schema where type = 'table' and rootpage > 0").fetchall()
        found = [
            name for (name,) in tables if name not in health.DERIVED and not _is_sound(connection, driver, f"({name})")
        ]
    return found


def _is_sound(connection: sqlite3.Connection, driver: Driver, what: str = "") -> bool:
    try:
        return [row[0] for row in connection.execute(f"pragma integrity_check{what}")] == ["ok"]
    except driver.module.Error as exc:
        if not health.is_damage(exc):
            raise
        return False


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
def _connected(file: Path, driver: Driver, *, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    connection = driver.module.connect(
        f"{file.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("pragma busy_timeout = 5000")
        yield connection
    finally:
        connection.close()


@contextmanager
def _told(file: Path, driver: Driver) -> Iterator[None]:
    """Say what a failure means for whoever wanted a copy. The driver's texts are SQLite's."""
    try:
        yield
    except OSError as exc:
        raise StoreUnwritable(
            f"Can't write {exc.filename or file}: {exc.strerror}. No copy was made and nothing was changed. Check the "
            "folder, its rights and its disk."
        ) from exc
    except driver.module.Error as exc:
        text = str(exc)
        if "full" in text or "I/O" in text or "readonly" in text or "unable to open" in text:
            raise StoreUnwritable(
                f"Can't copy to or from {file}: {text}. No copy was made and nothing was changed. Check the folder, "
                "its rights and its disk."
            ) from exc
        if "locked" in text:
            raise StoreBusy(
                f"Another program has kept the database locked for too long ({text}). No copy was made. Try again."
            ) from exc
        if health.is_damage(exc) or health.is_undecodable(exc):
            raise StoreDamaged(f"{file} is damaged or no Remora database. Nothing was changed.") from exc
        raise StorageError(f"{file}: {text}") from exc


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise StoreUnwritable(f"Can't read the folder {folder}: {exc.strerror}. Check its rights.") from exc


def _time(stamped: str) -> int | None:
    try:
        return int(datetime.strptime(stamped, _STAMP).replace(tzinfo=UTC).timestamp()) * 1000
    except ValueError:
        return None  # digits, but no date
