"""Wishes to forget in plain words, typed to a bot without a model: what goes, what stays, and what is said of it."""

from __future__ import annotations

import pytest

from bench.offline import Talk, talk
from tests.kit.stores import rows


async def column(person: Talk, sql: str) -> list[str]:
    return [str(row[0] or "") for row in await rows(person.memory, sql)]


@pytest.mark.parametrize(
    ("told", "reminder", "request_for", "yes", "name"),
    [
        ("I have a dog called Pixel.", "remind me tomorrow at 9 to feed pixel", "Forget everything about my dog",
         "yes", "pixel"),
        ("Mein Hund heißt Bello", "Erinnere mich morgen um 9 daran, Bello zu füttern", "vergiss alles über meinen Hund",
         "ja", "bello"),
        ("mi perro se llama Toby", "recuérdame mañana a las 9 bañar a Toby", "olvida todo sobre mi perro",
         "sí", "toby"),
        ("mon chat s'appelle Félix", "rappelle-moi demain à 9h de brosser Félix", "oublie tout sur mon chat",
         "oui", "félix"),
        ("我的狗叫豆豆。", "提醒我明天9点喂豆豆", "忘掉我的狗", "是", "豆豆"),
        ("犬の名前はポチです", "明日の9時にポチの散歩を思い出させて", "犬のことを全部忘れて", "はい", "ポチ"),
    ],
)  # fmt: skip
async def test_a_name_takes_the_reminders_along(
    told: str, reminder: str, request_for: str, yes: str, name: str
) -> None:
    """Who forgets their dog must not be reminded the next morning to feed it."""
    async with talk() as person:
        await person.say(told)
        await person.say(reminder)
        asked = "\n".join(await person.say(request_for))
        assert name in asked.lower()
        await person.say(yes)
        left = await column(person, "select text from reminders union all select text from messages")
        assert name not in " ".join(left).lower()


@pytest.mark.parametrize(
    ("told", "request_for", "yes"),
    [
        ("I like tea", "forget what I just said", "yes"), ("Ich mag Tee", "vergiss das wieder", "ja"),
        ("J'aime le thé", "oublie ce que je viens de dire", "oui"), ("我喜欢茶", "忘掉我刚才说的", "是"),
        ("Me gusta el té", "olvida lo que acabo de decir", "sí"),
        ("紅茶が好きです", "さっき言ったことは忘れて", "はい"), ("hello to you all out there", "forget that", "yes"),
    ],
)  # fmt: skip
async def test_what_was_just_said_is_forgotten_after_a_yes_in_every_language(
    told: str, request_for: str, yes: str
) -> None:
    async with talk() as person:
        await person.say(told)
        (asked,) = await person.say(request_for)
        assert told in asked and "1." in asked
        await person.say(yes)
        assert told not in await column(person, "select text from messages")
        assert await column(person, "select value from memories") == []


@pytest.mark.parametrize("request_for", ["forget what I just said", "that's wrong"])
async def test_one_of_several_is_chosen_by_its_number(request_for: str) -> None:
    """A "yes" says not which, so the question stays."""
    async with talk() as person:
        await person.say("I live in Porto. I like tea.")
        (asked,) = await person.say(request_for)
        (again,) = await person.say("yes")
        (porto, tea) = await column(person, "select short_id from memories where kind = 'fact' order by id")
        assert f"1. {porto}" in asked and f"2. {tea}" in asked and porto in again and tea in again
        (asked,) = await person.say("2")
        assert tea in asked and porto not in asked
        await person.say("2")
        assert await column(person, "select short_id from memories where kind = 'fact'") == [porto]


@pytest.mark.parametrize(("answer", "left"), [("3", 0), ("no", 2)])
async def test_the_message_is_a_choice_too_and_no_changes_nothing(answer: str, left: int) -> None:
    async with talk() as person:
        await person.say("I live in Porto. I like tea.")
        await person.say("forget what I just said")
        await person.say(answer)
        assert len(await column(person, "select value from memories where kind = 'fact'")) == left


async def test_everything_about_something_takes_what_names_it_too() -> None:
    """A message that gives only the name is about it, too."""
    async with talk() as person:
        for told in ("I have a dog called Pixel.", "Pixel is a beagle.", "my friend Mo looks after Pixel on Mondays"):
            await person.say(told)
        await person.say("/task find a vet for Pixel")
        await person.say("Forget everything about my dog")
        await person.say("yes")
        left = await column(
            person,
            "select text from messages union all select value from memories union all select active_task from sessions",
        )
        assert "pixel" not in " ".join(left).lower()


