"""Small talk and questions, told apart."""

from __future__ import annotations

from agents.offline.question import AskedQuestion, asked, held, social
from agents.offline.speech import speech
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.words import tokens
from tests.kit.tables import each_row

ENGLISH = speech("en", simplified, parts)


def question(text: str) -> AskedQuestion:
    found = asked(text, ENGLISH, tokens)
    assert found is not None
    return found


@each_row(
    ("said", "kinds"),
    [
        ("Hiya!", ("greeting",)),
        ("Morning! How are you keeping?", ("greeting", "how")),
        ("how are things? thanks for yesterday", ("how", "thanks")),
        ("you stupid machine", ("insult",)), ("you are such a sweet bot", ("compliment",)),
        ("write me a limerick about snow", ("creative",)),
        ("do you ever get lonely?", ("bot",)), ("I feel so lonely today", ("comfort",)),
        ("what time is it please", ("clock",)), ("which day is it today?", ("calendar",)),
        ("is anybody there?", ("here",)), ("can I trust you?", ("privacy",)), ("happy easter!", ("wish",)),
        ("what can you actually do then?", ("can",)),
    ],
)  # fmt: skip
def test_small_talk_is_told_by_its_parts(said: str, kinds: tuple[str, ...]) -> None:
    assert social(said, ENGLISH) == kinds


@each_row(
    "said",
    [
        "Hello! Where do I live?", "what time does the ferry leave?", "thanks, and what is my sister called?",
        "how far is it to the harbour?", "My boat is called Petrel.",
    ],
)  # fmt: skip
def test_a_message_that_wants_anything_else_is_no_small_talk(said: str) -> None:
    assert social(said, ENGLISH) == ()


def test_a_statement_asks_nothing() -> None:
    assert asked("I keep six hens. They lay well.", ENGLISH, tokens) is None


def test_the_last_question_counts() -> None:
    assert question("Is it late? Whatever. Where is my umbrella?").words == {"umbrella"}


def test_an_embedded_question_reads_as_a_direct_one() -> None:
    asks = question("can you remind me what my name is?").asks
    assert asks is not None and "name" in asks.keys


def test_what_follows_a_question_is_no_part_of_it() -> None:
    assert (
        question("where did I leave my umbrella, I am so forgetful?").words
        == question("where did I leave my umbrella?").words
    )


def test_the_kind_of_thing_asked_for_is_known_as_such() -> None:
    assert question("which instrument do I play?").light == set(tokens("instrument"))
    assert question("where do I play?").light == set()


def test_names_and_relatives_must_be_in_the_answer() -> None:
    assert question("where does my sister Ottoline work?").musts == set(tokens("sister Ottoline"))


def test_words_of_one_meaning_stand_for_each_other() -> None:
    assert set(tokens("fly")) <= held("flight", ENGLISH, tokens)
    assert not set(tokens("fly")) & held("ferry", ENGLISH, tokens)
