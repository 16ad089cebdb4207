"""Watches an event loop for stalls: the times in which it ran without looking at the network, so that all waited.

The watch stands in the loop's selector: a stall is the time between the return of one `select` and the next call, so it
covers all callbacks of a round together. While a round lasts, an interval timer is armed; its signal shows the
frame that runs.

Invariants: a stall is told in seconds and places of the program, never in people's words. Seconds of the clock and of
the thread's processor are given apart: on a busy machine, or in a call that waits, the clock goes on alone. A frame is
looked at in the main thread by a signal handler, because `sys._current_frames` of another thread can deadlock with the
garbage collector. A process that is started from a watched one has no timer.
"""

from __future__ import annotations

import asyncio
import selectors
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias, TypeVar

import structlog

from agents.spans import Durations

log = structlog.get_logger(__name__)

T = TypeVar("T")
#: A code object and a line of its file.
_Place: TypeAlias = tuple[CodeType, int]

#: Seconds from which a round of the loop counts as a stall, and is looked at. Discord's three seconds are a few dozens
#: of them; people notice less.
LIMIT: Final = 0.1
#: Seconds between two looks at a stall, and the most looks: a call that waits is not disturbed for ever.
_LOOK_AGAIN, _LOOKS = 0.05, 100
#: Seconds for which the longest stall is reported.
RECENT: Final = 300.0
#: Seconds in which a place is logged once.
_QUIET: Final = 60.0

_ROOT = Path(__file__).parents[2]
_OWN = tuple(f"{_ROOT / package}/" for package in ("gateway", "channels", "memory", "agents"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stall. `seconds` went by, `processor_seconds` of them the loop's thread computed.

    `place` is the innermost frame of Remora's own packages, `innermost` the innermost of all, where most looks found
    the loop. Both are empty if no look was possible.
    """

    seconds: float
    processor_seconds: float
    place: str
    innermost: str


class Stalls:
    """The stalls of a loop since its start: counted, and the longest of the last five minutes."""

    def __init__(
        self, tell: Callable[[Stall], None] | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`tell` is called with each stall, instead of logging each place once a minute."""
        self.durations = Durations()
        self.processor_seconds = 0.0
        self._tell = tell or self._log
        self._monotonic = monotonic
        #: Each one longer than all after it.
        self._recent: deque[tuple[float, Stall]] = deque()
        self._logged: dict[str, float] = {}

    def add(self, stall: Stall) -> None:
        self.durations.add(stall.seconds)
        self.processor_seconds += stall.processor_seconds
        while self._recent and self._recent[-1][1].seconds <= stall.seconds:
            self._recent.pop()
        self._recent.append((self._monotonic(), stall))
        self._tell(stall)

    @property
    def longest(self) -> Stall | None:
        """The longest stall of the last five minutes."""
        now = self._monotonic()
        while self._recent and now - self._recent[0][0] > RECENT:
            self._recent.popleft()
        return self._recent[0][1] if self._recent else None

    def _log(self, stall: Stall) -> None:
        now = self._monotonic()
        self._logged = {place: at for place, at in self._logged.items() if now - at < _QUIET}
        if stall.place in self._logged:
            return
        self._logged[stall.place] = now
        # A loop that hardly computed has waited in a call, or the machine had no time for it.
        (log.warning if stall.processor_seconds >= LIMIT else log.info)(
            "loop.stood",
            seconds=round(stall.seconds, 3),
            processor_seconds=round(stall.processor_seconds, 3),
            place=stall.place,
            innermost=stall.innermost,
        )


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that adds each of its stalls to `stalls`, before it looks at the network again."""

    def __init__(self, stalls: Stalls | None = None) -> None:
        self.stalls = stalls or Stalls()
        self._watch = _Watch(self.stalls.add)
        super().__init__(_Selector(self._watch))

    def run_forever(self) -> None:
        with self._watch.running():
            super().run_forever()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` as `asyncio.run` does, in a watched loop."""
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        return runner.run(main)


def of_running_loop() -> Stalls:
    """Returns the stalls of the running loop; of one that is not watched, nothing."""
    loop = asyncio.get_running_loop()
    return loop.stalls if isinstance(loop, WatchedLoop) else Stalls()


class _Selector(selectors.DefaultSelector):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._watch.end_round()
        try:
            return super().select(timeout)
        finally:
            self._watch.begin_round()


class _Watch:
    """Measures rounds, from the return of a `select` to the next call, and looks at those that last."""

    def __init__(self, note: Callable[[Stall], None]) -> None:
        self._note = note
        self._in_main_thread = False
        self._in_round = False
        self._began = self._began_processor = 0.0
        self._looks: list[tuple[_Place | None, _Place]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        # Signals reach the main thread alone.
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        before = None
        if self._in_main_thread:
            before = signal.signal(signal.SIGALRM, self._look)
            signal.siginterrupt(signal.SIGALRM, False)
        self.begin_round()
        try:
            yield
        finally:
            self.end_round()
            if self._in_main_thread:
                signal.signal(signal.SIGALRM, before or signal.SIG_DFL)

    def begin_round(self) -> None:
        self._began, self._began_processor = time.perf_counter(), time.thread_time()
        self._in_round = True
        if self._in_main_thread:
            signal.setitimer(signal.ITIMER_REAL, LIMIT, _LOOK_AGAIN)

    def end_round(self) -> None:
        self._in_round = False
        if self._in_main_thread:
            signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.perf_counter() - self._began
        if seconds >= LIMIT:
            place, innermost = Counter(self._looks).most_common(1)[0][0] if self._looks else (None, None)
            self._note(
                Stall(
                    seconds=seconds,
                    processor_seconds=time.thread_time() - self._began_processor,
                    place=_named(place),
                    innermost=_named(innermost),
                )
            )
        self._looks.clear()

    def _look(self, _number: int, frame: FrameType | None) -> None:
        """Notes where the loop is. Runs between any two steps of the program, so it does nothing else."""
        if not self._in_round or frame is None:  # the round ended while the signal was under way
            return
        innermost = frame.f_code, frame.f_lineno
        own: FrameType | None = frame
        while own is not None and not own.f_code.co_filename.startswith(_OWN):
            own = own.f_back
        if own is not None and own.f_code.co_filename == __file__:  # what is outside the loop has no part in it
            own = None
        self._looks.append((None if own is None else (own.f_code, own.f_lineno), innermost))
        if len(self._looks) == _LOOKS:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _named(place: _Place | None) -> str:
    if place is None:
        return ""
    code, line = place
    file = code.co_filename.removeprefix(f"{_ROOT}/").rpartition("site-packages/")[2]
    # No name of a function: the log takes some for passwords.
    return f"{'/'.join(Path(file).parts[-4:])}:{line or code.co_firstlineno}"
