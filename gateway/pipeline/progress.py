"""The progress of an answer as a person sees it: "typing", and then a placeholder that grows.

Invariants: a placeholder's row is committed before it is sent, and only if the turn outlasts a quick one and no earlier
message waits: the answer will stand in its place. A turn that is taken up again goes on with its placeholder.
Nothing here ends the turn or outlasts it by more than `_GRACE` seconds: the answer itself comes with its own row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

import structlog

from channels.base import Channel, ChannelError, Outbound, Place
from memory.errors import StorageError
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import OutboxRow

log = structlog.get_logger(__name__)

#: Seconds before "typing" is shown: quicker answers need none.
_TYPING_AFTER = 0.3
#: Seconds after which platforms take "typing" away again.
_TYPING_LASTS = 4.5
#: Seconds that a request under way may still take when the answer is there.
_GRACE = 5.0
#: The text of the placeholder until there is text of the answer.
WAITING = "…"


class Progress:
    """A context manager around the making of one answer; `on_text` takes the pieces of the answer."""

    def __init__(
        self,
        mailbox: Mailbox,
        channel: Channel,
        place: Place,
        *,
        turn_id: int,
        reply_to: str | None,
        after_seconds: float,
        safe: Callable[[str], str],
    ) -> None:
        """After `after_seconds` a placeholder is shown. `safe` returns the part of a growing text that may be shown."""
        self._mailbox = mailbox
        self._channel = channel
        self._place = place
        self._turn_id = turn_id
        self._reply_to = reply_to
        self._after_seconds = after_seconds
        self._safe = safe
        self._text = ""
        self._over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: OutboxRow | None = None

    async def __aenter__(self) -> Progress:
        self._tasks = [asyncio.create_task(self._type())]
        if self._channel.capabilities.stream == "edit":
            self._tasks.append(asyncio.create_task(self._grow()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        try:
            if not isinstance(error, asyncio.CancelledError):
                await asyncio.wait(self._tasks, timeout=_GRACE)
        finally:
            for task in self._tasks:
                task.cancel()
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                log.warning("progress.broken", turn=self._turn_id, error=repr(result))
        if self._sending is not None and not isinstance(error, asyncio.CancelledError):
            try:
                await self._mailbox.not_sent(self._sending, "dead", "orphan")
            except StorageError as exc:
                log.warning("progress.unsaved", turn=self._turn_id, error=str(exc))

    async def on_text(self, text: str) -> None:
        self._text += text

    async def _type(self) -> None:
        pause = _TYPING_AFTER
        while not await self._over_within(pause):
            await self._channel.typing(self._place)
            pause = _TYPING_LASTS

    async def _grow(self) -> None:
        reference = await self._mailbox.shown_placeholder(self._turn_id)
        if reference is None and (lost := await self._lost()) is not None:
            reference = await self._place_it(lost, retried=True)
        elif reference is None:
            if await self._over_within(self._after_seconds):
                return
            # A draft is no message: it needs no row, and vanishes by itself.
            reference = str(self._turn_id) if self._channel.drafts(self._place) else await self._placed()
        shown = ""
        while reference is not None and not await self._over_within(self._channel.capabilities.revise_seconds):
            if self._text.strip() and self._text != shown:
                shown = self._text
                await self._channel.revise(self._place, reference, await asyncio.to_thread(self._safe, shown))

    async def _lost(self) -> OutboxRow | None:
        if self._channel.capabilities.resend != "same":
            return None
        return await self._mailbox.lost_placeholder(self._turn_id)

    async def _placed(self) -> str | None:
        """Shows a placeholder once no earlier message waits. Returns None if the answer is there first, or as below."""
        key = self._place.session_key
        while (row := await self._mailbox.place_holder(key, self._turn_id, WAITING, self._reply_to)) is None:
            if await self._over_within(self._channel.capabilities.revise_seconds):
                return None
        return await self._place_it(row, retried=False)

    async def _place_it(self, row: OutboxRow, *, retried: bool) -> str | None:
        """Shows a placeholder and returns the platform's id of it; None when that failed or may have failed."""
        self._sending = row
        try:
            reference = await self._channel.send(
                Outbound(
                    id=row.id,
                    place=self._place,
                    text=WAITING,
                    turn=self._turn_id,
                    reply_to=self._reply_to,
                    made_at=row.created_at,
                    retried=retried,
                )
            )
        except ChannelError as exc:
            log.info("placeholder.failed", row=row.id, code=exc.code)
            return None
        await self._mailbox.was_sent(row, reference)
        self._sending = None
        return reference

    async def _over_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return False
        return True
