"""Reminders asked for, put into other words and asked about, typed to a bot without a model."""

from __future__ import annotations

import pytest

from bench.offline import Talk, talk
from tests.kit.stores import rows


@pytest.mark.parametrize(
    ("request_for", "question", "shows"),
    [
        ("rent is due on the 3rd, do not let me forget", "when's rent due?", "3 October"),
        ("Erinnere mich morgen um 8 an den Müll", "Wann ist der Müll dran?", "08:00 UTC: Müll"),
        ("recuérdame mañana a las 9 pagar el alquiler", "¿cuándo tengo que pagar el alquiler?", "09:00 UTC: pagar"),
        ("rappelle-moi demain à 9h d'arroser les plantes", "quand dois-je arroser les plantes ?", "09:00 UTC"),
        ("提醒我后天下午3点交房租", "什么时候交房租？", "15:00（UTC）：交房租"),
        ("明日の8時にゴミを出すのを思い出させて", "ゴミはいつ出す？", "08:00（UTC）：ゴミ"),
    ],
)
async def test_a_question_is_answered_from_the_reminders(request_for: str, question: str, shows: str) -> None:
    async with talk() as person:
        (before,) = await person.say(question)
        assert shows not in before
        await person.say(request_for)
        (told,) = await person.say(question)
        assert shows in told


async def test_a_question_about_something_else_shows_no_reminder() -> None:
    async with talk() as person:
        await person.say("remind me to call mum tomorrow at 9")
        for question in ("when is the concert?", "when did my mum call Petra about the concert?", "what is due?"):
            (told,) = await person.say(question)
            assert "call mum" not in told


async def test_a_reminder_just_set_is_put_into_other_words() -> None:
    async with talk() as person:
        await person.say("remind me to email Petra tomorrow at 9")
        (changed,) = await person.say("actually to ring her")
        assert changed.endswith("09:00 UTC: ring her")
        (moved,) = await person.say("no, at 10")
        assert moved.endswith("10:00 UTC: ring her")

        await person.say("good night")
        await person.say("actually to write to her")
        (listed,) = await person.say("/remind list")
        assert "ring her" in listed and "write" not in listed


@pytest.mark.parametrize(
    ("request_for", "question", "shows"),
    [
        ("remind me to ring Petra tomorrow at 9", "what have I got coming up?", "ring Petra"),
        ("remind me to ring Petra tomorrow at 9", "what's on my calendar?", "ring Petra"),
        ("remind me to ring Petra tomorrow at 9", "do I have anything on tomorrow?", "ring Petra"),
        ("Erinnere mich morgen um 8 an den Müll", "Was steht bei mir an?", "Müll"),
        ("recuérdame mañana a las 9 pagar el alquiler", "¿qué tengo para mañana?", "pagar el alquiler"),
        ("rappelle-moi demain à 9h d'arroser les plantes", "qu'est-ce que j'ai demain ?", "arroser les plantes"),
        ("提醒我后天下午3点交房租", "我有什么安排？", "交房租"),
        ("明日の8時にゴミを出すのを思い出させて", "私の予定は？", "ゴミを出す"),
    ],
)
async def test_whoever_asks_what_is_planned_is_told_of_the_reminders_too(
    request_for: str, question: str, shows: str
) -> None:
    """A plan and a reminder are the same to somebody who asks what the week brings."""
    async with talk() as person:
        await person.say(request_for)
        (told,) = await person.say(question)
        assert shows in told


async def test_a_plan_is_told_before_the_reminders() -> None:
    async with talk() as person:
        await person.say("we're moving to York in March")
        await person.say("remind me to ring Petra tomorrow at 9")
        (told,) = await person.say("what are my plans?")
        assert told.index("moving to York") < told.index("ring Petra")


async def test_who_says_not_to_forget_something_is_asked_when() -> None:
    """It is an errand, and no request to erase anything."""
    async with talk() as person:
        (asked,) = await person.say("don't forget to buy milk")
        assert asked.startswith("When shall I remind you: buy milk?")
        (told,) = await person.say("tomorrow at 9")
        assert told.endswith("09:00 UTC: buy milk")
        (other,) = await person.say("I told him don't forget to write")
        assert "When" not in other


async def test_an_hour_alone_makes_nothing_come_once_that_was_to_repeat() -> None:
    async with talk() as person:
        (asked,) = await person.say("remind me to take my pills every weekday at 7am except 25 december")
        assert asked.startswith("When exactly shall I remind you: take my pills?")
        for _ in range(2):
            (again,) = await person.say("at 7")
            assert "left out" in again and "take my pills" in again
        (told,) = await person.say("every weekday at 7am")
        assert "Monday to Friday at 07:00" in told and "take my pills" in told


