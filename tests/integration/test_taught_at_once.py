"""Several processes learn at once on PostgreSQL: nobody waits for others, and nothing is lost or doubled.

Each open service stands for a process of its own: they share nothing but the server.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.chat.turns import Outcome, Said, Turn
from memory.mailbox.outbox import Part
from memory.service import Service
from memory.store.database import Transaction, of_owner
from tests.kit import postgres
from tests.kit.fakes import Clock
from tests.kit.patience import SECONDS
from tests.kit.stores import link, opened, rows
from tests.kit.talk import Place, facts, group, met, private, received, teach

pytestmark = pytest.mark.postgres

CITIES = ("Lisbon", "Porto", "Faro", "Braga", "Evora", "Sintra", "Lagos", "Tomar", "Beja", "Leiria", "Viseu", "Guarda")
Teach = Callable[[Service, Place, str, Clock], Coroutine[Any, Any, Turn]]


@pytest.fixture
async def two(tmp_path: Path, clock: Clock) -> AsyncIterator[tuple[Service, Service]]:
    path = tmp_path / "remora.db"
    url = postgres.url(path)
    async with opened(path, clock, database_url=url) as one, opened(path, clock, database_url=url) as other:
        yield one, other


async def taught(memory: Service, place: Place, text: str, clock: Clock) -> Turn:
    where, who = place
    inbox_id = await received(memory, where.session_key)
    message = Said(
        inbox_id=inbox_id, text=text, tokens=9, said_at=clock(), platform_ref=str(inbox_id), reply_to=None, learn=True
    )
    turn = await memory.turns.begin(where, who, [message])
    revision = await memory.turns.understood(turn)
    assert revision.proposals or revision.ended
    await memory.turns.finish(turn, None, Outcome(pieces=(Part(text="ok"),), learned=revision))
    return turn


async def read_later(memory: Service, place: Place, text: str, clock: Clock) -> Turn:
    return await teach(memory, place, text, clock=clock)


BOTH = pytest.mark.parametrize("teach", [taught, read_later])


def elsewhere(place: Place, chat: str) -> Place:
    """The same person in another private chat, such as with another bot."""
    where, who = place
    return replace(where, chat=chat, session_key=f"console:{chat}:-"), who


async def both(
    two: Sequence[Service], places: Sequence[Place], texts: Sequence[str], clock: Clock, teach: Teach
) -> None:
    clock.move(minutes=1)
    await asyncio.gather(*(teach(*each, clock) for each in zip(two, places, texts, strict=True)))


@asynccontextmanager
async def learning(memory: Service, owner_id: int) -> AsyncIterator[None]:
    """A process that is in the middle of learning something for an owner."""
    begun, over = threading.Event(), threading.Event()

    def stay(tx: Transaction) -> None:
        begun.set()
        while not over.wait(0.2):
            tx.number("select 1")  # else the server ends it

    under_way = asyncio.create_task(memory.database.write(stay, keys=[of_owner(owner_id)]))
    await asyncio.to_thread(begun.wait)
    try:
        yield
    finally:
        over.set()
        await under_way


async def waits(teaching: asyncio.Task[Turn]) -> bool:
    """Returns whether it does not get on for a while: a program that is too slow for that fails no test."""
    await asyncio.wait([teaching], timeout=0.5)
    return not teaching.done()


@BOTH
async def test_what_somebody_teaches_holds_up_nobody_but_them(
    two: tuple[Service, Service], clock: Clock, teach: Teach
) -> None:
    one, other = two
    ada, bob = private("ada"), private("bob")
    owner = (await met(one, clock, ada)).scope.writes_to
    async with learning(one, owner):
        bobs = await asyncio.wait_for(teach(other, bob, "I live in Lisbon", clock), SECONDS)
        assert await facts(other, bobs.context) == [("home", "Lisbon")]
        adas = asyncio.create_task(teach(other, elsewhere(ada, "ada-again"), "I live in Porto", clock))
        assert await waits(adas)
    assert await facts(other, (await adas).context) == [("home", "Porto")]


@BOTH
async def test_accounts_of_one_person_teach_one_after_the_other(
    two: tuple[Service, Service], clock: Clock, teach: Teach
) -> None:
    """A fact told with one account may end one that was told with another."""
    one, other = two
    ada, countess = await met(one, clock, private("ada")), await met(one, clock, private("countess"))
    await link(one, ada, countess)
    async with learning(one, countess.scope.writes_to):
        adas = asyncio.create_task(teach(other, private("ada"), "I live in Porto", clock))
        assert await waits(adas)
    await adas


async def test_what_ends_in_private_waits_for_the_group_where_it_was_said(
    two: tuple[Service, Service], clock: Clock
) -> None:
    one, other = two
    said = await taught(one, group("walkers", "ada"), "I live in Porto", clock)
    async with learning(one, said.context.scope.writes_to):
        plain = await asyncio.wait_for(taught(other, private("ada"), "I like tea", clock), SECONDS)
        assert await facts(other, plain.context) == [("home", "Porto"), ("likes", "tea")]
        over = asyncio.create_task(taught(other, private("ada"), "I don't live in Porto any more", clock))
        assert await waits(over)
    assert await facts(other, (await over).context) == [("likes", "tea")]


@BOTH
async def test_of_facts_that_cannot_both_hold_one_is_left(
    two: tuple[Service, Service], clock: Clock, teach: Teach
) -> None:
    """Told in two threads of a group at the same moment, each ends where the next begins."""
    one = two[0]
    threads = [group("walkers", "ada", thread=thread) for thread in "12"]
    for first, second in zip(CITIES[::2], CITIES[1::2], strict=True):
        await both(two, threads, [f"I live in {first}", f"I live in {second}"], clock, teach)
    homes = await rows(
        one, "select value, valid_from, valid_until from memories where key = 'home' order by valid_from"
    )
    assert sorted(value for value, *_ in homes) == sorted(CITIES)
    assert [until for *_, until in homes] == [*(since for _, since, _ in homes[1:]), None]


@BOTH
async def test_what_is_told_twice_at_once_is_kept_once(
    two: tuple[Service, Service], clock: Clock, teach: Teach
) -> None:
    one = two[0]
    places = [private("ada"), elsewhere(private("ada"), "ada-again")]
    for city in CITIES[:6]:
        await both(two, places, [f"my sister {city} lives in Rome"] * 2, clock, teach)
        await both(two, places, [f"I like {city}"] * 2, clock, teach)
    kept = await rows(
        one, "select key, value, count(*), sum(reinforced_count) from memories where kind = 'fact' group by key, value"
    )
    assert {(count, again) for _, _, count, again in kept} == {(1, 1)}, kept
    assert len(kept) >= 6
    live = await rows(
        one, "select key, count(*) from memories where kind = 'profile' and valid_until is null group by key"
    )
    assert {count for _, count in live} <= {1}
    names = await rows(one, "select norm, count(*), sum(mention_count) from entities group by norm")
    assert {count for _, count, _ in names} <= {1}
