"""Telegram through its Bot API: one bot that polls for updates, and shows, edits and reads messages.

Invariants: updates are confirmed only after the host has taken all of their batch; ids of updates are never compared
for order; a request is made once, and what it raises tells whether it surely had no effect; no request goes to a chat
while Telegram asks to wait; a thread's message is never shown elsewhere in a group; the token stands in no log line
and no error text. aiogram gives the models of methods and updates, the form encoding and the HTTP session; its
dispatcher and its own retries are not used, because they confirm updates before those are handled.
"""

from __future__ import annotations

import asyncio
import json
import math
import random as dice
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import structlog
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.enums import ContentType
from aiogram.methods import (
    AnswerCallbackQuery,
    EditMessageText,
    GetMe,
    GetUpdates,
    GetWebhookInfo,
    SendChatAction,
    SendMessage,
    SetMyCommands,
    TelegramMethod,
)
from aiogram.types import (
    BotCommand,
    CallbackQuery,
    Chat,
    ChatMemberRestricted,
    ChatMemberUpdated,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
    Update,
    User,
)
from aiogram.utils.token import TokenValidationError
from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout, ConnectionTimeoutError, InvalidURL
from pydantic import TypeAdapter, ValidationError

from channels import markup
from channels.base import (
    Blocked,
    Button,
    Capabilities,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    ChatKind,
    Chunk,
    CommandSpec,
    EditGone,
    Health,
    Host,
    Inbound,
    Moved,
    Outbound,
    Place,
    PlaceGone,
)
from channels.supervision import Backoff, Endurance

log = structlog.get_logger(__name__)

API = "https://api.telegram.org"
#: Characters of one message, in UTF-16 units (core.telegram.org/bots/api#sendmessage).
MESSAGE_LIMIT = 4_096

_UPDATES = ["message", "edited_message", "callback_query", "my_chat_member"]
_GENERAL = 1  # the thread id of a forum's General topic; sending to it by id is refused
_CONNECT_SECONDS = 10.0  # within this a server that can be reached has shaken hands
_ASIDE_SECONDS = 5.0  # a request nobody waits for, such as "typing", may take this long
_POLL_GRACE = 10.0  # what a poll may take beyond the time it asked the platform to wait
#: While something is wrong polls are short: one that ends is how we know that all is well again.
_SHORT_POLL = 10.0
_UNNAMED_WAIT = 5.0  # a 429 that does not say how long
#: Telegram's limits (core.telegram.org/bots/faq): one message a second in a chat, 20 a minute in a group, edits too.
_CHAT_GAP = 1_000  # milliseconds
#: Between a request and a piece of a growing answer; more than is asked for, so that the whole one can follow at once.
_PIECE_GAP = 1_500
_GROUP_PIECE_GAP = 3_000
_GROUP_WINDOW = 60_000
#: Of a group's 20 a minute, growing answers may use so many; the rest is for what must arrive.
_GROUP_REVISIONS = 15
#: Chats whose pace is remembered before those that have been quiet for a minute are forgotten.
_MOST_PACES = 1_000
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_COMMAND_HELP = 256  # characters a command's description may have
#: What a person puts into a chat. Other content is what Telegram itself says there: a pin, a new title, a boost.
_SPOKEN = frozenset(
    {
        ContentType.TEXT,
        ContentType.ANIMATION,
        ContentType.AUDIO,
        ContentType.CHECKLIST,
        ContentType.CONTACT,
        ContentType.DICE,
        ContentType.DOCUMENT,
        ContentType.GAME,
        ContentType.LIVE_PHOTO,
        ContentType.LOCATION,
        ContentType.PAID_MEDIA,
        ContentType.PHOTO,
        ContentType.POLL,
        ContentType.RICH_MESSAGE,
        ContentType.STICKER,
        ContentType.STORY,
        ContentType.VENUE,
        ContentType.VIDEO,
        ContentType.VIDEO_NOTE,
        ContentType.VOICE,
    }
)
_ENTITIES: TypeAdapter[list[MessageEntity]] = TypeAdapter(list[MessageEntity])


