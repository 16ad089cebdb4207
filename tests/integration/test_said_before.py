"""Private conversations read again: parts of one in order, and the search over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.recall.index import VERSION
from memory.service import Service
from memory.store import settings
from tests.kit.fakes import Clock
from tests.kit.stores import link, opened
from tests.kit.talk import group, private, say

ADA, BOB = private("ada"), private("bob")


@pytest.fixture
async def memory(tmp_path: Path, clock: Clock) -> AsyncIterator[Service]:
    async with opened(tmp_path / "remora.db", clock) as service:
        yield service


async def test_every_line_is_on_one_part_and_an_answer_is_known_on_each(memory: Service, clock: Clock) -> None:
    """Where a part ends within a turn, its earlier words must not pass for the answer."""
    for n in range(5):
        turn = await say(memory, ADA, f"first {n}", f"second {n}", clock=clock, answer=f"answer {n}")
    browse, key = memory.browse, ADA[0].session_key
    whole = await browse.lines(turn.context, key, limit=100)
    assert [line.text for line in whole if line.is_last] == [f"answer {n}" for n in range(5)]
    for size in range(1, 8):
        up = [whole[-1]]
        while part := await browse.lines(turn.context, key, limit=size, before=up[0].id):
            up = [*part, *up]
        down = [whole[0]]
        while part := await browse.lines(turn.context, key, limit=size, after=down[-1].id):
            down += part
        assert up == down == whole, size


async def test_a_search_finds_messages_with_every_word_the_newest_first(memory: Service, clock: Clock) -> None:
    await say(memory, ADA, "We sailed to Lindau", clock=clock, answer="Lindau is lovely")
    clock.move(days=1)
    turn = await say(memory, ADA, "Sailing from Lindau again", "昨日京都へ旅行しました", clock=clock)
    context = turn.context
    hits = await memory.browse.said(context, "sail LINDAU", limit=9)
    assert [hit.text for hit in hits] == ["Sailing from Lindau again", "We sailed to Lindau"]
    assert {hit.opening for hit in hits} == {"We sailed to Lindau"}
    assert [hit.mine for hit in await memory.browse.said(context, "lovely", limit=9)] == [False]
    assert [hit.text for hit in await memory.browse.said(context, "京都", limit=9)] == ["昨日京都へ旅行しました"]
    last = (hits[0].said_at, hits[0].id)
    older = await memory.browse.said(context, "sail lindau", limit=9, before=last)
    assert [hit.text for hit in older] == ["We sailed to Lindau"]
    assert await memory.browse.said(context, "sail Bregenz", limit=9) == []


async def test_a_search_finds_what_the_person_can_read_again_and_nothing_else(memory: Service, clock: Clock) -> None:
    """Not another's words, not a group's, and those of a linked account only while it is one person."""
    turn = await say(memory, ADA, "the harbour is mine", clock=clock)
    bobs = await say(memory, BOB, "the harbour is bob's", clock=clock)
    talk = await say(memory, group("club", "ada"), "the harbour is everybody's", clock=clock)
    ids = range(1, 99)

    async def texts() -> list[str]:
        return [hit.text for hit in await memory.browse.said(turn.context, "harbour", limit=9)]

    assert await texts() == ["the harbour is mine"]
    mine = await memory.browse.keys_of(turn.context, ids)
    assert set(mine.values()) == {ADA[0].session_key} and len(mine) == 2
    assert await memory.browse.lines(turn.context, BOB[0].session_key, limit=9) == []
    await link(memory, turn.context, bobs.context)
    assert sorted(await texts()) == ["the harbour is bob's", "the harbour is mine"]
    assert talk.context.session.key not in (await memory.browse.keys_of(turn.context, ids)).values()


async def test_without_its_index_the_search_goes_by_the_text(memory: Service, clock: Clock) -> None:
    turn = await say(memory, ADA, "We sailed to Lindau", clock=clock)
    await memory.database.write(lambda tx: settings.drop(tx, VERSION))
    assert [hit.text for hit in await memory.browse.said(turn.context, "sailed lindau", limit=9)] == [
        "We sailed to Lindau"
    ]
