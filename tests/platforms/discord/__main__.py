"""The platform as a process: prints its address when it listens, and serves until it is ended."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import Any, get_args

from tests.platforms.discord.client import TOKEN
from tests.platforms.discord.server import Effect, listening


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.platforms.discord", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--token", action="append", help="a bot; can be given more than once")
    parser.add_argument("--latency-ms", type=float, default=0, help="round trip of every request")
    parser.add_argument("--effect", choices=get_args(Effect), default="arrival", help="when a send takes effect")
    parser.add_argument("--model-ms", type=float, help="serve a chat model too, which takes so long")
    parser.add_argument("--seed", type=int, default=1, help="of mixed effects")
    asyncio.run(_serve(parser.parse_args()))


async def _serve(asked: Any) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, ended.set)
    async with listening(
        asked.token or (TOKEN,),
        port=asked.port,
        latency_ms=asked.latency_ms,
        effect=asked.effect,
        model_ms=asked.model_ms,
        seed=asked.seed,
    ) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    main()
