"""The connection to a server of the Model Context Protocol over HTTP.

The SDK of the protocol and its HTTP client take seconds to load, so this module is imported when the first server is
needed.

Invariants: a response reaches the SDK in whole messages, each within `relay.LONGEST` bytes and `MOST_VALUES` values. A
compressed response is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2  # the SDK's own
from mcp.client.streamable_http import streamable_http_client

from agents.json_values import MOST_VALUES, values
from agents.toolservers import relay
from agents.toolservers.relay import Allowance

#: Seconds that a farewell may take.
_FAREWELL_SECONDS: Final = 2.0
#: The part of the messages allowed at once that a response counts for: each is a task of the SDK's.
_RESPONSE: Final = relay.MESSAGES[0] / 500


@asynccontextmanager
async def remote(url: str, headers: Mapping[str, str], messages: Allowance) -> AsyncIterator[Any]:
    """Yields the two streams of messages of a server at `url`, which may send what `messages` allows."""
    room = _Room(messages)
    # The SDK follows no redirect to another host, so headers with a key stay with theirs.
    http = httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(30.0, read=300.0),
        event_hooks={"request": [_hasten], "response": [room.bound]},
    )
    async with http, streamable_http_client(url, http_client=http, max_sse_event_size=relay.LONGEST) as io:
        yield io


@dataclass(frozen=True, slots=True)
class _Room:
    messages: Allowance
    size: Allowance = field(default_factory=lambda: Allowance(*relay.BYTES))
    heap: Allowance = field(default_factory=lambda: Allowance(*relay.VALUES))

    async def bound(self, response: Any) -> None:
        if not self.messages.take(_RESPONSE):
            raise httpx2.ReadError("more responses than anybody reads")
        # A few bytes of a compressed body may become gigabytes behind the bound.
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise httpx2.ReadError("a compressed response, which was not asked for")
        if response.request.method == "DELETE":  # a farewell, whose answer may never end
            response.stream = httpx2.ByteStream(b"")
            return
        # JSON and events are UTF-8. A character set of the server's choice would hide the marks that are counted.
        kind = response.headers["Content-Type"] = response.headers.get("Content-Type", "").partition(";")[0]
        is_stream = kind.strip().lower() == "text/event-stream"
        length = int(response.headers.get("Content-Length", "0") or 0) or None
        response.stream = _Bounded(response.stream, response.request.content, self, events=is_stream, length=length)


class _Bounded(httpx2.AsyncByteStream):
    """A response's body in whole messages that may be read. For others stands an error to the `request`."""

    def __init__(self, inner: Any, request: bytes, room: _Room, *, events: bool, length: int | None) -> None:
        self._inner = inner
        self._room = room
        self._asked = relay.kind_and_id(request)[1]
        self._events = events
        self._length = length
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        async for chunk in self._inner:
            if not self._room.size.take(len(chunk)):
                raise httpx2.ReadError("more bytes than anybody reads")
            fresh = max(0, len(held) - 1)
            held += self._one_line_end(chunk) if self._events else chunk
            if len(held) > relay.LONGEST:
                self._room.size.take((relay.SKIPPED - 1) * len(held))
                yield self._refusal(relay.too_large(self._length))
                return
            if self._events and (end := held.rfind(b"\n\n", fresh) + 2) > 1:
                yield self._readable(bytes(held[:end]))
                del held[:end]
        yield self._readable(bytes(held))

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _one_line_end(self, chunk: bytes) -> bytes:
        r"""Returns a chunk with \n for \r\n and \r. After a \r the SDK would wait for the next chunk to begin."""
        rest = chunk[1:] if self._ended and chunk.startswith(b"\n") else chunk
        self._ended = chunk.endswith(b"\r")
        return rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _readable(self, message: bytes) -> bytes:
        count = values(message)
        if count > MOST_VALUES:
            return self._refusal(relay.too_many(count))
        if not self._room.heap.take(count):
            raise httpx2.ReadError("more values than anybody reads")
        return message

    def _refusal(self, why: str) -> bytes:
        if not self._asked:
            return b""
        return (b"data: %b\n" if self._events else b"%b") % relay.error(self._asked, why)


async def _hasten(request: Any) -> None:
    if request.method == "DELETE":
        request.extensions["timeout"] = httpx2.Timeout(_FAREWELL_SECONDS).as_dict()
