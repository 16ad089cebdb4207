"""Measures how surely requests for reminders are read: right, asked back, or set to a wrong time.

Invariants: a line is right if its first time, the two after it and its last day are those of the label, or if it is
asked back where the label asks. A text without a request for a reminder is read as a time with what it is for. No
clock, no randomness.

    python -m bench.times FILE…             the figures by language
    python -m bench.times FILE… --json      one JSON object
    python -m bench.times FILE… --verbose   the figures and every line that isn't right

A line of a file: {"id", "lang", "now", "zone", "text", "what", "first", "then": [two] or null, "until", "ask"}.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

from memory.text.times.phrases import Reading, Unclear, read, read_time
from memory.text.times.rules import following

Outcome: TypeAlias = Literal["right", "asked", "set"]


@dataclass(frozen=True, slots=True)
class Result:
    """A line, what came of it, and how it was read."""

    line: dict[str, Any]
    outcome: Outcome
    times: list[str]
    until: str | None
    what: str


def main() -> None:
    """Prints the figures of the files that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    results = [measure(line) for path in options.files for line in _lines(path)]
    found = figures(results)
    if options.json:
        print(json.dumps(found))
        return
    for language, row in found.items():
        print(f"{language:4} " + "  ".join(f"{name} {value}" for name, value in row.items()))
    if options.verbose:
        for result in results:
            if result.outcome != "right" or not same_words(result):
                line = result.line
                print(f"\n{line['id']} {result.outcome}: {line['text']} (now {line['now']}, {line['what']})")
                print(f"  label {line['first']} {line['then']} {line.get('until')} ask={line['ask']}")
                print(f"  read  {result.times} {result.until} “{result.what}”")


def measure(line: dict[str, Any]) -> Result:
    """Reads one line and compares it with its label."""
    now = datetime.fromisoformat(line["now"]).replace(tzinfo=ZoneInfo(line["zone"]))
    found = read(line["text"], language=line["lang"], now=now)
    if found is None:
        found = read_time(line["text"], language=line["lang"], now=now)
    if not isinstance(found, Reading):
        reason = found.reason if isinstance(found, Unclear) else "none"
        what = found.what if isinstance(found, Unclear) else line["text"]
        return Result(line, "right" if line["ask"] else "asked", [reason], None, what)
    times = [_local(moment) for moment in due(found, 1 + len(line["then"] or []))]
    until = found.until.isoformat() if found.until else None
    right = not line["ask"] and times == [line["first"], *(line["then"] or [])] and until == line.get("until")
    right = right and (found.rule is not None) == bool(line["then"])
    return Result(line, "right" if right else "set", times, until, found.what)


def due(found: Reading, count: int) -> Iterator[datetime]:
    """Yields the first `count` times of a reminder."""
    moment: datetime | None = found.first
    while moment is not None and count > 0:
        yield moment
        moment = following(found.rule, after=moment, first=found.first) if found.rule else None
        count -= 1


def figures(results: list[Result]) -> dict[str, dict[str, Any]]:
    """Returns the counts and the share of right lines, for each language and for all."""
    rows: dict[str, dict[str, Any]] = {}
    for language in [*dict.fromkeys(result.line["lang"] for result in results), "all"]:
        chosen = [result for result in results if language in (result.line["lang"], "all")]
        counts = Counter(result.outcome for result in chosen)
        rows[language] = {
            "lines": len(chosen),
            "right": round(counts["right"] / len(chosen), 3),
            "wrong_asked": counts["asked"],
            "wrong_set": counts["set"],
            "same_words": round(sum(map(same_words, chosen)) / len(chosen), 3),
        }
    return rows


def same_words(result: Result) -> bool:
    """Tells whether what to be reminded of is what the label says, but for articles and small words at its edges."""
    wanted, found = result.line["what"].casefold(), result.what.casefold()
    return wanted == found or wanted in found


def _local(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


if __name__ == "__main__":
    main()
