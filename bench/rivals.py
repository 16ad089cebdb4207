"""Two processes poll with one token: how long until health says so, and until it is well again.

Run `python -m bench.rivals [--json] [--seconds N]`. Two Telegram channels, as `remora serve` runs them, poll the tests'
own Bot API server, which ends the older of two polls with 409 as Telegram does. Measured is the time from the rival's
start to trouble in the first one's health, and from the rival's end to health without trouble. Exit 1 when health takes
more than 120 s to turn or 60 s to recover.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import Callable

from channels.supervision import supervise
from channels.telegram import TelegramChannel, Wire
from gateway.ops import telemetry
from tests.kit.hosts import QuietHost
from tests.platforms.telegram import serving

RED, RECOVERY = 120.0, 60.0


async def until(holds: Callable[[], bool], *, most: float) -> float:
    """Seconds until `holds`, looked at ten times a second; `most` when it does not by then."""
    began = time.monotonic()
    while not holds() and time.monotonic() - began < most:  # noqa: ASYNC110 - nobody sets an event
        await asyncio.sleep(0.1)
    return time.monotonic() - began


async def measure(rival_seconds: float) -> dict[str, float]:
    async with serving() as telegram:

        def channel() -> TelegramChannel:
            return TelegramChannel(
                id="telegram", wire=Wire(telegram.token, telegram.url), now=lambda: time.time_ns() // 1_000_000
            )

        ours, theirs = channel(), channel()
        running = asyncio.create_task(supervise(ours, QuietHost(), random=random.random))
        await until(lambda: ours.health().contact is not None or bool(ours.health().trouble), most=30)
        rival = asyncio.create_task(supervise(theirs, QuietHost(), random=random.random))
        red = await until(lambda: bool(ours.health().trouble), most=2 * RED)
        await asyncio.sleep(max(0.0, rival_seconds - red))
        rival.cancel()
        recovered = await until(lambda: not ours.health().trouble, most=2 * RECOVERY)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(running, rival)
    return {"red_seconds": round(red, 1), "rival_seconds": rival_seconds, "recovery_seconds": round(recovered, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON line")
    parser.add_argument("--seconds", type=float, default=90.0, help="how long the rival polls")
    arguments = parser.parse_args()
    telemetry.configure(level="error", format="console", file=None, redact=lambda text: text)
    figures = asyncio.run(measure(arguments.seconds))
    if arguments.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:>18} {value}" for name, value in figures.items()))
    return int(figures["red_seconds"] > RED or figures["recovery_seconds"] > RECOVERY)


if __name__ == "__main__":
    sys.exit(main())
