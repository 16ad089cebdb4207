"""Answers of the agent without a model in Chinese."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.llm import ChatMessage, Remembered, Request
from agents.offline.provider import OfflineProvider
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens

MINUTE = 60_000
HOME = Remembered(said="你住在绍兴", when="昨天", at=MINUTE, key="home", value="绍兴")
CAT = Remembered(said="你的宠物：猫 年糕", when="今天", at=MINUTE, key="pet", value="猫 年糕")
WIFE = Remembered(said="你的妻子：罗琳", when="今天", at=MINUTE, key="wife", value="罗琳", relation=True)


def said(text: str, minute: int = 1) -> Remembered:
    return Remembered(said=text, when="今天", at=minute * MINUTE, verbatim=True)


async def answer(text: str, *remembered: Remembered, noted: tuple[str, ...] = ()) -> str:
    request = Request(
        messages=(ChatMessage(role="assistant", content="你好"),),
        said=text,
        remembered=remembered,
        noted=noted,
        language="zh",
        agent="remora",
        moment=datetime(2026, 9, 21, 14, 5, tzinfo=UTC),
    )
    return (await OfflineProvider(tokens, simplified, parts).complete(request)).text


async def test_a_fact_is_told_with_its_day() -> None:
    assert await answer("我现在住哪儿？", HOME, CAT) == "昨天你告诉过我：你住在绍兴。"


async def test_a_relative_is_found_by_any_word_for_them() -> None:
    assert await answer("我太太叫什么？", WIFE, HOME) == "今天你告诉过我：你的妻子：罗琳。"


async def test_a_pet_is_found_by_one_character() -> None:
    assert "年糕" in await answer("我的猫叫什么？", CAT)
    assert "年糕" not in await answer("我的狗叫什么？", CAT)


async def test_what_was_said_is_quoted_as_it_was_written() -> None:
    assert await answer("冬天的被子收在哪？", said("冬天的被子收在頂櫃裡了")) == "今天你说过：“冬天的被子收在頂櫃裡了”"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("车库的钥匙在哪儿？", "阳台的钥匙挂在门后"), ("我妹妹的生日是几号？", "我的生日是四月六号"), ("展览几点开门？", "展览的票六十块"), ("我欠阿涛多少钱？", "阿涛欠我三百块"),
        ("我的护照在哪？", "你知道我的护照在哪吗"), ("我以前骑什么车？", "我骑一辆蓝色的山地车"), ("我会游泳吗？", "我姐会游泳"), ("聚餐在哪里？", "聚餐是明天下午"),
    ],
)  # fmt: skip
async def test_what_is_near_but_different_is_no_answer(asked: str, told: str) -> None:
    assert (await answer(asked, said(told))).startswith(("这个我不知道", "不确定"))


async def test_the_message_that_changes_what_was_said_answers() -> None:
    told = (said("家长会定在十号下午"), said("老师说改到十七号了", minute=2))
    assert "十七号" in await answer("家长会是哪天？", *told)
    other = (said("家长会定在十号下午"), said("晚饭吃饺子", minute=2))
    assert "十号" in await answer("家长会是哪天？", *other)


async def test_what_is_over_is_told_as_past() -> None:
    ended = Remembered(
        said="你的饮食习惯：素食", when="今天", at=1, key="diet", value="素食", superseded=True, until="2026年9月21日"
    )
    assert await answer("我还吃素吗？", ended) == "现在不再是这样了。2026年9月21日之前：你的饮食习惯：素食。"


async def test_a_yes_or_no_question_is_answered_with_yes_or_no() -> None:
    likes = Remembered(said="你喜欢爬山", when="昨天", at=1, key="likes", value="爬山")
    hates = Remembered(said="你不喜欢苦瓜", when="昨天", at=1, key="dislikes", value="苦瓜")
    assert await answer("我喜欢爬山吗？", likes) == "是的，你喜欢爬山（昨天你告诉我的）。"
    assert await answer("我喜欢苦瓜吗？", hates) == "不，你不喜欢苦瓜（昨天你告诉我的）。"


async def test_the_time_and_the_date_are_told_in_chinese() -> None:
    assert await answer("现在几点？") == "现在是 14:05（UTC）。"
    assert await answer("今天几号？") == "今天是2026年9月21日星期一。"


async def test_what_is_noted_is_said() -> None:
    assert await answer("我住在绍兴", noted=("你住在绍兴",)) == "记下了：你住在绍兴。"


async def test_who_is_not_known_is_named() -> None:
    assert await answer("阿龙是谁？") == "我还不知道任何关于阿龙的事。"
