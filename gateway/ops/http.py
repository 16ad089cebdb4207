"""The HTTP server: the health page and the platforms' webhooks.

Service managers, containers and `remora status` read the health page.

Invariants: the page shows the report that it is given and decides only the status code. Neither the page nor the log
holds people's words. On a loopback address the page is given only to requests by a name of this machine, so that no web
page can reach it through a name of its own. A webhook may come through a proxy, so its channel verifies
it. Only the body of a webhook is read, and no more of it than its channel takes. A connection carries one request and
has a limited time to send it. The number of open connections is limited: one more closes the connection that has been
sending longest.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Literal, Protocol

import structlog
from aiohttp import web

from channels.base import ChannelError, Hook

if TYPE_CHECKING:
    from gateway.ops.stalls import Stall
    from memory.service import Deployment

log = structlog.get_logger(__name__)

PATH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
_FRESH = {"Cache-Control": "no-store"}
#: The type of the text format of Prometheus, which its client gives it too.
_METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"
#: Seconds that `ask` waits for the running process.
_PATIENCE = 10.0
#: Seconds in which the head of a request must arrive, and then the body of a webhook.
_HEAD_SECONDS = 10.0
_BODY_SECONDS = 10.0
#: Connections open at once, and connections that may wait to be accepted. The loop accepts all that wait before it
#: closes the surplus, and a closed connection keeps its file for one more round: 64 + 2 x 32 files at most, few
#: compared with the 256 to 1024 that a process may usually have open.
_MOST = 64
_WAITING = 32


class AddressUnusable(Exception):
    """Raised when HTTP can't be served at the configured address; `str()` is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReport:
    """The state of a channel. `last_poll_seconds_ago` is None as long as its platform has never answered.

    A channel `stands_by` while another process receives for its bot. That is no trouble.
    """

    last_poll_seconds_ago: int | None
    trouble: str
    stands_by: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """The state of a database.

    `oldest_inbox_seconds` is how long its oldest message has waited for an answer, `oldest_outbox_seconds` how long
    its oldest answer has waited to be delivered; each is None if nothing waits. `wal_bytes` is the size of its
    write-ahead log in bytes. `words_only` says why memory is searched by words alone at the moment; everybody still
    gets answers, so this does not turn the report red. `deployment` is None if the store could not be asked.
    `set_aside` counts the pieces of talk and the memories that models refused to read.
    """

    name: str
    oldest_inbox_seconds: int | None = None
    oldest_outbox_seconds: int | None = None
    damage: str | None = None
    wal_bytes: int | None = None
    words_only: str = ""
    deployment: Deployment | None = None
    set_aside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """The state of endless work of a store, or of the process if `store` is empty.

    `restarts` are its failures since the start, after each of which it went on by itself. `put_off` are sentences about
    a few of the people, reminders and other units that failed and are tried again later: `failing` in all.
    """

    store: str
    loop: str
    restarts: int
    failing: int
    put_off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The state of the process. Every reason is a sentence for the operator; without reasons all is well.

    `stall` is the longest stall of the event loop in the last five minutes.
    """

    reasons: tuple[str, ...]
    channels: Mapping[str, ChannelReport]
    stores: tuple[StoreReport, ...]
    version: str
    uptime_seconds: int
    stall: Stall | None = None
    loops: tuple[LoopReport, ...] = ()

    @property
    def status(self) -> Literal["green", "red"]:
        return "red" if self.reasons else "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBounds:
    """The bounds of the server.

    The head of a request must arrive in `head_seconds`, then its body in `body_seconds`. At most `most` connections are
    open.
    """

    head_seconds: float = _HEAD_SECONDS
    body_seconds: float = _BODY_SECONDS
    most: int = _MOST


class Door(Protocol):
    """Answers the requests to some paths, with bodies of at most `body_bytes` bytes."""

    @property
    def body_bytes(self) -> int: ...

    def takes(self, path: str) -> bool:
        """Returns whether a path is behind this door."""

    def refused(self, request: web.BaseRequest) -> web.Response | None:
        """Returns the answer to a request that is refused before its body is read; None if it may go on."""

    async def answer(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        """Answers a request whose body was read."""


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
    with its status: 413 when the body is too large, 408 when it takes longer than `body_seconds`, 503 while `hearing`
    says that nothing is taken, 500 when the hook raises. A head that takes longer than `head_seconds` gets no answer.
    Beyond `most` connections the one that has been sending its request longest is closed, so that slow senders keep
    nobody out. Requests to the paths that one of `doors` takes are answered there while `hearing`. Addresses are not
    told apart, since behind a proxy all requests come from one. Raises `AddressUnusable`.
    """
    bounds = bounds or ServerBounds()
    local = _loopback(host)

    async def health(request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, headers={"Allow": "GET, HEAD"})
        if local and not _loopback(_name(request.host)):
            return web.Response(status=421, text="Ask for this page by localhost or an address of this machine.\n")
        if request.path == READY:
            return web.json_response({"ready": hearing()}, status=200 if hearing() else 503, headers=_FRESH)
        if request.path == METRICS and metrics is not None:
            return web.Response(body=await metrics(), headers={"Content-Type": _METRICS_TYPE, **_FRESH})
        now = await report()
        return web.json_response(
            {"status": now.status, **asdict(now)},
            status=200 if now.status == "green" else 503,
            headers=_FRESH,
        )

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        hook = next((one for one in hooks() if one.path == request.path), None)
        door = next((one for one in doors() if one.takes(request.path)), None)
        own = request.path in (PATH, READY) or (request.path == METRICS and metrics is not None)
        if door is not None and hook is None and not own:
            return await _behind(door, request, server, bounds.body_seconds, hearing)
        if hook is None:
            server.came(request)
            # A door may open at an unknown path once the bot has started.
            return await health(request) if own else web.Response(status=404 if hearing() else 503)
        if request.method != "POST":
            return web.Response(status=405, headers={"Allow": "POST"})
        body = await _body(request, hook.limit, bounds.body_seconds)
        if isinstance(body, int):
            return web.Response(status=body)
        server.came(request)
        return web.Response(status=await _taken(hook, request.headers, body) if hearing() else 503)

    async def once(request: web.BaseRequest) -> web.StreamResponse:
        response: web.StreamResponse
        try:
            response = await answer(request)
        # A boundary: the server would log the error's text, which may hold words of a person.
        except Exception as error:  # noqa: BLE001 - logged by its name and place
            place = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{place.filename}:{place.lineno}"
            log.error("http.crashed", path=request.path, code=type(error).__name__, at=at)
            response = web.Response(status=500)
        # A connection kept open for a next request may be held for nothing.
        response.force_close()
        return response

    server = _Server(once, bounds.head_seconds, bounds.most)
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port, backlog=_WAITING).start()
        except OSError as error:
            raise AddressUnusable(
                f"The health page can't be served at {host}:{port}: {error.strerror}. Choose another http.port in "
                "config.yaml (perhaps another Remora uses this one), or turn it off with http: {enabled: false}."
                + (" Webhooks need it, so remove them as well if you turn it off." if hooks() else "")
            ) from error
        yield address(host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def address(host: str, port: int) -> str:
    """Returns the page's address for a person on this machine."""
    return near_url(host, port) + PATH


def near_url(host: str, port: int) -> str:
    """Returns the address of the server for a program on this machine."""
    near = _near(host)
    return f"http://{f'[{near}]' if ':' in near else near}:{port}"


def ask(host: str, port: int) -> dict[str, Any] | None:
    """Returns the page of the process that serves it at `host` and `port`; None when no Remora answers there."""
    connection = HTTPConnection(_near(host), port, timeout=_PATIENCE)
    try:
        connection.request("GET", PATH, headers={"Host": f"localhost:{port}"})
        said = json.loads(connection.getresponse().read(1_000_000))
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return said if isinstance(said, dict) and {"status", "channels", "stores"} <= said.keys() else None


def told(page: Mapping[str, Any]) -> str:
    """Returns the page in words for people."""
    how = "well" if page["status"] == "green" else "in trouble"
    lines = [f"Remora {page['version']} is {how}, running for {_span(page['uptime_seconds'])}."]
    lines += [f"  ! {reason}" for reason in page["reasons"]]
    for name, channel in page["channels"].items():
        ago = channel["last_poll_seconds_ago"]
        if channel.get("stands_by"):
            lines.append(f"  {name}: stands by; another process receives for this bot")
        else:
            lines.append(f"  {name}: " + ("no contact yet" if ago is None else f"last contact {_span(ago)} ago"))
    for store in page["stores"]:
        inbox, outbox = store["oldest_inbox_seconds"], store["oldest_outbox_seconds"]
        waiting = [
            f"{what} for {_span(age)}"
            for what, age in (("a message waits", inbox), ("an answer is undelivered", outbox))
            if age is not None
        ]
        lines.append(f"  {store['name']}: " + (", ".join(waiting) or "nothing waits"))
        if store.get("words_only"):
            lines.append(f"  {store['name']}: memory is searched by words only. {store['words_only']}")
        if number := store.get("set_aside"):
            lines.append(f"  {store['name']}: {number} set aside, because no model would read them")
        if (deployment := store.get("deployment")) and deployment["server"]:
            lines += _told_of_server(deployment)
    if stall := page.get("stall"):
        lines.append(
            f"  the longest stall of late: {stall['seconds']:.1f} s ({stall['processor_seconds']:.1f} s computing) at "
            f"{stall['place'] or stall['innermost'] or 'an unknown place'}"
        )
    for loop in page.get("loops", ()):
        lines += [f"  {loop['store'] or 'process'}: {sentence}" for sentence in loop["put_off"]]
        if more := loop["failing"] - len(loop["put_off"]):
            lines.append(f"  {loop['store'] or 'process'}: {loop['loop']}, {more} more are put off")
    return "\n".join(lines)


def _told_of_server(deployment: Mapping[str, Any]) -> list[str]:
    """Returns lines about a database server and the processes that use a store on it."""
    server, answering = deployment["server"], [peer for peer in deployment["peers"] if peer["answers"]]
    durable = [f"{name} {'on' if server[name] else 'OFF'}" for name in ("fsync", "synchronous_commit")]
    many = f"{len(answering)} processes answer" if len(answering) != 1 else "one process answers"
    lines = [f"    {deployment['engine']}, pgvector {server['vectors']}, {', '.join(durable)}; {many}"]
    for peer in answering:
        own = " (this one)" if peer["id"] == deployment["own"] else ""
        sessions = "1 session" if peer["lanes"] == 1 else f"{peer['lanes']} sessions"
        lines.append(f"    {peer['id']}{own}: " + "; ".join([sessions, *peer["duties"]]))
    lines += [f"    standby {one['name']}: {lag(one)}" for one in server["standbys"]]
    return lines


def lag(standby: Mapping[str, Any]) -> str:
    """Returns in words how far a standby is behind."""
    if standby["lag_bytes"] is None:
        return "the role in database_url may not see how far it is behind"
    seconds = standby["lag_seconds"]
    behind = f"{standby['lag_bytes']:,} bytes" + (f" and {seconds:.1f} s" if seconds is not None else "")
    return f"{standby['state']}, {behind} behind"


class _Server(web.Server):
    """aiohttp's server, with no more than `most` connections.

    A connection that is still sending its request makes room for a new one, the oldest first. A connection whose
    request is being answered is never closed for that.
    """

    def __init__(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], head_seconds: float, most: int
    ) -> None:
        # Connections aren't kept, so `keepalive_timeout` is the time each has for the head of its only request. With
        # `lingering_time` 0 the rest of a refused body is not read, not even to be thrown away.
        super().__init__(answer, access_log=None, keepalive_timeout=head_seconds, lingering_time=0)
        self._most = most
        self._sending: dict[web.RequestHandler, asyncio.Transport] = {}
        self._answered: set[web.RequestHandler] = set()

    def came(self, request: web.BaseRequest) -> None:
        """Notes that `request` has come as far as it will be read: its connection keeps its place."""
        if self._sending.pop(request.protocol, None) is not None:
            self._answered.add(request.protocol)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._sending[handler] = transport
        if len(self._sending) + len(self._answered) > self._most:
            self._sending.pop(next(iter(self._sending))).abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._sending.pop(handler, None)
        self._answered.discard(handler)
        super().connection_lost(handler, exc)


