"""Remora beside mem0 on the same conversations: what share of the evidence is found, and how long a search takes.

Invariants: both sides get every message once, with its speaker's name, and the same questions one after the other, in
one process, whose turn comes first changing from question to question; both make their vectors with the same model,
and its time counts on both sides; no language model, no network, mem0's telemetry off.

    make bench-peers DATA=FILE          sets up bench/.peers, apart from the project's environment, and runs this there

mem0 is used as its package comes: `Memory.add(…, infer=False)` keeps each message as it is, `Memory.search` finds with
its own default threshold in its default store, Qdrant inside this process. What it offers beyond that (keywords by
fastembed, names by spaCy) it would download when first used, so it searches by vectors. Remora runs with
`embedding: {provider: english}`, where one model gives the vectors of texts and those of each word. The last line is
one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import structlog

from bench import recording
from bench.convert import Asked, Dataset, load
from bench.recall import Scored, contexts_of, figures, mark, named, sources_of
from bench.replay import RecordedTime, record, setup_of
from gateway import app
from gateway.config.loading import load as load_config
from memory.recall.embedders.local import Local, LocalTokens

K: Final = 10

#: Finds the ids of `K` messages for a question; also the seconds it took.
Find: TypeAlias = Callable[[Asked], Awaitable[tuple[list[str], float]]]


@dataclass(slots=True, kw_only=True)
class Side:
    """One system's answers."""

    name: str
    find: Find
    seconds: list[float] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)

    async def ask(self, asked: Asked) -> None:
        found, seconds = await self.find(asked)
        self.seconds.append(seconds)
        self.scored.append(mark(found, asked.gold, asked.category, (K,)))

    def figures(self) -> dict[str, Any]:
        return {
            f"frac@{K}": figures(self.scored, (K,))[f"frac@{K}"],
            f"any@{K}": figures(self.scored, (K,))[f"any@{K}"],
            "n": figures(self.scored, (K,))["n"],
            "p50_ms": round(1_000 * statistics.median(self.seconds), 2),
            "p95_ms": round(1_000 * float(np.percentile(self.seconds, 95)), 2),
        }


async def measure(dataset: Dataset, folder: Path) -> dict[str, dict[str, Any]]:
    """Both sides' figures on one set, kept in `folder` meanwhile."""
    mem0 = await _mem0(dataset, folder)
    (folder / "config.yaml").write_text("embedding: {provider: english}\n", "utf-8")
    config = replace(load_config(folder / "config.yaml", {}, folder), data_dir=folder)
    lines = recording.read("\n".join(json.dumps(row, ensure_ascii=False) for row in dataset.rows).encode())
    clock = RecordedTime(lines.lines[0].time)
    async with app.opened(config, {}, now=clock) as parts:
        setup = setup_of(config, parts)
        await record(setup, lines, clock, lambda _count: None)
        memory = next(iter(setup.roster.stores.values())).memory
        await memory.indexed()
        sources, contexts = await sources_of(memory), await contexts_of(memory, dataset)
        _say("Remora holds everything")

        async def remora(asked: Asked) -> tuple[list[str], float]:
            clock.at = int(asked.at.timestamp() * 1_000)
            start = time.perf_counter()
            hits = await memory.browse.search(contexts[asked.chat, asked.asker], asked.text, limit=K)
            return named(hits, sources), time.perf_counter() - start

        sides = [Side(name="remora", find=remora), Side(name="mem0", find=mem0)]
        for side in sides:
            # The first search of each loads what it loads; it counts for neither.
            await side.find(dataset.asked[0])
        for i, asked in enumerate(dataset.asked):
            for side in sides if i % 2 else reversed(sides):
                await side.ask(asked)
    return {side.name: side.figures() for side in sides}


async def _mem0(dataset: Dataset, folder: Path) -> Find:
    """mem0 with all messages of the set, one user a chat."""
    # Both are read when the package is imported.
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
    model = await Local("minilm").tokens()
    peer = importlib.import_module("mem0")
    memory = peer.Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": model.dimension},
            },
            "history_db_path": str(folder / "history.db"),
            # Both are made at once and never called: messages are kept as they are, and vectors come from below.
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
        }
    )
    memory.embedding_model = _SameModel(model, asyncio.get_running_loop())

    def add() -> None:
        for i, row in enumerate(dataset.rows):
            memory.add(
                [{"role": "user", "content": f"{row['author_name']}: {row['text']}"}],
                user_id=str(row["chat"]),
                metadata={"message": str(row["id"])},
                infer=False,
            )
            if i % 500 == 499:
                _say(f"mem0 holds {i + 1} of {len(dataset.rows)}")

    await asyncio.to_thread(add)

    def search(asked: Asked) -> tuple[list[str], float]:
        start = time.perf_counter()
        found = memory.search(asked.text, filters={"user_id": asked.chat}, top_k=K)
        seconds = time.perf_counter() - start
        return [one["metadata"]["message"] for one in found["results"]], seconds

    return lambda asked: asyncio.to_thread(search, asked)


class _SameModel:
    """The embedder that mem0 expects, on the model that Remora uses."""

    def __init__(self, model: LocalTokens, loop: asyncio.AbstractEventLoop) -> None:
        self._model = model
        self._loop = loop

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = "add") -> list[list[float]]:
        made = asyncio.run_coroutine_threadsafe(self._model.embed(texts, query=memory_action == "search"), self._loop)
        rows: list[list[float]] = made.result().tolist()
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a file or folder that `bench.recall` reads")
    path = parser.parse_args().data
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="remora-peers-") as folder:
        result = asyncio.run(measure(load(path), Path(folder)))
    ours, theirs = result["remora"], result["mem0"]
    print(f"{path.stem}: n {ours['n']}, mem0 {version('mem0ai')}")
    for name in (f"frac@{K}", "p50_ms", "p95_ms"):
        ratio = ours[name] / theirs[name]
        print(f"{name:>8}  Remora {ours[name]:g}  mem0 {theirs[name]:g}  ratio {ratio:.2f}")
    print(json.dumps(result | {"mem0_version": version("mem0ai")}))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
