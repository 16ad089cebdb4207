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


@pytest.mark.parametrize(
    ("said", "contradicted", "asked", "sure"),
    [
        ("I'm vegetarian", "actually no, i eat meat", "am I vegetarian?", "Yes"),
        ("My favourite colour is blue", "no", "what's my favourite colour?", "Your favourite"),
        ("Ich bin Vegetarier", "nein, doch nicht, ich esse Fleisch", "Bin ich Vegetarier?", "Ja"),
        ("Je suis végétarien", "en fait non, je mange de la viande", "est-ce que je suis végétarien ?", "Oui"),
        ("Mi color favorito es el azul", "no, el de la hierba", "¿cuál es mi color favorito?", "Tu color favorito"),
        ("我吃素", "其实不是，我吃肉", "我吃素吗？", "是的"),
        ("私はベジタリアンです", "いや、やっぱり肉も食べます", "私はベジタリアンですか？", "はい"),
    ],
)
async def test_what_is_contradicted_is_unsure_until_it_is_told_again(
    said: str, contradicted: str, asked: str, sure: str
) -> None:
    """The right value can't be read, but the old one is told with confidence no more."""
    async with talk() as person:
        (noted,) = (await person.say(said))[:1]
        (fact,) = await person.held()
        value = fact.partition(": ")[2]
        (doubted,) = await person.say(contradicted)
        assert value in doubted and doubted.split(":")[0] != noted.split(":")[0]
        (answer,) = await person.say(asked)
        assert value in answer and not answer.startswith(sure)
        await person.say(said)
        (answer,) = await person.say(asked)
        assert answer.startswith(sure) or sure == "是的"
        assert await person.held() == (fact,)


@pytest.mark.parametrize(
    "talked", ["no worries", "no thanks", "no idea what else to say", "No, what is it?", "sorry, phone call"]
)
async def test_a_no_that_is_meant_for_something_else_makes_nothing_unsure(talked: str) -> None:
    async with talk() as person:
        await person.say("I like tea")
        await person.say(talked)
        (answer,) = await person.say("do I like tea?")
        assert answer.startswith("Yes: you like tea")


async def test_what_is_contradicted_is_the_fact_that_has_a_word_of_it() -> None:
    async with talk() as person:
        await person.say("I'm vegetarian and I live in Bath")
        (doubted,) = await person.say("no, that's wrong about Bath")
        assert "Bath" in doubted and "vegetarian" not in doubted


_ASIDE = "I had a long day at the river"


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (["I'm allergic to nuts", _ASIDE], "No nuts for me today"),
        (["I'm allergic to nuts", _ASIDE], "No, the nuts were from Bath"),
        (["I like tea", "/help"], "no"),
        (["Ich bin gegen Nüsse allergisch", "Mir war heute langweilig"], "Nein, die Nüsse waren alt"),
        (["Je suis allergique aux noix", "La journée était longue"], "Non, les noix sont vieilles"),
        (["Soy alérgica a las nueces", "Ha sido un día largo"], "No, las nueces son viejas"),
        (["我对花生过敏", "今天真累"], "不，花生是旧的"),
        (["私はピーナッツアレルギーです", "今日は長かった"], "いいえ、ピーナッツは古いです"),
    ],
)
async def test_a_no_is_about_the_message_just_before(before: list[str], said: str) -> None:
    """A word that it shares with an older fact, or a command, makes it no contradiction of that."""
    async with talk() as person:
        for line in before:
            await person.say(line)
        sure = await person.held(sure=True)
        assert sure
        await person.say(said)
        assert await person.held(sure=True) == sure


async def test_a_no_after_an_hour_is_about_something_else() -> None:
    async with talk() as person:
        await person.say("I like tea")
        person.clock[0] += 3 * 3_600_000
        await person.say("no")
        assert await person.held(sure=True) == ("likes: tea",)


async def test_a_no_makes_nothing_unsure_that_the_person_pinned() -> None:
    async with talk() as person:
        (saved,) = await person.say("/remember I like tea")
        await person.say(f"/memory pin {saved[saved.index('m_') : saved.index(')')]}")
        await person.say("I like tea")
        await person.say("no")
        assert await person.held(sure=True) == ("likes: tea",)


