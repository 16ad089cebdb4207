"""Chinese questions, small talk and requests as the agent without a model reads them."""

from __future__ import annotations

import pytest

from agents.offline.question import AskedQuestion, asked, content, held, is_question, lacking, social
from agents.offline.speech import Speech, speech
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens
from tests.kit.tables import each_row

ZH: Speech = speech("zh", simplified, parts)


def simple_tokens(text: str) -> list[str]:
    return tokens(simplified(text))


def question(text: str) -> AskedQuestion:
    found = asked(text, ZH, simple_tokens)
    assert found is not None
    return found


@each_row(
    "text",
    [
        "我的伞放哪儿了", "你记得我几点的飞机吗", "我姐夫叫什么来着", "我的車停在哪裡", "讲讲我的邻居", "我有没有跟你说过我的血型", "上次体检花了多少钱？",
    ],
)  # fmt: skip
def test_a_question_is_known_without_its_mark(text: str) -> None:
    assert is_question(text, ZH)


@each_row(
    "text",
    [
        "我什么都不想吃", "没什么大事", "谁都不知道这件事", "我还没去过敦煌呢", "昨天和几个朋友爬山", "怎么这么冷", "过几天再说", "差不多五点下班",
    ],
)  # fmt: skip
def test_a_statement_with_a_question_word_asks_nothing(text: str) -> None:
    assert not is_question(text, ZH)


@each_row(
    ("text", "kind"),
    [
        ("哈喽呀", "greeting"), ("下午好！", "greeting"), ("太谢谢你了", "thanks"), ("好的，多谢啦", "thanks"), ("那先这样，拜拜", "bye"),
        ("好困，晚安", ""), ("晚安～", "night"), ("你最近好吗？", "how"), ("你到底是谁呀", "who"), ("你是機器人嗎？", "human"),
        ("你都能做些什么？", "can"), ("请问现在几点了", "clock"), ("今天星期几？", "calendar"), ("哈哈哈哈", "laugh"), ("嗯嗯，知道了", "fine"),
        ("给我写一首诗吧", "creative"), ("我妈妈几点到？", ""), ("谢谢你，我明天去大连", ""),
    ],
)  # fmt: skip
def test_small_talk_is_a_whole_message(text: str, kind: str) -> None:
    assert social(text, ZH) == ((kind,) if kind else ())


@each_row(
    ("text", "key"),
    [
        ("你知道我叫什么吗", "name"), ("我的生日是哪天？", "birthday"), ("我今年多大了", "age"), ("我家住在什么地方？", "home"),
        ("我老家是哪里的", "hometown"), ("我在哪家公司上班？", "employer"), ("我是干什么工作的", "occupation"), ("我大学读的是什么专业", "studies"),
        ("我对什么药过敏？", "allergy"), ("我討厭吃什麼？", "dislikes"), ("我平时有什么爱好", "hobby"), ("我最喜欢的水果是什么", "favourite"),
        ("我家的兔子叫什么名字", "pet"), ("我媳妇叫什么", "relation"),
    ],
)  # fmt: skip
def test_a_question_for_a_fact_names_its_key(text: str, key: str) -> None:
    asks = question(text).asks
    assert asks is not None
    assert key in asks.keys


@pytest.mark.parametrize("text", ["我妹妹的生日是哪天？", "我儿子对什么过敏？", "我爸在哪儿上班", "我外婆住在哪里"])
def test_a_question_about_a_relative_asks_for_no_fact_of_oneself(text: str) -> None:
    found = question(text)
    assert found.asks is None
    assert found.musts


@each_row(
    ("text", "name"),
    [
        ("你知道小林的什么事？", "小林"), ("跟我说说我的教练", "教练"), ("关于团团你还记得什么", "团团"), ("阿龙是谁？", "阿龙"), ("你还记得我的牙医吗？", "牙医"),
    ],
)  # fmt: skip
def test_a_question_about_somebody_gives_the_name(text: str, name: str) -> None:
    assert question(text).about == name


@pytest.mark.parametrize("text", ["你都知道我些什么？", "关于我你记得什么", "我是谁？", "你記住了什麼？"])
def test_a_question_for_everything_is_told(text: str) -> None:
    assert question(text).everything


def test_words_that_say_nothing_are_cut_out() -> None:
    assert content("我的储物柜是几号？", ZH, simple_tokens) == {"储物", "物柜"}
    assert content("我有几只猫？", ZH, simple_tokens) == {"猫"}


def test_the_kind_of_thing_that_is_asked_for_need_not_be_said() -> None:
    assert content("窗帘是什么颜色？", ZH, simple_tokens) == {"窗帘"}
    assert content("我用什么手机？", ZH, simple_tokens) == {"手机"}


def test_characters_may_be_said_apart_but_not_missing() -> None:
    said = held("我抽了十年的烟", ZH, simple_tokens)
    assert not lacking(frozenset({"抽烟"}), said, inflected=False)
    assert lacking(frozenset({"喝烟"}), said, inflected=False) == {"喝烟"}


def test_a_word_is_held_by_one_that_means_the_same() -> None:
    assert "姥姥" in held("外婆住在乡下", ZH, simple_tokens)


def test_traditional_characters_ask_the_same() -> None:
    assert content("車險什麼時候到期？", ZH, simple_tokens) == content("车险什么时候到期？", ZH, simple_tokens)
