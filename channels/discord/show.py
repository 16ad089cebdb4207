"""Shows messages on Discord: new messages, edits, and answers to interactions, each where it belongs.

Invariants: requests go to a channel one after the other. An answer for one person's eyes is never shown in a chat,
nor a thread's message in its parent. An interaction is answered only after it was acknowledged. Nothing pings. A row
that may have been shown before is looked for first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote

import structlog

from channels import markup
from channels.base import (
    EYES,
    Blocked,
    ChannelError,
    ChannelUnavailable,
    Chunk,
    EditGone,
    File,
    Muted,
    Outbound,
    Place,
    PlaceGone,
    TooLarge,
)
from channels.discord.payloads import EPHEMERAL, FILE_LIMIT, Json, Ticket, bare, content, made_at, nonce, snowflake
from channels.discord.rest import DiscordRefused, Rest

log = structlog.get_logger(__name__)

T = TypeVar("T")

PAGE = 100
_ASIDE_SECONDS = 5.0  # a request nobody waits for, such as "typing", may take this long
_UPLOAD_RATE = 250_000  # bytes a second on the slowest connection expected; a file has that much more time
_PIECE_GAP = 1_500  # milliseconds between edits of a growing answer; a channel is allowed five in five seconds
#: Chats whose pace is remembered before those that have been quiet for a minute are forgotten.
_MOST_PACES = 1_000
_QUIET = 60_000
#: A token is good for 15 minutes (discord.com/developers/docs/interactions/receiving-and-responding#followup-messages).
_TICKET_LIFE = 14 * 60_000 + 30_000
_ACKNOWLEDGED_SECONDS = 6.0  # by then an interaction has been acknowledged, or never will be
_MOST_KEPT = 1_000
#: Milliseconds by which a message may be older than this machine's clock says, when it is looked for.
_SKEW = 600_000
_LOOKUP_PAGES = 3
#: Milliseconds: while a row is younger, Discord itself recognises it by its nonce ("the past few minutes").
_NONCE_LIFE = 120_000

#: Discord's error codes with handling of their own
#: (discord.com/developers/docs/topics/opcodes-and-status-codes#json).
UNKNOWN_CHANNEL, _UNKNOWN_MESSAGE, _UNKNOWN_WEBHOOK, _UNKNOWN_INTERACTION = 10003, 10008, 10015, 10062
_MISSING_ACCESS, _NOT_OURS, _NO_DIRECT, _MISSING_PERMISSION = 50001, 50005, 50007, 50013
_BAD_TICKET, _BAD_FORM, _ARCHIVED, _LOCKED = 50027, 50035, 50083, 160005
_TOO_LARGE = 40005
_NO_SHARED_SERVER = 50278
#: Refusals of a reply by a bot that may not read the history.
_NO_REPLY = (160002, 160009)
#: A channel that is gone or that the bot may not read.
HIDDEN = frozenset({UNKNOWN_CHANNEL, _MISSING_ACCESS, _MISSING_PERMISSION})
_CLOSED = frozenset({UNKNOWN_CHANNEL, _MISSING_ACCESS, _NO_DIRECT, _NO_SHARED_SERVER})


@dataclass(slots=True)
class _Pace:
    """The pace of one channel: one request at a time, and the time of the last one (milliseconds UTC)."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requested: int = 0
    revision: tuple[str, Chunk] | None = None

    def early(self, now: int, gap: int) -> bool:
        return 0 <= now - self.requested < gap


