"""Telegram through its Bot API: one bot that receives updates, by polling or webhook, and shows and edits messages.

Invariants: updates are confirmed only after the host has taken them. Update ids are never compared for order.

aiogram's dispatcher is not used, because it confirms updates before they are handled. `updates` reads the content of
updates, `send` shows messages, `wire` makes requests and interprets refusals, and `menu` holds the command lists.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import structlog
from aiogram.methods import AnswerCallbackQuery, GetUpdates, GetWebhookInfo, SetWebhook
from aiogram.types import CallbackQuery, Update

from channels import markup
from channels.base import (
    Attachment,
    Capabilities,
    Channel,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    Chunk,
    Health,
    Hook,
    Host,
    Inbound,
    Outbound,
    Place,
    TooLarge,
)
from channels.supervision import Backoff, Endurance, Pace, UnreadUpdates
from channels.telegram.menu import fingerprint, menus, removal
from channels.telegram.parsing import parsed
from channels.telegram.send import ASIDE_SECONDS, FILE_LIMIT, TelegramScreen, link
from channels.telegram.updates import (
    JSON,
    PLATFORM,
    UpdateReader,
    album_of,
    chat_of,
    gathered,
    is_present,
    may_write,
    topic_of,
)
from channels.telegram.wire import (
    API,
    Rival,
    TelegramBot,
    TelegramRateLimited,
    TelegramRefused,
    Wire,
    no_entry,
    webhook_set,
)

__all__ = ["API", "TelegramBot", "TelegramChannel", "TelegramRateLimited", "Webhook", "probe"]

log = structlog.get_logger(__name__)

#: The most characters of one message, in UTF-16 units (core.telegram.org/bots/api#sendmessage).
MESSAGE_LIMIT = 4_096

_UPDATES = ["message", "edited_message", "callback_query", "my_chat_member", "message_reaction"]
_POLL_GRACE = 10.0  # seconds a poll may take beyond the time it asked the platform to wait
#: Seconds of a poll while something is wrong. Such polls are short, because only a finished poll shows recovery.
_SHORT_POLL = 10.0
_SPIN = 500  # milliseconds; an empty poll that ended sooner was not held open
#: The most parts of an album, and the seconds after its first part in which the rest arrives.
_ALBUM = 10
_ALBUM_SECONDS = 0.5
#: The most albums that are remembered for edits of their captions and for late parts.
_MOST_ALBUMS = 500
#: The most bytes of an update sent to the webhook. Telegram names no limit; a message of 4,096 characters with a
#: keyboard and the message it answers has about 60,000.
_HOOK_LIMIT = 1 << 20
_HOOK_HEADER = "x-telegram-bot-api-secret-token"
_HOOK_CONNECTIONS = 40  # the most updates at once, each of a different chat
_HOOK_CHECK = 60.0  # seconds between two checks that the webhook can be reached
#: The most chats whose order is kept. Chats in which nothing waits are forgotten first.
_MOST_LINES = 1_000
_MENU = "menu"  # the name under which the host keeps the command lists that Telegram has
_ALBUMS = "albums"  # the name under which the host keeps the messages of the last albums
_KEPT_ALBUMS = 50  # the most albums in one batch of 100 updates
#: An update with what every message has.
_BARE: JSON = {"update_id": 1, "message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"}}}
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook to which Telegram sends updates instead of being polled.

    `url` is the https address under which this program's HTTP server is reached from outside, without the channel's
    own path. `secret` tells Telegram's requests from a stranger's. Raises `ChannelRefused`.
    """

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _SECRET.fullmatch(self.secret):
            raise ChannelRefused(
                "the secret of a webhook must have 16 to 256 of A-Z, a-z, 0-9, _ and -: without it, anyone could write "
                "in someone else's name"
            )
        if not urlsplit(self.url).hostname:
            raise ChannelRefused("webhook must be the https address at which Telegram can reach this program")


