"""Tests how a message that takes something back changes what is known."""

from __future__ import annotations

import pytest

from memory.chat.turns import Outcome, Said
from memory.mailbox.outbox import Part
from memory.service import Service
from tests.kit.fakes import Clock
from tests.kit.talk import facts, private, received


async def known_after(memory: Service, clock: Clock, *said: str) -> list[tuple[str, str]]:
    """Says messages one after the other, each understood within its turn, and returns what is then known."""
    where, who = private("ada")
    for text in said:
        clock.move(minutes=1)
        inbox_id = await received(memory, where.session_key)
        message = Said(
            inbox_id=inbox_id, text=text, tokens=9, said_at=clock(), platform_ref=text, reply_to=None, learn=True
        )
        turn = await memory.turns.begin(where, who, [message])
        revision = await memory.turns.understood(turn)
        await memory.turns.finish(turn, None, Outcome(pieces=(Part(text="ok"),), learned=revision))
    return await facts(memory, turn.context)


@pytest.mark.parametrize(
    ("told", "correction", "known"),
    [
        ("I live in Leiden", "No, Leyden", ("home", "Leyden")),
        ("My favourite colour is teal", "change my favourite colour to ochre", ("favourite-color", "ochre")),
        ("I am 41 years old", "Sorry, I mistyped, I am 14 years old", ("age", "14")),
        ("My neighbour's name is Tomasz", "it's spelled Thomas", ("neighbour", "Thomas")),
        ("My favourite author is Ali Smith", "I meant Zadie Smith", ("favourite-author", "Zadie Smith")),
        ("I live in Leiden", "it's not Leiden, it's Leyden", ("home", "Leyden")),
        (
            "I'm flying to Oslo on Friday",
            "it's not Oslo, it's Bergen",
            ("plan", "flying to Bergen on Friday (2026-11-27)"),
        ),
    ],
)
async def test_a_correction_takes_the_place_of_what_it_corrects(
    memory: Service, clock: Clock, told: str, correction: str, known: tuple[str, str]
) -> None:
    assert await known_after(memory, clock, told, correction) == [known]


@pytest.mark.parametrize(
    "corrected",
    ["actually the plumber comes at ten", "no, not the blue one", "I mean the other window", "ich meinte Linz"],
)
async def test_a_correction_of_anything_else_changes_nothing(memory: Service, clock: Clock, corrected: str) -> None:
    """It stays a message, which is found; a daughter was renamed by a town before."""
    known = await known_after(
        memory, clock, "My daughter is called Lena", "what a week it was", "so much rain", corrected
    )
    assert known == [("daughter", "Lena")]


@pytest.mark.parametrize(
    ("told", "then", "known"),
    [
        ("I'm flying to Oslo on Friday", "ugh they cancelled it", []),
        ("J'ai rendez-vous chez le dentiste jeudi à 15h.", "c'est annulé", []),
        ("周六和小周去爬山", "取消了", []),
    ],
)
async def test_a_plan_that_is_called_off_ends(
    memory: Service, clock: Clock, told: str, then: str, known: list[tuple[str, str]]
) -> None:
    assert await known_after(memory, clock, "My dog is called Rex", told, then) == [("pet", "dog Rex"), *known]


@pytest.mark.parametrize(
    ("game", "known"),
    [
        ("imagine you're a pirate and I'm your captain", []),
        ("Stell dir vor, du bist ein Pirat", []),
        ("我们来玩个游戏，你来扮海盗", []),
        ("What a day", [("hometown", "Tortuga")]),
    ],
)
async def test_what_is_said_in_a_game_is_no_statement(
    memory: Service, clock: Clock, game: str, known: list[tuple[str, str]]
) -> None:
    """A game goes on over several messages, until somebody ends it."""
    assert await known_after(memory, clock, game, "I was born in Tortuga") == known
    assert await known_after(memory, clock, "ok stop the game", "My name is Ada") == [*known, ("name", "Ada")]


@pytest.mark.parametrize(
    ("told", "over"),
    [
        ("My boyfriend is called Ravi", "Ravi and I split up"),
        ("I love chess", "I don't like chess any more"),
        ("I'm on a paleo diet", "So paleo lasted a week. I'm done with it."),
        ("I'm a nurse at the Korn Clinic", "I quit nursing yesterday"),
        ("I'm engaged to Mirjam", "I called off the engagement"),
    ],
)
async def test_what_is_over_ends(memory: Service, clock: Clock, told: str, over: str) -> None:
    assert await known_after(memory, clock, told) != []
    assert await known_after(memory, clock, over) == []


