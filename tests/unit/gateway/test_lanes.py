"""Order within a session, parallel across sessions, bursts, fairness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.reading.attachments import Shares
from gateway.reception.backlog import LaneFull, Lanes
from tests.kit.patience import SECONDS, leap, limit, settle, until


@dataclass(frozen=True)
class Note:
    text: str
    author: str = "ada"
    alone: bool = False
    burst_seconds: float = 0.0
    late: bool = False
    group: str = "assistant"


class Log:
    """Takes batches, ends each once the gate is open, and remembers the order of their ends."""

    def __init__(self, *, shut: bool = False) -> None:
        self.gate = asyncio.Event()
        if not shut:
            self.gate.set()
        self.batches: list[tuple[str, list[str]]] = []
        self.running = 0
        self.most = 0

    async def __call__(self, key: str, batch: list[Note]) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        await self.gate.wait()
        self.running -= 1
        self.batches.append((key, [note.text for note in batch]))


def lanes(log: Log, *, concurrent: int = 4, limit: int = 100) -> Lanes[Note]:
    return Lanes(log, concurrent=concurrent, limit=limit)


async def test_items_of_one_lane_are_handled_in_order_and_one_at_a_time() -> None:
    """Two answers to one person at once would cross."""
    log = Log()
    lane = lanes(log)
    for n in range(5):
        lane.put("a", Note(str(n), alone=True))
    await lane.idle("a")
    assert log.batches == [("a", [str(n)]) for n in range(5)]
    assert log.most == 1


async def test_lanes_run_side_by_side_up_to_the_limit() -> None:
    """One slow chat must not hold up another, nor may all run at once."""
    log = Log(shut=True)
    lane = lanes(log, concurrent=3)
    for n in range(9):
        lane.put(f"lane {n}", Note("x"))
    await until(lambda: log.running == 3)
    log.gate.set()
    await asyncio.gather(*(lane.idle(f"lane {n}") for n in range(9)))
    assert log.most == 3


async def test_a_burst_of_one_author_is_one_batch() -> None:
    """People press Enter in the middle of a thought."""
    log = Log()
    lane = lanes(log)
    lane.put("a", Note("first", burst_seconds=SECONDS))
    await asyncio.sleep(0)
    lane.put("a", Note("second"))
    await lane.idle("a")
    assert log.batches == [("a", ["first", "second"])]


async def test_a_burst_never_crosses_a_command_or_another_author() -> None:
    """A note that stands alone ends it, and so does whoever else speaks."""
    log = Log()
    lane = lanes(log)
    for note in (Note("1"), Note("2"), Note("/new", alone=True), Note("3"), Note("4", author="bob")):
        lane.put("a", note)
    await lane.idle("a")
    assert [texts for _, texts in log.batches] == [["1", "2"], ["/new"], ["3"], ["4"]]


async def test_a_busy_lane_does_not_starve_a_quiet_one() -> None:
    """With a single slot, a newcomer waits for one batch, not for all that are queued elsewhere."""
    log = Log(shut=True)
    lane = lanes(log, concurrent=1)
    for n in range(20):
        lane.put("busy", Note(str(n), alone=True))
    await until(lambda: log.running)
    log.gate.set()
    lane.put("quiet", Note("me", alone=True))
    await lane.idle("quiet")
    assert len(log.batches) < 15


async def test_too_much_in_one_lane_is_refused() -> None:
    """A flood must not fill the memory of the process; what was taken earlier always gets in."""
    lane = lanes(Log(shut=True), limit=2)
    lane.put("a", Note("1"))
    lane.put("a", Note("2"))
    with pytest.raises(LaneFull):
        lane.put("a", Note("3"))
    lane.put("a", Note("4"), limited=False)
    await lane.drain(seconds=0)


async def test_draining_waits_for_what_runs_and_ends_the_rest() -> None:
    log = Log()
    lane = lanes(log)
    lane.put("a", Note("1"))
    assert await lane.drain(seconds=SECONDS)
    stuck = lanes(Log(shut=True))
    stuck.put("a", Note("1"))
    draining = asyncio.create_task(stuck.drain(seconds=SECONDS))
    await asyncio.sleep(0)
    leap(SECONDS)
    assert not await draining


async def test_a_group_that_hangs_holds_up_no_other() -> None:
    """One agent's model that never answers must not silence the other agents."""
    hung, well = asyncio.Event(), asyncio.Event()

    async def handle(key: str, batch: list[Note]) -> None:
        (well if batch[0].group == "assistant" else hung).set()
        await asyncio.Event().wait()

    lane = Lanes(handle, concurrent=2, limit=100)
    for n in range(4):
        lane.put(f"hung {n}", Note("x", group="broken"))
    async with limit():
        await hung.wait()
        lane.put("well", Note("me"))
        await well.wait()
    await lane.drain(seconds=0)


async def test_who_has_just_spoken_goes_before_what_has_waited_long_but_not_every_time() -> None:
    """A backlog is worked off beside people who talk right now."""
    log = Log(shut=True)
    lane = lanes(log, concurrent=1)
    lane.put("first", Note("x"))
    for n in range(8):
        lane.put(f"late {n}", Note("x", late=True))
    for n in range(8):
        lane.put(f"prompt {n}", Note("x"))
    await until(lambda: log.running)
    log.gate.set()
    await asyncio.gather(*(lane.idle(f"{kind} {n}") for kind in ("late", "prompt") for n in range(8)))
    kinds = [key.split()[0] for key, _ in log.batches[1:]]
    assert kinds[:10].count("prompt") > 6
    assert "late" in kinds[:4]


async def test_an_item_that_waits_can_be_replaced_and_one_under_way_cannot() -> None:
    log = Log(shut=True)
    lane = lanes(log)
    lane.put("a", Note("1", alone=True))
    lane.put("a", Note("2", alone=True))
    await until(lambda: log.running)

    def instead(old: str) -> Callable[[Note], Note | None]:
        return lambda note: Note("new", alone=True) if note.text == old else None

    changed = [lane.replace("a", instead(old)) for old in "12"]
    log.gate.set()
    await lane.idle("a")
    assert changed == [False, True]
    assert [texts for _, texts in log.batches] == [["1"], ["new"]]


async def test_what_waits_can_be_taken_out() -> None:
    log = Log(shut=True)
    lane = lanes(log)
    for note in (Note("1", alone=True), Note("2", author="bob", alone=True), Note("3", alone=True)):
        lane.put("a", note)
    await until(lambda: log.running)
    taken = lane.take_out("a", lambda note: note.author == "ada")
    assert lane.take_out("nowhere", lambda note: True) == []
    log.gate.set()
    await lane.idle("a")
    assert [note.text for note in taken] == ["3"]
    assert [texts for _, texts in log.batches] == [["1"], ["2"]]


# Places are shared out fairly, and none is lost


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
