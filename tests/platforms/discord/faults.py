"""What goes wrong on purpose, and with which request.

Invariants: a fault counts the requests that match it from when it was made; of several that are due the first made
happens; a spent fault stays, spent, so that its number stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.platforms.discord.client import Deed, Moment
from tests.platforms.discord.model import Pulse


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """See `Control.fault`."""

    do: Deed
    at: Moment = "before effect"
    nth: int = 1
    times: int = 1
    method: str | None = None
    channel: int | None = None
    text: str | None = None
    status: int = 502
    code: int = 0
    description: str = "502: Bad Gateway"
    retry_after: float = 3
    everywhere: bool = False
    body: str | None = None
    seconds: float = 0
    pid: int | None = None

    def matches(self, method: str, channel: int | None, text: str) -> bool:
        """Without a method any request of the API matches, and none to the chat model or for a file."""
        right = method not in ("model", "extract", "download") if self.method is None else method == self.method
        return right and self.channel in (None, channel) and (self.text is None or self.text in text)


class Faults:
    """`heal` also ends what hangs."""

    def __init__(self, pulse: Pulse) -> None:
        self._made: list[Fault] = []
        self._met: list[int] = []
        self._healed = 0
        self._pulse = pulse

    def make(self, **fields: Any) -> int:
        """A fault's number, from 0. Raises `TypeError` for fields that are none, `ValueError` for a kill without pid."""
        fault = Fault(**fields)
        if fault.do == "kill" and fault.pid is None:
            raise ValueError("a kill needs the pid of the process")
        self._made.append(fault)
        self._met.append(0)
        return len(self._made) - 1

    def due(self, method: str, channel: int | None, text: str) -> Fault | None:
        """The fault that happens to this request, which is counted for all that match."""
        found: Fault | None = None
        for index, fault in enumerate(self._made):
            if not fault.matches(method, channel, text):
                continue
            self._met[index] += 1
            met = self._met[index]
            if found is None and met >= fault.nth and (fault.times == 0 or met < fault.nth + fault.times):
                found = fault
        return found

    def heal(self) -> None:
        self._made.clear()
        self._met.clear()
        self._healed += 1
        self._pulse.beat()

    @property
    def healed(self) -> int:
        """How often they were removed; what hangs waits for this to change."""
        return self._healed