class RateLimited(ChannelUnavailable):
    """Telegram asks to wait `retry_after` seconds before the next request to this chat; nothing was shown."""

    code = "rate_limited"


@dataclass(frozen=True, slots=True, kw_only=True)
class BotFacts:
    """What Telegram says of a bot. `username` is without the @.

    `reads_all_group_messages` is False in privacy mode: in groups it is then given only commands, mentions of it and
    replies to it.
    """

    id: str
    username: str
    name: str
    reads_all_group_messages: bool


async def probe(token: str, base_url: str = API, *, request_seconds: float = 30) -> BotFacts:
    """Whom the token belongs to. Raises `ChannelRefused` for a wrong token, else `ChannelUnavailable`.

    To learn who writes to the bot first, run a `TelegramChannel` with a small `Host` of one's own.
    """
    return await _Wire(token, base_url).introduce(request_seconds)


class TelegramChannel:
    """One Telegram bot.

    `send`, `revise` and `typing` work also while `run` does not. With `mention` the bot is addressed in groups only by
    its @name, a reply to it or a command, else by everything. `now` gives milliseconds UTC; `random` numbers in
    [0, 1). `poll_seconds` is how long Telegram may wait for an update before it answers that there is none.
    """

    platform = "telegram"
    capabilities = Capabilities(stream="edit", resend="never", buttons=True, introduces=True, revise_seconds=1.5)

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the protocol's word
        token: str,
        base_url: str = API,
        mention: bool = True,
        now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = dice.random,
        poll_seconds: float = 30,
        request_seconds: float = 30,
    ) -> None:
        """Raises `ChannelRefused` for a token that can't be one."""
        self.id = id
        self._wire = _Wire(token, base_url)
        self._mention = mention
        self._now = now
        self._sleep = sleep
        self._random = random
        self._poll_seconds = poll_seconds
        self._request_seconds = request_seconds
        self._contact: int | None = None
        self._trouble = ""
        self._paces: dict[str, _Pace] = {}
        self._limits: dict[str, tuple[int, int]] = {}  # chat to the time in which Telegram wants no request, ms UTC
        self._asides: set[asyncio.Task[None]] = set()
        self._endurance = Endurance(id)

    def reachable(self, place: Place) -> bool:
        return place.channel == self.id

    def health(self) -> Health:
        """Fed by polls alone: messages that still go out say nothing about whether any come in."""
        return Health(contact=self._contact, trouble=self._trouble)

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        return markup.telegram(text) if markdown else markup.plain(text, MESSAGE_LIMIT)

    async def run(self, host: Host) -> None:
        """Poll until cancelled. Raises `ChannelError`: `ChannelRefused` where only the operator can help."""
        async with self._wire.open():
            try:
                me = await self._wire.introduce(self._request_seconds)
                await self._expect_no_webhook()
                self._aside(self._offer(host.commands))
                await self._poll(host, me)
            except ChannelError as exc:
                self._trouble = str(exc)
                raise
            finally:
                # Whatever ended the run, until the next one polls nothing comes in.
                self._trouble = self._trouble or "no updates are fetched: the channel's run has ended"

    async def append(self, place: Place, turn: int, text: str) -> None:
        """Never called: `capabilities.stream` is "edit"."""
        raise AssertionError("Telegram's messages don't grow, they are edited")

    async def revise(self, place: Place, reference: str, text: str) -> None:
        """See `Channel`. A request once begun is finished even if the caller is cancelled: one that Telegram got but

        nobody waited for could otherwise take effect after the edit with the whole answer, and undo it.
        """
        pace = self._pace(place.chat)
        group = place.chat.startswith("-")
        if pace.lock.locked() or self._rest(place.chat) or pace.revised_early(self._now(), group=group):
            return
        shown = self.chunks(text, markdown=True)[0]
        if pace.revision == (reference, shown):
            return
        pace.revision = (reference, shown)
        outbound = Outbound(id=0, place=place, text=shown.text, markup=shown.markup, edits=reference)
        await asyncio.shield(self._aside(self._revise(outbound)))

    async def typing(self, place: Place) -> None:
        pace = self._pace(place.chat)
        if pace.lock.locked() or self._rest(place.chat) or pace.early(self._now(), _CHAT_GAP):
            return
        with suppress(ChannelError, ValueError):
            async with pace.lock:
                thread = _thread(place)
                action = SendChatAction(chat_id=int(place.chat), action="typing", message_thread_id=thread)
                await self._call(place.chat, action, seconds=_ASIDE_SECONDS)

    async def send(self, outbound: Outbound) -> str:
        chat = outbound.place.chat
        pace = self._pace(chat)
        # One request after the other in a chat: after a 429 the next must not be on its way already.
        async with pace.lock:
            rest = self._rest(chat)
            if rest:
                raise RateLimited(f"Telegram asked to wait, {rest:.0f} s are left", retry_after=rest)
            return await self._show(outbound)

    # Receiving.

    async def _expect_no_webhook(self) -> None:
        try:
            found = await self._wire.call(GetWebhookInfo(), seconds=self._request_seconds)
        except _Refused as exc:
            raise _no_entry(exc) from None
        if isinstance(found, dict) and found.get("url"):
            raise _webhook()

    async def _offer(self, commands: Sequence[CommandSpec]) -> None:
        """The bot's command menu. Best effort: typed commands work without it."""
        offered = [
            BotCommand(command=command.name, description=command.help[:_COMMAND_HELP])
            for command in commands
            if _COMMAND.fullmatch(command.name) and command.help
        ]
        try:
            await self._wire.call(SetMyCommands(commands=offered), seconds=self._request_seconds)
        except ChannelError as exc:
            log.warning("telegram.no_menu", channel=self.id, error=str(exc))

    async def _poll(self, host: Host, me: BotFacts) -> None:
        # Without an offset Telegram gives the oldest update that is not confirmed. An offset kept from an earlier run
        # would hide updates from us: ids start again, perhaps lower, after a week without any.
        offset: int | None = None
        failing = Backoff(1, 30, self._random)
        rival = Backoff(5, 45, self._random)  # with the short poll after it, well again within a minute
        while True:
            asked = self._now()
            try:
                updates = await self._updates(offset)
                self._contact = self._now()
                for update in updates:
                    await self._endurance.endure(str(update["update_id"]), self._take(host, me, update))
            except ChannelError as exc:
                if not exc.retryable:
                    raise
                if self._trouble != str(exc):
                    self._trouble = str(exc)
                    log.warning("telegram.trouble", channel=self.id, code=exc.code, error=self._trouble)
                backoff = rival if isinstance(exc, _Rival) else failing
                await self._sleep(backoff.wait() if exc.retry_after is None else exc.retry_after)
                continue
            failing.reset()
            rival.reset()
            if self._trouble:
                log.info("telegram.recovered", channel=self.id)
                self._trouble = ""
            # The last of the batch, not the highest: that could confirm what was never given to us.
            offset = updates[-1]["update_id"] + 1 if updates else None
            if not updates and self._now() - asked < _CHAT_GAP / 2:
                await self._sleep(1)  # a server that does not wait for updates must not make us spin

    async def _updates(self, offset: int | None) -> list[dict[str, Any]]:
        wait = min(self._poll_seconds, _SHORT_POLL) if self._trouble else self._poll_seconds
        poll = GetUpdates(offset=offset, limit=100, timeout=round(wait), allowed_updates=_UPDATES)
        try:
            # As plain data: one update that aiogram can't read must not cost us the others.
            updates = await self._wire.call(poll, seconds=wait + min(_POLL_GRACE, self._request_seconds))
        except _Refused as exc:
            raise _no_entry(exc) from None
        if not isinstance(updates, list) or not all(
            isinstance(update, dict) and isinstance(update.get("update_id"), int) for update in updates
        ):
            raise ChannelUnavailable(f"{self._wire.host} answers polls with something that is no list of updates")
        return updates

    async def _take(self, host: Host, me: BotFacts, raw: dict[str, Any]) -> None:
        """Hand one update over; returns when it may be confirmed. Raises `NotTaken`."""
        try:
            update = Update.model_validate(raw)
        except ValidationError as exc:
            fields = [".".join(map(str, error["loc"])) for error in exc.errors(include_input=False, include_url=False)]
            log.error("telegram.unreadable", channel=self.id, update=raw["update_id"], fields=fields[:10])
            return
        key = _key(update)
        if update.callback_query is not None:
            press = update.callback_query
            inbound = self._pressed(press, me, key)
            if inbound is not None:
                await host.on_inbound(inbound)
            self._aside(self._release(press))
        elif update.my_chat_member is not None:
            present = _is_present(update.my_chat_member)
            await host.on_presence(self.id, str(update.my_chat_member.chat.id), present=present)
        elif update.message is not None and update.message.migrate_to_chat_id is not None:
            old, new = update.message.chat.id, update.message.migrate_to_chat_id
            await host.on_moved(self.id, str(old), str(new))
        elif (message := update.message or update.edited_message) is not None:
            inbound = self._said(message, me, key, edited=update.message is None)
            if inbound is not None:
                await host.on_inbound(inbound)

    def _said(self, message: Message, me: BotFacts, key: str, *, edited: bool) -> Inbound | None:
        """What a person said; None for what nobody said, or a bot."""
        kind = _kind(message.chat)
        if kind is None or not _is_spoken(message, kind) or (edited and message.location is not None):
            return None  # an edited location is one that moves
        author = message.from_user
        if message.sender_chat is not None:
            # An anonymous admin, a channel: the user given with it is a stand-in who must never count as a person.
            author_id, author_name = "", message.sender_chat.title or str(message.sender_chat.id)
        elif author is None or author.is_bot:
            return None
        else:
            author_id, author_name = str(author.id), _name(author)
        text, named, elsewhere = _words(message, me)
        answered = message.reply_to_message
        if answered is not None and answered.forum_topic_created is not None:
            answered = None  # all of a topic stands as a reply to what opened it
        if kind == "group":
            to_me = answered is not None and answered.from_user is not None and str(answered.from_user.id) == me.id
            addressed = not elsewhere and (named or to_me or not self._mention)
        else:
            addressed = True
        sent_at = message.edit_date if edited and message.edit_date else int(message.date.timestamp())
        return Inbound(
            channel=self.id,
            platform=self.platform,
            bot_id=me.id,
            update_key=key,
            chat=str(message.chat.id),
            chat_kind=kind,
            author_id=author_id,
            author_name=_well_formed(author_name),
            message_id=str(message.message_id),
            text=text,
            sent_at=sent_at * 1000,
            thread=_topic(message),
            chat_title=_well_formed(message.chat.title or ""),
            reply_to=None if answered is None else str(answered.message_id),
            addressed=addressed,
            forwarded=message.forward_origin is not None,
            edited=edited,
        )

    def _pressed(self, press: CallbackQuery, me: BotFacts, key: str) -> Inbound | None:
        """A button that was pressed; None where it is no button of ours under a message in a chat."""
        shown = press.message
        kind = None if shown is None else _kind(shown.chat)
        if shown is None or kind is None or press.data is None:
            return None
        return Inbound(
            channel=self.id,
            platform=self.platform,
            bot_id=me.id,
            update_key=key,
            chat=str(shown.chat.id),
            chat_kind=kind,
            author_id=str(press.from_user.id),
            author_name=_well_formed(_name(press.from_user)),
            message_id=str(shown.message_id),
            text="",
            sent_at=self._now(),  # Telegram does not tell when
            # Of a message that is too old to be shown to bots, only chat and id are known.
            thread=_topic(shown) if isinstance(shown, Message) else None,
            chat_title=_well_formed(shown.chat.title or ""),
            pressed=press.data,
        )

    async def _release(self, press: CallbackQuery) -> None:
        """End the button's waiting mark. That it is too late for that is normal."""
        with suppress(ChannelError):
            await self._wire.call(AnswerCallbackQuery(callback_query_id=press.id), seconds=_ASIDE_SECONDS)

    # Showing.

    async def _revise(self, outbound: Outbound) -> None:
        pace = self._pace(outbound.place.chat)
        with suppress(ChannelError):
            async with pace.lock:
                await self._show(outbound)

    async def _show(self, outbound: Outbound) -> str:
        place = outbound.place
        entities = _entities(outbound.markup)
        thread = _thread(place)
        while True:  # at most three times: without entities, without thread
            method = _method(outbound, entities, thread)
            try:
                shown = await self._call(place.chat, method, seconds=self._request_seconds)
            except _Refused as exc:
                if outbound.edits is not None and exc.says("message is not modified"):
                    return outbound.edits
                if entities and exc.says("entit"):
                    log.warning("telegram.plain", channel=self.id, row=outbound.id, error=str(exc))
                    entities = None
                elif thread is not None and not place.chat.startswith("-") and exc.says("thread", "topic"):
                    # Telegram has refused the threads of private chats at times; the same person reads it without.
                    thread = None
                else:
                    raise _not_shown(exc, edit=outbound.edits is not None) from None
                continue
            if outbound.edits is not None:
                return outbound.edits
            if isinstance(shown, dict) and isinstance(shown.get("message_id"), int):
                return str(shown["message_id"])
            raise ChannelUnavailable(f"{self._wire.host} took a message but does not say under which id", certain=False)

    async def _call(self, chat: str, method: TelegramMethod[Any], *, seconds: float) -> Any:
        """A request about a chat. Raises as `_Wire.call`; a wish to wait is remembered."""
        if not isinstance(method, SendChatAction):
            self._pace(chat).requests.append(self._now())
        try:
            return await self._wire.call(method, seconds=seconds)
        except RateLimited as exc:
            now = self._now()
            self._limits[chat] = (now, now + math.ceil((exc.retry_after or 0) * 1000))
            raise

    def _rest(self, chat: str) -> float:
        """How many seconds no request may go to `chat`; 0 for none.

        When two chats are limited at once it may well be the whole bot that is: then all wait for the longer one.
        """
        now = self._now()
        # With the start checked too: a clock that was set back must not hold a chat up for the difference.
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
        """Do `work`, which raises nothing, while others go on."""
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        return task


