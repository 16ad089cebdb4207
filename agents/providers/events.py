"""Reads the lines of a stream of server-sent events. Pure.

The format is that of the HTML standard, as servers depart from it: no blank line between events, data of several lines,
no blank after a colon, an error that only its event's name tells. Comments and other fields mean nothing.

Invariants: what is held of an event is bounded by the caller through `held`. Each line is read once, and its event
parsed at most twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agents.providers.answer import part_in

BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(rb"(?:data|event|id|retry)?:|(?:data|event|id|retry)\s*\Z")
#: The most characters of an error that is no JSON.
_MOST_WORDS = 2_000


def is_stream(line: bytes) -> bool:
    """Returns whether the first line of a body belongs to a stream of events."""
    return _FIELD.match(line.strip()) is not None


def is_data(line: bytes) -> bool:
    """Returns whether a line of a stream holds data, and is not only a sign of life."""
    return line.startswith(b"data:") and line != b"data:"


class Events:
    """The events of one stream, line by line. `read` parses the data of an event."""

    def __init__(self, read: Callable[[bytes], dict[str, Any] | None] = part_in) -> None:
        #: True once the mark of the end has come.
        self.ended = False
        #: The bytes of the event that is not complete yet.
        self.held = 0
        self._read = read
        self._data: list[bytes] = []
        self._name = b""

    def add(self, line: bytes) -> list[dict[str, Any] | None]:
        """Takes a line without its end. Returns the objects that are complete with it, and None for what is no JSON."""
        if line.startswith(b"data:"):
            return self._add_data(line.removeprefix(b"data:").strip())
        before = self.finish() if not line or line.startswith(b"event:") else []
        if not line:
            self._name = b""
        elif line.startswith(b"event:"):
            self._name = line.removeprefix(b"event:").strip()
        return before

    def finish(self) -> list[dict[str, Any] | None]:
        if not self._data:
            return []
        data = b"\n".join(self._data)
        self._data, self.held = [], 0
        return [self._named(self._read(data), data)]

    def _add_data(self, data: bytes) -> list[dict[str, Any] | None]:
        if data == b"[DONE]":
            self.ended = True
            return self.finish()
        whole = self._read(data) if data and not self._data else None
        if whole is not None:
            return [self._named(whole, data)]
        if data:
            self._data.append(data)
            self.held += len(data)
        return []

    def _named(self, data: dict[str, Any] | None, raw: bytes) -> dict[str, Any] | None:
        """Returns the event's object; that of an error holds it as "error", as other errors do."""
        if self._name != b"error" or (data is not None and data.get("error")):
            return data
        return {"error": data or raw[:_MOST_WORDS].decode("utf-8", "replace") or "no words"}
