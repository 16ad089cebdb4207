"""Turns fetched files into words: web pages, PDFs and plain texts.

Invariants: files that native code parses, or that could be made to burst, are read in a process of their own. At most
`_AT_ONCE` are read at a time.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.internet.addresses import NotFetched
from gateway.internet.reach import Fetched
from gateway.reading import attachments, plain_text
from gateway.reading.apart import read_apart

_AT_ONCE: Final = 2
#: The most characters kept of a page, and seconds for reading it.
_CHARS: Final = 200_000
_SECONDS: Final = 10.0
_READER: Final = Path(attachments.__file__).with_name("page.py")
_HTML: Final = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype html|html)\b", re.I | re.S
)
_HTML_TYPES: Final = ("text/html", "application/xhtml+xml")
#: Media types that may be text; the bytes decide.
_TEXT: Final = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|javascript)|application/octet-stream|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The words of a fetched file. `cut` means that there are more."""

    title: str
    text: str
    cut: bool


class Pages:
    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def read(self, fetched: Fetched) -> Page:
        async with self._places:
            page = await _read(fetched)
        if not page.text.strip():
            raise NotFetched("the page has no words that can be read")
        return page


async def _read(fetched: Fetched) -> Page:
    data = fetched.data
    if attachments.is_pdf(data):
        return await _pdf(fetched)
    if fetched.media_type in _HTML_TYPES or _HTML.match(data[:2_000]):
        command = (sys.executable, "-P", str(_READER), str(_CHARS), *filter(None, [fetched.charset]))
        told = await read_apart(command, data, seconds=_SECONDS)
        if told is None:
            raise NotFetched("the page can't be read")
        return Page(title=str(told["title"]), text=str(told["text"]), cut=bool(told["cut"]) or fetched.cut)
    text = None
    if _TEXT.fullmatch(fetched.media_type):
        text = await asyncio.to_thread(plain_text.decoded, data, chars=_CHARS + 1)
    if text is None:
        raise NotFetched(f"it is {fetched.media_type or 'of a kind'} that can't be read")
    return Page(title="", text=text[:_CHARS], cut=fetched.cut or len(text) > _CHARS)


async def _pdf(fetched: Fetched) -> Page:
    if fetched.cut:
        raise NotFetched(f"it is a PDF of more than {len(fetched.data) // 1_000_000} MB")
    told = await attachments.pdf(fetched.data, chars=_CHARS)
    if isinstance(told, str):
        raise NotFetched(f"it is a PDF: {attachments.REASONS[told]}")
    return Page(title="", text=told[0], cut=told[1])
