"""A message that was refused or stopped is not begun by a look that read its row before: one answer, and no deeds."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from gateway.pipeline.policy import Rules
from gateway.pipeline.store import where_said, who_said
from memory.chat.edits import Edits
from memory.errors import Withdrawn
from memory.mailbox.outbox import Part
from tests.kit.bench import SlowModel
from tests.kit.faults import Faults
from tests.kit.patience import SECONDS, settle, until
from tests.kit.pipeline import World, pipeline
from tests.kit.stores import on_postgres

RULES = {"telegram": Rules(open_to_all=True)}
REFUSED, LOOKED = "select turn_id from inbox where turn_id is not null", "held = 0 and"
ORDER = "/remember I live in Rome"


class Slow(Faults):
    """A disk on which a refusal takes until `go_on` is set, and which notes that the open rows were read meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.slow, self.refusing, self.looks = False, False, 0
        self.go_on = threading.Event()

    def before(self, sql: str) -> None:
        self.looks += LOOKED in sql
        if self.slow and REFUSED in sql:
            self.slow, self.refusing = False, True
            assert self.go_on.wait(SECONDS)
        super().before(sql)


async def _left_over(world: World) -> None:
    """Leaves an old message of another person, which a look holds: that takes until the refusal is committed."""
    inbound = world.inbound("hello?", author="9")
    await world.memory.mailbox.receive(
        platform="telegram", bot_id="telegram", update_key="old", session_key=inbound.place.session_key,
        payload=inbound.to_json(),
    )  # fmt: skip
    world.clock.move(minutes=180)


async def _looked_while_refused(world: World, disk: Slow, last: str) -> None:
    """Says `last`, which has messages refused, while somebody looks."""
    disk.slow = True
    saying = asyncio.create_task(world.router.on_inbound(world.inbound(last, author="7")))
    await until(lambda: disk.refusing)
    before = disk.looks
    looking = asyncio.create_task(world.router.look(world.store))
    await until(lambda: disk.looks > before)
    await settle()
    disk.go_on.set()
    await asyncio.gather(saying, looking)


@pytest.mark.skipif(on_postgres(), reason="its disk is that of a file's driver")
@pytest.mark.parametrize("last", [ORDER, "/stop"])
async def test_what_is_refused_while_somebody_looks_is_neither_done_nor_answered_again(
    tmp_path: Path, last: str
) -> None:
    """The look has read the row before the refusal is committed, and queues what it read after that."""
    disk, model = Slow(), SlowModel(*["All right."] * 9)
    async with pipeline(tmp_path, rules=RULES, model=model, driver=disk.driver) as world:
        await _left_over(world)
        inbound = world.inbound("hello", author="7")
        await world.router.on_inbound(inbound)
        await until(lambda: model.requests)
        waiting = [ORDER] if last == "/stop" else [f"and {n}" for n in range(5)]
        for text in waiting:
            await world.router.on_inbound(world.inbound(text, author="7"))
        await _looked_while_refused(world, disk, last)
        model.go_on()
        await world.router.settled(inbound.place)
        answers = await world.rows("select inbox_id, count(*) from outbox where inbox_id is not null group by inbox_id")
        assert {count for _, count in answers} == {1}
        assert await world.rows("select value from memories where kind = 'fact'") == []


async def test_a_command_whose_row_has_ended_is_not_carried_out(tmp_path: Path) -> None:
    """Whoever has it in hand may not know yet that another process, or the person, has ended it."""

    def remember(edits: Edits) -> list[Part]:
        edits.remember("I live in Rome")
        return [Part(text="Saved.")]

    async with pipeline(tmp_path, rules=RULES) as world:
        inbound = world.inbound("hello", author="7")
        await world.hear(inbound)
        [(inbox_id,)] = await world.rows("select id from inbox")
        where = where_said(inbound, world.agents["assistant"].spec)
        context = await world.memory.identities.context(where, who_said(inbound))
        with pytest.raises(Withdrawn):
            await world.memory.requests.answer(context, inbox_id, remember)
        assert await world.rows("select count(*) from outbox") == [(1,)]
        assert await world.rows("select value from memories where kind = 'fact'") == []
