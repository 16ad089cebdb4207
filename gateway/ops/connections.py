"""The connections of the HTTP server: their number, the time they have, and the bytes of bodies that are held.

Invariants:
- At most `most` connections are open. One more closes the stranger's connection that has been open longest, so
  newcomers always get in.
- A stranger never closes a known sender's connection, whatever has come of its request. One person has at most `share`
  connections and all known senders leave `_FREE` of them to the rest; what goes beyond is refused. A person who has
  none gets in all the same: the sender with the most gives up the oldest.
- `_HOOKS` deliveries of platforms have places outside those of known senders, so people never keep them out.
- Two requests for health keep their places while they are answered. More of them have the places of strangers.
- A reader has a limited time for what is written to it, so nobody holds a connection by not reading. A stream that is
  being read lasts as long as it likes.
- Each known sender, and all strangers together, hold a limited number of bytes of bodies at a time; so do all together.
  A person who holds more than one body leaves half of that to the others.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

#: Seconds in which the head of a request must arrive, and then its body.
_HEAD_SECONDS: Final = 10.0
_BODY_SECONDS: Final = 10.0
#: Seconds in which a reader must take what is written, and the bytes a second that a large body or answer must make.
_WRITE_SECONDS: Final = 20.0
SLOWEST: Final = 20_000
#: Connections open at once, and those that the loop accepts in one round before it closes the surplus. A closed
#: connection keeps its file for one more round: 64 + 2 x 32 files at most, few compared with the 256 to 1024 that a
#: process may usually have open.
_MOST: Final = 64
AT_ONCE: Final = 32
#: Connections that may wait to be accepted. Of one more the system drops the first packet, so that it waits a second.
_WAITING: Final = 1024
#: Connections of one person, those that known senders leave free, and of these the ones for deliveries and for health.
_SHARE: Final = 24
_FREE: Final = 8
_HOOKS: Final = 4
_HEALTH: Final = 2
#: Bytes of bodies that a known sender may hold at a time, or all strangers together, and all of them.
_EACH: Final = 32_000_000
_TOGETHER: Final = 96_000_000
#: Bytes of a body that are read ahead, before anybody asks for it; and the most headers, of 8 kB each.
_AHEAD: Final = 32_768
_HEADERS: Final = 64

#: The headers of every answer that does not say otherwise: no browser keeps it, frames it or runs anything of it.
ALWAYS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

#: The name of every sender who is not known, and that of the platforms that deliver to webhooks.
STRANGER: Final = ""
HOOK: Final = "hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBounds:
    """The bounds of the server.

    The head of a request must arrive in `head_seconds`, then its body in `body_seconds`. An answer must be read within
    `write_seconds`. A large answer, or body of a known sender, has the time that it takes at `SLOWEST` bytes a second
    besides. At most `most` connections are open, `share` of them one person's. A sender holds at most `each` bytes of
    bodies, all senders `together`.
    """

    head_seconds: float = _HEAD_SECONDS
    body_seconds: float = _BODY_SECONDS
    write_seconds: float = _WRITE_SECONDS
    most: int = _MOST
    share: int = _SHARE
    each: int = _EACH
    together: int = _TOGETHER


class Listener(socket.socket):
    """A listening socket. Connections that were reset while they waited cost a look at them, and no handler."""

    @classmethod
    async def bound(cls, host: str, port: int) -> list[Listener]:
        """Returns a socket for each address of the host. Raises `OSError` if one is not free."""
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        made: list[Listener] = []
        try:
            for family, kind, protocol, _, place in dict.fromkeys(found):
                made.append(cls(family, kind, protocol))
                made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    made[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                made[-1].bind(place)
        except OSError:
            for each in made:
                each.close()
            raise
        return made

    def listen(self, backlog: int = _WAITING, /) -> None:
        super().listen(max(backlog, _WAITING))

    def accept(self) -> tuple[socket.socket, Any]:
        for _ in range(_WAITING):
            line, sender = super().accept()
            if not _is_gone(line):
                return line, sender
            line.close()
        raise BlockingIOError  # others have their turn first


def _is_gone(line: socket.socket) -> bool:
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


class TooMany(Exception):
    """Raised when a sender has no more room for a request. `status` is 429 for their own, 503 for everybody's."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class _Line:
    """An open connection. Before its head has come its sender is a stranger."""

    transport: asyncio.Transport
    sender: str = STRANGER
    is_health: bool = False


