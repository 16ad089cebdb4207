"""A process of its own that holds a session in which it shows something, and writes once for each line it is given.

    python -m tests.kit.neighbour URL PATH

It prints "ready", and for each line "written", or "taken for dead" if the others have removed it.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from memory.errors import TakenForDead
from memory.store.database import Transaction

#: The session that it holds.
PLACE = "telegram:1:-"


def receive(tx: Transaction) -> None:
    tx.run(
        "insert into inbox (platform, bot_id, update_key, session_key, payload, state, received_at, held)"
        " values ('p', 'b', '1', 'telegram:1:-', '{}', 'pending', 1, 0)"
    )


def show(tx: Transaction) -> None:
    tx.run(
        "insert into outbox (session_key, kind, chunk, text, state, run, created_at)"
        " values ('telegram:1:-', 'message', 0, 'x', 'sending', 'r', 1)"
    )


@asynccontextmanager
async def neighbour(url: str, path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.kit.neighbour", url, str(path), stdin=PIPE, stdout=PIPE
    )
    try:
        assert running.stdout is not None
        assert await running.stdout.readline() == b"ready\n"
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def _main(url: str, path: Path) -> None:
    from memory.store.postgres.database import PostgresDatabase

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    database = await PostgresDatabase.open(url, path, now=1)
    await database.share.hold(PLACE)
    await database.write(show)
    _say("ready")
    while await asyncio.to_thread(sys.stdin.readline):
        try:
            await database.write(receive)
            _say("written")
        except TakenForDead:
            _say("taken for dead" if database.share.lost.is_set() else "not told")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2])))
