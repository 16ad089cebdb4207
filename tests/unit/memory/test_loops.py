"""Endless work that outlives every fault, and units of work that fail without holding up the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from memory.errors import IndexDamaged, ReadTooLong, StorageError, StoreBusy, StoreUnwritable
from memory.loops import Loops
from tests.kit.fakes import Clock


class Rounds:
    """Rounds that end as told; afterwards the loop is cancelled. `slept` are the waits."""

    def __init__(self, *ends: float | BaseException) -> None:
        self.ends = list(ends)
        self.slept: list[float] = []
        self.entered = 0

    async def __call__(self) -> float:
        if not self.ends:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.Event().wait()
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @asynccontextmanager
    async def around(self) -> AsyncIterator[None]:
        self.entered += 1
        yield


async def ran(loops: Loops, rounds: Rounds) -> None:
    await ended(loops.run("nights", rounds, effect="No backups.", around=rounds.around, sleep=rounds.sleep))


async def ended(running: Coroutine[None, None, None]) -> None:
    """Waits for a loop that is cancelled by its rounds. It runs as a task of its own, which outlives nothing."""
    task = asyncio.create_task(running)
    await asyncio.wait([task])
    assert task.cancelled()


def made(clock: Clock | None = None) -> Loops:
    return Loops(now=clock or Clock(), random=lambda: 0.0)


async def test_a_loop_goes_on_after_any_error_with_growing_waits_up_to_five_minutes() -> None:
    rounds = Rounds(60.0, *[ValueError("2027-02-30")] * 11)
    loops = made()
    await ran(loops, rounds)
    assert rounds.slept == [60.0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert loops.restarts == {"nights": 11} and rounds.entered == 12


async def test_a_loop_is_in_trouble_until_a_round_has_gone_well() -> None:
    """The operator reads which one, what does not happen, and where it failed, but nobody's words."""
    loops, seen = made(), list[tuple[str, ...]]()
    rounds = Rounds(ValueError("Ada's diary"), StoreBusy("The file is locked."), 5.0)

    async def sleep(seconds: float) -> None:
        seen.append(loops.troubles)

    rounds.sleep = sleep  # type: ignore[method-assign]
    with capture_logs() as logs:
        await ran(loops, rounds)
    (first,), (second,), now = seen
    assert "“nights” failed (ValueError at tests/unit/memory/test_loops.py:" in first and "No backups." in first
    assert "The file is locked." in second and now == () == loops.troubles
    assert [one["event"] for one in logs] == ["loop.failed", "loop.failed", "loop.recovered"]
    assert "diary" not in f"{first}{logs}"


async def test_a_loop_outlives_the_cancellation_of_a_task_that_it_waited_for() -> None:
    rounds, loops = Rounds(asyncio.CancelledError(), 7.0), made()
    await ran(loops, rounds)
    assert rounds.slept == [1, 7] and loops.restarts == {"nights": 1}


async def test_a_unit_that_waited_for_a_cancelled_task_is_put_off_and_a_cancelled_loop_ends_in_it() -> None:
    loops = made()

    async def waits() -> bool:
        raise asyncio.CancelledError

    assert await loops.alone("reminders", 1, waits) is None
    assert [one.unit for one in loops.put_off()] == ["1"]
    task = asyncio.create_task(loops.alone("reminders", 2, asyncio.Event().wait))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() and [one.unit for one in loops.put_off()] == ["1"]


@pytest.mark.parametrize("error", [StoreUnwritable("The disk is full."), StoreBusy("It is locked.")])
async def test_a_store_that_fails_for_everybody_is_no_unit_s_fault(error: StorageError) -> None:
    """The round fails, which health shows, and it is tried again soon: nobody has to wait for an hour."""
    loops = made()

    async def fails() -> bool:
        raise error

    with pytest.raises(type(error)):
        await loops.alone("reminders", 1, fails)
    assert loops.put_off() == [] and loops.wait("reminders", 1) == 0


