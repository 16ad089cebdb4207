"""Counts and durations of the work since the start, for the metrics.

Invariant: the names of counts come from the program and the configuration, never from a person or a place.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from agents.spans import span

T = TypeVar("T")

#: The upper bounds of the classes of durations, in seconds.
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0)


@dataclass(slots=True)
class Durations:
    """Durations, counted by the first of `BOUNDS` that they don't exceed; the last count is of those above all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class WorkTally:
    """The counts and durations of one part of the pipeline: `counts` by event and detail, `durations` by event."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, Durations] = {}

    async def timed(self, what: str, work: Awaitable[T]) -> T:
        """Does some work and adds the time that it takes, however it ends."""
        began = time.perf_counter()
        try:
            with span(what):
                return await work
        finally:
            self.durations.setdefault(what, Durations()).add(time.perf_counter() - began)
