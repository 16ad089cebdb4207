"""The language files of the agent without a model."""

from __future__ import annotations

from agents.offline.speech import plain, speech
from memory.text.sentences import parts
from memory.text.simplified import simplified


def test_an_unknown_language_is_spoken_as_english() -> None:
    assert (
        speech("tlh", simplified, parts) is speech("en", simplified, parts)
        or speech("tlh", simplified, parts).texts == speech("en", simplified, parts).texts
    )


def test_every_kind_of_small_talk_has_an_answer() -> None:
    english = speech("en", simplified, parts)
    kinds = {*english.social, *(kind for kind, _ in english.talk)}
    assert kinds and kinds <= set(english.texts)


def test_a_pattern_in_quotes_keeps_the_blank_before_a_bar() -> None:
    """ "my current job" needs the blank that "current |new " ends in."""
    (jobs, *_) = [asks for asks in speech("en", simplified, parts).asks if asks.pattern.search("what is my job?")]
    assert jobs.pattern.search("what is my current job?")


def test_a_folded_pattern_goes_on_where_its_line_ended() -> None:
    assert speech("en", simplified, parts).question.search("whats my shoe size")
    assert speech("en", simplified, parts).question.search("do you remember my shoe size")


def test_text_is_read_with_straight_apostrophes_and_single_blanks() -> None:
    assert plain("what’s  my\nname") == "what's my name"
