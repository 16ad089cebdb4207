"""Slots: who holds one, who is next, and what a cancelled waiter leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from channels.slots import Slots
from tests.kit.patience import limit, settle


def longest_waiting(keys: Collection[str]) -> str:
    return next(iter(keys))


async def held(slots: Slots[str], key: str, log: list[str], release: asyncio.Event) -> None:
    async with slots.slot(key):
        log.append(key)
        await release.wait()


async def test_the_owner_chooses_who_is_next() -> None:
    slots, log, release = Slots[str](1, min), list[str](), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for key in ("b", "d", "a", "c"):
            tasks.create_task(held(slots, key, log, release))
            await settle()
        assert log == ["b"]
        release.set()
    assert log == ["b", "a", "c", "d"] and not slots.held


async def test_a_slot_stays_free_while_nobody_may_have_it() -> None:
    slots, log, release = (
        Slots[str](2, lambda keys: next((k for k in keys if not slots.held[k]), None)),
        list[str](),
        asyncio.Event(),
    )
    async with asyncio.TaskGroup() as tasks:
        for key in ("ada", "ada", "bob"):
            tasks.create_task(held(slots, key, log, release))
        await settle()
        assert log == ["ada", "bob"]
        release.set()
    assert log == ["ada", "bob", "ada"]


@pytest.mark.parametrize("served", [False, True])
async def test_a_cancelled_waiter_takes_no_slot_along(served: bool) -> None:
    """Neither while it waits nor at the moment it is served."""
    slots, log, release = Slots[str](1, longest_waiting), list[str](), asyncio.Event()
    first = asyncio.create_task(held(slots, "first", log, release))
    second = asyncio.create_task(held(slots, "second", log, release))
    await settle()
    if served:
        release.set()
        while not first.done():
            await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    release.set()
    await first
    async with limit(), slots.slot("third"):
        assert slots.held == {"third": 1}


async def test_an_error_inside_gives_the_slot_back() -> None:
    """A holder that fails must not cost a place for good."""
    slots = Slots[str](1, longest_waiting)
    with pytest.raises(KeyError):
        async with slots.slot("ada"):
            raise KeyError
    async with limit(), slots.slot("ada"):
        assert slots.held == {"ada": 1}
