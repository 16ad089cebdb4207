"""Shows messages in Telegram's chats: new messages, with or without a file, edits and drafts, at the pace it allows.

Invariants: requests go to a chat one after the other, and none while Telegram asks to wait. A thread's message is
never shown elsewhere in a group. A message that Telegram refuses with its formatting is shown as plain text.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import structlog
from aiogram.methods import (
    EditMessageText,
    SendChatAction,
    SendDocument,
    SendMessage,
    SendMessageDraft,
    SetMessageReaction,
    TelegramMethod,
)
from aiogram.types import (
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
)
from pydantic import TypeAdapter, ValidationError

from channels import markup
from channels.base import (
    EYES,
    Button,
    ChannelError,
    ChannelUnavailable,
    Chunk,
    EditGone,
    Outbound,
    Place,
    TooLarge,
    rows,
)
from channels.telegram.updates import GENERAL
from channels.telegram.wire import TelegramRateLimited, TelegramRefused, Wire, not_shown

log = structlog.get_logger(__name__)

#: Bytes of a file that a bot may send: "up to 50 MB" (core.telegram.org/bots/api#senddocument).
FILE_LIMIT = 50_000_000
ASIDE_SECONDS = 5.0  # a request nobody waits for, such as "typing", may take this long

#: Bytes a second on the slowest connection expected; a file has that much more time than a message.
_UPLOAD_RATE = 250_000
#: Telegram's limits (core.telegram.org/bots/faq): one message a second in a chat, 20 a minute in a group, edits too.
_CHAT_GAP = 1_000  # milliseconds
#: Milliseconds between a request and a piece of a growing answer; more than Telegram asks for, so that the whole answer
#: can follow at once.
_PIECE_GAP = 1_500
_GROUP_PIECE_GAP = 3_000
_GROUP_WINDOW = 60_000
#: The part of a group's 20 requests a minute that growing answers may use; the rest is for messages that must arrive.
_GROUP_REVISIONS = 15
#: Chats whose pace is remembered before those that have been quiet for a minute are forgotten.
_MOST_PACES = 1_000
#: A draft vanishes after 30 s (core.telegram.org/bots/api#sendmessagedraft); it is shown anew before that.
_DRAFT_GAP = 20_000
#: The id of a supergroup or channel is this number minus its own number.
_SUPERGROUPS = -1_000_000_000_000
_ENTITIES: TypeAdapter[list[MessageEntity]] = TypeAdapter(list[MessageEntity])


class TelegramScreen:
    """The messages that one bot shows. `now` gives milliseconds UTC. `stream` "draft" is for private answers."""

    def __init__(
        self,
        channel: str,
        wire: Wire,
        *,
        stream: Literal["edit", "draft", "mark"],
        now: Callable[[], int],
        request_seconds: float,
    ) -> None:
        self._channel = channel
        self._wire = wire
        self._stream = stream
        self._drafting = stream == "draft"
        self._now = now
        self._request_seconds = request_seconds
        self._paces: dict[str, _Pace] = {}
        self._limits: dict[str, tuple[int, int]] = {}  # chat to the time in which Telegram wants no request, ms UTC
        self._asides: set[asyncio.Task[None]] = set()

    def drafts(self, place: Place) -> bool:
        return self._drafting and _is_private(place)

    async def revise(self, place: Place, reference: str, text: str) -> None:
        """See `Channel.revise`.

        A request once begun is finished even if the caller is cancelled. Otherwise a request that Telegram got but
        nobody waited for could take effect after the edit with the whole answer, and undo it.
        """
        pace = self._pace(place.chat)
        now = self._now()
        group = place.chat.startswith("-")
        if pace.lock.locked() or self._rest(place.chat) or pace.revised_early(now, group=group):
            return
        drafting = self.drafts(place)
        if drafting:
            pace.drafted = reference
        elif self._stream == "draft" and _is_private(place) and not pace.showed(reference):
            return  # the id of a turn whose drafts were refused meanwhile
        shown = markup.telegram(text[: 2 * markup.TELEGRAM_LIMIT])[0]
        if pace.revision == (reference, shown) and not (drafting and not pace.early(now, _DRAFT_GAP)):
            return
        pace.revision = (reference, shown)
        outbound = Outbound(id=0, place=place, text=shown.text, markup=shown.markup, edits=reference)
        await asyncio.shield(self._aside(self._draft(outbound) if drafting else self._revise(outbound)))

    async def typing(self, place: Place) -> None:
        pace = self._pace(place.chat)
        if pace.lock.locked() or self._rest(place.chat) or pace.early(self._now(), _CHAT_GAP):
            return
        with suppress(ChannelError, ValueError):
            async with pace.lock:
                thread = _thread(place)
                action = SendChatAction(chat_id=int(place.chat), action="typing", message_thread_id=thread)
                await self._call(place.chat, action, seconds=ASIDE_SECONDS)

    async def mark(self, place: Place, message_id: str, *, on: bool) -> None:
        if not message_id.isdecimal():
            return
        reaction = SetMessageReaction(
            chat_id=int(place.chat),
            message_id=int(message_id),
            reaction=[ReactionTypeEmoji(emoji=EYES)] if on else [],
        )
        async with self._pace(place.chat).lock:
            await self._call(place.chat, reaction, seconds=ASIDE_SECONDS)

    async def send(self, outbound: Outbound) -> str:
        """See `Channel.send`."""
        if outbound.file is not None and len(outbound.file.data) > FILE_LIMIT:
            raise TooLarge(
                f"the file {outbound.file.name} has {len(outbound.file.data):,} bytes; bots can send {FILE_LIMIT:,} "
                "on Telegram, so it was not sent"
            )
        pace = self._pace(outbound.place.chat)
        # Requests go to a chat one after the other: after a 429 the next must not be on its way already.
        async with pace.lock:
            rest = self._rest(outbound.place.chat)
            if rest:
                raise TelegramRateLimited(f"Telegram asked to wait, {rest:.0f} s are left", retry_after=rest)
            shown = await self._show(outbound)
        pace.sent.append(shown)
        return shown

    async def _revise(self, outbound: Outbound) -> None:
        pace = self._pace(outbound.place.chat)
        with suppress(ChannelError):
            async with pace.lock:
                await self._show(outbound)

    async def _draft(self, outbound: Outbound) -> None:
        """Shows a piece as the draft whose number is in `edits`. A refusal ends drafts for this run."""
        place = outbound.place
        with suppress(ChannelError, ValueError):
            async with self._pace(place.chat).lock:
                entities = _entities(outbound.markup)
                draft = SendMessageDraft(
                    chat_id=int(place.chat),
                    draft_id=int(outbound.edits or ""),
                    message_thread_id=_thread(place),
                    text=outbound.text if entities else markup.unmentioning(outbound.text),
                    entities=entities,
                    parse_mode=None,
                )
                try:
                    await self._call(place.chat, draft, seconds=ASIDE_SECONDS)
                except TelegramRefused as exc:
                    # Other refusals are about this chat or this text, not about drafts.
                    if exc.status in (400, 404) and not exc.says("chat not found", "entit", "thread", "topic"):
                        self._drafting = False
                        log.warning("telegram.no_drafts", channel=self._channel, error=str(exc))

    async def _show(self, outbound: Outbound) -> str:
        place = outbound.place
        entities = _entities(outbound.markup)
        thread = _thread(place)
        seconds = self._request_seconds
        if outbound.file is not None:
            seconds += len(outbound.file.data) / _UPLOAD_RATE
        while True:  # at most four times: without entities, without thread, with nothing but the words
            method = _method(outbound, entities, thread)
            try:
                shown = await self._call(place.chat, method, seconds=seconds)
            except TelegramRefused as exc:
                if outbound.edits is not None and exc.says("message is not modified"):
                    return outbound.edits
                if entities and exc.says("entit"):
                    log.warning("telegram.plain", channel=self._channel, row=outbound.id, error=str(exc))
                    entities = None
                elif thread is not None and not place.chat.startswith("-") and exc.says("thread", "topic"):
                    # Telegram has refused threads of private chats at times; without the thread the same person
                    # reads the message, which then shows what it answers.
                    thread = None
                else:
                    error = not_shown(exc, edit=outbound.edits is not None, file=outbound.file is not None)
                    bare = _bare(outbound)
                    if type(error) is not ChannelError or exc.status != 400 or outbound == bare:
                        raise error from None
                    log.warning("telegram.plain", channel=self._channel, row=outbound.id, error=str(exc))
                    outbound, entities = bare, None
                continue
            if outbound.edits is not None:
                return outbound.edits
            if isinstance(shown, dict) and isinstance(shown.get("message_id"), int):
                return str(shown["message_id"])
            raise ChannelUnavailable(f"{self._wire.host} took a message but does not say under which id", certain=False)

    async def _call(self, chat: str, method: TelegramMethod[Any], *, seconds: float) -> Any:
        """Makes a request about a chat. Raises as `Wire.call`; a wait that Telegram asks for is remembered."""
        if not isinstance(method, SendChatAction):
            self._pace(chat).requests.append(self._now())
        try:
            return await self._wire.call(method, seconds=seconds)
        except TelegramRateLimited as exc:
            now = self._now()
            self._limits[chat] = (now, now + math.ceil((exc.retry_after or 0) * 1000))
            raise

    def _rest(self, chat: str) -> float:
        """Returns the seconds until a request may go to `chat`. Two chats limited at once mean the whole bot is."""
        now = self._now()
        # The start is checked too: a clock that was set back must not hold a chat up for the difference.
        self._limits = {held: span for held, span in self._limits.items() if span[0] <= now < span[1]}
        if len(self._limits) > 1:
            return (max(until for _, until in self._limits.values()) - now) / 1000
        return (self._limits[chat][1] - now) / 1000 if chat in self._limits else 0

    def _pace(self, chat: str) -> _Pace:
        if len(self._paces) > _MOST_PACES:
            now = self._now()
            self._paces = {
                chat: pace for chat, pace in self._paces.items() if pace.lock.locked() or pace.early(now, _GROUP_WINDOW)
            }
        return self._paces.setdefault(chat, _Pace())

    def _aside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs `work`, which raises nothing, beside other work."""
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        return task


