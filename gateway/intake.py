"""How a message comes into the inbox, is reworded or taken back there, and what of it is held until asked for.

Invariants: nothing that is unmasked is written anywhere; what is committed is queued by the caller, held for a press,
or known already; nothing can be edited into a command; what is deleted before its turn has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import structlog

from channels.base import Button, Channel, Inbound, Place
from gateway import commands
from gateway.delivery import pieces
from gateway.lanes import Lanes
from gateway.store import Store, where_said, who_said
from gateway.texts import Texts, written_in
from gateway.turn import Agent, Heard, in_words
from gateway.waiting import Waiting
from memory.errors import StorageError
from memory.service import Letter, Piece

log = structlog.get_logger(__name__)

#: What the button "answer now" carries.
NOW: Final = "now"
#: Longer texts are masked in a thread, so that one huge message does not hold up the others.
_LONG = 50_000


class Intake:
    """What becomes of a message, and of its later edit or deletion, before its turn."""

    def __init__(
        self,
        *,
        channels: Mapping[str, Channel],
        served: Callable[[Inbound], Agent],
        lanes: Lanes[Waiting],
        clean: Callable[[str], str],
        redact: Callable[[str], str],
        now: Callable[[], int],
        stale_hours: float,
    ) -> None:
        """`served` gives the agent that a message is for, `now` milliseconds UTC; `lanes` hold what waits for its turn.

        What was said more than `stale_hours` ago is held until somebody asks for its answer.
        """
        self._channels = channels
        self._served = served
        self._lanes = lanes
        self._clean = clean
        self._redact = redact
        self._now = now
        self._stale_ms = int(stale_hours * 3_600_000)

    async def take(self, inbound: Inbound, store: Store, texts: Texts) -> Heard | Literal["held", "repeated"]:
        """Commit a message; "held" when it is too old to be answered unasked, "repeated" when it was taken before.

        Raises `StorageError`.
        """
        heard = await self._masked(inbound)
        stale = self._is_stale(inbound)
        key = inbound.place.session_key
        inbox_id = await store.memory.mail.receive(
            platform=inbound.platform,
            bot_id=inbound.bot_id,
            update_key=inbound.update_key,
            session_key=key,
            payload=heard.inbound.to_json(),
            held=_late_notice(self._channels.get(inbound.channel), texts) if stale else None,
        )
        if inbox_id is None:
            log.info("inbound.repeated", session=key)
            return "repeated"
        if stale:
            store.delivery.wake(key)
            return "held"
        return replace(heard, inbox_id=inbox_id)

    async def set_aside(self, store: Store, letter: Letter) -> bool:
        """Whether what an earlier run left is not answered now: it can't be read, or is old and somebody must ask."""
        inbound = _parsed(letter.payload)
        if inbound is None:
            log.error("inbox.unreadable", row=letter.id, kept="set aside as dead")
            await store.memory.mail.bury(letter.id, error="unreadable")
            return True
        if letter.turn_id is not None or not self._is_stale(inbound):
            return False
        texts = Texts(written_in(inbound.text, self._served(inbound).spec.language))
        await store.memory.mail.hold(letter, _late_notice(self._channels.get(inbound.channel), texts))
        store.delivery.wake(letter.session_key)
        return True

    async def release(self, store: Store, pressed: Heard, texts: Texts) -> Sequence[Letter]:
        """What was held in the place where somebody has `pressed` "answer now", to be answered after all."""
        inbound = pressed.inbound
        (gone, *_) = pieces(self._channels.get(inbound.channel), texts("late.gone"))
        return await store.memory.mail.release(inbound.place.session_key, inbox_id=pressed.inbox_id, gone=gone)

    async def edit(self, waiting: Waiting, served: Agent) -> None:
        """Before its turn an edit replaces the message; after it only memory is corrected.

        Nothing can be edited into a command, for edits have no rights, nor into nothing.
        """
        heard, store = waiting.heard, waiting.store
        edit, key = heard.inbound, heard.inbound.place.session_key
        if commands.parse(edit.text) is not None or not edit.text.strip():
            await store.memory.mail.dismiss(heard.inbox_id)
            return

        def changed(payload: str) -> str | None:
            said = _parsed(payload)
            if said is None or said.edited or (said.message_id, said.author_id) != (edit.message_id, edit.author_id):
                return None
            return replace(said, text=edit.text).to_json()

        reworded = await store.memory.mail.reword(key, changed)
        if reworded is not None and (
            reworded.held or self._lanes.replace(key, _reworded(store, reworded, heard.original))
        ):
            await store.memory.mail.dismiss(heard.inbox_id)
            return
        # Its turn has begun, with the words as they were, or is over.
        await self._lanes.idle(key)
        where, who = where_said(edit, served.spec.name), who_said(edit)
        await store.memory.amend(
            where, who, heard.inbox_id, platform_ref=edit.message_id, text=edit.text, compose=in_words
        )

    async def take_back(self, store: Store, place: Place, message_ids: Sequence[str]) -> None:
        """Messages that wait for their turn have none any more; of others the words go, and what they taught."""
        key = place.session_key

        def is_deleted(payload: str) -> bool:
            said = _parsed(payload)
            return said is not None and said.pressed is None and said.message_id in message_ids

        gone = await store.memory.mail.withdraw(key, is_deleted)
        self._lanes.take_out(key, lambda waiting: waiting.store is store and waiting.heard.inbox_id in gone)
        await store.memory.retract(self._channels[place.channel].platform, key, message_ids)

    async def take_back_learned(self, store: Store, place: Place, message_ids: Sequence[str]) -> None:
        """What a turn that is under way learns from deleted messages goes as well, once it is over."""
        key = place.session_key
        await self._lanes.idle(key)
        try:
            await store.memory.retract(self._channels[place.channel].platform, key, message_ids)
        except StorageError as exc:
            log.error("deleted.unsaved", session=key, error=str(exc), kept="what was learned from the message")

    async def _masked(self, inbound: Inbound) -> Heard:
        """The message with its secrets masked; the original words stay beside it, in RAM."""
        text = inbound.text
        if len(text) > _LONG:
            clean = await asyncio.to_thread(self._clean, text)
            masked = await asyncio.to_thread(self._redact, clean)
        else:
            clean = self._clean(text)
            masked = self._redact(clean)
        safe = replace(
            inbound,
            text=masked,
            author_name=self._redact(self._clean(inbound.author_name)),
            attachments=tuple(
                replace(
                    one,
                    name=self._redact(self._clean(one.name)),
                    media_type=self._redact(self._clean(one.media_type)),
                    reference=self._clean(one.reference),
                )
                for one in inbound.attachments
            ),
            chat_title=self._redact(self._clean(inbound.chat_title)),
        )
        return Heard(inbox_id=0, inbound=safe, original=clean if clean != masked else None)

    def _is_stale(self, inbound: Inbound) -> bool:
        """Said so long ago that an answer out of the blue would be odd, where people can press "answer now"."""
        said = inbound.pressed is None and not inbound.edited
        channel = self._channels.get(inbound.channel)
        asked_for = channel is not None and channel.capabilities.buttons
        return said and asked_for and self._now() - inbound.sent_at > self._stale_ms


def _parsed(payload: str) -> Inbound | None:
    """A stored message; None when it can't be read, by this version at least."""
    try:
        return Inbound.from_json(payload)
    except (ValueError, TypeError, KeyError):
        return None


def _reworded(store: Store, letter: Letter, original: str | None) -> Callable[[Waiting], Waiting | None]:
    """Puts the words of `letter` into the waiting message it stands for; `original` are those before masking."""
    heard = Heard(inbox_id=letter.id, inbound=Inbound.from_json(letter.payload), original=original)

    def in_place(waiting: Waiting) -> Waiting | None:
        same = waiting.store is store and waiting.heard.inbox_id == letter.id
        return replace(waiting, heard=heard) if same else None

    return in_place


def _late_notice(channel: Channel | None, texts: Texts) -> Piece:
    (notice, *_) = pieces(channel, texts("late.ask"), buttons=(Button(label=texts("late.button"), data=NOW),))
    return notice