@pytest.mark.parametrize("error", [ReadTooLong(""), IndexDamaged(""), StorageError("too many SQL variables")])
async def test_an_error_of_the_store_that_may_be_of_one_row_holds_up_only_its_unit(error: StorageError) -> None:
    loops = made()

    async def fails() -> bool:
        raise error

    assert await loops.alone("reminders", 1, fails) is None
    assert [one.unit for one in loops.put_off()] == ["1"]


async def test_waits_start_over_after_a_good_round() -> None:
    rounds = Rounds(ValueError(), ValueError(), 7.0, ValueError())
    await ran(made(), rounds)
    assert rounds.slept == [1, 2, 7, 1]


async def test_a_loop_that_is_woken_does_not_wait() -> None:
    """And one that fails waits all the same: what wakes it would make it fail at full speed."""
    woken, rounds = asyncio.Event(), Rounds(3_600.0, 3_600.0)

    async def never(_seconds: float) -> None:
        await asyncio.Event().wait()

    woken.set()
    await ended(made().run("nights", rounds, effect="", woken=woken, sleep=never))


async def test_a_unit_that_fails_is_put_off_with_growing_waits_and_the_others_go_on() -> None:
    clock = Clock()
    loops, done = made(clock), list[str]()

    def act(unit: str) -> Callable[[], Awaitable[bool]]:
        async def does() -> bool:
            if unit == "bad":
                raise ZeroDivisionError
            done.append(unit)
            return True

        return does

    async def all_of_them() -> list[bool | None]:
        return [await loops.alone("reminders", unit, act(unit)) for unit in ("bad", "good")]

    waits = []
    for _ in range(9):
        assert await all_of_them() == [None, True]
        assert await all_of_them() == [None, True]  # not even tried
        (held,) = loops.put_off("reminders")
        waits.append(round(loops.wait("reminders", "bad")))
        clock.move(minutes=waits[-1] / 60 + 0.01)
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600] and loops.failures == {"reminders": 9}
    assert (held.unit, held.failures, held.is_parked) == ("bad", 9, True)
    assert len(done) == 18 and loops.troubles == ()


async def test_a_unit_that_works_again_or_is_not_met_any_more_is_put_off_no_longer() -> None:
    clock = Clock()
    loops = made(clock)
    loops.fail("reminders", 1, ValueError())
    loops.fail("reminders", 2, ValueError())
    clock.move(minutes=1)

    async def works() -> bool:
        return True

    assert await loops.alone("reminders", 1, works) is True
    assert [one.unit for one in loops.put_off()] == ["2"]
    clock.move(minutes=70)
    assert loops.put_off() == []


async def test_a_clock_that_was_put_back_holds_nothing_up() -> None:
    clock = Clock()
    loops = made(clock)
    loops.fail("reminders", 1, ValueError())
    assert loops.wait("reminders", 1) > 0
    clock.move(days=-9)
    assert loops.wait("reminders", 1) == 0


def test_units_that_fail_take_a_bounded_memory() -> None:
    loops = made()
    with capture_logs():
        for number in range(10_003):
            loops.fail("reminders", number, ValueError())
    held = loops.put_off()
    assert len(held) == 10_000 and held[0].unit == "3"


async def test_a_loop_in_which_several_units_fail_and_none_works_is_in_trouble_until_one_works() -> None:
    clock = Clock()
    loops = made(clock)

    async def works() -> bool:
        return True

    await loops.alone("reminders", 9, works)
    for unit in (1, 2):
        loops.fail("reminders", unit, ValueError())
    assert loops.troubles == ()
    loops.fail("reminders", 3, ValueError())
    await loops.alone("reminders", "all", works, is_work=False)
    trouble = "".join(loops.troubles)
    assert "“reminders” nothing has worked since 3 failed" in trouble and "ValueError" in trouble
    await loops.alone("reminders", 9, works)
    loops.fail("reminders", 3, ValueError())
    assert loops.troubles == ()  # the same ones fail again, but others work


async def test_a_loop_whose_only_unit_is_parked_is_in_trouble() -> None:
    loops = made()
    for _ in range(7):
        loops.fail("reminders", 1, ValueError())
    assert loops.troubles == ()
    loops.fail("reminders", 1, ValueError())
    assert len(loops.troubles) == 1
