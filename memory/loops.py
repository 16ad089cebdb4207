"""Keeps endless work going: no bad row, no fault and no full disk ends a loop, and whoever operates the bot is told.

Invariants: a round that raises is repeated after a growing wait; until a round has gone well the loop is in trouble,
which the health page shows. A unit of work (a person, a reminder, a session) that raises is put off with growing waits,
and the others go on. An error of the whole store is no unit's fault, so it fails the round. Errors are logged with
their kind and place: their texts may hold people's words, except those of `StorageError`, which are written for the
operator.
"""

from __future__ import annotations

import asyncio
import random as dice
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from memory.errors import StorageError, meets_everybody

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: Seconds before a loop's next round after a failure, and the longest wait: each is twice as long as the one before.
_FIRST_ROUND: Final = 1.0
_LONGEST_ROUND: Final = 300.0
#: The same for a unit of work. After the longest wait it counts as parked: an operator has to look at it.
_FIRST_UNIT: Final = 30.0
_LONGEST_UNIT: Final = 3_600.0
#: Units that fail, while none works, after which the loop itself is in trouble.
_SEVERAL: Final = 3
#: Units that are remembered. Beyond these the oldest is forgotten and tried again at once.
_UNITS: Final = 10_000
#: Places of an error that are logged.
_FRAMES: Final = 8
_ROOT: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """A unit of work that failed `failures` times in a row. It `is_parked` if only an hourly try is left.

    It failed first at `since` and is tried again at `until`, in milliseconds UTC. `reason` is the kind and place
    of the last error.
    """

    loop: str
    unit: str
    failures: int
    since: int
    until: int
    reason: str

    @property
    def is_parked(self) -> bool:
        return _wait(_FIRST_UNIT, _LONGEST_UNIT, self.failures) == _LONGEST_UNIT


