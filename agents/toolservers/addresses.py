"""Checks the network addresses that a configured server may have.

The operator may name a server on this machine or in the local network. Addresses by which machines are configured
(link-local, where clouds keep their keys) are refused, under any name or spelling.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

#: The addresses, besides link-local ones, at which clouds keep a machine's keys.
_METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")))

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


def embedded(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address that an IPv6 address leads to: a mapped or translated one, or 6to4. Otherwise None."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _TRANSLATED:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour


def forbidden(address: str) -> bool:
    """Returns whether nothing may be sent to this IP address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if (inner := embedded(ip)) is not None:
        return forbidden(str(inner))
    return ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip in _METADATA


async def resolved_forbidden(host: str, port: int) -> str | None:
    """Returns the forbidden address that a host's name leads to, or None. Raises `OSError` if it leads nowhere."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return next((str(entry[4][0]) for entry in found if forbidden(str(entry[4][0]))), None)
