"""The agent without a model in German, Spanish, French and Japanese."""

from __future__ import annotations

from datetime import UTC, datetime
from string import Formatter

import pytest

from agents.llm import ChatMessage, Remembered, Request
from agents.offline.provider import OfflineProvider
from agents.offline.speech import speech
from languages import LANGUAGES
from memory.text.sentences import parts

NEW = [code for code in LANGUAGES if code not in ("en", "zh")]
MOMENT = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


async def answer(said: str, language: str, *remembered: Remembered) -> str:
    provider = OfflineProvider(lambda text: text.casefold().replace("?", " ").replace("？", " ").split(), str, parts)
    request = Request(
        messages=(ChatMessage(role="assistant", content="…"),), said=said, language=language, remembered=remembered, moment=MOMENT, agent="Remora"
    )  # fmt: skip
    return (await provider.complete(request)).text


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("code", NEW)
def test_each_language_says_all_that_english_says(code: str) -> None:
    """A text that is missing would end an answer in an error."""
    english, own = speech("en", str, parts), speech(code, str, parts)
    understood = {*own.social, *(kind for kind, _ in own.talk)}
    unused = {kind for kind, _ in english.talk} - understood
    assert {key: _fields(own.texts[key]) for key in english.texts if key not in unused} == {
        key: _fields(text) for key, text in english.texts.items() if key not in unused
    }


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        ("de", "Moin!", "greeting"), ("de", "Vielen Dank!", "thanks"), ("de", "bis bald", "bye"),
        ("de", "Was kannst du alles?", "can"), ("de", "Bist du ein Mensch?", "human"),
        ("es", "¡Buenas tardes!", "greeting"), ("es", "muchas gracias", "thanks"), ("es", "hasta luego", "bye"),
        ("es", "¿quién eres?", "who"), ("fr", "Salut", "greeting"), ("fr", "merci bien", "thanks"),
        ("fr", "bonne nuit", "bye"), ("fr", "t'es un robot ?", "human"), ("ja", "こんばんは", "greeting"),
        ("ja", "ありがとうございます", "thanks"), ("ja", "おやすみなさい", "bye"), ("ja", "何ができますか？", "can"),
    ],
)  # fmt: skip
async def test_small_talk_is_answered_with_small_talk(code: str, said: str, kind: str) -> None:
    assert await answer(said, code) == speech(code, str, parts).texts[kind].format(name="Remora")


@pytest.mark.parametrize(
    ("code", "said", "key", "value"),
    [
        ("de", "Wo wohne ich?", "home", "Husum"), ("de", "Wie alt bin ich?", "age", "52"),
        ("de", "Wie heißt meine Schwester?", "sister", "Ute"), ("es", "¿Dónde vivo?", "home", "Getxo"),
        ("es", "¿A qué me dedico?", "occupation", "panadera"), ("fr", "Où est-ce que j'habite ?", "home", "Quimper"),
        ("fr", "C'est quand mon anniversaire ?", "birthday", "4 mars"), ("ja", "私の名前は何ですか？", "name", "航平"),
        ("ja", "誕生日はいつ？", "birthday", "3月4日"),
    ],
)  # fmt: skip
async def test_a_question_is_answered_by_the_fact_it_asks_for(code: str, said: str, key: str, value: str) -> None:
    fact = Remembered(said=f"<{value}>", when="…", key=key, value=value, relation=key == "sister")
    other = Remembered(said="<x>", when="…", key="likes", value="x")
    text = await answer(said, code, other, fact)
    assert f"<{value}>" in text and "<x>" not in text


@pytest.mark.parametrize(
    ("code", "said"), [("de", "Wie heißt mein Bruder?"), ("es", "¿Cómo se llama mi hermano?"), ("fr", "Comment s'appelle mon frère ?"), ("ja", "兄の名前は？")]
)  # fmt: skip
async def test_a_fact_about_somebody_else_is_no_answer(code: str, said: str) -> None:
    sister = Remembered(said="<Ute>", when="…", key="sister", value="Ute", relation=True)
    assert (await answer(said, code, sister)).startswith(speech(code, str, parts).texts["unknown"])


@pytest.mark.parametrize(
    ("code", "said", "date"),
    [
        ("de", "Welcher Tag ist heute?", "22. November"), ("es", "¿Qué día es hoy?", "22 de noviembre"),
        ("fr", "On est quel jour ?", "22 novembre"), ("ja", "今日は何日？", "11月22日"),
    ],
)  # fmt: skip
async def test_the_date_is_written_as_the_language_writes_it(code: str, said: str, date: str) -> None:
    assert date in await answer(said, code)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("en", "can I eat peanut butter?"), ("en", "do I eat nuts?"), ("de", "darf ich Erdnussbutter essen?"),
        ("es", "¿puedo comer crema de cacahuete?"), ("fr", "est-ce que je peux manger du beurre de cacahuète ?"),
        ("ja", "ピーナッツバターは食べられる？"), ("zh", "我能吃花生酱吗？"),
    ],
)  # fmt: skip
async def test_what_one_may_eat_is_never_answered_with_yes(code: str, said: str) -> None:
    """Whoever asks for peanut butter may not have told of it, but of peanuts."""
    allergy = Remembered(said="<peanuts>", when="…", key="allergy", value="peanuts 花生 ピーナッツ")
    yes = speech(code, str, parts).texts["yes"].partition("{")[0]
    text = await answer(said, code, allergy)
    assert "<peanuts>" in text and not text.startswith(yes)
