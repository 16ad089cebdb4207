"""The questions that night jobs ask about rows: in portions, in halves where a model refuses, and alone where it did.

Invariants: a row that was refused alone is asked about alone again, and after `refusals.SET_ASIDE_AFTER` times no more.
A portion fits beside the instructions in what the model can read, except for a single row that is longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from memory.jobs import refusals, runs
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
        set_aside = refusals.set_aside(reader, self.job)
        return [item for item in items if self.row(item) not in set_aside]

    def portions(
        self, reader: Reader, items: Iterable[T], *, line: Callable[[T], str], size: int, most: int
    ) -> list[Sequence[T]]:
        """Returns the readable items, in their order, in portions of at most `size` bytes and `most` items.

        Items that were refused come last, each alone.
        """
        suspected = refusals.suspected(reader, self.job)
        rest = self.readable(reader, items)
        fresh = [item for item in rest if self.row(item) not in suspected]
        return [*portions(fresh, line, size=size, most=most), *([item] for item in rest if self.row(item) in suspected)]


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