def link(place: Place, message_id: str) -> str | None:
    """Returns the address of a supergroup's message, else None. Source: core.telegram.org/api/links#message-links."""
    if not message_id.isdecimal() or not place.chat.removeprefix("-").isdecimal() or int(place.chat) >= _SUPERGROUPS:
        return None
    thread = _thread(place)
    within = "" if thread is None else f"{thread}/"
    return f"https://t.me/c/{_SUPERGROUPS - int(place.chat)}/{within}{message_id}"


@dataclass(slots=True)
class _Pace:
    """The pace of one chat: one request at a time, the times of the last ones (milliseconds UTC) and their messages."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: deque[int] = field(default_factory=lambda: deque(maxlen=20))
    revision: tuple[str, Chunk] | None = None
    drafted: str = ""
    sent: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def showed(self, reference: str) -> bool:
        """Returns whether this is surely a message of the bot; a turn's number could be the id of a message."""
        return reference in self.sent and reference != self.drafted

    def early(self, now: int, gap: int) -> bool:
        return bool(self.requests) and 0 <= now - self.requests[-1] < gap

    def revised_early(self, now: int, *, group: bool) -> bool:
        """Returns whether another piece of a growing answer now would use up the requests left for whole answers."""
        if not group:
            return self.early(now, _PIECE_GAP)
        recent = sum(0 <= now - made < _GROUP_WINDOW for made in self.requests)
        return self.early(now, _GROUP_PIECE_GAP) or recent >= _GROUP_REVISIONS


