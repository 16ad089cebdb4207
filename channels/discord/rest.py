"""Requests to Discord's REST API and its file servers, each made once.

Invariants: an error of a request tells whether the request surely had no effect. While Discord asks to wait, nothing
more is asked of the same bucket. No error holds an address or a token. Files are read only from Discord's own
servers. discord.py's own client is not used for this: it waits and repeats inside a request, so that nobody could
tell whether a message had been shown, nor end the wait.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientSession, FormData

from channels.base import ChannelError, ChannelRefused, ChannelUnavailable, File
from channels.http import HttpAnswer, HttpClient
from channels.proxies import ProxiedConnector

API = "https://discord.com/api/v10"
#: The page where tokens are made, named to operators whose token is refused.
PORTAL = "https://discord.com/developers/applications"

_FILE_HOSTS = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
#: Seconds that a request waits for a used-up bucket; a longer wait is told to the caller.
_PATIENCE = 5.0
_UNNAMED_WAIT = 5.0  # a 429 that does not say how long
_MOST_RESTS = 1_000
_EVERYTHING = ""  # the bucket of a global limit
_TOKEN = re.compile(r"[!-~]{1,200}")
#: The application's flags that tell whether messages come with their text; the second in fewer than 100 servers.
_READS_MESSAGES = 1 << 18 | 1 << 19
#: The bot's permissions in a server: see channels, send messages, attach files, read the history, send in threads.
_PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 38


class DiscordRateLimited(ChannelUnavailable):
    """Discord asks to wait `retry_after` seconds, `everywhere` or for this kind of request; nothing was shown."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: float, everywhere: bool = False) -> None:
        super().__init__(message, retry_after=retry_after)
        self.everywhere = everywhere


class DiscordRefused(ChannelError):
    """Discord understood a request and refused it; nothing was shown. The meaning depends on the request.

    `number` is Discord's own JSON error code, 0 if it gives none
    (discord.com/developers/docs/topics/opcodes-and-status-codes#json).
    """

    def __init__(self, status: int, number: int, told: str) -> None:
        super().__init__(f"Discord says: {told} ({number or status})")
        self.status = status
        self.number = number


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordBot:
    """A bot as Discord describes it. `name` is its user name.

    `reads_messages` is the application's switch "Message Content Intent". `invite` is the address at which the bot's
    owner adds it to a server.
    """

    id: str
    name: str
    application_id: str
    reads_messages: bool
    invite: str


