"""Measures follow-ups: how many plans are asked about on the right day, and how often something is asked falsely.

Every line is a person who has asked to be asked. What they say is read by the patterns, without a model, in a real
store, and the clock looks at every hour from the first day to a week after the last. No randomness.

    python -m bench.followups FILE…             the figures by language
    python -m bench.followups FILE… --json      one JSON object
    python -m bench.followups FILE… --verbose   the figures and every line that isn't right

A line of a file: {"id", "lang", "says": [{"at": "2026-11-23T12:00", "text"}], "ask": "2026-11-25" or null}. Times are
UTC. `plans` counts the lines in which something is to be asked, `right` those asked once and on that day, `missed`
those never asked about, `false` the questions on any other day or of any other line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from memory.mailbox.outbox import Part
from memory.reminders.followups import FollowUp
from tests.kit.fakes import Clock
from tests.kit.stores import opened
from tests.kit.talk import private, say

Line: TypeAlias = dict[str, Any]
_HOUR: int = 3_600_000


def main() -> None:
    """Prints the figures of the files that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    lines = [json.loads(row) for path in options.files for row in path.read_text("utf-8").splitlines() if row]
    asked = asyncio.run(played(lines))
    found = figures(lines, asked)
    if options.json:
        print(json.dumps(found))
        return
    for language, row in found.items():
        print(f"{language:4} " + "  ".join(f"{name} {value}" for name, value in row.items()))
    for line in lines if options.verbose else ():
        if asked.get(line["id"], []) != ([line["ask"]] if line["ask"] else []):
            print(line["id"], line["ask"], asked.get(line["id"], []), *(one["text"] for one in line["says"]), sep="  ")


def figures(lines: Sequence[Line], asked: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """Returns the figures by language, and of all under "all"."""
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        days, wanted = list(asked.get(line["id"], ())), [line["ask"]] if line["ask"] else []
        row = {
            "plans": len(wanted),
            "right": int(bool(wanted) and days == wanted),
            "missed": int(bool(wanted) and not days),
            "false": len([day for day in days if day not in wanted]) + max(0, days.count(line["ask"]) - 1),
        }
        for language in (line["lang"], "all"):
            sums = found.setdefault(language, dict.fromkeys(row, 0))
            for name, value in row.items():
                sums[name] += value
    return {language: found[language] for language in sorted(found, key=lambda one: (one == "all", one))}


async def played(lines: Sequence[Line]) -> dict[str, list[str]]:
    """Plays all lines in one store. Returns the dates on which each person was asked something."""
    said = sorted((_ms(one["at"]), line["id"], str(one["text"])) for line in lines for one in line["says"])
    begin, end = _day(said[0][0]), max(date.fromisoformat(line["ask"] or "1970-01-01") for line in lines)
    end = max(end, _day(said[-1][0])) + timedelta(days=7)
    asked: defaultdict[str, list[str]] = defaultdict(list)
    clock = Clock(said[0][0])
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder) / "remora.db", clock) as memory:
            for line in lines:
                await memory.privacy.follow_up(await memory.identities.context(*private(line["id"])), "10-20")
            at = _ms(begin.isoformat())
            while _day(at) <= end:
                while said and said[0][0] <= at:
                    moment, person, text = said.pop(0)
                    clock.set(moment)
                    await say(memory, private(person), text, clock=clock)
                    await memory.learner.flush((await memory.identities.context(*private(person))).session.id, "bench")
                clock.set(at)
                for identity_id in await memory.follow_ups.wanted():
                    if (due := await memory.follow_ups.due(identity_id)) is not None:
                        await memory.follow_ups.ask(due, _shown)
                        asked[due.whose.user_id].append(due.today.isoformat())
                at += _HOUR
    return asked


def _shown(due: FollowUp) -> Sequence[Part]:
    return [Part(text=due.plan or "Happy birthday!")]


def _ms(written: str) -> int:
    return int(datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp() * 1000)


def _day(at: int) -> date:
    return datetime.fromtimestamp(at / 1000, UTC).date()


if __name__ == "__main__":
    main()
