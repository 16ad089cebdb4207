"""Several processes on one store in PostgreSQL: what each holds, how the dead are noticed, and that they do no harm.

Each open database stands for a process of its own: they share nothing but the server.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from memory.errors import TakenForDead
from memory.store.database import Transaction
from tests.kit import postgres
from tests.kit.neighbour import neighbour, receive
from tests.kit.patience import limit, until

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    import psycopg

    from memory.store.postgres import lanes
    from memory.store.postgres.connection import reached
    from memory.store.postgres.database import PostgresDatabase


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Callable[[], Awaitable[PostgresDatabase]]]:
    """Opens the store once more, as another process would that takes part in answering."""
    path, made = tmp_path / "remora.db", list[PostgresDatabase]()

    async def another() -> PostgresDatabase:
        database = await PostgresDatabase.open(postgres.url(path), path, now=1)
        made.append(database)
        await database.share.begin()
        return database

    yield another
    for database in made:
        await database.close()


Opened = Callable[[], Awaitable["PostgresDatabase"]]


async def test_a_session_has_one_holder(opened: Opened) -> None:
    one, other = await opened(), await opened()
    assert await one.share.hold("telegram:1:-") == "taken"
    assert await one.share.hold("telegram:1:-") == "held"
    assert await other.share.hold("telegram:1:-") == "elsewhere"
    assert (one.share.holds("telegram:1:-"), other.share.holds("telegram:1:-")) == (True, False)


async def test_what_was_to_be_given_to_a_process_that_goes_meanwhile_is_given_to_another(opened: Opened) -> None:
    """Between the choice of a process and the commit it may be removed."""
    one = await opened()
    (own,) = await one.read(lanes.peers)
    choices = iter(["gone", own.id])
    assert await one.write(lambda tx: lanes.hold(tx, "telegram:1:-", next(choices))) == own.id


async def test_a_process_that_was_removed_can_take_nothing_and_learns_why(opened: Opened) -> None:
    """Waking up, it may want to take a session before it has looked."""
    one = await opened()
    (own,) = await one.read(lanes.peers)
    other = await opened()
    await other.write(lambda tx: lanes.part(tx, own.id))
    with pytest.raises(TakenForDead):
        await one.share.hold("telegram:1:-")
    assert one.share.lost.is_set()
    assert await other.share.hold("telegram:1:-") == "taken"


async def test_the_holder_is_told_when_another_process_has_something_for_it(opened: Opened) -> None:
    one, other = await opened(), await opened()
    told: list[str] = []
    one.share.on("work", told.append)
    await one.share.hold("telegram:1:-")
    await other.share.hold("telegram:1:-")
    await until(lambda: told == ["telegram:1:-"])


async def test_only_a_session_in_which_nothing_is_left_to_do_is_left(opened: Opened) -> None:
    one, other = await opened(), await opened()
    await one.share.hold("telegram:1:-")
    await one.write(receive)
    await one.share.leave(["telegram:1:-"])
    assert await other.share.hold("telegram:1:-") == "elsewhere"
    await one.write(lambda tx: tx.run("update inbox set state = 'done'"))
    await one.share.leave(["telegram:1:-"])
    assert (one.share.holds("telegram:1:-"), await other.share.hold("telegram:1:-")) == (False, "taken")


async def test_a_session_that_was_taken_by_a_write_whose_end_got_lost_is_found(opened: Opened) -> None:
    one, other = await opened(), await opened()
    await one.write(lambda tx: tx.run("insert into lanes values ('telegram:1:-', ?)", (one.share.id,)))
    await one.write(receive)
    assert await other.share.adopt(lambda _: True, unread=True) == []
    assert await one.share.adopt(lambda _: True, unread=True) == ["telegram:1:-"] == list(one.share.fresh())
    assert await one.share.adopt(lambda _: True, unread=True) == []
    one.share.taken_up(["telegram:1:-"])
    assert one.share.fresh() == ()


async def test_a_session_that_another_asks_for_is_left_with_what_is_in_it(opened: Opened) -> None:
    one, other = await opened(), await opened()
    await one.share.hold("telegram:1:-")
    await one.write(receive)
    await one.share.leave(["telegram:1:-"], asked=True)
    assert await other.share.hold("telegram:1:-") == "taken"


async def test_sessions_are_shared_out_among_those_that_answer(opened: Opened) -> None:
    one, other = await opened(), await opened()
    keys = [f"p:{n}:-" for n in range(40)]
    held = [await one.share.hold(key, spread=True) for key in keys]
    assert 5 < held.count("taken") < 35
    got = [key for key in keys if await other.share.hold(key) == "taken"]
    assert got == [key for key, how in zip(keys, held, strict=True) if how == "elsewhere"]


async def test_whoever_leaves_in_order_is_followed_at_once(opened: Opened, tmp_path: Path) -> None:
    other, path = await opened(), tmp_path / "remora.db"
    one = await PostgresDatabase.open(postgres.url(path), path, now=1)
    gone: list[str] = []
    other.share.on("gone", gone.append)
    await one.share.hold("telegram:1:-")
    await one.write(receive)
    await one.close()
    await until(lambda: bool(gone))
    assert await other.share.adopt(lambda _: True, unread=True) == ["telegram:1:-"]
    assert await other.share.adopt(lambda _: True, unread=True) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_who_is_dead_or_frozen_is_followed_and_does_no_harm(
    opened: Opened, tmp_path: Path, how: signal.Signals
) -> None:
    other = await opened()
    gone: list[str] = []
    other.share.on("gone", gone.append)
    async with neighbour(postgres.url(tmp_path / "remora.db"), tmp_path / "remora.db") as one:
        one.send_signal(how)
        await until(lambda: bool(gone))
        # The row that the dead one was showing may have been shown.
        assert await other.share.adopt(lambda _: True, unread=True) == ["telegram:1:-"]
        if how is signal.SIGSTOP:
            one.send_signal(signal.SIGCONT)
            assert one.stdin is not None
            assert one.stdout is not None
            one.stdin.write(b"\n")
            assert await one.stdout.readline() == b"taken for dead\n"
    states = await other.read(lambda reader: [row["state"] for row in reader.all("select state from outbox")])
    assert (states, await other.read(lambda reader: reader.number("select count(*) from inbox"))) == (["unknown"], 0)


async def test_a_duty_is_done_by_one_and_goes_on_with_another(opened: Opened) -> None:
    one, other = await opened(), await opened()
    doing: list[str] = []
    begun = asyncio.Event()

    async def do(database: PostgresDatabase, name: str, end: asyncio.Event) -> None:
        async with database.share.only_here("night"):
            doing.append(name)
            begun.set()
            await end.wait()

    end, never = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(do(one, "one", end))
    await begun.wait()
    second = asyncio.create_task(do(other, "other", never))
    for _ in range(10):
        await other.read(lanes.peers)
    assert doing == ["one"]
    end.set()
    await first
    await until(lambda: doing == ["one", "other"])
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


async def test_transactions_of_two_processes_come_one_after_the_other(opened: Opened) -> None:
    one, other = await opened(), await opened()

    def add(tx: Transaction) -> None:
        row = tx.one("select value from store_settings where name = 'n'")
        tx.run("delete from store_settings where name = 'n'")
        tx.run("insert into store_settings values ('n', ?)", (str(int(row["value"] if row else 0) + 1),))

    await asyncio.gather(*(database.write(add) for _ in range(25) for database in (one, other)))
    assert await one.read(lambda r: r.number("select value from store_settings where name = 'n'")) == 50


async def test_a_start_waits_for_a_host_that_does_not_answer(opened: Opened, tmp_path: Path) -> None:
    """The first of two servers is off: each connection takes two seconds, while others look for the dead."""
    other, path = await opened(), tmp_path / "remora.db"
    with socket.create_server(("127.0.0.1", 0), backlog=0) as silent, ExitStack() as waiting:
        port = silent.getsockname()[1]
        for _ in range(3):  # a full queue: the next ones are not answered
            line = waiting.enter_context(socket.socket())
            line.setblocking(False)
            line.connect_ex(("127.0.0.1", port))
        real = psycopg.conninfo.conninfo_to_dict(postgres.url(path))
        url = f"host=127.0.0.1,{real['host']} port={port},5432 user={real['user']} dbname={real['dbname']}"
        began = time.monotonic()
        async with limit():
            one = await PostgresDatabase.open(url, path, now=1)
        assert time.monotonic() - began > 2
        await asyncio.sleep(4)
        assert not one.share.lost.is_set()
        assert len(await other.read(lanes.peers)) == 2
        await one.close()


def test_an_address_may_name_what_holds_for_its_network() -> None:
    named = psycopg.conninfo.conninfo_to_dict(reached("postgresql://r@h/d?connect_timeout=20"))
    assert (named["host"], named["connect_timeout"]) == ("h", "20")
    assert int(str(named["tcp_user_timeout"])) <= 8_000


async def test_who_is_there_and_what_they_hold_can_be_listed(opened: Opened) -> None:
    one, other = await opened(), await opened()
    await one.share.hold("telegram:1:-")
    async with other.share.only_here("night"):
        listed = await one.read(lanes.peers)
    assert sorted((peer.answers, peer.lanes, peer.duties) for peer in listed) == [(True, 0, ("night",)), (True, 1, ())]