@pytest.mark.parametrize(
    ("told", "incident"),
    [
        ("我有一条狗叫旺财", "旺财带去医院了"),
        ("我有一条狗叫旺财", "旺财跑丢了，后来又找到了"),
        ("I have a dog called Luna", "Luna ran away yesterday but she came back"),
        ("I have a dog called Luna", "Luna got lost in the park"),
        ("I have a dog called Luna", "I left Luna at the vet"),
        ("Mein Hund heißt Bello", "Bello ist gestern weggelaufen, aber jetzt wieder da"),
        ("Mein Hund heißt Bello", "Bello ist weg"),
        ("Mi perro se llama Toby", "Toby se perdió ayer pero volvió"),
        ("Mi perro se llama Toby", "Toby se escapó"),
        ("Mon chien s'appelle Filou", "Filou s'est échappé hier"),
        ("犬の名前はポチです", "ポチがいなくなったけど、帰ってきた"),
        ("犬の名前はポチです", "ポチが逃げた"),
    ],
)
async def test_an_incident_ends_no_pet(memory: Service, clock: Clock, told: str, incident: str) -> None:
    known = await known_after(memory, clock, told)
    assert [key for key, _ in known] == ["pet"]
    assert await known_after(memory, clock, incident) == known


@pytest.mark.parametrize(
    ("told", "over"),
    [
        ("我有一条狗叫旺财", "旺财去世了"),
        ("I have a dog called Luna", "Luna passed away"),
        ("I have a dog called Luna", "We gave away Luna"),
        ("Mein Hund heißt Bello", "Bello ist gestern gestorben"),
        ("Mi perro se llama Toby", "Toby murió ayer"),
        ("Mon chien s'appelle Filou", "Filou est mort"),
        ("犬の名前はポチです", "ポチが亡くなりました"),
    ],
)
async def test_a_death_or_a_gift_ends_a_pet(memory: Service, clock: Clock, told: str, over: str) -> None:
    assert await known_after(memory, clock, told) != []
    assert await known_after(memory, clock, over) == []


@pytest.mark.parametrize(
    ("told", "then"),
    [
        ("パクチーが苦手です", "今朝ポチが花瓶を割った"),
        ("パクチーが苦手です", "髪を切った"),
        ("Ich mag keine Pilze", "Ich mag keine Pilze"),
        ("I don't like mushrooms", "I don't like mushrooms"),
        ("No me gustan las setas", "no me gustan las setas"),
        ("Je n'aime pas les champignons", "je n'aime pas les champignons"),
        ("我不喜欢香菜", "我不喜欢香菜"),
        ("きのこが嫌いです", "きのこは好きじゃない"),
    ],
)
async def test_a_dislike_outlives_its_repetition(memory: Service, clock: Clock, told: str, then: str) -> None:
    known = await known_after(memory, clock, told)
    assert [key for key, _ in known] == ["dislikes"]
    assert await known_after(memory, clock, then) == known


async def test_a_dislike_repeated_beside_a_liking_stays(memory: Service, clock: Clock) -> None:
    known = await known_after(memory, clock, "Ich mag keine Pilze", "Ich mag Tee, aber keine Pilze")
    assert sorted(known) == [("dislikes", "Pilze"), ("likes", "Tee")]


@pytest.mark.parametrize(
    ("named", "other", "off", "left"),
    [
        ("I fly to Lisbon on Friday", "On Monday I have a meeting with Paul", "I'm not flying to Lisbon any more", "Paul"),
        ("Am Freitag fliege ich nach Lissabon", "Am Montag habe ich ein Treffen mit Paul",
         "Ich fliege nicht mehr nach Lissabon", "Paul"),
        ("El viernes viajo a Lisboa", "El lunes tengo reunión con Pedro", "Ya no viajo a Lisboa", "Pedro"),
        ("Vendredi je pars à Lisbonne", "Lundi j'ai une réunion avec Paul", "Je ne pars plus à Lisbonne", "Paul"),
        ("周五我要去里斯本", "周一我要和小王开会", "我不去里斯本了", "小王"),
        ("金曜日にリスボンに行きます", "月曜日に田中さんと会議があります", "リスボンには行かないことにした", "田中"),
    ],
)  # fmt: skip
async def test_a_cancelled_plan_is_the_one_named(
    memory: Service, clock: Clock, named: str, other: str, off: str, left: str
) -> None:
    assert len(await known_after(memory, clock, named, other)) == 2
    ((_, value),) = await known_after(memory, clock, off)
    assert left in value


@pytest.mark.parametrize("off", ["Ya no viajo a Oporto", "Je ne pars plus à Porto", "Ich fliege nicht mehr nach Porto"])
async def test_a_plan_never_told_cancels_no_other(memory: Service, clock: Clock, off: str) -> None:
    known = await known_after(memory, clock, "El lunes tengo reunión con Pedro")
    assert await known_after(memory, clock, off) == known


async def test_an_apology_is_no_correction(memory: Service, clock: Clock) -> None:
    assert await known_after(memory, clock, "I like tea", "sorry, wrong window!") == [("likes", "tea")]


