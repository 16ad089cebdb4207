"""Places are shared out fairly, and none is lost."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from gateway.reading.attachments import Shares
from tests.kit.patience import settle


class Crowd:
    """People at work in places until each is told to go on."""

    def __init__(self, places: int) -> None:
        self.shares = Shares(places)
        self.began: list[str] = []
        self.tasks: list[tuple[str, asyncio.Task[None], asyncio.Event]] = []

    async def come(self, who: str) -> None:
        goes = asyncio.Event()

        async def work() -> None:
            async with self.shares.place(who):
                self.began.append(who)
                await goes.wait()

        self.tasks.append((who, asyncio.create_task(work()), goes))
        await settle()

    async def finish(self, who: str) -> None:
        """Who works longest of this person's is done."""
        nth = next(n for n, (one, task, goes) in enumerate(self.tasks) if one == who and not goes.is_set())
        self.tasks[nth][2].set()
        await settle()

    async def end(self) -> None:
        for _, _, goes in self.tasks:
            goes.set()
        await asyncio.gather(*(task for _, task, _ in self.tasks), return_exceptions=True)


async def test_one_person_has_at_most_half() -> None:
    crowd = Crowd(4)
    for who in "aaaaab":
        await crowd.come(who)
    assert crowd.began == ["a", "a", "b"]
    await crowd.end()
    assert sorted(crowd.began) == sorted("aaaaab")


async def test_who_waits_is_served_person_by_person() -> None:
    """A hundred of one person's are no reason to be served a hundred times first."""
    crowd = Crowd(1)
    for who in "aaaabbc":
        await crowd.come(who)
    for who in "abcab":
        await crowd.finish(who)
    assert "".join(crowd.began) == "abcaba"
    await crowd.end()


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30), st.integers(1, 5), st.data())
def test_no_place_is_lost_whoever_is_cut_off(coming: list[tuple[str, bool]], places: int, data: st.DataObject) -> None:
    """Cancelled while waiting, while being served or while at work."""

    async def run() -> None:
        crowd = Crowd(places)
        for who, cut in coming:
            await crowd.come(who)
            if cut:
                crowd.tasks[data.draw(st.integers(0, len(crowd.tasks) - 1))][1].cancel()
            if data.draw(st.booleans()):
                await settle()
        await crowd.end()
        again = Crowd(places)
        again.shares = crowd.shares
        for person in range(places):
            await again.come(str(person))
        assert len(again.began) == places
        await again.end()

    asyncio.run(run())
