"""The updates that wait for one bot, and the one getUpdates that may wait for them.

Invariants: an update is forgotten when an offset above its id is asked for or a webhook has taken it, and never before;
of two polls the older ends with 409. Numbers and the handling of offsets are those of tdlib's update queue (TQueue::get and
Client::do_get_updates).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.platforms.pulse import Pulse

JSON: TypeAlias = dict[str, Any]

#: An offset further above the queue's end than this is not believed, and the queue is given from its head.
_FUTURE = 10
#: The kinds of updates that a bot is not sent unless it asks for them by name.
_UNASKED = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
_LONGEST_POLL = 50


class Refused(Exception):
    """The Bot API says no: `code` and `description` as Telegram words them, with its `parameters`."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


@dataclass(slots=True, eq=False)
class Waiting:
    """An update that waits. `again`: it was confirmed before and is kept until it has gone out once more."""

    id: int
    payload: JSON
    again: bool = False


class Queue:
    """`first_id` is the id of the first update."""

    def __init__(self, pulse: Pulse, first_id: int) -> None:
        self.next_id = first_id
        self.waiting: list[Waiting] = []
        self.confirmed: deque[Waiting] = deque(maxlen=1_000)
        self.confirmed_count = 0
        self.allowed: Sequence[str] = ()
        self.webhook = ""
        self.polling = False
        #: Polls that were ended by another one while somebody still waited for their answer.
        self.conflicts = 0
        self._pulse = pulse
        self._turn = 0

    def put(self, kind: str, payload: JSON) -> int | None:
        """Its id, or None when the bot did not ask for updates of this kind."""
        wanted = kind in self.allowed if self.allowed else kind not in _UNASKED
        return self.inject({kind: payload}) if wanted else None

    def inject(self, update: JSON) -> int:
        """An update as it is, with an id unless it has one."""
        if "update_id" in update:
            update_id = int(update["update_id"])
        else:
            update_id = self.next_id
            self.next_id += 1
        self.waiting.append(Waiting(update_id, {**update, "update_id": update_id}))
        self._pulse.beat()
        return update_id

    def redeliver(self, *, waiting: int, confirmed: int) -> list[int]:
        """The last updates a second time, under their ids."""
        old = list(self.confirmed)[-confirmed:] if confirmed else []
        new = self.waiting[-waiting:] if waiting else []
        again = [Waiting(one.id, one.payload, again=True) for one in (*old, *new)]
        self.waiting.extend(again)
        self._pulse.beat()
        return [one.id for one in again]

    def forget_all(self) -> None:
        self.waiting.clear()
        self._pulse.beat()

    def taken(self, one: Waiting) -> None:
        """A webhook has taken an update; nothing if it waits no more."""
        if one in self.waiting:
            self.waiting.remove(one)
            self.confirmed.append(one)
            self.confirmed_count += 1

    def set_webhook(self, url: str) -> None:
        self.webhook = url
        self._turn += 1
        self.polling = False
        self._pulse.beat()

    async def poll(self, *, offset: int | None, limit: int, seconds: float, gone: Callable[[], bool]) -> list[JSON]:
        """Answers getUpdates. Raises `Refused` with 409. `gone` tells that nobody waits for the answer."""
        if self.webhook:
            raise Refused(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the"
                " webhook first",
            )
        self._turn += 1
        turn = self._turn
        self._pulse.beat()
        self._confirm(offset)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(max(0.0, seconds), _LONGEST_POLL)
        self.polling = True
        try:
            while not self.waiting and loop.time() < deadline and not gone():
                # Short enough to notice a client that went away, which no event tells.
                await self._pulse.wait(min(0.1, deadline - loop.time()))
                if self._turn != turn:
                    self.conflicts += not (self.webhook or gone())
                    raise Refused(409, self._conflict())
        finally:
            if self._turn == turn:
                self.polling = False
        out = self.waiting[: limit if 1 <= limit <= 100 else 100]
        for one in out:
            one.again = False
        return [one.payload for one in out]

    def _conflict(self) -> str:
        if self.webhook:
            return "Conflict: terminated by setWebhook request"
        return "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"

    def _confirm(self, offset: int | None) -> None:
        if not offset or offset > self.next_id + _FUTURE:
            return
        kept = self.waiting[offset:] if offset < 0 else [one for one in self.waiting if one.again or one.id >= offset]
        for one in self.waiting:
            if one not in kept:
                self.confirmed.append(one)
                self.confirmed_count += 1
        self.waiting = kept
        self._pulse.beat()