async def test_a_name_that_another_memory_gives_keeps_its_reminders() -> None:
    """Forgetting where somebody lives is not forgetting them."""
    async with talk() as person:
        await person.say("My sister Anna lives in Porto.")
        await person.say("my sister Anna is a nurse")
        await person.say("remind me tomorrow at 9 to call Anna")
        (asked,) = await person.say("/forget porto")
        assert "call Anna" not in asked
        await person.say("yes")
        assert "call Anna" in "\n".join(await person.say("/remind list"))


async def test_messages_that_still_name_it_are_told_of() -> None:
    """A memory that is forgotten by its id says nothing of the talk about it; the receipt does not pretend otherwise."""
    async with talk() as person:
        await person.say("I have a dog called Pixel.")
        await person.say("Pixel is a beagle.")
        (short_id,) = await column(person, "select short_id from memories where kind = 'fact'")
        (asked,) = await person.say(f"/forget {short_id}")
        (receipt,) = await person.say("yes")
        for text in (asked, receipt):
            assert "/forget about:" in text
        await person.say("/forget about:Pixel")
        (receipt,) = await person.say("yes")
        assert "about:" not in receipt


@pytest.mark.parametrize(
    ("told", "beside", "request_for"),
    [
        ("Ich bin Lokführer von Beruf.", "Heute war viel los bei der Bahn.", "vergiss, dass ich bei der Bahn arbeite"),
        ("I'm a train driver", "so many people at the railway today", "forget that I work for the railway"),
        ("我是火车司机", "今天铁路很忙", "忘掉我在铁路工作"),
    ],
)  # fmt: skip
async def test_a_fact_in_other_words_is_offered_as_what_may_be_meant(told: str, beside: str, request_for: str) -> None:
    """A message that happens to hold the word is not what somebody means who names a fact."""
    async with talk() as person:
        await person.say(told)
        await person.say(beside)
        (value,) = await column(person, "select value from memories where kind = 'fact'")
        (asked,) = await person.say(request_for)
        assert value in asked and asked.splitlines()[0].endswith(("?", "？"))
        assert any(nearest in asked for nearest in ("nearest", "Am nächsten", "最接近"))


@pytest.mark.parametrize(
    ("likes", "dislikes", "request_for", "yes", "stays"),
    [
        ("我喜欢苹果。", "我不喜欢苹果。", "忘掉我喜欢苹果", "是", ("dislikes", "苹果")),
        ("我喜欢咖啡。", "我不喜欢茶。", "忘掉我喜欢茶", "是", ("dislikes", "茶")),
        ("我喜欢咖啡。", "我不喜欢茶。", "忘掉我不喜欢咖啡", "不", ("likes", "咖啡")),
        ("I like coffee", "I don't like tea", "forget that I like tea", "yes", ("dislikes", "tea")),
        ("Ich mag Kaffee", "Ich mag keinen Tee", "vergiss, dass ich Tee mag", "ja", ("dislikes", "Tee")),
        ("me gusta el café", "no me gusta el té", "olvida que me gusta el té", "sí", ("dislikes", "té")),
        ("j'aime le café", "je n'aime pas le thé", "oublie que j'aime le thé", "oui", ("dislikes", "thé")),
    ],
)  # fmt: skip
async def test_a_like_does_not_take_the_opposite_along(
    likes: str, dislikes: str, request_for: str, yes: str, stays: tuple[str, str]
) -> None:
    """Both speak of tea, and one holds the words of the other."""
    async with talk() as person:
        await person.say(likes)
        await person.say(dislikes)
        await person.say(request_for)
        await person.say(yes)
        assert ": ".join(stays) in await column(person, "select key || ': ' || value from memories")
        assert (dislikes if stays[0] == "dislikes" else likes) in await column(person, "select text from messages")


