"""A server that reads question and text together and orders the best few anew.

Invariants: it can only change an order, never the items in it; an error or a timeout leaves the order as it was, and
the turn goes on.

Source: the request of Jina's and Cohere's "rerank" APIs, which vLLM, llama.cpp and others speak, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import structlog

log = structlog.get_logger(__name__)

#: Characters of one text that are sent: rerankers read some 512 tokens.
_MOST_CHARS = 2_000


class Reranker:
    """One model of one server.

    The caller owns and closes `client`. `base_url` ends before `/rerank`; `top` is the number of the best texts that
    are ordered anew; `seconds` bounds that in all.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        base_url: str,
        key: str | None,
        model: str,
        top: int = 8,
        seconds: float = 1.5,
    ) -> None:
        self._client = client
        self._url = f"{base_url.rstrip('/')}/rerank"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._model = model
        self._top = top
        self._seconds = seconds

    async def order(self, question: str, texts: Sequence[str]) -> list[int]:
        asked = [text[:_MOST_CHARS] for text in texts[: self._top]]
        unchanged = list(range(len(texts)))
        if len(asked) < 2:
            return unchanged
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._answer(question[:_MOST_CHARS], asked)
            best = _positions(answer, len(asked))
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, KeyError, OverflowError) as exc:
            reason = str(exc) or type(exc).__name__
            log.warning("rerank.failed", model=self._model, error=reason, instead="the order found without it")
            return unchanged
        return best + unchanged[len(asked) :]

    async def _answer(self, question: str, texts: Sequence[str]) -> Any:
        payload = {"model": self._model, "query": question, "documents": texts, "top_n": len(texts)}
        response = await self._client.post(self._url, json=payload, headers=self._headers, timeout=self._seconds)
        response.raise_for_status()
        return response.json()


def _positions(answer: Any, count: int) -> list[int]:
    """Returns positions, the best first. Omitted ones follow in their old order; other faults raise an error."""
    results = sorted(answer["results"], key=lambda result: -float(result["relevance_score"]))
    named = [int(result["index"]) for result in results]
    if len(set(named)) != len(named) or not set(named) <= set(range(count)):
        raise ValueError(f"positions {named} for {count} texts")
    return named + [position for position in range(count) if position not in named]