class _Refused(ChannelError):
    """Telegram understood a request and refused it; nothing was shown. What it means depends on the request."""

    def __init__(self, status: int, description: str, *, moved_to: int | None = None) -> None:
        super().__init__(f"Telegram says: {description} ({status})")
        self.status = status
        self.moved_to = moved_to
        self._description = description.casefold()

    def says(self, *words: str) -> bool:
        """Whether one of `words` (lower case) is in Telegram's description, the only thing that tells 400s apart."""
        return any(word in self._description for word in words)


class _Rival(ChannelUnavailable):
    """Another process polls with the same token; each ends the other's polls."""

    code = "rival"


@dataclass(slots=True)
class _Pace:
    """One chat's requests: one at a time, and when the last ones were made (milliseconds UTC)."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: deque[int] = field(default_factory=lambda: deque(maxlen=20))
    revision: tuple[str, Chunk] | None = None

    def early(self, now: int, gap: int) -> bool:
        return bool(self.requests) and 0 <= now - self.requests[-1] < gap

    def revised_early(self, now: int, *, group: bool) -> bool:
        """Whether another piece of a growing answer now would use up what Telegram allows for whole ones."""
        if not group:
            return self.early(now, _PIECE_GAP)
        recent = sum(0 <= now - made < _GROUP_WINDOW for made in self.requests)
        return self.early(now, _GROUP_PIECE_GAP) or recent >= _GROUP_REVISIONS


class _Wire:
    """Requests to the Bot API, each made once, over one HTTP session that lives while anybody uses it."""

    def __init__(self, token: str, base_url: str) -> None:
        self.host = urlsplit(base_url).hostname or base_url
        self._session = AiohttpSession(api=TelegramAPIServer.from_base(base_url))
        try:
            self._bot = Bot(token, session=self._session)
        except TokenValidationError:
            raise ChannelRefused(
                "this is no bot token: one looks like 123456789:AAE… and comes from @BotFather in Telegram"
            ) from None
        self._users = 0
        self._client: ClientSession | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ClientSession]:
        """The HTTP session; closed when the last block that uses it ends."""
        self._users += 1
        try:
            if self._client is None:
                self._client = await self._session.create_session()
            yield self._client
        finally:
            self._users -= 1
            if not self._users and self._client is not None:
                client, self._client = self._client, None
                await client.close()

    async def introduce(self, seconds: float) -> BotFacts:
        """Whose token it is. Raises `ChannelRefused`, `ChannelUnavailable`."""
        try:
            me = User.model_validate(await self.call(GetMe(), seconds=seconds))
        except _Refused as exc:
            raise _no_entry(exc) from None
        except ValidationError:
            raise ChannelUnavailable(
                f"{self.host} does not answer as Telegram does; see the channel's base_url"
            ) from None
        return BotFacts(
            id=str(me.id),
            username=me.username or "",
            name=me.full_name,
            reads_all_group_messages=bool(me.can_read_all_group_messages),
        )

    async def call(self, method: TelegramMethod[Any], *, seconds: float) -> Any:
        """Make a request that may take so long; the answer's `result` as plain data.

        Raises `_Refused`, `RateLimited`, and `ChannelUnavailable` with `certain` False once the request may have been
        read. No error holds the address, and with it the token, nor has a cause that does.
        """
        name = method.__api_method__
        answer = await self._exchange(method, seconds)
        if isinstance(answer, ChannelUnavailable):
            raise answer
        status, body = answer
        return self._result(name, status, body)

    async def _exchange(self, method: TelegramMethod[Any], seconds: float) -> tuple[int, bytes] | ChannelUnavailable:
        """Status and body of the answer, or why there is none.

        That is returned and not raised: a traceback from here would have the address among its variables, which some
        loggers show.
        """
        name = method.__api_method__
        url = self._session.api.api_url(self._bot.token, name)
        form = self._session.build_form_data(self._bot, method)
        # Time to connect is bounded by itself, so that a network that is down is told from an answer that is late.
        limits = ClientTimeout(total=seconds, connect=min(_CONNECT_SECONDS, seconds / 2))
        async with self.open() as client:
            try:
                async with client.post(url, data=form, timeout=limits, allow_redirects=False) as response:
                    return response.status, await response.read()
            except (ClientConnectorError, ConnectionTimeoutError, InvalidURL) as exc:
                return ChannelUnavailable(f"{self.host} can't be reached: {_reason(exc)}")
            except (ClientError, TimeoutError, OSError) as exc:
                return ChannelUnavailable(f"{self.host} gave no answer to {name}: {_reason(exc)}", certain=False)

    def _result(self, name: str, status: int, body: bytes) -> Any:
        try:
            answer = json.loads(body.decode("utf-8", "replace"))
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
            told = f"{self.host} answered {name} with status {status} and nothing that Telegram would say"
            raise ChannelUnavailable(told, certain=False)
        if answer["ok"]:
            return answer.get("result")
        description = str(answer.get("description") or "no reason given")
        parameters = answer.get("parameters")
        parameters = parameters if isinstance(parameters, dict) else {}
        if status == 429:
            wait = parameters.get("retry_after")
            seconds = float(wait) if isinstance(wait, int | float) else _UNNAMED_WAIT
            raise RateLimited(f"Telegram asks to wait {seconds:.0f} s", retry_after=seconds)
        if status >= 500:
            raise ChannelUnavailable(f"Telegram is in trouble: {description} ({status})", certain=False)
        moved_to = parameters.get("migrate_to_chat_id")
        raise _Refused(status, description, moved_to=moved_to if isinstance(moved_to, int) else None)


def _key(update: Update) -> str:
    """Unlike any other update's, also when Telegram begins to count anew after a quiet week."""
    said = update.message or update.edited_message
    if said is not None:
        return f"{update.update_id}-{said.chat.id}-{said.message_id}"
    return (
        f"{update.update_id}-{update.callback_query.id}" if update.callback_query is not None else str(update.update_id)
    )


