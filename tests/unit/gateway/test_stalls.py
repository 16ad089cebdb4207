"""The watch over the event loop: an operator reads when all had to wait, for how long, and where the program was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.spans import WorkTally
from gateway.ops.stalls import RECENT, Stall, Stalls, WatchedLoop, of_running_loop, run
from memory.text.secrets.redact import redact
from tests.kit import stalls as guard

HERE = Path(__file__).name


def stall(seconds: float, *, processor: float | None = None, place: str = "gateway/a.py:1") -> Stall:
    return Stall(
        seconds=seconds,
        processor_seconds=seconds if processor is None else processor,
        place=place,
        innermost="lib/b.py:2",
    )


class Moments:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(*works: object) -> list[Stall]:
    """The stalls of a loop in which each of these callables is one round."""
    noted: list[Stall] = []

    async def rounds() -> None:
        for work in works:
            await asyncio.sleep(0)
            assert callable(work)
            work()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: WatchedLoop(Stalls(noted.append))) as runner:
        runner.run(rounds())
    return noted


def compute() -> None:
    """Takes 0.2 s of the processor, however busy the machine is."""
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        sum(range(1_000))


def wait() -> None:
    time.sleep(0.2)


def test_computing_in_the_loop_is_told_with_its_place() -> None:
    (noted,) = [each for each in watched(compute) if each.processor_seconds > 0.15]
    assert noted.seconds >= noted.processor_seconds > 0.19
    assert HERE in noted.innermost and noted.place == ""  # a test is none of the program's packages


def test_waiting_in_a_call_is_told_apart_from_computing() -> None:
    """Else a busy machine or a slow disk is taken for a slow program."""
    noted = max(watched(wait), key=lambda each: each.seconds)
    assert noted.seconds > 0.19 and noted.processor_seconds < 0.15


def test_the_place_is_the_innermost_of_the_programs_own_code() -> None:
    noted: list[Stall] = []

    async def work() -> None:
        compute()

    with asyncio.Runner(loop_factory=lambda: WatchedLoop(Stalls(noted.append))) as runner:
        runner.run(WorkTally().timed("work", work()))
    longest = max(noted, key=lambda each: each.processor_seconds)
    assert longest.place.startswith("agents/spans.py:") and HERE in longest.innermost


def test_what_happens_between_two_runs_of_a_loop_is_no_stall() -> None:
    noted: list[Stall] = []
    loop = WatchedLoop(Stalls(noted.append))
    loop.run_until_complete(asyncio.sleep(0))
    compute()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert [each for each in noted if each.processor_seconds > 0.15] == []


def test_a_loop_outside_the_main_thread_is_measured_without_a_place() -> None:
    noted: list[Stall] = []
    thread = threading.Thread(target=lambda: noted.extend(watched(compute)))
    thread.start()
    thread.join()
    (longest,) = [each for each in noted if each.processor_seconds > 0.15]
    assert longest.place == longest.innermost == ""


def test_the_signal_belongs_to_others_again_afterwards() -> None:
    def theirs(*_: object) -> None: ...

    before = signal.signal(signal.SIGALRM, theirs)
    try:
        watched(wait)
        assert signal.getsignal(signal.SIGALRM) is theirs
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


async def test_a_program_that_is_started_gets_no_timer() -> None:
    """A signal that it does not expect would end it."""
    code = "import signal; print(signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.decode().strip() == f"(0.0, 0.0) {signal.SIG_DFL!s}"


def test_a_child_that_is_forked_has_no_timer() -> None:
    async def fork() -> int:
        await asyncio.sleep(0)
        if (child := os.fork()) == 0:
            os._exit(signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert run(fork()) == 0


def test_the_longest_of_the_last_minutes_is_kept_and_the_rest_counted() -> None:
    clock = Moments()
    stalls = Stalls(lambda _: None, monotonic=clock)
    for seconds in (0.2, 0.7, 0.3):
        clock.now += 1
        stalls.add(stall(seconds, processor=0.1))
    longest = stalls.longest
    clock.now = 2 + RECENT + 0.5
    assert (longest, stalls.longest) == (stall(0.7, processor=0.1), stall(0.3, processor=0.1))
    clock.now += RECENT
    assert not stalls.longest
    assert sum(stalls.durations.counts) == 3 and stalls.durations.total == pytest.approx(1.2)
    assert stalls.processor_seconds == pytest.approx(0.3)


def test_a_place_is_logged_once_a_minute() -> None:
    clock = Moments()
    stalls = Stalls(monotonic=clock)
    with capture_logs() as logs:
        for place in ("gateway/a.py:1", "gateway/a.py:1", "gateway/b.py:1"):
            stalls.add(stall(0.2, place=place))
        clock.now = 61
        stalls.add(stall(0.2, processor=0.01))
    assert [(line["place"], line["log_level"]) for line in logs] == [
        ("gateway/a.py:1", "warning"),
        ("gateway/b.py:1", "warning"),
        ("gateway/a.py:1", "info"),
    ]
    assert {line["event"] for line in logs} == {"loop.stood"}


async def test_a_loop_that_is_not_watched_has_no_stalls() -> None:
    seen = await asyncio.to_thread(asyncio.run, _own())
    assert seen.longest is None and seen is not of_running_loop()


async def _own() -> Stalls:
    return of_running_loop()


def test_no_place_is_taken_for_a_secret_by_the_log() -> None:
    root = Path(__file__).parents[3]
    places = [
        f"{path.relative_to(root)}:528"
        for package in ("gateway", "channels", "memory", "agents")
        for path in (root / package).rglob("*.py")
    ]
    assert [place for place in places if redact(place) != place] == []


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01T00:00:00Z [warning  ] loop.stood [gateway.ops.stalls] processor_seconds=0.3 seconds=0.4",
        '{"seconds": 0.4, "processor_seconds": 0.3, "place": "a:1", "event": "loop.stood"}',
    ],
)
def test_the_tests_guard_reads_the_logs_of_programs(line: str) -> None:
    guard.check_log(line.replace("0.3", "0.2"))
    with pytest.raises(AssertionError, match="stood"):
        guard.check_log(f"a line\n{line}\n")


def test_the_tests_guard_leaves_out_what_the_kit_computes_in_the_loop() -> None:
    @guard.apart()
    def helper() -> None:
        compute()

    async def rounds(work: Callable[[], None]) -> None:
        await asyncio.sleep(0)
        work()
        await asyncio.sleep(0)

    for work, most in ((helper, 0.1), (compute, 1.0)):
        guard.run(rounds(work))
        longest = max((each.processor_seconds for each in guard.noted), default=0.0)
        guard.noted.clear()
        assert longest < most and (work is helper or longest > 0.19)


def test_the_tests_guard_names_place_and_time_of_what_took_too_long() -> None:
    assert guard.verdict([stall(5.0, processor=0.1)]) == ""
    assert guard.verdict([]) == ""
    told = guard.verdict([stall(0.2), stall(0.4, processor=0.3, place="gateway/slow.py:7")])
    assert "0.30 s of the processor (0.40 s by the clock) at gateway/slow.py:7" in told
    assert "gateway/a.py:1" not in told
