"""The doors for programs: how long a program waits for the first words and for an answer from memory.

Run `python -m bench.doors [--json] [--rounds N] [--memories N]`. One process holds the pipeline, a scripted model and
the client, which ask each other over a real socket on loopback. First words: from the moment that the model gives its
first word to the moment that the client has read it, in a stream, for an agent and for `-recall`. Memory: from request
to answer, with so many memories kept before. Exit 1 when the median of the first words is above 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.kit.doors import House, PiecewiseModel, house

#: The aim for the first words, in milliseconds.
AIM = 50.0
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def first_words(home: House, model: PiecewiseModel, key: str, name: str, n: int) -> float:
    """Milliseconds between the model's first word and the client's."""
    model.began.clear()
    body = {"model": name, "stream": True, "messages": [{"role": "user", "content": f"Round {n}"}]}
    headers = {"Authorization": f"Bearer {key}", "X-Conversation-Id": f"{name}{n}"}
    given = 0.0
    late = 0.0

    async def give() -> None:
        nonlocal given
        await model.began.wait()
        given = time.perf_counter()
        model.gate.release()

    giving = asyncio.create_task(give())
    async with home.client.stream("POST", f"{home.url}/v1/chat/completions", json=body, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if not late and '"content": "first' in line:
                late = (time.perf_counter() - given) * 1000
                model.gate.release()
                model.gate.release()
    await giving
    return late


async def timed(act: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    """Milliseconds of each round, the first of them left out: it loads what is needed."""
    taken = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        await act()
        taken.append((time.perf_counter() - began) * 1000)
    return taken[1:]


async def measure(folder: Path, rounds: int, memories: int) -> dict[str, list[float]]:
    """All figures in milliseconds, by name."""
    model = PiecewiseModel("first second third")
    async with house(folder, model=model) as home:
        key = await home.key()
        for n in range(memories):
            await home.ask("POST", "/v1/memories", key, {"text": f"my note number {n} says tea and bikes"})
        found = {}
        for what, name in (("agent", "assistant"), ("recall", "assistant-recall")):
            taken = [await first_words(home, model, key, name, n) for n in range(rounds + 1)]
            found[f"first words, {what}"] = taken[1:]
        params = {"name": "search_memory", "arguments": {"query": "bikes"}}
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        found["search, API"] = await timed(
            lambda: home.ask("POST", "/v1/memories/search", key, {"query": "bikes"}), rounds
        )
        found["list, API"] = await timed(lambda: home.ask("GET", "/v1/memories", key), rounds)
        found["search, tool"] = await timed(lambda: home.ask("POST", "/mcp", key, rpc, ACCEPT), rounds)
    return found


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--memories", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder), given.rounds, given.memories))
    told = {
        name: {"median": statistics.median(taken), "p95": statistics.quantiles(taken, n=20)[-1]}
        for name, taken in found.items()
    }
    if given.json:
        print(json.dumps(told, indent=2))
    else:
        for name, one in told.items():
            print(f"{name:22} median {one['median']:7.1f} ms   p95 {one['p95']:7.1f} ms")
    if max(one["median"] for name, one in told.items() if name.startswith("first")) > AIM:
        sys.exit(1)


if __name__ == "__main__":
    main()
