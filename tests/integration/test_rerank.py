"""The reranker over the wire: it may change the order of the best few, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from memory.recall.rerank import Reranker
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.patience import SECONDS, hang

TEXTS = [f"text {n}" for n in range(10)]
UNCHANGED = list(range(10))


async def order(answer: Answer, *, texts: Sequence[str] = TEXTS, top: int = 4) -> tuple[list[int], list[Asked]]:
    """The order a server's answer leads to, and what it was asked."""
    requests: list[Asked] = []

    async def respond(asked: Asked) -> Answer:
        requests.append(asked)
        return answer

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(respond) as url:
        reranker = Reranker(client, base_url=f"{url}/v1", key="sk-local-test", model="rerank-1", top=top)
        return await reranker.order("which?", texts), requests


def results(*scores: tuple[int, float]) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in scores]}


async def test_the_best_few_are_ordered_anew_and_the_rest_stay() -> None:
    """The order of the scores counts, not that of the answer."""
    found, requests = await order(Answer(body=results((0, 0.1), (2, 0.9), (1, 0.5), (3, 0.2))))
    assert found == [2, 1, 3, 0, 4, 5, 6, 7, 8, 9]
    (asked,) = requests
    assert asked.path == "/v1/rerank"
    assert asked.headers["authorization"] == "Bearer sk-local-test"
    assert asked.body == {"model": "rerank-1", "query": "which?", "documents": TEXTS[:4], "top_n": 4}


async def test_what_the_server_leaves_out_is_not_lost() -> None:
    found, _ = await order(Answer(body=results((3, 0.9))))
    assert found == [3, 0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500, body="oops"),
        Answer(status=401, body={"error": "key"}),
        Answer(body="no JSON"),
        Answer(body=[]),
        Answer(body={}),
        Answer(body={"results": [{"index": 0}]}),
        Answer(body=results((4, 0.9))),
        Answer(body=results((-1, 0.9))),
        Answer(body=results((1, 0.9), (1, 0.8))),
        Answer(body='{"results": [{"index": Infinity, "relevance_score": 1}]}'),
    ],
)
async def test_whatever_else_it_says_the_order_stays(answer: Answer) -> None:
    """A reranker is an extra: its failure is nobody's."""
    found, _ = await order(answer)
    assert found == UNCHANGED


async def test_a_server_that_is_too_slow_or_not_there_changes_nothing() -> None:
    """A person waits for the reply."""

    async def never(asked: Asked) -> Answer:
        await hang()

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        async with serving(never) as url:
            slow = Reranker(client, base_url=url, key=None, model="rerank-1", seconds=SECONDS)
            assert await slow.order("which?", TEXTS) == UNCHANGED
        gone = Reranker(client, base_url="http://127.0.0.1:9", key=None, model="rerank-1")
        assert await gone.order("which?", TEXTS) == UNCHANGED


async def test_one_text_needs_no_server() -> None:
    found, requests = await order(Answer(body={}), texts=["only"])
    assert (found, requests) == ([0], [])
