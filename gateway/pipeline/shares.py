"""So many places, shared out among people: nobody has more than half of them, and those who wait are served in turn.

Invariants: a place comes free however its holder ends; of two who wait, the one that was served longer ago is next,
however much the other waits for.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager

from channels.slots import Slots


class Shares:
    """`places` at a time."""

    def __init__(self, places: int) -> None:
        self._each = max(1, places // 2)
        self._slots = Slots(places, self._next)

    def place(self, who: str) -> AbstractAsyncContextManager[None]:
        """Inside, `who` has a place; waits for one."""
        return self._slots.slot(who)

    def _next(self, waiting: Collection[str]) -> str | None:
        return next((who for who in waiting if self._slots.held[who] < self._each), None)
