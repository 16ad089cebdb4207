"""The agent without a model: honest about itself, dated about memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.llm import ChatMessage, Learning, Remembered, Request
from agents.offline.provider import OfflineProvider
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens

HOME = Remembered(said="you live in Bergen", when="yesterday", key="home", value="Bergen")


async def reply(
    said: str,
    *remembered: Remembered,
    noted: tuple[str, ...] = (),
    ended: tuple[str, ...] = (),
    attached: tuple[str, ...] = (),
    learning: Learning = "on",
    last: str = "Hello!",
    language: str = "en",
) -> str:
    request = Request(
        messages=(ChatMessage(role="assistant", content=last),),
        said=said,
        remembered=remembered,
        noted=noted,
        ended=ended,
        attached=attached,
        learning=learning,
        moment=datetime(2026, 3, 4, 17, 5, tzinfo=UTC),
        agent="Remora",
        language=language,
    )
    return (await OfflineProvider(tokens, simplified, parts).complete(request)).text


async def test_what_is_noted_and_what_ended_is_said() -> None:
    assert await reply("I live in Bergen", noted=("you live in Bergen",)) == "Noted: you live in Bergen."
    assert await reply("I sold my boat", ended=("your boat",)) == "Noted, no longer true: your boat."


async def test_a_question_is_answered_from_memory() -> None:
    assert await reply("where do I live?", HOME) == "You live in Bergen; you told me yesterday."


@pytest.mark.parametrize("said", ["where do I live? {}", "{}\nwhere do I live?"])
async def test_a_question_before_or_behind_a_long_text_is_answered(said: str) -> None:
    """Only the beginning and the end of a long text are read."""
    assert "You live in Bergen" in await reply(said.format("And so on. " * 3_000), HOME)


async def test_what_is_not_known_is_not_made_up() -> None:
    first = await reply("what is my shoe size?", HOME)
    assert first.startswith("I don't know that") and "Bergen" not in first
    assert await reply("what is my hat size?", last=first) == "I don't know that either."


async def test_small_talk_is_answered_in_kind() -> None:
    both = await reply("good evening! how are you?", HOME)
    assert both.startswith("Hello") and "I'm well" in both and "Bergen" not in both
    assert "17:05" in await reply("what time is it?", HOME)
    assert "4 March 2026" in await reply("what day is it today?", HOME)
    assert "Remora" in await reply("who are you?", HOME)


async def test_a_fact_beside_small_talk_is_what_counts() -> None:
    assert await reply("thanks! I live in Bergen", noted=("you live in Bergen",)) == "Noted: you live in Bergen."


@pytest.mark.parametrize(
    ("learning", "why"), [("on", "no fact"), ("off", "/memory on"), ("out", "/privacy in"), ("never", "no memory")]
)
async def test_why_nothing_is_noted_is_said(learning: Learning, why: str) -> None:
    assert why in await reply("The wind has turned", learning=learning)


async def test_an_attachment_is_not_looked_into() -> None:
    text = await reply("", attached=("sticker 👍",))
    assert text.startswith("I got: sticker 👍. I keep it in our conversation")


async def test_nothing_is_made_of_a_message_without_words() -> None:
    assert (await reply("")).startswith("I can't make anything of that.")


async def test_text_is_streamed_once() -> None:
    shown: list[str] = []

    async def on_text(text: str) -> None:
        shown.append(text)

    completion = await OfflineProvider(tokens, simplified, parts).complete(Request(messages=(), said="hello"), on_text)
    assert shown == [completion.text]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("hi, who are you?", "I'm Remora"),
        ("do you speak German?", "German"),
        ("hello, which languages do you know?", "Spanish"),
    ],
)
async def test_a_question_behind_a_greeting_is_answered(said: str, told: str) -> None:
    assert told in await reply(said)


async def test_a_loss_is_met_with_words_of_regret() -> None:
    assert (await reply("Biscuit died last night", ended=("your cat",))).startswith("I'm so sorry.")


async def test_a_loss_that_changes_no_fact_is_met_with_regret_as_well() -> None:
    assert (await reply("actually mochi died last week")).startswith("I'm so sorry.")
    assert "sorry" not in await reply("who died?")


@pytest.mark.parametrize(
    ("said", "regret"), [("奶奶走了", True), ("我走了", False), ("累死了", False), ("他的猫死了", True)]
)
async def test_a_chinese_loss_is_no_way_of_speaking(said: str, regret: bool) -> None:
    assert ("真的很遗憾" in await reply(said, language="zh")) is regret


async def test_whoever_tells_a_secret_hears_that_it_is_not_kept() -> None:
    assert "don't keep passwords" in await reply("the wifi password is [secret: password]")


async def test_a_tablet_at_night_is_no_goodbye() -> None:
    assert "Bye" not in await reply("I take a statin at night")
    assert (await reply("night night")).startswith("Bye")


@pytest.mark.parametrize(
    ("text", "language", "asks"),
    [
        ("where do I live?", "en", True),
        ("I live in Lisbon. What do you know of it", "en", True),
        ("what's on tomorrow", "en", True), ("I live in Lisbon", "en", False), ("thanks, that's it", "en", False),
        ("wo wohne ich?", "de", True), ("ich wohne in Lissabon", "de", False), ("我住在哪里", "zh", True),
        ("我住在里斯本", "zh", False),
        ("word " * 2_000 + "where do I live?", "en", True),
    ],
)  # fmt: skip
def test_it_tells_what_asks_something(text: str, language: str, asks: bool) -> None:
    assert OfflineProvider(tokens, simplified, parts).asks(text, language) == asks
