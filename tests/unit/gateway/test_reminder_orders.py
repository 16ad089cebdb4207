"""Words that may order something of reminders are told from those that can't, before anything is read."""

from gateway.commands.reminders import may_order


def test_only_orders_and_words_of_no_language_may_order() -> None:
    for text in (
        "cancel the second reminder",
        "show me my reminders",
        "lösche alle Erinnerungen",
        "取消第二个提醒",
        "10",
    ):
        assert may_order(text), text
    for text in ("I live in Lisbon and work at a bakery", "where do I live?", "ich wohne in Dresden", "我喜欢爬山"):
        assert not may_order(text), text
