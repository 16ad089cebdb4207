"""Several pipelines that answer from one store in PostgreSQL, as processes do: people notice nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.llm import Completion, OnText, Request
from channels.base import Capabilities
from gateway.pipeline.policy import Rules
from tests.kit import postgres
from tests.kit.fakes import ScriptedModel
from tests.kit.neighbour import neighbour
from tests.kit.patience import until
from tests.kit.pipeline import Wall, World, pipeline

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    import psycopg
OPEN = {"telegram": Rules(open_to_all=True)}


@asynccontextmanager
async def worlds(folder: Path, count: int = 2, **more: Any) -> AsyncIterator[list[World]]:
    async with AsyncExitStack() as stack:
        url = postgres.url(folder / "remora.db")
        made = [pipeline(folder, rules=OPEN, shared=url, **more) for _ in range(count)]
        yield [await stack.enter_async_context(one) for one in made]


def texts(world: World) -> list[str]:
    return [outbound.text for outbound in world.walls["telegram"].sent]


def shown(all_of: Sequence[World]) -> list[str]:
    return [text for world in all_of for text in texts(world)]


class Slow(ScriptedModel):
    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.waiting = 0

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        self.waiting += 1
        await self.may.wait()
        return await super().complete(request, on_text)


async def test_the_process_that_has_a_conversation_answers_what_another_receives(tmp_path: Path) -> None:
    async with worlds(tmp_path) as (one, other):
        await one.say("Hi", author="7")
        await other.router.on_inbound(other.inbound("And now?", author="7"))
        await until(lambda: len(texts(one)) == 2)
        assert texts(other) == []
        said = await one.rows("select text from messages where role = 'user' order by id")
        assert said == [("Hi",), ("And now?",)]


async def test_messages_that_arrive_at_different_processes_are_answered_once_and_in_order(tmp_path: Path) -> None:
    async with worlds(tmp_path, 3) as all_of:
        for n in range(12):
            world = all_of[n % 3]
            await world.router.on_inbound(world.inbound(f"message {n}", author="7"))

        async def all_done() -> bool:
            return not await all_of[0].rows("select 1 from inbox where state <> 'done'")

        await until(all_done)
        said = await all_of[0].rows("select text from messages where role = 'user' order by id")
        assert said == [(f"message {n}",) for n in range(12)]
        # Messages that wait together are answered together.
        ((turns,),) = await all_of[0].rows("select count(*) from turns")
        await until(lambda: len(shown(all_of)) == turns)


async def test_stop_reaches_the_answer_wherever_it_is_made(tmp_path: Path) -> None:
    slow = Slow()
    async with worlds(tmp_path, model=slow) as (one, other):
        await one.router.on_inbound(one.inbound("Tell me a long story", author="7"))
        await until(lambda: one.store.turns.stops.is_under_way("telegram:7:-"))
        await other.router.on_inbound(other.inbound("/stop", author="7"))
        await until(lambda: not one.store.turns.stops.is_under_way("telegram:7:-"))
        assert slow.requests == []
        await until(lambda: any("topped" in text for text in shown([one, other])))
        assert await one.rows("select count(*) from turns where state = 'running'") == [(0,)]


async def test_an_edit_reaches_the_message_that_waits_elsewhere(tmp_path: Path) -> None:
    slow = Slow()
    async with worlds(tmp_path, model=slow) as (one, other):
        await one.router.on_inbound(one.inbound("first", author="7"))
        # On a busy machine the other one may have come first.
        await until(lambda: any(world.store.turns.stops.is_under_way("telegram:7:-") for world in (one, other)))
        second = one.inbound("I live in Lisbon", author="7")
        await one.router.on_inbound(second)
        edit = other.inbound("I live in Porto", author="7", message_id=second.message_id, edited=True)
        await other.router.on_inbound(edit)

        async def is_corrected() -> bool:
            return await one.rows("select 1 from inbox where payload like '%Lisbon%'") == []

        await until(is_corrected)
        slow.may.set()
        await until(lambda: len(shown([one, other])) == 2)
        said = await one.rows("select text from messages where role = 'user' order by id")
        assert said == [("first",), ("I live in Porto",)]


async def test_what_a_process_leaves_at_its_end_is_taken_up_by_another(tmp_path: Path) -> None:
    slow = Slow()
    async with worlds(tmp_path, 1) as (other,):
        async with worlds(tmp_path, 1, model=slow) as (one,):
            await one.router.on_inbound(one.inbound("Are you there?", author="7"))
            await until(lambda: one.store.turns.stops.is_under_way("telegram:7:-"))
            await one.router.drain(seconds=0)
        await until(lambda: texts(other) == ["All right."])


class Page(Wall):
    capabilities = Capabilities(burst_seconds=0, comes_and_goes=True)
    is_open = False

    def reachable(self, place: Any) -> bool:
        return self.is_open and super().reachable(place)


async def test_a_page_gets_its_conversation_where_it_is_open(tmp_path: Path) -> None:
    url, pages = postgres.url(tmp_path / "remora.db"), [Page("telegram"), Page("telegram")]
    async with (
        pipeline(tmp_path, rules=OPEN, shared=url, walls={"telegram": pages[0]}) as one,
        pipeline(tmp_path, rules=OPEN, shared=url, walls={"telegram": pages[1]}) as other,
    ):
        pages[0].is_open = True
        await one.say("Hi", author="7")
        pages[0].is_open, pages[1].is_open = False, True
        assert await other.say("Here I am now", author="7") == ["All right."]
        assert len(texts(one)) == 1


async def test_what_is_posted_by_one_process_shows_on_the_page_that_another_has_open(tmp_path: Path) -> None:
    url, pages = postgres.url(tmp_path / "remora.db"), [Page("telegram"), Page("telegram")]
    async with (
        pipeline(tmp_path, rules=OPEN, shared=url, walls={"telegram": pages[0]}) as one,
        pipeline(tmp_path, rules=OPEN, shared=url, walls={"telegram": pages[1]}) as other,
    ):
        pages[1].is_open = True
        await one.router.on_inbound(one.inbound("Hi", author="7"))
        await until(lambda: texts(other) == ["All right."])


async def test_the_choice_of_an_agent_holds_wherever_the_conversation_goes(tmp_path: Path) -> None:
    async with worlds(tmp_path, agents=("assistant", "other")) as (one, other):
        await one.say("Hi", author="7")
        await one.say("/agent other", author="7")
        await one.memory.share.leave(["telegram:7:-"], asked=True)
        await other.say("And you?", author="7")
        agents = await one.rows("select a.name from turns t join agents a on a.id = t.agent_id order by t.id")
        assert agents == [("assistant",), ("other",)]


async def test_what_a_killed_process_holds_is_answered_by_another(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    # It holds a session of this world's platform; its end is noticed all the same.
    async with worlds(tmp_path, 1) as (world,), neighbour(postgres.url(path), path) as one:
        one.kill()
        await until(lambda: world.memory.share.holds("telegram:1:-"))


async def test_work_of_the_dead_that_can_not_be_taken_up_at_once_is_taken_up_later(tmp_path: Path) -> None:
    path, key = tmp_path / "remora.db", "telegram:1:-"
    async with worlds(tmp_path, 1) as (world,), neighbour(postgres.url(path), path) as one:
        with psycopg.connect(postgres.url(path)) as beside:
            beside.execute("lock table remora.agents in access exclusive mode")
            one.kill()
            await until(lambda: world.memory.share.holds(key))
            # A read is given up after five seconds.
            await postgres.tried(path, "", times=2)
            assert world.memory.share.fresh() == (key,)
        await until(lambda: not world.memory.share.fresh())
        # Nobody knows whether the message that the dead one was sending was shown.
        await until(lambda: len(texts(world)) == 1)


async def test_of_two_that_make_the_same_answer_one_shows_it(tmp_path: Path) -> None:
    """A conversation is renamed while it is answered, so another process takes it and resumes the turn."""
    url, slow = postgres.url(tmp_path / "remora.db"), Slow()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(pipeline(tmp_path, rules=OPEN, shared=url, model=slow))
        first = asyncio.create_task(one.say("Hi", author="1"))
        await until(lambda: one.router.is_busy("telegram:1:-") and bool(slow.waiting))
        other = await stack.enter_async_context(pipeline(tmp_path, rules=OPEN, shared=url))
        await one.memory.database.write(lambda tx: tx.run("delete from lanes"))
        assert await other.router.hold(other.store, "telegram:1:-") == "taken"
        await until(lambda: len(texts(other)) == 1)
        slow.may.set()
        await first
        assert [text for text in shown([one, other]) if text != "…"] == ["All right."]


async def test_a_process_without_a_channel_is_given_none_of_its_conversations(tmp_path: Path) -> None:
    """A chat in the terminal beside the bot answers nobody on Telegram, and the bot nobody in the terminal."""
    url = postgres.url(tmp_path / "remora.db")
    async with AsyncExitStack() as stack:
        bot = await stack.enter_async_context(pipeline(tmp_path, rules=OPEN, shared=url))
        rules = {"console": Rules(open_to_all=True)}
        chat = await stack.enter_async_context(pipeline(tmp_path, rules=rules, shared=url, takes_part=False))
        for n in range(8):
            assert await bot.say("Hi", author=str(n)) == ["All right."]
        assert await chat.say("Hi", author="you", channel="console") == ["All right."]
        held = await bot.rows(
            "select l.session_key from lanes l join replicas r on r.id = l.holder where r.answers = 1"
        )
        assert len(held) == 8
        assert chat.memory.share.holds("console:you:-")