async def _body(request: web.BaseRequest, limit: int, seconds: float) -> bytes | int:
    """Returns the body of a request, or the status to answer with.

    The status is 413 above `limit` bytes, 408 after `seconds`, 400 when the body breaks off or is malformed.
    """
    if (request.content_length or 0) > limit:
        return 413
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.content.iter_any():
                body += piece
                if len(body) > limit:
                    return 413
    except TimeoutError:
        return 408
    except (ConnectionError, web.PayloadAccessError, web.RequestPayloadError):
        return 400
    return bytes(body)


async def _behind(
    door: Door, request: web.BaseRequest, server: _Server, seconds: float, hearing: Callable[[], bool]
) -> web.StreamResponse:
    """Returns the answer of a door to a request whose body has come."""
    refused = door.refused(request)
    if refused is not None:
        return refused
    body = await _body(request, door.body_bytes, seconds) if request.body_exists else b""
    if isinstance(body, int):
        return web.Response(status=body)
    server.came(request)
    return await door.answer(request, body) if hearing() else web.Response(status=503)


async def _taken(hook: Hook, headers: Mapping[str, str], body: bytes) -> int:
    """Returns the status `hook` gives to a delivery; 500 when the hook fails."""
    try:
        return await hook.take({name.lower(): value for name, value in headers.items()}, body)
    except ChannelError as error:
        log.error("hook.failed", path=hook.path, code=error.code)
    return 500


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _name(host: str) -> str:
    """Returns the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _near(host: str) -> str:
    """Returns the address at which a listener at `host` is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
