"""Words that may order something of reminders are told from those that can't, before anything is read."""

from gateway.commands.reminders import may_order
from memory.reminders.orders import read, reworded
from memory.text.times.phrases import is_request


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


def test_my_reminders_are_a_list_and_all_of_them_are_cancelled() -> None:
    for language, text in (("de", "meine Erinnerungen"), ("zh", "我的提醒"), ("ja", "私のリマインダー")):
        assert [order.action for order in read(text, language=language)] == ["list"], text
        assert reworded(text, language=language) == "" and not is_request(text, language=language)
    for language, text in (("es", "borra todos mis recordatorios"), ("fr", "annule tous mes rappels")):
        (order,) = read(text, language=language)
        assert order.action == "cancel" and order.every and not order.rest
    (order,) = read("cancela el recordatorio del banco", language="es")
    assert order.action == "cancel" and order.rest == "banco"