@pytest.mark.parametrize(
    "declined",
    [
        "no thanks", "no, thank you", "nope, all good", "no I'm fine", "no, that's all", "nah I'm good",
        "nein danke", "nein, danke", "nee, passt schon", "nein, alles gut", "ne, schon gut", "nein, vielen Dank",
        "non merci", "non, merci", "non, ça va", "non merci beaucoup", "non, pas besoin",
        "no gracias", "no, gracias", "no, muchas gracias", "no, está bien", "no, nada más", "no pasa nada",
        "不用，谢谢", "不，谢谢", "没有，谢谢", "没有了，谢谢", "不用了", "没有，不用了",
        "いいえ、結構です", "いいえ、大丈夫です", "いや、大丈夫", "いいえ、ありがとう", "いえ、大丈夫です",
    ],
)  # fmt: skip
async def test_whoever_declines_contradicts_nothing(declined: str) -> None:
    told = {"n": "I like tea", "不": "我喜欢喝茶", "没": "我喜欢喝茶", "い": "お茶が好きです"}
    async with talk() as person:
        await person.say(told[declined[0]])
        sure = await person.held(sure=True)
        assert sure
        await person.say(declined)
        assert await person.held(sure=True) == sure


@pytest.mark.parametrize(
    ("said", "doubted"),
    [
        ("I like tea", "no"),
        ("I'm vegetarian", "actually no, i eat meat"),
        ("Ich bin Vegetarier", "nein, doch nicht, ich esse Fleisch"),
        ("Je suis végétarien", "en fait non, je mange de la viande"),
        ("Mi color favorito es el azul", "no, el de la hierba"),
        ("我吃素", "其实不是，我吃肉"),
        ("私はベジタリアンです", "いや、やっぱり肉も食べます"),
    ],
)
async def test_whoever_takes_back_a_no_is_told_what_holds_again(said: str, doubted: str) -> None:
    async with talk() as person:
        await person.say(said)
        sure = await person.held(sure=True)
        await person.say(doubted)
        assert await person.held(sure=True) == ()
        (undone,) = await person.say("/undo")
        assert await person.held(sure=True) == sure
        assert sure[0].partition(": ")[2] in undone


async def test_a_no_to_a_question_makes_nothing_unsure_that_was_told_before() -> None:
    async with talk() as person:
        await person.say("I like tea")
        await person.say("is it raining?")
        await person.say("no")
        assert (await person.say("do I like tea?"))[0].startswith("Yes: you like tea")


@pytest.mark.parametrize(
    ("said", "corrected", "asked", "right"),
    [
        ("mon lait préféré est à l'avoine", "en fait non, c'est au lait de vache", "quel est mon lait préféré ?", "vache"),
        ("my usual order is an oat latte", "actually no, it's a flat white", "what's my usual order?", "flat white"),
        ("Mein Fahrrad steht im Keller", "nein, in der Garage", "Wo steht mein Fahrrad?", "Garage"),
        ("my dentist appointment is on Tuesday at 3", "no wait, that's my mum's appointment",
         "when is my dentist appointment?", "mum's"),
    ],
)  # fmt: skip
async def test_a_quotation_is_not_given_without_what_contradicts_it(
    said: str, corrected: str, asked: str, right: str
) -> None:
    async with talk() as person:
        await person.say(said)
        await person.say(corrected)
        assert right in "\n".join(await person.say(asked))


@pytest.mark.parametrize(
    ("said", "back"),
    [
        ("I live in Bath", "scratch that"),
        ("I live in Bath", "never mind, scratch that"),
        ("Ich wohne in Graz", "streich das"),
        ("J'habite à Nantes", "je retire ce que j'ai dit"),
        ("Vivo en Lugo", "retiro lo dicho"),
        ("我住在苏州", "当我没说"),
        ("奈良に住んでいます", "やっぱりなし"),
    ],
)
async def test_what_is_taken_back_was_never_true(said: str, back: str) -> None:
    """Nobody lived where they did not live, not even until today."""
    async with talk() as person:
        await person.say(said)
        await person.say(back)
        assert await person.held() == ()
        told = await person.say("/memory search Bath Graz 苏州 奈良")
        assert "until" not in "\n".join(await person.say("where do I live?")), told


