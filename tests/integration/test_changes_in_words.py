"""Changes in somebody's life, told without a model: moves, ends, corrections of what was said a moment ago."""

from __future__ import annotations

import pytest

from bench.offline import talk


@pytest.mark.parametrize(
    ("before", "told", "home"),
    [
        ("I live in Truro", "so we moved to Falmouth last week!", "Falmouth"),
        ("Ich wohne in Gera", "Wir sind gerade umgezogen und jetzt in Weimar", "Weimar"),
        ("我住在无锡", "我们搬家啦！现在住在苏州", "苏州"),
        ("J'habite à Nantes", "on a déménagé, maintenant c'est Vannes", "Vannes"),
        ("Vivo en Lugo", "nos hemos mudado y ahora estamos en Vigo", "Vigo"),
        ("奈良に住んでいます", "引っ越しました、今は堺です", "堺"),
    ],
)
async def test_whoever_moves_has_one_home(before: str, told: str, home: str) -> None:
    async with talk() as person:
        await person.say(before)
        await person.say(told)
        assert await person.held() == (f"home: {home}",)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("I'm on a low carb diet", "I'm finally off that diet"),
        ("Sigo una dieta vegana", "ya no sigo esa dieta"),
        ("mi novio se llama Iker", "hemos roto hace dos días"),
    ],
)
async def test_what_is_over_is_current_no_longer(before: str, told: str) -> None:
    async with talk() as person:
        await person.say(before)
        assert await person.held()
        await person.say(told)
        assert not await person.held()


@pytest.mark.parametrize(
    ("said", "corrected", "asked", "right", "wrong"),
    [
        ("le cours de poterie est lundi à 18h", "oh pardon, c'est jeudi", "c'est quand la poterie ?", "jeudi", "lundi"),
        ("周六和小周去爬山", "不对，是周日", "哪天去爬山？", "周日", "周六"),
        ("mi sobrino estudia Química", "Me equivoqué: estudia Física", "¿qué estudia mi sobrino?",
         "Física", "Química"),
        ("Elterngespräch am Montag um 17 Uhr", "wurde auf Mittwoch verschoben", "Wann ist das Elterngespräch?",
         "Mittwoch", "Montag"),
        ("Ich fange am Montag bei Siemens an", "es ist nicht Montag, sondern der 7. Dezember",
         "wann fange ich bei Siemens an?", "7. Dezember", "am Montag"),
        ("je commence chez Siemens lundi", "ce n'est pas lundi, c'est le 7 décembre",
         "quand est-ce que je commence chez Siemens ?", "7 décembre", "Siemens lundi"),
        ("empiezo en Siemens el lunes", "no es el lunes, es el 7 de diciembre", "¿cuándo empiezo en Siemens?",
         "7 de diciembre", "lunes"),
        ("我周一去西门子报到", "不是周一，是12月7号", "我什么时候去西门子报到？", "12月7号", "周一"),
        ("月曜日にシーメンスに入社します", "月曜日じゃなくて12月7日です", "いつシーメンスに入社しますか？",
         "12月7日", "月曜日にシーメンス"),
        ("歯医者は火曜の10時", "歯医者、木曜の11時に変えてもらった", "歯医者はいつ？", "木曜", "火曜の10時"),
    ],
)  # fmt: skip
async def test_a_correction_of_what_was_just_said_is_what_is_told(
    said: str, corrected: str, asked: str, right: str, wrong: str
) -> None:
    async with talk() as person:
        await person.say(said)
        await person.say(corrected)
        told = "\n".join(await person.say(asked))
        assert right in told
        assert wrong not in told


async def test_a_corrected_plan_has_the_date_of_its_new_day() -> None:
    async with talk() as person:
        await person.say("周六和小周去爬山")
        await person.say("不对，是周日")
        assert await person.held() == ("plan: 周日 (2026-09-27)和小周去爬山",)


async def test_a_decision_that_was_overruled_is_told_as_it_stands_now() -> None:
    async with talk() as person:
        await person.say("we're naming the kitten Nutmeg")
        await person.say("nope, the kids vetoed it, it will be Pickle")
        await person.say("/new")
        assert "Pickle" in "\n".join(await person.say("what is our kitten called?"))


@pytest.mark.parametrize("asked", ["remind me, who is my dentist?", "remind me, what's my dentist's name"])
async def test_whoever_asks_to_be_reminded_of_a_fact_is_told_it(asked: str) -> None:
    async with talk() as person:
        await person.say("my dentist is Dr Okafor")
        assert "Okafor" in "\n".join(await person.say(asked))


async def test_words_of_no_language_are_answered_in_that_of_earlier_ones() -> None:
    async with talk() as person:
        await person.say("mi hermano se llama Bruno y vive conmigo")
        await person.say("/new")
        assert "De acuerdo" in "\n".join(await person.say("Bruno, 42"))


async def test_the_words_by_which_a_fact_was_told_forget_it_with_its_message() -> None:
    async with talk() as person:
        await person.say("je bosse chez Darty au rayon télé")
        await person.say("oublie que je bosse chez Darty")
        await person.say("oui")
        assert not await person.held()


@pytest.mark.parametrize(
    ("told", "other", "same", "yes"),
    [
        ("登山が好きです", "お茶は好き？", "登山は好き？", "はい"),
        ("我喜欢登山", "我喜欢茶吗？", "我喜欢登山吗？", "是"),
        ("I love hiking", "do I like tea?", "do I like hiking?", "Yes"),
        ("ich mag Tee", "mag ich Kaffee?", "mag ich Tee?", "Ja"),
    ],
)
async def test_a_taste_is_not_confirmed_by_another(told: str, other: str, same: str, yes: str) -> None:
    async with talk() as person:
        await person.say(told)
        assert not "".join(await person.say(other)).startswith(yes)
        assert "".join(await person.say(same)).startswith(yes)
