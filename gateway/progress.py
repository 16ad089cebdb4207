"""What a person sees while an answer is being made: that somebody is typing, and then a placeholder that grows.

Invariants: a placeholder's row is committed before it is sent, and only where the turn outlasts a quick one; a turn
that is taken up again goes on with the placeholder it has shown; nothing here ends or outlasts the turn by more than
`_GRACE` seconds: the answer itself comes with its own row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

import structlog

from channels.base import Channel, ChannelError, Outbound, Place
from memory.errors import StorageError
from memory.service import Mail, Parcel

log = structlog.get_logger(__name__)

#: Seconds before "typing" is shown: quicker answers need none.
_TYPING_AFTER = 0.3
#: Seconds after which platforms take "typing" away again.
_TYPING_LASTS = 4.5
#: Seconds that a request under way gets when the answer is there.
_GRACE = 5.0
#: What stands in the chat until there is text.
WAITING = "…"


class Progress:
    """Around the making of one answer: `async with Progress(…) as progress`, with `progress.on_text` for its pieces."""

    def __init__(
        self,
        mail: Mail,
        channel: Channel,
        place: Place,
        *,
        turn_id: int,
        reply_to: str | None,
        after_seconds: float,
        safe: Callable[[str], str],
    ) -> None:
        """After `after_seconds` a placeholder is shown, where the channel can edit it; `safe` is what may be shown of a

        text that still grows.
        """
        self._mail = mail
        self._channel = channel
        self._place = place
        self._turn_id = turn_id
        self._reply_to = reply_to
        self._after_seconds = after_seconds
        self._safe = safe
        self._text = ""
        self._over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: Parcel | None = None

    async def __aenter__(self) -> Progress:
        self._tasks = [asyncio.create_task(self._type())]
        if self._channel.capabilities.stream == "edit":
            self._tasks.append(asyncio.create_task(self._grow()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if not isinstance(error, asyncio.CancelledError):
            await asyncio.wait(self._tasks, timeout=_GRACE)
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                log.warning("progress.broken", turn=self._turn_id, error=repr(result))
        if self._sending is not None and not isinstance(error, asyncio.CancelledError):
            try:
                await self._mail.not_sent(self._sending, "dead", "orphan")
            except StorageError as exc:
                log.warning("progress.unsaved", turn=self._turn_id, error=str(exc))

    async def on_text(self, text: str) -> None:
        """The answer has grown by `text`."""
        self._text += text

    async def _type(self) -> None:
        pause = _TYPING_AFTER
        while not await self._over_within(pause):
            await self._channel.typing(self._place)
            pause = _TYPING_LASTS

    async def _grow(self) -> None:
        reference = await self._mail.shown_placeholder(self._turn_id)
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
                await self._channel.revise(self._place, reference, self._safe(shown))

    async def _lost(self) -> Parcel | None:
        """The placeholder that an earlier run may have shown, where its platform would know it again."""
        if self._channel.capabilities.resend != "same":
            return None
        return await self._mail.lost_placeholder(self._turn_id)

    async def _placed(self) -> str | None:
        parcel = await self._mail.place_holder(self._place.session_key, self._turn_id, WAITING, self._reply_to)
        return await self._place_it(parcel, retried=False)

    async def _place_it(self, parcel: Parcel, *, retried: bool) -> str | None:
        """The platform's id of a placeholder shown now; None when that can't be done, or is not known to be."""
        self._sending = parcel
        try:
            reference = await self._channel.send(
                Outbound(
                    id=parcel.id,
                    place=self._place,
                    text=WAITING,
                    turn=self._turn_id,
                    reply_to=self._reply_to,
                    made_at=parcel.created_at,
                    retried=retried,
                )
            )
        except ChannelError as exc:
            log.info("placeholder.failed", row=parcel.id, code=exc.code)
            return None
        await self._mail.was_sent(parcel, reference)
        self._sending = None
        return reference

    async def _over_within(self, seconds: float) -> bool:
        """Whether the answer is there before `seconds` have passed."""
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return False
        return True
