"""Runs a reader of strangers' files in a process of its own, and gives it one file.

Invariants: the process ends with its answer, at the latest after `seconds`; it gets no key of ours and no file of ours
(`memory/child.py`); any failure is returned as None.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

import structlog

from memory import child

log = structlog.get_logger(__name__)

#: Seconds after which a file is given up; the process that reads it stops by itself at half of that if it can.
SECONDS: Final = 20.0


async def read_apart(command: Sequence[str], data: bytes, *, seconds: float = SECONDS) -> dict[str, Any] | None:
    """Returns a command's answer to `data`, as JSON. None if it can't be started, fails or takes too long."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=child.environment(),
            start_new_session=True,  # Ctrl-C at the terminal is for the chat alone
        )
    except OSError as error:
        log.warning("attachment.no_process", error=str(error))
        return None
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate(data)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        return None
    told: dict[str, Any] = json.loads(said)
    return told
