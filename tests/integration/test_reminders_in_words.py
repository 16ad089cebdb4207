"""Reminders asked for, put into other words and asked about, typed to a bot without a model."""

from __future__ import annotations

import pytest

from bench.offline import talk


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
