"""The tests' guard of the event loop: no test's loop may stand for long at a stretch.

What the tests' kit computes in the loop itself is left out (`apart`), and whole collections of garbage, since the heap is
that of all tests before. A test whose own code computes in the loop is
marked `stands("why")`.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from gateway.ops.stalls import Stall, Stalls, WatchedLoop

T = TypeVar("T")

#: Seconds of the loop thread's processor time that a round of the loop may take. What others do on the machine hardly
#: counts, and the program logs from 0.1 s.
LIMIT: Final = 0.25

#: The stalls of the loops of this process that no test has answered for yet.
noted: Final = list[Stall]()
_PROCESSOR: Final = re.compile(r"processor_seconds\W+([\d.]+)")


class TestLoop(WatchedLoop):
    """A loop that notes its stalls here, and whose clock is ahead by the seconds that it has `leapt`."""

    __test__ = False

    def __init__(self) -> None:
        self.leapt = 0.0
        super().__init__(Stalls(noted.append))

    def time(self) -> float:
        return super().time() + self.leapt

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        self._watch.end_round()
        try:
            yield
        finally:
            self._watch.begin_round()


@contextmanager
def apart() -> Iterator[None]:
    """Leaves out what the block computes in the loop: it is the tests' own work. Also a decorator of functions."""
    loop = asyncio._get_running_loop()
    if isinstance(loop, TestLoop):
        with loop.uncounted():
            yield
    else:
        yield


_collecting: Final = list[TestLoop]()


def _leave_out_collections(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and _collecting and _collecting[-1] is asyncio._get_running_loop():
        _collecting.pop()._watch.begin_round()
    elif phase == "start" and info["generation"] == 2:
        loop = asyncio._get_running_loop()
        if isinstance(loop, TestLoop) and loop._watch._in_round:
            loop._watch.end_round()
            _collecting.append(loop)


gc.callbacks.append(_leave_out_collections)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` as `asyncio.run` does, for a test that has no loop of its own, under the guard."""
    with asyncio.Runner(loop_factory=TestLoop) as runner:
        return runner.run(main)


def check_log(text: str) -> None:
    """Fails if the log of a program that a test has started tells that its loop stood for too long."""
    told = [line for line in text.splitlines() if "loop.stood" in line]
    lines = [line for line in told if (seconds := _PROCESSOR.search(line)) and float(seconds[1]) > LIMIT]
    assert not lines, "\n".join(["The event loop of a program stood:", *lines])


def verdict(stalls: Iterable[Stall]) -> str:
    """Returns what to tell of stalls; empty if none was too long."""
    lines = [
        f"  {stall.processor_seconds:.2f} s of the processor ({stall.seconds:.2f} s by the clock) "
        f"at {stall.place or 'no place of ours'}, in {stall.innermost or 'an unknown place'}"
        for stall in stalls
        if stall.processor_seconds > LIMIT
    ]
    if not lines:
        return ""
    return "\n".join(
        [
            f"The event loop stood for over {LIMIT} s of processor time:",
            *lines,
            "While it stands, nobody is answered. Bound the work, do it in a thread or a process, or before the bot",
            "receives. If it is the test's own work, mark it: @pytest.mark.stands('why').",
        ]
    )