def _no_entry(refused: _Refused) -> ChannelError:
    """What a refused poll, or a first request, means."""
    if refused.status in (401, 404):
        return ChannelRefused(
            f"{refused}: the bot's token is wrong or was revoked; put the one that @BotFather shows into the config"
        )
    if refused.status == 409 and refused.says("webhook"):
        return _webhook()
    if refused.status == 409:
        return _Rival(
            "another process polls with this bot's token, so messages may go there; stop it, or revoke the token "
            "with @BotFather and use the new one"
        )
    return ChannelUnavailable(str(refused))


def _webhook() -> ChannelRefused:
    return ChannelRefused(
        "a webhook is set for this bot, so Telegram gives its messages to another program; if that is not wanted any "
        "more, open https://api.telegram.org/bot<TOKEN>/deleteWebhook with the bot's token, else use a bot of its own"
    )


def _not_shown(refused: _Refused, *, edit: bool) -> ChannelError:
    """What a refused message means. The words are Telegram's, as tdlib/telegram-bot-api has them."""
    told = str(refused)
    if refused.moved_to is not None:
        return Moved(told, chat=str(refused.moved_to))
    if refused.status in (401, 404):
        # The row is not at fault: it waits until the operator has given a token that is let in.
        return ChannelUnavailable(f"{told}: the bot's token is wrong or was revoked")
    if refused.says("topic_closed", "topic_deleted", "thread not found", "thread_not_found", "topic_id_invalid"):
        return PlaceGone(told)
    if refused.status == 403 or refused.says(
        "chat not found", "user not found", "peer_id_invalid", "chat was deleted", "chat was deactivated"
    ):
        return Blocked(told)
    if edit and refused.says("message to edit not found", "can't be edited", "message_id_invalid"):
        return EditGone(told)
    return ChannelError(told)


