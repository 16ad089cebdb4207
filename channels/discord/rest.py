"""Requests to Discord's REST API and its file servers, each made once.

Invariants: what a request raises tells whether it surely had no effect; while Discord asks to wait nothing more is
asked of the same bucket; no error holds an address or a token; files are read only from Discord's own servers.
discord.py's own client is not used for this: it waits and repeats inside a request, so that nobody could tell whether
a message had been shown, nor end the wait.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    FormData,
    InvalidURL,
)

from channels.base import ChannelError, ChannelRefused, ChannelUnavailable, File, TooLarge

API = "https://discord.com/api/v10"
#: What a connection that fails, or is none, raises.
CONNECTION_ERRORS = (ClientError, TimeoutError, OSError)
#: Where a token is made, said to operators whose token is refused.
PORTAL = "https://discord.com/developers/applications"

_FILE_HOSTS = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
_CONNECT_SECONDS = 10.0  # within this a server that can be reached has shaken hands
#: A bucket that is used up is waited for so long inside a request; what takes longer is told to the caller.
_PATIENCE = 5.0
_UNNAMED_WAIT = 5.0  # a 429 that does not say how long
_MOST_RESTS = 1_000
_EVERYTHING = ""  # the bucket that a global limit is kept under
_TOKEN = re.compile(r"[!-~]{1,200}")
#: The application's flags that tell whether messages come with their text; the second in fewer than 100 servers.
_READS_MESSAGES = 1 << 18 | 1 << 19
#: What the bot needs in a server: see channels, send messages, attach files, read the history, send in threads.
_PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 38


class RateLimited(ChannelUnavailable):
    """Discord asks to wait `retry_after` seconds before the next request of this kind; nothing was shown.

    With `everywhere` the wait is for requests of all kinds.
    """

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: float, everywhere: bool = False) -> None:
        super().__init__(message, retry_after=retry_after)
        self.everywhere = everywhere


class Refused(ChannelError):
    """Discord understood a request and refused it; nothing was shown. What it means depends on the request.

    `number` is Discord's own JSON error code, 0 where it gives none
    (discord.com/developers/docs/topics/opcodes-and-status-codes#json).
    """

    def __init__(self, status: int, number: int, told: str) -> None:
        super().__init__(f"Discord says: {told} ({number or status})")
        self.status = status
        self.number = number


@dataclass(frozen=True, slots=True, kw_only=True)
class BotFacts:
    """What Discord says of a bot. `name` is its user name.

    `reads_messages` is the application's switch "Message Content Intent". `invite` is the address at which its owner
    adds it to a server.
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
        now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """`now` gives milliseconds UTC. Raises `ChannelRefused` for a token that can't be one."""
        self._token = token.strip()
        if not _TOKEN.fullmatch(self._token):
            raise ChannelRefused(
                f"this is no bot token: one is made at {PORTAL} → your application → Bot → Reset Token"
            )
        self._base = base_url.rstrip("/")
        self.host = urlsplit(base_url).hostname or base_url
        self._now = now
        self._sleep = sleep
        self._users = 0
        self._client: ClientSession | None = None
        self._rests: dict[str, tuple[int, int]] = {}  # bucket to the time in which nothing may be asked, ms UTC

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ClientSession]:
        """The HTTP session; closed when the last block that uses it ends."""
        self._users += 1
        try:
            if self._client is None:
                self._client = ClientSession()
            yield self._client
        finally:
            self._users -= 1
            if not self._users and self._client is not None:
                client, self._client = self._client, None
                await client.close()

    async def introduce(self, seconds: float) -> BotFacts:
        """Whose token it is. Raises `ChannelRefused`, `ChannelUnavailable`."""
        try:
            me = await self.call("GET", "/users/@me", seconds=seconds)
            application = await self.call("GET", "/applications/@me", seconds=seconds)
            return BotFacts(
                id=str(me["id"]),
                name=str(me.get("global_name") or me["username"]),
                application_id=str(application["id"]),
                reads_messages=bool(int(application.get("flags") or 0) & _READS_MESSAGES),
                invite=(
                    f"https://discord.com/oauth2/authorize?client_id={application['id']}"
                    f"&scope=bot+applications.commands&permissions={_PERMISSIONS}"
                ),
            )
        except Refused as exc:
            raise no_entry(exc) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ChannelUnavailable(
                f"{self.host} does not answer as Discord does; see the channel's base_url"
            ) from None

    async def servers(self, seconds: float) -> dict[str, str]:
        """The names of the servers that the bot is in by their ids. Raises `ChannelRefused`, `ChannelUnavailable`."""
        try:
            listed = await self.call("GET", "/users/@me/guilds", seconds=seconds)
            return {str(server["id"]): str(server["name"]) for server in listed}
        except Refused as exc:
            raise no_entry(exc) from None
        except (KeyError, TypeError):
            raise ChannelUnavailable(
                f"{self.host} does not answer as Discord does; see the channel's base_url"
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
        """Make a request that may take so long; the answer as plain data, None where there is none.

        A `file` goes with the body, whose `attachments` name it by the id 0. `bucket` names what shares a rate limit,
        the path without ids that are not the channel's; without it the path is its own. What carries an interaction's
        token instead is not `signed`, and stands beside the limit for all
        (discord.com/developers/docs/topics/rate-limits#global-rate-limit). Raises `Refused`, `RateLimited`, and
        `ChannelUnavailable` with `certain` False once the request may have been read.
        """
        bucket = f"{method} {path if bucket is None else bucket}"
        waited = 0.0
        while wait := self._rest(bucket, signed=signed):
            waited += wait
            if waited > _PATIENCE:
                everywhere = signed and self._rest(_EVERYTHING) >= wait
                told = f"Discord asked to wait, {wait:.0f} s are left"
                raise RateLimited(told, retry_after=wait, everywhere=everywhere)
            await self._sleep(wait)
        answer = await self._exchange(method, path, seconds, body, file, query, signed=signed)
        if isinstance(answer, ChannelUnavailable):
            raise answer
        status, headers, raw = answer
        return self._result(bucket, status, headers, raw, signed=signed)

    async def read(self, url: str, *, limit: int, seconds: float) -> bytes:
        """A file of at most `limit` bytes. Raises `TooLarge`, `Refused` for one that is not there (any more)."""
        if not self._is_ours(url):
            raise ChannelError("the attachment does not lie on Discord's servers, so it is not read")
        async with self.open() as client:
            try:
                limits = ClientTimeout(total=seconds, connect=min(_CONNECT_SECONDS, seconds / 2))
                async with client.get(url, timeout=limits, allow_redirects=False) as response:
                    if response.status != 200:
                        if response.status >= 500 or response.status == 429:
                            raise ChannelUnavailable(f"Discord's file server is in trouble ({response.status})")
                        raise Refused(response.status, 0, "the file is not there")
                    return await _bounded(response, limit)
            except CONNECTION_ERRORS as exc:
                raise ChannelUnavailable(f"Discord's file server gave no whole answer: {_reason(exc)}") from None

    def _is_ours(self, url: str) -> bool:
        found = urlsplit(url)
        if found.scheme == "https" and found.hostname in _FILE_HOSTS and found.port in (None, 443):
            return True
        base = urlsplit(self._base)
        # Only a server that stands in for Discord serves files from the API's own host.
        return self._base != API and (found.scheme, found.netloc) == (base.scheme, base.netloc)

    async def _exchange(
        self,
        method: str,
        path: str,
        seconds: float,
        body: Any,
        file: File | None,
        query: Mapping[str, str] | None,
        *,
        signed: bool,
    ) -> tuple[int, Mapping[str, str], bytes] | ChannelUnavailable:
        """Status, headers and body of the answer, or why there is none.

        That is returned and not raised: a traceback from here would have tokens among its variables, which some
        loggers show.
        """
        # The form Discord asks of programs (discord.com/developers/docs/reference#user-agent).
        headers = {"User-Agent": f"DiscordBot ({PORTAL}, 1) Remora"}
        if signed:
            headers["Authorization"] = f"Bot {self._token}"
        # Time to connect is bounded by itself, so that a network that is down is told from an answer that is late.
        limits = ClientTimeout(total=seconds, connect=min(_CONNECT_SECONDS, seconds / 2))
        async with self.open() as client:
            try:
                async with client.request(
                    method,
                    self._base + path,
                    json=body if file is None else None,
                    data=None if file is None else _form(body, file),
                    params=query,
                    headers=headers,
                    timeout=limits,
                    allow_redirects=False,
                ) as response:
                    return response.status, response.headers, await response.read()
            except (ClientConnectorError, ConnectionTimeoutError, InvalidURL) as exc:
                return ChannelUnavailable(f"{self.host} can't be reached: {_reason(exc)}")
            except CONNECTION_ERRORS as exc:
                return ChannelUnavailable(f"{self.host} gave no answer: {_reason(exc)}", certain=False)

    def _result(self, bucket: str, status: int, headers: Mapping[str, str], raw: bytes, *, signed: bool) -> Any:
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
            raise RateLimited(f"Discord asks to wait {wait:.1f} s", retry_after=wait, everywhere=everywhere)
        told = str(facts.get("message") or "no reason given")
        if status >= 500:
            raise ChannelUnavailable(f"Discord is in trouble: {told} ({status})", certain=False)
        number = facts.get("code")
        if not number and status != 413 and (not facts or status in (403, 404)):
            # What stands between us and Discord said this, or Discord of no channel, message or token in particular.
            raise ChannelUnavailable(f"{self.host} answered with status {status} and not in Discord's words: {told}")
        faults = "; ".join(_faults(facts.get("errors"), ""))[:300]
        raise Refused(status, number if isinstance(number, int) else 0, f"{told}: {faults}" if faults else told)

    def _keep_off(self, bucket: str, seconds: float) -> None:
        now = self._now()
        if len(self._rests) > _MOST_RESTS:
            self._rests = {held: span for held, span in self._rests.items() if now < span[1]}
        self._rests[bucket] = (now, now + math.ceil(seconds * 1000))

    def _rest(self, bucket: str, *, signed: bool = True) -> float:
        """How many seconds nothing may be asked of `bucket`; 0 for none."""
        now = self._now()
        # With the start checked too: a clock that was set back must not hold a chat up for the difference.
        buckets = (_EVERYTHING, bucket) if signed else (bucket,)
        spans = [self._rests[held] for held in buckets if held in self._rests]
        return max((until - now for begun, until in spans if begun <= now < until), default=0) / 1000


def no_entry(refused: Refused) -> ChannelError:
    """What a refused first request means."""
    if refused.status == 401:
        return ChannelRefused(
            f"{refused}: the bot's token is wrong or was reset; make a new one at {PORTAL} → your application → Bot → "
            "Reset Token and put it into the config"
        )
    return ChannelUnavailable(str(refused))


def _form(body: Any, file: File) -> FormData:
    """A body with a file, as Discord reads both (discord.com/developers/docs/reference#uploading-files)."""
    form = FormData(quote_fields=False)  # "files[0]" is read as it stands
    form.add_field("payload_json", json.dumps(body), content_type="application/json")
    form.add_field("files[0]", io.BytesIO(file.data), filename=file.name, content_type="application/octet-stream")
    return form


async def _bounded(response: ClientResponse, limit: int) -> bytes:
    told = TooLarge(f"the attachment has more than {limit} bytes")
    if (response.content_length or 0) > limit:
        raise told
    found = bytearray()
    async for piece in response.content.iter_chunked(65_536):
        found += piece
        if len(found) > limit:
            raise told
    return bytes(found)


def _faults(errors: Any, path: str) -> list[str]:
    """Which fields Discord does not like, from the tree it gives with 50035."""
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


def _reason(error: Exception) -> str:
    """A failure in words that hold no address."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    cause = error.os_error if isinstance(error, ClientConnectorError) else error
    words = cause.strerror if isinstance(cause, OSError) else None
    return words or type(cause).__name__
