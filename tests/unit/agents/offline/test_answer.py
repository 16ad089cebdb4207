"""Tests which facts and sentences answer a question, and which do not."""

from __future__ import annotations

from dataclasses import replace

from agents.llm import Remembered, Request
from agents.offline.provider import answer, nearest, talked
from agents.offline.question import asked
from agents.offline.speech import speech
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens

ENGLISH = speech("en", simplified, parts)
MINUTE = 60_000
HOME = Remembered(said="you live in Bergen", when="yesterday", at=MINUTE, key="home", value="Bergen")
BEFORE = Remembered(
    said="you live in Oslo", when="in May", key="home", value="Oslo", superseded=True, until="3 June 2026"
)
TEA = Remembered(said="you like tea", when="today", at=2 * MINUTE, key="likes", value="tea")
HUSBAND = Remembered(said="your husband: Piet", when="today", key="husband", value="Piet", relation=True)


def said(text: str, *, minute: int = 1, by: str = "") -> Remembered:
    return Remembered(said=text, when="today", at=minute * MINUTE, verbatim=True, by=by)


def answered(text: str, *remembered: Remembered) -> str:
    question = asked(text, ENGLISH, tokens)
    assert question is not None
    return answer(question, remembered, ENGLISH, tokens).text


def test_a_fact_is_told_by_its_key() -> None:
    assert answered("where do I live?", TEA, HOME, BEFORE) == "You live in Bergen; you told me yesterday."


def test_somebody_elses_is_no_answer_about_oneself() -> None:
    quote = said("my brother is allergic to nuts")
    assert answered("what am I allergic to?", quote) == ""
    assert "nuts" in answered("what is my brother allergic to?", quote)
    question = asked("what am I allergic to?", ENGLISH, tokens)
    assert question is not None
    assert nearest(question, [quote], ENGLISH, tokens).text == ""


def test_a_plan_that_is_off_is_told_as_such() -> None:
    plan = Remembered(
        said="your plan: flying to Rome on Friday",
        when="today",
        key="plan",
        value="flying to Rome on Friday",
        superseded=True,
        until="3 June",
    )
    assert (
        answered("when am I flying to Rome?", plan)
        == "Not any more: your plan: flying to Rome on Friday, until 3 June."
    )


def test_a_fact_that_ended_is_told_as_such() -> None:
    assert answered("where do I live?", BEFORE) == "Not any more: you lived in Oslo, until 3 June 2026."


def test_yes_or_no_is_answered_so() -> None:
    assert answered("do I like tea?", TEA).startswith("Yes: you like tea")
    assert answered("do I like coffee?", TEA) == ""


def test_everything_leaves_out_what_ended() -> None:
    assert answered("what do you know about me?", HOME, BEFORE, TEA) == "You live in Bergen\nYou like tea"


def test_what_was_said_is_quoted() -> None:
    assert (
        answered("where is the ladder?", said("The ladder is behind the barn"))
        == "You said today: “The ladder is behind the barn”"
    )
    assert answered("where is the ladder?", said("The ladder is behind the barn", by="Bo")).startswith("Bo said today")


def test_a_question_is_no_answer() -> None:
    assert answered("where is the ladder?", said("Where is the ladder in this barn?")) == ""


def test_a_word_of_the_same_meaning_answers() -> None:
    assert "Nairobi" in answered("when do I fly to Nairobi?", said("My flight to Nairobi is on 4 May"))


def test_the_kind_of_thing_need_not_be_named() -> None:
    assert "oboe" in answered("which instrument do I play?", said("I play the oboe on Sundays"))
    assert answered("which instrument does Rutger play?", said("I play the oboe on Sundays")) == ""


def test_a_relative_is_known_by_name() -> None:
    assert "Utrecht" in answered("where was my husband born?", HUSBAND, said("Piet was born in Utrecht"))
    assert answered("where was my brother born?", HUSBAND, said("Piet was born in Utrecht")) == ""


def test_a_message_is_read_with_the_one_before_that_it_refers_to() -> None:
    before, after = said("Our tortoise is called Agnes", minute=1), said("She eats dandelions", minute=2)
    assert answered("what does Agnes eat?", before, after) == "You said today: “She eats dandelions”"
    assert "dandelions" not in answered("what does Agnes eat?", before, said("She eats dandelions", minute=60))


def test_what_lacks_the_time_or_number_asked_for_is_no_answer() -> None:
    assert answered("what time is the concert?", said("The concert is in the park")) == ""
    assert answered("how much do I get paid?", said("I get paid on the 25th")) == ""


def test_what_is_only_near_is_no_answer() -> None:
    assert answered("where is the spare wheel?", said("The spare key is with Lotte")) == ""


def test_words_of_an_answer_may_be_others_than_those_of_the_question() -> None:
    assert "Mr Abara" in answered("who do I rent from?", said("the landlord is Mr Abara"))
    assert answered("who's our electricity supplier?", said("the landlord is Mr Abara")) == ""


