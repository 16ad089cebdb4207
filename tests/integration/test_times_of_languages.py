"""Days in people's words, from end to end and without a model: what was said is found and forgotten by its time."""

from __future__ import annotations

import pytest

from memory.service import Service
from tests.kit.fakes import Clock
from tests.kit.talk import exchange, private, say, teach

#: What a person says, how they ask for it two weeks later, how they name the week of it, and the word for tomorrow.
LANGUAGES = [
    ("Ich fliege morgen nach Rom", "Was habe ich letzte Woche erzählt?", "letzte Woche", "morgen"),
    ("Je pars demain à Rome", "Qu'est-ce que j'ai dit la semaine dernière ?", "la semaine dernière", "demain"),
    ("Mañana vuelo a Roma", "¿Qué te dije la semana pasada?", "la semana pasada", "mañana"),
    ("明日ローマに行きます", "先週何を話した？", "先週", "明日"),
    ("I'm flying to Rome tomorrow", "what did I tell you last week?", "last week", "tomorrow"),
    ("我明天飞罗马", "上周我说了什么？", "上周", "明天"),
]


@pytest.mark.parametrize(("told", "question", "week", "tomorrow"), LANGUAGES)
async def test_what_was_said_is_found_and_forgotten_by_its_week(
    memory: Service, clock: Clock, told: str, question: str, week: str, tomorrow: str
) -> None:
    ada = private("ada")
    await exchange(memory, ada, "the boiler broke and flooded the cellar", clock)
    clock.move(days=14)
    await exchange(memory, ada, told, clock)
    clock.move(days=7)
    turn = await say(memory, ada, "my tooth hurts", clock=clock)
    hits = await memory.browse.search(turn.context, question, limit=8)
    assert [hit.passage.message.text for hit in hits if hit.passage is not None] == [told]
    preview = await memory.forgetting.preview(turn.context, week)
    assert preview is not None and preview.selection.what == "range" and (preview.memories, preview.messages) == (1, 1)
    assert all(tomorrow in memory.value.casefold() for memory in preview.shown)


@pytest.mark.parametrize(("told", "tomorrow"), [(told, tomorrow) for told, _, _, tomorrow in LANGUAGES])
async def test_tomorrow_is_remembered_as_a_date(memory: Service, clock: Clock, told: str, tomorrow: str) -> None:
    """It stays true when it is read a month later."""
    turn = await teach(memory, private("ada"), told, clock=clock)
    (plan,) = [one.value for one in await memory.browse.memories(turn.context, limit=9)]
    assert f"{tomorrow} (" in plan.casefold()
