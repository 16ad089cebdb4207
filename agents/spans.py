"""Measures the work: spans for OpenTelemetry, if the operator has switched that on, counts and times for the metrics.

Invariants: names are those of the program and of the configuration. A span never holds a person, a chat or a word, nor
the text of an error.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

#: Makes the spans; `gateway.ops.telemetry` sets it for all work that is begun within its block.
TRACER: Final[ContextVar[Any]] = ContextVar("tracer", default=None)


@contextmanager
def span(name: str, **attributes: str) -> Iterator[None]:
    """Makes the block a part of the span around it. Does nothing where nothing is traced."""
    tracer = TRACER.get()
    if tracer is None:
        yield
        return
    named = {f"remora.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(
        name, attributes=named, record_exception=False, set_status_on_exception=False
    ) as made:
        try:
            yield
        except BaseException as error:
            made.set_attribute("error.type", type(error).__name__)
            raise


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
