"""Measures how long the import of a long MEMORY.md takes.

    python -m bench.imports [LINES …]     by default 100, 400, 2000 and 6000 lines

Each file has statements of several kinds under headings, with some that repeat others. Printed are the seconds of
processor time from the file to the last memory, and the memories that were made.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from agents.budget import count_tokens
from memory.learn.agents import AgentMemory
from memory.runtime import Runtime
from memory.service import Service
from memory.store.sqlite.database import SqliteDatabase
from memory.transfer.formats import markdown
from memory.transfer.homes import Owner

_NOW: Final = 1_795_262_400_000
_KINDS: Final = (
    ("Preferences", "The user likes {a} {b} with {c}"),
    ("People", "{A} from {B} plays {c} on Sundays"),
    ("Projects", "The {a} project keeps its {b} in a {c} called {A}{n}"),
    ("Decisions", "We decided that {a} {b} are better than {c} for {A}"),
    ("Lessons", "When {a} fails, look at the {b} of the {c} first ({n})"),
    ("Health", "The user gets a headache from {a} {b} and {c}"),
)
_WORDS: Final = tuple(
    word
    for line in """
    green blue salt paper river copper winter garden silver quiet morning lemon window engine market violin cotton
    stone harbour ladder pepper mirror forest candle bridge basket rocket pencil magnet pillow carpet saddle hammer
    """.splitlines()
    for word in line.split()
)


def memory_file(lines: int) -> str:
    """Returns a file of so many statements, every twentieth of which was said before."""
    rng = random.Random(lines)
    statements: list[tuple[str, str]] = []
    for n in range(lines):
        if n % 20 == 19:
            statements.append(rng.choice(statements))
            continue
        heading, form = _KINDS[n % len(_KINDS)]
        a, b, c = rng.sample(_WORDS, 3)
        names = {"A": rng.choice(_WORDS).title(), "B": rng.choice(_WORDS).title()}
        statements.append((heading, form.format(a=a, b=b, c=c, n=n, **names)))
    parts = [
        f"## {heading}\n\n" + "\n".join(f"- {text}" for of, text in statements if of == heading)
        for heading, _ in _KINDS
    ]
    return "# Memory\n\n" + "\n\n".join(parts) + "\n"


async def seconds(lines: int, folder: Path) -> tuple[float, int]:
    """Returns the processor time of an import of so many lines, and the number of memories."""
    ids = iter(range(10**9))
    runtime = Runtime(now=lambda: _NOW, new_id=lambda: f"{next(ids)}", count_tokens=count_tokens)
    database = await SqliteDatabase.open(folder / f"{lines}.db", now=1)
    memory = await Service.over(database, agents={"assistant": AgentMemory()}, runtime=runtime)
    try:
        begun = time.process_time()
        material = markdown.read(
            memory_file(lines), where="MEMORY.md", written_at=_NOW, timezone="UTC", mask=str, of="person"
        )
        owner = Owner(kind="person", agent="assistant", platform="console", reference="ada", name="Ada")
        done = await memory.transfer.bring(owner, material, session_key=lambda _: "console:ada:-", learn=False)
        return time.process_time() - begun, done.counts.memories
    finally:
        await memory.close(seconds=5)


def main() -> None:
    """Prints a line for each size."""
    with tempfile.TemporaryDirectory() as folder:
        for lines in map(int, sys.argv[1:] or ("100", "400", "2000", "6000")):
            taken, made = asyncio.run(seconds(lines, Path(folder)))
            print(f"{lines:>6} lines  {taken:7.1f} s  {made} memories", flush=True)


if __name__ == "__main__":
    main()
