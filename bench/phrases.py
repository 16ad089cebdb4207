"""Measures how requests for reminders are read, against sentences by somebody who has not seen the words and patterns.

Invariants: a sentence is read as `/remind` reads it, on Wednesday, 25 November 2026 at 10:00 where its language is
spoken. No clock, no randomness.

    python -m bench.phrases FILE…          right, asked, wrong and missed, by language
    python -m bench.phrases FILE… --show   and every sentence that was not read right

A file is a list in YAML, its name begins with the language: {id, text, expect: set, ask or either, first: the times
that may be the first, next: those that may be the second, about: a word of the reminder, never: days and times at
which it must not come}. Where "set" is expected, asking back counts as asked; where "ask" is, as right. A text that
is read as no time is missed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import yaml

from memory.text.times.phrases import Reading, Unclear, read_bare, several
from memory.text.times.rules import following
from memory.text.times.tables import fold

_NOW: Final = datetime(2026, 11, 25, 10)  # noqa: DTZ001 - a wall clock's reading
_ZONES: Final = {"zh": "Asia/Shanghai", "ja": "Asia/Tokyo", "es": "Europe/Madrid", "fr": "Europe/Paris"}
#: The times of a reminder among which one that must not come is looked for.
_TIMES: Final = 200
_KINDS: Final = ("right", "asked", "wrong", "missed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    every: Counter[str] = Counter()
    for path in options.files:
        counts: Counter[str] = Counter()
        for case in yaml.safe_load(path.read_text("utf-8")):
            kind, told = outcome(case, path.stem[:2])
            counts[kind] += 1
            if options.show and kind != "right":
                print(f"{kind:6} {case['id']} {case['text']}\n       {told}")
        print(_line(path.stem, counts))
        every += counts
    print(_line("all", every))


def outcome(case: dict[str, Any], language: str) -> tuple[str, str]:
    """Returns how a sentence was read (`_KINDS`), and the reading in words."""
    now = _NOW.replace(tzinfo=ZoneInfo(_ZONES.get(language, "Europe/Berlin")))
    reading = read_bare(case["text"], language=language, now=now)
    readings = several(case["text"], language=language, now=now) if isinstance(reading, Unclear) else [reading]
    if not readings:
        assert isinstance(reading, Unclear)
        right = case["expect"] != "set"
        return "right" if right else "missed" if reading.reason == "none" else "asked", f"asked: {reading.reason}"
    times = sorted(time for one in readings for time in _times(one, now))
    what = " / ".join(one.what for one in readings)
    told = f"{', '.join(times[:3])} {readings[0].rule or ''} until {readings[0].until}: {what}"
    return "right" if _fits(case, times, what) else "wrong", told


def _fits(case: dict[str, Any], times: Sequence[str], what: str) -> bool:
    return (
        case["expect"] != "ask"
        and any(times[0].startswith(first) for first in case["first"])
        and (
            any(times[1:] and times[1].startswith(later) for later in case["next"]) if case["next"] else len(times) == 1
        )
        and not any(time.startswith(never) for time in times for never in case["never"])
        and fold(case["about"]) in fold(what)
    )


def _times(reading: Reading, now: datetime) -> list[str]:
    moments: list[datetime] = []
    due: datetime | None = reading.first
    while due is not None and len(moments) < _TIMES and (reading.until is None or due.date() <= reading.until):
        moments.append(due)
        due = following(reading.rule, after=due, first=reading.first) if reading.rule else None
    return [f"{moment.astimezone(now.tzinfo):%Y-%m-%d %H:%M}" for moment in moments]


def _line(name: str, counts: Counter[str]) -> str:
    total = sum(counts.values())
    share = (counts["right"] + counts["asked"]) / max(1, total)
    return (
        f"{name:4} "
        + "  ".join(f"{kind} {counts[kind]}" for kind in _KINDS)
        + f"  of {total}: {share:.3f} right or asked"
    )


if __name__ == "__main__":
    main()