@pytest.mark.parametrize(
    ("day", "other", "nothing"),
    [
        ("what's on tomorrow?", "am I free on the 30th?", "I know of nothing planned for Wednesday 30 September."),
        (
            "Was habe ich morgen vor?",
            "Was habe ich am 30. vor?",
            "Für Mittwoch, 30. September weiß ich von keinem Plan.",
        ),
        ("¿qué tengo mañana?", "¿estoy libre el día 30?", "No sé de ningún plan para miércoles 30 de septiembre."),
        ("明天有什么安排？", "30号有什么安排吗？", "9月30日星期三，我不知道你有什么安排。"),
    ],
)
async def test_plans_and_reminders_are_told_by_their_day(day: str, other: str, nothing: str) -> None:
    async with talk() as person:
        await person.say("I have a dentist appointment tomorrow at 4pm")
        await person.say("remind me to ring Petra tomorrow at 9")
        await person.say("remind me to water the plants in three weeks")
        (told,) = await person.say(day)
        assert "dentist" in told and "ring Petra" in told and "plants" not in told
        (free,) = await person.say(other)
        assert free == nothing


async def test_words_that_can_mean_but_one_reminder_cancel_it() -> None:
    async with talk() as person:
        await person.say("remind me to call the plumber on friday at 3pm")
        await person.say("remind me to water the plants every sunday at 10")
        await person.say("good night")
        (told,) = await person.say("forget about the plumber")
        assert "cancelled" not in told
        (told,) = await person.say("cancel the plumber")
        assert told == "Reminder 1 is cancelled: call the plumber"


@pytest.mark.parametrize(
    "order",
    [
        "cancel all reminders", "stop reminding me about anything", "/remind cancel all", "lösche alle Erinnerungen",
        "por favor, borra todos los recordatorios", "supprime tous les rappels", "取消所有提醒", "リマインダーを全部削除して",
    ],
)  # fmt: skip
async def test_all_are_cancelled_at_once(order: str) -> None:
    async with talk() as person:
        await person.say("remind me to call mum tomorrow at 9")
        await person.say("remind me to water the plants every sunday at 10")
        await person.say("good night")
        (told,) = await person.say(order)
        assert "call mum" in told and "water the plants" in told
        (listed,) = await person.say("/remind")
        assert listed.startswith("You have no reminders")


async def test_undo_takes_back_what_was_done_last() -> None:
    async with talk() as person:
        await person.say("I like opera")
        await person.say("remind me to call mum tomorrow at 9")
        (told,) = await person.say("undo")
        assert told == "Reminder 1 is cancelled: call mum"
        await person.say("good night")
        (told,) = await person.say("undo that, please")
        assert "took back" in told


async def due(person: Talk) -> list[tuple[str, str, str]]:
    """Returns text, first local time and rule of every reminder."""
    return await rows(person.memory, "select text, first, rule from reminders order by id")


@pytest.mark.parametrize(
    ("request_for", "text", "asks"),
    [
        ("rappelle-moi de payer le loyer", "payer le loyer", "Quand"),
        ("rappelle-moi d'appeler maman", "appeler maman", "Quand"),
        ("recuérdame comprar leche", "comprar leche", "¿Cuándo"),
        ("recuérdame que tengo que llamar a Juan", "llamar a Juan", "¿Cuándo"),
        ("Erinnere mich an den Müll", "Müll", "Wann"),
    ],
)
async def test_a_reminder_without_a_time_is_asked_about_in_the_language_of_the_request(
    request_for: str, text: str, asks: str
) -> None:
    async with talk() as person:
        (asked,) = await person.say(request_for)
        assert asked.startswith(asks) and text in asked
        assert await due(person) == [(text, "", "")]


@pytest.mark.parametrize("question", ["recuérdame qué tengo que hacer", "rappelle-moi ce que j'ai dit"])
async def test_a_question_that_sounds_like_a_reminder_sets_none(question: str) -> None:
    async with talk() as person:
        await person.say(question)
        assert await due(person) == []


@pytest.mark.parametrize(
    ("request_for", "texts"),
    [
        ("remind me to call mum tomorrow at 9 and to pay rent on friday at 10", ["call mum", "pay rent"]),
        ("/remind tomorrow 9:00 call mum, friday 10:00 pay rent", ["call mum", "pay rent"]),
        ("Erinnere mich morgen um 9 an den Müll und am Freitag um 10 an die Miete", ["Müll", "Miete"]),
        ("rappelle-moi demain à 9h d'appeler maman et vendredi à 10h de payer le loyer",
         ["appeler maman", "payer le loyer"]),
        ("recuérdame mañana a las 9 llamar a mamá y el viernes a las 10 pagar el alquiler",
         ["llamar a mamá", "pagar el alquiler"]),
        ("提醒我明天9点打电话，周五10点交房租", ["打电话", "交房租"]),
        ("明日9時に電話、金曜10時に家賃を思い出させて", ["電話", "家賃"]),
    ],
)  # fmt: skip
async def test_two_reminders_in_one_line_are_two(request_for: str, texts: list[str]) -> None:
    async with talk() as person:
        (told,) = await person.say(request_for)
        assert all(text in told for text in texts)
        assert await due(person) == [
            (texts[0], "2026-09-22T09:00:00", ""), (texts[1], "2026-09-25T10:00:00", ""),
        ]  # fmt: skip