class DiscordScreen:
    """The messages that one bot shows; `me` is its id or "". `direct_opened` is told of each new private channel."""

    def __init__(
        self,
        channel: str,
        rest: Rest,
        *,
        me: Callable[[], str],
        direct_opened: Callable[[str], None],
        now: Callable[[], int],
        request_seconds: float,
    ) -> None:
        self._channel = channel
        self._rest = rest
        self._now = now
        self._request_seconds = request_seconds
        self._me = me
        self._direct_opened = direct_opened
        self._paces: dict[str, _Pace] = {}
        self._asides: set[asyncio.Task[None]] = set()
        self._acknowledged: dict[str, asyncio.Future[bool]] = {}
        # Messages that can't be edited in the usual way: the ticket by which, or the other channel in which, they can.
        self._tickets: dict[str, Ticket] = {}
        self._elsewhere: dict[str, str] = {}
        self._rows: dict[str, str] = {}  # message to the nonce of the row it was shown for
        self._direct: dict[str, str] = {}  # user to their private channel, once the bot has written there

    async def send(self, outbound: Outbound) -> str:
        place = outbound.place
        if not _target(place).isdecimal():
            raise ChannelError(f"{_target(place)!r} is no Discord channel id")
        if outbound.file is not None and len(outbound.file.data) > FILE_LIMIT:
            raise TooLarge(
                f"the file {outbound.file.name} has {len(outbound.file.data):,} bytes; bots can attach {FILE_LIMIT:,} "
                "on Discord, so it was not sent"
            )
        pace = self._pace(place)
        # One request after the other in a channel: after a 429 the next must not be on its way already.
        async with pace.lock:
            pace.requested = self._now()
            try:
                shown = await self._show(outbound)
            except DiscordRefused as exc:
                raise _not_shown(exc, outbound) from None
            if outbound.id:
                remember(self._rows, shown, nonce(outbound))
            return shown

    async def revise(self, place: Place, reference: str, text: str) -> None:
        """See `Channel.revise`.

        A request once begun is finished even if the caller is cancelled. Otherwise a request that Discord got but
        nobody waited for could take effect after the edit with the whole answer, and undo it.
        """
        pace = self._pace(place)
        if pace.lock.locked() or pace.early(self._now(), _PIECE_GAP):
            return
        shown = markup.discord(text[: 2 * markup.DISCORD_LIMIT])[0]
        if pace.revision == (reference, shown):
            return
        pace.revision = (reference, shown)
        outbound = Outbound(id=0, place=place, text=shown.text, edits=reference)
        await asyncio.shield(self._aside(self._revise(outbound)))

    async def typing(self, place: Place) -> None:
        pace = self._pace(place)
        if pace.lock.locked() or not _target(place).isdecimal():
            return
        with suppress(ChannelError):
            await self._rest.call("POST", f"/channels/{_target(place)}/typing", seconds=_ASIDE_SECONDS)

    async def mark(self, place: Place, message_id: str, *, on: bool) -> None:
        if not (_target(place).isdecimal() and message_id.isdecimal()):
            return
        path = f"/channels/{_target(place)}/messages/{message_id}/reactions/{quote(EYES)}/@me"
        bucket = f"/channels/{_target(place)}/messages/id/reactions"
        await self._rest.call("PUT" if on else "DELETE", path, bucket=bucket, seconds=_ASIDE_SECONDS)

    async def messages(self, target: str, query: dict[str, str]) -> list[Json]:
        """Returns a page of a channel's messages, newest first. Raises as `Rest.call`."""
        page = await self._rest.call(
            "GET", f"/channels/{target}/messages", query={"limit": str(PAGE), **query}, seconds=self._request_seconds
        )
        if not isinstance(page, list) or not all(isinstance(one, dict) and "id" in one for one in page):
            raise ChannelUnavailable(f"{self._rest.host} answers with something that is no list of messages")
        return page

    async def direct_channel(self, user: str) -> str:
        """Returns the private channel with a user, and makes it if there is none. Raises as `Rest.call`."""
        if user not in self._direct:
            shown = await self._rest.call(
                "POST", "/users/@me/channels", body={"recipient_id": user}, seconds=self._request_seconds
            )
            if not isinstance(shown, dict) or "id" not in shown:
                raise ChannelUnavailable(f"{self._rest.host} does not say where a person can be written to")
            remember(self._direct, user, str(shown["id"]))
            self._direct_opened(str(shown["id"]))
        return self._direct[user]

    def acknowledging(self, ticket: Ticket) -> asyncio.Future[bool]:
        """Returns a future for whether the interaction was acknowledged; if not, it is answered elsewhere."""
        waiting: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        remember(self._acknowledged, ticket.id, waiting)
        return waiting

    async def tell(self, ticket: Ticket, text: str, *, apart: bool) -> None:
        place = Place(channel=self._channel, chat="0")
        shown = Outbound(id=0, place=place, text=markup.discord(text, markdown=False)[0].text)
        with suppress(ChannelError):
            if apart:
                await self._follow(_hook(ticket), content(shown), replace(ticket, private=True))
            else:
                await self._in_place(shown, ticket)

    async def _revise(self, outbound: Outbound) -> None:
        with suppress(ChannelError):
            await self.send(outbound)

    async def _show(self, outbound: Outbound) -> str:
        ticket = Ticket.from_text(outbound.ticket) or self._tickets.get(outbound.edits or "")
        if ticket is not None:
            return await self._answer(outbound, ticket)
        if outbound.ticket:
            # The answer may be for one person's eyes, so the chat must not read it.
            raise ChannelError("the stored interaction can't be read, so its answer is not shown")
        return await self._say(outbound, self._elsewhere.get(outbound.edits or "", _target(outbound.place)))

    async def _say(self, outbound: Outbound, target: str) -> str:
        if outbound.edits is not None:
            if not outbound.edits.isdecimal():
                raise EditGone(f"{outbound.edits!r} is no Discord message id")
            path, bucket = f"/channels/{target}/messages/{outbound.edits}", f"/channels/{target}/messages/id"
            return await self._shown("PATCH", path, content(outbound), target=target, bucket=bucket)
        if outbound.retried and not 0 <= self._now() - outbound.made_at < _NONCE_LIFE:
            found = await self._find(outbound, target)
            if found is not None:
                return found
        body = content(outbound) | {"nonce": nonce(outbound), "enforce_nonce": True}
        if outbound.reply_to is not None and outbound.reply_to.isdecimal():
            # A message that can't be answered any more must not keep the answer back.
            body["message_reference"] = {"message_id": outbound.reply_to, "fail_if_not_exists": False}
        return await self._shown("POST", f"/channels/{target}/messages", body, file=outbound.file, target=target)

    async def _shown(
        self,
        method: str,
        path: str,
        body: Json,
        *,
        file: File | None = None,
        target: str | None = None,
        bucket: str | None = None,
        signed: bool = True,
    ) -> str:
        """Makes a request that shows `body`; returns the message's id. `target` may be a thread to be reopened."""
        seconds = self._request_seconds + (0 if file is None else len(file.data) / _UPLOAD_RATE)
        while True:  # at most four times: with an opened thread, without a reference, without all but the words
            try:
                shown = await self._rest.call(
                    method, path, bucket=bucket, body=body, file=file, seconds=seconds, signed=signed
                )
            except DiscordRefused as exc:
                if exc.number == _BAD_FORM and body != bare(body):
                    log.warning("discord.plain", channel=self._channel, error=str(exc))
                    body = bare(body)
                elif exc.number in _NO_REPLY and "message_reference" in body:
                    body = {name: value for name, value in body.items() if name != "message_reference"}
                elif exc.number == _ARCHIVED and target is not None:
                    await self._reopen(target)
                    target = None
                else:
                    raise
                continue
            if isinstance(shown, dict) and shown.get("id"):
                return str(shown["id"])
            raise ChannelUnavailable(f"{self._rest.host} took a message but does not say under which id", certain=False)

    async def _reopen(self, thread: str) -> None:
        """Opens an archived thread that was not closed on purpose. Raises `Muted`."""
        told = "the thread is archived and can't be opened again"
        try:
            shown = await self._rest.call("GET", f"/channels/{thread}", seconds=self._request_seconds)
            if not isinstance(shown, dict) or (shown.get("thread_metadata") or {}).get("locked", True):
                raise Muted(told)
            await self._rest.call(
                "PATCH", f"/channels/{thread}", body={"archived": False}, seconds=self._request_seconds
            )
        except DiscordRefused as exc:
            raise Muted(f"{told}: {exc}") from None

    async def _find(self, outbound: Outbound, target: str) -> str | None:
        """Returns the id of the message that this row has already become, if it has."""
        # By Discord's clock if it is known, and never so far back that others' messages fill the pages.
        answered_at = int(outbound.reply_to) if outbound.reply_to and outbound.reply_to.isdecimal() else 0
        after = str(max(answered_at, snowflake(outbound.made_at - _SKEW)))
        ours, words = nonce(outbound), outbound.text.strip()
        # By their sizes, because Discord changes the names of files.
        sizes = [] if outbound.file is None else [len(outbound.file.data)]
        for _ in range(_LOOKUP_PAGES):
            try:
                page = await self.messages(target, {"after": after})
            except DiscordRefused:
                return None  # a bot that may not read there can't find out; if it may not send either, sending says so
            for one in page:
                if not self._is_mine(one) or self._rows.get(str(one["id"]), ours) != ours:
                    continue
                answered = (one.get("message_reference") or {}).get("message_id")
                # Some histories come without nonces. Then the bot's own message is the one with the same words in
                # answer to the same message, or to a message that was gone by then.
                same = str(one.get("content", "")).strip() == words and answered in (None, outbound.reply_to)
                same = same and [attached.get("size") for attached in one.get("attachments") or ()] == sizes
                if one.get("nonce") == ours or (one.get("nonce") is None and same):
                    return str(one["id"])
            if len(page) < PAGE:
                break
            after = max((str(one["id"]) for one in page), key=int)
        return None

    def _is_mine(self, message: Json) -> bool:
        author = message.get("author") or {}
        me = self._me()
        return author.get("id") == me if me else bool(author.get("bot"))

    # Answering interactions.

    async def _answer(self, outbound: Outbound, ticket: Ticket) -> str:
        if outbound.edits in self._elsewhere:
            return await self._say(outbound, self._elsewhere[outbound.edits or ""])
        if self._now() - made_at(ticket.id) < _TICKET_LIFE and await self._was_acknowledged(ticket):
            try:
                return await self._in_place(outbound, ticket)
            except DiscordRefused as exc:
                if exc.number not in (_UNKNOWN_WEBHOOK, _BAD_TICKET, _UNKNOWN_INTERACTION) and exc.status != 401:
                    raise
                log.info("discord.late", channel=self._channel, row=outbound.id, error=str(exc))
        if not ticket.private:
            # A command has no message that could be replied to.
            return await self._say(replace(outbound, reply_to=None), _target(outbound.place))
        try:
            target = await self.direct_channel(ticket.user)
            shown = await self._say(replace(outbound, reply_to=None, edits=None), target)
        except DiscordRefused as exc:
            if exc.status == 401:
                raise
            raise ChannelError(f"what is for one person's eyes can't be told in private: {exc}") from None
        remember(self._elsewhere, shown, target)
        return shown

    async def _was_acknowledged(self, ticket: Ticket) -> bool:
        """Waits until the interaction is acknowledged; an interaction of an earlier run counts as acknowledged."""
        waiting = self._acknowledged.get(ticket.id)
        if waiting is None:
            return True
        done, _ = await asyncio.wait({waiting}, timeout=_ACKNOWLEDGED_SECONDS)
        return bool(done) and waiting.result()

    async def _in_place(self, outbound: Outbound, ticket: Ticket) -> str:
        hook = _hook(ticket)
        original = f"{hook}/messages/@original"
        body, file = content(outbound), outbound.file
        if outbound.edits is not None and outbound.edits != ticket.message:
            shown = await self._shown("PATCH", f"{hook}/messages/{outbound.edits}", body, bucket=hook, signed=False)
        elif outbound.chunk == 0 and (outbound.edits is not None or not ticket.message):
            # The original of a press is the message that was pressed: only its replacement may edit it.
            try:
                shown = await self._shown("PATCH", original, body, file=file, bucket=hook, signed=False)
            except DiscordRefused as exc:
                if exc.number != _UNKNOWN_MESSAGE or (outbound.edits is not None and not ticket.private):
                    raise
                shown = await self._follow(hook, body, ticket, file)  # the person has dismissed the original
        else:
            shown = await self._follow(hook, body, ticket, file)
        if ticket.private:
            remember(self._tickets, shown, ticket)
        return shown

    async def _follow(self, hook: str, body: Json, ticket: Ticket, file: File | None = None) -> str:
        body = body | {"flags": body["flags"] | (EPHEMERAL if ticket.private else 0)}
        return await self._shown("POST", hook, body, file=file, signed=False)

    def _pace(self, place: Place) -> _Pace:
        if len(self._paces) > _MOST_PACES:
            now = self._now()
            self._paces = {
                target: pace for target, pace in self._paces.items() if pace.lock.locked() or pace.early(now, _QUIET)
            }
        return self._paces.setdefault(_target(place), _Pace())

    def _aside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs `work`, which raises nothing, beside other work."""
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        return task


def remember(among: MutableMapping[str, T], key: str, value: T) -> None:
    """Keeps `value` among the newest thousand."""
    among[key] = value
    while len(among) > _MOST_KEPT:
        del among[next(iter(among))]


def _hook(ticket: Ticket) -> str:
    return f"/webhooks/{ticket.app}/{ticket.token}"


def _target(place: Place) -> str:
    """Returns the channel to send to; on Discord a thread is a channel of its own."""
    return place.chat if place.thread is None else place.thread


def _not_shown(refused: DiscordRefused, outbound: Outbound) -> ChannelError:
    told = str(refused)
    if refused.status == 401:
        # The row is not at fault: it waits until the operator has given a token that is let in.
        return ChannelUnavailable(f"{told}: the bot's token is wrong or was reset")
    if outbound.file is not None and refused.number == _MISSING_PERMISSION:
        # Words may well be allowed where files are not.
        return ChannelError(f"{told}: the bot can send no files there without the permission “Attach Files”")
    if outbound.edits is not None and refused.number in (_UNKNOWN_MESSAGE, _NOT_OURS):
        return EditGone(told)
    if refused.number in (_ARCHIVED, _LOCKED, _MISSING_PERMISSION):
        return Muted(told)
    if refused.number in _CLOSED:
        return PlaceGone(told) if outbound.place.thread is not None else Blocked(told)
    too_large = refused.number == _TOO_LARGE or refused.status == 413
    return TooLarge(f"{told}: the file was not sent") if too_large else ChannelError(told)