@pytest.mark.parametrize(
    ("told", "mind", "holds"),
    [
        ("my favourite color is red", "no, it's green", ("favourite-color", "green")),
        ("my dog is called Rex", "sorry, his name is Max", ("pet", "dog Max")),
        ("I'm allergic to nuts", "no wait, to eggs", ("allergy", "eggs")),
        ("I'm flying to Rome on Friday", "no, on Saturday", ("plan", "flying to Rome on Saturday (2026-11-28)")),
        ("Ich wohne in Köln", "ich meine Bonn", ("home", "Bonn")),
        ("Mein Hund heißt Rex", "sorry, er heißt Max", ("pet", "Hund Max")),
        ("J'habite à Lyon", "non, à Nantes", ("home", "Nantes")),
        ("Mi perro se llama Rex", "perdón, se llama Max", ("pet", "perro Max")),
        ("我的狗叫旺财", "不对，叫来福", ("pet", "狗 来福")),
        ("犬の名前はレックスです", "いや、マックスです", ("pet", "犬 マックス")),
        # What can't stand in the place of the value changes nothing.
        ("my favourite color is red", "no, it's raining", ("favourite-color", "red")),
        ("my favourite color is red", "sorry, his name is Max", ("favourite-color", "red")),
        ("I like tea", "sorry, phone call", ("likes", "tea")),
        ("Ich mag Tee", "Moment, Telefon", ("likes", "Tee")),
    ],
)
async def test_a_change_of_mind_is_about_the_statement_before(
    memory: Service, clock: Clock, told: str, mind: str, holds: tuple[str, str]
) -> None:
    assert await known_after(memory, clock, "We have a cat, Moss", told, mind) == sorted([("pet", "cat Moss"), holds])


@pytest.mark.parametrize(
    ("told", "back"),
    [
        ("I live in Leeds and work at Tesco", "scrap that"),
        ("Ich wohne in Köln", "streich das"),
        ("J'habite à Lyon", "je n'ai rien dit"),
        ("Vivo en Sevilla", "retiro lo dicho"),
        ("我住在上海", "当我没说"),
        ("大阪に住んでいます", "今のはなしで"),
    ],
)
async def test_what_is_taken_back_ends_the_statement_before(
    memory: Service, clock: Clock, told: str, back: str
) -> None:
    assert await known_after(memory, clock, "We have a cat, Moss", told, back) == [("pet", "cat Moss")]


async def test_what_is_over_leaves_the_rest(memory: Service, clock: Clock) -> None:
    known = await known_after(memory, clock, "I like tea", "I have a cat, Moss", "I've stopped drinking tea")
    assert known == [("pet", "cat Moss")]


async def test_nothing_is_learned_from_a_request_to_forget(memory: Service, clock: Clock) -> None:
    assert await known_after(memory, clock, "please forget that I live in Leiden") == []


@pytest.mark.parametrize(
    ("plan", "then", "known"),
    [
        # Of something else, or at a time that has no place in the plan.
        ("I'm flying to Rome on 3 March", ("what a day", "change the bins to 9am"), "flying to Rome on 3 March (2027-03-03)"),
        ("I'm flying to Rome on 3 March", ("change the bins to 9am",), "flying to Rome on 3 March (2027-03-03)"),
        ("I have a dentist appointment on Friday at 3pm", ("what a day", "it's been moved to 4pm"),
         "dentist appointment on Friday (2026-11-27) at 3pm"),
        ("来月大阪に引っ越す", ("ゴミ出しを9時に変更して",), "来月 (2026-12)大阪に引っ越す"),
        ("我下周要去北京", ("改到9点",), "下周 (2026-11-23 起一周)要去北京"),
        # Of the plan itself.
        ("明日の会議は10時", ("会議は11時に変更になった",), "明日 (2026-11-22)の会議は11時"),
        ("I have a dentist appointment on Friday at 3pm", ("it's been moved to 4pm",),
         "dentist appointment on Friday (2026-11-27) at 4pm"),
        ("i have a dentist appointment next tuesday at 3pm", ("actually its wednesday not tuesday",),
         "dentist appointment next wednesday (2026-11-25) at 3pm"),
        ("I'm flying to Lisbon on 14 March", ("no, on the 15th",), "flying to Lisbon on 15 March (2027-03-15)"),
        ("Ich fliege am 14. März nach Rom", ("nein, am 15.",), "fliege am 15. März (2027-03-15) nach Rom"),
        ("Vuelo a Lisboa el 14 de marzo", ("no, el 15",), "Vuelo a Lisboa el 15 de marzo (2027-03-15)"),
        ("Je pars à Rome le 14 mars", ("non, le 15",), "pars à Rome le 15 mars (2027-03-15)"),
        ("我3月14号飞里斯本", ("不对，是15号",), "3月15号 (2027-03-15)飞里斯本"),
        ("3月14日に大阪に行きます", ("いや、15日です",), "3月15日 (2027-03-15)に大阪に行きます"),
    ],
)  # fmt: skip
async def test_a_plan_gets_a_new_time_that_is_its_own_or_stays(
    memory: Service, clock: Clock, plan: str, then: tuple[str, ...], known: str
) -> None:
    """Bins at nine are no flight, and "the 15th" is of the flight's month."""
    assert await known_after(memory, clock, plan, *then) == [("plan", known)]