def _reason(error: Exception) -> str:
    """A failure in words that hold no address."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    cause = error.os_error if isinstance(error, ClientConnectorError) else error
    words = cause.strerror if isinstance(cause, OSError) else None
    return words or type(cause).__name__


def _method(
    outbound: Outbound, entities: list[MessageEntity] | None, thread: int | None
) -> SendMessage | EditMessageText:
    """Raises `EditGone`, `ChannelError` for ids that are none of Telegram's."""
    preview = LinkPreviewOptions(is_disabled=True)
    try:
        chat = int(outbound.place.chat)
    except ValueError:
        raise ChannelError(f"{outbound.place.chat!r} is no Telegram chat id") from None
    keyboard = _keyboard(outbound.buttons)
    if outbound.edits is None:
        return SendMessage(
            chat_id=chat,
            message_thread_id=thread,
            text=outbound.text,
            entities=entities,
            parse_mode=None,
            link_preview_options=preview,
            reply_parameters=_reply(outbound.reply_to),
            reply_markup=keyboard,
        )
    if not outbound.edits.isdecimal():
        raise EditGone(f"{outbound.edits!r} is no Telegram message id")
    return EditMessageText(
        chat_id=chat,
        message_id=int(outbound.edits),
        text=outbound.text,
        entities=entities,
        parse_mode=None,
        link_preview_options=preview,
        reply_markup=keyboard,
    )


