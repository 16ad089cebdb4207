"""Remembers which conversations a model refuses to read, so that each goes on.

Invariants: kept in memory only, and for so many conversations: one that is forgotten is refused once more and then goes
on again. No words are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from agents.agent import Reply, Spared

#: The most conversations that are remembered, those last that were refused last.
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparing:
    """The parts of a conversation that a model refuses.

    `last` is true if it has refused its last turn. `spared` is what its requests are made without, and `since` is the
    message before which nothing is read to it any more. `room` is the most tokens of a request, if longer ones were
    refused. `doubted` is true if the last failure may have been an outage.
    """

    last: bool = False
    spared: Spared = ""
    since: int | None = None
    room: int | None = None
    doubted: bool = False


class Refusals:
    """The conversations of a store that a model has refused, by session key."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, Sparing] = OrderedDict()

    def of(self, session_key: str) -> Sparing:
        return self._of.get(session_key, Sparing())

    def failed(self, session_key: str, *, of_request: bool) -> None:
        """Notes that a turn has failed, by a refusal that may be due to what its request held, or otherwise."""
        if of_request:
            self._put(session_key, replace(self.of(session_key), last=True))

    def answered(self, session_key: str, reply: Reply, message_id: int) -> None:
        """Notes that a turn was answered. After a failure that may pass, the next turn is read whole once more."""
        known = self.of(session_key)
        if reply.spared == "before":
            # Later turns are read from this one on, with their calls.
            outage = reply.passing and not known.doubted
            self._put(session_key, Sparing(last=True, since=None if outage else message_id, doubted=outage))
        elif reply.spared:
            self._put(session_key, replace(known, last=False, spared=reply.spared, room=reply.room))
        elif known != Sparing() or reply.room is not None:
            self._put(session_key, replace(known, last=False, doubted=False, room=reply.room))

    def _put(self, session_key: str, sparing: Sparing) -> None:
        self._of[session_key] = sparing
        self._of.move_to_end(session_key)
        while len(self._of) > _MOST:
            self._of.popitem(last=False)
