"""Keeps a channel running: unless the program shuts down, a run that has ended is started again after a wait.

Invariants: only cancellation, or a run that returns by itself, ends the supervision. A channel's errors never reach
another channel or the process. Waits grow, and start over after a run that went well for a while.
"""

from __future__ import annotations

import asyncio
import random as dice
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass

import structlog

from channels.base import Channel, ChannelError, ChannelRefused, Host

log = structlog.get_logger(__name__)

#: Seconds after which a run counts as good, so that the next failure is a new one.
_GOOD_RUN = 300.0
#: Crashes over one update after which it is skipped.
_MOST_CRASHES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A channel's waiting times: for the answer to a request, for updates, and between tries.

    `poll_seconds` is how long a polled platform may wait for an update before it answers that there is none. `random`
    returns numbers in [0, 1).
    """

    request_seconds: float = 30
    poll_seconds: float = 30
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = dice.random


class Backoff:
    """Waits that double from `first` to `most` seconds, each shortened at random by up to a quarter.

    Waits are only shortened, so that `most` is guaranteed. They are random, so that several processes don't come back
    in step.
    """

    def __init__(self, first: float, most: float, random: Callable[[], float]) -> None:
        """Takes bounds in seconds, and `random`, which returns numbers in [0, 1)."""
        self._first = first
        self._most = most
        self._random = random
        self._next = first

    def wait(self) -> float:
        now, self._next = self._next, min(self._next * 2, self._most)
        return now * (1 - self._random() / 4)

    def reset(self) -> None:
        self._next = self._first


class UnreadUpdates:
    """Counts a channel's updates of which something can't be read. People are told of it once per hour and chat."""

    def __init__(self, channel: str, now: Callable[[], int]) -> None:
        """Takes the clock `now` in milliseconds UTC."""
        self._channel = channel
        self._now = now
        self._told: dict[str, int] = {}
        self.count = 0

    def note(self, update: str, why: str) -> None:
        """Counts an update and logs why, which must not hold people's words."""
        self.count += 1
        log.error("channel.unread", channel=self._channel, update=update, error=why)

    def may_tell(self, chat: str) -> bool:
        """Returns whether the chat may be told now, which is then noted."""
        now = self._now()
        self._told = {known: at for known, at in self._told.items() if 0 <= now - at < 3_600_000}
        return chat not in self._told and self._told.setdefault(chat, now) == now


class Endurance:
    """Lets a channel skip an update that a bug keeps it from handling, and that would otherwise come again for ever."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._crashes: dict[str, int] = {}

    async def endure(self, key: str, work: Coroutine[None, None, None]) -> None:
        """Does `work` on the update `key`. Raises a crash; after `_MOST_CRASHES` over one update, logs it instead.

        `ChannelError` always passes through, because it concerns the platform or the gateway, not the update.
        """
        try:
            await work
        except ChannelError:
            raise
        # This module's narrowest boundary: one update that can't be handled must not block the others.
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
    """Runs `channel` until it returns by itself (the terminal was closed) or this task is cancelled.

    A failed run is repeated after 1 s, doubling to 60 s. After `ChannelRefused`, which only the operator can resolve,
    it is repeated after 60 s, doubling to 5 min. `clock` returns seconds that never run backwards.
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
            log.error("channel.failed", channel=channel.id, code=exc.code, error=exc.reason)
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
