"""Attacks a bot by every scenario, or by those that are named, and tells how often it gave in.

    python -m tests.attack [--target CHECKOUT] [--python PYTHON] [--only NAME ...] [--short] [--json]

`--target` is the folder of another checkout whose code is attacked, `--python` what it runs on. Exit code 1 when
anything was breached, 2 when a scenario broke off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.attack import answers, crowd, disk, echo, fences, files, guests, idle, machine, native, restore  # noqa: F401 - they enter their scenarios
from tests.attack.frame import ROOT, SCENARIOS, Attack


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.partition("\n")[0])
    parser.add_argument("--target", type=Path, default=ROOT, help="the checkout that is attacked")
    parser.add_argument("--python", default=sys.executable, help="what its code runs on")
    parser.add_argument("--only", nargs="+", choices=sorted(SCENARIOS), help="these scenarios")
    parser.add_argument("--short", action="store_true", help="some two minutes of it")
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    asked = parser.parse_args(arguments)
    attacks = [Attack(name, asked.target.resolve(), asked.python, asked.short) for name in asked.only or SCENARIOS]
    broken = asyncio.run(_all(attacks, at_once=2))
    if asked.json:
        _say(json.dumps({one.name: {"tried": one.tried, "breached": one.breached} for one in attacks}))
    return 2 if broken else int(any(one.breached for one in attacks))


async def _all(attacks: Sequence[Attack], *, at_once: int) -> bool:
    """Try all, so many at a time; whether any broke off."""
    slots = asyncio.Semaphore(at_once)

    async def one(attack: Attack) -> bool:
        async with slots:
            began = time.monotonic()
            broken = False
            try:
                await SCENARIOS[attack.name](attack)
            except Exception:  # noqa: BLE001 - the others are still to be tried
                traceback.print_exc()
                broken = True
            first = f"  {attack.details[0][:300]}" if attack.details else ""
            counted = f"tried {attack.tried:5}  breached {attack.breached:5}  {time.monotonic() - began:5.0f} s"
            _say(f"{attack.name:12} {counted}{first}")
            return broken

    return any(await asyncio.gather(*map(one, attacks)))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
