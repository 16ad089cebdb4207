"""The HTTP server: health, the platforms' webhooks, and the doors of the page and of programs.

Invariants: it is known who sends a request before its body is read, and what the head alone decides is answered from
it. Whatever happens, an answer says it in words, with the id of the line in the log if it was a mistake of ours.
Neither the health page nor the log holds people's words. On a loopback address the health page is given only to
requests by a name of this machine, so that no web page can reach it through a name of its own. A webhook may come
through a proxy, so its channel verifies it. `connections` bounds connections, their time, and the bytes held.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Final, Generic, Protocol, TypeVar

import structlog
from aiohttp import HttpVersion11, web

from channels.base import ChannelError, Hook
from gateway.config.settings import OWN_NAME, is_loopback
from gateway.ops.connections import (
    ALWAYS,
    AT_ONCE,
    HOOK,
    SLOWEST,
    STRANGER,
    BodyBudget,
    Connections,
    Listener,
    ServerBounds,
    TooMany,
)
from gateway.ops.health import PATH, Report, address
from gateway.wording.texts import Texts
from memory.loops import places

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

READY = "/readyz"
METRICS = "/metrics"
#: The type of the text format of Prometheus, which its client gives it too.
_METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"


class AddressUnusable(Exception):
    """Raised when HTTP can't be served at the configured address; `str()` is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A request that may go on, as far as its head says.

    `sender` names the person who sends it, or is `STRANGER`. At most `body_bytes` bytes of its body are read, and
    `answer` is called with them.
    """

    sender: str
    body_bytes: int
    answer: Callable[[bytes], Awaitable[web.StreamResponse]]


class Door(Protocol):
    def takes(self, path: str) -> bool:
        """Returns whether a path is behind this door."""

    async def enter(self, request: web.BaseRequest) -> Admission | web.StreamResponse:
        """Returns how a request goes on, or the answer to it if its head says enough. No body is read before."""

    async def failed(self, request: web.BaseRequest, status: int, error_id: str) -> web.Response:
        """Returns the answer to a request that failed, in the sender's language. `error_id` stands in the log."""


@asynccontextmanager
async def serving(
    report: Callable[[], Awaitable[Report]],
    *,
    host: str,
    port: int,
    hooks: Callable[[], Sequence[Hook]] = tuple,
    hearing: Callable[[], bool] = lambda: True,
    doors: Callable[[], Sequence[Door]] = tuple,
    metrics: Callable[[], Awaitable[bytes]] | None = None,
    bounds: ServerBounds | None = None,
) -> AsyncIterator[str]:
    """Serves the page at `host` and `port` while the block runs, and gives its address. Port 0 takes any free port.

    The page is JSON, with status 200 when green and 503 when red. Beside it `READY` has status 200 while `hearing`,
    else 503, and `METRICS` gives `metrics`. A POST to the path of one of `hooks` is handed to that hook and answered
    with its status; other paths belong to the first of `doors` that takes them. Both answer only while `hearing`, else
    the status is 503. `bounds` are those of connections and bodies. Raises `AddressUnusable`.
    """
    health = _Health(
        report=_Shared(report),
        hearing=hearing,
        metrics=None if metrics is None else _Shared(metrics),
        is_local=is_loopback(host),
    )
    server = _Server(health, hooks, doors, bounds or ServerBounds())
    runner = web.ServerRunner(server.connections, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            for listener in await Listener.bound(host, port):
                await web.SockSite(runner, listener, backlog=AT_ONCE).start()
        except OSError as error:
            raise AddressUnusable(
                f"The health page can't be served at {host}:{port}: {error.strerror}. Choose another http.port in "
                "config.yaml (perhaps another Remora uses this one), or turn it off with http: {enabled: false}."
                + (" Webhooks need it, so remove them as well if you turn it off." if hooks() else "")
            ) from error
        yield address(host, runner.addresses[0][1])
    finally:
        await runner.cleanup()
        await health.end()


class _Shared(Generic[_T]):
    """Work that is done once for all who ask while it runs, so that many requests cost no more than one."""

    def __init__(self, work: Callable[[], Awaitable[_T]]) -> None:
        self._work = work
        self._running: asyncio.Future[_T] | None = None

    async def result(self) -> _T:
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._work())
        return await asyncio.shield(self._running)

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Health:
    report: _Shared[Report]
    hearing: Callable[[], bool]
    metrics: _Shared[bytes] | None
    is_local: bool

    def takes(self, path: str) -> bool:
        return path in (PATH, READY) or (path == METRICS and self.metrics is not None)

    def refusal(self, request: web.BaseRequest) -> web.Response | None:
        """Returns the answer to a request that may not read these pages; None if it may."""
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, headers={"Allow": "GET, HEAD"}, text="This page can only be read.\n")
        if self.is_local and not asks_us(request):
            return web.Response(status=421, text="Ask for this page by localhost or an address of this machine.\n")
        return None

    async def answer(self, path: str) -> web.Response:
        if path == READY:
            ready = self.hearing()
            return web.json_response({"ready": ready}, status=200 if ready else 503)
        if path == METRICS and self.metrics is not None:
            return web.Response(body=await self.metrics.result(), headers={"Content-Type": _METRICS_TYPE})
        now = await self.report.result()
        status = 200 if now.status == "green" else 503
        return web.json_response({"status": now.status, **asdict(now)}, status=status)

    async def end(self) -> None:
        for work in (self.report, self.metrics):
            if work is not None:
                await work.end()


