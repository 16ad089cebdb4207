"""Searches the web through a SearXNG server that the operator has named.

Invariants: only that server is asked, and it redirects to nothing. Its answer is read up to a bound, and taken as data.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from gateway.internet.addresses import NotFetched

_SECONDS: Final = 15.0
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
    def __init__(self, client: httpx.AsyncClient, *, base_url: str, seconds: float = _SECONDS) -> None:
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
