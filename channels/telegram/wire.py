"""Requests to Telegram's Bot API, and the meaning of its refusals.

Invariants: a request is made once, and its error tells whether the request surely had no effect. The token is part of
every address; it is in no error text, no cause of an error and no variable of a frame that raises. aiogram gives the
models of methods, the form encoding and the HTTP session; its retries are not used.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.methods import GetFile, GetMe, TelegramMethod
from aiogram.types import User
from aiogram.utils.token import TokenValidationError
from aiohttp import ClientSession
from pydantic import ValidationError

from channels.base import (
    Blocked,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    EditGone,
    Moved,
    Muted,
    PlaceGone,
    TooLarge,
)
from channels.http import HttpClient
from channels.proxies import ProxiedConnector

API = "https://api.telegram.org"

#: Where the bot may not write: of a member without rights, of a channel's, of a chat that is restricted.
_NO_RIGHTS = (
    "not enough rights to send", "have no rights to send", "chat_write_forbidden", "chat_send_plain_forbidden",
    "chat_restricted", "need administrator rights", "have no write access",
)  # fmt: skip
_UNNAMED_WAIT = 5.0  # a 429 that does not say how long


class TelegramRateLimited(ChannelUnavailable):
    """Telegram asks to wait `retry_after` seconds before the next request to this chat; nothing was shown."""

    code = "rate_limited"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramBot:
    """A bot as Telegram describes it. `username` is without the @.

    `reads_all_group_messages` is False in privacy mode: in groups the bot is then given only commands, mentions of it
    and replies to it.
    """

    id: str
    username: str
    name: str
    reads_all_group_messages: bool


class Rival(ChannelUnavailable):
    """Another process polls with the same token; each ends the other's polls."""

    code = "rival"


class TelegramRefused(ChannelError):
    """Telegram understood a request and refused it; nothing was shown. The meaning depends on the request."""

    def __init__(self, status: int, description: str, *, moved_to: int | None = None) -> None:
        super().__init__(f"Telegram says: {description} ({status})")
        self.status = status
        self.moved_to = moved_to
        self._description = description.casefold()

    def says(self, *words: str) -> bool:
        """Returns whether one of `words` (lower case) is in Telegram's description, which alone tells 400s apart."""
        return any(word in self._description for word in words)


class _Session(AiohttpSession):
    def __init__(self, base_url: str, proxy: str | None) -> None:
        super().__init__(api=TelegramAPIServer.from_base(base_url))
        # aiogram knows proxies of one address alone, and none of the environment.
        self._connector_type = partial(ProxiedConnector, proxy)  # type: ignore[assignment]


