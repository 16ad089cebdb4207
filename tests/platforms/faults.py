"""Faults made on purpose on any platform, and the requests they are made for.

Invariants: a fault counts the requests that match it from when it was made; of several that are due the first made
happens; a spent fault stays, spent, so that its number stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from tests.platforms.pulse import Pulse

#: When a fault happens, seen from the effect of the request.
Moment: TypeAlias = Literal["before effect", "after effect", "after answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The `nth` matching request from when it was made goes wrong, and `times - 1` after it; 0 goes on for ever.

    Matching is by `method` ("model" and "extract" for the fake chat model, "download" for files, whose text is the path
    or the name), `place` (a chat or channel), and a part of the `text`. `do` is the platform's own. `kill` sends SIGKILL
    to `pid`, `seconds` after the moment; `refuse` gives `status` and `description` in the platform's words, `status`
    gives `body` (a web page by default) with that HTTP status.
    """

    #: Methods it meets only by their names.
    apart: ClassVar[frozenset[str]]

    do: str
    at: Moment = "before effect"
    nth: int = 1
    times: int = 1
    method: str | None = None
    place: int | None = None
    text: str | None = None
    status: int = 502
    description: str = "Bad Gateway"
    body: str | None = None
    seconds: float = 0
    pid: int | None = None

    def matches(self, method: str, place: int | None, text: str) -> bool:
        """Returns whether the fault is made for this request."""
        right = method not in self.apart if self.method is None else method.lower() == self.method.lower()
        return right and self.place in (None, place) and (self.text is None or self.text in text)


F = TypeVar("F", bound=Fault)


class Faults(Generic[F]):
    """The faults of one bot; `heal` also ends what hangs."""

    def __init__(self, kind: type[F], pulse: Pulse) -> None:
        self._kind = kind
        self._made: list[F] = []
        self._met: list[int] = []
        self._healed = 0
        self._pulse = pulse

    def make(self, **fields: Any) -> int:
        """A fault's number, from 0. Raises `TypeError` for fields that are none, `ValueError` for what can't happen."""
        fault = self._kind(**fields)
        if fault.do not in get_args(get_type_hints(self._kind)["do"]):
            raise ValueError(f"nothing can {fault.do}")
        if fault.do == "kill" and fault.pid is None:
            raise ValueError("a kill needs the pid of the process")
        self._made.append(fault)
        self._met.append(0)
        return len(self._made) - 1

    def due(self, method: str, place: int | None, text: str) -> F | None:
        """The fault that happens to this request, which is counted for all that match."""
        found: F | None = None
        for index, fault in enumerate(self._made):
            if not fault.matches(method, place, text):
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
