"""The questions that night jobs ask about rows: in portions, in halves where a model refuses, and alone where it did.

Invariants: a row that was refused alone is asked about alone again, and after `SET_ASIDE_AFTER` times no more.
A portion fits beside the instructions in what the model can read, except for a single row that is longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from memory.jobs import runs
from memory.jobs.base import Step
from memory.jobs.journal import Journal
from memory.learn.model import ModelRequest
from memory.store.database import Reader, Transaction

T = TypeVar("T")


# Without slots: a frozen generic class with slots can't be made as RowQuestion[T](…) in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class RowQuestion(Generic[T]):
    """A job asking a model about items, each of which stands for the row `row`.

    `carry_out` takes the answer and the items that were shown. A question about fewer than `least` items is not worth
    asking in the place of a refused one.
    """

    job: str
    row: Callable[[T], int]
    request: Callable[[Sequence[T]], ModelRequest]
    carry_out: Callable[[Transaction, str, Sequence[T]], Mapping[str, int]]
    least: int = 1

    def about(self, items: Sequence[T]) -> Step:
        """Returns the step that asks about all of these at once, or about each half if the model refuses that."""
        middle = len(items) // 2
        halves = [items[:middle], items[middle:]] if middle >= self.least else []
        return Step(
            request=self.request(items),
            carry_out=lambda tx, answer: self.carry_out(tx, answer, items),
            about=tuple(dict.fromkeys(map(self.row, items))),
            instead=lambda: [self.about(half) for half in halves],
        )

    def readable(self, reader: Reader, items: Iterable[T]) -> list[T]:
        aside = set_aside(reader, self.job)
        return [item for item in items if self.row(item) not in aside]

    def portions(
        self, reader: Reader, items: Iterable[T], *, line: Callable[[T], str], size: int, most: int
    ) -> list[Sequence[T]]:
        """Returns the readable items, in their order, in portions of at most `size` bytes and `most` items.

        Items that were refused come last, each alone.
        """
        alone = suspected(reader, self.job)
        rest = self.readable(reader, items)
        fresh = [item for item in rest if self.row(item) not in alone]
        return [*portions(fresh, line, size=size, most=most), *([item] for item in rest if self.row(item) in alone)]


def portions(items: Iterable[T], line: Callable[[T], str], *, size: int, most: int) -> Iterator[list[T]]:
    """Yields items, in their order, in portions of `most` at most whose lines take `size` bytes at most.

    An item that is longer stands alone.
    """
    some: list[T] = []
    left = size
    for item in items:
        length = len(line(item).encode())
        if some and (len(some) == most or length > left):
            yield some
            some, left = [], size
        some.append(item)
        left -= length
    if some:
        yield some


def undone(reader: Reader, job: str, owner_id: int, *, agent_id: int | None = None) -> list[Journal]:
    """Returns the journals of a job's changes to an owner's rows that a person has undone: it makes none of them again.

    With `agent_id`, only those of that agent's runs.
    """
    return [Journal.from_json(text) for text in runs.undone(reader, job, owner_id, agent_id=agent_id)]


#: The number of refusals after which a memory is set aside.
SET_ASIDE_AFTER: Final = 3


def note(tx: Transaction, job: str, memory_ids: Collection[int], *, counted: bool) -> int:
    """Notes that a question about these memories was refused. Returns how many of them are set aside by it.

    It is `counted` against them if it was about nothing else.
    """
    rows = tx.all(
        "insert into refusals (job, memory_id, tries) select ?1, m.id, ?2 from memories m"
        " where m.id in (select value from json_each(?3))"
        " on conflict (job, memory_id) do update set tries = refusals.tries + ?2 returning tries",
        (job, int(counted), memory_ids),
    )
    return sum(row["tries"] == SET_ASIDE_AFTER for row in rows) if counted else 0


def forgive(tx: Transaction, job: str, memory_ids: Collection[int]) -> None:
    tx.run(
        "delete from refusals where job = ? and memory_id in (select value from json_each(?))",
        (job, memory_ids),
    )


def noted(reader: Reader, job: str) -> set[int]:
    """Returns the memories that a refused question was about, alone or among others."""
    return set(reader.ids("select memory_id from refusals where job = ?", (job,)))


def suspected(reader: Reader, job: str) -> set[int]:
    """Returns the memories that were refused alone: they are asked about alone again."""
    return set(reader.ids("select memory_id from refusals where job = ? and tries > 0", (job,)))


def set_aside(reader: Reader, job: str) -> set[int]:
    return set(reader.ids("select memory_id from refusals where job = ? and tries >= ?", (job, SET_ASIDE_AFTER)))


def count_set_aside(reader: Reader) -> int:
    return reader.number("select count(*) as n from refusals where tries >= ?", (SET_ASIDE_AFTER,))


def retry(tx: Transaction) -> None:
    """Gives what is set aside one more try: the model may be another now."""
    tx.run("update refusals set tries = ? where tries >= ?", (SET_ASIDE_AFTER - 1, SET_ASIDE_AFTER))