async def probe(
    token: str, base_url: str = API, *, proxy: str | None = None, request_seconds: float = 30
) -> TelegramBot:
    """Returns the bot of the token. Raises `ChannelRefused` for a wrong token, else `ChannelUnavailable`."""
    return await Wire(token, base_url, proxy).introduce(request_seconds)


class TelegramChannel(Channel):
    """One Telegram bot.

    `send`, `revise` and `typing` also work while `run` is not running. With `mention`, the bot is addressed in groups
    only by its @name, a reply to it or a command; without it, every message addresses the bot. With `stream` "draft",
    an answer in a private chat grows as a draft, which is no message, if Telegram lets this bot do so; with "mark" it
    comes whole, and a reaction marks the message until then. With a `webhook`, updates are sent to `hook`; without it
    they are fetched. `now` returns milliseconds UTC.
    """

    id = ""
    platform = PLATFORM
    capabilities = Capabilities(
        stream="edit",
        resend="never",
        buttons=True,
        introduces=True,
        revise_seconds=1.5,
        direct=True,
        file_bytes=FILE_LIMIT,
    )

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the protocol's word
        wire: Wire,
        mention: bool = True,
        stream: Literal["edit", "draft", "mark"] = "edit",
        webhook: Webhook | None = None,
        now: Callable[[], int],
        pace: Pace | None = None,
    ) -> None:
        self.id = id
        self._wire = wire
        self._mention = mention
        self._pace = pace or Pace()
        request_seconds = self._pace.request_seconds
        self._screen = TelegramScreen(id, self._wire, stream=stream, now=now, request_seconds=request_seconds)
        if stream == "mark":
            self.capabilities = replace(self.capabilities, stream="none", marks=True)
        self._webhook = webhook
        self._path = f"/telegram/{quote(id, safe='')}"
        self._now = now
        self._contact: int | None = None
        self._taken_at = 0  # when the last update sent to the webhook was taken, in milliseconds UTC
        self._trouble = ""
        self._topics: dict[tuple[int, str], str] = {}
        self._receiving: tuple[Host, UpdateReader] | None = None
        self._lines: dict[str, asyncio.Lock] = {}
        self._albums: dict[str, _Album] = {}
        self._handed: dict[str, list[int]] = {}  # the ids of the messages with which each album was first handed over
        self._asides: set[asyncio.Task[None]] = set()
        self._endurance = Endurance(id)
        self._unread = UnreadUpdates(id, now)

    @property
    def receives_alone(self) -> bool:
        return self._webhook is None

    def health(self) -> Health:
        """Returns the health, judged by updates alone: sending may still work while nothing comes in."""
        return Health(contact=self._contact, trouble=self._trouble, unread=self._unread.count)

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        return markup.telegram(text) if markdown else markup.plain(text, MESSAGE_LIMIT)

    def drafts(self, place: Place) -> bool:
        return self._screen.drafts(place)

    def link(self, place: Place, message_id: str) -> str | None:
        return link(place, message_id)

    def names(self, place: Place) -> tuple[str, str]:
        known = place.chat.removeprefix("-").isdecimal() and place.thread is not None
        return "", self._topics.get((int(place.chat), str(place.thread)), "") if known else ""

    def hook(self) -> Hook | None:
        if self._webhook is None:
            return None
        return Hook(path=self._path, limit=_HOOK_LIMIT, is_genuine=self._is_genuine, take=self._pushed)

    async def run(self, host: Host) -> None:
        """Receives until cancelled. Raises `ChannelError`; `ChannelRefused` if only the operator can help."""
        async with self._wire.open():
            offering: asyncio.Task[None] | None = None
            try:
                me = await self._wire.introduce(self._pace.request_seconds)
                commands = frozenset(command.name for command in host.commands)
                reader = UpdateReader(
                    channel=self.id, me=me, mention=self._mention, commands=commands, topics=self._topics
                )
                if self._webhook is None:
                    await self._expect_no_webhook()
                    self._handed = _kept_albums((await host.kept(self.id, _ALBUMS)).get(_ALBUMS))
                    offering = self._aside(self._offer(host, me))
                    await self._poll(host, reader)
                else:
                    self._receiving = host, reader
                    set_at = await self._set_webhook(self._webhook)
                    offering = self._aside(self._offer(host, me))
                    await self._watch_webhook(set_at)
            except ChannelError as exc:
                self._trouble = exc.reason
                raise
            finally:
                self._receiving = None
                # After any end of the run, nothing comes in until the next one.
                self._trouble = self._trouble or "no updates are fetched: the channel's run has ended"
                if offering is not None:
                    offering.cancel()
                    await asyncio.gather(offering, return_exceptions=True)

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        if not attachment.reference:
            raise ChannelError(f"{attachment.name or 'this'} has no bytes to fetch")
        if attachment.size is not None and attachment.size > limit:
            raise TooLarge(f"the file has {attachment.size:,} bytes, {limit:,} are allowed")
        return await self._wire.download(attachment.reference, limit=limit, seconds=self._pace.request_seconds)

    async def revise(self, place: Place, reference: str, text: str) -> None:
        await self._screen.revise(place, reference, text)

    async def typing(self, place: Place) -> None:
        await self._screen.typing(place)

    async def mark(self, place: Place, message_id: str, *, on: bool) -> None:
        await self._screen.mark(place, message_id, on=on)

    async def send(self, outbound: Outbound) -> str:
        return await self._screen.send(outbound)

    # The menu.

    async def _offer(self, host: Host, me: TelegramBot) -> None:
        """Sends the command lists that changed. Best effort: typed commands work without them."""
        try:
            before = _kept_menu((await host.kept(self.id, _MENU)).get(_MENU))
            after = dict(before)
            try:
                await self._send_menus(host, me, after)
            finally:
                if after != before:
                    await host.keep(self.id, {_MENU: json.dumps(after, sort_keys=True)})
        except ChannelError as exc:
            log.warning("telegram.no_menu", channel=self.id, error=str(exc))

    async def _send_menus(self, host: Host, me: TelegramBot, there: dict[str, str]) -> None:
        wanted = menus(host.commands, host.admins(self.id))
        for name in there.keys() - wanted.keys():
            with suppress(TelegramRefused):  # the chat no longer exists
                await self._wire.call(removal(name), seconds=self._pace.request_seconds)
            del there[name]
        refused: set[str] = set()
        for name, menu in wanted.items():
            scope = name.partition("/")[0]
            mark = fingerprint(menu, me.id)
            if scope in refused or there.get(name) == mark:
                continue
            try:
                await self._wire.call(menu, seconds=self._pace.request_seconds)
                there[name] = mark
            except TelegramRefused as exc:  # for example, an admin who has never written to the bot
                refused.add(scope)
                log.info("telegram.menu_refused", channel=self.id, menu=name, error=str(exc))

    # Receiving: updates that are fetched.

    async def _expect_no_webhook(self) -> None:
        if (await self._webhook_info()).get("url"):
            raise webhook_set()

    async def _poll(self, host: Host, reader: UpdateReader) -> None:
        # Without an offset Telegram returns the oldest unconfirmed update. An offset kept from an earlier run would
        # hide updates, because ids start again, perhaps lower, after a week without updates.
        offset: int | None = None
        waited: set[str] = set()
        failing = Backoff(1, 30, self._pace.random)
        rival = Backoff(5, 45, self._pace.random)  # with the short poll after it, recovery takes at most a minute
        while True:
            asked = self._now()
            try:
                updates = await self._updates(offset)
                self._contact = self._now()
                left = await self._take_batch(host, reader, updates, waited)
            except ChannelError as exc:
                if not exc.retryable:
                    raise
                self._note(exc)
                backoff = rival if isinstance(exc, Rival) else failing
                await self._pace.sleep(backoff.wait() if exc.retry_after is None else exc.retry_after)
                continue
            failing.reset()
            rival.reset()
            self._recovered()
            if left:
                if len(left) < len(updates):
                    # The lowest id, so that no update that was seen but not taken is confirmed.
                    offset = min(update["update_id"] for update in left)
                waited = {name for update in left if (name := album_of(update)) is not None}
                await self._pace.sleep(_ALBUM_SECONDS)
                continue
            waited = set()
            # The last id of the batch, not the highest: the highest could confirm updates that were never received.
            offset = updates[-1]["update_id"] + 1 if updates else None
            if not updates and self._now() - asked < _SPIN:
                await self._pace.sleep(1)  # a server that does not wait for updates must not cause a busy loop

    async def _take_batch(self, host: Host, reader: UpdateReader, updates: list[JSON], waited: set[str]) -> list[JSON]:
        """Hands over updates that are ready. Returns the rest, which begins with an album whose parts may be late."""
        deliveries = gathered(updates)

        def may_grow(parts: list[JSON]) -> bool:
            name = album_of(parts[0])
            if name is None or name in waited or name in self._albums or name in self._handed:
                return False
            return len(parts) < _ALBUM

        ready = list(takewhile(lambda parts: not may_grow(parts), deliveries))
        for delivery in ready:
            for parts in await self._as_before(host, delivery):
                await self._hand_over(host, reader, parts)
        return [update for parts in deliveries[len(ready) :] for update in parts]

    async def _as_before(self, host: Host, parts: list[JSON]) -> list[list[JSON]]:
        """Returns the groups of updates that are handed over as one message each: a single update, or an album.

        An album's parts are recorded before the host sees them. If the process dies before they are confirmed, they
        come again, perhaps with a part that was late the first time. The recorded parts then go together again, under
        the key by which the inbox knows them, and each late part is its own message.
        """
        name = album_of(parts[0])
        if name is None:
            return [parts]
        by_id = {part["message"]["message_id"]: part for part in parts}
        before = self._handed.get(name)
        if before is None:
            handed = dict([*self._handed.items(), (name, list(by_id))][-_KEPT_ALBUMS:])
            await host.keep(self.id, {_ALBUMS: json.dumps(handed)})
            self._handed = handed
            return [parts]
        # If the first part does not come again, the others were taken as well, so they are only confirmed.
        again = [by_id[one] for one in before if one in by_id] if before[0] in by_id else []
        late = [[part] for one, part in by_id.items() if one not in before]
        return [again, *late] if again else late

    async def _updates(self, offset: int | None) -> list[JSON]:
        wait = min(self._pace.poll_seconds, _SHORT_POLL) if self._trouble else self._pace.poll_seconds
        poll = GetUpdates(offset=offset, limit=100, timeout=round(wait), allowed_updates=_UPDATES)
        try:
            # Read as plain data: one update that aiogram can't parse must not lose the others.
            updates = await self._wire.call(poll, seconds=wait + min(_POLL_GRACE, self._pace.request_seconds))
        except TelegramRefused as exc:
            raise no_entry(exc) from None
        if not isinstance(updates, list) or not all(map(_is_update, updates)):
            raise ChannelUnavailable(f"{self._wire.host} answers polls with something that is no list of updates")
        return updates

    # Receiving: updates that are sent to us.

    def _is_genuine(self, headers: Mapping[str, str]) -> bool:
        """Implements `Hook.is_genuine`."""
        assert self._webhook is not None
        given = headers.get(_HOOK_HEADER, "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, self._webhook.secret.encode())

    async def _pushed(self, headers: Mapping[str, str], body: bytes) -> int:
        """Implements `Hook.take`.

        Telegram sends a chat's next update only after the previous one was answered with 200, and repeats it otherwise.
        So an album can't be collected here. Its parts are handed over one by one, and later parts count as addressed if
        the first did. As messages of one author they are answered together.
        """
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return 400
        if not _is_update(update):
            return 400
        async with self._line(chat_of(update)):
            if self._receiving is None:
                return 503
            try:
                await self._hand_over(*self._receiving, [update])
            except ChannelError as exc:
                self._note(exc)
                return 503
        self._contact = self._taken_at = self._now()
        self._recovered()
        return 200

    async def _set_webhook(self, webhook: Webhook) -> int:
        """Sets the webhook. Returns the time of that in milliseconds UTC."""
        setting = SetWebhook(
            url=self._webhook_url(webhook),
            secret_token=webhook.secret,
            allowed_updates=_UPDATES,
            max_connections=_HOOK_CONNECTIONS,
        )
        try:
            await self._wire.call(setting, seconds=self._pace.request_seconds)
        except TelegramRefused as exc:
            if exc.status == 400:
                raise ChannelRefused(
                    f"{exc}: webhook must be an https address that Telegram can reach, on port 443, 80, 88 or 8443"
                ) from None
            raise no_entry(exc) from None
        self._contact = self._now()
        self._recovered()
        return self._contact

    async def _watch_webhook(self, set_at: int) -> None:
        """Checks that updates can come in. The webhook stays set when this ends, so that updates wait at Telegram."""
        assert self._webhook is not None
        while True:
            await self._pace.sleep(_HOOK_CHECK)
            try:
                info = await self._webhook_info()
            except ChannelError as exc:
                if not exc.retryable:
                    raise
                self._note(exc)
                continue
            if info.get("url") != self._webhook_url(self._webhook):
                raise ChannelUnavailable(
                    "another program has removed this bot's webhook or set its own; Remora has set it again, but two "
                    "programs can't share a bot: stop the other one, or revoke the token with @BotFather and use the "
                    "new one"
                )
            failed_at, why = info.get("last_error_date"), info.get("last_error_message")
            if isinstance(failed_at, int) and failed_at * 1000 > max(set_at, self._taken_at):
                since = f"{datetime.fromtimestamp(failed_at, UTC):%Y-%m-%d %H:%M} UTC"
                self._note(
                    ChannelUnavailable(f"Telegram can't hand updates over at {self._webhook.url} ({since}): {why}")
                )
                continue
            self._contact = self._now()
            self._recovered()

    async def _webhook_info(self) -> dict[str, Any]:
        try:
            found = await self._wire.call(GetWebhookInfo(), seconds=self._pace.request_seconds)
        except TelegramRefused as exc:
            raise no_entry(exc) from None
        return found if isinstance(found, dict) else {}

    def _webhook_url(self, webhook: Webhook) -> str:
        return webhook.url.rstrip("/") + self._path

    def _line(self, name: str) -> asyncio.Lock:
        """Returns the lock that keeps a chat's updates in their order of arrival."""
        if len(self._lines) > _MOST_LINES:
            self._lines = {name: line for name, line in self._lines.items() if line.locked()}
        return self._lines.setdefault(name, asyncio.Lock())

    # Receiving: the part that both ways share.

    async def _hand_over(self, host: Host, reader: UpdateReader, parts: list[JSON]) -> None:
        """Hands over an update, or those of an album. Returns once they may be confirmed. Raises `NotTaken`."""
        await self._endurance.endure(str(parts[0]["update_id"]), self._take(host, reader, parts))

    async def _take(self, host: Host, reader: UpdateReader, parts: list[JSON]) -> None:
        unread = self._unread.count
        updates = [update for raw in parts if (update := self._read(raw)) is not None]
        if not updates:
            return
        update = updates[0]
        if update.callback_query is not None:
            pressed = reader.pressed(update.callback_query, update.update_id, self._now())
            if pressed is not None:
                await host.on_inbound(pressed)
            self._aside(self._release(update.callback_query))
        elif update.my_chat_member is not None:
            change = update.my_chat_member
            await host.on_presence(self.id, str(change.chat.id), present=is_present(change))
            await host.on_rights(self.id, str(change.chat.id), write=may_write(change))
        elif update.message_reaction is not None:
            reacted = reader.reacted(update.message_reaction, update.update_id)
            if reacted is not None:
                inbound, reaction, kept = reacted
                await host.on_reacted(inbound, reaction, kept=kept)
        elif update.message is not None and update.message.migrate_to_chat_id is not None:
            old, new = update.message.chat.id, update.message.migrate_to_chat_id
            await host.on_moved(self.id, str(old), str(new))
        elif update.message is not None and update.message.forum_topic_reopened is not None:
            message = update.message
            await host.on_rights(self.id, str(message.chat.id), write=True, threads=[topic_of(message)])
        elif update.message is not None:
            await self._take_message(host, reader, updates, album_of(parts[0]), unread=self._unread.count > unread)
        elif update.edited_message is not None:
            edited = reader.edited(update.edited_message, update.update_id)
            told = edited and self._told_under(edited, album_of({"message": parts[0]["edited_message"]}))
            if told is not None:
                await host.on_inbound(told)

    async def _take_message(
        self, host: Host, reader: UpdateReader, updates: list[Update], name: str | None, *, unread: bool
    ) -> None:
        known = None if name is None else self._albums.get(name)
        if known is not None:
            updates = [one for one in updates if one.message and one.message.message_id not in known.parts]
        said = reader.said(updates)
        if said is None or (unread and said.is_empty and not self._unread.may_tell(said.chat)):
            return
        if known is not None and known.addressed and not said.text:
            said = replace(said, addressed=True)
        await host.on_inbound(said)
        if name is not None:
            known = self._albums.setdefault(name, _Album(addressed=said.addressed))
            known.parts |= {one.message.message_id: said.message_id for one in updates if one.message}
            if len(self._albums) > _MOST_ALBUMS:
                del self._albums[next(iter(self._albums))]

    def _told_under(self, edited: Inbound, name: str | None) -> Inbound | None:
        """Returns an edit with the id by which the host knows its message; None if there is nothing to edit."""
        known = None if name is None else self._albums.get(name)
        first = edited.message_id if known is None else known.parts.get(int(edited.message_id), edited.message_id)
        if first == edited.message_id:
            return edited
        return replace(edited, message_id=first) if edited.text else None

    def warm_up(self) -> None:
        Update.model_validate(_BARE)

    def _read(self, raw: JSON) -> Update | None:
        """Parses an update; logs without its text what of it can't be read, and returns None if that is all."""
        update, dropped = parsed(raw, now=self._now())
        if dropped:
            self._unread.note(str(raw["update_id"]), ", ".join(dropped[:10]))
        return update

    async def _release(self, press: CallbackQuery) -> None:
        """Ends the button's waiting mark. It is normal to be too late for that."""
        with suppress(ChannelError):
            await self._wire.call(AnswerCallbackQuery(callback_query_id=press.id), seconds=ASIDE_SECONDS)

    def _note(self, exc: ChannelError) -> None:
        if self._trouble != exc.reason:
            self._trouble = exc.reason
            log.warning("telegram.trouble", channel=self.id, code=exc.code, error=self._trouble)

    def _recovered(self) -> None:
        if self._trouble:
            log.info("telegram.recovered", channel=self.id)
            self._trouble = ""

    def _aside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts `work`, which raises nothing, as a task."""
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        return task


@dataclass(slots=True)
class _Album:
    """The parts of an album that were handed over: for each message id, the id under which it was handed over."""

    addressed: bool
    parts: dict[int, str] = field(default_factory=dict)


def _is_update(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("update_id"), int)


def _kept_menu(kept: str | None) -> dict[str, str]:
    return {} if kept is None else {str(name): str(mark) for name, mark in json.loads(kept).items()}


def _kept_albums(kept: str | None) -> dict[str, list[int]]:
    return {} if kept is None else {str(name): [int(one) for one in ids] for name, ids in json.loads(kept).items()}
