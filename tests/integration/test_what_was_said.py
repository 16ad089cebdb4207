"""Questions for what was talked about, answered without a model: of late, or on the days that they name."""

from __future__ import annotations

import pytest

from bench.offline import talk


@pytest.mark.parametrize(
    ("said", "today", "last_week", "named"),
    [
        ("I live in Lisbon", "What did I tell you today?", "what did we talk about last week?", "Lisbon"),
        ("Ich wohne in Köln", "Was habe ich dir heute erzählt?", "Worüber haben wir letzte Woche gesprochen?", "Köln"),
        ("J'habite à Lyon", "Qu'est-ce que je t'ai dit aujourd'hui ?", "De quoi avons-nous parlé la semaine dernière ?",
         "Lyon"),
        ("Vivo en Madrid", "¿Qué te dije hoy?", "¿De qué hablamos la semana pasada?", "Madrid"),
        ("私は東京に住んでいます", "今日何を話した？", "先週何を話しましたか？", "東京"),
        ("我住在北京", "今天我跟你说了什么？", "上周我们聊了什么？", "北京"),
    ],
)  # fmt: skip
async def test_it_is_quoted_if_it_was_said_then(said: str, today: str, last_week: str, named: str) -> None:
    """Words from another time are no answer, however near they are."""
    async with talk() as person:
        await person.say(said)
        assert any(named in line for line in await person.say(today))
        assert not any(named in line for line in await person.say(last_week))
