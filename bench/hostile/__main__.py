"""The command: tries the inputs one after the other and tells what each did.

    python -m bench.hostile [--json] [--only NAME ...] [--short] [--list]

`--only` takes a way in or the name of an input. `--json` prints one JSON document with every figure and a verdict for
each input. Exit code 1 when an aim is missed, 2 when the bot could not be started.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import bench.hostile
from bench.hostile import foreign, imports, page, people, programs, wires  # noqa: F401 - they enter their inputs
from bench.hostile.inputs import INPUTS, Input
from bench.hostile.world import PUBLIC, World, load, world

#: The aims: seconds that `/readyz` may wait, megabytes by which the process may grow, and seconds until another
#: person's message is answered.
READYZ_SECONDS, GROWN_MB, OTHER_SECONDS = 0.25, 64.0, 15.0
#: Seconds that an input may take, and that are measured after it: what it set off in the background counts, too.
_MOST, _AFTER = 40.0, 1.0
#: Lines of the log that tell of something that ended by an error.
_BROKEN: Final = re.compile(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?:crashed|broken|ended)\b|Traceback \(most recent call last\)")
#: Seconds of waiting after which the next input gets another bot.
_HURT_SECONDS: Final = 2.0
#: Set in the process that runs in a network of its own.
_INSIDE: Final = "REMORA_BENCH_INSIDE"


@dataclass(slots=True, kw_only=True)
class Tried:
    """An input and its figures."""

    input: Input
    figures: dict[str, float]
    statuses: dict[int, int]
    broken: list[str]
    other_seconds: float | None
    seconds: float
    load: float
    died: bool = False
    notes: list[str] = field(default_factory=list)

    def missed(self) -> list[str]:
        """Returns the aims that this input missed."""
        crashes = sum(count for status, count in self.statuses.items() if status >= 500 and status != 503)
        checks = {
            "readyz": self.figures.get("readyz_seconds", 0) > READYZ_SECONDS,
            "memory": self.figures.get("grown_mb", 0) > GROWN_MB,
            "5xx": crashes > 0,
            "log": bool(self.broken),
            "others": self.other_seconds is None or self.other_seconds > OTHER_SECONDS,
            "died": self.died,
        }
        return [name for name, is_missed in checks.items() if is_missed]

    def hurt(self) -> bool:
        """Returns whether the bot may still suffer from it."""
        waited = self.figures.get("readyz_seconds", 0) > _HURT_SECONDS
        return waited or bool({"memory", "died", "others"} & set(self.missed()))

    def told(self) -> dict[str, Any]:
        missed = self.missed()
        return {
            "way": self.input.way, "name": self.input.name, "verdict": "missed" if missed else "held", "missed": missed,
            **self.figures, "other_seconds": self.other_seconds and round(self.other_seconds, 2),
            "statuses": self.statuses, "broken": self.broken, "seconds": round(self.seconds, 1),
            "load": round(self.load, 2), "died": self.died, "notes": self.notes,
        }  # fmt: skip

    def line(self) -> str:
        other = "none" if self.other_seconds is None else f"{self.other_seconds:5.1f}"
        told = " ".join(dict.fromkeys([*self.missed(), *self.broken[:1], *self.notes[:1]]))
        return (
            f"{self.input.way:16} {self.input.name[:56]:56} {self.figures.get('readyz_seconds', 0):7.2f} s "
            f"{self.figures.get('grown_mb', 0):8.1f} MB {other:>6} s  {told[:100]}"
        )


async def attempt(bot: World, hostile: Input) -> Tried:
    """Tries one input while somebody else asks something."""
    bot.statuses.clear()
    bot.notes.clear()
    bot.own_figures.clear()
    bot.news()
    began, process = time.monotonic(), bot.process
    assert process is not None
    await bot.watch()

    async def throw() -> None:
        try:
            async with asyncio.timeout(_MOST):
                await hostile.deed(bot)
        # A boundary: an attacker who is refused in a way of the attacked is still measured.
        except Exception as error:  # noqa: BLE001
            bot.notes.append(f"the attacker met {type(error).__name__}: {error}"[:200])

    async def ask() -> float | None:
        await asyncio.sleep(0.3)
        return await bot.ping()

    _, other = await asyncio.gather(throw(), ask())
    await asyncio.sleep(_AFTER)
    figures = {**await bot.measured(), **bot.own_figures}
    statuses = {status: bot.statuses.count(status) for status in sorted(set(bot.statuses))}
    return Tried(
        input=hostile, figures=figures, statuses=statuses, broken=sorted(set(_BROKEN.findall(bot.news()))),
        other_seconds=other, seconds=time.monotonic() - began, load=load(), died=process.returncode is not None,
        notes=list(bot.notes),
    )  # fmt: skip


async def all_of(inputs: Sequence[Input], *, say: bool) -> list[Tried]:
    """Tries the inputs; a bot that one has hurt is started anew before the next, so that each is measured alone."""
    tried = []
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        async with world(Path(folder)) as bot:
            for hostile in inputs:
                if hostile.needs_web and not bot.has_web:
                    continue
                if hostile.fresh:
                    await bot.restart()
                tried.append(await attempt(bot, hostile))
                if hostile is not inputs[-1] and tried[-1].hurt() and await bot.restart():
                    tried[-1].notes.insert(0, "with its data the bot did not come up again")
                    tried[-1].died = True
                if say:
                    print(tried[-1].line(), flush=True)
    return tried


def document(tried: Sequence[Tried], asked: Sequence[Input]) -> dict[str, Any]:
    """Returns all figures as one JSON document."""
    names = {(one.input.way, one.input.name) for one in tried}
    return {
        "aims": {"readyz_seconds": READYZ_SECONDS, "grown_mb": GROWN_MB, "other_seconds": OTHER_SECONDS},
        "machine": {"processors": os.cpu_count(), "python": platform.python_version(), "load": round(load(), 2)},
        "inputs": len(tried),
        "ways": len({one.input.way for one in tried}),
        "missed": sum(bool(one.missed()) for one in tried),
        "longest_readyz_seconds": max((one.figures.get("readyz_seconds", 0) for one in tried), default=0),
        "most_grown_mb": max((one.figures.get("grown_mb", 0) for one in tried), default=0),
        "not_tried": [f"{one.way}: {one.name}" for one in asked if (one.way, one.name) not in names],
        "tried": [one.told() for one in tried],
    }


def chosen(only: Sequence[str], *, short: bool) -> list[Input]:
    """Returns the inputs of these ways or names; all without any. Raises `SystemExit` for a name that is none."""
    known = {name for one in INPUTS for name in (one.way, one.name)}
    if unknown := sorted(set(only) - known):
        raise SystemExit(f"there is no input {unknown[0]!r}; --list names all")
    return [one for one in INPUTS if (not only or one.way in only or one.name in only) and (one.short or not short)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.hostile",
        description=bench.hostile.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these ways in, or these inputs")
    parser.add_argument("--short", action="store_true", help="a handful of inputs")
    parser.add_argument("--list", action="store_true", help="name the inputs")
    given = parser.parse_args(arguments)
    inputs = chosen(given.only, short=given.short)
    if given.list:
        print("\n".join(f"{one.way:16} {one.name}" for one in inputs))
        return 0
    try:
        tried = asyncio.run(all_of(inputs, say=not given.json))
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return 2
    told = document(tried, inputs)
    if given.json:
        print(json.dumps(told, indent=1))
    else:
        print(f"{told['inputs']} inputs by {told['ways']} ways in: {told['missed']} missed an aim; "
              f"longest wait {told['longest_readyz_seconds']:.2f} s, most memory {told['most_grown_mb']:.0f} MB; "
              f"load {told['machine']['load']}")  # fmt: skip
        if told["not_tried"]:
            print(f"not tried, without a network of its own: {len(told['not_tried'])} inputs")
    return 1 if told["missed"] else 0


def into_a_network_of_its_own() -> None:
    """Starts this program once more in a network of its own, in which the web server has a public address.

    Without the right to that, the bench goes on here, and names the inputs that it leaves out.
    """
    unshare = shutil.which("unshare")
    if os.environ.get(_INSIDE) or unshare is None or shutil.which("ip") is None:
        return
    ready = f"ip link set lo up && ip addr add {PUBLIC}/32 dev lo"
    command = [unshare, "--net", *([] if os.getuid() == 0 else ["--map-root-user"]), "sh", "-c"]
    with suppress(OSError):
        if os.spawnv(os.P_WAIT, unshare, [*command, f"{{ {ready}; }} 2>/dev/null"]) == 0:
            os.environ[_INSIDE] = "1"
            again = f'{ready} && exec "$@"'
            os.execv(unshare, [*command, again, "sh", sys.executable, "-m", "bench.hostile", *sys.argv[1:]])


if __name__ == "__main__":
    into_a_network_of_its_own()
    sys.exit(main())
