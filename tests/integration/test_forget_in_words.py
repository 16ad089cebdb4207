"""Wishes to forget in plain words, typed to a bot without a model: what goes, what stays, and what is said of it."""

from __future__ import annotations

from functools import partial

import pytest

from bench.offline import Talk, talk
from memory.store.database import Reader


async def held(person: Talk) -> list[tuple[str, str]]:
    """Returns key and value of every memory, current or not."""
    rows = await person.memory.database.read(
        lambda reader: reader.all("select key, value from memories where kind = 'fact' order by id")
    )
    return [(row["key"], row["value"]) for row in rows]


def words_of(reader: Reader, *, table: str, column: str) -> list[str]:
    return [row["words"] or "" for row in reader.all(f"select {column} as words from {table}")]


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
        left = await person.memory.database.read(lambda reader: reader.all("select text from reminders"))
        said = await person.memory.database.read(lambda reader: reader.all("select text from messages"))
        assert not [row["text"] for row in (*left, *said) if name in row["text"].lower()]


async def test_everything_about_something_takes_what_names_it_too() -> None:
    """What was told under its name alone is known of it all the same."""
    async with talk() as person:
        for told in ("I have a dog called Pixel.", "Pixel is a beagle.", "my friend Mo looks after Pixel on Mondays"):
            await person.say(told)
        await person.say("/task find a vet for Pixel")
        await person.say("Forget everything about my dog")
        await person.say("yes")
        for table, column in (("messages", "text"), ("memories", "value"), ("sessions", "active_task")):
            rows = await person.memory.database.read(partial(words_of, table=table, column=column))
            assert "pixel" not in " ".join(rows).lower()


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
        short_id = (await person.memory.database.read(lambda r: r.all("select short_id from memories")))[0]["short_id"]
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
        ((_, value),) = await held(person)
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
        assert stays in await held(person)
        said = await person.memory.database.read(lambda reader: reader.all("select text from messages"))
        assert (dislikes if stays[0] == "dislikes" else likes) in [row["text"] for row in said]