def test_a_sister_is_no_brother() -> None:
    sister = Remembered(said="your sister: Ines", when="today", key="sister", value="Ines", relation=True)
    assert answered("what is my brother's name?", sister) == ""
    assert "Ines" in answered("what is my sister's name?", sister)


def test_a_name_that_looks_like_an_empty_word_is_asked_for() -> None:
    assert "Porto" in answered("where does ines live?", said("Ines lives in Porto"))
    assert answered("where does Ines live?", said("Otto lives near Porto")) == ""


def near(text: str, *remembered: Remembered) -> str:
    question = asked(text, ENGLISH, tokens)
    assert question is not None
    return nearest(question, remembered, ENGLISH, tokens).text


def test_what_comes_nearest_to_a_question_is_told_with_doubt() -> None:
    spare = said("The spare key is with Lotte")
    assert near("where is my spare wheel?", spare) == (
        "I'm not sure this answers it. You said today: “The spare key is with Lotte”"
    )
    alike = replace(said("We rent from Mr Abara"), nearness=0.05)
    assert "Mr Abara" in near("what's my landlord called?", alike)


def test_a_question_in_another_script_is_no_answer_either() -> None:
    """The model of meaning finds it first: nothing is nearer to a question than the same question."""
    for code, question, earlier in (
        ("en", "What am I allergic to?", ("我对什么过敏？", "我对什么过敏", "私は何のアレルギーですか")),
        ("zh", "我对什么过敏？", ("what am I allergic to", "What am I allergic to?", "私は何のアレルギーですか")),
        ("ja", "私は何のアレルギーですか", ("what am I allergic to", "我对什么过敏")),
        ("de", "Wogegen bin ich allergisch?", ("我对什么过敏", "What am I allergic to?")),
    ):
        spoken = speech(code, simplified, parts)
        asking = asked(question, spoken, tokens)
        assert asking is not None
        for words in earlier:
            assert nearest(asking, [replace(said(words), nearness=0.2)], spoken, tokens).text == "", (code, words)
        told = nearest(asking, [replace(said("我吃花生会过敏。"), nearness=0.2)], spoken, tokens)
        assert "花生" in told.text, code


def test_what_has_little_to_do_with_a_question_is_not_told() -> None:
    assert near("what's my dentist called?", replace(said("We rent from Mr Abara"), nearness=0.01)) == ""
    assert near("what's the capital of Norway?", replace(said("I was born in Oslo"), nearness=0.2)) == ""
    assert near("where does my sister Ines live?", replace(said("Otto lives near Porto"), nearness=0.2)) == ""
    long = said("and then " * 60 + "we looked for the spare key")
    assert near("where is my spare wheel?", long) == ""


def test_a_fact_of_another_kind_is_not_near() -> None:
    assert near("do I like coffee?", replace(TEA, nearness=0.2)) == ""


def test_a_question_about_earlier_times_needs_an_answer_about_them() -> None:
    assert answered("what was my address before?", said("we live at 4 Hill Road")) == ""
    assert "Elm" in answered("what was my address before?", said("my old address was 9 Elm Road"))


def test_a_long_quotation_is_cut_to_what_answers() -> None:
    story = ", ".join(["and then we walked on"] * 30 + ["the boat is called Petrel"] + ["and it rained"] * 30)
    told = answered("what is the boat called?", said(story))
    assert "the boat is called Petrel" in told and len(told) < 300


def test_who_somebody_is_comes_before_what_they_said() -> None:
    """The name is all that is asked, and both hold it."""
    son = Remembered(said="your son: Piet", when="today", at=1, key="son", value="Piet", relation=True)
    assert "son" in answered("who's piet", replace(said("Piet told me about the ferry"), at=2), son)


def test_what_was_so_before_is_told_with_its_end() -> None:
    older = replace(BEFORE, said="you live in Turku", value="Turku", at=-MINUTE, until="2 May 2026")
    told = answered("where did I live before?", HOME, BEFORE, older)
    assert told == "Before: you lived in Oslo, until 3 June 2026.\nBefore: you lived in Turku, until 2 May 2026."


def test_what_was_talked_of_is_told_in_its_order() -> None:
    later = said("Bo came by", minute=3)
    remembered = (later, said("The ladder is behind the barn"), TEA)
    request = Request(messages=(), said="what did we talk about today?", remembered=remembered)
    recounted = talked(request, ENGLISH)
    assert (
        recounted is not None
        and recounted.text == "You said today: “The ladder is behind the barn”\nYou said today: “Bo came by”"
    )


def test_what_somebody_does_is_their_work() -> None:
    friend = replace(HUSBAND, said="your friend: Nia", key="friend", value="Nia")
    assert answered("what does Nia do?", friend, said("Nia is a vet")) == "You said today: “Nia is a vet”"
