"""The tools that read the web, for one turn.

Invariants: a tool's result is data from the web. A page is fetched without a question only if a person of this
conversation has named its address or a search has found it: an address that a model makes up could carry away what the
model knows. Once the turn has read anything, such an address may be a page's idea, and the person is not even asked.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import BaseModel, Field, field_validator

from agents.llm import ChatMessage
from agents.prompt import one_line, outside
from agents.tools import Tool, ToolError
from gateway.internet.addresses import NotFetched, is_named
from gateway.internet.reach import SECONDS, Fetched, PublicWeb
from gateway.reading import attachments, plain_text
from gateway.reading.reader_process import read_apart
from memory.store.history import Message

_SEARCH_SECONDS: Final = 15.0
_MOST_BYTES: Final = 2_000_000
#: The most results, and the most characters of each part of a result.
_RESULTS: Final = 5
_TITLE: Final = 200
_SNIPPET: Final = 400
_LONGEST_LINK: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    title: str
    link: str
    snippet: str


class SearxSearch:
    def __init__(self, client: httpx.AsyncClient, *, base_url: str, seconds: float = _SEARCH_SECONDS) -> None:
        self._client = client
        self._address = f"{base_url.rstrip('/').removesuffix('/search')}/search"
        self._seconds = seconds

    async def find(self, words: str) -> Sequence[SearchResult]:
        """Returns the best results. Raises `NotFetched`, whose text tells the operator what to do."""
        try:
            async with asyncio.timeout(self._seconds):
                told = json.loads(await self._asked(words))
        except TimeoutError:
            raise NotFetched(f"the search server took longer than {self._seconds:g} seconds") from None
        except httpx.HTTPError as exc:
            raise NotFetched(f"the search server can't be reached ({str(exc) or type(exc).__name__})") from exc
        except (ValueError, RecursionError) as exc:
            raise NotFetched("the search server's answer can't be read; is it SearXNG?") from exc
        results = told.get("results") if isinstance(told, dict) else None
        if not isinstance(results, list):
            raise NotFetched("the search server's answer can't be read; is it SearXNG?")
        return [found for result in results if (found := _found(result)) is not None][:_RESULTS]

    async def _asked(self, words: str) -> bytes:
        data = bytearray()
        parameters = {"q": words, "format": "json"}
        async with self._client.stream(
            "GET", self._address, params=parameters, timeout=self._seconds, follow_redirects=False
        ) as got:
            if got.status_code == 403:
                raise NotFetched("the search server refuses JSON; its settings.yml needs json under search: formats:")
            if got.status_code != 200:
                raise NotFetched(f"the search server answered with status {got.status_code}")
            async for chunk in got.aiter_bytes():
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise NotFetched("the search server's answer is too large")
        return bytes(data)


def _found(result: Any) -> SearchResult | None:
    if not isinstance(result, dict):
        return None
    link = result.get("url")
    if not isinstance(link, str) or not link.startswith(("http://", "https://")) or len(link) > _LONGEST_LINK:
        return None
    return SearchResult(
        title=_line(result.get("title"), _TITLE),
        link="".join(link.split()),
        snippet=_line(result.get("content"), _SNIPPET),
    )


def _line(text: object, most: int) -> str:
    return " ".join(text.split())[:most] if isinstance(text, str) else ""


_AT_ONCE: Final = 2
#: The most characters kept of a page, and seconds for reading it.
_CHARS: Final = 200_000
_READING_SECONDS: Final = 10.0
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
        told = await read_apart(command, data, seconds=_READING_SECONDS)
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


#: The tools' names, as an agent's file has them.
FETCH: Final = "fetch_url"
SEARCH: Final = "web_search"
NAMES: Final = (FETCH, SEARCH)
_ORIGIN: Final = "the web"
#: The most characters of a page that a model gets at once.
_PART: Final = 12_000
#: Seconds for a page: to fetch it, and to wait for a place and read it.
_PAGE_SECONDS: Final = SECONDS + 25
#: The most pages and searches of one turn.
_MOST: Final = 10
_MADE_UP: Final = (
    "this address was not fetched: nobody in this conversation has named it, and no search has found it. Show it to"
    " the person; if they send it back, you can fetch it."
)
#: The beginnings of results that hold words of the web.
_ADDRESS: Final = "address: "
_FIRST: Final = "1. "
#: The line of an address in a result, and of a link.
_LINK: Final = re.compile(r"^(?:address:|  ) (https?://\S+)$", re.MULTILINE)
_LEFT_OUT: Final = "left out after the answer; read it again if it is needed"


class FetchArguments(BaseModel):
    url: str = Field(description="the whole address, as the person wrote it or a search found it", max_length=2_000)
    part: int = Field(default=1, description="of a long page: 2 for what follows the first part", ge=1, le=50)

    @field_validator("url")
    @classmethod
    def _has_a_scheme(cls, url: str) -> str:
        return url if "://" in url else f"https://{url}"


class WebSearchArguments(BaseModel):
    query: str = Field(description="a few words, nothing private", min_length=1, max_length=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """The web as agents read it. Without `search` there is no search. `mask` makes a text fit to be read."""

    reach: PublicWeb
    pages: Pages
    search: SearxSearch | None
    mask: Callable[[str], str]


@dataclass(slots=True, kw_only=True)
class WebTools:
    """The tools of one turn; people may have named addresses in `named`. `used`: the web was read, or tried."""

    web: Web
    named: Sequence[str]
    used: int = 0
    asking: bool = False
    found: list[str] = field(default_factory=list)

    def tools(self, names: Iterable[str]) -> tuple[Tool, ...]:
        fetch = Tool(
            name=FETCH,
            description="Read a page or PDF of the web whose address the person gave or a search found.",
            arguments=FetchArguments,
            run=self.fetch,
            beside=True,
            origin=_ORIGIN,
            seconds=_PAGE_SECONDS,
        )
        search = Tool(
            name=SEARCH,
            description="Search the web. Returns titles, links and a line of each.",
            arguments=WebSearchArguments,
            run=self.search,
            beside=True,
            origin=_ORIGIN,
        )
        offered = {FETCH: fetch} | ({SEARCH: search} if self.web.search is not None else {})
        return tuple(offered[name] for name in names if name in offered)

    def may_ask(self, arguments: FetchArguments) -> bool:
        """Returns whether to ask about an address: once a turn, never after reading. Raises `ToolError`."""
        try:
            self.web.reach.check(arguments.url)
        except NotFetched as exc:
            raise ToolError(f"{exc}.") from exc
        if self.used or self.asking or self._is_known(arguments.url):
            return False
        self.asking = True
        return True

    def check(self, arguments: FetchArguments) -> None:
        if not self._is_known(arguments.url):
            raise ToolError(_MADE_UP)

    def _is_known(self, address: str) -> bool:
        return is_named(address, [*self.named, *self.found])

    async def fetch(self, _n: int, _i: int, arguments: FetchArguments) -> str:
        self._count()
        try:
            fetched = await self.web.reach.get(arguments.url)
            page = await self.web.pages.read(fetched)
        except NotFetched as exc:
            raise ToolError(f"{exc}.") from exc
        text = await asyncio.to_thread(self.web.mask, page.text)
        parts = max(1, -(-len(text) // _PART))
        if arguments.part > parts:
            raise ToolError(f"the page has {parts} part{'' if parts == 1 else 's'}.")
        told = text[(arguments.part - 1) * _PART : arguments.part * _PART]
        lines = [f"{_ADDRESS}{one_line(fetched.url)}"]
        if page.title:
            lines.append(f"title: {one_line(self.web.mask(page.title))}")
        if parts > 1:
            lines.append(f"part {arguments.part} of {parts}")
        cut = "\n(the rest of the page is left out)" if page.cut and arguments.part == parts else ""
        return "\n".join([*lines, "", told]) + cut

    async def search(self, _n: int, _i: int, arguments: WebSearchArguments) -> str:
        self._count()
        assert self.web.search is not None
        try:
            results = await self.web.search.find(arguments.query)
        except NotFetched as exc:
            raise ToolError(f"{exc}.") from exc
        if not results:
            return "Nothing was found."
        self.found += [result.link for result in results]
        return "\n".join(
            f"{n}. {one_line(self.web.mask(result.title))}\n   {one_line(result.link)}\n"
            f"   {one_line(self.web.mask(result.snippet))}"
            for n, result in enumerate(results, 1)
        )

    def _count(self) -> None:
        self.used += 1
        if self.used > _MOST:
            raise ToolError(f"at most {_MOST} pages and searches for one answer. Answer with what you have.")


def naming(messages: Iterable[Message]) -> list[str]:
    """Returns the messages in which an address may be named: people's own, and the links that searches found."""
    return [one.text for one in messages if one.role == "user" or (one.role == "tool" and _is_web(one.text))]


def left_out(traffic: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Returns traffic as history keeps it: a page that was read enters one answer, then only its address stays."""
    return [
        replace(message, content=outside(_ORIGIN, "\n".join([_LEFT_OUT, *_links(message.content)])))
        if message.role == "tool" and _holds_words(message.content)
        else message
        for message in traffic
    ]


def _holds_words(told: str) -> bool:
    return _is_web(told) and told.partition("\n")[2].startswith((_ADDRESS, _FIRST))


def _links(told: str) -> list[str]:
    return [f"   {link}" for link in _LINK.findall(told)]


def _is_web(told: str) -> bool:
    """Returns whether a tool's result is from the web: nothing else can begin so (`agents/prompt.py`)."""
    return told.startswith(outside(_ORIGIN, "").splitlines()[0])
