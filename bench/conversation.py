"""The conversation in README.md: `python -m bench.conversation` holds and prints it, `--write` puts it into the file.

Invariants: every line is said through the terminal channel to the whole program, in the settings that `remora init`
writes, and every answer is shown as it came. Two things are fixed, so that each run gives the same text: the clock, and
the random ids of memories, which are replaced in the order in which they appear. Each line waits until the one before
can be found by its meaning, as it can be in a chat with somebody who reads the answers.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from channels.base import Channel
from channels.console import ConsoleChannel, Streams
from gateway import app
from gateway.cli.init import init
from gateway.config.loading import load

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
    with redirect_stdout(io.StringIO()):
        init.main([str(folder), "--model", "none", "--yes"], standalone_mode=False)
    config = load(folder / "config.yaml", {}, folder)
    shown: list[str] = []
    for began, lines in RUNS:
        clock = Clock(int(began.timestamp() * 1000))
        channels: dict[str, Channel] = {}
        shown.append("$ make chat")
        async with (
            app.opened(config, channels, now=clock) as parts,
            app.answering(config, channels, parts, now=clock) as router,
        ):
            for line in lines:
                text = _with_ids(line, shown)
                channel, screen = _terminal(clock, text)
                channels[channel.id] = channel
                await channel.run(router)
                shown += f"you> {text}", f"assistant> {screen.getvalue().rstrip()}"
                clock.time += 20_000
                for store in parts.roster.each_store:
                    await store.memory.indexed()
        shown.append("you> /quit")
    return _with_lasting_ids("\n".join(shown)) + "\n"


def _terminal(clock: Clock, text: str) -> tuple[ConsoleChannel, io.StringIO]:
    """Returns a terminal at which a person says `text`, and what it shows."""
    screen = io.StringIO()
    streams = Streams(stdin=io.StringIO(), stdout=screen)
    return ConsoleChannel(person="you", once=text, now=clock, new_id=app.new_id, streams=streams), screen


def _with_ids(line: str, shown: list[str]) -> str:
    return re.sub(r"\{(.+?)\}", lambda named: _id_beside(named[1], shown), line)


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
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory() as folder:
        text = asyncio.run(held(Path(folder)))
    if not write:
        sys.stdout.write(text)
        return
    readme = README.read_text("utf-8")
    README.write_text(readme.replace(START + in_readme(readme) + END, START + text + END), "utf-8")


if __name__ == "__main__":
    main()
