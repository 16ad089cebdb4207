"""The requests of a bot, in order, and what became of each.

Invariants: every request is entered when it arrives and closed when its fate is known; a request is unanswered when its
client was gone before the answer could be written, or got something else in its place, whoever did it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from typing import Any, Final

_KEPT = 5_000
#: A request that waits for something to come: between two of them a bot is at rest.
_POLL: Final = "getUpdates"


@dataclass(slots=True)
class Entry:
    """One request. `effect`: it changed the world; `answered`: its answer was written to a client that was there.

    `files` are the names and bytes (their number) of what came with it.
    """

    number: int
    method: str
    chat: int | None
    text: str
    at: float
    status: int | None = None
    code: int = 0
    description: str = ""
    effect: bool = False
    answered: bool = False
    fault: str = ""
    files: list[tuple[str, int]] = field(default_factory=list)


class Ledger:
    """`now` gives seconds UTC; `showing` are the methods that show something."""

    def __init__(self, now: Callable[[], float], *, showing: Collection[str]) -> None:
        self.counts: Counter[str] = Counter()
        self.last: deque[Entry] = deque(maxlen=_KEPT)
        self.unanswered: list[dict[str, Any]] = []
        self.kills: list[dict[str, Any]] = []
        self.open: dict[int, Entry] = {}
        self.polls = 0
        self.last_poll: float | None = None
        self.last_other: float = now()
        self._now = now
        self._showing = showing
        self._number = 0

    def opened(self, method: str, chat: int | None, text: str) -> Entry:
        self._number += 1
        entry = Entry(self._number, method, chat, text, self._now())
        self.counts[method] += 1
        self.last.append(entry)
        self.open[entry.number] = entry
        if method == _POLL:
            self.polls += 1
            self.last_poll = entry.at
        else:
            self.last_other = entry.at
        return entry

    def closed(self, entry: Entry) -> None:
        del self.open[entry.number]
        if entry.method != _POLL:
            self.last_other = self._now()
        if entry.method in self._showing and not entry.answered:
            self.unanswered.append(asdict(entry))

    def killed(self, pid: int, at: str, entry: Entry) -> None:
        """The product is about to be killed in the course of `entry`."""
        sends = [asdict(one) for one in self.open.values() if one.method in self._showing and not one.answered]
        self.kills.append({"pid": pid, "at": at, "method": entry.method, "unanswered": sends})

    @property
    def busy(self) -> bool:
        """Whether anything but a poll is open."""
        return any(entry.method != _POLL for entry in self.open.values())
