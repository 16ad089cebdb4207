"""One patience for all tests: they wait for an event, however slow the machine is, and never for seconds of their own.

The limit only ends a test that hangs, so it is long and the same for all of them.
"""

from __future__ import annotations

import asyncio
import linecache
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from types import CodeType
from typing import Any, NoReturn, TypeVar, overload

from tests.kit import stalls

#: Seconds after which a test is taken to hang.
SECONDS = 120.0
#: Seconds between two looks.
_PAUSE = 0.01

T = TypeVar("T")


def limit() -> asyncio.Timeout:
    """Bounds a block which awaits its events itself."""
    return asyncio.timeout(SECONDS)


@overload
async def until(event: Callable[[], Awaitable[T | None]]) -> T: ...
@overload
async def until(event: Callable[[], T | None]) -> T: ...
async def until(event: Callable[[], Any]) -> Any:
    """Looks until `event` gives something true, and returns that. `event` may be a coroutine function.

    Raises `AssertionError` with what was awaited and what the last look gave.
    """
    last = None
    try:
        async with limit() as bound:
            while not (last := await _seen(event)):
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        if not bound.expired():
            raise
        raise AssertionError(_in_vain(event, last)) from None
    return last


def wait_until(event: Callable[[], T | None]) -> T:
    """Does the same as `until` in a test without an event loop."""
    end = time.monotonic() + SECONDS
    while not (last := event()):
        if time.monotonic() > end:
            raise AssertionError(_in_vain(event, last))
        time.sleep(_PAUSE)
    return last


async def _seen(event: Callable[[], Any]) -> Any:
    value = event()
    return await value if isawaitable(value) else value


def _in_vain(event: Callable[[], Any], last: object) -> str:
    code = getattr(event, "__code__", None)
    if not isinstance(code, CodeType):
        return f"waited {SECONDS:g} s in vain for {event!r}; the last look gave {last!r}"
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    place = f"{code.co_filename}:{code.co_firstlineno}"
    return f"waited {SECONDS:g} s in vain for `{line}` ({place}); the last look gave {last!r}"


def leap(seconds: float) -> None:
    """Moves the clock of the running event loop on, so that each limit which ends before then is over."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, stalls.TestLoop)
    loop.leapt += seconds


async def settle() -> None:
    """Lets the running event loop take a hundred rounds, so that all that needs nothing but the loop has gone on.

    What is sent over loopback has been read by then. What a thread or another process does may not be done.
    """
    for _ in range(100):
        await asyncio.sleep(0)


async def hang() -> NoReturn:
    """Hangs for ever, and has the time pass in which somebody waits: whoever has a limit of `SECONDS` gives up.

    For a server in the loop of its client: it calls this where it does not answer.
    """
    await settle()
    leap(SECONDS)
    await asyncio.Event().wait()
    raise AssertionError


async def hasten(work: Awaitable[T]) -> T:
    """Returns what `work` gives, and has the time pass that it waits for in the running event loop.

    Raises `AssertionError` if it waits for something else.
    """
    task = asyncio.ensure_future(work)
    for _ in range(100):
        await settle()
        if task.done():
            return await task
        leap(SECONDS)
    task.cancel()
    raise AssertionError(f"{work!r} is not over, although {100 * SECONDS:g} s passed on the clock of the loop")
