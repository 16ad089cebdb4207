"""The texts that are worth a search in memory, in many languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.query import should_search
from tests.kit.tables import each_row

CHATTER = [
    # English
    "ok", "OK!", "k", "okkkk", "thanks!", "thank you so much", "Got it, thanks a lot", "lol", "hahaha", "haha ok cool",
    "yes", "nope", "sounds good", "great!!!", "good night", "hmmm", "wow…", "hi", "that's all, thanks", "makes sense",
    # Chinese
    "好", "好的", "好的，谢谢！", "哈哈", "哈哈哈哈", "嗯嗯", "谢谢你啊", "收到～", "知道了", "太棒了", "没问题", "晚安", "是的",
    # by shape and the commonest words elsewhere
    "obrigado", "muito obrigada!", "tá bom", "kkkkk", "gracias", "merci beaucoup", "danke", "спасибо", "Спасибо большое!",
    "да", "ага", "хахаха", "شكرا", "نعم", "はい", "うん", "ありがとうございます", "了解です", "わかりました", "なるほど", "笑",
    "네", "감사합니다", "ㅋㅋㅋㅋ", "ขอบคุณครับ", "धन्यवाद",
    # nothing said
    "", "   ", "👍", "👍🏽🎉", "❤️", "...", "???", "？！", ":)", "-",
]  # fmt: skip

SUBSTANCE = [
    # English: questions, words of memory, statements
    "who am I", "why", "why?", "what about Anna", "ok?", "remember me?", "last time", "as I told you", "again please do it",
    "Lisbon", "my sister's dog", "I moved to Porto", "thanks, and where does my sister live?", "good restaurants nearby",
    "book the usual", "not that one", "password = tulip99", "PIN = 4711",
    # Chinese
    "谁", "我是谁", "吃了吗", "你呢", "什么", "上次", "记得吗", "上海", "好吃吗", "好久不见", "我搬家了", "还是老样子", "帮我订机票",
    # Portuguese, Spanish, French, German
    "quem sou eu", "lembra?", "onde moro", "da última vez", "où", "meine Schwester", "mi hermana",
    # Japanese, Korean
    "誰", "どこですか", "元気か", "東京", "覚えてる", "前回の話", "寿司が好き", "왜", "내 이름", "기억해",
    # Russian, Arabic, Hindi, Thai
    "кто", "помнишь", "моя сестра", "где я живу", "من أنا", "هل تذكر", "اسمي؟", "मेरा नाम", "ฉันชื่ออะไร",
]  # fmt: skip

CODE = [
    "```\nprint('hello')\n```",
    "```python\nfor x in range(10):\n    print(x)",
    "`rm -rf build`",
    "def f(x):\n    y = x + 1\n    return (y)",
    "const a = 1;\nfunction go() {\n  a.b(c);\n}\n" * 5,
    "SELECT * FROM people;",
]


@each_row("text", CHATTER)
def test_chatter_does_not_search(text: str) -> None:
    """Memory recalled for "ok" fills the prompt with what nobody asked for."""
    assert not should_search(text)


@each_row("text", SUBSTANCE)
def test_questions_memory_words_and_statements_search(text: str) -> None:
    """A search that was not made is an answer that was not found, so short texts must pass too."""
    assert should_search(text)


@each_row("text", CODE)
def test_bare_code_does_not_search(text: str) -> None:
    """A pasted program has hundreds of words and none of them about a person."""
    assert not should_search(text)


@pytest.mark.parametrize("text", [f"{code}\nwhy does my usual setup refuse this" for code in CODE if "```" not in code])
def test_code_with_a_line_of_prose_searches(text: str) -> None:
    assert should_search(text)


def test_prose_around_a_fence_searches() -> None:
    """Text before and after a block counts as if the block were not there."""
    assert should_search("does this look like what we did?\n```\nx = 1\n```")
    assert should_search("```\nx = 1\n```\nmy project needs this")
    assert not should_search("thanks!\n```\nx = 1\n```")


@given(words=st.lists(st.from_regex(r"\A[b-df-hj-np-tv-z][aeiou][a-z]{3,7}\Z"), min_size=12, max_size=30))
def test_any_longer_prose_searches(words: list[str]) -> None:
    """In doubt yes: words that nobody listed, in a language that nobody thought of."""
    assert should_search(" ".join(words))


@given(text=st.text(alphabet="👍🎉❤️😂🙏 \n!.,~…、。-_*#", max_size=300))
def test_text_without_a_letter_never_searches(text: str) -> None:
    """Emoji and punctuation have no tokens, so the search would find nothing."""
    assert not should_search(text)


@given(text=st.text(max_size=200), ask=st.sampled_from(["?", "？", "؟"]))
def test_a_question_mark_beside_a_word_always_searches(text: str, ask: str) -> None:
    """The mark is the one sign of a question that needs no word list. (No backticks: they make it code.)"""
    assert should_search("weather " + text.replace("`", "")[:40] + ask)


def test_the_gate_reads_a_megabyte() -> None:
    """Pasted files come through here before every turn; each of these once invites a slow expression."""
    for text in ("x = 1;\n" * 150_000, "` " * 500_000, "👍" * 1_000_000, "a" * 1_000_000, "<a" * 500_000):
        should_search(text)
