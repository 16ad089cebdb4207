"""HTTP requests to a platform, each made once over one session that lives while anybody uses it.

Invariants: an error tells whether the request surely had no effect, and holds no address. Errors are returned, not
raised: a traceback from here would have addresses and tokens among its variables, which some loggers show.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    InvalidURL,
)

from channels.base import ChannelError, ChannelUnavailable, TooLarge
from channels.proxies import ProxyFailed

#: Errors of a connection that fails or can't be made.
CONNECTION_ERRORS = (ClientError, TimeoutError, OSError)

_CONNECT_SECONDS = 10.0  # a server that can be reached has shaken hands by then
_PIECE = 65_536  # bytes of a file that are read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Requests over one HTTP session, which `connect` makes when it is first needed."""

    def __init__(self, connect: Callable[[], Awaitable[ClientSession]]) -> None:
        self._connect = connect
        self._users = 0
        self._session: ClientSession | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ClientSession]:
        """Gives the HTTP session, which is closed when the last block that uses it ends."""
        self._users += 1
        try:
            if self._session is None:
                self._session = await self._connect()
            yield self._session
        finally:
            self._users -= 1
            if not self._users and self._session is not None:
                session, self._session = self._session, None
                await session.close()

    async def exchange(
        self, method: str, url: str, *, server: str, seconds: float, limit: int | None = None, **content: Any
    ) -> HttpAnswer | ChannelError:
        """Makes a request of at most `seconds` to the server that operators know as `server`.

        With `limit` a file of at most that many bytes is read, and nothing of an answer that refuses it. `content` is
        passed on to aiohttp: headers, json, data, params.
        """
        # Connecting has a limit of its own, so that a network that is down is told from an answer that is late.
        limits = ClientTimeout(total=seconds, connect=min(_CONNECT_SECONDS, seconds / 2))
        async with self.open() as session:
            try:
                async with session.request(method, url, timeout=limits, allow_redirects=False, **content) as response:
                    body = await (response.read() if limit is None else _file(response, limit))
                    if body is None:
                        return TooLarge(f"the file has more than the {limit:,} bytes that are allowed")
                    return HttpAnswer(status=response.status, headers=response.headers, body=body)
            except (ClientConnectorError, ConnectionTimeoutError, InvalidURL, ProxyFailed) as exc:
                return ChannelUnavailable(f"{server} can't be reached: {_reason(exc)}")
            except CONNECTION_ERRORS as exc:
                return ChannelUnavailable(f"{server} gave no whole answer: {_reason(exc)}", certain=False)


async def _file(response: ClientResponse, limit: int) -> bytes | None:
    """Returns a file's bytes, none if it is refused; None if there are more than `limit`."""
    if response.status != 200:
        return b""
    if (response.content_length or 0) > limit:
        return None
    body = bytearray()
    async for piece in response.content.iter_chunked(_PIECE):
        body += piece
        if len(body) > limit:
            return None
    return bytes(body)


def _reason(error: Exception) -> str:
    """Returns a failure in words that hold no address but that of a proxy."""
    if isinstance(error, ProxyFailed):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it took too long"
    cause = error.os_error if isinstance(error, ClientConnectorError) else error
    words = cause.strerror if isinstance(cause, OSError) else None
    return words or type(cause).__name__