class _Refused(Exception):
    """Raised to end a request with a status, whose words the door of its path knows."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Server:
    """Takes each request to health, a hook or a door, and answers it in words whatever happens there."""

    def __init__(
        self,
        health: _Health,
        hooks: Callable[[], Sequence[Hook]],
        doors: Callable[[], Sequence[Door]],
        bounds: ServerBounds,
    ) -> None:
        self.connections = Connections(self._answer, bounds)
        self._budget = BodyBudget(bounds)
        self._body_seconds = bounds.body_seconds
        self._health = health
        self._hooks = hooks
        self._doors = doors

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers a request. Raises `ConnectionError` if its sender is gone, or an answer broke off."""
        response: web.StreamResponse
        try:
            response = await self._taken(request)
        except (_Refused, TooMany) as refusal:
            response = await self._failed(request, refusal.status)
        except ConnectionError:
            raise
        # A boundary: aiohttp would log the error's text, which may hold words of a person.
        except Exception as error:  # noqa: BLE001 - logged by its name and place
            response = await self._failed(request, 500, crashed(error, request))
        if not response.prepared:
            if request.writer.output_size > 0:
                # The answer that has begun can't be followed by another on the same wire.
                log.error("http.broke_off", path=request.path[:200], status=response.status)
                raise ConnectionError
            for name, value in ALWAYS.items():
                response.headers.setdefault(name, value)
            if response.status in (429, 503):
                response.headers.setdefault("Retry-After", "5")
        # A connection kept open for a next request may be held for nothing.
        response.force_close()
        return response

    async def _taken(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._health.takes(request.path):
            if (refusal := self._health.refusal(request)) is not None:
                return refusal
            with self.connections.keeping(request):
                return await self._health.answer(request.path)
        hook = next((each for each in self._hooks() if each.path == request.path), None)
        door = None if hook is not None else self._door(request.path)
        if not self._health.hearing():
            # A door may open at an unknown path once the bot has started.
            raise _Refused(503)
        if hook is not None:
            admission: Admission | web.StreamResponse = _at_hook(hook, request)
        elif door is not None:
            admission = await door.enter(request)
        else:
            raise _Refused(404)
        if isinstance(admission, web.StreamResponse):
            return admission
        if admission.sender != STRANGER:
            self.connections.admit(request, admission.sender)
        return await self._entered(request, admission)

    async def _entered(self, request: web.BaseRequest, admission: Admission) -> web.StreamResponse:
        """Reads the body of a request, and answers it. Its bytes count as held until then."""
        held, seconds = 0, self._body_seconds
        if admission.sender != STRANGER:
            seconds += min(request.content_length or 0, admission.body_bytes) / SLOWEST

        def count(size: int) -> None:
            nonlocal held
            self._budget.take(admission.sender, size, room=admission.body_bytes)
            held += size

        try:
            # No variable holds the body here: whoever reads it may let go of it.
            return await admission.answer(await _body(request, admission.body_bytes, seconds, count))
        finally:
            self._budget.give_back(admission.sender, held)

    def _door(self, path: str) -> Door | None:
        return next((each for each in self._doors() if each.takes(path)), None)

    async def _failed(self, request: web.BaseRequest, status: int, error_id: str = "") -> web.StreamResponse:
        door = None if self._health.takes(request.path) else self._door(request.path)
        try:
            if door is not None:
                return await door.failed(request, status, error_id)
        # The same boundary: the words themselves may need what is broken.
        except Exception as error:  # noqa: BLE001 - logged by its name and place
            crashed(error, request)
        return web.Response(status=status, text=f"{in_words(Texts('en'), status, error_id)}\n")


def in_words(texts: Texts, status: int, error_id: str = "") -> str:
    return texts("page.nothing_here" if status == 404 else f"http.{status}", id=error_id)


def crashed(error: Exception, request: web.BaseRequest) -> str:
    error_id = secrets.token_hex(4)
    log.error("http.crashed", id=error_id, path=request.path[:200], code=type(error).__name__, places=places(error))
    return error_id


def _at_hook(hook: Hook, request: web.BaseRequest) -> Admission | web.Response:
    headers = {name.lower(): value for name, value in request.headers.items()}
    if request.method != "POST":
        return web.Response(status=405, headers={"Allow": "POST"})
    if not hook.is_genuine(headers):
        return web.Response(status=401)

    async def deliver(body: bytes) -> web.Response:
        try:
            return web.Response(status=await hook.take(headers, body))
        except ChannelError as error:
            log.error("hook.failed", path=hook.path, code=error.code)
            return web.Response(status=500)

    return Admission(sender=HOOK, body_bytes=hook.limit, answer=deliver)


async def _body(request: web.BaseRequest, limit: int, seconds: float, count: Callable[[int], None]) -> bytes:
    """Returns the body of a request, and calls `count` with the size of each piece of it as it comes.

    Raises `_Refused` with 413 above `limit` bytes, 408 after `seconds`, 415 for a compressed body, and 400 when it
    breaks off or is malformed.
    """
    if not request.body_exists:
        return b""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _Refused(415)
    if (request.content_length or 0) > limit:
        raise _Refused(413)
    pieces, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            await _ask_for_body(request)
            async for piece in request.content.iter_any():
                size += len(piece)
                if size > limit:
                    raise _Refused(413)
                count(len(piece))
                pieces.append(piece)
    except TimeoutError:
        raise _Refused(408) from None
    except (ConnectionError, web.PayloadAccessError, web.RequestPayloadError):
        raise _Refused(400) from None
    return b"".join(pieces)


async def _ask_for_body(request: web.BaseRequest) -> None:
    """Tells a sender who waits for it that the body is wanted: it is known now who sends, and how much."""
    if request.version == HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself has not begun


#: A host as a header names it: a name, or an IPv6 address in brackets, and perhaps a port.
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([^\s:/?#@\[\]\\]{1,253}))(?::[0-9]{1,5})?")


#: The dot that ends a complete name of DNS, which names the same host as without it.
_ROOT: Final = re.compile(r"\.(?=:[0-9]+$|$)")


def authority_of(request: web.BaseRequest) -> str:
    """Returns the host and port that a request asks, in small letters and without the dot that may end a name."""
    return _ROOT.sub("", request.host.lower(), count=1)


def host_of(request: web.BaseRequest) -> str:
    """Returns the name or address of the host that a request asks, in small letters; "" if it names none."""
    found = _HOST.fullmatch(authority_of(request))
    return "" if found is None else found[1] or found[2]


def asks_us(request: web.BaseRequest, own: str = "") -> bool:
    """Returns whether a request names this machine or the host `own`; other sites' pages come by names of theirs."""
    host = host_of(request)
    return is_loopback(host) or host == OWN_NAME or (bool(own) and host == own.lower().removesuffix("."))


def comes_from(request: web.BaseRequest, *schemes: str) -> bool | None:
    """Returns whether a browser sent a request from a page of the asked host under one of these schemes.

    None if the request does not say where it comes from. A browser that names the site of a request is believed, since
    no page can do that for it; the Origin is "null" then, as the page never says where its visitors were.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None and site != "none":
        return site == "same-origin"
    if origin is None:
        return None
    return origin.lower() in {f"{scheme}://{request.host}".lower() for scheme in schemes}