async def test_a_second_reminder_without_a_day_is_for_the_same_day() -> None:
    async with talk() as person:
        await person.say("remind me tomorrow at 9 to call mum and at 10 to pay rent")
        assert [first for _, first, _ in await due(person)] == ["2026-09-22T09:00:00", "2026-09-22T10:00:00"]


async def test_things_that_are_listed_are_one_reminder() -> None:
    async with talk() as person:
        await person.say("remind me tomorrow at 9 to buy milk, bread and eggs")
        assert [text for text, _, _ in await due(person)] == ["buy milk, bread and eggs"]


@pytest.mark.parametrize(
    ("request_for", "text", "rule"),
    [
        ("每周一早上提醒我开会", "开会", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0"),
        ("提醒我每周一早上8点倒垃圾", "倒垃圾", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=8;BYMINUTE=0"),
        ("remind me evry monday at 9 to water the plants", "water the plants",
         "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0"),
    ],
)  # fmt: skip
async def test_a_repetition_is_read_whole(request_for: str, text: str, rule: str) -> None:
    async with talk() as person:
        await person.say(request_for)
        ((words, _, repeats),) = await due(person)
        assert (words, repeats) == (text, f"RRULE:{rule}")


@pytest.mark.parametrize(
    "told", ["21.3. 14 Uhr Zahnarzt", "am 21.3. um 14 Uhr Zahnarzt", "Zahnarzt am 21.3. um 14 Uhr"]
)
async def test_a_date_in_digits_keeps_its_hour(told: str) -> None:
    """The dot behind the month ends no sentence, and an hour is no year."""
    async with talk() as person:
        await person.say(told)
        ((plan),) = await person.held()
        assert "14 Uhr" in plan and "2027-03-21" in plan
        await person.say(f"/remind {told}")
        assert await due(person) == [("Zahnarzt", "2027-03-21T14:00:00", "")]


@pytest.mark.parametrize(
    ("before", "order", "answer"),
    [
        ("I like tea", "meine Erinnerungen", "Du hast hier keine Erinnerungen"),
        ("Ich mag Tee", "mes rappels", "Tu n'as pas de rappels"),
        ("J'aime le thé", "mis recordatorios", "No tienes recordatorios"),
        ("我喜欢茶", "reminders", "You have no reminders"),
        ("I like tea", "我的提醒", "你在这里没有提醒"),
        ("I like tea", "リマインダー一覧", "リマインダーがありません"),
    ],
)
async def test_an_order_is_understood_and_answered_in_its_own_language(before: str, order: str, answer: str) -> None:
    """A few words show no language by their letters, and the talk before them may have been in another."""
    async with talk() as person:
        await person.say(before)
        assert answer in "\n".join(await person.say(order))


@pytest.mark.parametrize(
    ("request_for", "beside", "order"),
    [
        ("Erinnere mich morgen um 9 daran, die Bank anzurufen", "Ich mag Tee", "Erinnerung an die Bank löschen"),
        ("Erinnere mich morgen um 9 daran, die Bank anzurufen", "I like tea", "Erinnerung löschen"),
        ("recuérdame mañana a las 9 llamar al banco", "Me gusta el té", "recordatorio del banco, borrar"),
        ("提醒我明天9点给银行打电话", "我喜欢茶", "银行的提醒，删掉"),
        ("明日の9時に銀行に電話するのを思い出させて", "紅茶が好きです", "銀行のリマインダー削除"),
    ],
)
async def test_a_reminder_is_deleted_though_its_name_comes_first(request_for: str, beside: str, order: str) -> None:
    async with talk() as person:
        await person.say(request_for)
        await person.say(beside)
        await person.say(order)
        assert not await person.is_asked()
        assert [first for _, first, _ in await due(person) if first] in ([], ["2026-09-22T09:00:00"])
        assert await due(person) == [] or order == "Erinnerung löschen"


async def test_a_reminder_about_deleting_something_is_set() -> None:
    async with talk() as person:
        await person.say("Erinnerung: morgen um 9 die alten Fotos löschen")
        ((text, first, _),) = await due(person)
        assert ("Fotos" in text, first) == (True, "2026-09-22T09:00:00")


@pytest.mark.parametrize("order", ["verschieb das auf Freitag", "postpone it to Friday", "repousse-le à vendredi"])
async def test_a_reminder_to_come_is_put_off_and_not_shown_twice(order: str) -> None:
    async with talk() as person:
        await person.say("remind me tomorrow at 9 to call the bank")
        await person.say(order)
        assert await due(person) == [("call the bank", "2026-09-25T09:00:00", "")]