@pytest.mark.parametrize(
    ("told", "beside", "request_for", "yes"),
    [
        ("I have a dog called Max", "I met Max Weber at the office, he is my boss", "Forget my dog Max", "yes"),
        ("I have a dog called Max", "I met Max Weber at the office", "Forget everything about my dog", "yes"),
        ("my sister is called Rose", "prices rose again this year", "Forget everything about my sister", "yes"),
        ("my cat is called Hope", "I hope to see you soon", "forget my cat", "yes"),
        ("Mein Bruder heißt Mark", "Das kostet 20 Mark", "vergiss meinen Bruder", "ja"),
        ("Mein Bruder heißt Mark", "Das kostet 20 Mark", "vergiss alles über meinen Bruder", "ja"),
        ("my friend is called Al", "we ate al fresco", "forget my friend Al", "yes"),
        ("我的狗叫小白。", "小白菜很好吃", "忘掉我的狗", "是"),
        ("我的狗叫小白。", "小白菜很好吃", "忘掉关于我的狗的一切", "是"),
        ("犬の名前はさくらです", "さくらんぼを買った", "犬のことを全部忘れて", "はい"),
    ],
)  # fmt: skip
async def test_what_holds_a_name_as_a_word_or_of_another_stays(
    told: str, beside: str, request_for: str, yes: str
) -> None:
    """It is not erased, but both the preview and the receipt tell of it."""
    async with talk() as person:
        await person.say(told)
        await person.say(beside)
        (asked,) = await person.say(request_for)
        (receipt,) = await person.say(yes)
        assert beside not in asked and "about:" in asked and "about:" in receipt
        left = await column(person, "select text from messages where role = 'user' and text <> ''")
        assert left == [beside]


@pytest.mark.parametrize(
    ("told", "beside", "reminder", "request_for"),
    [
        ("I have a dog called Max", "I met Max Weber", "call Max Weber", "Forget my dog Max"),
        ("my cat is called Hope", "I hope to see you soon", "hope for the best", "forget my cat"),
        ("my cat is called Hope", "I hope to see you soon", "hope for the best", "forget everything about my cat"),
        ("/remember Eva plays chess with Tom on Sundays", "Tom lost his job", "call Tom", "forget chess"),
    ],
)  # fmt: skip
async def test_a_reminder_of_something_else_stays(told: str, beside: str, reminder: str, request_for: str) -> None:
    async with talk() as person:
        await person.say(told)
        await person.say(beside)
        await person.say(f"remind me tomorrow at 9 to {reminder}")
        await person.say(request_for)
        await person.say("yes")
        assert await column(person, "select text from reminders") == [reminder]
        assert beside in await column(person, "select text from messages")
        assert await column(person, "select value from memories") == []


@pytest.mark.parametrize("request_for", ["forget my dog, that's all", "forget everything about my dog"])
async def test_a_name_of_two_takes_nothing_of_the_other(request_for: str) -> None:
    async with talk() as person:
        for told in ("I have a dog called Max", "my brother is called Max", "Max came to dinner"):
            await person.say(told)
        await person.say(request_for)
        await person.say("yes")
        assert await column(person, "select value from memories where kind = 'fact'") == ["Max"]
        left = await column(person, "select text from messages where role = 'user' and text <> ''")
        assert left == ["my brother is called Max", "Max came to dinner"]


async def test_a_preview_quotes_what_a_name_takes_along() -> None:
    """Who agrees must have seen what goes."""
    said = ["I have a dog called Pixel.", *(f"Pixel likes toy number {number}." for number in range(5))]
    async with talk() as person:
        for told in said:
            await person.say(told)
        (asked,) = await person.say("forget everything about my dog")
        assert [text for text in said if text not in asked] == []


@pytest.mark.parametrize(
    ("told", "request_for"),
    [
        ("我住在苏州", "忘了吧"), ("我住在苏州", "忘了它吧"), ("我住在苏州", "算了，忘了吧"),
        ("J'habite à Nantes", "non, oublie"), ("Vivo en Lugo", "da igual, olvídalo"),
    ],
)  # fmt: skip
async def test_words_beside_a_request_that_names_nothing_are_no_name(told: str, request_for: str) -> None:
    async with talk() as person:
        await person.say(told)
        (asked,) = await person.say(request_for)
        assert told in asked and "1." in asked


async def test_a_call_is_not_the_name_by_which_somebody_is_called() -> None:
    async with talk() as person:
        await person.say("remind me tomorrow at 9 to call the bank")
        await person.say("my friend's name is Cal")
        (asked,) = await person.say("forget about the call")
        assert "call the bank" in asked and "Cal" not in asked
        await person.say("yes")
        assert await column(person, "select text from reminders") == []
        assert await person.held() == ("friend: Cal",)
        assert "Cal" not in "\n".join(await person.say("forget about the call"))
        await person.say("you can call me Ace")
        assert "Ace" in "\n".join(await person.say("forget what I'm called"))