@pytest.mark.parametrize("back", ["scratch that", "forget it, jk"])
async def test_only_what_was_said_just_before_is_taken_back(back: str) -> None:
    async with talk() as person:
        await person.say("I'm allergic to nuts")
        await person.say("/help")
        await person.say(back)
        assert await person.held() == ("allergy: nuts",)
        await person.say("I live in Bath")
        person.clock[0] += 3 * 3_600_000
        await person.say(back)
        assert "home: Bath" in await person.held()


@pytest.mark.parametrize(
    ("fact", "plan", "dismissed"),
    [
        ("I'm allergic to nuts", "I have a dentist appointment on Tuesday at 3", ["never mind", "nvm", "never mind, forget it"]),
        ("Ich bin gegen Nüsse allergisch", "Ich habe am Dienstag um 15 Uhr einen Zahnarzttermin",
         ["lass mal", "vergiss es", "ach egal, vergiss es", "lass gut sein"]),
        ("Je suis allergique aux noix", "j'ai rendez-vous chez le dentiste mardi à 15h", ["laisse tomber"]),
        ("Soy alérgica a las nueces", "tengo cita con el dentista el martes a las 3", ["déjalo", "olvídalo"]),
        ("我对花生过敏", "我周二下午三点看牙医", ["没事了", "算了"]),
        ("私はピーナッツアレルギーです", "火曜の10時に歯医者の予約があります", ["やっぱりいいや"]),
    ],
)  # fmt: skip
async def test_who_dismisses_a_talk_keeps_what_they_are_allergic_to(fact: str, plan: str, dismissed: list[str]) -> None:
    for words in dismissed:
        async with talk() as person:
            await person.say(fact)
            held = await person.held(sure=True)
            assert len(held) == 1
            await person.say(words)
            assert await person.held(sure=True) == held and not await person.is_asked()
            await person.say(plan)
            assert len(await person.held()) == 2
            await person.say(words)
            assert await person.held(sure=True) == held


@pytest.mark.parametrize(
    ("said", "moved", "plan"),
    [
        ("I have a dentist appointment on Tuesday at 3", "move it to Friday",
         "dentist appointment on Friday (2026-09-25) at 3"),
        ("Ich habe am Dienstag um 15 Uhr einen Zahnarzttermin", "verschieb das auf Freitag",
         "am Freitag (2026-09-25) um 15 Uhr einen Zahnarzttermin"),
        ("j'ai rendez-vous chez le dentiste mardi à 15h", "décale-le à vendredi",
         "rendez-vous chez le dentiste vendredi (2026-09-25) à 15h"),
        ("tengo cita con el dentista el martes a las 3", "muévela al viernes",
         "cita con el dentista el viernes (2026-09-25) a las 3"),
        ("我周二下午三点看牙医", "改到周五", "周五 (2026-09-25)下午三点看牙医"),
    ],
)  # fmt: skip
async def test_a_plan_is_moved_on_request(said: str, moved: str, plan: str) -> None:
    async with talk() as person:
        await person.say(said)
        await person.say(moved)
        assert await person.held() == (f"plan: {plan}",)


async def test_a_plan_that_is_named_is_moved_and_one_that_is_not_clear_is_asked_for() -> None:
    async with talk() as person:
        await person.say("I have a dentist appointment on Tuesday at 3")
        await person.say("I like tea")
        (asked,) = await person.say("move it to Friday")
        assert "which plan" in asked
        await person.say("move the dentist to Friday")
        assert "plan: dentist appointment on Friday (2026-09-25) at 3" in await person.held()
        assert "which plan" not in "\n".join(await person.say("move it to the left"))


@pytest.mark.parametrize("moved", ["verschieb das auf Freitag", "décale-le à vendredi", "muévelo al viernes", "改到周五",
                                   "金曜に変更して"])  # fmt: skip
