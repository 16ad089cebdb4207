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
from bench.vendors.play import Case, Run
from bench.vendors.table import DATE, VENDORS
from bench.vendors.world import played

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


async def _report(cases: Sequence[Case], *, quiet: bool) -> dict[str, Any]:
    """Plays the cases; returns all verdicts as one document, with counts by kind, by vendor and by split."""
    began, ended = time.monotonic(), list[Run]()
    with tempfile.TemporaryDirectory(prefix="vendors-") as folder:
        async for run in played(cases, Path(folder)):
            ended.append(run)
            if not quiet:
                result = "missed" if run.why else "right"
                print(f"{result:7} {run.case.name:60} {run.seconds:5.1f} s  {run.why[:150]}", flush=True)

    def counts(groups: Callable[[Case], Sequence[str]]) -> dict[str, dict[str, int]]:
        total = Counter(group for run in ended for group in groups(run.case))
        missed = Counter(group for run in ended if run.why for group in groups(run.case))
        return {group: {"cases": total[group], "missed": missed[group]} for group in sorted(total)}

    return {
        "cases": len(ended), "missed": sum(bool(run.why) for run in ended),
        "kinds": len({run.case.kind for run in ended}), "seconds": round(time.monotonic() - began, 1),
        "load": round(os.getloadavg()[0], 1), "looked_up": DATE,
        "by_split": counts(lambda case: [SPLIT[case.name]]), "by_kind": counts(lambda case: [case.kind]),
        "by_vendor": counts(lambda case: case.vendors),
        "played": [_row(run) for run in sorted(ended, key=lambda run: run.case.name)],
    }  # fmt: skip


def _row(run: Run) -> dict[str, Any]:
    case, why = run.case, run.why
    return {
        "name": case.name, "kind": case.kind, "vendors": list(case.vendors), "split": SPLIT[case.name],
        "verdict": "missed" if why else "right", "why": why, "seconds": round(run.seconds, 1),
        **({"read": run.text[:400], "refusals": run.refusals[-4:]} if why else {}),
    }  # fmt: skip


def table() -> str:
    """Returns the table of docs/models.md: what was played, and from which pages."""
    lines = ["| server | model | cases | pages and reports |", "|---|---|--:|---|"]
    for vendor in VENDORS.values():
        count = sum(vendor.name in one.vendors for one in CASES)
        lines.append(f"| {vendor.name} | `{vendor.model}` | {count} | {vendor.pages} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.vendors", description=bench.vendors.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", default=[], metavar="VENDOR", help="these vendors, kinds or cases")
    parser.add_argument("--split", choices=["tune", "kept", "all"], default="all", help="half of the cases of a kind")
    for name, text in (
        ("json", "print one JSON document"), ("short", "a handful of cases"), ("list", "name the cases"),
        ("table", "print the table of docs/models.md"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", action="store_true", help=text)
    given = parser.parse_args(arguments)
    cases = chosen(given.only, split=given.split, short=given.short)
    if given.table or given.list:
        print(table() if given.table else "\n".join(f"{SPLIT[case.name]} {case.name}" for case in cases))
        return 0
    try:
        report = asyncio.run(_report(cases, quiet=given.json))
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        print("{cases} cases of {kinds} kinds: {missed} missed; {seconds:.0f} s, load {load}".format(**report))
    return 1 if report["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
