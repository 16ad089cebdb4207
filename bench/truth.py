"""Measures what a bot without a model believes after talk that was written by somebody who has never seen its rules.

    python -m bench.truth [--folder PATH] [--json] [--wrong] [--missed]

The folder (`bench/truth`) has YAML files with lists of sittings: `id`, `language`, the `lines` that one person types,
what may rightly be kept of them (`holds`: acceptable keys, a value, and `clear` if it is stated in plain words), and
what must `never` be current ("*" stands for any key). Each sitting is played through the whole program over a store of
its own, in the settings of a new installation. A kept memory is right if its key is acceptable and its value contains
that of an entry or the other way round; every other one is wrong. Prints, by language, the number kept and wrong, the
precision, the share of clear statements that were kept (recall), and how often something was kept that must never be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog
import yaml

from bench.offline import talk

FOLDER: Final = Path(__file__).parent / "truth"
#: The keys of memories under which the files name them otherwise.
_NAMED: Final = {
    "called": "nickname name", "condition": "health", "owns": "car phone bike", "speaks": "languages",
    "native-language": "languages", "interest": "hobby likes", "hobby": "likes", "boundary": "instruction",
    "child": "son daughter children kids", "fiance": "partner", "goal": "plan",
}  # fmt: skip


@dataclass(slots=True)
class Count:
    """Counts the facts that were kept of the sittings of one language."""

    sittings: int = 0
    kept: int = 0
    wrong: int = 0
    clear: int = 0
    found: int = 0
    violated: int = 0

    def figures(self) -> dict[str, float]:
        return {
            "sittings": self.sittings,
            "kept": self.kept,
            "wrong": self.wrong,
            "precision": round(1 - self.wrong / self.kept, 3) if self.kept else 1.0,
            "clear": self.clear,
            "recall": round(self.found / self.clear, 3) if self.clear else 1.0,
            "violated": self.violated,
        }


def sittings(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the sittings of a folder in order."""
    for file in sorted(folder.glob("*.yaml")):
        yield from yaml.safe_load(file.read_text("utf-8"))


def meets(memory: str, entry: dict[str, Any]) -> bool:
    """Returns whether a memory, given as "key: value", is the one that an entry describes."""
    key, _, value = memory.casefold().partition(": ")
    keys = {key, *_NAMED.get(key, "").split(), *(["likes"] if key.startswith("favourite") else [])}
    wanted = str(entry["value"]).casefold()
    return ("*" in entry["keys"] or bool(keys & set(entry["keys"]))) and (wanted in value or value in wanted)


async def held(lines: list[str]) -> tuple[str, ...]:
    """Returns the memories that are current and sure after all lines, each as "key: value"."""
    async with talk(vectors=True) as person:
        for line in lines:
            await person.say(line)
        return await person.held(sure=True)


async def measure(folder: Path, *, wrong: bool, missed: bool) -> dict[str, dict[str, float]]:
    """Returns the figures by language; shows what is wrong and missed on the way, if that is wanted."""
    counts: dict[str, Count] = defaultdict(Count)
    for sitting in sittings(folder):
        kept = await held(sitting["lines"])
        clear = [entry for entry in sitting["holds"] if entry.get("clear")]
        unfounded = [one for one in kept if not any(meets(one, entry) for entry in sitting["holds"])]
        found = [entry for entry in clear if any(meets(one, entry) for one in kept)]
        violated = [one for one in kept if any(meets(one, entry) for entry in sitting.get("never", ()))]
        for count in (counts[sitting["language"]], counts["all"]):
            count.sittings += 1
            count.kept += len(kept)
            count.wrong += len(unfounded)
            count.clear += len(clear)
            count.found += len(found)
            count.violated += len(violated)
        if wrong and (unfounded or violated):
            print(f"{sitting['id']}  wrong {unfounded}  never {violated}")
        if missed and len(found) < len(clear):
            print(f"{sitting['id']}  missed {[one['value'] for one in clear if one not in found]}  kept {list(kept)}")
    return {language: count.figures() for language, count in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wrong", action="store_true", help="list the memories that are wrong")
    parser.add_argument("--missed", action="store_true", help="list the clear statements of which nothing was kept")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    figures = asyncio.run(measure(options.folder, wrong=options.wrong, missed=options.missed))
    if options.json:
        print(json.dumps(figures))
        return
    for language, one in figures.items():
        print(f"{language:<4} " + "  ".join(f"{name} {value:g}" for name, value in one.items()))


if __name__ == "__main__":
    main()
