"""The files that came with what a person said: shown where they were sent, and given back to that person.

Invariants: a picture is given only if its bytes are those of a format that can't act; of anything else there is no more
than the text that was read of it. Both come in a sandbox, and only to the person who sent them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from aiohttp import web

from channels.web import SentFile, SentKind
from gateway.reading.attachments import PICTURE_BYTES, label, picture_type
from memory.browse.talks import BroughtFile
from memory.store.attachments import Attached

_SANDBOX: Final = "default-src 'none'; sandbox; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def beside(files: Sequence[BroughtFile]) -> tuple[SentFile, ...]:
    return tuple(SentFile(name=came.file.name, kind=_kind(came), size=came.file.size) for came in files)


def _kind(came: BroughtFile) -> SentKind:
    match came.file.state:
        case "picture":
            return "picture" if came.is_kept else ""
        case "spoken":
            return "voice"
        case "text":
            return "text"
    return ""


def without_labels(text: str, files: Sequence[Attached]) -> str:
    """Returns a message as it was typed or spoken: without the names that history adds behind it."""
    for file in files:
        named = label(file)
        # The last: a person may have typed the same.
        before, found, after = text.rpartition(f"{named} " if file.state == "spoken" else named)
        text = f"{before}{after}" if found else text
    return text.strip()


def shown(name: str, data: bytes, text: str = "") -> web.Response | None:
    """Returns a picture, or the text that was read of another file; None if there is neither."""
    picture = picture_type(data) if len(data) <= PICTURE_BYTES else None
    if picture is None and not text:
        return None
    named = quote(name if picture else f"{name}.txt", safe="")
    return web.Response(
        body=data if picture else text.encode(),
        content_type=picture or "text/plain",
        charset=None if picture else "utf-8",
        headers={"Content-Disposition": f"inline; filename*=UTF-8''{named}", "Content-Security-Policy": _SANDBOX},
    )
