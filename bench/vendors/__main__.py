"""The command: plays the cases and tells which were right.

    python -m bench.vendors [--json] [--only VENDOR ...] [--split tune|kept|all] [--short] [--list]

`--only` takes vendors, kinds or names of cases. Exit code 1 if a case was missed, 2 if the bot could not be started.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import bench.vendors
from bench.vendors.cases import CASES, SPLIT
from bench.vendors.play import Case
from bench.vendors.table import DATE, VENDORS
from bench.vendors.world import Verdict, played

#: What the short form plays, at one server.
_SHORT: Final = ("tool there and back: vllm", "three turns: vllm", "unknown model: vllm")


def chosen(only: Sequence[str], *, split: str, short: bool) -> list[Case]:
    """Returns the cases of these vendors, kinds or names. Raises `SystemExit` for a name that is none."""
    known = {name for one in CASES for name in (one.kind, one.name, *one.vendors)}
    if unknown := sorted(set(only) - known):
        raise SystemExit(f"there is no vendor, kind or case {unknown[0]!r}; --list names all")
    return [
        one for one in CASES
        if (not only or {one.kind, one.name, *one.vendors} & set(only)) and split in {"all", SPLIT[one.name]}
        and (not short or one.name in _SHORT)
    ]  # fmt: skip


async def verdicts(cases: Sequence[Case], say: Callable[[Verdict], None]) -> list[Verdict]:
    """Plays the cases; `say` is told of each as it ends."""
    ended = []
    with tempfile.TemporaryDirectory(prefix="vendors-") as folder:
        async for verdict in played(cases, Path(folder)):
            say(verdict)
            ended.append(verdict)
    return ended


def row(verdict: Verdict) -> dict[str, Any]:
    case = verdict.case
    return {
        "name": case.name, "kind": case.kind, "vendors": list(case.vendors), "split": SPLIT[case.name],
        "verdict": "missed" if verdict.why else "right", "why": verdict.why, "seconds": round(verdict.seconds, 1),
        **({"read": verdict.read, "refusals": verdict.refusals} if verdict.why else {}),
    }  # fmt: skip


def document(ended: Sequence[Verdict], seconds: float) -> dict[str, Any]:
    """Returns all verdicts as one JSON document, with counts by kind, by vendor and by split."""

    def counts(groups: Callable[[Verdict], Sequence[str]]) -> dict[str, dict[str, int]]:
        total = Counter(group for one in ended for group in groups(one))
        missed = Counter(group for one in ended if one.why for group in groups(one))
        return {group: {"cases": total[group], "missed": missed[group]} for group in sorted(total)}

    return {
        "cases": len(ended), "missed": sum(bool(one.why) for one in ended),
        "kinds": len({one.case.kind for one in ended}),
        "seconds": round(seconds, 1), "load": round(os.getloadavg()[0], 1), "looked_up": DATE,
        "by_split": counts(lambda one: [SPLIT[one.case.name]]), "by_kind": counts(lambda one: [one.case.kind]),
        "by_vendor": counts(lambda one: one.case.vendors),
        "played": [row(one) for one in sorted(ended, key=lambda one: one.case.name)],
    }  # fmt: skip


def table() -> str:
    """Returns the table of docs/models.md: what was played, and from which pages."""
    lines = ["| server | model | cases | pages and reports |", "|---|---|--:|---|"]
    for vendor in VENDORS.values():
        count = sum(vendor.name in one.vendors for one in CASES)
        lines.append(f"| {vendor.name} | `{vendor.model}` | {count} | {vendor.pages} |")
    return "\n".join(lines)


def _say(verdict: Verdict) -> None:
    began = "missed" if verdict.why else "right"
    print(f"{began:7} {verdict.case.name:60} {verdict.seconds:5.1f} s  {verdict.why[:150]}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.vendors", description=bench.vendors.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", nargs="+", default=[], metavar="VENDOR", help="these vendors, kinds or cases")
    parser.add_argument(
        "--split", choices=["tune", "kept", "all"], default="all", help="half of the cases of each kind"
    )
    parser.add_argument("--short", action="store_true", help="a handful of cases")
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument("--table", action="store_true", help="print the table of docs/models.md")
    given = parser.parse_args(arguments)
    cases = chosen(given.only, split=given.split, short=given.short)
    if given.table or given.list:
        print(table() if given.table else "\n".join(f"{SPLIT[one.name]} {one.name}" for one in cases))
        return 0
    began = time.monotonic()
    try:
        ended = asyncio.run(verdicts(cases, (lambda verdict: None) if given.json else _say))
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return 2
    told = document(ended, time.monotonic() - began)
    if given.json:
        print(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        print(f"{told['cases']} cases of {told['kinds']} kinds: {told['missed']} missed; {told['seconds']:.0f} s, load "
              f"{told['load']}")  # fmt: skip
    return 1 if told["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
