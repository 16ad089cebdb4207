"""The HTTP server: the health page, for service managers, containers and `remora status`, and the platforms' webhooks.

Invariants: the page shows what it is given and decides nothing but the status code; nothing of what anybody said
stands in it, nor in the log. At a loopback address only names of this machine are answered with the page, so that no
web page can reach it through a name of its own; a webhook, which may come through a proxy, is proved by its channel.
No body is read but a webhook's, and of that no more than its channel takes.
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
from typing import Any, Literal

import structlog
from aiohttp import web

from channels.base import ChannelError, Hook

log = structlog.get_logger(__name__)

PATH = "/healthz"
#: Seconds that `ask` waits for the running process.
_PATIENCE = 10.0
#: Seconds in which the body of a webhook must have come.
_BODY_SECONDS = 10.0


class AddressUnusable(Exception):
    """Nothing can be served over HTTP where the configuration wants it; `str()` is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReport:
    """A channel; `last_poll_seconds_ago` is None as long as its platform has never answered."""

    last_poll_seconds_ago: int | None
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """A database: how long its oldest message has waited for an answer, and its oldest answer to be delivered.

    None where nothing waits. `wal_bytes` is the size of its write-ahead log.
    """

    name: str
    oldest_inbox_seconds: int | None
    oldest_outbox_seconds: int | None
    damage: str | None
    wal_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the process is; every reason is a sentence for the operator, and without one all is well."""

    reasons: tuple[str, ...]
    channels: Mapping[str, ChannelReport]
    stores: tuple[StoreReport, ...]
    version: str
    uptime_seconds: int

    @property
    def status(self) -> Literal["green", "red"]:
        return "red" if self.reasons else "green"


@asynccontextmanager
async def serving(
    report: Callable[[], Awaitable[Report]],
    *,
    host: str,
    port: int,
    hooks: Sequence[Hook] = (),
    hearing: Callable[[], bool] = lambda: True,
    body_seconds: float = _BODY_SECONDS,
) -> AsyncIterator[str]:
    """Serve the page at `host` and `port` (0 takes any that is free) while the block runs; gives its address.

    The page is 200 when green and 503 when red, as JSON. A POST to the path of one of `hooks` is handed to it and
    answered with its status: 413 when the body is too large, 408 when it takes longer than `body_seconds`, 503 while
    `hearing` says that nothing is taken, 500 when the hook raises. Raises `AddressUnusable`.
    """
    local = _loopback(host)

    async def health(request: web.Request) -> web.Response:
        if local and not _loopback(_name(request.host)):
            raise web.HTTPMisdirectedRequest(text="Ask for this page by localhost or an address of this machine.\n")
        now = await report()
        return web.json_response(
            {"status": now.status, **asdict(now)},
            status=200 if now.status == "green" else 503,
            headers={"Cache-Control": "no-store"},
        )

    def taking(hook: Hook) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def take(request: web.Request) -> web.Response:
            body = await _body(request, hook.limit, body_seconds)
            if isinstance(body, int):
                return web.Response(status=body)
            return web.Response(status=await _taken(hook, request.headers, body) if hearing() else 503)

        return take

    application = web.Application()
    application.router.add_get(PATH, health)
    for hook in hooks:
        application.router.add_post(hook.path, taking(hook))
    runner = web.AppRunner(
        application,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=1.0,
        # What is left of a body that was refused is not read, not even to be thrown away.
        lingering_time=0,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise AddressUnusable(
                f"The health page can't be served at {host}:{port}: {error.strerror}. Choose another http.port in "
                "config.yaml (perhaps another Remora has this one), or switch it off with http: {enabled: false}."
                + (" Webhooks need it: without http take them out too." if hooks else "")
            ) from error
        yield address(host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def address(host: str, port: int) -> str:
    """Where the page is for somebody on this machine."""
    return f"http://{_bracketed(_near(host))}:{port}{PATH}"


def ask(host: str, port: int) -> dict[str, Any] | None:
    """The page of the process that serves it at `host` and `port`; None when no Remora answers there."""
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
    """The page in words for people."""
    how = "well" if page["status"] == "green" else "in trouble"
    lines = [f"Remora {page['version']} is {how}, running for {_span(page['uptime_seconds'])}."]
    lines += [f"  ! {reason}" for reason in page["reasons"]]
    for name, channel in page["channels"].items():
        ago = channel["last_poll_seconds_ago"]
        lines.append(f"  {name}: " + ("no contact yet" if ago is None else f"last contact {_span(ago)} ago"))
    for store in page["stores"]:
        inbox, outbox = store["oldest_inbox_seconds"], store["oldest_outbox_seconds"]
        waiting = [
            f"{what} for {_span(age)}"
            for what, age in (("a message waits", inbox), ("an answer is undelivered", outbox))
            if age is not None
        ]
        lines.append(f"  {store['name']}: " + (", ".join(waiting) or "nothing waits"))
    return "\n".join(lines)


async def _body(request: web.Request, limit: int, seconds: float) -> bytes | int:
    """The body of a request, or the status to answer with: 413 above `limit` bytes, 408 after so many seconds."""
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
    return bytes(body)


async def _taken(hook: Hook, headers: Mapping[str, str], body: bytes) -> int:
    """What `hook` says to a delivery; 500 when it raises."""
    try:
        return await hook.take({name.lower(): value for name, value in headers.items()}, body)
    except ChannelError as error:
        log.error("hook.failed", path=hook.path, code=error.code)
    # A boundary: the server would log the error's text, which may hold what somebody said.
    except Exception as error:  # noqa: BLE001 - told by its name and place
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.error("hook.crashed", path=hook.path, code=type(error).__name__, at=f"{place.filename}:{place.lineno}")
    return 500


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
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
    """The address to reach a listener at `host` from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
