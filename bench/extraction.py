"""Measures what extraction finds in notes that were labelled by type, with patterns and, where one is given, a model.

Invariants: nothing is tuned on the data; each text is read as one message of one person on `TODAY`; one prediction pays
for one label and the other way round. A prediction matches a label when they share at least half of the label's words
of meaning and neither a number nor a name of the label is missing from it (its key counts, its category does not):
stricter than a reader who forgives, and blind to synonyms and to a label in another language.

    python -m bench.extraction DATA                        the pattern extractor
    python -m bench.extraction DATA --base-url URL --model NAME [--key-env VARIABLE] [--limit N]

DATA is a folder with `labels.jsonl` ({"id", "memories": [{"type", "content"}]}) and one or more `dataset*.jsonl`
({"id", "text"}). Prints a table, and one JSON object as the last line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
from pydantic import SecretStr

from agents.budget import count_tokens
from agents.llm import ChatMessage, ModelError, Request
from agents.providers.openai import OpenAIProvider
from agents.spec import ModelSpec
from memory.learn.answer import Unreadable, read_answer
from memory.learn.ask import Stretch, ask
from memory.learn.extract import findings, propose
from memory.scope import Scope
from memory.store.history import Message
from memory.text.words import stop_tokens, tokens

TODAY: Final = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp() * 1000)
SPEAKER: Final = 1
SCOPE: Final = Scope(agent_id=1, owners=(1,), own=(1,), writes_to=1, speaker_id=SPEAKER, selves=(1,), private=True)

Extract: TypeAlias = Callable[[str], Awaitable[list[str]]]
"""The extractor to be measured: a text → what was found in it, each as key and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Something a reader found worth keeping."""

    type: str
    content: str


async def by_patterns(text: str) -> list[str]:
    return [f"{d.key} {d.value}" for d in propose(text, scope=SCOPE, said_at=TODAY, timezone="UTC")]


def by_model(provider: OpenAIProvider, failures: Counter[str]) -> Extract:
    """Returns an extractor that asks this model; failed calls find nothing and are counted in `failures`."""

    async def extract(text: str) -> list[str]:
        message = Message(
            id=1, session_id=1, turn_id=None, role="user", author_id=SPEAKER, author_name="Sam", text=text,
            tokens=count_tokens(text), learn=True, recall=True, sitting=1, nth=1, said_at=TODAY, platform_ref=None,
            tool_calls=None, tool_call_id=None,
        )  # fmt: skip
        stretch = Stretch(messages=(message,), scope=SCOPE, scopes={SPEAKER: SCOPE}, timezones={SPEAKER: "UTC"})
        question = ask(stretch)
        request = Request(
            messages=(
                ChatMessage(role="system", content=question.instructions),
                ChatMessage(role="user", content=question.material),
            ),
            temperature=0.0,
            max_tokens=question.max_tokens,
            json_mode=True,
        )
        try:
            completion = await provider.complete(request)
            found = findings(read_answer(completion.text), stretch)
        except (ModelError, Unreadable) as exc:
            failures[exc.code] += 1
            return []
        return [f"{one.draft.key} {one.draft.value}" for one in found]

    return extract


def matches(found: str, label: str) -> bool:
    wanted = set(tokens(label)) - stop_tokens()
    held = set(tokens(found))
    telling = {token for token in wanted if any(char.isdigit() for char in token)}
    names = {token for word in label.split()[1:] if word[:1].isupper() for token in tokens(word)}
    return bool(wanted) and 2 * len(wanted & held) >= len(wanted) and telling | (names - stop_tokens()) <= held


async def measure(extract: Extract, texts: dict[str, str], labels: dict[str, list[Label]]) -> dict[str, Any]:
    """Recall by type, precision, and how much was found at all."""
    right: Counter[str] = Counter()
    there: Counter[str] = Counter()
    found = paid = silent = 0
    began = time.perf_counter()
    for text_id, text in texts.items():
        predictions = await extract(text)
        found += len(predictions)
        silent += not predictions
        left = list(predictions)
        for label in labels.get(text_id, []):
            there[label.type] += 1
            hit = next((one for one in left if matches(one, label.content)), None)
            if hit is not None:
                left.remove(hit)
                right[label.type] += 1
                paid += 1
    return {
        "texts": len(texts),
        "labels": there.total(),
        "found": found,
        "texts_without": silent,
        "recall": round(paid / there.total(), 3) if there else None,
        "precision": round(paid / found, 3) if found else None,
        "recall_by_type": {kind: f"{right[kind]}/{there[kind]}" for kind in sorted(there)},
        "seconds": round(time.perf_counter() - began, 2),
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every data set of the folder with every extractor that was asked for."""
    labels = {
        row["id"]: [Label(type=one["type"], content=one["content"]) for one in row["memories"]]
        for row in _lines(options.data / "labels.jsonl")
    }
    figures: dict[str, Any] = {}
    async with httpx.AsyncClient() as client:
        failures: Counter[str] = Counter()
        extractors: dict[str, Extract] = {"patterns": by_patterns}
        if options.model:
            key = os.environ.get(options.key_env)
            model = ModelSpec(
                provider="openai",
                base_url=options.base_url,
                model=options.model,
                key=SecretStr(key) if key else None,
                temperature=0.0,
                timeout=90.0,
            )
            provider = OpenAIProvider(client, model, count_tokens=count_tokens)
            extractors[options.model] = by_model(provider, failures)
        for path in sorted(options.data.glob("dataset*.jsonl")):
            texts = {row["id"]: row["text"] for row in _lines(path)[: options.limit]}
            for name, extract in extractors.items():
                figures[f"{path.stem} {name}"] = await measure(extract, texts, labels)
    return {"figures": figures, "failed_calls": dict(failures)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.extraction", description="Measures what extraction finds in labelled notes."
    )
    parser.add_argument("data", type=Path, help="a folder with labels.jsonl and dataset*.jsonl")
    parser.add_argument("--base-url", default="http://localhost:11434/v1", help="a server with OpenAI's chat API")
    parser.add_argument("--model", help="its model; without one only patterns are measured")
    parser.add_argument("--key-env", default="OPENAI_API_KEY", help="the environment variable that holds its key")
    parser.add_argument("--limit", type=int, help="read so many texts only")
    result = asyncio.run(run(parser.parse_args(arguments)))
    for name, figures in result["figures"].items():
        print(f"{name}: recall {figures['recall']}, precision {figures['precision']}, {figures['recall_by_type']}")
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
