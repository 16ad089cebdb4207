"""Programs as a channel: each request waits for its answer, and a program hears only answers to its requests.

Invariants: a request is known by its key, however often it is sent: its repetitions wait for the same answer. An answer
for which nobody waits any more is kept for a short while in RAM, until a repetition of the request has fetched it. A
message that answers no request waits in the outbox for the next request in its place, and comes after its answer. In
one place one request is answered at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final
from weakref import WeakValueDictionary

from channels.base import (
    Attachment,
    Capabilities,
    Channel,
    ChannelUnavailable,
    Health,
    Host,
    Inbound,
    NotTaken,
    Outbound,
    Place,
    carried,
)

#: The channel's id, which is also the name of its platform.
API: Final = "api"
#: The most answers that are kept for a repetition, and the most requests that are known to have been answered.
_KEPT: Final = 200
_KNOWN: Final = 5_000
#: The words before a message that an earlier run may have shown already.
_EARLIER: Final = "(from earlier)"


class ApiReply:
    """The answer to one request while it grows. Any number of requests may read it."""

    def __init__(self) -> None:
        self.over = False
        #: The id of the turn that made the answer, once it is known.
        self.turn: int | None = None
        #: The reason why there is no answer; "" if there is one.
        self.refused = ""
        #: Whether the request is committed.
        self.taken = False
        self._rows: dict[str, str] = {}
        self._growing = ""
        self._beside: dict[str, str] = {}
        self._changed = asyncio.Event()

    @property
    def text(self) -> str:
        beside = self._beside if self.over else {}
        return "\n\n".join([*self._rows.values(), *([self._growing] if self._growing else []), *beside.values()])

    def grow(self, text: str) -> None:
        self._growing = text
        self._tell()

    def add(self, text: str, *, reference: str = "") -> None:
        """Takes a complete message of the answer, in place of the grown text or of the message with that reference."""
        self._growing = ""
        self._rows[reference] = text
        self._tell()

    def add_beside(self, text: str, *, reference: str) -> None:
        """Takes a message that answers something else. It is shown when the answer is complete."""
        (self._rows if reference in self._rows else self._beside)[reference] = text

    def close(self) -> None:
        self.over = True
        self._tell()

    async def done(self) -> None:
        while not self.over:
            await self._changed.wait()

    async def pieces(self, quiet: float) -> AsyncIterator[str]:
        """Yields the answer piece by piece, without a last word that may still grow, and "" every `quiet` seconds."""
        shown = ""
        while True:
            changed = self._changed
            whole = self.text
            upto = len(whole) if self.over else max(whole.rfind(" "), whole.rfind("\n")) + 1
            if whole.startswith(shown) and upto > len(shown):
                piece, shown = whole[len(shown) : upto], whole[:upto]
                yield piece
            elif self.over and not whole.startswith(shown):
                yield f"\n\n{whole}"  # the text shown before has changed and can't be taken back
            if self.over:
                return
            try:
                await asyncio.wait_for(changed.wait(), quiet)
            except TimeoutError:
                yield ""

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class ApiChannel(Channel):
    id = API
    platform = API
    capabilities = Capabilities(
        stream="edit", resend="mark", burst_seconds=0, revise_seconds=0.02, shows_after=0.0, comes_and_goes=True
    )

    def __init__(self, *, now: Callable[[], int], harmless: Callable[[str], str]) -> None:
        """`now` gives milliseconds UTC. `harmless` is applied to each answer, as programs show them as Markdown."""
        self._now = now
        self._harmless = harmless
        self._host: Host | None = None
        self._replies: dict[str, ApiReply] = {}
        self._current: dict[str, ApiReply] = {}
        self._answered: dict[str, None] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self._crashes: asyncio.Queue[BaseException] = asyncio.Queue()

    async def ask(self, inbound: Inbound) -> ApiReply:
        """Takes a request, whose key is its `ticket`; returns its growing answer. Raises `ChannelUnavailable`."""
        reply = self._replies.get(inbound.ticket)
        if reply is None:
            if self._host is None:
                raise ChannelUnavailable("Nobody is there to answer yet. Try again in a few seconds.")
            reply = self._replies[inbound.ticket] = ApiReply()
            if len(self._replies) > _KEPT:
                oldest = next((ticket for ticket, one in self._replies.items() if one.over), None)
                self._replies.pop(oldest or "", None)
            task = asyncio.create_task(self._answer(self._host, inbound, reply))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        return reply

    def delivered(self, ticket: str) -> None:
        """Notes that the answer to a request has reached the program that asked. It is not kept any longer."""
        self._replies.pop(ticket, None)
        self._answered[ticket] = None
        if len(self._answered) > _KNOWN:
            del self._answered[next(iter(self._answered))]

    def was_delivered(self, ticket: str) -> bool:
        """Returns whether an answer surely reached the program that asked, as far as this run of the process knows."""
        return ticket in self._answered

    async def _answer(self, host: Host, inbound: Inbound, reply: ApiReply) -> None:
        key = inbound.place.session_key
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            self._current[key] = reply
            try:
                await host.on_inbound(inbound)
                reply.taken = True
                await host.settled(inbound.place)
            except NotTaken as exc:
                reply.refused = str(exc)
            finally:
                if not reply.taken:
                    reply.refused = reply.refused or "The message was not taken. Send it again."
                if reply.refused:
                    # A program that sends it again asks anew.
                    self._replies.pop(inbound.ticket, None)
                del self._current[key]
                reply.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Ends `run` with the error that kept a request from being taken."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashes.put_nowait(error)

    def reachable(self, place: Place) -> bool:
        return place.channel == self.id and place.session_key in self._current

    def health(self) -> Health:
        return Health(contact=self._now())

    async def run(self, host: Host) -> None:
        self._host = host
        try:
            raise await self._crashes.get()
        finally:
            self._host = None

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        return carried(attachment, limit=limit)

    def drafts(self, place: Place) -> bool:
        return True

    async def revise(self, place: Place, reference: str, text: str) -> None:
        reply = self._current.get(place.session_key)
        if reply is not None and reference.isdecimal():
            reply.turn = int(reference)
            reply.grow(text)

    async def send(self, outbound: Outbound) -> str:
        text = await asyncio.to_thread(self._harmless, outbound.text)
        current = self._current.get(outbound.place.session_key)
        reference = outbound.edits or f"api-{outbound.id}"
        if outbound.ticket:
            # Nobody may wait for this answer: the next request that repeats the question finds it in history.
            reply = self._replies.get(outbound.ticket)
            if reply is not None and not outbound.id:
                reply.refused = text
            elif reply is not None:
                reply.turn = outbound.turn or reply.turn
                reply.add(text, reference=reference)
        elif current is not None:
            mark = f"{_EARLIER} " if outbound.earlier_run else ""
            current.add_beside(mark + text, reference=reference)
        else:
            raise ChannelUnavailable("Nobody waits for an answer there.")
        return reference
