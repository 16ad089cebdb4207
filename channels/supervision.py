"""Keeps a channel running: whatever ends its run short of a shutdown, it is started again after a wait.

Invariants: only cancellation, or a run that returns by itself, ends the supervision; nothing a channel does wrong
reaches another channel or the process; waits grow, and grow anew after a run that went well for a while.
"""

from __future__ import annotations

import asyncio
import random as dice
import time
from collections.abc import Awaitable, Callable, Coroutine

import structlog

from channels.base import Channel, ChannelError, ChannelRefused, Host

log = structlog.get_logger(__name__)

#: A run of this many seconds was a good one: the next failure is a new one.
_GOOD_RUN = 300.0
#: Crashes over one update after which it is left out.
_MOST_CRASHES = 3


class Backoff:
    """Waits that double from `first` to `most` seconds, each up to a quarter shorter by chance.

    Shorter only, so that `most` is a promise; by chance, so that several processes don't come back in step.
    """

    def __init__(self, first: float, most: float, random: Callable[[], float]) -> None:
        """`random` gives numbers in [0, 1)."""
        self._first = first
        self._most = most
        self._random = random
        self._next = first

    def wait(self) -> float:
        """How many seconds to wait now."""
        now, self._next = self._next, min(self._next * 2, self._most)
        return now * (1 - self._random() / 4)

    def reset(self) -> None:
        """All is well again: start from `first`."""
        self._next = self._first


class Endurance:
    """Lets a channel get over an update that a bug keeps it from handling, which would else come again for ever."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._crashes: dict[str, int] = {}

    async def endure(self, key: str, work: Coroutine[None, None, None]) -> None:
        """Do `work` on the update `key`. A crash is raised, and after `_MOST_CRASHES` of one update logged instead.

        `ChannelError` always passes: it tells of the platform or the gateway, not of the update.
        """
        try:
            await work
        except ChannelError:
            raise
        # The boundary of this module, at its smallest: one update that nobody can handle must not silence the rest.
        except Exception:
            self._crashes[key] = self._crashes.get(key, 0) + 1
            if self._crashes[key] < _MOST_CRASHES:
                raise
            log.exception("channel.update_skipped", channel=self._channel, update=key)
        self._crashes.pop(key, None)


async def supervise(
    channel: Channel,
    host: Host,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    random: Callable[[], float] = dice.random,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run `channel` until it returns by itself (the terminal was closed) or this task is cancelled.

    A failed run is repeated after 1 s, doubling to 60 s; after `ChannelRefused`, which only the operator can mend,
    after 60 s, doubling to 5 min. `clock` gives seconds that never run backwards.
    """
    failing = Backoff(1, 60, random)
    refused = Backoff(60, 300, random)
    while True:
        started = clock()
        try:
            await channel.run(host)
            return
        except ChannelError as exc:
            error: Exception = exc
            log.error("channel.failed", channel=channel.id, code=exc.code, error=str(exc))
        # A boundary: one channel's bug must not stop the others.
        except Exception as exc:
            error = exc
            log.exception("channel.crashed", channel=channel.id)
        if clock() - started >= _GOOD_RUN:
            failing.reset()
            refused.reset()
        seconds = (refused if isinstance(error, ChannelRefused) else failing).wait()
        log.info("channel.again", channel=channel.id, seconds=round(seconds, 1))
        await sleep(seconds)