def _method(
    outbound: Outbound, entities: list[MessageEntity] | None, thread: int | None
) -> SendMessage | SendDocument | EditMessageText:
    """Returns the request that shows `outbound`. Raises `EditGone`, or `ChannelError` for ids of other platforms."""
    preview = LinkPreviewOptions(is_disabled=True)
    try:
        chat = int(outbound.place.chat)
    except ValueError:
        raise ChannelError(f"{outbound.place.chat!r} is no Telegram chat id") from None
    keyboard = _keyboard(outbound.buttons)
    # In a private topic the answer stands below what it answers.
    reply = None if thread is not None and _is_private(outbound.place) else _reply(outbound.reply_to)
    text = outbound.text if entities else markup.unmentioning(outbound.text)
    if outbound.file is not None:
        return SendDocument(
            chat_id=chat,
            message_thread_id=thread,
            document=BufferedInputFile(outbound.file.data, filename=outbound.file.name),
            caption=text or None,
            caption_entities=entities,
            parse_mode=None,
            disable_content_type_detection=True,
            reply_parameters=reply,
            reply_markup=keyboard,
        )
    if outbound.edits is None:
        return SendMessage(
            chat_id=chat,
            message_thread_id=thread,
            text=text,
            entities=entities,
            parse_mode=None,
            link_preview_options=preview,
            reply_parameters=reply,
            reply_markup=keyboard,
        )
    if not outbound.edits.isdecimal():
        raise EditGone(f"{outbound.edits!r} is no Telegram message id")
    return EditMessageText(
        chat_id=chat,
        message_id=int(outbound.edits),
        text=text,
        entities=entities,
        parse_mode=None,
        link_preview_options=preview,
        reply_markup=keyboard,
    )


def _bare(outbound: Outbound) -> Outbound:
    return replace(outbound, markup="", buttons=(), reply_to=None)


def _keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    if not buttons:
        return None
    laid = [[InlineKeyboardButton(text=one.label, callback_data=one.data) for one in row] for row in rows(buttons)]
    return InlineKeyboardMarkup(inline_keyboard=laid)


def _reply(message_id: str | None) -> ReplyParameters | None:
    """Returns the parameters of a reply; a message that can't be answered any more must not keep the answer back."""
    if message_id is None or not message_id.isdecimal():
        return None
    return ReplyParameters(message_id=int(message_id), allow_sending_without_reply=True)


def _entities(markup_json: str) -> list[MessageEntity] | None:
    """Returns the formatting of a row; None for plain text, and for markup that no version of Remora wrote."""
    if not markup_json:
        return None
    try:
        return _ENTITIES.validate_json(markup_json) or None
    except ValidationError:
        log.error("telegram.bad_markup", shown="as plain text")
        return None


def _thread(place: Place) -> int | None:
    """Returns the thread to send to. General has none: Telegram refuses requests that name it."""
    if place.thread is None or not place.thread.isdecimal() or int(place.thread) == GENERAL:
        return None
    return int(place.thread)


def _is_private(place: Place) -> bool:
    return place.chat.isdecimal()
