"""Moves a store from a file to a PostgreSQL server, or from a server to a file.

Invariants: The original store is only read, and no other process uses either of the two meanwhile. After an
interruption at any moment the same call continues where the copy stopped. A copy is usable only once it was compared
with the original, row by row. A store that was used is never overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from memory.errors import MemoryFault
from memory.recall import index
from memory.store import moving
from memory.store.database import Database, Durability, Reader, Transaction
from memory.store.moving import Mark, Place, Values
from memory.store.sqlite import health
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.database import look as look_at_file
from memory.store.sqlite.tables import StoreTable

#: Settings that a copy makes itself: its mark, and the version of its word index.
_OWN_SETTINGS: Final = (moving.MARK, index.VERSION)


class NotMoved(MemoryFault):
    """The store can't be moved as it is; the text gives the reason and the remedy."""

    code = "not_moved"


class NoStore(NotMoved):
    """There is no store to move."""

    code = "no_store"


class Differs(NotMoved):
    """A copy is not equal to the original."""

    code = "differs"


#: A function called with the number of finished rows, and their table.
Advance: TypeAlias = Callable[[int, str], None]
Carry: TypeAlias = Callable[[Transaction, StoreTable, Sequence[Values]], None]
#: A function that shows the progress of a number of rows under a heading.
Show: TypeAlias = Callable[[int, str], AbstractContextManager[Advance]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedStore:
    """The result of a move: the rows but for those of indexes, and the NUL characters that were replaced.

    `is_new` is False if the store had been moved before and the copy is still equal.
    """

    rows: int
    people: int
    messages: int
    memories: int
    nuls: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """A store that can be the file `path` or in the PostgreSQL database at `url`, and the durability of its writes."""

    path: Path
    url: str
    durability: Durability
    now: int

    def name(self, place: Place) -> str:
        return str(self.path) if place == "file" else f"{self.path.stem} in the PostgreSQL database"

    async def look(self, place: Place) -> Mark | None:
        """Returns the mark of the store in a place. Raises `NoStore`, or another error if it is of another version."""

        def act(reader: Reader) -> tuple[Mark | None]:
            if not moving.is_current(reader):
                # A newer version may have added columns that this one works with but would not copy.
                raise NotMoved(
                    f"{self.name(place)} was written by a newer Remora. Nothing was changed; move it with that version."
                )
            return (moving.marked(reader),)

        if place == "file":
            found = await look_at_file(self.path, act)
        else:
            from memory.store.postgres.database import look as look_at_server  # an extra that few need

            found = await look_at_server(self.url, self.path, act)
        if found is None:
            raise NoStore(f"There is no store {self.name(place)}, so there is nothing to move.")
        return found[0]

    async def open(self, place: Place) -> Database:
        """Opens the store in a place for this process alone. Makes it if it is missing."""
        if place == "file":
            return await SqliteDatabase.open(self.path, now=self.now, durability=self.durability)
        from memory.store.postgres.database import PostgresDatabase  # an extra that few need

        return await PostgresDatabase.open(self.url, self.path, now=self.now, durability=self.durability, alone=True)


async def move(ends: Ends, to: Place, *, anew: bool, show: Show) -> MovedStore:
    """Copies the store to a place from the other one, and compares both. `anew` restarts an unfinished copy.

    Raises `NotMoved`, or `memory.errors.StorageError` or a subclass.
    """
    origin: Place = "file" if to == "postgres" else "postgres"
    if await ends.look(origin) is not None:
        raise NotMoved(
            f"{ends.name(origin)} is itself an unfinished copy, so it was not moved. Finish it with "
            f"`remora move --to {origin}`."
        )
    async with _opened(ends, origin) as source, _opened(ends, to) as target:
        return await _Move(source, target, ends, to, show).run(anew=anew)


@asynccontextmanager
async def _opened(ends: Ends, place: Place) -> AsyncIterator[Database]:
    database = await ends.open(place)
    try:
        yield database
    finally:
        await database.close()


class _Move:
    def __init__(self, source: Database, target: Database, ends: Ends, to: Place, show: Show) -> None:
        self._source = source
        self._target = target
        self._ends = ends
        self._to: Place = to
        self._show = show
        self._tables = moving.carried()
        self._copied = 0

    async def run(self, *, anew: bool) -> MovedStore:
        origin = await self._source.read(moving.origin)
        counts = {table.name: await self._source.examine(partial(moving.count, table=table)) for table in self._tables}
        mark = await self._target.read(moving.marked)
        if mark is None and (used := await self._target.read(moving.used)):
            rows = await self._refuse_unless_equal(used, counts)
            return _moved(counts, rows=rows, nuls=0, is_new=False)
        if mark is not None and not anew and mark.origin != origin:
            raise NotMoved(
                f"{self._ends.name(self._to)} is the unfinished copy of another store, so nothing was changed. Add "
                "--anew to drop it and copy this one."
            )
        if mark is None or anew:
            mark = Mark(origin=origin, to=self._to)
            await self._target.write(partial(_begin, mark=mark))
        nuls = await self._copy(mark, total=sum(counts.values()))
        rows = await self._compare(self._tables, counts)
        given = await self._source.read(lambda reader: reader.given_ids())
        await self._target.write(partial(_finish, given=given))
        await self._make_index()
        return _moved(counts, rows=rows, nuls=nuls, is_new=True)

    async def _refuse_unless_equal(self, used: dict[str, int], counts: dict[str, int]) -> int:
        """Returns the number of rows. Raises `NotMoved` if the target, which was used, differs from the source."""
        # Derived tables change when an index is made anew.
        canonical = tuple(table for table in self._tables if table.name not in health.DERIVED)
        try:
            return await self._compare(canonical, counts)
        except Differs as exc:
            held = ", ".join(f"{count} {table}" for table, count in used.items())
            raise NotMoved(f"{self._ends.name(self._to)} holds another store ({held}). {self._make_room()}") from exc

    def _make_room(self) -> str:
        if self._to == "postgres":
            from memory.store.postgres import schema

            return (
                "Nothing was changed. Name another database, or, if you no longer need that store, drop it: "
                f'drop schema "{schema.name_of(self._ends.path)}" cascade'
            )
        name = self._ends.path.name
        return (
            f"Nothing was changed. Move that file away, with {name}-wal and {name}-shm if they are there, and try "
            f"again. Leave {name}.key and {name}.erased where they are: the moved store needs them."
        )

    async def _copy(self, mark: Mark, *, total: int) -> int:
        """Copies the rows that are not copied yet. Returns the number of all replaced NUL characters."""
        steps = [(table, moving.put) for table in self._tables]
        steps += [(table, moving.connect) for table in self._tables if table.within]
        with self._show(total, f"Copying {self._ends.path.name}") as advance:
            advance(mark.rows, "")
            while mark.step < len(steps):
                table, carry = steps[mark.step]
                rows = await self._source.read(partial(moving.page, table=table, after=mark.after))
                if rows:
                    # The steps after the copying only connect rows that were counted before.
                    new = len(rows) if carry is moving.put else 0
                    nuls = sum(_nuls(row) for row in rows) if carry is moving.put and self._to == "postgres" else 0
                    mark = replace(mark, after=_key(table, rows[-1]), rows=mark.rows + new, nuls=mark.nuls + nuls)
                    await self._target.write(partial(_put, carry=carry, table=table, rows=rows, mark=mark))
                    advance(new, table.name)
                else:
                    mark = replace(mark, step=mark.step + 1, after=None)
        return mark.nuls

    async def _make_index(self) -> None:
        mending = index.Mending(self._target)
        with self._show(1, f"Making the word index of {self._ends.path.name}") as advance:
            try:
                await mending.begin()
                await mending.done()
            finally:
                await mending.close()
            advance(1, "")

    async def _compare(self, tables: Sequence[StoreTable], counts: dict[str, int]) -> int:
        """Returns the number of rows that are not derived. Raises `Differs` if a table of the target is not equal.

        Derived rows are not counted: a copy makes its word index at the end, which uses up the list of changes.
        """
        rows = 0
        with self._show(sum(counts[table.name] for table in tables), f"Checking {self._ends.path.name}") as advance:
            for table in tables:
                one = await _digest(self._source, table, advance)
                other = await _digest(self._target, table, _nothing)
                if one != other:
                    raise Differs(await self._difference(table, one[0], other[0]))
                rows += one[0] * (table.name not in health.DERIVED)
        return rows

    async def _difference(self, table: StoreTable, count: int, copied: int) -> str:
        key = await _first_difference(self._source, self._target, table)
        return (
            f"The copy is not equal to the original: {table.name} has {copied} rows there and {count} here, and the "
            f"first difference is at {', '.join(table.key)} = {', '.join(map(str, key))}. The copy stays locked. If "
            "a bot used the original since the copy began, add --anew to copy it once more. Otherwise look at the "
            "disks and logs of both."
        )


def _begin(tx: Transaction, *, mark: Mark) -> None:
    moving.clear(tx)
    moving.mark(tx, mark)


def _finish(tx: Transaction, *, given: dict[str, int]) -> None:
    tx.give_ids_behind(given)
    moving.unmark(tx)


def _put(tx: Transaction, *, carry: Carry, table: StoreTable, rows: list[Values], mark: Mark) -> None:
    carry(tx, table, [row for row in rows if _is_carried(table, row)])
    moving.mark(tx, mark)


def _is_carried(table: StoreTable, row: Values) -> bool:
    return table.name != "store_settings" or row[table.columns.index("name")] not in _OWN_SETTINGS


def _key(table: StoreTable, row: Values) -> Values:
    return tuple(row[table.columns.index(column)] for column in table.key)


def _nuls(row: Values) -> int:
    return sum(value.count("\x00") for value in row if isinstance(value, str))


async def _rows(database: Database, table: StoreTable, advance: Advance) -> AsyncIterator[Values]:
    after = None
    while rows := await database.read(partial(moving.page, table=table, after=after)):
        after = _key(table, rows[-1])
        advance(len(rows), table.name)
        for row in rows:
            if _is_carried(table, row):
                yield row


def _canonical(row: Values) -> bytes:
    """Returns a row as bytes that are the same on both engines. PostgreSQL holds no NUL in a text."""
    values = (value.replace("\x00", "\ufffd") if isinstance(value, str) else value for value in row)
    return hashlib.sha256(repr(tuple(values)).encode("utf-8", "surrogatepass")).digest()


async def _digest(database: Database, table: StoreTable, advance: Advance) -> tuple[int, int]:
    """Returns the number of a table's rows, and a sum over them that does not depend on their order."""
    count = total = 0
    async for row in _rows(database, table, advance):
        count += 1
        total = (total + int.from_bytes(_canonical(row), "big")) % 2**256
    return count, total


async def _first_difference(source: Database, target: Database, table: StoreTable) -> Values:
    """Returns the key of the first row that is missing or different in one of the stores."""
    ours, theirs = _rows(source, table, _nothing), _rows(target, table, _nothing)
    while True:
        one, other = await anext(ours, None), await anext(theirs, None)
        if one is None or other is None or _canonical(one) != _canonical(other):
            keys: list[Any] = [_key(table, row) for row in (one, other) if row is not None]
            return min(keys, default=())


def _moved(counts: dict[str, int], *, rows: int, nuls: int, is_new: bool) -> MovedStore:
    return MovedStore(
        rows=rows,
        people=counts["people"],
        messages=counts["messages"],
        memories=counts["memories"],
        nuls=nuls,
        is_new=is_new,
    )


def _nothing(count: int, table: str) -> None:
    """Shows nothing."""