async def test_what_can_not_be_moved_is_asked_about_in_every_language(moved: str) -> None:
    async with talk() as person:
        (asked, *_) = (await person.say(moved))[0].splitlines()
        assert await person.held() == ()
        assert any(word in asked for word in ("welchen Plan", "quel rendez-vous", "qué plan", "哪个计划", "どの予定"))


async def test_what_is_liked_is_said_with_its_article() -> None:
    """Nobody says "tu aimes thé", nor works "at garden centre"; and thé is a word to find it by, which "the" is not."""
    async with talk() as person:
        (noted, *_) = await person.say("J'aime le thé et la natation")
        assert "tu aimes le thé ; tu aimes la natation" in noted
        await person.say("je n'aime plus le thé")
        assert await person.held() == ("likes: la natation",)
        (noted,) = await person.say("I work at a garden centre and I love the sea")
        assert "you work at a garden centre; you like the sea" in noted
        assert (await person.say("do I like the sea?"))[0].startswith("Yes: you like the sea")


async def test_a_question_for_a_thing_is_not_answered_with_yes() -> None:
    async with talk() as person:
        await person.say("好きな色は青です")
        assert not (await person.say("好きな色は何？"))[0].startswith("はい")


@pytest.mark.parametrize(
    ("plan", "asked", "moved"),
    [
        ("meeting with the bank tues 10am, mortgage stuff", "whats a fixed rate", "they just moved it to thurs 4pm"),
        ("hab jetzt termin beim orthopäden am donnerstag 9 uhr", "was fragt man da so",
         "verschoben auf den 17. dezember, super"),
        ("周五下午三点半的高铁去武汉 G1022", "武汉热干面哪里好吃", "啊改签了 周六上午十点"),
    ],
)  # fmt: skip
async def test_a_plan_that_may_have_moved_is_unsure(plan: str, asked: str, moved: str) -> None:
    """Which plan moved is a guess; that the old time still holds would be one, too."""
    async with talk() as person:
        await person.say(plan)
        (fact,) = await person.held()
        await person.say(asked)
        assert fact.partition(": ")[2] in "\n".join(await person.say(moved))
        assert await person.held() == (fact,)


@pytest.mark.parametrize(
    ("task", "wish", "lasting"),
    [
        ("can u write me a cover letter for a barista job", "and dont put any emoji in it", "no emojis from now on"),
        ("hazme un cv", "no lo hagas tan largo", "a partir de ahora responde en dos frases"),
        ("自己紹介文つくって", "もっとカジュアルに", "これからはもっとカジュアルに話して"),
    ],
)
async def test_a_wish_for_a_text_that_was_asked_for_is_no_standing_one(task: str, wish: str, lasting: str) -> None:
    async with talk() as person:
        await person.say(task)
        await person.say(wish)
        assert await person.held() == ()
        await person.say(lasting)
        assert len(await person.held()) == 1


async def test_a_plan_that_is_called_off_with_a_reason_is_over() -> None:
    async with talk() as person:
        await person.say("moving to Valencia on 1 march")
        assert await person.held()
        await person.say("actually scrap that, landlord pulled out, not moving anymore")
        assert not await person.is_asked() and await person.held() == ()
        await person.say("I live in Bath")
        await person.say("scrap that, forget everything about Bath")
        assert await person.is_asked()


async def test_what_is_shouted_is_no_taste() -> None:
    """It is said of a train that is late."""
    async with talk() as person:
        await person.say("ich LIEBE die deutsche bahn")
        assert await person.held() == ()
        await person.say("ich liebe ABBA")
        assert await person.held() == ("likes: ABBA",)


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        (["ok so exam on the 21st june, organic chem", "zero exams for him", "exam got moved to the 24th THANK GOD"], []),
        (["tengo un perro que se llama Canelo", "perdon, CAMILO, el corrector"], ["perro CAMILO"]),
        (["mein lehrer heißt mr. harding und riecht nach pfefferminz"], []),
    ],
)  # fmt: skip
async def test_corrections_as_people_type_them(lines: list[str], held: list[str]) -> None:
    async with talk() as person:
        for line in lines:
            await person.say(line)
        assert [fact.partition(": ")[2] for fact in await person.held(sure=True)] == held
