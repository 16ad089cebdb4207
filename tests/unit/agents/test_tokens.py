"""Tests of the token estimate: its shape for any text, and its nearness to real counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.budget import count_tokens
from tests.kit.tables import each_row

# Any code point, lone surrogates included: chat platforms have sent them.
any_text = st.text(st.characters())


@given(any_text, any_text)
def test_an_estimate_never_falls_when_text_is_added_at_either_end(text: str, more: str) -> None:
    """Budgets are filled piece by piece; a falling estimate would let a piece in that does not fit."""
    assert count_tokens(text + more) >= count_tokens(text)
    assert count_tokens(more + text) >= count_tokens(text)


@given(any_text, any_text)
def test_an_estimate_of_parts_is_never_below_the_estimate_of_the_whole(text: str, more: str) -> None:
    """Callers add up estimates of pieces and send the joined text."""
    assert count_tokens(text) + count_tokens(more) >= count_tokens(text + more)


@given(any_text)
def test_only_the_empty_text_costs_nothing(text: str) -> None:
    """A free non-empty text could be packed into a prompt without end."""
    assert (count_tokens(text) == 0) == (text == "")


# The true counts are o200k_base's, taken once by hand.
@each_row(
    ("text", "true_count"),
    [
        ("My sister Ana moved to Lisbon last spring, and we still call each other every Sunday evening.", 19),
        ("Meine Schwester ist im Frühling nach Lissabon gezogen, und wir telefonieren jeden Sonntag.", 19),
        ("Моя сестра весной переехала в Лиссабон, и мы до сих пор созваниваемся каждое воскресенье.", 29),
        ("我妹妹去年春天搬到了里斯本，我们每个星期天晚上还是会打电话。", 21),
        ("妹は去年の春にリスボンへ引っ越しましたが、今でも毎週日曜日の夜に電話をしています。", 30),
        ("여동생은 작년 봄에 리스본으로 이사했지만 우리는 아직도 일요일마다 통화해요.", 28),
        ("أختي انتقلت إلى لشبونة في الربيع الماضي وما زلنا نتصل ببعضنا كل يوم أحد.", 27),
        ("मेरी बहन पिछले साल लिस्बन चली गई और हम अब भी हर रविवार को बात करते हैं।", 23),
        ('for row in rows:\n    total += row.price * 1.19  # with tax\nprint(f"{total:.2f}")\n', 28),
    ],
)
def test_an_estimate_is_near_the_count_of_a_real_tokenizer(text: str, true_count: int) -> None:
    """The window and the recall budget are cut by this number, so every script must come out about right."""
    assert 0.8 * true_count <= count_tokens(text) <= 1.8 * true_count


def test_chinese_is_dearer_than_english_of_the_same_length() -> None:
    """Four characters to a token, the usual rule, would overflow the window of a Chinese chat fourfold."""
    assert count_tokens("我今天想去图书馆看书" * 10) >= 3 * count_tokens("I go away " * 10)


@each_row("unit", ["word ", "文", "🐟", "\ud800", "é"])
def test_a_very_long_text_costs_in_proportion_to_its_length(unit: str) -> None:
    """A pasted megabyte must be counted whole, neither sampled nor capped."""
    assert count_tokens(unit * 200_000) == pytest.approx(count_tokens(unit * 2_000) * 100, rel=0.01)