class Loops:
    def __init__(
        self,
        *,
        now: Callable[[], int],
        random: Callable[[], float] = dice.random,
        only_here: Callable[[str], AbstractAsyncContextManager[None]] = lambda work: nullcontext(),
        is_shared: bool = False,
    ) -> None:
        """`now` gives milliseconds UTC; `random` returns numbers in [0, 1).

        `only_here` waits until no other process does some work, and keeps the others from it (`OwnShare`); within
        `by_one` a loop has that without knowing of them. `is_shared` says that they may leave work for these loops.
        """
        self._now = now
        self.by_one, self.is_shared = only_here, is_shared
        self._random = random
        self._troubles: dict[str, str] = {}
        self._put_off: dict[tuple[str, str], PutOff] = {}
        #: When a unit of each loop last worked.
        self._worked: dict[str, int] = {}
        #: Rounds that failed, and units that failed, since the start, by loop.
        self.restarts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    @property
    def troubles(self) -> tuple[str, ...]:
        """A sentence for the operator for each loop whose last round failed, or in which nothing works any more."""
        held = self.put_off()
        barren = [self._barren(loop, held) for loop in sorted({one.loop for one in held} - self._troubles.keys())]
        return (*self._troubles.values(), *filter(None, barren))

    def _barren(self, loop: str, held: list[PutOff]) -> str:
        """Returns a sentence about a loop if units have failed in it and none has worked since; otherwise nothing."""
        own = [one for one in held if one.loop == loop and one.since > self._worked.get(loop, -1)]
        if len(own) < _SEVERAL and not any(one.is_parked for one in own):
            return ""
        return f"in the loop “{loop}” nothing has worked since {len(own)} failed, the last with: {own[-1].reason}."

    def put_off(self, loop: str | None = None) -> list[PutOff]:
        # Nobody has tried these again: their rows are gone, or another process has taken them over.
        for key in [key for key, one in self._put_off.items() if one.until + _LONGEST_UNIT * 1000 < self._now()]:
            del self._put_off[key]
        return [one for one in self._put_off.values() if loop in (None, one.loop)]

    def wait(self, loop: str, unit: object) -> float:
        """Returns the seconds for which a unit is still put off; 0 for one that may be tried."""
        held = self._put_off.get((loop, str(unit)))
        seconds = 0.0 if held is None else (held.until - self._now()) / 1000
        # A clock that was put back must not hold anything up for longer.
        return seconds if 0 < seconds <= _LONGEST_UNIT else 0.0

    def failures_of(self, loop: str, unit: object) -> int:
        held = self._put_off.get((loop, str(unit)))
        return 0 if held is None else held.failures

    async def run(
        self,
        loop: str,
        one_round: Callable[[], Awaitable[float]],
        *,
        effect: str,
        woken: asyncio.Event | None = None,
        around: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Does one round after another. Ends only when it is cancelled.

        A round returns the seconds until the next, which `woken` cuts short: the round has to clear it before it looks
        for work. All rounds happen within `around`, which is entered again after a failure. `effect` tells the operator
        what does not happen meanwhile.
        """
        woken, failures = woken or asyncio.Event(), 0
        while True:
            try:
                async with around():
                    while True:
                        seconds = await one_round()
                        failures = 0
                        if self._troubles.pop(loop, None) is not None:
                            log.warning("loop.recovered", loop=loop)
                        await woken_or(woken, sleep(seconds))
            # The boundary of all loops: nothing that a round meets may end it.
            except (Exception, asyncio.CancelledError) as exc:
                if _is_cancelled(exc):
                    raise
                failures += 1
                wait = self._shortened(_wait(_FIRST_ROUND, _LONGEST_ROUND, failures))
                self.restarts[loop] += 1
                self._troubles[loop] = (
                    f"the loop “{loop}” failed ({reason_of(exc)}). {effect} It is tried again by itself, every "
                    f"{_LONGEST_ROUND / 60:.0f} minutes at least."
                )
                log.error("loop.failed", loop=loop, **_told(exc), failures=failures, again_in=round(wait, 1))
                await sleep(wait)

    async def alone(
        self, loop: str, unit: object, act: Callable[[], Awaitable[T]], *, anyway: bool = False, is_work: bool = True
    ) -> T | None:
        """Does one unit of a loop's work. Returns None if it fails or is still put off after a failure.

        It is tried `anyway`, although put off, if the caller keeps the waiting times itself. One that only looks for
        work is no work itself: that it succeeds does not mean that the loop's work does.
        An error is logged by the unit's name, which must hold none of people's words, and holds up no other unit.
        Raises the `StorageError` of a store that fails for everybody.
        """
        key = loop, str(unit)
        if self.wait(loop, unit) and not anyway:
            return None
        try:
            done = await act()
        # The boundary of one unit, as above.
        except (Exception, asyncio.CancelledError) as exc:
            if _is_cancelled(exc) or (isinstance(exc, Exception) and meets_everybody(exc)):
                raise
            self.fail(loop, unit, exc)
            return None
        self._put_off.pop(key, None)
        if is_work:
            self.worked(loop)
        return done

    def worked(self, loop: str) -> None:
        """Notes that a unit of a loop has worked. `alone` does so itself."""
        self._worked[loop] = self._now()

    def fail(self, loop: str, unit: object, error: BaseException) -> None:
        before = self._put_off.pop((loop, str(unit)), None)
        failures = 1 if before is None else before.failures + 1
        wait = self._shortened(_wait(_FIRST_UNIT, _LONGEST_UNIT, failures))
        now = self._now()
        since, until = now if before is None else before.since, now + int(wait * 1000)
        held = PutOff(loop=loop, unit=str(unit), failures=failures, since=since, until=until, reason=reason_of(error))
        while len(self._put_off) >= _UNITS:
            del self._put_off[next(iter(self._put_off))]
        self._put_off[loop, held.unit] = held
        self.failures[loop] += 1
        log.error("loop.put_off", loop=loop, unit=held.unit, **_told(error), failures=failures, again_in=round(wait, 1))

    def _shortened(self, seconds: float) -> float:
        """Returns a wait shortened at random by up to a quarter, so that not everything comes back at once."""
        return seconds * (1 - self._random() / 4)


async def woken_or(event: asyncio.Event, late: Awaitable[None]) -> None:
    """Waits until an event is set, or `late` has ended."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(late)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in waits:
            future.cancel()


def _is_cancelled(error: BaseException) -> bool:
    """Returns whether this task is to end.

    The cancellation of a task for which it waited is an error like any other.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


def reason_of(error: BaseException) -> str:
    """Returns the kind and place of an error, or the text of one that is written for the operator."""
    return str(error) if isinstance(error, StorageError) else f"{type(error).__name__} at {places(error)[-1]}"


def _told(error: BaseException) -> dict[str, object]:
    return {"error": reason_of(error), "places": places(error)}


def places(error: BaseException) -> list[str]:
    """Returns the last places that an error passed, the innermost last, as file:line below the program's folder."""
    frames: Iterable[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{frame.filename.removeprefix(f'{_ROOT}/')}:{frame.lineno}" for frame in frames] or ["?"]


def _wait(first: float, longest: float, failures: int) -> float:
    return min(first * 2.0 ** min(failures - 1, 30), longest)
