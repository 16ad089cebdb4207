"""Names in texts that a forget takes along."""

from __future__ import annotations

import pytest

from memory.forgetting import choose
from memory.forgetting.choose import gives


@pytest.mark.parametrize(
    ("name", "text", "is_word", "given"),
    [
        ("Pixel", "Pixel is a beagle", False, True), ("Pixel", "we took Pixel's bowl", False, True),
        ("Max", "I met Max Weber", False, False),
        ("Max", "I met Max Weber, and later Max.", False, True),
        ("Will", "Will you come?", True, False), ("Will", "I met Will again", True, True),
        ("Mark", "Das kostet 20 Mark", False, False), ("Hope", "I hope so", False, False),
        ("pixel", "the pixel is dead", False, False), ("豆豆", "喂豆豆", False, True), ("小白", "小白今天吐了", False, True),
        ("小白", "给小白洗澡", False, True), ("小白", "小白菜很好吃", False, False), ("小白", "小白菜，小白不吃", False, True),
        ("小愛", "小愛來了", False, True), ("花花", "花花世界", False, False), ("健太", "健太と会った", False, True),
        ("さくら", "さくらちゃん", False, True), ("さくら", "さくら散歩", False, True), ("さくら", "さくらんぼを買う", False, False),
        ("モモ", "モモンガ", False, False), ("モモ", "サクラモモは赤い", False, False), ("나비", "나비가 잔다", False, True),
        ("나비", "나비넥타이", False, False),
    ],
)  # fmt: skip
def test_a_text_in_doubt_gives_no_name(name: str, text: str, is_word: bool, given: bool) -> None:
    assert gives(name, text, is_word=is_word) is given


@pytest.mark.parametrize(
    ("request_for", "is_whole"),
    [
        ("forget everything about my dog", True), ("forget all you know about my dog", True),
        ("forget everything that I told you about my dog", True),
        ("vergiss alles über meinen Hund", True), ("olvida todo sobre mi perro", True),
        ("oublie tout sur mon chat", True), ("忘掉关于我的狗的一切", True), ("犬のことを全部忘れて", True),
        ("forget my dog, that's all", False), ("forget my dog, all of it", False), ("after all, forget my dog", False),
        ("olvida mi perro, eso es todo", False), ("忘掉我的狗，全部就这些", False), ("犬を忘れて、これで全部", False),
    ],
)  # fmt: skip
def test_all_that_is_known_is_meant_only_where_it_is_said_of_something(request_for: str, is_whole: bool) -> None:
    assert choose.everything(request_for) is is_whole
