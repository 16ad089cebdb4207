"""Decides which addresses of the web may be fetched, and which of them people have named. Pure.

Invariants: an address passes only in the one spelling that names what it reaches. An IP address that leads to this
machine, to its network or to its provider, by itself or by one written inside it, never passes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Network, ip_address
from itertools import islice
from typing import Final

import httpx

from agents.toolservers.addresses import embedded

#: The longest address; servers refuse longer ones.
_LONGEST: Final = 2_000
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+")
#: The last part of a host that resolvers read as a number: 2130706433, 0x7f000001, 127.1, 0177.0.0.1.
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
#: Endings of names that lead nowhere or into a private network.
_PRIVATE_NAMES: Final = (
    ".localhost", ".local", ".localdomain", ".internal", ".intranet", ".private", ".lan", ".home", ".corp",
    ".home.arpa", ".invalid", ".test", ".onion",
)  # fmt: skip
#: Addresses that Python takes for public: those of protocols, and the server of one provider (Azure).
_NOT_PUBLIC_4: Final = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")))
#: The network of public addresses, and the parts of it that are not public.
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
#: The beginning of an address: a scheme, or a host that does not go on from letters before it.
_BEGIN: Final = re.compile(r"https?://|(?<![A-Za-z0-9._@/?=&%#+~:\u00c0-\u1fff-])(?=[\w-]+\.\w)", re.IGNORECASE)
#: Beginnings that are tried in a run of characters without a blank.
_BEGINNINGS: Final = 4
_TOKEN: Final = re.compile(r"[^\s<>\"“”„«»`|（）【】「」『』《》，。；！？、：]{4,2000}")
#: Characters that end a sentence or a bracket rather than an address.
_CLOSING: Final = ".,;:!?)]}'’*_~"


class NotFetched(Exception):
    """An address is not fetched; `str()` is what the model is told."""


def checked(address: str, *, ports: Collection[int]) -> httpx.URL:
    """Returns an address that may be asked for, as far as its text tells. Raises `NotFetched`."""
    url = _parsed(address)
    if url.userinfo:
        raise NotFetched("an address with a name or password before the host is not fetched")
    if (url.port or {"http": 80, "https": 443}[url.scheme]) not in ports:
        raise NotFetched(f"port {url.port} is not fetched; only {', '.join(map(str, sorted(ports)))}")
    host = url.raw_host.decode("ascii").removesuffix(".")
    if ":" in host or _NUMBER.search(host.rpartition(".")[2]):
        if not is_public(host):
            raise NotFetched(_not_public(url))
    elif not _NAME.fullmatch(host) or f".{host}".endswith(_PRIVATE_NAMES):
        raise NotFetched(_not_public(url))
    return url


def _not_public(url: httpx.URL) -> str:
    return f"{url.host} is no public address; this machine and its network are never fetched"


def is_public(address: str) -> bool:
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv4Address):
        return ip.is_global and not ip.is_multicast and not any(ip in network for network in _NOT_PUBLIC_4)
    if ip.scope_id is not None:
        return False
    if (inner := embedded(ip)) is not None:
        return is_public(str(inner))
    return ip in _PUBLIC_6 and ip.is_global and not any(ip in network for network in _NOT_PUBLIC_6)


def is_named(address: str, texts: Iterable[str]) -> bool:
    """Returns whether an address stands in one of the texts, but for its scheme, `www.`, a last slash and its #."""
    try:
        wanted = _parsed(address)
    except NotFetched:
        return False
    hosts = {wanted.host.removeprefix("www."), wanted.raw_host.decode("ascii").removeprefix("www.")}
    return any(
        _same(wanted) == found
        for text in texts
        for token in _TOKEN.findall(text)
        if any(host in token.casefold() for host in hosts)
        for found in _named(token)
    )


def _named(token: str) -> Iterator[tuple[str, str]]:
    """Yields the addresses in a run of characters without a blank, each in every length that it may have."""
    for begin in islice(_BEGIN.finditer(token), _BEGINNINGS):
        written = token[begin.start() :]
        # In scripts without blanks, words go on right after an address.
        foreign = next((n for n, char in enumerate(written) if not char.isascii()), len(written))
        for end in {len(written), foreign}:
            part = written[:end]
            while part:
                with suppress(NotFetched):
                    yield _same(_parsed(part if "://" in part[:8] else f"http://{part}"))
                if part[-1] not in _CLOSING:
                    break
                part = part[:-1]


def _same(url: httpx.URL) -> tuple[str, str]:
    host = url.raw_host.decode("ascii").removesuffix(".").removeprefix("www.")
    path, _, query = url.raw_path.decode("ascii").partition("?")
    return f"{host}:{url.port or ''}", f"{path.rstrip('/')}?{query}"


def _parsed(address: str) -> httpx.URL:
    if len(address) > _LONGEST or not address.isprintable() or re.search(r"[\s\\]", address):
        raise NotFetched("this is no address of the web")
    try:
        url = httpx.URL(address)
        url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, AddressValueError) as exc:
        raise NotFetched("this is no address of the web") from exc
    if url.scheme not in ("http", "https") or not url.host or url.port == 0 or (url.port or 1) > 65_535:
        raise NotFetched("only addresses that begin with http:// or https:// and name a host are fetched")
    return url