def _keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    if not buttons:
        return None
    row = [InlineKeyboardButton(text=button.label, callback_data=button.data) for button in buttons]
    return InlineKeyboardMarkup(inline_keyboard=[row])


def _reply(message_id: str | None) -> ReplyParameters | None:
    """A message that can't be answered any more must not keep the answer back."""
    if message_id is None or not message_id.isdecimal():
        return None
    return ReplyParameters(message_id=int(message_id), allow_sending_without_reply=True)


def _entities(markup_json: str) -> list[MessageEntity] | None:
    """The formatting of a row; None for plain text, and for what no version of ours would have written."""
    if not markup_json:
        return None
    try:
        return _ENTITIES.validate_json(markup_json) or None
    except ValidationError:
        log.error("telegram.bad_markup", shown="as plain text")
        return None


def _thread(place: Place) -> int | None:
    """The thread to send to. General has none: naming it is refused."""
    if place.thread is None or not place.thread.isdecimal() or int(place.thread) == _GENERAL:
        return None
    return int(place.thread)


def _topic(message: Message) -> str | None:
    """The topic a message stands in. Replies outside of topics carry a thread id too, which is no topic's."""
    thread = message.message_thread_id
    return str(thread) if message.is_topic_message and thread not in (None, _GENERAL) else None


