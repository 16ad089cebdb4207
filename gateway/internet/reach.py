"""Fetches an address of the web, and reaches nothing but the public internet.

Invariants: a name is looked up once for each connection, all its addresses must be public, and the connection goes to
one of them, so a name that changes its meaning reaches nothing else. The same holds for each redirect. Only the address
itself is sent: no cookie, no password, no name of a person. At most `most` bytes are taken, however they are packed,
within `seconds`. A proxy of the environment is told a checked address, never a name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import httpcore
import httpx

from gateway.internet.addresses import NotFetched, checked, is_public

if TYPE_CHECKING:
    from python_socks.async_.asyncio.v2._stream import AsyncioSocketStream

    from channels.proxies import Proxy

#: Returns the IP addresses of a host, or raises `OSError`.
LookUp: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]

#: Bytes of one page, and seconds for it with all redirects.
MOST_BYTES: Final = 2_000_000
SECONDS: Final = 20.0
PORTS: Final = (80, 443)
_REDIRECTS: Final = 5
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
#: Addresses of one host that are tried, and seconds for each.
_TRIED: Final = 3
_CONNECT_SECONDS: Final = 5.0
_HEADERS: Final = (
    (b"User-Agent", b"Remora"),
    (b"Accept", b"text/html, application/xhtml+xml, text/plain, application/pdf, */*;q=0.5"),
    (b"Accept-Encoding", b"gzip"),
    (b"Connection", b"close"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer of a server. `url` is its address after all redirects; `cut` means that there is more."""

    url: str
    media_type: str
    charset: str
    data: bytes
    cut: bool = False


async def look_up(host: str) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicWeb:
    """The way to the public internet. `network` makes the connections, and `tls` says which servers are trusted."""

    def __init__(
        self,
        *,
        look_up: LookUp = look_up,
        network: httpcore.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
        ports: Sequence[int] = PORTS,
        most: int = MOST_BYTES,
        seconds: float = SECONDS,
    ) -> None:
        self._look_up = look_up
        self._network = network or httpcore.AnyIOBackend()
        self._tls = tls
        self._ports = ports
        self._most = most
        self._seconds = seconds

    def check(self, address: str) -> None:
        """Raises `NotFetched` for an address that is never fetched."""
        checked(address, ports=self._ports)

    async def get(self, address: str) -> Fetched:
        # Imported where it is used: it needs aiohttp, without which a chat starts sooner.
        from channels.proxies import ProxyFailed

        try:
            async with asyncio.timeout(self._seconds):
                return await self._followed(address)
        except TimeoutError:
            raise NotFetched(f"the server took longer than {self._seconds:g} seconds") from None
        except (httpcore.NetworkError, httpcore.TimeoutException, ProxyFailed) as exc:
            raise NotFetched(f"the server can't be reached ({str(exc) or type(exc).__name__})") from exc
        except (httpcore.ProtocolError, zlib.error) as exc:
            raise NotFetched("the server's answer can't be read") from exc

    async def _followed(self, address: str) -> Fetched:
        url = checked(address, ports=self._ports)
        for _ in range(_REDIRECTS + 1):
            found = await self._asked(url)
            if isinstance(found, Fetched):
                return found
            url = checked(found, ports=self._ports)
        raise NotFetched(f"it was redirected more than {_REDIRECTS} times")

    async def _asked(self, url: httpx.URL) -> Fetched | str:
        """Returns the answer to one request, or the address that it redirects to."""
        from channels.proxies import proxy_to

        asked = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        waits = {"connect": _CONNECT_SECONDS, "read": self._seconds, "write": self._seconds, "pool": self._seconds}
        proxy = proxy_to(str(url))
        guard = _Guard(self._look_up, self._network if proxy is None else _Tunnels(proxy), proxied=proxy is not None)
        async with (
            httpcore.AsyncConnectionPool(network_backend=guard, ssl_context=self._tls) as pool,
            pool.stream("GET", asked, headers=[(b"Host", url.netloc), *_HEADERS], extensions={"timeout": waits}) as got,
        ):
            headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in got.headers}
            if got.status in _MOVED and headers.get("location"):
                return _joined(url, headers["location"])
            if got.status != 200:
                raise NotFetched(f"the server answered with status {got.status}")
            data = await self._taken(got, headers.get("content-encoding", ""))
        kind = Message()
        kind["content-type"] = headers.get("content-type", "")
        return Fetched(
            url=str(url),
            media_type=kind.get_content_type() if headers.get("content-type") else "",
            charset=kind.get_content_charset() or "",
            data=data[: self._most],
            cut=len(data) > self._most,
        )

    async def _taken(self, got: httpcore.Response, encoding: str) -> bytes:
        """Returns the answer's bytes, unpacked; one more than `most` if there are more."""
        packed = encoding.strip().lower() not in ("", "identity")
        if packed and encoding.strip().lower() not in ("gzip", "x-gzip"):
            raise NotFetched("the server's answer can't be read: it is packed in a way that was not asked for")
        unpacker = zlib.decompressobj(wbits=31)
        data = bytearray()
        async for chunk in got.aiter_stream():
            data += unpacker.decompress(chunk, self._most + 1 - len(data)) if packed else chunk
            if len(data) > self._most:
                break
        return bytes(data[: self._most + 1])


class _Guard(httpcore.AsyncNetworkBackend):
    def __init__(self, look_up: LookUp, network: httpcore.AsyncNetworkBackend, *, proxied: bool) -> None:
        self._look_up = look_up
        self._network = network
        self._proxied = proxied

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore calls it so
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        from channels.proxies import ProxyFailed

        error: Exception | None = None
        for address in (await self._public(host))[:_TRIED]:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException, ProxyFailed) as exc:
                error = exc
        assert error is not None
        raise error

    async def _public(self, host: str) -> Sequence[str]:
        """Returns the addresses of a host. Raises `NotFetched` unless it has some and all of them are public."""
        if is_public(host):
            return [host]
        try:
            addresses = await self._look_up(host)
        except (OSError, UnicodeError):
            addresses = []
        if not addresses or not all(map(is_public, addresses)):
            # One answer for both: else a model could be used to learn which names the machine's network has.
            known = " that this machine itself finds, as it must even behind a proxy" if self._proxied else ""
            raise NotFetched(f"{host} has no public address{known}; this machine and its network are never fetched")
        return addresses

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore calls it so
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise NotFetched("only the web is fetched")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Tunnels(httpcore.AsyncNetworkBackend):
    """Connections through a proxy, in the form that httpcore wants."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore calls it so
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Tunnel(await self._proxy.connected(host, port, timeout))


class _Tunnel(httpcore.AsyncNetworkStream):
    """One connection. The time for all of a page is limited elsewhere, so single waits are not."""

    def __init__(self, stream: AsyncioSocketStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as above
        with _translated():
            return await self._stream.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        with _translated():
            await self._stream.write(buffer)

    async def aclose(self) -> None:
        await self._stream.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> httpcore.AsyncNetworkStream:
        with _translated():
            return _Tunnel(await self._stream.start_tls(server_hostname or "", ssl_context))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as exc:  # an SSLError is one, too
        raise httpcore.NetworkError(str(exc)) from exc


def _joined(url: httpx.URL, location: str) -> str:
    try:
        # Some servers send bytes that no address may hold; they mean UTF-8.
        return str(url.join(location.encode("latin-1").decode("utf-8", "replace")))
    except (httpx.InvalidURL, ValueError) as exc:
        raise NotFetched("it was redirected to something that is no address") from exc
