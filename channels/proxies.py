"""The proxy through which a server is reached, and connections through it.

Invariants: a proxy of the environment is never asked for this machine itself. Names are resolved by the proxy, which is
given them as they stand. No error, and no form of a proxy as text, holds its user or password.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientConnectionError, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.connector import Connection

if TYPE_CHECKING:
    from aiohttp.tracing import Trace
    from python_socks.async_.asyncio.v2._stream import AsyncioSocketStream

#: In place of a proxy's address: none, whatever the environment says.
DIRECT = "none"

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class ProxyFailed(ClientConnectionError):
    """A proxy can't be reached, or does not lead to the server. `str()` names the proxy; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy: HTTP CONNECT, over TLS with the scheme https, or SOCKS5."""

    scheme: str
    host: str
    port: int
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def at(cls, address: str) -> Proxy:
        """Raises `ValueError`, which does not hold the address, if it is none of a proxy."""
        try:
            parts = urlsplit(address if "://" in address else f"http://{address}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme not in _PORTS or parts.path.strip("/") or parts.query:
            raise ValueError("is no address of a proxy, such as http://proxy.example:3128 or socks5://localhost:1080")
        return cls(
            scheme=parts.scheme,
            host=host,
            port=port or _PORTS[parts.scheme],
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.username is None else unquote(parts.password or ""),
        )

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    async def connected(self, host: str, port: int, timeout: float | None) -> AsyncioSocketStream:  # noqa: ASYNC109 - as httpcore's
        """Returns a connection to a server through the proxy. Raises `ProxyFailed`."""
        # Imported here, because few need it.
        from python_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError
        from python_socks.async_.asyncio.v2 import Proxy as Dialled

        try:
            return await Dialled(**self.options()).connect(dest_host=host, dest_port=port, timeout=timeout)
        except (ProxyConnectionError, ProxyError, ProxyTimeoutError) as exc:
            raise failed(self, exc) from None

    def options(self) -> dict[str, Any]:
        """Returns the proxy as python-socks and aiohttp-socks are told of it."""
        from python_socks import ProxyType

        return {
            "proxy_type": ProxyType.SOCKS5 if self.scheme.startswith("socks5") else ProxyType.HTTP,
            "host": self.host,
            "port": self.port,
            "username": self.user,
            "password": self.password,
            "rdns": True,
            "proxy_ssl": ssl.create_default_context() if self.scheme == "https" else None,
        }


def proxy_to(url: str, own: str | None = None) -> Proxy | None:
    """Returns the proxy to the server of `url`: `own` if it is given, else that of the environment; None for none.

    The environment's variables are HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in small letters, too. Raises
    `ProxyFailed` for an address that can't be used.
    """
    if own is not None:
        return None if own == DIRECT else _at(own, "the channel's proxy")
    parts = urlsplit(url)
    host = parts.hostname or ""
    known = getproxies()
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    address = known.get(scheme) or known.get("all")
    if not address or _is_this_machine(host) or proxy_bypass(host if parts.port is None else f"{host}:{parts.port}"):
        return None
    return _at(address, f"{(scheme if known.get(scheme) else 'all').upper()}_PROXY in the environment")


def _at(address: str, name: str) -> Proxy:
    try:
        return Proxy.at(address)
    except ValueError as exc:
        raise ProxyFailed(f"{name} {exc}") from None


def failed(proxy: Proxy, error: Exception) -> ProxyFailed:
    """Returns an error of python-socks as ours; those of aiohttp-socks have the same names and no common class."""
    match type(error).__name__:
        case "ProxyConnectionError":
            return ProxyFailed(f"the proxy {proxy} can't be reached")
        case "ProxyTimeoutError":
            return ProxyFailed(f"the proxy {proxy} does not answer in time")
    return ProxyFailed(f"the proxy {proxy} does not lead there: {str(error)[:100] or type(error).__name__}")


class ProxiedConnector(TCPConnector):
    """Connections of an HTTP session, each direct or through the proxy to its server. `own` is as for `proxy_to`."""

    def __init__(self, own: str | None, **options: Any) -> None:
        super().__init__(**options)
        self._own = own
        self._options = options
        self._through: dict[Proxy, TCPConnector] = {}

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:  # noqa: ASYNC109 - aiohttp's
        proxy = proxy_to(str(req.url.origin()), self._own)
        if proxy is None:
            return await super().connect(req, traces, timeout)
        # Imported here, because few need it.
        from aiohttp_socks import ProxyConnectionError, ProxyConnector, ProxyError, ProxyTimeoutError

        if proxy not in self._through:
            self._through[proxy] = ProxyConnector(**proxy.options(), **self._options)
        try:
            return await self._through[proxy].connect(req, traces, timeout)
        except (ProxyConnectionError, ProxyError, ProxyTimeoutError) as exc:
            raise failed(proxy, exc) from None

    async def close(self, *, abort_ssl: bool = False) -> None:
        for connector in self._through.values():
            await connector.close(abort_ssl=abort_ssl)
        await super().close(abort_ssl=abort_ssl)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
