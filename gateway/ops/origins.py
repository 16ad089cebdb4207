"""Reads which host a request names and where a browser sent it from, for all doors alike.

Invariant: nothing that is written in a header raises. A header that can't be read names no host.
"""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web

from gateway.config.settings import OWN_NAME, is_loopback

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
