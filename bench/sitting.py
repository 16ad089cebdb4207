"""Plays what somebody types to a bot without a model, and prints it with every reply: `python -m bench.sitting FILE…`.

Each FILE is one sitting over a new store, a message a line. The ids of memories are numbered in the order in which they
appear, so that each run prints the same.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from bench.offline import talk

_ID = re.compile(r"\bm_[0-9a-z]{6}\b")


async def sat(lines: Sequence[str]) -> str:
    """Returns a sitting as it stands on the screen: each line after `you> `, each reply below it."""
    shown = []
    async with talk() as person:
        for line in lines:
            shown.append(f"you> {line}")
            shown += await person.say(line)
    numbers: dict[str, str] = {}
    return _ID.sub(lambda found: numbers.setdefault(found[0], f"m_{len(numbers) + 1:06d}"), "\n".join(shown)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    for file in parser.parse_args().files:
        print(f"== {file.stem}\n{asyncio.run(sat(file.read_text('utf-8').splitlines()))}")


if __name__ == "__main__":
    main()
