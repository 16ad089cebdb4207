"""A platform as a process: prints its address when it listens, and serves until it is ended."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, get_args

from tests.platforms.breaking import Effect


def main(
    name: str, listening: Callable[..., AbstractAsyncContextManager[str]], *, token: str, model_ms: float | None
) -> None:
    """Serve the platform in `tests.platforms.NAME`; without `model_ms` its chat model has to be asked for."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.platforms.{name}", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--token", action="append", help="a bot; can be given more than once")
    parser.add_argument("--latency-ms", type=float, default=0, help="round trip of every request")
    parser.add_argument("--effect", choices=get_args(Effect), default="arrival", help="when a send takes effect")
    parser.add_argument("--model-ms", type=float, default=model_ms, help="serve a chat model, which takes so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first update ids and of mixed effects")
    asyncio.run(_serve(listening, token, parser.parse_args()))


async def _serve(listening: Callable[..., AbstractAsyncContextManager[str]], token: str, asked: Any) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, ended.set)
    async with listening(
        asked.token or (token,),
        port=asked.port,
        latency_ms=asked.latency_ms,
        effect=asked.effect,
        model_ms=asked.model_ms,
        seed=asked.seed,
    ) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await ended.wait()
