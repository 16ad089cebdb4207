"""A channel is started again after whatever ended it, with growing waits, and never takes others with it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Capabilities, Channel, ChannelRefused, ChannelUnavailable, Host, Outbound
from channels.supervision import Backoff, Endurance, supervise
from tests.kit.hosts import QuietHost


class Runs(Channel):
    """A channel whose runs end as told, each after so many seconds of the clock; then it returns."""

    id = "runs"
    platform = "runs"
    capabilities = Capabilities()

    def __init__(self, *ends: tuple[float, BaseException]) -> None:
        self.ends = list(ends)
        self.waits: list[float] = []
        self.seconds = 0.0
        self.runs = 0

    async def run(self, host: Host) -> None:
        self.runs += 1
        if self.ends:
            seconds, end = self.ends.pop(0)
            self.seconds += seconds
            raise end

    def clock(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    async def send(self, outbound: Outbound) -> str:
        raise ChannelUnavailable("not here")


async def supervised(*ends: tuple[float, BaseException]) -> Runs:
    channel = Runs(*ends)
    await supervise(channel, QuietHost(), sleep=channel.sleep, random=lambda: 0, clock=channel.clock)
    return channel


async def test_run_that_returns_ends_the_supervision() -> None:
    """The person at the terminal has left: there is nothing to start again."""
    channel = await supervised()
    assert channel.runs == 1
    assert channel.waits == []


async def test_waits_double_up_to_a_minute() -> None:
    """A platform that is down must not be hammered, and must be found soon after it is back."""
    channel = await supervised(*[(0.0, ChannelUnavailable("down")) for _ in range(8)])
    assert channel.waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert channel.runs == 9


async def test_refusal_waits_longer() -> None:
    """A revoked token is mended by the operator, not by trying."""
    channel = await supervised(*[(0.0, ChannelRefused("token")) for _ in range(4)])
    assert channel.waits == [60, 120, 240, 300]


async def test_good_run_starts_the_waits_anew() -> None:
    """A failure after hours of work is not the tenth in a row."""
    down = ChannelUnavailable("down")
    channel = await supervised((0, down), (0, down), (299, down), (300, down), (0, down))
    assert channel.waits == [1, 2, 4, 1, 2]


async def test_bug_in_a_channel_is_no_end() -> None:
    channel = await supervised((0, RuntimeError("a bug")), (0, ExceptionGroup("two", [ValueError(), KeyError()])))
    assert channel.runs == 3


async def test_failing_channel_leaves_another_alone() -> None:
    """A wrong token on one platform must not silence the other."""
    broken = Runs(*[(0.0, RuntimeError("a bug")) for _ in range(50)])
    sound = Runs()
    await asyncio.gather(
        supervise(broken, QuietHost(), sleep=broken.sleep, random=lambda: 0, clock=broken.clock),
        supervise(sound, QuietHost(), sleep=sound.sleep, random=lambda: 0, clock=sound.clock),
    )
    assert broken.runs == 51
    assert sound.runs == 1


async def test_cancellation_ends_the_supervision() -> None:
    with pytest.raises(asyncio.CancelledError):
        await supervised((0, asyncio.CancelledError()))


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 12))
def test_chance_only_shortens_a_wait(chance: float, times: int) -> None:
    """The longest wait is what recovery times are promised by."""
    backoff = Backoff(1, 60, lambda: chance)
    waits = [backoff.wait() for _ in range(times)]
    assert all(0.75 * full <= wait <= full for wait, full in zip(waits, (1, 2, 4, 8, 16, 32, *[60] * 6), strict=False))
    backoff.reset()
    assert backoff.wait() <= 1


async def test_an_update_that_nobody_can_handle_is_left_out_after_three_crashes() -> None:
    """It would come again for ever and keep everything behind it away."""
    endurance = Endurance("telegram")

    async def crash() -> None:
        raise KeyError("a bug")

    for _ in range(2):
        with pytest.raises(KeyError):
            await endurance.endure("7", crash())
    await endurance.endure("7", crash())
    with pytest.raises(KeyError):
        await endurance.endure("7", crash())


async def test_trouble_with_the_platform_is_never_taken_for_a_bad_update() -> None:
    """A store that can't be written for an hour must not cost anybody a message."""
    endurance = Endurance("telegram")

    async def refuse() -> None:
        raise ChannelUnavailable("not taken")

    for _ in range(10):
        with pytest.raises(ChannelUnavailable):
            await endurance.endure("7", refuse())
