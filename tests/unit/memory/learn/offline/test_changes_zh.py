"""Tests requests to forget, corrections and ends in Chinese."""

from __future__ import annotations

import time

import pytest

from memory.learn.offline.changes import Denied, changes, to_forget
from tests.kit.tables import each_row


@each_row(
    ("text", "what"),
    [
        ("请忘掉我的血型", "血型"), ("帮我把体重那条删了", "体重"), ("把我前任的事忘了吧", "前任"), ("把關於我搬家的事全部刪掉", "搬家"), ("忘了我的车牌号吧", "车牌号"),
        ("我的工资你别记", "工资"), ("不想让你记着我的年龄，删了", "年龄"), ("不该跟你说我失眠的事，请别保留", "失眠"), ("护照号可以删了吧", "护照号"),
        ("就当我没说过面试的事", "面试"), ("刚才说老马的是气话，别当真", "老马"), ("能不能忘掉我欠债的事？", "欠债"), ("全部忘掉吧", "all"),
        ("把所有关于我的信息都删了", "all"),
    ],
)  # fmt: skip
def test_a_request_to_forget_names_what_it_means(text: str, what: str) -> None:
    assert to_forget(text) == what


@each_row(
    "text",
    [
        "我忘了带钥匙", "忘了带伞", "密码忘了", "别忘了明天开会", "不要忘记我的生日", "老公忘了我们的纪念日", "我把照片都删了", "我忘不了那个夏天", "我不想让我妈知道这事",
    ],
)  # fmt: skip
def test_who_has_forgotten_something_asks_nothing(text: str) -> None:
    assert to_forget(text) is None


@each_row(
    ("text", "what"),
    [
        ("我和小丽分手了", "小丽"), ("我戒酒了", "酒"), ("钢琴太贵，不学了", "钢琴"), ("我把吉他卖了", "吉他"), ("去三亚的行程取消了", "去三亚的行程"),
        ("漫画我不收集了，全送人了", "漫画"), ("我不再吃素了", "吃素"), ("旺财上周去世了", "旺财"), ("我从邮局辞职了", "邮局"), ("我對蝦不過敏了", "蝦"),
        ("我的湿疹好了", "湿疹"), ("围棋我再也不下了", "围棋"), ("上个月我不当店长了", "店长"), ("大夫不让练，我不练拳了", "练拳"), ("陈凯把我甩了", "陈凯"),
    ],
)  # fmt: skip
def test_what_is_over_is_named(text: str, what: str) -> None:
    assert [ended.what for ended in changes(text).ended] == [what]


def test_a_separation_ends_whoever_it_was() -> None:
    (ended,) = changes("我离婚了").ended
    assert ended.what == ""
    assert {"wife", "husband"} <= ended.keys


@each_row("text", ["我老公不在家了", "手机没电了", "妈妈走了", "我好了，你呢", "我不知道", "昨天去看电影了"])
def test_what_passes_ends_nothing(text: str) -> None:
    found = changes(text)
    assert not (found.ended or found.denied or found.corrects)


@each_row(
    ("text", "wrong", "new"),
    [
        ("我不叫李明，我叫李铭", "李明", "李铭"), ("我住在苏州，不是杭州", "杭州", "苏州"), ("是周四不是周三", "周三", "周四"),
        ("不是桃子，是李子过敏，我说岔了", "桃子", "李子"), ("我没有对虾过敏", "虾", ""), ("不對，她叫陳琳，不是陳林", "陳林", "陳琳"),
        ("狗的名字不是豆豆，是嘟嘟", "豆豆", "嘟嘟"),
    ],
)  # fmt: skip
def test_a_denial_says_what_was_wrong(text: str, wrong: str, new: str) -> None:
    assert changes(text).denied == (Denied(what=wrong, new=new),)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("更正一下，会议是下午四点", "会议是下午四点"), ("我记错了，弟弟八岁", "弟弟八岁"), ("打错字了，我是会计", "我是会计"),
    ],
)  # fmt: skip
def test_a_correction_is_known_by_its_opening(text: str, rest: str) -> None:
    found = changes(text)
    assert found.corrects
    assert found.rest == rest


@pytest.mark.parametrize(
    ("text", "meant"), [("不对，是小荷，荷花的荷", "小荷"), ("我生日你记错了，是5月8号", "5月8号")]
)
def test_a_correction_may_say_only_what_holds(text: str, meant: str) -> None:
    found = changes(text)
    assert found.corrects
    assert found.new == meant


@each_row("text", ["不好意思", "不错", "不用了", "快递公司搞错了", "其实我挺开心的"])
def test_a_polite_or_plain_word_corrects_nothing(text: str) -> None:
    assert not changes(text).corrects


@each_row("part", ["我和", "请把", "不是的是", "今天", "的事请", "我不吃了，"])
def test_a_long_repetition_is_read_in_no_time(part: str) -> None:
    text = (part * 240)[:239]
    start = time.thread_time()
    changes(text)
    to_forget(text)
    assert time.thread_time() - start < 2