class Connections(web.Server):
    def __init__(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], bounds: ServerBounds
    ) -> None:
        # Connections aren't kept, so `keepalive_timeout` is the time each has for the head of its only request. The
        # rest of a refused body is thrown away as it comes, for as long as a body may take: a browser that is still
        # sending when the connection closes does not show the answer. A compressed body is not expanded, as its size
        # says nothing of what it becomes.
        super().__init__(
            answer,
            access_log=None,
            keepalive_timeout=bounds.head_seconds,
            lingering_time=bounds.body_seconds,
            auto_decompress=False,
            read_bufsize=_AHEAD,
            max_headers=_HEADERS,
        )
        self._bounds = bounds
        self._lines: dict[web.RequestHandler, _Line] = {}

    def __call__(self) -> web.RequestHandler:
        return _Connection(self._bounds.write_seconds, self, loop=self._loop, **self._kwargs)

    def admit(self, request: web.BaseRequest, sender: str) -> None:
        """Gives a request a place among those of its known sender. Raises `TooMany`."""
        open_ones = Counter(line.sender for line in self._lines.values() if line.sender != STRANGER)
        # The platform of a hook bounds its own deliveries.
        if sender != HOOK and open_ones[sender] >= self._bounds.share:
            raise TooMany(429)
        has_reserve = sender == HOOK and open_ones[HOOK] < _HOOKS
        if not has_reserve and open_ones.total() - min(open_ones[HOOK], _HOOKS) >= self._bounds.most - _FREE:
            greediest, most = open_ones.most_common(1)[0]
            if open_ones[sender] or most < 2:
                raise TooMany(503)
            self._close_first(lambda line: line.sender == greediest)
        if (line := self._lines.get(request.protocol)) is not None:
            line.sender = sender

    @contextmanager
    def keeping(self, request: web.BaseRequest) -> Iterator[None]:
        """Keeps the place of a request for health while the block runs, if fewer than `_HEALTH` are kept."""
        line = self._lines.get(request.protocol)
        if line is not None:
            line.is_health = sum(each.is_health for each in self._lines.values()) < _HEALTH
        try:
            yield
        finally:
            if line is not None:
                line.is_health = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._lines[handler] = _Line(transport)
        if len(self._lines) > self._bounds.most:
            self._close_first(lambda line: line.sender == STRANGER and not line.is_health)

    def _close_first(self, may_go: Callable[[_Line], bool]) -> None:
        oldest = next(handler for handler, line in self._lines.items() if may_go(line))
        self._lines.pop(oldest).transport.abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._lines.pop(handler, None)
        super().connection_lost(handler, exc)


class _Connection(web.RequestHandler):
    """aiohttp's end of a connection, which gives up a reader that does not read."""

    def __init__(self, seconds: float, manager: web.Server, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._seconds = seconds
        self._wire: asyncio.Transport | None = None
        self._giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._wire = transport
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._wire = None
        self._stop_waiting()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_waiting()

    async def start(self) -> None:
        try:
            await super().start()
        finally:
            self._wait()  # the connection is closed only when the last bytes are read

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answers what is no request of HTTP, without a log. Raises `ConnectionError` if an answer has begun."""
        if request.writer.output_size > 0:
            raise ConnectionError
        response = web.Response(status=status, text="This is no request that can be read here.\n", headers=ALWAYS)
        response.force_close()
        return response

    def _wait(self) -> None:
        self._stop_waiting()
        if self._wire is not None:
            seconds = self._seconds + self._wire.get_write_buffer_size() / SLOWEST
            self._giving_up = asyncio.get_running_loop().call_later(seconds, self._wire.abort)

    def _stop_waiting(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


class BodyBudget:
    def __init__(self, bounds: ServerBounds) -> None:
        self._bounds = bounds
        self._held: Counter[str] = Counter()

    def take(self, sender: str, size: int, *, room: int = 0) -> None:
        """Counts bytes of a sender's, who may hold `room` of them in any case. Raises `TooMany` without counting."""
        held = self._held[sender] + size
        if held > max(self._bounds.each, room):
            raise TooMany(503 if sender == STRANGER else 429)
        has_more = held > room and sender not in (STRANGER, HOOK)
        if self._held.total() + size > self._bounds.together // (2 if has_more else 1):
            raise TooMany(503)
        self._held[sender] += size

    def give_back(self, sender: str, size: int) -> None:
        self._held[sender] -= size
        if not self._held[sender]:
            del self._held[sender]
