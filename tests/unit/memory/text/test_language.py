"""The language of a short text shows in its script and its common words."""

from __future__ import annotations

from memory.text.language import language_of, last_language
from tests.kit.tables import each_row


@each_row(("text", "language"), [
        ("hallo", "de"), ("danke", "de"), ("hola", "es"), ("gracias!", "es"), ("Bonjour", "fr"), ("merci", "fr"),
        ("hello", "en"), ("猫を飼っています", "ja"), ("我养了一只猫", "zh"),
        ("Wo liegt mein Ausweis?", "de"), ("mi perro se llama Nube", "es"), ("ma sœur habite à Lille", "fr"),
        ("my brother lives in Malmö", "en"), ("rappelle-moi d'appeler maman dimanche à 11h", "fr"), ("we met in July", "en"),
    ])  # fmt: skip
def test_a_text_is_told_by_its_words_and_script(text: str, language: str) -> None:
    """A person is answered in the language they write."""
    assert language_of(text) == language


@each_row("text", ["", "ok", "no", "Ana", "14:30", "🙂", "ta ra"])
def test_a_text_that_could_be_several_has_none(text: str) -> None:
    """A guess would answer an "ok" in a language the person does not speak."""
    assert language_of(text) is None


def test_a_letter_alone_shows_no_language() -> None:
    assert language_of("y") is None and language_of("A!") is None


@each_row(("texts", "language"), [
        (["おはよう", "4/2 10:00 美容院"], "ja"), (["おはよう", "4/2 美容院", "免許更新"], "ja"),
        (["おはよう", "我明天很忙"], "zh"), (["4/2 10:00 美容院"], "zh"), (["おはよう", "see you then", "牛奶"], "zh"), ([], None),
    ])  # fmt: skip
def test_characters_without_kana_are_japanese_from_who_writes_japanese(texts: list[str], language: str | None) -> None:
    """Notes and dates often have no kana."""
    assert last_language((text, language_of(text)) for text in reversed(texts)) == language
