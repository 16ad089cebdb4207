"""Shows what a person reads of answers in which models wrote more than that: python -m bench.output FILE [--json]

Each line of FILE is an object with "id", "chunks", "must_not_show" and "must_show". A line counts as wrong if the
answer holds what must not show, or lacks what must show; if other cuts of the same text give another answer; or if what
was streamed differs from the answer, except where an answer proved to have begun inside a thought.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agents.output import Output


def read(chunks: Iterable[str]) -> tuple[Output, str]:
    """Returns the answer read from these pieces, and what was shown while it came."""
    output = Output()
    streamed = "".join([*(output.feed(chunk) for chunk in chunks), output.finish()])
    return output, streamed


def wrong(shape: dict[str, Any], *, cuts: int = 20) -> list[str]:
    """Returns what is wrong with the answer of a shape, in words."""
    output, streamed = read(shape["chunks"])
    faults = [f"shows {words!r}" for words in shape["must_not_show"] if words in output.text]
    faults += [f"lacks {words!r}" for words in shape["must_show"] if words not in output.text]
    if streamed != output.text and not output.began_inside:
        faults.append(f"streamed {streamed!r}")
    whole = "".join(shape["chunks"])
    others = [list(whole), *(_cut(whole, random.Random(seed)) for seed in range(cuts))]
    if any(read(pieces)[0].text != output.text for pieces in others):
        faults.append("depends on the cuts")
    return faults


def _cut(whole: str, chance: random.Random) -> Sequence[str]:
    ends = sorted(chance.sample(range(len(whole) + 1), min(len(whole), chance.randint(1, 6))))
    return [whole[start:end] for start, end in zip([0, *ends], [*ends, len(whole)], strict=True)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.output", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--lines", choices=("all", "odd", "even"), default="all", help="which lines, counted from 1")
    given = parser.parse_args(arguments)
    lines = enumerate(given.file.read_text("utf-8").splitlines(), 1)
    kept = [
        line for n, line in lines if line.strip() and (given.lines == "all" or (n % 2 == 1) == (given.lines == "odd"))
    ]
    shapes = [json.loads(line) for line in kept]
    faults = {shape["id"]: found for shape in shapes if (found := wrong(shape))}
    if given.json:
        print(json.dumps({"shapes": len(shapes), "wrong": len(faults), "faults": faults}, ensure_ascii=False))
    else:
        for name, found in faults.items():
            print(f"{name}: {'; '.join(found)}")
        print(f"{len(shapes) - len(faults)} of {len(shapes)} right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
