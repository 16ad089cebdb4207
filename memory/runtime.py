"""The clock, the ids and the count of tokens, which a store takes from the process that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The time in milliseconds UTC, short random texts for ids, and the count of a text's tokens.

    `twice` makes the store run every transaction twice, for tests; see `Database`.
    """

    now: Callable[[], int]
    new_id: Callable[[], str]
    count_tokens: Callable[[str], int]
    twice: bool = False

    def memory_id(self) -> str:
        return f"m_{self.new_id()}"
