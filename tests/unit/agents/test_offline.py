"""The agent without a model: honest about itself, dated about memory."""

from __future__ import annotations

import pytest

from agents.llm import ChatMessage, Learning, Remembered, Request
from agents.providers.offline import OfflineProvider

TALKED = (ChatMessage(role="assistant", content="hello"),)
LISBON = Remembered(said="you live in Lisbon", when="21 Nov 2026", score=2.0)
PORTO = Remembered(said="you live in Porto", when="3 May 2025", score=1.9, superseded=True)
TEA = Remembered(said="you like tea", when="3 May 2025", score=0.4)


async def answer(
    said: str,
    *,
    remembered: tuple[Remembered, ...] = (),
    noted: tuple[str, ...] = (),
    attached: tuple[str, ...] = (),
    first: bool = False,
    learning: Learning = "on",
) -> str:
    request = Request(
        messages=() if first else TALKED,
        said=said,
        remembered=remembered,
        noted=noted,
        attached=attached,
        learning=learning,
    )
    return (await OfflineProvider().complete(request)).text


async def test_the_first_answer_says_what_it_is() -> None:
    """Nobody should take it for a language model."""
    assert "without a language model" in await answer("hi", first=True)
    assert "没有语言模型" in await answer("你好", first=True)
    assert "language model" not in await answer("hi")


async def test_a_question_is_answered_from_memory_with_its_date() -> None:
    """Only what bears on it nearly as well as the best is told."""
    text = await answer("where do I live?", remembered=(LISBON, PORTO, TEA))
    assert (
        text
        == "You told me on 21 Nov 2026: you live in Lisbon.\nEarlier, on 3 May 2025, you had told me: you live in Porto."
    )


async def test_what_is_not_remembered_is_not_made_up() -> None:
    """It would rather say that it does not know."""
    assert await answer("what is my shoe size?") == "I have nothing in memory that answers this."
    assert await answer("我的鞋码是多少？") == "我的记忆里没有能回答这个问题的内容。"


async def test_what_is_noted_is_said() -> None:
    """The person sees at once what was understood."""
    assert await answer("I live in Lisbon", noted=("you live in Lisbon",)) == "Noted: you live in Lisbon."
    assert await answer("我住在里斯本", noted=("你住在里斯本",)) == "记下了：你住在里斯本。"


@pytest.mark.parametrize(
    ("learning", "english", "chinese"),
    [
        ("on", "found no fact in it", "没有从中找到"),
        ("off", "learning is off here. /memory on", "这里的学习已关闭。/memory on"),
        ("out", "you have opted out. /privacy in", "你选择了不让我学习。/privacy in"),
        ("never", "this agent has no memory", "这个助手没有记忆"),
    ],
)
async def test_why_nothing_is_noted_is_said(learning: Learning, english: str, chinese: str) -> None:
    """Who has switched learning off would else think that the words were not understood."""
    assert english in await answer("I like tea", learning=learning)
    assert chinese in await answer("我喜欢茶", learning=learning)
    assert await answer("where do I live?", learning=learning) == "I have nothing in memory that answers this."


async def test_text_is_streamed_once() -> None:
    """The terminal shows it as it comes."""
    shown: list[str] = []

    async def on_text(text: str) -> None:
        shown.append(text)

    completion = await OfflineProvider().complete(Request(messages=TALKED, said="hi"), on_text)
    assert "".join(shown) == completion.text


async def test_asked_for_everything_it_tells_what_is_known() -> None:
    """The first thing a newcomer asks a bot that remembers."""
    known = Remembered(said="you like hiking", when="3 May 2025", score=0.0)
    for question in (
        "what do you know about me?",
        "Do you remember anything about me",
        "你知道我的哪些事？",
        "who am I?",
    ):
        text = await answer(question, remembered=(LISBON, PORTO, known))
        assert "you live in Lisbon" in text and "you like hiking" in text and "Porto" not in text
    assert "hiking" not in await answer("where do I live?", remembered=(LISBON, known))
    assert "hiking" not in await answer("what is the capital of France?", remembered=(known,))


async def test_of_attachments_it_says_that_it_cannot_look() -> None:
    """Nobody should think that a picture was looked at; the words beside it are answered all the same."""
    text = await answer("", attached=("[picture: cat.jpg]", "[file: a.txt]"))
    assert text == (
        "I got [picture: cat.jpg]; [file: a.txt]. No language model is configured, so I can't look into it: I only keep"
        " what it is called, and its text where there is any."
    )
    text = await answer("I live in Lisbon", noted=("you live in Lisbon",), attached=("[picture: home.jpg]",))
    assert text.startswith("Noted: you live in Lisbon.\nI got [picture: home.jpg]. No language model")
    assert "没有配置语言模型" in await answer("看看这个", attached=("[picture: cat.jpg]",))
    assert "没有配置语言模型" in await answer("", attached=("[file: 报告.pdf]",))