def _kind(chat: Chat) -> ChatKind | None:
    if chat.type == "private":
        return "private"
    return "group" if chat.type in ("group", "supergroup") else None


def _is_spoken(message: Message, kind: ChatKind) -> bool:
    """In a private chat also what is newer than this program: the person is told that it was not understood."""
    content = message.content_type
    return content in _SPOKEN or (content == ContentType.UNKNOWN and kind == "private")


def _is_present(change: ChatMemberUpdated) -> bool:
    member = change.new_chat_member
    if isinstance(member, ChatMemberRestricted):
        return member.is_member
    return member.status not in ("left", "kicked")


def _name(user: User) -> str:
    """Never empty: a person may have chosen a name without visible letters, or deleted the account."""
    return user.full_name.strip() or user.username or str(user.id)


def _words(message: Message, me: BotFacts) -> tuple[str, bool, bool]:
    """The text without the bot's own name at its ends; whether it names or commands the bot; whether another bot.

    Goes by Telegram's entities, whose offsets count UTF-16 units, and not by what the text looks like.
    """
    text = message.text or message.caption or ""
    units = text.encode("utf-16-le", "surrogatepass")
    handle = me.username.casefold()
    named = elsewhere = False
    cuts: list[tuple[int, int]] = []
    for entity in message.entities or message.caption_entities or ():
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        marked = _decoded(units[start:end]).casefold()
        if entity.type == "mention" and handle and marked == f"@{handle}":
            named = True
            if not _decoded(units[:start]).strip():
                cuts.append((start, end + 2 if units[end : end + 2] in (b",\0", b":\0") else end))
            elif not _decoded(units[end:]).strip():
                cuts.append((start, end))
        elif entity.type == "text_mention" and entity.user is not None and str(entity.user.id) == me.id:
            named = True
        elif entity.type == "bot_command":
            command, _, bot = marked.partition("@")
            if handle and bot == handle:
                named = True
                if start == 0:
                    cuts.append((2 * len(command), end))
            elif entity.offset == 0:
                elsewhere = bool(bot)
                named = named or not bot
    for start, end in reversed(cuts):
        units = units[:start] + units[end:]
    rest = _decoded(units).strip() if cuts else _decoded(units)
    return rest or _decoded(text.encode("utf-16-le", "surrogatepass")), named, elsewhere


def _decoded(units: bytes) -> str:
    return units.decode("utf-16-le", "replace")


def _well_formed(text: str) -> str:
    """`text` with U+FFFD for lone surrogates, which fit in no database."""
    return _decoded(text.encode("utf-16-le", "surrogatepass"))
