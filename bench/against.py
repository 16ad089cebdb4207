"""Compares the speed of this working tree with that of another revision, in turns on one machine.

    python -m bench.against REV [--what "turn recall"] [--pairs 5]
    make bench-against REV=v0.1.0 WHAT="turn --mode classic recall" PAIRS=3

REV, or the last tag before this commit, is checked out into a temporary git worktree, which is removed at the end, also
after Ctrl-C. Both revisions run in this Python environment, each time in a fresh process: REV, this tree, REV, and so
on. `--what` names measures, each perhaps with options of its own:

    turn        bench.turn: a message through the whole bot
    recall      bench.scale: a search among 10,000 rows
    start       bench.footprint: `remora chat` until its prompt
    footprint   bench.footprint --serve --models: `remora serve` until its health is green, with both models
    help        `remora --help`

The bench code of this tree drives both products, so that both do the same. Where it doesn't fit the older product, each
revision runs its own bench code, and the output says so. Figures of processor time come first; of a figure that
is measured both ways, the one by the clock is left out. A ratio is the median of the ratios of the pairs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench.revisions import checked_out, copied, git, revision_of

Figures: TypeAlias = Mapping[str, float]


class Unmeasured(Exception):
    """A run failed; the text is the last thing that it said."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A module and its arguments. With the `short` arguments in addition, one run shows whether it works at all."""

    module: str
    arguments: str
    short: str = ""


MEASURES: Final[Mapping[str, Measure]] = {
    "turn": Measure("bench.turn", "--json --mode hybrid --sessions 100 --turns 300", short="--sessions 2 --turns 10"),
    "recall": Measure("bench.scale", "--json --sizes 10000x100", short="--sizes 1000x10 --searches 10"),
    "start": Measure("bench.footprint", "--json --runs 1"),
    "footprint": Measure("bench.footprint", "--json --runs 1 --serve --models"),
    "help": Measure("gateway", "--help"),
}
#: The folders that measure, as against those that are measured.
_BENCH: Final = ("bench", "tests")
#: A name that ends in a unit is that of a figure; others say how it was measured.
_FIGURE: Final = re.compile(r"_(ms|mb|seconds|per_second)(_|$)")
#: A load above the first at the start, or more cores at other work during a run than the second, make figures by the
#: clock doubtful. Later loads are those of the runs themselves, too.
_QUIET_LOAD, _QUIET_CORES = 1.0, 0.5
#: The name under which a run's figures tell how many cores were at other work meanwhile.
_OTHER_WORK: Final = "cores at other work"
_PATIENCE_SECONDS: Final = 3_600.0
#: Seconds in which an interrupted run may stop what it has started.
_STOP_SECONDS: Final = 20.0


def wanted(text: str) -> dict[str, Measure]:
    """Returns the measures that a text names, with the options that follow each name."""
    measures: dict[str, Measure] = {}
    for word in shlex.split(text):
        if word in MEASURES:
            measures[word] = MEASURES[word]
        elif measures:
            name, measure = measures.popitem()
            measures[name] = replace(measure, arguments=f"{measure.arguments} {shlex.quote(word)}")
        else:
            raise argparse.ArgumentTypeError(f"{word} is no measure; known are {', '.join(MEASURES)}")
    return measures


def run(root: Path, measure: Measure, *, short: bool = False) -> Figures:
    """Returns the figures of one run in a process of its own. Raises `Unmeasured`."""
    arguments = shlex.split(f"{measure.arguments} {measure.short if short else ''}")
    began, own, all_work = time.monotonic(), _children_seconds(), _machine_seconds()
    process = subprocess.Popen(
        [sys.executable, "-m", measure.module, *arguments],
        cwd=root,
        # What a run leaves in its temporary folder goes with the trees.
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "", "TMPDIR": str(root.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that what it starts can be ended with it
    )
    try:
        output, errors = process.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        output, errors = "", f"no result within {_PATIENCE_SECONDS:g} s"
    finally:
        if process.returncode is None:
            _end(process)
    if process.returncode:
        raise Unmeasured((errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1])
    own, all_work = _children_seconds() - own, _machine_seconds() - all_work
    other_work = {_OTHER_WORK: max(all_work - own, 0.0) / (time.monotonic() - began)}
    objects = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not objects:
        return {"processor_seconds": own, **other_work}
    several = {f"{each.get('rows')} rows": each for each in objects}
    return {**_flat(several if len(several) > 1 else objects[0]), **other_work}


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _machine_seconds() -> float:
    """Returns the processor time that all programs of this machine have taken; 0 where /proc does not tell."""
    with suppress(OSError):
        user, nice, system, _idle, _waiting, *others = Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:9]
        return sum(map(int, (user, nice, system, *others))) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupts a run and what it has started, as Ctrl-C would; ends both if that takes too long."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, float]:
    figures = {before + name: value for name, value in values.items() if _FIGURE.search(name)}
    for name, value in values.items():
        if isinstance(value, Mapping):
            figures |= _flat(value, before if name in ("sqlite", "process") else f"{before}{name} ")
    return figures


