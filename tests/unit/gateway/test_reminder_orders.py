"""Words that may order something of reminders are told from those that can't, before anything is read."""

from __future__ import annotations

import pytest

from gateway.commands.reminder_orders import may_order


@pytest.mark.parametrize(
    "text",
    ["cancel the second reminder", "show me my reminders", "lösche alle Erinnerungen", "取消第二个提醒", "ok", "10"],
)
def test_orders_and_words_of_no_language_may_order(text: str) -> None:
    assert may_order(text)


@pytest.mark.parametrize(
    "text", ["I live in Lisbon and work at a bakery", "where do I live?", "ich wohne in Dresden", "我喜欢爬山"]
)
def test_other_words_order_nothing(text: str) -> None:
    assert not may_order(text)
