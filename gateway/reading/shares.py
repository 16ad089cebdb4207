"""A number of places, shared out among people: nobody has more than half of them, and those who wait take turns.

Invariants: a place comes free however its holder ends; the waiting person who was served longest ago is next, however
many places others wait for.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager

from channels.slots import Slots


class Shares:
    """The places, of which `places` can be taken at a time."""

    def __init__(self, places: int) -> None:
        self._each = max(1, places // 2)
        self._slots = Slots(places, self._next)

    def place(self, who: str) -> AbstractAsyncContextManager[None]:
        return self._slots.slot(who)

    def _next(self, waiting: Collection[str]) -> str | None:
        return next((who for who in waiting if self._slots.held[who] < self._each), None)
