"""The health page: how the process is, for service managers, containers and `remora status`.

Invariants: it shows what it is given and decides nothing but the status code; nothing of what anybody said stands in
it; no request body is read. At a loopback address only names of this machine are answered, so that no web page can
reach it through a name of its own.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Literal

from aiohttp import web

PATH = "/healthz"
#: Seconds that `ask` waits for the running process.
_PATIENCE = 10.0


class AddressUnusable(Exception):
    """The health page can't be served where the configuration wants it; `str()` is for the operator."""


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
async def serving(report: Callable[[], Awaitable[Report]], *, host: str, port: int) -> AsyncIterator[str]:
    """Serve the page at `host` and `port` (0 takes any that is free) while the block runs; gives its address.

    Answers 200 when green and 503 when red, as JSON. Raises `AddressUnusable`.
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

    application = web.Application()
    application.router.add_get(PATH, health)
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise AddressUnusable(
                f"The health page can't be served at {host}:{port}: {error.strerror}. Choose another http.port in "
                "config.yaml (perhaps another Remora has this one), or switch it off with http: {enabled: false}."
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