class Rest:
    """One bot's requests, over one HTTP session that lives while anybody uses it."""

    def __init__(
        self,
        token: str,
        base_url: str,
        *,
        proxy: str | None = None,
        now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """`now` gives milliseconds UTC. Raises `ChannelRefused` for a token that can't be one."""
        self._token = token.strip()
        if not _TOKEN.fullmatch(self._token):
            raise ChannelRefused(
                f"this is not a bot token: create one at {PORTAL} → your application → Bot → Reset Token"
            )
        self._base = base_url.rstrip("/")
        self.host = urlsplit(base_url).hostname or base_url
        self._now = now
        self._sleep = sleep
        self.proxy = proxy
        self._http = HttpClient(partial(_session, proxy))
        self._rests: dict[str, tuple[int, int]] = {}  # bucket to the time in which it takes no requests, ms UTC

    def open(self) -> AbstractAsyncContextManager[ClientSession]:
        """Keeps one HTTP session for all requests made inside the block."""
        return self._http.open()

    async def introduce(self, seconds: float) -> DiscordBot:
        """Returns the bot whose token this is. Raises `ChannelRefused`, `ChannelUnavailable`."""
        try:
            me = await self.call("GET", "/users/@me", seconds=seconds)
            application = await self.call("GET", "/applications/@me", seconds=seconds)
            return DiscordBot(
                id=str(me["id"]),
                name=str(me.get("global_name") or me["username"]),
                application_id=str(application["id"]),
                reads_messages=bool(int(application.get("flags") or 0) & _READS_MESSAGES),
                invite=(
                    f"https://discord.com/oauth2/authorize?client_id={application['id']}"
                    f"&scope=bot+applications.commands&permissions={_PERMISSIONS}"
                ),
            )
        except DiscordRefused as exc:
            raise no_entry(exc) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ChannelUnavailable(
                f"{self.host} does not answer like Discord; check the channel's base_url"
            ) from None

    async def servers(self, seconds: float) -> dict[str, str]:
        """Returns the names of the bot's servers by their ids. Raises `ChannelRefused`, `ChannelUnavailable`."""
        try:
            listed = await self.call("GET", "/users/@me/guilds", seconds=seconds)
            return {str(server["id"]): str(server["name"]) for server in listed}
        except DiscordRefused as exc:
            raise no_entry(exc) from None
        except (KeyError, TypeError):
            raise ChannelUnavailable(
                f"{self.host} does not answer like Discord; check the channel's base_url"
            ) from None

    async def call(
        self,
        method: str,
        path: str,
        *,
        seconds: float,
        bucket: str | None = None,
        body: Any = None,
        file: File | None = None,
        query: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Any:
        """Makes a request of at most `seconds`; returns the answer as plain data, None if there is none.

        A `file` goes with the body, whose `attachments` name it by the id 0. `bucket` names the requests that share a
        rate limit: the path without ids, except the channel's. Without `bucket` the whole path is the bucket. A
        request that carries an interaction's token is not `signed`, and does not count towards the limit for all
        requests (discord.com/developers/docs/topics/rate-limits#global-rate-limit). Raises `DiscordRefused`,
        `DiscordRateLimited`, and `ChannelUnavailable` with `certain` False once the request may have been read.
        """
        bucket = f"{method} {path if bucket is None else bucket}"
        waited = 0.0
        while wait := self._rest(bucket, signed=signed):
            waited += wait
            if waited > _PATIENCE:
                everywhere = signed and self._rest(_EVERYTHING) >= wait
                told = f"Discord asked to wait, {wait:.0f} s are left"
                raise DiscordRateLimited(told, retry_after=wait, everywhere=everywhere)
            await self._sleep(wait)
        answer = await self._http.exchange(
            method,
            self._base + path,
            server=self.host,
            seconds=seconds,
            headers=self._headers(signed=signed),
            json=body if file is None else None,
            data=None if file is None else _form(body, file),
            params=query,
        )
        if isinstance(answer, ChannelError):
            raise answer
        return self._result(bucket, answer, signed=signed)

    async def read(self, url: str, *, limit: int, seconds: float) -> bytes:
        """Reads a file of at most `limit` bytes. Raises `TooLarge`, or `DiscordRefused` if it is not there."""
        if not self._is_ours(url):
            raise ChannelError("the attachment is not on Discord's servers, so it was not read")
        server = "Discord's file server"
        answer = await self._http.exchange("GET", url, server=server, seconds=seconds, limit=limit)
        if isinstance(answer, ChannelError):
            raise answer
        if answer.status >= 500 or answer.status == 429:
            raise ChannelUnavailable(f"{server} is in trouble ({answer.status})")
        if answer.status != 200:
            raise DiscordRefused(answer.status, 0, "the file is not there")
        return answer.body

    def _is_ours(self, url: str) -> bool:
        found = urlsplit(url)
        if found.scheme == "https" and found.hostname in _FILE_HOSTS and found.port in (None, 443):
            return True
        base = urlsplit(self._base)
        # Only a server that replaces Discord serves files from the API's own host.
        return self._base != API and (found.scheme, found.netloc) == (base.scheme, base.netloc)

    def _headers(self, *, signed: bool) -> dict[str, str]:
        # The form Discord asks of programs (discord.com/developers/docs/reference#user-agent).
        headers = {"User-Agent": f"DiscordBot ({PORTAL}, 1) Remora"}
        return headers | {"Authorization": f"Bot {self._token}"} if signed else headers

    def _result(self, bucket: str, got: HttpAnswer, *, signed: bool) -> Any:
        status, headers, raw = got.status, got.headers, got.body
        if headers.get("X-RateLimit-Remaining") == "0":
            self._keep_off(bucket, _seconds(headers.get("X-RateLimit-Reset-After"), 0))
        try:
            answer = json.loads(raw.decode("utf-8", "replace")) if raw else None
        except ValueError:
            answer = None
            if status < 300:
                told = f"{self.host} answered with status {status} and nothing that Discord would say"
                raise ChannelUnavailable(told, certain=False) from None
        if 200 <= status < 300:
            return answer
        facts = answer if isinstance(answer, dict) else {}
        if status == 429:
            wait = _seconds(facts.get("retry_after"), _seconds(headers.get("Retry-After"), _UNNAMED_WAIT))
            everywhere = signed and bool(facts.get("global"))
            self._keep_off(_EVERYTHING if everywhere else bucket, wait)
            raise DiscordRateLimited(f"Discord asks to wait {wait:.1f} s", retry_after=wait, everywhere=everywhere)
        told = str(facts.get("message") or "no reason given")
        if status >= 500:
            raise ChannelUnavailable(f"Discord is in trouble: {told} ({status})", certain=False)
        number = facts.get("code")
        if not number and status != 413 and (not facts or status in (403, 404)):
            # This comes from a proxy before Discord, or from Discord without reference to a channel, message or token.
            raise ChannelUnavailable(f"{self.host} answered with status {status} and not in Discord's words: {told}")
        faults = "; ".join(_faults(facts.get("errors"), ""))[:300]
        raise DiscordRefused(status, number if isinstance(number, int) else 0, f"{told}: {faults}" if faults else told)

    def _keep_off(self, bucket: str, seconds: float) -> None:
        now = self._now()
        if len(self._rests) > _MOST_RESTS:
            self._rests = {held: span for held, span in self._rests.items() if now < span[1]}
        self._rests[bucket] = (now, now + math.ceil(seconds * 1000))

    def _rest(self, bucket: str, *, signed: bool = True) -> float:
        """Returns the seconds for which `bucket` takes no requests; 0 if it takes some now."""
        now = self._now()
        # The start is checked too: a clock that was set back must not hold a chat up for the difference.
        buckets = (_EVERYTHING, bucket) if signed else (bucket,)
        spans = [self._rests[held] for held in buckets if held in self._rests]
        return max((until - now for begun, until in spans if begun <= now < until), default=0) / 1000


async def _session(proxy: str | None) -> ClientSession:
    return ClientSession(connector=ProxiedConnector(proxy))


def no_entry(refused: DiscordRefused) -> ChannelError:
    """Returns the error for a refused first request."""
    if refused.status == 401:
        return ChannelRefused(
            f"{refused}: the bot's token is wrong or was reset; make a new one at {PORTAL} → your application → Bot → "
            "Reset Token and put it into the config"
        )
    return ChannelUnavailable(str(refused))


def _form(body: Any, file: File) -> FormData:
    """Returns a body with a file in Discord's form for both (discord.com/developers/docs/reference#uploading-files)."""
    form = FormData(quote_fields=False)  # "files[0]" is read as it stands
    form.add_field("payload_json", json.dumps(body), content_type="application/json")
    form.add_field("files[0]", io.BytesIO(file.data), filename=file.name, content_type="application/octet-stream")
    return form


def _faults(errors: Any, path: str) -> list[str]:
    """Returns the fields that Discord refuses, from the tree it gives with 50035."""
    if not isinstance(errors, dict) or path.count(".") > 8:
        return []
    found: list[str] = []
    for name, inner in errors.items():
        if name == "_errors" and isinstance(inner, list):
            found += [f"{path} {one.get('message')}" for one in inner if isinstance(one, dict)]
        else:
            found += _faults(inner, f"{path}.{name}" if path else str(name))
    return found[:5]


def _seconds(value: Any, default: float) -> float:
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return default
