"""The conversation in README.md: `python -m bench.conversation` holds and prints it, `--write` puts it into the file.

Invariants: every line is said to the whole program (configuration, pipeline, store, offline agent) through the terminal
channel, and every answer is shown as it came. Only three things are fixed, so that each run gives the same text: the
clock, the search by words alone, and the random ids of memories, which are replaced in the order in which they appear.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from channels.console import ConsoleChannel, Streams
from gateway import app
from gateway.config.loading import Config, load

README: Final = Path(__file__).parents[1] / "README.md"
START, END = "<!-- conversation: `make docs` writes it -->\n```text\n", "```\n<!-- end of conversation -->\n"
#: The lines that a person says in each run of the program, and the moment at which the run begins. In a line, {word}
#: stands for the id of the memory that was last shown beside that word.
RUNS: Final = (
    (
        datetime(2026, 3, 2, 18, 5, tzinfo=UTC),
        (
            "Hi! My name is Ada and I live in Lisbon.",
            "对了，我对花生过敏。",
        ),
    ),
    (
        datetime(2026, 9, 14, 8, 30, tzinfo=UTC),
        (
            "我对什么过敏？",
            "Where do I live?",
            "/memory",
            "/correct {Lisbon} Porto",
            "Where do I live?",
            "/forget {花生}",
            "yes",
            "What am I allergic to?",
        ),
    ),
)
_ID = re.compile(r"\bm_[0-9a-z]{6}\b")
_SHOWN_IDS = ("m_7k2pq4", "m_d9wtx3", "m_h4rn8c", "m_v6zj2e", "m_b8ms5y", "m_q3fk7d", "m_x5tc9w", "m_n2hv6r")


@dataclass(slots=True)
class Clock:
    """The moment of the conversation, in milliseconds since 1970 UTC."""

    time: int

    def __call__(self) -> int:
        """Returns the moment, which each look moves on by a millisecond."""
        self.time += 1
        return self.time


async def held(folder: Path) -> str:
    """Holds the conversation on a new store in `folder` and returns it as it is printed in README.md."""
    (folder / "config.yaml").write_text("embedding: {provider: none}\nrecall: {mode: classic}\n", "utf-8")
    config = load(folder / "config.yaml", {}, folder)
    shown: list[str] = []
    for began, lines in RUNS:
        clock = Clock(int(began.timestamp() * 1000))
        shown.append("$ make chat")
        for line in lines:
            said = re.sub(r"\{(.+?)\}", lambda named: _id_beside(named[1], shown), line)
            shown.append(f"you> {said}")
            shown.append(f"assistant> {(await _answer(config, clock, said)).rstrip()}")
            clock.time += 20_000
        shown.append("you> /quit")
    return _with_lasting_ids("\n".join(shown)) + "\n"


async def _answer(config: Config, clock: Clock, text: str) -> str:
    shown = io.StringIO()
    channel = ConsoleChannel(
        person="you", once=text, now=clock, new_id=app.new_id, streams=Streams(stdin=io.StringIO(), stdout=shown)
    )
    async with app.running(config, {channel.id: channel}, now=clock) as router:
        await channel.run(router)
    return shown.getvalue()


def _id_beside(word: str, shown: list[str]) -> str:
    for line in reversed("\n".join(shown).splitlines()):
        if word in line and (found := _ID.search(line)):
            return found[0]
    raise ValueError(f"no memory was shown beside {word!r}")


def _with_lasting_ids(text: str) -> str:
    found = list(dict.fromkeys(_ID.findall(text)))
    lasting = dict(zip(found, _SHOWN_IDS, strict=False))
    return _ID.sub(lambda id_: lasting[id_[0]], text)


def in_readme(readme: str) -> str:
    """Returns the conversation that stands in the text of README.md."""
    return readme.split(START, 1)[1].split(END, 1)[0]


def main() -> None:
    """Prints the conversation, or writes it into README.md."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="write it into README.md")
    write = options.parse_args().write
    with tempfile.TemporaryDirectory() as folder:
        text = asyncio.run(held(Path(folder)))
    if not write:
        sys.stdout.write(text)
        return
    readme = README.read_text("utf-8")
    README.write_text(readme.replace(START + in_readme(readme) + END, START + text + END), "utf-8")


if __name__ == "__main__":
    main()
