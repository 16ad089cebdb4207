"""Faults made on purpose in requests to Discord."""

from __future__ import annotations

from dataclasses import dataclass

from tests.platforms import faults
from tests.platforms.discord.client import Deed


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(faults.Fault):
    """See `Control.fault`."""

    do: Deed
    channel: int | None = None
    code: int = 0
    description: str = "502: Bad Gateway"
    retry_after: float = 3
    everywhere: bool = False

    def matches(self, method: str, place: int | None, text: str) -> bool:
        """Without a method any request of the API matches, and none to the chat model or for a file."""
        right = method not in ("model", "extract", "download") if self.method is None else method == self.method
        return right and self.channel in (None, place) and (self.text is None or self.text in text)