def prepare(here: Path, there: Path, measure: Measure) -> str:
    """Finds the bench code that measures both, and tries it. Returns whose it is, in words. Raises `Unmeasured`."""
    for name in _BENCH:
        shutil.rmtree(there / name, ignore_errors=True)
        shutil.copytree(here / name, there / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    try:
        run(there, measure, short=True)
        return "this tree's bench code measures both"
    except Unmeasured as fault:
        misfit = f"this tree's bench code does not fit that revision ({fault})"
    for name in _BENCH:
        shutil.rmtree(there / name, ignore_errors=True)
    git(there, "checkout", "--quiet", "HEAD", "--", ".")
    if not list(there.glob(f"{measure.module.replace('.', '/')}*")):
        raise Unmeasured(f"{misfit}, which has no {measure.module}")
    try:
        run(there, measure, short=True)
    except Unmeasured as fault:
        raise Unmeasured(f"{misfit}, nor does its own run there ({fault})") from None
    return f"{misfit}: each is measured by its own, which may do something else"


def pairs(here: Path, there: Path, measure: Measure, count: int) -> Iterator[tuple[Figures, Figures, float]]:
    """Yields the figures of the other revision, those of this tree, and the higher load before the two runs."""
    for number in range(1, count + 1):
        figures, loads = [], []
        for label, root in (("the other", there), ("this tree", here)):
            loads.append(os.getloadavg()[0])
            print(f"  pair {number} of {count}, {label}, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
            figures.append(run(root, measure))
        yield figures[0], figures[1], max(loads)


def table(revision: str, compared: Sequence[tuple[Figures, Figures, float]]) -> Iterator[str]:
    """Yields lines with the medians and the ratio of each figure that both have."""
    names = [
        name
        for name in compared[0][0]
        if all(name in other and name in own and other[name] + own[name] for other, own, _ in compared)
    ]
    clock = [name for name in names if re.search(r"_(ms|seconds|per_second)", name) and "processor" not in name]
    doubled = {name.replace("processor_", "") for name in names if "processor" in name}
    width = max(map(len, names), default=0)
    yield f"{'':{width + 2}}{revision[:12]:>12}{'this tree':>12}  ratio (lowest to highest of the pairs)"
    for name in [name for name in names if name not in clock] + [name for name in clock if name not in doubled]:
        others, owns = [other[name] for other, _, _ in compared], [own[name] for _, own, _ in compared]
        ratios = [own / (other or math.nan) for own, other in zip(owns, others, strict=True)]
        line = f"  {name:{width}}{statistics.median(others):12.2f}{statistics.median(owns):12.2f}"
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        yield f"{line}  {spread}{'  by the clock' if name in clock else ''}"
    loads = [load for *_, load in compared]
    yield f"load before the runs: {min(loads):.1f} to {max(loads):.1f}"
    other_work = max(figures[_OTHER_WORK] for *both, _ in compared for figures in both)
    if loads[0] > _QUIET_LOAD or other_work > _QUIET_CORES:
        yield f"WARNING: up to {other_work:.1f} cores were at other work, so figures by the clock mean little here"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "revision", nargs="?", help="a commit, branch or tag; by default the last tag before this commit"
    )
    parser.add_argument("--what", type=wanted, default="turn", help="measures and their options, such as 'turn recall'")
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    here, revision = revision_of(asked.revision)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have both ignored
        signal.signal(number, signal.default_int_handler)
    measured = 0
    try:
        with checked_out(here, revision) as there:
            here = copied(here, there.parent / "here")
            for measure in asked.what.values():
                print(f"python -m {measure.module} {measure.arguments}", flush=True)
                try:
                    run(here, measure, short=True)  # so that all is compiled, as it will be there
                    print(f"  {prepare(here, there, measure)}", flush=True)
                    compared = list(pairs(here, there, measure, asked.pairs))
                except Unmeasured as fault:
                    print(f"  not measured: {fault}", flush=True)
                    continue
                measured += 1
                print("\n".join(table(revision, compared)), flush=True)
    except KeyboardInterrupt:
        return 130
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