class Wire:
    """Requests to the Bot API, each made once, over one HTTP session that lives while anybody uses it."""

    def __init__(self, token: str, base_url: str = API, proxy: str | None = None) -> None:
        """`proxy` is as `own` of `proxies.proxy_to`. Raises `ChannelRefused` if `token` can't be a token."""
        self.host = urlsplit(base_url).hostname or base_url
        self._session = _Session(base_url, proxy)
        try:
            self._bot = Bot(token, session=self._session)
        except TokenValidationError:
            raise ChannelRefused(
                "this is not a bot token: it should look like 123456789:AAE… and come from @BotFather in Telegram"
            ) from None
        self._http = HttpClient(self._session.create_session)

    def open(self) -> AbstractAsyncContextManager[ClientSession]:
        """Keeps one HTTP session for all requests made inside the block."""
        return self._http.open()

    async def introduce(self, seconds: float) -> TelegramBot:
        """Returns the bot whose token this is. Raises `ChannelRefused`, `ChannelUnavailable`."""
        try:
            me = User.model_validate(await self.call(GetMe(), seconds=seconds))
        except TelegramRefused as exc:
            raise no_entry(exc) from None
        except ValidationError:
            raise ChannelUnavailable(
                f"{self.host} does not answer like Telegram; check the channel's base_url"
            ) from None
        return TelegramBot(
            id=str(me.id),
            username=me.username or "",
            name=me.full_name,
            reads_all_group_messages=bool(me.can_read_all_group_messages),
        )

    async def call(self, method: TelegramMethod[Any], *, seconds: float) -> Any:
        """Makes a request of at most `seconds`; returns the answer's `result` as plain data.

        Raises `TelegramRefused`, `TelegramRateLimited`, and `ChannelUnavailable` with `certain` False once the
        request may have been read. No error holds the address, and with it the token, nor has a cause that does.
        """
        name = method.__api_method__
        answer = await self._http.exchange(
            "POST",
            self._session.api.api_url(self._bot.token, name),
            server=self.host,
            seconds=seconds,
            data=self._session.build_form_data(self._bot, method),
        )
        if isinstance(answer, ChannelError):
            raise answer
        return self._result(name, answer.status, answer.body)

    async def download(self, file_id: str, *, limit: int, seconds: float) -> bytes:
        """Returns a file that was sent to the bot, within `seconds` in all.

        Raises `TooLarge` above `limit` bytes or Telegram's own 20 MB, `ChannelUnavailable`, and `ChannelError` for a
        file that will not come any more.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        try:
            found = await self.call(GetFile(file_id=file_id), seconds=seconds)
        except TelegramRefused as exc:
            raise _no_file(exc) from None
        path = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(path, str):
            raise ChannelUnavailable(f"{self.host} does not say where the file is")
        if path.startswith("/"):
            raise ChannelError(
                f"{self.host} runs in local mode, which keeps files on its own disk; start it without --local"
            )
        size = found.get("file_size")
        if isinstance(size, int) and size > limit:
            raise TooLarge(f"the file has {size:,} bytes, {limit:,} are allowed")
        answer = await self._http.exchange(
            "GET",
            self._session.api.file_url(self._bot.token, quote(path)),
            server=self.host,
            seconds=max(deadline - loop.time(), 0.001),
            limit=limit,
        )
        if isinstance(answer, ChannelError):
            raise answer
        if answer.status >= 500:
            raise ChannelUnavailable(f"{self.host} is in trouble ({answer.status})")
        if answer.status != 200:
            raise ChannelError(f"{self.host} does not give the file ({answer.status})")
        return answer.body

    def _result(self, name: str, status: int, body: bytes) -> Any:
        if status == 413:  # perhaps from a proxy before Telegram, in words of its own
            raise TelegramRefused(status, "Request Entity Too Large")
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
            raise TelegramRateLimited(f"Telegram asks to wait {seconds:.0f} s", retry_after=seconds)
        if status >= 500:
            raise ChannelUnavailable(f"Telegram is in trouble: {description} ({status})", certain=False)
        moved_to = parameters.get("migrate_to_chat_id")
        raise TelegramRefused(status, description, moved_to=moved_to if isinstance(moved_to, int) else None)


def no_entry(refused: TelegramRefused) -> ChannelError:
    """Returns the error for a refused poll or a refused first request."""
    if refused.status in (401, 404):
        return ChannelRefused(
            f"{refused}: the bot's token is wrong or was revoked; put the one that @BotFather shows into the config"
        )
    if refused.status == 409 and refused.says("webhook"):
        return webhook_set()
    if refused.status == 409:
        return Rival(
            "another process polls with this bot's token, so messages may go there; stop it, or revoke the token "
            "with @BotFather and use the new one"
        )
    return ChannelUnavailable(str(refused))


def webhook_set() -> ChannelRefused:
    return ChannelRefused(
        "a webhook is set for this bot, so Telegram gives its messages to another program; if that is not wanted any "
        "more, open https://api.telegram.org/bot<TOKEN>/deleteWebhook with the bot's token, else use a bot of its own"
    )


def not_shown(refused: TelegramRefused, *, edit: bool, file: bool = False) -> ChannelError:
    """Returns the error for a refused message. The words are Telegram's, as tdlib/telegram-bot-api has them.

    Where a `file` may not be sent, words may.
    """
    told = str(refused)
    if refused.moved_to is not None:
        return Moved(told, chat=str(refused.moved_to))
    if refused.status in (401, 404):
        # The row is not at fault: it waits until the operator has given a token that is let in.
        return ChannelUnavailable(f"{told}: the bot's token is wrong or was revoked")
    muted = refused.says("topic_closed") or (not file and refused.says(*_NO_RIGHTS))
    if muted or refused.says("topic_deleted", "thread not found", "thread_not_found", "topic_id_invalid"):
        return Muted(told) if muted else PlaceGone(told)
    if refused.status == 403 or refused.says(
        "chat not found", "user not found", "peer_id_invalid", "chat was deleted", "chat was deactivated"
    ):
        return Blocked(told)
    if edit and refused.says("message to edit not found", "can't be edited", "message_id_invalid"):
        return EditGone(told)
    too_large = refused.status == 413 or refused.says("file is too big")
    return TooLarge(f"{told}: the file was not sent") if too_large else ChannelError(told)


def _no_file(refused: TelegramRefused) -> ChannelError:
    """Returns the error for a refused request for a file."""
    if refused.says("file is too big"):
        return TooLarge("the file has more than the 20 MB that Telegram gives to bots")
    if refused.status in (401, 404):
        return ChannelUnavailable(f"{refused}: the bot's token is wrong or was revoked")
    if refused.says("temporarily unavailable"):
        return ChannelUnavailable(str(refused))
    return ChannelError(str(refused))
